#include "exec/build_order.h"

#include "exec/origin.h"

/* ---- estimates ---- */

struct estimate {
    double rows;
    double share; /* of the rows that there would be without filters */
};

static const double FILTER_SHARE = 0.2, GROUP_SHARE = 0.25;

static struct estimate estimate_plan(struct sx_run *run, const struct sx_plan *plan);

static struct estimate filtered(struct estimate input, int32_t n_conjuncts) {
    for (int32_t i = 0; i < n_conjuncts; i++) {
        input.rows *= FILTER_SHARE;
        input.share *= FILTER_SHARE;
    }
    return input;
}

static struct estimate estimate_scan(struct sx_run *run, const struct sx_scan_plan *scan) {
    int64_t rows = 0;
    /* a file that can't be read is reported when the scan is made */
    if (sx_storage_count_rows(run->options.storage, scan->files, scan->n_files, &rows, NULL) != SX_OK)
        rows = 0;
    return filtered((struct estimate){(double)rows, 1.0}, scan->n_filters);
}

static struct estimate estimate_join(struct sx_run *run, const struct sx_plan *plan) {
    struct estimate probe = estimate_plan(run, plan->children[0]);
    struct estimate build = estimate_plan(run, plan->children[1]);
    switch (plan->u.join.kind) {
    case SX_JOIN_RIGHT:
    case SX_JOIN_RIGHT_SEMI:
    case SX_JOIN_RIGHT_ANTI: return build;
    case SX_JOIN_INNER:
    case SX_JOIN_SEMI: return (struct estimate){probe.rows * build.share, probe.share * build.share};
    default: return probe;
    }
}

static struct estimate estimate_plan(struct sx_run *run, const struct sx_plan *plan) {
    struct estimate made = {1.0, 1.0};
    switch (plan->kind) {
    case SX_PLAN_SCAN: return estimate_scan(run, &plan->u.scan);
    case SX_PLAN_MEMORY: made.rows = plan->estimated_rows; return made;
    case SX_PLAN_VALUES: made.rows = (double)plan->u.values.n_rows; return made;
    case SX_PLAN_FILTER: return filtered(estimate_plan(run, plan->children[0]), plan->u.filter.n_conjuncts);
    case SX_PLAN_JOIN: return estimate_join(run, plan);
    case SX_PLAN_MATERIALIZE: return estimate_plan(run, plan->children[1]);
    case SX_PLAN_REFERENCE: made.rows = 1e5; return made;
    case SX_PLAN_AGGREGATE:
        made = estimate_plan(run, plan->children[0]);
        made.rows = plan->u.aggregate.n_keys ? made.rows * GROUP_SHARE : 1.0;
        return made;
    default: break;
    }
    made.rows = 0;
    for (int32_t i = 0; i < plan->n_children; i++) {
        struct estimate child = estimate_plan(run, plan->children[i]);
        made.rows += child.rows;
        made.share = child.share;
    }
    return made;
}

double sx_estimate_rows(struct sx_run *run, const struct sx_plan *plan) {
    return estimate_plan(run, plan).rows;
}

/* ---- columns that are equal ---- */

static struct sx_origin probe_key_origin(const struct sx_plan *join, int32_t key) {
    const struct sx_expression *probe = join->u.join.keys[key].probe;
    if (probe->kind != SX_EXPR_COLUMN)
        return (struct sx_origin){NULL, 0};
    return sx_origin_of(join->children[0], probe->column);
}

/* ---- filters by joins of the same chain ---- */

/* Probe rows without a match in `join` end there, and it can tell which. */
static bool filters_chain(const struct sx_join_plan *join) {
    return (join->kind == SX_JOIN_INNER || join->kind == SX_JOIN_SEMI) && sx_join_filters_probe(join);
}

