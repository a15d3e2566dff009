/* Rows of a batch as frames (tensor/rows.h). Pointers lead to device memory. */
#ifndef SX_BACKEND_CUDA_LAUNCH_ROWS_H
#define SX_BACKEND_CUDA_LAUNCH_ROWS_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a column's rows of a part go. */
struct cuda_rows_place {
    char *values;       /* NULL: the part is left out */
    uint8_t *valid;     /* NULL: no nulls */
    char *heap;         /* of long strings */
    int64_t heap_first; /* what the sum of long strings is at the part's begin */
};

/* Rows order[first + i] (order NULL: first + i) for i in 0 … n - 1; those of part p begin at offsets[p] and
 * end before offsets[p + 1], counted as first + i. */
struct cuda_rows_parts {
    const int32_t *order;
    const int64_t *offsets; /* n_parts + 1 */
    int64_t first, n;
    int32_t n_parts;
    int32_t skip; /* a part that is left out; -1: none */
};

/* out[i]: bytes behind row i's view; 0 for short and null strings, and in the part that is left out. */
void cuda_rows_long_bytes(cudaStream_t stream, struct cuda_column column, const struct cuda_rows_parts *parts,
                          int64_t *out);
/* out[p] = sums[offsets[p] - first], for p in 0 … n_parts */
void cuda_rows_part_sums(cudaStream_t stream, const int64_t *sums, const struct cuda_rows_parts *parts,
                         int64_t *out);
/* A column of `width` bytes to its places, one a part. `sums` (strings only): the exclusive sum of
 * long_bytes. Null rows become zeros. */
void cuda_rows_pack(cudaStream_t stream, struct cuda_column column, int width,
                    const struct cuda_rows_parts *parts, const struct cuda_rows_place *places,
                    const int64_t *sums);
/* Offsets in views of long strings become pointers into `heap`; a string outside of its heap_bytes becomes an
 * empty one, and a CUDA_FAULT_ROWS. `number`: the column's. */
void cuda_rows_place_strings(cudaStream_t stream, struct sx_string *views, int64_t n, const char *heap,
                             uint64_t heap_bytes, int number, struct cuda_control *control);

#ifdef __cplusplus
}
#endif
#endif
