/* The network layer over ranks that are threads: channels, credits, ends, collectives, failures. What a test
 * waits for in vain ends it by ctest's limit of time. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/local.h"
#include "net_ranks.h"

/* ---- collectives ---- */

static void gather_and_broadcast(struct rank *rank) {
    const int me = sx_net_rank(rank->net), size = sx_net_size(rank->net);
    struct sx_error error = {0};
    struct sx_arena arena = {0};
    for (int round = 0; round < 50; round++) {
        int64_t mine[3] = {me, round, me * round}, all[3 * MOST_RANKS];
        assert(sx_net_gather(rank->net, mine, sizeof mine, all, NULL, &error) == SX_OK);
        for (int r = 0; r < size; r++)
            assert(all[3 * r] == r && all[3 * r + 1] == round && all[3 * r + 2] == r * round);
        const int root = round % size;
        char text[64];
        size_t bytes = 0;
        const void *data = NULL;
        if (me == root) {
            bytes = (size_t)snprintf(text, sizeof text, "round %d of rank %d", round, root);
            data = text;
        }
        assert(sx_net_broadcast(rank->net, root, &arena, &data, &bytes, NULL, &error) == SX_OK);
        snprintf(text, sizeof text, "round %d of rank %d", round, root);
        assert(bytes == strlen(text) && !memcmp(data, text, bytes));
    }
    assert(sx_net_gather(rank->net, NULL, 0, NULL, NULL, &error) == SX_OK);
    assert(sx_net_barrier(rank->net, NULL, &error) == SX_OK);
    sx_arena_release(&arena);
}

static void test_collectives(void) {
    for (int size = 1; size <= MOST_RANKS; size++)
        run_ranks(size, gather_and_broadcast);
}

/* ---- all to all ---- */

enum { ROUNDS = 40, SENDERS = 3 };

/* Message i of a sender: its length and bytes follow from who sent it. */
static size_t length_of(int from, int to, int i) {
    static const size_t lengths[] = {0, 1, 100, 5000, 70000, 0, 333, 200000};
    return lengths[(size_t)(from * 31 + to * 7 + i) % (sizeof lengths / sizeof *lengths)];
}

struct sender {
    struct rank *rank;
    struct sx_channel *channel;
    int index;
};

static void *send_messages(void *argument) {
    const struct sender *sender = argument;
    const int me = sx_net_rank(sender->rank->net), size = sx_net_size(sender->rank->net);
    for (int i = sender->index; i < ROUNDS; i += SENDERS)
        for (int to = 0; to < size; to++)
            send_filled(sender->rank, sender->channel, to, length_of(me, to, i),
                        (unsigned char)(me * 16 + i % 16));
    return NULL;
}

static void check_sums(const struct rank *rank, const int64_t *messages, const int64_t *bytes) {
    const int me = sx_net_rank(rank->net), size = sx_net_size(rank->net);
    for (int from = 0; from < size; from++) {
        int64_t expected = 0;
        for (int i = 0; i < ROUNDS; i++)
            expected += (int64_t)length_of(from, me, i);
        assert(messages[from] == ROUNDS && bytes[from] == expected);
    }
}

static void exchange_all(struct rank *rank) {
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    int64_t messages[MOST_RANKS] = {0}, bytes[MOST_RANKS] = {0};
    struct sx_channel *channel = open_channel(rank, 100000);
    struct sx_net_message message;
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){rank, channel, i};
        assert(pthread_create(&threads[i], NULL, send_messages, &senders[i]) == 0);
    }
    bool has_ended = false;
    while (!sx_channel_ended(channel)) {
        if (!has_ended &&
            messages[sx_net_rank(rank->net)] == ROUNDS) { /* all of this rank's has been given to send */
            for (int i = 0; i < SENDERS; i++)
                pthread_join(threads[i], NULL);
            assert(sx_channel_end(channel, NULL) == SX_OK);
            has_ended = true;
        }
        if (!receive_or_wait(rank, channel, &message))
            continue;
        const unsigned char *data = message.buffer ? message.buffer->data : NULL;
        for (size_t i = 0; data && i < message.bytes; i++)
            assert(data[i] == data[0] && data[i] >> 4 == message.rank);
        messages[message.rank]++;
        bytes[message.rank] += (int64_t)message.bytes;
        sx_buffer_release(message.buffer);
    }
    check_sums(rank, messages, bytes);
    assert(!sx_channel_receive(channel, &message));
    const struct sx_channel_report report = sx_channel_report(channel);
    assert(report.received_messages == ROUNDS * (sx_net_size(rank->net) - 1));
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OK);
}

