/* DuckDB's bound expressions as JSON. */
#include <stdlib.h>
#include <string.h>

#include "plan/duckdb_convert.h"

enum { MOST_ARGUMENTS = 1 << 20 };

enum sx_function sx_convert_comparison(const char *name) {
    static const struct {
        const char *name;
        enum sx_function function;
    } comparisons[] = {
        {"COMPARE_EQUAL", SX_FN_EQ},
        {"COMPARE_NOTEQUAL", SX_FN_NE},
        {"COMPARE_LESSTHAN", SX_FN_LT},
        {"COMPARE_LESSTHANOREQUALTO", SX_FN_LE},
        {"COMPARE_GREATERTHAN", SX_FN_GT},
        {"COMPARE_GREATERTHANOREQUALTO", SX_FN_GE},
        {"COMPARE_DISTINCT_FROM", SX_FN_DISTINCT_FROM},
        {"COMPARE_NOT_DISTINCT_FROM", SX_FN_NOT_DISTINCT_FROM},
    };
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        if (strcmp(name, comparisons[i].name) == 0)
            return comparisons[i].function;
    return SX_FN_COUNT;
}

static struct sx_expression *member(struct sx_convert *c, struct json_object *json, const char *name,
                                    const struct sx_scope *scope) {
    return sx_convert_expression(c, sx_json_member(json, name), scope);
}

/* Converted children in the arena, or NULL. */
static struct sx_expression **children(struct sx_convert *c, struct json_object *array,
                                       const struct sx_scope *scope) {
    const int32_t n = sx_json_length(array);
    if (n > MOST_ARGUMENTS)
        return sx_build_unsupported(&c->b, "%d arguments", n);
    struct sx_expression **expressions = SX_ARENA_ARRAY(c->b.arena, n, struct sx_expression *);
    if (!expressions)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < n; i++) {
        expressions[i] = sx_convert_expression(c, sx_json_item(array, i), scope);
        if (!expressions[i])
            return NULL;
    }
    return expressions;
}

static struct sx_expression *convert_ref(struct sx_convert *c, struct json_object *json,
                                         const struct sx_scope *scope) {
    const int64_t index = sx_json_integer(json, "index", -1);
    struct sx_type type;
    if (index < 0 || index >= scope->n_columns)
        return sx_build_malformed(&c->b, "a reference to column %lld of %d", (long long)index,
                                  scope->n_columns);
    if (!sx_convert_type(c, sx_json_member(json, "return_type"), scope->columns[index].name, &type))
        return NULL;
    if (!sx_type_equal(type, scope->columns[index].type)) {
        char wanted[SX_TYPE_NAME_BYTES], given[SX_TYPE_NAME_BYTES];
        return sx_build_malformed(&c->b, "a reference as %s to column %lld (%s), which is %s",
                                  sx_type_name(type, wanted), (long long)index, scope->columns[index].name,
                                  sx_type_name(scope->columns[index].type, given));
    }
    return sx_build_column(&c->b, (int32_t)index, type);
}

static struct sx_expression *convert_constant(struct sx_convert *c, struct json_object *json) {
    struct sx_scalar value;
    if (!sx_convert_value(c, sx_json_member(json, "value"), &value))
        return NULL;
    return sx_build_constant(&c->b, &value);
}

static struct sx_expression *convert_comparison(struct sx_convert *c, struct json_object *json,
                                                const struct sx_scope *scope) {
    const char *name = sx_json_text(json, "type");
    const enum sx_function function = sx_convert_comparison(name);
    if (function == SX_FN_COUNT)
        return sx_build_unsupported(&c->b, "comparison %s", name);
    struct sx_expression *left = member(c, json, "left", scope);
    struct sx_expression *right = left ? member(c, json, "right", scope) : NULL;
    return sx_build_compare(&c->b, function, left, right);
}

static struct sx_expression *convert_between(struct sx_convert *c, struct json_object *json,
                                             const struct sx_scope *scope) {
    struct sx_expression *input = member(c, json, "input", scope);
    struct sx_expression *lower = input ? member(c, json, "lower", scope) : NULL;
    struct sx_expression *upper = lower ? member(c, json, "upper", scope) : NULL;
    if (!upper)
        return NULL;
    struct sx_expression *sides[2] = {
        sx_build_compare(&c->b, sx_json_bool(json, "lower_inclusive") ? SX_FN_GE : SX_FN_GT, input, lower),
        sx_build_compare(&c->b, sx_json_bool(json, "upper_inclusive") ? SX_FN_LE : SX_FN_LT, input, upper)};
    return sx_build_call(&c->b, SX_FN_AND, sx_type_of(SX_TYPE_BOOL), sides, 2);
}

