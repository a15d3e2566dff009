/* A puller of plain memory for tests, whose copies go in slices, one a look. */
#ifndef TEST_NET_PULLER_H
#define TEST_NET_PULLER_H

#include <sched.h>
#include <stdatomic.h>

#include "net/pull.h"
#include "net_ranks.h"

enum { MOST_TOLD = 32768, PULLER_SLICES = 3 };

/* Where ranks are lost others may be at their memory: what they tell is a copy then, that stays until
 * puller_clear. Else it is the message itself, until its sender releases it. */
static bool puller_copies = false;

/* Calls for rank 1 that wait until it is lost, and fail. */
enum puller_call { PULLER_NONE, PULLER_START, PULLER_TEST };
static enum puller_call puller_fails = PULLER_NONE;

/* Of all ranks. */
static struct {
    void *told[MOST_TOLD];
    atomic_int n_told;
    atomic_llong bytes_pulled;
    atomic_int n_open;      /* pairs of ranks of which one has the other's memory open */
    atomic_int slices_left; /* that may be read; -1: any number */
    atomic_int n_begun, n_looks, n_slices, n_failed;
    atomic_int n_failing; /* calls that wait to fail */
} puller_hall = {.slices_left = -1};

struct test_pull {
    struct test_pull *next;
    const void *from;
    struct sx_buffer *to;
    size_t bytes, read_bytes;
};

struct test_puller {
    struct sx_puller base;
    struct sx_net *net;
    struct sx_pool *pool;
    atomic_int allocations_left; /* -1: any number */
    bool reached_by[MOST_RANKS];
    bool has_open[MOST_RANKS];
    struct test_pull *pulls[MOST_RANKS]; /* oldest first */
    bool is_abandoned;
};

static bool take_one(atomic_int *left) {
    const int n = atomic_load(left);
    if (n > 0)
        atomic_fetch_sub(left, 1);
    return n != 0;
}

static enum sx_status count_allocation(atomic_int *left, struct sx_error *error) {
    return take_one(left) ? SX_OK : sx_error_set(error, SX_OUT_OF_MEMORY, "out of test memory");
}

/* Messages of an odd number of bytes are elsewhere. */
static bool puller_tell(struct sx_puller *base, const struct sx_buffer *buffer,
                        struct sx_pull_source *out_source) {
    (void)base;
    if (buffer->size_bytes % 2)
        return false;
    void *told = puller_copies ? malloc(buffer->size_bytes) : buffer->data;
    if (puller_copies) {
        const int at = atomic_fetch_add(&puller_hall.n_told, 1);
        assert(told && at < MOST_TOLD);
        memcpy(told, buffer->data, buffer->size_bytes);
        puller_hall.told[at] = told;
    }
    memcpy(out_source->bytes, &told, sizeof told);
    return true;
}

static enum sx_status fail_with(struct test_puller *puller, int rank, enum puller_call call,
                                struct sx_error *error) {
    if (rank != 1 || call != puller_fails)
        return SX_OK;
    atomic_fetch_add(&puller_hall.n_failing, 1);
    while (sx_net_check(puller->net, NULL) != SX_RANK_LOST)
        sched_yield();
    return sx_error_set(error, SX_INTERNAL, "its memory is gone");
}

static enum sx_status puller_start(struct sx_puller *base, int rank, const struct sx_pull_source *source,
                                   size_t bytes, struct sx_buffer **out_buffer, struct sx_error *error) {
    struct test_puller *puller = (struct test_puller *)base;
    struct test_pull **last = &puller->pulls[rank];
    assert(!puller->is_abandoned);
    SX_TRY(fail_with(puller, rank, PULLER_START, error));
    SX_TRY(count_allocation(&puller->allocations_left, error));
    atomic_fetch_add(&puller_hall.n_open, !puller->has_open[rank]);
    puller->has_open[rank] = true;
    struct test_pull *pull = calloc(1, sizeof *pull);
    assert(pull);
    pull->bytes = bytes;
    memcpy(&pull->from, source->bytes, sizeof pull->from);
    assert(sx_buffer_create(puller->pool, bytes, &pull->to, error) == SX_OK);
    *out_buffer = pull->to;
    while (*last)
        last = &(*last)->next;
    *last = pull;
    atomic_fetch_add(&puller_hall.n_begun, 1);
    return SX_OK;
}

