#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/write.h"
#include "tensor/semantics.h"

static enum sx_status no_memory(struct sx_error *error) {
    (void)sx_no_memory(error, "a row group's columns");
    return SX_OUT_OF_MEMORY;
}

void sx_write_group_destroy(struct sx_pool *pool, struct sx_write_group *group) {
    for (int64_t i = 0; group->batches && i < group->n_batches; i++)
        sx_batch_release(&group->batches[i]);
    for (int c = 0; group->pieces && c < group->n_columns; c++) {
        for (int64_t i = 0; group->pieces[c] && i < group->n_batches; i++)
            sx_tensor_release(&group->pieces[c][i]);
        free(group->pieces[c]);
    }
    for (int c = 0; group->chunks && c < group->n_columns - group->n_partition; c++)
        sx_write_chunk_release(pool, &group->chunks[c]);
    for (int i = 0; group->partition && i < group->n_partition; i++)
        free(group->partition[i]);
    free(group->batches);
    free((void *)group->pieces);
    free(group->chunks);
    free((void *)group->partition);
    free(group);
}

/* ---- partitions ---- */

static const struct sx_string *text_at(const struct sx_tensor *column, int64_t row) {
    const struct sx_string *texts = column->layout == SX_DICT ? column->dict->values.values : column->values;
    if (column->layout == SX_DICT)
        return &texts[((const int32_t *)column->values)[row]];
    return &texts[column->layout == SX_CONSTANT ? 0 : row];
}

static bool is_null(const struct sx_tensor *column, int64_t row) {
    return column->valid && !column->valid[column->layout == SX_CONSTANT ? 0 : row];
}

static bool equals_text(const struct sx_tensor *column, int64_t row, const char *text) {
    if (is_null(column, row) || !text)
        return is_null(column, row) && !text;
    const struct sx_string *value = text_at(column, row);
    return value->length_bytes == strlen(text) &&
           memcmp(sx_string_bytes(value), text, value->length_bytes) == 0;
}

static bool is_in_partition(const struct sx_write_group *group, const struct sx_batch *batch, int64_t row) {
    for (int i = 0; i < group->n_partition; i++)
        if (!equals_text(&batch->columns[i], row, group->partition[i]))
            return false;
    return true;
}

static bool equal_rows(const struct sx_batch *batch, int n_columns, int64_t a, int64_t b) {
    for (int i = 0; i < n_columns; i++) {
        const struct sx_tensor *column = &batch->columns[i];
        if (is_null(column, a) != is_null(column, b) ||
            (!is_null(column, a) && !sx_string_equal(text_at(column, a), text_at(column, b))))
            return false;
    }
    return true;
}

/* Behind the last row that is in the partition of row `first`. */
static int64_t partition_end(const struct sx_batch *batch, int n_partition, int64_t first) {
    int64_t end = n_partition ? first + 1 : batch->rows;
    while (end < batch->rows && equal_rows(batch, n_partition, end - 1, end))
        end++;
    return end;
}

static enum sx_status set_partition(struct sx_write_group *group, const struct sx_batch *batch, int64_t row,
                                    struct sx_error *error) {
    group->partition = calloc((size_t)group->n_partition + 1, sizeof *group->partition);
    if (!group->partition)
        return no_memory(error);
    for (int i = 0; i < group->n_partition; i++) {
        if (is_null(&batch->columns[i], row))
            continue;
        const struct sx_string *text = text_at(&batch->columns[i], row);
        if (memchr(sx_string_bytes(text), 0, text->length_bytes))
            return sx_error_set(error, SX_OUTPUT,
                                "a text to partition by has a NUL byte, which no folder's name can have");
        group->partition[i] = strndup(sx_string_bytes(text), text->length_bytes);
        if (!group->partition[i])
            return no_memory(error);
    }
    return SX_OK;
}

/* ---- groups ---- */

static enum sx_status begin(struct sx_write_cutter *cutter, const struct sx_batch *batch, int64_t row,
                            struct sx_error *error) {
    struct sx_write_group *group = calloc(1, sizeof *group);
    if (!group)
        return no_memory(error);
    cutter->group = group;
    group->n_columns = cutter->n_columns;
    group->n_partition = cutter->options->n_partition;
    return set_partition(group, batch, row, error);
}

