/* Rows that are in ranges of a column where they are scanned: each rank's share of a table that is in the
 * column's order. What needs rows with equal keys together can send each to the rank in whose range it is,
 * and then most stay. */
#include <string.h>

#include "plan/distribute_state.h"

enum { MOST_RANKS = 64 }; /* a row is compared with all ends */

static bool is_column(const struct sx_expression *expression, int32_t column) {
    return expression->kind == SX_EXPR_COLUMN && expression->column == column;
}

/* A column of the probe side that has the same values; -1: there is none, or rows are not the probe side's.
 */
static int32_t probe_column(const struct sx_join_plan *join, int32_t column) {
    if (join->kind == SX_JOIN_RIGHT || join->kind == SX_JOIN_FULL || join->kind == SX_JOIN_RIGHT_SEMI ||
        join->kind == SX_JOIN_RIGHT_ANTI)
        return -1;
    if (column < join->n_probe_output)
        return join->probe_output[column];
    if (join->kind != SX_JOIN_INNER)
        return -1;
    const int32_t built = join->build_output[column - join->n_probe_output];
    for (int32_t k = 0; k < join->n_keys; k++)
        if (is_column(join->keys[k].build, built) && join->keys[k].probe->kind == SX_EXPR_COLUMN)
            return join->keys[k].probe->column;
    return -1;
}

/* Whether rows are behind the exchange where they were before, or mostly. */
static bool keeps_places(const struct sx_exchange_plan *exchange, int32_t column) {
    return exchange->kind == SX_EXCHANGE_HASH && exchange->ends && is_column(exchange->keys[0], column);
}

/* The scan that the column's values come from and whose rows have gone nowhere since; NULL: there is none. */
static const struct sx_plan *find_scan(const struct sx_plan *plan, bool is_moved, int32_t *column) {
    for (;;) {
        switch (plan->kind) {
        case SX_PLAN_SCAN: return plan;
        case SX_PLAN_FILTER: *column = plan->u.filter.projection[*column]; break;
        case SX_PLAN_PROJECT:
            if (plan->u.project.expressions[*column]->kind != SX_EXPR_COLUMN)
                return NULL;
            *column = plan->u.project.expressions[*column]->column;
            break;
        case SX_PLAN_JOIN:
            *column = probe_column(&plan->u.join, *column);
            if (*column < 0)
                return NULL;
            break;
        case SX_PLAN_EXCHANGE:
            if (plan->u.exchange.kind != SX_EXCHANGE_HASH ||
                (!is_moved && !keeps_places(&plan->u.exchange, *column)))
                return NULL;
            break;
        default: return NULL;
        }
        plan = plan->children[0];
    }
}

static bool may_have_ends(struct sx_type type) {
    return type.id == SX_TYPE_I8 || type.id == SX_TYPE_I16 || type.id == SX_TYPE_I32 ||
           type.id == SX_TYPE_I64 || type.id == SX_TYPE_DATE;
}

const int64_t *distribute_ends(struct distribution *d, const struct sx_plan *child,
                               const struct sx_expression *key, bool is_moved) {
    const struct sx_distribute_options *options = d->options;
    int32_t column = key->column;
    if (!options || !options->share_ends || options->n_ranks < 2 || options->n_ranks > MOST_RANKS ||
        key->kind != SX_EXPR_COLUMN || !may_have_ends(key->type))
        return NULL;
    const struct sx_plan *scan = find_scan(child, is_moved, &column);
    if (!scan || scan->u.scan.is_replicated || scan->u.scan.parts)
        return NULL;
    int64_t *ends = SX_ARENA_ARRAY(d->b.arena, options->n_ranks - 1, int64_t);
    return ends && options->share_ends(options->context, &scan->u.scan, scan->u.scan.projection[column], ends)
               ? ends
               : NULL;
}

void distribute_find_scan(struct sx_exchange_plan *exchange, const struct sx_plan *child) {
    int32_t column = exchange->keys[0]->column;
    const struct sx_plan *scan =
        exchange->keys[0]->kind == SX_EXPR_COLUMN ? find_scan(child, true, &column) : NULL;
    if (!scan)
        return;
    exchange->scan = &scan->u.scan;
    exchange->scan_column = scan->u.scan.projection[column];
}

bool distribute_same_ends(const struct distribution *d, const int64_t *a, const int64_t *b) {
    return a == b || (a && b && memcmp(a, b, (size_t)(d->options->n_ranks - 1) * sizeof *a) == 0);
}
