#include <string.h>

#include "backend/cpu/join.h"
#include "tensor/semantics.h"

#define SX_VALUE          int8_t
#define SX_NAME(stem)     stem##_i8
#define SX_TO_WORD(value) (value)
#include "backend/cpu/join_key.tmpl.h"
#define SX_VALUE          int16_t
#define SX_NAME(stem)     stem##_i16
#define SX_TO_WORD(value) (value)
#include "backend/cpu/join_key.tmpl.h"
#define SX_VALUE          int32_t
#define SX_NAME(stem)     stem##_i32
#define SX_TO_WORD(value) (value)
#include "backend/cpu/join_key.tmpl.h"
#define SX_VALUE          uint8_t
#define SX_NAME(stem)     stem##_u8
#define SX_TO_WORD(value) (value)
#include "backend/cpu/join_key.tmpl.h"
#define SX_VALUE          uint16_t
#define SX_NAME(stem)     stem##_u16
#define SX_TO_WORD(value) (value)
#include "backend/cpu/join_key.tmpl.h"
#define SX_VALUE          uint32_t
#define SX_NAME(stem)     stem##_u32
#define SX_TO_WORD(value) (value)
#include "backend/cpu/join_key.tmpl.h"
/* The order of words is the order of values here too, since ranges are taken. */
#define SX_VALUE          uint64_t
#define SX_NAME(stem)     stem##_u64
#define SX_TO_WORD(value) ((int64_t)((value) ^ (UINT64_C(1) << 63)))
#include "backend/cpu/join_key.tmpl.h"
#define SX_VALUE          float
#define SX_NAME(stem)     stem##_f32
#define SX_TO_WORD(value) ((int64_t)sx_f64_bits((double)(value)))
#include "backend/cpu/join_key.tmpl.h"
#define SX_VALUE          double
#define SX_NAME(stem)     stem##_f64
#define SX_TO_WORD(value) ((int64_t)sx_f64_bits(value))
#include "backend/cpu/join_key.tmpl.h"

typedef void words_function(const void *values, int64_t rows, int64_t *out_words);

/* NULL: the values are in normal form. */
static words_function *const words_functions[SX_PHYS_COUNT] = {
    [SX_PHYS_I8] = words_i8,   [SX_PHYS_I16] = words_i16, [SX_PHYS_I32] = words_i32,
    [SX_PHYS_U8] = words_u8,   [SX_PHYS_U16] = words_u16, [SX_PHYS_U32] = words_u32,
    [SX_PHYS_U64] = words_u64, [SX_PHYS_F32] = words_f32, [SX_PHYS_F64] = words_f64,
};

enum sx_join_form sx_join_form_of(struct sx_type type) {
    switch (sx_type_phys(type)) {
    case SX_PHYS_STRING: return SX_JOIN_TEXT;
    case SX_PHYS_I128:
    case SX_PHYS_U128:
    case SX_PHYS_INTERVAL: return SX_JOIN_WIDE;
    default: return SX_JOIN_WORD;
    }
}

struct sx_type sx_join_form_type(enum sx_join_form form) {
    static const enum sx_type_id ids[] = {
        [SX_JOIN_WORD] = SX_TYPE_I64, [SX_JOIN_WIDE] = SX_TYPE_I128, [SX_JOIN_TEXT] = SX_TYPE_VARCHAR};
    return sx_type_of(ids[form]);
}

/* Intervals are equal when they last equally long, a month being 30 days and a day 24 hours. */
static void wide_from_intervals(const struct sx_interval *values, int64_t rows, sx_i128 *out_values) {
    const int64_t micros_per_day = INT64_C(86400000000);
    for (int64_t i = 0; i < rows; i++)
        out_values[i] = ((sx_i128)values[i].months * 30 + values[i].days) * micros_per_day + values[i].micros;
}

const void *sx_join_normalise(const struct sx_tensor *key, int64_t first, int64_t rows, void *scratch) {
    enum sx_phys phys = sx_type_phys(key->type);
    const void *values = (const char *)key->values + (size_t)first * sx_phys_bytes(phys);
    if (phys == SX_PHYS_INTERVAL)
        wide_from_intervals(values, rows, scratch);
    else if (words_functions[phys])
        words_functions[phys](values, rows, scratch);
    else
        return values;
    return scratch;
}

