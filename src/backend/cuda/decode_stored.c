/* Bytes of pages: from the host to the device, from the cache, and decompressed. */
#include "backend/cuda/decode_stored.h"

#include <stdlib.h>

#include "backend/cuda/cache.h"
#include "observe/trace.h"

enum { ALIGNMENT = 16 };

/* ---- stored bytes ---- */

bool decode_span_holds(const struct sx_stored_span *span, const struct sx_page *page) {
    return page->bytes >= span->bytes && page->bytes + page->stored_bytes <= span->bytes + span->length_bytes;
}

enum sx_status decode_span_find(struct decode_call *call, struct sx_decoder *decoder, int index,
                                int *out_copy, struct sx_stored_span *out_span) {
    const struct sx_stored_chunk *chunk = &decoder->chunk;
    const struct sx_page *page = &chunk->pages[index];
    *out_copy = index;
    *out_span = (struct sx_stored_span){.bytes = page->bytes, .length_bytes = page->stored_bytes};
    for (int i = 0; i < chunk->n_spans; i++) {
        const int s = (decoder->last_span + i) % chunk->n_spans;
        if (!decode_span_holds(&chunk->spans[s], page))
            continue;
        *out_copy = decoder->last_span = s;
        *out_span = chunk->spans[s];
        return SX_OK;
    }
    if (chunk->n_spans == 0)
        return SX_OK;
    return sx_error_set(&call->stream->base.error, SX_INTERNAL, "page %d is in no span", index);
}

