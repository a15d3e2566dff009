#include "storage/bounds.h"

#include <string.h>

enum key_kind { KEY_INTEGER, KEY_FLOAT, KEY_TEXT };

/* A value in a form that compares. */
struct key {
    enum key_kind kind;
    sx_i128 integer;
    double number;
    struct sx_slice text;
};

static bool is_unsigned(enum sx_type_id id) {
    return id == SX_TYPE_U8 || id == SX_TYPE_U16 || id == SX_TYPE_U32 || id == SX_TYPE_U64;
}

/* ---- stored values ---- */

static sx_i128 big_endian(struct sx_slice stored) {
    sx_u128 value = stored.bytes[0] & 0x80 ? SX_U128_MAX : 0;
    for (uint32_t i = 0; i < stored.length_bytes; i++)
        value = value << 8 | stored.bytes[i];
    return (sx_i128)value;
}

static bool load_integer(const struct sx_file_column *column, struct sx_slice stored, sx_i128 *out) {
    int32_t narrow;
    int64_t wide;
    if (column->physical == SX_PARQUET_INT32 && stored.length_bytes == sizeof narrow) {
        memcpy(&narrow, stored.bytes, sizeof narrow);
        *out = is_unsigned(column->type.id) ? (sx_i128)(uint32_t)narrow : narrow;
    } else if (column->physical == SX_PARQUET_INT64 && stored.length_bytes == sizeof wide) {
        memcpy(&wide, stored.bytes, sizeof wide);
        *out = is_unsigned(column->type.id) ? (sx_i128)(uint64_t)wide : wide;
    } else if (column->physical == SX_PARQUET_BOOLEAN && stored.length_bytes == 1) {
        *out = stored.bytes[0] != 0;
    } else {
        bool is_bytes =
            column->physical == SX_PARQUET_BYTE_ARRAY || column->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY;
        if (!is_bytes || stored.length_bytes == 0 || stored.length_bytes > sizeof *out)
            return false;
        *out = big_endian(stored);
    }
    if (column->conversion == SX_CONVERT_MILLIS)
        *out *= 1000;
    return true;
}

static bool load_number(enum sx_parquet_physical physical, struct sx_slice stored, double *out) {
    float narrow;
    if (physical == SX_PARQUET_FLOAT && stored.length_bytes == sizeof narrow) {
        memcpy(&narrow, stored.bytes, sizeof narrow);
        *out = (double)narrow;
    } else if (physical == SX_PARQUET_DOUBLE && stored.length_bytes == sizeof *out) {
        memcpy(out, stored.bytes, sizeof *out);
    } else {
        return false;
    }
    return *out == *out; /* bounds of NaN bound nothing */
}

static bool key_of_stored(const struct sx_file_column *column, struct sx_slice stored, struct key *out) {
    if (!stored.bytes)
        return false;
    switch (column->type.id) {
    case SX_TYPE_F32:
    case SX_TYPE_F64: out->kind = KEY_FLOAT; return load_number(column->physical, stored, &out->number);
    case SX_TYPE_VARCHAR:
        out->kind = KEY_TEXT;
        out->text = stored;
        return true;
    default: out->kind = KEY_INTEGER; return load_integer(column, stored, &out->integer);
    }
}

/* ---- values of the query ---- */

static bool key_of_integer(const struct sx_scalar *value, struct key *out) {
    out->kind = KEY_INTEGER;
    switch (sx_type_phys(value->type)) {
    case SX_PHYS_I8:
    case SX_PHYS_I16:
    case SX_PHYS_I32:
    case SX_PHYS_I64: out->integer = value->v.i64; return true;
    case SX_PHYS_U8:
        out->integer = value->type.id == SX_TYPE_BOOL ? value->v.b : (sx_i128)value->v.u64;
        return true;
    case SX_PHYS_U16:
    case SX_PHYS_U32:
    case SX_PHYS_U64: out->integer = value->v.u64; return true;
    case SX_PHYS_I128: out->integer = value->v.i128; return true;
    default: return false;
    }
}

/* NaN is equal to NaN and greater than every number, and bounds don't tell of it. */
static bool key_of_value(const struct sx_file_column *column, const struct sx_scalar *value,
                         struct key *out) {
    if (value->is_null || !sx_type_equal(value->type, column->type))
        return false;
    switch (value->type.id) {
    case SX_TYPE_F32:
        out->kind = KEY_FLOAT;
        out->number = (double)value->v.f32;
        return out->number == out->number;
    case SX_TYPE_F64:
        out->kind = KEY_FLOAT;
        out->number = value->v.f64;
        return out->number == out->number;
    case SX_TYPE_VARCHAR:
        out->kind = KEY_TEXT;
        out->text = (struct sx_slice){(const uint8_t *)value->v.text.bytes, value->v.text.length_bytes};
        return true;
    default: return key_of_integer(value, out);
    }
}

