#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/build.h"

void *sx_build_no_memory(struct sx_builder *b) {
    (void)sx_error_set(b->error, SX_OUT_OF_MEMORY, "no memory for the plan");
    return NULL;
}

static void set_error(struct sx_builder *b, enum sx_status status, const char *prefix, const char *format,
                      va_list values) {
    char text[SX_ERROR_TEXT_BYTES / 2];
    vsnprintf(text, sizeof text, format, values);
    (void)sx_error_set(b->error, status, "%s%s", prefix, text);
}

void *sx_build_unsupported(struct sx_builder *b, const char *format, ...) {
    va_list values;
    va_start(values, format);
    set_error(b, SX_UNSUPPORTED, "", format, values);
    va_end(values);
    return NULL;
}

void *sx_build_malformed(struct sx_builder *b, const char *format, ...) {
    va_list values;
    va_start(values, format);
    set_error(b, SX_INTERNAL, "DuckDB's plan has an unexpected shape: ", format, values);
    va_end(values);
    return NULL;
}

bool sx_build_enter(struct sx_builder *b) {
    if (b->depth >= SX_PLAN_MAX_DEPTH)
        return sx_build_unsupported(b, "a plan nested deeper than %d levels", SX_PLAN_MAX_DEPTH);
    b->depth++;
    return true;
}

void sx_build_leave(struct sx_builder *b) {
    b->depth--;
}

static struct sx_expression *new_expression(struct sx_builder *b, enum sx_expression_kind kind,
                                            struct sx_type type) {
    struct sx_expression *expression = SX_ARENA_NEW(b->arena, struct sx_expression);
    if (!expression)
        return sx_build_no_memory(b);
    expression->kind = kind;
    expression->type = type;
    return expression;
}

struct sx_expression *sx_build_column(struct sx_builder *b, int32_t column, struct sx_type type) {
    struct sx_expression *expression = new_expression(b, SX_EXPR_COLUMN, type);
    if (expression)
        expression->column = column;
    return expression;
}

struct sx_expression *sx_build_constant(struct sx_builder *b, const struct sx_scalar *value) {
    struct sx_expression *expression = new_expression(b, SX_EXPR_CONSTANT, value->type);
    if (expression)
        expression->constant = *value;
    return expression;
}

struct sx_expression *sx_build_integer(struct sx_builder *b, enum sx_type_id type, int64_t value) {
    return sx_build_constant(b, &(struct sx_scalar){.type = sx_type_of(type), .v.i64 = value});
}

struct sx_expression *sx_build_null(struct sx_builder *b, struct sx_type type) {
    return sx_build_constant(b, &(struct sx_scalar){.type = type, .is_null = true});
}

struct sx_expression *sx_build_node(struct sx_builder *b, enum sx_expression_kind kind, struct sx_type type,
                                    struct sx_expression *const *arguments, int32_t n_arguments) {
    struct sx_expression *expression = new_expression(b, kind, type);
    if (!expression)
        return NULL;
    expression->arguments = SX_ARENA_ARRAY(b->arena, n_arguments, struct sx_expression *);
    if (!expression->arguments)
        return sx_build_no_memory(b);
    expression->n_arguments = n_arguments;
    for (int32_t i = 0; i < n_arguments; i++) {
        if (!arguments[i])
            return NULL;
        expression->arguments[i] = arguments[i];
    }
    return expression;
}

struct sx_expression *sx_build_call(struct sx_builder *b, enum sx_function function, struct sx_type type,
                                    struct sx_expression *const *arguments, int32_t n_arguments) {
    struct sx_expression *expression = sx_build_node(b, SX_EXPR_CALL, type, arguments, n_arguments);
    if (expression)
        expression->function = function;
    return expression;
}

struct sx_expression *sx_build_unary(struct sx_builder *b, enum sx_function function, struct sx_type type,
                                     struct sx_expression *argument) {
    return sx_build_call(b, function, type, &argument, 1);
}

