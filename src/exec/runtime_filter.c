#include "exec/build.h"

struct mapping {
    struct sx_run *run;
    const struct sx_pending_filter *made;
    bool crosses; /* of the filter in work */
    struct sx_error *error;
};

static enum sx_status add(struct mapping *map, struct sx_join_build *join, int32_t column) {
    struct sx_pending_filter *filter = SX_ARENA_NEW(&map->run->arena, struct sx_pending_filter);
    if (!filter)
        return sx_no_memory(map->error, "a runtime filter");
    *filter = (struct sx_pending_filter){
        .join = join, .column = column, .crosses = map->crosses, .next = map->made};
    map->made = filter;
    return SX_OK;
}

static enum sx_status add_if_column(struct mapping *map, struct sx_join_build *join,
                                    const struct sx_expression *expression) {
    return expression->kind == SX_EXPR_COLUMN ? add(map, join, expression->column) : SX_OK;
}

/* Probe rows without a match are dropped. */
static bool drops_probe_rows(enum sx_join_kind kind) {
    return kind == SX_JOIN_INNER || kind == SX_JOIN_SEMI || kind == SX_JOIN_RIGHT ||
           kind == SX_JOIN_RIGHT_SEMI || kind == SX_JOIN_RIGHT_ANTI;
}

/* A filter on an inner join's output column holds for the equal key of the other side too. */
static enum sx_status add_equal_keys(struct mapping *map, const struct sx_join_plan *join, bool from_probe,
                                     int32_t column, struct sx_join_build *filter) {
    for (int32_t k = 0; k < join->n_keys; k++) {
        const struct sx_expression *from = from_probe ? join->keys[k].probe : join->keys[k].build;
        const struct sx_expression *to = from_probe ? join->keys[k].build : join->keys[k].probe;
        if (from->kind == SX_EXPR_COLUMN && from->column == column)
            SX_TRY(add_if_column(map, filter, to));
    }
    return SX_OK;
}

static enum sx_status below_join(struct mapping *map, const struct sx_join_plan *join, int child,
                                 const struct sx_pending_filter *filter) {
    const enum sx_join_kind kind = join->kind;
    const bool build_only = kind == SX_JOIN_RIGHT_SEMI || kind == SX_JOIN_RIGHT_ANTI;
    const int32_t n_probe = build_only ? 0 : join->n_probe_output;
    const bool on_probe = filter->column < n_probe;
    if (on_probe) {
        int32_t column = join->probe_output[filter->column];
        /* dropping a probe row of an outer join that keeps build rows would make a build row unmatched */
        if (child == 0)
            return kind != SX_JOIN_RIGHT && kind != SX_JOIN_FULL ? add(map, filter->join, column) : SX_OK;
        return kind == SX_JOIN_INNER ? add_equal_keys(map, join, true, column, filter->join) : SX_OK;
    }
    if (filter->column - n_probe >= join->n_build_output)
        return SX_OK; /* MARK's own column */
    int32_t column = join->build_output[filter->column - n_probe];
    if (child == 0)
        return kind == SX_JOIN_INNER ? add_equal_keys(map, join, false, column, filter->join) : SX_OK;
    bool may_drop = kind == SX_JOIN_INNER || kind == SX_JOIN_RIGHT || build_only;
    return may_drop ? add(map, filter->join, column) : SX_OK;
}

static enum sx_status below(struct mapping *map, const struct sx_plan *plan, int child,
                            const struct sx_pending_filter *filter) {
    switch (plan->kind) {
    case SX_PLAN_FILTER: return add(map, filter->join, plan->u.filter.projection[filter->column]);
    case SX_PLAN_PROJECT:
        return add_if_column(map, filter->join, plan->u.project.expressions[filter->column]);
    case SX_PLAN_SORT: return add(map, filter->join, plan->u.sort.projection[filter->column]);
    case SX_PLAN_UNION_ALL:
    case SX_PLAN_EXCHANGE: return add(map, filter->join, filter->column);
    case SX_PLAN_AGGREGATE:
        if (filter->column >= plan->u.aggregate.n_keys)
            return SX_OK;
        return add_if_column(map, filter->join, plan->u.aggregate.keys[filter->column]);
    case SX_PLAN_MATERIALIZE: return child == 1 ? add(map, filter->join, filter->column) : SX_OK;
    case SX_PLAN_JOIN: return below_join(map, &plan->u.join, child, filter);
    default: return SX_OK; /* limits count rows; sets of all rows count copies; references are shared */
    }
}

enum sx_status sx_filters_below(struct sx_run *run, const struct sx_plan *plan, int child,
                                const struct sx_pending_filter *filters,
                                const struct sx_pending_filter **out_filters, struct sx_error *error) {
    struct mapping map = {.run = run, .error = error};
    for (const struct sx_pending_filter *f = filters; f; f = f->next) {
        map.crosses = f->crosses || plan->kind == SX_PLAN_EXCHANGE;
        SX_TRY(below(&map, plan, child, f));
    }
    *out_filters = map.made;
    return SX_OK;
}

enum sx_status sx_filters_of_join(struct sx_run *run, struct sx_join_build *join,
                                  const struct sx_pending_filter **filters, struct sx_error *error) {
    const struct sx_join_plan *plan = &join->plan->u.join;
    if (plan->n_keys != 1 || plan->keys[0].null_equal || !drops_probe_rows(plan->kind))
        return SX_OK;
    struct mapping map = {.run = run, .made = *filters, .error = error};
    SX_TRY(add_if_column(&map, join, plan->keys[0].probe));
    *filters = map.made;
    return SX_OK;
}
