/* For the kernels that decode pages. Every read of page bytes is checked: what they tell may be wrong. */
#ifndef SX_BACKEND_CUDA_DECODE_KERNEL_H
#define SX_BACKEND_CUDA_DECODE_KERNEL_H

#include "backend/cuda/block.h"
#include "backend/cuda/launch_decode.h"
#include "tensor/semantics_stored.h"

static_assert(sizeof(struct decode_page) <= DECODE_PAGE_BYTES, "memory for a page");

/* Nothing more is done for page `p` of the decode. */
__device__ static inline void page_fault(const struct decode_work &work, int32_t p,
                                         enum decode_problem problem, uint64_t high = 0, int64_t row = 0) {
    work.states[p].is_bad = 1;
    cuda_fault_set(work.control, CUDA_FAULT_PAGE, work.pages[p].number, row, (uint64_t)problem | high << 8);
}

/* `width` (0..64) bits from bit number `bit` of `size` bytes on; those behind the end are zero. */
__device__ static inline uint64_t load_bits(const uint8_t *bytes, uint64_t size, uint64_t bit,
                                            uint32_t width) {
    const uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    const uintptr_t begin = (uintptr_t)bytes, at = begin + bit / 8, word = at & ~(uintptr_t)7;
    if (word >= begin && word + 16 <= begin + size) {
        const uint64_t *words = (const uint64_t *)word;
        const uint32_t shift = (uint32_t)(at - word) * 8 + (uint32_t)(bit % 8);
        const uint64_t high = shift ? words[1] << (64 - shift) : 0;
        return (words[0] >> shift | high) & mask;
    }
    uint64_t value = 0;
    const uint32_t shift = (uint32_t)(bit % 8);
    for (uint32_t i = 0; i < (shift + width + 7) / 8 && bit / 8 + i < size; i++) {
        const uint64_t byte = bytes[bit / 8 + i];
        value |= i ? byte << (8 * i - shift) : byte >> shift;
    }
    return value & mask;
}

/* A word at any address. */
__device__ static inline uint8_t load_word(const uint8_t *at, uint8_t) {
    return *at;
}
__device__ static inline uint32_t load_word(const uint8_t *at, uint32_t) {
    const uint32_t *words = (const uint32_t *)((uintptr_t)at & ~(uintptr_t)3);
    const uint32_t shift = (uint32_t)((uintptr_t)at & 3) * 8;
    return shift ? words[0] >> shift | words[1] << (32 - shift) : words[0];
}
__device__ static inline uint64_t load_word(const uint8_t *at, uint64_t) {
    const uint64_t *words = (const uint64_t *)((uintptr_t)at & ~(uintptr_t)7);
    const uint32_t shift = (uint32_t)((uintptr_t)at & 7) * 8;
    return shift ? words[0] >> shift | words[1] << (64 - shift) : words[0];
}

/* ---- RLE and bit-packing hybrid ---- */

struct hybrid {
    const uint8_t *bytes;
    uint32_t size, width; /* width 0..32 */
};

struct hybrid_run {
    uint64_t count;
    bool is_packed;
    uint32_t at;    /* of the packed bits */
    uint32_t value; /* of a repeated run */
};

/* The run whose header is at *at, which moves behind it. False at the end, or where the bytes are damaged.
 * Of a packed run that the end cuts off, the values that are there count. */
__device__ static inline bool hybrid_next(const struct hybrid &h, uint32_t *at, struct hybrid_run *run) {
    uint64_t header, behind = *at;
    if (!sx_stored_varint(h.bytes, h.size, &behind, &header) || header > UINT32_MAX)
        return false;
    *at = (uint32_t)behind;
    const uint32_t left = h.size - *at;
    run->is_packed = header & 1;
    run->count = header >> 1;
    run->at = *at;
    run->value = 0;
    if (run->is_packed) {
        const uint64_t bytes = run->count * h.width;
        run->count = bytes <= left ? run->count * 8 : (uint64_t)left * 8 / h.width;
        *at += bytes <= left ? (uint32_t)bytes : left;
        return true;
    }
    const uint32_t value_bytes = (h.width + 7) / 8;
    if (left < value_bytes)
        return false;
    for (uint32_t b = 0; b < value_bytes; b++)
        run->value |= (uint32_t)h.bytes[(*at)++] << (8 * b);
    return h.width >= 32 || run->value >> h.width == 0;
}

/* A warp: finds the runs in which the page's tiles of `needed` values begin. Each lane reads a header as if a
 * run began at its place, at one byte after another or, where runs are long, at steps of the last one's
 * length, which the next ones mostly share. What are runs is then followed from lane to lane, so that memory
 * is waited for once for all of them. */
