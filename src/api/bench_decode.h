/* Decoding of whole row groups, timed by bench scan. */
#ifndef SX_API_BENCH_DECODE_H
#define SX_API_BENCH_DECODE_H

#include "storage/scan.h"
#include "tensor/backend.h"

struct sx_bench_decoders;

/* A stream for each of n_threads. */
SX_MUST_CHECK enum sx_status sx_bench_decoders_create(const struct sx_backend *backend, struct sx_pool *pool,
                                                      int n_threads, struct sx_bench_decoders **out_decoders,
                                                      struct sx_error *error);
void sx_bench_decoders_destroy(struct sx_bench_decoders *decoders); /* NULL allowed */

/* Decodes all rows of all columns of a batch of the scan's row groups and drops them; each thread has its own
 * stream. Adds the bytes of the columns that were made: values, views of strings, codes where a dictionary is
 * kept. Errors of files name file, row group and column. */
SX_MUST_CHECK enum sx_status sx_bench_decode(struct sx_bench_decoders *decoders, int thread,
                                             const struct sx_scan *scan, const struct sx_row_group *batch,
                                             int64_t *value_bytes, struct sx_error *error);

#endif
