#include <assert.h>

#include "backend/cpu/decode.h"
#include "backend/cpu/move.h"
#include "tensor/semantics_stored.h"
#include "tensor/semantics_utf8.h"

static enum sx_status cut_off(struct sx_stream *stream, const struct decode_page *page, int64_t wanted,
                              int64_t there) {
    return decode_error(stream, page->index, "%lld values (%s) where %lld are needed", (long long)there,
                        sx_page_encoding_name(page->encoding), (long long)wanted);
}

/* ---- values of fixed length, as they are stored ---- */

/* Bytes of the next `count` values of PLAIN. */
static enum sx_status pass_plain(struct sx_stream *stream, struct sx_decoder *decoder,
                                 struct decode_page *page, int64_t count, const uint8_t **out_stored) {
    size_t there = decode_left(&page->body) / decoder->stored_bytes;
    if ((uint64_t)count > there)
        return cut_off(stream, page, count, (int64_t)there);
    *out_stored = page->body.at;
    page->body.at += (size_t)count * decoder->stored_bytes;
    return SX_OK;
}

static enum sx_status pass_bits(struct sx_stream *stream, struct decode_page *page, int64_t count,
                                int64_t *out_first) {
    int64_t there = (int64_t)decode_left(&page->body) * 8 - page->bit_at;
    if (count > there)
        return cut_off(stream, page, count, there);
    *out_first = page->bit_at;
    page->bit_at += count;
    return SX_OK;
}

static enum sx_status pass_split(struct sx_stream *stream, struct decode_page *page, int64_t count,
                                 int64_t *out_first) {
    int64_t there = page->split_values - page->split_at;
    if (count > there)
        return cut_off(stream, page, count, there);
    *out_first = page->split_at;
    page->split_at += count;
    return SX_OK;
}

/* Byte b of value i is at streams[b * stride + i]. */
static inline void join_streams(const uint8_t *streams, size_t stride, size_t value_bytes, int64_t count,
                                uint8_t *out) {
    for (int64_t i = 0; i < count; i++)
        for (size_t b = 0; b < value_bytes; b++)
            out[(size_t)i * value_bytes + b] = streams[b * stride + (size_t)i];
}

static void unsplit(const struct decode_page *page, size_t value_bytes, int64_t first, int64_t count,
                    uint8_t *out) {
    const uint8_t *streams = page->body.at + first;
    size_t stride = (size_t)page->split_values;
    switch (value_bytes) {
    case 4: join_streams(streams, stride, 4, count, out); break;
    case 8: join_streams(streams, stride, 8, count, out); break;
    default: join_streams(streams, stride, value_bytes, count, out);
    }
}

static enum sx_status read_booleans(struct sx_stream *stream, struct decode_page *page, int64_t count,
                                    uint8_t *out) {
    int64_t first = 0, sum;
    if (page->encoding == SX_ENCODING_RLE) {
        int64_t there = decode_hybrid_read_bits(&page->codes, count, out, &sum);
        return there < count ? cut_off(stream, page, count, there) : SX_OK;
    }
    SX_TRY(pass_bits(stream, page, count, &first));
    decode_unpack_bits(page->body.at, first, count, out);
    return SX_OK;
}

static enum sx_status read_fixed_front_coded(struct sx_stream *stream, struct sx_decoder *decoder,
                                             struct decode_page *page, int64_t count,
                                             struct sx_buffer **out_bytes) {
    SX_TRY(decode_front_coded(stream, decoder, page, count, out_bytes));
    const uint32_t *lengths = decoder->lengths.memory;
    for (int64_t i = 0; i < count; i++) {
        if (lengths[i] == decoder->stored_bytes)
            continue;
        sx_buffer_release(*out_bytes);
        *out_bytes = NULL;
        return decode_error(stream, page->index, "a value of %u bytes where all have %zu", lengths[i],
                            decoder->stored_bytes);
    }
    return SX_OK;
}

static enum sx_status delta_status(struct sx_stream *stream, const struct decode_page *page,
                                   const char *problem) {
    return problem ? decode_error(stream, page->index, "%s", problem) : SX_OK;
}