struct sx_expression *sx_build_cast(struct sx_builder *b, struct sx_expression *expression,
                                    struct sx_type type) {
    if (!expression || sx_type_equal(expression->type, type))
        return expression;
    if (expression->kind == SX_EXPR_CONSTANT && expression->constant.is_null)
        return sx_build_null(b, type);
    if (expression->kind == SX_EXPR_CALL && expression->function == SX_FN_ERROR)
        return sx_build_call(b, SX_FN_ERROR, type, expression->arguments, expression->n_arguments);
    return sx_build_unary(b, SX_FN_CAST, type, expression);
}

struct sx_expression *sx_build_compare(struct sx_builder *b, enum sx_function function,
                                       struct sx_expression *left, struct sx_expression *right) {
    if (!left || !right)
        return NULL;
    struct sx_type a = left->type, c = right->type;
    if (a.id == SX_TYPE_DECIMAL && c.id == SX_TYPE_DECIMAL && a.scale == c.scale) {
        struct sx_type wide = a.precision > c.precision ? a : c;
        left = sx_build_cast(b, left, wide);
        right = sx_build_cast(b, right, wide);
    } else if (a.id == SX_TYPE_NULLTYPE) {
        left = sx_build_cast(b, left, c);
    } else if (c.id == SX_TYPE_NULLTYPE) {
        right = sx_build_cast(b, right, a);
    } else if (!sx_type_equal(a, c)) {
        char name_a[SX_TYPE_NAME_BYTES], name_c[SX_TYPE_NAME_BYTES];
        return sx_build_malformed(b, "a comparison of %s with %s", sx_type_name(a, name_a),
                                  sx_type_name(c, name_c));
    }
    if (a.id == SX_TYPE_INTERVAL)
        return sx_build_unsupported(b, "comparison of type INTERVAL");
    return sx_build_call(b, function, sx_type_of(SX_TYPE_BOOL), (struct sx_expression *[]){left, right}, 2);
}

/* ---- looking at expressions ---- */

bool sx_scalar_same(const struct sx_scalar *a, const struct sx_scalar *b) {
    if (!sx_type_equal(a->type, b->type) || a->is_null != b->is_null)
        return false;
    if (a->is_null)
        return true;
    switch (sx_type_phys(a->type)) {
    case SX_PHYS_STRING:
        return a->v.text.length_bytes == b->v.text.length_bytes &&
               memcmp(a->v.text.bytes, b->v.text.bytes, a->v.text.length_bytes) == 0;
    case SX_PHYS_I128:
    case SX_PHYS_U128: return a->v.u128 == b->v.u128;
    case SX_PHYS_F32: return (uint32_t)a->v.u64 == (uint32_t)b->v.u64; /* bit by bit, also NaN and -0 */
    case SX_PHYS_INTERVAL:
        return a->v.interval.months == b->v.interval.months && a->v.interval.days == b->v.interval.days &&
               a->v.interval.micros == b->v.interval.micros;
    default: break;
    }
    if (a->type.id == SX_TYPE_BOOL)
        return a->v.b == b->v.b;
    return a->v.u64 == b->v.u64; /* F64 too: by bits */
}

bool sx_expression_equal(const struct sx_expression *a, const struct sx_expression *b) {
    if (a == b)
        return true;
    if (a->kind != b->kind || !sx_type_equal(a->type, b->type) || a->n_arguments != b->n_arguments)
        return false;
    if (a->kind == SX_EXPR_COLUMN)
        return a->column == b->column;
    if (a->kind == SX_EXPR_CONSTANT)
        return sx_scalar_same(&a->constant, &b->constant);
    if (a->kind == SX_EXPR_CALL && a->function != b->function)
        return false;
    for (int32_t i = 0; i < a->n_arguments; i++)
        if (!sx_expression_equal(a->arguments[i], b->arguments[i]))
            return false;
    return true;
}