static bool all_bool(struct sx_convert *c, struct sx_expression **arguments, int32_t n) {
    const struct sx_type bool_type = sx_type_of(SX_TYPE_BOOL);
    for (int32_t i = 0; i < n; i++) {
        if (arguments[i]->type.id == SX_TYPE_NULLTYPE)
            arguments[i] = sx_build_cast(&c->b, arguments[i], bool_type);
        else if (arguments[i]->type.id != SX_TYPE_BOOL)
            return sx_build_malformed(&c->b, "a condition that is not BOOLEAN");
        if (!arguments[i])
            return false;
    }
    return true;
}

static struct sx_expression *convert_conjunction(struct sx_convert *c, struct json_object *json,
                                                 const struct sx_scope *scope) {
    struct json_object *array = sx_json_member(json, "children");
    const bool is_and = strcmp(sx_json_text(json, "type"), "CONJUNCTION_AND") == 0;
    const int32_t n = sx_json_length(array);
    if (!is_and && strcmp(sx_json_text(json, "type"), "CONJUNCTION_OR") != 0)
        return sx_build_unsupported(&c->b, "expression %s", sx_json_text(json, "type"));
    if (n == 0)
        return sx_build_malformed(&c->b, "an empty conjunction");
    struct sx_expression **arguments = children(c, array, scope);
    if (!arguments || !all_bool(c, arguments, n))
        return NULL;
    if (n == 1)
        return arguments[0];
    return sx_build_call(&c->b, is_and ? SX_FN_AND : SX_FN_OR, sx_type_of(SX_TYPE_BOOL), arguments, n);
}

/* The CASE's value must have one type in all branches; DuckDB has cast them. */
static struct sx_expression *branch(struct sx_convert *c, struct sx_expression *value, struct sx_type type) {
    if (value && value->type.id != type.id && value->type.id != SX_TYPE_NULLTYPE)
        return sx_build_malformed(&c->b, "a CASE with branches of several types");
    return sx_build_cast(&c->b, value, type);
}

static struct sx_expression *convert_case(struct sx_convert *c, struct json_object *json,
                                          const struct sx_scope *scope) {
    struct json_object *checks = sx_json_member(json, "case_checks");
    const int32_t n = sx_json_length(checks);
    struct sx_type type;
    if (n == 0 || n > MOST_ARGUMENTS)
        return sx_build_malformed(&c->b, "a CASE with %d branches", n);
    if (!sx_convert_type(c, sx_json_member(json, "return_type"), "CASE", &type))
        return NULL;
    struct sx_expression **arguments = SX_ARENA_ARRAY(c->b.arena, 2 * n + 1, struct sx_expression *);
    if (!arguments)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < n; i++) {
        struct json_object *check = sx_json_item(checks, i);
        arguments[2 * i] = member(c, check, "when_expr", scope);
        if (!arguments[2 * i] || !all_bool(c, &arguments[2 * i], 1))
            return NULL;
        arguments[2 * i + 1] = branch(c, member(c, check, "then_expr", scope), type);
        if (!arguments[2 * i + 1])
            return NULL;
    }
    arguments[2 * n] = branch(c, member(c, json, "else_expr", scope), type);
    if (!arguments[2 * n])
        return NULL;
    return sx_build_node(&c->b, SX_EXPR_CASE, type, arguments, 2 * n + 1);
}

static struct sx_expression *convert_cast(struct sx_convert *c, struct json_object *json,
                                          const struct sx_scope *scope) {
    struct sx_type type;
    struct sx_expression *child = member(c, json, "child", scope);
    if (!child || !sx_convert_type(c, sx_json_member(json, "return_type"), "CAST", &type))
        return NULL;
    if (type.id == SX_TYPE_INTERVAL || child->type.id == SX_TYPE_INTERVAL)
        return sx_type_equal(child->type, type) ? child
                                                : sx_build_unsupported(&c->b, "CAST of type INTERVAL");
    if (sx_json_bool(json, "try_cast") && !sx_type_equal(child->type, type))
        return sx_build_unary(&c->b, SX_FN_TRY_CAST, type, child);
    return sx_build_cast(&c->b, child, type);
}

