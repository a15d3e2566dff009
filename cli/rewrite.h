/* stachio rewrite. */
#ifndef CLI_REWRITE_H
#define CLI_REWRITE_H

#include "options.h"

/* argv[0] is "rewrite". Returns the exit status. */
int rewrite_main(int argc, char **argv, const char *help);

/* ---- rewrite_sql.c ---- */

/* What --sort-by and --partition-by make of a table. */
struct rewrite_sql {
    struct text sql;
    struct stachio_order *orders;
    int n_orders;
    int n_partition;
};
/* Of the table `table`. STACHIO_USAGE: a column that is not there, or is named twice. */
enum stachio_status rewrite_sql_make(struct rewrite_sql *sql, struct stachio_db *db, const char *table,
                                     const char *sort_by, const char *partition_by,
                                     struct stachio_error *error);
void rewrite_sql_release(struct rewrite_sql *sql);

/* ---- rewrite_print.c ---- */

/* A copy of what stachio_inspect told, which the next inspection would take away. */
struct rewrite_layout {
    int64_t files, row_groups, pages, rows, bytes;
    int n_columns;
    char **names;
    char **types;
    char **encodings; /* with the codecs */
    int64_t *column_bytes;
};
enum stachio_status rewrite_layout_read(struct rewrite_layout *layout, struct stachio_db *db,
                                        const char *const *patterns, int n_patterns,
                                        struct stachio_error *error);
void rewrite_layout_release(struct rewrite_layout *layout);
/* Both as a table, and one with a line for each column. */
void rewrite_print(struct text *out, const struct rewrite_layout *before, const struct rewrite_layout *after);
/* Both on one line. */
void rewrite_print_line(struct text *out, const char *name, const struct rewrite_layout *before,
                        const struct rewrite_layout *after);

#endif
