#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Freed blocks of 4 KiB to 16 MiB are kept by size class, because fresh pages cost a fault each. Classes are
 * 2^k and 1.5 * 2^k. Larger and smaller blocks go to the system's allocator. */
enum {
    ALIGNMENT = 64,
    HUGE_PAGE_BYTES = 1 << 21,
    HUGE_BLOCK_BYTES = 1 << 22,
    MIN_CLASS_SHIFT = 12,
    MAX_CLASS_SHIFT = 24,
    N_CLASSES = 2 * (MAX_CLASS_SHIFT - MIN_CLASS_SHIFT) + 1
};

struct free_block {
    struct free_block *next;
};

struct size_class {
    pthread_mutex_t lock;
    struct free_block *head;
};

struct sx_pool {
    size_t limit_bytes;
    atomic_size_t used_bytes;
    atomic_size_t cached_bytes;
    atomic_size_t peak_bytes;
    struct size_class classes[N_CLASSES];
    struct sx_pool_source source; /* take NULL: malloc */
    pthread_mutex_t reclaimers_lock;
    struct sx_reclaimer *reclaimers;
};

static size_t class_bytes(int index) {
    size_t base = (size_t)1 << (MIN_CLASS_SHIFT + index / 2);
    return index % 2 ? base + base / 2 : base;
}

/* The address sanitizer sees more when nothing is kept. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS_NOTHING
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define KEEPS_NOTHING
#endif

/* -1: not kept. */
static int class_of(size_t size_bytes) {
#ifdef KEEPS_NOTHING
    return -1;
#endif
    if (size_bytes <= ((size_t)1 << MIN_CLASS_SHIFT) / 2 || size_bytes > (size_t)1 << MAX_CLASS_SHIFT)
        return -1;
    if (size_bytes <= (size_t)1 << MIN_CLASS_SHIFT)
        return 0;
    int shift = 63 - __builtin_clzll((unsigned long long)(size_bytes - 1));
    size_t base = (size_t)1 << shift;
    int index = 2 * (shift - MIN_CLASS_SHIFT);
    return size_bytes <= base + base / 2 ? index + 1 : index + 2;
}

static size_t charged_bytes(const struct sx_pool *pool, size_t size_bytes) {
    const size_t granule = pool->source.granule_bytes;
    if (granule)
        return size_bytes ? (size_bytes + granule - 1) / granule * granule : granule;
    int index = class_of(size_bytes);
    if (index >= 0)
        return class_bytes(index);
    return size_bytes ? (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
}

enum sx_status sx_pool_create(size_t limit_bytes, struct sx_pool **out_pool, struct sx_error *error) {
    struct sx_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a memory pool");
    pool->limit_bytes = limit_bytes;
    for (int i = 0; i < N_CLASSES; i++)
        pthread_mutex_init(&pool->classes[i].lock, NULL);
    pthread_mutex_init(&pool->reclaimers_lock, NULL);
    *out_pool = pool;
    return SX_OK;
}

enum sx_status sx_pool_create_over(size_t limit_bytes, struct sx_pool_source source,
                                   struct sx_pool **out_pool, struct sx_error *error) {
    enum sx_status status = sx_pool_create(limit_bytes, out_pool, error);
    if (status == SX_OK)
        (*out_pool)->source = source;
    else if (source.close)
        source.close(source.context);
    return status;
}

size_t sx_pool_alignment(const struct sx_pool *pool) {
    return pool->source.granule_bytes > ALIGNMENT ? pool->source.granule_bytes : ALIGNMENT;
}

bool sx_pool_is_pinned(const struct sx_pool *pool) {
    return pool->source.is_pinned && pool->source.is_pinned(pool->source.context);
}

static void drop_cache(struct sx_pool *pool) {
    for (int i = 0; i < N_CLASSES; i++) {
        struct size_class *class = &pool->classes[i];
        pthread_mutex_lock(&class->lock);
        struct free_block *block = class->head;
        class->head = NULL;
        pthread_mutex_unlock(&class->lock);
        while (block) {
            struct free_block *next = block->next;
            free(block);
            atomic_fetch_sub(&pool->cached_bytes, class_bytes(i));
            block = next;
        }
    }
}

void sx_pool_destroy(struct sx_pool *pool) {
    if (!pool)
        return;
    drop_cache(pool);
    for (int i = 0; i < N_CLASSES; i++)
        pthread_mutex_destroy(&pool->classes[i].lock);
    pthread_mutex_destroy(&pool->reclaimers_lock);
    if (pool->source.close)
        pool->source.close(pool->source.context);
    free(pool);
}

/* ---- the budget ---- */

void sx_pool_add_reclaimer(struct sx_pool *pool, struct sx_reclaimer *reclaimer) {
    pthread_mutex_lock(&pool->reclaimers_lock);
    reclaimer->next = pool->reclaimers;
    pool->reclaimers = reclaimer;
    pthread_mutex_unlock(&pool->reclaimers_lock);
}

void sx_pool_remove_reclaimer(struct sx_pool *pool, struct sx_reclaimer *reclaimer) {
    pthread_mutex_lock(&pool->reclaimers_lock);
    struct sx_reclaimer **at = &pool->reclaimers;
    while (*at && *at != reclaimer)
        at = &(*at)->next;
    if (*at)
        *at = reclaimer->next;
    pthread_mutex_unlock(&pool->reclaimers_lock);
}

/* Asks everyone once; false: nobody gave anything. */
static bool reclaim(struct sx_pool *pool, size_t wanted_bytes) {
    size_t given = 0;
    pthread_mutex_lock(&pool->reclaimers_lock);
    for (struct sx_reclaimer *one = pool->reclaimers; one; one = one->next)
        given += one->reclaim(one->context, wanted_bytes);
    pthread_mutex_unlock(&pool->reclaimers_lock);
    return given > 0;
}

static void note_peak(struct sx_pool *pool, size_t used) {
    size_t peak = atomic_load_explicit(&pool->peak_bytes, memory_order_relaxed);
    while (used > peak && !atomic_compare_exchange_weak(&pool->peak_bytes, &peak, used)) {}
}

static enum sx_status charge(struct sx_pool *pool, size_t bytes, struct sx_error *error) {
    size_t used;
    while (used = atomic_fetch_add(&pool->used_bytes, bytes) + bytes,
           pool->limit_bytes && used > pool->limit_bytes) {
        atomic_fetch_sub(&pool->used_bytes, bytes);
        if (bytes <= pool->limit_bytes && reclaim(pool, bytes))
            continue;
        return sx_error_set(error, SX_OUT_OF_MEMORY,
                            "out of memory: %zu bytes asked, %zu in use, limit %zu (see --memory-limit)",
                            bytes, used - bytes, pool->limit_bytes);
    }
    note_peak(pool, used);
    return SX_OK;
}

static void *take_cached(struct sx_pool *pool, int index) {
    struct size_class *class = &pool->classes[index];
    pthread_mutex_lock(&class->lock);
    struct free_block *block = class->head;
    if (block)
        class->head = block->next;
    pthread_mutex_unlock(&class->lock);
    if (block)
        atomic_fetch_sub(&pool->cached_bytes, class_bytes(index));
    return block;
}

/* Blocks from HUGE_BLOCK_BYTES on ask for huge pages: a fault and a TLB entry per 2 MiB instead of per 4 KiB.
 */
static void *take_fresh(size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_BLOCK_BYTES) {
        void *memory = NULL;
        if (posix_memalign(&memory, HUGE_PAGE_BYTES, bytes) != 0)
            return NULL;
        madvise(memory, bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_HUGEPAGE);
        return memory;
    }
#endif
    return aligned_alloc(ALIGNMENT, bytes);
}

