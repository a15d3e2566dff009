/* Workers look up some hundred chunks each before they ask for a batch's bytes, all at about the same time.
 * So finding shares the lock: a block's first use since the last change of the cache puts it on a list, and
 * who changes the cache brings the order of use up to date first. */
#include "storage/cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash_table.h"
#include "base/lru.h"

struct block;

struct entry {
    struct sx_hash_link link; /* first */
    struct entry *sibling;
    struct block *block;
    struct sx_chunk_place place;
    const uint8_t *bytes;
    struct sx_cached_pages *pages; /* NULL: not known */
    uint64_t id;
};

/* A buffer with the entries that are in it. */
struct block {
    struct sx_lru_link use; /* first */
    struct sx_buffer *buffer;
    struct entry *entries;
    size_t bytes;
    struct block *next_evicted;
    atomic_bool is_used; /* on the cache's list, by: */
    struct block *next_used;
};

struct sx_chunk_cache {
    struct sx_pool *budget;
    struct sx_reclaimer reclaimer;
    size_t limit_bytes;
    pthread_rwlock_t lock; /* no buffer is released while it is held */
    struct sx_hash_table entries;
    struct sx_lru blocks;         /* in the order of use, but for: */
    _Atomic(struct block *) used; /* those used since, the last one first */
    size_t held_bytes;
    atomic_int_fast64_t n_hits, n_misses, hit_bytes;
};

/* ---- entries ---- */

static uint64_t new_id(void) {
    static atomic_uint_fast64_t last_id;
    return atomic_fetch_add(&last_id, 1) + 1;
}

static uint64_t hash_place(const struct sx_chunk_place *place) {
    uint64_t hash = sx_hash_mix(place->file.device, place->file.inode);
    hash = sx_hash_mix(hash, (uint64_t)place->file.modified_ns);
    hash = sx_hash_mix(hash, (uint64_t)place->file.size_bytes);
    hash = sx_hash_mix(hash, (uint64_t)place->offset);
    return sx_hash_mix(hash, (uint64_t)place->length_bytes);
}

static bool same_place(const struct sx_chunk_place *a, const struct sx_chunk_place *b) {
    return a->offset == b->offset && a->length_bytes == b->length_bytes &&
           sx_file_stamp_equal(&a->file, &b->file);
}

static struct entry *find_entry(const struct sx_chunk_cache *cache, const struct sx_chunk_place *place) {
    struct sx_hash_link *link = sx_hash_table_find(&cache->entries, hash_place(place));
    while (link && !same_place(&((struct entry *)link)->place, place))
        link = sx_hash_table_next(link);
    return (struct entry *)link;
}

/* ---- order of use ---- */

/* With the lock shared: nothing leaves the list meanwhile. */
static void note_use(struct sx_chunk_cache *cache, struct block *block) {
    if (atomic_load_explicit(&block->is_used, memory_order_relaxed) || atomic_exchange(&block->is_used, true))
        return;
    block->next_used = atomic_load(&cache->used);
    while (!atomic_compare_exchange_weak(&cache->used, &block->next_used, block)) {}
}

/* With the lock for changes. */
static void settle_uses(struct sx_chunk_cache *cache) {
    struct block *in_order = NULL;
    for (struct block *block = atomic_exchange(&cache->used, NULL), *next; block; block = next) {
        next = block->next_used;
        block->next_used = in_order;
        in_order = block;
    }
    for (struct block *block = in_order; block; block = block->next_used) {
        sx_lru_touch(&cache->blocks, &block->use);
        atomic_store(&block->is_used, false);
    }
}

static void lock_for_change(struct sx_chunk_cache *cache) {
    pthread_rwlock_wrlock(&cache->lock);
    settle_uses(cache);
}

/* ---- blocks ---- */

/* With the lock for changes: the block leaves the cache for the list of those to be freed. */
static void evict(struct sx_chunk_cache *cache, struct block *block, struct block **evicted) {
    for (struct entry *entry = block->entries; entry; entry = entry->sibling)
        sx_hash_table_remove(&cache->entries, &entry->link);
    sx_lru_remove(&cache->blocks, &block->use);
    cache->held_bytes -= block->bytes;
    block->next_evicted = *evicted;
    *evicted = block;
}

