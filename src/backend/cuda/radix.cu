/* Stable order of rows by a digit of their keys, in three steps: each block counts the digits of its share of
 * the rows, the counts are summed over [digit][block], and each block moves its rows. Moving takes a tile at
 * a time: rows are ranked within their warp by matching digits, staged in shared memory in the order of
 * digits, and written from there in runs.
 *
 * A row costs 8 bytes for counting, and 12 read and 12 written for moving keys and rows: 32 in all; for a
 * partition (rows begin 0, 1, …; keys are not wanted) 20. Where that is one of few digits the order is found
 * without staging ("few digits" below). */
#include "backend/cuda/block.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/launch_hash.h"

enum {
    TILE = CUDA_RADIX_SMALL,
    ITEMS = (int)CUDA_RADIX_SMALL / (int)CUDA_THREADS, /* of a thread in a tile */
    WARPS = CUDA_THREADS / CUDA_WARP,
    MOST_BLOCKS = 132 * 6, /* all at work at the same time */
    NARROW_BITS = 8
};

static int64_t n_tiles(int64_t n) {
    return n > 0 ? (n + TILE - 1) / TILE : 1;
}
/* Blocks take whole tiles, the same number each but for the last. */
static int64_t tiles_of_block(int64_t n) {
    const int64_t tiles = n_tiles(n);
    return tiles < MOST_BLOCKS ? 1 : (tiles + MOST_BLOCKS - 1) / MOST_BLOCKS;
}
static int64_t n_blocks(int64_t n) {
    const int64_t share = tiles_of_block(n) * TILE;
    return n > 0 ? (n + share - 1) / share : 1;
}

__device__ __forceinline__ uint32_t digit_of(const struct cuda_radix_pass &pass, uint64_t key) {
    return (uint32_t)(key >> pass.shift) & ((1u << pass.bits) - 1);
}

template <int BINS>
__global__ void radix_count(const struct cuda_radix_pass pass, int64_t share, int64_t *counts) {
    __shared__ uint32_t bins[BINS];
    const int n_bins = 1 << pass.bits;
    for (int b = (int)threadIdx.x; b < BINS; b += CUDA_THREADS)
        bins[b] = 0;
    __syncthreads();
    const int64_t first = blockIdx.x * share, end = first + share < pass.n ? first + share : pass.n;
    for (int64_t i = first + threadIdx.x; i < end; i += CUDA_THREADS)
        atomicAdd(&bins[digit_of(pass, pass.keys[i])], 1u);
    __syncthreads();
    for (int b = (int)threadIdx.x; b < n_bins; b += CUDA_THREADS)
        counts[(int64_t)b * gridDim.x + blockIdx.x] = bins[b];
}

template <int BINS> struct radix_tile {
    uint64_t keys[TILE];
    uint32_t rows[TILE];
    uint16_t counts[WARPS][BINS]; /* then: where the warp's rows of the digit begin in the tile */
    uint32_t place[BINS]; /* where the block's next row of the digit goes, mostly less its tile place */
};

/* A thread's rows of a tile: item k of the warp's lanes stand side by side. */
struct radix_items {
    uint64_t keys[ITEMS];
    uint32_t rows[ITEMS];
    uint32_t ranks[ITEMS]; /* how many rows of the same digit come before within the warp */
};

__device__ __forceinline__ int64_t item_at(int64_t first, int k) {
    const int lane = (int)threadIdx.x % CUDA_WARP, warp = (int)threadIdx.x / CUDA_WARP;
    return first + (warp * ITEMS + k) * CUDA_WARP + lane;
}

/* Loads the items, and counts the warp's digits. */
template <int BINS>
__device__ static inline void rank_items(const struct cuda_radix_pass &pass, int64_t first,
                                         struct radix_tile<BINS> &tile, struct radix_items &items) {
    const int lane = (int)threadIdx.x % CUDA_WARP, warp = (int)threadIdx.x / CUDA_WARP;
    const unsigned lower = (1u << lane) - 1;
    for (int k = 0; k < ITEMS; k++) {
        const int64_t i = item_at(first, k);
        if (i - lane >= pass.n) /* the whole warp */
            break;
        const bool inside = i < pass.n;
        items.keys[k] = inside ? pass.keys[i] : 0;
        items.rows[k] = inside && pass.rows ? pass.rows[i] : (uint32_t)i;
        const uint32_t digit = inside ? digit_of(pass, items.keys[k]) : BINS;
        const unsigned peers = __match_any_sync(0xffffffffu, digit);
        const uint32_t before = inside ? tile.counts[warp][digit] : 0;
        __syncwarp();
        if (inside && (peers & lower) == 0)
            tile.counts[warp][digit] = (uint16_t)(before + (uint32_t)__popc(peers));
        __syncwarp();
        items.ranks[k] = before + (uint32_t)__popc(peers & lower);
    }
}

