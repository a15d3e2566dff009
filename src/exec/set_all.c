#include "exec/build.h"
#include "exec/make.h"

/* Child's columns, then a BIGINT that tells the side. */
static struct sx_plan *tagged(struct sx_run *run, struct sx_plan *child, int64_t side) {
    const int32_t n = child->n_columns;
    struct sx_plan *plan = SX_ARENA_NEW(&run->arena, struct sx_plan);
    struct sx_plan **children = SX_ARENA_NEW(&run->arena, struct sx_plan *);
    struct sx_column_info *columns = SX_ARENA_ARRAY(&run->arena, n + 1, struct sx_column_info);
    struct sx_expression **expressions = SX_ARENA_ARRAY(&run->arena, n + 1, struct sx_expression *);
    if (!plan || !children || !columns || !expressions)
        return NULL;
    for (int32_t c = 0; c < n; c++) {
        columns[c] = child->columns[c];
        expressions[c] = sx_make_column(&run->arena, c, child->columns[c].type);
        if (!expressions[c])
            return NULL;
    }
    columns[n] = (struct sx_column_info){.name = "side", .type = sx_type_of(SX_TYPE_I64)};
    expressions[n] = sx_make_bigint(&run->arena, side);
    if (!expressions[n])
        return NULL;
    children[0] = child;
    *plan = (struct sx_plan){.kind = SX_PLAN_PROJECT,
                             .n_children = 1,
                             .children = children,
                             .n_columns = n + 1,
                             .columns = columns,
                             .estimated_rows = child->estimated_rows,
                             .u.project.expressions = expressions};
    return plan;
}

static struct sx_plan *both_sides(struct sx_run *run, const struct sx_plan *plan) {
    struct sx_plan *both = SX_ARENA_NEW(&run->arena, struct sx_plan);
    struct sx_plan **children = SX_ARENA_ARRAY(&run->arena, 2, struct sx_plan *);
    if (!both || !children)
        return NULL;
    for (int side = 0; side < 2; side++) {
        children[side] = tagged(run, plan->children[side], side);
        if (!children[side])
            return NULL;
    }
    *both = (struct sx_plan){.kind = SX_PLAN_UNION_ALL,
                             .n_children = 2,
                             .children = children,
                             .n_columns = children[0]->n_columns,
                             .columns = children[0]->columns,
                             .estimated_rows = -1};
    return both;
}

/* Keys: all columns but the tag. Calls: how many rows each side has. */
static struct sx_plan *counted(struct sx_run *run, struct sx_plan *both) {
    const struct sx_type bigint = sx_type_of(SX_TYPE_I64), bool_type = sx_type_of(SX_TYPE_BOOL);
    const int32_t n = both->n_columns - 1;
    struct sx_plan *plan = SX_ARENA_NEW(&run->arena, struct sx_plan);
    struct sx_plan **children = SX_ARENA_NEW(&run->arena, struct sx_plan *);
    struct sx_column_info *columns = SX_ARENA_ARRAY(&run->arena, n + 2, struct sx_column_info);
    struct sx_expression **keys = SX_ARENA_ARRAY(&run->arena, n, struct sx_expression *);
    struct sx_aggregate_call *calls = SX_ARENA_ARRAY(&run->arena, 2, struct sx_aggregate_call);
    if (!plan || !children || !columns || !keys || !calls)
        return NULL;
    for (int32_t c = 0; c < n; c++) {
        columns[c] = both->columns[c];
        keys[c] = sx_make_column(&run->arena, c, both->columns[c].type);
        if (!keys[c])
            return NULL;
    }
    for (int side = 0; side < 2; side++) {
        struct sx_expression *sides[] = {sx_make_column(&run->arena, n, bigint),
                                         sx_make_bigint(&run->arena, side)};
        calls[side] = (struct sx_aggregate_call){.function = SX_CALL_COUNT_STAR, .type = bigint};
        calls[side].filter = sx_make_call(&run->arena, SX_FN_EQ, bool_type, sides, 2);
        if (!calls[side].filter)
            return NULL;
        columns[n + side] = (struct sx_column_info){.name = "rows", .type = bigint};
    }
    children[0] = both;
    *plan = (struct sx_plan){.kind = SX_PLAN_AGGREGATE,
                             .n_children = 1,
                             .children = children,
                             .n_columns = n + 2,
                             .columns = columns,
                             .estimated_rows = -1,
                             .u.aggregate = {.keys = keys, .n_keys = n, .calls = calls, .n_calls = 2}};
    return plan;
}

/* left - right, or the smaller of both. */
static struct sx_expression *copies(struct sx_run *run, int32_t n, bool except) {
    const struct sx_type bigint = sx_type_of(SX_TYPE_I64), bool_type = sx_type_of(SX_TYPE_BOOL);
    struct sx_expression *sides[] = {sx_make_column(&run->arena, n, bigint),
                                     sx_make_column(&run->arena, n + 1, bigint)};
    if (except)
        return sx_make_call(&run->arena, SX_FN_SUB, bigint, sides, 2);
    struct sx_expression *less = sx_make_call(&run->arena, SX_FN_LT, bool_type, sides, 2);
    return sx_make_case(&run->arena, less, sides[0], sides[1]);
}

enum sx_status sx_set_all_plan(struct sx_run *run, const struct sx_plan *plan,
                               const struct sx_plan **out_plan, struct sx_error *error) {
    struct sx_plan *both = both_sides(run, plan);
    struct sx_plan *groups = both ? counted(run, both) : NULL;
    struct sx_plan *result = SX_ARENA_NEW(&run->arena, struct sx_plan);
    struct sx_plan **children = SX_ARENA_NEW(&run->arena, struct sx_plan *);
    struct sx_expression **expressions =
        SX_ARENA_ARRAY(&run->arena, plan->n_columns + 1, struct sx_expression *);
    if (!groups || !result || !children || !expressions)
        return sx_no_memory(error, "a set operation");
    for (int32_t c = 0; c < plan->n_columns; c++)
        expressions[c] = sx_make_column(&run->arena, c, plan->columns[c].type);
    expressions[plan->n_columns] = copies(run, plan->n_columns, plan->u.set_all.except);
    for (int32_t c = 0; c <= plan->n_columns; c++)
        if (!expressions[c])
            return sx_no_memory(error, "a set operation");
    children[0] = groups;
    *result = (struct sx_plan){.kind = SX_PLAN_PROJECT,
                               .n_children = 1,
                               .children = children,
                               .n_columns = plan->n_columns + 1,
                               .columns = groups->columns,
                               .estimated_rows = -1,
                               .u.project.expressions = expressions};
    *out_plan = result;
    return SX_OK;
}
