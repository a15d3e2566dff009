#include "plan/distribute.h"

#include <string.h>

#include "plan/distribute_state.h"
#include "tensor/semantics.h"

/* ---- spreads ---- */

static const struct spread ANYWHERE = {.kind = SPREAD_ANY}, AT_ROOT = {.kind = SPREAD_ROOT},
                           EVERYWHERE = {.kind = SPREAD_REPLICATED};

bool spread_is_whole(const struct spread *spread) {
    return spread->kind == SPREAD_ROOT || spread->kind == SPREAD_REPLICATED;
}

struct spread spread_of_whole(const struct spread *a, const struct spread *b) {
    return a->kind == SPREAD_REPLICATED && b->kind == SPREAD_REPLICATED ? EVERYWHERE : AT_ROOT;
}

struct spread spread_project(struct distribution *d, const struct spread *spread, const int32_t *projection,
                             int32_t n_projection) {
    if (spread->kind != SPREAD_HASH)
        return *spread;
    int32_t *columns = SX_ARENA_ARRAY(d->b.arena, spread->n_columns, int32_t);
    for (int32_t i = 0; i < spread->n_columns; i++) {
        int32_t at = 0;
        while (at < n_projection && projection[at] != spread->columns[i])
            at++;
        if (!columns || at == n_projection)
            return ANYWHERE;
        columns[i] = at;
    }
    return (struct spread){SPREAD_HASH, columns, spread->n_columns, spread->ends};
}

bool spread_is_by(const struct spread *spread, struct sx_expression *const *keys, int32_t n_keys) {
    bool same = spread->kind == SPREAD_HASH && spread->n_columns == n_keys;
    for (int32_t i = 0; same && i < n_keys; i++)
        same = keys[i]->kind == SX_EXPR_COLUMN && keys[i]->column == spread->columns[i];
    return same;
}

/* ---- exchanges ---- */

struct sx_plan *distribute_exchange(struct distribution *d, struct sx_plan *child, enum sx_exchange_kind kind,
                                    struct sx_expression **keys, int32_t n_keys) {
    if (!child)
        return NULL;
    struct sx_plan *plan = sx_build_plan(&d->b, SX_PLAN_EXCHANGE, 1, 0);
    if (!plan)
        return NULL;
    plan->children[0] = child;
    plan->n_columns = child->n_columns;
    plan->columns = child->columns;
    plan->estimated_rows = child->estimated_rows;
    plan->u.exchange = (struct sx_exchange_plan){.kind = kind, .keys = keys, .n_keys = n_keys};
    return plan;
}

struct sx_plan *distribute_to_root(struct distribution *d, struct sx_plan *child, struct spread *spread) {
    if (!child || spread_is_whole(spread))
        return child;
    *spread = AT_ROOT;
    return distribute_exchange(d, child, SX_EXCHANGE_GATHER, NULL, 0);
}

struct sx_plan *distribute_to_any(struct distribution *d, struct sx_plan *child, struct spread *spread) {
    if (!child || !spread_is_whole(spread))
        return child;
    *spread = ANYWHERE;
    return distribute_exchange(d, child, SX_EXCHANGE_ROOT_ONLY, NULL, 0);
}

struct sx_plan *distribute_by(struct distribution *d, struct sx_plan *child, const struct spread *spread,
                              struct sx_expression **keys, int32_t n_keys, const int64_t *ends) {
    if (!child || (spread_is_by(spread, keys, n_keys) && distribute_same_ends(d, spread->ends, ends)))
        return child;
    struct sx_plan *made = distribute_exchange(d, child, SX_EXCHANGE_HASH, keys, n_keys);
    if (made && ends) {
        made->u.exchange.ends = ends;
        made->u.exchange.n_ends = d->options->n_ranks - 1;
        distribute_find_scan(&made->u.exchange, child);
    }
    return made;
}

/* ---- nodes ---- */

static bool distribute_child(struct distribution *d, struct sx_plan *plan, int32_t child,
                             struct spread *out_spread) {
    plan->children[child] = distribute_node(d, plan->children[child], out_spread);
    return plan->children[child] != NULL;
}

static struct sx_plan *distribute_filter(struct distribution *d, struct sx_plan *plan,
                                         struct spread *out_spread) {
    struct spread spread;
    if (!distribute_child(d, plan, 0, &spread))
        return NULL;
    *out_spread = spread_project(d, &spread, plan->u.filter.projection, plan->u.filter.n_projection);
    return plan;
}

