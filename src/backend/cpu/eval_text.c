#include "backend/cpu/eval.h"
#include "tensor/format.h"
#include "tensor/semantics_number.h"

#include <string.h>

/* ---- text to values ---- */

static uint32_t length_of(const struct sx_string *text) {
    return text->length_bytes;
}

static void text_to_bool(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0];
    uint8_t *out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        call->failed |= !sx_text_to_bool(sx_string_bytes(&a[i]), length_of(&a[i]), &out[i]);
}

/* Within the step's low and high; the low bytes of the 128-bit value are the narrower one's. */
static void text_to_integer(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0];
    const sx_u128 lowest = -(sx_u128)call->of->low, highest = call->of->high;
    const size_t width = sx_type_bytes(call->of->instruction->type);
    char *out = call->out;
    for (int64_t i = 0; i < call->n; i++, out += width) {
        sx_u128 value = 0;
        bool negative = false;
        call->failed |=
            !sx_text_to_integer(sx_string_bytes(&a[i]), length_of(&a[i]), lowest, highest, &value, &negative);
        if (negative)
            value = -value;
        memcpy(out, &value, width);
    }
}

static void text_to_decimal(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0];
    const struct sx_type type = call->of->instruction->type;
    const sx_i128 limit = sx_power_of_ten(type.precision) - 1;
    const size_t width = sx_type_bytes(type);
    char *out = call->out;
    for (int64_t i = 0; i < call->n; i++, out += width) {
        sx_i128 value = 0;
        call->failed |= !sx_text_to_decimal(sx_string_bytes(&a[i]), length_of(&a[i]), type.precision,
                                            type.scale, limit, &value);
        memcpy(out, &value, width);
    }
}

static void text_to_f32(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0];
    float *out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        out[i] = 0;
        call->failed |= !sx_text_to_f32(sx_string_bytes(&a[i]), length_of(&a[i]), &out[i]);
    }
}
static void text_to_f64(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0];
    double *out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        out[i] = 0;
        call->failed |= !sx_text_to_f64(sx_string_bytes(&a[i]), length_of(&a[i]), &out[i]);
    }
}
static void text_to_date(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0];
    int32_t *out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        out[i] = 0;
        call->failed |= sx_text_to_date(sx_string_bytes(&a[i]), length_of(&a[i]), &out[i]) != SX_TEXT_OK;
    }
}
static void text_to_timestamp(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0];
    int64_t *out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        out[i] = 0;
        call->failed |= sx_text_to_timestamp(sx_string_bytes(&a[i]), length_of(&a[i]), &out[i]) != SX_TEXT_OK;
    }
}

sx_eval_kernel sx_eval_kernel_from_text(struct sx_type to) {
    switch (to.id) {
    case SX_TYPE_BOOL: return text_to_bool;
    case SX_TYPE_I8:
    case SX_TYPE_I16:
    case SX_TYPE_I32:
    case SX_TYPE_I64:
    case SX_TYPE_I128:
    case SX_TYPE_U8:
    case SX_TYPE_U16:
    case SX_TYPE_U32:
    case SX_TYPE_U64:
    case SX_TYPE_U128: return text_to_integer;
    case SX_TYPE_DECIMAL: return text_to_decimal;
    case SX_TYPE_F32: return text_to_f32;
    case SX_TYPE_F64: return text_to_f64;
    case SX_TYPE_DATE: return text_to_date;
    case SX_TYPE_TIMESTAMP: return text_to_timestamp;
    default: return NULL;
    }
}

/* ---- values to text ---- */

void sx_eval_to_text(struct sx_eval_call *call) {
    const struct sx_type type = call->eval->types[call->of->arguments[0]];
    const struct sx_tensor values = {.type = type, .length = call->n, .values = (void *)call->in[0]};
    struct sx_string *out = call->out;
    char buffer[SX_TEXT_BYTES];
    for (int64_t i = 0; i < call->n; i++) {
        struct sx_scalar scalar;
        out[i] = sx_string_make(NULL, 0);
        if (call->out_valid && !call->out_valid[i])
            continue;
        sx_tensor_scalar(&values, i, &scalar);
        const uint32_t length = (uint32_t)sx_scalar_text(&scalar, buffer);
        const char *bytes = buffer;
        if (length > SX_STRING_INLINE_BYTES) {
            char *kept = sx_eval_heap_take(call, length);
            if (!kept)
                return;
            memcpy(kept, buffer, length);
            bytes = kept;
        }
        out[i] = sx_string_make(bytes, length);
    }
}
