#include "plan/build.h"

#include <string.h>

struct sx_plan *sx_build_plan(struct sx_builder *b, enum sx_plan_kind kind, int32_t n_children,
                              int32_t n_columns) {
    struct sx_plan *plan = SX_ARENA_NEW(b->arena, struct sx_plan);
    if (!plan)
        return sx_build_no_memory(b);
    plan->kind = kind;
    plan->n_children = n_children;
    plan->n_columns = n_columns;
    plan->estimated_rows = -1;
    plan->children = SX_ARENA_ARRAY(b->arena, n_children, struct sx_plan *);
    plan->columns = SX_ARENA_ARRAY(b->arena, n_columns, struct sx_column_info);
    if (!plan->children || !plan->columns)
        return sx_build_no_memory(b);
    return plan;
}

struct sx_column_info *sx_build_columns(struct sx_plan *plan) {
    return (struct sx_column_info *)(uintptr_t)plan->columns;
}

int32_t *sx_build_identity(struct sx_builder *b, int32_t n) {
    int32_t *columns = SX_ARENA_ARRAY(b->arena, n, int32_t);
    if (!columns)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n; i++)
        columns[i] = i;
    return columns;
}

struct sx_expression *sx_build_input(struct sx_builder *b, const struct sx_plan *child, int32_t column) {
    return sx_build_column(b, column, child->columns[column].type);
}

struct sx_plan *sx_build_project(struct sx_builder *b, struct sx_plan *child,
                                 struct sx_expression *const *expressions, int32_t n_expressions,
                                 const char *const *names) {
    if (!child)
        return NULL;
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_PROJECT, 1, n_expressions);
    if (!plan)
        return NULL;
    plan->children[0] = child;
    plan->u.project.expressions = SX_ARENA_ARRAY(b->arena, n_expressions, struct sx_expression *);
    if (!plan->u.project.expressions)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n_expressions; i++) {
        struct sx_expression *expression = expressions[i];
        if (!expression)
            return NULL;
        plan->u.project.expressions[i] = expression;
        const char *name = names ? names[i] : NULL;
        if (!name)
            name = expression->kind == SX_EXPR_COLUMN ? child->columns[expression->column].name : "";
        sx_build_columns(plan)[i] = (struct sx_column_info){name, expression->type};
    }
    return plan;
}

struct sx_plan *sx_build_pick(struct sx_builder *b, struct sx_plan *child, const int32_t *columns,
                              int32_t n_columns) {
    if (!child)
        return NULL;
    struct sx_expression **expressions = SX_ARENA_ARRAY(b->arena, n_columns, struct sx_expression *);
    if (!expressions)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n_columns; i++)
        expressions[i] = sx_build_input(b, child, columns[i]);
    return sx_build_project(b, child, expressions, n_columns, NULL);
}

struct sx_plan *sx_build_filter(struct sx_builder *b, struct sx_plan *child,
                                const struct sx_conjuncts *conjuncts) {
    if (!child || conjuncts->count == 0)
        return child;
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_FILTER, 1, child->n_columns);
    if (!plan)
        return NULL;
    plan->children[0] = child;
    plan->columns = child->columns;
    plan->u.filter.conjuncts = conjuncts->items;
    plan->u.filter.n_conjuncts = conjuncts->count;
    plan->u.filter.projection = sx_build_identity(b, child->n_columns);
    plan->u.filter.n_projection = child->n_columns;
    return plan->u.filter.projection ? plan : NULL;
}

struct sx_plan *sx_build_aggregate(struct sx_builder *b, struct sx_plan *child,
                                   struct sx_expression *const *keys, int32_t n_keys,
                                   const struct sx_aggregate_call *calls, int32_t n_calls) {
    if (!child)
        return NULL;
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_AGGREGATE, 1, n_keys + n_calls);
    if (!plan)
        return NULL;
    plan->children[0] = child;
    struct sx_aggregate_plan *aggregate = &plan->u.aggregate;
    struct sx_aggregate_call *copies = SX_ARENA_ARRAY(b->arena, n_calls, struct sx_aggregate_call);
    aggregate->keys = SX_ARENA_ARRAY(b->arena, n_keys, struct sx_expression *);
    if (!copies || !aggregate->keys)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n_keys; i++) {
        if (!keys[i])
            return NULL;
        if (keys[i]->type.id == SX_TYPE_INTERVAL)
            return sx_build_unsupported(b, "grouping by type INTERVAL");
        aggregate->keys[i] = keys[i];
        const char *name = keys[i]->kind == SX_EXPR_COLUMN ? child->columns[keys[i]->column].name : "";
        sx_build_columns(plan)[i] = (struct sx_column_info){name, keys[i]->type};
    }
    for (int32_t i = 0; i < n_calls; i++) {
        copies[i] = calls[i];
        sx_build_columns(plan)[n_keys + i] = (struct sx_column_info){"", calls[i].type};
    }
    aggregate->n_keys = n_keys;
    aggregate->calls = copies;
    aggregate->n_calls = n_calls;
    return plan;
}