static int compare_constants(const void *a, const void *b) {
    const struct sx_scalar *x = &(*(struct sx_expression *const *)a)->constant;
    const struct sx_scalar *y = &(*(struct sx_expression *const *)b)->constant;
    if (x->type.id == SX_TYPE_VARCHAR) {
        const uint32_t m = x->v.text.length_bytes, n = y->v.text.length_bytes;
        const int order = memcmp(x->v.text.bytes, y->v.text.bytes, m < n ? m : n);
        return order ? order : (m > n) - (m < n);
    }
    if (sx_type_phys(x->type) == SX_PHYS_I128 || sx_type_phys(x->type) == SX_PHYS_U128)
        return (x->v.i128 > y->v.i128) - (x->v.i128 < y->v.i128);
    return (x->v.i64 > y->v.i64) - (x->v.i64 < y->v.i64);
}

/* Any order serves; a fixed one makes equal lists alike. */
static void order_list(struct sx_expression **list, int32_t n) {
    if (list[0]->type.id != SX_TYPE_F32 && list[0]->type.id != SX_TYPE_F64)
        qsort(list, (size_t)n, sizeof *list, compare_constants);
}

/* value IN (list): constants in an IN_LIST, the others compared one by one, and NULL if there is one. */
struct sx_expression *sx_convert_in(struct sx_convert *c, struct sx_expression **arguments, int32_t n) {
    struct sx_builder *b = &c->b;
    const struct sx_type bool_type = sx_type_of(SX_TYPE_BOOL);
    struct sx_expression **parts = SX_ARENA_ARRAY(b->arena, n + 2, struct sx_expression *);
    struct sx_expression **list = SX_ARENA_ARRAY(b->arena, n, struct sx_expression *);
    if (!parts || !list)
        return sx_build_no_memory(b);
    int32_t n_parts = 0, n_list = 1;
    bool has_null = false;
    list[0] = arguments[0];
    for (int32_t i = 1; i < n; i++) {
        struct sx_expression *item = arguments[i];
        if (item->kind == SX_EXPR_CONSTANT && item->constant.is_null)
            has_null = true;
        else if (item->kind == SX_EXPR_CONSTANT && sx_type_equal(item->type, arguments[0]->type) &&
                 item->type.id != SX_TYPE_INTERVAL)
            list[n_list++] = item;
        else
            parts[n_parts++] = sx_build_compare(b, SX_FN_EQ, arguments[0], item);
    }
    if (n_list == 2)
        parts[n_parts++] = sx_build_compare(b, SX_FN_EQ, list[0], list[1]);
    else if (n_list > 2) {
        order_list(list + 1, n_list - 1);
        parts[n_parts++] = sx_build_node(b, SX_EXPR_IN_LIST, bool_type, list, n_list);
    }
    if (has_null)
        parts[n_parts++] = sx_build_null(b, bool_type);
    if (n_parts == 1)
        return parts[0];
    return sx_build_call(b, SX_FN_OR, bool_type, parts, n_parts);
}

static struct sx_expression *convert_coalesce(struct sx_convert *c, struct json_object *json,
                                              struct sx_expression **arguments, int32_t n) {
    struct sx_type type;
    if (!sx_convert_type(c, sx_json_member(json, "return_type"), "coalesce", &type))
        return NULL;
    for (int32_t i = 0; i < n; i++) {
        arguments[i] = branch(c, arguments[i], type);
        if (!arguments[i])
            return NULL;
    }
    if (n == 1)
        return arguments[0];
    return sx_build_call(&c->b, SX_FN_COALESCE, type, arguments, n);
}

static struct sx_expression *convert_not(struct sx_convert *c, struct sx_expression **arguments) {
    if (!all_bool(c, arguments, 1))
        return NULL;
    return sx_build_unary(&c->b, SX_FN_NOT, sx_type_of(SX_TYPE_BOOL), arguments[0]);
}