/* The next `count` values as they are stored: *out_stored is `place` (room for them, unless PLAIN or
 * DELTA_BYTE_ARRAY), or in the page, or in *out_bytes. */
static enum sx_status read_stored(struct sx_stream *stream, struct sx_decoder *decoder,
                                  struct decode_page *page, int64_t count, void *place,
                                  const uint8_t **out_stored, struct sx_buffer **out_bytes) {
    int64_t first = 0;
    *out_stored = place;
    if (decoder->spec.physical == SX_PARQUET_BOOLEAN)
        return read_booleans(stream, page, count, place);
    switch (page->encoding) {
    case SX_ENCODING_DELTA_BINARY_PACKED:
        return delta_status(stream, page,
                            decode_delta_read(&page->delta, count, decoder->stored_bytes, place));
    case SX_ENCODING_BYTE_STREAM_SPLIT:
        SX_TRY(pass_split(stream, page, count, &first));
        assert(place || count == 0);
        unsplit(page, decoder->stored_bytes, first, count, place);
        return SX_OK;
    case SX_ENCODING_DELTA_BYTE_ARRAY:
        SX_TRY(read_fixed_front_coded(stream, decoder, page, count, out_bytes));
        assert(*out_bytes);
        *out_stored = (*out_bytes)->data;
        return SX_OK;
    default: return pass_plain(stream, decoder, page, count, out_stored);
    }
}

static bool needs_place(const struct sx_decoder *decoder, const struct decode_page *page) {
    return decoder->spec.physical == SX_PARQUET_BOOLEAN ||
           page->encoding == SX_ENCODING_DELTA_BINARY_PACKED ||
           page->encoding == SX_ENCODING_BYTE_STREAM_SPLIT;
}

/* Before memory for values is taken, that so many are there. */
static enum sx_status check_split(struct sx_stream *stream, const struct decode_page *page, int64_t count) {
    int64_t there = page->split_values - page->split_at;
    if (page->encoding == SX_ENCODING_BYTE_STREAM_SPLIT && count > there)
        return cut_off(stream, page, count, there);
    return SX_OK;
}

static enum sx_status read_fixed(struct sx_stream *stream, struct sx_decoder *decoder,
                                 struct decode_page *page, const struct decode_pick *pick, void *out_values) {
    bool in_place = decoder->conversion.is_copy && !pick->positions && needs_place(decoder, page);
    void *place = out_values;
    if (!in_place && needs_place(decoder, page)) {
        SX_TRY(check_split(stream, page, pick->n_values));
        SX_TRY(decode_reserve(stream, &decoder->staged, (size_t)pick->n_values * decoder->stored_bytes));
        place = decoder->staged.memory;
    }
    const uint8_t *stored = NULL;
    struct sx_buffer *bytes = NULL;
    SX_TRY(read_stored(stream, decoder, page, pick->n_values, place, &stored, &bytes));
    bool good = true;
    if (!in_place && pick->n > 0)
        good = decoder->conversion.convert(stored, decoder->stored_bytes, pick->positions, pick->base,
                                           pick->n, out_values);
    sx_buffer_release(bytes);
    return good ? SX_OK : decode_error(stream, page->index, "%s", decoder->conversion.problem);
}

