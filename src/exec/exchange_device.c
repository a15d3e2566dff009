/* Exchanges of a backend with memory of its own: rows are packed there, and a message is one frame
 * (tensor/rows.h). Where the net has a link frames go from device to device, but for small ones: these, and
 * all without a link, go by way of the host's memory. */
#include <stdlib.h>
#include <string.h>

#include "exec/exchange.h"

/* ---- columns that a join only moves ---- */

static void note_read(int32_t column, void *context) {
    bool *are_moved = context;
    are_moved[column] = false;
}

/* Not those that keys read, nor, of the probe side, the condition: for each of its rounds a column would
 * become values as a whole. A MARK join gives its probe side's columns on as they are. */
enum sx_status exchange_device_create(struct sx_exchange *exchange, struct sx_run *run,
                                      struct sx_error *error) {
    const struct sx_plan *plan = exchange->join ? exchange->join->plan : NULL;
    if (!plan || run->options.backend->traits.is_host || plan->u.join.kind == SX_JOIN_MARK)
        return SX_OK;
    const struct sx_join_plan *join = &plan->u.join;
    const struct sx_exchange_plan *own = &exchange->plan->u.exchange;
    const int32_t n = plan->children[0]->n_columns + plan->children[1]->n_columns; /* of a condition */
    bool *are_moved = SX_ARENA_ARRAY(&run->arena, n, bool);
    if (!are_moved)
        return sx_no_memory(error, "a join between ranks");
    memset(are_moved, true, (size_t)n);
    for (int32_t i = 0; i < join->n_residual && !exchange->is_build; i++)
        sx_expression_columns(join->residual[i], note_read, are_moved);
    for (int32_t k = 0; k < join->n_keys; k++)
        sx_expression_columns(exchange->is_build ? join->keys[k].build : join->keys[k].probe, note_read,
                              are_moved);
    for (int32_t k = 0; k < own->n_keys; k++)
        sx_expression_columns(own->keys[k], note_read, are_moved);
    exchange->are_moved = are_moved;
    return SX_OK;
}

/* ---- sending ---- */

/* Of messages whose frames are all on the device small ones, and all without a link, come to the host's
 * memory, together. */
static enum sx_status make_portable(struct sx_worker *worker, struct sx_net_message *messages, int n) {
    const struct sx_exec_options *options = &worker->run->options;
    struct sx_buffer **frames = calloc(2 * (size_t)n + 1, sizeof *frames),
                     **hosts = frames ? frames + n : NULL;
    int n_hosts = 0;
    if (!frames)
        return sx_no_memory(sx_worker_error(worker), "a list of frames");
    for (int i = 0; i < n; i++) {
        messages[i].on_device = sx_net_has_link(options->net) && messages[i].bytes >= options->link_bytes;
        if (!messages[i].on_device)
            frames[n_hosts++] = messages[i].buffer;
    }
    enum sx_status status = SX_OK;
    if (n_hosts > 0)
        status =
            sx_ops(worker)->bytes_to_host(worker->stream, frames, n_hosts, sx_message_pool(options), hosts);
    for (int i = 0; status == SX_OK && i < n; i++) {
        if (messages[i].on_device)
            continue;
        sx_buffer_release(messages[i].buffer);
        messages[i].buffer = *hosts++;
    }
    free(frames);
    return status;
}

static struct sx_net_message message_of(int rank, struct sx_buffer *frame) {
    return (struct sx_net_message){.rank = rank, .buffer = frame, .bytes = frame->size_bytes};
}

/* Room for a message to each rank; NULL: no memory, which the worker's error says. */
static struct sx_net_message *make_list(const struct sx_exchange *exchange, struct sx_worker *worker) {
    struct sx_net_message *messages = calloc((size_t)exchange->n_ranks + 1, sizeof *messages);
    if (!messages)
        (void)sx_no_memory(sx_worker_error(worker), "a list of messages");
    return messages;
}

static void drop_messages(struct sx_net_message *messages, int n) {
    for (int i = 0; i < n; i++)
        sx_buffer_release(messages[i].buffer);
}

/* All of them together; takes them over. */
static enum sx_status send_frames(struct sx_exchange *exchange, struct sx_worker *worker,
                                  struct sx_buffer **frames, size_t *out_bytes) {
    struct sx_net_message *messages = make_list(exchange, worker);
    int n = 0;
    *out_bytes = 0;
    if (!messages)
        return SX_OUT_OF_MEMORY;
    for (int r = 0; r < exchange->n_ranks; r++) {
        if (!frames[r])
            continue;
        messages[n++] = message_of(r, frames[r]);
        *out_bytes += frames[r]->size_bytes;
        frames[r] = NULL;
    }
    enum sx_status status = make_portable(worker, messages, n);
    if (status != SX_OK)
        drop_messages(messages, n);
    else if (n > 0)
        status = exchange_give(exchange, worker, messages, n);
    free(messages);
    return status;
}

