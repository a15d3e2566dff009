/* For kernels: how they are launched, and how they read columns. Included by .cu files only. */
#ifndef SX_BACKEND_CUDA_KERNEL_H
#define SX_BACKEND_CUDA_KERNEL_H

#ifdef SX_CUDA_EMULATED
#include "kernel_emulator.h"
#define SX_UNROLL
#define SX_ROLL
#define SX_ALLOW_SHARED(kernel, bytes) ((void)(bytes))
#define SX_BARRIER(number, threads)    __syncthreads()
#define SX_PREFETCH(address)           ((void)(address))
#else
#include <cuda_runtime.h>
/* SX_LAUNCH(kernel, blocks, threads, shared bytes, stream, arguments...) */
#define SX_LAUNCH(kernel, blocks, threads, shared_bytes, stream, ...) \
    kernel<<<(blocks), (threads), (shared_bytes), (stream)>>>(__VA_ARGS__)
/* Before a launch with more dynamic shared memory than 48 KiB. */
#define SX_ALLOW_SHARED(kernel, bytes) \
    (void)cudaFuncSetAttribute((kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes))
/* In front of a loop whose count is known to the compiler. */
#define SX_UNROLL               _Pragma("unroll")
/* Of one whose copies would take registers from what is around it. */
#define SX_ROLL                 _Pragma("unroll 1")
#define SX_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
/* A barrier that warps may come to from different places of the code, which __syncthreads does not allow. */
#define SX_BARRIER(number, threads) \
    asm volatile("barrier.sync %0, %1;" ::"n"(number), "n"(threads) : "memory")
/* Asks for the bytes around an address, to the L2 cache. */
#define SX_PREFETCH(address) asm volatile("prefetch.global.L2 [%0];" ::"l"(address))
#endif

#include "backend/cuda/column.h"
#include "tensor/semantics.h"

enum { CUDA_THREADS = 256, CUDA_WARP = 32 };

/* Position of this thread in the grid, and of its next element: for loops over any number of rows. */
__device__ __forceinline__ int64_t cuda_thread() {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t cuda_threads() {
    return (int64_t)gridDim.x * blockDim.x;
}

static inline unsigned cuda_blocks_up_to(int64_t most, int64_t n, int threads) {
    const int64_t blocks = (n + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}
/* Blocks for `n` elements, with loops over the grid where there are more. */
static inline unsigned cuda_blocks(int64_t n, int threads = CUDA_THREADS) {
    return cuda_blocks_up_to(132 * 16, n, threads);
}
/* The same where elements take their time at random, as what is looked up in memory does: a block for every
 * few, so that at the end there are always blocks to fill the device with. */
static inline unsigned cuda_many_blocks(int64_t n) {
    return cuda_blocks_up_to(132 * 256, n, CUDA_THREADS);
}

template <typename T> __device__ __forceinline__ T cuda_load(const struct cuda_column &column, int64_t row) {
    const T *values = (const T *)column.values;
    if (column.layout == CUDA_DICT)
        return ((const T *)column.dict)[((const int32_t *)column.values)[row]];
    return values[column.layout == CUDA_CONSTANT ? 0 : row];
}
__device__ __forceinline__ bool cuda_is_valid(const struct cuda_column &column, int64_t row) {
    return !column.valid || column.valid[column.layout == CUDA_CONSTANT ? 0 : row];
}

/* The first fault of a stream stays. */
__device__ static inline void cuda_fault_set(struct cuda_control *control, enum cuda_fault_kind kind,
                                             uint32_t what, int64_t row, uint64_t detail = 0) {
    if (atomicCAS(&control->fault.kind, (uint32_t)CUDA_FAULT_NONE, (uint32_t)kind) == CUDA_FAULT_NONE) {
        control->fault.what = what;
        control->fault.row = row;
        control->fault.detail[0] = detail;
    }
}

#endif
