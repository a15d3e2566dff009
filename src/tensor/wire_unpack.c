#include <string.h>

#include <lz4.h>

#include "tensor/pack.h"
#include "tensor/wire_format.h"

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
        wire_aligned(bytes) > cursor->bytes)
        return malformed(cursor->error, "it ends within a column");
    memcpy(out_place, &cursor->at, sizeof cursor->at);
    cursor->at += wire_aligned(bytes);
    cursor->bytes -= wire_aligned(bytes);
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

static enum sx_status check_column(const struct wire_column *header, struct sx_type type, int64_t rows,
                                   struct sx_error *error) {
    const struct sx_type sent = {(enum sx_type_id)header->type_id, header->precision, header->scale};
    const bool is_constant = header->layout == SX_CONSTANT;
    if (!sx_type_equal(sent, type) || header->layout > SX_CONSTANT)
        return malformed(error, "a column has another type");
    if (header->n_values < 0 || (header->layout == SX_FLAT && header->n_values != rows) ||
        (is_constant && (header->n_values != 1 || header->packed_bytes)))
        return malformed(error, "a column has another length");
    return SX_OK;
}

/* The values of a column, or of its dictionary: FLAT, `n` long. */
static enum sx_status place_values(const struct sx_wire_reader *reader, struct sx_pool *pool, char *packed,
                                   const char *heap, const struct wire_column *header,
                                   struct sx_tensor *values, struct sx_error *error) {
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
                                      struct sx_tensor *values, struct sx_tensor *column,
                                      struct sx_error *error) {
    SX_TRY(sx_dict_create(values, &column->dict, error));
    *values = (struct sx_tensor){0};
    column->values = codes;
    column->values_buffer = sx_buffer_retain(reader->buffer);
    return SX_OK;
}

/* ---- packed columns ---- */

/* One vector into `out`. */
static enum sx_status take_vector(struct cursor *cursor, int64_t n, size_t width_bytes, size_t stride_bytes,
                                  char *out) {
    const size_t bytes =
        sx_unpack(cursor->at, cursor->bytes, n, (uint32_t)width_bytes, (uint32_t)stride_bytes, out);
    if (!bytes)
        return malformed(cursor->error, "a packed column is damaged");
    cursor->at += bytes;
    cursor->bytes -= bytes;
    return SX_OK;
}

/* A vector of its own: where it stands if it is plain, else unpacked. */
static enum sx_status place_vector(const struct sx_wire_reader *reader, struct sx_pool *pool,
                                   struct cursor *cursor, int64_t n, size_t width_bytes, void *out_place,
                                   struct sx_buffer **out_buffer) {
    const char *plain = NULL;
    const size_t bytes = sx_unpack_bytes(cursor->at, cursor->bytes, n, (uint32_t)width_bytes, &plain);
    if (!bytes)
        return malformed(cursor->error, "a packed column is damaged");
    if (plain) {
        *out_buffer = sx_buffer_retain(reader->buffer);
        memcpy(out_place, &plain, sizeof plain);
        cursor->at += bytes;
        cursor->bytes -= bytes;
        return SX_OK;
    }
    SX_TRY(sx_buffer_create(pool, (size_t)n * width_bytes, out_buffer, cursor->error));
    memcpy(out_place, &(*out_buffer)->data, sizeof plain);
    return take_vector(cursor, n, width_bytes, width_bytes, (*out_buffer)->data);
}

/* Values of 16 bytes: one vector for each half. */
static enum sx_status take_halves(struct sx_pool *pool, struct cursor *cursor, struct sx_tensor *values) {
    const size_t width = sx_type_bytes(values->type), half = width / 2;
    const char *plain;
    if (!sx_unpack_bytes(cursor->at, cursor->bytes, values->length, (uint32_t)half, &plain))
        return malformed(cursor->error, "a packed column is damaged");
    SX_TRY(sx_buffer_create(pool, (size_t)values->length * width, &values->values_buffer, cursor->error));
    values->values = values->values_buffer->data;
    SX_TRY(take_vector(cursor, values->length, half, width, values->values));
    return take_vector(cursor, values->length, half, width, (char *)values->values + half);
}

