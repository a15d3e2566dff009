/* Device memory of a stream. A block that is released goes back to the stream that took it, where it is used
 * again without any synchronisation: at once if no other stream has seen it, that is, if nothing was handed
 * over while it was in use; else as soon as no other stream can still be at work on it. For that every stream
 * tells the epoch up to which it is known to be quiet, and a released block remembers the epoch of its
 * release. A large block that others have seen goes to another stream, too, once all are quiet: fresh memory
 * takes milliseconds a GB. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cache.h"
#include "observe/trace.h"

/* Sizes are (8 + m) << (5 + e), so that most blocks fit the next request of about their size, and at most 1/8
 * of one is not used. */
enum { STEPS = 8, LEAST_SHIFT = 5, N_SIZES = STEPS * 40 };

/* A kept block; those of one size are a queue, oldest first. */
struct block {
    struct block *next;
    void *memory;
    uint64_t epoch; /* 0: no other stream has seen it */
    int size;
};

struct size_queue {
    struct block *first, *last;
};

/* A block in use. */
struct live {
    void *memory;       /* NULL: a free place */
    uint64_t hand_over; /* how many there had been when it was taken, or already_seen */
};
static const uint64_t already_seen = UINT64_MAX;

struct cuda_allocator {
    pthread_mutex_t lock;
    struct cuda_device *device;
    struct cuda_stream *stream; /* NULL once it is destroyed */
    struct sx_pool *pool;
    struct size_queue queues[N_SIZES];
    uint64_t hand_overs;
    struct live *live; /* by hash of the address; a power of two of places */
    size_t live_room;
    int64_t n_in_use;
    bool keeps_blocks;
    atomic_bool spares_cache;
};

/* The emulator keeps nothing, so that a use after release is seen, unless all streams put their work off:
 * then a block that is taken again is overwritten, in the stream's order. */
#ifdef SX_CUDA_EMULATED
static bool will_keep_blocks(void) {
    const char *defers = getenv("CUDA_EMULATOR_DEFERS");
    return defers && *defers == '2';
}
static void spoil(const struct cuda_allocator *allocator, void *memory, size_t bytes) {
    enum { SPOILED = 0xa5 };
    (void)cudaMemsetAsync(memory, SPOILED, bytes, allocator->stream->handle);
}
#else
static bool will_keep_blocks(void) {
    return true;
}
static void spoil(const struct cuda_allocator *allocator, void *memory, size_t bytes) {
    (void)allocator;
    (void)memory;
    (void)bytes;
}
#endif

static int size_of(size_t bytes) {
    const size_t least = (size_t)STEPS << LEAST_SHIFT;
    if (bytes <= least)
        return 0;
    const int shift = 63 - __builtin_clzll((unsigned long long)(bytes - 1)) - 3; /* 8 << shift <= bytes - 1 */
    const size_t steps = (bytes + ((size_t)1 << shift) - 1) >> shift;            /* 9..16 */
    return (shift - LEAST_SHIFT) * STEPS + (int)steps - STEPS;
}

static size_t bytes_of(int size) {
    return (size_t)(STEPS + size % STEPS) << (LEAST_SHIFT + size / STEPS);
}

static size_t rounded(size_t bytes) {
    return bytes_of(size_of(bytes));
}

/* ---- blocks in use ---- */

static size_t place_of(const struct cuda_allocator *allocator, const void *memory) {
    const uint64_t spread = (uint64_t)(uintptr_t)memory / ((uint64_t)STEPS << LEAST_SHIFT);
    size_t place = (size_t)(spread * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (allocator->live_room - 1);
    while (allocator->live[place].memory && allocator->live[place].memory != memory)
        place = (place + 1) & (allocator->live_room - 1);
    return place;
}

static bool grow_live(struct cuda_allocator *allocator) {
    enum { FIRST_ROOM = 256 };
    struct live *old = allocator->live;
    const size_t old_room = allocator->live_room;
    const size_t room = old_room ? 2 * old_room : FIRST_ROOM;
    struct live *made = calloc(room, sizeof *made);
    if (!made)
        return false;
    allocator->live = made;
    allocator->live_room = room;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].memory)
            made[place_of(allocator, old[i].memory)] = old[i];
    free(old);
    return true;
}

