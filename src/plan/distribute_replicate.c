/* Build sides that every rank makes for itself, from whole tables, so that nobody sends or waits. */
#include <stdint.h>

#include "plan/distribute_state.h"

/* A filter leaves less to be sent, while everybody has to read what it drops. */
enum { FILTERED_SHARE = 8 };

/* Bytes of the tables below; INT64_MAX: something is not the same on all ranks, or is no matter of reading.
 */
static int64_t count_bytes(const struct distribution *d, const struct sx_plan *plan, bool *filters) {
    int64_t bytes = 0;
    if (plan->kind == SX_PLAN_SCAN) {
        const struct sx_scan_plan *scan = &plan->u.scan;
        *filters |= scan->n_filters > 0;
        return distribute_scan_bytes(d->options, scan);
    }
    if (plan->kind != SX_PLAN_FILTER && plan->kind != SX_PLAN_PROJECT && plan->kind != SX_PLAN_JOIN &&
        plan->kind != SX_PLAN_VALUES)
        return INT64_MAX;
    *filters |= plan->kind == SX_PLAN_FILTER;
    for (int32_t i = 0; i < plan->n_children; i++)
        if (__builtin_add_overflow(bytes, count_bytes(d, plan->children[i], filters), &bytes))
            return INT64_MAX;
    return bytes;
}

bool distribute_replicates(const struct distribution *d, const struct sx_plan *build) {
    bool filters = false;
    if (!d->options || d->options->replicate_bytes <= 0)
        return false;
    const int64_t bytes = count_bytes(d, build, &filters);
    return bytes < INT64_MAX && bytes <= d->options->replicate_bytes / (filters ? FILTERED_SHARE : 1);
}
