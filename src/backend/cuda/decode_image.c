/* Spans that the device's cache has, and images for those that it is to get. */
#include <stdlib.h>

#include "backend/cuda/cache.h"
#include "backend/cuda/decode_stored.h"

enum { ALIGNMENT = 16 };

/* ---- making one ---- */

/* Levels of V2, which are never compressed. SX_FILE where they can't be there. */
static enum sx_status find_lead(struct decode_call *call, const struct sx_page *page, int index,
                                uint32_t *out_bytes) {
    struct sx_page_levels levels = {0};
    if (page->kind == SX_PAGE_DATA_V2)
        SX_TRY(sx_page_levels_v2(page, index, &levels, &call->stream->base.error));
    *out_bytes = (uint32_t)(levels.skip + levels.length);
    return SX_OK;
}

/* Appends it, and checks what its decompression would be refused for. */
static enum sx_status lay_out_page(struct decode_call *call, const struct sx_decoder *decoder, int index,
                                   const struct sx_stored_span *span, struct cuda_image *image,
                                   size_t *bytes) {
    const struct sx_page *page = &decoder->chunk.pages[index];
    struct cuda_image_page *out = &image->pages[image->n_pages];
    SX_TRY(find_lead(call, page, index, &out->lead_bytes));
    const bool is_compressed = decode_is_compressed(decoder, index);
    out->stored_at = (size_t)(page->bytes - span->bytes);
    out->stored_bytes = page->stored_bytes - out->lead_bytes;
    out->plain_bytes = (is_compressed ? page->plain_bytes : page->stored_bytes) - out->lead_bytes;
    if (is_compressed && out->plain_bytes > 0)
        SX_TRY(sx_codec_check(decoder->chunk.spec.codec, out->stored_bytes, out->plain_bytes,
                              &call->stream->base.error));
    out->plain_at = (*bytes + out->lead_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *bytes = out->plain_at + out->plain_bytes;
    image->n_pages++;
    return SX_OK;
}

static enum sx_status no_memory(struct decode_call *call) {
    return sx_error_set(&call->stream->base.error, SX_OUT_OF_MEMORY, "no memory for an image of pages");
}

/* Where the span's pages will be, if any is compressed; *out_bytes that they take. */
static enum sx_status lay_out(struct decode_call *call, const struct sx_decoder *decoder,
                              const struct sx_stored_span *span, struct cuda_image *image,
                              size_t *out_bytes) {
    const struct sx_stored_chunk *chunk = &decoder->chunk;
    int n = 0;
    bool is_compressed = false;
    *out_bytes = 0;
    for (int i = 0; i < chunk->n_pages; i++)
        if (chunk->pages[i].bytes && decode_span_holds(span, &chunk->pages[i])) {
            is_compressed |= decode_is_compressed(decoder, i);
            n++;
        }
    if (!is_compressed)
        return SX_OK;
    image->pages = calloc((size_t)n, sizeof *image->pages);
    if (!image->pages)
        return no_memory(call);
    for (int i = 0; i < chunk->n_pages; i++)
        if (chunk->pages[i].bytes && decode_span_holds(span, &chunk->pages[i]))
            SX_TRY(lay_out_page(call, decoder, i, span, image, out_bytes));
    return SX_OK;
}

/* Bytes of the span to the image as they are. */
static enum sx_status copy_stored(struct decode_call *call, const struct sx_decoder *decoder, int copy,
                                  const struct cuda_image *image, size_t from, size_t to, size_t bytes) {
    if (bytes == 0)
        return SX_OK;
    SX_TRY(decode_bring_listed(call));
    return cuda_check(call->stream,
                      cudaMemcpyAsync((char *)image->buffer->data + to, decoder->copies[copy].at + from,
                                      bytes, cudaMemcpyDeviceToDevice, call->stream->handle),
                      "a page for the cache");
}

static enum sx_status fill_page(struct decode_inflater *inflater, struct sx_decoder *decoder, int index,
                                int copy, const struct sx_stored_span *span, const struct cuda_image *image,
                                const struct cuda_image_page *page) {
    struct decode_call *call = inflater->call;
    const bool is_compressed = decode_is_compressed(decoder, index);
    const size_t copied_bytes = page->lead_bytes + (is_compressed ? 0 : page->plain_bytes);
    if (copied_bytes > 0)
        SX_TRY(decode_span_bring(call, decoder, copy, span));
    SX_TRY(copy_stored(call, decoder, copy, image, page->stored_at, page->plain_at - page->lead_bytes,
                       copied_bytes));
    if (!is_compressed || page->plain_bytes == 0)
        return SX_OK;
    const struct decode_piece piece = {.decoder = decoder,
                                       .index = index,
                                       .lead_bytes = page->lead_bytes,
                                       .plain = (char *)image->buffer->data + page->plain_at,
                                       .plain_bytes = page->plain_bytes,
                                       .number = DECODE_NO_NUMBER};
    const enum sx_status status = decode_inflate(inflater, &piece);
    call->way->was_inflating |= status == SX_FILE;
    return status;
}

/* A buffer that has the span's bytes alone is the image's, too. */
static enum sx_status keep_stored(struct decode_call *call, struct sx_decoder *decoder, int copy,
                                  const struct sx_stored_span *span, struct cuda_image *image) {
    struct cuda_stream *stream = call->stream;
    struct decode_copy *own = &decoder->copies[copy];
    const size_t bytes = span->length_bytes + DECODE_SLACK_BYTES;
    if (own->stored->size_bytes == bytes) {
        image->buffer = sx_buffer_retain(own->stored);
        return SX_OK;
    }
    SX_TRY(sx_buffer_create(stream->base.pool, bytes, &image->buffer, &stream->base.error));
    SX_TRY(copy_stored(call, decoder, copy, image, 0, 0, span->length_bytes));
    sx_buffer_release(own->stored);
    own->stored = sx_buffer_retain(image->buffer);
    own->at = own->stored->data;
    return SX_OK;
}

/* All pages of the span, also those that this call does not need: others may. */
static enum sx_status fill(struct decode_inflater *inflater, struct sx_decoder *decoder, int copy,
                           const struct sx_stored_span *span, struct cuda_image *image) {
    const struct sx_stored_chunk *chunk = &decoder->chunk;
    int n = 0;
    if (!image->pages) {
        SX_TRY(decode_span_bring(inflater->call, decoder, copy, span));
        return keep_stored(inflater->call, decoder, copy, span, image);
    }
    for (int i = 0; i < chunk->n_pages; i++)
        if (chunk->pages[i].bytes && decode_span_holds(span, &chunk->pages[i]))
            SX_TRY(fill_page(inflater, decoder, i, copy, span, image, &image->pages[n++]));
    return SX_OK;
}

/* The call remembers it, with a reference of its own. */
static enum sx_status note_begun(struct decode_call *call, struct sx_decoder *decoder, int copy,
                                 struct cuda_image *image) {
    enum { FIRST_ROOM = 64 };
    if (call->n_begun == call->room_begun) {
        const int room = call->room_begun ? 2 * call->room_begun : FIRST_ROOM;
        struct decode_begun *grown = realloc(call->begun, (size_t)room * sizeof *grown);
        if (!grown)
            return no_memory(call);
        call->begun = grown;
        call->room_begun = room;
    }
    call->way->has_begun = true;
    call->begun[call->n_begun++] = (struct decode_begun){decoder, copy, cuda_image_retain(image)};
    return SX_OK;
}

/* Room for the image, and its layout. False: there is none, or it can't be made. */
static bool prepare(struct decode_call *call, const struct sx_decoder *decoder,
                    const struct sx_stored_span *span, struct cuda_image *image) {
    struct cuda_stream *stream = call->stream;
    size_t bytes;
    enum sx_status status = lay_out(call, decoder, span, image, &bytes);
    if (status == SX_OK && image->pages) {
        bytes += DECODE_SLACK_BYTES;
        if (!cuda_cache_takes(stream->device->cache, bytes))
            return false;
        status = sx_buffer_create(stream->base.pool, bytes, &image->buffer, &stream->base.error);
    }
    if (status != SX_OK)
        stream->base.error = (struct sx_error){0};
    return status == SX_OK;
}

/* *out_image NULL: none can be made. */
static enum sx_status begin(struct decode_inflater *inflater, struct sx_decoder *decoder, int copy,
                            const struct sx_stored_span *span, struct cuda_image **out_image) {
    struct decode_call *call = inflater->call;
    struct cuda_image *image = calloc(1, sizeof *image);
    if (!image)
        return no_memory(call);
    atomic_init(&image->references, 1);
    image->id = span->cache_id;
    image->span_bytes = span->length_bytes;
    image->n_left = span->n_readers > 1 ? span->n_readers - 1 : 0;
    if (!prepare(call, decoder, span, image)) {
        cuda_image_release(image);
        return SX_OK;
    }
    enum sx_status status = note_begun(call, decoder, copy, image);
    if (status == SX_OK)
        status = fill(inflater, decoder, copy, span, image);
    if (status == SX_OK)
        *out_image = image;
    else
        cuda_image_release(image);
    return status;
}

void decode_images_end(struct decode_call *call, bool is_good) {
    for (int i = 0; i < call->n_begun; i++) {
        struct decode_begun *begun = &call->begun[i];
        struct decode_copy *copy = &begun->decoder->copies[begun->copy];
        if (is_good) {
            decode_kept_note(call, begun);
            cuda_cache_insert(call->stream->device->cache, call->stream, begun->image);
        } else {
            cuda_image_release(copy->image);
            copy->image = NULL;
        }
        if (is_good && begun->image->pages) {
            sx_buffer_release(copy->stored);
            copy->stored = NULL;
        }
        cuda_image_release(begun->image);
    }
    free(call->begun);
    call->begun = NULL;
    call->n_begun = call->room_begun = 0;
}

/* ---- finding one ---- */

/* Once for each span. */
static void look_up(struct decode_call *call, struct decode_copy *own, const struct sx_stored_span *span) {
    own->was_sought = true;
    own->image = span->held ? cuda_image_retain(span->held)
                            : cuda_cache_find(call->stream->device->cache, span->cache_id);
    if (!own->image)
        return;
    call->hit_bytes += (int64_t)span->length_bytes;
    if (!own->image->pages && !own->stored) {
        own->stored = sx_buffer_retain(own->image->buffer);
        own->at = own->stored->data;
    }
}

static enum sx_status seek(struct decode_inflater *inflater, struct sx_decoder *decoder, int copy,
                           const struct sx_stored_span *span) {
    struct decode_call *call = inflater->call;
    struct decode_copy *own = &decoder->copies[copy];
    own->was_sought = true;
    if (!span->held &&
        (span->cache_id == 0 || !cuda_cache_takes(call->stream->device->cache, span->length_bytes)))
        return SX_OK;
    look_up(call, own, span);
    return own->image || !call->way->makes_images ? SX_OK : begin(inflater, decoder, copy, span, &own->image);
}

struct cuda_image *decode_image_seek(struct decode_call *call, struct sx_decoder *decoder, int copy,
                                     const struct sx_stored_span *span) {
    struct decode_copy *own = &decoder->copies[copy];
    if (!own->was_sought &&
        (span->held || (span->cache_id != 0 && cuda_cache_has(call->stream->device->cache, span->cache_id))))
        look_up(call, own, span);
    return own->image;
}

/* NULL: it lacks the page, as the chunk has it. */
static const struct cuda_image_page *find_page(const struct cuda_image *image, size_t stored_at,
                                               const struct sx_page *page) {
    int low = 0, high = image->n_pages;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (image->pages[middle].stored_at < stored_at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == image->n_pages || image->pages[low].stored_at != stored_at)
        return NULL;
    const struct cuda_image_page *found = &image->pages[low];
    const uint32_t image_bytes = found->lead_bytes + found->plain_bytes;
    return found->lead_bytes + found->stored_bytes == page->stored_bytes && image_bytes == page->plain_bytes
               ? found
               : NULL;
}

enum sx_status decode_image_find(struct decode_inflater *inflater, struct sx_decoder *decoder, int index,
                                 struct cuda_image **out_image, const struct cuda_image_page **out_page) {
    const struct sx_page *page = &decoder->chunk.pages[index];
    struct sx_stored_span span;
    int copy;
    *out_image = NULL;
    *out_page = NULL;
    SX_TRY(decode_span_find(inflater->call, decoder, index, &copy, &span));
    if (!decoder->copies[copy].was_sought)
        SX_TRY(seek(inflater, decoder, copy, &span));
    *out_image = decoder->copies[copy].image;
    if (*out_image && (*out_image)->pages)
        *out_page = find_page(*out_image, (size_t)(page->bytes - span.bytes), page);
    return SX_OK;
}
