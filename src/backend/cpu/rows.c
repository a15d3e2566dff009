/* Rows as frames: the plain way, which the device's is held against. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "tensor/rows.h"

/* Row i of those that are packed. */
struct picked {
    const struct sx_tensor *column;
    const int32_t *order;
    int64_t first, n;
    size_t width_bytes;
};

static int64_t row_of(const struct picked *picked, int64_t i) {
    return picked->order ? picked->order[picked->first + i] : picked->first + i;
}

static bool is_valid(const struct picked *picked, int64_t i) {
    const struct sx_tensor *column = picked->column;
    return !column->valid || column->valid[column->layout == SX_CONSTANT ? 0 : row_of(picked, i)];
}

static const char *value_at(const struct picked *picked, int64_t i) {
    const struct sx_tensor *column = picked->column;
    const char *values = column->values;
    int64_t at = column->layout == SX_CONSTANT ? 0 : row_of(picked, i);
    if (column->layout == SX_DICT) {
        at = ((const int32_t *)column->values)[at];
        values = column->dict->values.values;
    }
    return values + (size_t)at * picked->width_bytes;
}

static size_t long_bytes(const struct picked *picked, int64_t i) {
    struct sx_string view;
    if (!is_valid(picked, i))
        return 0;
    memcpy(&view, value_at(picked, i), sizeof view);
    return view.length_bytes > SX_STRING_INLINE_BYTES ? view.length_bytes : 0;
}

static void pack_string(const struct picked *picked, int64_t i, char *heap, uint64_t *used, char *out) {
    struct sx_string view = {0};
    if (is_valid(picked, i))
        memcpy(&view, value_at(picked, i), sizeof view);
    if (view.length_bytes > SX_STRING_INLINE_BYTES) {
        memcpy(heap + *used, view.u.ref.pointer, view.length_bytes);
        view.u.ref.pointer = (const char *)(uintptr_t)*used;
        *used += view.length_bytes;
    }
    memcpy(out, &view, sizeof view);
}

static void pack_column(const struct picked *picked, const struct sx_rows_column *place, char *frame) {
    char *out = frame + place->values;
    uint64_t used = 0;
    for (int64_t i = 0; i < picked->n; i++, out += picked->width_bytes) {
        if (place->valid)
            frame[place->valid + (uint64_t)i] = (char)is_valid(picked, i);
        if (picked->column->type.id == SX_TYPE_VARCHAR)
            pack_string(picked, i, frame + place->heap, &used, out);
        else if (is_valid(picked, i))
            memcpy(out, value_at(picked, i), picked->width_bytes);
        else
            memset(out, 0, picked->width_bytes);
    }
}

static struct picked pick(const struct sx_batch *batch, int c, const struct sx_tensor *order, int64_t first,
                          int64_t n) {
    const struct sx_tensor *column = &batch->columns[c];
    return (struct picked){column, order ? order->values : NULL, first, n, sx_type_bytes(column->type)};
}

static enum sx_status pack_part(struct sx_stream *stream, const struct sx_batch *batch,
                                const struct sx_tensor *order, int64_t first, int64_t n, int64_t sequence,
                                struct sx_buffer **out_part) {
    struct sx_buffer *head = NULL, *heaps = NULL;
    enum sx_status status;
    SX_GO(sx_buffer_create(stream->pool, sx_rows_head_bytes(batch->n_columns), &head, &stream->error));
    SX_GO(sx_buffer_create(stream->pool, ((size_t)batch->n_columns + 1) * sizeof(uint64_t), &heaps,
                           &stream->error));
    uint64_t *heap_bytes = heaps->data;
    for (int c = 0; c < batch->n_columns; c++) {
        const struct picked picked = pick(batch, c, order, first, n);
        heap_bytes[c] = 0;
        for (int64_t i = 0; i < n && picked.column->type.id == SX_TYPE_VARCHAR; i++)
            heap_bytes[c] += long_bytes(&picked, i);
    }
    const size_t bytes = sx_rows_make_head(batch, n, sequence, heap_bytes, head->data);
    SX_GO(sx_buffer_create(stream->pool, bytes, out_part, &stream->error));
    memcpy((*out_part)->data, head->data, head->size_bytes);
    for (int c = 0; c < batch->n_columns; c++) {
        const struct picked picked = pick(batch, c, order, first, n);
        pack_column(&picked, &sx_rows_columns(head->data)[c], (*out_part)->data);
    }
out:
    sx_buffer_release(head);
    sx_buffer_release(heaps);
    return status;
}

