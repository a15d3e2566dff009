/* Messages between devices: rounds over a link that is made of plain memory, and beside pulls, among ranks
 * that are threads. What a test waits for in vain ends it by ctest's limit of time. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "net/link.h"
#include "net_puller.h"
#include "net_ranks.h"

static bool pulls = false; /* ranks from now on */

/* ---- a link ---- */

/* A part that waits for its other half. */
struct half {
    const void *from;
    void *to; /* of a receive */
    size_t bytes;
    bool is_given_up; /* its rank knows of a loss: the other half gets nothing; by the hall's lock */
    atomic_bool is_done;
};

enum { MOST_HALVES = 32768, ROUND_BYTES = 60000 /* less than many messages have */ };

/* From one rank to another, in order. */
struct lane {
    struct half *sends[MOST_HALVES], *receives[MOST_HALVES];
    int n_sends, n_receives, n_done;
};

static struct hall {
    pthread_mutex_t lock;
    struct lane lanes[MOST_RANKS][MOST_RANKS];
    atomic_int n_moved;
    atomic_llong bytes_moved;
    struct half *used[MOST_HALVES]; /* all rounds' */
    int n_used;
} hall = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct test_link {
    struct sx_link base;
    int rank;
    struct sx_pool *pool;
    atomic_int allocations_left; /* -1: any number */
    bool is_connected;
    int rounds_left;                      /* until it breaks; -1: never */
    struct half *halves[SX_LINK_FLIGHTS]; /* of rounds under way */
    int n_halves[SX_LINK_FLIGHTS];
};

static void move_all(struct lane *lane) {
    while (lane->n_done < lane->n_sends && lane->n_done < lane->n_receives) {
        struct half *sent = lane->sends[lane->n_done], *received = lane->receives[lane->n_done];
        assert(sent->bytes == received->bytes);
        if (sent->is_given_up || received->is_given_up)
            return;
        if (received->to)
            memcpy(received->to, sent->from, sent->bytes);
        lane->n_done++;
        atomic_fetch_add(&hall.n_moved, 1);
        atomic_fetch_add(&hall.bytes_moved, (long long)sent->bytes);
        atomic_store(&received->is_done, true);
        atomic_store(&sent->is_done, true);
    }
}

static void post(int from, int to, struct half *half, bool is_send) {
    struct lane *lane = &hall.lanes[from][to];
    pthread_mutex_lock(&hall.lock);
    assert(lane->n_sends < MOST_HALVES && lane->n_receives < MOST_HALVES);
    if (is_send)
        lane->sends[lane->n_sends++] = half;
    else
        lane->receives[lane->n_receives++] = half;
    move_all(lane);
    pthread_mutex_unlock(&hall.lock);
}

static bool are_done(struct half *halves, int n) {
    for (int i = 0; i < n; i++)
        if (!atomic_load(&halves[i].is_done))
            return false;
    return true;
}

static enum sx_status connect_link(struct sx_link *base, bool (*gives_up)(void *context), void *context,
                                   struct sx_error *error) {
    struct test_link *link = (struct test_link *)base;
    (void)gives_up;
    (void)context;
    if (link->rounds_left == 0 && !link->is_connected)
        return sx_error_set(error, SX_INTERNAL, "it is broken");
    link->is_connected = true;
    return SX_OK;
}

static enum sx_status start(struct sx_link *base, int flight, const struct sx_link_part *sends, int n_sends,
                            const struct sx_link_part *receives, int n_receives,
                            bool (*gives_up)(void *context), void *context, struct sx_error *error) {
    struct test_link *link = (struct test_link *)base;
    const int n = n_sends + n_receives;
    (void)gives_up;
    (void)context;
    assert(link->is_connected);
    if (link->rounds_left >= 0 && link->rounds_left-- == 0)
        return sx_error_set(error, SX_INTERNAL, "it is broken");
    struct half *halves = calloc((size_t)n + 1, sizeof *halves);
    assert(halves && !link->halves[flight]);
    for (int i = 0; i < n_sends; i++) {
        halves[i].from = (const char *)sends[i].buffer->data + sends[i].offset;
        halves[i].bytes = sends[i].bytes;
        post(link->rank, sends[i].rank, &halves[i], true);
    }
    for (int i = 0; i < n_receives; i++) {
        struct half *half = &halves[n_sends + i];
        half->to = receives[i].buffer ? (char *)receives[i].buffer->data + receives[i].offset : NULL;
        half->bytes = receives[i].bytes;
        post(receives[i].rank, link->rank, half, false);
    }
    link->halves[flight] = halves;
    link->n_halves[flight] = n;
    return SX_OK;
}

