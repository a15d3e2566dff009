/* What the size of an adaptive join's build side decides: how both sides' rows go, and by whom. */
#include "exec/exchange_filter.h"
#include "exec/exchange_skew.h"

enum { STRING_BYTES = 32 /* a guess */ };

int64_t exchange_row_bytes(const struct sx_exchange *exchange) {
    int64_t bytes = 1;
    for (int32_t c = 0; c < exchange->plan->n_columns; c++)
        bytes += exchange->types[c].id == SX_TYPE_VARCHAR ? STRING_BYTES
                                                          : (int64_t)sx_type_bytes(exchange->types[c]);
    return bytes;
}

/* What the ranks tell each other of an adaptive build side. */
struct exchange_size {
    int64_t rows;
    int64_t broadcast_bytes; /* rank 0's counts */
    struct exchange_filter_terms filter;
};

/* Of all ranks. */
static enum sx_status gather_sizes(struct sx_exchange *exchange, struct sx_worker *worker,
                                   struct exchange_size *out_all) {
    const struct sx_exec_options *options = &worker->run->options;
    const struct exchange_size own = {exchange->kept->rows, options->broadcast_bytes,
                                      exchange_filter_terms(exchange, worker->run)};
    struct sx_arena arena = {0};
    void *told = NULL;
    const enum sx_status status = exchange_tell(exchange, worker, &own, sizeof own, &arena, &told);
    const struct exchange_size *sizes = told;
    if (status == SX_OK)
        *out_all = sizes[0];
    for (int r = 1; status == SX_OK && r < exchange->n_ranks; r++) {
        out_all->rows += sizes[r].rows;
        exchange_filter_agree(&sizes[r].filter, &out_all->filter);
    }
    sx_arena_release(&arena);
    return status;
}

/* About as many of the rows as the hashes' range has parts of this rank. */
static int64_t share_of(const struct sx_exchange *exchange, int64_t rows) {
    const int n = exchange->n_ranks;
    const int n_own = exchange_first_part(exchange->rank + 1, n) - exchange_first_part(exchange->rank, n);
    return rows * n_own / exchange_count_parts(n);
}

enum sx_status exchange_choose(struct sx_exchange *exchange, struct sx_worker *worker) {
    struct sx_join_build *join = exchange->join;
    struct exchange_size all = {0};
    SX_TRY(gather_sizes(exchange, worker, &all));
    join->is_everywhere = all.rows <= all.broadcast_bytes / exchange_row_bytes(exchange);
    if (join->is_everywhere)
        return SX_OK;
    if (join->skew)
        SX_TRY(exchange_skew_find(exchange, worker));
    if (!join->skew || join->skew->n_heavy == 0)
        sx_ops(worker)->join_expect(join->table, share_of(exchange, all.rows));
    return exchange_filter_open(exchange, worker, all.rows, &all.filter);
}
