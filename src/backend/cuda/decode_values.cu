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
        hybrid_expand(
            work, t, hybrid_of(page), left < DECODE_TILE ? left : DECODE_TILE,
            [](int32_t, uint32_t value) { return (T)value; }, [=](int32_t i, T value) { out[i] = value; });
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

/* The codes themselves, which are of T then, or the entries. What is no entry's code becomes another's: the
 * page is bad then. */
template <typename T, bool AS_CODES> struct code_taker {
    const T *entries; /* of the page's dictionary */
    uint32_t base;    /* where they begin in the column's */
    uint32_t last;

    __device__ T operator()(uint32_t code) const {
        const uint32_t entry = code < last ? code : last;
        if constexpr (AS_CODES)
            return base + entry;
        else
            return entries[entry];
    }
};

/* Of a dictionary without entries what is taken means nothing, but is there. */
template <typename T, bool AS_CODES>
__device__ static inline struct code_taker<T, AS_CODES> taker_of(const struct decode_work &work,
                                                                 const struct decode_page &page) {
    if (page.n_entries <= 0)
        return {(const T *)work.out, 0, 0};
    return {(const T *)work.entries + page.code_base, page.code_base, (uint32_t)(page.n_entries - 1)};
}

template <typename T, bool AS_CODES>
__global__ void take_codes(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    each_row(work, 1u << DECODE_CODES, [=](int32_t p, int64_t row, int64_t v) {
        const struct decode_page &page = work.pages[p];
        const uint32_t code = v >= 0 ? work.codes[page.first_row + v] : 0;
        T value{};
        if (v >= 0 && code >= page.n_entries)
            page_fault(work, p, DECODE_CODE, code, page.n_entries);
        else if (v >= 0)
            value = taker_of<T, AS_CODES>(work, page)(code);
        ((T *)work.out)[row] = value;
    });
}

/* The same from runs, where each value is a row: codes go through registers, or, with a selection, through
 * shared memory. A warp a tile. */
template <typename T, bool AS_CODES>
__global__ void take_runs(const __grid_constant__ struct decode_works works) {
    __shared__ uint32_t codes_of_warps[CUDA_THREADS / CUDA_WARP][DECODE_TILE];
    const struct decode_work work = works.of[blockIdx.y];
    uint32_t *codes = codes_of_warps[threadIdx.x / CUDA_WARP];
    T *out = (T *)work.out;
    for (int64_t t = grid_warp(); t < work.n_tiles; t += grid_warps()) {
        const int32_t p = work.tiles[t].page;
        const struct decode_page &page = work.pages[p];
        int32_t from, to;
        if (page.source != DECODE_CODES || work.states[p].is_bad ||
            !tile_wanted(work, t, tile_rows_of(work, t), &from, &to))
            continue;
        const int64_t out_row = page.out_row + work.tiles[t].first;
        const struct code_taker<T, AS_CODES> taker = taker_of<T, AS_CODES>(work, page);
        uint32_t greatest = 0;
        if (!work.selection) {
            hybrid_expand(
                work, t, hybrid_of(page), to,
                [&](int32_t i, uint32_t code) {
                    greatest = i >= from && code > greatest ? code : greatest;
                    return taker(code);
                },
                [=](int32_t i, T value) {
                    if (i >= from)
                        out[out_row + i] = value;
                });
        } else {
            hybrid_expand(
                work, t, hybrid_of(page), to, [](int32_t, uint32_t code) { return code; },
                [=](int32_t i, uint32_t code) { codes[i] = code; });
            __syncwarp();
            const struct decode_selected selected = work.selected[t];
            for (int32_t s = selected.begin + (int32_t)warp_lane(); s < selected.end; s += CUDA_WARP) {
                const uint32_t code = codes[work.selection[s] - out_row];
                greatest = code > greatest ? code : greatest;
                out[s] = taker(code);
            }
            __syncwarp();
        }
        if (greatest >= page.n_entries)
            page_fault(work, p, DECODE_CODE, greatest, page.n_entries);
    }
}

/* ---- values that are there ---- */

