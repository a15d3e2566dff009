/* Prefix sums and the selection of flagged positions. Sums take three steps: each block's sum, the sums of
 * those, and each block again with what stands before it. Blocks take TILE elements. Of few elements one
 * block makes the sums at once, since three launches cost more than it takes. */
#include "backend/cuda/launch.h"
#include "backend/cuda/look_back.h"

enum { ITEMS = 8, TILE = CUDA_THREADS * ITEMS, FEW_TILES = 4 };

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

/* One block: out[i] becomes the sum of those before in[i]; the sum of all goes to out[n]. They may be the
 * same. */
template <typename T> __global__ void scan_few(const T *in, int64_t n, int64_t *out) {
    int64_t before = 0;
    for (int64_t base = 0; base < n; base += TILE) {
        const int64_t first = base + (int64_t)threadIdx.x * ITEMS;
        int64_t values[ITEMS], sum = 0, total;
        for (int k = 0; k < ITEMS; k++)
            sum += values[k] = tile_value(in, first + k, n);
        int64_t so_far = before + block_exclusive(sum, &total);
        for (int k = 0; k < ITEMS && first + k < n; k++) {
            out[first + k] = so_far;
            so_far += values[k];
        }
        before += total;
    }
    if (threadIdx.x == 0)
        out[n] = before;
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

static int64_t n_tiles(int64_t n) {
    return n > 0 ? (n + TILE - 1) / TILE : 1;
}

template <typename T>
static const int64_t *sum_tiles(cudaStream_t stream, const T *in, int64_t n, void *scratch) {
    int64_t *sums = (int64_t *)scratch;
    SX_LAUNCH(tile_sums, (unsigned)n_tiles(n), CUDA_THREADS, 0, stream, in, n, sums);
    SX_LAUNCH(scan_few<int64_t>, 1, CUDA_THREADS, 0, stream, (const int64_t *)sums, n_tiles(n), sums);
    return sums;
}

template <typename T>
static void exclusive_sum(cudaStream_t stream, const T *in, int64_t n, int64_t *out, void *scratch) {
    if (n_tiles(n) <= FEW_TILES) {
        SX_LAUNCH(scan_few<T>, 1, CUDA_THREADS, 0, stream, in, n, out);
        return;
    }
    const int64_t *sums = sum_tiles(stream, in, n, scratch);
    SX_LAUNCH(scan_tiles, (unsigned)n_tiles(n), CUDA_THREADS, 0, stream, in, n, sums, out);
}

/* ---- selection ---- */

/* In one pass (look_back.h). */

enum { SELECT_ITEMS = 16, SELECT_TILE = CUDA_THREADS * SELECT_ITEMS };

struct alignas(16) flag_words {
    uint32_t words[SELECT_ITEMS / sizeof(uint32_t)];
};

/* A bit for each byte that is not zero. */
__device__ static inline uint32_t set_bytes(uint32_t word) {
    const uint32_t high = (((word & 0x7f7f7f7f) + 0x7f7f7f7f) | word) & 0x80808080;
    return (high >> 7 | high >> 14 | high >> 21 | high >> 28) & 0xf;
}

/* A bit for each of SELECT_ITEMS flags from `first` on. */
__device__ static inline uint32_t set_flags(const uint8_t *flags, int64_t first, int64_t n) {
    uint32_t bits = 0;
    if (first + SELECT_ITEMS <= n && (uintptr_t)flags % sizeof(struct flag_words) == 0) {
        const struct flag_words held = *(const struct flag_words *)(flags + first);
        for (int w = 0; w < SELECT_ITEMS / (int)sizeof(uint32_t); w++)
            bits |= set_bytes(held.words[w]) << 4 * w;
        return bits;
    }
    for (int k = 0; k < SELECT_ITEMS; k++)
        bits |= (uint32_t)(tile_value(flags, first + k, n) != 0) << k;
    return bits;
}

template <typename I>
__global__ void select_tiles(const uint8_t *flags, int64_t n, int64_t first_row, I *out, int64_t *out_count,
                             struct tile_scratch *scratch) {
    __shared__ uint16_t places[SELECT_TILE]; /* in the tile */
    __shared__ int64_t shared_before;
    const bool is_only = gridDim.x == 1;
    const int64_t tile = is_only ? 0 : begin_tile(scratch), base = tile * SELECT_TILE;
    const int mine = (int)threadIdx.x * SELECT_ITEMS;
    uint32_t bits = set_flags(flags, base + mine, n);
    int total, at = block_exclusive(__popc(bits), &total);
    if (threadIdx.x < CUDA_WARP) {
        const int64_t before = is_only ? 0 : tell_and_look_back(scratch->told, tile, total);
        if (threadIdx.x == 0)
            shared_before = before;
    }
    for (; bits; bits &= bits - 1)
        places[at++] = (uint16_t)(mine + __ffs((int)bits) - 1);
    __syncthreads();
    const int64_t before = shared_before;
    for (int i = (int)threadIdx.x; i < total; i += CUDA_THREADS)
        out[before + i] = (I)(first_row + base + places[i]);
    if (tile == (int64_t)gridDim.x - 1 && threadIdx.x == 0)
        *out_count = before + total;
    if (!is_only)
        leave_zeroed(scratch);
}

static int64_t n_select_tiles(int64_t n) {
    return n > 0 ? (n + SELECT_TILE - 1) / SELECT_TILE : 1;
}

template <typename I>
static void select_flags(cudaStream_t stream, const uint8_t *flags, int64_t n, int64_t first, I *out_index,
                         int64_t *out_count, void *scratch) {
    SX_LAUNCH(select_tiles, (unsigned)n_select_tiles(n), CUDA_THREADS, 0, stream, flags, n, first, out_index,
              out_count, (struct tile_scratch *)scratch);
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
size_t cuda_tile_bytes(int64_t n_tiles) {
    return sizeof(struct tile_scratch) + (size_t)n_tiles * sizeof(scan_word);
}
int64_t cuda_select_tiles(int64_t n) {
    return n_select_tiles(n);
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
