/* Free runs of pages are kept in lists by size (two-level segregated fit): four lists for each power of two.
 * Notes on runs stand beside the slab, not in it. */
#include "base/slab_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes)   ((void)(memory), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#endif

enum { N_LISTS = 4 * 40, LEAST_SLABS = 32, TRIES = 16 };

/* Pages that are in use or free together: the note of the first page, and `n_pages` at the last one too. */
struct run {
    size_t n_pages;
    bool is_free;
    struct slab *slab;
    struct run *previous, *next; /* of the free runs' list */
};

struct slab {
    char *memory;
    size_t n_pages;
    struct run *runs; /* one for each page */
};

struct slabs {
    struct sx_pool *budget;
    size_t slab_bytes;
    struct sx_slab_source source;
    struct sx_reclaimer reclaimer;
    pthread_mutex_t growing; /* taken before `lock`, and while the budget is asked */
    pthread_mutex_t lock;    /* of what follows; nothing is asked while it is held */
    struct slab **slabs;     /* by address */
    int n_slabs, capacity;
    struct run *lists[N_LISTS];
};

/* ---- lists ---- */

/* Sizes below 8 pages have a list each. */
static int list_of(size_t n_pages) {
    if (n_pages < 8)
        return (int)n_pages;
    int shift = 63 - __builtin_clzll((unsigned long long)n_pages);
    return 4 * shift + (int)(n_pages >> (shift - 2) & 3) - 4;
}

static void enlist(struct slabs *slabs, struct slab *slab, size_t page, size_t n_pages) {
    struct run *run = &slab->runs[page], **head = &slabs->lists[list_of(n_pages)];
    *run = (struct run){.n_pages = n_pages, .is_free = true, .slab = slab, .next = *head};
    if (*head)
        (*head)->previous = run;
    *head = run;
    struct run *last = &slab->runs[page + n_pages - 1];
    last->n_pages = n_pages;
    last->is_free = true;
    ASAN_POISON_MEMORY_REGION(slab->memory + page * SX_SLAB_PAGE_BYTES, n_pages * SX_SLAB_PAGE_BYTES);
}

static void delist(struct slabs *slabs, struct run *run) {
    if (run->previous)
        run->previous->next = run->next;
    else
        slabs->lists[list_of(run->n_pages)] = run->next;
    if (run->next)
        run->next->previous = run->previous;
}

static struct run *find_run(struct slabs *slabs, size_t n_pages) {
    int list = list_of(n_pages), tries = 0;
    for (struct run *run = slabs->lists[list]; run && tries < TRIES; run = run->next, tries++)
        if (run->n_pages >= n_pages)
            return run;
    while (++list < N_LISTS)
        if (slabs->lists[list])
            return slabs->lists[list];
    return NULL;
}

/* ---- pages ---- */

static void mark_used(struct slab *slab, size_t page, size_t n_pages) {
    struct run *first = &slab->runs[page], *last = &slab->runs[page + n_pages - 1];
    *first = (struct run){.n_pages = n_pages, .slab = slab};
    last->n_pages = n_pages;
    last->is_free = false;
    ASAN_UNPOISON_MEMORY_REGION(slab->memory + page * SX_SLAB_PAGE_BYTES, n_pages * SX_SLAB_PAGE_BYTES);
}

static void *cut(struct slabs *slabs, struct run *run, size_t n_pages) {
    struct slab *slab = run->slab;
    const size_t page = (size_t)(run - slab->runs), left = run->n_pages - n_pages;
    delist(slabs, run);
    if (left)
        enlist(slabs, slab, page + n_pages, left);
    mark_used(slab, page, n_pages);
    return slab->memory + page * SX_SLAB_PAGE_BYTES;
}