enum sx_status sx_cpu_rows_pack(struct sx_stream *stream, const struct sx_batch *batch,
                                const struct sx_tensor *order, const int64_t *offsets, int n_parts, int skip,
                                int64_t sequence, struct sx_buffer **out_parts) {
    enum sx_status status = SX_OK;
    for (int p = 0; p < n_parts; p++)
        out_parts[p] = NULL;
    for (int p = 0; p < n_parts && status == SX_OK; p++)
        if (p != skip && offsets[p + 1] > offsets[p])
            status = pack_part(stream, batch, order, offsets[p], offsets[p + 1] - offsets[p], sequence,
                               &out_parts[p]);
    for (int p = 0; p < n_parts && status != SX_OK; p++) {
        sx_buffer_release(out_parts[p]);
        out_parts[p] = NULL;
    }
    return status;
}

/* ---- unpacking ---- */

static enum sx_status place_strings(struct sx_stream *stream, char *heap, uint64_t heap_bytes,
                                    struct sx_tensor *column) {
    struct sx_string *views = column->values;
    for (int64_t i = 0; i < column->length; i++) {
        if (views[i].length_bytes <= SX_STRING_INLINE_BYTES)
            continue;
        const uint64_t offset = (uint64_t)(uintptr_t)views[i].u.ref.pointer;
        if (offset > heap_bytes || views[i].length_bytes > heap_bytes - offset)
            return sx_error_set(&stream->error, SX_INTERNAL, "rows of another rank: a string is outside");
        views[i].u.ref.pointer = heap + offset;
    }
    return SX_OK;
}

enum sx_status sx_cpu_rows_unpack(struct sx_stream *stream, struct sx_buffer *frame, size_t bytes,
                                  const struct sx_type *types, int n_columns, struct sx_batch *out_batch,
                                  int64_t *out_sequence) {
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    if (bytes < sx_rows_head_bytes(n_columns))
        return sx_error_set(&stream->error, SX_INTERNAL, "rows of another rank: %zu bytes", bytes);
    SX_TRY(sx_rows_check_head(frame->data, bytes, types, n_columns, &stream->error));
    SX_TRY(sx_rows_place(frame->data, frame, &made, &stream->error));
    const struct sx_rows_column *columns = sx_rows_columns(frame->data);
    for (int c = 0; c < n_columns; c++)
        if (types[c].id == SX_TYPE_VARCHAR)
            SX_GO(place_strings(stream, (char *)frame->data + columns[c].heap, columns[c].heap_bytes,
                                &made.columns[c]));
    *out_sequence = ((const struct sx_rows_frame *)frame->data)->sequence;
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}

/* ---- between the host's memory and the backend's, which is the same ---- */

enum sx_status sx_cpu_bytes_to_host(struct sx_stream *stream, struct sx_buffer *buffer, size_t bytes,
                                    struct sx_pool *pool, struct sx_buffer **out_buffer) {
    (void)stream;
    (void)bytes;
    (void)pool;
    *out_buffer = sx_buffer_retain(buffer);
    return SX_OK;
}

enum sx_status sx_cpu_bytes_from_host(struct sx_stream *stream, struct sx_buffer *buffer, size_t bytes,
                                      struct sx_buffer **out_buffer) {
    (void)stream;
    (void)bytes;
    *out_buffer = sx_buffer_retain(buffer);
    return SX_OK;
}