/* The strings' bytes, one string after another: in the message, or unpacked. */
static enum sx_status take_heap(const struct sx_wire_reader *reader, struct sx_pool *pool,
                                struct cursor *cursor, uint64_t heap_bytes, const char **out_heap,
                                struct sx_buffer **out_buffer) {
    enum { MOST_RATIO = 256 }; /* a byte of LZ4 stands for 255 at most */
    const struct wire_heap *header = NULL;
    char *stored = NULL;
    SX_TRY(take(cursor, 1, sizeof *header, &header));
    SX_TRY(take(cursor, header->stored_bytes, 1, &stored));
    if (header->is_lz4 ? header->stored_bytes > INT32_MAX || heap_bytes > INT32_MAX ||
                             heap_bytes / MOST_RATIO > header->stored_bytes
                       : heap_bytes != header->stored_bytes)
        return malformed(cursor->error, "the bytes of strings have another length");
    if (!header->is_lz4) {
        *out_heap = stored;
        *out_buffer = sx_buffer_retain(reader->buffer);
        return SX_OK;
    }
    SX_TRY(sx_buffer_create(pool, (size_t)heap_bytes, out_buffer, cursor->error));
    *out_heap = (*out_buffer)->data;
    if (LZ4_decompress_safe(stored, (*out_buffer)->data, (int)header->stored_bytes, (int)heap_bytes) !=
        (int)heap_bytes)
        return malformed(cursor->error, "the bytes of strings are damaged");
    return SX_OK;
}

/* Views whose lengths are there already. */
static enum sx_status make_views(struct sx_string *views, int64_t n, const char *heap, uint64_t heap_bytes,
                                 struct sx_error *error) {
    uint64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t length = views[i].length_bytes;
        if (length > heap_bytes - used)
            return malformed(error, "a string is outside of it");
        views[i] = sx_string_make(heap + used, length);
        used += length;
    }
    return used == heap_bytes ? SX_OK : malformed(error, "the bytes of strings have another length");
}

static enum sx_status take_strings(const struct sx_wire_reader *reader, struct sx_pool *pool,
                                   struct cursor *cursor, uint64_t heap_bytes, struct sx_tensor *values) {
    const size_t width = sizeof(struct sx_string), length_width = sizeof(uint32_t);
    const char *heap = NULL, *plain;
    if (!sx_unpack_bytes(cursor->at, cursor->bytes, values->length, (uint32_t)length_width, &plain))
        return malformed(cursor->error, "a packed column is damaged");
    SX_TRY(sx_buffer_create(pool, (size_t)values->length * width, &values->values_buffer, cursor->error));
    values->values = values->values_buffer->data;
    SX_TRY(take_vector(cursor, values->length, length_width, width, values->values));
    SX_TRY(take_heap(reader, pool, cursor, heap_bytes, &heap, &values->heap));
    return make_views(values->values, values->length, heap, heap_bytes, cursor->error);
}

static enum sx_status take_values(const struct sx_wire_reader *reader, struct sx_pool *pool,
                                  struct cursor *cursor, const struct wire_column *header,
                                  struct sx_tensor *values) {
    const size_t width = sx_type_bytes(values->type);
    values->length = header->n_values;
    if (values->type.id == SX_TYPE_VARCHAR)
        return take_strings(reader, pool, cursor, header->heap_bytes, values);
    if (width > sizeof(uint64_t))
        return take_halves(pool, cursor, values);
    return place_vector(reader, pool, cursor, values->length, width, &values->values, &values->values_buffer);
}

