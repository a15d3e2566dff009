/* For kernels that give what they keep of their tiles behind each other, in one pass. */
#ifndef SX_BACKEND_CUDA_LOOK_BACK_H
#define SX_BACKEND_CUDA_LOOK_BACK_H

#include "backend/cuda/block.h"

/* A tile learns how much stands before it from the tiles in front of it, which have told either how much they
 * have themselves or how much there is up to their end (decoupled look-back: Merrill and Garland,
 * "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016). Tiles are numbered in the order in
 * which blocks begin, so that whom a tile waits for is at work. A word tells all, so that no fence is needed.
 * Scratch memory is cuda_tile_bytes. */

typedef unsigned long long scan_word;

enum { TOLD_NOTHING, TOLD_OWN, TOLD_ALL, TOLD_BITS = 2, TOLD_MASK = (1 << TOLD_BITS) - 1 };

/* Zeroed, and left so by the last tile that ends. */
struct tile_scratch {
    scan_word n_begun, n_ended;
    scan_word told[]; /* by each tile: a number, and whose */
};

/* All threads of a block, once a kernel: the tile that it takes. */
__device__ static inline int64_t begin_tile(struct tile_scratch *scratch) {
    __shared__ int64_t tile;
    if (threadIdx.x == 0)
        tile = (int64_t)atomicAdd(&scratch->n_begun, (scan_word)1);
    __syncthreads();
    return tile;
}

/* A warp: what tiles in front of `tile` have in sum. */
__device__ static inline int64_t look_back(const scan_word *told, int64_t tile) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    int64_t before = 0;
    for (int64_t last = tile - 1; last >= 0; last -= CUDA_WARP) {
        const int64_t at = last - lane;
        scan_word word = at < 0 ? (scan_word)TOLD_ALL : (scan_word)TOLD_NOTHING;
        while ((word & TOLD_MASK) == TOLD_NOTHING)
            word = *(const volatile scan_word *)(told + at);
        const uint32_t all = __ballot_sync(0xffffffffu, (word & TOLD_MASK) == TOLD_ALL);
        const bool counts = all == 0 || lane < __ffs((int)all);
        before += __shfl_sync(0xffffffffu, warp_inclusive(counts ? (int64_t)(word >> TOLD_BITS) : 0),
                              CUDA_WARP - 1);
        if (all)
            break;
    }
    return before;
}

/* The first warp, for a tile of `total` positions. */
__device__ static inline int64_t tell_and_look_back(scan_word *told, int64_t tile, int64_t total) {
    if (threadIdx.x == 0)
        atomicExch(&told[tile], (scan_word)total << TOLD_BITS | (tile == 0 ? TOLD_ALL : TOLD_OWN));
    const int64_t before = look_back(told, tile);
    if (threadIdx.x == 0 && tile > 0)
        atomicExch(&told[tile], (scan_word)(before + total) << TOLD_BITS | TOLD_ALL);
    return before;
}

/* All threads of a block that has looked back, once a kernel. */
__device__ static inline void leave_zeroed(struct tile_scratch *scratch) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        __threadfence(); /* what the tile has told is there before it counts as ended */
        is_last = atomicAdd(&scratch->n_ended, (scan_word)1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last)
        return;
    for (unsigned t = threadIdx.x; t < gridDim.x; t += CUDA_THREADS)
        scratch->told[t] = TOLD_NOTHING;
    if (threadIdx.x == 0)
        scratch->n_begun = scratch->n_ended = 0;
}

#endif
