/* The sending half of an exchange: rows are sorted by their ranks and packed into messages. */
#include <stdlib.h>
#include <string.h>

#include "exec/exchange_filter.h"
#include "exec/exchange_range.h"
#include "exec/exchange_skew.h"

enum {
    PARTS_A_RANK = 16,       /* ranks get parts of the hashes' range, which is cut into a power of two */
    FRAME_ROWS = 65536,      /* at most */
    ALL_RANKS = 0,           /* the outgoing message of EXCHANGE_TO_ALL */
    LEAST_MESSAGE = 64 << 10 /* bytes */
};

/* ---- rows that stay ---- */

static enum sx_status keep_all(struct sx_exchange *exchange, struct sx_worker *worker,
                               const struct sx_batch *batch) {
    struct sx_batch same = {0};
    SX_TRY(sx_batch_share(batch, &same, sx_worker_error(worker)));
    const enum sx_status status = exchange_keep(exchange, worker, &same);
    sx_batch_release(&same);
    return status;
}

static enum sx_status keep_some(struct sx_exchange *exchange, struct sx_worker *worker,
                                const struct sx_batch *batch, const struct sx_tensor *index) {
    struct sx_batch made = {0};
    enum sx_status status = sx_batch_gather(worker, batch, NULL, batch->n_columns, index, &made);
    if (status == SX_OK)
        status = exchange_keep(exchange, worker, &made);
    sx_batch_release(&made);
    return status;
}

/* ---- messages ---- */

enum sx_status exchange_give(struct sx_exchange *exchange, struct sx_worker *worker,
                             const struct sx_net_message *messages, int n) {
    return exchange->is_blocking ? exchange_hold(exchange, worker, messages, n)
                                 : sx_channel_send(exchange->channel, messages, n, sx_worker_error(worker));
}

static enum sx_status send_to(struct sx_exchange *exchange, struct sx_worker *worker, int rank,
                              const struct exchange_outgoing *outgoing) {
    const struct sx_net_message message = {
        .rank = rank, .buffer = sx_buffer_retain(outgoing->buffer), .bytes = outgoing->used_bytes};
    return exchange_give(exchange, worker, &message, 1);
}

static enum sx_status flush_to(struct sx_exchange *exchange, struct sx_worker *worker, int rank) {
    struct exchange_outgoing *outgoing = &exchange->workers[worker->index].outgoing[rank];
    const bool to_all = exchange->mode == EXCHANGE_TO_ALL;
    enum sx_status status = SX_OK;
    if (!outgoing->buffer)
        return SX_OK;
    for (int r = to_all ? 0 : rank; status == SX_OK && r < (to_all ? exchange->n_ranks : rank + 1); r++)
        if (r != exchange->rank)
            status = send_to(exchange, worker, r, outgoing);
    sx_buffer_release(outgoing->buffer);
    *outgoing = (struct exchange_outgoing){0};
    return status;
}

enum sx_status exchange_flush(struct sx_exchange *exchange, struct sx_worker *worker) {
    for (int rank = 0; rank < exchange->n_ranks; rank++)
        SX_TRY(flush_to(exchange, worker, rank));
    return SX_OK;
}

/* Room for a frame in the message for `rank`. */
static enum sx_status make_room(struct sx_exchange *exchange, struct sx_worker *worker, int rank,
                                size_t bytes) {
    struct exchange_outgoing *outgoing = &exchange->workers[worker->index].outgoing[rank];
    if (outgoing->buffer && bytes > outgoing->buffer->size_bytes - outgoing->used_bytes)
        SX_TRY(flush_to(exchange, worker, rank));
    if (!outgoing->buffer)
        SX_TRY(sx_buffer_create(worker->run->options.pool,
                                bytes > exchange->message_bytes ? bytes : exchange->message_bytes,
                                &outgoing->buffer, sx_worker_error(worker)));
    return SX_OK;
}

