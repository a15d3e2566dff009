/* Rows as frames: the plain way, which the device's is held against. */
#include <string.h>

#include "backend/cpu/rows.h"

static size_t long_bytes(const struct cpu_picked *picked, int64_t i) {
    const size_t length = cpu_picked_string(picked, i).length_bytes;
    return length > SX_STRING_INLINE_BYTES ? length : 0;
}

static void pack_string(const struct cpu_picked *picked, int64_t i, char *heap, uint64_t *used, char *out) {
    struct sx_string view = cpu_picked_string(picked, i);
    if (view.length_bytes > SX_STRING_INLINE_BYTES) {
        memcpy(heap + *used, view.u.ref.pointer, view.length_bytes);
        view.u.ref.pointer = (const char *)(uintptr_t)*used;
        *used += view.length_bytes;
    }
    memcpy(out, &view, sizeof view);
}

static struct cpu_picked pick_entries(const struct sx_tensor *column) {
    const struct sx_tensor *entries = &column->dict->values;
    return (struct cpu_picked){entries, NULL, 0, entries->length, sizeof(struct sx_string)};
}

static void pack_dictionary(const struct sx_tensor *column, char *out) {
    const struct cpu_picked picked = pick_entries(column);
    char *heap = out + sx_rows_entries_bytes((uint64_t)picked.n);
    uint64_t used = 0;
    for (int64_t i = 0; i < picked.n; i++)
        pack_string(&picked, i, heap, &used, out + (size_t)i * picked.width_bytes);
}

/* Of one that goes with the column. */
static void add_dictionary(const struct sx_tensor *column, struct sx_rows_shape *shape) {
    const struct cpu_picked picked = pick_entries(column);
    shape->n_entries = (uint64_t)picked.n;
    shape->dictionary_bytes = sx_rows_entries_bytes(shape->n_entries);
    for (int64_t i = 0; i < picked.n; i++)
        shape->dictionary_bytes += long_bytes(&picked, i);
}

/* Its encoding, if columns are packed where that is worth it, or NARROW where they fit, and lengths. */
static struct sx_rows_shape shape_of(const struct cpu_picked *picked, bool packs,
                                     struct sx_rows_narrow *narrow) {
    const struct sx_type type = picked->column->type;
    struct sx_rows_shape shape = {0};
    for (int64_t i = 0; type.id == SX_TYPE_VARCHAR && i < picked->n; i++) {
        shape.characters_bytes += cpu_picked_string(picked, i).length_bytes;
        shape.long_bytes += long_bytes(picked, i);
    }
    if (packs) {
        shape.words_bytes = cpu_rows_write_blocks(picked, NULL, NULL);
        shape.encoding =
            sx_rows_choose(type, picked->column->valid != NULL, picked->n, pack_blocks_of(picked->n), &shape);
    } else if (narrow && cpu_rows_fits(picked, narrow)) {
        shape.encoding = SX_ROWS_NARROW;
        shape.base = narrow->base;
    }
    return shape;
}

static void pack_column(const struct cpu_picked *picked, const struct sx_rows_column *place, char *frame) {
    char *out = frame + place->values;
    uint64_t used = 0;
    if (place->encoding == SX_ROWS_PACKED) {
        const int n_vectors = sx_rows_vectors(picked->column->type, place->valid != 0);
        (void)cpu_rows_write_blocks(picked, (struct sx_pack_block *)(uintptr_t)out,
                                    out + sx_rows_directory_bytes(picked->n, n_vectors));
        if (picked->column->type.id == SX_TYPE_VARCHAR)
            cpu_rows_write_characters(picked, frame + place->heap);
        return;
    }
    if (place->encoding == SX_ROWS_NARROW) {
        cpu_rows_write_narrow(picked, place, frame);
        return;
    }
    for (int64_t i = 0; i < picked->n; i++, out += picked->width_bytes) {
        if (place->valid)
            frame[place->valid + (uint64_t)i] = (char)cpu_picked_is_valid(picked, i);
        if (picked->column->type.id == SX_TYPE_VARCHAR)
            pack_string(picked, i, frame + place->heap, &used, out);
        else if (cpu_picked_is_valid(picked, i))
            memcpy(out, cpu_picked_value(picked, i), picked->width_bytes);
        else
            memset(out, 0, picked->width_bytes);
    }
}

