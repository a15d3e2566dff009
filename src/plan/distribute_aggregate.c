#include "plan/distribute_state.h"
#include "tensor/semantics_average.h"

/* ---- partial and final calls ---- */

/* Where the parts of a call are among the partial aggregate's calls. */
struct split_call {
    int32_t part;
    int32_t count; /* AVG: its number of values; else -1 */
};

struct split {
    struct sx_aggregate_call *calls; /* partial */
    int32_t n_calls;
    struct split_call *parts; /* for each call of the whole */
};

static struct sx_type sum_type(struct sx_type argument) {
    if (argument.id == SX_TYPE_DECIMAL)
        return sx_type_decimal(SX_DECIMAL_MAX_DIGITS, argument.scale);
    return sx_type_of(argument.id == SX_TYPE_F64 ? SX_TYPE_F64 : SX_TYPE_I128);
}

static void split_call(const struct sx_aggregate_call *call, struct split *split,
                       struct split_call *out_parts) {
    *out_parts = (struct split_call){split->n_calls, -1};
    struct sx_aggregate_call *part = &split->calls[split->n_calls++];
    *part = *call;
    if (call->function != SX_CALL_AVG || !call->argument)
        return;
    part->function = SX_CALL_SUM;
    part->type = sum_type(call->argument->type);
    out_parts->count = split->n_calls;
    part = &split->calls[split->n_calls++];
    *part = *call;
    part->function = SX_CALL_COUNT;
    part->type = sx_type_of(SX_TYPE_I64);
}

static bool split_calls(struct distribution *d, const struct sx_aggregate_plan *aggregate,
                        struct split *out_split) {
    out_split->calls = SX_ARENA_ARRAY(d->b.arena, 2 * aggregate->n_calls, struct sx_aggregate_call);
    out_split->parts = SX_ARENA_ARRAY(d->b.arena, aggregate->n_calls, struct split_call);
    if (!out_split->calls || !out_split->parts)
        return sx_build_no_memory(&d->b);
    for (int32_t i = 0; i < aggregate->n_calls; i++)
        split_call(&aggregate->calls[i], out_split, &out_split->parts[i]);
    return true;
}

/* What makes one of several partial results; `column` of the partial aggregate holds them. */
static struct sx_aggregate_call merge_call(const struct sx_aggregate_call *part,
                                           struct sx_expression *column) {
    struct sx_aggregate_call call = {.function = part->function, .argument = column, .type = part->type};
    if (part->function == SX_CALL_COUNT || part->function == SX_CALL_COUNT_STAR ||
        part->function == SX_CALL_SUM) {
        call.function = SX_CALL_SUM;
        call.type = sum_type(part->type);
    }
    return call;
}

/* As an AVG of the argument would divide, to the bit. */
static struct sx_expression *average(struct distribution *d, struct sx_type argument,
                                     struct sx_expression *sum, struct sx_expression *count) {
    const struct sx_type real = sx_type_of(SX_TYPE_F64);
    const bool is_float = argument.id == SX_TYPE_F64;
    if (is_float)
        count = sx_build_cast(&d->b, count, real);
    else if (sx_average_is_small(argument))
        sum = sx_build_cast(&d->b, sum,
                            argument.id == SX_TYPE_DECIMAL
                                ? sx_type_decimal(SX_DECIMAL_MAX_I64_DIGITS, argument.scale)
                                : sx_type_of(SX_TYPE_I64));
    struct sx_expression *sides[] = {sum, count};
    return sum && count ? sx_build_call(&d->b, is_float ? SX_FN_DIV : SX_FN_AVERAGE, real, sides, 2) : NULL;
}

/* The whole's value from the merged parts, which are columns of `merged` behind the keys. */
static struct sx_expression *final_value(struct distribution *d, const struct sx_aggregate_call *call,
                                         const struct split_call *parts, const struct sx_plan *merged,
                                         int32_t n_keys) {
    struct sx_expression *value = sx_build_input(&d->b, merged, n_keys + parts->part);
    if (!value || call->function != SX_CALL_AVG)
        return value ? sx_build_cast(&d->b, value, call->type) : NULL;
    struct sx_expression *count = sx_build_input(&d->b, merged, n_keys + parts->count);
    return count
               ? average(d, call->argument->type, value, sx_build_cast(&d->b, count, sx_type_of(SX_TYPE_I64)))
               : NULL;
}

/* ---- two aggregates ---- */

static struct sx_expression **input_columns(struct distribution *d, const struct sx_plan *child, int32_t n) {
    struct sx_expression **columns = SX_ARENA_ARRAY(d->b.arena, n, struct sx_expression *);
    if (!columns)
        return sx_build_no_memory(&d->b);
    for (int32_t i = 0; i < n; i++)
        columns[i] = sx_build_input(&d->b, child, i);
    return columns;
}

