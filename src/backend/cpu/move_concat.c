#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"

static void fill_values(const void *value, size_t value_bytes, int64_t rows, void *out_values) {
    char *out = out_values;
    size_t filled = 1, wanted = (size_t)rows;
    if (!wanted)
        return;
    memcpy(out, value, value_bytes);
    for (; filled < wanted; filled *= 2) {
        size_t more = filled < wanted - filled ? filled : wanted - filled;
        memcpy(out + filled * value_bytes, out, more * value_bytes);
    }
}

void sx_cpu_copy_values(const struct sx_tensor *column, int64_t first, int64_t rows, void *out_values) {
    size_t value_bytes = sx_type_bytes(column->type);
    if (!rows)
        return;
    if (column->layout == SX_CONSTANT) {
        fill_values(column->values, value_bytes, rows, out_values);
    } else if (column->layout == SX_FLAT) {
        memcpy(out_values, (const char *)column->values + (size_t)first * value_bytes,
               (size_t)rows * value_bytes);
    } else if (column->dict->values.length == 0) {
        memset(out_values, 0, (size_t)rows * value_bytes); /* all rows are null */
    } else {
        const int32_t *codes = (const int32_t *)column->values + first;
        sx_cpu_gather_values(column->dict->values.values, value_bytes, codes, SX_TYPE_I32, false, rows,
                             out_values);
    }
}

void sx_cpu_copy_valid(const struct sx_tensor *column, int64_t first, int64_t rows, uint8_t *out_valid) {
    if (!rows)
        return;
    if (!column->valid)
        memset(out_valid, 1, (size_t)rows);
    else if (column->layout == SX_CONSTANT)
        memset(out_valid, column->valid[0], (size_t)rows);
    else
        memcpy(out_valid, column->valid + first, (size_t)rows);
}

enum sx_status sx_cpu_flatten(struct sx_stream *stream, const struct sx_tensor *column,
                              struct sx_tensor *out_column) {
    return sx_cpu_concat(stream, column->type, &column, 1, SX_CONCAT_SHARED, out_column);
}

static struct sx_buffer *heap_of(const struct sx_tensor *column) {
    return column->layout == SX_DICT ? column->dict->values.heap : column->heap;
}

/* A dictionary whose entries have been copied. */
struct copied_dict {
    uint64_t id;
    struct sx_string *views; /* [entries] */
    int64_t entries;
};

static enum sx_status copy_dict(struct sx_stream *stream, const struct sx_dict *dict,
                                struct sx_string_heap *heap, struct copied_dict *copied) {
    sx_pool_free(stream->pool, copied->views, (size_t)copied->entries * sizeof *copied->views);
    *copied = (struct copied_dict){0};
    void *views = NULL;
    size_t bytes = (size_t)dict->values.length * sizeof *copied->views;
    SX_TRY(sx_pool_alloc(stream->pool, bytes, &views, &stream->error));
    if (bytes)
        memcpy(views, dict->values.values, bytes);
    *copied = (struct copied_dict){dict->id, views, dict->values.length};
    return sx_string_heap_take(stream, heap, copied->views, NULL, copied->entries);
}

/* One part's strings with bytes of their own. A dictionary no longer than its part is copied once. */
static enum sx_status copy_strings(struct sx_stream *stream, const struct sx_tensor *part,
                                   const uint8_t *valid, struct sx_string_heap *heap,
                                   struct copied_dict *copied, struct sx_string *out_views) {
    if (part->layout == SX_CONSTANT) {
        struct sx_string view = *(const struct sx_string *)part->values;
        SX_TRY(sx_string_heap_take(stream, heap, &view, part->valid, 1));
        fill_values(&view, sizeof view, part->length, out_views);
        return SX_OK;
    }
    bool known = part->layout == SX_DICT && copied->views && copied->id == part->dict->id;
    bool small = part->layout == SX_DICT && part->dict->values.length <= part->length;
    if (!known && !small) {
        sx_cpu_copy_values(part, 0, part->length, out_views);
        return sx_string_heap_take(stream, heap, out_views, valid, part->length);
    }
    if (!known)
        SX_TRY(copy_dict(stream, part->dict, heap, copied));
    if (copied->entries)
        sx_cpu_gather_values(copied->views, sizeof *copied->views, part->values, SX_TYPE_I32, false,
                             part->length, out_views);
    else
        memset(out_views, 0, (size_t)part->length * sizeof *out_views);
    return SX_OK;
}