static struct cpu_picked pick(const struct sx_batch *batch, int c, const struct sx_tensor *order,
                              int64_t first, int64_t n) {
    const struct sx_tensor *column = &batch->columns[c];
    return (struct cpu_picked){column, order ? order->values : NULL, first, n, sx_type_bytes(column->type)};
}

static enum sx_status pack_part(struct sx_stream *stream, const struct sx_batch *batch,
                                const struct sx_tensor *order, const int64_t *ends, int64_t sequence,
                                bool packs, struct sx_rows_narrow *narrow, struct sx_buffer **out_part,
                                size_t *plain_bytes) {
    struct sx_buffer *head = NULL, *shapes = NULL, *columns = NULL;
    const int64_t n = ends[1] - ends[0];
    struct sx_batch stored = *batch;
    enum sx_status status;
    SX_GO(sx_buffer_create(stream->pool, ((size_t)batch->n_columns + 1) * sizeof(struct sx_tensor), &columns,
                           &stream->error));
    stored.columns = columns->data;
    SX_GO(sx_buffer_create(stream->pool, sx_rows_head_bytes(batch->n_columns), &head, &stream->error));
    SX_GO(sx_buffer_create(stream->pool, ((size_t)batch->n_columns + 1) * sizeof(struct sx_rows_shape),
                           &shapes, &stream->error));
    struct sx_rows_shape *shape = shapes->data;
    for (int c = 0; c < batch->n_columns; c++) {
        const struct sx_tensor *column = &batch->columns[c];
        const bool is_coded = sx_rows_sends_dictionary(column, n, 1);
        stored.columns[c] = is_coded ? sx_rows_codes(column) : *column;
        const struct cpu_picked picked = pick(&stored, c, order, ends[0], n);
        shape[c] = shape_of(&picked, packs, narrow ? &narrow[c] : NULL);
        if (is_coded)
            add_dictionary(column, &shape[c]);
    }
    *plain_bytes += sx_rows_plain_bytes(&stored, n, shape);
    const size_t bytes = sx_rows_make_head(&stored, n, sequence, shape, head->data);
    SX_GO(sx_buffer_create(stream->pool, bytes, out_part, &stream->error));
    memcpy((*out_part)->data, head->data, head->size_bytes);
    for (int c = 0; c < batch->n_columns; c++) {
        const struct cpu_picked picked = pick(&stored, c, order, ends[0], n);
        const struct sx_rows_column *place = &sx_rows_columns(head->data)[c];
        pack_column(&picked, place, (*out_part)->data);
        if (place->n_entries > 0)
            pack_dictionary(&batch->columns[c], (char *)(*out_part)->data + place->heap);
    }
out:
    sx_buffer_release(columns);
    sx_buffer_release(head);
    sx_buffer_release(shapes);
    return status;
}

static enum sx_status take_own(struct sx_stream *stream, const struct sx_batch *batch,
                               const struct sx_row_parts *parts, struct sx_batch *out_own) {
    const int64_t first = parts->offsets[parts->own], n = parts->offsets[parts->own + 1] - first;
    struct sx_tensor index = {0};
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    if (n == 0)
        return SX_OK;
    if (!parts->order)
        return sx_batch_slice(batch, first, n, out_own, &stream->error);
    sx_tensor_slice(parts->order, first, n, &index);
    SX_GO(sx_batch_create(batch->n_columns, n, &made, &stream->error));
    for (int c = 0; c < batch->n_columns; c++)
        SX_GO(sx_cpu_gather(stream, &batch->columns[c], &index, &made.columns[c]));
    *out_own = made;
    made = (struct sx_batch){0};
out:
    sx_batch_release(&made);
    sx_tensor_release(&index);
    return status;
}

