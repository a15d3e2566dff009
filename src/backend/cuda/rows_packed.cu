/* PACKED columns of numbers. Packing reads a column twice (ranges, words), and unpacking reads the words and
 * writes the values. */
#include "backend/cuda/rows_blocks.h"

template <typename T>
__global__ void measure_blocks(const struct cuda_column column, const struct cuda_rows_parts parts,
                               const struct cuda_rows_blocks blocks,
                               const struct cuda_rows_measured measured) {
    for (int64_t b = blockIdx.x; b < blocks.n; b += gridDim.x)
        measure_vectors<T>(column, parts, find_block(parts, blocks, b), b, measured);
}

template <typename T>
__global__ void pack_blocks(const struct cuda_column column, const struct cuda_rows_parts parts,
                            const struct cuda_rows_blocks blocks, const struct cuda_rows_measured measured,
                            const struct cuda_rows_place *places) {
    __shared__ uint64_t values[SX_PACK_BLOCK];
    for (int64_t b = blockIdx.x; b < blocks.n; b += gridDim.x) {
        const struct block_rows rows = find_block(parts, blocks, b);
        pack_vectors<T>(column, parts, rows, b, measured, places[rows.part], 0, values);
    }
}

__device__ static inline void join_halves(uint64_t low, uint64_t high, sx_u128 *out) {
    *out = (sx_u128)high << PACK_WORD_BITS | low;
}
template <typename T> __device__ static inline void join_halves(uint64_t low, uint64_t high, T *out) {
    (void)high;
    *out = (T)low;
}

template <typename T>
__global__ void unpack_blocks(const struct cuda_rows_packed packed, T *out_values, uint8_t *out_valid,
                              struct cuda_control *control) {
    const int64_t n_blocks = pack_blocks_of(packed.rows);
    for (int64_t b = blockIdx.x; b < n_blocks; b += gridDim.x) {
        const int n = pack_block_length(packed.rows, b);
        const struct sx_pack_block low = find_entry(packed, b, n, 0, control);
        struct sx_pack_block high = {}, valid = {};
        if (values_vectors<T> > 1)
            high = find_entry(packed, b, n, 1, control);
        if (out_valid)
            valid = find_entry(packed, b, n, packed.n_vectors - 1, control);
        for (int i = (int)threadIdx.x; i < n; i += CUDA_THREADS) {
            const int64_t row = b * SX_PACK_BLOCK + i;
            join_halves(read_integer(low, packed.words, i),
                        values_vectors<T> > 1 ? read_integer(high, packed.words, i) : 0, &out_values[row]);
            if (out_valid)
                out_valid[row] = (uint8_t)read_integer(valid, packed.words, i);
        }
    }
}

/* ---- launching ---- */

/* Calls f with a zero of the integers' type. */
template <typename F> static void for_width(int width, F f) {
    switch (width) {
    case 1: f((int8_t)0); break;
    case 2: f((int16_t)0); break;
    case 4: f((int32_t)0); break;
    case 8: f((int64_t)0); break;
    default: f((sx_u128)0); break;
    }
}

extern "C" {

void cuda_rows_measure(cudaStream_t stream, struct cuda_column column, int width,
                       const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                       const struct cuda_rows_measured *measured) {
    for_width(width, [&](auto zero) {
        SX_LAUNCH(measure_blocks<decltype(zero)>, cuda_blocks(blocks->n, 1), CUDA_THREADS, 0, stream, column,
                  *parts, *blocks, *measured);
    });
}

void cuda_rows_pack_blocks(cudaStream_t stream, struct cuda_column column, int width,
                           const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                           const struct cuda_rows_measured *measured, const struct cuda_rows_place *places) {
    for_width(width, [&](auto zero) {
        SX_LAUNCH(pack_blocks<decltype(zero)>, cuda_blocks(blocks->n, 1), CUDA_THREADS, 0, stream, column,
                  *parts, *blocks, *measured, places);
    });
}

void cuda_rows_unpack_blocks(cudaStream_t stream, const struct cuda_rows_packed *packed, int width,
                             void *out_values, uint8_t *out_valid, struct cuda_control *control) {
    const unsigned blocks = cuda_blocks(pack_blocks_of(packed->rows), 1);
    for_width(width, [&](auto zero) {
        SX_LAUNCH(unpack_blocks<decltype(zero)>, blocks, CUDA_THREADS, 0, stream, *packed,
                  (decltype(zero) *)out_values, out_valid, control);
    });
}
}