static bool function_fallible(const struct sx_expression *call) {
    const enum sx_type_id type = call->type.id;
    const bool floating = type == SX_TYPE_F32 || type == SX_TYPE_F64;
    switch (call->function) {
    case SX_FN_ADD:
    case SX_FN_SUB:
    case SX_FN_MUL:
    case SX_FN_INT_DIV:
    case SX_FN_MOD:
    case SX_FN_NEG:
    case SX_FN_ABS:
    case SX_FN_ROUND:
    case SX_FN_FLOOR:
    case SX_FN_CEIL: return !floating;
    case SX_FN_CAST:
    case SX_FN_ERROR:
    case SX_FN_LIKE_ESCAPE:
    case SX_FN_NOT_LIKE_ESCAPE:
    case SX_FN_SUBSTRING: return true;
    default: return false;
    }
}

bool sx_expression_fallible(const struct sx_expression *expression) {
    if (expression->kind == SX_EXPR_CALL && function_fallible(expression))
        return true;
    for (int32_t i = 0; i < expression->n_arguments; i++)
        if (sx_expression_fallible(expression->arguments[i]))
            return true;
    return false;
}

bool sx_expression_within(const struct sx_expression *expression, int32_t first, int32_t count) {
    if (expression->kind == SX_EXPR_COLUMN)
        return expression->column >= first && expression->column < first + count;
    for (int32_t i = 0; i < expression->n_arguments; i++)
        if (!sx_expression_within(expression->arguments[i], first, count))
            return false;
    return true;
}

void sx_expression_mark(const struct sx_expression *expression, bool *marks) {
    if (expression->kind == SX_EXPR_COLUMN)
        marks[expression->column] = true;
    for (int32_t i = 0; i < expression->n_arguments; i++)
        sx_expression_mark(expression->arguments[i], marks);
}

/* ---- copies ---- */

struct replacement {
    const int32_t *map;
    struct sx_expression *const *expressions; /* instead of map */
};

static struct sx_expression *replace_columns(struct sx_builder *b, const struct sx_expression *expression,
                                             const struct replacement *replacement) {
    if (expression->kind == SX_EXPR_COLUMN) {
        if (replacement->map)
            return sx_build_column(b, replacement->map[expression->column], expression->type);
        return replacement->expressions[expression->column];
    }
    struct sx_expression *copy = SX_ARENA_NEW(b->arena, struct sx_expression);
    if (!copy)
        return sx_build_no_memory(b);
    *copy = *expression;
    copy->arguments = SX_ARENA_ARRAY(b->arena, expression->n_arguments, struct sx_expression *);
    if (!copy->arguments)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < expression->n_arguments; i++) {
        copy->arguments[i] = replace_columns(b, expression->arguments[i], replacement);
        if (!copy->arguments[i])
            return NULL;
    }
    return copy;
}

struct sx_expression *sx_build_remap(struct sx_builder *b, const struct sx_expression *expression,
                                     const int32_t *map) {
    return replace_columns(b, expression, &(struct replacement){.map = map});
}

struct sx_expression *sx_build_substitute(struct sx_builder *b, const struct sx_expression *expression,
                                          struct sx_expression *const *expressions) {
    return replace_columns(b, expression, &(struct replacement){.expressions = expressions});
}

bool sx_conjuncts_add(struct sx_builder *b, struct sx_conjuncts *conjuncts,
                      struct sx_expression *expression) {
    if (!expression)
        return false;
    if (expression->kind == SX_EXPR_CALL && expression->function == SX_FN_AND) {
        for (int32_t i = 0; i < expression->n_arguments; i++)
            if (!sx_conjuncts_add(b, conjuncts, expression->arguments[i]))
                return false;
        return true;
    }
    if (conjuncts->count == conjuncts->capacity) {
        int32_t capacity = conjuncts->capacity ? conjuncts->capacity * 2 : 8;
        struct sx_expression **items = SX_ARENA_ARRAY(b->arena, capacity, struct sx_expression *);
        if (!items)
            return sx_build_no_memory(b);
        if (conjuncts->count)
            memcpy(items, conjuncts->items, (size_t)conjuncts->count * sizeof *items);
        conjuncts->items = items;
        conjuncts->capacity = capacity;
    }
    conjuncts->items[conjuncts->count++] = expression;
    return true;
}
