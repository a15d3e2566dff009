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

/* The frame as it travels. */
static enum sx_status make_portable(struct sx_worker *worker, struct sx_buffer **frame, bool *out_on_device) {
    struct sx_buffer *host = NULL;
    *out_on_device =
        sx_net_has_link(worker->run->options.net) && (*frame)->size_bytes >= worker->run->options.link_bytes;
    if (*out_on_device)
        return SX_OK;
    enum sx_status status = sx_ops(worker)->bytes_to_host(worker->stream, *frame, (*frame)->size_bytes,
                                                          sx_message_pool(&worker->run->options), &host);
    sx_buffer_release(*frame);
    *frame = host;
    return status;
}

static struct sx_net_message message_of(int rank, struct sx_buffer *frame, bool on_device) {
    return (struct sx_net_message){
        .rank = rank, .buffer = frame, .bytes = frame->size_bytes, .on_device = on_device};
}

/* Room for a message to each rank; NULL: no memory, which the worker's error says. */
static struct sx_net_message *make_list(const struct sx_exchange *exchange, struct sx_worker *worker) {
    struct sx_net_message *messages = calloc((size_t)exchange->n_ranks + 1, sizeof *messages);
    if (!messages)
        (void)sx_no_memory(sx_worker_error(worker), "a list of messages");
    return messages;
}

/* All of them together; taken over if they are sent. */
static enum sx_status send_frames(struct sx_exchange *exchange, struct sx_worker *worker,
                                  struct sx_buffer **frames, size_t *out_bytes) {
    struct sx_net_message *messages = make_list(exchange, worker);
    enum sx_status status = messages ? SX_OK : SX_OUT_OF_MEMORY;
    int n = 0;
    *out_bytes = 0;
    for (int r = 0; status == SX_OK && r < exchange->n_ranks; r++) {
        bool on_device;
        if (!frames[r])
            continue;
        SX_GO(make_portable(worker, &frames[r], &on_device));
        *out_bytes += frames[r]->size_bytes;
        messages[n++] = message_of(r, frames[r], on_device);
    }
    if (status == SX_OK && n > 0) {
        status = exchange_give(exchange, worker, messages, n);
        memset(frames, 0, (size_t)exchange->n_ranks * sizeof *frames);
    }
out:
    free(messages);
    return status;
}

enum sx_status exchange_device_send_whole(struct sx_exchange *exchange, struct sx_worker *worker,
                                          const struct sx_batch *batch) {
    const int64_t offsets[] = {0, batch->rows};
    const struct sx_row_parts parts = {.offsets = offsets, .n_parts = 1, .own = -1};
    const bool to_all = exchange->mode != EXCHANGE_TO_ROOT;
    const bool packs = exchange_device_packs(exchange, worker);
    struct sx_buffer *frame = NULL;
    struct sx_batch none;
    size_t plain_bytes;
    SX_TRY(sx_ops(worker)->rows_pack(worker->stream, batch, &parts, exchange_place(exchange, worker), packs,
                                     NULL, &frame, &plain_bytes, &none));
    if (!frame)
        return SX_OK;
    struct sx_net_message *messages = make_list(exchange, worker);
    bool on_device = false;
    enum sx_status status = messages ? make_portable(worker, &frame, &on_device) : SX_OUT_OF_MEMORY;
    if (status == SX_OK)
        exchange_device_note(exchange, packs, batch->rows, frame->size_bytes, plain_bytes);
    int n = 0;
    for (int r = 0; status == SX_OK && r < (to_all ? exchange->n_ranks : 1); r++)
        if (r != exchange->rank)
            messages[n++] = message_of(r, sx_buffer_retain(frame), on_device);
    if (n > 0)
        status = exchange_give(exchange, worker, messages, n);
    sx_buffer_release(frame);
    free(messages);
    return status;
}

enum sx_status exchange_device_send_parts(struct sx_exchange *exchange, struct sx_worker *worker,
                                          const struct sx_batch *batch, const struct sx_row_parts *parts) {
    const int n_ranks = exchange->n_ranks;
    const int64_t *begins = parts->offsets;
    const bool packs = exchange_device_packs(exchange, worker);
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
    exchange_device_note(exchange, packs,
                         begins[n_ranks] - begins[0] - (begins[exchange->rank + 1] - begins[exchange->rank]),
                         bytes, plain_bytes);
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
    const size_t bytes = state->reader.bytes;
    enum sx_status status = SX_OK;
    state->reader.buffer = NULL;
    if (!state->is_on_device) {
        struct sx_buffer *host = frame;
        status = sx_ops(worker)->bytes_from_host(worker->stream, host, bytes, &frame);
        sx_buffer_release(host);
        SX_TRY(status);
    }
    status =
        sx_ops(worker)->rows_unpack(worker->stream, frame, bytes, exchange->types, exchange->plan->n_columns,
                                    exchange->are_moved, out_batch, out_sequence);
    sx_buffer_release(frame);
    return status;
}