/* Batches of columns become columns of pieces. */
static enum sx_status turn(struct sx_write_group *group, struct sx_error *error) {
    const size_t n = (size_t)group->n_columns;
    struct sx_tensor **pieces = calloc(n, sizeof(*pieces));
    group->pieces = pieces;
    group->chunks = calloc(n, sizeof *group->chunks);
    if (!pieces || !group->chunks)
        return no_memory(error);
    for (size_t c = 0; c < n; c++)
        if (!(pieces[c] = calloc((size_t)group->n_batches, sizeof *pieces[c])))
            return no_memory(error);
    for (int64_t i = 0; i < group->n_batches; i++) {
        for (size_t c = 0; c < n; c++) {
            pieces[c][i] = group->batches[i].columns[c];
            group->batches[i].columns[c] = (struct sx_tensor){0};
        }
        sx_batch_release(&group->batches[i]);
    }
    free(group->batches);
    group->batches = NULL;
    return SX_OK;
}

static enum sx_status seal(struct sx_write_cutter *cutter, struct sx_write_group *group,
                           struct sx_error *error) {
    const int64_t file_rows = cutter->options->file_rows;
    SX_TRY(turn(group, error));
    cutter->file_rows += group->rows;
    group->is_last = file_rows && cutter->file_rows == file_rows;
    if (group->is_last)
        cutter->file_rows = 0;
    *cutter->sealed_end = group;
    cutter->sealed_end = &group->next;
    cutter->group = NULL;
    return SX_OK;
}

/* Rows that the group in work may still take. */
static int64_t rows_left(const struct sx_write_cutter *cutter) {
    const struct sx_write_options *options = cutter->options;
    const int64_t held = cutter->group ? cutter->group->rows : 0;
    int64_t most = options->row_group_rows;
    if (options->file_rows && options->file_rows - cutter->file_rows < most)
        most = options->file_rows - cutter->file_rows;
    return most - held;
}

static enum sx_status append(struct sx_write_group *group, const struct sx_batch *batch, int64_t first,
                             int64_t rows, struct sx_error *error) {
    struct sx_batch *grown = sx_array_grow(group->batches, sizeof *grown, group->n_batches, &group->capacity);
    if (!grown)
        return no_memory(error);
    group->batches = grown;
    struct sx_batch *slice = &group->batches[group->n_batches];
    *slice = (struct sx_batch){0};
    SX_TRY(sx_batch_slice(batch, first, rows, slice, error));
    group->n_batches++;
    group->rows += rows;
    group->bytes += sx_batch_bytes(slice);
    return SX_OK;
}

static enum sx_status cut_rows(struct sx_write_cutter *cutter, const struct sx_batch *batch, int64_t *first,
                               struct sx_error *error) {
    if (cutter->group && !is_in_partition(cutter->group, batch, *first)) {
        SX_TRY(seal(cutter, cutter->group, error));
        cutter->file_rows = 0;
    }
    if (!cutter->group)
        SX_TRY(begin(cutter, batch, *first, error));
    struct sx_write_group *group = cutter->group;
    int64_t rows = partition_end(batch, cutter->options->n_partition, *first) - *first;
    if (rows > rows_left(cutter))
        rows = rows_left(cutter);
    SX_TRY(append(group, batch, *first, rows, error));
    *first += rows;
    const bool is_full = rows_left(cutter) == 0 || group->bytes >= cutter->most_bytes;
    return is_full ? seal(cutter, group, error) : SX_OK;
}

enum sx_status sx_write_cut(struct sx_write_cutter *cutter, struct sx_batch *batch, struct sx_error *error) {
    enum sx_status status = SX_OK;
    for (int64_t row = 0; status == SX_OK && row < batch->rows;)
        status = cut_rows(cutter, batch, &row, error);
    sx_batch_release(batch);
    return status;
}

enum sx_status sx_write_cut_end(struct sx_write_cutter *cutter, struct sx_error *error) {
    return cutter->group ? seal(cutter, cutter->group, error) : SX_OK;
}
