/* Casts to steps. Booleans, integers and decimals are integers times a power of ten. */
#include "backend/cuda/eval.h"
#include "tensor/semantics_decimal.h"

struct range {
    sx_i128 low;
    sx_u128 high;
};

static bool is_integer(struct sx_type type) {
    return sx_type_phys(type) <= SX_PHYS_U128 && type.id != SX_TYPE_DATE && type.id != SX_TYPE_TIMESTAMP &&
           type.id != SX_TYPE_NULLTYPE;
}
static bool is_float(struct sx_type type) {
    return type.id == SX_TYPE_F32 || type.id == SX_TYPE_F64;
}
static int scale_of(struct sx_type type) {
    return type.id == SX_TYPE_DECIMAL ? type.scale : 0;
}

static struct range phys_range(enum sx_phys phys) {
    const bool is_signed = phys <= SX_PHYS_I128;
    const int bits = (int)sx_phys_bytes(phys) * 8;
    const sx_u128 all = SX_U128_MAX >> (128 - bits);
    return (struct range){is_signed ? -(sx_i128)(all >> 1) - 1 : 0, is_signed ? all >> 1 : all};
}

static struct range type_range(struct sx_type type) {
    if (type.id == SX_TYPE_BOOL)
        return (struct range){0, 1};
    if (type.id != SX_TYPE_DECIMAL)
        return phys_range(sx_type_phys(type));
    const sx_i128 high = sx_power_of_ten(type.precision) - 1;
    return (struct range){-high, (sx_u128)high};
}

static bool is_within(struct range inner, struct range outer) {
    return inner.low >= outer.low && inner.high <= outer.high;
}

static struct range intersect(struct range a, struct range b) {
    return (struct range){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

static void set_bounds(struct cuda_eval_step *step, struct range range) {
    step->low = range.low;
    step->high = range.high;
}

void cuda_eval_bounds(struct sx_type type, struct cuda_eval_step *step) {
    set_bounds(step, type_range(type));
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
                                 struct range from_range, int32_t whole, int32_t out, struct range to_range) {
    struct eval_step *step = add_stage(eval, instruction, CUDA_EVAL_RESIZE, from, whole, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    set_bounds(&step->code, intersect(to_range, phys_range(sx_type_phys(eval->types[from]))));
    if (!is_within(from_range, to_range))
        cast_can_fail(step);
    return SX_OK;
}

static bool fits_i64(enum sx_phys phys) {
    return is_within(phys_range(phys), phys_range(SX_PHYS_I64));
}

/* Scales in the type of `from`; the bounds are the argument's on the way up and the result's on the way down.
 */
static enum sx_status add_scale(struct sx_eval *eval, const struct sx_instruction *instruction, int32_t from,
                                struct range from_range, int32_t whole, int32_t out, int shift,
                                struct range to_range) {
    struct eval_step *step =
        add_stage(eval, instruction, shift < 0 ? CUDA_EVAL_SCALE_DOWN : CUDA_EVAL_SCALE_UP, from, whole, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    const sx_i128 factor = sx_power_of_ten(shift < 0 ? -shift : shift);
    struct range bounds = intersect(to_range, phys_range(sx_type_phys(eval->types[from])));
    if (shift > 0) {
        bounds = (struct range){bounds.low / factor, bounds.high / (sx_u128)factor};
    } else {
        from_range.low = from_range.low / factor - (from_range.low != 0);
        from_range.high = from_range.high / (sx_u128)factor + 1;
    }
    step->code.factor = factor;
    set_bounds(&step->code, bounds);
    if (!is_within(from_range, bounds))
        cast_can_fail(step);
    return SX_OK;
}

static enum sx_status lower_integer(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t from, struct sx_type from_type, int32_t out,
                                    struct sx_type to_type) {
    const enum sx_phys from_phys = sx_type_phys(from_type), to_phys = sx_type_phys(to_type);
    const struct range from_range = type_range(from_type), to_range = type_range(to_type);
    int shift = scale_of(to_type) - scale_of(from_type);
    if (from_type.id == SX_TYPE_BOOL && to_type.precision == to_type.scale)
        shift = 0; /* DuckDB makes true the smallest unit then */
    if (shift == 0)
        return add_resize(eval, instruction, from, from_range, from, out, to_range);
    const enum sx_phys work = fits_i64(from_phys) && fits_i64(to_phys) ? SX_PHYS_I64 : SX_PHYS_I128;
    int32_t wide = from, scaled = out;
    if (from_phys != work) {
        if ((wide = temporary(eval, work)) < 0)
            return cuda_eval_no_memory(eval);
        SX_TRY(add_resize(eval, instruction, from, from_range, from, wide, phys_range(work)));
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
    if (type.id == to.id && scale_of(type) == scale_of(to) && sx_type_phys(type) == sx_type_phys(to))
        return SX_OK;
    if (!is_integer(type) || !is_integer(to))
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
    step->code.factor = sx_power_of_ten(scale_of(from_type));
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
        step->code.factor_f64 = sx_i128_to_f64(sx_power_of_ten(scale_of(to)));
        step->code.end_f64 = (double)(type_range(to).high + 1);
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
    default: return is_integer(to);
    }
}

static void set_text_type(struct cuda_eval_step *step, struct sx_type type) {
    step->type_id = (uint8_t)type.id;
    step->precision = type.precision;
    step->scale = type.scale;
    if (is_integer(type))
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
    if (to.id == SX_TYPE_BOOL && (is_integer(from_type) || is_float(from_type)))
        return lower_simple(eval, instruction, out, CUDA_EVAL_TO_BOOL, false);
    if (is_integer(from_type) && is_integer(to))
        return lower_integer(eval, instruction, from, from_type, out, to);
    if (is_float(to) && (is_integer(from_type) || is_float(from_type)))
        return lower_to_float(eval, instruction, from, from_type, out);
    if (is_float(from_type) && is_integer(to))
        return lower_from_float(eval, instruction, from, out);
    return cuda_eval_unsupported(eval, instruction);
}
