/* Times every primitive of a backend over sizes and types, beside the bytes that it has to move. */
#ifndef SX_BENCH_BENCH_H
#define SX_BENCH_BENCH_H

#include "base/team.h"
#include "tensor/backend.h"

struct sx_bench_result {
    const char *primitive; /* "join_take" */
    const char *name;      /* of the case: "1000000 build rows, unique, payload 1" */
    int64_t rows;          /* that it worked on, of all workers together */
    int runs;
    double seconds;                /* the median of the runs */
    double floor_bytes;            /* that have to be read and written, see docs/gpu.md */
    double copy_bytes_per_second;  /* of the plainest copy on as many workers, read and written */
    const struct sx_error *failed; /* NULL: it did not; otherwise there are no times */
};

struct sx_bench_options {
    const struct sx_backend *backend;
    struct sx_pool *pool;
    const int64_t *rows; /* sizes */
    int n_rows;
    const char *filter; /* cases with this in "PRIMITIVE NAME" only; NULL: all */
    void (*result)(void *context, const struct sx_bench_result *result);
    void *context;
};

/* Each worker is a thread with a stream and its share of the rows. Cases that fail (mostly for lack of
 * memory) are told as results and do not end it. */
SX_MUST_CHECK enum sx_status sx_bench_primitives(const struct sx_bench_options *options, int n_workers,
                                                 struct sx_error *error);

/* ---- memory_rate.c ---- */

/* Bytes per second that the team reads from memory: the better of two passes over about `size_bytes` (far
 * more than the caches; fewer where the system takes long to give them), which are no pool's. */
SX_MUST_CHECK enum sx_status sx_bench_memory_rate(struct sx_team *team, size_t size_bytes,
                                                  double *out_bytes_per_second, struct sx_error *error);

#endif
