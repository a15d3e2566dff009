/* Pulls by copy engines (copies.c). A GPU's messages are in slabs that CUDA has opened to other processes; a
 * rank opens a slab of another one when it first pulls from it, and keeps it open. Copy engines take no room
 * from kernels: NCCL's do, and get little of it beside others. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "base/clock.h"
#include "base/slab_pool.h"
#include "net/peer/copies.h"
#include "net/peer/load.h"

enum {
    SHARE = 8, /* of the device's memory, at most, is for messages, */
    SLABS = 8, /* in so many slabs: others take 8 ms and more to open one */
    TRIAL_BYTES = 1 << 20,
    TRIAL_NS = 1000000000
};

/* What struct sx_pull_source has. */
struct place {
    cudaIpcMemHandle_t handle;
    uint64_t slab, offset;
};
_Static_assert(sizeof(struct place) <= sizeof(struct sx_pull_source), "a place is told as a source");

/* Memory that this rank has opened to others. */
struct slab {
    char *memory;
    size_t bytes;
    cudaIpcMemHandle_t handle;
};

/* A slab of another rank; NULL: not open. */
struct opened {
    void **memory; /* by its number there */
    size_t n;
};

struct peer_puller {
    struct sx_puller base;
    struct cuda_device *device;
    struct sx_pool *host_pool;
    struct sx_pool *budget;   /* without limit: what `map` gives is never asked back */
    struct sx_pool *messages; /* in slabs; also the device's */
    size_t left_bytes;        /* that slabs may still take: one is made at a time */
    struct sx_buffer *trial;
    pthread_mutex_t lock; /* of the next three */
    struct slab *slabs;
    size_t n_slabs, slab_room;
    int rank, size;
    struct opened *opened; /* by rank */
    struct peer_copies copies;
    bool *reached_by;
};

/* ---- memory of messages ---- */

static bool add_slab(struct peer_puller *puller, const struct slab *slab) {
    pthread_mutex_lock(&puller->lock);
    if (puller->n_slabs == puller->slab_room) {
        const size_t room = puller->slab_room ? 2 * puller->slab_room : 16;
        struct slab *grown = realloc(puller->slabs, room * sizeof *grown);
        if (grown) {
            puller->slabs = grown;
            puller->slab_room = room;
        }
    }
    const bool added = puller->n_slabs < puller->slab_room;
    if (added)
        puller->slabs[puller->n_slabs++] = *slab;
    pthread_mutex_unlock(&puller->lock);
    return added;
}

static void *map(void *context, size_t bytes) {
    struct peer_puller *puller = context;
    struct slab slab = {.bytes = bytes};
    void *memory = NULL;
    if (bytes > puller->left_bytes || cuda_choose_device(puller->device->ordinal) != cudaSuccess ||
        !cuda_reserve(puller->device, bytes))
        return NULL;
    cudaError_t result = cudaMalloc(&memory, bytes);
    if (result == cudaSuccess)
        result = cudaIpcGetMemHandle(&slab.handle, memory);
    slab.memory = memory;
    if (result == cudaSuccess && add_slab(puller, &slab)) {
        puller->left_bytes -= bytes;
        return memory;
    }
    (void)cudaGetLastError();
    (void)cudaFree(memory);
    sx_pool_unreserve(puller->device->budget, bytes);
    return NULL;
}

/* The slab keeps its number: others may know it. */
static void forget_slab(struct peer_puller *puller, const char *memory) {
    pthread_mutex_lock(&puller->lock);
    for (size_t i = 0; i < puller->n_slabs; i++)
        if (puller->slabs[i].memory == memory)
            puller->slabs[i] = (struct slab){0};
    pthread_mutex_unlock(&puller->lock);
}

/* At the end, or where there is no memory to note a slab. */
static void unmap(void *context, void *memory, size_t bytes) {
    struct peer_puller *puller = context;
    forget_slab(puller, memory);
    puller->left_bytes += bytes;
    (void)cuda_choose_device(puller->device->ordinal);
    (void)cudaFree(memory);
    sx_pool_unreserve(puller->device->budget, bytes);
}

static bool find_place(struct peer_puller *puller, const char *memory, struct place *out) {
    bool found = false;
    pthread_mutex_lock(&puller->lock);
    for (size_t i = 0; i < puller->n_slabs && !found; i++) {
        const struct slab *slab = &puller->slabs[i];
        found = memory >= slab->memory && memory < slab->memory + slab->bytes;
        if (found)
            *out = (struct place){slab->handle, i, (uint64_t)(memory - slab->memory)};
    }
    pthread_mutex_unlock(&puller->lock);
    return found;
}

static bool tell(struct sx_puller *base, const struct sx_buffer *buffer, struct sx_pull_source *out_source) {
    struct peer_puller *puller = (struct peer_puller *)base;
    struct place place;
    if (buffer->pool != puller->messages || !find_place(puller, buffer->data, &place))
        return false;
    *out_source = (struct sx_pull_source){0};
    memcpy(out_source->bytes, &place, sizeof place);
    return true;
}

