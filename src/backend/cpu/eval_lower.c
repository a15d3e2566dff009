#include "backend/cpu/eval.h"
#include "tensor/semantics_average.h"
#include "tensor/semantics_decimal.h"

#include <stdio.h>

enum sx_status sx_eval_unsupported(struct sx_eval *eval, const struct sx_instruction *instruction) {
    char text[256], name[SX_TYPE_NAME_BYTES];
    int n = 0;
    for (int k = 0; k < sx_function_arguments(instruction->function); k++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", k ? ", " : "",
                      sx_type_name(eval->types[instruction->arguments[k]], name));
    return sx_error_set(&eval->stream->error, SX_UNSUPPORTED, "%s(%s) to %s is not supported",
                        sx_function_name(instruction->function), text, sx_type_name(instruction->type, name));
}

const struct sx_scalar *sx_eval_constant(const struct sx_eval *eval, int32_t reg) {
    const struct sx_program *program = eval->program;
    reg -= program->n_inputs;
    if (reg < 0 || reg >= program->n_constants || program->constants[reg].is_null)
        return NULL;
    return &program->constants[reg];
}

/* A step with the instruction's own arguments; NULL: the stream's error is set. */
static struct sx_eval_step *add_step(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     int32_t out, sx_eval_kernel kernel, sx_eval_describe describe) {
    enum sx_status status = SX_OK;
    struct sx_eval_step *step = NULL;
    if (!kernel)
        status = sx_eval_unsupported(eval, instruction);
    else if (!(step = sx_eval_add_step(eval, instruction, out)))
        status = sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for an expression");
    if (status != SX_OK || !step)
        return NULL;
    step->kernel = kernel;
    step->describe = describe;
    step->n_arguments = sx_function_arguments(instruction->function);
    for (int k = 0; k < step->n_arguments; k++)
        step->arguments[k] = instruction->arguments[k];
    return step;
}

/* Of the last add_step. */
static enum sx_status status_of(const struct sx_eval *eval, const struct sx_eval_step *step) {
    return step ? SX_OK : eval->stream->error.status;
}

static struct sx_type argument_type(const struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int k) {
    return eval->types[instruction->arguments[k]];
}

/* ---- arithmetic ---- */

static enum sx_status lower_dates(struct sx_eval *eval, const struct sx_instruction *instruction,
                                  int32_t out) {
    const bool is_unary = sx_function_arguments(instruction->function) == 1;
    enum sx_type_id left = argument_type(eval, instruction, 0).id;
    enum sx_type_id right = is_unary ? SX_TYPE_NULLTYPE : argument_type(eval, instruction, 1).id;
    const bool swap =
        instruction->function == SX_FN_ADD && (right == SX_TYPE_DATE || right == SX_TYPE_TIMESTAMP);
    sx_eval_kernel kernel =
        sx_eval_kernel_date(instruction->function, swap ? right : left, swap ? left : right);
    const bool can_fail = !is_unary || left == SX_TYPE_INTERVAL;
    struct sx_eval_step *step =
        add_step(eval, instruction, out, kernel, can_fail ? sx_eval_describe_date : NULL);
    if (!step)
        return eval->stream->error.status;
    if (swap) {
        step->arguments[0] = instruction->arguments[1];
        step->arguments[1] = instruction->arguments[0];
    }
    return SX_OK;
}

static bool is_date_like(struct sx_type type) {
    return type.id == SX_TYPE_DATE || type.id == SX_TYPE_TIMESTAMP || type.id == SX_TYPE_INTERVAL;
}

/* Decimals come to the result's representation first; the scales of a product's factors stay. */
static enum sx_status lower_decimals(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     int32_t out) {
    const struct sx_type type = instruction->type;
    struct sx_instruction converted = *instruction;
    for (int k = 0; k < sx_function_arguments(instruction->function); k++) {
        const struct sx_type argument = argument_type(eval, instruction, k);
        struct sx_type wanted = type;
        if (instruction->function == SX_FN_MUL && argument.id == SX_TYPE_DECIMAL)
            wanted.scale = argument.scale;
        SX_TRY(sx_eval_lower_convert(eval, instruction, instruction->arguments[k], wanted,
                                     &converted.arguments[k]));
    }
    const bool full = type.precision == SX_DECIMAL_MAX_I64_DIGITS || type.precision == SX_DECIMAL_MAX_DIGITS;
    const bool can_fail = full && instruction->function <= SX_FN_MUL;
    struct sx_eval_step *step =
        add_step(eval, instruction, out, sx_eval_kernel_arithmetic(instruction->function, type),
                 can_fail ? sx_eval_describe_arithmetic : NULL);
    if (!step)
        return eval->stream->error.status;
    for (int k = 0; k < step->n_arguments; k++)
        step->arguments[k] = converted.arguments[k];
    step->high = (sx_u128)sx_power_of_ten(type.precision) - 1;
    return SX_OK;
}

