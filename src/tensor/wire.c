#include "tensor/wire.h"

#include <string.h>

enum { ALIGNMENT = 16, FEW_ROWS_AN_ENTRY = 4 };

struct frame {
    uint64_t bytes; /* with this header */
    int64_t rows;
    int64_t sequence;
    int32_t n_columns;
    int32_t unused;
};

/* In front of a column's parts: values, codes (DICT), validity, bytes of long strings; each aligned. */
struct column {
    int64_t n_values; /* rows; 1 of a CONSTANT; a dictionary's entries */
    uint64_t heap_bytes;
    uint32_t type_id;
    uint8_t precision, scale;
    uint8_t layout;
    uint8_t has_valid;
    uint64_t unused;
};

_Static_assert(sizeof(struct frame) % ALIGNMENT == 0 && sizeof(struct column) % ALIGNMENT == 0,
               "headers align");

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

/* ---- what is sent of a column ---- */

/* Rows of a column: values[code_of(row)] of `values`. */
struct picked {
    const struct sx_tensor *column;
    const int32_t *rows;
    int64_t n_rows;
    enum sx_layout layout; /* on the wire */
    struct sx_type type;
    size_t width_bytes;
};

static struct picked pick(const struct sx_tensor *column, const int32_t *rows, int64_t n_rows) {
    struct picked picked = {column, rows, n_rows, column->layout, column->type, sx_type_bytes(column->type)};
    if (column->layout == SX_DICT && column->dict->values.length > n_rows / FEW_ROWS_AN_ENTRY)
        picked.layout = SX_FLAT;
    return picked;
}

static int64_t row_at(const struct picked *picked, int64_t i) {
    return picked->rows ? picked->rows[i] : i;
}

static int64_t n_values(const struct picked *picked) {
    return picked->layout == SX_CONSTANT ? 1
           : picked->layout == SX_DICT   ? picked->column->dict->values.length
                                         : picked->n_rows;
}

static const char *stored_values(const struct picked *picked) {
    return picked->column->layout == SX_DICT ? picked->column->dict->values.values : picked->column->values;
}

/* Value i of those that are sent; NULL where its row is null. */
static const char *value_at(const struct picked *picked, int64_t i) {
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
    return stored_values(picked) + (size_t)at * picked->width_bytes;
}

static size_t heap_bytes(const struct picked *picked) {
    size_t bytes = 0;
    if (picked->type.id != SX_TYPE_VARCHAR)
        return 0;
    for (int64_t i = 0, n = n_values(picked); i < n; i++) {
        const struct sx_string *string = (const struct sx_string *)value_at(picked, i);
        if (string && string->length_bytes > SX_STRING_INLINE_BYTES)
            bytes += string->length_bytes;
    }
    return bytes;
}

static int64_t n_valid(const struct picked *picked) {
    return !picked->column->valid ? 0 : picked->layout == SX_CONSTANT ? 1 : picked->n_rows;
}

static size_t column_bytes(const struct picked *picked) {
    size_t bytes = sizeof(struct column) + aligned((size_t)n_values(picked) * picked->width_bytes);
    if (picked->layout == SX_DICT)
        bytes += aligned((size_t)picked->n_rows * sizeof(int32_t));
    return bytes + aligned((size_t)n_valid(picked)) + aligned(heap_bytes(picked));
}

