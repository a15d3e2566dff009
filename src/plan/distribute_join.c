#include "plan/distribute_state.h"

static bool keeps_build_rows(enum sx_join_kind kind) {
    return kind == SX_JOIN_RIGHT || kind == SX_JOIN_FULL || kind == SX_JOIN_RIGHT_SEMI ||
           kind == SX_JOIN_RIGHT_ANTI;
}

/* Whether it is right when every rank has all of the probe side, and its own rows of the build side. */
static bool takes_replicated_probe(enum sx_join_kind kind) {
    return kind == SX_JOIN_INNER || kind == SX_JOIN_RIGHT || kind == SX_JOIN_RIGHT_SEMI ||
           kind == SX_JOIN_RIGHT_ANTI;
}

/* Rows that agree on so many of the first keys have to be on one rank. None: rank by rank only with the whole
 * build side, as for MARK, where any build row and any NULL of the build side counts. */
static int32_t count_hash_keys(const struct sx_join_plan *join) {
    return join->kind == SX_JOIN_MARK ? join->n_mark_group : join->n_keys;
}

static struct sx_expression **side_keys(struct distribution *d, const struct sx_join_plan *join,
                                        int32_t n_keys, bool of_probe) {
    struct sx_expression **keys = SX_ARENA_ARRAY(d->b.arena, n_keys, struct sx_expression *);
    if (!keys)
        return sx_build_no_memory(&d->b);
    for (int32_t k = 0; k < n_keys; k++)
        keys[k] = of_probe ? join->keys[k].probe : join->keys[k].build;
    return keys;
}

/* ---- where the output is ---- */

static struct spread spread_of_probe(struct distribution *d, const struct sx_join_plan *join,
                                     const struct spread *spread) {
    return spread_project(d, spread, join->probe_output, join->n_probe_output);
}

/* The build columns stand behind the probe's. */
static struct spread spread_of_build(struct distribution *d, const struct sx_join_plan *join,
                                     const struct spread *spread) {
    struct spread made = spread_project(d, spread, join->build_output, join->n_build_output);
    if (made.kind == SPREAD_HASH)
        for (int32_t i = 0; i < made.n_columns; i++)
            ((int32_t *)(uintptr_t)made.columns)[i] += join->n_probe_output;
    return made;
}

/* Spread by these keys, as far as they are columns. */
static struct spread spread_by(struct distribution *d, struct sx_expression *const *keys, int32_t n_keys,
                               const int64_t *ends) {
    int32_t *columns = SX_ARENA_ARRAY(d->b.arena, n_keys, int32_t);
    for (int32_t k = 0; k < n_keys; k++) {
        if (!columns || keys[k]->kind != SX_EXPR_COLUMN)
            return (struct spread){.kind = SPREAD_ANY};
        columns[k] = keys[k]->column;
    }
    return (struct spread){SPREAD_HASH, columns, n_keys, ends};
}

/* ---- the ways of a join ---- */

static struct sx_plan *broadcast_build(struct distribution *d, struct sx_plan *plan,
                                       const struct spread *probe, struct spread *out_spread) {
    plan->children[1] = distribute_exchange(d, plan->children[1], SX_EXCHANGE_BROADCAST, NULL, 0);
    *out_spread = spread_of_probe(d, &plan->u.join, probe);
    return plan->children[1] ? plan : NULL;
}

static struct sx_plan *join_at_root(struct distribution *d, struct sx_plan *plan, struct spread *spreads,
                                    struct spread *out_spread) {
    for (int32_t i = 0; i < 2; i++)
        plan->children[i] = distribute_to_root(d, plan->children[i], &spreads[i]);
    *out_spread = spread_of_whole(&spreads[0], &spreads[1]);
    return plan->children[0] && plan->children[1] ? plan : NULL;
}

/* By which of the join's keys rows come together. */
struct meeting {
    int32_t first, n_keys;
    const int64_t *ends;
};

/* Where a side is, if that is by all keys, or by ranges of one; else by ranges of a key in which most of the
 * probe side stays. */
static struct meeting find_meeting(struct distribution *d, const struct sx_plan *plan,
                                   const struct spread *spreads, struct sx_expression **const *sides,
                                   int32_t n_keys) {
    for (int32_t side = 0; side < 2; side++) {
        if (spread_is_by(&spreads[side], sides[side], n_keys))
            return (struct meeting){0, n_keys, spreads[side].ends};
        for (int32_t k = 0; spreads[side].ends && k < n_keys; k++)
            if (spread_is_by(&spreads[side], &sides[side][k], 1))
                return (struct meeting){k, 1, spreads[side].ends};
    }
    for (int32_t k = 0; k < n_keys; k++) {
        const int64_t *ends = distribute_ends(d, plan->children[0], sides[0][k], true);
        if (ends)
            return (struct meeting){k, 1, ends};
    }
    return (struct meeting){0, n_keys, NULL};
}

