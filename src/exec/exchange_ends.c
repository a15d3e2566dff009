/* Rows to the ranks by ranges of one key's values, whose ends the plan knows: there most rows are where they
 * have been scanned. */
#include "exec/exchange.h"
#include "exec/make.h"

/* 2^64 over the parts, or nothing: what a row beyond an end has more. */
struct sx_expression *exchange_add_part(struct sx_arena *arena, struct sx_expression *sum,
                                        struct sx_expression *is_beyond, int n_parts) {
    const struct sx_type type = sx_type_of(SX_TYPE_U64);
    const struct sx_scalar none = {.type = type},
                           part = {.type = type, .v.u64 = UINT64_MAX / (uint64_t)n_parts + 1};
    if (!is_beyond)
        return NULL;
    struct sx_expression *added =
        sx_make_case(arena, is_beyond, sx_make_constant(arena, &part), sx_make_constant(arena, &none));
    return sum ? sx_make_call(arena, SX_FN_ADD, type, (struct sx_expression *[]){sum, added}, 2) : added;
}

/* Never NULL: rows without a key are rank 0's. */
static struct sx_expression *is_beyond(struct sx_arena *arena, struct sx_expression *key, int64_t end) {
    const struct sx_type type = sx_type_of(SX_TYPE_BOOL);
    const struct sx_scalar value = {.type = key->type, .v.i64 = end};
    struct sx_expression *sides[] = {key, sx_make_constant(arena, &value)};
    struct sx_expression *after = sx_make_call(arena, SX_FN_GT, type, sides, 2);
    return sx_make_call(arena, SX_FN_IS_TRUE, type, &after, 1);
}

void sx_ends_range(const int64_t *ends, const struct sx_net *net, int64_t *out_least, int64_t *out_most) {
    const int rank = sx_net_rank(net);
    *out_least = INT64_MIN;
    *out_most = rank == sx_net_size(net) - 1 ? INT64_MAX : ends[rank];
    if (rank > 0 && __builtin_add_overflow(ends[rank - 1], 1, out_least)) {
        *out_least = INT64_MAX;
        *out_most = INT64_MIN;
    }
}

enum sx_status exchange_ends_create(struct sx_exchange *exchange, struct sx_run *run,
                                    struct sx_error *error) {
    const struct sx_exchange_plan *plan = &exchange->plan->u.exchange;
    struct sx_expression *sum = NULL;
    if (!plan->ends)
        return SX_OK;
    sx_ends_range(plan->ends, run->options.net, &exchange->least, &exchange->most);
    exchange->n_places = exchange_power_of_two(exchange->n_ranks);
    for (int r = 0; r < exchange->n_ranks - 1; r++) {
        sum = exchange_add_part(&run->arena, sum, is_beyond(&run->arena, plan->keys[0], plan->ends[r]),
                                exchange->n_places);
        if (!sum)
            return sx_no_memory(error, "an exchange");
    }
    return sx_evaluator_init(run, &sum, 1, exchange->types, exchange->plan->children[0]->n_columns,
                             &exchange->places, error);
}

enum sx_status exchange_places(struct sx_worker *worker, struct sx_evaluator *places,
                               const struct sx_batch *batch, struct sx_tensor *out_places) {
    struct sx_tensor made = {0};
    const struct sx_tensor *one = &made;
    SX_TRY(sx_evaluator_run(places, worker, batch, &made));
    const enum sx_status status =
        sx_ops(worker)->concat(worker->stream, made.type, &one, 1, SX_CONCAT_SHARED, out_places);
    sx_tensor_release(&made);
    return status;
}

bool exchange_keeps_all(const struct sx_exchange *exchange, const struct sx_worker *worker) {
    const struct sx_exchange_plan *plan = &exchange->plan->u.exchange;
    const struct sx_source *source = exchange->workers[worker->index].driven->source;
    return plan->scan && source->scan == plan->scan &&
           sx_scan_source_is_within((const struct sx_scan_source *)source, worker, plan->scan_column,
                                    exchange->least, exchange->most, exchange->rank == 0);
}
