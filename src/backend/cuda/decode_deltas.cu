/* Values of DELTA_BINARY_PACKED, a block per page. A thread takes deltas that follow each other, so that it
 * looks for their miniblock once and adds most of them up by itself; the sums go through shared memory, so
 * that neighbours write neighbours. What moves: the packed bits, and the values once. */
#include "backend/cuda/block.h"
#include "backend/cuda/decode_kernel.h"

/* A miniblock has a multiple of DELTA_ITEMS deltas: those of a thread are of one, and begin at a byte. */
constexpr int DELTA_ITEMS = 8, DELTA_THREADS = 512, DELTA_ROUND = DELTA_THREADS * DELTA_ITEMS,
              ROUND_TILES = DELTA_ROUND / int(DECODE_TILE),
              DELTA_ROUNDS = (DELTA_THREADS - 1) / ROUND_TILES; /* whose tiles are looked at together */

/* Of a block. Neighbours in `values` lie as far apart as keeps their banks apart. */
template <typename T> struct delta_round {
    T values[DELTA_ROUND + DELTA_THREADS];
    uint8_t is_idle[DELTA_THREADS]; /* nobody wants the values of the tile */
};

/* The deltas of a page, or lengths of its strings. */
struct delta_source {
    const struct decode_miniblock *miniblocks;
    const uint8_t *body;
    uintptr_t end; /* of the body */
    uint32_t miniblock_values, n;
};

/* DELTA_ITEMS deltas on their way: the first two words that have bits of them, which are there for any, and
 * how many words lie in front of the body's end. */
struct delta_bits {
    uint64_t min_delta;
    const uint32_t *words;
    uint32_t low, high, width, shift, most;
};

__device__ static inline struct decode_miniblock miniblock_of(const struct delta_source &source,
                                                              uint32_t first) {
    return first < source.n ? source.miniblocks[first / source.miniblock_values] : decode_miniblock{};
}

/* Deltas from number `first` on, a multiple of DELTA_ITEMS, of `mini`; zeros behind the last. */
__device__ static inline struct delta_bits fetch_deltas(const struct delta_source &source,
                                                        const struct decode_miniblock &mini, uint32_t first) {
    if (first >= source.n)
        return {0, (const uint32_t *)((uintptr_t)source.body & ~(uintptr_t)3), 0, 0, 0, 0, 0};
    const uintptr_t at = (uintptr_t)source.body + mini.at +
                         (uint64_t)(first % source.miniblock_values) / DELTA_ITEMS * mini.width;
    const uintptr_t aligned = at & ~(uintptr_t)3;
    const uint32_t *words = (const uint32_t *)aligned;
    const uint64_t most = source.end > aligned ? (source.end - aligned) / sizeof *words : 0;
    return {mini.min_delta,
            words,
            words[0],
            words[1],
            mini.width,
            (uint32_t)(at - aligned) * 8,
            (uint32_t)(most < UINT32_MAX ? most : UINT32_MAX)};
}

/* Up to 32 bits from bit number `bit` of the words on; behind the body's end any. */
__device__ static inline uint32_t take_bits(const struct delta_bits &bits, uint32_t bit, uint32_t mask) {
    const uint32_t at = bit / 32, *word = bits.words + (at < bits.most ? at : bits.most);
    return (uint32_t)(((uint64_t)word[1] << 32 | word[0]) >> bit % 32) & mask;
}

template <typename T> __device__ static inline void unpack_deltas(const struct delta_bits &bits, T *out) {
    const T min_delta = (T)bits.min_delta;
    const uint32_t low_bits = bits.width < 32 ? bits.width : 32, high_bits = bits.width - low_bits;
    const uint32_t low_mask = low_bits == 32 ? UINT32_MAX : (1u << low_bits) - 1;
    const uint32_t high_mask = high_bits == 32 ? UINT32_MAX : (1u << high_bits) - 1;
    out[0] = min_delta + ((uint32_t)(((uint64_t)bits.high << 32 | bits.low) >> bits.shift) & low_mask);
    SX_UNROLL
    for (int k = 1; k < DELTA_ITEMS; k++)
        out[k] = min_delta + take_bits(bits, bits.shift + k * bits.width, low_mask);
    if (high_bits == 0)
        return;
    SX_UNROLL
    for (int k = 0; k < DELTA_ITEMS; k++)
        out[k] += (T)((uint64_t)take_bits(bits, bits.shift + k * bits.width + 32, high_mask) << 32);
}

