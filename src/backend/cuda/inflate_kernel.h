/* For the kernels that look into compressed bytes. */
#ifndef SX_BACKEND_CUDA_INFLATE_KERNEL_H
#define SX_BACKEND_CUDA_INFLATE_KERNEL_H

#include "backend/cuda/decode_kernel.h"
#include "backend/cuda/launch_inflate.h"

__device__ static inline void inflate_fault(struct cuda_control *control, const struct inflate_piece &piece) {
    cuda_fault_set(control, CUDA_FAULT_PAGE, piece.what, 0, DECODE_INFLATE);
}

/* Words of shared memory for a window; up to 7 bytes in front of it and some behind it may be touched. */
constexpr uint32_t WINDOW_BYTES = 4096, WINDOW_WORDS = WINDOW_BYTES / 8 + 8;

/* Compressed bytes [base, end) in shared memory, the first at `bytes`. */
struct window {
    uint64_t base, end;
    const uint8_t *bytes;
};

/* A warp: the bytes from `base` on, as far as they are there and fit. */
__device__ static inline struct window load_window(const struct inflate_piece &piece, uint64_t base,
                                                   uint64_t *memory) {
    const uint8_t *stored = piece.stored + base;
    const uint64_t left = piece.stored_bytes - base;
    const uint32_t there = left < WINDOW_BYTES ? (uint32_t)left : WINDOW_BYTES;
    const uint32_t skipped = (uint32_t)((uintptr_t)stored & 7), head = skipped ? 8 - skipped : 0;
    const uint32_t whole = there > head ? (there - head) / 8 : 0, tail = head + whole * 8;
    const uint64_t *words = (const uint64_t *)(stored + head);
    uint8_t *bytes = (uint8_t *)memory + skipped;
    __syncwarp();
    for (uint32_t k = threadIdx.x; k < whole; k += CUDA_WARP)
        *(uint64_t *)(bytes + head + (size_t)k * 8) = words[k];
    if (threadIdx.x < head && threadIdx.x < there)
        bytes[threadIdx.x] = stored[threadIdx.x];
    if (tail + threadIdx.x < there)
        bytes[tail + threadIdx.x] = stored[tail + threadIdx.x];
    __syncwarp();
    return {base, base + there, bytes};
}

#endif
