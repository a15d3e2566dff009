/* What a benchmark prints: a table on standard output, line by line, and JSON where a file is asked for. */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include "bench.h"
#include "output.h"

struct bench_report {
    struct output table;
    struct output json; /* its text is written only if `has_json` */
    bool has_json;
    int n_results;
    struct stachio_error error; /* of writing */
    enum stachio_status status;
};

/* After the line of a result was added to both. */
void bench_report_added(struct bench_report *report);

/* Opens a database and the report, lets `measure` add results, ends the JSON's list and object, and puts the
 * file into its place. Returns the exit status; errors are reported. */
int bench_report_run(struct bench_report *report, const struct options *options,
                     enum stachio_status (*measure)(void *context, struct stachio_db *db,
                                                    struct stachio_error *error),
                     void *context);

/* A benchmark of messages: the first member of its own struct, which is the `context` of `measure`. */
struct bench_messages {
    struct bench_report report;
    struct options options;
    int64_t sizes[BENCH_MOST_SIZES]; /* of messages, in bytes; set are those that count without --sizes */
    int n_sizes;
};

/* Reads the options; `check` refuses those that would do nothing. Then bench_report_run. */
int bench_messages_main(struct bench_messages *bench, enum command command, int argc, char **argv,
                        const char *help, int (*check)(const struct options *options),
                        enum stachio_status (*measure)(void *context, struct stachio_db *db,
                                                       struct stachio_error *error));

/* As a JSON string. */
void bench_report_quote(struct text *out, const char *text);

#endif