struct sx_plan *sx_build_distinct(struct sx_builder *b, struct sx_plan *child) {
    if (!child)
        return NULL;
    struct sx_expression **keys = SX_ARENA_ARRAY(b->arena, child->n_columns, struct sx_expression *);
    if (!keys)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < child->n_columns; i++)
        keys[i] = sx_build_input(b, child, i);
    return sx_build_aggregate(b, child, keys, child->n_columns, NULL, 0);
}

static bool outputs_probe(enum sx_join_kind kind) {
    return kind != SX_JOIN_RIGHT_SEMI && kind != SX_JOIN_RIGHT_ANTI;
}

static bool outputs_build(enum sx_join_kind kind) {
    return kind != SX_JOIN_SEMI && kind != SX_JOIN_ANTI && kind != SX_JOIN_MARK;
}

bool sx_build_join_columns(struct sx_builder *b, struct sx_plan *plan) {
    const struct sx_join_plan *join = &plan->u.join;
    const bool mark = join->kind == SX_JOIN_MARK;
    plan->n_columns = join->n_probe_output + join->n_build_output + (mark ? 1 : 0);
    struct sx_column_info *columns = SX_ARENA_ARRAY(b->arena, plan->n_columns, struct sx_column_info);
    if (!columns)
        return sx_build_no_memory(b);
    int32_t n = 0;
    for (int32_t i = 0; i < join->n_probe_output; i++)
        columns[n++] = plan->children[0]->columns[join->probe_output[i]];
    for (int32_t i = 0; i < join->n_build_output; i++)
        columns[n++] = plan->children[1]->columns[join->build_output[i]];
    if (mark)
        columns[n++] = (struct sx_column_info){"mark", sx_type_of(SX_TYPE_BOOL)};
    plan->columns = columns;
    return true;
}

struct sx_plan *sx_build_join(struct sx_builder *b, enum sx_join_kind kind, struct sx_plan *probe,
                              struct sx_plan *build, const struct sx_join_key *keys, int32_t n_keys,
                              const struct sx_conjuncts *residual) {
    if (!probe || !build)
        return NULL;
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_JOIN, 2, 0);
    if (!plan)
        return NULL;
    plan->children[0] = probe;
    plan->children[1] = build;
    struct sx_join_plan *join = &plan->u.join;
    join->kind = kind;
    join->keys = keys;
    join->n_keys = n_keys;
    join->residual = residual->items;
    join->n_residual = residual->count;
    join->n_probe_output = outputs_probe(kind) ? probe->n_columns : 0;
    join->n_build_output = outputs_build(kind) ? build->n_columns : 0;
    join->probe_output = sx_build_identity(b, join->n_probe_output);
    join->build_output = sx_build_identity(b, join->n_build_output);
    if (!join->probe_output || !join->build_output || !sx_build_join_columns(b, plan))
        return NULL;
    return plan;
}

struct sx_plan *sx_build_materialize(struct sx_builder *b, int32_t id, struct sx_plan *definition,
                                     struct sx_plan *body) {
    if (!definition || !body)
        return NULL;
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_MATERIALIZE, 2, body->n_columns);
    if (!plan)
        return NULL;
    plan->children[0] = definition;
    plan->children[1] = body;
    plan->columns = body->columns;
    plan->u.materialize.id = id;
    return plan;
}

struct sx_plan *sx_build_reference(struct sx_builder *b, int32_t id, const struct sx_plan *definition) {
    if (!definition)
        return NULL;
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_REFERENCE, 0, definition->n_columns);
    if (!plan)
        return NULL;
    plan->columns = definition->columns;
    plan->u.materialize.id = id;
    return plan;
}

struct sx_plan *sx_build_union(struct sx_builder *b, struct sx_plan *const *children, int32_t n_children) {
    for (int32_t i = 0; i < n_children; i++)
        if (!children[i])
            return NULL;
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_UNION_ALL, n_children, children[0]->n_columns);
    if (!plan)
        return NULL;
    plan->columns = children[0]->columns;
    for (int32_t i = 0; i < n_children; i++)
        plan->children[i] = children[i];
    return plan;
}
