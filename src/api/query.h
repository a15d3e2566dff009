/* Inside of src/api: a query from its text to its answer. */
#ifndef SX_API_QUERY_H
#define SX_API_QUERY_H

#include <semaphore.h>

#include "api/db.h"
#include "storage/footprint.h"

/* An answer of DuckDB's, fetched to its end. */
struct sx_duckdb_answer {
    struct ArrowSchema schema;
    struct ArrowArray *arrays;
    int64_t n_arrays;
    int64_t capacity;
};

/* Who runs it, of several ranks. */
enum sx_runners {
    SX_RUNNERS_CHOSEN, /* rank 0 what is small */
    SX_RUNNERS_ALL,
    SX_RUNNERS_ALONE /* rank 0, if it can */
};

/* Counted: streams keep it. */
struct stachio_query {
    atomic_int references;
    struct stachio_db *db;
    char *sql;
    int line, column; /* where it begins in its script; 0: not known */
    enum stachio_engine wanted;
    enum stachio_engine engine; /* who answers, once planned */
    atomic_bool cancel;
    sem_t wake;
    bool planned;
    bool executed;
    bool succeeded;
    bool streamed;
    bool has_plan;
    enum sx_runners runners;
    bool is_small;           /* rank 0 may run it by itself, though there are others, */
    bool is_alone;           /* and is going to */
    bool differs;            /* another rank has another plan, as the query may at another time */
    int64_t broadcast_bytes; /* build sides up to this size are sent to all ranks; rank 0's counts */
    const struct sx_exec_write *write; /* during stachio_query_write */
    struct sx_query_plan plan;
    struct sx_run *run;
    struct sx_trace *trace;         /* NULL: none */
    struct sx_footprint *footprint; /* of `run` */
    struct sx_duckdb_answer duckdb;
    struct sx_arena arena; /* texts for the caller */
    char *reason;          /* why not stachio; in the arena */
    struct stachio_operator *operators;
    double plan_seconds;
    double execute_seconds;
    pthread_mutex_t progress_lock; /* for what follows, and for `run` */
    double started;                /* 0: execute has not begun */
    double ended;
    int64_t device_cache_bytes;
};

struct stachio_query *sx_query_retain(struct stachio_query *query);
void sx_query_release(struct stachio_query *query);

/* The three below hold the database's lock. */
SX_MUST_CHECK enum sx_status sx_query_plan(struct stachio_query *query, struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_query_explain(struct stachio_query *query, const char **out_text,
                                              struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_query_execute(struct stachio_query *query, struct sx_error *error);

/* stachio_query_execute under another name: with query->write set. */
enum stachio_status sx_query_run(struct stachio_query *query, struct stachio_error *error);
/* DuckDB answers and writes the file itself. */
SX_MUST_CHECK enum sx_status sx_duckdb_write(struct stachio_query *query, struct sx_error *error);

/* Runs `sql` in DuckDB and fetches everything; a cancellation of the query ends it. */
SX_MUST_CHECK enum sx_status sx_duckdb_fetch(struct stachio_query *query, const char *sql,
                                             struct sx_duckdb_answer *out_answer, struct sx_error *error);
/* A second owner of the schema's texts; keeps the query. */
SX_MUST_CHECK enum sx_status sx_duckdb_schema(struct stachio_query *query, const struct ArrowSchema *schema,
                                              struct ArrowSchema *out_schema, struct sx_error *error);
void sx_duckdb_answer_release(struct sx_duckdb_answer *answer);

/* SX_CANCELLED instead of what a cancelled query failed with. */
enum sx_status sx_query_cancelled(const struct stachio_query *query, enum sx_status status,
                                  struct sx_error *error);

/* What it is made of; NULL of NULL. Borrowed. */
struct sx_trace *sx_trace_of(const struct stachio_trace *trace);

#endif
