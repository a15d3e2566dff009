/* Spans that are behind each other in the host's memory, as a scan lays out the chunks of a column
 * (storage/scan_layout.c), come over the link by one copy: a copy engine is as quick as the link only from
 * some megabytes on. */
#include <stdlib.h>

#include "backend/cuda/cache.h"
#include "backend/cuda/decode.h"
#include "backend/cuda/inflate.h"
#include "observe/trace.h"

/* What lies between two spans is copied, too. */
static const ptrdiff_t most_gap_bytes = 8 << 10;

static const struct sx_stored_span *span_of(const struct decode_wanted *wanted) {
    return &wanted->decoder->chunk.spans[wanted->span];
}

bool decode_span_is_wanted(const struct cuda_device *device, const struct sx_decoder *decoder, int span) {
    const struct decode_copy *copy = &decoder->copies[span];
    const struct sx_stored_span *of = &decoder->chunk.spans[span];
    return cuda_inflate_serves(device, decoder->chunk.spec.codec) && !copy->stored && !copy->was_sought &&
           decode_span_is_pinned(of) && !of->held &&
           (of->cache_id == 0 || !cuda_cache_has(device->cache, of->cache_id));
}

static int compare_places(const void *a, const void *b) {
    const uintptr_t first = (uintptr_t)span_of(a)->bytes, second = (uintptr_t)span_of(b)->bytes;
    return (first > second) - (first < second);
}

static const uint8_t *end_of(const struct sx_stored_span *span) {
    return span->bytes + span->length_bytes;
}

/* How many of the spans, which are sorted, are one run. *out_end: its end; files may have spans in spans. */
static int64_t find_run(const struct decode_wanted *wanted, int64_t n, const uint8_t **out_end) {
    const struct sx_stored_span *first = span_of(wanted);
    const uint8_t *end = end_of(first);
    int64_t i = 1;
    for (; i < n; i++) {
        const struct sx_stored_span *span = span_of(&wanted[i]);
        if (span->owner != first->owner || span->bytes - end > most_gap_bytes)
            break;
        if (end_of(span) > end)
            end = end_of(span);
    }
    *out_end = end;
    return i;
}

static void sort_places(struct decode_wanted *wanted, int64_t n) {
    qsort(wanted, (size_t)n, sizeof *wanted, compare_places);
}

/* Spans alone first: mostly they are far too many. */
bool decode_runs_are_few(struct decode_wanted *wanted, int64_t n) {
    size_t bytes = 0;
    for (int64_t i = 0; i < n && bytes <= CUDA_FEW_BYTES; i++)
        bytes += span_of(&wanted[i])->length_bytes;
    if (bytes > CUDA_FEW_BYTES)
        return false;
    sort_places(wanted, n);
    bytes = 0;
    for (int64_t first = 0, in_run; first < n; first += in_run) {
        const uint8_t *end;
        in_run = find_run(wanted + first, n - first, &end);
        bytes += (size_t)(end - span_of(&wanted[first])->bytes);
    }
    return bytes <= CUDA_FEW_BYTES;
}

/* False: no memory. */
static bool place_run(struct cuda_stream *stream, enum cuda_bring_way way, const struct decode_wanted *wanted,
                      int64_t n, const uint8_t *end, struct cuda_bring_copy *copy) {
    const uint8_t *from = span_of(wanted)->bytes;
    const size_t bytes = (size_t)(end - from);
    struct sx_buffer *made;
    if (cuda_bring_memory(stream, way, bytes + DECODE_SLACK_BYTES, &made) != SX_OK) {
        stream->base.error = (struct sx_error){0};
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        struct decode_copy *own = &wanted[i].decoder->copies[wanted[i].span];
        if (own->stored) /* listed twice */
            continue;
        own->stored = sx_buffer_retain(made);
        own->at = (const uint8_t *)made->data + (span_of(&wanted[i])->bytes - from);
    }
    *copy = (struct cuda_bring_copy){made->data, from, bytes};
    sx_buffer_release(made);
    return true;
}

int64_t decode_runs_place(struct cuda_stream *stream, enum cuda_bring_way way, struct decode_wanted *wanted,
                          int64_t n, struct cuda_bring_copy *copies) {
    int64_t n_copies = 0;
    sort_places(wanted, n);
    for (int64_t first = 0, in_run; first < n; first += in_run) {
        const uint8_t *end;
        in_run = find_run(wanted + first, n - first, &end);
        if (!place_run(stream, way, wanted + first, in_run, end, &copies[n_copies]))
            break;
        n_copies++;
    }
    return n_copies;
}

enum sx_status decode_runs_issue(struct cuda_stream *stream, enum cuda_bring_way way,
                                 const struct cuda_bring_copy *copies, int64_t n) {
    struct sx_lane *lane = stream->base.lane;
    const int64_t began_ns = sx_span_begin(lane);
    int64_t bytes = 0;
    if (n == 0)
        return SX_OK;
    for (int64_t i = 0; i < n; i++)
        bytes += (int64_t)copies[i].bytes;
    const enum sx_status status = cuda_bring(stream, way, copies, n);
    sx_span_end(lane, SX_SPAN_COPY, "upload of pinned memory", began_ns, bytes, n);
    return status;
}
