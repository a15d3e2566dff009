#include "storage/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 1024 };

struct block;

struct entry {
    struct entry *next; /* of the bucket */
    struct entry *sibling;
    struct block *block;
    struct sx_chunk_place place;
    const uint8_t *bytes;
    uint64_t hash;
    uint64_t id;
};

/* A buffer, and the list of blocks from the most to the least recently used. */
struct block {
    struct block *newer, *older;
    struct sx_buffer *buffer;
    struct entry *entries;
    size_t bytes;
};

struct sx_chunk_cache {
    struct sx_pool *budget;
    struct sx_reclaimer reclaimer;
    size_t limit_bytes;
    pthread_mutex_t lock; /* no buffer is released while it is held */
    struct entry **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_entries;
    struct block *newest, *oldest;
    size_t held_bytes;
    uint64_t last_id;
    int64_t n_hits, n_misses, hit_bytes;
};

/* ---- entries ---- */

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t hash_place(const struct sx_chunk_place *place) {
    uint64_t hash = mix(place->file.device, place->file.inode);
    hash = mix(hash, (uint64_t)place->file.modified_ns);
    hash = mix(hash, (uint64_t)place->file.size_bytes);
    hash = mix(hash, (uint64_t)place->offset);
    return mix(hash, (uint64_t)place->length_bytes);
}

static bool same_place(const struct sx_chunk_place *a, const struct sx_chunk_place *b) {
    return a->offset == b->offset && a->length_bytes == b->length_bytes &&
           sx_file_stamp_equal(&a->file, &b->file);
}

static struct entry *find_entry(const struct sx_chunk_cache *cache, const struct sx_chunk_place *place) {
    const uint64_t hash = hash_place(place);
    struct entry *entry = cache->buckets[hash & (cache->n_buckets - 1)];
    while (entry && (entry->hash != hash || !same_place(&entry->place, place)))
        entry = entry->next;
    return entry;
}

static void link_entry(struct sx_chunk_cache *cache, struct entry *entry) {
    struct entry **bucket = &cache->buckets[entry->hash & (cache->n_buckets - 1)];
    entry->next = *bucket;
    *bucket = entry;
}

static void unlink_entry(struct sx_chunk_cache *cache, const struct entry *entry) {
    struct entry **at = &cache->buckets[entry->hash & (cache->n_buckets - 1)];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
}

/* Longer chains do no harm where there is no memory for more buckets. */
static void grow_buckets(struct sx_chunk_cache *cache) {
    const size_t n_old = cache->n_buckets;
    struct entry **old = cache->buckets;
    struct entry **grown = calloc(2 * n_old, sizeof *grown);
    if (!grown)
        return;
    cache->buckets = grown;
    cache->n_buckets = 2 * n_old;
    for (size_t b = 0; b < n_old; b++)
        for (struct entry *entry = old[b], *next; entry; entry = next) {
            next = entry->next;
            link_entry(cache, entry);
        }
    free(old);
}

/* ---- blocks: under the lock ---- */

static void link_newest(struct sx_chunk_cache *cache, struct block *block) {
    block->newer = NULL;
    block->older = cache->newest;
    if (cache->newest)
        cache->newest->newer = block;
    else
        cache->oldest = block;
    cache->newest = block;
}

static void unlink_block(struct sx_chunk_cache *cache, struct block *block) {
    if (block->newer)
        block->newer->older = block->older;
    else
        cache->newest = block->older;
    if (block->older)
        block->older->newer = block->newer;
    else
        cache->oldest = block->newer;
}

/* The block leaves the cache for the list of those to be freed. */
static void evict(struct sx_chunk_cache *cache, struct block *block, struct block **evicted) {
    for (struct entry *entry = block->entries; entry; entry = entry->sibling) {
        unlink_entry(cache, entry);
        cache->n_entries--;
    }
    unlink_block(cache, block);
    cache->held_bytes -= block->bytes;
    block->older = *evicted;
    *evicted = block;
}

/* Not under the lock. */
static void free_blocks(struct block *block) {
    while (block) {
        struct block *next = block->older;
        for (struct entry *entry = block->entries, *sibling; entry; entry = sibling) {
            sibling = entry->sibling;
            free(entry);
        }
        sx_buffer_release(block->buffer);
        free(block);
        block = next;
    }
}

/* ---- finding and keeping ---- */

