/* Which columns of a plan have no nulls: those that come from required columns of files by operators that add
 * none. */
#include "exec/operators.h"

/* Where an output column comes from in the child; -1: it is computed. */
static int32_t child_column(const struct sx_plan *plan, int32_t column) {
    const struct sx_expression *expression;
    switch (plan->kind) {
    case SX_PLAN_FILTER: return plan->u.filter.projection[column];
    case SX_PLAN_SORT:
    case SX_PLAN_TOP_N: return plan->u.sort.projection[column];
    case SX_PLAN_LIMIT:
    case SX_PLAN_UNION_ALL:
    case SX_PLAN_EXCHANGE: return column;
    case SX_PLAN_PROJECT:
        expression = plan->u.project.expressions[column];
        return expression->kind == SX_EXPR_COLUMN ? expression->column : -1;
    default: return -1;
    }
}

enum sx_status sx_plan_is_required(struct sx_run *run, const struct sx_plan *plan, int32_t column,
                                   bool *out_required, struct sx_error *error) {
    *out_required = false;
    if (plan->kind == SX_PLAN_SCAN) {
        const struct sx_scan_plan *scan = &plan->u.scan;
        const char *name = scan->columns[scan->projection[column]].source;
        return sx_storage_is_required(run->options.storage, scan->files, scan->n_files, name, out_required,
                                      error);
    }
    int32_t from = child_column(plan, column);
    bool required = from >= 0 && plan->n_children > 0;
    for (int32_t i = 0; required && i < plan->n_children; i++)
        SX_TRY(sx_plan_is_required(run, plan->children[i], from, &required, error));
    *out_required = required;
    return SX_OK;
}
