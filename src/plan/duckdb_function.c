/* DuckDB's scalar functions, by name and argument types -> the functions of tensor/function.h. */
#include <string.h>

#include "plan/duckdb_convert.h"
#include "plan/text.h"

struct call {
    struct sx_convert *c;
    enum sx_function function;
    struct sx_type type; /* of the result */
    struct sx_expression **arguments;
    int32_t n;
};

/* Gives the expression, or NULL: with an error in the builder, or without one where the types don't fit. */
typedef struct sx_expression *(*convert_fn)(const struct call *call);

static bool is_integer(struct sx_type type) {
    return type.id >= SX_TYPE_I8 && type.id <= SX_TYPE_U128;
}

static bool is_float(struct sx_type type) {
    return type.id == SX_TYPE_F32 || type.id == SX_TYPE_F64;
}

static bool is_number(struct sx_type type) {
    return is_integer(type) || is_float(type) || type.id == SX_TYPE_DECIMAL;
}

static bool is_moment(struct sx_type type) {
    return type.id == SX_TYPE_DATE || type.id == SX_TYPE_TIMESTAMP;
}

static enum sx_type_id id_of(const struct call *call, int32_t argument) {
    return call->arguments[argument]->type.id;
}

static struct sx_expression *make(const struct call *call) {
    return sx_build_call(&call->c->b, call->function, call->type, call->arguments, call->n);
}

static struct sx_expression *make_of(const struct call *call, struct sx_expression *first,
                                     struct sx_expression *second) {
    return sx_build_call(&call->c->b, call->function, call->type, (struct sx_expression *[]){first, second},
                         2);
}

/* ---- arithmetic ---- */

/* The argument in the result's representation, with its own scale. */
static struct sx_expression *decimal_argument(const struct call *call, int32_t argument) {
    struct sx_expression *expression = call->arguments[argument];
    if (sx_type_phys(expression->type) == sx_type_phys(call->type))
        return expression;
    return sx_build_cast(&call->c->b, expression,
                         sx_type_decimal(call->type.precision, expression->type.scale));
}

static struct sx_expression *decimal_arithmetic(const struct call *call) {
    if (id_of(call, 0) != SX_TYPE_DECIMAL || id_of(call, 1) != SX_TYPE_DECIMAL)
        return NULL;
    const int scale_a = call->arguments[0]->type.scale, scale_b = call->arguments[1]->type.scale;
    const int wanted = call->function == SX_FN_MUL ? scale_a + scale_b : scale_a;
    if (call->type.scale != wanted || (call->function != SX_FN_MUL && scale_a != scale_b))
        return NULL;
    return make_of(call, decimal_argument(call, 0), decimal_argument(call, 1));
}

static struct sx_expression *number_arithmetic(const struct call *call) {
    if (call->type.id == SX_TYPE_DECIMAL)
        return decimal_arithmetic(call);
    if (!is_number(call->type) || id_of(call, 0) != call->type.id || id_of(call, 1) != call->type.id)
        return NULL;
    return make(call);
}

static struct sx_expression *moment_add(const struct call *call) {
    const enum sx_type_id a = id_of(call, 0), b = id_of(call, 1);
    if (is_moment(call->arguments[1]->type) && (a == SX_TYPE_INTERVAL || a == SX_TYPE_I32))
        return moment_add(&(struct call){call->c, call->function, call->type,
                                         (struct sx_expression *[]){call->arguments[1], call->arguments[0]},
                                         2});
    if (is_moment(call->arguments[0]->type) && b == SX_TYPE_INTERVAL && call->type.id == SX_TYPE_TIMESTAMP)
        return make(call);
    if (a == SX_TYPE_DATE && b == SX_TYPE_I32 && call->type.id == SX_TYPE_DATE)
        return make(call);
    return NULL;
}