/* FIXED_LEN_BYTE_ARRAY as strings. */
static enum sx_status read_fixed_strings(struct sx_stream *stream, struct sx_decoder *decoder,
                                         struct decode_page *page, const struct decode_pick *pick,
                                         struct sx_string *out_views, struct sx_buffer **out_heap) {
    struct sx_buffer *heap = NULL;
    const uint8_t *stored = NULL;
    if (needs_place(decoder, page)) {
        SX_TRY(check_split(stream, page, pick->n_values));
        SX_TRY(sx_buffer_create(stream->pool, (size_t)pick->n_values * decoder->stored_bytes, &heap,
                                &stream->error));
    } else if (page->encoding == SX_ENCODING_PLAIN) {
        heap = sx_buffer_retain(page->buffer);
    }
    enum sx_status status =
        read_stored(stream, decoder, page, pick->n_values, heap ? heap->data : NULL, &stored, &heap);
    bool good = true;
    for (int64_t i = 0; status == SX_OK && stored && i < pick->n; i++) {
        int64_t at = pick->positions ? pick->positions[i] - pick->base : i;
        const uint8_t *bytes = stored + (size_t)at * decoder->stored_bytes;
        good &= sx_utf8_is_valid(bytes, decoder->stored_bytes);
        out_views[i] = sx_string_make((const char *)bytes, (uint32_t)decoder->stored_bytes);
    }
    if (status == SX_OK && !good)
        status = decode_error(stream, page->index, "a string is invalid UTF-8");
    if (status != SX_OK) {
        sx_buffer_release(heap);
        return status;
    }
    *out_heap = heap;
    return SX_OK;
}

/* ---- BYTE_ARRAY decimals ---- */

static enum sx_status read_byte_decimals(struct sx_stream *stream, struct sx_decoder *decoder,
                                         struct decode_page *page, const struct decode_pick *pick,
                                         void *out_values) {
    struct sx_buffer *heap = NULL;
    SX_TRY(decode_reserve(stream, &decoder->staged, (size_t)pick->n * sizeof(struct sx_string)));
    struct sx_string *views = decoder->staged.memory;
    SX_TRY(decode_byte_arrays(stream, decoder, page, pick, views, &heap));
    bool good = true;
    for (int64_t i = 0; i < pick->n; i++)
        good &= sx_big_endian((const uint8_t *)sx_string_bytes(&views[i]), views[i].length_bytes,
                              decoder->value_bytes, (char *)out_values + (size_t)i * decoder->value_bytes);
    sx_buffer_release(heap);
    return good ? SX_OK : decode_error(stream, page->index, "%s", decoder->conversion.problem);
}

/* ---- dictionary codes ---- */

static enum sx_status check_codes(struct sx_stream *stream, const struct sx_decoder *decoder,
                                  const struct decode_page *page, const uint32_t *codes, int64_t n) {
    int64_t entries = decoder->dict->values.length;
    uint32_t highest = 0;
    for (int64_t i = 0; i < n; i++)
        highest = codes[i] > highest ? codes[i] : highest;
    if (n > 0 && highest >= entries)
        return decode_error(stream, page->index, "dictionary code %u of %lld entries", highest,
                            (long long)entries);
    return SX_OK;
}

static enum sx_status read_codes(struct sx_stream *stream, struct sx_decoder *decoder,
                                 struct decode_page *page, const struct decode_pick *pick,
                                 uint32_t *out_codes) {
    uint32_t *all = out_codes;
    if (pick->positions) {
        SX_TRY(decode_reserve(stream, &decoder->staged, (size_t)pick->n_values * sizeof *all));
        all = decoder->staged.memory;
    }
    int64_t there = decode_hybrid_read(&page->codes, pick->n_values, all);
    if (there < pick->n_values)
        return cut_off(stream, page, pick->n_values, there);
    SX_TRY(check_codes(stream, decoder, page, all, pick->n_values));
    for (int64_t i = 0; pick->positions && i < pick->n; i++)
        out_codes[i] = all[pick->positions[i] - pick->base];
    return SX_OK;
}

/* Entries instead of codes. */
static enum sx_status read_entries(struct sx_stream *stream, struct sx_decoder *decoder,
                                   struct decode_page *page, const struct decode_pick *pick, void *out_values,
                                   struct sx_buffer **out_heap) {
    const struct sx_tensor *entries = &decoder->dict->values;
    SX_TRY(decode_reserve(stream, &decoder->lengths, (size_t)pick->n * sizeof(uint32_t)));
    SX_TRY(read_codes(stream, decoder, page, pick, decoder->lengths.memory));
    sx_cpu_gather_values(entries->values, decoder->value_bytes, decoder->lengths.memory, SX_TYPE_I32, false,
                         pick->n, out_values);
    *out_heap = sx_buffer_retain(entries->heap);
    return SX_OK;
}

