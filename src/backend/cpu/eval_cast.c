#include <math.h>

#include "backend/cpu/eval.h"
#include "tensor/semantics_decimal.h"

#define FROM  I8
#define CFROM int8_t
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  I16
#define CFROM int16_t
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  I32
#define CFROM int32_t
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  I64
#define CFROM int64_t
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  I128
#define CFROM sx_i128
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  U8
#define CFROM uint8_t
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  U16
#define CFROM uint16_t
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  U32
#define CFROM uint32_t
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  U64
#define CFROM uint64_t
#include "backend/cpu/eval_cast_from.tmpl.h"
#define FROM  U128
#define CFROM sx_u128
#include "backend/cpu/eval_cast_from.tmpl.h"

#define FROM  F32
#define CFROM float
#include "backend/cpu/eval_cast_float.tmpl.h"
#define FROM  F64
#define CFROM double
#include "backend/cpu/eval_cast_float.tmpl.h"

#define TYPE   I64
#define CTYPE  int64_t
#define DIVIDE sx_divide_round_i64
#define TO_F64 sx_decimal_i64_to_f64
#define TO_F32 sx_decimal_i64_to_f32
#include "backend/cpu/eval_scale.tmpl.h"
#define TYPE   I128
#define CTYPE  sx_i128
#define DIVIDE sx_divide_round_i128
#define TO_F64 sx_decimal_i128_to_f64
#define TO_F32 sx_decimal_i128_to_f32
#include "backend/cpu/eval_scale.tmpl.h"

/* X(type) over the integers. */
#define INTEGERS(X) X(I8) X(I16) X(I32) X(I64) X(I128) X(U8) X(U16) X(U32) X(U64) X(U128)

static const sx_eval_kernel resize[SX_PHYS_COUNT][SX_PHYS_COUNT] = {
#define RESIZE_ROW(from)                                                                            \
    [SX_PHYS_##from] = {[SX_PHYS_I8] = resize_##from##_I8,     [SX_PHYS_I16] = resize_##from##_I16, \
                        [SX_PHYS_I32] = resize_##from##_I32,   [SX_PHYS_I64] = resize_##from##_I64, \
                        [SX_PHYS_I128] = resize_##from##_I128, [SX_PHYS_U8] = resize_##from##_U8,   \
                        [SX_PHYS_U16] = resize_##from##_U16,   [SX_PHYS_U32] = resize_##from##_U32, \
                        [SX_PHYS_U64] = resize_##from##_U64,   [SX_PHYS_U128] = resize_##from##_U128},
    INTEGERS(RESIZE_ROW)
#undef RESIZE_ROW
};

static const struct {
    sx_eval_kernel to_bool, to_f32, to_f64;
} simple[SX_PHYS_COUNT] = {
#define SIMPLE_ROW(from) [SX_PHYS_##from] = {to_bool_##from, to_f32_##from, to_f64_##from},
    INTEGERS(SIMPLE_ROW) SIMPLE_ROW(F32) SIMPLE_ROW(F64)
#undef SIMPLE_ROW
};

static const sx_eval_kernel from_float[2][SX_PHYS_COUNT] = {
#define FROM_FLOAT(to) [SX_PHYS_##to] = F32_to_##to,
    {INTEGERS(FROM_FLOAT)},
#undef FROM_FLOAT
#define FROM_FLOAT(to) [SX_PHYS_##to] = F64_to_##to,
    {INTEGERS(FROM_FLOAT)},
#undef FROM_FLOAT
};

sx_eval_kernel sx_eval_kernel_resize(enum sx_phys from, enum sx_phys to) {
    return resize[from][to];
}
sx_eval_kernel sx_eval_kernel_to_bool(enum sx_phys from) {
    return simple[from].to_bool;
}
sx_eval_kernel sx_eval_kernel_to_float(enum sx_phys from, enum sx_phys to) {
    return to == SX_PHYS_F32 ? simple[from].to_f32 : simple[from].to_f64;
}
sx_eval_kernel sx_eval_kernel_from_float(enum sx_phys from, enum sx_phys to) {
    return from_float[from == SX_PHYS_F64][to];
}
sx_eval_kernel sx_eval_kernel_scale(enum sx_phys phys, int shift) {
    if (phys == SX_PHYS_I64)
        return shift > 0 ? scale_up_I64 : scale_down_I64;
    return shift > 0 ? scale_up_I128 : scale_down_I128;
}
sx_eval_kernel sx_eval_kernel_floor(enum sx_function function, enum sx_phys phys) {
    if (phys == SX_PHYS_I64)
        return function == SX_FN_FLOOR ? floor_I64 : function == SX_FN_CEIL ? ceil_I64 : round_I64;
    return function == SX_FN_FLOOR ? floor_I128 : function == SX_FN_CEIL ? ceil_I128 : round_I128;
}
sx_eval_kernel sx_eval_kernel_decimal_float(enum sx_phys from, enum sx_phys to) {
    switch (from) {
    case SX_PHYS_I64: return to == SX_PHYS_F32 ? decimal_to_f32_I64 : decimal_to_f64_I64;
    case SX_PHYS_I128: return to == SX_PHYS_F32 ? decimal_to_f32_I128 : decimal_to_f64_I128;
    case SX_PHYS_F32: return to == SX_PHYS_I64 ? decimal_from_f32_I64 : decimal_from_f32_I128;
    default: return to == SX_PHYS_I64 ? decimal_from_f64_I64 : decimal_from_f64_I128;
    }
}
