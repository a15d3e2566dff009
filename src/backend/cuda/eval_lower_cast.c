/* Casts to steps. Booleans, integers and decimals are integers times a power of ten. */
#include "backend/cuda/eval.h"
#include "tensor/range.h"

static void set_bounds(struct cuda_eval_step *step, struct sx_range range) {
    step->low = range.low;
    step->high = range.high;
}

void cuda_eval_bounds(struct sx_type type, struct cuda_eval_step *step) {
    set_bounds(step, sx_range_of_type(type));
}

/* A step from `from`; `whole` is what is cast, for the error's text. NULL: no memory. */
static struct eval_step *add_stage(struct sx_eval *eval, const struct sx_instruction *instruction,
                                   enum cuda_eval_op op, int32_t from, int32_t whole, int32_t out) {
    struct eval_step *step = cuda_eval_add_step(eval, instruction, op, out);
    if (!step)
        return NULL;
    step->code.kind = (uint8_t)cuda_eval_kind_of(eval->types[from]);
    step->code.n_arguments = (uint8_t)(1 + (from != whole));
    step->code.arguments[0] = from;
    step->code.arguments[1] = whole;
    return step;
}

static void cast_can_fail(struct eval_step *step) {
    cuda_eval_can_fail(step, SX_FAILURE_CAST);
    if (step->instruction->function == SX_FN_TRY_CAST)
        step->code.on_fail = CUDA_EVAL_NULL;
}

/* ---- integers and decimals ---- */

static int32_t temporary(struct sx_eval *eval, enum sx_phys phys) {
    return cuda_eval_add_register(eval, sx_type_of(phys == SX_PHYS_I64 ? SX_TYPE_I64 : SX_TYPE_I128));
}

