/* Ranks that are threads, for tests of the network layer. */
#ifndef TEST_NET_RANKS_H
#define TEST_NET_RANKS_H

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "net/local.h"

enum { MOST_RANKS = 7 };

static int n_hosts = 1;           /* of ranks from now on */
static bool is_two_level = false; /* their channels, */
static bool is_optional = false;  /* whose messages can be done without */
static int64_t spin_ns = 0;       /* how long they look before they sleep */

struct rank {
    struct sx_net *net;
    struct sx_pool *pool;
    void (*work)(struct rank *rank);
    struct sx_events events;
};

static inline struct sx_channel *open_channel(struct rank *rank, size_t window_bytes) {
    const struct sx_channel_options options = {.pool = rank->pool,
                                               .window_bytes = window_bytes,
                                               .is_two_level = is_two_level,
                                               .is_optional = is_optional,
                                               .wake = sx_events_add,
                                               .context = &rank->events};
    struct sx_channel *channel;
    assert(sx_channel_create(rank->net, &options, &channel, NULL) == SX_OK);
    return channel;
}

/* All ranks have come here; some may have gone on and failed already. */
static inline void meet(struct rank *rank) {
    const enum sx_status status = sx_net_gather(rank->net, NULL, 0, NULL, NULL, NULL);
    assert(status == SX_OK || status == sx_net_check(rank->net, NULL));
}

/* Sends `bytes` times `fill`. */
static inline void send_filled(struct rank *rank, struct sx_channel *channel, int to, size_t bytes,
                               unsigned char fill) {
    struct sx_net_message message = {.rank = to, .bytes = bytes};
    if (bytes) {
        assert(sx_buffer_create(rank->pool, bytes, &message.buffer, NULL) == SX_OK);
        memset(message.buffer->data, fill, bytes);
    }
    struct sx_error error = {0};
    const enum sx_status status = sx_channel_send(channel, &message, 1, &error);
    assert(status == SX_OK || status == sx_net_check(rank->net, NULL));
}

/* False: there was nothing, and a wake has come since the last look, or the channel has ended. */
static inline bool receive_or_wait(struct rank *rank, struct sx_channel *channel,
                                   struct sx_net_message *out_message) {
    const int64_t seen = sx_events_count(&rank->events);
    if (sx_channel_receive(channel, out_message))
        return true;
    if (sx_channel_ended(channel) || sx_net_check(rank->net, NULL) != SX_OK)
        return false;
    sx_events_wait(&rank->events, seen, -1);
    return false;
}

static void *rank_main(void *argument) {
    struct rank *rank = argument;
    rank->work(rank);
    sx_net_close(rank->net);
    return NULL;
}

/* Runs work on `size` ranks, and looks that no memory is left. */
static void run_ranks(int size, void (*work)(struct rank *rank)) {
    struct sx_net *nets[MOST_RANKS];
    struct rank ranks[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    assert(size <= MOST_RANKS && sx_net_local_create(size, n_hosts, nets, NULL) == SX_OK);
    for (int r = 0; r < size; r++) {
        ranks[r] = (struct rank){.net = nets[r], .work = work};
        sx_events_init(&ranks[r].events);
        ranks[r].events.spin_ns = spin_ns;
        sx_net_set_spin(nets[r], spin_ns);
        assert(sx_net_spin_ns(nets[r]) == spin_ns);
        assert(sx_pool_create(0, &ranks[r].pool, NULL) == SX_OK);
    }
    for (int r = 0; r < size; r++)
        assert(pthread_create(&threads[r], NULL, rank_main, &ranks[r]) == 0);
    for (int r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < size; r++) {
        assert(sx_pool_usage(ranks[r].pool).used_bytes == 0);
        sx_pool_destroy(ranks[r].pool);
        sx_events_release(&ranks[r].events);
    }
}

#endif
