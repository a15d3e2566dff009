/* Makes pages readable on the host: decompression, and the few bytes in front of levels and values, which say
 * what the kernels will find. All that takes time for each value is left to the device. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/decode.h"
#include "tensor/semantics_stored.h"

/* ---- errors ---- */

enum sx_status decode_fail(struct cuda_stream *stream, const struct sx_decoder *decoder, int index,
                           enum decode_problem problem, uint64_t high, uint64_t row) {
    static const char *const texts[] = {
#define DECODE_PROBLEM_TEXT(name, text) [DECODE_##name] = text,
        DECODE_PROBLEM_LIST(DECODE_PROBLEM_TEXT)
#undef DECODE_PROBLEM_TEXT
    };
    const struct sx_page *page = &decoder->pages[index];
    struct sx_error *error = &stream->base.error;
    const unsigned long long a = high, b = row;
    const char *encoding =
        sx_page_encoding_name(page->kind == SX_PAGE_DICTIONARY ? SX_ENCODING_PLAIN : page->encoding);
    switch (problem) {
    case DECODE_TOO_FEW:
        return sx_error_set(error, SX_FILE, "page %d: %llu values (%s) where %llu are needed", index, a,
                            encoding, b);
    case DECODE_CODE:
        return sx_error_set(error, SX_FILE, "page %d: dictionary code %llu of %llu entries", index, a, b);
    case DECODE_PREFIX:
        return sx_error_set(error, SX_FILE, "page %d: a prefix of %llu bytes of a string of %llu", index, a,
                            b);
    case DECODE_LENGTH:
        return sx_error_set(error, SX_FILE, "page %d: a value of %llu bytes where all have %llu", index, a,
                            b);
    default: return sx_error_set(error, SX_FILE, "page %d: %s", index, texts[problem]);
    }
}

/* ---- bytes ---- */

static bool is_compressed(const struct sx_decoder *decoder, const struct sx_page *stored) {
    return decoder->spec.codec != SX_CODEC_UNCOMPRESSED && stored->is_compressed;
}

/* What is behind `lead` stored bytes, decompressed behind the same bytes in decoder->plain. */
static enum sx_status decompress(struct cuda_stream *stream, struct sx_decoder *decoder,
                                 const struct sx_page *stored, size_t lead, struct decode_opened *opened) {
    const size_t stored_bytes = stored->stored_bytes - lead, plain_bytes = stored->plain_bytes - lead;
    struct sx_error *error = &stream->base.error;
    const enum sx_parquet_codec codec = decoder->spec.codec;
    SX_TRY(sx_codec_check(codec, stored_bytes, plain_bytes, error));
    if (stored->plain_bytes > decoder->plain_bytes || !decoder->plain) {
        SX_TRY(sx_pool_resize(stream->host_pool, &decoder->plain, decoder->plain_bytes,
                              (size_t)stored->plain_bytes + 1, error));
        decoder->plain_bytes = (size_t)stored->plain_bytes + 1;
    }
    memcpy(decoder->plain, stored->bytes, lead);
    if (plain_bytes > 0) /* empty pages may have no bytes at all, whatever the codec */
        SX_TRY(sx_codec_decompress(&decoder->codecs, codec, stored->bytes + lead, stored_bytes,
                                   (uint8_t *)decoder->plain + lead, plain_bytes, error));
    opened->image = decoder->plain;
    opened->image_bytes = stored->plain_bytes;
    return SX_OK;
}

/* Where levels and values are. */
static enum sx_status open_parts(struct cuda_stream *stream, struct sx_decoder *decoder, int index,
                                 struct decode_opened *opened) {
    const struct sx_page *stored = &decoder->pages[index];
    const bool is_v2 = stored->kind == SX_PAGE_DATA_V2;
    struct sx_page_levels levels = {0};
    struct sx_error *error = &stream->base.error;
    opened->image = stored->bytes;
    opened->image_bytes = stored->stored_bytes;
    if (is_v2)
        SX_TRY(sx_page_levels_v2(stored, index, &levels, error));
    if (is_compressed(decoder, stored)) {
        enum sx_status status = decompress(stream, decoder, stored, levels.skip + levels.length, opened);
        if (status == SX_FILE)
            return sx_error_prefix(error, "page %d", index);
        SX_TRY(status);
    }
    const bool has_levels = decoder->spec.optional && stored->kind != SX_PAGE_DICTIONARY;
    if (has_levels && !is_v2)
        SX_TRY(sx_page_levels_v1(stored, index, opened->image, opened->image_bytes, &levels, error));
    opened->levels_at = levels.skip;
    opened->body_at = levels.skip + levels.length;
    opened->page.level_bytes = (uint32_t)levels.length;
    opened->page.body_bytes = (uint32_t)(opened->image_bytes - opened->body_at);
    opened->page.level_kind = (uint8_t)(!has_levels            ? DECODE_NO_LEVELS
                                        : levels.is_bit_packed ? DECODE_BIT_PACKED_LEVELS
                                                               : DECODE_HYBRID_LEVELS);
    return SX_OK;
}