static void test_all_to_all(void) {
    for (int size = 1; size <= MOST_RANKS; size++)
        run_ranks(size, exchange_all);
}

/* ---- flow control ---- */

enum { WINDOW = 1 << 20, PIECE = 64 << 10, N_PIECES = 200 };

static void slow_receiver(struct rank *rank) {
    const int me = sx_net_rank(rank->net), size = sx_net_size(rank->net);
    struct sx_channel *channel = open_channel(rank, WINDOW);
    struct sx_net_message message;
    int received = 0;
    meet(rank); /* or messages come before the channel is there, and are not of its pool */
    if (me > 0)
        for (int i = 0; i < N_PIECES; i++)
            send_filled(rank, channel, 0, PIECE, 1);
    assert(sx_channel_end(channel, NULL) == SX_OK);
    if (me == 0) {
        const size_t bound = (size_t)(size - 1) * WINDOW;
        while (sx_pool_usage(rank->pool).used_bytes <= bound / 2) /* the window is used */
            usleep(1000);
        usleep(100000);
        while (!sx_channel_ended(channel)) {
            const size_t used = sx_pool_usage(rank->pool).used_bytes;
            assert(used <= bound + PIECE);
            if (receive_or_wait(rank, channel, &message)) {
                received++;
                sx_buffer_release(message.buffer);
            }
        }
        assert(received == N_PIECES * (size - 1));
    } else {
        while (!sx_channel_ended(channel))
            assert(!receive_or_wait(rank, channel, &message));
        while (sx_channel_unsent_bytes(channel) > 0)
            usleep(1000);
    }
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OK);
}

/* A message larger than the window goes, alone; the own rank is under the window, too. */
static void huge_messages(struct rank *rank) {
    enum { HUGE_BYTES = 40 << 20 };
    const int size = sx_net_size(rank->net);
    struct sx_channel *channel = open_channel(rank, 4096);
    struct sx_net_message message;
    for (int i = 0; i < 2; i++)
        for (int to = 0; to < size; to++)
            send_filled(rank, channel, to, HUGE_BYTES, 7);
    assert(sx_channel_unsent_bytes(channel) >= HUGE_BYTES);
    assert(sx_channel_end(channel, NULL) == SX_OK);
    int received = 0;
    while (!sx_channel_ended(channel))
        if (receive_or_wait(rank, channel, &message)) {
            assert(message.bytes == HUGE_BYTES &&
                   ((unsigned char *)message.buffer->data)[HUGE_BYTES - 1] == 7);
            sx_buffer_release(message.buffer);
            received++;
        }
    assert(received == 2 * size);
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OK);
}

/* ---- channels that come and go ---- */

/* Rank 0 is late with its channels, and leaves them early. */
static void early_and_late(struct rank *rank) {
    const int me = sx_net_rank(rank->net), size = sx_net_size(rank->net);
    struct sx_channel *channels[4];
    struct sx_net_message message;
    if (me == 0)
        usleep(100000);
    for (int c = 0; c < 4; c++) {
        channels[c] = open_channel(rank, 1000);
        for (int to = 0; to < size; to++)
            for (int i = 0; i < 5; i++)
                send_filled(rank, channels[c], to, 700, (unsigned char)c);
        assert(sx_channel_end(channels[c], NULL) == SX_OK);
    }
    for (int c = 0; c < 4; c++) {
        int received = 0;
        while (!(me == 0 && c % 2) && !sx_channel_ended(channels[c]))
            if (receive_or_wait(rank, channels[c], &message)) {
                assert(((unsigned char *)message.buffer->data)[0] == c);
                sx_buffer_release(message.buffer);
                received++;
            }
        assert((me == 0 && c % 2) || received == 5 * size);
        sx_channel_destroy(channels[c]); /* what waits in it still goes */
    }
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OK);
    assert(sx_pool_usage(rank->pool).used_bytes == 0);
}