static struct sx_plan *distribute_project(struct distribution *d, struct sx_plan *plan,
                                          struct spread *out_spread) {
    struct spread spread;
    int32_t *projection = SX_ARENA_ARRAY(d->b.arena, plan->n_columns, int32_t);
    if (!projection)
        return sx_build_no_memory(&d->b);
    if (!distribute_child(d, plan, 0, &spread))
        return NULL;
    for (int32_t i = 0; i < plan->n_columns; i++) {
        const struct sx_expression *expression = plan->u.project.expressions[i];
        projection[i] = expression->kind == SX_EXPR_COLUMN ? expression->column : -1;
    }
    *out_spread = spread_project(d, &spread, projection, plan->n_columns);
    return plan;
}

/* To each rank a range of the keys' order. */
static struct sx_plan *by_range(struct distribution *d, struct sx_plan *child,
                                const struct sx_sort_plan *sort) {
    struct sx_expression **keys = SX_ARENA_ARRAY(d->b.arena, sort->n_orders, struct sx_expression *);
    if (!keys)
        return sx_build_no_memory(&d->b);
    for (int32_t i = 0; i < sort->n_orders; i++)
        keys[i] = sort->orders[i].expression;
    struct sx_plan *made = distribute_exchange(d, child, SX_EXCHANGE_RANGE, keys, sort->n_orders);
    if (made)
        made->u.exchange.orders = sort->orders;
    return made;
}

/* Each rank sorts a range. What depends on the order of the input is rank 0's, since the order of replicated
 * rows is each rank's own. */
static struct sx_plan *distribute_sort(struct distribution *d, struct sx_plan *plan,
                                       struct spread *out_spread) {
    struct spread spread;
    if (!distribute_child(d, plan, 0, &spread))
        return NULL;
    *out_spread = AT_ROOT;
    if (spread_is_whole(&spread))
        return plan;
    plan->children[0] = by_range(d, plan->children[0], &plan->u.sort);
    return plan->children[0] ? distribute_exchange(d, plan, SX_EXCHANGE_GATHER_RANGES, NULL, 0) : NULL;
}

/* The same with all columns of the child, and with as many rows as the whole may need; NULL: no memory, or it
 * would drop no rows. */
static struct sx_plan *partial_of(struct distribution *d, const struct sx_plan *plan) {
    struct sx_plan *child = plan->children[0];
    struct sx_plan *partial = sx_build_plan(&d->b, plan->kind, 1, 0);
    if (!partial)
        return NULL;
    partial->children[0] = child;
    partial->n_columns = child->n_columns;
    partial->columns = child->columns;
    partial->u = plan->u;
    struct sx_limit_plan *limit = plan->kind == SX_PLAN_TOP_N ? &partial->u.top_n.limit : &partial->u.limit;
    if (__builtin_add_overflow(limit->limit, limit->offset, &limit->limit))
        limit->limit = INT64_MAX;
    limit->offset = 0;
    if (plan->kind == SX_PLAN_TOP_N) {
        partial->u.sort.projection = sx_build_identity(&d->b, child->n_columns);
        partial->u.sort.n_projection = child->n_columns;
    }
    return plan->kind == SX_PLAN_LIMIT || partial->u.sort.projection ? partial : NULL;
}

/* TOP_N, LIMIT: each rank's first rows, then the first of those. */
static struct sx_plan *distribute_first(struct distribution *d, struct sx_plan *plan,
                                        struct spread *out_spread) {
    const struct sx_limit_plan *limit = plan->kind == SX_PLAN_TOP_N ? &plan->u.top_n.limit : &plan->u.limit;
    struct spread spread;
    if (!distribute_child(d, plan, 0, &spread))
        return NULL;
    if (!spread_is_whole(&spread) && limit->limit >= 0)
        plan->children[0] = partial_of(d, plan);
    plan->children[0] = distribute_to_root(d, plan->children[0], &spread);
    *out_spread = AT_ROOT;
    return plan->children[0] ? plan : NULL;
}

static struct sx_plan *distribute_union(struct distribution *d, struct sx_plan *plan,
                                        struct spread *out_spread) {
    struct spread *spreads = SX_ARENA_ARRAY(d->b.arena, plan->n_children, struct spread);
    if (!spreads)
        return sx_build_no_memory(&d->b);
    bool whole = true;
    *out_spread = EVERYWHERE;
    for (int32_t i = 0; i < plan->n_children; i++) {
        if (!distribute_child(d, plan, i, &spreads[i]))
            return NULL;
        whole &= spread_is_whole(&spreads[i]);
        *out_spread = spread_of_whole(out_spread, &spreads[i]);
    }
    if (whole)
        return plan;
    *out_spread = ANYWHERE;
    for (int32_t i = 0; i < plan->n_children; i++) {
        plan->children[i] = distribute_to_any(d, plan->children[i], &spreads[i]);
        if (!plan->children[i])
            return NULL;
    }
    return plan;
}

