/* Rows of a batch as frames (tensor/rows.h). Pointers lead to device memory. */
#ifndef SX_BACKEND_CUDA_LAUNCH_ROWS_H
#define SX_BACKEND_CUDA_LAUNCH_ROWS_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"
#include "tensor/pack.h"
#include "tensor/semantics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a column's rows of a part go. */
struct cuda_rows_place {
    char *values;                    /* NULL: the part is left out. PACKED: the directory */
    uint8_t *valid;                  /* NULL: no nulls */
    char *words;                     /* PACKED */
    char *heap;                      /* of strings */
    int64_t words_first, heap_first; /* what their sums are at the part's begin */
};

/* Rows order[first + i] (order NULL: first + i) for i in 0 … n - 1; those of part p begin at offsets[p] and
 * end before offsets[p + 1], counted as first + i. */
struct cuda_rows_parts {
    const int32_t *order;
    const int64_t *offsets; /* n_parts + 1 */
    int64_t first, n;
    int32_t n_parts;
};

/* Blocks of rows, part after part; none of the part that is left out. */
struct cuda_rows_blocks {
    const int64_t *firsts; /* n_parts + 1: how many there are before the part's own */
    int64_t n;
};

/* What decides about a column's bytes in frames, block by block, in series that are added up (exclusive) one
 * after another: bytes of the words of each block's vectors, and of strings behind them all characters of
 * each block, and those of its long strings. */
enum cuda_rows_series { CUDA_ROWS_WORDS, CUDA_ROWS_CHARACTERS, CUDA_ROWS_LONG, CUDA_ROWS_SERIES };
struct cuda_rows_measured {
    struct sx_pack_block *entries; /* base and bits: [block × n_vectors + vector] */
    int64_t *sums;
    int32_t n_vectors; /* 0: the column goes PLAIN */
};
SX_BOTH int64_t *cuda_rows_series(const struct cuda_rows_measured *measured, int64_t n_blocks, int series) {
    return measured->sums + (series == CUDA_ROWS_WORDS ? 0 : n_blocks * (measured->n_vectors + series - 1));
}

/* A PACKED column of a frame. */
struct cuda_rows_packed {
    const struct sx_pack_block *entries;
    const char *words, *heap;
    uint64_t words_bytes, heap_bytes;
    int64_t rows;
    int32_t n_vectors;
    int32_t column; /* its number, for errors */
    bool has_long;  /* strings: views may point into the heap */
};

/* out[s × (n_parts + 1) + p]: the sum of series s, of the first n_series, at the begin of part p. */
void cuda_rows_part_sums(cudaStream_t stream, const struct cuda_rows_measured *measured,
                         const struct cuda_rows_blocks *blocks, int n_parts, int n_series, int64_t *out);
/* A column of numbers of `width` bytes to its places, one a part. Null rows become zeros. */
void cuda_rows_pack(cudaStream_t stream, struct cuda_column column, int width,
                    const struct cuda_rows_parts *parts, const struct cuda_rows_place *places);
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
    int32_t own;      /* the part that is never NARROW; -1: none */
    int64_t *misfits; /* a bit is set for a column that is not NARROW after all */
};

/* A column, of values of `width` bytes, with a place for each part. */
struct cuda_tile_column {
    struct cuda_column column;
    const struct cuda_rows_place *places; /* parts without `values` are left out */
    int32_t width;
    bool is_narrow; /* of 8 or 16 bytes, where parts but the own one are */
    uint8_t bit;    /* its in `misfits` */
    int64_t base;
};

/* Makes the bounds. */
void cuda_rows_find_bounds(cudaStream_t stream, const int32_t *order, const struct cuda_rows_tiles *tiles);
/* All columns to their places, each tile's rows together. */
void cuda_rows_pack_tiles(cudaStream_t stream, const struct cuda_tile_column *columns, int n_columns,
                          const struct cuda_rows_parts *parts, const struct cuda_rows_tiles *tiles);

/* ---- rows_narrow.cu ---- */

/* As sx_rows_range (tensor/rows.h, which only C can include): 0 to -1 where a value has more than 64 bits. */
struct cuda_rows_range {
    int64_t least, most;
};
enum { CUDA_NARROW_COLUMNS = 16 }; /* in one launch */

/* Columns of integers of 8 or 16 bytes, and where the ranges of samples of their rows go. */
struct cuda_rows_samples {
    int64_t rows;
    int32_t n;
    int32_t widths[CUDA_NARROW_COLUMNS];
    struct cuda_column columns[CUDA_NARROW_COLUMNS];
    struct cuda_rows_range *ranges[CUDA_NARROW_COLUMNS];
};
void cuda_rows_sample(cudaStream_t stream, const struct cuda_rows_samples *samples);

struct cuda_rows_narrowed {
    const void *from; /* at a multiple of 16, as `to` is */
    void *to;
    int64_t base;
    int32_t width; /* of the values, 8 or 16 */
};
struct cuda_rows_widening {
    int64_t rows;
    int32_t n;
    struct cuda_rows_narrowed columns[CUDA_NARROW_COLUMNS];
};
void cuda_rows_widen(cudaStream_t stream, const struct cuda_rows_widening *widening);

/* ---- rows_packed.cu ---- */

/* Makes entries and series of a column of numbers; what is to be added up is not yet. */
void cuda_rows_measure(cudaStream_t stream, struct cuda_column column, int width,
                       const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                       const struct cuda_rows_measured *measured);
/* A column's blocks to its places. */
void cuda_rows_pack_blocks(cudaStream_t stream, struct cuda_column column, int width,
                           const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                           const struct cuda_rows_measured *measured, const struct cuda_rows_place *places);
/* Values of `width` bytes, and validity unless it is NULL. A block whose words are outside becomes zeros, and
 * a CUDA_FAULT_ROWS. */
void cuda_rows_unpack_blocks(cudaStream_t stream, const struct cuda_rows_packed *packed, int width,
                             void *out_values, uint8_t *out_valid, struct cuda_control *control);

/* ---- rows_strings.cu ---- */

/* The same of strings. */
void cuda_rows_measure_strings(cudaStream_t stream, struct cuda_column column,
                               const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                               const struct cuda_rows_measured *measured);
void cuda_rows_pack_strings(cudaStream_t stream, struct cuda_column column,
                            const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                            const struct cuda_rows_measured *measured, bool packed,
                            const struct cuda_rows_place *places);
/* Offsets in views of long strings become pointers into `heap`; a string outside of its heap_bytes becomes an
 * empty one, and a CUDA_FAULT_ROWS. `number`: the column's. */
void cuda_rows_place_strings(cudaStream_t stream, struct sx_string *views, int64_t n, const char *heap,
                             uint64_t heap_bytes, int number, struct cuda_control *control);
/* Views, and validity unless it is NULL. Strings outside of the heap become empty ones, and they, words that
 * are outside, and characters that are left over, a CUDA_FAULT_ROWS. */
void cuda_rows_unpack_strings(cudaStream_t stream, const struct cuda_rows_packed *packed,
                              struct sx_string *out_views, uint8_t *out_valid, struct cuda_control *control);

#ifdef __cplusplus
}
#endif
#endif
