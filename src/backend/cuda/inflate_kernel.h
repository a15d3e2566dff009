/* For the kernels that look into compressed bytes. */
#ifndef SX_BACKEND_CUDA_INFLATE_KERNEL_H
#define SX_BACKEND_CUDA_INFLATE_KERNEL_H

#include "backend/cuda/decode_kernel.h"
#include "backend/cuda/launch_inflate.h"

__device__ static inline void inflate_fault(struct cuda_control *control, const struct inflate_piece &piece) {
    cuda_fault_set(control, CUDA_FAULT_PAGE, piece.what, 0, DECODE_INFLATE);
}

#endif
