#include <string.h>

#include "backend/cpu/sort.h"
#include "tensor/semantics.h"
#include "tensor/semantics_date.h"

#define SIGN_64  (UINT64_C(1) << 63)
#define SIGN_128 ((sx_u128)1 << 127)

enum { SHORT_STRING_BYTES = 15 }; /* and a byte for the length */

#define SX_VALUE          int8_t
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_i8
#define SX_TO_CODE(value) ((uint64_t)(int64_t)(value) ^ SIGN_64)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          int16_t
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_i16
#define SX_TO_CODE(value) ((uint64_t)(int64_t)(value) ^ SIGN_64)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          int32_t
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_i32
#define SX_TO_CODE(value) ((uint64_t)(int64_t)(value) ^ SIGN_64)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          int64_t
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_i64
#define SX_TO_CODE(value) ((uint64_t)(value) ^ SIGN_64)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          sx_i128
#define SX_CODE           sx_u128
#define SX_NAME(stem)     stem##_i128
#define SX_TO_CODE(value) ((sx_u128)(value) ^ SIGN_128)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          uint8_t
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_u8
#define SX_TO_CODE(value) (value)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          uint16_t
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_u16
#define SX_TO_CODE(value) (value)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          uint32_t
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_u32
#define SX_TO_CODE(value) (value)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          uint64_t
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_u64
#define SX_TO_CODE(value) (value)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          sx_u128
#define SX_CODE           sx_u128
#define SX_NAME(stem)     stem##_u128
#define SX_TO_CODE(value) (value)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          float
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_f32
#define SX_TO_CODE(value) sx_f64_code((double)(value))
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          double
#define SX_CODE           uint64_t
#define SX_NAME(stem)     stem##_f64
#define SX_TO_CODE(value) sx_f64_code(value)
#include "backend/cpu/sort_key.tmpl.h"
#define SX_VALUE          struct sx_interval
#define SX_CODE           sx_u128
#define SX_NAME(stem)     stem##_interval
#define SX_TO_CODE(value) sx_interval_code(value)
#include "backend/cpu/sort_key.tmpl.h"

typedef void codes_function(const void *values, int64_t rows, void *out_codes);

static codes_function *const codes_functions[SX_PHYS_COUNT] = {
    [SX_PHYS_I8] = codes_i8,
    [SX_PHYS_I16] = codes_i16,
    [SX_PHYS_I32] = codes_i32,
    [SX_PHYS_I64] = codes_i64,
    [SX_PHYS_I128] = codes_i128,
    [SX_PHYS_U8] = codes_u8,
    [SX_PHYS_U16] = codes_u16,
    [SX_PHYS_U32] = codes_u32,
    [SX_PHYS_U64] = codes_u64,
    [SX_PHYS_U128] = codes_u128,
    [SX_PHYS_F32] = codes_f32,
    [SX_PHYS_F64] = codes_f64,
    [SX_PHYS_INTERVAL] = codes_interval,
};

/* The 16 bytes behind those that all strings share, zeros behind a shorter one. */
static sx_u128 bytes_from(struct sx_string value, uint32_t skipped) {
    uint64_t words[2] = {0, 0};
    uint32_t length = value.length_bytes > skipped ? value.length_bytes - skipped : 0;
    if (length >= sizeof words)
        memcpy(words, sx_string_bytes(&value) + skipped, sizeof words);
    else
        memcpy(words, sx_string_bytes(&value) + (length ? skipped : 0), length);
    return (sx_u128)__builtin_bswap64(words[0]) << 64 | __builtin_bswap64(words[1]);
}

/* Short strings: "a" is less than "a\0", so the length decides between equal bytes. */
static void codes_string(const struct sx_sort_column *column, const struct sx_string *views, int64_t rows,
                         sx_u128 *codes) {
    const uint32_t skipped = column->shared_bytes;
    for (int64_t i = 0; i < rows; i++)
        codes[i] = bytes_from(views[i], skipped);
    for (int64_t i = 0; column->is_short_string && i < rows; i++)
        codes[i] |= (views[i].length_bytes - skipped) & SHORT_STRING_BYTES;
}

void sx_sort_codes(const struct sx_sort_column *column, int64_t first, int64_t rows, void *out_codes) {
    enum sx_phys phys = sx_type_phys(column->values.type);
    const void *values = (const char *)column->values.values + (size_t)first * sx_phys_bytes(phys);
    if (phys == SX_PHYS_STRING)
        codes_string(column, values, rows, out_codes);
    else
        codes_functions[phys](values, rows, out_codes);
}

static bool is_valid(const struct sx_tensor *column, int64_t row) {
    return !column->valid || column->valid[row];
}

/* How many first bytes all strings have in common. */
static uint32_t count_shared(const struct sx_tensor *column) {
    const struct sx_string *views = column->values;
    int64_t first = 0;
    while (first < column->length && !is_valid(column, first))
        first++;
    if (first == column->length)
        return 0;
    const char *model = sx_string_bytes(&views[first]);
    uint32_t shared = views[first].length_bytes;
    for (int64_t i = first + 1; i < column->length && shared; i++) {
        if (!is_valid(column, i))
            continue;
        const char *bytes = sx_string_bytes(&views[i]);
        shared = views[i].length_bytes < shared ? views[i].length_bytes : shared;
        if (memcmp(bytes, model, shared) != 0)
            for (uint32_t at = 0; at < shared; at++)
                if (bytes[at] != model[at])
                    shared = at;
    }
    return shared;
}

