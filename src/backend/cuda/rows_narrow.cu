/* NARROW columns: a sample's range, and offsets back to values. (rows_tiles.cu makes the offsets.) */
#include "backend/cuda/kernel.h"
#include "backend/cuda/launch_rows.h"

enum { SAMPLE_ROWS = 4096, SAMPLERS = 512 /* threads */, SAMPLED = SAMPLE_ROWS / SAMPLERS };

/* Whether the value is the 64 bits that *out has. */
template <typename T> __device__ static inline bool take_low(T value, int64_t *out) {
    *out = (int64_t)value;
    return true;
}
__device__ static inline bool take_low(sx_i128 value, int64_t *out) {
    *out = (int64_t)value;
    return (sx_i128)*out == value;
}

/* By one block. */
template <typename T>
__device__ static inline void sample_range(const struct cuda_column &column, int64_t n,
                                           struct cuda_rows_range *out) {
    __shared__ struct cuda_rows_range ranges[SAMPLERS];
    const int64_t stride = n > SAMPLE_ROWS ? n / SAMPLE_ROWS : 1;
    int64_t least = INT64_MAX, most = INT64_MIN;
    bool is_wide = false;
    SX_UNROLL
    for (int k = 0; k < SAMPLED; k++) {
        const int64_t row = (k * SAMPLERS + (int64_t)threadIdx.x) * stride;
        int64_t value;
        if (row >= n || !cuda_is_valid(column, row))
            continue;
        is_wide = !take_low(cuda_load<T>(column, row), &value) || is_wide;
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    is_wide = __syncthreads_or(is_wide);
    ranges[threadIdx.x] = {least, most};
    for (unsigned half = SAMPLERS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            struct cuda_rows_range *range = &ranges[threadIdx.x];
            const struct cuda_rows_range other = ranges[threadIdx.x + half];
            range->least = other.least < range->least ? other.least : range->least;
            range->most = other.most > range->most ? other.most : range->most;
        }
    }
    if (threadIdx.x == 0)
        *out = is_wide ? cuda_rows_range{0, -1} : ranges[0];
}

__global__ void sample_columns(const struct cuda_rows_samples samples) {
    const int c = (int)blockIdx.x;
    if (samples.widths[c] == sizeof(int64_t))
        sample_range<int64_t>(samples.columns[c], samples.rows, samples.ranges[c]);
    else
        sample_range<sx_i128>(samples.columns[c], samples.rows, samples.ranges[c]);
}

/* 16 bytes of offsets at a time; what follows them one by one. */
template <typename T, typename H>
__device__ static inline void widen(const struct cuda_rows_narrowed &column, int64_t n) {
    constexpr int64_t ITEMS = 16 / sizeof(H);
    struct alignas(16) offsets {
        H items[ITEMS];
    };
    struct alignas(16) values {
        T items[ITEMS];
    };
    const T base = (T)(sx_i128)column.base;
    const int64_t n_whole = n / ITEMS;
    for (int64_t i = cuda_thread(); i < n_whole; i += cuda_threads()) {
        const struct offsets from = ((const struct offsets *)column.from)[i];
        struct values to;
        for (int k = 0; k < ITEMS; k++)
            to.items[k] = base + from.items[k];
        ((struct values *)column.to)[i] = to;
    }
    for (int64_t i = n_whole * ITEMS + cuda_thread(); i < n; i += cuda_threads())
        ((T *)column.to)[i] = base + ((const H *)column.from)[i];
}

__global__ void widen_columns(const struct cuda_rows_widening widening) {
    const struct cuda_rows_narrowed column = widening.columns[blockIdx.y];
    if (column.width == sizeof(uint64_t))
        widen<uint64_t, uint32_t>(column, widening.rows);
    else
        widen<sx_u128, uint64_t>(column, widening.rows);
}

extern "C" {

void cuda_rows_sample(cudaStream_t stream, const struct cuda_rows_samples *samples) {
    SX_LAUNCH(sample_columns, (unsigned)samples->n, SAMPLERS, 0, stream, *samples);
}

void cuda_rows_widen(cudaStream_t stream, const struct cuda_rows_widening *widening) {
    const dim3 blocks = {cuda_blocks(widening->rows / 2), (unsigned)widening->n};
    SX_LAUNCH(widen_columns, blocks, CUDA_THREADS, 0, stream, *widening);
}
}
