/* Columns that go from stream to stream while others make and release theirs: memory that is used again has
 * nobody at work on it. Streams change their priority meanwhile. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "move_streams.h"

enum {
    THREADS = 4,
    SLOTS = 3,
    ROUNDS = 24,
    FEW_ROUNDS = 2,
    ROWS = 600000,  /* a block that other streams may take, */
    FEW_ROWS = 2000 /* and where blocks are not kept, or every access is checked */
};

/* Numbers that count up from the first. */
struct counted {
    struct sx_tensor column;
    int64_t first;
};

/* Columns that wait for whoever takes them. */
struct exchange {
    pthread_mutex_t lock;
    struct counted slots[SLOTS];
};

struct trader {
    struct conformance c; /* with a stream of its own */
    struct exchange *exchange;
    pthread_t id;
    int number, rounds;
    int64_t rows;
    bool are_equal;
    enum sx_status status;
};

static bool counts_up(const struct sx_tensor *host, int64_t first, int64_t rows) {
    const int64_t *values = host->values;
    bool fine = host->length == rows;
    for (int64_t i = 0; fine && i < rows; i++)
        fine = values[i] == first + i;
    return fine;
}

/* Leaves a column, and takes the one that was there. */
static void trade(struct trader *trader, struct counted *own) {
    pthread_mutex_lock(&trader->exchange->lock);
    struct counted *slot = &trader->exchange->slots[conformance_random(&trader->c) % SLOTS];
    const struct counted taken = *slot;
    *slot = *own;
    *own = taken;
    pthread_mutex_unlock(&trader->exchange->lock);
}

static enum sx_status trade_one(struct trader *trader, int round) {
    struct sx_stream *stream = trader->c.stream;
    const struct sx_backend_ops *ops = &stream->backend->ops;
    struct counted own = {.first = (int64_t)(round * THREADS + trader->number) << 32};
    struct sx_tensor host = {0};
    enum sx_status status;
    SX_GO(ops->prioritise(stream, round % 2 == 0));
    SX_GO(ops->iota(stream, SX_TYPE_I64, own.first, trader->rows, &own.column));
    SX_GO(ops->prioritise(stream, trader->number % 2 == 0));
    SX_GO(ops->synchronise(stream, "a column is whole"));
    trade(trader, &own);
    if (own.column.values) {
        SX_GO(conformance_receive(&trader->c, &own.column, &host));
        trader->are_equal &= counts_up(&host, own.first, trader->rows);
    }
out:
    sx_tensor_release(&own.column);
    sx_tensor_release(&host);
    return status;
}

static void *run_trader(void *argument) {
    struct trader *trader = argument;
    for (int round = 0; round < trader->rounds && trader->status == SX_OK; round++)
        trader->status = trade_one(trader, round);
    return NULL;
}

static bool is_emulated(const struct conformance *c) {
    return c->library && dlsym(c->library, "emulator_name");
}

static enum sx_status run_traders(struct conformance *c, struct trader *traders, struct exchange *exchange) {
    const bool is_slow = is_emulated(c) || !conformance_may_have(20011);
    for (int t = 0; t < THREADS; t++) {
        traders[t] = (struct trader){.c = *c, .exchange = exchange, .number = t, .are_equal = true};
        traders[t].c.random_state += (uint64_t)t;
        traders[t].rounds = is_slow ? FEW_ROUNDS : ROUNDS;
        traders[t].rows = is_slow ? FEW_ROWS : ROWS;
        traders[t].c.stream = NULL;
        SX_TRY(c->backend->ops.stream_create(c->backend, c->pool, NULL, &traders[t].c.stream, &c->error));
    }
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&traders[t].id, NULL, run_trader, &traders[t]) != 0)
            abort();
    for (int t = 0; t < THREADS; t++)
        pthread_join(traders[t].id, NULL);
    return SX_OK;
}

void move_between_streams(struct conformance *c) {
    struct trader traders[THREADS] = {0};
    struct exchange exchange = {.lock = PTHREAD_MUTEX_INITIALIZER};
    if (!conformance_takes(c))
        return;
    CONFORM(c, run_traders(c, traders, &exchange) == SX_OK, "streams: %s", c->error.text);
    for (int t = 0; t < THREADS; t++) {
        CONFORM(c, traders[t].status == SX_OK && traders[t].are_equal, "a column of another stream: %s",
                traders[t].c.stream ? traders[t].c.stream->error.text : "");
        if (traders[t].c.stream)
            c->backend->ops.stream_destroy(traders[t].c.stream);
    }
    for (int i = 0; i < SLOTS; i++)
        sx_tensor_release(&exchange.slots[i].column);
}
