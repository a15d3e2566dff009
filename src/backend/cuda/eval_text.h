/* Casts from and to text of the interpreter. For eval.cu only. */
#ifndef SX_BACKEND_CUDA_EVAL_TEXT_H
#define SX_BACKEND_CUDA_EVAL_TEXT_H

#include "backend/cuda/eval_string.h"
#include "tensor/semantics_format.h"
#include "tensor/semantics_number.h"

/* ---- to text ---- */

__device__ static inline struct sx_scalar eval_scalar(const struct cuda_eval_step &step,
                                                      struct cuda_eval_value value) {
    struct sx_scalar scalar = {};
    scalar.type.id = (enum sx_type_id)step.type_id;
    scalar.type.precision = step.precision;
    scalar.type.scale = step.scale;
    switch (step.kind) {
    case CUDA_EVAL_F32: scalar.v.f32 = eval_as<float>(value); break;
    case CUDA_EVAL_F64: scalar.v.f64 = eval_as<double>(value); break;
    case CUDA_EVAL_I128:
    case CUDA_EVAL_U128: scalar.v.u128 = eval_as<sx_u128>(value); break;
    case CUDA_EVAL_INTERVAL: scalar.v.interval = eval_as<struct sx_interval>(value); break;
    default: scalar.v.u64 = value.low;
    }
    return scalar;
}

/* Called, not inlined: the compiler takes minutes over it otherwise. */
__attribute__((noinline)) __device__ static uint32_t eval_put_scalar(const struct sx_scalar &scalar,
                                                                     char *text) {
    return (uint32_t)sx_put_scalar(&scalar, text);
}

/* All lanes of a warp come here. */
__device__ static inline struct sx_string eval_to_text(const struct cuda_eval_run &run,
                                                       const struct cuda_eval_step &step,
                                                       struct cuda_eval_value value, bool valid, bool *full) {
    char text[SX_TEXT_BYTES], inlined[SX_STRING_INLINE_BYTES];
    const struct sx_scalar scalar = eval_scalar(step, value);
    const uint32_t bytes = valid ? eval_put_scalar(scalar, text) : 0;
    char *place = eval_place(run, bytes, inlined, full);
    if (!place)
        return view_of(NULL, 0);
    memcpy(place, text, bytes);
    return view_of(place, bytes);
}

/* ---- from text ---- */

/* Within the step's low and high; the low bytes of the 128-bit value are the narrower one's. */
__device__ static inline bool eval_text_to_integer(const struct cuda_eval_step &step, const char *bytes,
                                                   uint32_t length_bytes, struct cuda_eval_value *out) {
    sx_u128 value = 0;
    bool negative = false;
    const bool good =
        sx_text_to_integer(bytes, length_bytes, -(sx_u128)step.low, step.high, &value, &negative);
    *out = eval_of(negative ? -value : value);
    return good;
}

__device__ static inline bool eval_text_to_decimal(const struct cuda_eval_step &step, const char *bytes,
                                                   uint32_t length_bytes, struct cuda_eval_value *out) {
    sx_i128 value = 0;
    const bool good = sx_text_to_decimal(bytes, length_bytes, step.precision, step.scale,
                                         sx_power_of_ten(step.precision) - 1, &value);
    *out = eval_of(value);
    return good;
}

__attribute__((noinline)) __device__ static bool eval_from_text(const struct cuda_eval_step &step,
                                                                const struct sx_string &text,
                                                                struct cuda_eval_value *out) {
    const char *bytes = view_bytes(text);
    const uint32_t n = text.length_bytes;
    uint8_t truth = 0;
    int32_t days = 0;
    int64_t micros = 0;
    float f32 = 0;
    double f64 = 0;
    bool good;
    switch (step.type_id) {
    case SX_TYPE_BOOL:
        good = sx_text_to_bool(bytes, n, &truth);
        *out = eval_of((uint64_t)truth);
        break;
    case SX_TYPE_DECIMAL: return eval_text_to_decimal(step, bytes, n, out);
    case SX_TYPE_F32:
        good = sx_exact_text_to_f32(bytes, n, &f32);
        *out = eval_of(f32);
        break;
    case SX_TYPE_F64:
        good = sx_exact_text_to_f64(bytes, n, &f64);
        *out = eval_of(f64);
        break;
    case SX_TYPE_DATE:
        good = sx_text_to_date(bytes, n, &days) == SX_TEXT_OK;
        *out = eval_of((int64_t)days);
        break;
    case SX_TYPE_TIMESTAMP:
        good = sx_text_to_timestamp(bytes, n, &micros) == SX_TEXT_OK;
        *out = eval_of(micros);
        break;
    default: return eval_text_to_integer(step, bytes, n, out);
    }
    return good;
}

#endif
