/* Literals, and copies of what a page has made so far, by a warp: of zstd, deflate and LZ4. */
#ifndef SX_BACKEND_CUDA_COPIES_H
#define SX_BACKEND_CUDA_COPIES_H

#include "backend/cuda/block.h"

constexpr uint32_t SHORT_COPY = 32, FEW_COPIES = 3; /* bytes of a lane's own; fewer are not worth a turn */

/* All lanes; they don't overlap. Others may read them behind the next __syncwarp. */
__device__ static inline void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t n) {
    for (uint32_t i = warp_lane(); i < n; i += CUDA_WARP)
        to[i] = from[i];
}

/* All lanes: bytes that are there, or that a copy makes itself. */
__device__ static inline void copy_match(uint8_t *to, uint32_t distance, uint32_t n) {
    for (uint32_t i = warp_lane(); i < n; i += CUDA_WARP)
        to[i] = *(to - distance + (i < distance ? i : i % distance));
    __syncwarp();
}

/* A lane's own; they don't overlap. */
__device__ static inline void copy_own(uint8_t *to, const uint8_t *from, uint32_t n) {
    constexpr uint32_t STEP = 4;
    for (uint32_t i = 0; i < n; i += STEP) {
        uint8_t bytes[STEP];
        SX_UNROLL
        for (uint32_t k = 0; k < STEP; k++)
            bytes[k] = i + k < n ? from[i + k] : 0;
        SX_UNROLL
        for (uint32_t k = 0; k < STEP; k++)
            if (i + k < n)
                to[i + k] = bytes[k];
    }
}

/* Copies of the lanes, in turns, n bytes of each (0: none): what is in front of the first one that is left is
 * there. Short ones that read no more than that are copied by their lanes, at the same time; else all lanes
 * copy the first one. */
__device__ static inline void copy_matches(uint8_t *plain, uint32_t to, uint32_t distance, uint32_t n) {
    const bool is_short = n <= SHORT_COPY && n <= distance;
    for (uint32_t left = __ballot_sync(ALL_LANES, n > 0); left;) {
        const int first = __ffs((int)left) - 1;
        const uint32_t there = __shfl_sync(ALL_LANES, to, first);
        const bool is_ready = (left >> warp_lane() & 1) && is_short && to - distance + n <= there;
        const uint32_t ready = __ballot_sync(ALL_LANES, is_ready);
        if ((uint32_t)__popc(ready) < FEW_COPIES) {
            copy_match(plain + there, __shfl_sync(ALL_LANES, distance, first),
                       __shfl_sync(ALL_LANES, n, first));
            left &= left - 1;
            continue;
        }
        if (is_ready)
            copy_own(plain + to, plain + to - distance, n);
        __syncwarp();
        left &= ~ready;
    }
}

/* A lane's literals and match. */
struct placed {
    uint32_t literals, bytes, distance;
    uint32_t literals_at; /* in memory that all lanes share */
    uint32_t to, match_to;
};

__device__ static inline void place_literals(uint8_t *plain, const uint8_t *literals,
                                             const struct placed &own) {
    const bool is_long = own.literals > SHORT_COPY;
    if (!is_long)
        copy_own(plain + own.to, literals + own.literals_at, own.literals);
    for (uint32_t lanes = __ballot_sync(ALL_LANES, is_long); lanes; lanes &= lanes - 1) {
        const int lane = __ffs((int)lanes) - 1;
        const uint32_t n = __shfl_sync(ALL_LANES, own.literals, lane),
                       at = __shfl_sync(ALL_LANES, own.literals_at, lane),
                       to = __shfl_sync(ALL_LANES, own.to, lane);
        copy_bytes(plain + to, literals + at, n);
    }
    __syncwarp();
}

/* Literals first: they wait for nothing. */
__device__ static inline void place_sequences(uint8_t *plain, const uint8_t *literals,
                                              const struct placed &own) {
    place_literals(plain, literals, own);
    copy_matches(plain, own.match_to, own.distance, own.bytes);
}

#endif
