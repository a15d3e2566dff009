/* For kernels: sums over a warp and a block. */
#ifndef SX_BACKEND_CUDA_BLOCK_H
#define SX_BACKEND_CUDA_BLOCK_H

#include "backend/cuda/kernel.h"

constexpr uint32_t ALL_LANES = 0xffffffffu;

__device__ static inline uint32_t warp_lane() {
    return threadIdx.x % CUDA_WARP;
}

/* Of the first LANES lanes; others' mean nothing. */
template <typename T, int LANES = CUDA_WARP> __device__ static inline T warp_inclusive(T value) {
    const int lane = (int)warp_lane();
    for (int by = 1; by < LANES; by *= 2) {
        const T left = __shfl_up_sync(ALL_LANES, value, by);
        if (lane >= by)
            value += left;
    }
    return value;
}

/* Sum of the block's threads before this one; *out_total: of all. All THREADS threads of it. */
template <typename T, int THREADS = CUDA_THREADS>
__device__ static inline T block_exclusive(T value, T *out_total) {
    __shared__ T warps[THREADS / CUDA_WARP];
    const int lane = (int)threadIdx.x % CUDA_WARP, warp = (int)threadIdx.x / CUDA_WARP;
    const T inclusive = warp_inclusive(value);
    if (lane == CUDA_WARP - 1)
        warps[warp] = inclusive;
    __syncthreads();
    const T through = warp_inclusive<T, THREADS / CUDA_WARP>(lane < THREADS / CUDA_WARP ? warps[lane] : 0);
    __syncthreads();
    *out_total = __shfl_sync(ALL_LANES, through, THREADS / CUDA_WARP - 1);
    const T before = __shfl_sync(ALL_LANES, through, warp > 0 ? warp - 1 : 0);
    return (warp > 0 ? before : 0) + inclusive - value;
}

/* How many of the block's threads before this one have `counts`; *out_total: of all. All CUDA_THREADS, once a
 * kernel. */
__device__ static inline uint32_t block_rank(bool counts, uint32_t *out_total) {
    __shared__ uint32_t warps[CUDA_THREADS / CUDA_WARP];
    const uint32_t counting = __ballot_sync(ALL_LANES, counts), warp = threadIdx.x / CUDA_WARP;
    if (warp_lane() == 0)
        warps[warp] = (uint32_t)__popc(counting);
    __syncthreads();
    uint32_t before = 0, total = 0;
    for (uint32_t w = 0; w < CUDA_THREADS / CUDA_WARP; w++) {
        if (w < warp)
            before += warps[w];
        total += warps[w];
    }
    *out_total = total;
    return before + (uint32_t)__popc(counting & ((1u << warp_lane()) - 1));
}

#endif