/* Adds a frame with rows of a host batch to the message for `rank`. */
static enum sx_status add_frame(struct sx_exchange *exchange, struct sx_worker *worker, int rank,
                                const struct sx_batch *batch, const int32_t *rows, int64_t n_rows) {
    struct exchange_outgoing *outgoing = &exchange->workers[worker->index].outgoing[rank];
    struct exchange_packing *packing = exchange_packing_for(exchange, worker, rank);
    const size_t plain_bytes = sx_wire_bytes(batch, rows, n_rows);
    const void *frame = NULL;
    size_t bytes = plain_bytes;
    if (packing)
        SX_TRY(exchange_pack(exchange, worker, packing, batch, rows, n_rows, plain_bytes, &frame, &bytes));
    SX_TRY(make_room(exchange, worker, rank, bytes));
    char *out = (char *)outgoing->buffer->data + outgoing->used_bytes;
    if (frame) {
        memcpy(out, frame, bytes);
        atomic_store(&exchange->has_packed, true);
    } else {
        sx_wire_pack(batch, rows, n_rows, exchange_place(exchange, worker), out);
    }
    outgoing->used_bytes += bytes;
    atomic_fetch_add(&exchange->plain_bytes, (long long)plain_bytes);
    atomic_fetch_add(&exchange->packed_bytes, (long long)bytes);
    return SX_OK;
}

static enum sx_status add_frames(struct sx_exchange *exchange, struct sx_worker *worker, int rank,
                                 const struct sx_batch *batch, const int32_t *rows, int64_t n_rows) {
    for (int64_t first = 0; first < n_rows; first += FRAME_ROWS) {
        const int64_t n = n_rows - first < FRAME_ROWS ? n_rows - first : FRAME_ROWS;
        struct sx_batch part = {0};
        if (rows) {
            SX_TRY(add_frame(exchange, worker, rank, batch, rows + first, n));
            continue;
        }
        SX_TRY(sx_batch_slice(batch, first, n, &part, sx_worker_error(worker)));
        enum sx_status status = add_frame(exchange, worker, rank, &part, NULL, n);
        sx_batch_release(&part);
        SX_TRY(status);
    }
    return SX_OK;
}

/* ---- where to ---- */

static enum sx_status send_whole(struct sx_exchange *exchange, struct sx_worker *worker,
                                 const struct sx_batch *batch) {
    const int rank = exchange->mode == EXCHANGE_TO_ALL ? ALL_RANKS : 0;
    return worker->stream->backend->traits.is_host
               ? add_frames(exchange, worker, rank, batch, NULL, batch->rows)
               : exchange_device_send_whole(exchange, worker, batch);
}

int exchange_power_of_two(int n) {
    int power = 1;
    while (power < n)
        power *= 2;
    return power;
}

/* As many as ranks where these are a power of two. */
int exchange_count_parts(int n_ranks) {
    const int n = exchange_power_of_two(n_ranks);
    return n == n_ranks ? n : n * PARTS_A_RANK;
}

int exchange_first_part(int rank, int n_ranks) {
    return rank * exchange_count_parts(n_ranks) / n_ranks;
}

static enum sx_status add_salt(struct sx_worker *worker, struct sx_batch *keys) {
    const struct sx_scalar salt = {.type = sx_type_of(SX_TYPE_I32), .v.i64 = 0x5358};
    return sx_ops(worker)->constant(worker->stream, &salt, keys->rows, &keys->columns[keys->n_columns - 1]);
}

static enum sx_status hash_salted(struct sx_worker *worker, const struct sx_batch *keys,
                                  struct sx_tensor *out_hashes) {
    return sx_ops(worker)->hash(worker->stream, keys->columns, keys->n_columns, keys->rows, out_hashes);
}

enum sx_status exchange_hash(struct sx_worker *worker, struct sx_batch *keys, struct sx_tensor *out_hashes) {
    SX_TRY(add_salt(worker, keys));
    return hash_salted(worker, keys, out_hashes);
}

