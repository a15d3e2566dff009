/* Between host and device memory. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch.h"

/* Row counts are on the host already. */
enum sx_status sx_cuda_batch_rows(struct sx_stream *base, struct sx_batch *batch) {
    (void)base;
    batch->rows = batch->rows_bound;
    return SX_OK;
}

/* ---- to the host ---- */

static const char a_batch[] = "a batch to the host";

/* Views whose pointers lead into *out_heap, which is host memory. */
static enum sx_status strings_to_host(struct cuda_stream *stream, const struct sx_tensor *flat,
                                      struct sx_tensor *host) {
    struct sx_buffer *offsets = NULL, *scratch = NULL, *heap = NULL, *views = NULL;
    const int64_t n = flat->length;
    int64_t total = 0;
    struct sx_pool *pool = stream->base.pool;
    struct sx_error *error = &stream->base.error;
    enum sx_status status;
    SX_GO(sx_buffer_create(pool, ((size_t)n + 1) * sizeof(int64_t), &offsets, error));
    SX_GO(sx_buffer_create(pool, cuda_exclusive_sum_bytes(n), &scratch, error));
    SX_GO(sx_buffer_create(pool, (size_t)n * sizeof(struct sx_string), &views, error));
    cuda_string_lengths(stream->handle, flat->values, flat->valid, n, offsets->data);
    cuda_exclusive_sum(stream->handle, offsets->data, n, offsets->data, scratch->data);
    SX_GO(cuda_launched(stream, "string lengths"));
    SX_GO(cuda_download(stream, &total, (int64_t *)offsets->data + n, sizeof total, a_batch));
    SX_GO(sx_buffer_create(pool, (size_t)total, &heap, error));
    SX_GO(sx_buffer_create(stream->host_pool, (size_t)total, &host->heap, error));
    cuda_string_copy(stream->handle, flat->values, flat->valid, n, offsets->data, heap->data,
                     host->heap->data, views->data);
    SX_GO(cuda_launched(stream, "string copy"));
    SX_GO(cuda_download(stream, host->heap->data, heap->data, (size_t)total, a_batch));
    SX_GO(cuda_download(stream, host->values, views->data, (size_t)n * sizeof(struct sx_string), a_batch));
out:
    sx_buffer_release(offsets);
    sx_buffer_release(scratch);
    sx_buffer_release(heap);
    sx_buffer_release(views);
    return status;
}

static enum sx_status column_to_host(struct cuda_stream *stream, const struct sx_tensor *column,
                                     struct sx_tensor *out_host) {
    struct sx_tensor flat = {0}, host = {0};
    enum sx_status status;
    SX_GO(cuda_flatten(stream, column, &flat));
    SX_GO(sx_tensor_create(stream->host_pool, flat.type, flat.length, flat.valid != NULL, &host,
                           &stream->base.error));
    if (flat.valid)
        SX_GO(cuda_download(stream, host.valid, flat.valid, (size_t)flat.length, a_batch));
    if (flat.type.id == SX_TYPE_VARCHAR && flat.length > 0)
        SX_GO(strings_to_host(stream, &flat, &host));
    else
        SX_GO(cuda_download(stream, host.values, flat.values, (size_t)flat.length * sx_type_bytes(flat.type),
                            a_batch));
    *out_host = host;
    host = (struct sx_tensor){0};
out:
    sx_tensor_release(&flat);
    sx_tensor_release(&host);
    return status;
}

enum sx_status sx_cuda_batch_to_host(struct sx_stream *base, const struct sx_batch *batch,
                                     struct sx_batch *out_batch) {
    struct cuda_stream *stream;
    struct sx_batch made = {0};
    enum sx_status status;
    SX_TRY(cuda_enter(base, &stream));
    SX_GO(sx_batch_create(batch->n_columns, batch->rows, &made, &base->error));
    for (int i = 0; i < batch->n_columns; i++)
        SX_GO(column_to_host(stream, &batch->columns[i], &made.columns[i]));
    SX_GO(cuda_sync(stream, a_batch)); /* also where there are no columns */
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}

/* ---- from the host ---- */

static size_t outside_bytes(const struct sx_string *view) {
    return view->length_bytes > SX_STRING_INLINE_BYTES ? view->length_bytes : 0;
}