/* Position of the first slab behind `memory`. */
static int find_place(const struct slabs *slabs, const char *memory) {
    int low = 0, high = slabs->n_slabs;
    while (low < high) {
        int middle = (low + high) / 2;
        if (slabs->slabs[middle]->memory <= memory)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void free_pages(struct slabs *slabs, char *memory) {
    struct slab *slab = slabs->slabs[find_place(slabs, memory) - 1];
    size_t page = (size_t)(memory - slab->memory) / SX_SLAB_PAGE_BYTES, n_pages = slab->runs[page].n_pages;
    if (page > 0 && slab->runs[page - 1].is_free) {
        const size_t before = slab->runs[page - 1].n_pages;
        delist(slabs, &slab->runs[page - before]);
        page -= before;
        n_pages += before;
    }
    const size_t end = page + n_pages;
    if (end < slab->n_pages && slab->runs[end].is_free) {
        n_pages += slab->runs[end].n_pages;
        delist(slabs, &slab->runs[end]);
    }
    enlist(slabs, slab, page, n_pages);
}

/* ---- slabs ---- */

static void unmap(struct slabs *slabs, struct slab *slab) {
    const size_t bytes = slab->n_pages * SX_SLAB_PAGE_BYTES;
    ASAN_UNPOISON_MEMORY_REGION(slab->memory, bytes);
    slabs->source.unmap(slabs->source.context, slab->memory, bytes);
    sx_pool_unreserve(slabs->budget, bytes);
    free(slab->runs);
    free(slab);
}

static struct slab *map(struct slabs *slabs, size_t bytes) {
    struct slab *slab = calloc(1, sizeof *slab);
    if (!slab)
        return NULL;
    slab->n_pages = bytes / SX_SLAB_PAGE_BYTES;
    slab->runs = calloc(slab->n_pages, sizeof *slab->runs);
    if (!slab->runs || sx_pool_reserve(slabs->budget, bytes, NULL) != SX_OK)
        goto fail;
    slab->memory = slabs->source.map(slabs->source.context, bytes);
    if (slab->memory)
        return slab;
    sx_pool_unreserve(slabs->budget, bytes);
fail:
    free(slab->runs);
    free(slab);
    return NULL;
}

/* Under the lock. False: there is no memory for the note. */
static bool add_slab(struct slabs *slabs, struct slab *slab) {
    if (slabs->n_slabs == slabs->capacity) {
        int capacity = slabs->capacity ? 2 * slabs->capacity : 16;
        struct slab **grown = realloc(slabs->slabs, (size_t)capacity * sizeof *grown);
        if (!grown)
            return false;
        slabs->slabs = grown;
        slabs->capacity = capacity;
    }
    int at = find_place(slabs, slab->memory);
    memmove(&slabs->slabs[at + 1], &slabs->slabs[at], (size_t)(slabs->n_slabs - at) * sizeof *slabs->slabs);
    slabs->slabs[at] = slab;
    slabs->n_slabs++;
    enlist(slabs, slab, 0, slab->n_pages);
    return true;
}

/* The slab of that position, if nothing of it is in use, leaves the pool. Under the lock. */
static struct slab *remove_free_slab(struct slabs *slabs, int at) {
    struct slab *slab = slabs->slabs[at];
    if (!slab->runs[0].is_free || slab->runs[0].n_pages != slab->n_pages)
        return NULL;
    delist(slabs, &slab->runs[0]);
    slabs->n_slabs--;
    memmove(&slabs->slabs[at], &slabs->slabs[at + 1], (size_t)(slabs->n_slabs - at) * sizeof *slabs->slabs);
    return slab;
}

static size_t give_back(void *context, size_t wanted_bytes) {
    struct slabs *slabs = context;
    size_t given = 0;
    for (int at = 0; given < wanted_bytes;) {
        struct slab *slab = NULL;
        pthread_mutex_lock(&slabs->lock);
        while (!slab && at < slabs->n_slabs) {
            slab = remove_free_slab(slabs, at);
            at += slab == NULL;
        }
        pthread_mutex_unlock(&slabs->lock);
        if (!slab)
            break;
        given += slab->n_pages * SX_SLAB_PAGE_BYTES;
        unmap(slabs, slab);
    }
    return given;
}

/* ---- the pool's source ---- */

static void *take_pages(struct slabs *slabs, size_t n_pages) {
    pthread_mutex_lock(&slabs->lock);
    struct run *run = find_run(slabs, n_pages);
    void *memory = run ? cut(slabs, run, n_pages) : NULL;
    pthread_mutex_unlock(&slabs->lock);
    return memory;
}

/* While a slab is being made nobody else makes one: it may have room for others too. */
static void *grow(struct slabs *slabs, size_t n_pages) {
    const size_t least =
        (n_pages * SX_SLAB_PAGE_BYTES + SX_SLAB_ALIGNMENT - 1) / SX_SLAB_ALIGNMENT * SX_SLAB_ALIGNMENT;
    pthread_mutex_lock(&slabs->growing);
    void *memory = take_pages(slabs, n_pages);
    struct slab *slab = NULL;
    if (!memory && least < slabs->slab_bytes)
        slab = map(slabs, slabs->slab_bytes);
    if (!memory && !slab)
        slab = map(slabs, least);
    if (slab) {
        pthread_mutex_lock(&slabs->lock);
        bool added = add_slab(slabs, slab);
        if (added)
            memory = cut(slabs, &slab->runs[0], n_pages);
        pthread_mutex_unlock(&slabs->lock);
        if (!added)
            unmap(slabs, slab);
    }
    pthread_mutex_unlock(&slabs->growing);
    return memory;
}

static void *take(void *context, size_t size_bytes) {
    const size_t n_pages = size_bytes / SX_SLAB_PAGE_BYTES;
    void *memory = take_pages(context, n_pages);
    return memory ? memory : grow(context, n_pages);
}

static void give(void *context, void *memory, size_t size_bytes) {
    struct slabs *slabs = context;
    (void)size_bytes;
    pthread_mutex_lock(&slabs->lock);
    free_pages(slabs, memory);
    pthread_mutex_unlock(&slabs->lock);
}

static bool is_pinned(void *context) {
    struct slabs *slabs = context;
    return slabs->source.is_pinned && slabs->source.is_pinned(slabs->source.context);
}

static void close_slabs(void *context) {
    struct slabs *slabs = context;
    sx_pool_remove_reclaimer(slabs->budget, &slabs->reclaimer);
    for (int i = 0; i < slabs->n_slabs; i++)
        unmap(slabs, slabs->slabs[i]);
    free(slabs->slabs);
    if (slabs->source.close)
        slabs->source.close(slabs->source.context);
    pthread_mutex_destroy(&slabs->lock);
    pthread_mutex_destroy(&slabs->growing);
    free(slabs);
}

enum sx_status sx_slab_pool_create(struct sx_pool *budget, size_t slab_bytes, struct sx_slab_source source,
                                   struct sx_pool **out_pool, struct sx_error *error) {
    struct slabs *slabs = calloc(1, sizeof *slabs);
    if (!slabs) {
        if (source.close)
            source.close(source.context);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a memory pool");
    }
    const size_t limit = sx_pool_usage(budget).limit_bytes;
    while (limit && slab_bytes > SX_SLAB_ALIGNMENT && slab_bytes > limit / LEAST_SLABS)
        slab_bytes /= 2;
    slabs->slab_bytes = slab_bytes;
    slabs->budget = budget;
    slabs->source = source;
    slabs->reclaimer = (struct sx_reclaimer){give_back, slabs, NULL};
    pthread_mutex_init(&slabs->growing, NULL);
    pthread_mutex_init(&slabs->lock, NULL);
    sx_pool_add_reclaimer(budget, &slabs->reclaimer);
    const struct sx_pool_source pages = {.take = take,
                                         .give = give,
                                         .context = slabs,
                                         .close = close_slabs,
                                         .is_pinned = is_pinned,
                                         .granule_bytes = SX_SLAB_PAGE_BYTES,
                                         .name = "slab pool (see --memory-limit)"};
    return sx_pool_create_over(0, pages, out_pool, error);
}
