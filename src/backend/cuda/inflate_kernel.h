/* For the kernels that look into compressed bytes. */
#ifndef SX_BACKEND_CUDA_INFLATE_KERNEL_H
#define SX_BACKEND_CUDA_INFLATE_KERNEL_H

#include "backend/cuda/decode_kernel.h"
#include "backend/cuda/launch_inflate.h"

/* A block may have tables that take long to make, and make next to nothing of them. With more blocks than any
 * compressor makes, unless it is told to, a page is a fault: the host is quicker with it. */
__device__ static inline bool inflate_is_scattered(const struct inflate_piece &piece, uint32_t n_blocks) {
    constexpr uint32_t LEAST_BYTES = 256, FEW = 64;
    return n_blocks > piece.plain_bytes / LEAST_BYTES + FEW;
}

__device__ static inline void inflate_fault(struct cuda_control *control, const struct inflate_piece &piece) {
    cuda_fault_set(control, CUDA_FAULT_PAGE, piece.what, 0, DECODE_INFLATE);
}

#endif
