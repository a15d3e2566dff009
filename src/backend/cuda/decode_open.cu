/* Makes pages readable: where levels and values are, and the few bytes in front of values that tell how they
 * are stored. A warp a page, which reads some bytes; of DELTA_BINARY_PACKED the header of each block, one
 * after another, with the widths of 32 miniblocks at a time. */
#include "backend/cuda/block.h"
#include "backend/cuda/decode_kernel.h"

/* ---- DELTA_BINARY_PACKED ---- */

enum { DELTA_GROUP = 32, MAX_DELTA_BITS = 64, MAX_CODE_BITS = 32 };

struct delta_walk {
    const uint8_t *bytes;
    uint64_t size, at;
    uint64_t n_miniblocks, miniblock_values; /* per block; per miniblock */
    uint64_t widths, min_delta;              /* of the block; where its widths are */
    uint64_t left;                           /* values that are still to come */
    bool is_whole;                           /* all listed miniblocks are */
    uint32_t head[2], head_bytes; /* the lane's bytes of the block's first 64, and how many lie in front
                                   * of the widths */
    uint64_t asked;               /* bytes that are on their way to the cache */
    int64_t n_listed;             /* miniblocks */
};

/* A warp: blocks are read one after another, each of which waits for memory, so bytes are asked for some
 * blocks of `block_bytes` before. */
__device__ __forceinline__ void ask_ahead(struct delta_walk *walk, uint64_t block_bytes) {
    constexpr uint64_t LINE = 128, BLOCKS = 4, WARP = CUDA_WARP, LEAST = WARP * LINE;
    const uint64_t wanted = BLOCKS * block_bytes > LEAST ? BLOCKS * block_bytes : LEAST;
    const uint64_t left = walk->size - walk->at, end = walk->at + (wanted < left ? wanted : left);
    for (uint64_t line = walk->asked + threadIdx.x % WARP * LINE; line < end; line += WARP * LINE)
        SX_PREFETCH(walk->bytes + line);
    walk->asked = end > walk->asked ? end : walk->asked;
}

__device__ static inline enum decode_problem start_deltas(struct delta_walk *walk, uint64_t *out_first) {
    uint64_t block, count;
    if (!sx_stored_varint(walk->bytes, walk->size, &walk->at, &block) ||
        !sx_stored_varint(walk->bytes, walk->size, &walk->at, &walk->n_miniblocks) ||
        !sx_stored_varint(walk->bytes, walk->size, &walk->at, &count) ||
        !sx_stored_varint(walk->bytes, walk->size, &walk->at, out_first))
        return DECODE_DELTA_HEADER;
    const uint64_t n = walk->n_miniblocks;
    if (block == 0 || block > UINT32_MAX || n == 0 || n > block || block % n || block / n % DELTA_GROUP)
        return DECODE_DELTA_SIZES;
    *out_first = sx_stored_zigzag(*out_first);
    walk->miniblock_values = block / n;
    walk->left = count;
    return DECODE_GOOD;
}

/* A warp: the bytes of a block's header, all at once. */
__device__ static inline bool next_block(struct delta_walk *walk) {
    enum { MOST_BYTES = 10 }; /* of a number of 64 bits */
    enum { MORE = 0x80 };     /* the bit of all of its bytes but the last */
    const uint64_t lane = threadIdx.x % CUDA_WARP, room = walk->size - walk->at;
    const uint8_t *block = walk->bytes + walk->at;
    uint64_t min_delta = 0;
    walk->head[0] = lane < room ? block[lane] : 0;
    walk->head[1] = lane + CUDA_WARP < room ? block[lane + CUDA_WARP] : 0;
    const uint32_t n = (uint32_t)__ffs((int)~__ballot_sync(ALL_LANES, (walk->head[0] & MORE) != 0));
    if (n == 0 || n > MOST_BYTES || room < n || room - n < walk->n_miniblocks)
        return false;
    if (n == MOST_BYTES && __shfl_sync(ALL_LANES, walk->head[0], MOST_BYTES - 1) > 1)
        return false;
    for (uint32_t b = 0; b < n; b++)
        min_delta |= (uint64_t)(__shfl_sync(ALL_LANES, walk->head[0], (int)b) & (MORE - 1)) << (7 * b);
    walk->min_delta = sx_stored_zigzag(min_delta);
    walk->head_bytes = n;
    walk->widths = walk->at + n;
    walk->at = walk->widths + walk->n_miniblocks;
    return true;
}

