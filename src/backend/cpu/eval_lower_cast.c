#include "backend/cpu/eval.h"
#include "tensor/range.h"

/* A step from `from`; `whole` is what is cast, for the error's text. */
static struct sx_eval_step *add_stage(struct sx_eval *eval, const struct sx_instruction *instruction,
                                      int32_t from, int32_t whole, int32_t out, sx_eval_kernel kernel) {
    struct sx_eval_step *step = sx_eval_add_step(eval, instruction, out);
    if (!step)
        return NULL;
    step->kernel = kernel;
    step->null_on_fail = instruction->function == SX_FN_TRY_CAST;
    step->n_arguments = 1 + (from != whole);
    step->arguments[0] = from;
    step->arguments[1] = whole;
    return step;
}

static enum sx_status no_memory(struct sx_eval *eval) {
    return sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for an expression");
}

static int32_t temporary(struct sx_eval *eval, enum sx_phys phys) {
    return sx_eval_add_register(eval, sx_type_of(phys == SX_PHYS_I64 ? SX_TYPE_I64 : SX_TYPE_I128));
}

static enum sx_status add_resize(struct sx_eval *eval, const struct sx_instruction *instruction, int32_t from,
                                 enum sx_phys from_phys, struct sx_range from_range, int32_t whole,
                                 int32_t out, enum sx_phys to_phys, struct sx_range to_range) {
    struct sx_eval_step *step =
        add_stage(eval, instruction, from, whole, out, sx_eval_kernel_resize(from_phys, to_phys));
    if (!step)
        return no_memory(eval);
    const struct sx_range bounds = sx_range_intersect(to_range, sx_range_of_phys(from_phys));
    step->describe = sx_range_is_within(from_range, to_range) ? NULL : sx_eval_describe_cast;
    step->low = bounds.low;
    step->high = bounds.high;
    return SX_OK;
}

static bool fits_i64(enum sx_phys phys) {
    return sx_range_is_within(sx_range_of_phys(phys), sx_range_of_phys(SX_PHYS_I64));
}

/* Scales in `work`; the bounds are the argument's on the way up and the result's on the way down. */
static enum sx_status add_scale(struct sx_eval *eval, const struct sx_instruction *instruction, int32_t from,
                                struct sx_range from_range, int32_t whole, int32_t out, enum sx_phys work,
                                int shift, struct sx_range to_range) {
    struct sx_eval_step *step =
        add_stage(eval, instruction, from, whole, out, sx_eval_kernel_scale(work, shift));
    if (!step)
        return no_memory(eval);
    const sx_i128 factor = sx_power_of_ten(shift < 0 ? -shift : shift);
    struct sx_range bounds = sx_range_intersect(to_range, sx_range_of_phys(work));
    if (shift > 0) {
        bounds = (struct sx_range){bounds.low / factor, bounds.high / (sx_u128)factor};
    } else {
        from_range.low = from_range.low / factor - (from_range.low != 0);
        from_range.high = from_range.high / (sx_u128)factor + 1;
    }
    step->describe = sx_range_is_within(from_range, bounds) ? NULL : sx_eval_describe_cast;
    step->factor = factor;
    step->low = bounds.low;
    step->high = bounds.high;
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
        return add_resize(eval, instruction, from, from_phys, from_range, from, out, to_phys, to_range);
    const enum sx_phys work = fits_i64(from_phys) && fits_i64(to_phys) ? SX_PHYS_I64 : SX_PHYS_I128;
    int32_t wide = from, scaled = out;
    if (from_phys != work) {
        if ((wide = temporary(eval, work)) < 0)
            return no_memory(eval);
        SX_TRY(add_resize(eval, instruction, from, from_phys, from_range, from, wide, work,
                          sx_range_of_phys(work)));
    }
    if (to_phys != work && (scaled = temporary(eval, work)) < 0)
        return no_memory(eval);
    SX_TRY(add_scale(eval, instruction, wide, from_range, from, scaled, work, shift, to_range));
    if (to_phys == work)
        return SX_OK;
    return add_resize(eval, instruction, scaled, work, to_range, from, out, to_phys, to_range);
}

static enum sx_status lower_to_float(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     int32_t from, struct sx_type from_type, int32_t out) {
    const enum sx_phys from_phys = sx_type_phys(from_type), to_phys = sx_type_phys(instruction->type);
    const bool is_decimal = from_type.id == SX_TYPE_DECIMAL;
    struct sx_eval_step *step = add_stage(eval, instruction, from, from, out,
                                          is_decimal ? sx_eval_kernel_decimal_float(from_phys, to_phys)
                                                     : sx_eval_kernel_to_float(from_phys, to_phys));
    if (!step)
        return no_memory(eval);
    step->factor = sx_power_of_ten(sx_type_scale(from_type));
    step->factor_f64 = sx_i128_to_f64(step->factor);
    if (from_phys == SX_PHYS_F64 && to_phys == SX_PHYS_F32)
        step->describe = sx_eval_describe_cast;
    return SX_OK;
}

