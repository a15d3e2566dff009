#include "bench/exchange.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/events.h"
#include "base/median.h"
#include "net/transport.h"

enum { MOST_RUNS = 101, WINDOW_MESSAGES = 8, LEAST_WINDOW_BYTES = 8 << 20 };

static size_t window_bytes(const struct sx_bench_exchange_options *options) {
    const size_t bytes = (size_t)options->message_bytes * WINDOW_MESSAGES;
    return bytes < LEAST_WINDOW_BYTES ? LEAST_WINDOW_BYTES : bytes;
}

static int64_t count_messages(const struct sx_bench_exchange_options *options) {
    const int64_t count = options->rank_bytes / options->message_bytes;
    return count > 0 ? count : 1;
}

/* The rank that message i goes to: one to each of the others, again and again. */
static int target(const struct sx_net *net, int64_t i) {
    const int others = sx_net_size(net) - 1;
    return (int)((sx_net_rank(net) + 1 + i % others) % (others + 1));
}

/* One message; then the channel's end. */
static enum sx_status send_next(const struct sx_bench_exchange_options *options, struct sx_channel *channel,
                                struct sx_buffer *buffer, int64_t *next, int64_t total,
                                struct sx_error *error) {
    if (*next == total) {
        ++*next;
        return sx_channel_end(channel, error);
    }
    const struct sx_net_message message = {.rank = target(options->net, (*next)++),
                                           .buffer = sx_buffer_retain(buffer),
                                           .bytes = (size_t)options->message_bytes,
                                           .on_device = options->stream != NULL};
    return sx_channel_send(channel, &message, 1, error);
}

static enum sx_status run_messages(const struct sx_bench_exchange_options *options,
                                   struct sx_channel *channel, struct sx_buffer *buffer,
                                   struct sx_events *events, struct sx_error *error) {
    const int64_t total = count_messages(options) * (sx_net_size(options->net) - 1);
    const size_t most_unsent = window_bytes(options) * 2;
    int64_t next = 0;
    while (!sx_channel_ended(channel) || next <= total) {
        struct sx_net_message message;
        const int64_t seen = sx_events_count(events);
        bool idle = true;
        SX_TRY(sx_net_check(options->net, error));
        while (sx_channel_receive(channel, &message)) {
            sx_buffer_release(message.buffer);
            idle = false;
        }
        while (next <= total && sx_channel_unsent_bytes(channel) < most_unsent) {
            SX_TRY(send_next(options, channel, buffer, &next, total, error));
            idle = false;
        }
        if (idle && !sx_channel_ended(channel))
            sx_events_wait(events, seen, -1);
    }
    return SX_OK;
}

static struct sx_bench_time now(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (struct sx_bench_time){(double)sx_clock_ns() * 1e-9,
                                  (double)used.tv_sec + (double)used.tv_nsec * 1e-9};
}

static struct sx_bench_time since(struct sx_bench_time began) {
    const struct sx_bench_time ended = now();
    return (struct sx_bench_time){ended.seconds - began.seconds,
                                  ended.processor_seconds - began.processor_seconds};
}

static enum sx_status run_channel(const struct sx_bench_exchange_options *options,
                                  struct sx_bench_time *out_time, struct sx_error *error) {
    struct sx_events events;
    const struct sx_channel_options channel_options = {
        .pool = options->pool,
        .window_bytes = window_bytes(options),
        .is_two_level = sx_net_in_two_levels(options->net, options->shuffle, (size_t)options->message_bytes),
        .wake = sx_events_add,
        .context = &events};
    struct sx_buffer *buffer;
    struct sx_channel *channel = NULL;
    SX_TRY(sx_bench_create_message(options, &buffer, error));
    sx_events_init(&events);
    enum sx_status status = sx_channel_create(options->net, &channel_options, &channel, error);
    if (status == SX_OK)
        status = sx_net_gather(options->net, NULL, 0, NULL, NULL, error);
    const struct sx_bench_time began = now();
    if (status == SX_OK)
        status = run_messages(options, channel, buffer, &events, error);
    *out_time = since(began);
    sx_channel_destroy(channel);
    sx_events_release(&events);
    sx_buffer_release(buffer);
    return status;
}