bool sx_chunk_cache_find(struct sx_chunk_cache *cache, const struct sx_chunk_place *place,
                         struct sx_cached_chunk *out_chunk) {
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = find_entry(cache, place);
    if (entry) {
        struct block *block = entry->block;
        unlink_block(cache, block);
        link_newest(cache, block);
        cache->n_hits++;
        cache->hit_bytes += place->length_bytes;
        *out_chunk = (struct sx_cached_chunk){sx_buffer_retain(block->buffer), entry->bytes, entry->id};
    } else {
        cache->n_misses++;
    }
    pthread_mutex_unlock(&cache->lock);
    return entry != NULL;
}

static bool add_entry(struct sx_chunk_cache *cache, struct block *block, struct sx_cached_part *part) {
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return false;
    part->id = ++cache->last_id;
    *entry = (struct entry){
        .sibling = block->entries,
        .block = block,
        .place = part->place,
        .bytes = part->bytes,
        .hash = hash_place(&part->place),
        .id = part->id,
    };
    block->entries = entry;
    if (cache->n_entries >= cache->n_buckets)
        grow_buckets(cache);
    link_entry(cache, entry);
    cache->n_entries++;
    return true;
}

void sx_chunk_cache_insert(struct sx_chunk_cache *cache, struct sx_buffer *buffer,
                           struct sx_cached_part *parts, int n_parts) {
    struct block *block = calloc(1, sizeof *block), *evicted = NULL;
    for (int i = 0; i < n_parts; i++)
        parts[i].id = 0;
    if (!block || buffer->size_bytes > cache->limit_bytes) {
        free(block);
        return;
    }
    block->bytes = buffer->size_bytes;
    pthread_mutex_lock(&cache->lock);
    for (int i = 0; i < n_parts; i++) {
        struct entry *found = find_entry(cache, &parts[i].place);
        if (found)
            parts[i].id = found->id;
        else if (!add_entry(cache, block, &parts[i]))
            break;
    }
    if (block->entries) {
        block->buffer = sx_buffer_retain(buffer);
        link_newest(cache, block);
        cache->held_bytes += block->bytes;
        while (cache->held_bytes > cache->limit_bytes)
            evict(cache, cache->oldest, &evicted);
    } else {
        free(block);
    }
    pthread_mutex_unlock(&cache->lock);
    free_blocks(evicted);
}

/* Memory that a scan still uses would not come back, so its blocks stay. */
static size_t reclaim(void *context, size_t wanted_bytes) {
    struct sx_chunk_cache *cache = context;
    struct block *evicted = NULL;
    size_t given = 0;
    pthread_mutex_lock(&cache->lock);
    for (struct block *block = cache->oldest, *newer; block && given < wanted_bytes; block = newer) {
        newer = block->newer;
        if (atomic_load_explicit(&block->buffer->references, memory_order_relaxed) > 1)
            continue;
        given += block->bytes;
        evict(cache, block, &evicted);
    }
    pthread_mutex_unlock(&cache->lock);
    free_blocks(evicted);
    return given;
}

/* ---- life ---- */

enum sx_status sx_chunk_cache_create(struct sx_pool *budget, size_t limit_bytes,
                                     struct sx_chunk_cache **out_cache, struct sx_error *error) {
    struct sx_chunk_cache *cache = calloc(1, sizeof *cache);
    struct entry **buckets = calloc(FIRST_BUCKETS, sizeof *buckets);
    if (!cache || !buckets) {
        free(cache);
        free(buckets);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a cache");
    }
    cache->budget = budget;
    cache->limit_bytes = limit_bytes;
    cache->buckets = buckets;
    cache->n_buckets = FIRST_BUCKETS;
    cache->reclaimer = (struct sx_reclaimer){reclaim, cache, NULL};
    pthread_mutex_init(&cache->lock, NULL);
    sx_pool_add_reclaimer(budget, &cache->reclaimer);
    *out_cache = cache;
    return SX_OK;
}

void sx_chunk_cache_destroy(struct sx_chunk_cache *cache) {
    if (!cache)
        return;
    sx_pool_remove_reclaimer(cache->budget, &cache->reclaimer);
    free_blocks(cache->newest);
    pthread_mutex_destroy(&cache->lock);
    free(cache->buckets);
    free(cache);
}

struct sx_chunk_cache_usage sx_chunk_cache_usage(struct sx_chunk_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    const struct sx_chunk_cache_usage usage = {
        .held_bytes = cache->held_bytes,
        .limit_bytes = cache->limit_bytes,
        .n_chunks = (int64_t)cache->n_entries,
        .n_hits = cache->n_hits,
        .n_misses = cache->n_misses,
        .hit_bytes = cache->hit_bytes,
    };
    pthread_mutex_unlock(&cache->lock);
    return usage;
}