static int compare_text(struct sx_slice a, struct sx_slice b) {
    uint32_t shorter = a.length_bytes < b.length_bytes ? a.length_bytes : b.length_bytes;
    int order = shorter ? memcmp(a.bytes, b.bytes, shorter) : 0;
    return order ? order : (a.length_bytes > b.length_bytes) - (a.length_bytes < b.length_bytes);
}

static int compare(const struct key *a, const struct key *b) {
    switch (a->kind) {
    case KEY_FLOAT: return (a->number > b->number) - (a->number < b->number);
    case KEY_TEXT: return compare_text(a->text, b->text);
    default: return (a->integer > b->integer) - (a->integer < b->integer);
    }
}

/* ---- exclusion ---- */

struct ends {
    struct key min, max;
    bool has_min, has_max;
};

static struct ends ends_of(const struct sx_file_column *column, const struct sx_bounds *bounds) {
    struct ends ends = {0};
    ends.has_min = key_of_stored(column, bounds->min, &ends.min);
    ends.has_max = key_of_stored(column, bounds->max, &ends.max);
    if (ends.has_min && ends.has_max && compare(&ends.min, &ends.max) > 0)
        ends.has_min = ends.has_max = false; /* nonsense */
    return ends;
}

static bool equal_excluded(const struct sx_file_column *column, const struct ends *ends,
                           const struct sx_scalar *value) {
    struct key key = {0};
    if (!key_of_value(column, value, &key))
        return false;
    return (ends->has_min && compare(&key, &ends->min) < 0) ||
           (ends->has_max && compare(&key, &ends->max) > 0);
}

static bool in_excluded(const struct sx_file_column *column, const struct ends *ends,
                        const struct sx_prune *prune) {
    for (int i = 0; i < prune->n_values; i++)
        if (!prune->values[i].is_null && !equal_excluded(column, ends, &prune->values[i]))
            return false;
    return true;
}

static bool order_excluded(const struct sx_file_column *column, const struct ends *ends,
                           const struct sx_prune *prune) {
    struct key key = {0};
    if (!key_of_value(column, &prune->values[0], &key))
        return false;
    bool has_max = ends->has_max && key.kind != KEY_FLOAT; /* a NaN may lie above it */
    switch (prune->op) {
    case SX_PRUNE_LT: return ends->has_min && compare(&ends->min, &key) >= 0;
    case SX_PRUNE_LE: return ends->has_min && compare(&ends->min, &key) > 0;
    case SX_PRUNE_GT: return has_max && compare(&ends->max, &key) <= 0;
    case SX_PRUNE_GE: return has_max && compare(&ends->max, &key) < 0;
    default: return false;
    }
}

bool sx_bounds_exclude(const struct sx_file_column *column, const struct sx_bounds *bounds,
                       const struct sx_prune *prune) {
    if (prune->op == SX_PRUNE_NULL)
        return !column->is_optional || bounds->n_nulls == 0;
    if (column->is_optional && bounds->n_nulls == bounds->n_rows)
        return true;
    if (prune->op == SX_PRUNE_NOT_NULL || prune->n_values < 1)
        return false;
    struct ends ends = ends_of(column, bounds);
    if (!ends.has_min && !ends.has_max)
        return false;
    switch (prune->op) {
    case SX_PRUNE_EQ: return equal_excluded(column, &ends, &prune->values[0]);
    case SX_PRUNE_IN: return in_excluded(column, &ends, prune);
    default: return order_excluded(column, &ends, prune);
    }
}

/* The old bounds are in the signed order of the physical type. */
static bool old_order_holds(const struct sx_file_column *column) {
    bool is_number = column->physical != SX_PARQUET_BYTE_ARRAY &&
                     column->physical != SX_PARQUET_FIXED_LEN_BYTE_ARRAY &&
                     column->physical != SX_PARQUET_INT96;
    return is_number && !is_unsigned(column->type.id);
}

/* Orders of 96-bit timestamps and of halves are not defined. */
static bool has_bounds(const struct sx_file_column *column) {
    return column->conversion != SX_CONVERT_INT96_TIMESTAMP && column->conversion != SX_CONVERT_F16;
}

struct sx_bounds sx_chunk_bounds(const struct sx_file_column *column, const struct sx_chunk_meta *chunk) {
    const struct sx_statistics *statistics = &chunk->statistics;
    struct sx_bounds bounds = {.n_rows = chunk->n_values, .n_nulls = statistics->n_nulls};
    if (!has_bounds(column))
        return bounds;
    if (column->has_order && (statistics->min.bytes || statistics->max.bytes)) {
        bounds.min = statistics->min;
        bounds.max = statistics->max;
    } else if (old_order_holds(column)) {
        bounds.min = statistics->old_min;
        bounds.max = statistics->old_max;
    }
    return bounds;
}