enum sx_status sx_pool_alloc(struct sx_pool *pool, size_t size_bytes, void **out_memory,
                             struct sx_error *error) {
    if (size_bytes > SIZE_MAX / 2)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: %zu bytes asked", size_bytes);
    size_t bytes = charged_bytes(pool, size_bytes);
    SX_TRY(charge(pool, bytes, error));
    int index = class_of(size_bytes);
    void *memory = NULL;
    if (pool->source.take)
        memory = pool->source.take(pool->source.context, bytes);
    else if (index >= 0)
        memory = take_cached(pool, index);
    if (!memory && !pool->source.take) {
        /* Kept blocks count as resident: together with what is used they stay below the limit. */
        if (pool->limit_bytes &&
            atomic_load(&pool->cached_bytes) + atomic_load(&pool->used_bytes) > pool->limit_bytes)
            drop_cache(pool);
        memory = take_fresh(bytes);
    }
    if (!memory) {
        atomic_fetch_sub(&pool->used_bytes, bytes);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: the %s refused %zu bytes",
                            pool->source.name   ? pool->source.name
                            : pool->source.take ? "device"
                                                : "system",
                            bytes);
    }
    *out_memory = memory;
    return SX_OK;
}

void sx_pool_free(struct sx_pool *pool, void *memory, size_t size_bytes) {
    if (!memory)
        return;
    const size_t bytes = charged_bytes(pool, size_bytes);
    atomic_fetch_sub(&pool->used_bytes, bytes);
    if (pool->source.take) {
        pool->source.give(pool->source.context, memory, bytes);
        return;
    }
    int index = class_of(size_bytes);
    if (index < 0) {
        free(memory);
        return;
    }
    struct size_class *class = &pool->classes[index];
    struct free_block *block = memory;
    atomic_fetch_add(&pool->cached_bytes, class_bytes(index));
    pthread_mutex_lock(&class->lock);
    block->next = class->head;
    class->head = block;
    pthread_mutex_unlock(&class->lock);
}

enum sx_status sx_pool_resize(struct sx_pool *pool, void **memory, size_t old_bytes, size_t new_bytes,
                              struct sx_error *error) {
    if (*memory && charged_bytes(pool, old_bytes) == charged_bytes(pool, new_bytes))
        return SX_OK;
    void *fresh = NULL;
    SX_TRY(sx_pool_alloc(pool, new_bytes, &fresh, error));
    size_t kept = old_bytes < new_bytes ? old_bytes : new_bytes;
    if (*memory && kept)
        memcpy(fresh, *memory, kept);
    sx_pool_free(pool, *memory, old_bytes);
    *memory = fresh;
    return SX_OK;
}

enum sx_status sx_pool_reserve(struct sx_pool *pool, size_t size_bytes, struct sx_error *error) {
    return charge(pool, size_bytes, error);
}

void sx_pool_unreserve(struct sx_pool *pool, size_t size_bytes) {
    atomic_fetch_sub(&pool->used_bytes, size_bytes);
}

struct sx_pool_usage sx_pool_usage(struct sx_pool *pool) {
    return (struct sx_pool_usage){
        .used_bytes = atomic_load(&pool->used_bytes),
        .cached_bytes = atomic_load(&pool->cached_bytes),
        .peak_bytes = atomic_load(&pool->peak_bytes),
        .limit_bytes = pool->limit_bytes,
    };
}