/* The final aggregate over partial results that have come together, and the whole's columns. */
static struct sx_plan *merge(struct distribution *d, const struct sx_plan *whole, struct sx_plan *partial,
                             const struct split *split) {
    const struct sx_aggregate_plan *aggregate = &whole->u.aggregate;
    const int32_t n_keys = aggregate->n_keys;
    struct sx_aggregate_call *calls = SX_ARENA_ARRAY(d->b.arena, split->n_calls, struct sx_aggregate_call);
    struct sx_expression **outputs = SX_ARENA_ARRAY(d->b.arena, whole->n_columns, struct sx_expression *);
    const char **names = SX_ARENA_ARRAY(d->b.arena, whole->n_columns, const char *);
    if (!calls || !outputs || !names)
        return sx_build_no_memory(&d->b);
    for (int32_t i = 0; i < split->n_calls; i++)
        calls[i] = merge_call(&split->calls[i], sx_build_input(&d->b, partial, n_keys + i));
    struct sx_expression **keys = input_columns(d, partial, n_keys);
    struct sx_plan *merged =
        keys ? sx_build_aggregate(&d->b, partial, keys, n_keys, calls, split->n_calls) : NULL;
    if (!merged)
        return NULL;
    for (int32_t i = 0; i < whole->n_columns; i++) {
        const int32_t call = i - n_keys;
        outputs[i] = call < 0 ? sx_build_input(&d->b, merged, i)
                              : final_value(d, &aggregate->calls[call], &split->parts[call], merged, n_keys);
        names[i] = whole->columns[i].name;
    }
    return sx_build_project(&d->b, merged, outputs, whole->n_columns, names);
}

/* Each rank's groups, then those of all. */
static struct sx_plan *two_steps(struct distribution *d, struct sx_plan *whole, struct spread *out_spread) {
    const struct sx_aggregate_plan *aggregate = &whole->u.aggregate;
    const int32_t n_keys = aggregate->n_keys;
    struct split split = {0};
    if (!split_calls(d, aggregate, &split))
        return NULL;
    struct sx_plan *partial =
        sx_build_aggregate(&d->b, whole->children[0], aggregate->keys, n_keys, split.calls, split.n_calls);
    struct sx_expression **keys = partial ? input_columns(d, partial, n_keys) : NULL;
    if (!keys)
        return NULL;
    partial = distribute_exchange(d, partial, n_keys ? SX_EXCHANGE_HASH : SX_EXCHANGE_GATHER,
                                  n_keys ? keys : NULL, n_keys);
    *out_spread =
        (struct spread){n_keys ? SPREAD_HASH : SPREAD_ROOT, sx_build_identity(&d->b, n_keys), n_keys, NULL};
    return partial && out_spread->columns ? merge(d, whole, partial, &split) : NULL;
}

/* ---- which way ---- */

/* The key that is this column, or -1. */
static int32_t key_of_column(const struct sx_aggregate_plan *aggregate, int32_t column) {
    for (int32_t k = 0; k < aggregate->n_keys; k++)
        if (aggregate->keys[k]->kind == SX_EXPR_COLUMN && aggregate->keys[k]->column == column)
            return k;
    return -1;
}

/* Whether groups are whole on their ranks; then also where they are. */
static bool groups_are_local(struct distribution *d, const struct sx_aggregate_plan *aggregate,
                             const struct spread *spread, struct spread *out_spread) {
    if (spread->kind != SPREAD_HASH)
        return false;
    int32_t *columns = SX_ARENA_ARRAY(d->b.arena, spread->n_columns, int32_t);
    for (int32_t i = 0; i < spread->n_columns; i++) {
        const int32_t key = key_of_column(aggregate, spread->columns[i]);
        if (!columns || key < 0)
            return false;
        columns[i] = key;
    }
    *out_spread = (struct spread){SPREAD_HASH, columns, spread->n_columns, spread->ends};
    return true;
}

/* MIN and MAX of distinct values are those of all values. */
static bool is_distinct(const struct sx_aggregate_call *call) {
    return call->distinct && call->function != SX_CALL_MIN && call->function != SX_CALL_MAX;
}

/* What the DISTINCT calls have in common. */
struct distinct_calls {
    struct sx_expression *argument; /* NULL: there are none */
    bool several;                   /* arguments */
};

