#include <stdarg.h>
#include <stdio.h>

#include "backend/cpu/decode.h"

enum sx_status decode_error(struct sx_stream *stream, int page, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sx_error_set(&stream->error, SX_FILE, "page %d: %s", page, text);
}

enum sx_status decode_reserve(struct sx_stream *stream, struct decode_scratch *scratch, size_t size_bytes) {
    /* Never a null pointer: callers offset it, if only by zero. */
    if (size_bytes <= scratch->size_bytes && scratch->memory)
        return SX_OK;
    if (size_bytes < DECODE_SLACK_BYTES)
        size_bytes = DECODE_SLACK_BYTES;
    SX_TRY(sx_pool_resize(stream->pool, &scratch->memory, scratch->size_bytes, size_bytes, &stream->error));
    scratch->size_bytes = size_bytes;
    return SX_OK;
}

/* ---- decompression ---- */

static bool is_compressed(const struct sx_decoder *decoder, const struct sx_page *stored) {
    return decoder->spec.codec != SX_CODEC_UNCOMPRESSED && stored->is_compressed;
}

/* Bytes of V1 definition levels when no row is null, as writers put it: length, one run's header, a value. */
static size_t usual_level_bytes(const struct sx_page *stored) {
    size_t header_bytes = 1;
    for (uint64_t header = (uint64_t)stored->n_values << 1; header >= 0x80; header >>= 7)
        header_bytes++;
    return 4 + header_bytes + 1;
}

/* Puts what follows `lead` bytes at an address that any value may have, so that tensors can point to it. */
static enum sx_status decompress(struct sx_stream *stream, struct sx_decoder *decoder, int index,
                                 struct decode_bytes bytes, size_t plain_bytes, size_t lead,
                                 struct decode_page *page) {
    enum { ALIGNMENT = 16 };
    size_t offset = (0 - lead) % ALIGNMENT;
    enum sx_parquet_codec codec = decoder->spec.codec;
    enum sx_status status = sx_codec_check(codec, decode_left(&bytes), plain_bytes, &stream->error);
    if (status == SX_OK)
        status = sx_buffer_create(stream->pool, offset + plain_bytes + DECODE_SLACK_BYTES, &page->buffer,
                                  &stream->error);
    if (status == SX_OK && plain_bytes > 0) /* empty pages may have no bytes at all, whatever the codec */
        status = sx_codec_decompress(&decoder->codecs, codec, bytes.at, decode_left(&bytes),
                                     (uint8_t *)page->buffer->data + offset, plain_bytes, &stream->error);
    if (status == SX_FILE)
        return sx_error_prefix(&stream->error, "page %d", index);
    SX_TRY(status);
    uint8_t *plain = (uint8_t *)page->buffer->data + offset;
    memset(plain + plain_bytes, 0, DECODE_SLACK_BYTES);
    page->body = (struct decode_bytes){plain, plain + plain_bytes, DECODE_SLACK_BYTES};
    return SX_OK;
}

/* ---- levels ---- */

/* Old writers' levels: the first in the highest bit. */
static enum sx_status turn_levels(struct sx_stream *stream, struct sx_decoder *decoder,
                                  struct decode_bytes *levels) {
    const size_t bytes = decode_left(levels);
    SX_TRY(decode_reserve(stream, &decoder->reversed, bytes + DECODE_SLACK_BYTES));
    uint8_t *reversed = decoder->reversed.memory;
    for (size_t i = 0; i < bytes; i++) {
        uint32_t bits = levels->at[i], turned = 0;
        for (int b = 0; b < 8; b++)
            turned |= (bits >> b & 1) << (7 - b);
        reversed[i] = (uint8_t)turned;
    }
    *levels = (struct decode_bytes){reversed, reversed + bytes, DECODE_SLACK_BYTES};
    return SX_OK;
}

static enum sx_status open_v1_levels(struct sx_stream *stream, struct sx_decoder *decoder, int index,
                                     struct decode_page *page) {
    const struct sx_page *stored = &decoder->pages[index];
    struct decode_bytes *body = &page->body;
    struct sx_page_levels found;
    SX_TRY(sx_page_levels_v1(stored, index, body->at, decode_left(body), &found, &stream->error));
    struct decode_bytes levels = {body->at + found.skip, body->at + found.skip + found.length, 0};
    levels.slack = (size_t)(body->end - levels.end) + body->slack;
    body->at = levels.end;
    if (found.is_bit_packed) {
        SX_TRY(turn_levels(stream, decoder, &levels));
        page->levels = decode_hybrid_packed(levels, 1, (uint64_t)stored->n_values);
    } else {
        page->levels = decode_hybrid_make(levels, 1);
    }
    return SX_OK;
}

static enum sx_status open_v1(struct sx_stream *stream, struct sx_decoder *decoder, int index,
                              struct decode_page *page) {
    const struct sx_page *stored = &decoder->pages[index];
    struct decode_bytes bytes = {stored->bytes, stored->bytes + stored->stored_bytes, 0};
    page->has_levels = decoder->spec.optional && stored->kind == SX_PAGE_DATA_V1;
    if (is_compressed(decoder, stored)) {
        size_t lead = page->has_levels ? usual_level_bytes(stored) : 0;
        SX_TRY(decompress(stream, decoder, index, bytes, stored->plain_bytes, lead, page));
    } else {
        page->body = bytes;
        page->buffer = sx_buffer_retain(decoder->owner);
    }
    return page->has_levels ? open_v1_levels(stream, decoder, index, page) : SX_OK;
}

