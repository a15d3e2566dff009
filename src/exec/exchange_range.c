#include "exec/exchange_range.h"

#include <stdlib.h>
#include <string.h>

#include "exec/make.h"

enum {
    MOST_RANGES = 64,     /* a row is compared with all their ends */
    SAMPLE_A_RANGE = 512, /* the largest range then has about 1.1 times the mean */
    DEVICE_SCALE = 8      /* of the rows that rank 0 sorts alone: sooner done than a round of the ranks */
};

enum sx_status exchange_range_create(struct sx_exchange *exchange, struct sx_run *run,
                                     struct sx_error *error) {
    const struct sx_exchange_plan *plan = &exchange->plan->u.exchange;
    struct exchange_range *range = SX_ARENA_NEW(&run->arena, struct exchange_range);
    if (range)
        range->orders = SX_ARENA_ARRAY(&run->arena, plan->n_keys + 1, struct sx_sort_key);
    if (!range || !range->orders)
        return sx_no_memory(error, "an exchange");
    for (int32_t k = 0; k < plan->n_keys; k++)
        range->orders[k] = (struct sx_sort_key){.descending = plan->orders[k].descending,
                                                .nulls_first = plan->orders[k].nulls_first};
    exchange->range = range;
    return SX_OK;
}

void exchange_range_release(struct exchange_range *range, struct sx_run *run) {
    if (!range)
        return;
    sx_batch_release(&range->ends);
    sx_evaluator_release(run, &range->parts);
}

/* The keys of a batch's rows, and its place among all ranks' batches. */
static enum sx_status evaluate_keys(struct sx_exchange *exchange, struct sx_worker *worker,
                                    const struct sx_batch *batch, int64_t place, struct sx_batch *out_keys) {
    const int32_t n_keys = exchange->plan->u.exchange.n_keys;
    const struct sx_scalar scalar = {.type = sx_type_of(SX_TYPE_I64), .v.i64 = place};
    struct sx_batch keys = {0};
    enum sx_status status;
    SX_GO(sx_batch_create(n_keys + 1, batch->rows, &keys, sx_worker_error(worker)));
    SX_GO(sx_evaluator_run(&exchange->keys, worker, batch, keys.columns));
    SX_GO(sx_ops(worker)->constant(worker->stream, &scalar, batch->rows, &keys.columns[n_keys]));
    *out_keys = keys;
    return SX_OK;
out:
    sx_batch_release(&keys);
    return status;
}

/* Of keys and place, in the run's arena; NULL: no memory. */
static struct sx_type *key_types(struct sx_run *run, const struct sx_exchange_plan *plan) {
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, plan->n_keys + 1, struct sx_type);
    for (int32_t k = 0; types && k < plan->n_keys; k++)
        types[k] = plan->keys[k]->type;
    if (types)
        types[plan->n_keys] = sx_type_of(SX_TYPE_I64);
    return types;
}

/* ---- this rank's sample ---- */

struct sample {
    const struct sx_type *types;
    int32_t n_columns;
    int64_t first, step; /* rows to take, of those that have not been looked at */
    struct sx_batch *batches;
    int64_t n_batches;
};

static void release_batches(struct sx_batch *batches, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        sx_batch_release(&batches[i]);
    free(batches);
}

/* first, first + step, … below `rows`, in the backend's memory. */
static enum sx_status make_index(struct sx_worker *worker, int64_t first, int64_t step, int64_t rows,
                                 struct sx_batch *out_index) {
    struct sx_batch host = {0};
    enum sx_status status;
    const int64_t n = (rows - first + step - 1) / step;
    SX_GO(sx_batch_create(1, n, &host, sx_worker_error(worker)));
    SX_GO(sx_tensor_create_index(worker->run->options.pool, SX_TYPE_I32, n, &host.columns[0],
                                 sx_worker_error(worker)));
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)host.columns[0].values)[i] = (int32_t)(first + i * step);
    status = sx_ops(worker)->batch_from_host(worker->stream, &host, out_index);