static void measure_strings(struct sx_sort_column *column) {
    const struct sx_string *views = column->values.values;
    uint32_t longest = 0;
    for (int64_t i = 0; i < column->values.length; i++) {
        uint32_t length = is_valid(&column->values, i) ? views[i].length_bytes : 0;
        longest = length > longest ? length : longest;
    }
    column->shared_bytes = longest > SHORT_STRING_BYTES ? count_shared(&column->values) : 0;
    column->is_short_string = longest - column->shared_bytes <= SHORT_STRING_BYTES;
}

static void widen_range_64(struct sx_sort_column *column, const uint64_t *codes, const uint8_t *valid,
                           int64_t rows) {
    uint64_t min = (uint64_t)column->min, max = (uint64_t)column->max;
    for (int64_t i = 0; i < rows; i++) {
        if (valid && !valid[i])
            continue;
        min = codes[i] < min ? codes[i] : min;
        max = codes[i] > max ? codes[i] : max;
    }
    column->min = min;
    column->max = max;
}

static void widen_range_128(struct sx_sort_column *column, const sx_u128 *codes, const uint8_t *valid,
                            int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        if (valid && !valid[i])
            continue;
        column->min = codes[i] < column->min ? codes[i] : column->min;
        column->max = codes[i] > column->max ? codes[i] : column->max;
    }
}

static int bit_length(sx_u128 number) {
    uint64_t high = (uint64_t)(number >> 64), low = (uint64_t)number;
    if (high)
        return 128 - __builtin_clzll(high);
    return low ? 64 - __builtin_clzll(low) : 0;
}

static enum sx_status measure_range(struct sx_stream *stream, struct sx_sort_column *column) {
    sx_u128 codes[SX_SORT_BLOCK];
    const uint8_t *valid = column->values.valid;
    column->min = column->is_wide ? SX_U128_MAX : UINT64_MAX;
    column->max = 0;
    for (int64_t at = 0; at < column->values.length; at += SX_SORT_BLOCK) {
        if (at % (SX_SORT_BLOCK * 256) == 0)
            SX_TRY(sx_cpu_check_cancel(stream));
        int64_t left = column->values.length - at, n = left < SX_SORT_BLOCK ? left : SX_SORT_BLOCK;
        const uint8_t *block_valid = valid ? valid + at : NULL;
        sx_sort_codes(column, at, n, codes);
        if (column->is_wide)
            widen_range_128(column, codes, block_valid, n);
        else
            widen_range_64(column, (const uint64_t *)codes, block_valid, n);
    }
    return SX_OK;
}

enum sx_status sx_sort_measure(struct sx_stream *stream, struct sx_sort_column *column) {
    enum sx_phys phys = sx_type_phys(column->values.type);
    const uint8_t *valid = column->values.valid;
    if (phys == SX_PHYS_STRING)
        measure_strings(column);
    column->is_wide =
        phys == SX_PHYS_STRING || phys == SX_PHYS_INTERVAL || phys == SX_PHYS_I128 || phys == SX_PHYS_U128;
    column->has_null = valid && column->values.length && memchr(valid, 0, (size_t)column->values.length);
    SX_TRY(measure_range(stream, column));
    column->has_value = column->min <= column->max;
    sx_u128 range = column->has_value ? column->max - column->min : 0;
    column->halved = column->has_null && range >> 127;
    column->bits = bit_length((range >> column->halved) + (column->has_null && column->has_value));
    return SX_OK;
}

static int compare_column(const struct sx_sort_column *column, int64_t row_a, int64_t row_b) {
    const uint8_t *valid = column->values.valid;
    if (valid && (!valid[row_a] || !valid[row_b])) {
        int nulls_less = column->order.nulls_first ? -1 : 1;
        return valid[row_a] == valid[row_b] ? 0 : valid[row_a] ? -nulls_less : nulls_less;
    }
    int order;
    if (column->values.type.id == SX_TYPE_VARCHAR) {
        const struct sx_string *views = column->values.values;
        order = sx_string_compare(&views[row_a], &views[row_b]);
    } else {
        sx_u128 codes[2] = {0, 0};
        sx_sort_codes(column, row_a, 1, &codes[0]);
        sx_sort_codes(column, row_b, 1, &codes[1]);
        order = codes[0] < codes[1] ? -1 : codes[0] > codes[1];
    }
    return column->order.descending ? -order : order;
}

int sx_sort_compare(const struct sx_sort_plan *plan, int first_column, int64_t row_a, int64_t row_b) {
    for (int k = first_column; k < plan->n_columns; k++) {
        int order = compare_column(&plan->columns[k], row_a, row_b);
        if (order)
            return order;
    }
    return 0;
}
