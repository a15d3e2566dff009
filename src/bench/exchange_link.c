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

/* A group of messages to each other rank and from it, again and again from and into the same memory. */
struct sx_bench_link {
    struct sx_net *net;
    struct sx_buffer *sent;
    struct sx_link_part *sends, *receives; /* message after message, each to all other ranks */
    int others;
    int64_t count, group; /* messages for each other rank: in all, and at a time */
};

static int64_t group_of(int64_t message_bytes, int64_t count) {
    const int64_t most = 8, most_bytes = (int64_t)512 << 20;
    int64_t group = count < most ? count : most;
    while (group > 1 && group * message_bytes > most_bytes)
        group--;
    return group;
}

static enum sx_status allocate(struct sx_bench_link *bench, size_t bytes, struct sx_error *error) {
    struct sx_link *link = sx_net_get_link(bench->net);
    for (int64_t i = 0; i < bench->group * bench->others; i++) {
        const int at = (int)(i % bench->others), rank = at < sx_net_rank(bench->net) ? at : at + 1;
        bench->sends[i] = (struct sx_link_part){rank, bench->sent, 0, bytes};
        bench->receives[i] = (struct sx_link_part){rank, NULL, 0, bytes};
        SX_TRY(link->ops->allocate(link, bytes, &bench->receives[i].buffer, error));
    }
    return SX_OK;
}

enum sx_status sx_bench_link_create(const struct sx_bench_exchange_options *options, int64_t count,
                                    struct sx_bench_link **out_link, struct sx_error *error) {
    struct sx_link *link = sx_net_get_link(options->net);
    const int others = sx_net_size(options->net) - 1;
    const int64_t group = group_of(options->message_bytes, count);
    struct sx_bench_link *bench = calloc(1, sizeof *bench);
    struct sx_link_part *parts = calloc(2 * (size_t)(group * others), sizeof *parts);
    if (!bench || !parts) {
        free(bench);
        free(parts);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", others + 1);
    }
    *bench = (struct sx_bench_link){.net = options->net,
                                    .sends = parts,
                                    .receives = parts + group * others,
                                    .others = others,
                                    .count = count,
                                    .group = group};
    enum sx_status status = sx_bench_create_message(options, &bench->sent, error);
    if (status == SX_OK)
        status = allocate(bench, (size_t)options->message_bytes, error);
    if (status == SX_OK) /* which is not to be timed */
        status = sx_link_outcome(options->net,
                                 link->ops->connect(link, sx_link_gives_up, options->net, error), error);
    if (status == SX_OK)
        *out_link = bench;
    else
        sx_bench_link_destroy(bench);
    return status;
}

enum sx_status sx_bench_link_run(struct sx_bench_link *bench, struct sx_error *error) {
    struct sx_link *link = sx_net_get_link(bench->net);
    for (int64_t left = bench->count; left > 0; left -= bench->group) {
        const int n = (int)(left < bench->group ? left : bench->group) * bench->others;
        const enum sx_status status =
            sx_link_exchange(link, bench->sends, n, bench->receives, n, sx_link_gives_up, bench->net, error);
        SX_TRY(sx_link_outcome(bench->net, status, error));
    }
    return SX_OK;
}

void sx_bench_link_destroy(struct sx_bench_link *bench) {
    if (!bench)
        return;
    for (int64_t i = 0; i < bench->group * bench->others; i++)
        sx_buffer_release(bench->receives[i].buffer);
    sx_buffer_release(bench->sent);
    free(bench->sends);
    free(bench);
}