size_t sx_wire_bytes(const struct sx_batch *batch, const int32_t *rows, int64_t n_rows) {
    size_t bytes = sizeof(struct frame);
    for (int c = 0; c < batch->n_columns; c++) {
        const struct picked picked = pick(&batch->columns[c], rows, n_rows);
        bytes += column_bytes(&picked);
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

static void pack_strings(const struct picked *picked, char *values, char *heap) {
    uint64_t used = 0;
    for (int64_t i = 0, n = n_values(picked); i < n; i++) {
        const struct sx_string *string = (const struct sx_string *)value_at(picked, i);
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

static void pack_numbers(const struct picked *picked, char *out) {
    const struct sx_tensor *column = picked->column;
    if (picked->layout != SX_FLAT || column->layout == SX_FLAT) {
        copy_rows(out, stored_values(picked), picked->width_bytes,
                  picked->layout == SX_FLAT ? picked->rows : NULL, n_values(picked));
        return;
    }
    for (int64_t i = 0; i < picked->n_rows; i++) {
        const char *value = value_at(picked, i);
        if (value)
            memcpy(out + (size_t)i * picked->width_bytes, value, picked->width_bytes);
        else
            memset(out + (size_t)i * picked->width_bytes, 0, picked->width_bytes);
    }
}

static char *pack_column(const struct picked *picked, char *out) {
    const struct column header = {
        .n_values = n_values(picked),
        .heap_bytes = heap_bytes(picked),
        .type_id = (uint32_t)picked->type.id,
        .precision = picked->type.precision,
        .scale = picked->type.scale,
        .layout = (uint8_t)picked->layout,
        .has_valid = picked->column->valid != NULL,
    };
    memcpy(out, &header, sizeof header);
    char *values = out + sizeof header;
    char *codes = values + aligned((size_t)header.n_values * picked->width_bytes);
    char *valid = codes;
    if (picked->layout == SX_DICT) {
        copy_rows(codes, picked->column->values, sizeof(int32_t), picked->rows, picked->n_rows);
        valid += aligned((size_t)picked->n_rows * sizeof(int32_t));
    }
    if (header.has_valid)
        copy_rows(valid, (const char *)picked->column->valid, 1,
                  picked->layout == SX_CONSTANT ? NULL : picked->rows, n_valid(picked));
    char *heap = valid + aligned((size_t)n_valid(picked));
    if (picked->type.id == SX_TYPE_VARCHAR)
        pack_strings(picked, values, heap);
    else
        pack_numbers(picked, values);
    return heap + aligned(header.heap_bytes);
}

void sx_wire_pack(const struct sx_batch *batch, const int32_t *rows, int64_t n_rows, int64_t sequence,
                  void *out) {
    char *at = (char *)out + sizeof(struct frame);
    for (int c = 0; c < batch->n_columns; c++) {
        const struct picked picked = pick(&batch->columns[c], rows, n_rows);
        at = pack_column(&picked, at);
    }
    const struct frame header = {.bytes = (uint64_t)(at - (char *)out),
                                 .rows = n_rows,
                                 .sequence = sequence,
                                 .n_columns = batch->n_columns};
    memcpy(out, &header, sizeof header);
}

/* ---- unpacking ---- */

/* What is left of a frame. */
struct cursor {
    char *at;
    size_t bytes;
    struct sx_error *error;
};

static enum sx_status malformed(struct sx_error *error, const char *what) {
    return sx_error_set(error, SX_INTERNAL, "a message of another rank: %s", what);
}

/* The next count × width_bytes, and the gap behind them. */
static enum sx_status take(struct cursor *cursor, uint64_t count, size_t width_bytes, void *out_place) {
    size_t bytes;
    if (__builtin_mul_overflow(count, width_bytes, &bytes) || bytes > cursor->bytes ||
        aligned(bytes) > cursor->bytes)
        return malformed(cursor->error, "it ends within a column");
    memcpy(out_place, &cursor->at, sizeof cursor->at);
    cursor->at += aligned(bytes);
    cursor->bytes -= aligned(bytes);
    return SX_OK;
}

/* Views whose long strings are at offsets of `heap` become views that lead there. */
static enum sx_status place_strings(const char *packed, int64_t n, const char *heap, uint64_t heap_size,
                                    struct sx_string *out, struct sx_error *error) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t offset;
        memcpy(&out[i], packed + (size_t)i * sizeof *out, sizeof *out);
        if (out[i].length_bytes <= SX_STRING_INLINE_BYTES)
            continue;
        memcpy(&offset, (char *)&out[i] + sizeof *out - sizeof offset, sizeof offset);
        if (offset > heap_size || out[i].length_bytes > heap_size - offset)
            return malformed(error, "a string is outside of it");
        out[i].u.ref.pointer = heap + offset;
    }
    return SX_OK;
}

static enum sx_status no_long_strings(const struct sx_string *views, int64_t n, struct sx_error *error) {
    for (int64_t i = 0; i < n; i++)
        if (views[i].length_bytes > SX_STRING_INLINE_BYTES)
            return malformed(error, "a string is missing");
    return SX_OK;
}

static enum sx_status check_codes(const int32_t *codes, int64_t n, int64_t n_entries,
                                  struct sx_error *error) {
    for (int64_t i = 0; i < n; i++)
        if (codes[i] < 0 || (codes[i] >= n_entries && codes[i] != 0))
            return malformed(error, "a code is outside of its dictionary");
    return SX_OK;
}

static enum sx_status check_column(const struct column *header, struct sx_type type, int64_t rows,
                                   struct sx_error *error) {
    const struct sx_type sent = {(enum sx_type_id)header->type_id, header->precision, header->scale};
    const bool is_constant = header->layout == SX_CONSTANT;
    if (!sx_type_equal(sent, type) || header->layout > SX_CONSTANT)
        return malformed(error, "a column has another type");
    if (header->n_values < 0 || (header->layout == SX_FLAT && header->n_values != rows) ||
        (is_constant && header->n_values != 1))
        return malformed(error, "a column has another length");
    return SX_OK;
}

/* The values of a column, or of its dictionary: FLAT, `n` long. */
static enum sx_status place_values(const struct sx_wire_reader *reader, struct sx_pool *pool, char *packed,
                                   const char *heap, const struct column *header, struct sx_tensor *values,
                                   struct sx_error *error) {
    const int64_t n = header->n_values;
    values->length = n;
    values->values = packed;
    values->values_buffer = sx_buffer_retain(reader->buffer);
    if (values->type.id != SX_TYPE_VARCHAR)
        return SX_OK;
    if (header->heap_bytes == 0)
        return no_long_strings((const struct sx_string *)packed, n, error);
    sx_buffer_release(values->values_buffer);
    values->values_buffer = NULL;
    SX_TRY(sx_buffer_create(pool, (size_t)n * sizeof(struct sx_string), &values->values_buffer, error));
    values->values = values->values_buffer->data;
    values->heap = sx_buffer_retain(reader->buffer);
    return place_strings(packed, n, heap, header->heap_bytes, values->values, error);
}

static enum sx_status make_dictionary(const struct sx_wire_reader *reader, int32_t *codes,
                                      struct sx_tensor *values, int64_t rows, struct sx_tensor *column,
                                      struct sx_error *error) {
    SX_TRY(check_codes(codes, rows, values->length, error));
    SX_TRY(sx_dict_create(values, &column->dict, error));
    *values = (struct sx_tensor){0};
    column->values = codes;
    column->values_buffer = sx_buffer_retain(reader->buffer);
    return SX_OK;
}

static enum sx_status unpack_column(const struct sx_wire_reader *reader, struct sx_pool *pool,
                                    struct sx_type type, int64_t rows, struct cursor *cursor,
                                    struct sx_tensor *column) {
    const struct column *header = NULL;
    char *packed = NULL, *heap = NULL;
    int32_t *codes = NULL;
    uint8_t *valid = NULL;
    SX_TRY(take(cursor, 1, sizeof *header, &header));
    SX_TRY(check_column(header, type, rows, cursor->error));
    SX_TRY(take(cursor, (uint64_t)header->n_values, sx_type_bytes(type), &packed));
    if (header->layout == SX_DICT)
        SX_TRY(take(cursor, (uint64_t)rows, sizeof *codes, &codes));
    if (header->has_valid)
        SX_TRY(take(cursor, header->layout == SX_CONSTANT ? 1 : (uint64_t)rows, 1, &valid));
    SX_TRY(take(cursor, header->heap_bytes, 1, &heap));
    struct sx_tensor values = {.type = type, .layout = SX_FLAT};
    enum sx_status status = place_values(reader, pool, packed, heap, header, &values, cursor->error);
    *column = (struct sx_tensor){.type = type};
    if (status == SX_OK && header->layout == SX_DICT) {
        status = make_dictionary(reader, codes, &values, rows, column, cursor->error);
    } else if (status == SX_OK) {
        *column = values;
        values = (struct sx_tensor){0};
    }
    sx_tensor_release(&values);
    column->layout = (enum sx_layout)header->layout;
    column->length = rows;
    column->valid = valid;
    column->valid_buffer = valid ? sx_buffer_retain(reader->buffer) : NULL;
    return status;
}

/* The frame that stands at the reader's offset, in `out_cursor` what is behind its header. */
static enum sx_status take_frame(const struct sx_wire_reader *reader, struct cursor *out_cursor,
                                 const struct frame **out_frame, struct sx_error *error) {
    const size_t left = reader->bytes - reader->offset;
    const struct frame *frame = (const void *)((char *)reader->buffer->data + reader->offset);
    if (reader->bytes > reader->buffer->size_bytes || reader->offset % ALIGNMENT || left < sizeof *frame ||
        frame->bytes > left || frame->bytes < sizeof *frame || frame->bytes % ALIGNMENT)
        return malformed(error, "it ends within a frame");
    if (frame->n_columns != reader->n_columns || frame->rows < 0)
        return malformed(error, "it has other columns");
    *out_cursor =
        (struct cursor){(char *)(uintptr_t)(frame + 1), (size_t)frame->bytes - sizeof *frame, error};
    *out_frame = frame;
    return SX_OK;
}

enum sx_status sx_wire_unpack(struct sx_wire_reader *reader, struct sx_pool *pool, struct sx_batch *out_batch,
                              int64_t *out_sequence, struct sx_error *error) {
    struct cursor cursor = {0};
    const struct frame *frame = NULL;
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    SX_TRY(take_frame(reader, &cursor, &frame, error));
    SX_TRY(sx_batch_create(reader->n_columns, frame->rows, &made, error));
    for (int32_t c = 0; c < reader->n_columns; c++)
        SX_GO(unpack_column(reader, pool, reader->types[c], frame->rows, &cursor, &made.columns[c]));
    if (cursor.bytes > 0)
        SX_GO(malformed(error, "a frame is too long"));
    reader->offset += (size_t)frame->bytes;
    *out_batch = made;
    *out_sequence = frame->sequence;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}
