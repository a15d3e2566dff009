/* Least and greatest values, for statistics and column indexes. */
#include <string.h>

#include "storage/write_values.h"
#include "tensor/semantics.h"

/* Longer texts are cut. */
enum { MOST_BOUND_BYTES = 64 };

enum order { ORDER_SIGNED, ORDER_UNSIGNED, ORDER_NUMBER, ORDER_TEXT, ORDER_NONE };

static enum order order_of(const struct sx_write_column *column) {
    switch (column->type.id) {
    case SX_TYPE_NULLTYPE: return ORDER_NONE;
    case SX_TYPE_F32:
    case SX_TYPE_F64: return ORDER_NUMBER;
    case SX_TYPE_VARCHAR: return ORDER_TEXT;
    case SX_TYPE_BOOL:
    case SX_TYPE_U8:
    case SX_TYPE_U16:
    case SX_TYPE_U32:
    case SX_TYPE_U64: return ORDER_UNSIGNED;
    default: return ORDER_SIGNED;
    }
}

static int compare(enum order order, const struct sx_write_key *a, const struct sx_write_key *b) {
    switch (order) {
    case ORDER_TEXT: return sx_string_compare(&a->text, &b->text);
    case ORDER_NUMBER: return (a->number > b->number) - (a->number < b->number);
    default: return (a->integer > b->integer) - (a->integer < b->integer);
    }
}

/* ---- of values ---- */

#define RANGE_OF(name, value_type)                                                      \
    static void name(const void *values, int64_t count, struct sx_write_range *range) { \
        const value_type *at = values;                                                  \
        value_type least = at[0], greatest = at[0];                                     \
        for (int64_t i = 1; i < count; i++) {                                           \
            least = at[i] < least ? at[i] : least;                                      \
            greatest = at[i] > greatest ? at[i] : greatest;                             \
        }                                                                               \
        range->min.integer = least;                                                     \
        range->max.integer = greatest;                                                  \
    }
RANGE_OF(range_u8, uint8_t)
RANGE_OF(range_i32, int32_t)
RANGE_OF(range_u32, uint32_t)
RANGE_OF(range_i64, int64_t)
RANGE_OF(range_u64, uint64_t)
#undef RANGE_OF

#define RANGE_OF_NUMBERS(name, value_type)                                              \
    static void name(const void *values, int64_t count, struct sx_write_range *range) { \
        const value_type *at = values;                                                  \
        value_type least = at[0], greatest = at[0];                                     \
        for (int64_t i = 0; i < count; i++) {                                           \
            range->has_nan |= at[i] != at[i];                                           \
            least = at[i] < least ? at[i] : least;                                      \
            greatest = at[i] > greatest ? at[i] : greatest;                             \
        }                                                                               \
        range->min.number = (double)least;                                              \
        range->max.number = (double)greatest;                                           \
    }
RANGE_OF_NUMBERS(range_f32, float)
RANGE_OF_NUMBERS(range_f64, double)
#undef RANGE_OF_NUMBERS

static sx_i128 load_wide(const uint8_t *bytes, size_t width) {
    sx_u128 value = bytes[0] & 0x80 ? SX_U128_MAX : 0;
    for (size_t b = 0; b < width; b++)
        value = value << 8 | bytes[b];
    return (sx_i128)value;
}

static void range_wide(const uint8_t *values, size_t width, int64_t count, struct sx_write_range *range) {
    range->min.integer = range->max.integer = load_wide(values, width);
    for (int64_t i = 1; i < count; i++) {
        sx_i128 value = load_wide(values + (size_t)i * width, width);
        if (value < range->min.integer)
            range->min.integer = value;
        if (value > range->max.integer)
            range->max.integer = value;
    }
}

static void range_texts(const struct sx_string *texts, const int32_t *codes, int64_t count,
                        struct sx_write_range *range) {
    const struct sx_string *least = &texts[codes ? codes[0] : 0], *greatest = least;
    for (int64_t i = 1; i < count; i++) {
        if (codes && codes[i] == codes[i - 1])
            continue;
        const struct sx_string *text = &texts[codes ? codes[i] : i];
        if (sx_string_compare(text, least) < 0)
            least = text;
        else if (sx_string_compare(text, greatest) > 0)
            greatest = text;
    }
    range->min.text = *least;
    range->max.text = *greatest;
}