/* ---- DELTA_BINARY_PACKED ---- */

enum { DELTA_GROUP = 32, MAX_DELTA_BITS = 64 };

struct delta_walk {
    const uint8_t *bytes;
    uint64_t size, at;
    uint64_t n_miniblocks, miniblock_values; /* per block; per miniblock */
    uint64_t miniblock, widths, min_delta;   /* next in the block; where its widths are */
};

static enum decode_problem start_deltas(struct delta_walk *walk, uint64_t *out_count, uint64_t *out_first) {
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

static enum decode_problem next_miniblock(struct delta_walk *walk, struct decode_miniblock *out,
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
    *out = (struct decode_miniblock){walk->min_delta, (uint32_t)walk->at, width};
    *out_bytes = wanted < left ? wanted : left;
    walk->at += *out_bytes;
    return DECODE_GOOD;
}

/* Of `wanted` deltas, how many are in `bytes`: whole groups, but for the last one. */
static uint64_t deltas_in(uint64_t bytes, uint32_t width, uint64_t wanted) {
    const uint64_t group_bytes = (uint64_t)DELTA_GROUP / 8 * width;
    if (bytes * 8 >= wanted * width)
        return wanted;
    return bytes / group_bytes * DELTA_GROUP;
}

static void add_miniblock(struct decode_miniblocks *list, struct decode_miniblock miniblock) {
    if (list->n == list->room) {
        const int32_t room = list->room ? 2 * list->room : 256;
        struct decode_miniblock *grown = realloc(list->all, (size_t)room * sizeof *grown);
        if (!grown) {
            list->is_full = true;
            return;
        }
        list->all = grown;
        list->room = room;
    }
    list->all[list->n++] = miniblock;
}

/* Lists the miniblocks that `rows` values need. With out_end also finds where all values end: then damage is
 * a problem at once, else only to those who need the values behind it. */
static enum decode_problem open_deltas(const struct decode_opened *opened, uint64_t at, int64_t rows,
                                       struct decode_miniblocks *list, struct decode_deltas *out,
                                       uint64_t *out_end) {
    struct delta_walk walk = {opened->image + opened->body_at, opened->page.body_bytes, at, 0, 0, 0, 0, 0};
    uint64_t count = 0, first = 0;
    enum decode_problem problem = start_deltas(&walk, &count, &first);
    if (problem != DECODE_GOOD)
        return problem;
    *out = (struct decode_deltas){.first = first,
                                  .n_there = count > 0,
                                  .first_miniblock = list->n,
                                  .miniblock_values = (uint32_t)walk.miniblock_values,
                                  .problem = DECODE_DELTA_MORE};
    bool is_whole = true;
    for (uint64_t left = count ? count - 1 : 0; left > 0;) {
        struct decode_miniblock miniblock;
        uint64_t bytes;
        if (!out_end && (out->n_there >= rows || !is_whole))
            break;
        problem = next_miniblock(&walk, &miniblock, &bytes);
        if (problem != DECODE_GOOD) {
            out->problem = is_whole ? (uint32_t)problem : out->problem;
            return out_end ? problem : DECODE_GOOD;
        }
        const uint64_t wanted = left < walk.miniblock_values ? left : walk.miniblock_values;
        left -= wanted;
        if (!is_whole || out->n_there >= rows)
            continue;
        const uint64_t there = deltas_in(bytes, miniblock.width, wanted);
        add_miniblock(list, miniblock);
        out->n_there += (int64_t)there;
        is_whole = there == wanted;
        if (!is_whole)
            out->problem = DECODE_DELTA_BLOCK;
    }
    if (out_end)
        *out_end = walk.at;
    return DECODE_GOOD;
}

/* ---- values ---- */

static enum decode_source source_of(const struct sx_decoder *decoder, const struct sx_page *stored) {
    const enum sx_parquet_physical physical = decoder->spec.physical;
    const enum sx_parquet_encoding encoding =
        stored->kind == SX_PAGE_DICTIONARY ? SX_ENCODING_PLAIN : stored->encoding; /* whichever it names */
    switch (encoding) {
    case SX_ENCODING_PLAIN:
        return physical == SX_PARQUET_BOOLEAN      ? DECODE_BITS
               : physical == SX_PARQUET_BYTE_ARRAY ? DECODE_PLAIN_BYTES
                                                   : DECODE_PLAIN;
    case SX_ENCODING_RLE: return DECODE_RLE_BITS;
    case SX_ENCODING_DELTA_BINARY_PACKED: return DECODE_DELTA;
    case SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY: return DECODE_LENGTHS;
    case SX_ENCODING_DELTA_BYTE_ARRAY: return DECODE_FRONT_CODED;
    case SX_ENCODING_BYTE_STREAM_SPLIT: return DECODE_SPLIT;
    default: return DECODE_CODES;
    }
}

static enum decode_problem open_codes(struct decode_opened *opened) {
    enum { MAX_WIDTH = 32 };
    opened->page.code_width = opened->image[opened->body_at];
    opened->page.text_at = 1;
    return opened->page.code_width > MAX_WIDTH ? DECODE_CODE_WIDTH : DECODE_GOOD;
}

static enum decode_problem open_rle_bits(struct decode_opened *opened) {
    enum { SIZE_BYTES = 4 };
    const uint32_t left = opened->page.body_bytes;
    uint32_t size;
    if (left < SIZE_BYTES)
        return DECODE_RLE_END;
    size = sx_stored_u32(opened->image + opened->body_at);
    if (size > left - SIZE_BYTES)
        return DECODE_RLE_END;
    opened->page.code_width = 1;
    opened->page.text_at = SIZE_BYTES;
    opened->page.body_bytes = SIZE_BYTES + size;
    return DECODE_GOOD;
}

static enum decode_problem open_lengths(struct decode_opened *opened, int64_t rows, int n_deltas,
                                        struct decode_miniblocks *list) {
    uint64_t at = 0;
    for (int d = 0; d < n_deltas; d++) {
        enum decode_problem problem = open_deltas(opened, at, rows, list, &opened->page.deltas[d], &at);
        if (problem != DECODE_GOOD)
            return problem;
    }
    opened->page.text_at = (uint32_t)at;
    return DECODE_GOOD;
}

/* A page without any bytes may have rows: all null. */
static enum decode_problem open_values(const struct sx_decoder *decoder, const struct sx_page *stored,
                                       struct decode_opened *opened, struct decode_miniblocks *list) {
    struct decode_page *page = &opened->page;
    const bool is_empty = page->body_bytes == 0;
    page->n_there = -1;
    page->deltas[0].problem = page->deltas[1].problem = DECODE_DELTA_MORE;
    switch ((enum decode_source)page->source) {
    case DECODE_PLAIN:
    case DECODE_BITS: page->n_there = sx_plain_most(&decoder->spec, page->body_bytes); return DECODE_GOOD;
    case DECODE_SPLIT:
        page->n_there = (int64_t)(page->body_bytes / decoder->stored_bytes);
        return page->body_bytes % decoder->stored_bytes ? DECODE_SPLIT_END : DECODE_GOOD;
    case DECODE_RLE_BITS: return is_empty ? DECODE_GOOD : open_rle_bits(opened);
    case DECODE_CODES: return is_empty ? DECODE_GOOD : open_codes(opened);
    case DECODE_DELTA:
        return is_empty ? DECODE_GOOD
                        : open_deltas(opened, 0, stored->n_values, list, &page->deltas[0], NULL);
    case DECODE_LENGTHS: return is_empty ? DECODE_GOOD : open_lengths(opened, stored->n_values, 1, list);
    case DECODE_FRONT_CODED: return is_empty ? DECODE_GOOD : open_lengths(opened, stored->n_values, 2, list);
    default: return DECODE_GOOD;
    }
}

enum sx_status decode_open(struct cuda_stream *stream, struct sx_decoder *decoder, int index,
                           struct decode_miniblocks *miniblocks, struct decode_opened *out_opened) {
    const struct sx_page *stored = &decoder->pages[index];
    struct decode_opened opened = {0};
    SX_TRY(sx_page_check(stored, index, decoder->spec.physical, &stream->base.error));
    if (stored->n_values > INT32_MAX)
        return sx_error_set(&stream->base.error, SX_FILE, "page %d: %lld values", index,
                            (long long)stored->n_values);
    opened.page.index = index;
    opened.page.source = (uint8_t)source_of(decoder, stored);
    SX_TRY(open_parts(stream, decoder, index, &opened));
    if (stored->kind == SX_PAGE_DICTIONARY &&
        stored->n_values > sx_plain_most(&decoder->spec, opened.page.body_bytes))
        return sx_error_set(&stream->base.error, SX_FILE, "page %d: a dictionary of %lld entries in %u bytes",
                            index, (long long)stored->n_values, opened.page.body_bytes);
    enum decode_problem problem = open_values(decoder, stored, &opened, miniblocks);
    if (problem != DECODE_GOOD)
        return decode_fail(stream, decoder, index, problem, 0, 0);
    if (miniblocks->is_full)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of miniblocks");
    *out_opened = opened;
    return SX_OK;
}
