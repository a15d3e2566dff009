/* One rank of a launch, for test_ranks.py: ranks WHAT. Prints "ok" by rank 0, or the error; exits as the
 * program does.
 * exchange   collectives, then messages of many sizes to all, checked; a barrier; again
 * lack       the same, but there is no memory for large ones, which can be done without
 * fail       rank 1 fails a query while the others wait; after a barrier all go on
 * wait       ranks exchange until one is killed */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/launch.h"

enum { MOST_RANKS = 64, ROUNDS = 24, LITTLE_BYTES = 100000 };

static const size_t lengths[] = {0, 1, 100, 5000, 70000, 333, 1 << 20, 3 << 20};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

static void send_filled(struct sx_channel *channel, struct sx_pool *pool, int from, int to, int i) {
    struct sx_net_message message = {.rank = to, .bytes = lengths[(from + to + i) % N_LENGTHS]};
    if (message.bytes) {
        assert(sx_buffer_create(pool, message.bytes, &message.buffer, NULL) == SX_OK);
        memset(message.buffer->data, from * 16 + to, message.bytes);
    }
    (void)!sx_channel_send(channel, &message, 1, NULL);
}

static void check_message(const struct sx_net_message *message, int me) {
    const unsigned char *data = message->buffer ? message->buffer->data : NULL;
    for (size_t i = 0; data && i < message->bytes; i++)
        assert(data[i] == message->rank * 16 + me);
}

/* `received_pool`: of what comes; with another one than `pool` messages are optional. */
static enum sx_status exchange(struct sx_net *net, struct sx_pool *pool, struct sx_pool *received_pool,
                               struct sx_error *error) {
    const int me = sx_net_rank(net), size = sx_net_size(net);
    const struct sx_channel_options options = {
        .pool = received_pool, .window_bytes = 2 << 20, .is_optional = received_pool != pool};
    struct sx_channel *channel;
    struct sx_net_message message;
    int64_t received[MOST_RANKS] = {0}, expected, n_lacking = 0;
    int mine = me * me, all[MOST_RANKS];
    SX_TRY(sx_net_gather(net, &mine, sizeof mine, all, NULL, error));
    for (int r = 0; r < size; r++)
        assert(all[r] == r * r);
    SX_TRY(sx_channel_create(net, &options, &channel, error));
    for (int i = 0; i < ROUNDS; i++)
        for (int to = 0; to < size; to++)
            send_filled(channel, pool, me, to, i);
    enum sx_status status = sx_channel_end(channel, error);
    while (status == SX_OK && !sx_channel_ended(channel)) {
        status = sx_net_check(net, error);
        if (!sx_channel_receive(channel, &message)) {
            usleep(100);
            continue;
        }
        assert(message.buffer || message.bytes == 0 || (options.is_optional && message.rank != me));
        n_lacking += message.bytes > 0 && !message.buffer;
        check_message(&message, me);
        received[message.rank] += (int64_t)message.bytes;
        sx_buffer_release(message.buffer);
    }
    for (int from = 0; status == SX_OK && from < size; from++) {
        expected = 0;
        for (int i = 0; i < ROUNDS; i++)
            expected += (int64_t)lengths[(from + me + i) % N_LENGTHS];
        assert(received[from] == expected);
    }
    assert(status != SX_OK || (n_lacking > 0) == options.is_optional);
    sx_channel_destroy(channel);
    return status == SX_OK ? sx_net_barrier(net, NULL, error) : status;
}

static enum sx_status lack(struct sx_net *net, struct sx_pool *pool, struct sx_error *error) {
    struct sx_pool *little;
    assert(sx_pool_create(LITTLE_BYTES, &little, NULL) == SX_OK);
    const enum sx_status status = exchange(net, pool, little, error);
    if (status == SX_OK)
        sx_pool_destroy(little);
    return status;
}

static enum sx_status fail_once(struct sx_net *net, struct sx_error *error) {
    struct sx_error own = {0};
    int ignored[MOST_RANKS], one = 1;
    if (sx_net_rank(net) == 1) {
        usleep(100000);
        (void)sx_error_set(&own, SX_FILE, "x.parquet is bad");
        sx_net_fail(net, &own);
    }
    assert(sx_net_gather(net, &one, sizeof one, ignored, NULL, error) == SX_FILE);
    assert(strstr(error->text, "rank 1 (host ") && strstr(error->text, "): x.parquet is bad"));
    assert(sx_net_barrier(net, NULL, error) == SX_FILE);
    return SX_OK;
}

static enum sx_status run(const char *what, struct sx_net *net, struct sx_pool *pool,
                          struct sx_error *error) {
    enum sx_status status = SX_OK;
    const int n = !strcmp(what, "wait") ? 1 << 30 : 5;
    if (!strcmp(what, "wait") && sx_net_rank(net) == 0) {
        for (int r = 0; r < sx_net_size(net); r++)
            printf("%s\n", sx_net_rank_name(net, r));
        fflush(stdout);
    }
    for (int i = 0; i < n && status == SX_OK; i++) {
        if (!strcmp(what, "fail"))
            status = fail_once(net, error);
        if (status == SX_OK)
            status = !strcmp(what, "lack") ? lack(net, pool, error) : exchange(net, pool, pool, error);
    }
    return status;
}

int main(int argc, char **argv) {
    struct sx_error error = {0};
    struct sx_net *net = NULL;
    struct sx_pool *pool;
    assert(argc == 2 && sx_pool_create(0, &pool, NULL) == SX_OK);
    enum sx_status status = sx_launch_open(getenv("STACHIO_INTERFACE"), &net, &error);
    const int rank = status == SX_OK ? sx_net_rank(net) : 0;
    if (status == SX_OK)
        status = run(argv[1], net, pool, &error);
    if (status != SX_OK)
        fprintf(stderr, "rank %d says: %s\n", rank, error.text);
    else if (rank == 0)
        printf("ok %s\n", sx_net_transport(net));
    sx_net_close(net);
    if (status == SX_OK) {
        assert(sx_pool_usage(pool).used_bytes == 0);
        sx_pool_destroy(pool);
    }
    return sx_status_exit(status);
}