/* The exchange's keys, and the constant behind them. */
static enum sx_status make_keys(struct sx_exchange *exchange, struct sx_worker *worker,
                                const struct sx_batch *batch, struct sx_batch *out_keys) {
    struct sx_batch keys = {0};
    enum sx_status status = SX_OK;
    SX_GO(
        sx_batch_create(exchange->plan->u.exchange.n_keys + 1, batch->rows, &keys, sx_worker_error(worker)));
    SX_GO(sx_evaluator_run(&exchange->keys, worker, batch, keys.columns));
    SX_GO(add_salt(worker, &keys));
    *out_keys = keys;
    return SX_OK;
out:
    sx_batch_release(&keys);
    return status;
}

enum sx_status exchange_add_keys(struct sx_exchange *exchange, struct sx_worker *worker,
                                 const struct sx_batch *batch, struct sx_tensor *words) {
    struct sx_batch keys;
    SX_TRY(make_keys(exchange, worker, batch, &keys));
    const enum sx_status status =
        sx_ops(worker)->bloom_add_keys(worker->stream, keys.columns, keys.n_columns, keys.rows, words);
    sx_batch_release(&keys);
    return status;
}

enum sx_status exchange_hash_keys(struct sx_exchange *exchange, struct sx_worker *worker,
                                  const struct sx_batch *batch, struct sx_tensor *out_hashes) {
    struct sx_batch keys;
    SX_TRY(make_keys(exchange, worker, batch, &keys));
    const enum sx_status status = hash_salted(worker, &keys, out_hashes);
    sx_batch_release(&keys);
    return status;
}

static enum sx_status send_host_parts(struct sx_exchange *exchange, struct sx_worker *worker,
                                      const struct sx_batch *batch, const struct sx_row_parts *parts) {
    const int32_t *order = parts->order->values;
    const int64_t *begins = parts->offsets, first = begins[parts->own], n = begins[parts->own + 1] - first;
    struct sx_tensor mine = {0};
    for (int rank = 0; rank < exchange->n_ranks; rank++)
        if (rank != exchange->rank && begins[rank + 1] > begins[rank])
            SX_TRY(add_frames(exchange, worker, rank, batch, order + begins[rank],
                              begins[rank + 1] - begins[rank]));
    if (n == 0)
        return SX_OK;
    sx_tensor_slice(parts->order, first, n, &mine);
    enum sx_status status = keep_some(exchange, worker, batch, &mine);
    sx_tensor_release(&mine);
    return status;
}

static enum sx_status send_parts(struct sx_exchange *exchange, struct sx_worker *worker,
                                 const struct sx_batch *batch, const struct sx_row_parts *parts) {
    if (parts->offsets[parts->own + 1] - parts->offsets[parts->own] == batch->rows)
        return keep_all(exchange, worker, batch);
    return worker->stream->backend->traits.is_host
               ? send_host_parts(exchange, worker, batch, parts)
               : exchange_device_send_parts(exchange, worker, batch, parts);
}

/* To all other ranks, from within an exchange by hash. */
static enum sx_status send_everywhere(struct sx_exchange *exchange, struct sx_worker *worker,
                                      const struct sx_batch *batch) {
    if (!worker->stream->backend->traits.is_host)
        return exchange_device_send_whole(exchange, worker, batch);
    for (int rank = 0; rank < exchange->n_ranks; rank++)
        if (rank != exchange->rank)
            SX_TRY(add_frames(exchange, worker, rank, batch, NULL, batch->rows));
    return SX_OK;
}

/* Rows with heavy keys: the build side's go to all ranks, the probe side's stay. */
static enum sx_status take_heavy(struct sx_exchange *exchange, struct sx_worker *worker,
                                 const struct sx_batch *batch, const struct sx_tensor *heavy) {
    struct sx_batch made = {0};
    enum sx_status status = sx_batch_gather(worker, batch, NULL, batch->n_columns, heavy, &made);
    if (status == SX_OK && exchange->is_build)
        status = send_everywhere(exchange, worker, &made);
    if (status == SX_OK)
        status = exchange_keep(exchange, worker, &made);
    sx_batch_release(&made);
    return status;
}