/* ---- failures ---- */

/* One rank fails while the others wait in something; after a barrier all go on. */
static void fail_once(struct rank *rank, int how) {
    const int me = sx_net_rank(rank->net);
    struct sx_error error = {0};
    struct sx_arena arena = {0};
    struct sx_channel *channel = how == 2 ? open_channel(rank, 4096) : NULL;
    meet(rank);
    if (me == 1) {
        struct sx_error own = {0};
        usleep(20000);
        (void)sx_error_set(&own, SX_FILE, "x.parquet: bad %d", how);
        sx_net_fail(rank->net, &own);
    } else if (how == 0) {
        int one = 1, all[MOST_RANKS];
        assert(sx_net_gather(rank->net, &one, sizeof one, all, NULL, &error) == SX_FILE);
    } else if (how == 1) {
        const void *data;
        size_t bytes;
        assert(sx_net_broadcast(rank->net, 1, &arena, &data, &bytes, NULL, &error) == SX_FILE);
    } else {
        struct sx_net_message message;
        send_filled(rank, channel, 1, 10000, 1);
        send_filled(rank, channel, 1, 10000, 1);
        while (sx_net_check(rank->net, &error) == SX_OK)
            assert(!receive_or_wait(rank, channel, &message));
        assert(sx_channel_unsent_bytes(channel) <= 10000);
    }
    if (me == 1)
        assert(sx_net_check(rank->net, &error) == SX_FILE);
    assert(error.status == SX_FILE && strstr(error.text, "rank 1 (host local, pid "));
    assert(strstr(error.text, "): x.parquet: bad"));
    int ignored[MOST_RANKS];
    assert(sx_net_gather(rank->net, &how, sizeof how, ignored, NULL, NULL) == SX_FILE);
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, &error) == SX_FILE);
    assert(sx_net_check(rank->net, NULL) == SX_OK);
    sx_arena_release(&arena);
}

static void failures(struct rank *rank) {
    for (int round = 0; round < 12; round++) {
        fail_once(rank, round % 3);
        gather_and_broadcast(rank);
    }
}

/* All fail at once. */
static void all_fail(struct rank *rank) {
    for (int round = 0; round < 20; round++) {
        struct sx_error own = {0}, seen = {0};
        (void)sx_error_set(&own, SX_OUT_OF_MEMORY, "no memory in round %d", round);
        sx_net_fail(rank->net, &own);
        assert(sx_net_check(rank->net, &seen) == SX_OUT_OF_MEMORY &&
               strstr(seen.text, strchr(own.text, 'n')));
        assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OUT_OF_MEMORY);
    }
}

/* The others are in the barrier already, and none takes the failure for a success. */
static void fails_late(struct rank *rank) {
    struct sx_error own = {0}, error = {0};
    for (int round = 0; round < 5; round++) {
        if (sx_net_rank(rank->net) == 1) {
            usleep(10000);
            (void)sx_error_set(&own, SX_FILE, "late in round %d", round);
            sx_net_fail(rank->net, &own);
        }
        assert(sx_net_barrier(rank->net, NULL, &error) == SX_FILE && strstr(error.text, "rank 1 (") &&
               strstr(error.text, "): late in round"));
        assert(sx_net_barrier(rank->net, NULL, &error) == SX_OK);
    }
}

enum { LITTLE_BYTES = 100000, LARGE_BYTES = 500000 };

