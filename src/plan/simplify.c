/* Rewrites that keep the answer: projections are merged, filters become part of the scan. */
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"

static bool is_pure(const struct sx_plan *project) {
    for (int32_t i = 0; i < project->n_columns; i++)
        if (project->u.project.expressions[i]->kind != SX_EXPR_COLUMN)
            return false;
    return true;
}

static bool is_identity(const struct sx_plan *project) {
    if (project->n_columns != project->children[0]->n_columns)
        return false;
    for (int32_t i = 0; i < project->n_columns; i++)
        if (project->u.project.expressions[i]->kind != SX_EXPR_COLUMN ||
            project->u.project.expressions[i]->column != i)
            return false;
    return true;
}

/* ---- expressions over a projection's output -> over its input ---- */

enum { MOST_COPIED_NODES = 400 };

static int32_t count_nodes(const struct sx_expression *expression) {
    int32_t n = 1;
    for (int32_t i = 0; i < expression->n_arguments && n < MOST_COPIED_NODES; i++)
        n += count_nodes(expression->arguments[i]);
    return n;
}

static void count_uses(const struct sx_expression *expression, int32_t *uses) {
    if (expression->kind == SX_EXPR_COLUMN)
        uses[expression->column]++;
    for (int32_t i = 0; i < expression->n_arguments; i++)
        count_uses(expression->arguments[i], uses);
}

/* Copying what is used more than once is bounded; a program computes equal parts once anyhow. */
static bool worth_substituting(const struct sx_plan *project, const int32_t *uses) {
    int64_t copied = 0;
    for (int32_t i = 0; i < project->n_columns; i++)
        if (uses[i] > 1)
            copied += (int64_t)(uses[i] - 1) * count_nodes(project->u.project.expressions[i]);
    return copied <= MOST_COPIED_NODES;
}

static struct sx_plan *merge_projects(struct sx_builder *b, struct sx_plan *plan) {
    struct sx_plan *child = plan->children[0];
    int32_t *uses = SX_ARENA_ARRAY(b->arena, child->n_columns, int32_t);
    if (!uses)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < plan->n_columns; i++)
        count_uses(plan->u.project.expressions[i], uses);
    if (!worth_substituting(child, uses))
        return plan;
    for (int32_t i = 0; i < plan->n_columns; i++) {
        plan->u.project.expressions[i] =
            sx_build_substitute(b, plan->u.project.expressions[i], child->u.project.expressions);
        if (!plan->u.project.expressions[i])
            return NULL;
    }
    plan->children[0] = child->children[0];
    return plan;
}

/* ---- a projection of plain columns becomes part of the operator below ---- */

/* projection[i] = old[expressions[i]->column]. */
static int32_t *compose(struct sx_builder *b, const struct sx_plan *project, const int32_t *old) {
    int32_t *projection = SX_ARENA_ARRAY(b->arena, project->n_columns, int32_t);
    if (!projection)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < project->n_columns; i++)
        projection[i] = old[project->u.project.expressions[i]->column];
    return projection;
}

static bool has_duplicates(struct sx_builder *b, const struct sx_plan *project) {
    bool *seen = SX_ARENA_ARRAY(b->arena, project->children[0]->n_columns, bool);
    for (int32_t i = 0; seen && i < project->n_columns; i++) {
        int32_t column = project->u.project.expressions[i]->column;
        if (seen[column])
            return true;
        seen[column] = true;
    }
    return !seen;
}

static struct sx_plan *take_columns(struct sx_plan *project) {
    struct sx_plan *child = project->children[0];
    child->columns = project->columns;
    child->n_columns = project->n_columns;
    return child;
}

/* Only where probe columns stay in front of build columns, and the mark, if there is one, last. */
static struct sx_plan *push_into_join(struct sx_builder *b, struct sx_plan *project) {
    struct sx_join_plan *join = &project->children[0]->u.join;
    const int32_t n_probe = join->n_probe_output, n_both = n_probe + join->n_build_output;
    const int32_t n = project->n_columns, n_kept = join->kind == SX_JOIN_MARK ? n - 1 : n;
    if (n_kept < 0)
        return project;
    int32_t *probe = SX_ARENA_ARRAY(b->arena, n, int32_t), *build = SX_ARENA_ARRAY(b->arena, n, int32_t);
    int32_t n_new_probe = 0, n_new_build = 0;
    if (!probe || !build)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n_kept; i++) {
        const int32_t column = project->u.project.expressions[i]->column;
        if (column >= n_both || (column < n_probe && n_new_build > 0))
            return project;
        if (column < n_probe)
            probe[n_new_probe++] = join->probe_output[column];
        else
            build[n_new_build++] = join->build_output[column - n_probe];
    }
    if (n_kept < n && project->u.project.expressions[n - 1]->column != n_both)
        return project;
    join->probe_output = probe;
    join->n_probe_output = n_new_probe;
    join->build_output = build;
    join->n_build_output = n_new_build;
    return take_columns(project);
}

