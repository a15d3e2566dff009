/* Rows that stay on their rank: from the worker that has sent the others' on to the pipeline behind the
 * exchange by the same worker, so that batches with equal sequence numbers stay in their order. But a worker
 * that drives early (exchange.c) keeps all of its rank's batches, and would go on with one after another
 * while the others have nothing to do: these are for any, since rows by hash have no order. */
#include <stdlib.h>

#include "base/array.h"
#include "exec/exchange.h"

void exchange_owns_init(struct exchange_owns *owns) {
    pthread_mutex_init(&owns->lock, NULL);
}

void exchange_owns_drop(struct exchange_owns *owns) {
    for (int64_t i = owns->first; i < owns->end; i++)
        sx_batch_release(&owns->list[i].batch);
    owns->first = owns->end = 0;
}

void exchange_owns_release(struct exchange_owns *owns) {
    exchange_owns_drop(owns);
    free(owns->list);
    pthread_mutex_destroy(&owns->lock);
}

static enum sx_status put(struct exchange_owns *owns, const struct exchange_own *own,
                          struct sx_error *error) {
    if (owns->first == owns->end)
        owns->first = owns->end = 0;
    struct exchange_own *grown = sx_array_grow(owns->list, sizeof *grown, owns->end, &owns->capacity);
    if (!grown)
        return sx_no_memory(error, "a list of batches");
    owns->list = grown;
    owns->list[owns->end++] = *own;
    return SX_OK;
}

static enum sx_status keep(struct sx_exchange *exchange, struct sx_worker *worker, struct sx_batch *batch,
                           bool is_for_any) {
    struct exchange_owns *owns = &exchange->workers[worker->index].own;
    const struct exchange_own own = {*batch, exchange_place(exchange, worker), is_for_any};
    pthread_mutex_lock(&owns->lock);
    const enum sx_status status = put(owns, &own, sx_worker_error(worker));
    pthread_mutex_unlock(&owns->lock);
    SX_TRY(status);
    atomic_fetch_add(&exchange->kept_rows, (long long)own.batch.rows_bound);
    *batch = (struct sx_batch){0};
    return SX_OK;
}

enum sx_status exchange_keep(struct sx_exchange *exchange, struct sx_worker *worker, struct sx_batch *batch) {
    return keep(exchange, worker, batch, false);
}

enum sx_status exchange_keep_for_any(struct sx_exchange *exchange, struct sx_worker *worker,
                                     struct sx_batch *batch) {
    SX_TRY(sx_synchronise(worker, "rows that stay"));
    return keep(exchange, worker, batch, true);
}

bool exchange_has_own(struct sx_exchange *exchange, const struct sx_worker *worker) {
    struct exchange_owns *owns = &exchange->workers[worker->index].own;
    pthread_mutex_lock(&owns->lock);
    const bool has = owns->first < owns->end;
    pthread_mutex_unlock(&owns->lock);
    return has;
}

/* The oldest, if there is one that the worker may have. */
static bool take(struct exchange_owns *owns, bool is_another, struct exchange_own *out_own) {
    pthread_mutex_lock(&owns->lock);
    const bool takes = owns->first < owns->end && (!is_another || owns->list[owns->first].is_for_any);
    if (takes)
        *out_own = owns->list[owns->first++];
    pthread_mutex_unlock(&owns->lock);
    return takes;
}

static bool take_from(struct sx_exchange *exchange, struct sx_worker *worker, int from,
                      struct sx_batch *out_batch) {
    struct exchange_own own;
    if (!take(&exchange->workers[from].own, from != worker->index, &own))
        return false;
    *out_batch = own.batch;
    worker->sequence = exchange_sequence(exchange, own.sequence, exchange->rank);
    return true;
}

bool exchange_take_own(struct sx_exchange *exchange, struct sx_worker *worker, struct sx_batch *out_batch) {
    return take_from(exchange, worker, worker->index, out_batch);
}

bool exchange_take_anothers(struct sx_exchange *exchange, struct sx_worker *worker,
                            struct sx_batch *out_batch) {
    const int n = worker->run->n_workers;
    bool taken = false;
    for (int w = 1; w < n && !taken; w++)
        taken = take_from(exchange, worker, (worker->index + w) % n, out_batch);
    return taken;
}