/* Rank 0 has little memory for what comes. */
static struct sx_channel *open_little(struct rank *rank, struct sx_pool **out_little) {
    struct sx_pool *own = rank->pool;
    assert(sx_pool_create(LITTLE_BYTES, out_little, NULL) == SX_OK);
    if (sx_net_rank(rank->net) == 0)
        rank->pool = *out_little;
    struct sx_channel *channel = open_channel(rank, 1 << 20);
    rank->pool = own;
    meet(rank);
    return channel;
}

/* A rank that has no memory for what comes fails the query everywhere. */
static void no_room(struct rank *rank) {
    struct sx_error error = {0};
    struct sx_pool *little;
    struct sx_net_message message;
    struct sx_channel *channel = open_little(rank, &little);
    if (sx_net_rank(rank->net) > 0)
        send_filled(rank, channel, 0, LARGE_BYTES, 1);
    while (sx_net_check(rank->net, &error) == SX_OK)
        assert(!receive_or_wait(rank, channel, &message));
    assert(error.status == SX_OUT_OF_MEMORY && strstr(error.text, "rank 0 (host"));
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OUT_OF_MEMORY);
    sx_pool_destroy(little);
}

/* Unless that can be done without: then it comes without its bytes, and credit goes back for all. */
static void does_without(struct rank *rank) {
    enum { MESSAGES = 8 };
    const int others = sx_net_size(rank->net) - 1;
    int n_large = 0, n_small = 0;
    struct sx_pool *little;
    struct sx_net_message message;
    struct sx_channel *channel = open_little(rank, &little);
    for (int i = 0; i < MESSAGES && sx_net_rank(rank->net) > 0; i++) {
        send_filled(rank, channel, 0, LARGE_BYTES, 1);
        send_filled(rank, channel, 0, 10, 1);
    }
    assert(sx_channel_end(channel, NULL) == SX_OK);
    while (!sx_channel_ended(channel))
        if (receive_or_wait(rank, channel, &message)) {
            assert((message.buffer == NULL) == (message.bytes == LARGE_BYTES));
            n_large += message.bytes == LARGE_BYTES;
            n_small += message.bytes == 10;
            sx_buffer_release(message.buffer);
        }
    assert(n_large == n_small && n_large == (sx_net_rank(rank->net) == 0 ? MESSAGES * others : 0));
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OK);
    sx_pool_destroy(little);
}

static void test_optional(void) {
    is_optional = true;
    run_ranks(3, does_without);
    is_optional = false;
}

static void cancelled(struct rank *rank) {
    atomic_bool cancel = sx_net_rank(rank->net) == 0;
    struct sx_error error = {0};
    int one = 1, all[MOST_RANKS];
    if (sx_net_rank(rank->net) < sx_net_size(rank->net) - 1)
        assert(sx_net_gather(rank->net, &one, sizeof one, all, &cancel, &error) == SX_CANCELLED);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_CANCELLED);
}

static void killed(struct rank *rank) {
    const int me = sx_net_rank(rank->net);
    struct sx_error error = {0};
    int one = 1, all[MOST_RANKS];
    struct sx_channel *channel = open_channel(rank, 4096);
    meet(rank);
    for (int i = 0; i < 10; i++)
        send_filled(rank, channel, 2, 3000, 1);
    if (me == 2) {
        usleep(50000);
        sx_net_local_kill(rank->net);
    } else {
        assert(sx_net_gather(rank->net, &one, sizeof one, all, NULL, &error) == SX_RANK_LOST);
        assert(strstr(error.text, "rank 2 (host local, pid "));
        const struct sx_net_message message = {.rank = me};
        assert(sx_channel_send(channel, &message, 1, NULL) == SX_RANK_LOST);
    }
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_RANK_LOST);
    assert(sx_net_check(rank->net, NULL) == SX_RANK_LOST);
}

/* A rank that goes while others wait for it. */
static void leaves(struct rank *rank) {
    struct sx_error error = {0};
    int one = 1, all[MOST_RANKS];
    if (sx_net_rank(rank->net) == 1)
        return;
    assert(sx_net_gather(rank->net, &one, sizeof one, all, NULL, &error) == SX_RANK_LOST);
    assert(strstr(error.text, "rank 1 ("));
}

