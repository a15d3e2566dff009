/* ORDER BY … LIMIT: each worker keeps its first rows; from time to time what can't be among them is dropped.
 * Ties are broken by where the row came from, so that the answer does not depend on the number of workers. */
#include <stdlib.h>

#include "base/array.h"
#include "exec/sort_keys.h"
#include "exec/top_bound.h"

enum {
    SLACK_ROWS = 2048,
    /* On a device sorting some thousand rows is nothing but launches: this share of a scan's batch is kept,
     * of a few batches, whose memory is kept with them. */
    CHUNK_SHARE = 256,
    SLACK_BATCHES = 4,
    EXTRA_COLUMNS = 2 /* sequence of the batch, row in the batch */
};

struct top_worker {
    struct sx_batch *kept; /* with the extra columns */
    int64_t n_kept;
    int64_t capacity;
    int64_t rows;
    struct sx_bound bound; /* rows beyond it can't be among the first */
};

struct top_n {
    struct sx_sink sink;
    const struct sx_plan *plan;
    struct sx_sort_keys keys;
    struct sx_bound_finder bounds;
    struct sx_type *types; /* of what is kept */
    int32_t n_columns;
    struct top_worker *workers;
    int64_t wanted;         /* limit + offset */
    int64_t slack_rows;     /* beyond twice as many */
    struct sx_batch answer; /* sorted, wanted rows */
};

static enum sx_status keep(struct top_worker *mine, struct sx_worker *worker, struct sx_batch *batch) {
    struct sx_batch *grown = sx_array_grow(mine->kept, sizeof *grown, mine->n_kept, &mine->capacity);
    if (!grown)
        return sx_no_memory(sx_worker_error(worker), "a list of batches");
    mine->kept = grown;
    mine->rows += batch->rows;
    mine->kept[mine->n_kept++] = *batch;
    *batch = (struct sx_batch){0};
    return SX_OK;
}

static void drop_kept(struct top_worker *mine) {
    for (int64_t i = 0; i < mine->n_kept; i++)
        sx_batch_release(&mine->kept[i]);
    mine->n_kept = 0;
    mine->rows = 0;
}

/* The first `wanted` rows of what is kept, sorted, as one batch. */
static enum sx_status best_rows(struct top_n *top, const struct top_worker *mine, struct sx_worker *worker,
                                struct sx_batch *out_batch) {
    struct sx_batch all = {0};
    struct sx_tensor order = {0};
    enum sx_status status = SX_OK;
    SX_GO(sx_batches_concat(worker, top->types, top->n_columns, mine->kept, mine->n_kept, SX_CONCAT_SHARED,
                            &all));
    SX_GO(sx_sort_keys_order(&top->keys, worker, &all, top->wanted, &order));
    SX_GO(sx_batch_gather(worker, &all, NULL, all.n_columns, &order, out_batch));
out:
    sx_batch_release(&all);
    sx_tensor_release(&order);
    return status;
}

/* Rows that stay get strings of their own, so that the memory of the others is free. */
static enum sx_status shrink(struct top_n *top, struct top_worker *mine, struct sx_worker *worker) {
    struct sx_batch best = {0}, own = {0};
    enum sx_status status = SX_OK;
    SX_GO(best_rows(top, mine, worker, &best));
    SX_GO(sx_batches_concat(worker, top->types, top->n_columns, &best, 1, SX_CONCAT_COMPACT, &own));
    drop_kept(mine);
    if (own.rows == top->wanted)
        SX_GO(sx_bound_set(&top->bounds, worker, &own, &mine->bound));
    SX_GO(keep(mine, worker, &own));
out:
    sx_batch_release(&best);
    sx_batch_release(&own);
    return status;
}

/* The batch with its place of origin. */
static enum sx_status add_origin(struct sx_worker *worker, const struct sx_batch *batch,
                                 struct sx_batch *out_batch) {
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    struct sx_scalar sequence = {.type = sx_type_of(SX_TYPE_I64), .v.i64 = worker->sequence};
    SX_GO(sx_batch_create(batch->n_columns + EXTRA_COLUMNS, batch->rows, &made, sx_worker_error(worker)));
    for (int32_t c = 0; c < batch->n_columns; c++)
        sx_tensor_share(&batch->columns[c], &made.columns[c]);
    SX_GO(sx_ops(worker)->constant(worker->stream, &sequence, batch->rows, &made.columns[batch->n_columns]));
    SX_GO(sx_ops(worker)->iota(worker->stream, SX_TYPE_I64, 0, batch->rows,
                               &made.columns[batch->n_columns + 1]));
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}

static bool is_full(const struct top_n *top, const struct top_worker *mine) {
    const int64_t slack = mine->n_kept <= SLACK_BATCHES ? top->slack_rows : SLACK_ROWS;
    return mine->rows - slack > 2 * top->wanted;
}

