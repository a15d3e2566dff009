/* A pool that cuts its blocks from large slabs, for memory that is slow to make: page-locked memory above
 * all. Blocks are whole pages of 4 KiB, so they are fit for direct I/O; free neighbours become one again, and
 * freed memory stays with the pool until the budget is short. */
#ifndef SX_BASE_SLAB_POOL_H
#define SX_BASE_SLAB_POOL_H

#include "base/memory.h"

enum { SX_SLAB_PAGE_BYTES = 4096, SX_SLAB_ALIGNMENT = 2 << 20 };

/* Where slabs come from. Called from any thread. */
struct sx_slab_source {
    /* `size_bytes` is a multiple of SX_SLAB_ALIGNMENT, the result aligned to it or to a page. NULL: refused.
     */
    void *(*map)(void *context, size_t size_bytes);
    void (*unmap)(void *context, void *memory, size_t size_bytes);
    void (*close)(void *context);     /* may be NULL */
    bool (*is_pinned)(void *context); /* NULL: it is not */
    void *context;
};

/* Slabs of `slab_bytes` (less where the budget is small, more for a large block) are charged to `budget`,
 * which outlives the pool, and are given back to it when others need the memory and nothing of a slab is in
 * use. What the budget or the source refuses is SX_OUT_OF_MEMORY. The source is closed when this fails, too.
 */
SX_MUST_CHECK enum sx_status sx_slab_pool_create(struct sx_pool *budget, size_t slab_bytes,
                                                 struct sx_slab_source source, struct sx_pool **out_pool,
                                                 struct sx_error *error);

#endif
