/* The slab pool: blocks never overlap, neighbours join, the budget holds, and kept slabs go when it is short.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/slab_pool.h"

enum { SLAB_BYTES = 8 << 20, LIMIT_BYTES = 1 << 30, N_THREADS = 4, N_BLOCKS = 64, N_STEPS = 4000 };

struct slabs_seen {
    atomic_int mapped, closed;
    atomic_size_t bytes;
    atomic_bool refuses;
};

static void *map(void *context, size_t size_bytes) {
    struct slabs_seen *seen = context;
    assert(size_bytes % SX_SLAB_ALIGNMENT == 0);
    if (atomic_load(&seen->refuses))
        return NULL;
    atomic_fetch_add(&seen->mapped, 1);
    atomic_fetch_add(&seen->bytes, size_bytes);
    return aligned_alloc(SX_SLAB_ALIGNMENT, size_bytes);
}

static void unmap(void *context, void *memory, size_t size_bytes) {
    struct slabs_seen *seen = context;
    atomic_fetch_sub(&seen->mapped, 1);
    atomic_fetch_sub(&seen->bytes, size_bytes);
    free(memory);
}

static void close_source(void *context) {
    struct slabs_seen *seen = context;
    atomic_fetch_add(&seen->closed, 1);
}

static struct sx_pool *create(struct slabs_seen *seen, size_t limit_bytes, struct sx_pool **out_budget) {
    const struct sx_slab_source source = {map, unmap, close_source, NULL, seen};
    struct sx_pool *pool;
    assert(sx_pool_create(limit_bytes, out_budget, NULL) == SX_OK);
    assert(sx_slab_pool_create(*out_budget, SLAB_BYTES, source, &pool, NULL) == SX_OK);
    assert(!sx_pool_is_pinned(pool) && !sx_pool_is_pinned(*out_budget));
    return pool;
}

static void destroy(struct slabs_seen *seen, struct sx_pool *pool, struct sx_pool *budget) {
    assert(sx_pool_usage(pool).used_bytes == 0);
    sx_pool_destroy(pool);
    assert(seen->mapped == 0 && seen->bytes == 0 && seen->closed == 1);
    assert(sx_pool_usage(budget).used_bytes == 0);
    sx_pool_destroy(budget);
}

static void *take(struct sx_pool *pool, size_t bytes) {
    void *memory;
    assert(sx_pool_alloc(pool, bytes, &memory, NULL) == SX_OK);
    assert((size_t)memory % SX_SLAB_PAGE_BYTES == 0);
    return memory;
}

/* Everything of a slab can be had as one block again, whatever the order of freeing. */
static void test_joining(void) {
    struct slabs_seen seen = {0};
    struct sx_pool *budget, *pool = create(&seen, LIMIT_BYTES, &budget);
    void *blocks[SLAB_BYTES / SX_SLAB_PAGE_BYTES];
    const int n = (int)(sizeof blocks / sizeof *blocks);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++)
            blocks[i] = take(pool, 1);
        assert(seen.mapped == 1 && seen.bytes == SLAB_BYTES);
        for (int i = 0; i < n; i++)
            sx_pool_free(pool, blocks[round == 2 ? n - 1 - i : (i * 7 + round) % n], 1);
        void *whole = take(pool, SLAB_BYTES);
        assert(seen.mapped == 1);
        sx_pool_free(pool, whole, SLAB_BYTES);
    }
    void *large = take(pool, SLAB_BYTES + 1);
    assert(seen.bytes == SLAB_BYTES + SLAB_BYTES + SX_SLAB_ALIGNMENT);
    sx_pool_free(pool, large, SLAB_BYTES + 1);
    destroy(&seen, pool, budget);
}

static void test_budget(void) {
    struct slabs_seen seen = {0};
    struct sx_pool *budget, *pool = create(&seen, (size_t)16 << 20, &budget);
    struct sx_error error = {0};
    void *first = take(pool, 1 << 20), *second;
    assert(seen.bytes == SX_SLAB_ALIGNMENT); /* small budgets get small slabs */
    assert(sx_pool_alloc(pool, (size_t)15 << 20, &second, &error) == SX_OUT_OF_MEMORY);
    assert(strstr(error.text, "--memory-limit"));
    second = take(pool, (size_t)14 << 20);
    assert(sx_pool_reserve(budget, 1, NULL) == SX_OUT_OF_MEMORY);
    sx_pool_free(pool, second, (size_t)14 << 20);
    assert(seen.mapped == 2);
    assert(sx_pool_reserve(budget, (size_t)14 << 20, NULL) == SX_OK); /* the free slab was given back */
    assert(seen.mapped == 1);
    assert(sx_pool_reserve(budget, 1, NULL) == SX_OUT_OF_MEMORY);
    sx_pool_unreserve(budget, (size_t)14 << 20);
    atomic_store(&seen.refuses, true);
    assert(sx_pool_alloc(pool, (size_t)3 << 20, &second, &error) == SX_OUT_OF_MEMORY);
    assert(sx_pool_usage(budget).used_bytes == SX_SLAB_ALIGNMENT);
    sx_pool_free(pool, first, 1 << 20);
    destroy(&seen, pool, budget);
}

struct worker {
    struct sx_pool *pool, *budget;
    unsigned seed;
};

/* Blocks hold their owner's mark until they are freed. */
static void *work(void *context) {
    struct worker *worker = context;
    unsigned char *blocks[N_BLOCKS] = {0};
    size_t sizes[N_BLOCKS];
    for (int step = 0; step < N_STEPS; step++) {
        const int at = rand_r(&worker->seed) % N_BLOCKS;
        const unsigned char mark = (unsigned char)(worker->seed >> 8);
        if (blocks[at]) {
            const unsigned char *block = blocks[at];
            for (size_t i = 0; i < sizes[at]; i += 4001)
                assert(block[i] == block[0]);
            assert(block[sizes[at] - 1] == block[0]);
            sx_pool_free(worker->pool, blocks[at], sizes[at]);
            blocks[at] = NULL;
            continue;
        }
        const int kind = rand_r(&worker->seed) % 16;
        sizes[at] = 1 + (size_t)rand_r(&worker->seed) % (kind == 0  ? 12u << 20
                                                         : kind < 4 ? 1u << 20
                                                                    : 20000u);
        void *memory;
        if (sx_pool_alloc(worker->pool, sizes[at], &memory, NULL) != SX_OK)
            continue;
        blocks[at] = memory;
        for (size_t i = 0; i < sizes[at]; i += 4001)
            blocks[at][i] = mark;
        blocks[at][0] = blocks[at][sizes[at] - 1] = mark;
        if (step % 64 == 0 && sx_pool_reserve(worker->budget, 64 << 20, NULL) == SX_OK)
            sx_pool_unreserve(worker->budget, 64 << 20);
    }
    for (int i = 0; i < N_BLOCKS; i++)
        sx_pool_free(worker->pool, blocks[i], blocks[i] ? sizes[i] : 0);
    return NULL;
}

static void test_threads(void) {
    struct slabs_seen seen = {0};
    struct sx_pool *budget, *pool = create(&seen, (size_t)128 << 20, &budget);
    struct worker workers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){pool, budget, 77u * (unsigned)i + 1};
        assert(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(sx_pool_usage(budget).peak_bytes <= (size_t)128 << 20);
    destroy(&seen, pool, budget);
}

int main(void) {
    test_joining();
    test_budget();
    test_threads();
    return 0;
}