void sx_write_range_of(const struct sx_write_values *values, int64_t first, int64_t count,
                       struct sx_write_range *range) {
    const struct sx_stored *stored = &values->stored;
    const enum order order = order_of(values->column);
    range->is_known = count > 0 && order != ORDER_NONE;
    if (!range->is_known)
        return;
    if (!stored->values) { /* texts by their codes */
        range_texts(values->dictionary.memory, values->codes + first, count, range);
        return;
    }
    const void *from = (const uint8_t *)stored->values + (size_t)first * stored->width;
    switch (stored->physical) {
    case SX_PARQUET_BOOLEAN: range_u8(from, count, range); break;
    case SX_PARQUET_INT32: (order == ORDER_SIGNED ? range_i32 : range_u32)(from, count, range); break;
    case SX_PARQUET_FLOAT: range_f32(from, count, range); break;
    case SX_PARQUET_DOUBLE: range_f64(from, count, range); break;
    case SX_PARQUET_BYTE_ARRAY: range_texts(from, NULL, count, range); break;
    case SX_PARQUET_FIXED_LEN_BYTE_ARRAY: range_wide(from, stored->width, count, range); break;
    default: (order == ORDER_SIGNED ? range_i64 : range_u64)(from, count, range);
    }
}

void sx_write_range_join(const struct sx_write_column *column, struct sx_write_range *into,
                         const struct sx_write_range *range) {
    const enum order order = order_of(column);
    into->n_nulls += range->n_nulls;
    into->rows += range->rows;
    into->has_nan |= range->has_nan;
    if (!range->is_known)
        return;
    if (!into->is_known || compare(order, &range->min, &into->min) < 0)
        into->min = range->min;
    if (!into->is_known || compare(order, &range->max, &into->max) > 0)
        into->max = range->max;
    into->is_known = true;
}

/* ---- as stored ---- */

/* A bound's bytes. */
struct bound {
    uint8_t bytes[MOST_BOUND_BYTES];
    uint32_t length_bytes;
    bool is_exact;
    bool is_known;
};

