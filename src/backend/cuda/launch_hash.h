/* Hashes of rows, and the stable order of rows by digits of a word: partitions, and the passes of a sort. */
#ifndef SX_BACKEND_CUDA_LAUNCH_HASH_H
#define SX_BACKEND_CUDA_LAUNCH_HASH_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- hash.cu ---- */

enum { CUDA_HASH_KEYS = 16 }; /* in one launch */

/* What `phys` of a key's column says beside the physical types. */
enum {
    CUDA_HASH_READY = SX_PHYS_COUNT, /* values (of DICT: entries) are hashes already */
    CUDA_HASH_NULLS                  /* every row is null */
};

struct cuda_hash_keys {
    int32_t n;
    bool combine; /* with what is in out_hashes */
    struct cuda_column columns[CUDA_HASH_KEYS];
};

void cuda_hash_rows(cudaStream_t stream, const struct cuda_hash_keys *keys, int64_t rows,
                    uint64_t *out_hashes);
/* The hashes' bits from `shift` on alone, which are at most 8; keys are not combined. `words` (NULL: none): a
 * bloom filter; what it lacks has the digit behind all others. */
void cuda_hash_digits(cudaStream_t stream, const struct cuda_hash_keys *keys, int64_t rows, int shift,
                      const uint64_t *words, uint64_t n_words, uint8_t *out_digits);
/* The hashes' bits to a bloom filter; keys are not combined. */
void cuda_bloom_add(cudaStream_t stream, const struct cuda_hash_keys *keys, int64_t rows, uint64_t *words,
                    uint64_t n_words);

/* ---- bloom.cu ---- */

/* words[i] |= other[i * step] */
void cuda_bloom_merge(cudaStream_t stream, const uint64_t *other, int64_t step, int64_t n_words,
                      uint64_t *words);
/* flags[i]: whether hash i may have been added. */
void cuda_bloom_test(cudaStream_t stream, const uint64_t *hashes, int64_t n, const uint64_t *words,
                     uint64_t n_words, uint8_t *flags);

/* ---- radix.cu ---- */

enum { CUDA_RADIX_BITS = 10 };    /* at most, of a digit */
enum { CUDA_RADIX_FEW_BITS = 4 }; /* up to which a partition stages nothing */

/* One pass: a stable order by the digit (keys[i] >> shift) of `bits` bits, 1 to CUDA_RADIX_BITS. n < 2^32. */
struct cuda_radix_pass {
    int64_t n;
    const uint64_t *keys;
    const uint8_t *digits; /* in place of keys, where these are not wanted; up to CUDA_RADIX_FEW_BITS */
    const uint32_t *rows;  /* NULL: 0, 1, … */
    int shift, bits;
    uint64_t *out_keys; /* NULL: not wanted */
    uint32_t *out_rows;
    void *scratch; /* cuda_radix_bytes */
};

size_t cuda_radix_bytes(int64_t n, int bits);
/* out_starts (NULL, or 2^bits + 1 elements): where each digit begins, then n. */
void cuda_radix(cudaStream_t stream, const struct cuda_radix_pass *pass, int64_t *out_starts);

/* At most CUDA_RADIX_SMALL rows by the keys' low `bits` bits (at least 1), in one launch: pass->bits (at most
 * 8) at a time. Needs no scratch. */
enum { CUDA_RADIX_SMALL = 2048 };
void cuda_radix_small(cudaStream_t stream, const struct cuda_radix_pass *pass, int bits);

/* out_starts[p], p in 0..n_parts: how many of the ascending keys are below p << shift. */
void cuda_find_starts(cudaStream_t stream, const uint64_t *sorted_keys, int64_t n, int shift, int n_parts,
                      int64_t *out_starts);

#ifdef __cplusplus
}
#endif
#endif
