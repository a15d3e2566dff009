/* Bytes of pages: from the host to the device, and decompressed. */
#include <stdlib.h>

#include "backend/cuda/decode.h"
#include "backend/cuda/inflate.h"

enum { ALIGNMENT = 16 };

/* ---- stored bytes ---- */

static bool holds(const struct sx_stored_span *span, const struct sx_page *page) {
    return page->bytes >= span->bytes && page->bytes + page->stored_bytes <= span->bytes + span->length_bytes;
}

/* Which of the decoder's copies has the page, and the bytes that it is of. */
static enum sx_status find_span(struct decode_call *call, const struct sx_decoder *decoder, int index,
                                int *out_copy, struct sx_stored_span *out_span) {
    const struct sx_stored_chunk *chunk = &decoder->chunk;
    const struct sx_page *page = &chunk->pages[index];
    *out_copy = index;
    *out_span = (struct sx_stored_span){.bytes = page->bytes, .length_bytes = page->stored_bytes};
    for (int s = 0; s < chunk->n_spans; s++)
        if (holds(&chunk->spans[s], page)) {
            *out_copy = s;
            *out_span = chunk->spans[s];
            return SX_OK;
        }
    if (chunk->n_spans == 0)
        return SX_OK;
    return sx_error_set(&call->stream->base.error, SX_INTERNAL, "page %d is in no span", index);
}

static enum sx_status upload(struct cuda_stream *stream, const struct sx_stored_span *span,
                             struct sx_buffer **out_copy) {
    struct sx_buffer *copy;
    SX_TRY(sx_buffer_create(stream->base.pool, span->length_bytes + DECODE_SLACK_BYTES, &copy,
                            &stream->base.error));
    const bool is_pinned = span->owner && sx_pool_is_pinned(span->owner->pool);
    enum sx_status status = is_pinned
                                ? cuda_upload_pinned(stream, copy->data, span->bytes, span->length_bytes)
                                : cuda_upload(stream, copy->data, span->bytes, span->length_bytes);
    if (status != SX_OK) {
        sx_buffer_release(copy);
        return status;
    }
    *out_copy = copy;
    return SX_OK;
}

/* Where the page's stored bytes are on the device. */
static enum sx_status bring_stored(struct decode_call *call, struct sx_decoder *decoder, int index,
                                   const uint8_t **out_device) {
    struct sx_stored_span span;
    int copy;
    SX_TRY(find_span(call, decoder, index, &copy, &span));
    if (!decoder->copies[copy])
        SX_TRY(upload(call->stream, &span, &decoder->copies[copy]));
    *out_device =
        (const uint8_t *)decoder->copies[copy]->data + (decoder->chunk.pages[index].bytes - span.bytes);
    return SX_OK;
}

/* ---- decompression ---- */

enum { N_CODECS = SX_CODEC_LZ4_RAW + 1 };

/* What the device decompresses, by codec; and what the host needs for the rest. */
struct inflater {
    struct decode_call *call;
    struct {
        struct cuda_inflate_item *items;
        int64_t n, room;
    } lists[N_CODECS];
    struct sx_codecs *codecs;
    void *plain; /* of one page */
    size_t room_bytes;
};

static enum sx_status inflate_here(struct inflater *inflater, const struct decode_listed *listed,
                                   size_t stored_bytes, size_t plain_bytes, void *device) {
    struct cuda_stream *stream = inflater->call->stream;
    struct sx_error *error = &stream->base.error;
    const struct sx_page *page = &listed->decoder->chunk.pages[listed->index];
    if (plain_bytes >= inflater->room_bytes) {
        SX_TRY(sx_pool_resize(stream->host_pool, &inflater->plain, inflater->room_bytes, plain_bytes + 1,
                              error));
        inflater->room_bytes = plain_bytes + 1;
    }
    enum sx_status status = sx_codec_decompress(&inflater->codecs, listed->decoder->chunk.spec.codec,
                                                page->bytes + listed->lead_bytes, stored_bytes,
                                                (uint8_t *)inflater->plain, plain_bytes, error);
    if (status == SX_FILE)
        return sx_error_prefix(error, "page %d", listed->index);
    SX_TRY(status);
    return cuda_upload(stream, device, inflater->plain, plain_bytes);
}

static enum sx_status inflate_later(struct inflater *inflater, enum sx_parquet_codec codec,
                                    struct cuda_inflate_item item) {
    enum { FIRST_ROOM = 256 };
    int64_t *n = &inflater->lists[codec].n, *room = &inflater->lists[codec].room;
    if (*n == *room) {
        const int64_t wanted = *room ? 2 * *room : FIRST_ROOM;
        struct cuda_inflate_item *grown =
            realloc(inflater->lists[codec].items, (size_t)wanted * sizeof *grown);
        if (!grown)
            return sx_error_set(&inflater->call->stream->base.error, SX_OUT_OF_MEMORY,
                                "no memory for a list of pages");
        inflater->lists[codec].items = grown;
        *room = wanted;
    }
    inflater->lists[codec].items[(*n)++] = item;
    return SX_OK;
}

static enum sx_status inflate_listed(struct inflater *inflater) {
    struct cuda_stream *stream = inflater->call->stream;
    for (int codec = 0; codec < N_CODECS; codec++)
        if (inflater->lists[codec].n > 0)
            SX_TRY(cuda_inflate(stream, (enum sx_parquet_codec)codec, inflater->lists[codec].items,
                                inflater->lists[codec].n));
    return SX_OK;
}

