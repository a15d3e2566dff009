/* Stored bytes that are on their way to the device before they are asked for: while the worker has other
 * things to do. */
#include <stdlib.h>

#include "backend/cuda/cache.h"
#include "backend/cuda/decode.h"
#include "backend/cuda/inflate.h"
#include "observe/trace.h"

/* Of the device's memory. */
enum { AHEAD_SHARE = 16 };

static bool is_to_bring(const struct cuda_device *device, const struct sx_decoder *decoder, int s) {
    const struct decode_copy *copy = &decoder->copies[s];
    const struct sx_stored_span *span = &decoder->chunk.spans[s];
    return cuda_inflate_serves(device, decoder->chunk.spec.codec) && !copy->stored && !copy->was_sought &&
           decode_span_is_pinned(span) && !span->held &&
           (span->cache_id == 0 || !cuda_cache_has(device->cache, span->cache_id));
}

/* Whether there is room for it; then it counts until decode_ahead_end. */
static bool count_bytes(struct cuda_device *device, struct sx_decoder *decoder, size_t bytes) {
    const size_t before = atomic_fetch_add(&device->ahead_bytes, bytes);
    if (before + bytes > device->limit_bytes / AHEAD_SHARE) {
        atomic_fetch_sub(&device->ahead_bytes, bytes);
        return false;
    }
    decoder->ahead_bytes += bytes;
    return true;
}

void decode_ahead_end(struct cuda_stream *stream, struct sx_decoder *decoder) {
    atomic_fetch_sub(&stream->device->ahead_bytes, decoder->ahead_bytes);
    decoder->ahead_bytes = 0;
}

static int64_t count_spans(struct sx_decoder *const *decoders, int n) {
    int64_t spans = 0;
    for (int i = 0; i < n; i++)
        spans += decoders[i]->chunk.n_spans;
    return spans;
}

/* False: there is no room for more, now. */
static bool bring_span(struct cuda_stream *stream, struct sx_decoder *decoder, int s,
                       struct cuda_bring_copy *copy) {
    const struct sx_stored_span *span = &decoder->chunk.spans[s];
    struct sx_buffer *made;
    if (!count_bytes(stream->device, decoder, span->length_bytes))
        return false;
    if (cuda_bring_memory(stream, span->length_bytes + DECODE_SLACK_BYTES, &made) != SX_OK) {
        stream->base.error = (struct sx_error){0};
        return false;
    }
    decoder->copies[s].stored = made;
    decoder->ahead_ticket = cuda_bring_ticket(stream);
    *copy = (struct cuda_bring_copy){made->data, span->bytes, span->length_bytes};
    return true;
}

static enum sx_status bring(struct cuda_stream *stream, const struct cuda_bring_copy *copies, int64_t n) {
    if (n == 0)
        return SX_OK;
    int64_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        bytes += (int64_t)copies[i].bytes;
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    const enum sx_status status = cuda_bring_ahead(stream, copies, n);
    sx_span_end(stream->base.lane, SX_SPAN_COPY, "upload of pinned memory", began_ns, bytes, 0);
    return status;
}

enum sx_status sx_cuda_decode_ahead(struct sx_stream *base, struct sx_decoder *const *decoders, int n) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(cuda_bring_begin(stream));
    struct cuda_bring_copy *copies = calloc((size_t)count_spans(decoders, n) + 1, sizeof *copies);
    int64_t n_copies = 0;
    bool has_room = copies != NULL;
    for (int i = 0; i < n && has_room; i++)
        for (int s = 0; s < decoders[i]->chunk.n_spans && has_room; s++)
            if (is_to_bring(stream->device, decoders[i], s)) {
                has_room = bring_span(stream, decoders[i], s, &copies[n_copies]);
                n_copies += has_room;
            }
    const enum sx_status status = bring(stream, copies, n_copies);
    free(copies);
    return status;
}
