/* Pulls by copy engines, on the emulated devices: what is abandoned copies nothing more, and ends. */
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/device.h"
#include "net/peer/load.h"

enum { RANKS = 3, BYTES = 1 << 20 /* of a trial; a slice has less */, SKIPPED = 77 };

struct rank {
    struct sx_device device;
    struct sx_pool *pool;
    struct sx_puller *puller;
    struct sx_pull_source trial;
};

static void open_rank(struct rank *rank, int number) {
    const struct sx_backend *backend;
    struct sx_error error = {0};
    assert(sx_pool_create(0, &rank->pool, NULL) == SX_OK);
    assert(sx_device_choose(STACHIO_DEVICE_CUDA, number, &rank->device, &error) == SX_OK);
    assert(sx_device_open(&rank->device, 0, 1, &backend, &error) == SX_OK);
    sx_peer_create_function create =
        (sx_peer_create_function)(uintptr_t)dlsym(rank->device.library, "sx_peer_create");
    assert(create(backend, rank->pool, number, RANKS, &rank->puller, &rank->trial, &error) == SX_OK);
}

static void close_rank(struct rank *rank) {
    rank->puller->ops->destroy(rank->puller);
    sx_device_close(&rank->device);
    sx_pool_destroy(rank->pool);
}

static struct sx_buffer *start(struct rank *ranks, int from) {
    struct sx_buffer *buffer;
    struct sx_error error = {0};
    assert(ranks[0].puller->ops->start(ranks[0].puller, from, &ranks[from].trial, BYTES, &buffer, &error) ==
           SX_OK);
    return buffer;
}

static enum sx_status finish(struct rank *rank, int from) {
    struct sx_error error = {0};
    enum sx_status status = SX_OK;
    for (bool has_ended = false; !has_ended;)
        status = rank->puller->ops->test(rank->puller, from, &has_ended, &error);
    return status;
}

static bool is_all(const struct sx_buffer *buffer, char byte) {
    const char *data = buffer->data; /* the emulator's memory is the host's */
    return data[0] == byte && !memcmp(data, data + 1, BYTES - 1);
}

static void check_pull(struct rank *ranks) {
    struct sx_buffer *buffer = start(ranks, 1);
    assert(finish(&ranks[0], 1) == SX_OK && is_all(buffer, 2));
    sx_buffer_release(buffer);
}

/* One is under way, others wait behind it and beside it. */
static void check_abandoned(struct rank *ranks) {
    enum { PULLS = 3 };
    static const int from[PULLS] = {1, 1, 2};
    struct sx_buffer *buffers[PULLS];
    struct sx_puller *puller = ranks[0].puller;
    for (int i = 0; i < PULLS; i++) {
        buffers[i] = start(ranks, from[i]);
        memset(buffers[i]->data, 9, BYTES);
    }
    for (int i = 0; i < 2; i++)
        puller->ops->abandon(puller);
    for (int i = 0; i < PULLS; i++)
        assert(finish(&ranks[0], from[i]) == SX_RANK_LOST);
    for (int i = 0; i < PULLS; i++) {
        assert(is_all(buffers[i], 9));
        sx_buffer_release(buffers[i]);
    }
}

int main(void) {
    const char *build = getenv("BUILD_DIR");
    char cuda[512];
    snprintf(cuda, sizeof cuda, "%s/libstachio_cuda_emulated.so", build ? build : ".");
    if (access(cuda, F_OK) != 0)
        return SKIPPED;
    setenv("STACHIO_CUDA_LIBRARY", cuda, 1);
    setenv("CUDA_EMULATOR_DEVICES", "3", 1);
    struct rank ranks[RANKS] = {0};
    for (int r = 0; r < RANKS; r++)
        open_rank(&ranks[r], r);
    check_pull(ranks);
    check_abandoned(ranks);
    for (int r = 0; r < RANKS; r++)
        close_rank(&ranks[r]);
    return 0;
}