/* A block that there is no memory to note counts as seen by others. */
static void note_live(struct cuda_allocator *allocator, void *memory) {
    const size_t n = (size_t)allocator->n_in_use;
    if (2 * n >= allocator->live_room && !grow_live(allocator) && n + 1 >= allocator->live_room)
        return;
    allocator->live[place_of(allocator, memory)] = (struct live){memory, allocator->hand_overs};
}

/* Whether it may have been seen by other streams; forgets the block. Those behind it in the hash table move
 * up. */
static bool forget_live(struct cuda_allocator *allocator, const void *memory) {
    if (!allocator->live_room)
        return true;
    const size_t mask = allocator->live_room - 1;
    size_t hole = place_of(allocator, memory);
    if (!allocator->live[hole].memory)
        return true;
    const bool was_seen = allocator->live[hole].hand_over != allocator->hand_overs;
    allocator->live[hole].memory = NULL;
    for (size_t next = (hole + 1) & mask; allocator->live[next].memory; next = (next + 1) & mask) {
        const struct live moved = allocator->live[next];
        allocator->live[next].memory = NULL;
        allocator->live[place_of(allocator, moved.memory)] = moved;
    }
    return was_seen;
}

void cuda_hand_over(struct cuda_stream *stream) {
    pthread_mutex_lock(&stream->allocator->lock);
    stream->allocator->hand_overs++;
    pthread_mutex_unlock(&stream->allocator->lock);
}

void cuda_spare_cache(struct cuda_stream *stream, bool spares) {
    atomic_store(&stream->allocator->spares_cache, spares);
}

void cuda_share(struct cuda_stream *stream, const void *memory) {
    struct cuda_allocator *allocator = stream->allocator;
    pthread_mutex_lock(&allocator->lock);
    if (allocator->live_room) {
        struct live *live = &allocator->live[place_of(allocator, memory)];
        if (live->memory)
            live->hand_over = already_seen;
    }
    pthread_mutex_unlock(&allocator->lock);
}

/* ---- kept blocks ---- */

/* Whether all streams but the block's own have ended what they had at the time of its release. */
static bool is_quiet(struct cuda_device *device, const struct cuda_stream *own, uint64_t epoch) {
    const int n = atomic_load(&device->n_clocks);
    for (int i = 0; i < n; i++) {
        struct cuda_clock *clock = &device->clocks[i];
        if (clock != own->clock && atomic_load(&clock->busy) && atomic_load(&clock->quiet_epoch) < epoch)
            return false;
    }
    return true;
}

static void give_to_device(struct cuda_allocator *allocator, void *memory, size_t bytes) {
    cudaStream_t handle = allocator->stream ? allocator->stream->usual : NULL;
    if (handle)
        cudaFreeAsync(memory, handle);
    else
        cudaFree(memory);
    sx_pool_unreserve(allocator->device->budget, bytes);
}

/* All kept blocks, out of their queues. With the lock held. */
static struct block *detach_kept(struct cuda_allocator *allocator) {
    struct block *all = NULL;
    for (int size = 0; size < N_SIZES; size++) {
        struct size_queue *queue = &allocator->queues[size];
        if (!queue->first)
            continue;
        queue->last->next = all;
        all = queue->first;
        *queue = (struct size_queue){0};
    }
    return all;
}

/* Gives detached blocks back. Other streams may be at work on some of them, so it waits for the device:
 * without any allocator's lock, since what the device waits for may be another rank, and whoever would give
 * that up releases blocks. */
static void drop_blocks(struct cuda_allocator *allocator, struct block *blocks) {
    if (blocks)
        cuda_wait(allocator->device);
    while (blocks) {
        struct block *block = blocks;
        blocks = block->next;
        give_to_device(allocator, block->memory, bytes_of(block->size));
        free(block);
    }
}

/* The block behind `before` (NULL: the first one), out of its queue; its memory. */
static void *unlink_block(struct size_queue *queue, struct block *before) {
    struct block **at = before ? &before->next : &queue->first;
    struct block *block = *at;
    *at = block->next;
    if (queue->last == block)
        queue->last = before;
    void *memory = block->memory;
    free(block);
    return memory;
}

static void *take_kept(struct cuda_allocator *allocator, size_t bytes) {
    struct size_queue *queue = &allocator->queues[size_of(bytes)];
    struct block *block = queue->first;
    if (!block || (block->epoch && !is_quiet(allocator->device, allocator->stream, block->epoch)))
        return NULL;
    return unlink_block(queue, NULL);
}