/* Tiles of the next DELTA_ROUNDS rounds' values, from that of value `base` on; a thread each. */
template <typename T>
__device__ static inline void mark_idle(const struct decode_work &work, const struct decode_page &page,
                                        int64_t base, int64_t n, struct delta_round<T> *round) {
    const int64_t tile = base / DECODE_TILE + (int64_t)threadIdx.x;
    if (base > 0)
        __syncthreads(); /* all have seen those of the last ones */
    round->is_idle[threadIdx.x] = tile * DECODE_TILE < n && tile_is_idle(work, page.first_tile + tile);
}

/* Whether some of the page's values may be of no use. */
__device__ static inline bool may_have_idle(const struct decode_work &work, const struct decode_page &page) {
    return page.level_kind == DECODE_NO_LEVELS &&
           (work.selection || page.first_wanted > 0 || page.end_wanted < page.n_rows);
}

/* The round's values, of which the first `left` exist, to out[0] and on. `marked`: how far the first of them
 * is behind the first of the marked tiles; below 0: none are. */
template <typename T>
__device__ static inline void put_round(const struct delta_round<T> *round, int32_t marked, int64_t left,
                                        T *out) {
    const int32_t n = left < DELTA_ROUND ? (int32_t)left : DELTA_ROUND;
    SX_UNROLL
    for (int k = 0; k < DELTA_ITEMS; k++) {
        const int32_t i = k * DELTA_THREADS + (int32_t)threadIdx.x;
        const T value = round->values[i + i / DELTA_ITEMS];
        const bool is_idle = marked >= 0 && round->is_idle[(uint32_t)(marked + i) / DECODE_TILE];
        if (i < n && !is_idle)
            out[i] = value;
    }
}

/* Value v to out[v]. `by_tile`: those of idle tiles may be left out. What a round reads is asked for in the
 * round before, and where that is in the one before. */
template <typename T>
__device__ static inline void sum_deltas(const struct decode_work &work, const struct decode_page &page,
                                         int d, int64_t n, bool by_tile, T *out) {
    __shared__ struct delta_round<T> round;
    const struct delta_source source = {work.miniblocks + page.first_miniblock[d], page.body,
                                        (uintptr_t)page.body + page.body_bytes,
                                        page.deltas[d].miniblock_values, n > 0 ? (uint32_t)(n - 1) : 0};
    uint32_t first = threadIdx.x * DELTA_ITEMS;
    struct delta_bits next = fetch_deltas(source, miniblock_of(source, first), first);
    struct decode_miniblock mini = miniblock_of(source, first + DELTA_ROUND);
    T carry = (T)page.deltas[d].first;
    int64_t marked = 0; /* first value of round.is_idle's tiles */
    by_tile = by_tile && may_have_idle(work, page);
    if (threadIdx.x == 0 && n > 0)
        out[0] = carry;
    for (int64_t base = 0; base < n - 1; base += DELTA_ROUND) {
        const int64_t left = n - 1 - base;
        const struct delta_bits bits = next;
        T values[DELTA_ITEMS], sum = 0, total;
        first += DELTA_ROUND;
        next = fetch_deltas(source, mini, first);
        mini = miniblock_of(source, first + DELTA_ROUND);
        if (by_tile && base % (DELTA_ROUNDS * DELTA_ROUND) == 0) {
            mark_idle(work, page, base, n, &round);
            marked = base / DECODE_TILE * DECODE_TILE;
        }
        unpack_deltas(bits, values);
        SX_UNROLL
        for (int k = 0; k < DELTA_ITEMS; k++)
            sum += values[k];
        T value = carry + block_exclusive<T, DELTA_THREADS>(sum, &total);
        SX_UNROLL
        for (int k = 0; k < DELTA_ITEMS; k++)
            round.values[threadIdx.x * (DELTA_ITEMS + 1) + k] = value += values[k];
        __syncthreads();
        put_round(&round, by_tile ? (int32_t)(base + 1 - marked) : -1, left, out + base + 1);
        carry += total;
    }
}

template <typename T>
__global__ void __launch_bounds__(DELTA_THREADS, 2)
    stage_deltas(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    if ((int32_t)blockIdx.x >= work.n_pages)
        return;
    const struct decode_page &page = work.pages[blockIdx.x];
    if (!work.states[blockIdx.x].is_bad && page.source == DECODE_DELTA)
        sum_deltas(work, page, 0, work.states[blockIdx.x].n_values, true, (T *)work.staged + page.first_row);
}

__global__ void __launch_bounds__(DELTA_THREADS, 2)
    stage_lengths(const __grid_constant__ struct decode_works works) {
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
        SX_LAUNCH(stage_deltas<uint32_t>, page_grid(works), DELTA_THREADS, 0, stream, *works);
    else
        SX_LAUNCH(stage_deltas<uint64_t>, page_grid(works), DELTA_THREADS, 0, stream, *works);
}
void cuda_decode_coded_lengths(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(stage_lengths, page_grid(works), DELTA_THREADS, 0, stream, *works);
}
}