/* ---- joining ---- */

/* `sign`: 1 for the lesser end, -1 for the greater one. */
static void join_end(const struct sx_file_column *column, struct sx_slice *into, struct sx_slice end,
                     int sign) {
    struct key own = {0}, other = {0};
    if (!key_of_stored(column, *into, &own) || !key_of_stored(column, end, &other))
        *into = (struct sx_slice){0};
    else if (sign * compare(&other, &own) < 0)
        *into = end;
}

void sx_bounds_join(const struct sx_file_column *column, struct sx_bounds *into,
                    const struct sx_bounds *bounds) {
    join_end(column, &into->min, bounds->min, 1);
    join_end(column, &into->max, bounds->max, -1);
    into->n_rows += bounds->n_rows;
    into->n_nulls = into->n_nulls < 0 || bounds->n_nulls < 0 ? -1 : into->n_nulls + bounds->n_nulls;
}

/* ---- stored form ---- */

static bool store_bytes(sx_i128 value, int32_t length_bytes, uint8_t *buffer) {
    if (length_bytes > SX_STORED_VALUE_BYTES)
        return false;
    sx_u128 rest = (sx_u128)value;
    for (int32_t i = length_bytes - 1; i >= 0; i--, rest >>= 8)
        buffer[i] = (uint8_t)rest;
    return big_endian((struct sx_slice){buffer, (uint32_t)length_bytes}) == value;
}

static bool store_integer(const struct sx_file_column *column, sx_i128 value, uint8_t *buffer,
                          struct sx_slice *out) {
    if (column->conversion == SX_CONVERT_MILLIS) {
        if (value % 1000 != 0)
            return false;
        value /= 1000;
    }
    uint32_t narrow = (uint32_t)value;
    uint64_t wide = (uint64_t)value;
    switch (column->physical) {
    case SX_PARQUET_INT32:
        memcpy(buffer, &narrow, sizeof narrow);
        *out = (struct sx_slice){buffer, sizeof narrow};
        return (is_unsigned(column->type.id) ? (sx_i128)narrow : (sx_i128)(int32_t)narrow) == value;
    case SX_PARQUET_INT64:
        memcpy(buffer, &wide, sizeof wide);
        *out = (struct sx_slice){buffer, sizeof wide};
        return (is_unsigned(column->type.id) ? (sx_i128)wide : (sx_i128)(int64_t)wide) == value;
    case SX_PARQUET_FIXED_LEN_BYTE_ARRAY:
        *out = (struct sx_slice){buffer, (uint32_t)column->type_length};
        return store_bytes(value, column->type_length, buffer);
    default: return false;
    }
}

static bool store_number(const struct sx_file_column *column, double value, uint8_t *buffer,
                         struct sx_slice *out) {
    if (value == 0) /* two zeros are equal and stored differently */
        return false;
    if (column->physical == SX_PARQUET_FLOAT) {
        float narrow = (float)value;
        memcpy(buffer, &narrow, sizeof narrow);
        *out = (struct sx_slice){buffer, sizeof narrow};
        return true;
    }
    memcpy(buffer, &value, sizeof value);
    *out = (struct sx_slice){buffer, sizeof value};
    return column->physical == SX_PARQUET_DOUBLE;
}

bool sx_stored_value(const struct sx_file_column *column, const struct sx_scalar *value,
                     uint8_t buffer[SX_STORED_VALUE_BYTES], struct sx_slice *out_stored) {
    struct key key = {0};
    if (!has_bounds(column) || column->physical == SX_PARQUET_BOOLEAN || !key_of_value(column, value, &key))
        return false;
    if (key.kind == KEY_TEXT) {
        *out_stored = key.text;
        return true;
    }
    return key.kind == KEY_FLOAT ? store_number(column, key.number, buffer, out_stored)
                                 : store_integer(column, key.integer, buffer, out_stored);
}

bool sx_bounds_integers(const struct sx_file_column *column, const struct sx_bounds *bounds, int64_t *out_min,
                        int64_t *out_max) {
    struct key min = {0}, max = {0};
    if (!key_of_stored(column, bounds->min, &min) || !key_of_stored(column, bounds->max, &max) ||
        min.kind != KEY_INTEGER)
        return false;
    *out_min = (int64_t)min.integer;
    *out_max = (int64_t)max.integer;
    return min.integer == *out_min && max.integer == *out_max && *out_min <= *out_max;
}
