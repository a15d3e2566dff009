/* Device memory of a stream. A block that is released goes back to the stream that took it, where it is used
 * again without any synchronisation as soon as no other stream can still be at work on it: every stream tells
 * the epoch up to which it is known to be quiet, and a released block remembers the epoch of its release. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "observe/trace.h"

enum { SMALL_BYTES = 256, PAGED_BYTES = 16 << 20, PAGE_BYTES = 2 << 20 };

/* A kept block; those of one size are a queue, oldest first. */
struct block {
    struct block *next;
    void *memory;
    uint64_t epoch;
};

struct size_queue {
    size_t bytes;
    struct block *first, *last;
};

struct cuda_allocator {
    pthread_mutex_t lock;
    struct cuda_device *device;
    struct cuda_stream *stream; /* NULL once it is destroyed */
    struct sx_pool *pool;
    struct size_queue *queues;
    int n_queues;
    int64_t n_in_use;
};

static size_t rounded(size_t bytes) {
    if (bytes > PAGED_BYTES)
        return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    return (bytes + SMALL_BYTES - 1) / SMALL_BYTES * SMALL_BYTES;
}

/* Whether all streams but the block's own have ended what they had at the time of its release. */
static bool is_quiet(struct cuda_device *device, const struct cuda_stream *own, uint64_t epoch) {
    for (int i = 0; i < CUDA_MAX_STREAMS; i++) {
        struct cuda_clock *clock = &device->clocks[i];
        if (clock != own->clock && atomic_load(&clock->busy) && atomic_load(&clock->quiet_epoch) < epoch)
            return false;
    }
    return true;
}

static void give_to_device(struct cuda_allocator *allocator, void *memory, size_t bytes) {
    cudaStream_t handle = allocator->stream ? allocator->stream->handle : NULL;
    if (handle)
        cudaFreeAsync(memory, handle);
    else
        cudaFree(memory);
    sx_pool_unreserve(allocator->device->budget, bytes);
}

/* Gives all kept blocks back. Other streams may be at work on some of them, so it waits for the device. */
static void drop_kept(struct cuda_allocator *allocator) {
    bool waited = false;
    for (int q = 0; q < allocator->n_queues; q++) {
        struct size_queue *queue = &allocator->queues[q];
        while (queue->first) {
            struct block *block = queue->first;
            if (!waited)
                cudaDeviceSynchronize();
            waited = true;
            queue->first = block->next;
            give_to_device(allocator, block->memory, queue->bytes);
            free(block);
        }
        queue->last = NULL;
    }
}

static void *take_kept(struct cuda_allocator *allocator, size_t bytes) {
    for (int q = 0; q < allocator->n_queues; q++) {
        struct size_queue *queue = &allocator->queues[q];
        struct block *block = queue->first;
        if (queue->bytes != bytes || !block)
            continue;
        if (!is_quiet(allocator->device, allocator->stream, block->epoch))
            return NULL;
        queue->first = block->next;
        if (!queue->first)
            queue->last = NULL;
        void *memory = block->memory;
        free(block);
        return memory;
    }
    return NULL;
}

/* All streams' kept blocks; the caller holds no allocator's lock. */
static void drop_all_kept(struct cuda_device *device) {
    pthread_mutex_lock(&device->lock);
    for (int i = 0; i < CUDA_MAX_STREAMS; i++) {
        struct cuda_stream *stream = device->streams[i];
        if (!stream || !stream->allocator)
            continue;
        pthread_mutex_lock(&stream->allocator->lock);
        drop_kept(stream->allocator);
        pthread_mutex_unlock(&stream->allocator->lock);
    }
    pthread_mutex_unlock(&device->lock);
}

static void *take_fresh(struct cuda_allocator *allocator, size_t bytes) {
    void *memory = NULL;
    if (sx_pool_reserve(allocator->device->budget, bytes, NULL) != SX_OK)
        return NULL;
    if (cudaMallocAsync(&memory, bytes, allocator->stream->handle) == cudaSuccess)
        return memory;
    (void)cudaGetLastError();
    sx_pool_unreserve(allocator->device->budget, bytes);
    return NULL;
}

