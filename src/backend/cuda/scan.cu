/* Prefix sums and the selection of flagged positions. Three steps: each block's sum, the sums of those, and
 * each block again with what stands before it. Blocks take TILE elements. */
#include "backend/cuda/block.h"
#include "backend/cuda/launch.h"

enum { ITEMS = 8, TILE = CUDA_THREADS * ITEMS };

template <typename T> __device__ static inline int64_t tile_value(const T *in, int64_t i, int64_t n) {
    return i < n ? (int64_t)in[i] : 0;
}
/* Flags are bytes that are zero or not. */
__device__ static inline int64_t tile_value(const uint8_t *in, int64_t i, int64_t n) {
    return i < n && in[i];
}

template <typename T> __global__ void tile_sums(const T *in, int64_t n, int64_t *sums) {
    int64_t sum = 0, total;
    for (int k = 0; k < ITEMS; k++)
        sum += tile_value(in, (int64_t)blockIdx.x * TILE + k * CUDA_THREADS + threadIdx.x, n);
    block_exclusive(sum, &total);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = total;
}

/* One block: sums[i] becomes the sum of those before it; the sum of all goes to sums[n]. */
__global__ void scan_sums(int64_t *sums, int64_t n) {
    int64_t before = 0;
    for (int64_t base = 0; base < n; base += CUDA_THREADS) {
        const int64_t i = base + threadIdx.x;
        int64_t total;
        const int64_t exclusive = block_exclusive(i < n ? sums[i] : 0, &total);
        if (i < n)
            sums[i] = before + exclusive;
        before += total;
    }
    if (threadIdx.x == 0)
        sums[n] = before;
}

/* A thread's ITEMS elements lie side by side, so that sums go from left to right. */
template <typename T> __global__ void scan_tiles(const T *in, int64_t n, const int64_t *sums, int64_t *out) {
    const int64_t first = (int64_t)blockIdx.x * TILE + (int64_t)threadIdx.x * ITEMS;
    int64_t values[ITEMS], sum = 0, total;
    for (int k = 0; k < ITEMS; k++)
        sum += values[k] = tile_value(in, first + k, n);
    int64_t so_far = sums[blockIdx.x] + block_exclusive(sum, &total);
    for (int k = 0; k < ITEMS && first + k < n; k++) {
        out[first + k] = so_far;
        so_far += values[k];
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
        out[n] = sums[gridDim.x];
}

template <typename I>
__global__ void write_selected(const uint8_t *flags, int64_t n, const int64_t *sums, int64_t first_row,
                               I *out, int64_t *out_count) {
    const int64_t first = (int64_t)blockIdx.x * TILE + (int64_t)threadIdx.x * ITEMS;
    int64_t count = 0, total;
    bool set[ITEMS];
    for (int k = 0; k < ITEMS; k++)
        count += set[k] = tile_value(flags, first + k, n) != 0;
    int64_t at = sums[blockIdx.x] + block_exclusive(count, &total);
    for (int k = 0; k < ITEMS; k++)
        if (set[k])
            out[at++] = (I)(first_row + first + k);
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
        *out_count = sums[gridDim.x];
}

static int64_t n_tiles(int64_t n) {
    return n > 0 ? (n + TILE - 1) / TILE : 1;
}

template <typename T>
static const int64_t *sum_tiles(cudaStream_t stream, const T *in, int64_t n, void *scratch) {
    int64_t *sums = (int64_t *)scratch;
    SX_LAUNCH(tile_sums, (unsigned)n_tiles(n), CUDA_THREADS, 0, stream, in, n, sums);
    SX_LAUNCH(scan_sums, 1, CUDA_THREADS, 0, stream, sums, n_tiles(n));
    return sums;
}

template <typename T>
static void exclusive_sum(cudaStream_t stream, const T *in, int64_t n, int64_t *out, void *scratch) {
    const int64_t *sums = sum_tiles(stream, in, n, scratch);
    SX_LAUNCH(scan_tiles, (unsigned)n_tiles(n), CUDA_THREADS, 0, stream, in, n, sums, out);
}

template <typename I>
static void select_flags(cudaStream_t stream, const uint8_t *flags, int64_t n, int64_t first, I *out_index,
                         int64_t *out_count, void *scratch) {
    const int64_t *sums = sum_tiles(stream, flags, n, scratch);
    SX_LAUNCH(write_selected, (unsigned)n_tiles(n), CUDA_THREADS, 0, stream, flags, n, sums, first, out_index,
              out_count);
}

extern "C" {

size_t cuda_exclusive_sum_bytes(int64_t n) {
    return (size_t)(n_tiles(n) + 1) * sizeof(int64_t);
}
void cuda_exclusive_sum(cudaStream_t stream, const int64_t *in, int64_t n, int64_t *out, void *scratch) {
    exclusive_sum(stream, in, n, out, scratch);
}
void cuda_exclusive_sum_i32(cudaStream_t stream, const int32_t *in, int64_t n, int64_t *out, void *scratch) {
    exclusive_sum(stream, in, n, out, scratch);
}
size_t cuda_select_bytes(int64_t n) {
    return cuda_exclusive_sum_bytes(n);
}
void cuda_select_flags(cudaStream_t stream, const uint8_t *flags, int64_t n, int32_t *out_index,
                       int64_t *out_count, void *scratch) {
    select_flags(stream, flags, n, 0, out_index, out_count, scratch);
}
void cuda_select_flags_i64(cudaStream_t stream, const uint8_t *flags, int64_t n, int64_t first,
                           int64_t *out_index, int64_t *out_count, void *scratch) {
    select_flags(stream, flags, n, first, out_index, out_count, scratch);
}
}