static struct sx_plan *push_columns(struct sx_builder *b, struct sx_plan *project) {
    struct sx_plan *child = project->children[0];
    const int32_t **projection;
    int32_t *n_projection;
    switch (child->kind) {
    case SX_PLAN_SCAN:
        projection = &child->u.scan.projection;
        n_projection = &child->u.scan.n_projection;
        break;
    case SX_PLAN_FILTER:
        projection = &child->u.filter.projection;
        n_projection = &child->u.filter.n_projection;
        break;
    case SX_PLAN_SORT:
    case SX_PLAN_TOP_N:
        projection = &child->u.sort.projection;
        n_projection = &child->u.sort.n_projection;
        break;
    case SX_PLAN_JOIN: return has_duplicates(b, project) ? project : push_into_join(b, project);
    default: return project;
    }
    if (has_duplicates(b, project))
        return project;
    int32_t *composed = compose(b, project, *projection);
    if (!composed)
        return NULL;
    *projection = composed;
    *n_projection = project->n_columns;
    return take_columns(project);
}

static struct sx_plan *simplify_project(struct sx_builder *b, struct sx_plan *plan) {
    if (plan->children[0]->kind == SX_PLAN_PROJECT) {
        plan = merge_projects(b, plan);
        if (!plan)
            return NULL;
    }
    if (is_identity(plan))
        return take_columns(plan);
    return is_pure(plan) ? push_columns(b, plan) : plan;
}

/* ---- the first rows of what is computed ---- */

/* Whether the orders are by columns that the projection only hands on, while it computes others. */
static bool computes_beside(const struct sx_plan *top, const struct sx_plan *project) {
    struct sx_expression *const *inputs = project->u.project.expressions;
    for (int32_t i = 0; i < top->u.sort.n_orders; i++) {
        const struct sx_expression *order = top->u.sort.orders[i].expression;
        if (order->kind != SX_EXPR_COLUMN || inputs[order->column]->kind != SX_EXPR_COLUMN)
            return false;
    }
    return !is_pure(project);
}

/* TOP_N over the projection's input, all columns of it. */
static struct sx_plan *top_below(struct sx_builder *b, const struct sx_plan *top,
                                 const struct sx_plan *project) {
    struct sx_plan *input = project->children[0];
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_TOP_N, 1, input->n_columns);
    struct sx_order *orders = SX_ARENA_ARRAY(b->arena, top->u.sort.n_orders, struct sx_order);
    if (!plan || !orders)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < top->u.sort.n_orders; i++) {
        orders[i] = top->u.sort.orders[i];
        orders[i].expression = sx_build_substitute(b, orders[i].expression, project->u.project.expressions);
        if (!orders[i].expression)
            return NULL;
    }
    plan->children[0] = input;
    plan->columns = input->columns;
    plan->estimated_rows = top->estimated_rows;
    plan->u.top_n = top->u.top_n;
    plan->u.sort.orders = orders;
    plan->u.sort.projection = sx_build_identity(b, input->n_columns);
    plan->u.sort.n_projection = input->n_columns;
    return plan->u.sort.projection ? plan : NULL;
}

/* What is computed of rows is computed of the first ones alone, as DuckDB does over a scan: a row that is not
 * among them may have what can't be computed. */
static struct sx_plan *simplify_top_n(struct sx_builder *b, struct sx_plan *plan) {
    struct sx_plan *project = plan->children[0];
    if (project->kind != SX_PLAN_PROJECT || !computes_beside(plan, project))
        return plan;
    struct sx_expression **expressions = SX_ARENA_ARRAY(b->arena, plan->n_columns, struct sx_expression *);
    if (!expressions)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < plan->n_columns; i++)
        expressions[i] = project->u.project.expressions[plan->u.sort.projection[i]];
    struct sx_plan *made =
        sx_build_project(b, top_below(b, plan, project), expressions, plan->n_columns, NULL);
    if (!made)
        return NULL;
    made->columns = plan->columns; /* with their names */
    made->estimated_rows = plan->estimated_rows;
    return simplify_project(b, made);
}

