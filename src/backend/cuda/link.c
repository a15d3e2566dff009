/* How quickly the device copies from the host's memory. */
#include <string.h>

#include "backend/cuda/cuda.h"
#include "base/clock.h"

enum { MOST_LINK_BYTES = 64 << 20, LEAST_LINK_BYTES = 1 << 20, N_COPIES = 4 };

static enum sx_status copy(struct cuda_stream *stream, void *device, const void *host, size_t bytes) {
    const struct sx_pool *pool = stream->host_pool;
    return sx_pool_is_pinned(pool) ? cuda_upload_pinned(stream, device, host, bytes)
                                   : cuda_upload(stream, device, host, bytes);
}

static enum sx_status time_copies(struct cuda_stream *stream, void *device, const void *host, size_t bytes,
                                  double *out_bytes_per_second) {
    int64_t began_ns = 0;
    for (int i = 0; i <= N_COPIES; i++) {
        SX_TRY(copy(stream, device, host, bytes));
        if (i > 0) /* the first one warms up */
            continue;
        SX_TRY(cuda_sync(stream, "the link is warm"));
        began_ns = sx_clock_ns();
    }
    SX_TRY(cuda_sync(stream, "the link is measured"));
    *out_bytes_per_second = (double)bytes * N_COPIES / ((double)(sx_clock_ns() - began_ns) * 1e-9);
    return SX_OK;
}

/* With blocks of so many bytes. */
static enum sx_status measure(struct cuda_stream *stream, size_t bytes, double *out_bytes_per_second) {
    struct sx_buffer *host = NULL, *device = NULL;
    enum sx_status status;
    SX_GO(sx_buffer_create(stream->host_pool, bytes, &host, &stream->base.error));
    SX_GO(sx_buffer_create(stream->base.pool, bytes, &device, &stream->base.error));
    memset(host->data, 0, bytes);
    SX_GO(time_copies(stream, device->data, host->data, bytes, out_bytes_per_second));
out:
    sx_buffer_release(host);
    sx_buffer_release(device);
    return status;
}

/* Less where memory lacks. */
static enum sx_status measure_some(struct cuda_stream *stream, double *out_bytes_per_second) {
    for (size_t bytes = MOST_LINK_BYTES;; bytes /= 2) {
        enum sx_status status = measure(stream, bytes, out_bytes_per_second);
        if (status != SX_OUT_OF_MEMORY || bytes <= LEAST_LINK_BYTES)
            return status;
        stream->base.error = (struct sx_error){0};
    }
}

enum sx_status sx_cuda_link_measure(const struct sx_backend *backend, struct sx_pool *io_pool,
                                    double *out_bytes_per_second, struct sx_error *error) {
    struct sx_stream *base;
    struct cuda_stream *stream;
    SX_TRY(sx_cuda_stream_create(backend, io_pool, NULL, &base, error));
    enum sx_status status = cuda_enter(base, &stream);
    if (status == SX_OK)
        status = measure_some(stream, out_bytes_per_second);
    if (status != SX_OK)
        status = sx_error_set(error, status, "%s", base->error.text);
    sx_cuda_stream_destroy(base);
    return status;
}
