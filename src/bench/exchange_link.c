/* Exchanges of a device's memory. */
#include <stdlib.h>
#include <string.h>

#include "bench/exchange.h"
#include "net/link.h"

enum sx_status sx_bench_create_message(const struct sx_bench_exchange_options *options,
                                       struct sx_buffer **out_buffer, struct sx_error *error) {
    const size_t bytes = (size_t)options->message_bytes;
    struct sx_stream *stream = options->stream;
    struct sx_buffer *host, *sent = NULL;
    SX_TRY(sx_buffer_create(options->pool, bytes, &host, error));
    memset(host->data, 1, bytes);
    if (!stream) {
        *out_buffer = host;
        return SX_OK;
    }
    const struct sx_backend_ops *ops = &stream->backend->ops;
    enum sx_status status = ops->bytes_from_host(stream, host, bytes, &sent);
    if (status == SX_OK)
        status = ops->synchronise(stream, "a message");
    sx_buffer_release(host);
    if (status == SX_OK) {
        *out_buffer = sent;
        return SX_OK;
    }
    sx_buffer_release(sent);
    return sx_error_set(error, status, "%s", stream->error.text);
}

static bool gives_up(void *net) {
    return sx_net_check(net, NULL) != SX_OK;
}

/* A message to each other rank and from it, again and again into the same memory. */
static enum sx_status exchange(const struct sx_bench_exchange_options *options, struct sx_link_part *sends,
                               struct sx_link_part *receives, int64_t count, struct sx_error *error) {
    struct sx_link *link = sx_net_get_link(options->net);
    const int others = sx_net_size(options->net) - 1, rank = sx_net_rank(options->net);
    struct sx_buffer *buffer;
    SX_TRY(sx_bench_create_message(options, &buffer, error));
    enum sx_status status = SX_OK;
    for (int i = 0; i < others && status == SX_OK; i++) {
        const int other = i < rank ? i : i + 1;
        sends[i] = (struct sx_link_part){other, buffer, (size_t)options->message_bytes};
        receives[i] = sends[i];
        receives[i].buffer = NULL;
        status = link->ops->allocate(link, receives[i].bytes, &receives[i].buffer, error);
    }
    for (int64_t i = 0; i < count && status == SX_OK; i++)
        status = link->ops->exchange(link, sends, others, receives, others, gives_up, options->net, error);
    for (int i = 0; i < others; i++)
        sx_buffer_release(receives[i].buffer);
    sx_buffer_release(buffer);
    return status;
}

enum sx_status sx_bench_run_link(const struct sx_bench_exchange_options *options, int64_t count,
                                 struct sx_error *error) {
    const size_t others = (size_t)sx_net_size(options->net) - 1;
    struct sx_link_part *parts = calloc(2 * others, sizeof *parts);
    if (!parts)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %zu ranks", others + 1);
    const enum sx_status status = exchange(options, parts, parts + others, count, error);
    free(parts);
    return status;
}