/* Copies of pinned memory are listed, so that those of a call go together. */
static enum sx_status reserve_copies(struct decode_call *call, int64_t n) {
    enum { FIRST_ROOM = 64 };
    int64_t room = call->room_copies ? call->room_copies : FIRST_ROOM;
    while (room < call->n_copies + n)
        room *= 2;
    if (room == call->room_copies)
        return SX_OK;
    struct cuda_bring_copy *grown = realloc(call->copies, (size_t)room * sizeof *grown);
    if (!grown)
        return sx_error_set(&call->stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of copies");
    call->copies = grown;
    call->room_copies = room;
    return SX_OK;
}

static enum sx_status list_copy(struct decode_call *call, struct cuda_bring_copy copy) {
    SX_TRY(reserve_copies(call, 1));
    call->copies[call->n_copies++] = copy;
    return SX_OK;
}

enum sx_status decode_bring_listed(struct decode_call *call) {
    const int64_t n = call->n_copies;
    call->n_copies = 0;
    return decode_runs_issue(call->stream, CUDA_BRING_NOW, call->copies, n);
}

/* What files were read into is copied, too: it is not much memory, and others wait to read into it. */
static enum sx_status copy_span(struct cuda_stream *stream, void *device, const struct sx_stored_span *span) {
    if (span->on_device)
        return cuda_check(stream,
                          cudaMemcpyAsync(device, span->bytes, span->length_bytes, cudaMemcpyDeviceToDevice,
                                          stream->handle),
                          "what was read from a file");
    return cuda_upload(stream, device, span->bytes, span->length_bytes);
}

bool decode_span_is_pinned(const struct sx_stored_span *span) {
    return !span->on_device && span->owner && sx_pool_is_pinned(span->owner->pool);
}

static enum sx_status bring_span(struct decode_call *call, const struct sx_stored_span *span,
                                 struct sx_buffer **out_made) {
    struct cuda_stream *stream = call->stream;
    const size_t bytes = span->length_bytes + DECODE_SLACK_BYTES;
    enum sx_status status;
    if (decode_span_is_pinned(span)) {
        SX_TRY(cuda_bring_begin(stream, CUDA_BRING_NOW));
        SX_TRY(cuda_bring_memory(stream, CUDA_BRING_NOW, bytes, out_made));
        status =
            list_copy(call, (struct cuda_bring_copy){(*out_made)->data, span->bytes, span->length_bytes});
    } else {
        SX_TRY(sx_buffer_create(stream->base.pool, bytes, out_made, &stream->base.error));
        status = copy_span(stream, (*out_made)->data, span);
    }
    if (status != SX_OK)
        sx_buffer_release(*out_made);
    return status;
}

enum sx_status decode_span_bring(struct decode_call *call, struct sx_decoder *decoder, int copy,
                                 const struct sx_stored_span *span) {
    struct sx_buffer *made;
    if (decoder->copies[copy].stored)
        return SX_OK;
    if (span->held)
        return sx_error_set(&call->stream->base.error, SX_INTERNAL, "a page that the device's cache lacks");
    SX_TRY(bring_span(call, span, &made));
    decoder->copies[copy].stored = made;
    decoder->copies[copy].at = made->data;
    return SX_OK;
}

/* Not what the host decompresses. */
static bool is_wanted(const struct decode_inflater *inflater, const struct sx_decoder *decoder) {
    const enum sx_parquet_codec codec = decoder->chunk.spec.codec;
    return decoder->chunk.n_spans == 1 && decode_span_is_wanted(inflater->call->stream->device, decoder, 0) &&
           (codec == SX_CODEC_UNCOMPRESSED || decode_inflates_there(inflater, codec));
}

/* Chunks of which a page is listed, and that are one span. */
static int64_t list_wanted(const struct decode_inflater *inflater, struct decode_wanted *wanted) {
    const struct decode_call *call = inflater->call;
    int64_t n = 0;
    for (int r = 0; r < call->n_reads; r++) {
        const struct decode_column *column = &call->columns[r];
        struct sx_decoder *last = NULL;
        for (int32_t i = 0; i < column->n_pages; i++) {
            struct sx_decoder *decoder = column->listed[i].decoder;
            if (decoder != last && is_wanted(inflater, decoder))
                wanted[n++] = (struct decode_wanted){decoder, 0};
            last = decoder;
        }
    }
    return n;
}

/* What of the call's chunks is near to each other comes together; the rest is brought as pages need it. */
static enum sx_status bring_runs(struct decode_inflater *inflater) {
    struct decode_call *call = inflater->call;
    size_t room = 1;
    for (int r = 0; r < call->n_reads; r++)
        room += (size_t)call->columns[r].n_pages;
    struct decode_wanted *wanted = calloc(room, sizeof *wanted);
    const int64_t n = wanted ? list_wanted(inflater, wanted) : 0;
    enum sx_status status = SX_OK;
    if (n == 0)
        goto out;
    const enum cuda_bring_way way = decode_runs_are_few(wanted, n) ? CUDA_BRING_FEW : CUDA_BRING_NOW;
    SX_GO(cuda_bring_begin(call->stream, way));
    SX_GO(reserve_copies(call, n));
    struct cuda_bring_copy *copies = call->copies + call->n_copies;
    const int64_t n_copies = decode_runs_place(call->stream, way, wanted, n, copies);
    if (way == CUDA_BRING_FEW)
        SX_GO(decode_runs_issue(call->stream, way, copies, n_copies));
    else
        call->n_copies += n_copies;
out:
    free(wanted);
    return status;
}

enum sx_status decode_stored_bring(struct decode_call *call, struct sx_decoder *decoder, int index,
                                   const uint8_t **out_device) {
    struct sx_stored_span span;
    int copy;
    SX_TRY(decode_span_find(call, decoder, index, &copy, &span));
    SX_TRY(decode_span_bring(call, decoder, copy, &span));
    *out_device = decoder->copies[copy].at + (decoder->chunk.pages[index].bytes - span.bytes);
    return SX_OK;
}

/* ---- images ---- */

static enum sx_status find_images(struct decode_inflater *inflater, struct decode_column *column) {
    for (int32_t i = 0; i < column->n_pages; i++) {
        struct decode_listed *listed = &column->listed[i];
        struct cuda_image *image;
        inflater->call->place = (struct sx_decode_place){column->read, listed->part};
        SX_TRY(decode_image_find(inflater, listed->decoder, listed->index, &image, &listed->in_image));
        listed->image = listed->in_image ? image->buffer->data : NULL;
    }
    return SX_OK;
}

/* Room in the column's `plain` for all that is compressed and in no image. */
static enum sx_status place_plain(struct decode_call *call, struct decode_column *column) {
    for (int32_t i = 0; i < column->n_pages; i++) {
        struct decode_listed *listed = &column->listed[i];
        const struct sx_page *page = &listed->decoder->chunk.pages[listed->index];
        if (listed->in_image || !decode_is_compressed(listed->decoder, listed->index))
            continue;
        if (listed->same_as >= 0)
            listed->plain_at = column->listed[listed->same_as].plain_at;
        if (listed->plain_at >= 0)
            continue;
        listed->same_as = -1;
        listed->plain_at = (int64_t)column->plain_bytes;
        column->plain_bytes +=
            (page->plain_bytes - listed->lead_bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    if (column->plain_bytes == 0)
        return SX_OK;
    return sx_buffer_create(call->stream->base.pool, column->plain_bytes + DECODE_SLACK_BYTES, &column->plain,
                            &call->stream->base.error);
}

/* Levels of V2 pages stand in front of the values. */
static void take_image(const struct decode_listed *listed, const struct sx_page *stored,
                       struct decode_page_told *page) {
    page->image = listed->image + listed->in_image->plain_at;
    page->image_bytes = listed->in_image->plain_bytes;
    if (stored->kind == SX_PAGE_DATA_V2 && page->level_kind != DECODE_NO_LEVELS)
        page->levels = page->image - page->level_bytes;
}

/* Where levels and values of the page will be. Levels of V2 pages stay with the stored bytes. */
static enum sx_status bring_page(struct decode_inflater *inflater, struct decode_column *column, int32_t i) {
    struct decode_call *call = inflater->call;
    const struct decode_listed *listed = &column->listed[i];
    struct decode_page_told *page = &column->pages[i];
    const struct sx_page *stored = &listed->decoder->chunk.pages[listed->index];
    const uint8_t *device = NULL;
    call->place = (struct sx_decode_place){column->read, listed->part};
    if (listed->in_image) {
        take_image(listed, stored, page);
        return SX_OK;
    }
    if (listed->plain_at < 0 || page->level_bytes > 0)
        SX_TRY(decode_stored_bring(call, listed->decoder, listed->index, &device));
    if (stored->kind == SX_PAGE_DATA_V2 && page->level_kind != DECODE_NO_LEVELS)
        page->levels = device ? device + listed->lead_bytes - page->level_bytes : column->plain->data;
    if (listed->plain_at < 0) {
        page->image = device + listed->lead_bytes;
        page->image_bytes = stored->stored_bytes - listed->lead_bytes;
        return SX_OK;
    }
    page->image = (const uint8_t *)column->plain->data + listed->plain_at;
    page->image_bytes = stored->plain_bytes - listed->lead_bytes;
    /* Empty pages may have no bytes at all, whatever the codec. */
    if (listed->same_as >= 0 || page->image_bytes == 0)
        return SX_OK;
    const struct decode_piece piece = {.decoder = listed->decoder,
                                       .index = listed->index,
                                       .lead_bytes = listed->lead_bytes,
                                       .plain = (char *)column->plain->data + listed->plain_at,
                                       .plain_bytes = page->image_bytes,
                                       .number = page->number};
    return decode_inflate(inflater, &piece);
}

static enum sx_status bring_column(struct decode_inflater *inflater, struct decode_column *column) {
    SX_TRY(find_images(inflater, column));
    SX_TRY(place_plain(inflater->call, column));
    for (int32_t i = 0; i < column->n_pages; i++)
        SX_TRY(bring_page(inflater, column, i));
    return SX_OK;
}

enum sx_status decode_bring(struct decode_call *call) {
    struct decode_inflater inflater = {.call = call};
    enum sx_status status = SX_OK;
    struct sx_lane *lane = call->stream->base.lane;
    const int64_t began_ns = sx_span_begin(lane);
    for (int r = 0; r < call->n_reads; r++) {
        decode_inflate_count(&inflater, &call->dictionaries[r]);
        decode_inflate_count(&inflater, &call->columns[r]);
    }
    status = bring_runs(&inflater);
    for (int r = 0; r < call->n_reads && status == SX_OK; r++) {
        status = bring_column(&inflater, &call->dictionaries[r]);
        if (status == SX_OK)
            status = bring_column(&inflater, &call->columns[r]);
    }
    const enum sx_status issued =
        decode_bring_listed(call); /* also after a failure: decoders keep what is listed */
    if (status == SX_OK)
        status = issued;
    if (status == SX_OK)
        status = decode_inflate_listed(&inflater);
    decode_inflater_release(&inflater);
    if (call->hit_bytes > 0)
        sx_span_end(lane, SX_SPAN_CACHE, "in the device's memory", began_ns, call->hit_bytes, 0);
    return status;
}