/* Host views to device views, and the bytes behind them to a device heap. */
static enum sx_status strings_from_host(struct cuda_stream *stream, const struct sx_tensor *host, int64_t n,
                                        struct sx_tensor *device) {
    const struct sx_string *from = host->values;
    size_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += host->valid && !host->valid[i] ? 0 : outside_bytes(&from[i]);
    struct sx_string *views = calloc((size_t)n + 1, sizeof *views);
    char *bytes = malloc(total + 1);
    enum sx_status status = SX_OK;
    if (!views || !bytes)
        SX_GO(sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for strings"));
    SX_GO(sx_buffer_create(stream->base.pool, total, &device->heap, &stream->base.error));
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (host->valid && !host->valid[i])
            continue;
        views[i] = from[i];
        if (!outside_bytes(&from[i]))
            continue;
        memcpy(bytes + at, from[i].u.ref.pointer, from[i].length_bytes);
        views[i].u.ref.pointer = (char *)device->heap->data + at;
        at += from[i].length_bytes;
    }
    SX_GO(cuda_upload(stream, device->heap->data, bytes, total));
    SX_GO(cuda_upload(stream, device->values, views, (size_t)n * sizeof *views));
out:
    free(views);
    free(bytes);
    return status;
}

/* Values and validity of a host tensor in any layout but DICT; one row where it is CONSTANT. */
static enum sx_status values_from_host(struct cuda_stream *stream, const struct sx_tensor *host,
                                       struct sx_tensor *out) {
    struct sx_tensor made = {0};
    const int64_t n = host->layout == SX_CONSTANT ? 1 : host->length;
    enum sx_status status;
    SX_GO(
        sx_tensor_create(stream->base.pool, host->type, n, host->valid != NULL, &made, &stream->base.error));
    made.layout = host->layout;
    made.length = host->length;
    if (host->valid)
        SX_GO(cuda_upload(stream, made.valid, host->valid, (size_t)n));
    if (host->type.id == SX_TYPE_VARCHAR)
        SX_GO(strings_from_host(stream, host, n, &made));
    else
        SX_GO(cuda_upload(stream, made.values, host->values, (size_t)n * sx_type_bytes(host->type)));
    *out = made;
    return SX_OK;
out:
    sx_tensor_release(&made);
    return status;
}

static enum sx_status codes_from_host(struct cuda_stream *stream, const struct sx_tensor *host,
                                      struct sx_tensor *out) {
    struct sx_tensor entries = {0}, made = {0};
    struct sx_dict *dict = NULL;
    enum sx_status status;
    SX_GO(values_from_host(stream, &host->dict->values, &entries));
    SX_GO(sx_dict_create(&entries, &dict, &stream->base.error));
    SX_GO(sx_tensor_create_codes(stream->base.pool, dict, host->length, host->valid != NULL, &made,
                                 &stream->base.error));
    SX_GO(cuda_upload(stream, made.values, host->values, (size_t)host->length * sizeof(int32_t)));
    if (host->valid)
        SX_GO(cuda_upload(stream, made.valid, host->valid, (size_t)host->length));
    *out = made;
    made = (struct sx_tensor){0};
out:
    sx_tensor_release(&entries);
    sx_tensor_release(&made);
    sx_dict_release(dict);
    return status;
}

enum sx_status sx_cuda_batch_from_host(struct sx_stream *base, const struct sx_batch *batch,
                                       struct sx_batch *out_batch) {
    struct cuda_stream *stream;
    struct sx_batch made = {0};
    enum sx_status status;
    SX_TRY(cuda_enter(base, &stream));
    SX_GO(sx_batch_create(batch->n_columns, batch->rows, &made, &base->error));
    for (int i = 0; i < batch->n_columns; i++) {
        const struct sx_tensor *host = &batch->columns[i];
        SX_GO(host->layout == SX_DICT ? codes_from_host(stream, host, &made.columns[i])
                                      : values_from_host(stream, host, &made.columns[i]));
    }
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}

enum sx_status sx_cuda_constant(struct sx_stream *base, const struct sx_scalar *scalar, int64_t length,
                                struct sx_tensor *out_column) {
    struct cuda_stream *stream;
    struct sx_tensor host;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(sx_tensor_create_constant(stream->host_pool, scalar, length, &host, &base->error));
    enum sx_status status = values_from_host(stream, &host, out_column);
    sx_tensor_release(&host);
    return status;
}