/* A warp: the width of the block's miniblock number `first` and the lane's. */
__device__ static inline uint32_t width_of(const struct delta_walk &walk, uint64_t first, bool exists) {
    const uint32_t lane = threadIdx.x % CUDA_WARP, at = walk.head_bytes + lane;
    if (first > 0)
        return exists ? walk.bytes[walk.widths + first + lane] : 0;
    const uint32_t low = __shfl_sync(ALL_LANES, walk.head[0], (int)(at % CUDA_WARP));
    const uint32_t high = __shfl_sync(ALL_LANES, walk.head[1], (int)(at % CUDA_WARP));
    return !exists ? 0 : at < CUDA_WARP ? low : high;
}

/* Of `wanted` deltas, how many are in `bytes`: whole groups, but for the last one. */
__device__ static inline uint64_t deltas_in(uint64_t bytes, uint32_t width, uint64_t wanted) {
    const uint64_t group_bytes = (uint64_t)DELTA_GROUP / 8 * width;
    if (bytes * 8 >= wanted * width)
        return wanted;
    return bytes / group_bytes * DELTA_GROUP;
}

/* Whether the page's rows need no more. */
__device__ static inline bool deltas_are_enough(const struct delta_walk &walk,
                                                const struct decode_deltas &out, int64_t n_rows) {
    return !walk.is_whole || out.n_there >= n_rows;
}

/* warp_inclusive of miniblocks' bytes, of 32 bits where they have so many values at most. */
__device__ static inline uint64_t inclusive_bytes(uint64_t bytes, uint64_t miniblock_values) {
    constexpr uint64_t MOST_VALUES = 1 << 20;
    return miniblock_values <= MOST_VALUES ? warp_inclusive((uint32_t)bytes) : warp_inclusive(bytes);
}

/* A warp: the block's miniblocks from number `first` on, one a lane. False: one that counts has a width that
 * can't be; all count where `reads_all`, else those that the rows need. */
__device__ static inline bool take_miniblocks(const struct decode_work &work, struct delta_walk *walk,
                                              uint64_t first, int64_t n_rows, int64_t first_miniblock,
                                              bool reads_all, struct decode_deltas *out) {
    constexpr uint32_t ALL = 0xffffffffu;
    const uint64_t lane = threadIdx.x % CUDA_WARP, before = lane * walk->miniblock_values;
    const bool exists = first + lane < walk->n_miniblocks && before < walk->left;
    const uint32_t width = width_of(*walk, first, exists);
    const uint32_t bad = __ballot_sync(ALL, width > MAX_DELTA_BITS);
    const uint64_t stored = width > MAX_DELTA_BITS ? 0 : walk->miniblock_values / 8 * width;
    const uint64_t inclusive = inclusive_bytes(stored, walk->miniblock_values);
    const uint64_t room = walk->size - walk->at;
    const uint64_t skipped = inclusive - stored < room ? inclusive - stored : room;
    const uint64_t bytes = stored < room - skipped ? stored : room - skipped;
    const uint64_t left = exists ? walk->left - before : 0;
    const uint64_t wanted = left < walk->miniblock_values ? left : walk->miniblock_values;
    const uint64_t there = exists && width <= MAX_DELTA_BITS ? deltas_in(bytes, width, wanted) : 0;
    const uint32_t cut = __ballot_sync(ALL, exists && there < wanted) & ~bad;
    /* lanes in front of the first bad one, up to the first one that is cut off, while rows need them */
    const uint32_t n_good = bad ? (uint32_t)__ffs((int)bad) - 1 : (uint32_t)CUDA_WARP;
    const uint32_t n_whole = cut ? (uint32_t)__ffs((int)cut) : (uint32_t)CUDA_WARP;
    const bool is_needed = walk->is_whole && out->n_there + (int64_t)before < n_rows && lane < n_whole;
    const uint32_t needed = __ballot_sync(ALL, exists && is_needed);
    const uint32_t listed = needed & (n_good < CUDA_WARP ? (1u << n_good) - 1 : ALL);
    if (listed >> lane & 1)
        work.miniblocks[first_miniblock + walk->n_listed + (int64_t)lane] = {
            walk->min_delta, (uint32_t)(walk->at + skipped), width};
    const uint32_t sum = __reduce_add_sync(ALL, listed >> lane & 1 ? (uint32_t)there : 0);
    const uint64_t total = __shfl_sync(ALL, inclusive, CUDA_WARP - 1);
    const bool is_bad = bad && (reads_all || (needed >> n_good & 1));
    out->n_there += (int64_t)sum;
    walk->n_listed += __popc(listed);
    if (is_bad && (needed >> n_good & 1))
        out->problem = DECODE_DELTA_WIDTH;
    if (listed & cut) {
        walk->is_whole = false;
        out->problem = DECODE_DELTA_BLOCK;
    }
    walk->at += total < room ? total : room;
    const uint64_t behind = walk->n_miniblocks - first;
    const uint64_t taken = walk->miniblock_values * (behind < CUDA_WARP ? behind : (uint64_t)CUDA_WARP);
    walk->left -= walk->left < taken ? walk->left : taken;
    return !is_bad;
}

