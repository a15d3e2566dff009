/* DuckDB's types and constants as JSON. */
#include <string.h>

#include "plan/duckdb_convert.h"

static bool convert_decimal(struct sx_convert *c, struct json_object *info, struct sx_type *out_type) {
    int64_t width = sx_json_integer(info, "width", 0), scale = sx_json_integer(info, "scale", -1);
    if (width < 1 || width > SX_DECIMAL_MAX_DIGITS || scale < 0 || scale > width)
        return sx_build_malformed(&c->b, "DECIMAL(%d,%d)", (int)width, (int)scale);
    *out_type = sx_type_decimal((int)width, (int)scale);
    return true;
}

bool sx_convert_type(struct sx_convert *c, struct json_object *type, const char *what,
                     struct sx_type *out_type) {
    const char *id = sx_json_text(type, "id");
    struct json_object *info = sx_json_member(type, "type_info");
    const char *alias = sx_json_text(info, "alias"), *collation = sx_json_text(info, "collation");
    if (*collation)
        return sx_build_unsupported(&c->b, "collation %s", collation);
    if (!*alias && strcmp(id, "DECIMAL") == 0)
        return convert_decimal(c, info, out_type);
    char name[SX_TYPE_NAME_BYTES];
    for (int i = 0; !*alias && i < SX_TYPE_COUNT; i++) {
        if (strcmp(id, sx_type_name(sx_type_of((enum sx_type_id)i), name)) == 0) {
            *out_type = sx_type_of((enum sx_type_id)i);
            return true;
        }
    }
    const bool named = what && *what;
    return sx_build_unsupported(&c->b, "type %s%s%s%s", *alias ? alias : id, named ? " (" : "",
                                named ? what : "", named ? ")" : "");
}

static bool convert_wide(struct sx_convert *c, struct json_object *value, sx_u128 *out_value) {
    struct json_object *upper = sx_json_member(value, "upper"), *lower = sx_json_member(value, "lower");
    if (!json_object_is_type(upper, json_type_int) || !json_object_is_type(lower, json_type_int))
        return sx_build_malformed(&c->b, "a 128-bit constant without its halves");
    uint64_t high = json_object_get_uint64(upper);
    if (json_object_get_int64(upper) < 0)
        high = (uint64_t)json_object_get_int64(upper);
    *out_value = (sx_u128)high << 64 | json_object_get_uint64(lower);
    return true;
}

static bool convert_text(struct sx_convert *c, struct json_object *value, struct sx_scalar *out_scalar) {
    if (!json_object_is_type(value, json_type_string))
        return sx_build_malformed(&c->b, "a VARCHAR constant that is no text");
    size_t length = (size_t)json_object_get_string_len(value);
    const char *copy = sx_arena_copy_text(c->b.arena, json_object_get_string(value), length);
    if (!copy)
        return sx_build_no_memory(&c->b);
    out_scalar->v.text.bytes = copy;
    out_scalar->v.text.length_bytes = (uint32_t)length;
    return true;
}

static bool convert_interval(struct sx_convert *c, struct json_object *value,
                             struct sx_interval *out_interval) {
    if (!json_object_is_type(value, json_type_object))
        return sx_build_malformed(&c->b, "an INTERVAL constant without its parts");
    out_interval->months = (int32_t)sx_json_integer(value, "months", 0);
    out_interval->days = (int32_t)sx_json_integer(value, "days", 0);
    out_interval->micros = sx_json_integer(value, "micros", 0);
    return true;
}

static bool convert_number(struct sx_convert *c, struct json_object *value, struct sx_scalar *out_scalar) {
    const enum sx_phys phys = sx_type_phys(out_scalar->type);
    if (phys == SX_PHYS_I128 || phys == SX_PHYS_U128)
        return convert_wide(c, value, &out_scalar->v.u128);
    if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double))
        return sx_build_malformed(&c->b, "a numeric constant that is no number");
    if (phys == SX_PHYS_F32)
        out_scalar->v.f32 = (float)json_object_get_double(value);
    else if (phys == SX_PHYS_F64)
        out_scalar->v.f64 = json_object_get_double(value);
    else if (phys == SX_PHYS_U64)
        out_scalar->v.u64 = json_object_get_uint64(value);
    else
        out_scalar->v.i64 = json_object_get_int64(value);
    return true;
}

bool sx_convert_value(struct sx_convert *c, struct json_object *json, struct sx_scalar *out_scalar) {
    *out_scalar = (struct sx_scalar){0};
    if (!sx_convert_type(c, sx_json_member(json, "type"), "a constant", &out_scalar->type))
        return false;
    struct json_object *value = sx_json_member(json, "value");
    out_scalar->is_null = sx_json_bool(json, "is_null") || out_scalar->type.id == SX_TYPE_NULLTYPE;
    if (out_scalar->is_null)
        return true;
    switch (out_scalar->type.id) {
    case SX_TYPE_BOOL:
        if (!json_object_is_type(value, json_type_boolean))
            return sx_build_malformed(&c->b, "a BOOLEAN constant that is neither true nor false");
        out_scalar->v.i64 = json_object_get_boolean(value) ? 1 : 0;
        return true;
    case SX_TYPE_VARCHAR: return convert_text(c, value, out_scalar);
    case SX_TYPE_INTERVAL: return convert_interval(c, value, &out_scalar->v.interval);
    default: return convert_number(c, value, out_scalar);
    }
}
