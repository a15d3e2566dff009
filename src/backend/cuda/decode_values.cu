/* Values of fixed length: to stored values side by side, where they are not that already, and from there to
 * the column's. A value is read and written once or twice: 2 to 4 times its width moves. */
#include "backend/cuda/block.h"
#include "backend/cuda/decode_kernel.h"
#include "tensor/semantics_stored.h"

/* ---- to stored values ---- */

__global__ void stage_bits(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    each_value(work, DECODE_BITS, [=](const struct decode_page &page, int64_t v) {
        work.staged[page.first_row + v] = page.body[v / 8] >> (v % 8) & 1;
    });
}

/* Byte b of value i is at b * values + i. */
__global__ void stage_split(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    each_value(work, DECODE_SPLIT, [=](const struct decode_page &page, int64_t v) {
        uint8_t *out = work.staged + (page.first_row + v) * work.stored_bytes;
        for (uint32_t b = 0; b < work.stored_bytes; b++)
            out[b] = page.body[(int64_t)b * page.n_there + v];
    });
}

/* RLE booleans stand behind their length. */
__device__ static inline struct hybrid hybrid_of(const struct decode_page &page) {
    return {page.body + page.text_at, page.body_bytes - page.text_at, page.code_width};
}

/* A block of one warp per page. */
__global__ void walk_runs(const __grid_constant__ struct decode_works works, enum decode_source source) {
    const struct decode_work work = works.of[blockIdx.y];
    const int32_t p = (int32_t)blockIdx.x;
    if (p < work.n_pages && work.pages[p].source == source && !work.states[p].is_bad)
        hybrid_walk(work, p, hybrid_of(work.pages[p]), work.states[p].n_values, DECODE_TOO_FEW);
}

/* T: of codes, or of staged bits. */
template <typename T>
__global__ void expand_runs(const __grid_constant__ struct decode_works works, enum decode_source source) {
    const struct decode_work work = works.of[blockIdx.y];
    T *all = source == DECODE_CODES ? (T *)work.codes : (T *)work.staged;
    for (int64_t t = grid_warp(); t < work.n_tiles; t += grid_warps()) {
        const struct decode_tile tile = work.tiles[t];
        const struct decode_page &page = work.pages[tile.page];
        const int32_t left = work.states[tile.page].n_values - tile.first;
        if (page.source != source || work.states[tile.page].is_bad || left <= 0 || tile_is_idle(work, t))
            continue;
        T *out = all + page.first_row + tile.first;
        hybrid_expand(work, t, hybrid_of(page), left < DECODE_TILE ? left : DECODE_TILE,
                      [=](int64_t i, uint32_t value) { out[i] = (T)value; });
    }
}

/* ---- to the column's values ---- */

#define FIXED_SOURCES                                                                      \
    (1u << DECODE_PLAIN | 1u << DECODE_BITS | 1u << DECODE_RLE_BITS | 1u << DECODE_SPLIT | \
     1u << DECODE_DELTA | 1u << DECODE_FRONT_CODED)

/* `word`: type that stored values are read as, whatever their address. */
#define LOADER(name, type, word)                                                                \
    struct load_##name {                                                                        \
        typedef type value;                                                                     \
        __device__ static bool load(const uint8_t *stored, uint32_t stored_bytes, value *out) { \
            if (sizeof(word) == 1)                                                              \
                return sx_stored_##name(stored, stored_bytes, out);                             \
            const word whole = load_word(stored, word());                                       \
            return sx_stored_##name((const uint8_t *)&whole, stored_bytes, out);                \
        }                                                                                       \
    };
DECODE_CONVERSION_LIST(LOADER)
#undef LOADER

template <typename L>
__global__ void convert(const __grid_constant__ struct decode_works works, enum decode_problem problem) {
    const struct decode_work work = works.of[blockIdx.y];
    each_row(work, FIXED_SOURCES, [=](int32_t p, int64_t row, int64_t v) {
        typename L::value value = 0;
        const uint8_t *stored = work.pages[p].stored + v * work.stored_bytes;
        if (v >= 0 && !L::load(stored, work.stored_bytes, &value))
            page_fault(work, p, problem);
        ((typename L::value *)work.out)[row] = value;
    });
}

/* ---- dictionary codes ---- */

struct word16 {
    uint64_t low, high;
};

/* The codes themselves, or the entries. */
template <typename T>
__global__ void take_codes(const __grid_constant__ struct decode_works works, bool as_codes) {
    const struct decode_work work = works.of[blockIdx.y];
    const T *entries = (const T *)work.entries;
    each_row(work, 1u << DECODE_CODES, [=](int32_t p, int64_t row, int64_t v) {
        const struct decode_page &page = work.pages[p];
        uint64_t code = v >= 0 ? work.codes[page.first_row + v] : 0;
        const bool is_bad = v >= 0 && code >= (uint64_t)page.n_entries;
        T *out = (T *)work.out + row;
        if (is_bad)
            page_fault(work, p, DECODE_CODE, code, page.n_entries);
        code = v < 0 || is_bad ? 0 : code + page.code_base;
        if (as_codes)
            *(uint32_t *)out = (uint32_t)code;
        else
            *out = v >= 0 && !is_bad ? entries[code] : T{};
    });
}

template <typename T>
static void decode_runs(cudaStream_t stream, const struct decode_works *works, enum decode_source source) {
    SX_LAUNCH(walk_runs, page_grid(works), CUDA_WARP, 0, stream, *works, source);
    SX_LAUNCH(expand_runs<T>, tile_grid(works, CUDA_WARP), CUDA_THREADS, 0, stream, *works, source);
}

extern "C" {
void cuda_decode_bits(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(stage_bits, tile_grid(works), CUDA_THREADS, 0, stream, *works);
}
void cuda_decode_rle_bits(cudaStream_t stream, const struct decode_works *works) {
    decode_runs<uint8_t>(stream, works, DECODE_RLE_BITS);
}
void cuda_decode_split(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(stage_split, tile_grid(works), CUDA_THREADS, 0, stream, *works);
}
void cuda_decode_codes(cudaStream_t stream, const struct decode_works *works) {
    decode_runs<uint32_t>(stream, works, DECODE_CODES);
}

void cuda_decode_convert(cudaStream_t stream, const struct decode_works *works,
                         enum decode_conversion conversion) {
    const enum decode_problem problem = conversion == DECODE_millis ? DECODE_MILLIS : DECODE_CONVERSION;
    switch (conversion) {
#define CONVERT(name, type, word)                                                                    \
    case DECODE_##name:                                                                              \
        SX_LAUNCH(convert<load_##name>, tile_grid(works), CUDA_THREADS, 0, stream, *works, problem); \
        break;
        DECODE_CONVERSION_LIST(CONVERT)
#undef CONVERT
    default: break;
    }
}

void cuda_decode_take_codes(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(take_codes<uint32_t>, tile_grid(works), CUDA_THREADS, 0, stream, *works, true);
}
void cuda_decode_take_entries(cudaStream_t stream, const struct decode_works *works, uint32_t value_bytes) {
    switch (value_bytes) {
#define TAKE(bytes, type) \
    case bytes: SX_LAUNCH(take_codes<type>, tile_grid(works), CUDA_THREADS, 0, stream, *works, false); break;
        TAKE(1, uint8_t)
        TAKE(2, uint16_t)
        TAKE(4, uint32_t)
        TAKE(8, uint64_t)
        TAKE(16, word16)
#undef TAKE
    default: break;
    }
}
}
