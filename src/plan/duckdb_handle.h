/* The open DuckDB behind the front end. Private to src/plan/duckdb*.c. */
#ifndef SX_PLAN_DUCKDB_HANDLE_H
#define SX_PLAN_DUCKDB_HANDLE_H

#include <duckdb.h>
#include <pthread.h>

#include "plan/duckdb_convert.h"
#include "plan/frontend.h"

enum sx_view { SX_VIEW_NONE, SX_VIEW_FILES, SX_VIEW_STAND_IN };

struct sx_frontend_table {
    char *name;
    char **files;
    int n_files;
    struct sx_table_parts *parts; /* NULL: every rank sees all files */
    /* views are made when a statement first mentions them: binding one reads a footer */
    enum sx_view view;
    char *stand_in; /* path in a VIEW_STAND_IN's place of the files; else NULL */
    int stand_in_version;
};

/* A query's plan as DuckDB gave it. */
struct sx_plan_text {
    char *sql;
    char *json;
    size_t length_bytes;
    char **names; /* of the answer's columns */
    int32_t n_names;
    struct sx_shared_plan *shared;      /* what was made of it; NULL: not asked for yet */
    struct sx_shared_plan *distributed; /* the same for several ranks; NULL: not kept yet */
    uint64_t setting;                   /* for which it was distributed */
    int64_t used;                       /* by sx_plan_memo.uses */
};

/* Plans of queries that may come again. Starts zeroed. */
struct sx_plan_memo {
    struct sx_plan_text *plans;
    int n;
    int64_t uses;
};

struct sx_frontend {
    duckdb_database database;
    duckdb_connection binder;  /* optimiser off: finds errors and names at little cost */
    duckdb_connection planner; /* json_serialize_plan; describes */
    duckdb_connection runner;
    duckdb_prepared_statement serialize;
    const char *optimizers; /* value of disabled_optimizers now; it is global in DuckDB */
    struct sx_frontend_table *tables;
    int n_tables;
    int table_capacity;
    int first_line, first_column; /* of the statement in work, in its script */
    struct sx_stand_in_source stand_ins;
    struct sx_plan_memo memo;
    bool has_objects;            /* statements may have made views or macros over the tables' views */
    bool in_transaction;         /* of the runner's; the other connections don't see what it has changed */
    bool has_own_values;         /* for good: the runner's session has what the others can't have */
    const char *foreign_setting; /* that only DuckDB heeds; NULL: none */
    int broken_table;            /* that a view could not be made of at last; -1: none */
    const char **names;          /* for sx_frontend_tables */
};

/* Sets `error` from DuckDB's message, which is JSON (errors_as_json). */
enum sx_status sx_duckdb_error(struct sx_error *error, const char *message);
/* The same with the position in `sql`, which counts from the front end's origin. */
enum sx_status sx_duckdb_query_error(const struct sx_frontend *frontend, struct sx_error *error,
                                     const char *message, const char *sql);
/* The same as sx_duckdb_error of a message's parts. */
enum sx_status sx_duckdb_failure(struct sx_error *error, const char *type, const char *message);
/* The status of DuckDB's exception type ("Out of Memory", any case) and message. */
enum sx_status sx_duckdb_status(const char *type, const char *message);

SX_MUST_CHECK enum sx_status sx_duckdb_execute(duckdb_connection connection, const char *sql,
                                               struct sx_error *error);
/* `optimizers`: names of those to leave out; a literal. */
SX_MUST_CHECK enum sx_status sx_duckdb_set_optimizers(struct sx_frontend *frontend, const char *optimizers,
                                                      struct sx_error *error);
/* Makes the views that `sql` may mention. Those of stand-ins have no rows, so they are for planning only; for
 * running no view is one, whatever `sql` mentions. */
enum sx_views_for { SX_VIEWS_FOR_PLANNING, SX_VIEWS_FOR_RUNNING };
SX_MUST_CHECK enum sx_status sx_duckdb_make_views(struct sx_frontend *frontend, const char *sql,
                                                  enum sx_views_for purpose, struct sx_error *error);
/* All views that planning `sql` needs are there, of stand-ins of the files as they are now. DuckDB is not
 * asked. */
bool sx_duckdb_has_stand_ins(struct sx_frontend *frontend, const char *sql);

