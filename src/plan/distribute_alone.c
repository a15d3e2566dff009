/* Queries that one rank answers sooner than all of them together. */
#include "plan/distribute_state.h"

struct work {
    const struct sx_distribute_options *options;
    int64_t bytes;     /* of the columns that are scanned; INT64_MAX: not known */
    int64_t exchanges; /* about as many as several ranks would have */
};

static bool is_exchanged(const struct sx_plan *plan) {
    return plan->kind == SX_PLAN_JOIN || plan->kind == SX_PLAN_AGGREGATE || plan->kind == SX_PLAN_SORT ||
           plan->kind == SX_PLAN_TOP_N || plan->kind == SX_PLAN_LIMIT || plan->kind == SX_PLAN_SET_ALL;
}

static void count(struct work *work, const struct sx_plan *plan) {
    int64_t bytes = 0;
    if (plan->kind == SX_PLAN_SCAN)
        bytes = distribute_scan_bytes(work->options, &plan->u.scan);
    else if (plan->kind == SX_PLAN_MEMORY)
        bytes = INT64_MAX;
    if (__builtin_add_overflow(work->bytes, bytes, &work->bytes))
        work->bytes = INT64_MAX;
    work->exchanges += is_exchanged(plan);
    for (int32_t i = 0; i < plan->n_children; i++)
        count(work, plan->children[i]);
}

bool sx_plan_is_small(const struct sx_query_plan *query, const struct sx_distribute_options *options) {
    struct work work = {.options = options, .exchanges = 1}; /* the answer's way to rank 0 */
    if (options->exchange_bytes <= 0 || options->n_ranks < 2)
        return false;
    count(&work, query->root);
    if (work.bytes == INT64_MAX)
        return false;
    const int64_t left_to_others = work.bytes - work.bytes / options->n_ranks;
    return left_to_others / work.exchanges <= options->exchange_bytes;
}