/* Counts become places in the tile. A thread has BINS / CUDA_THREADS digits; `ends`: where those end in the
 * tile. */
template <int BINS>
__device__ static inline void place_digits(struct radix_tile<BINS> &tile, uint32_t *ends) {
    enum { PER_THREAD = BINS / CUDA_THREADS };
    const int first = (int)threadIdx.x * PER_THREAD;
    uint32_t totals[PER_THREAD], sum = 0, all;
    for (int b = 0; b < PER_THREAD; b++) {
        totals[b] = 0;
        for (int w = 0; w < WARPS; w++)
            totals[b] += tile.counts[w][first + b];
        sum += totals[b];
    }
    uint32_t start = block_exclusive(sum, &all);
    for (int b = 0; b < PER_THREAD; b++) {
        tile.place[first + b] -= start;
        uint32_t so_far = start;
        for (int w = 0; w < WARPS; w++) {
            const uint32_t count = tile.counts[w][first + b];
            tile.counts[w][first + b] = (uint16_t)so_far;
            so_far += count;
        }
        start += totals[b];
        ends[b] = start;
    }
}

template <int BINS>
__device__ static inline void stage_items(const struct cuda_radix_pass &pass, int64_t first,
                                          struct radix_tile<BINS> &tile, const struct radix_items &items) {
    const int warp = (int)threadIdx.x / CUDA_WARP;
    for (int k = 0; k < ITEMS && item_at(first, k) < pass.n; k++) {
        const uint32_t at = tile.counts[warp][digit_of(pass, items.keys[k])] + items.ranks[k];
        tile.keys[at] = items.keys[k];
        tile.rows[at] = items.rows[k];
    }
}

/* The tile's rows into the order of their digits. All counts are zero. */
template <int BINS>
__device__ static inline void order_tile(const struct cuda_radix_pass &pass, int64_t first,
                                         struct radix_tile<BINS> &tile, uint32_t *ends) {
    struct radix_items items;
    __syncthreads();
    rank_items(pass, first, tile, items);
    __syncthreads();
    place_digits(tile, ends);
    __syncthreads();
    stage_items(pass, first, tile, items);
    __syncthreads();
}

/* For the thread's digits. */
template <int BINS> __device__ static inline void clear_counts(struct radix_tile<BINS> &tile) {
    enum { PER_THREAD = BINS / CUDA_THREADS };
    for (int b = (int)threadIdx.x * PER_THREAD; b < ((int)threadIdx.x + 1) * PER_THREAD; b++)
        for (int w = 0; w < WARPS; w++)
            tile.counts[w][b] = 0;
}

template <int BINS>
__global__ void radix_move(const struct cuda_radix_pass pass, int64_t share, const int64_t *places) {
    enum { PER_THREAD = BINS / CUDA_THREADS };
    __shared__ struct radix_tile<BINS> tile;
    const int my_bins = (int)threadIdx.x * PER_THREAD, n_bins = 1 << pass.bits;
    for (int b = my_bins; b < my_bins + PER_THREAD; b++)
        tile.place[b] = b < n_bins ? (uint32_t)places[(int64_t)b * gridDim.x + blockIdx.x] : 0;
    clear_counts(tile);
    const int64_t start = blockIdx.x * share, end = start + share < pass.n ? start + share : pass.n;
    for (int64_t first = start; first < end; first += TILE) {
        uint32_t ends[PER_THREAD];
        order_tile(pass, first, tile, ends);
        const int count = end - first < TILE ? (int)(end - first) : (int)TILE;
        for (int i = (int)threadIdx.x; i < count; i += CUDA_THREADS) {
            const uint64_t key = tile.keys[i];
            const uint32_t to = tile.place[digit_of(pass, key)] + (uint32_t)i;
            pass.out_rows[to] = tile.rows[i];
            if (pass.out_keys)
                pass.out_keys[to] = key;
        }
        __syncthreads();
        for (int b = 0; b < PER_THREAD; b++)
            tile.place[my_bins + b] += ends[b];
        clear_counts(tile);
    }
}