static struct distinct_calls find_distinct(const struct sx_aggregate_plan *aggregate) {
    struct distinct_calls found = {0};
    for (int32_t i = 0; i < aggregate->n_calls; i++) {
        const struct sx_aggregate_call *call = &aggregate->calls[i];
        if (!is_distinct(call))
            continue;
        found.several |= found.argument && !sx_expression_equal(found.argument, call->argument);
        found.argument = call->argument;
    }
    return found;
}

static bool has_call(const struct sx_aggregate_plan *aggregate, enum sx_aggregate_function function) {
    for (int32_t i = 0; i < aggregate->n_calls; i++)
        if (aggregate->calls[i].function == function)
            return true;
    return false;
}

/* Replicated rows have an order of their own on each rank. */
static enum spread_kind kind_of_whole(const struct sx_aggregate_plan *aggregate, enum spread_kind child) {
    const bool by_order = has_call(aggregate, SX_CALL_FIRST) || has_call(aggregate, SX_CALL_ANY_VALUE);
    return by_order ? SPREAD_ROOT : child;
}

/* Groups with DISTINCT calls: all rows of a group on one rank. */
static struct sx_plan *group_on_one_rank(struct distribution *d, struct sx_plan *plan,
                                         const struct spread *spread, struct spread *out_spread) {
    const struct sx_aggregate_plan *aggregate = &plan->u.aggregate;
    plan->children[0] = distribute_by(d, plan->children[0], spread, aggregate->keys, aggregate->n_keys, NULL);
    *out_spread =
        (struct spread){SPREAD_HASH, sx_build_identity(&d->b, aggregate->n_keys), aggregate->n_keys, NULL};
    return plan->children[0] && out_spread->columns ? plan : NULL;
}

/* Without keys. Equal arguments come together, so that the ranks' distinct values are disjoint. An empty
 * rank's FIRST is NULL, as a row's may be: only the whole tells. */
static struct sx_plan *aggregate_all(struct distribution *d, struct sx_plan *plan, struct spread *spread,
                                     struct spread *out_spread) {
    const struct distinct_calls distinct = find_distinct(&plan->u.aggregate);
    if (distinct.several || has_call(&plan->u.aggregate, SX_CALL_FIRST)) {
        plan->children[0] = distribute_to_root(d, plan->children[0], spread);
        *out_spread = *spread;
        return plan->children[0] ? plan : NULL;
    }
    if (distinct.argument) {
        struct sx_expression **keys = SX_ARENA_NEW(d->b.arena, struct sx_expression *);
        if (!keys)
            return sx_build_no_memory(&d->b);
        keys[0] = distinct.argument;
        plan->children[0] = distribute_by(d, plan->children[0], spread, keys, 1, NULL);
    }
    return plan->children[0] ? two_steps(d, plan, out_spread) : NULL;
}

/* Rows that are scanned in the order of a key make their groups where they are; NULL, and no error: there is
 * no such key. */
static struct sx_plan *group_in_place(struct distribution *d, struct sx_plan *plan,
                                      const struct spread *spread, struct spread *out_spread) {
    const struct sx_aggregate_plan *aggregate = &plan->u.aggregate;
    for (int32_t k = 0; k < aggregate->n_keys; k++) {
        const int64_t *ends = distribute_ends(d, plan->children[0], aggregate->keys[k], false);
        int32_t *columns = ends ? SX_ARENA_NEW(d->b.arena, int32_t) : NULL;
        if (!columns)
            continue;
        *columns = k;
        *out_spread = (struct spread){SPREAD_HASH, columns, 1, ends};
        plan->children[0] = distribute_by(d, plan->children[0], spread, &aggregate->keys[k], 1, ends);
        return plan->children[0] ? plan : NULL;
    }
    return NULL;
}

struct sx_plan *distribute_aggregate(struct distribution *d, struct sx_plan *plan,
                                     struct spread *out_spread) {
    const struct sx_aggregate_plan *aggregate = &plan->u.aggregate;
    struct spread spread;
    plan->children[0] = distribute_node(d, plan->children[0], &spread);
    if (!plan->children[0])
        return NULL;
    if (spread_is_whole(&spread)) {
        *out_spread = (struct spread){.kind = kind_of_whole(aggregate, spread.kind)};
        return plan;
    }
    if (groups_are_local(d, aggregate, &spread, out_spread))
        return plan;
    if (aggregate->n_keys == 0)
        return aggregate_all(d, plan, &spread, out_spread);
    if (group_in_place(d, plan, &spread, out_spread) || !plan->children[0])
        return plan->children[0] ? plan : NULL;
    if (find_distinct(aggregate).argument)
        return group_on_one_rank(d, plan, &spread, out_spread);
    return two_steps(d, plan, out_spread);
}