static enum sx_status finish(struct sx_link *base, int flight, bool (*gives_up)(void *context), void *context,
                             struct sx_error *error) {
    struct test_link *link = (struct test_link *)base;
    struct half *halves = link->halves[flight];
    const int n = link->n_halves[flight];
    enum sx_status status = SX_OK;
    while (status == SX_OK && !are_done(halves, n)) {
        sched_yield();
        if (gives_up(context))
            status = sx_error_set(error, SX_RANK_LOST, "given up");
    }
    pthread_mutex_lock(&hall.lock); /* whoever has moved the last part is through */
    for (int i = 0; i < n; i++)
        halves[i].is_given_up = status != SX_OK;
    assert(hall.n_used < MOST_HALVES);
    hall.used[hall.n_used++] = halves; /* others may still look at them */
    pthread_mutex_unlock(&hall.lock);
    link->halves[flight] = NULL;
    return status;
}

static enum sx_status allocate(struct sx_link *base, size_t bytes, struct sx_buffer **out_buffer,
                               struct sx_error *error) {
    struct test_link *link = (struct test_link *)base;
    SX_TRY(count_allocation(&link->allocations_left, error));
    return sx_buffer_create(link->pool, bytes, out_buffer, error);
}

static void destroy(struct sx_link *base, bool clean) {
    (void)clean;
    free(base);
}

static void set_link(struct rank *rank, int allocations, int rounds) {
    static const struct sx_link_ops ops = {connect_link, allocate, start, finish, destroy};
    struct test_link *link = malloc(sizeof *link);
    assert(link);
    *link = (struct test_link){.base = {&ops, "a test's", ROUND_BYTES},
                               .rank = sx_net_rank(rank->net),
                               .pool = rank->pool,
                               .allocations_left = allocations,
                               .rounds_left = rounds};
    if (pulls)
        set_puller(rank, allocations);
    assert(sx_net_set_link(rank->net, &link->base, NULL) == SX_OK && sx_net_has_link(rank->net));
    meet(rank);
}

static void clear_hall(void) {
    for (int i = 0; i < hall.n_used; i++)
        free(hall.used[i]);
    hall.n_used = 0;
    puller_clear();
    memset(hall.lanes, 0, sizeof hall.lanes);
    atomic_store(&hall.n_moved, 0);
    atomic_store(&hall.bytes_moved, 0);
}

/* ---- messages ---- */

enum { MESSAGES = 60, STEP_BYTES = 1000 /* after which the bytes of a message on a device change */ };

static size_t length_of(int from, int to, int i) {
    return 1 + (size_t)(from * 977 + to * 131 + i * 7919) % 50000;
}

/* Every third one goes by the host's memory. */
static bool is_on_device(int to, int me, int i) {
    return to != me && i % 3 != 1;
}

static void send_one(struct rank *rank, struct sx_channel *channel, int to, int i) {
    const int me = sx_net_rank(rank->net);
    const size_t bytes = length_of(me, to, i);
    struct sx_net_message message = {.rank = to, .bytes = bytes, .on_device = true};
    if (!is_on_device(to, me, i)) {
        send_filled(rank, channel, to, bytes, (unsigned char)(me * 64 + i));
        return;
    }
    assert(sx_buffer_create(rank->pool, bytes, &message.buffer, NULL) == SX_OK);
    for (size_t b = 0; b < bytes; b++)
        ((unsigned char *)message.buffer->data)[b] =
            (unsigned char)(me * 64 + (i + (int)(b / STEP_BYTES)) % 64);
    const enum sx_status status = sx_channel_send(channel, &message, 1, NULL);
    assert(status == SX_OK || status == sx_net_check(rank->net, NULL));
}