/* Build rows that only match probe rows which end elsewhere make no difference. */
static bool may_lose_build_rows(enum sx_join_kind kind) {
    return kind == SX_JOIN_INNER || kind == SX_JOIN_SEMI || kind == SX_JOIN_ANTI || kind == SX_JOIN_LEFT ||
           kind == SX_JOIN_SINGLE || kind == SX_JOIN_RIGHT_SEMI;
}

/* The build column of a key of `to` that is equal to the probe key in every row that stays; -1: none is. */
static int32_t equal_build_column(const struct sx_plan *to, struct sx_origin probe_key) {
    for (int32_t k = 0; probe_key.plan && k < to->u.join.n_keys; k++) {
        const struct sx_join_key *key = &to->u.join.keys[k];
        const struct sx_origin mine = probe_key_origin(to, k);
        const bool equal = mine.plan == probe_key.plan && mine.column == probe_key.column;
        if (equal && !key->null_equal && key->build->kind == SX_EXPR_COLUMN)
            return key->build->column;
    }
    return -1;
}

/* If keys of `filtered` are equal to those of `by` in every row that stays. */
static enum sx_status filter_by(struct sx_run *run, const struct sx_pending_build *by,
                                const struct sx_pending_build *filtered,
                                const struct sx_pending_filter **filters, struct sx_error *error) {
    struct sx_join_build *from = by->build;
    const struct sx_plan *to = filtered->build->plan;
    const enum sx_filter_reach reach = to->u.join.build_is_everywhere             ? SX_REACH_ALIKE
                                       : by->n_exchanges != filtered->n_exchanges ? SX_REACH_RANKS
                                                                                  : SX_REACH_RANK;
    if (!from->scheduled || !filters_chain(&from->plan->u.join))
        return SX_OK;
    const int32_t n_keys = from->plan->u.join.n_keys;
    int32_t *columns = SX_ARENA_ARRAY(&run->arena, n_keys, int32_t);
    if (!columns)
        return sx_no_memory(error, "a runtime filter");
    for (int32_t k = 0; k < n_keys; k++)
        columns[k] = equal_build_column(to, probe_key_origin(from->plan, k));
    return sx_filters_add(run, from, columns, reach, filters, error);
}

/* ---- the list ---- */

enum sx_status sx_pending_add(struct sx_run *run, struct sx_join_build *build,
                              const struct sx_pending_filter *filters, int n_exchanges,
                              struct sx_pending_build **list, struct sx_error *error) {
    struct sx_pending_build *made = SX_ARENA_NEW(&run->arena, struct sx_pending_build);
    if (!made)
        return sx_no_memory(error, "a join");
    *made = (struct sx_pending_build){.build = build,
                                      .filters = filters,
                                      .rows = sx_estimate_rows(run, build->plan->children[1]),
                                      .n_exchanges = n_exchanges,
                                      .next = *list};
    *list = made;
    return SX_OK;
}

enum sx_status sx_pending_take(struct sx_run *run, struct sx_pending_build *list,
                               struct sx_join_build **out_build, const struct sx_pending_filter **out_filters,
                               struct sx_error *error) {
    struct sx_pending_build *best = NULL;
    const struct sx_pending_filter *filters = NULL;
    for (struct sx_pending_build *p = list; p; p = p->next)
        if (!p->taken && (!best || p->rows < best->rows))
            best = p;
    *out_build = best ? best->build : NULL;
    if (!best)
        return SX_OK;
    best->taken = true;
    /* What is everywhere has to stay the same on all ranks. */
    const bool is_everywhere = best->build->plan->u.join.build_is_everywhere;
    for (const struct sx_pending_filter *f = best->filters; f; f = f->next)
        if (f->join->scheduled)
            SX_TRY(sx_filters_add(run, f->join, f->columns, is_everywhere ? SX_REACH_ALIKE : f->reach,
                                  &filters, error));
    for (struct sx_pending_build *p = list; p && may_lose_build_rows(best->build->plan->u.join.kind);
         p = p->next)
        SX_TRY(filter_by(run, p, best, &filters, error));
    *out_filters = filters;
    return SX_OK;
}
