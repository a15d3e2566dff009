/* Casts from one integer type: FROM, CFROM. */
#define NAME(base) SX_NAME_OF(base, FROM)

#define TO  I8
#define CTO int8_t
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  I16
#define CTO int16_t
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  I32
#define CTO int32_t
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  I64
#define CTO int64_t
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  I128
#define CTO sx_i128
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  U8
#define CTO uint8_t
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  U16
#define CTO uint16_t
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  U32
#define CTO uint32_t
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  U64
#define CTO uint64_t
#include "backend/cpu/eval_cast_pair.tmpl.h"
#define TO  U128
#define CTO sx_u128
#include "backend/cpu/eval_cast_pair.tmpl.h"

static void NAME(to_bool)(struct sx_eval_call *call) {
    const CFROM *a = call->in[0];
    uint8_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = a[i] != 0;
}

SX_INLINE double NAME(f64_of)(CFROM value) {
    if (sizeof value < 16)
        return (double)value;
    return (CFROM)-1 < 1 ? sx_i128_to_f64((sx_i128)value) : sx_u128_to_f64((sx_u128)value);
}
SX_INLINE float NAME(f32_of)(CFROM value) {
    if (sizeof value < 16)
        return (float)value;
    return (CFROM)-1 < 1 ? sx_i128_to_f32((sx_i128)value) : sx_u128_to_f32((sx_u128)value);
}
static void NAME(to_f64)(struct sx_eval_call *call) {
    const CFROM *a = call->in[0];
    double *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = NAME(f64_of)(a[i]);
}
static void NAME(to_f32)(struct sx_eval_call *call) {
    const CFROM *a = call->in[0];
    float *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = NAME(f32_of)(a[i]);
}

#undef NAME
#undef FROM
#undef CFROM
