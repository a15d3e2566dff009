/* Makes pages readable: where levels and values are, and the few bytes in front of values that tell how they
 * are stored. One thread a page, which reads some bytes; of DELTA_BINARY_PACKED the header of each block. */
#include "backend/cuda/decode_kernel.h"

/* ---- DELTA_BINARY_PACKED ---- */

enum { DELTA_GROUP = 32, MAX_DELTA_BITS = 64, MAX_CODE_BITS = 32 };

struct delta_walk {
    const uint8_t *bytes;
    uint64_t size, at;
    uint64_t n_miniblocks, miniblock_values; /* per block; per miniblock */
    uint64_t miniblock, widths, min_delta;   /* next in the block; where its widths are */
};

__device__ static inline enum decode_problem start_deltas(struct delta_walk *walk, uint64_t *out_count,
                                                          uint64_t *out_first) {
    uint64_t block;
    if (!sx_stored_varint(walk->bytes, walk->size, &walk->at, &block) ||
        !sx_stored_varint(walk->bytes, walk->size, &walk->at, &walk->n_miniblocks) ||
        !sx_stored_varint(walk->bytes, walk->size, &walk->at, out_count) ||
        !sx_stored_varint(walk->bytes, walk->size, &walk->at, out_first))
        return DECODE_DELTA_HEADER;
    const uint64_t n = walk->n_miniblocks;
    if (block == 0 || block > UINT32_MAX || n == 0 || n > block || block % n || block / n % DELTA_GROUP)
        return DECODE_DELTA_SIZES;
    *out_first = sx_stored_zigzag(*out_first);
    walk->miniblock_values = block / n;
    walk->miniblock = n;
    return DECODE_GOOD;
}

__device__ static inline enum decode_problem next_miniblock(struct delta_walk *walk,
                                                            struct decode_miniblock *out,
                                                            uint64_t *out_bytes) {
    if (walk->miniblock == walk->n_miniblocks) {
        uint64_t min_delta;
        if (!sx_stored_varint(walk->bytes, walk->size, &walk->at, &min_delta) ||
            walk->size - walk->at < walk->n_miniblocks)
            return DECODE_DELTA_BLOCK;
        walk->min_delta = sx_stored_zigzag(min_delta);
        walk->widths = walk->at;
        walk->at += walk->n_miniblocks;
        walk->miniblock = 0;
    }
    const uint32_t width = walk->bytes[walk->widths + walk->miniblock++];
    if (width > MAX_DELTA_BITS)
        return DECODE_DELTA_WIDTH;
    const uint64_t wanted = walk->miniblock_values / 8 * width, left = walk->size - walk->at;
    *out = {walk->min_delta, (uint32_t)walk->at, width};
    *out_bytes = wanted < left ? wanted : left;
    walk->at += *out_bytes;
    return DECODE_GOOD;
}

/* Of `wanted` deltas, how many are in `bytes`: whole groups, but for the last one. */
__device__ static inline uint64_t deltas_in(uint64_t bytes, uint32_t width, uint64_t wanted) {
    const uint64_t group_bytes = (uint64_t)DELTA_GROUP / 8 * width;
    if (bytes * 8 >= wanted * width)
        return wanted;
    return bytes / group_bytes * DELTA_GROUP;
}

/* Lists the miniblocks that the page's rows need. With out_end also finds where all values end: then damage
 * is a problem at once, else only to those who need the values behind it. */
