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

/* Of a column on its way: FLAT on the device; of strings what they take, and their bytes and views one behind
 * another. */
struct leaving {
    struct sx_tensor flat;
    struct sx_buffer *offsets, *scratch, *heap, *views;
    int64_t string_bytes;
};

static bool has_strings(const struct sx_tensor *column) {
    return column->type.id == SX_TYPE_VARCHAR && column->length > 0;
}

static enum sx_status begin_strings(struct cuda_stream *stream, struct leaving *leaving) {
    const struct sx_tensor *flat = &leaving->flat;
    const int64_t n = flat->length;
    struct sx_pool *pool = stream->base.pool;
    struct sx_error *error = &stream->base.error;
    SX_TRY(sx_buffer_create(pool, ((size_t)n + 1) * sizeof(int64_t), &leaving->offsets, error));
    SX_TRY(sx_buffer_create(pool, cuda_exclusive_sum_bytes(n), &leaving->scratch, error));
    SX_TRY(sx_buffer_create(pool, (size_t)n * sizeof(struct sx_string), &leaving->views, error));
    cuda_string_lengths(stream->handle, flat->values, flat->valid, n, leaving->offsets->data);
    cuda_exclusive_sum(stream->handle, leaving->offsets->data, n, leaving->offsets->data,
                       leaving->scratch->data);
    return cuda_launched(stream, "string lengths");
}

/* Puts strings' bytes one behind another, with views whose pointers lead into host->heap. */
static enum sx_status pack_strings(struct cuda_stream *stream, struct leaving *leaving,
                                   struct sx_tensor *host) {
    const struct sx_tensor *flat = &leaving->flat;
    const size_t bytes = (size_t)leaving->string_bytes;
    SX_TRY(sx_buffer_create(stream->base.pool, bytes, &leaving->heap, &stream->base.error));
    SX_TRY(sx_buffer_create(stream->host_pool, bytes, &host->heap, &stream->base.error));
    cuda_string_copy(stream->handle, flat->values, flat->valid, flat->length, leaving->offsets->data,
                     leaving->heap->data, host->heap->data, leaving->views->data);
    return cuda_launched(stream, "string copy");
}

static enum sx_status flatten(struct cuda_stream *stream, const struct sx_tensor *columns, int n,
                              struct leaving *leaving, struct sx_tensor *hosts) {
    for (int i = 0; i < n; i++) {
        struct sx_tensor *flat = &leaving[i].flat;
        SX_TRY(cuda_flatten(stream, &columns[i], flat));
        SX_TRY(sx_tensor_create(stream->host_pool, flat->type, flat->length, flat->valid != NULL, &hosts[i],
                                &stream->base.error));
        if (has_strings(flat))
            SX_TRY(begin_strings(stream, &leaving[i]));
    }
    return SX_OK;
}

/* All but strings, of which it is only told how long they are together. */
static enum sx_status download_values(struct cuda_stream *stream, struct cuda_downloads *downloads,
                                      struct leaving *leaving, struct sx_tensor *host) {
    const struct sx_tensor *flat = &leaving->flat;
    const size_t n = (size_t)flat->length;
    if (flat->valid)
        SX_TRY(cuda_download_later(stream, downloads, host->valid, flat->valid, n, a_batch));
    if (has_strings(flat))
        return cuda_download_later(stream, downloads, &leaving->string_bytes,
                                   (int64_t *)leaving->offsets->data + n, sizeof(int64_t), a_batch);
    return cuda_download_later(stream, downloads, host->values, flat->values, n * sx_type_bytes(flat->type),
                               a_batch);
}

static enum sx_status download_strings(struct cuda_stream *stream, struct cuda_downloads *downloads,
                                       struct leaving *leaving, struct sx_tensor *host) {
    SX_TRY(pack_strings(stream, leaving, host));
    SX_TRY(cuda_download_later(stream, downloads, host->heap->data, leaving->heap->data,
                               (size_t)leaving->string_bytes, a_batch));
    return cuda_download_later(stream, downloads, host->values, leaving->views->data,
                               (size_t)leaving->flat.length * sizeof(struct sx_string), a_batch);
}

static void release_leaving(struct leaving *leaving) {
    sx_tensor_release(&leaving->flat);
    sx_buffer_release(leaving->offsets);
    sx_buffer_release(leaving->scratch);
    sx_buffer_release(leaving->heap);
    sx_buffer_release(leaving->views);
    *leaving = (struct leaving){0};
}

/* Waits once, and once more where there are strings. */
static enum sx_status download_all(struct cuda_stream *stream, struct leaving *leaving, int n,
                                   struct sx_tensor *hosts) {
    struct cuda_downloads downloads = {0};
    bool any = false;
    for (int i = 0; i < n; i++)
        SX_TRY(download_values(stream, &downloads, &leaving[i], &hosts[i]));
    SX_TRY(cuda_downloads_land(stream, &downloads, a_batch));
    for (int i = 0; i < n; i++) {
        if (!has_strings(&leaving[i].flat))
            continue;
        SX_TRY(download_strings(stream, &downloads, &leaving[i], &hosts[i]));
        any = true;
    }
    return any ? cuda_downloads_land(stream, &downloads, a_batch) : SX_OK;
}

static enum sx_status columns_to_host(struct cuda_stream *stream, const struct sx_tensor *columns, int n,
                                      struct sx_tensor *hosts) {
    struct leaving *leaving = calloc((size_t)n, sizeof *leaving);
    if (!leaving)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a batch's columns");
    enum sx_status status = flatten(stream, columns, n, leaving, hosts);
    if (status == SX_OK)
        status = download_all(stream, leaving, n, hosts);
    for (int i = 0; i < n; i++)
        release_leaving(&leaving[i]);
    free(leaving);
    return status;
}

/* Of few rows what takes the time are the waits; of many, memory for one column at a time is enough. */
enum sx_status sx_cuda_batch_to_host(struct sx_stream *base, const struct sx_batch *batch,
                                     struct sx_batch *out_batch) {
    enum { FEW_ROWS = 1 << 16 };
    struct cuda_stream *stream;
    struct sx_batch made = {0};
    enum sx_status status;
    SX_TRY(cuda_enter(base, &stream));
    SX_GO(sx_batch_create(batch->n_columns, batch->rows, &made, &base->error));
    const int n = batch->rows <= FEW_ROWS ? batch->n_columns : 1;
    for (int i = 0; i < batch->n_columns; i += n)
        SX_GO(columns_to_host(stream, &batch->columns[i], n, &made.columns[i]));
    if (batch->n_columns == 0)
        SX_GO(cuda_sync(stream, a_batch));
    *out_batch = made;
    made = (struct sx_batch){0};
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
