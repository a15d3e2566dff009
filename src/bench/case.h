/* Inside of src/bench: a case, the workers that run it, and what makes their inputs. */
#ifndef SX_BENCH_CASE_H
#define SX_BENCH_CASE_H

#include <stdarg.h>

#include "bench/bench.h"
#include "bench/program.h"

enum { BENCH_COLUMNS = 8 };

struct bench;

struct bench_worker {
    struct bench *bench;
    int index;
    struct sx_stream *stream;
    int64_t first, rows; /* its share of the case's rows */
    struct sx_tensor columns[BENCH_COLUMNS];
    struct sx_eval *eval; /* of the case's program */
    enum sx_status status;
};

/* Values at random, as bench_values makes them. */
struct bench_column {
    struct sx_type type;
    int64_t values;
    bool is_dictionary;
};

/* Zeroed functions do nothing. Those of a worker run on all workers at the same time. */
struct bench_case {
    const char *primitive;
    char name[96];
    int64_t rows;
    double bytes; /* the floor, of all rows */
    struct bench_column columns[BENCH_COLUMNS];
    int n_columns;
    struct bench_program program; /* workers get an eval of it when it has outputs */
    enum sx_status (*prepare)(struct bench_worker *worker, struct bench_case *c); /* behind the columns */
    enum sx_status (*use)(struct bench_worker *worker, struct bench_case *c, const struct sx_batch *batch);
    enum sx_status (*begin)(struct bench *bench, struct bench_case *c); /* before each run, not timed */
    enum sx_status (*run)(struct bench *bench, struct bench_case *c);   /* what is timed */
    void (*end)(struct bench *bench, struct bench_case *c);             /* after each run, not timed */
    /* Of the families. */
    int64_t count; /* groups, build rows, parts, a limit */
    int copies;    /* rows of a key */
    int n_payload;
    bool is_wide; /* an index of 64 bits */
    struct sx_group *group;
    struct sx_join *join;
};

struct bench {
    const struct sx_bench_options *options;
    const struct sx_backend_ops *ops;
    struct sx_team *team;
    int n_workers;
    struct bench_worker *workers;
    int64_t chunk_rows;
    bool is_host;
    double copy_bytes_per_second;
    /* work in progress */
    enum sx_status (*work)(struct bench_worker *worker, struct bench_case *c);
    struct bench_case *current;
    atomic_int next_part;
    int n_parts;
};

/* Bytes that a read or write at random moves at least, in memory of that size: a sector of the device's, a
 * line of the host's; nothing where the caches may have all of it. */
static inline double bench_sector(const struct bench *bench, double memory_bytes) {
    return memory_bytes <= (64 << 20) ? 0 : bench->is_host ? 64 : 32;
}

static inline struct sx_error *bench_error(struct bench *bench) {
    return &bench->workers[0].stream->error;
}

/* ---- measure.c ---- */

void bench_name(struct bench_case *c, const char *format, ...) SX_PRINTF(2, 3);
/* Prepares, warms up, times, and tells the result; unless the filter leaves it out. */
void bench_measure(struct bench *bench, struct bench_case *c);
/* `work` on every worker, which is synchronised behind it; the first failure is in bench_error. */
SX_MUST_CHECK enum sx_status bench_parallel(struct bench *bench, struct bench_case *c,
                                            enum sx_status (*work)(struct bench_worker *worker,
                                                                   struct bench_case *c));
/* c->use for each chunk of the worker's rows; the batch has slices of the case's columns. */
SX_MUST_CHECK enum sx_status bench_chunks(struct bench_worker *worker, struct bench_case *c);
/* A whole `run`: chunks on every worker. */
SX_MUST_CHECK enum sx_status bench_run_chunks(struct bench *bench, struct bench_case *c);
/* One more column; returns its number, which is also its register in the case's program. */
int bench_add_column(struct bench_case *c, struct sx_type type, int64_t values, bool is_dictionary);

/* ---- input.c: deterministic columns of `rows` rows, made on the device ---- */

/* Hashes of first, first + 1, …: U64 at random. */
SX_MUST_CHECK enum sx_status bench_random(struct bench_worker *worker, int64_t first, int64_t rows,
                                          struct sx_tensor *out_column);
/* Values of `type` of which there are `values`, at random. Strings have 20 bytes or more. */
SX_MUST_CHECK enum sx_status bench_values(struct bench_worker *worker, struct sx_type type, int64_t values,
                                          int64_t first, int64_t rows, struct sx_tensor *out_column);
/* VARCHAR with `values` entries in its dictionary. */
SX_MUST_CHECK enum sx_status bench_dictionary(struct bench_worker *worker, int64_t values, int64_t first,
                                              int64_t rows, struct sx_tensor *out_column);
/* The output of a program over one column. */
SX_MUST_CHECK enum sx_status bench_apply(struct bench_worker *worker, const struct bench_program *program,
                                         const struct sx_tensor *column, struct sx_tensor *out_column);

/* ---- the families, over `rows` rows ---- */

void bench_copies(struct bench *bench, int64_t rows);
void bench_expressions(struct bench *bench, int64_t rows);
void bench_moves(struct bench *bench, int64_t rows);
void bench_hashes(struct bench *bench, int64_t rows);
void bench_groups(struct bench *bench, int64_t rows);
void bench_rows(struct bench *bench, int64_t rows);
void bench_joins(struct bench *bench, int64_t rows);
void bench_sorts(struct bench *bench, int64_t rows);

#endif