out:
    sx_batch_release(&host);
    return status;
}

static enum sx_status take_batch(struct sx_exchange *exchange, struct sx_worker *worker,
                                 const struct sx_batch *batch, int64_t place, struct sample *sample) {
    struct sx_batch index = {0}, rows = {0};
    enum sx_status status;
    SX_GO(make_index(worker, sample->first, sample->step, batch->rows, &index));
    SX_GO(sx_batch_gather(worker, batch, NULL, batch->n_columns, &index.columns[0], &rows));
    SX_GO(evaluate_keys(exchange, worker, &rows, place, &sample->batches[sample->n_batches]));
    sample->n_batches++;
    sample->first += index.rows * sample->step;
out:
    sx_batch_release(&index);
    sx_batch_release(&rows);
    return status;
}

/* In host memory. */
static enum sx_status take_sample(struct sx_exchange *exchange, struct sx_worker *worker,
                                  struct sample *sample, struct sx_batch *out_host) {
    const struct sx_collector *kept = exchange->kept;
    struct sx_batch all = {0};
    enum sx_status status = SX_OK;
    sample->batches = calloc((size_t)kept->n_batches + 1, sizeof *sample->batches);
    if (!sample->batches)
        return sx_no_memory(sx_worker_error(worker), "a sample");
    for (int64_t b = 0; b < kept->n_batches; b++) {
        const struct sx_batch *batch = &kept->batches[b];
        if (sample->first < batch->rows)
            SX_GO(take_batch(exchange, worker, batch,
                             exchange_sequence(exchange, kept->sequences[b], exchange->rank), sample));
        sample->first -= batch->rows;
    }
    SX_GO(sx_batches_concat(worker, sample->types, sample->n_columns, sample->batches, sample->n_batches,
                            SX_CONCAT_SHARED, &all));
    status = sx_ops(worker)->batch_to_host(worker->stream, &all, out_host);
out:
    release_batches(sample->batches, sample->n_batches);
    sx_batch_release(&all);
    return status;
}

/* ---- all ranks' samples ---- */

/* Rank r's: from the bytes that it has told. */
static enum sx_status unpack(struct sx_worker *worker, const struct sample *sample, const void *data,
                             size_t bytes, struct sx_batch *out_batch) {
    struct sx_pool *pool = worker->run->options.pool;
    struct sx_buffer *buffer;
    struct sx_batch host = {0};
    int64_t sequence;
    SX_TRY(sx_buffer_create(pool, bytes, &buffer, sx_worker_error(worker)));
    memcpy(buffer->data, data, bytes);
    struct sx_wire_reader reader = {buffer, bytes, sample->types, sample->n_columns, 0};
    enum sx_status status = sx_wire_unpack(&reader, pool, &host, &sequence, sx_worker_error(worker));
    sx_buffer_release(buffer);
    if (status == SX_OK)
        status = sx_ops(worker)->batch_from_host(worker->stream, &host, out_batch);
    sx_batch_release(&host);
    return status;
}

/* Every rank tells its own in turn. */
static enum sx_status exchange_samples(const struct sx_exchange *exchange, struct sx_worker *worker,
                                       const struct sample *sample, const struct sx_batch *own,
                                       struct sx_batch *out_batches) {
    const struct sx_exec_options *options = &worker->run->options;
    const size_t own_bytes = sx_wire_bytes(own, NULL, own->rows);
    struct sx_arena arena = {0};
    struct sx_buffer *frame;
    SX_TRY(sx_buffer_create(options->pool, own_bytes, &frame, sx_worker_error(worker)));
    sx_wire_pack(own, NULL, own->rows, 0, frame->data);
    enum sx_status status = SX_OK;
    for (int r = 0; status == SX_OK && r < exchange->n_ranks; r++) {
        const void *data = frame->data;
        size_t bytes = own_bytes;
        status = sx_net_broadcast(options->net, r, &arena, &data, &bytes, options->cancel,
                                  sx_worker_error(worker));
        if (status == SX_OK)
            status = unpack(worker, sample, data, bytes, &out_batches[r]);
    }
    sx_buffer_release(frame);
    sx_arena_release(&arena);
    return status;
}

