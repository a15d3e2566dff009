#include "storage/thrift.h"

enum { MAX_DEPTH = 32 };

void sx_thrift_fail(struct sx_thrift *in, const char *wrong) {
    if (!in->wrong)
        in->wrong = wrong;
    in->at = in->end;
}

static uint8_t read_byte(struct sx_thrift *in) {
    if (in->at >= in->end) {
        sx_thrift_fail(in, "it ends in the middle of a field");
        return 0;
    }
    return *in->at++;
}

static uint64_t read_varint(struct sx_thrift *in) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = read_byte(in);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    sx_thrift_fail(in, "a number of more than 64 bits");
    return 0;
}

static int64_t read_zigzag(struct sx_thrift *in) {
    uint64_t value = read_varint(in);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void advance(struct sx_thrift *in, uint64_t length_bytes) {
    if (length_bytes > (uint64_t)(in->end - in->at))
        sx_thrift_fail(in, "a field is longer than what is left");
    else
        in->at += length_bytes;
}

bool sx_thrift_next(struct sx_thrift *in, struct sx_thrift_field *field) {
    uint8_t head = read_byte(in);
    if (in->wrong || head == 0)
        return false;
    field->type = head & 0x0f;
    int64_t id = head >> 4 ? field->id + (head >> 4) : read_zigzag(in);
    if (id < INT16_MIN || id > INT16_MAX || field->type == 0 || field->type > SX_THRIFT_UUID)
        sx_thrift_fail(in, "a field has an unknown type or number");
    field->id = (int16_t)id;
    return !in->wrong;
}

static bool expect(struct sx_thrift *in, bool holds) {
    if (!holds)
        sx_thrift_fail(in, "a field has an unexpected type");
    return holds;
}

int64_t sx_thrift_i64(struct sx_thrift *in, const struct sx_thrift_field *field) {
    if (field->type == SX_THRIFT_I8)
        return (int8_t)read_byte(in);
    if (!expect(in, field->type >= SX_THRIFT_I16 && field->type <= SX_THRIFT_I64))
        return 0;
    return read_zigzag(in);
}

int32_t sx_thrift_i32(struct sx_thrift *in, const struct sx_thrift_field *field) {
    int64_t value = sx_thrift_i64(in, field);
    if (value < INT32_MIN || value > INT32_MAX) {
        sx_thrift_fail(in, "a number of more than 32 bits");
        return 0;
    }
    return (int32_t)value;
}

bool sx_thrift_bool(struct sx_thrift *in, const struct sx_thrift_field *field) {
    expect(in, field->type == SX_THRIFT_TRUE || field->type == SX_THRIFT_FALSE);
    return field->type == SX_THRIFT_TRUE;
}

struct sx_slice sx_thrift_element_binary(struct sx_thrift *in) {
    uint64_t length_bytes = read_varint(in);
    const uint8_t *bytes = in->at;
    advance(in, length_bytes);
    if (in->wrong || length_bytes > UINT32_MAX)
        return (struct sx_slice){0};
    return (struct sx_slice){bytes, (uint32_t)length_bytes};
}

struct sx_slice sx_thrift_binary(struct sx_thrift *in, const struct sx_thrift_field *field) {
    if (!expect(in, field->type == SX_THRIFT_BINARY))
        return (struct sx_slice){0};
    return sx_thrift_element_binary(in);
}

bool sx_thrift_struct(struct sx_thrift *in, const struct sx_thrift_field *field) {
    return expect(in, field->type == SX_THRIFT_STRUCT);
}

/* Every element has one byte at least. */
static uint32_t read_list_head(struct sx_thrift *in, uint8_t *type) {
    uint8_t head = read_byte(in);
    uint64_t count = head >> 4;
    if (count == 15)
        count = read_varint(in);
    *type = head & 0x0f;
    if (count > (uint64_t)(in->end - in->at) || count > UINT32_MAX) {
        sx_thrift_fail(in, "a list is longer than what is left");
        return 0;
    }
    return (uint32_t)count;
}

uint32_t sx_thrift_list(struct sx_thrift *in, const struct sx_thrift_field *field, enum sx_thrift_type type) {
    uint8_t found = 0;
    if (!expect(in, field->type == SX_THRIFT_LIST))
        return 0;
    uint32_t count = read_list_head(in, &found);
    bool both_bools = type <= SX_THRIFT_FALSE && (found == SX_THRIFT_TRUE || found == SX_THRIFT_FALSE);
    return count == 0 || expect(in, found == type || both_bools) ? count : 0;
}

int64_t sx_thrift_element_i64(struct sx_thrift *in) {
    return read_zigzag(in);
}

bool sx_thrift_element_bool(struct sx_thrift *in) {
    return read_byte(in) == SX_THRIFT_TRUE;
}

/* ---- skipping ---- */

static void skip_value(struct sx_thrift *in, uint8_t type, bool in_list, int depth);

static void skip_struct(struct sx_thrift *in, int depth) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field))
        skip_value(in, field.type, false, depth);
}

static void skip_list(struct sx_thrift *in, int depth) {
    uint8_t type = 0;
    uint32_t count = read_list_head(in, &type);
    for (uint32_t i = 0; i < count && !in->wrong; i++)
        skip_value(in, type, true, depth);
}

static void skip_map(struct sx_thrift *in, int depth) {
    uint64_t count = read_varint(in);
    uint8_t types = count ? read_byte(in) : 0;
    for (uint64_t i = 0; i < count && !in->wrong; i++) {
        skip_value(in, types >> 4, true, depth);
        skip_value(in, types & 0x0f, true, depth);
    }
}

static void skip_value(struct sx_thrift *in, uint8_t type, bool in_list, int depth) {
    if (depth >= MAX_DEPTH) {
        sx_thrift_fail(in, "fields are nested too deep");
        return;
    }
    switch (type) {
    case SX_THRIFT_TRUE:
    case SX_THRIFT_FALSE: advance(in, in_list ? 1 : 0); break;
    case SX_THRIFT_I8: advance(in, 1); break;
    case SX_THRIFT_I16:
    case SX_THRIFT_I32:
    case SX_THRIFT_I64: read_varint(in); break;
    case SX_THRIFT_DOUBLE: advance(in, 8); break;
    case SX_THRIFT_BINARY: advance(in, read_varint(in)); break;
    case SX_THRIFT_LIST:
    case SX_THRIFT_SET: skip_list(in, depth + 1); break;
    case SX_THRIFT_MAP: skip_map(in, depth + 1); break;
    case SX_THRIFT_STRUCT: skip_struct(in, depth + 1); break;
    case SX_THRIFT_UUID: advance(in, 16); break;
    default: sx_thrift_fail(in, "a field has an unknown type or number");
    }
}

void sx_thrift_skip(struct sx_thrift *in, const struct sx_thrift_field *field) {
    skip_value(in, field->type, false, 0);
}