static bool has_heavy_keys(const struct sx_exchange *exchange) {
    const struct exchange_skew *skew = exchange->join ? exchange->join->skew : NULL;
    return skew && skew->words.length > 0 && exchange->plan->u.exchange.adaptive;
}

/* Deals with heavy keys' rows, and leaves the others' hashes; *out_rest: where these are, or zeroed: in their
 * places. */
static enum sx_status split_heavy(struct sx_exchange *exchange, struct sx_worker *worker,
                                  const struct sx_batch *batch, struct sx_tensor *hashes,
                                  struct sx_tensor *out_rest) {
    struct sx_tensor heavy = {0};
    SX_TRY(exchange_skew_split(exchange->join->skew, worker, hashes, &heavy, out_rest));
    const enum sx_status status = heavy.length > 0 ? take_heavy(exchange, worker, batch, &heavy) : SX_OK;
    sx_tensor_release(&heavy);
    return status;
}

/* order[i] = rest[order[i]] */
static enum sx_status place_rest(struct sx_worker *worker, const struct sx_tensor *rest,
                                 struct sx_tensor *order) {
    struct sx_tensor placed = {0};
    SX_TRY(sx_ops(worker)->gather(worker->stream, rest, order, &placed));
    sx_tensor_release(order);
    *order = placed;
    return SX_OK;
}

/* ---- large batches on a device: in turn ---- */

/* A device shares itself out among all that is asked of it: large batches that are ordered and packed at the
 * same time would all be ready late, and the link idle until then. So would they beside large kernels of
 * other workers. But while one is packed the next one is ordered, for whose sizes the host has to wait. */
static enum sx_status begin_turn(struct sx_exchange *exchange, struct sx_worker *worker) {
    pthread_mutex_lock(&exchange->order_lock);
    exchange->workers[worker->index].turn = EXCHANGE_ORDERS;
    return sx_ops(worker)->prioritise(worker->stream, true);
}

/* Rows are in order, if it is the worker's turn to order some. */
static void next_turn(struct sx_exchange *exchange, struct sx_worker *worker) {
    struct exchange_worker *state = &exchange->workers[worker->index];
    if (state->turn != EXCHANGE_ORDERS)
        return;
    pthread_mutex_lock(&exchange->pack_lock);
    pthread_mutex_unlock(&exchange->order_lock);
    state->turn = EXCHANGE_PACKS;
}

static enum sx_status end_turn(struct sx_exchange *exchange, struct sx_worker *worker) {
    struct exchange_worker *state = &exchange->workers[worker->index];
    const enum sx_status status = sx_ops(worker)->prioritise(worker->stream, false);
    pthread_mutex_unlock(state->turn == EXCHANGE_PACKS ? &exchange->pack_lock : &exchange->order_lock);
    state->turn = EXCHANGE_NO_TURN;
    return status;
}

/* ---- by runs ---- */

/* Room for the begins of `n_runs` runs and those of the ranks' parts behind them; NULL: no memory. */
static int64_t *make_parts(const struct sx_exchange *exchange, int n_runs, struct sx_row_parts *out_parts) {
    int64_t *offsets = calloc((size_t)n_runs + (size_t)exchange->n_ranks + 2, sizeof *offsets);
    *out_parts = (struct sx_row_parts){.offsets = offsets ? offsets + n_runs + 1 : NULL,
                                       .n_parts = exchange->n_ranks,
                                       .own = exchange->rank,
                                       .runs = offsets,
                                       .n_runs = n_runs};
    return offsets;
}

/* What a batch's rows are sent by: the high bits of numbers, of rows `rest` or (zeroed) of all, or those of
 * the hashes of keys. */