/* A warp: lists the miniblocks that the page's rows need. With out_end also finds where all values end: then
 * damage is a problem at once, else only to those who need the values behind it. */
__device__ __forceinline__ enum decode_problem open_deltas(const struct decode_work &work,
                                                           struct decode_page &page, int d, uint64_t at,
                                                           uint64_t *out_end) {
    struct decode_deltas *out = &page.deltas[d];
    struct delta_walk walk = {page.body, page.body_bytes, at, 0, 0, 0, 0, 0, true, {}, 0, at, 0};
    uint64_t first = 0;
    ask_ahead(&walk, 0);
    const enum decode_problem problem = start_deltas(&walk, &first);
    if (problem != DECODE_GOOD)
        return problem;
    *out = {first, walk.left > 0, (uint32_t)walk.miniblock_values, DECODE_DELTA_MORE};
    walk.left -= walk.left > 0;
    while (walk.left > 0 && (out_end || !deltas_are_enough(walk, *out, page.n_rows))) {
        const uint64_t begin = walk.at;
        if (!next_block(&walk)) {
            out->problem = walk.is_whole ? (uint32_t)DECODE_DELTA_BLOCK : out->problem;
            return out_end ? DECODE_DELTA_BLOCK : DECODE_GOOD;
        }
        for (uint64_t m = 0; m < walk.n_miniblocks && walk.left > 0; m += CUDA_WARP)
            if (!take_miniblocks(work, &walk, m, page.n_rows, page.first_miniblock[d], out_end != nullptr,
                                 out))
                return out_end ? DECODE_DELTA_WIDTH : DECODE_GOOD;
        ask_ahead(&walk, walk.at - begin);
    }
    if (out_end)
        *out_end = walk.at;
    return DECODE_GOOD;
}

/* Strings' bytes stand behind their lengths. */
__device__ __forceinline__ enum decode_problem open_lengths(const struct decode_work &work,
                                                            struct decode_page *page, int n_deltas) {
    uint64_t at = 0;
    SX_UNROLL
    for (int d = 0; d < n_deltas; d++) {
        const enum decode_problem problem = open_deltas(work, *page, d, at, &at);
        if (problem != DECODE_GOOD)
            return problem;
    }
    page->text_at = (uint32_t)at;
    return DECODE_GOOD;
}

/* ---- the others ---- */

__device__ static inline enum decode_problem open_codes(struct decode_page *page) {
    page->code_width = page->body[0];
    page->text_at = 1;
    return page->code_width > MAX_CODE_BITS ? DECODE_CODE_WIDTH : DECODE_GOOD;
}

__device__ static inline enum decode_problem open_rle_bits(struct decode_page *page) {
    enum { SIZE_BYTES = 4 };
    if (page->body_bytes < SIZE_BYTES)
        return DECODE_RLE_END;
    const uint32_t size = sx_stored_u32(page->body);
    if (size > page->body_bytes - SIZE_BYTES)
        return DECODE_RLE_END;
    page->code_width = 1;
    page->text_at = SIZE_BYTES;
    page->body_bytes = SIZE_BYTES + size;
    return DECODE_GOOD;
}

/* A page without any bytes may have rows: all null. */
__device__ static inline enum decode_problem open_values(const struct decode_work &work,
                                                         struct decode_page *page) {
    const bool is_empty = page->body_bytes == 0;
    switch ((enum decode_source)page->source) {
    case DECODE_BITS: page->n_there = (int64_t)page->body_bytes * 8; return DECODE_GOOD;
    case DECODE_PLAIN: page->n_there = page->body_bytes / work.stored_bytes; return DECODE_GOOD;
    case DECODE_SPLIT:
        page->n_there = page->body_bytes / work.stored_bytes;
        return page->body_bytes % work.stored_bytes ? DECODE_SPLIT_END : DECODE_GOOD;
    case DECODE_RLE_BITS: return is_empty ? DECODE_GOOD : open_rle_bits(page);
    case DECODE_CODES: return is_empty ? DECODE_GOOD : open_codes(page);
    case DECODE_DELTA: return is_empty ? DECODE_GOOD : open_deltas(work, *page, 0, 0, nullptr);
    case DECODE_LENGTHS: return is_empty ? DECODE_GOOD : open_lengths(work, page, 1);
    case DECODE_FRONT_CODED: return is_empty ? DECODE_GOOD : open_lengths(work, page, 2);
    default: return DECODE_GOOD;
    }
}

