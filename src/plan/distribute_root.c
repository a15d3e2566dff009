/* Few groups of a query's end: which exchange may give them all to rank 0. */
#include "plan/distribute_state.h"

/* It makes rows of its first child's alone, wherever these are. */
static bool follows_rows(const struct sx_plan *plan) {
    switch (plan->kind) {
    case SX_PLAN_FILTER:
    case SX_PLAN_PROJECT:
    case SX_PLAN_SORT:
    case SX_PLAN_TOP_N:
    case SX_PLAN_LIMIT: return true;
    case SX_PLAN_AGGREGATE: return plan->u.aggregate.n_keys > 0;
    default: return false;
    }
}

static bool is_exchange(const struct sx_plan *plan, enum sx_exchange_kind kind) {
    return plan->kind == SX_PLAN_EXCHANGE && plan->u.exchange.kind == kind;
}

/* Rows that are rank 0's already are where it would bring them, in the order that it would give them. */
static bool ends_at_root(const struct sx_plan *plan) {
    return is_exchange(plan, SX_EXCHANGE_GATHER) || is_exchange(plan, SX_EXCHANGE_GATHER_RANGES) ||
           is_exchange(plan, SX_EXCHANGE_RANGE);
}

static struct sx_plan *below(const struct sx_plan *plan) {
    return plan->children[plan->kind == SX_PLAN_MATERIALIZE ? 1 : 0];
}

/* NULL: there is none. */
static const struct sx_plan *find_choice(const struct sx_plan *plan) {
    while (follows_rows(plan) || ends_at_root(plan) || plan->kind == SX_PLAN_MATERIALIZE)
        plan = below(plan);
    return is_exchange(plan, SX_EXCHANGE_HASH) && !plan->u.exchange.ends &&
                   plan->children[0]->kind == SX_PLAN_AGGREGATE
               ? plan
               : NULL;
}

void distribute_root_choice(struct sx_plan *root) {
    const struct sx_plan *choice = find_choice(root);
    for (struct sx_plan *plan = root; choice; plan = below(plan)) {
        if (plan->kind == SX_PLAN_EXCHANGE)
            plan->u.exchange.root_choice = choice;
        if (plan == choice)
            return;
    }
}