/* ---- filters ---- */

/* Relative cost of a row, so that cheap conjuncts go first. */
static int32_t conjunct_cost(const struct sx_expression *expression) {
    int32_t cost = expression->kind == SX_EXPR_COLUMN || expression->kind == SX_EXPR_CONSTANT ? 0 : 1;
    if (expression->type.id == SX_TYPE_VARCHAR && expression->kind == SX_EXPR_COLUMN)
        cost += 3;
    if (expression->kind == SX_EXPR_CALL && expression->function >= SX_FN_LIKE &&
        expression->function <= SX_FN_CONCAT_SKIP_NULL)
        cost += expression->function == SX_FN_PREFIX ? 2 : 10;
    if (expression->kind == SX_EXPR_IN_LIST) /* its constants cost nothing */
        return cost + 1 + conjunct_cost(expression->arguments[0]);
    for (int32_t i = 0; i < expression->n_arguments; i++)
        cost += conjunct_cost(expression->arguments[i]);
    return cost;
}

static void order_conjuncts(struct sx_expression **items, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (sx_expression_fallible(items[i]))
            return; /* earlier conjuncts may guard it */
    for (int32_t i = 1; i < n; i++) {
        struct sx_expression *moved = items[i];
        const int32_t cost = conjunct_cost(moved);
        int32_t at = i;
        for (; at > 0 && conjunct_cost(items[at - 1]) > cost; at--)
            items[at] = items[at - 1];
        items[at] = moved;
    }
}

static bool contains(const struct sx_conjuncts *conjuncts, const struct sx_expression *expression) {
    for (int32_t i = 0; i < conjuncts->count; i++)
        if (sx_expression_equal(conjuncts->items[i], expression))
            return true;
    return false;
}

/* conjuncts of `plan` through `projection` behind those that the operator below has. */
static bool join_conjuncts(struct sx_builder *b, const struct sx_plan *plan, const int32_t *projection,
                           struct sx_expression ***items, int32_t *n_items) {
    struct sx_conjuncts all = {0};
    for (int32_t i = 0; i < *n_items; i++)
        if (!contains(&all, (*items)[i]) && !sx_conjuncts_add(b, &all, (*items)[i]))
            return false;
    for (int32_t i = 0; i < plan->u.filter.n_conjuncts; i++) {
        struct sx_expression *moved = sx_build_remap(b, plan->u.filter.conjuncts[i], projection);
        if (!moved || (!contains(&all, moved) && !sx_conjuncts_add(b, &all, moved)))
            return false;
    }
    *items = all.items;
    *n_items = all.count;
    return true;
}

static struct sx_plan *merge_filter(struct sx_builder *b, struct sx_plan *plan, const int32_t **projection,
                                    int32_t *n_projection, struct sx_expression ***items, int32_t *n_items) {
    struct sx_plan *child = plan->children[0];
    int32_t *composed = SX_ARENA_ARRAY(b->arena, plan->n_columns, int32_t);
    if (!composed)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < plan->n_columns; i++)
        composed[i] = (*projection)[plan->u.filter.projection[i]];
    if (!join_conjuncts(b, plan, *projection, items, n_items))
        return NULL;
    *projection = composed;
    *n_projection = plan->n_columns;
    child->columns = plan->columns;
    child->n_columns = plan->n_columns;
    return child;
}

static struct sx_plan *simplify_filter(struct sx_builder *b, struct sx_plan *plan) {
    struct sx_plan *child = plan->children[0];
    struct sx_scan_plan *scan = &child->u.scan;
    if (child->kind == SX_PLAN_SCAN)
        return merge_filter(b, plan, &scan->projection, &scan->n_projection, &scan->filters,
                            &scan->n_filters);
    if (child->kind == SX_PLAN_FILTER)
        return merge_filter(b, plan, &child->u.filter.projection, &child->u.filter.n_projection,
                            &child->u.filter.conjuncts, &child->u.filter.n_conjuncts);
    return plan;
}

/* ---- aggregates ---- */

static bool is_distinct(const struct sx_plan *plan) {
    if (plan->kind != SX_PLAN_AGGREGATE || plan->u.aggregate.n_calls > 0)
        return false;
    return plan->u.aggregate.n_keys > 0;
}