__device__ static inline enum decode_problem open_deltas(const struct decode_work &work,
                                                         const struct decode_page &page, uint64_t at,
                                                         struct decode_deltas *out, uint64_t *out_end) {
    struct delta_walk walk = {page.body, page.body_bytes, at, 0, 0, 0, 0, 0};
    uint64_t count = 0, first = 0;
    enum decode_problem problem = start_deltas(&walk, &count, &first);
    if (problem != DECODE_GOOD)
        return problem;
    *out = {first, count > 0, out->first_miniblock, (uint32_t)walk.miniblock_values, DECODE_DELTA_MORE};
    struct decode_miniblock *list = work.miniblocks + out->first_miniblock;
    bool is_whole = true;
    for (uint64_t left = count ? count - 1 : 0; left > 0;) {
        struct decode_miniblock miniblock;
        uint64_t bytes;
        if (!out_end && (out->n_there >= page.n_rows || !is_whole))
            break;
        problem = next_miniblock(&walk, &miniblock, &bytes);
        if (problem != DECODE_GOOD) {
            out->problem = is_whole ? (uint32_t)problem : out->problem;
            return out_end ? problem : DECODE_GOOD;
        }
        const uint64_t wanted = left < walk.miniblock_values ? left : walk.miniblock_values;
        left -= wanted;
        if (!is_whole || out->n_there >= page.n_rows)
            continue;
        const uint64_t there = deltas_in(bytes, miniblock.width, wanted);
        *list++ = miniblock;
        out->n_there += (int64_t)there;
        is_whole = there == wanted;
        if (!is_whole)
            out->problem = DECODE_DELTA_BLOCK;
    }
    if (out_end)
        *out_end = walk.at;
    return DECODE_GOOD;
}

/* Strings' bytes stand behind their lengths. */
__device__ static inline enum decode_problem open_lengths(const struct decode_work &work,
                                                          struct decode_page *page, int n_deltas) {
    uint64_t at = 0;
    for (int d = 0; d < n_deltas; d++) {
        const enum decode_problem problem = open_deltas(work, *page, at, &page->deltas[d], &at);
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
    case DECODE_DELTA: return is_empty ? DECODE_GOOD : open_deltas(work, *page, 0, &page->deltas[0], nullptr);
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

__global__ void open_pages(struct decode_work work) {
    const int64_t p = cuda_thread();
    if (p >= work.n_pages)
        return;
    struct decode_page page = work.pages[p];
    page.n_there = -1;
    page.deltas[0].problem = page.deltas[1].problem = DECODE_DELTA_MORE;
    const bool has_levels = open_levels(&page);
    const enum decode_problem problem = has_levels ? open_values(work, &page) : DECODE_LEVEL_END;
    if (!page.stored) {
        page.stored = page.body;
        if (page.source == DECODE_LENGTHS)
            page.stored += page.text_at;
    }
    work.pages[p] = page;
    if (problem != DECODE_GOOD)
        page_fault(work, (int32_t)p, problem);
}

/* ---- the selection ---- */

/* First entry that is not below `row`. */
__device__ static inline int32_t first_selected(const struct decode_work &work, int64_t row) {
    int64_t low = 0, high = work.n_selected;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (work.selection[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)low;
}

__global__ void find_selected(struct decode_work work) {
    for (int64_t t = cuda_thread(); t < work.n_tiles; t += cuda_threads()) {
        const struct decode_tile tile = work.tiles[t];
        const struct decode_page &page = work.pages[tile.page];
        const int32_t end = tile.first + DECODE_TILE;
        const int32_t from = page.first_wanted > tile.first ? page.first_wanted : tile.first;
        const int32_t to = page.end_wanted < end ? page.end_wanted : end;
        work.selected[t] = {first_selected(work, page.out_row + from),
                            first_selected(work, page.out_row + to)};
        if (from >= to)
            work.selected[t].end = work.selected[t].begin;
    }
}

extern "C" void cuda_decode_open(cudaStream_t stream, const struct decode_work *work) {
    SX_LAUNCH(open_pages, (unsigned)(work->n_pages + CUDA_WARP - 1) / CUDA_WARP, CUDA_WARP, 0, stream, *work);
    if (work->selection)
        SX_LAUNCH(find_selected, cuda_blocks(work->n_tiles), CUDA_THREADS, 0, stream, *work);
}
