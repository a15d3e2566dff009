/* SUM, AVG, MIN and MAX of numbers. */
#include "backend/cpu/group_number.h"

#include <stdio.h>
#include <string.h>

#include "tensor/semantics_average.h"

#define SX_PHYS       I8
#define SX_C          int8_t
#define SX_LOWEST     INT8_MIN
#define SX_HIGHEST    INT8_MAX
#define SX_LESS(a, b) ((a) < (b))
#define SX_SUMS       1
#define SX_FAMILY(x)  sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       I16
#define SX_C          int16_t
#define SX_LOWEST     INT16_MIN
#define SX_HIGHEST    INT16_MAX
#define SX_LESS(a, b) ((a) < (b))
#define SX_SUMS       1
#define SX_FAMILY(x)  sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       I32
#define SX_C          int32_t
#define SX_LOWEST     INT32_MIN
#define SX_HIGHEST    INT32_MAX
#define SX_LESS(a, b) ((a) < (b))
#define SX_SUMS       1
#define SX_FAMILY(x)  sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS         I64
#define SX_C            int64_t
#define SX_LOWEST       INT64_MIN
#define SX_HIGHEST      INT64_MAX
#define SX_LESS(a, b)   ((a) < (b))
#define SX_SUMS         2
#define SX_MAGNITUDE(x) ((uint64_t)((x) ^ ((x) >> 63)))
#define SX_FAMILY(x)    sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       I128
#define SX_C          sx_i128
#define SX_LOWEST     SX_I128_MIN
#define SX_HIGHEST    SX_I128_MAX
#define SX_LESS(a, b) ((a) < (b))
#define SX_SUMS       3
#define SX_FAMILY(x)  sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       U8
#define SX_C          uint8_t
#define SX_LOWEST     0
#define SX_HIGHEST    UINT8_MAX
#define SX_LESS(a, b) ((a) < (b))
#define SX_SUMS       1
#define SX_FAMILY(x)  sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       U16
#define SX_C          uint16_t
#define SX_LOWEST     0
#define SX_HIGHEST    UINT16_MAX
#define SX_LESS(a, b) ((a) < (b))
#define SX_SUMS       1
#define SX_FAMILY(x)  sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       U32
#define SX_C          uint32_t
#define SX_LOWEST     0
#define SX_HIGHEST    UINT32_MAX
#define SX_LESS(a, b) ((a) < (b))
#define SX_SUMS       1
#define SX_FAMILY(x)  sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS         U64
#define SX_C            uint64_t
#define SX_LOWEST       0
#define SX_HIGHEST      UINT64_MAX
#define SX_LESS(a, b)   ((a) < (b))
#define SX_SUMS         2
#define SX_MAGNITUDE(x) (x)
#define SX_FAMILY(x)    sx_integer_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       U128
#define SX_C          sx_u128
#define SX_LOWEST     0
#define SX_HIGHEST    SX_U128_MAX
#define SX_LESS(a, b) ((a) < (b))
#define SX_SUMS       0
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       F32
#define SX_C          float
#define SX_LOWEST     -__builtin_inff()
#define SX_HIGHEST    __builtin_nanf("")
#define SX_LESS(a, b) sx_f64_less((double)(a), (double)(b))
#define SX_SUMS       4
#define SX_FAMILY(x)  sx_float_##x
#include "backend/cpu/group_number.tmpl.h"
#define SX_PHYS       F64
#define SX_C          double
#define SX_LOWEST     -__builtin_inf()
#define SX_HIGHEST    __builtin_nan("")
#define SX_LESS(a, b) sx_f64_less(a, b)
#define SX_SUMS       4
#define SX_FAMILY(x)  sx_float_##x
#include "backend/cpu/group_number.tmpl.h"

static const struct sx_group_ops *const number_ops[][SX_PHYS_COUNT] = {
#define WITH_ORDER(X) X(I8) X(I16) X(I32) X(I64) X(I128) X(U8) X(U16) X(U32) X(U64) X(U128) X(F32) X(F64)
#define WITH_SUM(X)   X(I8) X(I16) X(I32) X(I64) X(I128) X(U8) X(U16) X(U32) X(U64) X(F32) X(F64)
#define MIN_ROW(phys) [SX_PHYS_##phys] = &min_ops_##phys,
#define MAX_ROW(phys) [SX_PHYS_##phys] = &max_ops_##phys,
#define SUM_ROW(phys) [SX_PHYS_##phys] = &sum_ops_##phys,
#define AVG_ROW(phys) [SX_PHYS_##phys] = &avg_ops_##phys,
    [SX_AGG_MIN] = {WITH_ORDER(MIN_ROW)},
    [SX_AGG_MAX] = {WITH_ORDER(MAX_ROW)},
    [SX_AGG_SUM] = {WITH_SUM(SUM_ROW)},
    [SX_AGG_AVG] = {WITH_SUM(AVG_ROW)},
};

const struct sx_group_ops *sx_group_ops_number(enum sx_aggregate function, enum sx_phys phys) {
    if (function < SX_AGG_SUM || function > SX_AGG_MAX)
        return NULL;
    return number_ops[function][phys];
}

