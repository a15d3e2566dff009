/* Page-locked host memory for what is read from files: slabs of huge pages, registered with the runtime. That
 * is several times as fast as cudaHostAlloc, which locks pages of 4 KiB one by one. */
#include <stdlib.h>
#include <sys/mman.h>

#include "backend/cuda/cuda.h"
#include "base/huge_pages.h"

enum { SLAB_BYTES = 64 << 20 };

struct pinned {
    int ordinal;
    atomic_bool was_refused; /* some slab is not locked, and no more will be tried */
    pthread_mutex_t lock;
    void **pageable; /* those slabs */
    int n_pageable;
};

static bool lock_memory(struct pinned *pinned, void *memory, size_t bytes) {
    if (atomic_load(&pinned->was_refused))
        return false;
    if (cuda_choose_device(pinned->ordinal) == cudaSuccess &&
        cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess)
        return true;
    (void)cudaGetLastError();
    return false;
}

static bool note_pageable(struct pinned *pinned, void *memory) {
    pthread_mutex_lock(&pinned->lock);
    atomic_store(&pinned->was_refused, true);
    void **grown = realloc(pinned->pageable, ((size_t)pinned->n_pageable + 1) * sizeof *grown);
    if (grown) {
        pinned->pageable = grown;
        grown[pinned->n_pageable++] = memory;
    }
    pthread_mutex_unlock(&pinned->lock);
    return grown != NULL;
}

/* Whether it was noted; the note is gone then. */
static bool forget_pageable(struct pinned *pinned, const void *memory) {
    bool found = false;
    pthread_mutex_lock(&pinned->lock);
    for (int i = 0; i < pinned->n_pageable && !found; i++) {
        found = pinned->pageable[i] == memory;
        if (found)
            pinned->pageable[i] = pinned->pageable[--pinned->n_pageable];
    }
    pthread_mutex_unlock(&pinned->lock);
    return found;
}

static void *map(void *context, size_t size_bytes) {
    struct pinned *pinned = context;
    void *memory = sx_huge_pages_map(size_bytes);
    if (!memory)
        return NULL;
    /* All faults at once; a kernel that can't has them when the pages are locked. */
    (void)madvise(memory, size_bytes, MADV_POPULATE_WRITE);
    if (lock_memory(pinned, memory, size_bytes) || note_pageable(pinned, memory))
        return memory;
    sx_huge_pages_unmap(memory, size_bytes);
    return NULL;
}

static void unmap(void *context, void *memory, size_t size_bytes) {
    if (!forget_pageable(context, memory) && cudaHostUnregister(memory) != cudaSuccess)
        (void)cudaGetLastError();
    sx_huge_pages_unmap(memory, size_bytes);
}

static bool is_pinned(void *context) {
    struct pinned *pinned = context;
    return !atomic_load_explicit(&pinned->was_refused, memory_order_relaxed);
}

static void close_pinned(void *context) {
    struct pinned *pinned = context;
    pthread_mutex_destroy(&pinned->lock);
    free(pinned->pageable);
    free(pinned);
}

enum sx_status sx_cuda_io_pool_create(const struct sx_backend *backend, struct sx_pool *budget,
                                      struct sx_pool **out_pool, struct sx_error *error) {
    const struct cuda_device *device = (const struct cuda_device *)backend;
    struct pinned *pinned = calloc(1, sizeof *pinned);
    if (!pinned)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a memory pool");
    pinned->ordinal = device->ordinal;
    pthread_mutex_init(&pinned->lock, NULL);
    const struct sx_slab_source source = {map, unmap, close_pinned, is_pinned, pinned};
    return sx_slab_pool_create(budget, SLAB_BYTES, source, out_pool, error);
}