static enum sx_status concat_compact(struct sx_stream *stream, const struct sx_tensor *const *columns,
                                     int64_t n, struct sx_tensor *out) {
    struct sx_string_heap heap = {0};
    struct copied_dict copied = {0};
    enum sx_status status = SX_OK;
    int64_t at = 0;
    for (int64_t i = 0; i < n; at += columns[i++]->length) {
        struct sx_string *views = (struct sx_string *)out->values + at;
        if (columns[i]->length)
            SX_GO(
                copy_strings(stream, columns[i], out->valid ? out->valid + at : NULL, &heap, &copied, views));
    }
    SX_GO(sx_buffer_join(stream->pool, heap.blocks, heap.n_blocks, &out->heap, &stream->error));
out:
    sx_string_heap_release(&heap);
    sx_pool_free(stream->pool, copied.views, (size_t)copied.entries * sizeof *copied.views);
    return status;
}

static enum sx_status join_heaps(struct sx_stream *stream, const struct sx_tensor *const *columns, int64_t n,
                                 struct sx_tensor *out) {
    struct sx_buffer **heaps = calloc((size_t)n + 1, sizeof *heaps);
    if (!heaps)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a list of %lld heaps",
                            (long long)n);
    for (int64_t i = 0; i < n; i++)
        heaps[i] = columns[i]->length ? heap_of(columns[i]) : NULL;
    enum sx_status status = sx_buffer_join(stream->pool, heaps, (int)n, &out->heap, &stream->error);
    free(heaps);
    return status;
}

static enum sx_status concat_rows(struct sx_stream *stream, const struct sx_tensor *const *columns, int64_t n,
                                  enum sx_concat how, struct sx_tensor *out) {
    int64_t at = 0;
    for (int64_t i = 0; out->valid && i < n; at += columns[i++]->length)
        sx_cpu_copy_valid(columns[i], 0, columns[i]->length, out->valid + at);
    if (out->type.id == SX_TYPE_VARCHAR && how == SX_CONCAT_COMPACT)
        return concat_compact(stream, columns, n, out);
    size_t value_bytes = sx_type_bytes(out->type);
    at = 0;
    for (int64_t i = 0; i < n; at += columns[i++]->length) {
        SX_TRY(sx_cpu_check_cancel(stream));
        sx_cpu_copy_values(columns[i], 0, columns[i]->length, (char *)out->values + (size_t)at * value_bytes);
    }
    return out->type.id == SX_TYPE_VARCHAR ? join_heaps(stream, columns, n, out) : SX_OK;
}

enum sx_status sx_cpu_concat(struct sx_stream *stream, struct sx_type type,
                             const struct sx_tensor *const *columns, int64_t n, enum sx_concat how,
                             struct sx_tensor *out_column) {
    if (n == 1 && columns[0]->layout == SX_FLAT &&
        !(how == SX_CONCAT_COMPACT && type.id == SX_TYPE_VARCHAR)) {
        sx_tensor_share(columns[0], out_column);
        return SX_OK;
    }
    int64_t rows = 0;
    bool with_valid = false;
    for (int64_t i = 0; i < n; i++) {
        rows += columns[i]->length;
        with_valid |= columns[i]->valid && columns[i]->length;
    }
    struct sx_tensor out = {0};
    SX_TRY(sx_tensor_create(stream->pool, type, rows, with_valid, &out, &stream->error));
    enum sx_status status = concat_rows(stream, columns, n, how, &out);
    if (status == SX_OK)
        *out_column = out;
    else
        sx_tensor_release(&out);
    return status;
}

enum sx_status sx_cpu_batch_to_host(struct sx_stream *stream, const struct sx_batch *batch,
                                    struct sx_batch *out_batch) {
    struct sx_batch out = {0};
    SX_TRY(sx_batch_create(batch->n_columns, batch->rows_bound, &out, &stream->error));
    for (int i = 0; i < batch->n_columns; i++) {
        enum sx_status status = sx_cpu_flatten(stream, &batch->columns[i], &out.columns[i]);
        if (status != SX_OK) {
            sx_batch_release(&out);
            return status;
        }
    }
    *out_batch = out;
    return SX_OK;
}
