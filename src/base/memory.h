/* Pool of memory with a budget. Every tensor, table and queue of a query takes its bytes here.
 * Thread-safe. */
#ifndef SX_BASE_MEMORY_H
#define SX_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct sx_pool;

/* `limit_bytes` 0: no limit but the system's. */
SX_MUST_CHECK enum sx_status sx_pool_create(size_t limit_bytes, struct sx_pool **out_pool,
                                            struct sx_error *error);

/* Memory that is not malloc's: a device's, or pinned. */
struct sx_pool_source {
    /* NULL: there is no more. */
    void *(*take)(void *context, size_t size_bytes);
    void (*give)(void *context, void *memory, size_t size_bytes);
    void *context;
    void (*close)(void *context);     /* at sx_pool_destroy; may be NULL */
    bool (*is_pinned)(void *context); /* NULL: it is not */
    size_t granule_bytes; /* sizes and addresses are multiples of it; 0: sizes are the pool's size classes */
    const char *name;     /* who refused, for messages; NULL: "device" */
};

/* A pool over `source`, whose memory the host need not be able to touch; sx_pool_resize is not for memory
 * that it can't. The source is closed when this fails, too. */
SX_MUST_CHECK enum sx_status sx_pool_create_over(size_t limit_bytes, struct sx_pool_source source,
                                                 struct sx_pool **out_pool, struct sx_error *error);

/* Everything taken from the pool has to be given back before. NULL allowed. */
void sx_pool_destroy(struct sx_pool *pool);

/* Whether copies between this memory and a device need no staging: it is page-locked. May turn false while
 * the pool grows, when the system refuses to lock more. */
bool sx_pool_is_pinned(const struct sx_pool *pool);

/* Of the memory that sx_pool_alloc gives: 64 bytes, or more. */
size_t sx_pool_alignment(const struct sx_pool *pool);

/* Memory aligned to 64 bytes, not zeroed; size 0 gives a valid pointer. Past the limit: SX_OUT_OF_MEMORY, and
 * the text says how much was asked, used and allowed. */
SX_MUST_CHECK enum sx_status sx_pool_alloc(struct sx_pool *pool, size_t size_bytes, void **out_memory,
                                           struct sx_error *error);

/* `size_bytes` is what was asked for. `memory` may be NULL. */
void sx_pool_free(struct sx_pool *pool, void *memory, size_t size_bytes);

/* Grows or shrinks, keeping the contents; on failure *memory stays as it was. */
SX_MUST_CHECK enum sx_status sx_pool_resize(struct sx_pool *pool, void **memory, size_t old_bytes,
                                            size_t new_bytes, struct sx_error *error);

/* Accounts for memory that a library allocates itself. */
SX_MUST_CHECK enum sx_status sx_pool_reserve(struct sx_pool *pool, size_t size_bytes, struct sx_error *error);
void sx_pool_unreserve(struct sx_pool *pool, size_t size_bytes);

/* Somebody who holds memory of a pool that can be done without: a cache. `reclaim` is called, from any
 * thread, before the pool refuses `wanted_bytes`; it gives back about as much and returns what it gave, or 0.
 * It must take no memory of the pool, and wait for nobody who does. */
struct sx_reclaimer {
    size_t (*reclaim)(void *context, size_t wanted_bytes);
    void *context;
    struct sx_reclaimer *next; /* the pool's */
};
/* The last one added is asked first. Remove waits until it is not being asked. */
void sx_pool_add_reclaimer(struct sx_pool *pool, struct sx_reclaimer *reclaimer);
void sx_pool_remove_reclaimer(struct sx_pool *pool, struct sx_reclaimer *reclaimer);

/* What a cache holds, and how often it was asked. */
struct sx_cache_usage {
    size_t held_bytes;
    size_t limit_bytes;
    int64_t n_entries;
    int64_t n_hits, n_misses;
    int64_t hit_bytes; /* that were found, as they are stored in files */
    /* Of a device's, besides: decoded columns that it has, and how often a column was taken from them. */
    size_t values_bytes;
    int64_t n_values_taken;
};

struct sx_pool_usage {
    size_t used_bytes;
    size_t cached_bytes; /* free, kept for the next allocation; given up before the limit refuses */
    size_t peak_bytes;   /* highest used_bytes */
    size_t limit_bytes;
};
struct sx_pool_usage sx_pool_usage(struct sx_pool *pool);

#endif
