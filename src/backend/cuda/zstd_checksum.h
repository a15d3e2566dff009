/* The checksum of a zstd frame: XXH64 with seed 0 (its specification, version 0.1.1), by one warp. */
#ifndef SX_BACKEND_CUDA_ZSTD_CHECKSUM_H
#define SX_BACKEND_CUDA_ZSTD_CHECKSUM_H

#include "backend/cuda/zstd.h"

constexpr uint64_t XXH_1 = 11400714785074694791u, XXH_2 = 14029467366897019727u, XXH_3 = 1609587929392839161u,
                   XXH_4 = 9650029242287828579u, XXH_5 = 2870177450012600261u;
constexpr uint32_t XXH_LANES = 4, XXH_WORD = 8, XXH_STRIPE = XXH_LANES * XXH_WORD;

__device__ static inline uint64_t rotate_left(uint64_t word, uint32_t by) {
    return word << by | word >> (64 - by);
}

__device__ static inline uint64_t xxh_round(uint64_t sum, uint64_t word) {
    return rotate_left(sum + word * XXH_2, 31) * XXH_1;
}

/* Four lanes have a sum each, of every fourth word. */
__device__ static inline uint64_t xxh_stripes(const uint8_t *bytes, uint64_t n) {
    const uint32_t lane = threadIdx.x % XXH_LANES;
    uint64_t sum = lane == 0 ? XXH_1 + XXH_2 : lane == 1 ? XXH_2 : lane == 2 ? 0 : 0 - XXH_1;
    for (uint64_t at = lane * XXH_WORD; at < n / XXH_STRIPE * XXH_STRIPE; at += XXH_STRIPE)
        sum = xxh_round(sum, load_bits(bytes, n, at * 8, 64));
    uint64_t sums[XXH_LANES];
    SX_UNROLL
    for (uint32_t k = 0; k < XXH_LANES; k++)
        sums[k] = __shfl_sync(ALL_LANES, sum, (int)k);
    uint64_t hash = rotate_left(sums[0], 1) + rotate_left(sums[1], 7) + rotate_left(sums[2], 12) +
                    rotate_left(sums[3], 18);
    SX_UNROLL
    for (uint32_t k = 0; k < XXH_LANES; k++)
        hash = (hash ^ xxh_round(0, sums[k])) * XXH_1 + XXH_4;
    return hash;
}

__device__ static inline uint64_t xxh_mix(uint64_t hash) {
    hash = (hash ^ hash >> 33) * XXH_2;
    hash = (hash ^ hash >> 29) * XXH_3;
    return hash ^ hash >> 32;
}

/* All lanes have it. */
__device__ static inline uint64_t zstd_checksum(const uint8_t *bytes, uint64_t n) {
    constexpr uint32_t HALF = XXH_WORD / 2;
    uint64_t hash = (n < XXH_STRIPE ? XXH_5 : xxh_stripes(bytes, n)) + n, at = n / XXH_STRIPE * XXH_STRIPE;
    for (; at + XXH_WORD <= n; at += XXH_WORD)
        hash = rotate_left(hash ^ xxh_round(0, load_bits(bytes, n, at * 8, 64)), 27) * XXH_1 + XXH_4;
    if (at + HALF <= n) {
        hash = rotate_left(hash ^ load_bits(bytes, n, at * 8, 32) * XXH_1, 23) * XXH_2 + XXH_3;
        at += HALF;
    }
    for (; at < n; at++)
        hash = rotate_left(hash ^ bytes[at] * XXH_5, 11) * XXH_1;
    return xxh_mix(hash);
}

#endif
