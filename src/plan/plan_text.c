#include <inttypes.h>

#include "plan/plan.h"
#include "plan/text.h"

static const char *const kind_names[] = {
#define SX_PLAN_NAME(name, text) text,
    SX_PLAN_LIST(SX_PLAN_NAME)
#undef SX_PLAN_NAME
};

static const char *const join_names[] = {
#define SX_JOIN_NAME(name, text) text,
    SX_JOIN_LIST(SX_JOIN_NAME)
#undef SX_JOIN_NAME
};

static const char *const exchange_names[] = {
#define SX_EXCHANGE_NAME(name, text) text,
    SX_EXCHANGE_LIST(SX_EXCHANGE_NAME)
#undef SX_EXCHANGE_NAME
};

static const char *const call_names[] = {
    [SX_CALL_COUNT_STAR] = "count", [SX_CALL_COUNT] = "count",
    [SX_CALL_SUM] = "sum",          [SX_CALL_AVG] = "avg",
    [SX_CALL_MIN] = "min",          [SX_CALL_MAX] = "max",
    [SX_CALL_FIRST] = "first",      [SX_CALL_ANY_VALUE] = "any_value",
};

/* Names of the columns of up to two children; "#n" where there is none. */
static const char *const *input_names(struct sx_text *text, const struct sx_plan *plan) {
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n_children; i++)
        n += plan->children[i]->n_columns;
    const char **names = SX_ARENA_ARRAY(text->arena, n, const char *);
    n = 0;
    for (int32_t i = 0; names && i < plan->n_children; i++)
        for (int32_t c = 0; c < plan->children[i]->n_columns; c++)
            names[n++] = plan->children[i]->columns[c].name;
    return names;
}

static void add_expressions(struct sx_text *text, struct sx_expression *const *expressions, int32_t n,
                            const char *separator, const char *const *names) {
    for (int32_t i = 0; i < n; i++) {
        sx_text_add(text, "%s", i ? separator : "");
        sx_text_add_expression(text, expressions[i], names);
    }
}

static void add_scan(struct sx_text *text, const struct sx_plan *plan) {
    const struct sx_scan_plan *scan = &plan->u.scan;
    sx_text_add(text, " %s (", scan->table);
    for (int32_t i = 0; i < scan->n_projection; i++)
        sx_text_add(text, "%s%s", i ? ", " : "", scan->columns[scan->projection[i]].source);
    sx_text_add(text, "%s", scan->is_replicated ? ") on every rank" : ")");
    if (scan->n_filters == 0)
        return;
    const char **names = SX_ARENA_ARRAY(text->arena, scan->n_columns, const char *);
    for (int32_t i = 0; names && i < scan->n_columns; i++)
        names[i] = scan->columns[i].source;
    sx_text_add(text, " where ");
    add_expressions(text, scan->filters, scan->n_filters, " AND ", names);
}

static void add_values(struct sx_text *text, const struct sx_plan *plan) {
    enum { SHOWN_ROWS = 3 };
    sx_text_add(text, " %" PRId64 " rows", plan->u.values.n_rows);
    for (int64_t row = 0; row < plan->u.values.n_rows && row < SHOWN_ROWS; row++) {
        sx_text_add(text, " (");
        for (int32_t c = 0; c < plan->n_columns; c++) {
            sx_text_add(text, "%s", c ? ", " : "");
            sx_text_add_scalar(text, &plan->u.values.cells[row * plan->n_columns + c]);
        }
        sx_text_add(text, ")");
    }
}

static void add_join(struct sx_text *text, const struct sx_plan *plan) {
    const struct sx_join_plan *join = &plan->u.join;
    const char *const *names = input_names(text, plan);
    const char *const *build_names = names ? names + plan->children[0]->n_columns : NULL;
    sx_text_add(text, " %s", join_names[join->kind]);
    for (int32_t i = 0; i < join->n_keys; i++) {
        sx_text_add(text, i ? " AND " : " on ");
        sx_text_add_expression(text, join->keys[i].probe, names);
        sx_text_add(text, join->keys[i].null_equal ? " IS NOT DISTINCT FROM " : " = ");
        sx_text_add_expression(text, join->keys[i].build, build_names);
    }
    if (join->n_residual) {
        sx_text_add(text, join->n_keys ? " where " : " on ");
        add_expressions(text, join->residual, join->n_residual, " AND ", names);
    }
    if (join->n_mark_group)
        sx_text_add(text, " (NULL within groups of the first %d keys)", join->n_mark_group);
}

static void add_call(struct sx_text *text, const struct sx_aggregate_call *call, const char *const *names) {
    sx_text_add(text, "%s(%s", call_names[call->function], call->distinct ? "DISTINCT " : "");
    if (call->argument)
        sx_text_add_expression(text, call->argument, names);
    else
        sx_text_add(text, "*");
    sx_text_add(text, ")");
    if (call->filter) {
        sx_text_add(text, " FILTER ");
        sx_text_add_expression(text, call->filter, names);
    }
}

