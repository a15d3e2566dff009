#include "eval_expect.h"

#include <string.h>

#include "tensor/semantics_date.h"
#include "tensor/semantics_decimal.h"
#include "tensor/semantics_like.h"

static sx_i128 integer_of(const struct sx_scalar *scalar) {
    switch (sx_type_phys(scalar->type)) {
    case SX_PHYS_I128: return scalar->v.i128;
    case SX_PHYS_U8:
    case SX_PHYS_U16:
    case SX_PHYS_U32:
    case SX_PHYS_U64: return scalar->v.u64;
    default: return scalar->v.i64;
    }
}

static bool set_integer(sx_i128 value, struct sx_scalar *out) {
    const enum sx_phys phys = sx_type_phys(out->type);
    const int bits = (int)sx_phys_bytes(phys) * 8;
    if (phys == SX_PHYS_I128) {
        out->v.i128 = value;
        return true;
    }
    const bool is_signed = phys < SX_PHYS_I128;
    const sx_i128 high = ((sx_i128)1 << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
    out->v.i64 = (int64_t)value;
    return value >= low && value <= high;
}

bool expect_arithmetic(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                       struct sx_scalar *out) {
    sx_i128 value = 0;
    bool overflow = false;
    out->is_null = arguments[0].is_null || arguments[1].is_null;
    if (out->is_null)
        return true;
    const sx_i128 a = integer_of(&arguments[0]), b = integer_of(&arguments[1]);
    switch (instruction->function) {
    case SX_FN_ADD: overflow = __builtin_add_overflow(a, b, &value); break;
    case SX_FN_SUB: overflow = __builtin_sub_overflow(a, b, &value); break;
    case SX_FN_MUL: overflow = __builtin_mul_overflow(a, b, &value); break;
    default:
        out->is_null = b == 0;
        if (b == 0)
            return true;
        overflow = b == -1 && a == SX_I128_MIN;
        value = overflow ? 0 : instruction->function == SX_FN_INT_DIV ? a / b : a % b;
        if (b == -1) { /* the rest of the lowest value fails like its quotient */
            struct sx_scalar quotient = *out;
            overflow |= !overflow && !set_integer(-a, &quotient);
        }
    }
    return !overflow && set_integer(value, out);
}

int expect_order(const struct sx_scalar *a, const struct sx_scalar *b) {
    switch (sx_type_phys(a->type)) {
    case SX_PHYS_F32:
        return sx_f64_less((double)a->v.f32, (double)b->v.f32)
                   ? -1
                   : sx_f64_less((double)b->v.f32, (double)a->v.f32);
    case SX_PHYS_F64: return sx_f64_less(a->v.f64, b->v.f64) ? -1 : sx_f64_less(b->v.f64, a->v.f64);
    case SX_PHYS_U128: return a->v.u128 < b->v.u128 ? -1 : a->v.u128 > b->v.u128;
    case SX_PHYS_STRING: {
        const uint32_t shorter =
            a->v.text.length_bytes < b->v.text.length_bytes ? a->v.text.length_bytes : b->v.text.length_bytes;
        const int order = shorter ? memcmp(a->v.text.bytes, b->v.text.bytes, shorter) : 0;
        if (order)
            return order;
        return a->v.text.length_bytes < b->v.text.length_bytes
                   ? -1
                   : a->v.text.length_bytes > b->v.text.length_bytes;
    }
    default: return integer_of(a) < integer_of(b) ? -1 : integer_of(a) > integer_of(b);
    }
}

bool expect_comparison(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                       struct sx_scalar *out) {
    const struct sx_scalar *a = &arguments[0], *b = &arguments[1];
    const bool is_null = a->is_null || b->is_null;
    const int order = is_null ? 0 : expect_order(a, b);
    const bool distinct = is_null ? a->is_null != b->is_null : order != 0;
    const enum sx_function function = instruction->function;
    out->is_null = is_null && function != SX_FN_DISTINCT_FROM && function != SX_FN_NOT_DISTINCT_FROM;
    switch (function) {
    case SX_FN_EQ: out->v.u64 = order == 0; break;
    case SX_FN_NE: out->v.u64 = order != 0; break;
    case SX_FN_LT: out->v.u64 = order < 0; break;
    case SX_FN_LE: out->v.u64 = order <= 0; break;
    case SX_FN_GT: out->v.u64 = order > 0; break;
    case SX_FN_GE: out->v.u64 = order >= 0; break;
    case SX_FN_DISTINCT_FROM: out->v.u64 = distinct; break;
    default: out->v.u64 = !distinct; break;
    }
    return true;
}

bool expect_logic(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                  struct sx_scalar *out) {
    const struct sx_scalar *a = &arguments[0], *b = &arguments[1];
    const bool dominant = instruction->function == SX_FN_OR;
    const bool decided = (!a->is_null && a->v.b == dominant) || (!b->is_null && b->v.b == dominant);
    out->is_null = !decided && (a->is_null || b->is_null);
    out->v.u64 = decided ? dominant : !dominant;
    return true;
}

bool expect_test(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                 struct sx_scalar *out) {
    const struct sx_scalar *a = &arguments[0];
    switch (instruction->function) {
    case SX_FN_IS_NULL: out->v.u64 = a->is_null; break;
    case SX_FN_IS_NOT_NULL: out->v.u64 = !a->is_null; break;
    case SX_FN_IS_TRUE: out->v.u64 = !a->is_null && a->v.b; break;
    default: out->v.u64 = !a->v.b, out->is_null = a->is_null; break;
    }
    return true;
}

bool expect_choice(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                   struct sx_scalar *out) {
    switch (instruction->function) {
    case SX_FN_CHOOSE: *out = !arguments[0].is_null && arguments[0].v.b ? arguments[1] : arguments[2]; break;
    case SX_FN_COALESCE: *out = arguments[0].is_null ? arguments[1] : arguments[0]; break;
    default: *out = arguments[0], out->is_null |= arguments[1].is_null; break;
    }
    return true;
}

bool expect_widening(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                     struct sx_scalar *out) {
    out->is_null = arguments[0].is_null;
    if (out->is_null)
        return true;
    sx_i128 value = integer_of(&arguments[0]);
    const int shift = instruction->type.scale - arguments[0].type.scale;
    value = shift < 0 ? sx_divide_round_i128(value, sx_power_of_ten(-shift)) : value;
    return !(shift > 0 && __builtin_mul_overflow(value, sx_power_of_ten(shift), &value)) &&
           set_integer(value, out);
}

bool expect_date_part(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                      struct sx_scalar *out) {
    const struct sx_scalar *a = &arguments[0];
    const int32_t days =
        a->type.id == SX_TYPE_DATE ? (int32_t)a->v.i64 : sx_timestamp_days(a->is_null ? 0 : a->v.i64);
    out->is_null = a->is_null || !sx_date_is_finite(days);
    if (out->is_null)
        return true;
    const struct sx_civil civil = sx_civil_from_days(days);
    out->v.i64 = instruction->function == SX_FN_YEAR    ? civil.year
                 : instruction->function == SX_FN_MONTH ? civil.month
                                                        : civil.day;
    return sx_days_from_civil(civil.year, civil.month, civil.day) == days;
}

bool expect_string_test(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                        struct sx_scalar *out) {
    const struct sx_scalar *a = &arguments[0], *b = &arguments[1];
    out->is_null = a->is_null || b->is_null;
    if (out->is_null)
        return true;
    const char *text = a->v.text.bytes, *part = b->v.text.bytes;
    const uint32_t text_bytes = a->v.text.length_bytes, part_bytes = b->v.text.length_bytes;
    const bool fits = part_bytes <= text_bytes;
    const bool like = sx_like(text, text_bytes, part, part_bytes, false, 0) == SX_LIKE_YES;
    switch (instruction->function) {
    case SX_FN_LIKE: out->v.u64 = like; break;
    case SX_FN_NOT_LIKE: out->v.u64 = !like; break;
    case SX_FN_PREFIX: out->v.u64 = fits && memcmp(text, part, part_bytes) == 0; break;
    case SX_FN_SUFFIX:
        out->v.u64 = fits && memcmp(text + text_bytes - part_bytes, part, part_bytes) == 0;
        break;
    default: out->v.u64 = part_bytes == 0 || memmem(text, text_bytes, part, part_bytes) != NULL; break;
    }
    return true;
}

bool expect_length(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                   struct sx_scalar *out) {
    (void)instruction;
    out->is_null = arguments[0].is_null;
    out->v.i64 =
        out->is_null ? 0 : sx_utf8_count(arguments[0].v.text.bytes, arguments[0].v.text.length_bytes);
    return true;
}

bool expect_substring(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                      struct sx_scalar *out) {
    (void)instruction;
    uint32_t first, end;
    *out = arguments[0];
    if (out->is_null)
        return true;
    sx_utf8_substring(out->v.text.bytes, out->v.text.length_bytes, arguments[1].v.i64, arguments[2].v.i64,
                      &first, &end);
    out->v.text.bytes += first;
    out->v.text.length_bytes = end - first;
    return true;
}