static enum sx_status add_resize(struct sx_eval *eval, const struct sx_instruction *instruction, int32_t from,
                                 struct sx_range from_range, int32_t whole, int32_t out,
                                 struct sx_range to_range) {
    struct eval_step *step = add_stage(eval, instruction, CUDA_EVAL_RESIZE, from, whole, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    set_bounds(&step->code, sx_range_intersect(to_range, sx_range_of_phys(sx_type_phys(eval->types[from]))));
    if (!sx_range_is_within(from_range, to_range))
        cast_can_fail(step);
    return SX_OK;
}

static bool fits_i64(enum sx_phys phys) {
    return sx_range_is_within(sx_range_of_phys(phys), sx_range_of_phys(SX_PHYS_I64));
}

/* Scales in the type of `from`; the bounds are the argument's on the way up and the result's on the way down.
 */
static enum sx_status add_scale(struct sx_eval *eval, const struct sx_instruction *instruction, int32_t from,
                                struct sx_range from_range, int32_t whole, int32_t out, int shift,
                                struct sx_range to_range) {
    struct eval_step *step =
        add_stage(eval, instruction, shift < 0 ? CUDA_EVAL_SCALE_DOWN : CUDA_EVAL_SCALE_UP, from, whole, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    const sx_i128 factor = sx_power_of_ten(shift < 0 ? -shift : shift);
    struct sx_range bounds = sx_range_intersect(to_range, sx_range_of_phys(sx_type_phys(eval->types[from])));
    if (shift > 0) {
        bounds = (struct sx_range){bounds.low / factor, bounds.high / (sx_u128)factor};
    } else {
        from_range.low = from_range.low / factor - (from_range.low != 0);
        from_range.high = from_range.high / (sx_u128)factor + 1;
    }
    step->code.factor = factor;
    set_bounds(&step->code, bounds);
    if (!sx_range_is_within(from_range, bounds))
        cast_can_fail(step);
    return SX_OK;
}

static enum sx_status lower_integer(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t from, struct sx_type from_type, int32_t out,
                                    struct sx_type to_type) {
    const enum sx_phys from_phys = sx_type_phys(from_type), to_phys = sx_type_phys(to_type);
    const struct sx_range from_range = sx_range_of_type(from_type), to_range = sx_range_of_type(to_type);
    int shift = sx_type_scale(to_type) - sx_type_scale(from_type);
    if (from_type.id == SX_TYPE_BOOL && to_type.precision == to_type.scale)
        shift = 0; /* DuckDB makes true the smallest unit then */
    if (shift == 0)
        return add_resize(eval, instruction, from, from_range, from, out, to_range);
    const enum sx_phys work = fits_i64(from_phys) && fits_i64(to_phys) ? SX_PHYS_I64 : SX_PHYS_I128;
    int32_t wide = from, scaled = out;
    if (from_phys != work) {
        if ((wide = temporary(eval, work)) < 0)
            return cuda_eval_no_memory(eval);
        SX_TRY(add_resize(eval, instruction, from, from_range, from, wide, sx_range_of_phys(work)));
    }
    if (to_phys != work && (scaled = temporary(eval, work)) < 0)
        return cuda_eval_no_memory(eval);
    SX_TRY(add_scale(eval, instruction, wide, from_range, from, scaled, shift, to_range));
    if (to_phys == work)
        return SX_OK;
    return add_resize(eval, instruction, scaled, to_range, from, out, to_range);
}

enum sx_status cuda_eval_lower_convert(struct sx_eval *eval, const struct sx_instruction *instruction,
                                       int32_t from, struct sx_type to, int32_t *out_register) {
    const struct sx_type type = eval->types[from];
    *out_register = from;
    if (type.id == to.id && sx_type_scale(type) == sx_type_scale(to) &&
        sx_type_phys(type) == sx_type_phys(to))
        return SX_OK;
    if (!sx_type_is_scaled_integer(type) || !sx_type_is_scaled_integer(to))
        return cuda_eval_unsupported(eval, instruction);
    if ((*out_register = cuda_eval_add_register(eval, to)) < 0)
        return cuda_eval_no_memory(eval);
    return lower_integer(eval, instruction, from, type, *out_register, to);
}

/* ---- floating point ---- */

static enum sx_status lower_to_float(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     int32_t from, struct sx_type from_type, int32_t out) {
    const bool is_decimal = from_type.id == SX_TYPE_DECIMAL;
    struct eval_step *step = add_stage(
        eval, instruction, is_decimal ? CUDA_EVAL_DECIMAL_TO_FLOAT : CUDA_EVAL_TO_FLOAT, from, from, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    step->code.factor = sx_power_of_ten(sx_type_scale(from_type));
    step->code.factor_f64 = sx_i128_to_f64(step->code.factor);
    if (from_type.id == SX_TYPE_F64 && step->code.to == CUDA_EVAL_F32)
        cast_can_fail(step);
    return SX_OK;
}

/* The range is open above, and below for HUGEINT; it is checked in front of the rounding but for UHUGEINT. */
static void set_float_bounds(struct cuda_eval_step *step, enum sx_phys to) {
    const bool is_signed = to <= SX_PHYS_I128;
    double end = 1;
    for (int bit = 0; bit < (int)sx_phys_bytes(to) * 8 - is_signed; bit++)
        end *= 2;
    step->end_f64 = end;
    step->low_f64 = is_signed ? -end : 0;
    step->variant = (uint8_t)((to == SX_PHYS_U128) | (to == SX_PHYS_I128) << 1);
}

static enum sx_status lower_from_float(struct sx_eval *eval, const struct sx_instruction *instruction,
                                       int32_t from, int32_t out) {
    const struct sx_type to = instruction->type;
    const bool is_decimal = to.id == SX_TYPE_DECIMAL;
    struct eval_step *step =
        add_stage(eval, instruction, is_decimal ? CUDA_EVAL_FLOAT_TO_DECIMAL : CUDA_EVAL_FLOAT_TO_INTEGER,
                  from, from, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    if (is_decimal) {
        step->code.factor_f64 = sx_i128_to_f64(sx_power_of_ten(sx_type_scale(to)));
        step->code.end_f64 = (double)(sx_range_of_type(to).high + 1);
    } else {
        set_float_bounds(&step->code, sx_type_phys(to));
    }
    cast_can_fail(step);
    return SX_OK;
}

/* ---- text ---- */

static bool is_from_text(struct sx_type to) {
    switch (to.id) {
    case SX_TYPE_BOOL:
    case SX_TYPE_DECIMAL:
    case SX_TYPE_F32:
    case SX_TYPE_F64:
    case SX_TYPE_DATE:
    case SX_TYPE_TIMESTAMP: return true;
    default: return sx_type_is_scaled_integer(to);
    }
}

static void set_text_type(struct cuda_eval_step *step, struct sx_type type) {
    step->type_id = (uint8_t)type.id;
    step->precision = type.precision;
    step->scale = type.scale;
    if (sx_type_is_scaled_integer(type))
        cuda_eval_bounds(type, step);
}

/* ---- all ---- */

/* One step by this operation. */
static enum sx_status lower_simple(struct sx_eval *eval, const struct sx_instruction *instruction,
                                   int32_t out, enum cuda_eval_op op, bool can_fail) {
    const int32_t from = instruction->arguments[0];
    struct eval_step *step = add_stage(eval, instruction, op, from, from, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    if (op == CUDA_EVAL_TO_TEXT)
        set_text_type(&step->code, eval->types[from]);
    if (op == CUDA_EVAL_FROM_TEXT)
        set_text_type(&step->code, instruction->type);
    if (can_fail)
        cast_can_fail(step);
    return SX_OK;
}

enum sx_status cuda_eval_lower_cast(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t out) {
    const int32_t from = instruction->arguments[0];
    const struct sx_type from_type = eval->types[from], to = instruction->type;
    if (sx_type_equal(from_type, to))
        return lower_simple(eval, instruction, out, CUDA_EVAL_COPY, false);
    if (from_type.id == SX_TYPE_NULLTYPE)
        return lower_simple(eval, instruction, out, CUDA_EVAL_NOTHING, false);
    if (to.id == SX_TYPE_VARCHAR)
        return lower_simple(eval, instruction, out, CUDA_EVAL_TO_TEXT, false);
    if (from_type.id == SX_TYPE_VARCHAR && is_from_text(to))
        return lower_simple(eval, instruction, out, CUDA_EVAL_FROM_TEXT, true);
    if (from_type.id == SX_TYPE_DATE && to.id == SX_TYPE_TIMESTAMP)
        return lower_simple(eval, instruction, out, CUDA_EVAL_DATE_TO_TIMESTAMP, true);
    if (from_type.id == SX_TYPE_TIMESTAMP && to.id == SX_TYPE_DATE)
        return lower_simple(eval, instruction, out, CUDA_EVAL_TIMESTAMP_TO_DATE, false);
    if (to.id == SX_TYPE_BOOL && (sx_type_is_scaled_integer(from_type) || sx_type_is_float(from_type)))
        return lower_simple(eval, instruction, out, CUDA_EVAL_TO_BOOL, false);
    if (sx_type_is_scaled_integer(from_type) && sx_type_is_scaled_integer(to))
        return lower_integer(eval, instruction, from, from_type, out, to);
    if (sx_type_is_float(to) && (sx_type_is_scaled_integer(from_type) || sx_type_is_float(from_type)))
        return lower_to_float(eval, instruction, from, from_type, out);
    if (sx_type_is_float(from_type) && sx_type_is_scaled_integer(to))
        return lower_from_float(eval, instruction, from, out);
    return cuda_eval_unsupported(eval, instruction);
}
