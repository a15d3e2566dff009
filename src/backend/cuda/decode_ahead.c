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

/* False: there is no room for more, now. */
static bool list_span(struct cuda_stream *stream, struct sx_decoder *decoder, int s) {
    const struct sx_stored_span *span = &decoder->chunk.spans[s];
    struct cuda_bring_request *ahead = &decoder->ahead;
    struct sx_buffer *made;
    if (!count_bytes(stream->device, decoder, span->length_bytes))
        return false;
    if (cuda_bring_memory(stream, span->length_bytes + DECODE_SLACK_BYTES, &made) != SX_OK) {
        stream->base.error = (struct sx_error){0};
        return false;
    }
    decoder->copies[s].stored = made;
    ahead->copies[ahead->n++] = (struct cuda_bring_copy){made->data, span->bytes, span->length_bytes};
    return true;
}

/* A request for what is to be brought; its `n` stays 0 where that is nothing. False: as above. */
static bool list_spans(struct cuda_stream *stream, struct sx_decoder *decoder) {
    bool has_room = true;
    if (decoder->ahead.copies)
        return true;
    decoder->ahead.copies = calloc((size_t)decoder->chunk.n_spans + 1, sizeof(struct cuda_bring_copy));
    if (!decoder->ahead.copies)
        return false;
    for (int s = 0; s < decoder->chunk.n_spans && has_room; s++)
        if (is_to_bring(stream->device, decoder, s))
            has_room = list_span(stream, decoder, s);
    return has_room;
}

static int64_t bytes_of(const struct cuda_bring_request *request) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < request->n; i++)
        bytes += (int64_t)request->copies[i].bytes;
    return bytes;
}

enum sx_status sx_cuda_decode_ahead(struct sx_stream *base, struct sx_decoder *const *decoders, int n,
                                    bool now) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(cuda_bring_begin(stream));
    struct cuda_bring_request **requests = calloc((size_t)n + 1, sizeof *requests);
    int64_t n_requests = 0, bytes = 0;
    bool has_room = requests != NULL;
    for (int i = 0; i < n && has_room; i++) {
        struct cuda_bring_request *ahead = &decoders[i]->ahead;
        const bool is_new = ahead->n == 0;
        has_room = list_spans(stream, decoders[i]);
        if (ahead->n == 0 || (!is_new && !now))
            continue;
        requests[n_requests++] = ahead;
        bytes += is_new ? bytes_of(ahead) : 0;
    }
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    if (now)
        cuda_bring_now(stream->device, requests, n_requests);
    else if (n_requests > 0)
        cuda_bring_later(stream->device, requests, n_requests);
    if (bytes > 0)
        sx_span_end(stream->base.lane, SX_SPAN_COPY, "upload of pinned memory", began_ns, bytes, 0);
    free(requests);
    return SX_OK;
}