/* What is behind the header of a packed column. */
static enum sx_status unpack_packed(const struct sx_wire_reader *reader, struct sx_pool *pool, int64_t rows,
                                    struct cursor *cursor, const struct wire_column *header,
                                    struct sx_tensor *column) {
    struct sx_tensor values = {.type = column->type, .layout = SX_FLAT};
    enum sx_status status = SX_OK;
    column->layout = (enum sx_layout)header->layout;
    column->length = rows;
    SX_GO(take_values(reader, pool, cursor, header, &values));
    if (column->layout == SX_DICT) {
        SX_GO(place_vector(reader, pool, cursor, rows, sizeof(int32_t), &column->values,
                           &column->values_buffer));
        SX_GO(sx_dict_create(&values, &column->dict, cursor->error));
    } else {
        column->values = values.values;
        column->values_buffer = values.values_buffer;
        column->heap = values.heap;
    }
    values = (struct sx_tensor){0};
    if (header->has_valid)
        SX_GO(place_vector(reader, pool, cursor, rows, 1, &column->valid, &column->valid_buffer));
    if (cursor->bytes > 0)
        status = malformed(cursor->error, "a packed column is too long");
out:
    sx_tensor_release(&values);
    return status;
}

static enum sx_status unpack_column(const struct sx_wire_reader *reader, struct sx_pool *pool,
                                    struct sx_type type, int64_t rows, struct cursor *cursor,
                                    struct sx_tensor *column) {
    const struct wire_column *header = NULL;
    char *packed = NULL, *heap = NULL;
    int32_t *codes = NULL;
    uint8_t *valid = NULL;
    SX_TRY(take(cursor, 1, sizeof *header, &header));
    SX_TRY(check_column(header, type, rows, cursor->error));
    *column = (struct sx_tensor){.type = type};
    if (header->packed_bytes > 0) {
        SX_TRY(take(cursor, header->packed_bytes, 1, &packed));
        struct cursor own = {packed, (size_t)header->packed_bytes, cursor->error};
        return unpack_packed(reader, pool, rows, &own, header, column);
    }
    SX_TRY(take(cursor, (uint64_t)header->n_values, sx_type_bytes(type), &packed));
    if (header->layout == SX_DICT)
        SX_TRY(take(cursor, (uint64_t)rows, sizeof *codes, &codes));
    if (header->has_valid)
        SX_TRY(take(cursor, header->layout == SX_CONSTANT ? 1 : (uint64_t)rows, 1, &valid));
    SX_TRY(take(cursor, header->heap_bytes, 1, &heap));
    struct sx_tensor values = {.type = type, .layout = SX_FLAT};
    enum sx_status status = place_values(reader, pool, packed, heap, header, &values, cursor->error);
    if (status == SX_OK && header->layout == SX_DICT) {
        status = make_dictionary(reader, codes, &values, column, cursor->error);
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

/* Of a column that is complete: the rows of a dictionary without entries are all null, with code 0. */
static enum sx_status check_codes(const struct sx_tensor *column, struct sx_error *error) {
    if (column->layout != SX_DICT)
        return SX_OK;
    const int32_t *codes = column->values;
    const int64_t n_entries = column->dict->values.length;
    for (int64_t i = 0; i < column->length; i++)
        if (codes[i] < 0 || (codes[i] >= n_entries && (codes[i] != 0 || !column->valid || column->valid[i])))
            return malformed(error, "a code is outside of its dictionary");
    return SX_OK;
}

/* The frame that stands at the reader's offset, in `out_cursor` what is behind its header. */
static enum sx_status take_frame(const struct sx_wire_reader *reader, struct cursor *out_cursor,
                                 const struct wire_frame **out_frame, struct sx_error *error) {
    const size_t left = reader->bytes - reader->offset;
    const struct wire_frame *frame = (const void *)((char *)reader->buffer->data + reader->offset);
    if (reader->bytes > reader->buffer->size_bytes || reader->offset % WIRE_ALIGNMENT ||
        left < sizeof *frame || frame->bytes > left || frame->bytes < sizeof *frame ||
        frame->bytes % WIRE_ALIGNMENT)
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
    const struct wire_frame *frame = NULL;
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    SX_TRY(take_frame(reader, &cursor, &frame, error));
    SX_TRY(sx_batch_create(reader->n_columns, frame->rows, &made, error));
    for (int32_t c = 0; c < reader->n_columns; c++) {
        SX_GO(unpack_column(reader, pool, reader->types[c], frame->rows, &cursor, &made.columns[c]));
        SX_GO(check_codes(&made.columns[c], error));
    }
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
