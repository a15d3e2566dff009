#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "observe/trace.h"

enum sx_status sx_cpu_stream_create(const struct sx_backend *backend, struct sx_pool *pool,
                                    const atomic_bool *cancel, struct sx_stream **out_stream,
                                    struct sx_error *error) {
    struct sx_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a stream");
    stream->backend = backend;
    stream->pool = pool;
    stream->cancel = cancel;
    *out_stream = stream;
    return SX_OK;
}

void sx_cpu_stream_destroy(struct sx_stream *stream) {
    free(stream);
}

enum sx_status sx_cpu_synchronise(struct sx_stream *stream, const char *why) {
    sx_span_end(stream->lane, SX_SPAN_SYNC, why, sx_span_begin(stream->lane), 0, 0);
    return SX_OK;
}

enum sx_status sx_cpu_prioritise(struct sx_stream *stream, bool is_first) {
    (void)stream;
    (void)is_first;
    return SX_OK;
}

enum sx_status sx_cpu_batch_rows(struct sx_stream *stream, struct sx_batch *batch) {
    (void)stream;
    batch->rows = batch->rows_bound;
    return SX_OK;
}

enum sx_status sx_cpu_batch_from_host(struct sx_stream *stream, const struct sx_batch *batch,
                                      struct sx_batch *out_batch) {
    return sx_batch_share(batch, out_batch, &stream->error);
}

enum sx_status sx_cpu_constant(struct sx_stream *stream, const struct sx_scalar *scalar, int64_t length,
                               struct sx_tensor *out_column) {
    return sx_tensor_create_constant(stream->pool, scalar, length, out_column, &stream->error);
}
