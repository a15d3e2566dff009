#include "exec/bloom_share.h"

static size_t bytes_of(const struct bloom_span *span) {
    return (size_t)span->n * sizeof(uint64_t);
}

/* A copy of the span, which the others can take by themselves. */
static enum sx_status make_message(struct sx_worker *worker, const struct sx_tensor *words,
                                   const struct bloom_span *span, struct sx_net_message *out_message) {
    const struct sx_exec_options *options = &worker->run->options;
    const bool is_host = worker->stream->backend->traits.is_host;
    const size_t bytes = bytes_of(span);
    struct sx_buffer *copy, *host = NULL;
    SX_TRY(sx_ops(worker)->bytes_to_send(worker->stream, words->values_buffer,
                                         (size_t)span->first * sizeof(uint64_t), bytes, &copy));
    const bool on_device = !is_host && sx_net_has_link(options->net) && bytes >= options->link_bytes;
    *out_message = (struct sx_net_message){.buffer = copy, .bytes = bytes, .on_device = on_device};
    if (is_host || on_device)
        return SX_OK;
    const enum sx_status status =
        sx_ops(worker)->bytes_to_host(worker->stream, copy, bytes, sx_message_pool(options), &host);
    sx_buffer_release(copy);
    out_message->buffer = host;
    return status;
}

/* `messages`: room for one to each other rank. */
static enum sx_status send_span(struct sx_worker *worker, const struct sx_tensor *words,
                                const struct bloom_span *span, struct sx_channel *channel,
                                struct sx_net_message *messages) {
    const struct sx_net *net = worker->run->options.net;
    struct sx_net_message message;
    int n = 0;
    SX_TRY(make_message(worker, words, span, &message));
    for (int r = 0; r < sx_net_size(net); r++)
        if (r != sx_net_rank(net)) {
            messages[n] = message;
            messages[n].rank = r;
            messages[n++].buffer = sx_buffer_retain(message.buffer);
        }
    sx_buffer_release(message.buffer);
    SX_TRY(sx_channel_send(channel, messages, n, sx_worker_error(worker)));
    return sx_channel_end(channel, sx_worker_error(worker));
}

/* All other ranks' messages, once they are there and the own ones have gone. Those of [0, *n) are the
 * caller's, after a failure, too. */
static enum sx_status take_messages(struct sx_worker *worker, struct sx_channel *channel, int most,
                                    struct sx_net_message *messages, int *n) {
    enum { WAIT_MS = 50 };
    struct sx_events *events = &worker->run->events;
    for (;;) {
        const int64_t n_events = sx_events_count(events);
        while (*n < most && sx_channel_receive(channel, &messages[*n]))
            (*n)++;
        if (*n == most && sx_channel_ended(channel) && sx_channel_unsent_bytes(channel) == 0)
            return SX_OK; /* a rank that has failed ends without a message, and is heard of soon */
        SX_TRY(sx_check_cancel(worker));
        sx_events_wait(events, n_events, WAIT_MS);
    }
}

/* Where the backend can read it; a reference for the caller. */
static enum sx_status place_message(struct sx_worker *worker, const struct sx_net_message *message,
                                    struct sx_buffer **out_buffer) {
    if (!message->on_device)
        return sx_ops(worker)->bytes_from_host(worker->stream, message->buffer, message->bytes, out_buffer);
    *out_buffer = sx_buffer_retain(message->buffer);
    return SX_OK;
}

static enum sx_status merge_message(struct sx_worker *worker, const struct sx_net_message *message,
                                    const struct bloom_span *span, struct sx_tensor *words) {
    struct sx_buffer *placed = NULL;
    struct sx_tensor part = {0};
    if (message->bytes != bytes_of(span))
        return sx_error_set(sx_worker_error(worker), SX_INTERNAL, "a filter of %zu bytes", message->bytes);
    SX_TRY(place_message(worker, message, &placed));
    const struct sx_tensor other = {.type = words->type, .length = span->n, .values = placed->data};
    sx_tensor_slice(words, span->first, span->n, &part);
    const enum sx_status status = sx_ops(worker)->bloom_merge(worker->stream, &other, &part);
    sx_tensor_release(&part);
    sx_buffer_release(placed);
    return status;
}

/* `messages`: room for one of each other rank. */
static enum sx_status merge_messages(struct sx_worker *worker, const struct bloom_span *spans,
                                     struct sx_channel *channel, struct sx_net_message *messages,
                                     struct sx_tensor *words) {
    int n = 0;
    enum sx_status status =
        take_messages(worker, channel, sx_net_size(worker->run->options.net) - 1, messages, &n);
    for (int i = 0; i < n; i++) {
        if (status == SX_OK)
            status = merge_message(worker, &messages[i], &spans[messages[i].rank], words);
        sx_buffer_release(messages[i].buffer);
    }
    return status == SX_OK ? sx_synchronise(worker, "a filter of all ranks") : status;
}

/* The same on all ranks. */
static size_t largest_bytes(const struct bloom_span *spans, int n_ranks) {
    size_t bytes = 0;
    for (int r = 0; r < n_ranks; r++)
        bytes = bytes_of(&spans[r]) > bytes ? bytes_of(&spans[r]) : bytes;
    return bytes;
}

enum sx_status bloom_share(struct sx_worker *worker, const struct bloom_span *spans,
                           struct sx_tensor *words) {
    struct sx_run *run = worker->run;
    const int n_ranks = sx_net_size(run->options.net);
    const struct sx_channel_options options = {.pool = sx_message_pool(&run->options),
                                               .window_bytes = largest_bytes(spans, n_ranks),
                                               .wake = sx_events_add,
                                               .context = &run->events};
    struct sx_arena arena = {0};
    struct sx_channel *channel = NULL;
    enum sx_status status;
    struct sx_net_message *messages = SX_ARENA_ARRAY(&arena, n_ranks, struct sx_net_message);
    if (!messages)
        return sx_no_memory(sx_worker_error(worker), "a join's filter");
    SX_GO(sx_channel_create(run->options.net, &options, &channel, sx_worker_error(worker)));
    SX_GO(send_span(worker, words, &spans[sx_net_rank(run->options.net)], channel, messages));
    status = merge_messages(worker, spans, channel, messages, words);
out:
    sx_channel_destroy(channel);
    sx_arena_release(&arena);
    return status;
}
