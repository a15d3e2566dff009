/* Instructions to steps. */
#include "backend/cuda/eval.h"
#include "tensor/semantics_average.h"
#include "tensor/semantics_decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/semantics_date.h"

enum sx_status cuda_eval_unsupported(struct sx_eval *eval, const struct sx_instruction *instruction) {
    char text[256], name[SX_TYPE_NAME_BYTES];
    int n = 0;
    for (int k = 0; k < sx_function_arguments(instruction->function); k++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", k ? ", " : "",
                      sx_type_name(eval->types[instruction->arguments[k]], name));
    return sx_error_set(&eval->stream->base.error, SX_UNSUPPORTED, "%s(%s) to %s is not supported",
                        sx_function_name(instruction->function), text, sx_type_name(instruction->type, name));
}

void cuda_eval_can_fail(struct eval_step *step, enum sx_failure failure) {
    step->code.on_fail = CUDA_EVAL_ERROR;
    step->failure = failure;
}

/* A step with the instruction's own arguments; NULL: no memory. */
static struct eval_step *add_step(struct sx_eval *eval, const struct sx_instruction *instruction,
                                  enum cuda_eval_op op, int32_t out) {
    struct eval_step *step = cuda_eval_add_step(eval, instruction, op, out);
    if (!step)
        return NULL;
    const int n = sx_function_arguments(instruction->function);
    step->code.n_arguments = (uint8_t)n;
    for (int k = 0; k < n; k++)
        step->code.arguments[k] = instruction->arguments[k];
    step->code.kind = (uint8_t)cuda_eval_kind_of(eval->types[instruction->arguments[0]]);
    return step;
}

static enum sx_status add_plain(struct sx_eval *eval, const struct sx_instruction *instruction,
                                enum cuda_eval_op op, int32_t out) {
    return add_step(eval, instruction, op, out) ? SX_OK : cuda_eval_no_memory(eval);
}

static void swap_arguments(struct eval_step *step) {
    const int32_t first = step->code.arguments[0];
    step->code.arguments[0] = step->code.arguments[1];
    step->code.arguments[1] = first;
}

static struct sx_type argument_type(const struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int k) {
    return eval->types[instruction->arguments[k]];
}

/* ---- dates ---- */

/* For one argument `right` is ignored. */
static const struct date_operation {
    enum sx_function function;
    enum sx_type_id left, right;
    enum cuda_eval_op op;
    uint8_t variant;
    bool can_fail;
} date_operations[] = {
    {SX_FN_ADD, SX_TYPE_DATE, SX_TYPE_I32, CUDA_EVAL_DATE_ADD_DAYS, 0, true},
    {SX_FN_SUB, SX_TYPE_DATE, SX_TYPE_I32, CUDA_EVAL_DATE_ADD_DAYS, 1, true},
    {SX_FN_ADD, SX_TYPE_DATE, SX_TYPE_INTERVAL, CUDA_EVAL_DATE_ADD_INTERVAL, 0, true},
    {SX_FN_SUB, SX_TYPE_DATE, SX_TYPE_INTERVAL, CUDA_EVAL_DATE_ADD_INTERVAL, 1, true},
    {SX_FN_ADD, SX_TYPE_TIMESTAMP, SX_TYPE_INTERVAL, CUDA_EVAL_TIMESTAMP_ADD_INTERVAL, 0, true},
    {SX_FN_SUB, SX_TYPE_TIMESTAMP, SX_TYPE_INTERVAL, CUDA_EVAL_TIMESTAMP_ADD_INTERVAL, 1, true},
    {SX_FN_SUB, SX_TYPE_DATE, SX_TYPE_DATE, CUDA_EVAL_DATE_SUB_DATE, 0, false},
    {SX_FN_SUB, SX_TYPE_TIMESTAMP, SX_TYPE_TIMESTAMP, CUDA_EVAL_TIMESTAMP_SUB, 0, true},
    {SX_FN_ADD, SX_TYPE_INTERVAL, SX_TYPE_INTERVAL, CUDA_EVAL_INTERVAL_ADD, 0, true},
    {SX_FN_SUB, SX_TYPE_INTERVAL, SX_TYPE_INTERVAL, CUDA_EVAL_INTERVAL_ADD, 1, true},
    {SX_FN_NEG, SX_TYPE_INTERVAL, SX_TYPE_NULLTYPE, CUDA_EVAL_INTERVAL_NEG, 1, true},
    {SX_FN_YEAR, SX_TYPE_DATE, SX_TYPE_NULLTYPE, CUDA_EVAL_DATE_YEAR, 0, false},
    {SX_FN_MONTH, SX_TYPE_DATE, SX_TYPE_NULLTYPE, CUDA_EVAL_DATE_MONTH, 0, false},
    {SX_FN_DAY, SX_TYPE_DATE, SX_TYPE_NULLTYPE, CUDA_EVAL_DATE_DAY, 0, false},
    {SX_FN_YEAR, SX_TYPE_TIMESTAMP, SX_TYPE_NULLTYPE, CUDA_EVAL_DATE_YEAR, 1, false},
    {SX_FN_MONTH, SX_TYPE_TIMESTAMP, SX_TYPE_NULLTYPE, CUDA_EVAL_DATE_MONTH, 1, false},
    {SX_FN_DAY, SX_TYPE_TIMESTAMP, SX_TYPE_NULLTYPE, CUDA_EVAL_DATE_DAY, 1, false},
};

