/* Few groups: rank 0 makes the rest of the query alone, in place of ranks that each have a few rows and send
 * them to each other once more, to be sorted, and then to rank 0. */
#include "exec/exchange.h"

enum { DEVICE_SCALE = 8 }; /* of the groups that rank 0 takes */

enum sx_status exchange_tell(const struct sx_exchange *exchange, struct sx_worker *worker, const void *own,
                             size_t bytes, struct sx_arena *arena, void **out_all) {
    const struct sx_exec_options *options = &worker->run->options;
    *out_all = sx_arena_alloc(arena, (size_t)exchange->n_ranks * bytes);
    return *out_all
               ? sx_net_gather(options->net, own, bytes, *out_all, options->cancel, sx_worker_error(worker))
               : sx_no_memory(sx_worker_error(worker), "an exchange");
}

static bool is_choice(const struct sx_exchange *exchange) {
    return exchange->plan->u.exchange.root_choice == exchange->plan;
}

/* What the ranks tell each other. */
struct root_size {
    int64_t most_rows;
    int64_t few_rows; /* rank 0's counts */
};

static enum sx_status choose(struct sx_exchange *exchange, struct sx_worker *worker) {
    const struct sx_source *driven = exchange->sink->sink.driven->source;
    const int64_t scale = worker->run->options.backend->traits.is_host ? 1 : DEVICE_SCALE;
    const struct root_size own = {driven->most_rows ? driven->most_rows(driven) : INT64_MAX,
                                  worker->run->options.few_groups * scale};
    struct sx_arena arena = {0};
    void *told = NULL;
    const enum sx_status status = exchange_tell(exchange, worker, &own, sizeof own, &arena, &told);
    const struct root_size *all = told;
    int64_t left = status == SX_OK ? all[0].few_rows : -1;
    for (int r = 0; r < exchange->n_ranks && left >= 0; r++)
        left = all[r].most_rows <= left ? left - all[r].most_rows : -1;
    exchange->is_at_root = left >= 0;
    sx_arena_release(&arena);
    return status;
}

enum sx_status exchange_choose_root(struct sx_exchange *exchange, struct sx_worker *worker) {
    if (is_choice(exchange))
        return choose(exchange, worker);
    const struct sx_plan *choice = exchange->plan->u.exchange.root_choice;
    const struct sx_exchange *made = choice ? worker->run->exchanges : NULL;
    while (made && made->plan != choice)
        made = made->next;
    exchange->is_at_root = made && made->is_at_root;
    return SX_OK;
}

enum exchange_mode exchange_root_mode(const struct sx_exchange *exchange) {
    return is_choice(exchange) ? EXCHANGE_TO_ROOT : EXCHANGE_STAY;
}