/* One that `owner` keeps and `taker` may use: even what its owner had issued before the release has ended. */
static void *take_from(struct cuda_allocator *owner, const struct cuda_stream *taker, size_t bytes) {
    struct size_queue *queue = &owner->queues[size_of(bytes)];
    struct block *before = NULL;
    struct block *block = queue->first;
    for (; block && !block->epoch; block = block->next)
        before = block;
    const bool is_free = block && atomic_load(&owner->stream->clock->quiet_epoch) >= block->epoch &&
                         is_quiet(owner->device, taker, block->epoch);
    return is_free ? unlink_block(queue, before) : NULL; /* the oldest one; later ones are not either */
}

/* A large block of another stream; NULL: there is none at hand. The caller holds no allocator's lock. */
static void *take_of_others(struct cuda_allocator *allocator, size_t bytes) {
    enum { LEAST_BYTES = 4 << 20 };
    struct cuda_device *device = allocator->device;
    void *memory = NULL;
    if (bytes < LEAST_BYTES || pthread_mutex_trylock(&device->lock) != 0)
        return NULL;
    for (int i = 0; i < CUDA_MAX_STREAMS && !memory; i++) {
        struct cuda_allocator *owner = device->streams[i] ? device->streams[i]->allocator : NULL;
        if (!owner || owner == allocator || pthread_mutex_trylock(&owner->lock) != 0)
            continue;
        if (owner->stream)
            memory = take_from(owner, allocator->stream, bytes);
        pthread_mutex_unlock(&owner->lock);
    }
    pthread_mutex_unlock(&device->lock);
    return memory;
}

/* All streams' kept blocks; the caller holds no allocator's lock. */
static void drop_all_kept(struct cuda_device *device) {
    pthread_mutex_lock(&device->lock);
    for (int i = 0; i < CUDA_MAX_STREAMS; i++) {
        struct cuda_stream *stream = device->streams[i];
        if (!stream || !stream->allocator)
            continue;
        pthread_mutex_lock(&stream->allocator->lock);
        struct block *blocks = detach_kept(stream->allocator);
        pthread_mutex_unlock(&stream->allocator->lock);
        drop_blocks(stream->allocator, blocks);
    }
    pthread_mutex_unlock(&device->lock);
}

static void *take_fresh(struct cuda_allocator *allocator, size_t bytes) {
    void *memory = NULL;
    if (sx_pool_reserve(allocator->device->budget, bytes, NULL) != SX_OK)
        return NULL;
    atomic_store(&allocator->stream->has_taken, true);
    if (cudaMallocAsync(&memory, bytes, allocator->stream->handle) == cudaSuccess)
        return memory;
    (void)cudaGetLastError();
    sx_pool_unreserve(allocator->device->budget, bytes);
    return NULL;
}

static void note_taken(struct cuda_allocator *allocator, void *memory) {
    note_live(allocator, memory);
    allocator->n_in_use++;
}

/* Fresh memory once all kept blocks are given back; NULL: there is none. */
static void *take_dropping(struct cuda_allocator *allocator, size_t bytes) {
    struct sx_lane *lane = allocator->stream->base.lane;
    const int64_t began_ns = sx_span_begin(lane);
    drop_all_kept(allocator->device);
    sx_span_end(lane, SX_SPAN_SYNC, "kept memory is given back", began_ns, 0, 0);
    pthread_mutex_lock(&allocator->lock);
    void *memory = take_fresh(allocator, bytes);
    if (memory)
        note_taken(allocator, memory);
    pthread_mutex_unlock(&allocator->lock);
    return memory;
}

/* The cache gives up more than is wanted now, since what follows it costs a wait for the device. */
static bool reclaim_cached(struct cuda_device *device, size_t bytes) {
    enum { SHARE = 32 };
    const size_t least = device->limit_bytes / SHARE;
    return cuda_cache_reclaim(device->cache, bytes > least ? bytes : least) > 0;
}

static void *take(void *context, size_t size_bytes) {
    struct cuda_allocator *allocator = context;
    const size_t bytes = rounded(size_bytes);
    pthread_mutex_lock(&allocator->lock);
    void *memory = take_kept(allocator, bytes);
    pthread_mutex_unlock(&allocator->lock);
    if (!memory)
        memory = take_of_others(allocator, bytes);
    if (memory)
        spoil(allocator, memory, bytes);
    pthread_mutex_lock(&allocator->lock);
    if (!memory)
        memory = take_fresh(allocator, bytes);
    if (memory)
        note_taken(allocator, memory);
    pthread_mutex_unlock(&allocator->lock);
    if (!memory)
        memory = take_dropping(allocator, bytes);
    while (!memory && !atomic_load(&allocator->spares_cache) && reclaim_cached(allocator->device, bytes))
        memory = take_dropping(allocator, bytes);
    return memory;
}

