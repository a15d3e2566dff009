/* For kernels that move rows: a value of a column, and rows in shared memory. */
#ifndef SX_BACKEND_CUDA_MOVE_KERNEL_H
#define SX_BACKEND_CUDA_MOVE_KERNEL_H

#include "backend/cuda/kernel.h"
#include "backend/cuda/launch.h"

struct word16 {
    uint64_t low, high;
};
struct alignas(16) word16_aligned {
    uint64_t low, high;
};

template <typename T>
__device__ static inline void move_value(const struct cuda_move &move, int64_t from, int64_t to) {
    *(T *)(move.to + to * move.to_step) = *(const T *)(move.from + from * move.from_step);
}

__device__ static inline void move_row(const struct cuda_move &move, int64_t from, int64_t to) {
    switch (move.width) {
    case 1: move_value<uint8_t>(move, from, to); break;
    case 2: move_value<uint16_t>(move, from, to); break;
    case 4: move_value<uint32_t>(move, from, to); break;
    case 8: move_value<uint64_t>(move, from, to); break;
    default: move_value<word16>(move, from, to);
    }
    if (move.to_valid)
        move.to_valid[to * move.to_valid_step] =
            !move.from_valid || move.from_valid[from * move.from_valid_step];
}

/* Rows of `step` bytes of a block's threads in shared memory: moved in pieces, and `stride` bytes from each
 * other. */
struct tile_shape {
    uint32_t piece, pieces, stride;
};
__device__ static inline struct tile_shape shape_of(uint32_t step) {
    const uint32_t word = (uint32_t)sizeof(uint64_t), two = (uint32_t)sizeof(struct word16);
    const uint32_t piece = step < two ? word : two;
    return {piece, step / piece, step + word}; /* banks apart */
}
__device__ static inline uint32_t rows_of_tile(int64_t left) {
    return left < CUDA_THREADS ? (uint32_t)left : (uint32_t)CUDA_THREADS;
}

#endif
