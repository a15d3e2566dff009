/* Finds plans that the executor could not run: a defect of the front end, never of the query. */
#include "plan/build.h"

struct check {
    struct sx_error *error;
    int32_t n_materialized;
    const struct sx_plan **definitions; /* by id, of those in scope */
    int depth;
};

#define CHECK(condition, ...)                                                              \
    do {                                                                                   \
        if (!(condition))                                                                  \
            return sx_error_set(c->error, SX_INTERNAL, "inconsistent plan: " __VA_ARGS__); \
    } while (0)

static enum sx_status check_call(struct check *c, const struct sx_expression *call) {
    const bool chain = call->function == SX_FN_AND || call->function == SX_FN_OR ||
                       call->function == SX_FN_COALESCE || call->function == SX_FN_CONCAT_SKIP_NULL;
    CHECK(call->function < SX_FN_COUNT, "a function out of range");
    const int wanted = sx_function_arguments(call->function);
    CHECK(chain ? call->n_arguments >= 2 : call->n_arguments == wanted, "%s with %d arguments",
          sx_function_name(call->function), call->n_arguments);
    for (int32_t i = 0; i < call->n_arguments; i++) {
        const struct sx_type type = call->arguments[i]->type;
        if (call->function == SX_FN_AND || call->function == SX_FN_OR || call->function == SX_FN_NOT)
            CHECK(type.id == SX_TYPE_BOOL, "a condition that is not BOOLEAN");
        if (call->function == SX_FN_COALESCE)
            CHECK(sx_type_equal(type, call->type), "COALESCE of several types");
        if (call->function >= SX_FN_EQ && call->function <= SX_FN_NOT_DISTINCT_FROM)
            CHECK(sx_type_equal(type, call->arguments[0]->type), "a comparison of several types");
    }
    return SX_OK;
}

static enum sx_status check_expression(struct check *c, const struct sx_expression *expression,
                                       const struct sx_column_info *columns, int32_t n_columns) {
    CHECK(expression, "a missing expression");
    CHECK(c->depth < 4 * SX_PLAN_MAX_DEPTH, "an expression without end");
    c->depth++;
    for (int32_t i = 0; i < expression->n_arguments; i++)
        SX_TRY(check_expression(c, expression->arguments[i], columns, n_columns));
    c->depth--;
    switch (expression->kind) {
    case SX_EXPR_COLUMN:
        CHECK(expression->column >= 0 && expression->column < n_columns, "column %d of %d",
              expression->column, n_columns);
        CHECK(sx_type_equal(expression->type, columns[expression->column].type),
              "column %d (%s) under another type", expression->column, columns[expression->column].name);
        break;
    case SX_EXPR_CONSTANT:
        CHECK(sx_type_equal(expression->type, expression->constant.type), "a constant of another type");
        break;
    case SX_EXPR_CALL: return check_call(c, expression);
    case SX_EXPR_CASE:
        CHECK(expression->n_arguments >= 3 && expression->n_arguments % 2 == 1, "a CASE without branches");
        for (int32_t i = 0; i < expression->n_arguments; i++) {
            const bool condition = i % 2 == 0 && i + 1 < expression->n_arguments;
            CHECK(condition ? expression->arguments[i]->type.id == SX_TYPE_BOOL
                            : sx_type_equal(expression->arguments[i]->type, expression->type),
                  "a CASE of several types");
        }
        break;
    case SX_EXPR_IN_LIST:
        CHECK(expression->n_arguments >= 2, "an empty IN list");
        for (int32_t i = 1; i < expression->n_arguments; i++)
            CHECK(expression->arguments[i]->kind == SX_EXPR_CONSTANT &&
                      !expression->arguments[i]->constant.is_null &&
                      sx_type_equal(expression->arguments[i]->type, expression->arguments[0]->type),
                  "an IN list of other things than constants of its type");
        break;
    }
    return SX_OK;
}

static enum sx_status check_conditions(struct check *c, struct sx_expression *const *conditions, int32_t n,
                                       const struct sx_column_info *columns, int32_t n_columns) {
    for (int32_t i = 0; i < n; i++) {
        SX_TRY(check_expression(c, conditions[i], columns, n_columns));
        CHECK(conditions[i]->type.id == SX_TYPE_BOOL, "a filter that is not BOOLEAN");
    }
    return SX_OK;
}

/* output i is column projection[i] of `input`. */
static enum sx_status check_projection(struct check *c, const struct sx_column_info *output, int32_t n_output,
                                       const int32_t *projection, int32_t n_projection,
                                       const struct sx_column_info *input, int32_t n_input) {
    CHECK(n_output == n_projection, "%d columns where %d are projected", n_output, n_projection);
    for (int32_t i = 0; i < n_projection; i++) {
        CHECK(projection[i] >= 0 && projection[i] < n_input, "projected column %d of %d", projection[i],
              n_input);
        CHECK(sx_type_equal(output[i].type, input[projection[i]].type), "a projected column of another type");
    }
    return SX_OK;
}

