/* Functions of the .cu files that serve several families: each launches on `stream` and returns at once.
 * Pointers lead to device memory. The families' own are in launch_*.h. */
#ifndef SX_BACKEND_CUDA_LAUNCH_H
#define SX_BACKEND_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scan.cu ---- */

/* Bytes of scratch memory for cuda_exclusive_sum over `n` elements. */
size_t cuda_exclusive_sum_bytes(int64_t n);
/* out[i] = in[0] + … + in[i - 1] for i in 0..n, so n + 1 elements; `in` and `out` may be the same place. */
void cuda_exclusive_sum(cudaStream_t stream, const int64_t *in, int64_t n, int64_t *out, void *scratch);
void cuda_exclusive_sum_i32(cudaStream_t stream, const int32_t *in, int64_t n, int64_t *out, void *scratch);

/* Bytes of scratch memory for a kernel that looks back over its tiles (look_back.h), which has to be zeroed,
 * and is left so. */
size_t cuda_tile_bytes(int64_t n_tiles);
/* Of cuda_select_flags. */
int64_t cuda_select_tiles(int64_t n);
/* Ascending positions i (plus `first`) with flags[i] != 0, and their number, which is written in any case.
 * The I64 form is for rows of a join's build side. */
void cuda_select_flags(cudaStream_t stream, const uint8_t *flags, int64_t n, int32_t *out_index,
                       int64_t *out_count, void *scratch);
void cuda_select_flags_i64(cudaStream_t stream, const uint8_t *flags, int64_t n, int64_t first,
                           int64_t *out_index, int64_t *out_count, void *scratch);

/* ---- bring.cu ---- */

/* From the host's page-locked memory to `device`, a multiple of 16, where a kernel also writes up to 15 bytes
 * behind the last one. */
struct cuda_bring_copy {
    void *device;
    const void *from;
    size_t bytes;
};
enum { CUDA_BRING_COPIES = 160 }; /* a kernel's arguments are 4 KB at most */
struct cuda_bring_copies {
    struct cuda_bring_copy copies[CUDA_BRING_COPIES];
    int32_t n;
};
void cuda_bring_by_kernel(cudaStream_t stream, const struct cuda_bring_copies *copies);

/* ---- move.cu ---- */

/* out[i] = column[index[i]] in values of `width` bytes; NULL and zero bytes where the index is negative.
 * `index` NULL: i. `out_valid` may be NULL where no row is null. index_is_i64 tells its type. */
void cuda_gather_values(cudaStream_t stream, struct cuda_column column, const void *index, bool index_is_i64,
                        int width, int64_t n, void *out_values, uint8_t *out_valid);
/* How the values of a column go from row to row: `from_step` bytes and `from_valid_step` validity bytes lie
 * between two rows where they come from, as in the rows of a join's table. */
struct cuda_move {
    const uint8_t *from, *from_valid; /* from_valid NULL: no nulls */
    uint8_t *to, *to_valid;           /* to_valid NULL: not wanted */
    uint32_t from_step, from_valid_step, to_step, to_valid_step;
    uint16_t width;     /* 1, 2, 4, 8 or 16 */
    uint16_t is_narrow; /* `from` has offsets from `base` of half the width, 8 or 16 */
    int64_t base;
};
enum { CUDA_MOVES = 16 };
struct cuda_moves {
    struct cuda_move columns[CUDA_MOVES];
    int32_t n;
};
/* Row index[i] (NULL: i; none is negative) of each column to its row i. */
void cuda_move_rows(cudaStream_t stream, const struct cuda_moves *moves, const void *index, bool index_is_i64,
                    int64_t n);
/* The same of columns that lie in rows of `step` bytes (a power of two up to 32, or a multiple of 32 up to
 * CUDA_MOST_STEP): each column's `from` leads into the first row. */
enum { CUDA_MOST_STEP = 160 }; /* rows of a block are in shared memory */
void cuda_take_rows(cudaStream_t stream, const struct cuda_moves *moves, const uint8_t *rows, uint32_t step,
                    const void *index, bool index_is_i64, int64_t n);
/* Columns side by side into rows places[0] … places[n - 1] (NULL: 0 … n - 1) of such a step, all at once:
 * each column's `to` leads into the first row. Bytes that no column has are undefined. */
void cuda_lay_rows(cudaStream_t stream, const struct cuda_moves *moves, uint8_t *rows, uint32_t step,
                   const int64_t *places, int64_t n);
/* Between the device's memory and pinned memory of the host, both at multiples of 8 bytes. By a kernel: a
 * copy engine does one copy after another, whichever streams they are of, so that a list of pages waits for
 * all column chunks that other workers have asked for. */
void cuda_copy_bytes(cudaStream_t stream, void *to, const void *from, size_t bytes);
/* Several of them, at least one; also within the device's memory. */
enum { CUDA_COPIES = 64 };
struct cuda_copy {
    void *to;
    const void *from; /* NULL: zeroes */
    int64_t bytes;
};
struct cuda_copies {
    struct cuda_copy of[CUDA_COPIES];
    int32_t n;
};
void cuda_copy_several(cudaStream_t stream, const struct cuda_copies *copies);
/* To `out`, pinned memory of the host: what has `number` there was so when all that was issued to the stream
 * before had been done. fences: what that has written to the host's memory is there, too. takes_counters:
 * they are zero then. */
void cuda_read_control(cudaStream_t stream, struct cuda_control *control, bool takes_counters, bool fences,
                       uint32_t number, struct cuda_reply *out);
/* Rows of several columns one after another, in values of `width` bytes: those of each part from its `begin`
 * on. `first_code` is added to values of 4 bytes. `out_valid` may be NULL where no row is null; null rows get
 * zeros. */
enum { CUDA_CONCAT_PARTS = 48 };
struct cuda_concat_part {
    struct cuda_column column;
    int64_t begin, rows;
    int32_t first_code;
};
struct cuda_concat {
    struct cuda_concat_part parts[CUDA_CONCAT_PARTS];
    int32_t n;
    int64_t rows; /* of all parts */
};
void cuda_concat_values(cudaStream_t stream, const struct cuda_concat *concat, int width, void *out_values,
                        uint8_t *out_valid);
void cuda_fill_iota_i32(cudaStream_t stream, int32_t *out, int64_t first, int64_t n);
void cuda_fill_iota_i64(cudaStream_t stream, int64_t *out, int64_t first, int64_t n);
void cuda_mark_index(cudaStream_t stream, const int32_t *index, int64_t n, uint8_t *mask);
/* flags[i] = the BOOL column's row i is valid and equals `wanted` */
void cuda_mask_flags(cudaStream_t stream, struct cuda_column mask, bool wanted, int64_t n, uint8_t *flags);
/* Strings: bytes outside of the views (0 for short and null ones), as lengths for a sum; and the copy to
 * `heap`, string i at offsets[i], with new views that point to base + offsets[i] (base: `heap`, or where the
 * heap will be). Null rows get empty views. */
void cuda_string_lengths(cudaStream_t stream, const struct sx_string *views, const uint8_t *valid, int64_t n,
                         int64_t *out_lengths);
void cuda_string_copy(cudaStream_t stream, const struct sx_string *views, const uint8_t *valid, int64_t n,
                      const int64_t *offsets, char *heap, const char *base, struct sx_string *out_views);

#ifdef __cplusplus
}
#endif
#endif
