/* Rows of a batch as frames (tensor/rows.h). Pointers lead to device memory. */
#ifndef SX_BACKEND_CUDA_LAUNCH_ROWS_H
#define SX_BACKEND_CUDA_LAUNCH_ROWS_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"
#include "tensor/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a column's rows of a part go. */
struct cuda_rows_place {
    char *values;       /* NULL: the part is left out. PACKED: the directory */
    uint8_t *valid;     /* NULL: no nulls */
    char *heap;         /* of long strings. PACKED: the words */
    int64_t heap_first; /* what the sum of long strings, or of words, is at the part's begin */
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

/* Blocks of rows, part after part; none of the part that is left out. */
struct cuda_rows_blocks {
    const int64_t *firsts; /* n_parts + 1: how many there are before the part's own */
    int64_t n;
};

/* A PACKED column of a frame. */
struct cuda_rows_packed {
    const struct sx_pack_block *entries;
    const char *words;
    uint64_t words_bytes;
    int64_t rows;
    int32_t n_vectors;
    int32_t column; /* its number, for errors */
};

/* out[i]: bytes behind row i's view; 0 for short and null strings, and in the part that is left out. */
void cuda_rows_long_bytes(cudaStream_t stream, struct cuda_column column, const struct cuda_rows_parts *parts,
                          int64_t *out);
/* out[p] = sums[(firsts[p] - firsts[0]) × scale], for p in 0 … n_parts */
void cuda_rows_part_sums(cudaStream_t stream, const int64_t *sums, const int64_t *firsts, int n_parts,
                         int scale, int64_t *out);
/* A column of `width` bytes to its places, one a part. `sums` (strings only): the exclusive sum of
 * long_bytes. Null rows become zeros. */
void cuda_rows_pack(cudaStream_t stream, struct cuda_column column, int width,
                    const struct cuda_rows_parts *parts, const struct cuda_rows_place *places,
                    const int64_t *sums);
/* Offsets in views of long strings become pointers into `heap`; a string outside of its heap_bytes becomes an
 * empty one, and a CUDA_FAULT_ROWS. `number`: the column's. */
void cuda_rows_place_strings(cudaStream_t stream, struct sx_string *views, int64_t n, const char *heap,
                             uint64_t heap_bytes, int number, struct cuda_control *control);

/* Codes that are not below n_entries become 0, and a CUDA_FAULT_ROWS. */
void cuda_rows_check_codes(cudaStream_t stream, int32_t *codes, int64_t n, int64_t n_entries, int number,
                           struct cuda_control *control);

/* ---- rows_tiles.cu ---- */

enum { CUDA_TILE_ROWS = 2048, CUDA_TILE_RUNS = 256 /* at most */ };

/* Runs of the order (struct sx_row_parts) by tiles of the batch's rows: run r has its rows of tile t in
 * order[bounds[t × n + r]] … order[bounds[(t + 1) × n + r] - 1]. */
struct cuda_rows_tiles {
    const int64_t *runs; /* n + 1 */
    int32_t *bounds;     /* (n_tiles + 1) × n */
    int32_t n;           /* at most CUDA_TILE_RUNS */
    int64_t n_tiles;
};

/* A column, of values of `width` bytes, with a place for each part. */
struct cuda_tile_column {
    struct cuda_column column;
    const struct cuda_rows_place *places; /* parts without `values` are left out */
    int32_t width;
};

/* Makes the bounds. */
void cuda_rows_find_bounds(cudaStream_t stream, const int32_t *order, const struct cuda_rows_tiles *tiles);
/* All columns to their places, each tile's rows together. */
void cuda_rows_pack_tiles(cudaStream_t stream, const struct cuda_tile_column *columns, int n_columns,
                          const struct cuda_rows_parts *parts, const struct cuda_rows_tiles *tiles);

/* ---- rows_packed.cu ---- */

/* Of each block's vectors, block after block: base and bits, and the bytes of its words. */
void cuda_rows_measure(cudaStream_t stream, struct cuda_column column, int width,
                       const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                       int n_vectors, struct sx_pack_block *out_entries, int64_t *out_bytes);
/* A column's blocks to its places. `sums`: the exclusive sum of the bytes of words. */
void cuda_rows_pack_blocks(cudaStream_t stream, struct cuda_column column, int width,
                           const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                           int n_vectors, const struct sx_pack_block *entries, const int64_t *sums,
                           const struct cuda_rows_place *places);
/* Values of `width` bytes, and validity unless it is NULL. A block whose words are outside becomes zeros, and
 * a CUDA_FAULT_ROWS. */
void cuda_rows_unpack_blocks(cudaStream_t stream, const struct cuda_rows_packed *packed, int width,
                             void *out_values, uint8_t *out_valid, struct cuda_control *control);

#ifdef __cplusplus
}
#endif
#endif