/* INTERSECT ALL and EXCEPT ALL: equal rows come together. */
static struct sx_plan *distribute_set_all(struct distribution *d, struct sx_plan *plan,
                                          struct spread *out_spread) {
    struct spread spreads[2];
    for (int32_t i = 0; i < 2; i++)
        if (!distribute_child(d, plan, i, &spreads[i]))
            return NULL;
    *out_spread = spread_of_whole(&spreads[0], &spreads[1]);
    if (spread_is_whole(&spreads[0]) && spread_is_whole(&spreads[1]))
        return plan;
    for (int32_t i = 0; i < 2; i++) {
        struct sx_expression **keys = SX_ARENA_ARRAY(d->b.arena, plan->n_columns, struct sx_expression *);
        for (int32_t c = 0; keys && c < plan->n_columns; c++)
            keys[c] = sx_build_input(&d->b, plan->children[i], c);
        plan->children[i] = distribute_to_any(d, plan->children[i], &spreads[i]);
        if (!keys || !plan->children[i])
            return NULL;
        plan->children[i] = distribute_by(d, plan->children[i], &spreads[i], keys, plan->n_columns, NULL);
    }
    *out_spread =
        (struct spread){SPREAD_HASH, sx_build_identity(&d->b, plan->n_columns), plan->n_columns, NULL};
    return plan->children[0] && plan->children[1] && out_spread->columns ? plan : NULL;
}

static struct sx_plan *distribute_materialize(struct distribution *d, struct sx_plan *plan,
                                              struct spread *out_spread) {
    if (!distribute_child(d, plan, 0, &d->materialized[plan->u.materialize.id]))
        return NULL;
    return distribute_child(d, plan, 1, out_spread) ? plan : NULL;
}

static struct sx_plan *distribute_known(struct distribution *d, struct sx_plan *plan,
                                        struct spread *out_spread) {
    switch (plan->kind) {
    case SX_PLAN_MEMORY: *out_spread = ANYWHERE; return plan;
    case SX_PLAN_SCAN:
        plan->u.scan.is_replicated = d->replicates;
        *out_spread = d->replicates ? EVERYWHERE : ANYWHERE;
        return plan;
    case SX_PLAN_VALUES: *out_spread = EVERYWHERE; return plan;
    case SX_PLAN_FILTER: return distribute_filter(d, plan, out_spread);
    case SX_PLAN_PROJECT: return distribute_project(d, plan, out_spread);
    case SX_PLAN_JOIN: return distribute_join(d, plan, out_spread);
    case SX_PLAN_AGGREGATE: return distribute_aggregate(d, plan, out_spread);
    case SX_PLAN_SORT: return distribute_sort(d, plan, out_spread);
    case SX_PLAN_TOP_N:
    case SX_PLAN_LIMIT: return distribute_first(d, plan, out_spread);
    case SX_PLAN_UNION_ALL: return distribute_union(d, plan, out_spread);
    case SX_PLAN_SET_ALL: return distribute_set_all(d, plan, out_spread);
    case SX_PLAN_MATERIALIZE: return distribute_materialize(d, plan, out_spread);
    case SX_PLAN_REFERENCE: *out_spread = d->materialized[plan->u.materialize.id]; return plan;
    case SX_PLAN_EXCHANGE: break;
    }
    return sx_build_malformed(&d->b, "an exchange in a plan for one rank");
}

struct sx_plan *distribute_node(struct distribution *d, struct sx_plan *plan, struct spread *out_spread) {
    *out_spread = ANYWHERE;
    if (!sx_build_enter(&d->b))
        return NULL;
    struct sx_plan *made = distribute_known(d, plan, out_spread);
    sx_build_leave(&d->b);
    return made;
}

static uint64_t hash_text(const struct sx_plan *root) {
    struct sx_arena arena = {0};
    const char *text = sx_plan_text(&arena, root);
    const uint64_t hash = sx_hash_bytes(text, (uint32_t)strlen(text));
    sx_arena_release(&arena);
    return hash;
}

enum sx_status sx_plan_distribute(struct sx_query_plan *query, const struct sx_distribute_options *options,
                                  struct sx_error *error) {
    struct sx_error local = {0};
    struct distribution d = {.b = {.arena = &query->arena, .error = &local}, .options = options};
    struct spread spread = ANYWHERE;
    d.materialized = SX_ARENA_ARRAY(&query->arena, query->n_materialized, struct spread);
    struct sx_plan *root =
        d.materialized ? distribute_node(&d, query->root, &spread) : sx_build_no_memory(&d.b);
    root = distribute_to_root(&d, root, &spread);
    if (!root)
        return sx_error_set(error, local.status == SX_OK ? SX_OUT_OF_MEMORY : local.status, "%s",
                            local.text[0] ? local.text : "no memory for the plan");
    distribute_root_choice(root);
    query->root = root;
    query->text_hash = hash_text(root);
    return sx_plan_check(query, error);
}
