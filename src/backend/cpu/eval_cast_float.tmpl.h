/* Casts from one floating-point type: FROM, CFROM. */
#define NAME(base) SX_NAME_OF(base, FROM)

static void NAME(to_bool)(struct sx_eval_call *call) {
    const CFROM *a = call->in[0];
    uint8_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = a[i] != 0;
}
static void NAME(to_f64)(struct sx_eval_call *call) {
    const CFROM *a = call->in[0];
    double *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = (double)a[i];
}
/* A finite value that becomes infinite fails. */
static void NAME(to_f32)(struct sx_eval_call *call) {
    const CFROM *a = call->in[0];
    float *restrict out = call->out;
    bool bad = false;
    for (int64_t i = 0; i < call->n; i++) {
        out[i] = (float)a[i];
        bad |= isinf(out[i]) && !isinf(a[i]);
    }
    call->failed = bad;
}

#define TO          I8
#define CTO         int8_t
#define VIA         int32_t
#define LOW         -0x1p7
#define END         0x1p7
#define ROUND_FIRST 0
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          I16
#define CTO         int16_t
#define VIA         int32_t
#define LOW         -0x1p15
#define END         0x1p15
#define ROUND_FIRST 0
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          I32
#define CTO         int32_t
#define VIA         int64_t
#define LOW         -0x1p31
#define END         0x1p31
#define ROUND_FIRST 0
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          I64
#define CTO         int64_t
#define VIA         int64_t
#define LOW         -0x1p63
#define END         0x1p63
#define ROUND_FIRST 0
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          I128
#define CTO         sx_i128
#define VIA         sx_i128
#define LOW         -0x1p127
#define END         0x1p127
#define ROUND_FIRST 0
#define LOW_OPEN    1
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          U8
#define CTO         uint8_t
#define VIA         int32_t
#define LOW         0.0
#define END         0x1p8
#define ROUND_FIRST 0
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          U16
#define CTO         uint16_t
#define VIA         int32_t
#define LOW         0.0
#define END         0x1p16
#define ROUND_FIRST 0
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          U32
#define CTO         uint32_t
#define VIA         int64_t
#define LOW         0.0
#define END         0x1p32
#define ROUND_FIRST 0
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          U64
#define CTO         uint64_t
#define VIA         uint64_t
#define LOW         0.0
#define END         0x1p64
#define ROUND_FIRST 0
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"
#define TO          U128
#define CTO         sx_u128
#define VIA         sx_u128
#define LOW         0.0
#define END         0x1p128
#define ROUND_FIRST 1
#define LOW_OPEN    0
#include "backend/cpu/eval_cast_float_pair.tmpl.h"

#undef NAME
#undef FROM
#undef CFROM