struct sent_by {
    const struct sx_tensor *numbers, *rest;
    struct sx_batch *keys;          /* or NULL; released once rows are in order */
    struct exchange_filter *filter; /* with keys: what it lacks is not sent; or NULL */
};

static enum sx_status order_rows(struct sx_worker *worker, const struct sent_by *by, int64_t rows, int n_runs,
                                 struct sx_tensor *out_order, int64_t *out_runs) {
    if (by->keys) {
        const enum sx_status status = sx_ops(worker)->partition_keys(
            worker->stream, by->keys->columns, by->keys->n_columns, rows,
            by->filter ? &by->filter->words : NULL, n_runs, out_order, out_runs);
        sx_batch_release(by->keys);
        if (status == SX_OK && by->filter)
            exchange_filter_count(by->filter, rows, out_runs[n_runs]);
        return status;
    }
    SX_TRY(sx_ops(worker)->partition(worker->stream, by->numbers, n_runs, out_order, out_runs));
    return by->numbers->length < rows ? place_rest(worker, by->rest, out_order) : SX_OK;
}

/* are_shares: the ranks share the runs out; else rank r has run r. */
static enum sx_status send_runs(struct sx_exchange *exchange, struct sx_worker *worker,
                                const struct sx_batch *batch, const struct sent_by *by, int n_runs,
                                bool are_shares) {
    struct sx_tensor order = {0};
    struct sx_row_parts parts;
    int64_t *runs = make_parts(exchange, n_runs, &parts);
    enum sx_status status = SX_OK;
    if (!runs)
        return sx_no_memory(sx_worker_error(worker), "a list of parts");
    SX_GO(order_rows(worker, by, batch->rows, n_runs, &order, runs));
    for (int r = 1; r <= exchange->n_ranks; r++)
        runs[n_runs + 1 + r] = runs[are_shares   ? exchange_first_part(r, exchange->n_ranks)
                                    : r < n_runs ? r
                                                 : n_runs];
    parts.order = &order;
    next_turn(exchange, worker);
    if (order.length > 0)
        status = send_parts(exchange, worker, batch, &parts);
out:
    free(runs);
    sx_tensor_release(&order);
    return status;
}

/* The build side's filter, as long as this probe side should ask it; else NULL. */
static struct exchange_filter *filter_of(const struct sx_exchange *exchange) {
    struct exchange_filter *filter = exchange->join && !exchange->is_build ? exchange->join->filter : NULL;
    return exchange_filter_is_useful(filter) ? filter : NULL;
}

static enum sx_status send_by_hash(struct sx_exchange *exchange, struct sx_worker *worker,
                                   const struct sx_batch *batch) {
    struct sx_batch keys = {0};
    struct sx_tensor hashes = {0}, rest = {0};
    struct sent_by by = {.keys = &keys, .filter = filter_of(exchange)};
    enum sx_status status;
    SX_GO(make_keys(exchange, worker, batch, &keys));
    if (has_heavy_keys(exchange)) {
        SX_GO(hash_salted(worker, &keys, &hashes));
        sx_batch_release(&keys);
        SX_GO(split_heavy(exchange, worker, batch, &hashes, &rest));
        by = (struct sent_by){.numbers = &hashes, .rest = &rest};
    }
    status = send_runs(exchange, worker, batch, &by, exchange_count_parts(exchange->n_ranks), true);
out:
    sx_batch_release(&keys);
    sx_tensor_release(&hashes);
    sx_tensor_release(&rest);
    return status;
}

static enum sx_status send_by_ends(struct sx_exchange *exchange, struct sx_worker *worker,
                                   const struct sx_batch *batch) {
    struct sx_tensor places = {0};
    SX_TRY(exchange_places(worker, &exchange->places, batch, &places));
    const struct sent_by by = {.numbers = &places};
    const enum sx_status status = send_runs(exchange, worker, batch, &by, exchange->n_places, false);
    sx_tensor_release(&places);
    return status;
}