static struct sx_expression *convert_operator(struct sx_convert *c, struct json_object *json,
                                              const struct sx_scope *scope) {
    const char *name = sx_json_text(json, "type");
    const struct sx_type bool_type = sx_type_of(SX_TYPE_BOOL);
    struct json_object *array = sx_json_member(json, "children");
    const int32_t n = sx_json_length(array);
    struct sx_expression **arguments = children(c, array, scope);
    if (!arguments)
        return NULL;
    if (n == 1 && strcmp(name, "OPERATOR_NOT") == 0)
        return convert_not(c, arguments);
    if (n == 1 && strcmp(name, "OPERATOR_IS_NULL") == 0)
        return sx_build_unary(&c->b, SX_FN_IS_NULL, bool_type, arguments[0]);
    if (n == 1 && strcmp(name, "OPERATOR_IS_NOT_NULL") == 0)
        return sx_build_unary(&c->b, SX_FN_IS_NOT_NULL, bool_type, arguments[0]);
    if (n >= 2 && strcmp(name, "COMPARE_IN") == 0)
        return sx_convert_in(c, arguments, n);
    if (n >= 2 && strcmp(name, "COMPARE_NOT_IN") == 0) {
        struct sx_expression *in = sx_convert_in(c, arguments, n);
        return sx_build_unary(&c->b, SX_FN_NOT, bool_type, in);
    }
    if (n >= 1 && strcmp(name, "OPERATOR_COALESCE") == 0)
        return convert_coalesce(c, json, arguments, n);
    return sx_build_unsupported(&c->b, "expression %s", name);
}

static struct sx_expression *convert_function(struct sx_convert *c, struct json_object *json,
                                              const struct sx_scope *scope) {
    const char *name = sx_json_text(json, "name");
    struct json_object *array = sx_json_member(json, "children");
    struct sx_expression **arguments = children(c, array, scope);
    struct sx_type type;
    if (!arguments || !sx_convert_type(c, sx_json_member(json, "return_type"), name, &type))
        return NULL;
    return sx_convert_function(c, name, type, arguments, sx_json_length(array));
}

static struct sx_expression *convert_class(struct sx_convert *c, struct json_object *json,
                                           const struct sx_scope *scope) {
    const char *class_name = sx_json_text(json, "expression_class");
    if (strcmp(class_name, "BOUND_REF") == 0)
        return convert_ref(c, json, scope);
    if (strcmp(class_name, "BOUND_CONSTANT") == 0)
        return convert_constant(c, json);
    if (strcmp(class_name, "BOUND_FUNCTION") == 0)
        return convert_function(c, json, scope);
    if (strcmp(class_name, "BOUND_COMPARISON") == 0)
        return convert_comparison(c, json, scope);
    if (strcmp(class_name, "BOUND_CONJUNCTION") == 0)
        return convert_conjunction(c, json, scope);
    if (strcmp(class_name, "BOUND_CAST") == 0)
        return convert_cast(c, json, scope);
    if (strcmp(class_name, "BOUND_OPERATOR") == 0)
        return convert_operator(c, json, scope);
    if (strcmp(class_name, "BOUND_CASE") == 0)
        return convert_case(c, json, scope);
    if (strcmp(class_name, "BOUND_BETWEEN") == 0)
        return convert_between(c, json, scope);
    if (!*class_name)
        return sx_build_malformed(&c->b, "an expression without its class");
    return sx_build_unsupported(&c->b, "expression %s", class_name);
}

struct sx_expression *sx_convert_expression(struct sx_convert *c, struct json_object *json,
                                            const struct sx_scope *scope) {
    if (!sx_build_enter(&c->b))
        return NULL;
    struct sx_expression *expression = convert_class(c, json, scope);
    sx_build_leave(&c->b);
    return expression;
}

bool sx_convert_order(struct sx_convert *c, struct json_object *json, const struct sx_scope *scope,
                      struct sx_order *out_order) {
    const char *direction = sx_json_text(json, "type"), *nulls = sx_json_text(json, "null_order");
    out_order->descending = strcmp(direction, "DESCENDING") == 0;
    out_order->nulls_first = strcmp(nulls, "NULLS FIRST") == 0;
    if (!out_order->descending && strcmp(direction, "ASCENDING") != 0)
        return sx_build_malformed(&c->b, "order %s", direction);
    if (!out_order->nulls_first && strcmp(nulls, "NULLS LAST") != 0)
        return sx_build_malformed(&c->b, "null order %s", nulls);
    out_order->expression = member(c, json, "expression", scope);
    if (out_order->expression && out_order->expression->type.id == SX_TYPE_INTERVAL)
        return sx_build_unsupported(&c->b, "order by type INTERVAL");
    return out_order->expression != NULL;
}