static enum sx_status run_link(const struct sx_bench_exchange_options *options,
                               struct sx_bench_time *out_time, struct sx_error *error) {
    struct sx_bench_link *link;
    SX_TRY(sx_bench_link_create(options, count_messages(options), &link, error));
    enum sx_status status = sx_net_gather(options->net, NULL, 0, NULL, NULL, error);
    const struct sx_bench_time began = now();
    if (status == SX_OK)
        status = sx_bench_link_run(link, error);
    *out_time = since(began);
    if (status == SX_OK)
        status = sx_net_gather(options->net, NULL, 0, NULL, NULL, error);
    sx_bench_link_destroy(link);
    return status;
}

/* 0 seconds where there is nothing to compare with. */
static enum sx_status run_raw(const struct sx_bench_exchange_options *options, struct sx_bench_time *out_time,
                              struct sx_error *error) {
    struct sx_transport *transport = sx_net_get_transport(options->net);
    struct sx_transport_raw *raw;
    *out_time = (struct sx_bench_time){0};
    if (options->stream)
        return run_link(options, out_time, error);
    if (!transport->ops->raw_begin)
        return SX_OK;
    SX_TRY(transport->ops->raw_begin(transport, (size_t)options->message_bytes, count_messages(options), &raw,
                                     error));
    enum sx_status status = sx_net_gather(options->net, NULL, 0, NULL, NULL, error);
    if (status == SX_OK) {
        const struct sx_bench_time began = now();
        transport->ops->raw_exchange(raw);
        *out_time = since(began);
        status = sx_net_gather(options->net, NULL, 0, NULL, NULL, error);
    }
    transport->ops->raw_end(raw);
    return status;
}

enum sx_status sx_bench_slowest(struct sx_net *net, double *seconds, struct sx_error *error) {
    const int size = sx_net_size(net);
    double *all = calloc((size_t)size, sizeof *all);
    enum sx_status status = all ? sx_net_gather(net, seconds, sizeof *seconds, all, NULL, error)
                                : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", size);
    for (int r = 0; status == SX_OK && r < size; r++)
        if (all[r] > *seconds)
            *seconds = all[r];
    free(all);
    return status;
}

enum sx_status sx_bench_exchange_once(const struct sx_bench_exchange_options *options, bool is_raw,
                                      struct sx_bench_time *out_time, struct sx_error *error) {
    SX_TRY(is_raw ? run_raw(options, out_time, error) : run_channel(options, out_time, error));
    SX_TRY(sx_bench_slowest(options->net, &out_time->seconds, error));
    return sx_bench_slowest(options->net, &out_time->processor_seconds, error);
}

struct runs {
    double seconds[MOST_RUNS], processor_seconds[MOST_RUNS];
};

static enum sx_status add_run(const struct sx_bench_exchange_options *options, bool is_raw, int at,
                              struct runs *runs, struct sx_error *error) {
    struct sx_bench_time time = {0};
    SX_TRY(sx_bench_exchange_once(options, is_raw, &time, error));
    runs->seconds[at] = time.seconds;
    runs->processor_seconds[at] = time.processor_seconds;
    return SX_OK;
}

enum sx_status sx_bench_exchange(const struct sx_bench_exchange_options *options,
                                 struct sx_bench_exchange_result *out_result, struct sx_error *error) {
    struct runs channel, raw;
    const int runs = options->runs < MOST_RUNS ? options->runs : MOST_RUNS;
    if (sx_net_size(options->net) < 2)
        return sx_error_set(error, SX_USAGE, "an exchange needs several ranks: mpirun -n 2 stachio …");
    for (int r = -1; r < runs; r++) { /* the first one warms up */
        SX_TRY(add_run(options, true, r < 0 ? 0 : r, &raw, error));
        SX_TRY(add_run(options, false, r < 0 ? 0 : r, &channel, error));
    }
    *out_result = (struct sx_bench_exchange_result){
        .message_bytes = options->message_bytes,
        .bytes = count_messages(options) * options->message_bytes * (sx_net_size(options->net) - 1),
        .runs = runs,
        .seconds = sx_median(channel.seconds, runs),
        .raw_seconds = sx_median(raw.seconds, runs),
        .processor_seconds = sx_median(channel.processor_seconds, runs),
        .raw_processor_seconds = sx_median(raw.processor_seconds, runs),
    };
    out_result->least_seconds = channel.seconds[0]; /* they are sorted now */
    out_result->raw_least_seconds = raw.seconds[0];
    return SX_OK;
}