static enum sx_status lower_arithmetic(struct sx_eval *eval, const struct sx_instruction *instruction,
                                       int32_t out) {
    const struct sx_type type = instruction->type, first = argument_type(eval, instruction, 0);
    const int n_arguments = sx_function_arguments(instruction->function);
    const struct sx_type last = argument_type(eval, instruction, n_arguments - 1);
    if (is_date_like(first) || is_date_like(last))
        return lower_dates(eval, instruction, out);
    if (type.id == SX_TYPE_DECIMAL)
        return lower_decimals(eval, instruction, out);
    if (!sx_type_equal(first, type) || !sx_type_equal(last, type) || type.id == SX_TYPE_BOOL)
        return sx_eval_unsupported(eval, instruction);
    const bool is_float = type.id == SX_TYPE_F32 || type.id == SX_TYPE_F64;
    const bool is_unsigned = sx_type_phys(type) >= SX_PHYS_U8;
    const bool can_fail =
        !is_float && !(is_unsigned && (n_arguments == 1 || instruction->function == SX_FN_INT_DIV ||
                                       instruction->function == SX_FN_MOD));
    return status_of(eval,
                     add_step(eval, instruction, out, sx_eval_kernel_arithmetic(instruction->function, type),
                              can_fail ? sx_eval_describe_arithmetic : NULL));
}

/* FLOOR, CEIL, ROUND of decimals. ROUND's digits are a constant, since the result's scale follows from them.
 */
static enum sx_status lower_decimal_round(struct sx_eval *eval, const struct sx_instruction *instruction,
                                          int32_t out) {
    const struct sx_type from = argument_type(eval, instruction, 0), to = instruction->type;
    const struct sx_scalar *digits =
        instruction->function == SX_FN_ROUND ? sx_eval_constant(eval, instruction->arguments[1]) : NULL;
    if (to.id != SX_TYPE_DECIMAL || sx_type_phys(from) != sx_type_phys(to) ||
        (instruction->function == SX_FN_ROUND && !digits))
        return sx_eval_unsupported(eval, instruction);
    const int64_t wanted = digits ? digits->v.i64 : 0;
    struct sx_eval_step *step = NULL;
    step =
        add_step(eval, instruction, out, sx_eval_kernel_floor(instruction->function, sx_type_phys(to)), NULL);
    if (!step)
        return eval->stream->error.status;
    step->n_arguments = 1;
    if (wanted >= from.scale) {
        step->kernel = NULL;
    } else if (wanted < 0 && -wanted >= from.precision - from.scale) {
        step->kernel = sx_eval_zero; /* also for NULL, as in DuckDB */
        step->nulls_own = true;
    } else {
        step->factor = sx_power_of_ten(from.scale - (int)wanted);
        step->high = (sx_u128)sx_power_of_ten(wanted < 0 ? (int)-wanted : 0);
    }
    return SX_OK;
}

static enum sx_status lower_round(struct sx_eval *eval, const struct sx_instruction *instruction,
                                  int32_t out) {
    const struct sx_type type = argument_type(eval, instruction, 0);
    if (type.id == SX_TYPE_DECIMAL)
        return lower_decimal_round(eval, instruction, out);
    if (!sx_type_equal(type, instruction->type) ||
        (instruction->function == SX_FN_ROUND && argument_type(eval, instruction, 1).id != SX_TYPE_I32))
        return sx_eval_unsupported(eval, instruction);
    return status_of(
        eval, add_step(eval, instruction, out, sx_eval_kernel_arithmetic(instruction->function, type), NULL));
}

static enum sx_status lower_average(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t out) {
    const struct sx_type sum = argument_type(eval, instruction, 0);
    if (!sx_average_takes(sum, argument_type(eval, instruction, 1)))
        return sx_eval_unsupported(eval, instruction);
    struct sx_eval_step *step =
        add_step(eval, instruction, out, sx_eval_kernel_average(sx_type_phys(sum)), NULL);
    if (!step)
        return eval->stream->error.status;
    step->factor_f64 = sx_average_scale(sum);
    return SX_OK;
}

/* ---- comparison ---- */

static bool are_comparable(struct sx_type a, struct sx_type b) {
    return a.id == b.id && a.scale == b.scale && sx_type_phys(a) == sx_type_phys(b);
}