static enum sx_status check_scan(struct check *c, const struct sx_plan *plan) {
    const struct sx_scan_plan *scan = &plan->u.scan;
    struct sx_arena arena = {0};
    struct sx_column_info *columns = SX_ARENA_ARRAY(&arena, scan->n_columns, struct sx_column_info);
    enum sx_status status = SX_OK;
    if (!columns) {
        status = sx_error_set(c->error, SX_OUT_OF_MEMORY, "no memory for the plan");
        goto out;
    }
    for (int32_t i = 0; i < scan->n_columns; i++)
        columns[i] = (struct sx_column_info){scan->columns[i].source, scan->columns[i].type};
    SX_GO(check_projection(c, plan->columns, plan->n_columns, scan->projection, scan->n_projection, columns,
                           scan->n_columns));
    SX_GO(check_conditions(c, scan->filters, scan->n_filters, columns, scan->n_columns));
out:
    sx_arena_release(&arena);
    return status;
}

static enum sx_status check_join(struct check *c, const struct sx_plan *plan) {
    const struct sx_join_plan *join = &plan->u.join;
    const struct sx_plan *probe = plan->children[0], *build = plan->children[1];
    const int32_t n_both = join->n_probe_output + join->n_build_output;
    CHECK(plan->n_columns == n_both + (join->kind == SX_JOIN_MARK ? 1 : 0), "a join's number of columns");
    SX_TRY(check_projection(c, plan->columns, join->n_probe_output, join->probe_output, join->n_probe_output,
                            probe->columns, probe->n_columns));
    SX_TRY(check_projection(c, plan->columns + join->n_probe_output, join->n_build_output, join->build_output,
                            join->n_build_output, build->columns, build->n_columns));
    for (int32_t i = 0; i < join->n_keys; i++) {
        SX_TRY(check_expression(c, join->keys[i].probe, probe->columns, probe->n_columns));
        SX_TRY(check_expression(c, join->keys[i].build, build->columns, build->n_columns));
        CHECK(sx_type_equal(join->keys[i].probe->type, join->keys[i].build->type), "a join key of two types");
    }
    CHECK(join->n_mark_group >= 0 && join->n_mark_group <= join->n_keys, "a MARK join's group");
    struct sx_arena arena = {0};
    const int32_t n = probe->n_columns + build->n_columns;
    struct sx_column_info *columns = SX_ARENA_ARRAY(&arena, n, struct sx_column_info);
    for (int32_t i = 0; columns && i < n; i++)
        columns[i] = i < probe->n_columns ? probe->columns[i] : build->columns[i - probe->n_columns];
    enum sx_status status = columns ? check_conditions(c, join->residual, join->n_residual, columns, n)
                                    : sx_error_set(c->error, SX_OUT_OF_MEMORY, "no memory for the plan");
    sx_arena_release(&arena);
    return status;
}

static enum sx_status check_aggregate(struct check *c, const struct sx_plan *plan) {
    const struct sx_aggregate_plan *aggregate = &plan->u.aggregate;
    const struct sx_plan *child = plan->children[0];
    CHECK(plan->n_columns == aggregate->n_keys + aggregate->n_calls, "an aggregate's number of columns");
    for (int32_t i = 0; i < aggregate->n_keys; i++) {
        SX_TRY(check_expression(c, aggregate->keys[i], child->columns, child->n_columns));
        CHECK(sx_type_equal(aggregate->keys[i]->type, plan->columns[i].type), "a key of another type");
    }
    for (int32_t i = 0; i < aggregate->n_calls; i++) {
        const struct sx_aggregate_call *call = &aggregate->calls[i];
        CHECK((call->argument == NULL) == (call->function == SX_CALL_COUNT_STAR), "an aggregate's argument");
        CHECK(sx_type_equal(call->type, plan->columns[aggregate->n_keys + i].type),
              "an aggregate of another type");
        if (call->argument)
            SX_TRY(check_expression(c, call->argument, child->columns, child->n_columns));
        if (call->filter)
            SX_TRY(check_conditions(c, (struct sx_expression *const *)&call->filter, 1, child->columns,
                                    child->n_columns));
    }
    return SX_OK;
}

static enum sx_status check_sort(struct check *c, const struct sx_plan *plan) {
    const struct sx_plan *child = plan->children[0];
    for (int32_t i = 0; i < plan->u.sort.n_orders; i++)
        SX_TRY(check_expression(c, plan->u.sort.orders[i].expression, child->columns, child->n_columns));
    return check_projection(c, plan->columns, plan->n_columns, plan->u.sort.projection,
                            plan->u.sort.n_projection, child->columns, child->n_columns);
}

static enum sx_status check_project(struct check *c, const struct sx_plan *plan) {
    const struct sx_plan *child = plan->children[0];
    for (int32_t i = 0; i < plan->n_columns; i++) {
        const struct sx_expression *expression = plan->u.project.expressions[i];
        SX_TRY(check_expression(c, expression, child->columns, child->n_columns));
        CHECK(sx_type_equal(expression->type, plan->columns[i].type), "column %d (%s) of another type", i,
              plan->columns[i].name);
    }
    return SX_OK;
}

