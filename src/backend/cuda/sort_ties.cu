/* Sorted keys: which rows are tied, and where they stand; and the cut at a threshold. */
#include "backend/cuda/block.h"
#include "backend/cuda/launch_sort.h"

__device__ __forceinline__ int64_t position_at(const uint32_t *positions, int64_t i) {
    return positions ? positions[i] : i;
}

/* How many positions are below `limit`. */
__device__ static inline int64_t count_below(const uint32_t *positions, int64_t n, int64_t limit) {
    if (!positions)
        return n < limit ? n : limit;
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (positions[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

__global__ void count_ties(const uint64_t *keys, const uint32_t *positions, int64_t n, int64_t limit,
                           int64_t *out) {
    __shared__ int64_t below; /* rows in front of the limit; the last one's key is wanted as a whole */
    if (threadIdx.x == 0)
        below = count_below(positions, n, limit);
    __syncthreads();
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const uint64_t key = keys[i];
        const bool follows = i > 0 && keys[i - 1] == key, leads = i + 1 < n && keys[i + 1] == key;
        const bool wanted = i < below || (below > 0 && key == keys[below - 1]);
        out[i] = !wanted || !(follows || leads) ? 0 : follows ? 1 : 1 + (INT64_C(1) << 32);
    }
}

__global__ void take_ties(const int64_t *sums, const uint32_t *rows, const uint32_t *positions, int64_t n,
                          uint32_t *out_rows, uint32_t *out_positions, uint32_t *out_segments) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const uint64_t sum = (uint64_t)sums[i], after = (uint64_t)sums[i + 1];
        if (sum == after)
            continue;
        const uint32_t to = (uint32_t)sum;
        out_rows[to] = rows[i];
        out_positions[to] = (uint32_t)position_at(positions, i);
        out_segments[to] = (uint32_t)(after >> 32) - 1;
    }
}

__global__ void place_rows(const uint32_t *rows, const uint32_t *positions, int64_t n, uint32_t *order) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        order[positions[i]] = rows[i];
}

__global__ void widen_rows(const uint32_t *rows, int64_t n, int64_t *out) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        out[i] = rows[i];
}

/* ---- threshold: 8 bytes a row and level ---- */

static constexpr int DIGITS = 1 << CUDA_SORT_LEVEL_BITS;

__device__ __forceinline__ uint64_t shift_right(uint64_t x, int by) {
    return by < 64 ? x >> by : 0;
}

__global__ void count_digits(const uint64_t *keys, int64_t n, int above_shift, int shift,
                             struct cuda_sort_threshold *threshold) {
    __shared__ unsigned counts[DIGITS];
    for (int d = (int)threadIdx.x; d < DIGITS; d += CUDA_THREADS)
        counts[d] = 0;
    __syncthreads();
    const uint64_t prefix = threshold->prefix, mask = (UINT64_C(1) << (above_shift - shift)) - 1;
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        if (shift_right(keys[i], above_shift) == prefix)
            atomicAdd(&counts[keys[i] >> shift & mask], 1u);
    __syncthreads();
    for (int d = (int)threadIdx.x; d < DIGITS; d += CUDA_THREADS)
        if (counts[d])
            atomicAdd((unsigned long long *)&threshold->counts[d], (unsigned long long)counts[d]);
}

/* One block. Clears the counts for the next level. */
__global__ void choose_digit(int bits, struct cuda_sort_threshold *threshold) {
    constexpr int PER_THREAD = DIGITS / CUDA_THREADS;
    int64_t *counts = threshold->counts + threadIdx.x * PER_THREAD;
    const int64_t wanted = threshold->wanted;
    const uint64_t prefix = threshold->prefix;
    int64_t sum = 0, all;
    for (int d = 0; d < PER_THREAD; d++)
        sum += counts[d];
    int64_t before = block_exclusive(sum, &all);
    for (int d = 0; d < PER_THREAD; d++) {
        if (before < wanted && before + counts[d] >= wanted) {
            threshold->prefix = prefix << bits | (threadIdx.x * PER_THREAD + (unsigned)d);
            threshold->wanted = wanted - before;
        }
        before += counts[d];
        counts[d] = 0;
    }
}

__global__ void flag_smallest(const uint64_t *keys, int64_t n, int shift,
                              const struct cuda_sort_threshold *threshold, uint8_t *flags) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        flags[i] = keys[i] >> shift <= threshold->prefix;
}

__global__ void take_index(const uint64_t *keys, const int64_t *index, int64_t n, uint64_t *out_keys,
                           uint32_t *out_rows) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        out_keys[i] = keys[index[i]];
        out_rows[i] = (uint32_t)index[i];
    }
}

extern "C" {

void cuda_sort_count_ties(cudaStream_t stream, const uint64_t *keys, const uint32_t *positions, int64_t n,
                          int64_t limit, int64_t *out_counts) {
    SX_LAUNCH(count_ties, cuda_blocks(n), CUDA_THREADS, 0, stream, keys, positions, n, limit, out_counts);
}
void cuda_sort_take_ties(cudaStream_t stream, const int64_t *sums, const uint32_t *rows,
                         const uint32_t *positions, int64_t n, uint32_t *out_rows, uint32_t *out_positions,
                         uint32_t *out_segments) {
    SX_LAUNCH(take_ties, cuda_blocks(n), CUDA_THREADS, 0, stream, sums, rows, positions, n, out_rows,
              out_positions, out_segments);
}
void cuda_sort_place(cudaStream_t stream, const uint32_t *rows, const uint32_t *positions, int64_t n,
                     uint32_t *order) {
    SX_LAUNCH(place_rows, cuda_blocks(n), CUDA_THREADS, 0, stream, rows, positions, n, order);
}
void cuda_sort_widen(cudaStream_t stream, const uint32_t *rows, int64_t n, int64_t *out_rows) {
    SX_LAUNCH(widen_rows, cuda_blocks(n), CUDA_THREADS, 0, stream, rows, n, out_rows);
}
void cuda_sort_narrow(cudaStream_t stream, const uint64_t *keys, int64_t n, int above_shift, int shift,
                      struct cuda_sort_threshold *threshold) {
    /* a block's share is worth the sum of its counts */
    SX_LAUNCH(count_digits, cuda_blocks((n + 7) / 8), CUDA_THREADS, 0, stream, keys, n, above_shift, shift,
              threshold);
    SX_LAUNCH(choose_digit, 1, CUDA_THREADS, 0, stream, above_shift - shift, threshold);
}
void cuda_sort_flag_smallest(cudaStream_t stream, const uint64_t *keys, int64_t n, int shift,
                             const struct cuda_sort_threshold *threshold, uint8_t *flags) {
    SX_LAUNCH(flag_smallest, cuda_blocks(n), CUDA_THREADS, 0, stream, keys, n, shift, threshold, flags);
}
void cuda_sort_take(cudaStream_t stream, const uint64_t *keys, const int64_t *index, int64_t n,
                    uint64_t *out_keys, uint32_t *out_rows) {
    SX_LAUNCH(take_index, cuda_blocks(n), CUDA_THREADS, 0, stream, keys, index, n, out_keys, out_rows);
}
}
