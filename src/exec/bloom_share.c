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
    const bool on_device = !is_host && sx_net_has_link(options->net) && bytes >= options->link_bytes;
    struct sx_buffer *buffer;
    SX_TRY(sx_ops(worker)->bytes_to_send(worker->stream, words->values_buffer,
                                         (size_t)span->first * sizeof(uint64_t), bytes, &buffer));
    if (!is_host && !on_device) {
        struct sx_buffer *copy = buffer;
        const enum sx_status status =
            sx_ops(worker)->bytes_to_host(worker->stream, &copy, 1, sx_message_pool(options), &buffer);
        sx_buffer_release(copy);
        SX_TRY(status);
    }
    *out_message = (struct sx_net_message){.buffer = buffer, .bytes = bytes, .on_device = on_device};
    return SX_OK;
}

/* A message to each other rank in every case; without bytes where there is no memory for the copy, or for the
 * words. `messages`: room for them. */
static enum sx_status send_span(struct sx_worker *worker, const struct sx_tensor *words,
                                const struct bloom_span *span, bool is_optional, struct sx_channel *channel,
                                struct sx_net_message *messages) {
    const struct sx_net *net = worker->run->options.net;
    struct sx_net_message message = {0};
    int n = 0;
    const enum sx_status made = words->length > 0 ? make_message(worker, words, span, &message) : SX_OK;
    if (!is_optional || !sx_lacks_memory(worker, made))
        SX_TRY(made);
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

/* Where the backend can read it; a reference for the caller. NULL: there was no memory for it, here or where
 * it is from. */
static enum sx_status place_message(struct sx_worker *worker, const struct sx_net_message *message,
                                    bool is_optional, struct sx_buffer **out_buffer) {
    *out_buffer = NULL;
    if (!message->buffer)
        return SX_OK;
    if (message->on_device) {
        *out_buffer = sx_buffer_retain(message->buffer);
        return SX_OK;
    }
    const enum sx_status status =
        sx_ops(worker)->bytes_from_host(worker->stream, message->buffer, message->bytes, out_buffer);
    return is_optional && sx_lacks_memory(worker, status) ? SX_OK : status;
}

/* When it returns the other one may be released, and what it was in be written. */
static enum sx_status merge(struct sx_worker *worker, const struct sx_tensor *other,
                            const struct bloom_span *span, struct sx_tensor *words) {
    struct sx_tensor part = {0};
    sx_tensor_slice(words, span->first, span->n, &part);
    const enum sx_status status = sx_ops(worker)->bloom_merge(worker->stream, other, &part);
    sx_tensor_release(&part);
    return status == SX_OK ? sx_synchronise(worker, "a filter of all ranks") : status;
}

/* What is known of no key drops none. */
static enum sx_status fill_span(struct sx_worker *worker, const struct bloom_span *span,
                                struct sx_tensor *words) {
    const struct sx_scalar ones = {.type = words->type, .v.u64 = UINT64_MAX};
    struct sx_tensor other = {0};
    enum sx_status status = sx_ops(worker)->constant(worker->stream, &ones, span->n, &other);
    if (sx_lacks_memory(worker, status)) {
        sx_tensor_release(words);
        return SX_OK;
    }
    SX_TRY(status);
    status = merge(worker, &other, span, words);
    sx_tensor_release(&other);
    return status;
}

static enum sx_status merge_message(struct sx_worker *worker, const struct sx_net_message *message,
                                    const struct bloom_span *span, bool is_optional,
                                    struct sx_tensor *words) {
    struct sx_buffer *placed;
    if (words->length == 0)
        return SX_OK;
    if (message->bytes > 0 && message->bytes != bytes_of(span))
        return sx_error_set(sx_worker_error(worker), SX_INTERNAL, "a filter of %zu bytes", message->bytes);
    SX_TRY(place_message(worker, message, is_optional, &placed));
    if (!placed)
        return fill_span(worker, span, words);
    const struct sx_tensor other = {.type = words->type, .length = span->n, .values = placed->data};
    const enum sx_status status = merge(worker, &other, span, words);
    sx_buffer_release(placed);
    return status;
}

/* As they come; until all other ranks' are there and the own ones have gone. */
static enum sx_status merge_messages(struct sx_worker *worker, const struct bloom_span *spans,
                                     bool is_optional, struct sx_channel *channel, struct sx_tensor *words) {
    enum { WAIT_MS = 50 };
    struct sx_events *events = &worker->run->events;
    int n_left = sx_net_size(worker->run->options.net) - 1;
    for (;;) {
        const int64_t n_events = sx_events_count(events);
        struct sx_net_message message;
        while (n_left > 0 && sx_channel_receive(channel, &message)) {
            const enum sx_status status =
                merge_message(worker, &message, &spans[message.rank], is_optional, words);
            sx_buffer_release(message.buffer);
            SX_TRY(status);
            n_left--;
        }
        if (n_left == 0 && sx_channel_ended(channel) && sx_channel_unsent_bytes(channel) == 0)
            return SX_OK; /* a rank that has failed ends without a message, and is heard of soon */
        SX_TRY(sx_check_cancel(worker));
        sx_events_wait(events, n_events, WAIT_MS);
    }
}

/* The same on all ranks. */
static size_t largest_bytes(const struct bloom_span *spans, int n_ranks) {
    size_t bytes = 0;
    for (int r = 0; r < n_ranks; r++)
        bytes = bytes_of(&spans[r]) > bytes ? bytes_of(&spans[r]) : bytes;
    return bytes;
}

enum sx_status bloom_share(struct sx_worker *worker, const struct bloom_span *spans, bool is_optional,
                           struct sx_tensor *words) {
    struct sx_run *run = worker->run;
    const int n_ranks = sx_net_size(run->options.net);
    const struct sx_channel_options options = {.pool = sx_message_pool(&run->options),
                                               .window_bytes = largest_bytes(spans, n_ranks),
                                               .is_optional = is_optional,
                                               .wake = sx_events_add,
                                               .context = &run->events};
    struct sx_arena arena = {0};
    struct sx_channel *channel = NULL;
    enum sx_status status;
    struct sx_net_message *messages = SX_ARENA_ARRAY(&arena, n_ranks, struct sx_net_message);
    if (!messages)
        return sx_no_memory(sx_worker_error(worker), "a join's filter");
    SX_GO(sx_channel_create(run->options.net, &options, &channel, sx_worker_error(worker)));
    SX_GO(send_span(worker, words, &spans[sx_net_rank(run->options.net)], is_optional, channel, messages));
    status = merge_messages(worker, spans, is_optional, channel, words);
out:
    sx_channel_destroy(channel);
    sx_arena_release(&arena);
    return status;
}