static enum sx_status lower_compare(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t out) {
    const struct sx_type a = argument_type(eval, instruction, 0), b = argument_type(eval, instruction, 1);
    enum sx_function function = instruction->function;
    const bool swap = function == SX_FN_GT || function == SX_FN_GE;
    if (!are_comparable(a, b))
        return sx_eval_unsupported(eval, instruction);
    function = function == SX_FN_GT ? SX_FN_LT : function == SX_FN_GE ? SX_FN_LE : function;
    struct sx_eval_step *step =
        add_step(eval, instruction, out, sx_eval_kernel_compare(function, sx_type_phys(a)), NULL);
    if (!step)
        return eval->stream->error.status;
    step->nulls_own = function == SX_FN_DISTINCT_FROM || function == SX_FN_NOT_DISTINCT_FROM;
    if (swap) {
        step->arguments[0] = instruction->arguments[1];
        step->arguments[1] = instruction->arguments[0];
    }
    return SX_OK;
}

static enum sx_status lower_in_list(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t out) {
    const struct sx_type type = argument_type(eval, instruction, 0);
    for (int32_t k = 0; k < instruction->list_count; k++)
        if (!are_comparable(type, eval->program->constants[instruction->list_first + k].type))
            return sx_eval_unsupported(eval, instruction);
    struct sx_eval_step *step =
        add_step(eval, instruction, out, sx_eval_kernel_in_list(sx_type_phys(type)), NULL);
    if (!step)
        return eval->stream->error.status;
    return sx_value_set_create(eval, instruction, &step->set);
}

/* ---- logic and choices ---- */

static enum sx_status lower_logic(struct sx_eval *eval, const struct sx_instruction *instruction,
                                  int32_t out) {
    struct sx_eval_step *step =
        add_step(eval, instruction, out, sx_eval_kernel_logic(instruction->function), NULL);
    if (!step)
        return eval->stream->error.status;
    step->nulls_own = instruction->function != SX_FN_NOT;
    return SX_OK;
}

static enum sx_status lower_choose(struct sx_eval *eval, const struct sx_instruction *instruction,
                                   int32_t out) {
    const struct sx_type type = instruction->type;
    const int first = instruction->function == SX_FN_CHOOSE;
    const int end = instruction->function == SX_FN_CONSTANT_OR_NULL ? 1 : first + 2;
    for (int k = first; k < end; k++)
        if (!are_comparable(argument_type(eval, instruction, k), type))
            return sx_eval_unsupported(eval, instruction);
    struct sx_eval_step *step = add_step(
        eval, instruction, out, sx_eval_kernel_choose(instruction->function, sx_type_bytes(type)), NULL);
    if (!step)
        return eval->stream->error.status;
    step->nulls_own = instruction->function != SX_FN_CONSTANT_OR_NULL;
    return SX_OK;
}

/* ---- strings ---- */

static bool all_varchar(const struct sx_eval *eval, const struct sx_instruction *instruction, int n) {
    for (int k = 0; k < n; k++)
        if (argument_type(eval, instruction, k).id != SX_TYPE_VARCHAR)
            return false;
    return true;
}

static enum sx_status lower_like(struct sx_eval *eval, const struct sx_instruction *instruction,
                                 int32_t out) {
    const int n_arguments = sx_function_arguments(instruction->function);
    const struct sx_scalar *pattern = sx_eval_constant(eval, instruction->arguments[1]);
    const struct sx_scalar *escape =
        n_arguments > 2 ? sx_eval_constant(eval, instruction->arguments[2]) : NULL;
    const bool good_escape = n_arguments == 2 || (escape && escape->v.text.length_bytes <= 1);
    if (!all_varchar(eval, instruction, n_arguments))
        return sx_eval_unsupported(eval, instruction);
    struct sx_eval_step *step = add_step(eval, instruction, out, sx_eval_kernel_string(instruction->function),
                                         n_arguments > 2 ? sx_eval_describe_string : NULL);
    if (!step)
        return eval->stream->error.status;
    if (!pattern || !good_escape)
        return SX_OK;
    const bool has_escape = escape && escape->v.text.length_bytes == 1;
    step->like = sx_like_compile(pattern->v.text.bytes, pattern->v.text.length_bytes, has_escape,
                                 has_escape ? escape->v.text.bytes[0] : 0);
    if (!step->like)
        return sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for a LIKE pattern");
    step->kernel = sx_eval_like;
    if (!sx_like_can_fail(step->like))
        step->describe = NULL;
    return SX_OK;
}

static bool is_safe_offset(const struct sx_scalar *constant) {
    return constant && constant->v.i64 >= -(INT64_C(1) << 32) && constant->v.i64 <= UINT32_MAX;
}

