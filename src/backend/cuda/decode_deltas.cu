/* Values of DELTA_BINARY_PACKED, a block per page. A thread takes deltas that follow each other, so that it
 * looks for their miniblock once and adds most of them up by itself; the sums go through shared memory, so
 * that neighbours write neighbours. What moves: the packed bits, and the values once. */
#include "backend/cuda/block.h"
#include "backend/cuda/decode_kernel.h"

/* A miniblock has a multiple of DELTA_ITEMS deltas: those of a thread are of one, and begin at a byte. */
constexpr int DELTA_ITEMS = 8, DELTA_ROUND = int(CUDA_THREADS) * DELTA_ITEMS,
              DELTA_TILES = DELTA_ROUND / int(DECODE_TILE) + 1;

/* Of a block. Neighbours in `values` lie as far apart as keeps their banks apart. */
template <typename T> struct delta_round {
    T values[DELTA_ROUND + CUDA_THREADS];
    uint8_t is_idle[DELTA_TILES]; /* nobody wants the values of the tile */
};

/* Words that have no byte of [.., end) count as 0. */
__device__ static inline uint64_t load_before(const uint64_t *word, uintptr_t end) {
    return (uintptr_t)word < end ? *word : 0;
}

/* DELTA_ITEMS deltas from number `first` on, a multiple of them. */
template <typename T>
__device__ static inline void load_deltas(const struct decode_miniblock *miniblocks,
                                          uint32_t miniblock_values, const uint8_t *body, uint32_t body_bytes,
                                          uint32_t first, T *out) {
    const struct decode_miniblock mini = miniblocks[first / miniblock_values];
    const uint64_t mask = mini.width == 64 ? UINT64_MAX : ((uint64_t)1 << mini.width) - 1;
    const uintptr_t end = (uintptr_t)body + body_bytes;
    const uintptr_t at =
        (uintptr_t)body + mini.at + (uint64_t)(first % miniblock_values) / DELTA_ITEMS * mini.width;
    const uint64_t *word = (const uint64_t *)(at & ~(uintptr_t)7);
    uint64_t low = load_before(word, end), high = load_before(++word, end);
    uint32_t shift = (uint32_t)(at & 7) * 8;
    for (int k = 0; k < DELTA_ITEMS; k++) {
        const uint64_t bits = low >> shift | (shift + mini.width > 64 ? high << (64 - shift) : 0);
        out[k] = (T)(mini.min_delta + (bits & mask));
        shift += mini.width;
        if (shift >= 64) {
            shift -= 64;
            low = high;
            high = load_before(++word, end);
        }
    }
}

/* Tiles of the round's values, from that of value `base` on; a thread each. */
template <typename T>
__device__ static inline void mark_idle(const struct decode_work &work, const struct decode_page &page,
                                        int64_t base, int64_t n, struct delta_round<T> *round) {
    const int64_t tile = base / DECODE_TILE + (int64_t)threadIdx.x;
    if (threadIdx.x < DELTA_TILES)
        round->is_idle[threadIdx.x] = tile * DECODE_TILE < n && tile_is_idle(work, page.first_tile + tile);
}

/* Value v to out[v]. `by_tile`: those of idle tiles may be left out. */
template <typename T>
__device__ static inline void sum_deltas(const struct decode_work &work, const struct decode_page &page,
                                         int d, int64_t n, bool by_tile, T *out) {
    __shared__ struct delta_round<T> round;
    const struct decode_miniblock *miniblocks = work.miniblocks + page.deltas[d].first_miniblock;
    const uint32_t miniblock_values = page.deltas[d].miniblock_values, body_bytes = page.body_bytes;
    const uint8_t *body = page.body;
    T carry = (T)page.deltas[d].first;
    if (threadIdx.x == 0 && n > 0)
        out[0] = carry;
    for (int64_t base = 0; base < n - 1; base += DELTA_ROUND) {
        const int64_t first = base + (int64_t)threadIdx.x * DELTA_ITEMS, left = n - 1 - base;
        T values[DELTA_ITEMS] = {}, sum = 0, total;
        if (by_tile)
            mark_idle(work, page, base, n, &round);
        if (first < n - 1)
            load_deltas(miniblocks, miniblock_values, body, body_bytes, (uint32_t)first, values);
        for (int k = 0; k < DELTA_ITEMS; k++)
            sum += values[k];
        T value = carry + block_exclusive(sum, &total);
        for (int k = 0; k < DELTA_ITEMS; k++)
            round.values[threadIdx.x * (DELTA_ITEMS + 1) + k] = value += values[k];
        __syncthreads();
        for (int64_t i = threadIdx.x; i < left && i < DELTA_ROUND; i += CUDA_THREADS) {
            const int64_t v = base + 1 + i;
            if (!by_tile || !round.is_idle[v / DECODE_TILE - base / DECODE_TILE])
                out[v] = round.values[i + i / DELTA_ITEMS];
        }
        carry += total;
        if (by_tile)
            __syncthreads(); /* all have seen which tiles are idle */
    }
}

template <typename T> __global__ void stage_deltas(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    if ((int32_t)blockIdx.x >= work.n_pages)
        return;
    const struct decode_page &page = work.pages[blockIdx.x];
    if (!work.states[blockIdx.x].is_bad && page.source == DECODE_DELTA)
        sum_deltas(work, page, 0, work.states[blockIdx.x].n_values, true, (T *)work.staged + page.first_row);
}

__global__ void stage_lengths(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    if ((int32_t)blockIdx.x >= work.n_pages || work.states[blockIdx.x].is_bad)
        return;
    const struct decode_page &page = work.pages[blockIdx.x];
    const int64_t n = work.states[blockIdx.x].n_values;
    if (page.source == DECODE_LENGTHS || page.source == DECODE_FRONT_CODED)
        sum_deltas(work, page, page.source == DECODE_FRONT_CODED, n, false, work.lengths + page.first_row);
    if (page.source == DECODE_FRONT_CODED)
        sum_deltas(work, page, 0, n, false, work.prefixes + page.first_row);
}

extern "C" {
void cuda_decode_deltas(cudaStream_t stream, const struct decode_works *works, uint32_t stored_bytes) {
    if (stored_bytes == sizeof(uint32_t))
        SX_LAUNCH(stage_deltas<uint32_t>, page_grid(works), CUDA_THREADS, 0, stream, *works);
    else
        SX_LAUNCH(stage_deltas<uint64_t>, page_grid(works), CUDA_THREADS, 0, stream, *works);
}
void cuda_decode_coded_lengths(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(stage_lengths, page_grid(works), CUDA_THREADS, 0, stream, *works);
}
}