bool sx_group_block_sums(const struct sx_group_call *call, const uint16_t *codes, int32_t n_groups,
                         int64_t *sums) {
    switch (call->aggregate->phys) {
#define BLOCK_SUMS(phys) \
    case SX_PHYS_##phys: return block_sums_##phys(call, codes, n_groups, sums);
        BLOCK_SUMS(I8)
        BLOCK_SUMS(I16)
        BLOCK_SUMS(I32)
        BLOCK_SUMS(I64)
        BLOCK_SUMS(U8)
        BLOCK_SUMS(U16)
        BLOCK_SUMS(U32)
        BLOCK_SUMS(U64)
    default: return false;
    }
}

/* ---- states of every integer type ---- */

enum { DIGITS_BYTES = 48 };

static const char *digits(sx_i128 value, char text[DIGITS_BYTES]) {
    sx_u128 rest = value < 0 ? -(sx_u128)value : (sx_u128)value;
    char *at = text + DIGITS_BYTES - 1;
    *at = 0;
    do
        *--at = (char)('0' + (int)(rest % 10));
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    return at;
}

enum sx_status sx_group_sum_overflow(struct sx_error *error, sx_i128 a, sx_i128 b) {
    char text_a[DIGITS_BYTES], text_b[DIGITS_BYTES];
    return sx_error_set(error, SX_QUERY, "Overflow in HUGEINT addition: %s + %s", digits(a, text_a),
                        digits(b, text_b));
}

enum sx_status sx_integer_combine(const struct sx_group_aggregate *aggregate, char *const *into,
                                  char *const *from, int64_t n, struct sx_error *error) {
    const bool average = aggregate->spec.function == SX_AGG_AVG;
    for (int64_t i = 0; i < n; i++) {
        struct sx_integer_sum *to = (struct sx_integer_sum *)sx_group_state_at(aggregate, into[i]);
        const struct sx_integer_sum *add = (struct sx_integer_sum *)sx_group_state_at(aggregate, from[i]);
        sx_i128 sum;
        if (__builtin_add_overflow(to->sum, add->sum, &sum))
            return sx_group_sum_overflow(error, to->sum, add->sum);
        to->sum = sum;
        if (average)
            to->count += add->count;
        else
            into[i][aggregate->flag] |= from[i][aggregate->flag];
    }
    return SX_OK;
}

void sx_integer_add_sums(const struct sx_group_aggregate *aggregate, char *const *rows, int32_t n_groups,
                         const int64_t *sums, const int32_t *counts) {
    const bool average = aggregate->spec.function == SX_AGG_AVG;
    for (int32_t g = 0; g < n_groups; g++) {
        if (counts[g] == 0)
            continue;
        struct sx_integer_sum *state = (struct sx_integer_sum *)sx_group_state_at(aggregate, rows[g]);
        state->sum += sums[g];
        if (average)
            state->count += counts[g];
        else
            rows[g][aggregate->flag] = 1;
    }
}

void sx_integer_emit(const struct sx_group_aggregate *aggregate, char *const *rows, int64_t n,
                     struct sx_tensor *column) {
    const bool average = aggregate->spec.function == SX_AGG_AVG;
    const double scale = sx_average_scale(aggregate->spec.input);
    const bool is_small = sx_average_is_small(aggregate->spec.input);
    for (int64_t i = 0; i < n; i++) {
        const struct sx_integer_sum *state = (struct sx_integer_sum *)sx_group_state_at(aggregate, rows[i]);
        if (!average)
            ((sx_i128 *)column->values)[i] = state->sum;
        else
            ((double *)column->values)[i] = sx_average(state->sum, state->count, scale, is_small);
    }
}

bool sx_average_is_null(const struct sx_group_aggregate *aggregate, const char *row) {
    /* both kinds of sum have the count at one place */
    return ((const struct sx_integer_sum *)(row + aggregate->offset))->count == 0;
}

/* ---- states of FLOAT and DOUBLE ---- */

static bool is_finite(double x) {
    return x - x == 0;
}

enum sx_status sx_float_combine(const struct sx_group_aggregate *aggregate, char *const *into,
                                char *const *from, int64_t n, struct sx_error *error) {
    (void)error;
    const bool average = aggregate->spec.function == SX_AGG_AVG;
    for (int64_t i = 0; i < n; i++) {
        struct sx_float_sum *to = (struct sx_float_sum *)sx_group_state_at(aggregate, into[i]);
        const struct sx_float_sum *add = (struct sx_float_sum *)sx_group_state_at(aggregate, from[i]);
        sx_float_sum_add(&to->high, &to->low, add->high);
        to->low += add->low;
        if (average)
            to->count += add->count;
        else
            into[i][aggregate->flag] |= from[i][aggregate->flag];
    }
    return SX_OK;
}

void sx_float_emit(const struct sx_group_aggregate *aggregate, char *const *rows, int64_t n,
                   struct sx_tensor *column) {
    const bool average = aggregate->spec.function == SX_AGG_AVG;
    double *values = column->values;
    for (int64_t i = 0; i < n; i++) {
        const struct sx_float_sum *state = (struct sx_float_sum *)sx_group_state_at(aggregate, rows[i]);
        values[i] = is_finite(state->high) ? state->high + state->low : state->high;
        if (average && state->count)
            values[i] /= (double)state->count;
    }
}