static enum sx_status check_same_columns(struct check *c, const struct sx_plan *a, const struct sx_plan *b) {
    CHECK(a->n_columns == b->n_columns, "%d columns where there should be %d", a->n_columns, b->n_columns);
    for (int32_t i = 0; i < a->n_columns; i++)
        CHECK(sx_type_equal(a->columns[i].type, b->columns[i].type), "column %d of two types", i);
    return SX_OK;
}

static enum sx_status check_values(struct check *c, const struct sx_plan *plan) {
    for (int64_t row = 0; row < plan->u.values.n_rows; row++)
        for (int32_t i = 0; i < plan->n_columns; i++)
            CHECK(sx_type_equal(plan->u.values.cells[row * plan->n_columns + i].type, plan->columns[i].type),
                  "a constant row of another type");
    return SX_OK;
}

static enum sx_status check_node(struct check *c, const struct sx_plan *plan) {
    const struct sx_plan *child = plan->n_children ? plan->children[0] : NULL;
    switch (plan->kind) {
    case SX_PLAN_SCAN: return check_scan(c, plan);
    case SX_PLAN_VALUES: return check_values(c, plan);
    case SX_PLAN_MEMORY: return SX_OK; /* the run knows its tables */
    case SX_PLAN_FILTER:
        SX_TRY(check_conditions(c, plan->u.filter.conjuncts, plan->u.filter.n_conjuncts, child->columns,
                                child->n_columns));
        return check_projection(c, plan->columns, plan->n_columns, plan->u.filter.projection,
                                plan->u.filter.n_projection, child->columns, child->n_columns);
    case SX_PLAN_PROJECT: return check_project(c, plan);
    case SX_PLAN_JOIN: return check_join(c, plan);
    case SX_PLAN_AGGREGATE: return check_aggregate(c, plan);
    case SX_PLAN_SORT:
    case SX_PLAN_TOP_N: return check_sort(c, plan);
    case SX_PLAN_LIMIT: return check_same_columns(c, plan, child);
    case SX_PLAN_UNION_ALL:
    case SX_PLAN_SET_ALL:
        for (int32_t i = 0; i < plan->n_children; i++)
            SX_TRY(check_same_columns(c, plan, plan->children[i]));
        return SX_OK;
    case SX_PLAN_MATERIALIZE: return check_same_columns(c, plan, plan->children[1]);
    case SX_PLAN_REFERENCE:
        CHECK(plan->u.materialize.id >= 0 && plan->u.materialize.id < c->n_materialized &&
                  c->definitions[plan->u.materialize.id],
              "a reference to %d, which is not defined", plan->u.materialize.id);
        return check_same_columns(c, plan, c->definitions[plan->u.materialize.id]);
    case SX_PLAN_EXCHANGE:
        CHECK((plan->u.exchange.kind == SX_EXCHANGE_RANGE) == (plan->u.exchange.orders != NULL),
              "an exchange %s", plan->u.exchange.orders ? "with an order" : "without its order");
        for (int32_t i = 0; i < plan->u.exchange.n_keys; i++)
            SX_TRY(check_expression(c, plan->u.exchange.keys[i], child->columns, child->n_columns));
        return check_same_columns(c, plan, child);
    }
    return sx_error_set(c->error, SX_INTERNAL, "inconsistent plan: an unknown operator");
}

static int wanted_children(const struct sx_plan *plan) {
    switch (plan->kind) {
    case SX_PLAN_SCAN:
    case SX_PLAN_VALUES:
    case SX_PLAN_MEMORY:
    case SX_PLAN_REFERENCE: return 0;
    case SX_PLAN_JOIN:
    case SX_PLAN_SET_ALL:
    case SX_PLAN_MATERIALIZE: return 2;
    case SX_PLAN_UNION_ALL: return plan->n_children >= 2 ? plan->n_children : 2;
    default: return 1;
    }
}

static enum sx_status check_tree(struct check *c, const struct sx_plan *plan) {
    CHECK(plan, "a missing operator");
    CHECK(plan->n_children == wanted_children(plan), "an operator with %d children", plan->n_children);
    for (int32_t i = 0; i < plan->n_children; i++) {
        SX_TRY(check_tree(c, plan->children[i]));
        if (plan->kind == SX_PLAN_MATERIALIZE && i == 0) {
            const int32_t id = plan->u.materialize.id;
            CHECK(id >= 0 && id < c->n_materialized && !c->definitions[id], "materialisation %d", id);
            c->definitions[id] = plan->children[0];
        }
    }
    return check_node(c, plan);
}

enum sx_status sx_plan_check(const struct sx_query_plan *query, struct sx_error *error) {
    struct sx_arena arena = {0};
    struct check check = {.error = error, .n_materialized = query->n_materialized};
    check.definitions = SX_ARENA_ARRAY(&arena, query->n_materialized, const struct sx_plan *);
    enum sx_status status = check.definitions ? check_tree(&check, query->root)
                                              : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory");
    sx_arena_release(&arena);
    return status;
}