static const struct date_operation *find_date_operation(enum sx_function function, enum sx_type_id left,
                                                        enum sx_type_id right) {
    for (size_t i = 0; i < sizeof date_operations / sizeof date_operations[0]; i++)
        if (date_operations[i].function == function && date_operations[i].left == left &&
            date_operations[i].right == right)
            return &date_operations[i];
    return NULL;
}

static enum sx_status lower_dates(struct sx_eval *eval, const struct sx_instruction *instruction,
                                  int32_t out) {
    const bool is_unary = sx_function_arguments(instruction->function) == 1;
    const enum sx_type_id left = argument_type(eval, instruction, 0).id;
    const enum sx_type_id right = is_unary ? SX_TYPE_NULLTYPE : argument_type(eval, instruction, 1).id;
    const bool swap =
        instruction->function == SX_FN_ADD && (right == SX_TYPE_DATE || right == SX_TYPE_TIMESTAMP);
    const struct date_operation *operation =
        find_date_operation(instruction->function, swap ? right : left, swap ? left : right);
    if (!operation)
        return cuda_eval_unsupported(eval, instruction);
    struct eval_step *step = add_step(eval, instruction, operation->op, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    step->code.variant = operation->variant;
    if (operation->can_fail)
        cuda_eval_can_fail(step, SX_FAILURE_DATE);
    if (swap)
        swap_arguments(step);
    return SX_OK;
}

static bool is_date_like(struct sx_type type) {
    return type.id == SX_TYPE_DATE || type.id == SX_TYPE_TIMESTAMP || type.id == SX_TYPE_INTERVAL;
}

/* ---- arithmetic ---- */

static enum cuda_eval_op arithmetic_op(enum sx_function function) {
    switch (function) {
    case SX_FN_ADD: return CUDA_EVAL_ADD;
    case SX_FN_SUB: return CUDA_EVAL_SUB;
    case SX_FN_MUL: return CUDA_EVAL_MUL;
    case SX_FN_DIV: return CUDA_EVAL_DIV;
    case SX_FN_INT_DIV: return CUDA_EVAL_INT_DIV;
    case SX_FN_MOD: return CUDA_EVAL_MOD;
    case SX_FN_NEG: return CUDA_EVAL_NEG;
    case SX_FN_ABS: return CUDA_EVAL_ABS;
    case SX_FN_ROUND: return CUDA_EVAL_ROUND;
    case SX_FN_FLOOR: return CUDA_EVAL_FLOOR;
    default: return CUDA_EVAL_CEIL;
    }
}

/* Decimals come to the result's representation first; the scales of a product's factors stay. */
static enum sx_status lower_decimals(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     int32_t out) {
    const struct sx_type type = instruction->type;
    struct sx_instruction converted = *instruction;
    if (instruction->function == SX_FN_DIV)
        return cuda_eval_unsupported(eval, instruction);
    for (int k = 0; k < sx_function_arguments(instruction->function); k++) {
        const struct sx_type argument = argument_type(eval, instruction, k);
        struct sx_type wanted = type;
        if (instruction->function == SX_FN_MUL && argument.id == SX_TYPE_DECIMAL)
            wanted.scale = argument.scale;
        SX_TRY(cuda_eval_lower_convert(eval, instruction, instruction->arguments[k], wanted,
                                       &converted.arguments[k]));
    }
    struct eval_step *step = add_step(eval, instruction, arithmetic_op(instruction->function), out);
    if (!step)
        return cuda_eval_no_memory(eval);
    for (int k = 0; k < step->code.n_arguments; k++)
        step->code.arguments[k] = converted.arguments[k];
    step->code.kind = step->code.to;
    cuda_eval_bounds(type, &step->code);
    const bool full = type.precision == SX_DECIMAL_MAX_I64_DIGITS || type.precision == SX_DECIMAL_MAX_DIGITS;
    if (full && instruction->function <= SX_FN_MUL)
        cuda_eval_can_fail(step, SX_FAILURE_ARITHMETIC);
    return SX_OK;
}

static bool is_float(struct sx_type type) {
    return type.id == SX_TYPE_F32 || type.id == SX_TYPE_F64;
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
    const bool is_number = is_float(type) || (sx_type_phys(type) <= SX_PHYS_U128 && type.id != SX_TYPE_BOOL &&
                                              instruction->function != SX_FN_DIV);
    if (!sx_type_equal(first, type) || !sx_type_equal(last, type) || !is_number)
        return cuda_eval_unsupported(eval, instruction);
    struct eval_step *step = add_step(eval, instruction, arithmetic_op(instruction->function), out);
    if (!step)
        return cuda_eval_no_memory(eval);
    const bool is_unsigned = sx_type_phys(type) >= SX_PHYS_U8;
    const bool divides = instruction->function == SX_FN_INT_DIV || instruction->function == SX_FN_MOD;
    if (is_float(type))
        return SX_OK;
    cuda_eval_bounds(type, &step->code);
    if (!is_unsigned || (n_arguments == 2 && !divides))
        cuda_eval_can_fail(step, SX_FAILURE_ARITHMETIC);
    return SX_OK;
}

/* FLOOR, CEIL, ROUND of decimals. ROUND's digits are a constant, since the result's scale follows from them.
 */
static enum sx_status lower_decimal_round(struct sx_eval *eval, const struct sx_instruction *instruction,
                                          int32_t out) {
    const struct sx_type from = argument_type(eval, instruction, 0), to = instruction->type;
    const bool is_round = instruction->function == SX_FN_ROUND;
    const struct sx_scalar *digits = is_round ? cuda_eval_constant(eval, instruction->arguments[1]) : NULL;
    if (to.id != SX_TYPE_DECIMAL || sx_type_phys(from) != sx_type_phys(to) || (is_round && !digits))
        return cuda_eval_unsupported(eval, instruction);
    const int64_t wanted = digits ? digits->v.i64 : 0;
    struct eval_step *step = add_step(eval, instruction, CUDA_EVAL_COPY, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    step->code.n_arguments = 1;
    if (wanted >= from.scale)
        return SX_OK;
    if (wanted < 0 && -wanted >= from.precision - from.scale) {
        step->code.op = CUDA_EVAL_ZERO; /* also for NULL, as in DuckDB */
        return SX_OK;
    }
    step->code.op = is_round                              ? CUDA_EVAL_DECIMAL_ROUND
                    : instruction->function == SX_FN_CEIL ? CUDA_EVAL_DECIMAL_CEIL
                                                          : CUDA_EVAL_DECIMAL_FLOOR;
    step->code.factor = sx_power_of_ten(from.scale - (int)wanted);
    step->code.high = (sx_u128)sx_power_of_ten(wanted < 0 ? (int)-wanted : 0);
    return SX_OK;
}

/* The host's powers, so that the device rounds as the CPU does. */
static enum sx_status add_powers(struct sx_eval *eval, const void **out_device) {
    enum { POWERS = 309 };
    double powers[POWERS];
    for (int i = 0; i < POWERS; i++)
        powers[i] = pow(10.0, i);
    return cuda_eval_add_list(eval, powers, sizeof powers, out_device);
}

static enum sx_status lower_round(struct sx_eval *eval, const struct sx_instruction *instruction,
                                  int32_t out) {
    const struct sx_type type = argument_type(eval, instruction, 0);
    const bool is_round = instruction->function == SX_FN_ROUND;
    const bool is_signed = sx_type_phys(type) <= SX_PHYS_I128;
    if (type.id == SX_TYPE_DECIMAL)
        return lower_decimal_round(eval, instruction, out);
    if (!sx_type_equal(type, instruction->type) || (!is_float(type) && !(is_round && is_signed)) ||
        (is_round && argument_type(eval, instruction, 1).id != SX_TYPE_I32))
        return cuda_eval_unsupported(eval, instruction);
    const void *powers = NULL;
    if (is_round && is_float(type))
        SX_TRY(add_powers(eval, &powers));
    struct eval_step *step = add_step(eval, instruction, arithmetic_op(instruction->function), out);
    if (!step)
        return cuda_eval_no_memory(eval);
    step->code.list = powers;
    return SX_OK;
}

/* ---- comparison ---- */

static bool are_comparable(struct sx_type a, struct sx_type b) {
    return a.id == b.id && a.scale == b.scale && sx_type_phys(a) == sx_type_phys(b);
}

static enum sx_status lower_compare(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t out) {
    static const struct {
        enum cuda_eval_op op;
        bool swap;
    } comparisons[] = {{CUDA_EVAL_EQ, false},       {CUDA_EVAL_NE, false},          {CUDA_EVAL_LT, false},
                       {CUDA_EVAL_LE, false},       {CUDA_EVAL_LT, true},           {CUDA_EVAL_LE, true},
                       {CUDA_EVAL_DISTINCT, false}, {CUDA_EVAL_NOT_DISTINCT, false}};
    if (!are_comparable(argument_type(eval, instruction, 0), argument_type(eval, instruction, 1)))
        return cuda_eval_unsupported(eval, instruction);
    const int at = (int)instruction->function - SX_FN_EQ;
    struct eval_step *step = add_step(eval, instruction, comparisons[at].op, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    if (comparisons[at].swap)
        swap_arguments(step);
    return SX_OK;
}

static int order_of(bool less, bool greater) {
    return less ? -1 : greater;
}

/* In the order that the device's search expects. */
#define LIST_ORDER(name, ctype, less)                              \
    static int order_##name(const void *left, const void *right) { \
        ctype a, b;                                                \
        memcpy(&a, left, sizeof a);                                \
        memcpy(&b, right, sizeof b);                               \
        return order_of(less(a, b), less(b, a));                   \
    }
#define NUMBER_LESS(a, b) ((a) < (b))
#define FLOAT_LESS(a, b)  sx_f64_less((double)(a), (double)(b))
#define STRING_LESS(a, b) (sx_string_compare(&(a), &(b)) < 0)
LIST_ORDER(i64, int64_t, NUMBER_LESS)
LIST_ORDER(u64, uint64_t, NUMBER_LESS)
LIST_ORDER(f32, float, FLOAT_LESS)
LIST_ORDER(f64, double, FLOAT_LESS)
LIST_ORDER(i128, sx_i128, NUMBER_LESS)
LIST_ORDER(u128, sx_u128, NUMBER_LESS)
LIST_ORDER(string, struct sx_string, STRING_LESS)

static void sort_list(enum cuda_eval_kind kind, struct cuda_eval_value *values, int32_t n) {
    static int (*const orders[])(const void *left, const void *right) = {
        [CUDA_EVAL_I64] = order_i64,      [CUDA_EVAL_U64] = order_u64,   [CUDA_EVAL_F32] = order_f32,
        [CUDA_EVAL_F64] = order_f64,      [CUDA_EVAL_I128] = order_i128, [CUDA_EVAL_U128] = order_u128,
        [CUDA_EVAL_STRING] = order_string};
    if (kind != CUDA_EVAL_INTERVAL)
        qsort(values, (size_t)n, sizeof *values, orders[kind]);
}

/* Long strings go behind the values; `device` is where the whole will be. */
static void move_strings(struct cuda_eval_value *values, int32_t n, char *bytes, const char *device) {
    size_t at = 0;
    for (int32_t k = 0; k < n; k++) {
        struct sx_string view;
        memcpy(&view, &values[k], sizeof view);
        if (view.length_bytes <= SX_STRING_INLINE_BYTES)
            continue;
        memcpy(bytes + at, view.u.ref.pointer, view.length_bytes);
        view.u.ref.pointer = device + at;
        memcpy(&values[k], &view, sizeof view);
        at += view.length_bytes;
    }
}

static size_t strings_bytes(const struct sx_scalar *constants, int32_t n) {
    size_t bytes = 0;
    for (int32_t k = 0; k < n; k++)
        if (constants[k].type.id == SX_TYPE_VARCHAR)
            bytes += constants[k].v.text.length_bytes;
    return bytes;
}

static enum sx_status add_value_list(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     const void **out_device) {
    const struct sx_type type = eval->types[instruction->arguments[0]];
    const int32_t n = instruction->list_count;
    const size_t values_bytes = (size_t)n * sizeof(struct cuda_eval_value);
    const size_t heap_bytes = strings_bytes(eval->program->constants + instruction->list_first, n);
    struct cuda_eval_value *values = calloc(1, values_bytes + heap_bytes + 1);
    struct sx_buffer **lists = realloc(eval->lists, ((size_t)eval->n_lists + 1) * sizeof *lists);
    enum sx_status status = SX_OK;
    struct sx_buffer *list = NULL;
    eval->lists = lists ? lists : eval->lists;
    if (!values || !lists)
        SX_GO(cuda_eval_no_memory(eval));
    memcpy(values, eval->host_constants + instruction->list_first, values_bytes);
    sort_list(cuda_eval_kind_of(type), values, n);
    SX_GO(sx_buffer_create(eval->stream->base.pool, values_bytes + heap_bytes, &list,
                           &eval->stream->base.error));
    if (type.id == SX_TYPE_VARCHAR)
        move_strings(values, n, (char *)(values + n), (char *)list->data + values_bytes);
    SX_GO(cuda_upload(eval->stream, list->data, values, values_bytes + heap_bytes));
    lists[eval->n_lists++] = list;
    *out_device = list->data;
    list = NULL;
out:
    sx_buffer_release(list);
    free(values);
    return status;
}

static enum sx_status lower_in_list(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t out) {
    const struct sx_type type = argument_type(eval, instruction, 0);
    const void *list;
    for (int32_t k = 0; k < instruction->list_count; k++)
        if (!are_comparable(type, eval->program->constants[instruction->list_first + k].type))
            return cuda_eval_unsupported(eval, instruction);
    SX_TRY(add_value_list(eval, instruction, &list));
    struct eval_step *step = add_step(eval, instruction, CUDA_EVAL_IN_LIST, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    step->code.list = list;
    step->code.place = instruction->list_count;
    return SX_OK;
}

/* ---- logic and choices ---- */

static enum sx_status lower_logic(struct sx_eval *eval, const struct sx_instruction *instruction,
                                  int32_t out) {
    static const enum cuda_eval_op ops[] = {CUDA_EVAL_AND,     CUDA_EVAL_OR,          CUDA_EVAL_NOT,
                                            CUDA_EVAL_IS_NULL, CUDA_EVAL_IS_NOT_NULL, CUDA_EVAL_IS_TRUE};
    return add_plain(eval, instruction, ops[instruction->function - SX_FN_AND], out);
}

static enum sx_status lower_choose(struct sx_eval *eval, const struct sx_instruction *instruction,
                                   int32_t out) {
    const struct sx_type type = instruction->type;
    const int first = instruction->function == SX_FN_CHOOSE;
    const int end = instruction->function == SX_FN_CONSTANT_OR_NULL ? 1 : first + 2;
    for (int k = first; k < end; k++)
        if (!are_comparable(argument_type(eval, instruction, k), type))
            return cuda_eval_unsupported(eval, instruction);
    return add_plain(eval, instruction,
                     instruction->function == SX_FN_CHOOSE     ? CUDA_EVAL_CHOOSE
                     : instruction->function == SX_FN_COALESCE ? CUDA_EVAL_COALESCE
                                                               : CUDA_EVAL_COPY,
                     out);
}

/* ---- strings ---- */

static bool all_varchar(const struct sx_eval *eval, const struct sx_instruction *instruction, int n) {
    for (int k = 0; k < n; k++)
        if (argument_type(eval, instruction, k).id != SX_TYPE_VARCHAR)
            return false;
    return true;
}

/* Whether a pattern that is a constant ends with its escape. */
static bool has_dangling_escape(const struct sx_scalar *pattern, char escape) {
    for (uint32_t i = 0; i < pattern->v.text.length_bytes; i++)
        if (pattern->v.text.bytes[i] == escape && ++i == pattern->v.text.length_bytes)
            return true;
    return false;
}

static enum sx_status lower_like(struct sx_eval *eval, const struct sx_instruction *instruction,
                                 int32_t out) {
    const enum sx_function function = instruction->function;
    const int n_arguments = sx_function_arguments(function);
    if (!all_varchar(eval, instruction, n_arguments))
        return cuda_eval_unsupported(eval, instruction);
    struct eval_step *step = add_step(eval, instruction, CUDA_EVAL_LIKE, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    step->code.variant = function == SX_FN_NOT_LIKE || function == SX_FN_NOT_LIKE_ESCAPE;
    if (n_arguments == 2)
        return SX_OK;
    const struct sx_scalar *pattern = cuda_eval_constant(eval, instruction->arguments[1]);
    const struct sx_scalar *escape = cuda_eval_constant(eval, instruction->arguments[2]);
    const bool is_safe =
        pattern && escape &&
        (escape->v.text.length_bytes == 0 ||
         (escape->v.text.length_bytes == 1 && !has_dangling_escape(pattern, escape->v.text.bytes[0])));
    if (!is_safe)
        cuda_eval_can_fail(step, SX_FAILURE_STRING);
    return SX_OK;
}

static bool is_safe_offset(const struct sx_scalar *constant) {
    return constant && constant->v.i64 >= -(INT64_C(1) << 32) && constant->v.i64 <= UINT32_MAX;
}

static enum sx_status lower_substring(struct sx_eval *eval, const struct sx_instruction *instruction,
                                      int32_t out) {
    if (!all_varchar(eval, instruction, 1) || argument_type(eval, instruction, 1).id != SX_TYPE_I64 ||
        argument_type(eval, instruction, 2).id != SX_TYPE_I64)
        return cuda_eval_unsupported(eval, instruction);
    struct eval_step *step = add_step(eval, instruction, CUDA_EVAL_SUBSTRING, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    if (!is_safe_offset(cuda_eval_constant(eval, instruction->arguments[1])) ||
        !is_safe_offset(cuda_eval_constant(eval, instruction->arguments[2])))
        cuda_eval_can_fail(step, SX_FAILURE_STRING);
    return SX_OK;
}

static enum sx_status lower_string(struct sx_eval *eval, const struct sx_instruction *instruction,
                                   enum cuda_eval_op op, int32_t out) {
    if (!all_varchar(eval, instruction, sx_function_arguments(instruction->function)))
        return cuda_eval_unsupported(eval, instruction);
    struct eval_step *step = add_step(eval, instruction, op, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    step->code.variant = instruction->function == SX_FN_CONCAT_SKIP_NULL;
    if (op == CUDA_EVAL_CONCAT || op == CUDA_EVAL_FAIL)
        cuda_eval_can_fail(step, SX_FAILURE_STRING);
    return SX_OK;
}

/* ---- averages ---- */

static enum sx_status lower_average(struct sx_eval *eval, const struct sx_instruction *instruction,
                                    int32_t out) {
    const struct sx_type sum = argument_type(eval, instruction, 0);
    if (!sx_average_takes(sum, argument_type(eval, instruction, 1)))
        return cuda_eval_unsupported(eval, instruction);
    struct eval_step *step = add_step(eval, instruction, CUDA_EVAL_AVERAGE, out);
    if (!step)
        return cuda_eval_no_memory(eval);
    step->code.factor_f64 = sx_average_scale(sum);
    return SX_OK;
}

/* ---- all ---- */

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

enum sx_status cuda_eval_lower(struct sx_eval *eval, const struct sx_instruction *instruction, int32_t out) {
    if (is_null_always(eval, instruction))
        return add_plain(eval, instruction, CUDA_EVAL_NOTHING, out);
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
    case SX_FN_TRY_CAST: return cuda_eval_lower_cast(eval, instruction, out);
    case SX_FN_LIKE:
    case SX_FN_NOT_LIKE:
    case SX_FN_LIKE_ESCAPE:
    case SX_FN_NOT_LIKE_ESCAPE: return lower_like(eval, instruction, out);
    case SX_FN_ERROR: return lower_string(eval, instruction, CUDA_EVAL_FAIL, out);
    case SX_FN_PREFIX: return lower_string(eval, instruction, CUDA_EVAL_PREFIX, out);
    case SX_FN_SUFFIX: return lower_string(eval, instruction, CUDA_EVAL_SUFFIX, out);
    case SX_FN_CONTAINS: return lower_string(eval, instruction, CUDA_EVAL_CONTAINS, out);
    case SX_FN_UPPER: return lower_string(eval, instruction, CUDA_EVAL_UPPER, out);
    case SX_FN_LOWER: return lower_string(eval, instruction, CUDA_EVAL_LOWER, out);
    case SX_FN_LENGTH: return lower_string(eval, instruction, CUDA_EVAL_LENGTH, out);
    case SX_FN_CONCAT:
    case SX_FN_CONCAT_SKIP_NULL: return lower_string(eval, instruction, CUDA_EVAL_CONCAT, out);
    case SX_FN_SUBSTRING: return lower_substring(eval, instruction, out);
    case SX_FN_YEAR:
    case SX_FN_MONTH:
    case SX_FN_DAY: return lower_dates(eval, instruction, out);
    case SX_FN_AVERAGE: return lower_average(eval, instruction, out);
    case SX_FN_COUNT: break;
    }
    return cuda_eval_unsupported(eval, instruction);
}