/* ---- other ranks' memory ---- */

static bool make_room(struct opened *opened, size_t slab) {
    enum { MOST_SLABS = 1 << 20 };
    if (slab < opened->n)
        return true;
    void **grown = slab < MOST_SLABS ? realloc(opened->memory, (slab + 1) * sizeof *grown) : NULL;
    if (!grown)
        return false;
    memset(grown + opened->n, 0, (slab + 1 - opened->n) * sizeof *grown);
    *opened = (struct opened){grown, slab + 1};
    return true;
}

static enum sx_status open_slab(struct opened *opened, const struct place *place, const char **out_memory,
                                struct sx_error *error) {
    if (!make_room(opened, (size_t)place->slab))
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for another rank's slabs");
    void **memory = &opened->memory[place->slab];
    if (!*memory) {
        const cudaError_t result =
            cudaIpcOpenMemHandle(memory, place->handle, cudaIpcMemLazyEnablePeerAccess);
        if (result != cudaSuccess) {
            *memory = NULL;
            return peer_fail(error, result, "opening another GPU's memory");
        }
    }
    *out_memory = (const char *)*memory + place->offset;
    return SX_OK;
}

/* ---- pulls ---- */

/* Of a stream to which nothing is issued: what is released can be any rank's next message. */
static enum sx_status make_buffer(struct cuda_stream *stream, size_t bytes, struct sx_buffer **out_buffer,
                                  struct sx_error *error) {
    if (cuda_shared_create(stream, bytes, out_buffer) == SX_OK)
        return SX_OK;
    *error = stream->base.error;
    stream->base.error = (struct sx_error){0};
    return error->status;
}

static enum sx_status start(struct sx_puller *base, int rank, const struct sx_pull_source *source,
                            size_t bytes, struct sx_buffer **out_buffer, struct sx_error *error) {
    struct peer_puller *puller = (struct peer_puller *)base;
    struct cuda_stream *stream;
    struct place place;
    const char *from = NULL;
    memcpy(&place, source->bytes, sizeof place);
    SX_TRY(peer_copies_enter(&puller->copies, puller->device, puller->host_pool, &stream, error));
    SX_TRY(open_slab(&puller->opened[rank], &place, &from, error));
    SX_TRY(make_buffer(stream, bytes, out_buffer, error));
    const enum sx_status status =
        peer_copies_add(&puller->copies, rank, (*out_buffer)->data, from, bytes, error);
    if (status != SX_OK)
        sx_buffer_release(*out_buffer);
    return status;
}

static enum sx_status test(struct sx_puller *base, int rank, bool *out_ended, struct sx_error *error) {
    return peer_copies_test(&((struct peer_puller *)base)->copies, rank, out_ended, error);
}

static void abandon(struct sx_puller *base) {
    peer_copies_abandon(&((struct peer_puller *)base)->copies);
}

static void close_slabs(struct opened *opened) {
    for (size_t i = 0; i < opened->n; i++)
        if (opened->memory[i])
            (void)cudaIpcCloseMemHandle(opened->memory[i]);
    free(opened->memory);
    *opened = (struct opened){0};
}

static void let_go(struct sx_puller *base) {
    struct peer_puller *puller = (struct peer_puller *)base;
    (void)cuda_choose_device(puller->device->ordinal);
    for (int r = 0; r < puller->size; r++)
        close_slabs(&puller->opened[r]);
}

/* ---- the trial ---- */

static int trial_byte(int rank) {
    return rank % 255 + 1;
}

static enum sx_status fill_trial(struct peer_puller *puller, struct sx_pull_source *out_trial,
                                 struct sx_error *error) {
    SX_TRY(sx_buffer_create(puller->messages, TRIAL_BYTES, &puller->trial, error));
    cudaError_t result = cudaMemsetAsync(puller->trial->data, trial_byte(puller->rank), TRIAL_BYTES, NULL);
    if (result == cudaSuccess)
        result = cudaDeviceSynchronize();
    if (result != cudaSuccess)
        return peer_fail(error, result, "memory for messages");
    return tell(&puller->base, puller->trial, out_trial)
               ? SX_OK
               : sx_error_set(error, SX_INTERNAL, "memory for messages is not found");
}

static bool has_come(struct peer_puller *puller, int rank) {
    const int64_t began_ns = sx_clock_ns();
    bool has_ended = false;
    while (!has_ended && sx_clock_ns() - began_ns < TRIAL_NS) {
        if (test(&puller->base, rank, &has_ended, &(struct sx_error){0}) != SX_OK)
            return false;
        sched_yield();
    }
    return has_ended;
}

