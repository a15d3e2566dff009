/* ORDER BY: the input is kept, sorted whole, and given out in order. */
#include "exec/sort_keys.h"

struct sort_source {
    struct sx_source source;
    const struct sx_plan *plan;
    struct sx_collector *collector;
    struct sx_sort_keys keys;
    struct sx_batch rows;   /* all, FLAT */
    struct sx_tensor order; /* I64 */
    int64_t chunk_rows;
    atomic_int_fast64_t next;
};

static enum sx_status sort_open(struct sx_source *source, struct sx_worker *worker) {
    struct sort_source *sort = (struct sort_source *)source;
    SX_TRY(sx_collector_concat(sort->collector, worker, &sort->rows));
    sx_collector_drop(sort->collector);
    SX_TRY(sx_sort_keys_order(&sort->keys, worker, &sort->rows, -1, &sort->order));
    return sx_publish(worker, "rows are sorted");
}

static enum sx_status sort_next(struct sx_source *source, struct sx_worker *worker,
                                struct sx_batch *out_batch, bool *out_done) {
    struct sort_source *sort = (struct sort_source *)source;
    const int64_t chunk_rows = sort->chunk_rows;
    int64_t first = atomic_fetch_add(&sort->next, chunk_rows);
    *out_done = first >= sort->order.length;
    if (*out_done)
        return SX_OK;
    int64_t left = sort->order.length - first;
    struct sx_tensor index;
    sx_tensor_slice(&sort->order, first, left < chunk_rows ? left : chunk_rows, &index);
    worker->sequence = first;
    enum sx_status status = sx_batch_gather(worker, &sort->rows, sort->plan->u.sort.projection,
                                            sort->plan->u.sort.n_projection, &index, out_batch);
    sx_tensor_release(&index);
    return status;
}

static struct sx_source_size sort_size(const struct sx_source *source) {
    const struct sort_source *sort = (const struct sort_source *)source;
    return (struct sx_source_size){(sort->collector->rows + sort->chunk_rows - 1) / sort->chunk_rows,
                                   INT64_MAX};
}

static void sort_destroy(struct sx_run *run, struct sx_operator *op) {
    struct sort_source *sort = (struct sort_source *)op;
    sx_batch_release(&sort->rows);
    sx_tensor_release(&sort->order);
    sx_sort_keys_release(run, &sort->keys);
}

enum sx_status sx_sort_create(struct sx_run *run, const struct sx_plan *plan, struct sx_sink **out_sink,
                              struct sx_source **out_source, struct sx_error *error) {
    struct sort_source *sort = sx_operator_create(run, sizeof *sort, sort_destroy, "SORT result");
    if (!sort)
        return sx_no_memory(error, "a sort");
    sort->plan = plan;
    SX_TRY(sx_collector_create(run, plan->children[0], "SORT", &sort->collector, error));
    SX_TRY(sx_sort_keys_init(run, plan, &sort->keys, error));
    sort->source.open = sort_open;
    sort->source.next = sort_next;
    sort->source.size = sort_size;
    sort->chunk_rows = run->options.backend->traits.chunk_rows;
    *out_sink = &sort->collector->sink;
    *out_source = &sort->source;
    return SX_OK;
}