/* False: they are cut off. */
__device__ static inline bool open_levels(struct decode_page *page) {
    uint32_t behind = 0;
    if (page->level_kind == DECODE_BIT_PACKED_LEVELS) {
        behind = page->level_bytes = ((uint32_t)page->n_rows + 7) / 8;
        page->levels = page->image;
    } else if (page->level_kind == DECODE_HYBRID_LEVELS && !page->levels) {
        enum { SIZE_BYTES = 4 };
        if (page->image_bytes < SIZE_BYTES)
            return false;
        page->level_bytes = sx_stored_u32(page->image);
        page->levels = page->image + SIZE_BYTES;
        if (page->level_bytes > page->image_bytes - SIZE_BYTES)
            return false;
        behind = SIZE_BYTES + page->level_bytes;
    }
    if (behind > page->image_bytes)
        return false;
    page->body = page->image + behind;
    page->body_bytes = page->image_bytes - behind;
    return true;
}

/* A warp. */
__device__ static inline void list_tiles(const struct decode_work &work, int32_t p,
                                         const struct decode_page &page) {
    const int32_t n = DECODE_TILES(page.n_rows);
    for (int32_t i = (int32_t)threadIdx.x; i < n; i += CUDA_WARP)
        work.tiles[page.first_tile + i] = {p, i * DECODE_TILE};
}

/* A block of one warp per page. All lanes do the same but where deltas and tiles are listed. */
__global__ void open_pages(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    const int32_t p = (int32_t)blockIdx.x;
    if (p >= work.n_pages)
        return;
    struct decode_page page = {};
    static_cast<struct decode_page_told &>(page) = work.told[p];
    list_tiles(work, p, page);
    page.n_there = -1;
    page.deltas[0].problem = page.deltas[1].problem = DECODE_DELTA_MORE;
    const bool has_levels = open_levels(&page);
    const enum decode_problem problem = has_levels ? open_values(work, &page) : DECODE_LEVEL_END;
    if (!page.stored) {
        page.stored = page.body;
        if (page.source == DECODE_LENGTHS)
            page.stored += page.text_at;
    }
    if (threadIdx.x != 0)
        return;
    work.pages[p] = page;
    work.states[p] = {0, 0, 0};
    if (problem != DECODE_GOOD)
        page_fault(work, p, problem);
}

/* ---- the selection ---- */

/* First of the entries in [low, high) that is not below `row`; high, where all are. */
__device__ static inline int64_t first_selected(const struct decode_work &work, int64_t low, int64_t high,
                                                int64_t row) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (work.selection[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Works without a selection want nothing. */
__global__ void find_selected(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    for (int64_t t = cuda_thread(); t < work.n_tiles && work.selection; t += cuda_threads()) {
        const struct decode_tile tile = work.tiles[t];
        const struct decode_page &page = work.pages[tile.page];
        const int32_t end = page.n_rows - tile.first > DECODE_TILE ? tile.first + DECODE_TILE : page.n_rows;
        const int32_t from = page.first_wanted > tile.first ? page.first_wanted : tile.first;
        const int32_t to = page.end_wanted < end ? page.end_wanted : end;
        const int64_t begin = first_selected(work, 0, work.n_selected, page.out_row + from);
        const int64_t left = work.n_selected - begin, most = from < to ? to - from : 0;
        work.selected[t] = {
            (int32_t)begin,
            (int32_t)first_selected(work, begin, begin + (left < most ? left : most), page.out_row + to)};
    }
}

extern "C" void cuda_decode_open(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(open_pages, page_grid(works), CUDA_WARP, 0, stream, *works);
    bool any_selection = false;
    for (int32_t i = 0; i < works->n; i++)
        any_selection |= works->of[i].selection != nullptr;
    if (any_selection)
        SX_LAUNCH(find_selected, tile_grid(works, 1), CUDA_THREADS, 0, stream, *works);
}
