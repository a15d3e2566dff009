#include "tensor/rows.h"

#include <string.h>

_Static_assert(sizeof(struct sx_rows_frame) % SX_ROWS_ALIGNMENT == 0 &&
                   sizeof(struct sx_rows_column) % SX_ROWS_ALIGNMENT == 0,
               "heads align");

static uint64_t aligned(uint64_t bytes) {
    return (bytes + SX_ROWS_ALIGNMENT - 1) & ~(uint64_t)(SX_ROWS_ALIGNMENT - 1);
}

size_t sx_rows_make_head(const struct sx_batch *batch, int64_t rows, int64_t sequence,
                         const uint64_t *heap_bytes, void *head) {
    uint64_t at = sx_rows_head_bytes(batch->n_columns);
    struct sx_rows_column *columns = sx_rows_columns(head);
    for (int c = 0; c < batch->n_columns; c++) {
        const struct sx_tensor *column = &batch->columns[c];
        columns[c] = (struct sx_rows_column){.values = at,
                                             .heap_bytes = heap_bytes[c],
                                             .type_id = (uint32_t)column->type.id,
                                             .precision = column->type.precision,
                                             .scale = column->type.scale};
        at += aligned((uint64_t)rows * sx_type_bytes(column->type));
        if (column->valid) {
            columns[c].valid = at;
            at += aligned((uint64_t)rows);
        }
        columns[c].heap = at;
        at += aligned(heap_bytes[c]);
    }
    const struct sx_rows_frame frame = {
        .bytes = at, .rows = rows, .sequence = sequence, .n_columns = batch->n_columns};
    memcpy(head, &frame, sizeof frame);
    return at;
}

/* ---- reading ---- */

static bool is_inside(uint64_t at, uint64_t bytes, uint64_t all) {
    return at % SX_ROWS_ALIGNMENT == 0 && at <= all && bytes <= all - at;
}

static bool is_column(const struct sx_rows_column *column, uint64_t rows, uint64_t all, struct sx_type type) {
    const struct sx_type sent = {(enum sx_type_id)column->type_id, column->precision, column->scale};
    uint64_t bytes;
    return sx_type_equal(sent, type) && !__builtin_mul_overflow(rows, sx_type_bytes(type), &bytes) &&
           is_inside(column->values, bytes, all) && is_inside(column->valid, column->valid ? rows : 0, all) &&
           is_inside(column->heap, column->heap_bytes, all) &&
           (type.id == SX_TYPE_VARCHAR || column->heap_bytes == 0);
}

enum sx_status sx_rows_check_head(const void *head, size_t bytes, const struct sx_type *types, int n_columns,
                                  struct sx_error *error) {
    struct sx_rows_frame frame;
    memcpy(&frame, head, sizeof frame);
    if (frame.bytes != bytes || frame.rows < 0 || frame.n_columns != n_columns)
        return sx_error_set(error, SX_INTERNAL,
                            "rows of another rank: a frame of %llu bytes with %d columns, of %zu and %d",
                            (unsigned long long)frame.bytes, frame.n_columns, bytes, n_columns);
    const struct sx_rows_column *columns =
        (const struct sx_rows_column *)((const struct sx_rows_frame *)head + 1);
    for (int c = 0; c < n_columns; c++)
        if (!is_column(&columns[c], (uint64_t)frame.rows, frame.bytes, types[c]))
            return sx_error_set(error, SX_INTERNAL, "rows of another rank: column %d is another one", c);
    return SX_OK;
}

enum sx_status sx_rows_place(const void *head, struct sx_buffer *frame, struct sx_batch *out_batch,
                             struct sx_error *error) {
    const struct sx_rows_frame *known = head;
    const struct sx_rows_column *columns = (const struct sx_rows_column *)(known + 1);
    char *base = frame->data;
    SX_TRY(sx_batch_create(known->n_columns, known->rows, out_batch, error));
    for (int c = 0; c < known->n_columns; c++) {
        struct sx_tensor *column = &out_batch->columns[c];
        *column = (struct sx_tensor){
            .type = {(enum sx_type_id)columns[c].type_id, columns[c].precision, columns[c].scale},
            .layout = SX_FLAT,
            .length = known->rows,
            .values = base + columns[c].values,
            .valid = columns[c].valid ? (uint8_t *)base + columns[c].valid : NULL,
            .values_buffer = sx_buffer_retain(frame),
        };
        if (column->valid)
            column->valid_buffer = sx_buffer_retain(frame);
        if (columns[c].heap_bytes)
            column->heap = sx_buffer_retain(frame);
    }
    return SX_OK;
}