/* All digits of at most TILE rows, in one block. */
template <int BINS> __global__ void radix_small(struct cuda_radix_pass pass, int bits) {
    enum { PER_THREAD = BINS / CUDA_THREADS };
    __shared__ struct radix_tile<BINS> tile;
    for (int shift = 0; shift < bits; shift += pass.bits) {
        uint32_t ends[PER_THREAD];
        clear_counts(tile);
        pass.shift = shift;
        order_tile(pass, 0, tile, ends);
        pass.keys = tile.keys;
        pass.rows = tile.rows;
    }
    for (int i = (int)threadIdx.x; i < pass.n; i += CUDA_THREADS) {
        pass.out_rows[i] = tile.rows[i];
        if (pass.out_keys)
            pass.out_keys[i] = tile.keys[i];
    }
}

/* ---- few digits ----
 * A block a tile. The lanes that have a digit are told by a ballot for each of its bits, and lane d of a warp
 * has the count of digit d, so that nothing is staged: a row costs 8 bytes for counting (a digit by itself
 * 1), and as many read and 4 written for moving. */

/* The digits of a thread's rows in a tile; rows that are not there have none. */
struct few_items {
    uint32_t digits[ITEMS];
    bool inside[ITEMS];
};

__device__ static inline void load_digits(const struct cuda_radix_pass &pass, int64_t first,
                                          struct few_items &items) {
    SX_UNROLL
    for (int k = 0; k < ITEMS; k++) {
        const int64_t i = item_at(first, k);
        items.inside[k] = i < pass.n;
        items.digits[k] = !items.inside[k] ? 0 : pass.digits ? pass.digits[i] : digit_of(pass, pass.keys[i]);
    }
}

/* Of one item of each lane of a warp. */
template <int BITS> struct few_ballots {
    uint32_t inside, bits[BITS];
};

template <int BITS>
__device__ static inline struct few_ballots<BITS> ballots_of(const struct few_items &items, int k) {
    struct few_ballots<BITS> ballots;
    ballots.inside = __ballot_sync(ALL_LANES, items.inside[k]);
    SX_UNROLL
    for (int b = 0; b < BITS; b++)
        ballots.bits[b] = __ballot_sync(ALL_LANES, items.digits[k] >> b & 1);
    return ballots;
}

template <int BITS>
__device__ static inline uint32_t lanes_of(const struct few_ballots<BITS> &ballots, uint32_t digit) {
    uint32_t lanes = ballots.inside;
    SX_UNROLL
    for (int b = 0; b < BITS; b++)
        lanes &= digit >> b & 1 ? ballots.bits[b] : ~ballots.bits[b];
    return lanes;
}

/* Of the warp's rows, those with the lane's digit, if it has one. */
template <int BITS> __device__ static inline uint32_t count_own(const struct few_items &items) {
    uint32_t count = 0;
    SX_UNROLL
    for (int k = 0; k < ITEMS; k++)
        count += (uint32_t)__popc(lanes_of(ballots_of<BITS>(items, k), warp_lane()));
    return count;
}

template <int BITS> struct few_counts {
    uint32_t of_warp[WARPS][1 << BITS];
};

template <int BITS>
__device__ static inline void count_warps(const struct few_items &items, struct few_counts<BITS> &counts) {
    const uint32_t count = count_own<BITS>(items);
    if (warp_lane() < 1u << BITS)
        counts.of_warp[threadIdx.x / CUDA_WARP][warp_lane()] = count;
    __syncthreads();
}

/* Of the digit, in the warps in front of `warp`. */
template <int BITS>
__device__ static inline uint32_t count_before(const struct few_counts<BITS> &counts, int warp,
                                               uint32_t digit) {
    uint32_t count = 0;
    for (int w = 0; w < warp; w++)
        count += counts.of_warp[w][digit];
    return count;
}

template <int BITS>
__global__ void few_count(const struct cuda_radix_pass pass, int64_t share, int64_t *out_counts) {
    __shared__ struct few_counts<BITS> counts;
    struct few_items items;
    load_digits(pass, blockIdx.x * share, items);
    count_warps(items, counts);
    if (threadIdx.x < 1u << BITS)
        out_counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = count_before(counts, WARPS, threadIdx.x);
}

template <int BITS>
__global__ void few_move(const struct cuda_radix_pass pass, int64_t share, const int64_t *places) {
    __shared__ struct few_counts<BITS> counts;
    struct few_items items;
    const int64_t first = blockIdx.x * share;
    const uint32_t lane = warp_lane();
    load_digits(pass, first, items);
    count_warps(items, counts);
    uint32_t place = 0; /* of the next row with the lane's digit */
    if (lane < 1u << BITS)
        place = (uint32_t)places[(int64_t)lane * gridDim.x + blockIdx.x] +
                count_before(counts, (int)threadIdx.x / CUDA_WARP, lane);
    SX_UNROLL
    for (int k = 0; k < ITEMS; k++) {
        const struct few_ballots<BITS> ballots = ballots_of<BITS>(items, k);
        const uint32_t before = lanes_of(ballots, items.digits[k]) & ((1u << lane) - 1);
        const uint32_t to = __shfl_sync(ALL_LANES, place, (int)items.digits[k]) + (uint32_t)__popc(before);
        if (items.inside[k])
            pass.out_rows[to] = (uint32_t)item_at(first, k);
        place += (uint32_t)__popc(lanes_of(ballots, lane));
    }
}