static void release_inflater(struct inflater *inflater) {
    for (int codec = 0; codec < N_CODECS; codec++)
        free(inflater->lists[codec].items);
    sx_codecs_destroy(inflater->codecs);
    sx_pool_free(inflater->call->stream->host_pool, inflater->plain, inflater->room_bytes);
}

/* ---- images ---- */

static bool is_compressed(const struct decode_listed *listed) {
    return listed->decoder->chunk.spec.codec != SX_CODEC_UNCOMPRESSED &&
           listed->decoder->chunk.pages[listed->index].is_compressed;
}

/* Room in the column's `plain` for all that is compressed. */
static enum sx_status place_plain(struct decode_call *call, struct decode_column *column) {
    for (int32_t i = 0; i < column->n_pages; i++) {
        struct decode_listed *listed = &column->listed[i];
        const struct sx_page *page = &listed->decoder->chunk.pages[listed->index];
        if (!is_compressed(listed))
            continue;
        listed->plain_at = (int64_t)column->plain_bytes;
        column->plain_bytes +=
            (page->plain_bytes - listed->lead_bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    if (column->plain_bytes == 0)
        return SX_OK;
    return sx_buffer_create(call->stream->base.pool, column->plain_bytes + DECODE_SLACK_BYTES, &column->plain,
                            &call->stream->base.error);
}

/* Whether the device may have it. nvCOMP's zstd can't be trusted with damaged bytes (it may not even end),
 * and what is wrong inside of entropy-coded parts is only seen by decoding them: a CRC has to vouch for them.
 */
static bool is_for_device(const struct decode_call *call, const struct decode_listed *listed,
                          size_t stored_bytes, size_t plain_bytes) {
    const enum sx_parquet_codec codec = listed->decoder->chunk.spec.codec;
    const bool is_safe = codec != SX_CODEC_ZSTD || listed->decoder->chunk.pages[listed->index].is_checked;
    return !call->inflates_here && is_safe &&
           cuda_inflate_takes(call->stream->device, codec, stored_bytes, plain_bytes);
}

static enum sx_status inflate_page(struct inflater *inflater, const struct decode_listed *listed,
                                   const struct decode_page *page, size_t stored_bytes) {
    struct decode_call *call = inflater->call;
    const enum sx_parquet_codec codec = listed->decoder->chunk.spec.codec;
    void *plain = (void *)(uintptr_t)page->image;
    const uint8_t *device;
    SX_TRY(sx_codec_check(codec, stored_bytes, page->image_bytes, &call->stream->base.error));
    if (!is_for_device(call, listed, stored_bytes, page->image_bytes))
        return inflate_here(inflater, listed, stored_bytes, page->image_bytes, plain);
    SX_TRY(bring_stored(call, listed->decoder, listed->index, &device));
    return inflate_later(inflater, codec,
                         (struct cuda_inflate_item){device + listed->lead_bytes, stored_bytes, plain,
                                                    page->image_bytes, page->number});
}

/* Where levels and values of the page will be. Levels of V2 pages stay with the stored bytes. */
static enum sx_status bring_page(struct inflater *inflater, struct decode_column *column, int32_t i) {
    struct decode_call *call = inflater->call;
    const struct decode_listed *listed = &column->listed[i];
    struct decode_page *page = &column->pages[i];
    const struct sx_page *stored = &listed->decoder->chunk.pages[listed->index];
    const uint8_t *device = NULL;
    const size_t stored_bytes = stored->stored_bytes - listed->lead_bytes;
    call->place = (struct sx_decode_place){column->read, listed->part};
    if (listed->plain_at < 0 || page->level_bytes > 0)
        SX_TRY(bring_stored(call, listed->decoder, listed->index, &device));
    if (stored->kind == SX_PAGE_DATA_V2 && page->level_kind != DECODE_NO_LEVELS)
        page->levels = device ? device + listed->lead_bytes - page->level_bytes : column->plain->data;
    if (listed->plain_at < 0) {
        page->image = device + listed->lead_bytes;
        page->image_bytes = (uint32_t)stored_bytes;
        return SX_OK;
    }
    page->image = (const uint8_t *)column->plain->data + listed->plain_at;
    page->image_bytes = stored->plain_bytes - listed->lead_bytes;
    if (page->image_bytes == 0) /* empty pages may have no bytes at all, whatever the codec */
        return SX_OK;
    return inflate_page(inflater, listed, page, stored_bytes);
}

static enum sx_status bring_column(struct inflater *inflater, struct decode_column *column) {
    SX_TRY(place_plain(inflater->call, column));
    for (int32_t i = 0; i < column->n_pages; i++)
        SX_TRY(bring_page(inflater, column, i));
    return SX_OK;
}

enum sx_status decode_bring(struct decode_call *call) {
    struct inflater inflater = {.call = call};
    enum sx_status status = SX_OK;
    for (int r = 0; r < call->n_reads && status == SX_OK; r++) {
        status = bring_column(&inflater, &call->dictionaries[r]);
        if (status == SX_OK)
            status = bring_column(&inflater, &call->columns[r]);
    }
    if (status == SX_OK)
        status = inflate_listed(&inflater);
    release_inflater(&inflater);
    return status;
}
