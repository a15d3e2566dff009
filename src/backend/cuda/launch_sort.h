/* Sorting. Every key becomes one or more parts, and the parts side by side are a string of bits: bit 0 is the
 * most significant, and word w holds bits 64 w … 64 w + 63 (zeros behind the end). Rows are in order when
 * their words are. */
#ifndef SX_BACKEND_CUDA_LAUNCH_SORT_H
#define SX_BACKEND_CUDA_LAUNCH_SORT_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_sort_part_kind {
    CUDA_SORT_VALID, /* 1 bit: 1 where the row is valid; flipped: where it is null */
    CUDA_SORT_CODE,  /* distance of the value's code from `base`, the least; flipped: the greatest */
    CUDA_SORT_BYTES, /* a string's bytes, zeros behind its end; flipped: inverted, as the next */
    CUDA_SORT_LENGTH /* in bytes: decides between strings that differ in zeros at the end only */
};

/* Null rows have zeros in all but VALID. */
struct cuda_sort_part {
    sx_u128 base;
    struct cuda_column column;
    int64_t first_bit, bits; /* at most 128, but for BYTES */
    int32_t kind;
    bool flipped;
};

/* What a column holds; starts zeroed. */
struct cuda_sort_range {
    sx_u128 min, max; /* codes, if has_value; not of strings */
    uint32_t longest; /* string, in bytes */
    bool has_null, has_value;
};

struct cuda_sort_words {
    const struct cuda_sort_part *parts; /* on the device */
    int32_t n_parts;
    int64_t n_words;
};

/* Takes out the bits in `mask` and moves them together, in order; see cuda_sort_gather_of. */
struct cuda_sort_gather {
    uint64_t mask, moves[6];
};

/* ---- sort_words.cu ---- */

/* *out_range of `rows` rows. scratch: cuda_sort_range_bytes. Reads the column once. */
size_t cuda_sort_range_bytes(int64_t rows);
void cuda_sort_measure(cudaStream_t stream, struct cuda_column column, int64_t rows, void *scratch,
                       struct cuda_sort_range *out_range);

/* Rows i (rows[i]; NULL: i) in segments (segments[i], ascending; NULL: one) are told apart by no word before
 * `word`, nor by bits outside of `mask` in it. *out_left (0 before): n_words less the first word in which
 * neighbours of one segment differ; 0: they are equal. */
struct cuda_sort_rows {
    int64_t n;
    const uint32_t *rows, *segments;
};
void cuda_sort_find_word(cudaStream_t stream, struct cuda_sort_words words, struct cuda_sort_rows rows,
                         int64_t word, uint64_t mask, int64_t *out_left);
/* out_words[i]: word n_words - *left of row i; *out_differing (0 before): bits in which neighbours of one
 * segment differ. Nothing if *left is 0. */
void cuda_sort_fill_words(cudaStream_t stream, struct cuda_sort_words words, struct cuda_sort_rows rows,
                          const int64_t *left, uint64_t *out_words, int64_t *out_differing);
/* keys[i] (words before) = segments[i] << low_bits | the word's gathered bits */
void cuda_sort_make_keys(cudaStream_t stream, struct cuda_sort_rows rows, struct cuda_sort_gather gather,
                         int low_bits, uint64_t *keys);

/* For ranks: flags[i] = 1 if row order[i] differs from order[i - 1]; and ranks[order[i]] = sums[i + 1]. */
void cuda_sort_flag_changes(cudaStream_t stream, struct cuda_sort_words words, const int64_t *order,
                            int64_t n, int64_t *out_flags);
void cuda_sort_write_ranks(cudaStream_t stream, const int64_t *order, const int64_t *sums, int64_t n,
                           int32_t *out_ranks);

/* ---- sort_few.cu ---- */

struct cuda_sort_key {
    struct cuda_column column;
    bool descending, nulls_first;
};
enum {
    CUDA_SORT_KEYS = 32,
    CUDA_SORT_PREFIXES = 2, /* words of keys that go with a row */
    CUDA_SORT_RUN = 1024,   /* rows that a block sorts */
};
struct cuda_sort_keys {
    struct cuda_sort_key keys[CUDA_SORT_KEYS];
    int32_t n;
    int32_t n_told; /* of the first keys: those without nulls, of at most 64 bits that decide; up to 2 */
};
/* The first `limit` of `rows` (at least one) rows in order, with `cuda_sort_few_bytes` of scratch memory: a
 * kernel, and one more for every doubling of CUDA_SORT_RUN rows. */
size_t cuda_sort_few_bytes(int64_t rows);
void cuda_sort_few(cudaStream_t stream, const struct cuda_sort_keys *keys, int64_t rows, int64_t limit,
                   void *scratch, int64_t *out_order);

/* ---- sort_ties.cu ---- */

/* out_counts[i] for a sum: 1 in the low half if a neighbour has the same (sorted) key, and 1 in the high half
 * in the first such row of a key. Keys whose rows all stand at positions (ascending; NULL: i) from `limit` on
 * do not count. */
void cuda_sort_count_ties(cudaStream_t stream, const uint64_t *keys, const uint32_t *positions, int64_t n,
                          int64_t limit, int64_t *out_counts);
/* The counted rows, with their positions and the number of their key. */
void cuda_sort_take_ties(cudaStream_t stream, const int64_t *sums, const uint32_t *rows,
                         const uint32_t *positions, int64_t n, uint32_t *out_rows, uint32_t *out_positions,
                         uint32_t *out_segments);
/* order[positions[i]] = rows[i] */
void cuda_sort_place(cudaStream_t stream, const uint32_t *rows, const uint32_t *positions, int64_t n,
                     uint32_t *order);
void cuda_sort_widen(cudaStream_t stream, const uint32_t *rows, int64_t n, int64_t *out_rows);

/* The smallest keys by their highest bits: a level looks at the digits (at most CUDA_SORT_LEVEL_BITS bits,
 * from `shift` to `above_shift`) of those keys whose bits above are the threshold's so far. */
enum { CUDA_SORT_LEVEL_BITS = 11 };
struct cuda_sort_threshold {
    uint64_t prefix; /* keys >> shift up to here make the wanted number */
    int64_t wanted;  /* of the rows with that prefix */
    int64_t counts[1 << CUDA_SORT_LEVEL_BITS];
};
/* `threshold` is on the device; all zero but `wanted` before the first level, whose above_shift is the number
 * of bits of the keys. */
void cuda_sort_narrow(cudaStream_t stream, const uint64_t *keys, int64_t n, int above_shift, int shift,
                      struct cuda_sort_threshold *threshold);
/* flags[i] = keys[i] >> shift <= prefix */
void cuda_sort_flag_smallest(cudaStream_t stream, const uint64_t *keys, int64_t n, int shift,
                             const struct cuda_sort_threshold *threshold, uint8_t *flags);
/* out_keys[i] = keys[index[i]], out_rows[i] = index[i] */
void cuda_sort_take(cudaStream_t stream, const uint64_t *keys, const int64_t *index, int64_t n,
                    uint64_t *out_keys, uint32_t *out_rows);

#ifdef __cplusplus
}
#endif
#endif