__global__ void radix_starts(const int64_t *places, int n_bins, int64_t stride, int64_t n,
                             int64_t *out_starts) {
    for (int64_t b = cuda_thread(); b <= n_bins; b += cuda_threads())
        out_starts[b] = b < n_bins ? places[b * stride] : n;
}

__global__ void find_starts(const uint64_t *keys, int64_t n, int shift, int n_parts, int64_t *out_starts) {
    for (int64_t part = cuda_thread(); part <= n_parts; part += cuda_threads()) {
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if ((int64_t)(keys[middle] >> shift) < part)
                low = middle + 1;
            else
                high = middle;
        }
        out_starts[part] = low;
    }
}

/* `share`: rows of a block. */
template <auto COUNT, auto MOVE>
static void radix(cudaStream_t stream, const struct cuda_radix_pass &pass, int64_t blocks, int64_t share,
                  int64_t *out_starts) {
    const int n_bins = 1 << pass.bits;
    int64_t *counts = (int64_t *)pass.scratch;
    SX_LAUNCH(COUNT, (unsigned)blocks, CUDA_THREADS, 0, stream, pass, share, counts);
    cuda_exclusive_sum(stream, counts, n_bins * blocks, counts, counts + n_bins * blocks + 1);
    SX_LAUNCH(MOVE, (unsigned)blocks, CUDA_THREADS, 0, stream, pass, share, (const int64_t *)counts);
    if (out_starts)
        SX_LAUNCH(radix_starts, cuda_blocks(n_bins + 1), CUDA_THREADS, 0, stream, counts, n_bins, blocks,
                  pass.n, out_starts);
}

template <int BINS>
static void radix_staged(cudaStream_t stream, const struct cuda_radix_pass &pass, int64_t *out_starts) {
    radix<radix_count<BINS>, radix_move<BINS>>(stream, pass, n_blocks(pass.n), tiles_of_block(pass.n) * TILE,
                                               out_starts);
}

template <int BITS>
static void radix_few(cudaStream_t stream, const struct cuda_radix_pass &pass, int64_t *out_starts) {
    radix<few_count<BITS>, few_move<BITS>>(stream, pass, n_tiles(pass.n), TILE, out_starts);
}

extern "C" {

size_t cuda_radix_bytes(int64_t n, int bits) {
    const int64_t counts = (bits <= CUDA_RADIX_FEW_BITS ? n_tiles(n) : n_blocks(n)) << bits;
    return (size_t)(counts + 1) * sizeof(int64_t) + cuda_exclusive_sum_bytes(counts);
}
void cuda_radix(cudaStream_t stream, const struct cuda_radix_pass *pass, int64_t *out_starts) {
    if (pass->bits <= CUDA_RADIX_FEW_BITS && !pass->rows && !pass->out_keys)
        switch (pass->bits) {
        case 1: radix_few<1>(stream, *pass, out_starts); break;
        case 2: radix_few<2>(stream, *pass, out_starts); break;
        case 3: radix_few<3>(stream, *pass, out_starts); break;
        default: radix_few<CUDA_RADIX_FEW_BITS>(stream, *pass, out_starts);
        }
    else if (pass->bits <= NARROW_BITS)
        radix_staged<1 << NARROW_BITS>(stream, *pass, out_starts);
    else
        radix_staged<1 << CUDA_RADIX_BITS>(stream, *pass, out_starts);
}
void cuda_radix_small(cudaStream_t stream, const struct cuda_radix_pass *pass, int bits) {
    SX_LAUNCH(radix_small<1 << NARROW_BITS>, 1, CUDA_THREADS, 0, stream, *pass, bits);
}
void cuda_find_starts(cudaStream_t stream, const uint64_t *sorted_keys, int64_t n, int shift, int n_parts,
                      int64_t *out_starts) {
    SX_LAUNCH(find_starts, cuda_blocks(n_parts + 1), CUDA_THREADS, 0, stream, sorted_keys, n, shift, n_parts,
              out_starts);
}
}
