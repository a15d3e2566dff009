/* Stored bytes that are on their way to the device before they are asked for: while the worker has other
 * things to do. */
#include <stdlib.h>

#include "backend/cuda/decode.h"

/* Of the device's memory. */
enum { AHEAD_SHARE = 16 };

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

void decode_ahead_join(struct cuda_stream *stream, const struct sx_decoder *decoder) {
    if (decoder->ahead_ticket > 0)
        cuda_bring_join(stream, decoder->ahead_ticket);
    if (decoder->is_ahead_here)
        (void)cudaStreamSynchronize(stream->handle);
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

/* Those for which there is room. */
static int64_t list_wanted(struct cuda_stream *stream, struct sx_decoder *const *decoders, int n,
                           struct decode_wanted *wanted) {
    int64_t n_wanted = 0;
    for (int i = 0; i < n; i++)
        for (int s = 0; s < decoders[i]->chunk.n_spans; s++) {
            if (!decode_span_is_wanted(stream->device, decoders[i], s))
                continue;
            if (!count_bytes(stream->device, decoders[i], decoders[i]->chunk.spans[s].length_bytes))
                return n_wanted;
            wanted[n_wanted++] = (struct decode_wanted){decoders[i], s};
        }
    return n_wanted;
}

/* What there was no memory for does not count. `ticket`: 0 of few. */
static void note_ticket(struct cuda_device *device, const struct decode_wanted *wanted, int64_t ticket) {
    struct sx_decoder *decoder = wanted->decoder;
    const size_t bytes = decoder->chunk.spans[wanted->span].length_bytes;
    if (!decoder->copies[wanted->span].stored) {
        atomic_fetch_sub(&device->ahead_bytes, bytes);
        decoder->ahead_bytes -= bytes;
    } else if (ticket > 0) {
        decoder->ahead_ticket = ticket;
    } else {
        decoder->is_ahead_here = true;
    }
}

enum sx_status sx_cuda_decode_ahead(struct sx_stream *base, struct sx_decoder *const *decoders, int n) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(cuda_bring_begin(stream, CUDA_BRING_AHEAD));
    const size_t room = (size_t)count_spans(decoders, n) + 1;
    struct decode_wanted *wanted = calloc(room, sizeof *wanted);
    struct cuda_bring_copy *copies = calloc(room, sizeof *copies);
    enum sx_status status = SX_OK;
    if (wanted && copies) {
        const int64_t n_wanted = list_wanted(stream, decoders, n, wanted);
        const enum cuda_bring_way way =
            decode_runs_are_few(wanted, n_wanted) ? CUDA_BRING_FEW : CUDA_BRING_AHEAD;
        const int64_t ticket = way == CUDA_BRING_FEW ? 0 : cuda_bring_ticket(stream);
        const int64_t n_copies = decode_runs_place(stream, way, wanted, n_wanted, copies);
        for (int64_t i = 0; i < n_wanted; i++)
            note_ticket(stream->device, &wanted[i], ticket);
        status = decode_runs_issue(stream, way, copies, n_copies);
    }
    free(wanted);
    free(copies);
    return status;
}