static void read_slice(struct test_pull *pull) {
    const size_t left = pull->bytes - pull->read_bytes, slice = (pull->bytes - 1) / PULLER_SLICES + 1,
                 bytes = left < slice ? left : slice;
    memcpy((char *)pull->to->data + pull->read_bytes, (const char *)pull->from + pull->read_bytes, bytes);
    pull->read_bytes += bytes;
    atomic_fetch_add(&puller_hall.bytes_pulled, (long long)bytes);
    atomic_fetch_add(&puller_hall.n_slices, 1);
}

static enum sx_status puller_test(struct sx_puller *base, int rank, bool *out_ended, struct sx_error *error) {
    struct test_puller *puller = (struct test_puller *)base;
    struct test_pull *pull = puller->pulls[rank];
    atomic_fetch_add(&puller_hall.n_looks, 1);
    enum sx_status status = fail_with(puller, rank, PULLER_TEST, error);
    if (puller->is_abandoned)
        status = sx_error_set(error, SX_RANK_LOST, "given up");
    else if (status == SX_OK && take_one(&puller_hall.slices_left))
        read_slice(pull);
    *out_ended = status != SX_OK || pull->read_bytes == pull->bytes;
    if (!*out_ended)
        return SX_OK;
    atomic_fetch_add(&puller_hall.n_failed, status != SX_OK);
    puller->pulls[rank] = pull->next;
    free(pull);
    return status;
}

static void puller_abandon(struct sx_puller *base) {
    ((struct test_puller *)base)->is_abandoned = true;
}

static void puller_let_go(struct sx_puller *base) {
    struct test_puller *puller = (struct test_puller *)base;
    for (int r = 0; r < MOST_RANKS; r++) {
        assert(!puller->pulls[r]);
        atomic_fetch_sub(&puller_hall.n_open, puller->has_open[r]);
        puller->has_open[r] = false;
    }
}

/* Nobody has this rank's memory open, unless a rank is lost. */
static void puller_destroy(struct sx_puller *base) {
    struct test_puller *puller = (struct test_puller *)base;
    assert(puller_copies || atomic_load(&puller_hall.n_open) == 0);
    puller_let_go(base);
    free(puller);
}

/* All reach all, but for rank 0, which the last one does not reach. */
static bool is_reached(int rank, int by, int size) {
    return rank != 0 || by != size - 1;
}

static void set_puller(struct rank *rank, int allocations) {
    static const struct sx_puller_ops ops = {puller_tell,    puller_start,  puller_test,
                                             puller_abandon, puller_let_go, puller_destroy};
    struct test_puller *puller = calloc(1, sizeof *puller);
    assert(puller);
    puller->net = rank->net;
    puller->pool = rank->pool;
    atomic_init(&puller->allocations_left, allocations);
    for (int r = 0; r < sx_net_size(rank->net); r++)
        puller->reached_by[r] = is_reached(sx_net_rank(rank->net), r, sx_net_size(rank->net));
    puller->base = (struct sx_puller){&ops, puller->reached_by};
    assert(sx_net_set_puller(rank->net, &puller->base, NULL) == SX_OK);
}

/* No rank is there any more. */
static void puller_clear(void) {
    for (int i = 0; i < atomic_load(&puller_hall.n_told); i++)
        free(puller_hall.told[i]);
    atomic_store(&puller_hall.n_told, 0);
    atomic_store(&puller_hall.bytes_pulled, 0);
    atomic_store(&puller_hall.slices_left, -1);
    atomic_store(&puller_hall.n_begun, 0);
    atomic_store(&puller_hall.n_slices, 0);
    atomic_store(&puller_hall.n_failed, 0);
    atomic_store(&puller_hall.n_failing, 0);
}

#endif