enum sx_status sx_cpu_rows_pack(struct sx_stream *stream, const struct sx_batch *batch,
                                const struct sx_row_parts *parts, int64_t sequence, bool packs,
                                struct sx_rows_narrow *narrow, struct sx_buffer **out_parts,
                                size_t *out_plain_bytes, struct sx_batch *out_own) {
    const int64_t *offsets = parts->offsets;
    enum sx_status status = SX_OK;
    *out_plain_bytes = 0;
    *out_own = (struct sx_batch){0};
    for (int p = 0; p < parts->n_parts; p++)
        out_parts[p] = NULL;
    for (int p = 0; p < parts->n_parts && status == SX_OK; p++)
        if (p != parts->own && offsets[p + 1] > offsets[p])
            status = pack_part(stream, batch, parts->order, &offsets[p], sequence, packs, narrow,
                               &out_parts[p], out_plain_bytes);
    if (status == SX_OK && parts->own >= 0)
        status = take_own(stream, batch, parts, out_own);
    for (int p = 0; p < parts->n_parts && status != SX_OK; p++) {
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

static enum sx_status check_codes(struct sx_stream *stream, const struct sx_rows_column *place,
                                  const struct sx_tensor *column) {
    const int32_t *codes = column->values;
    for (int64_t i = 0; i < column->length; i++)
        if (codes[i] < 0 || (uint64_t)codes[i] >= place->n_entries)
            return sx_error_set(&stream->error, SX_INTERNAL,
                                "rows of another rank: a code that its dictionary does not have");
    return SX_OK;
}

static enum sx_status place_dictionary(struct sx_stream *stream, const struct sx_rows_column *place,
                                       const char *frame, struct sx_tensor *column) {
    const uint64_t entries_bytes = sx_rows_entries_bytes(place->n_entries);
    struct sx_buffer *block;
    SX_TRY(check_codes(stream, place, column));
    SX_TRY(sx_buffer_create(stream->pool, place->heap_bytes, &block, &stream->error));
    memcpy(block->data, frame + place->heap, place->heap_bytes);
    enum sx_status status = sx_rows_add_dictionary(place, block, column, &stream->error);
    if (status == SX_OK)
        status = place_strings(stream, (char *)block->data + entries_bytes, place->heap_bytes - entries_bytes,
                               &column->dict->values);
    sx_buffer_release(block);
    return status;
}

enum sx_status sx_cpu_rows_unpack(struct sx_stream *stream, struct sx_buffer *frame, size_t bytes,
                                  bool from_host, const struct sx_type *types, int n_columns,
                                  const bool *are_moved, struct sx_batch *out_batch, int64_t *out_sequence) {
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    (void)from_host;
    (void)are_moved; /* all is widened */
    if (bytes < sx_rows_head_bytes(n_columns))
        return sx_error_set(&stream->error, SX_INTERNAL, "rows of another rank: %zu bytes", bytes);
    SX_TRY(sx_rows_check_head(frame->data, bytes, types, n_columns, &stream->error));
    SX_TRY(sx_rows_place(frame->data, frame, stream->pool, NULL, &made, &stream->error));
    const struct sx_rows_column *columns = sx_rows_columns(frame->data);
    for (int c = 0; c < n_columns; c++)
        if (columns[c].encoding == SX_ROWS_PACKED)
            SX_GO(cpu_rows_read_blocks(stream, &columns[c], frame->data, &made.columns[c]));
        else if (columns[c].encoding == SX_ROWS_NARROW)
            cpu_rows_read_narrow(&columns[c], frame->data, &made.columns[c]);
        else if (types[c].id == SX_TYPE_VARCHAR && columns[c].n_entries == 0)
            SX_GO(place_strings(stream, (char *)frame->data + columns[c].heap, columns[c].heap_bytes,
                                &made.columns[c]));
    for (int c = 0; c < n_columns; c++)
        if (columns[c].n_entries > 0)
            SX_GO(place_dictionary(stream, &columns[c], frame->data, &made.columns[c]));
    *out_sequence = ((const struct sx_rows_frame *)frame->data)->sequence;
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}

/* ---- between the host's memory and the backend's, which is the same ---- */

enum sx_status sx_cpu_bytes_to_host(struct sx_stream *stream, struct sx_buffer *const *buffers, int n,
                                    struct sx_pool *pool, struct sx_buffer **out_buffers) {
    (void)stream;
    (void)pool;
    for (int i = 0; i < n; i++)
        out_buffers[i] = sx_buffer_retain(buffers[i]);
    return SX_OK;
}

enum sx_status sx_cpu_bytes_from_host(struct sx_stream *stream, struct sx_buffer *buffer, size_t bytes,
                                      struct sx_buffer **out_buffer) {
    (void)stream;
    (void)bytes;
    *out_buffer = sx_buffer_retain(buffer);
    return SX_OK;
}

enum sx_status sx_cpu_bytes_to_send(struct sx_stream *stream, const struct sx_buffer *buffer, size_t first,
                                    size_t bytes, struct sx_buffer **out_buffer) {
    struct sx_buffer *message;
    SX_TRY(sx_buffer_create(stream->pool, bytes, &message, &stream->error));
    memcpy(message->data, (const char *)buffer->data + first, bytes);
    *out_buffer = message;
    return SX_OK;
}