static enum sx_status send_by_range(struct sx_exchange *exchange, struct sx_worker *worker,
                                    const struct sx_batch *batch) {
    struct sx_tensor ranges = {0};
    SX_TRY(exchange_range_parts(exchange, worker, batch, &ranges));
    const struct sent_by by = {.numbers = &ranges};
    const enum sx_status status = send_runs(exchange, worker, batch, &by, exchange->range->n_parts, false);
    sx_tensor_release(&ranges);
    return status;
}

static enum sx_status send_in_turn(struct sx_exchange *exchange, struct sx_worker *worker,
                                   const struct sx_batch *batch,
                                   enum sx_status (*send)(struct sx_exchange *exchange,
                                                          struct sx_worker *worker,
                                                          const struct sx_batch *batch)) {
    const bool in_turn =
        !worker->stream->backend->traits.is_host && batch->rows >= worker->run->options.large_rows;
    if (!in_turn)
        return send(exchange, worker, batch);
    enum sx_status status = begin_turn(exchange, worker);
    if (status == SX_OK)
        status = send(exchange, worker, batch);
    const struct sx_error first = *sx_worker_error(worker);
    const enum sx_status ended = end_turn(exchange, worker);
    if (status != SX_OK)
        *sx_worker_error(worker) = first;
    return status != SX_OK ? status : ended;
}

static enum sx_status send_consume(struct sx_sink *sink, struct sx_worker *worker, struct sx_batch *batch) {
    struct sx_exchange *exchange = ((struct exchange_sink *)sink)->exchange;
    SX_TRY(sx_ops(worker)->batch_rows(worker->stream, batch));
    if (batch->rows == 0)
        return SX_OK;
    switch (exchange->mode) {
    case EXCHANGE_TO_HASH:
        if (exchange->n_places == 0)
            return send_in_turn(exchange, worker, batch, send_by_hash);
        if (!exchange_keeps_all(exchange, worker))
            return send_by_ends(exchange, worker, batch);
        break;
    case EXCHANGE_TO_RANGE: return send_in_turn(exchange, worker, batch, send_by_range);
    case EXCHANGE_TO_ALL: SX_TRY(send_whole(exchange, worker, batch)); break;
    case EXCHANGE_TO_ROOT:
        if (exchange->rank != 0)
            return send_whole(exchange, worker, batch);
        break;
    case EXCHANGE_STAY: break;
    }
    return exchange_keep(exchange, worker, batch);
}

enum sx_status exchange_send_create(struct sx_exchange *exchange, struct sx_run *run,
                                    struct sx_error *error) {
    const size_t most = (size_t)1 << 20, all = (size_t)256 << 20;
    const size_t share = all / ((size_t)exchange->n_ranks * (size_t)run->n_workers);
    const struct sx_exchange_plan *plan = &exchange->plan->u.exchange;
    const struct sx_plan *child = exchange->plan->children[0];
    struct exchange_sink *sink =
        sx_operator_create(run, sizeof *sink, NULL, "%s send", exchange->source.base.name);
    if (!sink)
        return sx_no_memory(error, "an exchange");
    sink->exchange = exchange;
    sink->sink.consume = send_consume;
    sink->sink.is_driven = true;
    exchange->sink = sink;
    exchange->message_bytes = share > most ? most : share > LEAST_MESSAGE ? share : LEAST_MESSAGE;
    if (run->options.message_bytes > 0)
        exchange->message_bytes = run->options.message_bytes;
    else if (run->options.overlap == SX_OVERLAP_BLOCKING)
        exchange->message_bytes = LEAST_MESSAGE;
    for (int w = 0; w < run->n_workers; w++) {
        exchange->workers[w].outgoing =
            SX_ARENA_ARRAY(&run->arena, exchange->n_ranks, struct exchange_outgoing);
        if (!exchange->workers[w].outgoing)
            return sx_no_memory(error, "an exchange");
    }
    return sx_evaluator_init(run, plan->keys, plan->n_keys, exchange->types, child->n_columns,
                             &exchange->keys, error);
}