static void add_aggregate(struct sx_text *text, const struct sx_plan *plan) {
    const struct sx_aggregate_plan *aggregate = &plan->u.aggregate;
    const char *const *names = input_names(text, plan);
    sx_text_add(text, " ");
    for (int32_t i = 0; i < aggregate->n_calls; i++) {
        sx_text_add(text, "%s", i ? ", " : "");
        add_call(text, &aggregate->calls[i], names);
    }
    if (aggregate->n_keys) {
        sx_text_add(text, "%sby ", aggregate->n_calls ? " " : "");
        add_expressions(text, aggregate->keys, aggregate->n_keys, ", ", names);
    }
}

static void add_orders(struct sx_text *text, const struct sx_plan *plan, const struct sx_order *orders,
                       int32_t n_orders) {
    const char *const *names = input_names(text, plan);
    for (int32_t i = 0; i < n_orders; i++) {
        const struct sx_order *order = &orders[i];
        sx_text_add(text, i ? ", " : "");
        sx_text_add_expression(text, order->expression, names);
        sx_text_add(text, "%s%s", order->descending ? " DESC" : "", order->nulls_first ? " NULLS FIRST" : "");
    }
}

static void add_sort(struct sx_text *text, const struct sx_plan *plan) {
    sx_text_add(text, " by ");
    add_orders(text, plan, plan->u.sort.orders, plan->u.sort.n_orders);
}

static void add_limit(struct sx_text *text, const struct sx_limit_plan *limit) {
    if (limit->limit >= 0)
        sx_text_add(text, " limit %" PRId64, limit->limit);
    if (limit->offset > 0)
        sx_text_add(text, " offset %" PRId64, limit->offset);
}

static void add_exchange(struct sx_text *text, const struct sx_plan *plan) {
    const struct sx_exchange_plan *exchange = &plan->u.exchange;
    sx_text_add(text, " %s", exchange_names[exchange->kind]);
    if (exchange->n_keys)
        sx_text_add(text, " by ");
    if (exchange->orders)
        add_orders(text, plan, exchange->orders, exchange->n_keys);
    else
        add_expressions(text, exchange->keys, exchange->n_keys, ", ", input_names(text, plan));
    for (int32_t i = 0; exchange->ends && i < exchange->n_ends; i++)
        sx_text_add(text, "%s%" PRId64, i ? ", " : ", ranges as scanned, to ", exchange->ends[i]);
    if (exchange->adaptive)
        sx_text_add(text, ", or none of a small build side");
}

static void add_details(struct sx_text *text, const struct sx_plan *plan) {
    switch (plan->kind) {
    case SX_PLAN_SCAN: add_scan(text, plan); break;
    case SX_PLAN_VALUES: add_values(text, plan); break;
    case SX_PLAN_FILTER:
        sx_text_add(text, " ");
        add_expressions(text, plan->u.filter.conjuncts, plan->u.filter.n_conjuncts, " AND ",
                        input_names(text, plan));
        break;
    case SX_PLAN_PROJECT:
        sx_text_add(text, " ");
        add_expressions(text, plan->u.project.expressions, plan->n_columns, ", ", input_names(text, plan));
        break;
    case SX_PLAN_JOIN: add_join(text, plan); break;
    case SX_PLAN_AGGREGATE: add_aggregate(text, plan); break;
    case SX_PLAN_SORT: add_sort(text, plan); break;
    case SX_PLAN_TOP_N:
        add_sort(text, plan);
        add_limit(text, &plan->u.top_n.limit);
        break;
    case SX_PLAN_LIMIT: add_limit(text, &plan->u.limit); break;
    case SX_PLAN_UNION_ALL: break;
    case SX_PLAN_SET_ALL: sx_text_add(text, plan->u.set_all.except ? " EXCEPT" : " INTERSECT"); break;
    case SX_PLAN_MATERIALIZE:
    case SX_PLAN_REFERENCE: sx_text_add(text, " %d", plan->u.materialize.id); break;
    case SX_PLAN_EXCHANGE: add_exchange(text, plan); break;
    case SX_PLAN_MEMORY: sx_text_add(text, " %d", plan->u.memory.id); break;
    }
}

enum { MOST_INDENT_BYTES = 4096 };

/* `indent` holds what stands in front of this node's children; `length_bytes` of it are used. */
static void add_tree(struct sx_text *text, const struct sx_plan *plan, char *indent, size_t length_bytes) {
    sx_text_add(text, "%s", kind_names[plan->kind]);
    add_details(text, plan);
    sx_text_add(text, "\n");
    for (int32_t i = 0; i < plan->n_children; i++) {
        const bool last = i + 1 == plan->n_children;
        const char *bar = last ? "   " : "│  ";
        const size_t bar_bytes = last ? sizeof "   " - 1 : sizeof "│  " - 1;
        sx_text_add_bytes(text, indent, length_bytes);
        sx_text_add(text, last ? "└─ " : "├─ ");
        size_t deeper = length_bytes;
        for (size_t k = 0; deeper + bar_bytes < MOST_INDENT_BYTES && k < bar_bytes; k++)
            indent[deeper + k] = bar[k];
        if (deeper + bar_bytes < MOST_INDENT_BYTES)
            deeper += bar_bytes;
        add_tree(text, plan->children[i], indent, deeper);
    }
}

const char *sx_plan_text(struct sx_arena *arena, const struct sx_plan *plan) {
    struct sx_text text = {.arena = arena};
    char indent[MOST_INDENT_BYTES];
    add_tree(&text, plan, indent, 0);
    return text.failed ? "" : text.bytes;
}