static struct sx_expression *moment_subtract(const struct call *call) {
    const enum sx_type_id a = id_of(call, 0), b = id_of(call, 1);
    if (a == SX_TYPE_DATE && b == SX_TYPE_DATE && call->type.id == SX_TYPE_I64)
        return make(call);
    if (a == SX_TYPE_TIMESTAMP && b == SX_TYPE_TIMESTAMP && call->type.id == SX_TYPE_INTERVAL)
        return make(call);
    return is_moment(call->arguments[0]->type) ? moment_add(call) : NULL;
}

static struct sx_expression *convert_add(const struct call *call) {
    if (call->n == 1)
        return is_number(call->arguments[0]->type) ? call->arguments[0] : NULL;
    if (call->n != 2)
        return NULL;
    struct sx_expression *sum = number_arithmetic(call);
    return sum ? sum : moment_add(call);
}

static struct sx_expression *convert_subtract(const struct call *call) {
    if (call->n == 1 && sx_type_equal(call->arguments[0]->type, call->type) && is_number(call->type))
        return sx_build_unary(&call->c->b, SX_FN_NEG, call->type, call->arguments[0]);
    if (call->n != 2)
        return NULL;
    struct sx_expression *difference = number_arithmetic(call);
    return difference ? difference : moment_subtract(call);
}

static struct sx_expression *convert_arithmetic(const struct call *call) {
    return call->n == 2 ? number_arithmetic(call) : NULL;
}

/* What is under a cast to DOUBLE, or the expression itself. */
static const struct sx_expression *below_cast(const struct sx_expression *expression) {
    const bool is_cast = expression->kind == SX_EXPR_CALL && expression->function == SX_FN_CAST &&
                         expression->type.id == SX_TYPE_F64;
    return is_cast ? expression->arguments[0] : expression;
}

/* At most. */
static int integer_digits(struct sx_type type) {
    switch (sx_type_bytes(type)) {
    case 1: return 3;
    case 2: return 5;
    case 4: return 10;
    case 8: return 20;
    default: return 39;
    }
}

/* Digits in front of the point and behind it of what may be, or have been, a decimal. A constant's have been
 * lost: as many as it takes. */
static bool read_digits(const struct sx_expression *expression, int *out_whole, int *out_scale) {
    const struct sx_type type = below_cast(expression)->type;
    if (expression->kind == SX_EXPR_CONSTANT)
        *out_whole = 1, *out_scale = SX_DECIMAL_MAX_DIGITS;
    else if (type.id == SX_TYPE_DECIMAL)
        *out_whole = type.precision - type.scale, *out_scale = type.scale;
    else if (is_integer(type))
        *out_whole = integer_digits(type), *out_scale = 0;
    else
        return false;
    return true;
}

/* Whether DuckDB's binder may have made the modulo of decimals one of doubles, since no decimal holds both:
 * then x % 0 is NULL, and NaN where the doubles are the statement's. Plans do not tell. */
static bool is_unclear_modulo(const struct call *call) {
    const struct sx_expression *left = call->arguments[0], *right = call->arguments[1];
    int whole_left, whole_right, scale_left, scale_right;
    if (call->type.id != SX_TYPE_F64 || (right->kind == SX_EXPR_CONSTANT && right->constant.v.f64 != 0) ||
        (below_cast(left)->type.id != SX_TYPE_DECIMAL && below_cast(right)->type.id != SX_TYPE_DECIMAL) ||
        !read_digits(left, &whole_left, &scale_left) || !read_digits(right, &whole_right, &scale_right))
        return false;
    const int whole = whole_left > whole_right ? whole_left : whole_right;
    return whole + (scale_left > scale_right ? scale_left : scale_right) > SX_DECIMAL_MAX_DIGITS;
}

static struct sx_expression *convert_modulo(const struct call *call) {
    return call->n == 2 && is_unclear_modulo(call) ? NULL : convert_arithmetic(call);
}

static struct sx_expression *convert_float_arithmetic(const struct call *call) {
    return call->n == 2 && is_float(call->type) ? number_arithmetic(call) : NULL;
}

static struct sx_expression *convert_integer_division(const struct call *call) {
    return call->n == 2 && call->type.id != SX_TYPE_DECIMAL ? number_arithmetic(call) : NULL;
}

