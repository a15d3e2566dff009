#include <string.h>

#include "tensor/wire_format.h"

enum { FEW_ROWS_AN_ENTRY = 4 };

/* ---- what is sent of a column ---- */

struct wire_picked wire_pick(const struct sx_tensor *column, const int32_t *rows, int64_t n_rows) {
    struct wire_picked picked = {column,         rows,         n_rows,
                                 column->layout, column->type, sx_type_bytes(column->type)};
    if (column->layout == SX_DICT && column->dict->values.length > n_rows / FEW_ROWS_AN_ENTRY)
        picked.layout = SX_FLAT;
    return picked;
}

static int64_t row_at(const struct wire_picked *picked, int64_t i) {
    return picked->rows ? picked->rows[i] : i;
}

int64_t wire_n_values(const struct wire_picked *picked) {
    return picked->layout == SX_CONSTANT ? 1
           : picked->layout == SX_DICT   ? picked->column->dict->values.length
                                         : picked->n_rows;
}

const char *wire_stored_values(const struct wire_picked *picked) {
    return picked->column->layout == SX_DICT ? picked->column->dict->values.values : picked->column->values;
}

/* Value i of those that are sent; NULL where its row is null. */
const char *wire_value_at(const struct wire_picked *picked, int64_t i) {
    const struct sx_tensor *column = picked->column;
    int64_t at = i;
    if (picked->layout == SX_FLAT) {
        at = row_at(picked, i);
        if (column->valid && !column->valid[at])
            return NULL;
        if (column->layout == SX_DICT)
            at = ((const int32_t *)column->values)[at];
    } else if (picked->layout == SX_CONSTANT && column->valid && !column->valid[0]) {
        return NULL;
    }
    return wire_stored_values(picked) + (size_t)at * picked->width_bytes;
}

static size_t heap_bytes(const struct wire_picked *picked) {
    size_t bytes = 0;
    if (picked->type.id != SX_TYPE_VARCHAR)
        return 0;
    for (int64_t i = 0, n = wire_n_values(picked); i < n; i++) {
        const struct sx_string *string = (const struct sx_string *)wire_value_at(picked, i);
        if (string && string->length_bytes > SX_STRING_INLINE_BYTES)
            bytes += string->length_bytes;
    }
    return bytes;
}

static int64_t n_valid(const struct wire_picked *picked) {
    return !picked->column->valid ? 0 : picked->layout == SX_CONSTANT ? 1 : picked->n_rows;
}

size_t wire_column_bytes(const struct wire_picked *picked) {
    size_t bytes =
        sizeof(struct wire_column) + wire_aligned((size_t)wire_n_values(picked) * picked->width_bytes);
    if (picked->layout == SX_DICT)
        bytes += wire_aligned((size_t)picked->n_rows * sizeof(int32_t));
    return bytes + wire_aligned((size_t)n_valid(picked)) + wire_aligned(heap_bytes(picked));
}

size_t sx_wire_bytes(const struct sx_batch *batch, const int32_t *rows, int64_t n_rows) {
    size_t bytes = sizeof(struct wire_frame);
    for (int c = 0; c < batch->n_columns; c++) {
        const struct wire_picked picked = wire_pick(&batch->columns[c], rows, n_rows);
        bytes += wire_column_bytes(&picked);
    }
    return bytes;
}

/* ---- packing ---- */

#define COPY_WIDTH(width)                                                                    \
    case width:                                                                              \
        for (int64_t i = 0; i < n; i++)                                                      \
            memcpy(out + i * (width), values + (int64_t)rows[i] * (width), (size_t)(width)); \
        break;

/* out[i] = values[rows[i]] */
static void copy_rows(char *out, const char *values, size_t width_bytes, const int32_t *rows, int64_t n) {
    if (!rows) {
        if (n > 0)
            memcpy(out, values, (size_t)n * width_bytes);
        return;
    }
    switch (width_bytes) {
        COPY_WIDTH(1)
        COPY_WIDTH(2)
        COPY_WIDTH(4)
        COPY_WIDTH(8)
        COPY_WIDTH(16)
    default: break; /* there is no other */
    }
}

static void pack_strings(const struct wire_picked *picked, char *values, char *heap) {
    uint64_t used = 0;
    for (int64_t i = 0, n = wire_n_values(picked); i < n; i++) {
        const struct sx_string *string = (const struct sx_string *)wire_value_at(picked, i);
        struct sx_string view = {0};
        if (string)
            view = *string;
        if (view.length_bytes > SX_STRING_INLINE_BYTES) {
            memcpy(heap + used, string->u.ref.pointer, view.length_bytes);
            memcpy((char *)&view + sizeof view - sizeof used, &used,
                   sizeof used); /* instead of the pointer */
            used += view.length_bytes;
        }
        memcpy(values + (size_t)i * sizeof view, &view, sizeof view);
    }
}

static void pack_numbers(const struct wire_picked *picked, char *out) {
    const struct sx_tensor *column = picked->column;
    if (picked->layout != SX_FLAT || column->layout == SX_FLAT) {
        copy_rows(out, wire_stored_values(picked), picked->width_bytes,
                  picked->layout == SX_FLAT ? picked->rows : NULL, wire_n_values(picked));
        return;
    }
    for (int64_t i = 0; i < picked->n_rows; i++) {
        const char *value = wire_value_at(picked, i);
        if (value)
            memcpy(out + (size_t)i * picked->width_bytes, value, picked->width_bytes);
        else
            memset(out + (size_t)i * picked->width_bytes, 0, picked->width_bytes);
    }
}

struct wire_column wire_column_header(const struct wire_picked *picked) {
    return (struct wire_column){
        .n_values = wire_n_values(picked),
        .heap_bytes = heap_bytes(picked),
        .type_id = (uint32_t)picked->type.id,
        .precision = picked->type.precision,
        .scale = picked->type.scale,
        .layout = (uint8_t)picked->layout,
        .has_valid = picked->column->valid != NULL,
    };
}

char *wire_pack_column(const struct wire_picked *picked, char *out) {
    const struct wire_column header = wire_column_header(picked);
    memcpy(out, &header, sizeof header);
    char *values = out + sizeof header;
    char *codes = values + wire_aligned((size_t)header.n_values * picked->width_bytes);
    char *valid = codes;
    if (picked->layout == SX_DICT) {
        copy_rows(codes, picked->column->values, sizeof(int32_t), picked->rows, picked->n_rows);
        valid += wire_aligned((size_t)picked->n_rows * sizeof(int32_t));
    }
    if (header.has_valid)
        copy_rows(valid, (const char *)picked->column->valid, 1,
                  picked->layout == SX_CONSTANT ? NULL : picked->rows, n_valid(picked));
    char *heap = valid + wire_aligned((size_t)n_valid(picked));
    if (picked->type.id == SX_TYPE_VARCHAR)
        pack_strings(picked, values, heap);
    else
        pack_numbers(picked, values);
    return heap + wire_aligned(header.heap_bytes);
}

void sx_wire_pack(const struct sx_batch *batch, const int32_t *rows, int64_t n_rows, int64_t sequence,
                  void *out) {
    char *at = (char *)out + sizeof(struct wire_frame);
    for (int c = 0; c < batch->n_columns; c++) {
        const struct wire_picked picked = wire_pick(&batch->columns[c], rows, n_rows);
        at = wire_pack_column(&picked, at);
    }
    const struct wire_frame header = {.bytes = (uint64_t)(at - (char *)out),
                                      .rows = n_rows,
                                      .sequence = sequence,
                                      .n_columns = batch->n_columns};
    memcpy(out, &header, sizeof header);
}