__device__ static inline int32_t piece_of(const struct decode_pieces &pieces, int32_t row) {
    int32_t piece = 0;
    SX_UNROLL
    for (int32_t step = DECODE_PIECES / 2; step > 0; step /= 2)
        if (piece + step < pieces.n && pieces.begins[piece + step] <= row)
            piece += step;
    return piece;
}

/* A row of blocks for each column. */
template <typename T> __global__ void take_pieces(const __grid_constant__ struct decode_pieces_list list) {
    const struct decode_pieces &pieces = list.of[blockIdx.y];
    T *out = (T *)pieces.out;
    for (int64_t i = cuda_thread(); i < pieces.n_rows; i += cuda_threads()) {
        const int32_t row = pieces.selection ? pieces.selection[i] : (int32_t)i;
        const int32_t piece = piece_of(pieces, row);
        out[i] = ((const T *)pieces.values[piece])[row - pieces.begins[piece]];
    }
}

template <typename T>
static void expand(cudaStream_t stream, const struct decode_works *works, enum decode_source source) {
    SX_LAUNCH(expand_runs<T>, tile_grid(works, CUDA_WARP), CUDA_THREADS, 0, stream, *works, source);
}

static void find_runs(cudaStream_t stream, const struct decode_works *works, enum decode_source source) {
    SX_LAUNCH(walk_runs, page_grid(works), CUDA_WARP, 0, stream, *works, source);
}

template <typename T, bool AS_CODES>
static void take(cudaStream_t stream, const struct decode_works *works, bool from_runs) {
    if (from_runs)
        SX_LAUNCH((take_runs<T, AS_CODES>), tile_grid(works, CUDA_WARP), CUDA_THREADS, 0, stream, *works);
    else
        SX_LAUNCH((take_codes<T, AS_CODES>), tile_grid(works), CUDA_THREADS, 0, stream, *works);
}

extern "C" {
void cuda_decode_bits(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(stage_bits, tile_grid(works), CUDA_THREADS, 0, stream, *works);
}
void cuda_decode_rle_bits(cudaStream_t stream, const struct decode_works *works) {
    find_runs(stream, works, DECODE_RLE_BITS);
    expand<uint8_t>(stream, works, DECODE_RLE_BITS);
}
void cuda_decode_split(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(stage_split, tile_grid(works), CUDA_THREADS, 0, stream, *works);
}
void cuda_decode_find_codes(cudaStream_t stream, const struct decode_works *works) {
    find_runs(stream, works, DECODE_CODES);
}
void cuda_decode_codes(cudaStream_t stream, const struct decode_works *works) {
    expand<uint32_t>(stream, works, DECODE_CODES);
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

#define FOR_EACH_WIDTH(X) \
    X(1, uint8_t)         \
    X(2, uint16_t)        \
    X(4, uint32_t)        \
    X(8, uint64_t)        \
    X(16, word16)

void cuda_decode_take(cudaStream_t stream, const struct decode_works *works, uint32_t value_bytes,
                      bool from_runs) {
    switch (value_bytes) {
    case 0: take<uint32_t, true>(stream, works, from_runs); break;
#define TAKE(bytes, type) \
    case bytes: take<type, false>(stream, works, from_runs); break;
        FOR_EACH_WIDTH(TAKE)
#undef TAKE
    default: break;
    }
}

void cuda_decode_take_pieces(cudaStream_t stream, const struct decode_pieces_list *list,
                             uint32_t value_bytes) {
    int64_t rows = 0;
    for (int32_t i = 0; i < list->n; i++)
        rows = list->of[i].n_rows > rows ? list->of[i].n_rows : rows;
    const dim3 blocks(cuda_blocks(rows), (unsigned)list->n);
    switch (value_bytes) {
#define TAKE(bytes, type) \
    case bytes: SX_LAUNCH(take_pieces<type>, blocks, CUDA_THREADS, 0, stream, *list); break;
        FOR_EACH_WIDTH(TAKE)
#undef TAKE
    default: break;
    }
}
#undef FOR_EACH_WIDTH
}