static struct sx_expression *convert_abs(const struct call *call) {
    if (call->n != 1 || !is_number(call->type) || !sx_type_equal(call->arguments[0]->type, call->type))
        return NULL;
    return make(call);
}

static struct sx_expression *convert_round(const struct call *call) {
    if (call->n < 1 || call->n > 2 || call->type.id != id_of(call, 0) || !is_number(call->type))
        return NULL;
    if (call->n == 1 && is_integer(call->type))
        return call->arguments[0];
    struct sx_expression *digits =
        call->n == 2 ? call->arguments[1] : sx_build_integer(&call->c->b, SX_TYPE_I32, 0);
    if (!digits || digits->type.id != SX_TYPE_I32)
        return NULL;
    if (call->type.id == SX_TYPE_DECIMAL && digits->kind != SX_EXPR_CONSTANT)
        return NULL;
    return make_of(call, call->arguments[0], digits);
}

static struct sx_expression *convert_floor(const struct call *call) {
    if (call->n != 1 || call->type.id != id_of(call, 0))
        return NULL;
    if (is_integer(call->type))
        return call->arguments[0];
    return is_number(call->type) ? make(call) : NULL;
}

/* ---- text ---- */

static bool all_text(const struct call *call, int32_t first) {
    for (int32_t i = first; i < call->n; i++)
        if (id_of(call, i) != SX_TYPE_VARCHAR)
            return false;
    return true;
}

static struct sx_expression *convert_text(const struct call *call) {
    return call->n == sx_function_arguments(call->function) && all_text(call, 0) ? make(call) : NULL;
}

static struct sx_expression *convert_concat(const struct call *call) {
    struct sx_expression *empty = sx_build_constant(
        &call->c->b, &(struct sx_scalar){.type = sx_type_of(SX_TYPE_VARCHAR), .v.text.bytes = ""});
    struct sx_expression **arguments = SX_ARENA_ARRAY(call->c->b.arena, call->n + 1, struct sx_expression *);
    if (!empty || !arguments || call->n == 0)
        return NULL;
    for (int32_t i = 0; i < call->n; i++) {
        arguments[i] = call->arguments[i];
        if (id_of(call, i) == SX_TYPE_NULLTYPE)
            arguments[i] = empty;
        else if (id_of(call, i) != SX_TYPE_VARCHAR)
            return NULL;
    }
    arguments[call->n] = empty;
    return sx_build_call(&call->c->b, call->function, call->type, arguments, call->n > 1 ? call->n : 2);
}

static const int64_t no_limit = UINT32_MAX; /* characters of a text */

/* Whether it is chosen among constants alone, so that DuckDB may know that it is ASCII. */
static bool is_known_text(const struct sx_expression *text) {
    if (text->kind == SX_EXPR_CALL && (text->function == SX_FN_UPPER || text->function == SX_FN_LOWER))
        return is_known_text(text->arguments[0]);
    if (text->kind != SX_EXPR_CASE)
        return text->kind == SX_EXPR_CONSTANT;
    for (int32_t i = 0; i < text->n_arguments; i++) {
        const bool is_condition = i % 2 == 0 && i + 1 < text->n_arguments;
        if (!is_condition && !is_known_text(text->arguments[i]))
            return false;
    }
    return true;
}

void sx_convert_note_text(struct sx_convert *c, const struct sx_expression *expression) {
    c->has_known_texts |= expression->type.id == SX_TYPE_VARCHAR && is_known_text(expression);
}

/* A number of at least `least` that is known here. */
static bool is_from(const struct sx_expression *number, int64_t least) {
    return number->kind == SX_EXPR_CONSTANT && !number->constant.is_null && number->constant.v.i64 >= least;
}

/* Of what it knows to be ASCII DuckDB counts from another place where the begin is in front of the text: of
 * constants, and of columns that have come from some. */