/* Not under the lock. */
static void free_blocks(struct block *block) {
    while (block) {
        struct block *next = block->next_evicted;
        for (struct entry *entry = block->entries, *sibling; entry; entry = sibling) {
            sibling = entry->sibling;
            sx_cached_pages_release(entry->pages);
            free(entry);
        }
        sx_buffer_release(block->buffer);
        free(block);
        block = next;
    }
}

/* ---- finding and keeping ---- */

/* With the lock shared. */
static bool find(struct sx_chunk_cache *cache, const struct sx_chunk_place *place,
                 struct sx_cached_chunk *out_chunk) {
    const struct entry *entry = find_entry(cache, place);
    if (!entry)
        return false;
    note_use(cache, entry->block);
    if (entry->pages)
        atomic_fetch_add_explicit(&entry->pages->references, 1, memory_order_relaxed);
    *out_chunk = (struct sx_cached_chunk){sx_buffer_retain(entry->block->buffer), entry->bytes, entry->pages,
                                          entry->id};
    return true;
}

int sx_chunk_cache_find(struct sx_chunk_cache *cache, const struct sx_chunk_place *places, int n,
                        struct sx_cached_chunk *out_chunks) {
    int n_found = 0;
    int64_t bytes = 0;
    pthread_rwlock_rdlock(&cache->lock);
    for (int i = 0; i < n; i++) {
        out_chunks[i] = (struct sx_cached_chunk){0};
        if (!find(cache, &places[i], &out_chunks[i]))
            continue;
        n_found++;
        bytes += places[i].length_bytes;
    }
    pthread_rwlock_unlock(&cache->lock);
    atomic_fetch_add_explicit(&cache->n_hits, n_found, memory_order_relaxed);
    atomic_fetch_add_explicit(&cache->n_misses, n - n_found, memory_order_relaxed);
    atomic_fetch_add_explicit(&cache->hit_bytes, bytes, memory_order_relaxed);
    return n_found;
}

bool sx_chunk_cache_has(struct sx_chunk_cache *cache, const struct sx_chunk_place *place) {
    pthread_rwlock_rdlock(&cache->lock);
    const bool has = find_entry(cache, place) != NULL;
    pthread_rwlock_unlock(&cache->lock);
    return has;
}

static bool add_entry(struct sx_chunk_cache *cache, struct block *block, struct sx_cached_part *part) {
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return false;
    part->id = new_id();
    *entry = (struct entry){
        .link.hash = hash_place(&part->place),
        .sibling = block->entries,
        .block = block,
        .place = part->place,
        .bytes = part->bytes,
        .id = part->id,
    };
    block->entries = entry;
    sx_hash_table_add(&cache->entries, &entry->link);
    return true;
}

/* Whether there was one to be added. */
static bool add_entries(struct sx_chunk_cache *cache, struct block *block, struct sx_cached_part *parts,
                        int n_parts) {
    bool has_added = false;
    for (int i = 0; i < n_parts; i++) {
        struct entry *found = find_entry(cache, &parts[i].place);
        if (found)
            parts[i].id = found->id;
        else if (add_entry(cache, block, &parts[i]))
            has_added = true;
        else
            break;
    }
    return has_added;
}

/* The block that has the part, if it is of the buffer. */
static struct block *block_beside(const struct sx_chunk_cache *cache, const struct sx_chunk_place *beside,
                                  const struct sx_buffer *buffer) {
    const struct entry *entry = beside ? find_entry(cache, beside) : NULL;
    return entry && entry->block->buffer == buffer ? entry->block : NULL;
}

static void add_block(struct sx_chunk_cache *cache, struct block *block, struct sx_buffer *buffer,
                      struct block **evicted) {
    block->buffer = sx_buffer_retain(buffer);
    sx_lru_add(&cache->blocks, &block->use);
    cache->held_bytes += block->bytes;
    while (cache->held_bytes > cache->limit_bytes)
        evict(cache, (struct block *)cache->blocks.oldest, evicted);
}