static void *take(void *context, size_t size_bytes) {
    struct cuda_allocator *allocator = context;
    const size_t bytes = rounded(size_bytes);
    pthread_mutex_lock(&allocator->lock);
    void *memory = take_kept(allocator, bytes);
    if (!memory)
        memory = take_fresh(allocator, bytes);
    allocator->n_in_use += memory != NULL;
    pthread_mutex_unlock(&allocator->lock);
    if (memory)
        return memory;
    struct sx_lane *lane = allocator->stream->base.lane;
    const int64_t began_ns = sx_span_begin(lane);
    drop_all_kept(allocator->device);
    sx_span_end(lane, SX_SPAN_SYNC, "kept memory is given back", began_ns, 0, 0);
    pthread_mutex_lock(&allocator->lock);
    memory = take_fresh(allocator, bytes);
    allocator->n_in_use += memory != NULL;
    pthread_mutex_unlock(&allocator->lock);
    return memory;
}

static struct size_queue *queue_of(struct cuda_allocator *allocator, size_t bytes) {
    for (int q = 0; q < allocator->n_queues; q++)
        if (allocator->queues[q].bytes == bytes)
            return &allocator->queues[q];
    struct size_queue *grown = realloc(allocator->queues, (size_t)(allocator->n_queues + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    allocator->queues = grown;
    grown[allocator->n_queues] = (struct size_queue){.bytes = bytes};
    return &grown[allocator->n_queues++];
}

/* The emulator keeps nothing, so that a use after release is seen. */
#ifdef SX_CUDA_EMULATED
static const bool keeps_blocks = false;
#else
static const bool keeps_blocks = true;
#endif

/* False: there is no memory for the note, or nothing is kept. */
static bool keep(struct cuda_allocator *allocator, void *memory, size_t bytes) {
    struct size_queue *queue = keeps_blocks && allocator->stream ? queue_of(allocator, bytes) : NULL;
    struct block *block = queue ? malloc(sizeof *block) : NULL;
    if (!block)
        return false;
    *block = (struct block){NULL, memory, atomic_fetch_add(&allocator->device->epoch, 1) + 1};
    if (queue->last)
        queue->last->next = block;
    else
        queue->first = block;
    queue->last = block;
    return true;
}

static void destroy(struct cuda_allocator *allocator) {
    pthread_mutex_destroy(&allocator->lock);
    sx_pool_destroy(allocator->pool);
    free(allocator->queues);
    free(allocator);
}

static void give(void *context, void *memory, size_t size_bytes) {
    struct cuda_allocator *allocator = context;
    const size_t bytes = rounded(size_bytes);
    pthread_mutex_lock(&allocator->lock);
    if (!keep(allocator, memory, bytes)) {
        cudaDeviceSynchronize();
        give_to_device(allocator, memory, bytes);
    }
    allocator->n_in_use--;
    const bool last = !allocator->stream && allocator->n_in_use == 0;
    pthread_mutex_unlock(&allocator->lock);
    if (last)
        destroy(allocator);
}

enum sx_status cuda_allocator_create(struct cuda_stream *stream, struct sx_error *error) {
    struct cuda_allocator *allocator = calloc(1, sizeof *allocator);
    if (!allocator)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a device's allocator");
    const struct sx_pool_source source = {.take = take, .give = give, .context = allocator};
    enum sx_status status = sx_pool_create_over(0, source, &allocator->pool, error);
    if (status != SX_OK) {
        free(allocator);
        return status;
    }
    pthread_mutex_init(&allocator->lock, NULL);
    allocator->device = stream->device;
    allocator->stream = stream;
    stream->allocator = allocator;
    stream->base.pool = allocator->pool;
    return SX_OK;
}

void cuda_allocator_close(struct cuda_allocator *allocator) {
    if (!allocator)
        return;
    pthread_mutex_lock(&allocator->lock);
    drop_kept(allocator);
    allocator->stream = NULL;
    const bool last = allocator->n_in_use == 0;
    pthread_mutex_unlock(&allocator->lock);
    if (last)
        destroy(allocator);
}