/* To all others, or to the root. */
static enum sx_status send_frame(struct sx_exchange *exchange, struct sx_worker *worker,
                                 struct sx_buffer *frame) {
    const int n_receivers = exchange->mode != EXCHANGE_TO_ROOT ? exchange->n_ranks : 1;
    struct sx_net_message *messages = make_list(exchange, worker), message = message_of(0, frame);
    enum sx_status status = messages ? make_portable(worker, &message, 1) : SX_OUT_OF_MEMORY;
    int n = 0;
    for (int r = 0; status == SX_OK && r < n_receivers; r++) {
        if (r == exchange->rank)
            continue;
        messages[n] = message;
        messages[n].rank = r;
        messages[n++].buffer = sx_buffer_retain(message.buffer);
    }
    if (n > 0)
        status = exchange_give(exchange, worker, messages, n);
    sx_buffer_release(message.buffer);
    free(messages);
    return status;
}

enum sx_status exchange_device_send_whole(struct sx_exchange *exchange, struct sx_worker *worker,
                                          const struct sx_batch *batch) {
    const int64_t offsets[] = {0, batch->rows};
    const struct sx_row_parts parts = {.offsets = offsets, .n_parts = 1, .own = -1};
    const int n_messages = exchange->mode == EXCHANGE_TO_ALL ? exchange->n_ranks - 1 : 1;
    const bool packs = exchange_device_packs(exchange, worker, batch->rows * n_messages);
    struct sx_buffer *frame = NULL;
    struct sx_batch none;
    size_t plain_bytes;
    SX_TRY(sx_ops(worker)->rows_pack(worker->stream, batch, &parts, exchange_place(exchange, worker), packs,
                                     NULL, &frame, &plain_bytes, &none));
    if (!frame)
        return SX_OK;
    exchange_device_note(exchange, packs, batch->rows, frame->size_bytes, plain_bytes);
    return send_frame(exchange, worker, frame);
}

enum sx_status exchange_device_send_parts(struct sx_exchange *exchange, struct sx_worker *worker,
                                          const struct sx_batch *batch, const struct sx_row_parts *parts) {
    const int n_ranks = exchange->n_ranks;
    const int64_t *begins = parts->offsets;
    const int64_t rows_sent =
        begins[n_ranks] - begins[0] - (begins[exchange->rank + 1] - begins[exchange->rank]);
    const bool packs = exchange_device_packs(exchange, worker, rows_sent);
    size_t bytes = 0, plain_bytes;
    struct sx_batch own = {0};
    struct sx_rows_narrow *narrow = NULL;
    struct sx_buffer **frames = calloc((size_t)n_ranks + 1, sizeof(struct sx_buffer *));
    enum sx_status status = SX_OK;
    if (!frames)
        return sx_no_memory(sx_worker_error(worker), "a list of frames");
    SX_GO(exchange_device_narrow(exchange, worker, batch->rows, &narrow));
    SX_GO(sx_ops(worker)->rows_pack(worker->stream, batch, parts, exchange_place(exchange, worker), packs,
                                    narrow, frames, &plain_bytes, &own));
    if (narrow)
        exchange_device_note_narrow(exchange, narrow);
    SX_GO(send_frames(exchange, worker, frames, &bytes));
    exchange_device_note(exchange, packs, rows_sent, bytes, plain_bytes);
    if (own.rows > 0)
        status = atomic_load(&exchange->is_driven_early) ? exchange_keep_for_any(exchange, worker, &own)
                                                         : exchange_keep(exchange, worker, &own);
out:
    sx_batch_release(&own);
    for (int r = 0; r < n_ranks; r++)
        sx_buffer_release(frames[r]);
    free(frames);
    free(narrow);
    return status;
}

/* ---- receiving ---- */

enum sx_status exchange_device_unpack(struct sx_exchange *exchange, struct sx_worker *worker,
                                      struct sx_batch *out_batch, int64_t *out_sequence) {
    struct exchange_worker *state = &exchange->workers[worker->index];
    struct sx_buffer *frame = state->reader.buffer;
    state->reader.buffer = NULL;
    const enum sx_status status = sx_ops(worker)->rows_unpack(
        worker->stream, frame, state->reader.bytes, !state->is_on_device, exchange->types,
        exchange->plan->n_columns, exchange->are_moved, out_batch, out_sequence);
    sx_buffer_release(frame);
    return status;
}