/* What has come. */
static void take(struct rank *rank, struct sx_channel *channel, int64_t *bytes) {
    struct sx_net_message message;
    while (receive_or_wait(rank, channel, &message)) {
        const unsigned char *data = message.buffer ? message.buffer->data : NULL;
        assert(data || (is_optional && message.on_device));
        for (size_t b = 1; data && b < message.bytes; b++)
            assert(data[b] % 64 == (data[0] + (message.on_device ? b / STEP_BYTES : 0)) % 64);
        assert(!data || (data[0] & 0xc0) == (message.rank * 64 & 0xc0));
        bytes[message.rank] += (int64_t)message.bytes;
        sx_buffer_release(message.buffer);
    }
}

static void send_all(struct rank *rank, struct sx_channel *channel, int64_t *bytes) {
    const int size = sx_net_size(rank->net);
    for (int i = 0; i < MESSAGES; i++) {
        for (int to = 0; to < size; to++)
            send_one(rank, channel, to, i);
        if (i % 8 == 0) {
            struct sx_net_message message;
            while (sx_channel_receive(channel, &message)) {
                bytes[message.rank] += (int64_t)message.bytes;
                sx_buffer_release(message.buffer);
            }
        }
    }
    const enum sx_status status = sx_channel_end(channel, NULL);
    assert(status == SX_OK || status == sx_net_check(rank->net, NULL));
}

static void receive_all(struct rank *rank, struct sx_channel *channel, int64_t *bytes) {
    while (!sx_channel_ended(channel) && sx_net_check(rank->net, NULL) == SX_OK)
        take(rank, channel, bytes);
}

static void exchange_all(struct rank *rank) {
    const int me = sx_net_rank(rank->net), size = sx_net_size(rank->net);
    for (int query = 0; query < 3; query++) {
        int64_t bytes[2][MOST_RANKS] = {0};
        struct sx_channel *first = open_channel(rank, 100000), *second = open_channel(rank, 60000);
        send_all(rank, first, bytes[0]);
        send_all(rank, second, bytes[1]);
        receive_all(rank, second, bytes[1]);
        receive_all(rank, first, bytes[0]);
        for (int from = 0; from < size; from++) {
            int64_t expected = 0;
            for (int i = 0; i < MESSAGES; i++)
                expected += (int64_t)length_of(from, me, i);
            assert(bytes[0][from] == expected && bytes[1][from] == expected);
        }
        sx_channel_destroy(first);
        sx_channel_destroy(second);
        assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OK);
    }
}

static void all_to_all(struct rank *rank) {
    set_link(rank, -1, -1);
    exchange_all(rank);
}

/* Of a channel, of all ranks: what goes in rounds, or by pulls. */
static long long device_bytes(int size, bool pulled) {
    long long bytes = 0;
    for (int from = 0; from < size; from++)
        for (int to = 0; to < size; to++)
            for (int i = 0; i < MESSAGES; i++) {
                const size_t length = length_of(from, to, i);
                const bool can_be = pulls && length % 2 == 0 && is_reached(from, to, size);
                bytes += is_on_device(to, from, i) && can_be == pulled ? (long long)length : 0;
            }
    return bytes;
}

static void test_all_to_all(void) {
    for (int size = 2; size <= MOST_RANKS; size++) {
        clear_hall();
        run_ranks(size, all_to_all);
        assert(atomic_load(&hall.bytes_moved) == 3 * 2 * device_bytes(size, false));
        assert(atomic_load(&puller_hall.bytes_pulled) == 3 * 2 * device_bytes(size, true));
        assert(pulls || atomic_load(&hall.n_moved) > 3 * 2 * 40 * size * (size - 1)); /* slices */
    }
}