static enum sx_status top_consume(struct sx_sink *sink, struct sx_worker *worker, struct sx_batch *batch) {
    struct top_n *top = (struct top_n *)sink;
    struct top_worker *mine = &top->workers[worker->index];
    struct sx_batch with_origin = {0};
    if (top->wanted == 0)
        return SX_OK;
    SX_TRY(add_origin(worker, batch, &with_origin));
    enum sx_status status = sx_bound_apply(&top->bounds, worker, &mine->bound, &with_origin);
    if (status == SX_OK && with_origin.rows > 0)
        status = keep(mine, worker, &with_origin);
    sx_batch_release(&with_origin);
    SX_TRY(status);
    return is_full(top, mine) ? shrink(top, mine, worker) : SX_OK;
}

static enum sx_status top_seal(struct sx_sink *sink, struct sx_worker *worker) {
    struct top_n *top = (struct top_n *)sink;
    struct top_worker *first = &top->workers[0];
    for (int w = 1; w < worker->run->n_workers; w++) {
        struct top_worker *other = &top->workers[w];
        for (int64_t i = 0; i < other->n_kept; i++)
            SX_TRY(keep(first, worker, &other->kept[i]));
    }
    return first->n_kept ? best_rows(top, first, worker, &top->answer) : SX_OK;
}

static void top_destroy(struct sx_run *run, struct sx_operator *op) {
    struct top_n *top = (struct top_n *)op;
    for (int w = 0; top->workers && w < run->n_workers; w++) {
        drop_kept(&top->workers[w]);
        free(top->workers[w].kept);
        sx_bound_release(&top->workers[w].bound);
    }
    sx_batch_release(&top->answer);
    sx_sort_keys_release(run, &top->keys);
    sx_bound_finder_release(run, &top->bounds);
}

struct top_source {
    struct sx_source source;
    struct top_n *top;
    atomic_bool given;
};

static enum sx_status top_next(struct sx_source *base, struct sx_worker *worker, struct sx_batch *out_batch,
                               bool *out_done) {
    struct top_source *source = (struct top_source *)base;
    struct top_n *top = source->top;
    const int64_t offset = top->plan->u.top_n.limit.offset;
    const int64_t rows = top->answer.rows - offset;
    *out_done = atomic_exchange(&source->given, true) || rows <= 0;
    if (*out_done)
        return SX_OK;
    worker->sequence = 0;
    struct sx_batch part = {0};
    SX_TRY(sx_batch_slice(&top->answer, offset, rows, &part, sx_worker_error(worker)));
    const struct sx_sort_plan *sort = &top->plan->u.sort;
    enum sx_status status =
        sx_batch_gather(worker, &part, sort->projection, sort->n_projection, NULL, out_batch);
    sx_batch_release(&part);
    return status;
}

static struct sx_source_size top_size(const struct sx_source *source) {
    (void)source;
    return (struct sx_source_size){1, INT64_MAX};
}

enum sx_status sx_top_n_create(struct sx_run *run, const struct sx_plan *plan, struct sx_sink **out_sink,
                               struct sx_source **out_source, struct sx_error *error) {
    struct top_n *top = sx_operator_create(run, sizeof *top, top_destroy, "TOP_N");
    struct top_source *source = sx_operator_create(run, sizeof *source, NULL, "TOP_N result");
    if (!top || !source)
        return sx_no_memory(error, "a top-N");
    const struct sx_limit_plan *limit = &plan->u.top_n.limit;
    top->plan = plan;
    top->wanted = limit->limit > INT64_MAX / 4 - limit->offset ? INT64_MAX / 4 : limit->limit + limit->offset;
    const int64_t share = run->options.backend->traits.chunk_rows / CHUNK_SHARE;
    top->slack_rows = share > SLACK_ROWS ? share : SLACK_ROWS;
    top->workers = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct top_worker);
    top->n_columns = plan->children[0]->n_columns + EXTRA_COLUMNS;
    top->types = SX_ARENA_ARRAY(&run->arena, top->n_columns, struct sx_type);
    if (!top->workers || !top->types)
        return sx_no_memory(error, "a top-N");
    for (int32_t c = 0; c < top->n_columns; c++)
        top->types[c] =
            c < top->n_columns - EXTRA_COLUMNS ? plan->children[0]->columns[c].type : sx_type_of(SX_TYPE_I64);
    SX_TRY(sx_sort_keys_init(run, plan, &top->keys, error));
    SX_TRY(sx_bound_finder_init(run, plan, EXTRA_COLUMNS, &top->bounds, error));
    top->sink.consume = top_consume;
    top->sink.seal = top_seal;
    source->top = top;
    source->source.next = top_next;
    source->source.size = top_size;
    *out_sink = &top->sink;
    *out_source = &source->source;
    return SX_OK;
}