void sx_join_widen_range(struct sx_join_range *range, const int64_t *words, const uint8_t *valid,
                         int64_t rows) {
    int64_t min = range->min, max = range->max;
    if (!valid) {
        for (int64_t i = 0; i < rows; i++) {
            min = words[i] < min ? words[i] : min;
            max = words[i] > max ? words[i] : max;
        }
    } else {
        uint8_t all_valid = 1;
        for (int64_t i = 0; i < rows; i++) {
            min = valid[i] && words[i] < min ? words[i] : min;
            max = valid[i] && words[i] > max ? words[i] : max;
            all_valid &= valid[i];
        }
        range->has_null |= !all_valid;
    }
    range->min = min;
    range->max = max;
}

static void add_digit(const struct sx_join_digit *digit, const int64_t *words, const uint8_t *valid,
                      uint64_t none, int64_t rows, uint64_t *numbers) {
    for (int64_t i = 0; i < rows; i++) {
        uint64_t distance = (uint64_t)words[i] - (uint64_t)digit->min;
        uint64_t sum = numbers[i] + distance * digit->stride;
        uint64_t added = distance < digit->count ? sum : none;
        if (valid) {
            uint64_t of_null = digit->null_digit == SX_JOIN_NONE ? none : numbers[i] + digit->null_digit;
            added = valid[i] ? added : of_null;
        }
        numbers[i] = numbers[i] == none ? none : added;
    }
}

/* The first key of most joins, the only one of many: nothing to add to. */
static void set_digit(const struct sx_join_digit *digit, const int64_t *words, uint64_t none, int64_t rows,
                      uint64_t *numbers) {
    for (int64_t i = 0; i < rows; i++) {
        uint64_t distance = (uint64_t)words[i] - (uint64_t)digit->min;
        numbers[i] = distance < digit->count ? distance : none;
    }
}

void sx_join_numbers(const struct sx_join *join, const struct sx_join_keys *keys, int64_t rows,
                     uint64_t *out_numbers) {
    int k = 0;
    if (join->digits[0].stride == 1 && !keys->valid[0]) {
        set_digit(&join->digits[0], keys->values[0], join->none, rows, out_numbers);
        k = 1;
    } else {
        memset(out_numbers, 0, (size_t)rows * sizeof *out_numbers);
    }
    for (; k < join->n_keys; k++)
        add_digit(&join->digits[k], keys->values[k], keys->valid[k], join->none, rows, out_numbers);
}

static uint64_t hash_value(enum sx_join_form form, const void *values, int64_t i) {
    switch (form) {
    case SX_JOIN_WORD: return sx_hash_u64(((const uint64_t *)values)[i]);
    case SX_JOIN_WIDE: return sx_hash_u128(((const sx_u128 *)values)[i]);
    default: return sx_hash_string((const struct sx_string *)values + i);
    }
}

static void hash_key(const struct sx_join *join, int k, const struct sx_join_keys *keys, int64_t rows,
                     uint64_t *hashes, uint8_t *matchable) {
    const uint8_t *valid = keys->valid[k];
    for (int64_t i = 0; i < rows; i++) {
        bool is_null = valid && !valid[i];
        uint64_t hash = is_null ? SX_HASH_NULL : hash_value(join->forms[k], keys->values[k], i);
        hashes[i] = k ? sx_hash_combine(hashes[i], hash) : hash;
        if (is_null && !join->null_equal[k])
            matchable[i] = 0;
    }
}

void sx_join_hashes(const struct sx_join *join, const struct sx_join_keys *keys, int64_t rows,
                    uint64_t *out_hashes, uint8_t *out_matchable) {
    memset(out_matchable, 1, (size_t)rows);
    for (int k = 0; k < join->n_keys; k++)
        hash_key(join, k, keys, rows, out_hashes, out_matchable);
    if (join->n_keys > 1) /* combining leaves the high bits weak */
        for (int64_t i = 0; i < rows; i++)
            out_hashes[i] = sx_hash_u64(out_hashes[i]);
}
