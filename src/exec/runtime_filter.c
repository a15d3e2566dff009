#include "exec/build.h"

/* Probe rows without a match are dropped. */
static bool drops_probe_rows(enum sx_join_kind kind) {
    return kind == SX_JOIN_INNER || kind == SX_JOIN_SEMI || kind == SX_JOIN_RIGHT ||
           kind == SX_JOIN_RIGHT_SEMI || kind == SX_JOIN_RIGHT_ANTI;
}

/* ---- a column, followed down; -1: its values are not those of a child's column ---- */

static int32_t column_of(const struct sx_expression *expression) {
    return expression->kind == SX_EXPR_COLUMN ? expression->column : -1;
}

/* The other side's column that is equal to one of an inner join's keys. */
static int32_t equal_key(const struct sx_join_plan *join, bool from_probe, int32_t column) {
    for (int32_t k = 0; join->kind == SX_JOIN_INNER && k < join->n_keys; k++) {
        const struct sx_expression *from = from_probe ? join->keys[k].probe : join->keys[k].build;
        const struct sx_expression *to = from_probe ? join->keys[k].build : join->keys[k].probe;
        if (column_of(from) == column && column_of(to) >= 0)
            return column_of(to);
    }
    return -1;
}

static int32_t below_join(const struct sx_join_plan *join, int child, int32_t column) {
    const enum sx_join_kind kind = join->kind;
    const bool build_only = kind == SX_JOIN_RIGHT_SEMI || kind == SX_JOIN_RIGHT_ANTI;
    const int32_t n_probe = build_only ? 0 : join->n_probe_output;
    if (column < n_probe) {
        const int32_t probe = join->probe_output[column];
        /* dropping a probe row of an outer join that keeps build rows would make a build row unmatched */
        if (child == 0)
            return kind != SX_JOIN_RIGHT && kind != SX_JOIN_FULL ? probe : -1;
        return equal_key(join, true, probe);
    }
    if (column - n_probe >= join->n_build_output)
        return -1; /* MARK's own column */
    const int32_t built = join->build_output[column - n_probe];
    if (child == 0)
        return equal_key(join, false, built);
    return kind == SX_JOIN_INNER || kind == SX_JOIN_RIGHT || build_only ? built : -1;
}

static int32_t column_below(const struct sx_plan *plan, int child, int32_t column) {
    switch (plan->kind) {
    case SX_PLAN_FILTER: return plan->u.filter.projection[column];
    case SX_PLAN_PROJECT: return column_of(plan->u.project.expressions[column]);
    case SX_PLAN_SORT: return plan->u.sort.projection[column];
    case SX_PLAN_UNION_ALL:
    case SX_PLAN_EXCHANGE: return column;
    case SX_PLAN_AGGREGATE:
        return column < plan->u.aggregate.n_keys ? column_of(plan->u.aggregate.keys[column]) : -1;
    case SX_PLAN_MATERIALIZE: return child == 1 ? column : -1;
    case SX_PLAN_JOIN: return below_join(&plan->u.join, child, column);
    default: return -1; /* limits count rows; sets of all rows count copies; references are shared */
    }
}

/* ---- filters ---- */

enum sx_status sx_filters_add(struct sx_run *run, struct sx_join_build *join, const int32_t *columns,
                              enum sx_filter_reach reach, const struct sx_pending_filter **filters,
                              struct sx_error *error) {
    for (int32_t k = 0; k < join->plan->u.join.n_keys; k++)
        if (columns[k] < 0)
            return SX_OK;
    struct sx_pending_filter *made = SX_ARENA_NEW(&run->arena, struct sx_pending_filter);
    if (!made)
        return sx_no_memory(error, "a runtime filter");
    *made = (struct sx_pending_filter){.join = join, .columns = columns, .reach = reach, .next = *filters};
    *filters = made;
    return SX_OK;
}

enum sx_status sx_filters_below(struct sx_run *run, const struct sx_plan *plan, int child,
                                const struct sx_pending_filter *filters,
                                const struct sx_pending_filter **out_filters, struct sx_error *error) {
    const struct sx_pending_filter *made = NULL;
    for (const struct sx_pending_filter *f = filters; f; f = f->next) {
        const int32_t n_keys = f->join->plan->u.join.n_keys;
        int32_t *columns = SX_ARENA_ARRAY(&run->arena, n_keys, int32_t);
        if (!columns)
            return sx_no_memory(error, "a runtime filter");
        for (int32_t k = 0; k < n_keys; k++)
            columns[k] = column_below(plan, child, f->columns[k]);
        const bool crosses = plan->kind == SX_PLAN_EXCHANGE && f->reach == SX_REACH_RANK;
        SX_TRY(sx_filters_add(run, f->join, columns, crosses ? SX_REACH_RANKS : f->reach, &made, error));
    }
    *out_filters = made;
    return SX_OK;
}

bool sx_join_filters_probe(const struct sx_join_plan *join) {
    for (int32_t k = 0; k < join->n_keys; k++)
        if (join->keys[k].null_equal)
            return false;
    return join->n_keys > 0 && drops_probe_rows(join->kind);
}

enum sx_status sx_filters_of_join(struct sx_run *run, struct sx_join_build *join,
                                  const struct sx_pending_filter **filters, struct sx_error *error) {
    const struct sx_join_plan *plan = &join->plan->u.join;
    int32_t *columns = SX_ARENA_ARRAY(&run->arena, plan->n_keys, int32_t);
    if (!columns)
        return sx_no_memory(error, "a runtime filter");
    for (int32_t k = 0; k < plan->n_keys; k++)
        columns[k] = column_of(plan->keys[k].probe);
    return sx_join_filters_probe(plan) ? sx_filters_add(run, join, columns, SX_REACH_RANK, filters, error)
                                       : SX_OK;
}