/* False: there is no memory for the note, or nothing is kept. What no other stream has seen comes first. */
static bool keep(struct cuda_allocator *allocator, void *memory, size_t bytes, bool was_seen) {
    struct block *block = allocator->keeps_blocks && allocator->stream ? malloc(sizeof *block) : NULL;
    if (!block)
        return false;
    struct size_queue *queue = &allocator->queues[size_of(bytes)];
    *block = (struct block){NULL, memory, 0, size_of(bytes)};
    if (was_seen) {
        block->epoch = atomic_fetch_add(&allocator->device->epoch, 1) + 1;
        if (queue->last)
            queue->last->next = block;
        else
            queue->first = block;
        queue->last = block;
        return true;
    }
    block->next = queue->first;
    queue->first = block;
    if (!queue->last)
        queue->last = block;
    return true;
}

static void destroy(struct cuda_allocator *allocator) {
    pthread_mutex_destroy(&allocator->lock);
    sx_pool_destroy(allocator->pool);
    free(allocator->live);
    free(allocator);
}

static void give(void *context, void *memory, size_t size_bytes) {
    struct cuda_allocator *allocator = context;
    const size_t bytes = rounded(size_bytes);
    pthread_mutex_lock(&allocator->lock);
    const bool was_seen = forget_live(allocator, memory);
    if (!keep(allocator, memory, bytes, was_seen)) {
        cuda_wait(allocator->device);
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
    const struct sx_pool_source source = {
        .take = take, .give = give, .context = allocator, .name = "device (see --device-memory-limit)"};
    enum sx_status status = sx_pool_create_over(0, source, &allocator->pool, error);
    if (status != SX_OK) {
        free(allocator);
        return status;
    }
    pthread_mutex_init(&allocator->lock, NULL);
    allocator->device = stream->device;
    allocator->stream = stream;
    allocator->keeps_blocks = will_keep_blocks();
    pthread_mutex_lock(&stream->device->lock); /* other streams look for memory */
    stream->allocator = allocator;
    pthread_mutex_unlock(&stream->device->lock);
    stream->base.pool = allocator->pool;
    return SX_OK;
}

void cuda_allocator_close(struct cuda_allocator *allocator) {
    if (!allocator)
        return;
    pthread_mutex_lock(&allocator->lock);
    struct block *blocks;
    while ((blocks = detach_kept(allocator)) != NULL) {
        pthread_mutex_unlock(&allocator->lock);
        drop_blocks(allocator, blocks);
        pthread_mutex_lock(&allocator->lock);
    }
    allocator->stream = NULL;
    const bool last = allocator->n_in_use == 0;
    pthread_mutex_unlock(&allocator->lock);
    if (last)
        destroy(allocator);
}

/* The stream that it is of has nothing to do, so that the wait is only for the allocation. */
enum sx_status cuda_shared_create(struct cuda_stream *stream, size_t bytes, struct sx_buffer **out_buffer) {
    struct cuda_stream *keeper;
    SX_TRY(cuda_own_stream(stream, &stream->device->keeper, &keeper));
    SX_TRY(sx_buffer_create(keeper->base.pool, bytes, out_buffer, &stream->base.error));
    cuda_share(keeper, (*out_buffer)->data);
    const enum sx_status status =
        cuda_check(stream, cudaStreamSynchronize(keeper->handle), "memory that workers share");
    if (status != SX_OK)
        sx_buffer_release(*out_buffer);
    return status;
}

bool cuda_reserve(struct cuda_device *device, size_t bytes) {
    if (sx_pool_reserve(device->budget, bytes, NULL) == SX_OK)
        return true;
    drop_all_kept(device);
    return sx_pool_reserve(device->budget, bytes, NULL) == SX_OK;
}

enum sx_status cuda_message_create(struct cuda_stream *stream, size_t bytes, struct sx_buffer **out_buffer) {
    struct sx_pool *messages = atomic_load(&stream->device->messages);
    if (messages && sx_buffer_create(messages, bytes, out_buffer, NULL) == SX_OK)
        return SX_OK;
    return sx_buffer_create(stream->base.pool, bytes, out_buffer, &stream->base.error);
}
