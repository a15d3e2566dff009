/* DuckDB as parser, binder, optimiser, catalog of Parquet views, and engine for what stachio can't run yet.
 * The only door to libduckdb. */
#ifndef SX_PLAN_FRONTEND_H
#define SX_PLAN_FRONTEND_H

#include <stdint.h>

#include "plan/plan.h"

struct sx_frontend;
struct ArrowArrayStream; /* Arrow C stream interface */

/* Opens an in-memory DuckDB. Fails (SX_INTERNAL) when the library is not the version the plan format was made
 * for. */
SX_MUST_CHECK enum sx_status sx_frontend_open(int threads, size_t memory_limit_bytes,
                                              struct sx_frontend **out_frontend, struct sx_error *error);
void sx_frontend_close(struct sx_frontend *frontend);

/* Registers table `name` over files (a glob's expansion or one file, in order). Missing and unreadable files
 * are SX_FILE errors that name the file. A later registration of the same name replaces the earlier one.
 * `parts` (copied; NULL: none) tells which files are this rank's; of the others the footers serve for
 * planning, and DuckDB does not run queries of such tables. */
SX_MUST_CHECK enum sx_status sx_frontend_add_table(struct sx_frontend *frontend, const char *name,
                                                   const char *const *files, int n_files,
                                                   const struct sx_table_parts *parts,
                                                   struct sx_error *error);
/* What planning may read in place of a table's files; see storage/stand_in.h. */
struct sx_stand_in_source {
    /* A path that is valid until the next call for the same files, or NULL: there is none. What the file
     * tells is the same as long as the version is. */
    const char *(*find)(void *context, const char *const *files, int n_files, int *out_version);
    void *context;
};
void sx_frontend_set_stand_ins(struct sx_frontend *frontend, struct sx_stand_in_source source);
/* Tables in order of registration; *out_names is borrowed until the next call. */
int sx_frontend_tables(struct sx_frontend *frontend, const char *const **out_names);
/* Whether the SQL may be about the table: its name stands in the text as a word, or within quotes. */
bool sx_frontend_mentions(const char *sql, const char *name);
/* The files of the table whose SX_FILE error ended the last call; 0: of none. */
int sx_frontend_broken_files(const struct sx_frontend *frontend, const char *const **out_files);
/* Columns of a table, in `arena`. */
SX_MUST_CHECK enum sx_status sx_frontend_describe(struct sx_frontend *frontend, struct sx_arena *arena,
                                                  const char *table, struct sx_column_info **out_columns,
                                                  int *out_n_columns, struct sx_error *error);

/* Where the texts given to the calls below begin in their script, from 1 (as it is at first): positions in
 * error texts count from there. */
void sx_frontend_set_origin(struct sx_frontend *frontend, int line, int column);

/* What a plan is wanted for: those that are read only may be shared by several queries. */
enum sx_plan_for { SX_PLAN_TO_READ, SX_PLAN_TO_CHANGE };

/* The plan of a query that was planned before, of the files as they are now; nothing of DuckDB is run.
 * *out_known false: there is none, and *out_plan is as it was. Release *out_plan. */
SX_MUST_CHECK enum sx_status sx_frontend_plan_known(struct sx_frontend *frontend, const char *sql,
                                                    enum sx_plan_for purpose, struct sx_query_plan *out_plan,
                                                    bool *out_known, struct sx_error *error);
/* The same, of the plan that was kept for several ranks, if its setting was this one. It may only be read. */
SX_MUST_CHECK enum sx_status sx_frontend_plan_distributed(struct sx_frontend *frontend, const char *sql,
                                                          uint64_t setting, struct sx_query_plan *out_plan,
                                                          bool *out_known, struct sx_error *error);
/* Shares *plan, which is distributed and of the files as they are now, with later queries of the statement,
 * if those would find its plan known; else it stays as it is. `setting` tells what else it depends on. */
void sx_frontend_keep_distributed(struct sx_frontend *frontend, const char *sql, uint64_t setting,
                                  struct sx_query_plan *plan);
/* Parses, binds and optimises one SQL statement.
 * - SX_OK: *out_plan is filled (release it).
 * - SX_UNSUPPORTED: a correct query that stachio can't run; the text names the operator, function or type.
 * - SX_QUERY: the query is wrong; the text has DuckDB's message and the position (line and column, and the
 * line itself).
 * - SX_FILE: a file is missing or corrupt. */
SX_MUST_CHECK enum sx_status sx_frontend_plan(struct sx_frontend *frontend, const char *sql,
                                              struct sx_query_plan *out_plan, struct sx_error *error);

/* Splits a script at its statements' ends; texts in `arena`. */
SX_MUST_CHECK enum sx_status sx_frontend_split(struct sx_frontend *frontend, struct sx_arena *arena,
                                               const char *script, const char *const **out_statements,
                                               int *out_n, struct sx_error *error);

/* Runs the query in DuckDB; the stream is the caller's to release and may outlive later calls but not the
 * front end. Its calls return ENOMEM, ECANCELED, EIO (a file) or EINVAL (the query). */
SX_MUST_CHECK enum sx_status sx_frontend_run(struct sx_frontend *frontend, const char *sql,
                                             struct ArrowArrayStream *out_stream, struct sx_error *error);
/* Whether a statement that sx_frontend_run has run leaves something that the front ends of other processes
 * have to know (sx_frontend_follow) for the same plans. */
bool sx_frontend_tells(const char *sql);
/* Another process's front end has run it: settings, views and macros are made here, too. What fails here
 * fails where a query needs it. */
void sx_frontend_follow(struct sx_frontend *frontend, const char *sql);
/* Front ends of several processes may have different plans for it: by its words, or what views may have, it
 * depends on the time, on chance, on the session or on files other than the tables'. */
bool sx_frontend_may_change(const struct sx_frontend *frontend, const char *sql);
/* From any thread: ends what DuckDB is doing. */
void sx_frontend_interrupt(struct sx_frontend *frontend);

#endif