static struct sx_expression *convert_substring(const struct call *call) {
    if ((call->n != 2 && call->n != 3) || id_of(call, 0) != SX_TYPE_VARCHAR)
        return NULL;
    const bool may_be_known = is_known_text(call->arguments[0]) || call->c->has_known_texts;
    for (int32_t i = 1; i < call->n; i++)
        if (id_of(call, i) != SX_TYPE_I64 || (may_be_known && !is_from(call->arguments[i], i == 1)))
            return NULL;
    if (call->n == 3)
        return make(call);
    struct sx_expression *length = sx_build_integer(&call->c->b, SX_TYPE_I64, no_limit);
    return sx_build_call(&call->c->b, call->function, call->type,
                         (struct sx_expression *[]){call->arguments[0], call->arguments[1], length}, 3);
}

/* The first or last n characters; n <= 0 is left to DuckDB. */
static struct sx_expression *convert_end(const struct call *call, bool is_left) {
    struct sx_builder *b = &call->c->b;
    const struct sx_expression *count = call->n == 2 ? call->arguments[1] : NULL;
    if (!count || id_of(call, 0) != SX_TYPE_VARCHAR || count->type.id != SX_TYPE_I64 || !is_from(count, 1) ||
        count->constant.v.i64 > INT32_MAX)
        return NULL;
    const int64_t n = count->constant.v.i64;
    struct sx_expression *arguments[] = {call->arguments[0],
                                         sx_build_integer(b, SX_TYPE_I64, is_left ? 1 : -n),
                                         sx_build_integer(b, SX_TYPE_I64, is_left ? n : no_limit)};
    return sx_build_call(b, SX_FN_SUBSTRING, call->type, arguments, 3);
}

static struct sx_expression *convert_left(const struct call *call) {
    return convert_end(call, true);
}

static struct sx_expression *convert_right(const struct call *call) {
    return convert_end(call, false);
}