/* What binding a statement has found. It belongs to who waits, except while it runs. */
struct sx_binding {
    struct sx_frontend *frontend;
    const char *sql;
    pthread_t thread;
    bool runs; /* on its thread */
    enum sx_status status;
    struct sx_error error; /* of `status` */
    const char **names;    /* of the answer's columns, each from DuckDB's allocator */
    int32_t n_names;
};

/* Binds `sql` (borrowed) on a thread of its own, and then returns SX_OK; statements that are not queries,
 * which nothing else is to see before, at once. Its views are there. Release `out_binding` in either case. */
enum sx_status sx_binding_begin(struct sx_frontend *frontend, const char *sql,
                                struct sx_binding *out_binding);
/* Until it has ended; returns its status. */
enum sx_status sx_binding_wait(struct sx_binding *binding);
void sx_binding_release(struct sx_binding *binding);

/* The plan of a query that was planned before, borrowed until the next call for the memo; NULL: there is
 * none. Views that are made anew, tables, and what others run in DuckDB's session empty the memo
 * (sx_plan_memo_clear): so with sx_duckdb_has_stand_ins, which holds here, a plan in it is of the files,
 * settings and objects as they are. */
struct sx_plan_text *sx_plan_memo_find(struct sx_frontend *frontend, const char *sql);
/* Keeps the plan of what was bound; not if another one may come of the same text, or no memory is left.
 * `json` is zero-terminated. */
void sx_plan_memo_keep(struct sx_frontend *frontend, const struct sx_binding *binding, const char *json,
                       size_t length_bytes);
void sx_plan_memo_clear(struct sx_plan_memo *memo);
/* By its words the plan may depend on the time, on chance, on the session or on files other than the tables'.
 */
bool sx_statement_may_change(const char *sql);

/* SX_UNSUPPORTED where the statement may read a table of which this process has a part. */
SX_MUST_CHECK enum sx_status sx_duckdb_refuse_parts(const struct sx_frontend *frontend, const char *sql,
                                                    struct sx_error *error);

/* SX_UNSUPPORTED with the statement's name unless it is a SELECT or another query; SX_QUERY for what can't
 * work here. `type`: DuckDB's, of the prepared statement. */
SX_MUST_CHECK enum sx_status sx_statement_check(const char *sql, duckdb_statement_type type,
                                                struct sx_error *error);
/* DuckDB reads `n` > 1 statements: SX_UNSUPPORTED when it made them of one, else SX_QUERY. */
SX_MUST_CHECK enum sx_status sx_statement_check_several(const char *sql, int n, struct sx_error *error);
/* By its first word nothing but a query: planning it changes nothing. */
bool sx_statement_is_query(const char *sql);
/* It tells about tables or plans, and reads nothing. */
bool sx_statement_only_tells(const char *sql);
/* It may list tables that it does not name. */
bool sx_statement_reads_catalog(const char *sql);
/* It leaves no view, macro or prepared statement that others may use. */
bool sx_statement_leaves_nothing(const char *sql);
/* It changes what later statements of the same connection do: settings, variables, prepared statements. */
bool sx_statement_sets_session(const char *sql);
bool sx_statement_begins_transaction(const char *sql);
bool sx_statement_ends_transaction(const char *sql);
/* A variable whose value depends on the time, on chance or on the session. */
bool sx_statement_sets_by_chance(const char *sql);
/* It makes or drops something without rows that queries name: a view, a macro, a type. */
bool sx_statement_names(const char *sql);

/* SX_UNSUPPORTED with the reason while only DuckDB's runner may answer: in a transaction, or with a setting
 * that the engine does not heed. */
SX_MUST_CHECK enum sx_status sx_session_check(const struct sx_frontend *frontend, const char *sql,
                                              struct sx_error *error);
/* SX_QUERY for what can't work here. */
SX_MUST_CHECK enum sx_status sx_statement_refuse_temporary(const char *sql, struct sx_error *error);
/* The runner has failed with `error`: a COMMIT that fails ends its transaction, too. */
void sx_session_failed(struct sx_frontend *frontend, const char *sql, const struct sx_error *error);
/* After the runner has run `sql`: the other connections follow it. */
SX_MUST_CHECK enum sx_status sx_session_follow(struct sx_frontend *frontend, const char *sql,
                                               struct sx_error *error);

#endif
