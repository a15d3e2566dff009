#include "storage/thrift_write.h"

#include <string.h>

static void put_head(struct sx_thrift_out *out, int16_t field, uint8_t type) {
    int16_t *last = &out->last[out->depth];
    const int step = field - *last;
    if (step > 0 && step < 16) {
        sx_bytes_append_byte(out->bytes, (uint8_t)(step << 4 | type));
    } else {
        sx_bytes_append_byte(out->bytes, type);
        sx_bytes_append_zigzag(out->bytes, field);
    }
    *last = field;
}

void sx_thrift_put_bool(struct sx_thrift_out *out, int16_t field, bool value) {
    put_head(out, field, value ? SX_THRIFT_TRUE : SX_THRIFT_FALSE);
}

void sx_thrift_put_i8(struct sx_thrift_out *out, int16_t field, int8_t value) {
    put_head(out, field, SX_THRIFT_I8);
    sx_bytes_append_byte(out->bytes, (uint8_t)value);
}

static void put_number(struct sx_thrift_out *out, int16_t field, uint8_t type, int64_t value) {
    put_head(out, field, type);
    sx_bytes_append_zigzag(out->bytes, value);
}

void sx_thrift_put_i16(struct sx_thrift_out *out, int16_t field, int16_t value) {
    put_number(out, field, SX_THRIFT_I16, value);
}

void sx_thrift_put_i32(struct sx_thrift_out *out, int16_t field, int32_t value) {
    put_number(out, field, SX_THRIFT_I32, value);
}

void sx_thrift_put_i64(struct sx_thrift_out *out, int16_t field, int64_t value) {
    put_number(out, field, SX_THRIFT_I64, value);
}

void sx_thrift_put_binary(struct sx_thrift_out *out, int16_t field, const void *bytes, size_t length_bytes) {
    put_head(out, field, SX_THRIFT_BINARY);
    sx_thrift_add_binary(out, bytes, length_bytes);
}

void sx_thrift_put_text(struct sx_thrift_out *out, int16_t field, const char *text) {
    sx_thrift_put_binary(out, field, text, strlen(text));
}

void sx_thrift_begin(struct sx_thrift_out *out, int16_t field) {
    if (field)
        put_head(out, field, SX_THRIFT_STRUCT);
    out->last[++out->depth] = 0;
}

void sx_thrift_end(struct sx_thrift_out *out) {
    sx_bytes_append_byte(out->bytes, 0);
    out->depth--;
}

void sx_thrift_put_encoded(struct sx_thrift_out *out, const struct sx_thrift_field *field, const void *bytes,
                           size_t length_bytes) {
    put_head(out, field->id, field->type);
    sx_bytes_append(out->bytes, bytes, length_bytes);
}

void sx_thrift_put_struct(struct sx_thrift_out *out, int16_t field, const void *bytes, size_t length_bytes) {
    sx_thrift_put_encoded(out, &(struct sx_thrift_field){field, SX_THRIFT_STRUCT}, bytes, length_bytes);
}

void sx_thrift_put_empty(struct sx_thrift_out *out, int16_t field) {
    sx_thrift_begin(out, field);
    sx_thrift_end(out);
}

void sx_thrift_put_list(struct sx_thrift_out *out, int16_t field, enum sx_thrift_type type, size_t count) {
    put_head(out, field, SX_THRIFT_LIST);
    if (count < 15) {
        sx_bytes_append_byte(out->bytes, (uint8_t)(count << 4 | type));
        return;
    }
    sx_bytes_append_byte(out->bytes, (uint8_t)(0xf0 | type));
    sx_bytes_append_varint(out->bytes, count);
}

void sx_thrift_add_number(struct sx_thrift_out *out, int64_t value) {
    sx_bytes_append_zigzag(out->bytes, value);
}

void sx_thrift_add_bool(struct sx_thrift_out *out, bool value) {
    sx_bytes_append_byte(out->bytes, value ? SX_THRIFT_TRUE : SX_THRIFT_FALSE);
}

void sx_thrift_add_binary(struct sx_thrift_out *out, const void *bytes, size_t length_bytes) {
    sx_bytes_append_varint(out->bytes, length_bytes);
    sx_bytes_append(out->bytes, bytes, length_bytes);
}
