/* For kernels: where rows to be packed come from. */
#ifndef SX_BACKEND_CUDA_ROWS_KERNEL_H
#define SX_BACKEND_CUDA_ROWS_KERNEL_H

#include "backend/cuda/kernel.h"
#include "backend/cuda/launch_rows.h"

/* The part that position `at` is in, by where parts begin: the last one that begins there or before. */
__device__ static inline int part_of(const int64_t *begins, int n_parts, int64_t at) {
    int low = 0, high = n_parts - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (begins[middle] <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

__device__ static inline int64_t row_of(const struct cuda_rows_parts &parts, int64_t at) {
    return parts.order ? parts.order[at] : at;
}

#endif