/* A constant is made small here where that is plain, so that it is looked at once. */
static struct sx_expression *lower_pattern(struct sx_builder *b, struct sx_expression *pattern) {
    const struct sx_scalar *value = &pattern->constant;
    if (pattern->kind != SX_EXPR_CONSTANT || value->is_null)
        return sx_build_unary(b, SX_FN_LOWER, pattern->type, pattern);
    const uint32_t n = value->v.text.length_bytes;
    char *bytes = SX_ARENA_ARRAY(b->arena, (size_t)n + 1, char);
    for (uint32_t i = 0; bytes && i < n; i++) {
        const char c = value->v.text.bytes[i];
        if ((unsigned char)c >= 0x80)
            return sx_build_unary(b, SX_FN_LOWER, pattern->type, pattern);
        bytes[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    struct sx_scalar lowered = *value;
    lowered.v.text.bytes = bytes;
    return bytes ? sx_build_constant(b, &lowered) : sx_build_no_memory(b);
}

static struct sx_expression *convert_ilike(const struct call *call) {
    struct sx_builder *b = &call->c->b;
    if (call->n != 2 || !all_text(call, 0))
        return NULL;
    return make_of(call, sx_build_unary(b, SX_FN_LOWER, call->arguments[0]->type, call->arguments[0]),
                   lower_pattern(b, call->arguments[1]));
}

/* ---- the rest ---- */

static struct sx_expression *convert_date_part(const struct call *call) {
    return call->n == 1 && is_moment(call->arguments[0]->type) && call->type.id == SX_TYPE_I64 ? make(call)
                                                                                               : NULL;
}

static struct sx_expression *convert_constant_or_null(const struct call *call) {
    struct sx_expression *value = call->arguments[0];
    for (int32_t i = 1; i < call->n; i++)
        value = make_of(call, value, call->arguments[i]);
    return value;
}

static const struct {
    const char *name;
    enum sx_function function;
    convert_fn convert;
} functions[] = {
    {"+", SX_FN_ADD, convert_add},
    {"add", SX_FN_ADD, convert_add},
    {"-", SX_FN_SUB, convert_subtract},
    {"subtract", SX_FN_SUB, convert_subtract},
    {"*", SX_FN_MUL, convert_arithmetic},
    {"multiply", SX_FN_MUL, convert_arithmetic},
    {"/", SX_FN_DIV, convert_float_arithmetic},
    {"//", SX_FN_INT_DIV, convert_integer_division},
    {"divide", SX_FN_INT_DIV, convert_integer_division},
    {"%", SX_FN_MOD, convert_modulo},
    {"mod", SX_FN_MOD, convert_modulo},
    {"abs", SX_FN_ABS, convert_abs},
    {"@", SX_FN_ABS, convert_abs},
    {"round", SX_FN_ROUND, convert_round},
    {"floor", SX_FN_FLOOR, convert_floor},
    {"ceil", SX_FN_CEIL, convert_floor},
    {"ceiling", SX_FN_CEIL, convert_floor},
    {"~~", SX_FN_LIKE, convert_text},
    {"!~~", SX_FN_NOT_LIKE, convert_text},
    {"~~*", SX_FN_LIKE, convert_ilike},
    {"!~~*", SX_FN_NOT_LIKE, convert_ilike},
    {"like_escape", SX_FN_LIKE_ESCAPE, convert_text},
    {"not_like_escape", SX_FN_NOT_LIKE_ESCAPE, convert_text},
    {"prefix", SX_FN_PREFIX, convert_text},
    {"starts_with", SX_FN_PREFIX, convert_text},
    {"^@", SX_FN_PREFIX, convert_text},
    {"suffix", SX_FN_SUFFIX, convert_text},
    {"ends_with", SX_FN_SUFFIX, convert_text},
    {"contains", SX_FN_CONTAINS, convert_text},
    {"substring", SX_FN_SUBSTRING, convert_substring},
    {"substr", SX_FN_SUBSTRING, convert_substring},
    {"left", SX_FN_SUBSTRING, convert_left},
    {"right", SX_FN_SUBSTRING, convert_right},
    {"upper", SX_FN_UPPER, convert_text},
    {"ucase", SX_FN_UPPER, convert_text},
    {"lower", SX_FN_LOWER, convert_text},
    {"lcase", SX_FN_LOWER, convert_text},
    {"length", SX_FN_LENGTH, convert_text},
    {"len", SX_FN_LENGTH, convert_text},
    {"char_length", SX_FN_LENGTH, convert_text},
    {"character_length", SX_FN_LENGTH, convert_text},
    {"||", SX_FN_CONCAT, convert_text},
    {"concat", SX_FN_CONCAT_SKIP_NULL, convert_concat},
    {"year", SX_FN_YEAR, convert_date_part},
    {"month", SX_FN_MONTH, convert_date_part},
    {"day", SX_FN_DAY, convert_date_part},
    {"dayofmonth", SX_FN_DAY, convert_date_part},
    {"error", SX_FN_ERROR, convert_text},
    {"constant_or_null", SX_FN_CONSTANT_OR_NULL, convert_constant_or_null},
};

static struct sx_expression *unsupported(struct sx_convert *c, const char *name,
                                         struct sx_expression **arguments, int32_t n_arguments) {
    struct sx_text text = {.arena = c->b.arena};
    char type_name[SX_TYPE_NAME_BYTES];
    sx_text_add(&text, "function %s(", name);
    for (int32_t i = 0; i < n_arguments; i++)
        sx_text_add(&text, "%s%s", i ? ", " : "", sx_type_name(arguments[i]->type, type_name));
    sx_text_add(&text, ")");
    return text.failed ? sx_build_no_memory(&c->b) : sx_build_unsupported(&c->b, "%s", text.bytes);
}

struct sx_expression *sx_convert_function(struct sx_convert *c, const char *name, struct sx_type type,
                                          struct sx_expression **arguments, int32_t n_arguments) {
    for (size_t i = 0; n_arguments > 0 && i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(name, functions[i].name) != 0)
            continue;
        const struct call call = {c, functions[i].function, type, arguments, n_arguments};
        struct sx_expression *expression = functions[i].convert(&call);
        if (expression || (c->b.error && c->b.error->status != SX_OK))
            return expression;
    }
    return unsupported(c, name, arguments, n_arguments);
}
