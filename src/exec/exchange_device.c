/* Exchanges of a backend with memory of its own: rows are packed there, and a message is one frame
 * (tensor/rows.h). Where the net has a link frames go from device to device, but for small ones: these, and
 * all without a link, go by way of the host's memory. */
#include <stdlib.h>

#include "base/clock.h"
#include "exec/exchange.h"

/* Takes the frame over. */
static enum sx_status send_frame(struct sx_exchange *exchange, struct sx_worker *worker, int rank,
                                 struct sx_buffer *frame, bool on_device) {
    const struct sx_net_message message = {
        .rank = rank, .buffer = frame, .bytes = frame->size_bytes, .on_device = on_device};
    return exchange_give(exchange, worker, &message);
}

/* As it travels. */
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

enum sx_status exchange_device_send_whole(struct sx_exchange *exchange, struct sx_worker *worker,
                                          const struct sx_batch *batch) {
    const int64_t offsets[] = {0, batch->rows};
    const bool to_all = exchange->mode != EXCHANGE_TO_ROOT;
    const bool packs = exchange_device_packs(exchange, worker);
    struct sx_buffer *frame = NULL;
    SX_TRY(sx_ops(worker)->rows_pack(worker->stream, batch, NULL, offsets, 1, -1,
                                     exchange_place(exchange, worker), packs, &frame));
    if (!frame)
        return SX_OK;
    bool on_device;
    enum sx_status status = make_portable(worker, &frame, &on_device);
    if (status == SX_OK)
        exchange_device_note(exchange, batch, packs, batch->rows, frame->size_bytes);
    for (int r = 0; status == SX_OK && r < (to_all ? exchange->n_ranks : 1); r++)
        if (r != exchange->rank)
            status = send_frame(exchange, worker, r, sx_buffer_retain(frame), on_device);
    sx_buffer_release(frame);
    return status;
}

enum sx_status exchange_device_send_parts(struct sx_exchange *exchange, struct sx_worker *worker,
                                          const struct sx_batch *batch, const struct sx_tensor *order,
                                          const int64_t *begins) {
    const int n_ranks = exchange->n_ranks;
    const bool packs = exchange_device_packs(exchange, worker);
    size_t bytes = 0;
    struct sx_buffer **frames = calloc((size_t)n_ranks + 1, sizeof(struct sx_buffer *));
    enum sx_status status = SX_OK;
    if (!frames)
        return sx_no_memory(sx_worker_error(worker), "a list of frames");
    SX_GO(sx_ops(worker)->rows_pack(worker->stream, batch, order, begins, n_ranks, exchange->rank,
                                    exchange_place(exchange, worker), packs, frames));
    for (int r = 0; r < n_ranks; r++) {
        if (!frames[r])
            continue;
        bool on_device;
        SX_GO(make_portable(worker, &frames[r], &on_device));
        struct sx_buffer *frame = frames[r];
        bytes += frame->size_bytes;
        frames[r] = NULL;
        SX_GO(send_frame(exchange, worker, r, frame, on_device));
    }
    exchange_device_note(exchange, batch, packs,
                         begins[n_ranks] - begins[0] - (begins[exchange->rank + 1] - begins[exchange->rank]),
                         bytes);
out:
    for (int r = 0; r < n_ranks; r++)
        sx_buffer_release(frames[r]);
    free(frames);
    return status;
}

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
    status = sx_ops(worker)->rows_unpack(worker->stream, frame, bytes, exchange->types,
                                         exchange->plan->n_columns, out_batch, out_sequence);
    sx_buffer_release(frame);
    return status;
}
