/* Messages in two levels: whom ranks send to, how few frames small messages take, and bundles that are
 * damaged.
 */
#include "net_ranks.h"

#include <stdio.h>

#include "net/state.h"

enum { SMALL_BYTES = 100, N_SMALL = 500, WINDOW = 1 << 20 };

/* Frames of channels that a rank has given to its transport, by receiver. */
static atomic_int frames[MOST_RANKS][MOST_RANKS];
static struct sx_transport_ops counting;
static void (*send_uncounted)(struct sx_transport *transport, int rank, const struct sx_frame *frame,
                              struct sx_buffer *buffer, size_t bytes);

static void send_counted(struct sx_transport *transport, int rank, const struct sx_frame *frame,
                         struct sx_buffer *buffer, size_t bytes) {
    if (frame->kind == SX_FRAME_MESSAGE || frame->kind == SX_FRAME_CREDIT || frame->kind == SX_FRAME_END ||
        frame->kind == SX_FRAME_BUNDLE)
        atomic_fetch_add(&frames[transport->rank][rank], 1);
    send_uncounted(transport, rank, frame, buffer, bytes);
}

static void count_frames(struct rank *rank) {
    pthread_mutex_lock(&rank->net->lock);
    rank->net->transport->ops = &counting;
    pthread_mutex_unlock(&rank->net->lock);
}

/* All ranks send many small messages to all. */
static void small_messages(struct rank *rank) {
    const int size = sx_net_size(rank->net);
    struct sx_net_message message;
    int received = 0;
    count_frames(rank);
    struct sx_channel *channel = open_channel(rank, WINDOW);
    meet(rank);
    for (int i = 0; i < N_SMALL; i++)
        for (int to = 0; to < size; to++)
            send_filled(rank, channel, to, SMALL_BYTES, (unsigned char)sx_net_rank(rank->net));
    assert(sx_channel_end(channel, NULL) == SX_OK);
    while (!sx_channel_ended(channel))
        if (receive_or_wait(rank, channel, &message)) {
            assert(message.bytes == SMALL_BYTES &&
                   ((unsigned char *)message.buffer->data)[SMALL_BYTES - 1] == message.rank);
            sx_buffer_release(message.buffer);
            received++;
        }
    assert(received == N_SMALL * size);
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OK);
    assert(rank->net->parcels == 0 && sx_pool_usage(rank->net->control_pool).used_bytes == 0);
}

/* Six ranks, three on each host: rank r and r + 3 have the same place. */
static void test_ways(void) {
    n_hosts = 2;
    is_two_level = true;
    run_ranks(6, small_messages);
    for (int from = 0; from < 6; from++)
        for (int to = 0; to < 6; to++) {
            const bool is_near = from / 3 == to / 3, is_rail = from % 3 == to % 3;
            const int count = atomic_load(&frames[from][to]);
            assert(from == to || (count > 0) == (is_near || is_rail));
            assert(count < N_SMALL * 3 / 2); /* of at least N_SMALL × 3 messages of the own host */
        }
    n_hosts = 1;
    is_two_level = false;
}

/* Hosts with different numbers of ranks: 0 … 2; 3 and 4. */
static void uneven(struct rank *rank) {
    static const int hops[5][5] = {
        {0, 1, 2, 3, 1}, {0, 1, 2, 0, 4}, {0, 1, 2, 0, 1}, {0, 4, 2, 3, 4}, {3, 1, 3, 3, 4}};
    for (int to = 0; to < 5; to++)
        assert(rank->net->hops[to] == hops[sx_net_rank(rank->net)][to]);
    assert(sx_net_in_two_levels(rank->net, SX_SHUFFLE_TWO_LEVEL, 1 << 20));
    assert(!sx_net_in_two_levels(rank->net, SX_SHUFFLE_ONE_LEVEL, 100));
    assert(sx_net_in_two_levels(rank->net, SX_SHUFFLE_AUTO, 100));
    assert(!sx_net_in_two_levels(rank->net, SX_SHUFFLE_AUTO, 1 << 20));
}

static void one_on_each(struct rank *rank) {
    assert(!sx_net_in_two_levels(rank->net, SX_SHUFFLE_TWO_LEVEL, 100));
}

/* Bytes that are no bundle end the query, and are not read past their end. */
static void damaged(struct rank *rank) {
    struct sx_buffer *buffer;
    struct sx_error error = {0};
    for (size_t bytes = 1; bytes < 200; bytes += 7) {
        assert(sx_buffer_create(rank->pool, bytes, &buffer, NULL) == SX_OK);
        for (size_t i = 0; i < bytes; i++)
            ((unsigned char *)buffer->data)[i] = 255;
        if (sx_net_rank(rank->net) == 0) {
            sx_relay_take(rank->net, buffer, bytes);
            assert(sx_net_check(rank->net, &error) == SX_INTERNAL && strstr(error.text, "bundle"));
        }
        sx_buffer_release(buffer);
        assert(sx_net_barrier(rank->net, NULL, NULL) == SX_INTERNAL);
    }
}

static void prepare_counting(void) {
    struct sx_net *net;
    assert(sx_net_local_create(1, 1, &net, NULL) == SX_OK);
    counting = *sx_net_get_transport(net)->ops;
    send_uncounted = counting.send;
    counting.send = send_counted;
    sx_net_close(net);
}

int main(void) {
    prepare_counting();
    test_ways();
    n_hosts = 2;
    run_ranks(5, uneven);
    run_ranks(2, one_on_each);
    run_ranks(3, damaged);
    return 0;
}