__device__ static inline void hybrid_walk(const struct decode_work &work, int32_t p, const struct hybrid &h,
                                          int64_t needed, enum decode_problem problem) {
    constexpr uint32_t ALL = 0xffffffffu;
    struct decode_run_at *runs = work.runs + work.pages[p].first_tile;
    const uint32_t lane = threadIdx.x % CUDA_WARP;
    uint32_t at = 0, step = 1;
    int64_t done = 0;
    while (done < needed) {
        const uint64_t place = at + (uint64_t)lane * step;
        const uint32_t header = place < h.size ? (uint32_t)place : h.size;
        uint32_t behind = header;
        struct hybrid_run run = {};
        const bool is_good = hybrid_next(h, &behind, &run);
        const uint32_t length = behind - header, steps = length / step;
        const bool stays = is_good && steps * step == length && steps < CUDA_WARP - lane;
        const uint32_t next = stays ? lane + steps : (uint32_t)CUDA_WARP;
        uint32_t chain = 0, last = 0;
        for (uint32_t l = 0; l < CUDA_WARP; l = __shfl_sync(ALL, next, (int)l)) {
            chain |= 1u << l;
            last = l;
        }
        const int64_t count = is_good && (chain >> lane & 1) ? (int64_t)run.count : 0;
        const int64_t end = done + warp_inclusive(count), begin = end - count;
        for (int64_t tile = (begin + DECODE_TILE - 1) / DECODE_TILE;
             tile * DECODE_TILE < end && tile * DECODE_TILE < needed; tile++)
            runs[tile] = {header, 0, (uint64_t)(tile * DECODE_TILE - begin)};
        if (lane == last && !is_good && begin < needed)
            page_fault(work, p, problem, (uint64_t)begin, needed);
        done = __shfl_sync(ALL, end, (int)last);
        if (done < needed && !__shfl_sync(ALL, (int)is_good, (int)last))
            return;
        at = __shfl_sync(ALL, behind, (int)last);
        step = __shfl_sync(ALL, length, (int)last);
        step = step > CUDA_WARP ? step : 1;
    }
}

/* The values of a run from one of them on: bits of each, or none. Whole words are read, also where there are
 * no bits (DECODE_SLACK_BYTES). */
struct hybrid_values {
    const uint32_t *words;
    uint32_t shift, width, mask, value;
};

__device__ static inline struct hybrid_values hybrid_values_from(const struct hybrid &h,
                                                                 const struct hybrid_run &run,
                                                                 uint64_t passed) {
    const uint32_t width = run.is_packed ? h.width : 0;
    const uintptr_t at = (uintptr_t)h.bytes + run.at;
    const uint64_t bit = (at & 3) * 8 + passed * width;
    return {(const uint32_t *)(at & ~(uintptr_t)3) + bit / 32, (uint32_t)(bit % 32), width,
            width == 32 ? UINT32_MAX : (1u << width) - 1, run.value};
}

__device__ static inline uint32_t hybrid_value(const struct hybrid_values &values, uint32_t i) {
    const uint32_t bit = values.shift + i * values.width;
    const uint32_t *word = values.words + bit / 32;
    return ((uint32_t)(((uint64_t)word[1] << 32 | word[0]) >> bit % 32) & values.mask) | values.value;
}

/* A warp: the first `count` values of tile `t`, value i to write(i, take(i, value)). Some are taken, without
 * a branch and maybe twice, before they are written: what `take` reads is waited for once for them. */
template <typename Take, typename Write>
__device__ static inline void hybrid_expand(const struct decode_work &work, int64_t t, const struct hybrid &h,
                                            int32_t count, Take take, Write write) {
    constexpr int AT_ONCE = 8;
    const int32_t lane = (int32_t)threadIdx.x % CUDA_WARP;
    uint32_t at = work.runs[t].header;
    uint64_t passed = work.runs[t].passed;
    for (int32_t done = 0; done < count; passed = 0) {
        struct hybrid_run run;
        if (!hybrid_next(h, &at, &run)) /* never: the walk has been here */
            return;
        const uint64_t left = run.count - passed;
        const int32_t n = left < (uint64_t)(count - done) ? (int32_t)left : count - done;
        const struct hybrid_values values = hybrid_values_from(h, run, passed);
        for (int32_t i = lane; i < n; i += AT_ONCE * CUDA_WARP) {
            decltype(take(0, 0u)) taken[AT_ONCE];
            SX_UNROLL
            for (int k = 0; k < AT_ONCE; k++) {
                const int32_t v = i + k * CUDA_WARP < n ? i + k * CUDA_WARP : n - 1;
                taken[k] = take(done + v, hybrid_value(values, (uint32_t)v));
            }
            SX_UNROLL
            for (int k = 0; k < AT_ONCE; k++)
                if (i + k * CUDA_WARP < n)
                    write(done + i + k * CUDA_WARP, taken[k]);
        }
        done += n;
    }
}

/* ---- tiles ---- */

/* Rows of a tile, and the values that they have. */
struct tile_rows {
    int32_t page;
    int64_t first_row; /* in the decode */
    int32_t n;
    const uint16_t *in_tile; /* NULL: the page has no levels */
    const uint8_t *valid;
    int64_t first_value; /* in the page */
};

