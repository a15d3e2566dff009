#include <math.h>

#include "backend/cpu/eval.h"
#include "tensor/semantics_average.h"
#include "tensor/semantics_decimal.h"

#define TYPE   I8
#define CTYPE  int8_t
#define UTYPE  uint8_t
#define WTYPE  int32_t
#define SIGNED 1
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   I16
#define CTYPE  int16_t
#define UTYPE  uint16_t
#define WTYPE  int32_t
#define SIGNED 1
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   I32
#define CTYPE  int32_t
#define UTYPE  uint32_t
#define WTYPE  int64_t
#define SIGNED 1
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   I64
#define CTYPE  int64_t
#define UTYPE  uint64_t
#define SIGNED 1
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   I128
#define CTYPE  sx_i128
#define UTYPE  sx_u128
#define SIGNED 1
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   U8
#define CTYPE  uint8_t
#define UTYPE  uint8_t
#define WTYPE  uint32_t
#define SIGNED 0
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   U16
#define CTYPE  uint16_t
#define UTYPE  uint16_t
#define WTYPE  uint32_t
#define SIGNED 0
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   U32
#define CTYPE  uint32_t
#define UTYPE  uint32_t
#define WTYPE  uint64_t
#define SIGNED 0
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   U64
#define CTYPE  uint64_t
#define UTYPE  uint64_t
#define SIGNED 0
#include "backend/cpu/eval_arith.tmpl.h"
#define TYPE   U128
#define CTYPE  sx_u128
#define UTYPE  sx_u128
#define SIGNED 0
#include "backend/cpu/eval_arith.tmpl.h"

#define TYPE  F32
#define CTYPE float
#define FMOD  fmodf
#define FLOOR floorf
#define CEIL  ceilf
#include "backend/cpu/eval_float.tmpl.h"
#define TYPE  F64
#define CTYPE double
#define FMOD  fmod
#define FLOOR floor
#define CEIL  ceil
#include "backend/cpu/eval_float.tmpl.h"

#define TYPE  I64
#define CTYPE int64_t
#define UTYPE uint64_t
#include "backend/cpu/eval_decimal.tmpl.h"
#define TYPE  I128
#define CTYPE sx_i128
#define UTYPE sx_u128
#include "backend/cpu/eval_decimal.tmpl.h"

static const sx_eval_kernel integers[SX_PHYS_COUNT][SX_FN_COUNT] = {
#define INTEGER_ROW(type)                                                                              \
    [SX_PHYS_##                                                                                        \
        type] = {[SX_FN_ADD] = add_##type,         [SX_FN_SUB] = sub_##type, [SX_FN_MUL] = mul_##type, \
                 [SX_FN_INT_DIV] = int_div_##type, [SX_FN_MOD] = mod_##type, [SX_FN_NEG] = neg_##type, \
                 [SX_FN_ABS] = abs_##type},
    INTEGER_ROW(I8) INTEGER_ROW(I16) INTEGER_ROW(I32) INTEGER_ROW(I64) INTEGER_ROW(I128) INTEGER_ROW(U8)
        INTEGER_ROW(U16) INTEGER_ROW(U32) INTEGER_ROW(U64) INTEGER_ROW(U128)
#undef INTEGER_ROW
#define FLOAT_ROW(type)                                                                                     \
    [SX_PHYS_##                                                                                             \
        type] = {[SX_FN_ADD] = add_##type,  [SX_FN_SUB] = sub_##type,         [SX_FN_MUL] = mul_##type,     \
                 [SX_FN_DIV] = div_##type,  [SX_FN_INT_DIV] = int_div_##type, [SX_FN_MOD] = mod_##type,     \
                 [SX_FN_NEG] = neg_##type,  [SX_FN_ABS] = abs_##type,         [SX_FN_FLOOR] = floor_##type, \
                 [SX_FN_CEIL] = ceil_##type},
            FLOAT_ROW(F32) FLOAT_ROW(F64)
#undef FLOAT_ROW
};

/* Decimals whose result fills its type are checked; a narrower one can't overflow. */
static const sx_eval_kernel decimals[2][2][3] = {
    {{decimal_add_I64, decimal_sub_I64, decimal_mul_I64},
     {checked_add_I64, checked_sub_I64, checked_mul_I64}},
    {{decimal_add_I128, decimal_sub_I128, decimal_mul_I128},
     {checked_add_I128, checked_sub_I128, checked_mul_I128}},
};

static const sx_eval_kernel roundings[SX_PHYS_COUNT] = {
    [SX_PHYS_I8] = round_I8,   [SX_PHYS_I16] = round_I16,   [SX_PHYS_I32] = round_I32,
    [SX_PHYS_I64] = round_I64, [SX_PHYS_I128] = round_I128, [SX_PHYS_F32] = round_F32,
    [SX_PHYS_F64] = round_F64,
};

sx_eval_kernel sx_eval_kernel_arithmetic(enum sx_function function, struct sx_type type) {
    enum sx_phys phys = sx_type_phys(type);
    bool is_plain = function != SX_FN_ADD && function != SX_FN_SUB && function != SX_FN_MUL;
    if (type.id == SX_TYPE_DECIMAL && !is_plain) {
        bool full = type.precision == SX_DECIMAL_MAX_I64_DIGITS || type.precision == SX_DECIMAL_MAX_DIGITS;
        return decimals[phys == SX_PHYS_I128][full][function - SX_FN_ADD];
    }
    return function == SX_FN_ROUND ? roundings[phys] : integers[phys][function];
}

/* ---- averages ---- */

#define AVERAGE(name, type, is_small)                                                                     \
    static void name(struct sx_eval_call *call) {                                                         \
        const type *sums = call->in[0];                                                                   \
        const int64_t *counts = call->in[1];                                                              \
        double *restrict out = call->out;                                                                 \
        for (int64_t i = 0; i < call->n; i++)                                                             \
            out[i] = sx_average(sums[i * call->step[0]], counts[i * call->step[1]], call->of->factor_f64, \
                                is_small);                                                                \
    }
AVERAGE(average_i64, int64_t, true)
AVERAGE(average_i128, sx_i128, false)
#undef AVERAGE

sx_eval_kernel sx_eval_kernel_average(enum sx_phys sum) {
    return sum == SX_PHYS_I128 ? average_i128 : average_i64;
}
