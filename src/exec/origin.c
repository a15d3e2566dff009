#include "exec/origin.h"

#include "exec/operators.h"

static bool is_column(const struct sx_expression *expression, int32_t column) {
    return expression->kind == SX_EXPR_COLUMN && expression->column == column;
}

/* An inner join's build key is its probe key. */
static struct sx_origin origin_in_join(const struct sx_plan *plan, int32_t column) {
    const struct sx_join_plan *join = &plan->u.join;
    if (sx_join_is_right(join->kind))
        return (struct sx_origin){plan, column};
    if (column < join->n_probe_output)
        return sx_origin_of(plan->children[0], join->probe_output[column]);
    if (join->kind != SX_JOIN_INNER)
        return (struct sx_origin){plan, column};
    const int32_t built = join->build_output[column - join->n_probe_output];
    for (int32_t k = 0; k < join->n_keys; k++)
        if (!join->keys[k].null_equal && is_column(join->keys[k].build, built) &&
            join->keys[k].probe->kind == SX_EXPR_COLUMN)
            return sx_origin_of(plan->children[0], join->keys[k].probe->column);
    return sx_origin_of(plan->children[1], built);
}

struct sx_origin sx_origin_of(const struct sx_plan *plan, int32_t column) {
    switch (plan->kind) {
    case SX_PLAN_FILTER: return sx_origin_of(plan->children[0], plan->u.filter.projection[column]);
    case SX_PLAN_JOIN: return origin_in_join(plan, column);
    case SX_PLAN_EXCHANGE: return sx_origin_of(plan->children[0], column);
    case SX_PLAN_PROJECT:
        if (plan->u.project.expressions[column]->kind == SX_EXPR_COLUMN)
            return sx_origin_of(plan->children[0], plan->u.project.expressions[column]->column);
        break;
    default: break;
    }
    return (struct sx_origin){plan, column};
}
