/* A link by NCCL, on the emulated devices: what a rank has given up is not at work any more. */
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/device.h"
#include "net/nccl/load.h"

enum { RANKS = 2, BYTES = 1000, SKIPPED = 77 };

struct rank {
    int number;
    struct sx_device device;
    struct sx_pool *pool;
    struct sx_link *link;
};

static char id[SX_NCCL_ID_BYTES];
static pthread_barrier_t step;

static bool gives_up(void *context) {
    int *looks = context;
    return ++*looks > 100;
}

/* With the other rank. */
static enum sx_status exchange(struct rank *rank, bool sends, struct sx_buffer *buffer,
                               struct sx_error *error) {
    const struct sx_link_part part = {1 - rank->number, buffer, 0, BYTES};
    int looks = 0;
    return sx_link_exchange(rank->link, &part, sends, &part, !sends, gives_up, &looks, error);
}

static bool goes_on(void *context) {
    (void)context;
    return false;
}

/* Rounds of one message each way to fill all flights, before any is waited for. */
static void fill_flights(struct rank *rank, struct sx_buffer *sent, struct sx_buffer **received) {
    struct sx_error error = {0};
    for (int f = 0; f < SX_LINK_FLIGHTS; f++) {
        assert(rank->link->ops->allocate(rank->link, BYTES, &received[f], &error) == SX_OK);
        memset(received[f]->data, 0, BYTES);
        const struct sx_link_part out = {1 - rank->number, sent, 0, BYTES},
                                  in = {1 - rank->number, received[f], 0, BYTES};
        assert(rank->link->ops->start(rank->link, f, &out, 1, &in, 1, goes_on, NULL, &error) == SX_OK);
    }
}

static void fly(struct rank *rank, struct sx_buffer *buffer) {
    struct sx_buffer *received[SX_LINK_FLIGHTS];
    struct sx_error error = {0};
    const char other = (char)(11 + (1 - rank->number));
    memset(buffer->data, 11 + rank->number, BYTES);
    fill_flights(rank, buffer, received);
    for (int f = 0; f < SX_LINK_FLIGHTS; f++) {
        assert(rank->link->ops->finish(rank->link, f, goes_on, NULL, &error) == SX_OK);
        assert(((char *)received[f]->data)[0] == other && ((char *)received[f]->data)[BYTES - 1] == other);
        sx_buffer_release(received[f]);
    }
    pthread_barrier_wait(&step);
}

/* What was under way when a link was given up is not there, in whatever order one looks. */
static void check_given_up(struct rank *rank, struct sx_buffer *buffer) {
    struct sx_error error = {0};
    const struct sx_link_part part = {1 - rank->number, buffer, 0, BYTES};
    int looks = 0;
    for (int f = 0; f < 2; f++)
        assert(rank->link->ops->start(rank->link, f, &part, 0, &part, 1, goes_on, NULL, &error) == SX_OK);
    assert(rank->link->ops->finish(rank->link, 0, gives_up, &looks, &error) == SX_RANK_LOST);
    assert(rank->link->ops->finish(rank->link, 1, goes_on, NULL, &error) == SX_RANK_LOST);
}

static void run(struct rank *rank) {
    struct sx_buffer *buffer;
    struct sx_error error = {0};
    const bool sends = rank->number == 0;
    assert(rank->link->ops->allocate(rank->link, BYTES, &buffer, &error) == SX_OK);
    fly(rank, buffer);
    memset(buffer->data, sends, BYTES); /* the emulator's memory is the host's */
    if (!sends)
        check_given_up(rank, buffer);
    pthread_barrier_wait(&step);
    assert(!sends || exchange(rank, sends, buffer, &error) == SX_RANK_LOST); /* it is received no more */
    assert(exchange(rank, sends, buffer, &error) == SX_RANK_LOST && strstr(error.text, "has been given up"));
    pthread_barrier_wait(&step);
    assert(((char *)buffer->data)[0] == sends);
    sx_buffer_release(buffer);
}

static void *work(void *context) {
    struct rank *rank = context;
    const struct sx_backend *backend;
    struct sx_error error = {0};
    assert(sx_device_choose(STACHIO_DEVICE_CUDA, rank->number, &rank->device, &error) == SX_OK);
    assert(sx_device_open(&rank->device, 0, 1, &backend, &error) == SX_OK);
    void *library = rank->device.library;
    sx_nccl_create_function create = (sx_nccl_create_function)(uintptr_t)dlsym(library, "sx_nccl_create");
    sx_nccl_set_id_function set_id = (sx_nccl_set_id_function)(uintptr_t)dlsym(library, "sx_nccl_set_id");
    sx_nccl_make_id_function make_id = (sx_nccl_make_id_function)(uintptr_t)dlsym(library, "sx_nccl_make_id");
    if (rank->number == 0)
        assert(make_id(id, &error) == SX_OK);
    pthread_barrier_wait(&step);
    assert(sx_pool_create(0, &rank->pool, NULL) == SX_OK);
    assert(create(backend, rank->pool, &rank->link, &error) == SX_OK);
    set_id(rank->link, rank->number, RANKS, id);
    for (int i = 0; i < 2; i++) /* the second time it is connected */
        assert(rank->link->ops->connect(rank->link, goes_on, NULL, &error) == SX_OK);
    run(rank);
    rank->link->ops->destroy(rank->link, false);
    sx_device_close(&rank->device);
    sx_pool_destroy(rank->pool);
    return NULL;
}

int main(void) {
    const char *build = getenv("BUILD_DIR");
    char cuda[512], nccl[512];
    snprintf(cuda, sizeof cuda, "%s/libstachio_cuda_emulated.so", build ? build : ".");
    snprintf(nccl, sizeof nccl, "%s/libnccl_emulated.so", build ? build : ".");
    if (access(cuda, F_OK) != 0)
        return SKIPPED;
    setenv("STACHIO_CUDA_LIBRARY", cuda, 1);
    setenv("STACHIO_NCCL_LIBRARY", nccl, 1);
    setenv("CUDA_EMULATOR_DEVICES", "2", 1);
    setenv("NCCL_NVLS_ENABLE", "0", 1); /* as whoever opens the ranks does */
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    assert(pthread_barrier_init(&step, NULL, RANKS) == 0);
    struct rank ranks[RANKS] = {{.number = 0}, {.number = 1}};
    pthread_t threads[RANKS];
    for (int r = 0; r < RANKS; r++)
        assert(pthread_create(&threads[r], NULL, work, &ranks[r]) == 0);
    for (int r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    pthread_barrier_destroy(&step);
    return 0;
}