bool sx_chunk_cache_insert(struct sx_chunk_cache *cache, struct sx_buffer *buffer,
                           const struct sx_chunk_place *beside, struct sx_cached_part *parts, int n_parts) {
    struct block *made = calloc(1, sizeof *made), *evicted = NULL;
    for (int i = 0; i < n_parts; i++)
        parts[i].id = 0;
    if (!made || buffer->size_bytes > cache->limit_bytes) {
        free(made);
        return false;
    }
    made->bytes = buffer->size_bytes;
    lock_for_change(cache);
    struct block *block = block_beside(cache, beside, buffer);
    const bool has_added = add_entries(cache, block ? block : made, parts, n_parts);
    if (!block && has_added)
        add_block(cache, made, buffer, &evicted);
    else
        free(made);
    pthread_rwlock_unlock(&cache->lock);
    free_blocks(evicted);
    return has_added;
}

void sx_cached_pages_release(struct sx_cached_pages *pages) {
    if (pages && atomic_fetch_sub_explicit(&pages->references, 1, memory_order_acq_rel) == 1)
        free(pages);
}

void sx_chunk_cache_note_pages(struct sx_chunk_cache *cache, const struct sx_chunk_place *place,
                               const uint8_t *bytes, const struct sx_page *pages, int n_pages) {
    struct sx_cached_pages *made = malloc(sizeof *made + (size_t)n_pages * sizeof *pages);
    if (!made)
        return;
    atomic_init(&made->references, 1);
    made->n_pages = n_pages;
    lock_for_change(cache);
    struct entry *entry = find_entry(cache, place);
    if (entry && !entry->pages) {
        for (int i = 0; i < n_pages; i++) {
            made->pages[i] = pages[i];
            made->pages[i].bytes = entry->bytes + (pages[i].bytes - bytes);
        }
        entry->pages = made;
        made = NULL;
    }
    pthread_rwlock_unlock(&cache->lock);
    sx_cached_pages_release(made);
}

/* Memory that a scan still uses would not come back, so its blocks stay. */
static size_t reclaim(void *context, size_t wanted_bytes) {
    struct sx_chunk_cache *cache = context;
    struct block *evicted = NULL;
    size_t given = 0;
    lock_for_change(cache);
    for (struct sx_lru_link *use = cache->blocks.oldest, *newer; use && given < wanted_bytes; use = newer) {
        struct block *block = (struct block *)use;
        newer = use->newer;
        if (atomic_load_explicit(&block->buffer->references, memory_order_relaxed) > 1)
            continue;
        given += block->bytes;
        evict(cache, block, &evicted);
    }
    pthread_rwlock_unlock(&cache->lock);
    free_blocks(evicted);
    return given;
}

/* ---- life ---- */

enum sx_status sx_chunk_cache_create(struct sx_pool *budget, size_t limit_bytes,
                                     struct sx_chunk_cache **out_cache, struct sx_error *error) {
    struct sx_chunk_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a cache");
    enum sx_status status = sx_hash_table_create(&cache->entries, error);
    if (status != SX_OK) {
        free(cache);
        return status;
    }
    cache->budget = budget;
    cache->limit_bytes = limit_bytes;
    cache->reclaimer = (struct sx_reclaimer){reclaim, cache, NULL};
    pthread_rwlock_init(&cache->lock, NULL);
    sx_pool_add_reclaimer(budget, &cache->reclaimer);
    *out_cache = cache;
    return SX_OK;
}

void sx_chunk_cache_destroy(struct sx_chunk_cache *cache) {
    if (!cache)
        return;
    sx_pool_remove_reclaimer(cache->budget, &cache->reclaimer);
    struct block *evicted = NULL;
    while (cache->blocks.oldest)
        evict(cache, (struct block *)cache->blocks.oldest, &evicted);
    free_blocks(evicted);
    pthread_rwlock_destroy(&cache->lock);
    sx_hash_table_release(&cache->entries);
    free(cache);
}

struct sx_cache_usage sx_chunk_cache_usage(struct sx_chunk_cache *cache) {
    pthread_rwlock_rdlock(&cache->lock);
    const struct sx_cache_usage usage = {
        .held_bytes = cache->held_bytes,
        .limit_bytes = cache->limit_bytes,
        .n_entries = (int64_t)cache->entries.n_links,
        .n_hits = cache->n_hits,
        .n_misses = cache->n_misses,
        .hit_bytes = cache->hit_bytes,
    };
    pthread_rwlock_unlock(&cache->lock);
    return usage;
}