/* All samples' rows with their order behind them, in host memory. */
static enum sx_status sort_samples(const struct exchange_range *range, struct sx_worker *worker,
                                   const struct sample *sample, const struct sx_batch *batches, int n_batches,
                                   struct sx_batch *out_host) {
    struct sx_batch all = {0}, ordered = {0};
    enum sx_status status;
    SX_GO(sx_batches_concat(worker, sample->types, sample->n_columns, batches, n_batches, SX_CONCAT_SHARED,
                            &all));
    SX_GO(sx_batch_create(all.n_columns + 1, all.rows, &ordered, sx_worker_error(worker)));
    for (int c = 0; c < all.n_columns; c++)
        sx_tensor_share(&all.columns[c], &ordered.columns[c]);
    SX_GO(sx_ops(worker)->sort(worker->stream, all.columns, range->orders, all.n_columns, all.rows, -1,
                               &ordered.columns[all.n_columns]));
    status = sx_ops(worker)->batch_to_host(worker->stream, &ordered, out_host);
out:
    sx_batch_release(&all);
    sx_batch_release(&ordered);
    return status;
}

/* ---- which range a row is in ---- */

static struct sx_expression *call(struct sx_arena *arena, enum sx_function function,
                                  struct sx_expression *left, struct sx_expression *right) {
    struct sx_expression *sides[] = {left, right};
    return sx_make_call(arena, function, sx_type_of(SX_TYPE_BOOL), sides, sx_function_arguments(function));
}

/* Neither is ever NULL. */
static struct sx_expression *comes_after(struct sx_arena *arena, struct sx_expression *key,
                                         const struct sx_scalar *end, const struct sx_sort_key *order) {
    if (end->is_null)
        return order->nulls_first ? call(arena, SX_FN_IS_NOT_NULL, key, NULL)
                                  : sx_make_bool(arena, false, false);
    struct sx_expression *after =
        call(arena, order->descending ? SX_FN_LT : SX_FN_GT, key, sx_make_constant(arena, end));
    return order->nulls_first ? call(arena, SX_FN_IS_TRUE, after, NULL)
                              : call(arena, SX_FN_OR, call(arena, SX_FN_IS_NULL, key, NULL), after);
}

static struct sx_expression *is_equal(struct sx_arena *arena, struct sx_expression *key,
                                      const struct sx_scalar *end) {
    if (end->is_null)
        return call(arena, SX_FN_IS_NULL, key, NULL);
    return call(arena, SX_FN_IS_TRUE, call(arena, SX_FN_EQ, key, sx_make_constant(arena, end)), NULL);
}

/* Whether a row comes after the sampled row `end` in the order of keys and places. */
static struct sx_expression *is_beyond(struct sx_arena *arena, const struct exchange_range *range,
                                       const struct sx_type *types, int32_t n_columns, int64_t end) {
    struct sx_expression *beyond = NULL;
    for (int32_t k = n_columns - 1; k >= 0; k--) {
        struct sx_scalar value;
        sx_tensor_scalar(&range->ends.columns[k], end, &value);
        struct sx_expression *key = sx_make_column(arena, k, types[k]);
        struct sx_expression *after = comes_after(arena, key, &value, &range->orders[k]);
        if (k < n_columns - 1)
            after =
                call(arena, SX_FN_OR, after, call(arena, SX_FN_AND, is_equal(arena, key, &value), beyond));
        beyond = after;
    }
    return beyond;
}