static enum sx_status lower_string(struct sx_eval *eval, const struct sx_instruction *instruction,
                                   int32_t out) {
    const enum sx_function function = instruction->function;
    const int n_arguments = sx_function_arguments(function);
    sx_eval_describe describe = function == SX_FN_ERROR ? sx_eval_describe_string : NULL;
    if (!all_varchar(eval, instruction, function == SX_FN_SUBSTRING ? 1 : n_arguments))
        return sx_eval_unsupported(eval, instruction);
    if (function == SX_FN_SUBSTRING) {
        if (argument_type(eval, instruction, 1).id != SX_TYPE_I64 ||
            argument_type(eval, instruction, 2).id != SX_TYPE_I64)
            return sx_eval_unsupported(eval, instruction);
        if (!is_safe_offset(sx_eval_constant(eval, instruction->arguments[1])) ||
            !is_safe_offset(sx_eval_constant(eval, instruction->arguments[2])))
            describe = sx_eval_describe_string;
    }
    if (function == SX_FN_CONCAT || function == SX_FN_CONCAT_SKIP_NULL)
        describe = sx_eval_describe_string;
    struct sx_eval_step *step = add_step(eval, instruction, out, sx_eval_kernel_string(function), describe);
    if (!step)
        return eval->stream->error.status;
    step->nulls_own = function == SX_FN_CONCAT_SKIP_NULL;
    return SX_OK;
}

static bool takes_null(enum sx_function function) {
    switch (function) {
    case SX_FN_DISTINCT_FROM:
    case SX_FN_NOT_DISTINCT_FROM:
    case SX_FN_AND:
    case SX_FN_OR:
    case SX_FN_IS_NULL:
    case SX_FN_IS_NOT_NULL:
    case SX_FN_IS_TRUE:
    case SX_FN_CHOOSE:
    case SX_FN_COALESCE:
    case SX_FN_CONSTANT_OR_NULL:
    case SX_FN_CONCAT_SKIP_NULL: return true;
    default: return false;
    }
}

/* A bare NULL among the arguments of an operation that it makes NULL. */
static bool is_null_always(const struct sx_eval *eval, const struct sx_instruction *instruction) {
    for (int k = 0; k < sx_function_arguments(instruction->function); k++)
        if (argument_type(eval, instruction, k).id == SX_TYPE_NULLTYPE)
            return !takes_null(instruction->function);
    return false;
}

static enum sx_status lower_null(struct sx_eval *eval, const struct sx_instruction *instruction,
                                 int32_t out) {
    struct sx_eval_step *step = add_step(eval, instruction, out, sx_eval_null, NULL);
    if (!step)
        return eval->stream->error.status;
    step->nulls_own = true;
    return SX_OK;
}

enum sx_status sx_eval_lower(struct sx_eval *eval, const struct sx_instruction *instruction, int32_t out) {
    if (is_null_always(eval, instruction))
        return lower_null(eval, instruction, out);
    switch (instruction->function) {
    case SX_FN_ADD:
    case SX_FN_SUB:
    case SX_FN_MUL:
    case SX_FN_DIV:
    case SX_FN_INT_DIV:
    case SX_FN_MOD:
    case SX_FN_NEG:
    case SX_FN_ABS: return lower_arithmetic(eval, instruction, out);
    case SX_FN_ROUND:
    case SX_FN_FLOOR:
    case SX_FN_CEIL: return lower_round(eval, instruction, out);
    case SX_FN_EQ:
    case SX_FN_NE:
    case SX_FN_LT:
    case SX_FN_LE:
    case SX_FN_GT:
    case SX_FN_GE:
    case SX_FN_DISTINCT_FROM:
    case SX_FN_NOT_DISTINCT_FROM: return lower_compare(eval, instruction, out);
    case SX_FN_IN_LIST: return lower_in_list(eval, instruction, out);
    case SX_FN_AND:
    case SX_FN_OR:
    case SX_FN_NOT:
    case SX_FN_IS_NULL:
    case SX_FN_IS_NOT_NULL:
    case SX_FN_IS_TRUE: return lower_logic(eval, instruction, out);
    case SX_FN_CHOOSE:
    case SX_FN_COALESCE:
    case SX_FN_CONSTANT_OR_NULL: return lower_choose(eval, instruction, out);
    case SX_FN_CAST:
    case SX_FN_TRY_CAST: return sx_eval_lower_cast(eval, instruction, out);
    case SX_FN_LIKE:
    case SX_FN_NOT_LIKE:
    case SX_FN_LIKE_ESCAPE:
    case SX_FN_NOT_LIKE_ESCAPE: return lower_like(eval, instruction, out);
    case SX_FN_ERROR:
    case SX_FN_PREFIX:
    case SX_FN_SUFFIX:
    case SX_FN_CONTAINS:
    case SX_FN_SUBSTRING:
    case SX_FN_UPPER:
    case SX_FN_LOWER:
    case SX_FN_LENGTH:
    case SX_FN_CONCAT:
    case SX_FN_CONCAT_SKIP_NULL: return lower_string(eval, instruction, out);
    case SX_FN_YEAR:
    case SX_FN_MONTH:
    case SX_FN_DAY: return lower_dates(eval, instruction, out);
    case SX_FN_AVERAGE: return lower_average(eval, instruction, out);
    case SX_FN_COUNT: break;
    }
    return sx_eval_unsupported(eval, instruction);
}
