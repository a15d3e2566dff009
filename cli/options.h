/* The command line's options. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "answer.h"

/* -d or -t, in the order given. */
struct table_option {
    char *name; /* NULL: `pattern` is a directory of tables */
    const char *pattern;
};

/* -c or -f, in the order given. */
struct script_option {
    const char *text;
    const char *path;
};

enum progress_mode { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };

/* stachio bench join. */
struct join_options {
    int64_t build_rows, probe_rows;
    int columns; /* of each table */
    double hit_ratio, skew;
    enum stachio_join_variant variant;
    const char *timeline; /* a file; NULL: none */
    bool weak_scaling;    /* rows are each rank's */
    bool tpch;
    const char *tables; /* the last option given that says what the tables are; NULL: none */
};

struct options {
    struct stachio_options db;
    struct table_option *tables;
    int n_tables;
    struct script_option *scripts;
    int n_scripts;
    enum format format;
    bool has_format;
    const char *output;
    const char *trace; /* a file; NULL: none */
    int64_t max_rows;  /* of a table; -1: all, but few on a terminal */
    enum progress_mode progress;
    bool explain;
    bool analyze;
    bool help;
    bool version;
    /* stachio tpch */
    const char *scale;
    const char *queries;
    int repeat;
    bool compare;
    /* stachio bench, stachio topology */
    const char *sizes;
    const char *json;
    const char *filter;
    struct join_options join;
    bool steps; /* bench exchange: with partitioning, and with a join, too */
    /* stachio rewrite, and --format parquet */
    struct stachio_write_options write;
    char **inputs; /* behind the options; NULL where the command takes none */
    int n_inputs;
    int files; /* 0: not asked for */
    const char *sort_by;
    const char *partition_by;
    bool force;
};

/* Which options a command takes. */
enum command {
    COMMAND_QUERY,
    COMMAND_TPCH_RUN,
    COMMAND_TPCH_GENERATE,
    COMMAND_BENCH_PRIMITIVES,
    COMMAND_BENCH_SCAN,
    COMMAND_BENCH_EXCHANGE,
    COMMAND_BENCH_JOIN,
    COMMAND_REWRITE,
    COMMAND_TOPOLOGY
};

/* argv[0] is the command's name. 0, or the exit status after telling what is wrong. Texts point into argv. */
int options_read(struct options *options, enum command command, int argc, char **argv);
void options_release(struct options *options);

/* Opens the database. Of several ranks only rank 0 comes back from it: the others do what it wants, and exit.
 */
enum stachio_status options_open_rank(const struct options *options, struct stachio_db **out_db,
                                      struct stachio_error *error);
/* The same with its tables. */
enum stachio_status options_open(const struct options *options, struct stachio_db **out_db,
                                 struct stachio_error *error);

#endif