static enum sx_status open_v2(struct sx_stream *stream, struct sx_decoder *decoder, int index,
                              struct decode_page *page) {
    const struct sx_page *stored = &decoder->pages[index];
    struct decode_bytes bytes = {stored->bytes, stored->bytes + stored->stored_bytes, 0};
    struct sx_page_levels found;
    SX_TRY(sx_page_levels_v2(stored, index, &found, &stream->error));
    const size_t level_bytes = found.skip + found.length;
    page->has_levels = decoder->spec.optional;
    const uint8_t *levels = bytes.at + found.skip;
    bytes.at += level_bytes;
    page->levels = decode_hybrid_make((struct decode_bytes){levels, bytes.at, decode_left(&bytes)}, 1);
    if (is_compressed(decoder, stored))
        return decompress(stream, decoder, index, bytes, stored->plain_bytes - level_bytes, 0, page);
    page->body = bytes;
    page->buffer = sx_buffer_retain(decoder->owner);
    return SX_OK;
}

/* ---- values ---- */

static const char *open_codes(struct decode_page *page) {
    enum { MAX_WIDTH = 32 };
    struct decode_bytes bytes = page->body;
    uint32_t width = 0;
    if (bytes.at < bytes.end)
        width = *bytes.at++;
    if (width > MAX_WIDTH)
        return "dictionary codes of more than 32 bits";
    page->codes = decode_hybrid_make(bytes, width);
    return NULL;
}

static const char *open_rle_booleans(struct decode_page *page) {
    struct decode_bytes bytes = page->body;
    if (decode_left(&bytes) < 4 || decode_load_u32(bytes.at) > decode_left(&bytes) - 4)
        return "the RLE values are cut off";
    size_t size = decode_load_u32(bytes.at);
    bytes.at += 4;
    bytes.slack += decode_left(&bytes) - size;
    bytes.end = bytes.at + size;
    page->codes = decode_hybrid_make(bytes, 1);
    return NULL;
}

/* Starts `delta` at the front of the body; with `more`, the body begins behind it. */
static const char *open_delta(struct decode_page *page, struct decode_delta *delta, bool more) {
    const char *problem = decode_delta_start(delta, page->body);
    if (problem || !more)
        return problem;
    return decode_delta_end(delta, &page->body.at);
}

static const char *open_split(struct decode_page *page, size_t stored_bytes) {
    if (decode_left(&page->body) % stored_bytes)
        return "BYTE_STREAM_SPLIT values are cut off";
    page->split_values = (int64_t)(decode_left(&page->body) / stored_bytes);
    return NULL;
}

static const char *open_values(struct sx_decoder *decoder, struct decode_page *page) {
    if (page->body.at == page->body.end) /* all null */
        return NULL;
    const char *problem = NULL;
    switch (page->encoding) {
    case SX_ENCODING_RLE: return open_rle_booleans(page);
    case SX_ENCODING_DELTA_BINARY_PACKED: return open_delta(page, &page->delta, false);
    case SX_ENCODING_DELTA_BYTE_ARRAY:
        problem = open_delta(page, &page->delta, true);
        decoder->previous_bytes = 0;
        problem = problem ? problem : open_delta(page, &page->suffixes, true);
        break; /* values of ASCII suffixes are ASCII */
    case SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY: problem = open_delta(page, &page->delta, true); break;
    case SX_ENCODING_BYTE_STREAM_SPLIT: return open_split(page, decoder->stored_bytes);
    case SX_ENCODING_PLAIN: break;
    default: return open_codes(page);
    }
    if (!problem && decoder->spec.physical == SX_PARQUET_BYTE_ARRAY &&
        decoder->spec.type.id == SX_TYPE_VARCHAR)
        page->is_ascii = decode_is_ascii(page->body.at, decode_left(&page->body));
    return problem;
}

enum sx_status decode_page_open(struct sx_stream *stream, struct sx_decoder *decoder, int index,
                                struct decode_page *out_page) {
    const struct sx_page *stored = &decoder->pages[index];
    SX_TRY(sx_page_check(stored, index, decoder->spec.physical, &stream->error));
    struct decode_page page = {.is_open = true, .index = index, .encoding = stored->encoding};
    if (stored->kind == SX_PAGE_DICTIONARY)
        page.encoding = SX_ENCODING_PLAIN; /* whichever name it has there */
    enum sx_status status = stored->kind == SX_PAGE_DATA_V2 ? open_v2(stream, decoder, index, &page)
                                                            : open_v1(stream, decoder, index, &page);
    if (status == SX_OK) {
        const char *problem = open_values(decoder, &page);
        if (problem)
            status = decode_error(stream, index, "%s", problem);
    }
    if (status != SX_OK) {
        decode_page_close(&page);
        return status;
    }
    *out_page = page;
    return SX_OK;
}

void decode_page_close(struct decode_page *page) {
    sx_buffer_release(page->buffer);
    *page = (struct decode_page){0};
}