/* DISTINCT over all columns of what is distinct already. */
static bool is_needless_distinct(const struct sx_plan *plan) {
    const struct sx_plan *child = plan->children[0];
    if (!is_distinct(plan) || !is_distinct(child) || plan->n_columns != child->n_columns)
        return false;
    for (int32_t i = 0; i < plan->n_columns; i++)
        if (plan->u.aggregate.keys[i]->kind != SX_EXPR_COLUMN || plan->u.aggregate.keys[i]->column != i)
            return false;
    return true;
}

static void count_aggregate_uses(const struct sx_aggregate_plan *aggregate, int32_t *uses) {
    for (int32_t i = 0; i < aggregate->n_keys; i++)
        count_uses(aggregate->keys[i], uses);
    for (int32_t i = 0; i < aggregate->n_calls; i++) {
        if (aggregate->calls[i].argument)
            count_uses(aggregate->calls[i].argument, uses);
        if (aggregate->calls[i].filter)
            count_uses(aggregate->calls[i].filter, uses);
    }
}

/* The aggregate computes what the projection below it did. */
static struct sx_plan *merge_into_aggregate(struct sx_builder *b, struct sx_plan *plan) {
    struct sx_plan *child = plan->children[0];
    struct sx_aggregate_plan *aggregate = &plan->u.aggregate;
    struct sx_expression *const *inputs = child->u.project.expressions;
    int32_t *uses = SX_ARENA_ARRAY(b->arena, child->n_columns, int32_t);
    struct sx_aggregate_call *calls = SX_ARENA_ARRAY(b->arena, aggregate->n_calls, struct sx_aggregate_call);
    if (!uses || !calls)
        return sx_build_no_memory(b);
    count_aggregate_uses(aggregate, uses);
    if (!worth_substituting(child, uses))
        return plan;
    for (int32_t i = 0; i < aggregate->n_keys; i++) {
        aggregate->keys[i] = sx_build_substitute(b, aggregate->keys[i], inputs);
        if (!aggregate->keys[i])
            return NULL;
    }
    for (int32_t i = 0; i < aggregate->n_calls; i++) {
        calls[i] = aggregate->calls[i];
        if (calls[i].argument && !(calls[i].argument = sx_build_substitute(b, calls[i].argument, inputs)))
            return NULL;
        if (calls[i].filter && !(calls[i].filter = sx_build_substitute(b, calls[i].filter, inputs)))
            return NULL;
    }
    aggregate->calls = calls;
    plan->children[0] = child->children[0];
    return plan;
}

static struct sx_plan *simplify_aggregate(struct sx_builder *b, struct sx_plan *plan) {
    if (is_needless_distinct(plan))
        return plan->children[0];
    return plan->children[0]->kind == SX_PLAN_PROJECT ? merge_into_aggregate(b, plan) : plan;
}

/* ---- the tree ---- */

static struct sx_plan *simplify_node(struct sx_builder *b, struct sx_plan *plan) {
    switch (plan->kind) {
    case SX_PLAN_PROJECT: return simplify_project(b, plan);
    case SX_PLAN_FILTER: return simplify_filter(b, plan);
    case SX_PLAN_TOP_N: return simplify_top_n(b, plan);
    case SX_PLAN_AGGREGATE: return simplify_aggregate(b, plan);
    default: return plan;
    }
}

static void order_filters(struct sx_plan *plan) {
    if (plan->kind == SX_PLAN_SCAN)
        order_conjuncts(plan->u.scan.filters, plan->u.scan.n_filters);
    else if (plan->kind == SX_PLAN_FILTER)
        order_conjuncts(plan->u.filter.conjuncts, plan->u.filter.n_conjuncts);
    for (int32_t i = 0; i < plan->n_children; i++)
        order_filters(plan->children[i]);
}

static struct sx_plan *simplify_tree(struct sx_builder *b, struct sx_plan *plan) {
    for (int32_t i = 0; i < plan->n_children; i++) {
        plan->children[i] = simplify_tree(b, plan->children[i]);
        if (!plan->children[i])
            return NULL;
    }
    return simplify_node(b, plan);
}

struct sx_plan *sx_plan_simplify(struct sx_builder *b, struct sx_plan *root) {
    root = simplify_tree(b, root);
    if (root)
        order_filters(root);
    return root;
}