static enum sx_status lower_from_float(struct sx_eval *eval, const struct sx_instruction *instruction,
                                       int32_t from, enum sx_phys from_phys, int32_t out) {
    const struct sx_type to = instruction->type;
    struct sx_eval_step *step =
        add_stage(eval, instruction, from, from, out,
                  to.id == SX_TYPE_DECIMAL ? sx_eval_kernel_decimal_float(from_phys, sx_type_phys(to))
                                           : sx_eval_kernel_from_float(from_phys, sx_type_phys(to)));
    if (!step)
        return no_memory(eval);
    step->describe = sx_eval_describe_cast;
    step->factor_f64 = sx_i128_to_f64(sx_power_of_ten(sx_type_scale(to)));
    step->high = sx_range_of_type(to).high;
    return SX_OK;
}

/* One step by this kernel. */
static enum sx_status lower_simple(struct sx_eval *eval, const struct sx_instruction *instruction,
                                   int32_t out, sx_eval_kernel kernel, sx_eval_describe describe) {
    const int32_t from = instruction->arguments[0];
    struct sx_eval_step *step = add_stage(eval, instruction, from, from, out, kernel);
    if (!step)
        return no_memory(eval);
    const struct sx_range range = sx_type_is_scaled_integer(instruction->type)
                                      ? sx_range_of_type(instruction->type)
                                      : (struct sx_range){0};
    step->describe = describe;
    step->low = range.low;
    step->high = range.high;
    return SX_OK;
}

enum sx_status sx_eval_lower_convert(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     int32_t from, struct sx_type to, int32_t *out_register) {
    const struct sx_type type = eval->types[from];
    *out_register = from;
    if (type.id == to.id && sx_type_scale(type) == sx_type_scale(to) &&
        sx_type_phys(type) == sx_type_phys(to))
        return SX_OK;
    if (!sx_type_is_scaled_integer(type) || !sx_type_is_scaled_integer(to))
        return sx_eval_unsupported(eval, instruction);
    if ((*out_register = sx_eval_add_register(eval, to)) < 0)
        return no_memory(eval);
    return lower_integer(eval, instruction, from, type, *out_register, to);
}

enum sx_status sx_eval_lower_cast(struct sx_eval *eval, const struct sx_instruction *instruction,
                                  int32_t out) {
    const int32_t from = instruction->arguments[0];
    const struct sx_type from_type = eval->types[from], to = instruction->type;
    if (sx_type_equal(from_type, to))
        return lower_simple(eval, instruction, out, NULL, NULL);
    if (from_type.id == SX_TYPE_NULLTYPE) {
        struct sx_eval_step *step = add_stage(eval, instruction, from, from, out, sx_eval_null);
        if (!step)
            return no_memory(eval);
        step->nulls_own = true;
        return SX_OK;
    }
    if (to.id == SX_TYPE_VARCHAR)
        return lower_simple(eval, instruction, out, sx_eval_to_text, NULL);
    if (from_type.id == SX_TYPE_VARCHAR && sx_eval_kernel_from_text(to))
        return lower_simple(eval, instruction, out, sx_eval_kernel_from_text(to), sx_eval_describe_cast);
    sx_eval_kernel dates = sx_eval_kernel_date(SX_FN_CAST, from_type.id, to.id);
    if (dates)
        return lower_simple(eval, instruction, out, dates,
                            to.id == SX_TYPE_TIMESTAMP ? sx_eval_describe_cast : NULL);
    if (to.id == SX_TYPE_BOOL && (sx_type_is_scaled_integer(from_type) || sx_type_is_float(from_type)))
        return lower_simple(eval, instruction, out, sx_eval_kernel_to_bool(sx_type_phys(from_type)), NULL);
    if (sx_type_is_scaled_integer(from_type) && sx_type_is_scaled_integer(to))
        return lower_integer(eval, instruction, from, from_type, out, to);
    if (sx_type_is_float(to) && (sx_type_is_scaled_integer(from_type) || sx_type_is_float(from_type)))
        return lower_to_float(eval, instruction, from, from_type, out);
    if (sx_type_is_float(from_type) && sx_type_is_scaled_integer(to))
        return lower_from_float(eval, instruction, from, sx_type_phys(from_type), out);
    return sx_eval_unsupported(eval, instruction);
}
