/* What the kernels of the group by share. Included by .cu files only. */
#ifndef SX_BACKEND_CUDA_GROUP_KERNEL_H
#define SX_BACKEND_CUDA_GROUP_KERNEL_H

#include "backend/cuda/launch_group.h"
#include "backend/cuda/value.h"

typedef unsigned long long group_word; /* the type that CUDA's atomics take */

/* What another thread may have written meanwhile. */
template <typename T> __device__ __forceinline__ T group_peek(const T *at) {
    return *(const volatile T *)at;
}

__device__ __forceinline__ int64_t group_of(const struct cuda_group_numbers &rows, int64_t row) {
    if (rows.width == 0)
        return 0;
    return rows.width == 4 ? (int64_t)((const int32_t *)rows.numbers)[row]
                           : ((const int64_t *)rows.numbers)[row];
}

__device__ __forceinline__ bool group_has_value(const struct cuda_group_input &input, int64_t row) {
    return !input.all_null && cuda_is_valid(input.values, row);
}

/* Whether the row counts. */
__device__ __forceinline__ bool group_takes(const struct cuda_group_input &input, int64_t row) {
    if (input.has_filter && !(cuda_is_valid(input.filter, row) && cuda_load<uint8_t>(input.filter, row) != 0))
        return false;
    return input.counts_nulls || group_has_value(input, row);
}

/* Sets a byte that many threads may set, without writing it again and again. */
__device__ __forceinline__ void group_mark(uint8_t *flag) {
    if (!*flag)
        *flag = 1;
}

/* ---- few groups: every thread of a block has accumulators of its own for each group ----
 * They are words in shared memory, [group][word][thread], so that nothing is contended and no two threads of
 * a warp meet in a bank. They are added up at the end: one atomic for a group and block. */
enum { GROUP_FEW_THREADS = 128, GROUP_FEW_BYTES = 47 << 10, GROUP_FEW_ROWS = 16 /* a thread, at least */ };

static inline bool group_is_few(int64_t n_groups, int n_words) {
    return n_groups * n_words * GROUP_FEW_THREADS * (int64_t)sizeof(group_word) <= GROUP_FEW_BYTES;
}
static inline size_t group_few_bytes(int64_t n_groups, int n_words) {
    return (size_t)n_groups * (size_t)n_words * GROUP_FEW_THREADS * sizeof(group_word);
}
static inline unsigned group_few_blocks(int64_t n) {
    const int64_t rows = (int64_t)GROUP_FEW_THREADS * GROUP_FEW_ROWS, most = 132 * 12;
    const int64_t blocks = (n + rows - 1) / rows;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* A thread's words of group g: word w is at [w * GROUP_FEW_THREADS]. */
__device__ __forceinline__ group_word *group_own(group_word *shared, int64_t g, int n_words) {
    return shared + g * n_words * GROUP_FEW_THREADS + threadIdx.x;
}

__device__ static inline void group_few_clear(group_word *shared, int64_t n_groups, int n_words) {
    for (int64_t i = 0; i < n_groups * n_words; i++)
        shared[i * GROUP_FEW_THREADS + threadIdx.x] = 0;
}

/* merge(to, from) on words of two threads; afterwards those of thread 0 hold the block's. */
template <typename Merge>
__device__ static inline void group_few_merge(group_word *shared, int64_t n_groups, int n_words,
                                              Merge merge) {
    for (int apart = GROUP_FEW_THREADS / 2; apart > 0; apart /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < apart)
            for (int64_t g = 0; g < n_groups; g++) {
                group_word *own = group_own(shared, g, n_words);
                merge(own, own + apart);
            }
    }
    __syncthreads();
}

/* ---- one function for each physical type ---- */

template <typename T> static constexpr bool group_is_signed = (T)-1 < (T)1;

/* Calls f with a zero of the type. */
template <typename F> static void group_dispatch_small(int32_t phys, F f) {
    switch (phys) {
    case SX_PHYS_I8: f((int8_t)0); break;
    case SX_PHYS_I16: f((int16_t)0); break;
    case SX_PHYS_I32: f((int32_t)0); break;
    case SX_PHYS_I64: f((int64_t)0); break;
    case SX_PHYS_U8: f((uint8_t)0); break;
    case SX_PHYS_U16: f((uint16_t)0); break;
    case SX_PHYS_U32: f((uint32_t)0); break;
    case SX_PHYS_U64: f((uint64_t)0); break;
    case SX_PHYS_F32: f(0.0F); break;
    case SX_PHYS_F64: f(0.0); break;
    default: break;
    }
}

#endif