/* The sum over all ends that the row is beyond of what a part takes of the range of U64. */
static struct sx_expression *sum_parts(struct sx_arena *arena, const struct exchange_range *range,
                                       const struct sx_type *types, int32_t n_columns) {
    const int64_t *order = range->ends.columns[n_columns].values;
    struct sx_expression *sum = NULL;
    for (int64_t i = 1; i < range->n_ranges; i++) {
        const int64_t rows = range->ends.rows, last = i * rows / range->n_ranges;
        struct sx_expression *beyond =
            is_beyond(arena, range, types, n_columns, order[last > 0 ? last - 1 : 0]);
        sum = exchange_add_part(arena, sum, beyond, range->n_parts);
        if (!sum)
            return NULL;
    }
    return sum;
}

static enum sx_status find_ends(struct sx_exchange *exchange, struct sx_worker *worker,
                                struct sample *sample) {
    struct exchange_range *range = exchange->range;
    struct sx_batch own = {0};
    struct sx_batch *batches = calloc((size_t)exchange->n_ranks, sizeof *batches);
    enum sx_status status;
    if (!batches)
        return sx_no_memory(sx_worker_error(worker), "a sample");
    SX_GO(take_sample(exchange, worker, sample, &own));
    SX_GO(exchange_samples(exchange, worker, sample, &own, batches));
    SX_GO(sort_samples(range, worker, sample, batches, exchange->n_ranks, &range->ends));
    struct sx_expression *sum = sum_parts(&worker->run->arena, range, sample->types, sample->n_columns);
    status = sum ? sx_evaluator_init(worker->run, &sum, 1, sample->types, sample->n_columns, &range->parts,
                                     sx_worker_error(worker))
                 : sx_no_memory(sx_worker_error(worker), "an exchange");
out:
    release_batches(batches, exchange->n_ranks);
    sx_batch_release(&own);
    return status;
}

/* ---- use ---- */

/* What the ranks tell each other first. */
struct range_size {
    int64_t rows;
    int64_t root_rows; /* rank 0's counts */
};

enum sx_status exchange_range_find(struct sx_exchange *exchange, struct sx_worker *worker) {
    const struct sx_exec_options *options = &worker->run->options;
    const struct range_size own = {exchange->kept->rows, options->root_sort_rows};
    const int n_ranges = exchange->n_ranks < MOST_RANGES ? exchange->n_ranks : MOST_RANGES;
    struct exchange_range *range = exchange->range;
    struct sx_arena arena = {0};
    int64_t total = 0, before = 0;
    void *told = NULL;
    const enum sx_status status = exchange_tell(exchange, worker, &own, sizeof own, &arena, &told);
    const struct range_size *all = told;
    for (int r = 0; status == SX_OK && r < exchange->n_ranks; r++) {
        before += r < exchange->rank ? all[r].rows : 0;
        total += all[r].rows;
    }
    const int64_t root_rows =
        status == SX_OK ? all[0].root_rows * (options->backend->traits.is_host ? 1 : DEVICE_SCALE) : 0;
    sx_arena_release(&arena);
    if (status != SX_OK || total <= root_rows)
        return status;
    const int32_t n_keys = exchange->plan->u.exchange.n_keys;
    struct sample sample = {.types = key_types(worker->run, &exchange->plan->u.exchange),
                            .n_columns = n_keys + 1,
                            .step = total / ((int64_t)SAMPLE_A_RANGE * n_ranges) + 1};
    if (!sample.types)
        return sx_no_memory(sx_worker_error(worker), "a sample");
    sample.first = (sample.step - before % sample.step) % sample.step;
    range->n_ranges = n_ranges;
    range->n_parts = exchange_power_of_two(n_ranges);
    return find_ends(exchange, worker, &sample);
}

enum sx_status exchange_range_parts(struct sx_exchange *exchange, struct sx_worker *worker,
                                    const struct sx_batch *batch, struct sx_tensor *out_parts) {
    const int64_t place = exchange_sequence(exchange, exchange_place(exchange, worker), exchange->rank);
    struct sx_batch keys = {0};
    SX_TRY(evaluate_keys(exchange, worker, batch, place, &keys));
    const enum sx_status status = exchange_places(worker, &exchange->range->parts, &keys, out_parts);
    sx_batch_release(&keys);
    return status;
}