static enum sx_status read_dictionary_page(struct sx_stream *stream, struct sx_decoder *decoder,
                                           struct decode_page *page, const struct decode_pick *pick,
                                           bool as_codes, void *out_values, struct sx_buffer **out_heap) {
    if (pick->n_values == 0)
        return SX_OK;
    SX_TRY(decode_dictionary(stream, decoder));
    if (!decoder->dict)
        return decode_error(stream, page->index, "dictionary codes, but there is no dictionary page");
    if (as_codes)
        return read_codes(stream, decoder, page, pick, out_values);
    return read_entries(stream, decoder, page, pick, out_values, out_heap);
}

/* ---- any page ---- */

enum sx_status decode_page_values(struct sx_stream *stream, struct sx_decoder *decoder,
                                  struct decode_page *page, const struct decode_pick *pick, bool as_codes,
                                  void *out_values, struct sx_buffer **out_heap) {
    *out_heap = NULL;
    if (sx_encoding_is_dictionary(page->encoding))
        return read_dictionary_page(stream, decoder, page, pick, as_codes, out_values, out_heap);
    bool is_string = decoder->spec.type.id == SX_TYPE_VARCHAR;
    if (decoder->spec.physical == SX_PARQUET_BYTE_ARRAY && is_string)
        return decode_byte_arrays(stream, decoder, page, pick, out_values, out_heap);
    if (decoder->spec.physical == SX_PARQUET_BYTE_ARRAY)
        return read_byte_decimals(stream, decoder, page, pick, out_values);
    if (is_string)
        return read_fixed_strings(stream, decoder, page, pick, out_values, out_heap);
    return read_fixed(stream, decoder, page, pick, out_values);
}

static enum sx_status skip_booleans(struct sx_stream *stream, struct decode_page *page, int64_t count) {
    int64_t first;
    if (page->encoding != SX_ENCODING_RLE)
        return pass_bits(stream, page, count, &first);
    int64_t there = decode_hybrid_skip(&page->codes, count);
    return there < count ? cut_off(stream, page, count, there) : SX_OK;
}

/* By reading and forgetting: for encodings whose values depend on those in front. */
static enum sx_status skip_by_reading(struct sx_stream *stream, struct sx_decoder *decoder,
                                      struct decode_page *page, int64_t count) {
    while (count > 0) {
        int64_t n = count < DECODE_STEP_ROWS ? count : DECODE_STEP_ROWS;
        struct decode_pick pick = {.n_values = n, .positions = (const int32_t[]){0}};
        struct sx_buffer *heap = NULL;
        SX_TRY(decode_byte_arrays(stream, decoder, page, &pick, NULL, &heap));
        sx_buffer_release(heap);
        count -= n;
    }
    return SX_OK;
}

enum sx_status decode_page_skip(struct sx_stream *stream, struct sx_decoder *decoder,
                                struct decode_page *page, int64_t n_values) {
    int64_t first;
    const uint8_t *stored;
    if (n_values == 0)
        return SX_OK;
    if (decoder->spec.physical == SX_PARQUET_BOOLEAN)
        return skip_booleans(stream, page, n_values);
    if (sx_encoding_is_dictionary(page->encoding)) {
        int64_t there = decode_hybrid_skip(&page->codes, n_values);
        return there < n_values ? cut_off(stream, page, n_values, there) : SX_OK;
    }
    switch (page->encoding) {
    case SX_ENCODING_DELTA_BINARY_PACKED:
        return delta_status(stream, page, decode_delta_skip(&page->delta, n_values));
    case SX_ENCODING_BYTE_STREAM_SPLIT: return pass_split(stream, page, n_values, &first);
    case SX_ENCODING_DELTA_BYTE_ARRAY: return skip_by_reading(stream, decoder, page, n_values);
    default:
        if (decoder->spec.physical == SX_PARQUET_BYTE_ARRAY)
            return skip_by_reading(stream, decoder, page, n_values);
        return pass_plain(stream, decoder, page, n_values, &stored);
    }
}