/* The same while others wait for a channel's end. */
static void leaves_channel(struct rank *rank) {
    struct sx_error error = {0};
    struct sx_net_message message;
    meet(rank);
    if (sx_net_rank(rank->net) == 1)
        return;
    usleep(sx_net_rank(rank->net) ? 20000 : 0); /* before it leaves, or after */
    const struct sx_channel_options options = {
        .pool = rank->pool, .window_bytes = 4096, .wake = sx_events_add, .context = &rank->events};
    struct sx_channel *channel = NULL;
    const enum sx_status status = sx_channel_create(rank->net, &options, &channel, &error);
    assert(status == SX_OK || status == SX_RANK_LOST);
    while (channel && sx_net_check(rank->net, &error) == SX_OK)
        assert(!receive_or_wait(rank, channel, &message));
    assert(error.status == SX_RANK_LOST && strstr(error.text, "rank 1 ("));
    sx_channel_destroy(channel);
}

static void test_self(void) {
    struct sx_error error = {0}, own = {0};
    struct sx_net *net;
    int in = 5, out = 0;
    assert(sx_net_self_create(&net, &error) == SX_OK);
    assert(sx_net_size(net) == 1 && sx_net_rank(net) == 0 && !strcmp(sx_net_transport(net), "self"));
    assert(sx_net_gather(net, &in, sizeof in, &out, NULL, &error) == SX_OK && out == 5);
    (void)sx_error_set(&own, SX_FILE, "bad");
    sx_net_fail(net, &own);
    assert(sx_net_check(net, &error) == SX_FILE && !strcmp(error.text, "bad"));
    assert(sx_net_barrier(net, NULL, &error) == SX_FILE && !strcmp(error.text, "bad"));
    assert(sx_net_barrier(net, NULL, &error) == SX_OK && sx_net_check(net, &error) == SX_OK);
    sx_net_close(net);
    sx_net_close(NULL);
}

/* In two levels the ranks of a host send for each other, and all is as before. */
static void test_levels(void) {
    is_two_level = true;
    for (n_hosts = 2; n_hosts <= 3; n_hosts++) {
        for (int size = n_hosts; size <= MOST_RANKS; size++)
            run_ranks(size, exchange_all);
        run_ranks(4, slow_receiver);
        run_ranks(4, huge_messages);
        for (int i = 0; i < 5; i++)
            run_ranks(5, early_and_late);
        run_ranks(5, failures);
        run_ranks(4, all_fail);
        run_ranks(4, fails_late);
        run_ranks(4, no_room);
        test_optional();
        run_ranks(4, cancelled);
        for (int size = 3; size <= MOST_RANKS; size++)
            run_ranks(size, killed);
        run_ranks(4, leaves);
    }
    n_hosts = 1;
    is_two_level = false;
}

/* Longer than some waits, and shorter than others. */
static void test_spinning(void) {
    spin_ns = 300000;
    test_collectives();
    test_all_to_all();
    run_ranks(3, early_and_late);
    run_ranks(3, slow_receiver);
    run_ranks(4, all_fail);
    run_ranks(3, cancelled);
    run_ranks(4, killed);
    run_ranks(3, leaves);
    spin_ns = 0;
}

int main(void) {
    test_self();
    test_collectives();
    test_all_to_all();
    run_ranks(3, slow_receiver);
    run_ranks(2, huge_messages);
    run_ranks(1, huge_messages);
    for (int i = 0; i < 5; i++)
        run_ranks(3, early_and_late);
    run_ranks(4, failures);
    run_ranks(4, all_fail);
    run_ranks(3, fails_late);
    run_ranks(3, no_room);
    test_optional();
    run_ranks(3, cancelled);
    run_ranks(4, killed);
    run_ranks(3, leaves);
    run_ranks(3, leaves_channel);
    test_levels();
    test_spinning();
    return 0;
}