/* The longest whole UTF-8 of at most MOST_BOUND_BYTES. */
static uint32_t cut_length(const char *text) {
    uint32_t length = MOST_BOUND_BYTES;
    while (length > 0 && ((uint8_t)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

static bool can_be_raised(uint8_t byte) {
    return byte < 0x7f;
}

/* The upper end of a text that was cut: its last ASCII character is raised. */
static void raise(struct bound *bound) {
    while (bound->length_bytes > 0 && !can_be_raised(bound->bytes[bound->length_bytes - 1]))
        bound->length_bytes--;
    bound->is_known = bound->length_bytes > 0;
    if (bound->is_known)
        bound->bytes[bound->length_bytes - 1]++;
}

static void store_text(const struct sx_string *text, bool is_max, struct bound *bound) {
    const char *bytes = sx_string_bytes(text);
    bound->is_exact = text->length_bytes <= MOST_BOUND_BYTES;
    bound->length_bytes = bound->is_exact ? text->length_bytes : cut_length(bytes);
    memcpy(bound->bytes, bytes, bound->length_bytes);
    if (is_max && !bound->is_exact)
        raise(bound);
}

/* Of the two zeros the bounds take the outer ones. */
static double widen_zero(double number, bool is_max) {
    return number != 0 ? number : is_max ? 0.0 : -0.0;
}

static void store_number(const struct sx_write_column *column, double number, bool is_max,
                         struct bound *bound) {
    number = widen_zero(number, is_max);
    float narrow = (float)number;
    bound->length_bytes = (uint32_t)sx_write_column_width(column);
    if (column->physical == SX_PARQUET_FLOAT)
        memcpy(bound->bytes, &narrow, sizeof narrow);
    else
        memcpy(bound->bytes, &number, sizeof number);
}

static void store_integer(const struct sx_write_column *column, sx_i128 integer, struct bound *bound) {
    bound->length_bytes = (uint32_t)sx_write_column_width(column);
    sx_u128 rest = (sx_u128)integer;
    for (uint32_t b = 0; b < bound->length_bytes; b++, rest >>= 8) {
        bool is_big_endian = column->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY;
        bound->bytes[is_big_endian ? bound->length_bytes - 1 - b : b] = (uint8_t)rest;
    }
}

static void store(const struct sx_write_column *column, const struct sx_write_key *key, bool is_max,
                  struct bound *bound) {
    *bound = (struct bound){.is_exact = true, .is_known = true};
    switch (order_of(column)) {
    case ORDER_TEXT: store_text(&key->text, is_max, bound); break;
    case ORDER_NUMBER: store_number(column, key->number, is_max, bound); break;
    default: store_integer(column, key->integer, bound);
    }
}

void sx_write_statistics(const struct sx_write_column *column, const struct sx_write_range *range,
                         struct sx_bytes *out) {
    struct sx_thrift_out thrift = sx_thrift_to(out);
    struct bound min = {0}, max = {0};
    if (range->is_known && !range->has_nan) {
        store(column, &range->min, false, &min);
        store(column, &range->max, true, &max);
    }
    sx_thrift_put_i64(&thrift, 3, range->n_nulls);
    if (max.is_known)
        sx_thrift_put_binary(&thrift, 5, max.bytes, max.length_bytes);
    if (min.is_known)
        sx_thrift_put_binary(&thrift, 6, min.bytes, min.length_bytes);
    if (max.is_known)
        sx_thrift_put_bool(&thrift, 7, max.is_exact);
    if (min.is_known)
        sx_thrift_put_bool(&thrift, 8, min.is_exact);
    sx_thrift_end(&thrift);
}

/* ---- column index ---- */

enum boundary { UNORDERED = 0, ASCENDING = 1, DESCENDING = 2 };

static enum boundary boundary_of(const struct sx_write_column *column, const struct sx_write_range *pages,
                                 int n_pages) {
    const enum order order = order_of(column);
    const struct sx_write_range *last = NULL;
    bool ascends = true, descends = true;
    for (int i = 0; i < n_pages; i++) {
        if (!pages[i].is_known)
            continue;
        if (last) {
            int min = compare(order, &last->min, &pages[i].min);
            int max = compare(order, &last->max, &pages[i].max);
            ascends &= min <= 0 && max <= 0;
            descends &= min >= 0 && max >= 0;
        }
        last = &pages[i];
    }
    return ascends ? ASCENDING : descends ? DESCENDING : UNORDERED;
}

/* Every page with values has bounds that can be stored. */
static bool has_all_bounds(const struct sx_write_column *column, const struct sx_write_range *pages,
                           int n_pages) {
    for (int i = 0; i < n_pages; i++) {
        struct bound max = {.is_known = true};
        if (pages[i].has_nan)
            return false;
        if (pages[i].is_known)
            store(column, &pages[i].max, true, &max);
        if (!max.is_known)
            return false;
    }
    return order_of(column) != ORDER_NONE;
}

static void put_bounds(struct sx_thrift_out *out, int16_t field, const struct sx_write_column *column,
                       const struct sx_write_range *pages, int n_pages, bool is_max) {
    sx_thrift_put_list(out, field, SX_THRIFT_BINARY, (size_t)n_pages);
    for (int i = 0; i < n_pages; i++) {
        struct bound bound = {0};
        if (pages[i].is_known)
            store(column, is_max ? &pages[i].max : &pages[i].min, is_max, &bound);
        sx_thrift_add_binary(out, bound.bytes, bound.length_bytes);
    }
}

void sx_write_column_index(const struct sx_write_column *column, const struct sx_write_range *pages,
                           int n_pages, struct sx_bytes *out) {
    if (!has_all_bounds(column, pages, n_pages))
        return;
    struct sx_thrift_out thrift = sx_thrift_to(out);
    sx_thrift_put_list(&thrift, 1, SX_THRIFT_TRUE, (size_t)n_pages);
    for (int i = 0; i < n_pages; i++)
        sx_thrift_add_bool(&thrift, !pages[i].is_known);
    put_bounds(&thrift, 2, column, pages, n_pages, false);
    put_bounds(&thrift, 3, column, pages, n_pages, true);
    sx_thrift_put_i32(&thrift, 4, (int32_t)boundary_of(column, pages, n_pages));
    sx_thrift_put_list(&thrift, 5, SX_THRIFT_I64, (size_t)n_pages);
    for (int i = 0; i < n_pages; i++)
        sx_thrift_add_number(&thrift, pages[i].n_nulls);
    sx_thrift_end(&thrift);
}