/* Rows with equal keys come together; a side that is in place stays. Where a small build side may be
 * broadcast instead, the output is where the probe side was. Rows of an outer join that have no partner are
 * where their own keys say, so that only that side's columns tell. */
static struct sx_plan *repartition(struct distribution *d, struct sx_plan *plan, const struct spread *spreads,
                                   int32_t n_keys, struct spread *out_spread) {
    const struct sx_join_plan *join = &plan->u.join;
    struct sx_expression **probe_keys = side_keys(d, join, n_keys, true);
    struct sx_expression **build_keys = side_keys(d, join, n_keys, false);
    if (!probe_keys || !build_keys)
        return NULL;
    const struct sx_plan *const before[] = {plan->children[0], plan->children[1]};
    const struct meeting at =
        find_meeting(d, plan, spreads, (struct sx_expression * *[]){probe_keys, build_keys}, n_keys);
    probe_keys += at.first;
    build_keys += at.first;
    plan->children[0] = distribute_by(d, plan->children[0], &spreads[0], probe_keys, at.n_keys, at.ends);
    plan->children[1] = distribute_by(d, plan->children[1], &spreads[1], build_keys, at.n_keys, at.ends);
    if (!plan->children[0] || !plan->children[1])
        return NULL;
    if (join->n_keys == 1)
        plan->u.join.ends = at.ends;
    const bool probe_stays = plan->children[0] == before[0], build_stays = plan->children[1] == before[1];
    const bool adaptive = !build_stays && !keeps_build_rows(join->kind);
    if (adaptive) {
        plan->children[1]->u.exchange.adaptive = true;
        if (!probe_stays)
            plan->children[0]->u.exchange.adaptive = true;
    }
    const struct spread by_probe = spread_by(d, probe_keys, at.n_keys, at.ends),
                        by_build = spread_by(d, build_keys, at.n_keys, at.ends);
    if (join->kind == SX_JOIN_FULL || (adaptive && !probe_stays))
        *out_spread = (struct spread){.kind = SPREAD_ANY};
    else if (keeps_build_rows(join->kind))
        *out_spread = spread_of_build(d, join, &by_build);
    else
        *out_spread = spread_of_probe(d, join, &by_probe);
    return plan;
}

static bool distribute_sides(struct distribution *d, struct sx_plan *plan, struct spread *spreads) {
    const bool replicates = d->replicates;
    plan->children[0] = distribute_node(d, plan->children[0], &spreads[0]);
    d->replicates =
        replicates || (!keeps_build_rows(plan->u.join.kind) && distribute_replicates(d, plan->children[1]));
    plan->children[1] = distribute_node(d, plan->children[1], &spreads[1]);
    d->replicates = replicates;
    return plan->children[0] && plan->children[1];
}

struct sx_plan *distribute_join(struct distribution *d, struct sx_plan *plan, struct spread *out_spread) {
    const struct sx_join_plan *join = &plan->u.join;
    const int32_t n_keys = count_hash_keys(join);
    struct spread spreads[2];
    if (!distribute_sides(d, plan, spreads))
        return NULL;
    plan->u.join.build_is_everywhere = spreads[1].kind == SPREAD_REPLICATED;
    if (spread_is_whole(&spreads[0]) && spread_is_whole(&spreads[1]))
        return join_at_root(d, plan, spreads, out_spread);
    if (spreads[1].kind == SPREAD_REPLICATED && !keeps_build_rows(join->kind)) {
        *out_spread = spread_of_probe(d, join, &spreads[0]);
        return plan;
    }
    if (spreads[0].kind == SPREAD_REPLICATED && takes_replicated_probe(join->kind)) {
        *out_spread = spread_of_build(d, join, &spreads[1]);
        return plan;
    }
    if (n_keys == 0 && keeps_build_rows(join->kind))
        return join_at_root(d, plan, spreads, out_spread);
    for (int32_t i = 0; i < 2; i++) {
        plan->children[i] = distribute_to_any(d, plan->children[i], &spreads[i]);
        if (!plan->children[i])
            return NULL;
    }
    return n_keys == 0 ? broadcast_build(d, plan, &spreads[0], out_spread)
                       : repartition(d, plan, spreads, n_keys, out_spread);
}