/* ---- failures ---- */

/* Rank 1's device is full: the query fails everywhere with its error, and the next one is fine. */
static void out_of_memory(struct rank *rank) {
    int64_t bytes[MOST_RANKS] = {0};
    struct sx_error error = {0};
    set_link(rank, sx_net_rank(rank->net) == 1 ? 5 : -1, -1);
    struct sx_channel *channel = open_channel(rank, 100000);
    meet(rank);
    send_all(rank, channel, bytes);
    while (sx_net_check(rank->net, &error) == SX_OK)
        take(rank, channel, bytes);
    assert(error.status == SX_OUT_OF_MEMORY && strstr(error.text, "rank 1") &&
           strstr(error.text, "out of test memory"));
    sx_channel_destroy(channel);
    assert(sx_net_barrier(rank->net, NULL, NULL) == SX_OUT_OF_MEMORY);
    assert(sx_net_gather(rank->net, NULL, 0, NULL, NULL, NULL) == SX_OK);
}

/* Unless what comes can be done without. */
static void does_without(struct rank *rank) {
    set_link(rank, sx_net_rank(rank->net) == 1 ? 5 : -1, -1);
    exchange_all(rank);
}

static void test_optional(void) {
    is_optional = true;
    run_ranks(3, does_without);
    assert(atomic_load(&puller_hall.bytes_pulled) < 3 * 2 * device_bytes(3, true) || !pulls);
    is_optional = false;
    clear_hall();
}

static int rounds_before_break;

/* Rank 2's link breaks after some rounds, or does not connect: it counts as lost. */
static void broken(struct rank *rank) {
    int64_t bytes[MOST_RANKS] = {0};
    struct sx_error error = {0};
    set_link(rank, -1, sx_net_rank(rank->net) == 2 ? rounds_before_break : -1);
    struct sx_channel *channel = open_channel(rank, 100000);
    meet(rank);
    send_all(rank, channel, bytes);
    while (sx_net_check(rank->net, &error) == SX_OK)
        take(rank, channel, bytes);
    assert(error.status == SX_RANK_LOST && strstr(error.text, "rank 2"));
    assert(sx_net_rank(rank->net) != 2 || strstr(error.text, "it is broken"));
    sx_channel_destroy(channel);
}

static void killed(struct rank *rank) {
    int64_t bytes[MOST_RANKS] = {0};
    struct sx_error error = {0};
    set_link(rank, -1, -1);
    struct sx_channel *channel = open_channel(rank, 100000);
    meet(rank);
    if (sx_net_rank(rank->net) == 1) {
        send_one(rank, channel, 0, 0);
        sx_net_local_kill(rank->net);
    } else {
        send_all(rank, channel, bytes);
    }
    while (sx_net_check(rank->net, &error) == SX_OK)
        take(rank, channel, bytes);
    assert(error.status == SX_RANK_LOST && strstr(error.text, "rank 1"));
    sx_channel_destroy(channel);
}

enum { LEFT_BYTES = 30000, LEFT_EACH = 2 /* messages from each of two ranks */ };

static void wait_until(const atomic_int *count, int at_least) {
    while (atomic_load(count) < at_least)
        sched_yield();
}

static void send_left(struct rank *rank, struct sx_channel *channel) {
    for (int i = 0; i < LEFT_EACH; i++) {
        struct sx_net_message message = {.bytes = LEFT_BYTES, .on_device = true};
        assert(sx_buffer_create(rank->pool, LEFT_BYTES, &message.buffer, NULL) == SX_OK);
        memset(message.buffer->data, 1, LEFT_BYTES);
        assert(sx_channel_send(channel, &message, 1, NULL) == SX_OK);
    }
}

/* Rank 0 has read a slice of rank 2's. More may be read again when its thread hangs in a call for this rank;
 * else let_read sees to that. */