static bool is_right(struct peer_puller *puller, int rank, const struct sx_buffer *buffer) {
    unsigned char *bytes = malloc(TRIAL_BYTES);
    struct cuda_stream *stream;
    bool right = bytes &&
                 peer_copies_enter(&puller->copies, puller->device, puller->host_pool, &stream,
                                   &(struct sx_error){0}) == SX_OK &&
                 cuda_download(stream, bytes, buffer->data, TRIAL_BYTES, "a trial") == SX_OK;
    for (size_t i = 0; right && i < TRIAL_BYTES; i++)
        right = bytes[i] == trial_byte(rank);
    free(bytes);
    return right;
}

bool sx_peer_try(struct sx_puller *base, int rank, const struct sx_pull_source *trial) {
    struct peer_puller *puller = (struct peer_puller *)base;
    struct sx_buffer *buffer;
    if (start(base, rank, trial, TRIAL_BYTES, &buffer, &(struct sx_error){0}) != SX_OK)
        return false;
    const bool reaches = has_come(puller, rank) && is_right(puller, rank, buffer);
    if (!reaches) {
        peer_copies_drop(&puller->copies);
        close_slabs(&puller->opened[rank]);
    }
    sx_buffer_release(buffer);
    return reaches;
}

void sx_peer_allow(struct sx_puller *base, int rank) {
    ((struct peer_puller *)base)->reached_by[rank] = true;
}

/* ---- beginning and end ---- */

static void destroy(struct sx_puller *base) {
    struct peer_puller *puller = (struct peer_puller *)base;
    (void)cuda_choose_device(puller->device->ordinal);
    peer_copies_release(&puller->copies); /* before what it copies from is closed */
    for (int r = 0; puller->opened && r < puller->size; r++)
        close_slabs(&puller->opened[r]);
    atomic_store(&puller->device->messages, NULL);
    sx_buffer_release(puller->trial);
    sx_pool_destroy(puller->messages);
    sx_pool_destroy(puller->budget);
    pthread_mutex_destroy(&puller->lock);
    free(puller->slabs);
    free(puller->opened);
    free(puller->reached_by);
    free(puller);
}

static const struct sx_puller_ops ops = {
    .tell = tell, .start = start, .test = test, .abandon = abandon, .let_go = let_go, .destroy = destroy};

/* The driver's pool has as much memory as messages that come may take: fresh memory takes 4 ms and more a GB,
 * for which pulls would wait. Without it all goes on. (The emulator has no pool.) */
static void warm_up(size_t bytes) {
    void *memory = NULL;
#ifdef SX_CUDA_EMULATED
    bytes = 0;
#endif
    if (cudaMallocAsync(&memory, bytes, NULL) == cudaSuccess)
        (void)cudaFreeAsync(memory, NULL);
    (void)cudaDeviceSynchronize();
    (void)cudaGetLastError();
}

static enum sx_status prepare(struct peer_puller *puller, struct sx_pull_source *out_trial,
                              struct sx_error *error) {
    const struct sx_slab_source source = {.map = map, .unmap = unmap, .context = puller};
    if (!puller->opened || !puller->reached_by)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", puller->size);
    const cudaError_t result = cuda_choose_device(puller->device->ordinal);
    if (result != cudaSuccess)
        return peer_fail(error, result, "choosing the device");
    SX_TRY(peer_copies_init(&puller->copies, puller->rank, puller->size, error));
    puller->left_bytes = puller->device->limit_bytes / SHARE;
    warm_up(puller->left_bytes);
    SX_TRY(sx_pool_create(0, &puller->budget, error));
    SX_TRY(sx_slab_pool_create(puller->budget,
                               puller->left_bytes / SLABS / SX_SLAB_ALIGNMENT * SX_SLAB_ALIGNMENT, source,
                               &puller->messages, error));
    return fill_trial(puller, out_trial, error);
}

enum sx_status sx_peer_create(const struct sx_backend *backend, struct sx_pool *pool, int rank, int size,
                              struct sx_puller **out_puller, struct sx_pull_source *out_trial,
                              struct sx_error *error) {
    struct peer_puller *puller = calloc(1, sizeof *puller);
    if (!puller)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for pulls");
    pthread_mutex_init(&puller->lock, NULL);
    puller->device = (struct cuda_device *)(uintptr_t)backend;
    puller->host_pool = pool;
    puller->rank = rank;
    puller->size = size;
    puller->opened = calloc((size_t)size, sizeof *puller->opened);
    puller->reached_by = calloc((size_t)size, sizeof *puller->reached_by);
    puller->base = (struct sx_puller){.ops = &ops, .reached_by = puller->reached_by};
    const enum sx_status status = prepare(puller, out_trial, error);
    if (status != SX_OK) {
        destroy(&puller->base);
        return status;
    }
    atomic_store(&puller->device->messages, puller->messages);
    *out_puller = &puller->base;
    return SX_OK;
}