__device__ static inline struct tile_rows tile_rows_of(const struct decode_work &work, int64_t t) {
    const struct decode_tile tile = work.tiles[t];
    const struct decode_page &page = work.pages[tile.page];
    struct tile_rows rows = {};
    const int32_t left = page.n_rows - tile.first;
    rows.page = tile.page;
    rows.first_row = page.first_row + tile.first;
    rows.n = left < DECODE_TILE ? left : DECODE_TILE;
    rows.first_value = tile.first;
    if (page.level_kind != DECODE_NO_LEVELS) {
        rows.in_tile = work.in_tile + rows.first_row;
        rows.valid = work.valid + rows.first_row;
        rows.first_value = work.tile_values[t];
    }
    return rows;
}

/* Value of row i of the tile, or -1 where it is null. */
__device__ static inline int64_t tile_value_of(const struct tile_rows &rows, int32_t i) {
    if (!rows.in_tile)
        return rows.first_value + i;
    return rows.valid[i] ? rows.first_value + rows.in_tile[i] : -1;
}

/* Rows of the tile that are wanted: [*from, *to), counted in the tile. False: none. */
__device__ static inline bool tile_wanted(const struct decode_work &work, int64_t t,
                                          const struct tile_rows &rows, int32_t *from, int32_t *to) {
    const struct decode_page &page = work.pages[rows.page];
    const int32_t first = work.tiles[t].first;
    *from = page.first_wanted > first ? page.first_wanted - first : 0;
    *to = page.end_wanted - first < rows.n ? page.end_wanted - first : rows.n;
    return *from < *to && (!work.selection || work.selected[t].begin < work.selected[t].end);
}

/* Whether the values of tile `t` are of no use: only where values and rows are the same. */
__device__ static inline bool tile_is_idle(const struct decode_work &work, int64_t t) {
    int32_t from, to;
    return work.pages[work.tiles[t].page].level_kind == DECODE_NO_LEVELS &&
           !tile_wanted(work, t, tile_rows_of(work, t), &from, &to);
}

/* One row of the column. */
template <typename Each>
__device__ static inline void take_row(const struct decode_work &work, const struct tile_rows &rows,
                                       int32_t i, int64_t out_row, Each each) {
    const int64_t value = tile_value_of(rows, i);
    if (work.out_valid)
        work.out_valid[out_row] = value >= 0;
    each(rows.page, out_row, value);
}

/* A block per tile: each(page number, row of the column, value or -1) for all rows of pages whose source is
 * in `sources`, a mask of bits. */
template <typename Each>
__device__ static inline void each_row(const struct decode_work &work, uint32_t sources, Each each) {
    for (int64_t t = blockIdx.x; t < work.n_tiles; t += gridDim.x) {
        const int32_t p = work.tiles[t].page;
        const struct decode_page &page = work.pages[p];
        int32_t from, to;
        if (!(sources >> page.source & 1) || work.states[p].is_bad)
            continue;
        const struct tile_rows rows = tile_rows_of(work, t);
        const int64_t out_row = page.out_row + work.tiles[t].first;
        if (!tile_wanted(work, t, rows, &from, &to))
            continue;
        if (!work.selection)
            for (int32_t i = from + (int32_t)threadIdx.x; i < to; i += (int32_t)blockDim.x)
                take_row(work, rows, i, out_row + i, each);
        else
            for (int32_t s = work.selected[t].begin + (int32_t)threadIdx.x; s < work.selected[t].end;
                 s += (int32_t)blockDim.x)
                take_row(work, rows, (int32_t)(work.selection[s] - out_row), s, each);
    }
}

/* The same for values: each(page, value). */
template <typename Each>
__device__ static inline void each_value(const struct decode_work &work, enum decode_source source,
                                         Each each) {
    for (int64_t t = blockIdx.x; t < work.n_tiles; t += gridDim.x) {
        const struct decode_tile tile = work.tiles[t];
        const struct decode_page &page = work.pages[tile.page];
        if (page.source != source || work.states[tile.page].is_bad || tile_is_idle(work, t))
            continue;
        const int32_t n = work.states[tile.page].n_values;
        const int32_t end = n - tile.first < DECODE_TILE ? n : tile.first + DECODE_TILE;
        for (int32_t v = tile.first + (int32_t)threadIdx.x; v < end; v += (int32_t)blockDim.x)
            each(page, (int64_t)v);
    }
}

/* Grids with a row of blocks for each work, as long as the longest one's: a block a page, a block a tile, a
 * thread or a warp a tile. */
static inline dim3 page_grid(const struct decode_works *works) {
    int32_t pages = 1;
    for (int32_t i = 0; i < works->n; i++)
        pages = works->of[i].n_pages > pages ? works->of[i].n_pages : pages;
    return dim3((unsigned)pages, (unsigned)works->n);
}
static inline dim3 tile_grid(const struct decode_works *works, int threads_a_tile = CUDA_THREADS) {
    int64_t tiles = 1;
    for (int32_t i = 0; i < works->n; i++)
        tiles = works->of[i].n_tiles > tiles ? works->of[i].n_tiles : tiles;
    return dim3(cuda_blocks(tiles * threads_a_tile), (unsigned)works->n);
}
/* Number of this warp in its row of the grid, and of its next tile. */
__device__ static inline int64_t grid_warp() {
    return cuda_thread() / CUDA_WARP;
}
__device__ static inline int64_t grid_warps() {
    return cuda_threads() / CUDA_WARP;
}

#endif