static void leave_meanwhile(struct rank *rank, struct sx_channel *channel) {
    wait_until(&puller_hall.n_begun, LEFT_EACH);
    wait_until(&puller_hall.n_slices, 1);
    send_left(rank, channel);
    if (puller_fails == PULLER_NONE) {
        wait_until(&puller_hall.n_begun, 2 * LEFT_EACH);
    } else {
        wait_until(&puller_hall.n_failing, 1);
        atomic_store(&puller_hall.slices_left, -1);
    }
    sx_net_local_kill(rank->net);
}

/* Slices may be read again once rank 0's thread must have seen the loss: it looks at two pulls in between. */
static void let_read(void) {
    const int seen = atomic_load(&puller_hall.n_looks);
    while (atomic_load(&puller_hall.n_failed) == 0 && atomic_load(&puller_hall.n_looks) < seen + 4)
        sched_yield();
    atomic_store(&puller_hall.slices_left, -1);
}

static void left_unread(struct rank *rank) {
    const int me = sx_net_rank(rank->net);
    set_link(rank, -1, -1);
    struct sx_channel *channel = open_channel(rank, 100000);
    meet(rank);
    if (me == 1)
        leave_meanwhile(rank, channel);
    else if (me == 2)
        send_left(rank, channel);
    while (sx_net_check(rank->net, NULL) == SX_OK)
        sched_yield();
    if (me == 0 && puller_fails == PULLER_NONE)
        let_read();
    sx_channel_destroy(channel);
}

/* Once a rank is lost nothing is read of any, and all pulls that have begun end. */
static void test_left_unread(void) {
    for (int call = PULLER_NONE; pulls && call <= PULLER_TEST; call++) {
        puller_fails = (enum puller_call)call;
        atomic_store(&puller_hall.slices_left, 1);
        run_ranks(3, left_unread);
        assert(atomic_load(&puller_hall.n_slices) == 1);
        assert(atomic_load(&puller_hall.n_failed) == atomic_load(&puller_hall.n_begun));
        clear_hall();
    }
    puller_fails = PULLER_NONE;
}

enum { OFFERED = 60, OFFERED_BYTES = 100, LOSSES = 200 };

/* Rank 1 takes nothing of what rank 2 offers, and is lost; then rank 2 leaves, maybe while its thread drops
 * that. */
static void offer_to_lost(struct rank *rank) {
    const int me = sx_net_rank(rank->net);
    set_link(rank, -1, -1);
    struct sx_channel *channel = open_channel(rank, 100000);
    meet(rank);
    for (int i = 0; me == 2 && i < OFFERED; i++) {
        struct sx_net_message message = {.rank = 1, .bytes = OFFERED_BYTES, .on_device = true};
        assert(sx_buffer_create(rank->pool, OFFERED_BYTES, &message.buffer, NULL) == SX_OK);
        memset(message.buffer->data, 1, OFFERED_BYTES);
        assert(sx_channel_send(channel, &message, 1, NULL) == SX_OK);
    }
    meet(rank);
    if (me == 1)
        sx_net_local_kill(rank->net);
    while (sx_net_check(rank->net, NULL) == SX_OK)
        sched_yield();
    sx_channel_destroy(channel);
}

static void test_offered_to_lost(void) {
    for (int i = 0; pulls && i < LOSSES; i++) {
        atomic_store(&puller_hall.slices_left, 0);
        run_ranks(3, offer_to_lost);
        clear_hall();
    }
}

static void test_all(void) {
    test_all_to_all();
    clear_hall();
    run_ranks(3, out_of_memory);
    clear_hall();
    test_optional();
    puller_copies = true;
    for (rounds_before_break = 0; rounds_before_break <= 3; rounds_before_break += 3) {
        run_ranks(3, broken);
        clear_hall();
    }
    run_ranks(3, killed);
    clear_hall();
    test_left_unread();
    test_offered_to_lost();
    puller_copies = false;
}

int main(void) {
    for (int i = 0; i < 4; i++) {
        pulls = i % 2 == 1;
        spin_ns = i < 2 ? 0 : 300000;
        test_all();
    }
    return 0;
}
