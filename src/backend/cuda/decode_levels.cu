/* Definition levels to validity, and to where each row's value is.
 * Walks are of one warp a page, in blocks of their own so that pages spread over the processors; they look
 * at run headers only (in the worst case one a byte, mostly one for 500 values). All else is parallel by
 * tiles and moves 4 bytes a row. */
#include "backend/cuda/decode_kernel.h"

__device__ static inline struct hybrid levels_of(const struct decode_page &page) {
    return {page.levels, page.level_bytes, 1};
}

__global__ void walk_levels(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    if ((int32_t)blockIdx.x >= work.n_pages)
        return;
    const struct decode_page &page = work.pages[blockIdx.x];
    if (page.level_kind == DECODE_HYBRID_LEVELS && !work.states[blockIdx.x].is_bad)
        hybrid_walk(work, (int32_t)blockIdx.x, levels_of(page), page.n_rows, DECODE_LEVELS);
}

/* A warp per tile: values in front of each row, in the tile. */
__device__ static inline void number_values(const struct decode_work &work, int64_t t,
                                            const struct tile_rows &rows) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    int32_t values = 0;
    for (int32_t i = lane; i - lane < rows.n; i += CUDA_WARP) {
        const unsigned ballot = __ballot_sync(0xffffffffu, i < rows.n && rows.valid[i]);
        if (i < rows.n)
            work.in_tile[rows.first_row + i] = (uint16_t)(values + __popc(ballot & ((1u << lane) - 1)));
        values += __popc(ballot);
    }
    if (lane == 0)
        work.tile_values[t] = values;
}

__global__ void expand_levels(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    const int lane = (int)threadIdx.x % CUDA_WARP;
    for (int64_t t = grid_warp(); t < work.n_tiles; t += grid_warps()) {
        const struct decode_tile tile = work.tiles[t];
        const struct decode_page &page = work.pages[tile.page];
        if (page.level_kind == DECODE_NO_LEVELS || work.states[tile.page].is_bad)
            continue;
        const struct tile_rows rows = tile_rows_of(work, t);
        uint8_t *valid = work.valid + rows.first_row;
        if (page.level_kind == DECODE_HYBRID_LEVELS)
            hybrid_expand(
                work, t, levels_of(page), rows.n, [](int32_t, uint32_t level) { return (uint8_t)level; },
                [=](int32_t i, uint8_t level) { valid[i] = level; });
        else
            for (int32_t i = lane; i < rows.n; i += CUDA_WARP)
                valid[i] = page.levels[(tile.first + i) / 8] >> (7 - (tile.first + i) % 8) & 1;
        __syncwarp();
        number_values(work, t, rows);
    }
}

/* Whether the page has the values that its rows need, as far as that is known before they are decoded. */
__device__ static inline void check_values(const struct decode_work &work, int32_t p, int32_t n_values) {
    const struct decode_page &page = work.pages[p];
    const bool is_delta = page.source == DECODE_DELTA || page.source == DECODE_LENGTHS;
    const int n_deltas = page.source == DECODE_FRONT_CODED ? 2 : is_delta ? 1 : 0;
    if (page.n_there >= 0 && n_values > page.n_there)
        page_fault(work, p, DECODE_TOO_FEW, (uint64_t)page.n_there, n_values);
    for (int d = 0; d < n_deltas; d++)
        if (n_values > page.deltas[d].n_there)
            page_fault(work, p, (enum decode_problem)page.deltas[d].problem);
    if (page.source == DECODE_CODES && n_values > 0 && page.n_entries < 0)
        page_fault(work, p, DECODE_NO_DICTIONARY);
}

/* One thread a page. */
__global__ void sum_values(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    const int32_t p = (int32_t)blockIdx.x;
    if (p >= work.n_pages || work.states[p].is_bad)
        return;
    const struct decode_page &page = work.pages[p];
    int32_t values = page.n_rows;
    if (page.level_kind != DECODE_NO_LEVELS) {
        values = 0;
        for (int32_t t = page.first_tile, row = 0; row < page.n_rows; t++, row += DECODE_TILE) {
            const int32_t own = work.tile_values[t];
            work.tile_values[t] = values;
            values += own;
            if (page.n_rows - row <= DECODE_TILE)
                break;
        }
        if (values < page.n_rows)
            atomicAdd((unsigned long long *)work.n_null, (unsigned long long)(page.n_rows - values));
    }
    work.states[p].n_values = values;
    check_values(work, p, values);
}

extern "C" {
void cuda_decode_levels(cudaStream_t stream, const struct decode_works *works) {
    bool any_levels = false;
    for (int32_t i = 0; i < works->n; i++)
        any_levels |= works->of[i].in_tile != nullptr;
    if (any_levels) {
        SX_LAUNCH(walk_levels, page_grid(works), CUDA_WARP, 0, stream, *works);
        SX_LAUNCH(expand_levels, tile_grid(works, CUDA_WARP), CUDA_THREADS, 0, stream, *works);
    }
    SX_LAUNCH(sum_values, page_grid(works), 1, 0, stream, *works);
}
}
