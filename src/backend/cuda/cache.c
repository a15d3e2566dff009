#include "backend/cuda/cache.h"

#include <stdlib.h>

struct cuda_cache {
    pthread_mutex_t lock; /* no image is released while it is held */
    size_t limit_bytes;   /* 0: nothing is kept */
    size_t values_limit_bytes;
    struct sx_hash_table images;
    struct sx_lru order;
    size_t held_bytes, values_bytes;
    int64_t n_hits, n_misses, hit_bytes, n_values_taken;
};

/* ---- images ---- */

void cuda_image_release(struct cuda_image *image) {
    if (!image || atomic_fetch_sub_explicit(&image->references, 1, memory_order_acq_rel) != 1)
        return;
    sx_buffer_release(image->buffer);
    sx_buffer_release(image->values_buffer);
    free(image->pages);
    free(image);
}

static struct cuda_image *used_by(struct sx_lru_link *use) {
    return (struct cuda_image *)((char *)use - offsetof(struct cuda_image, use));
}

/* A column's strings may lead into the buffer when the image itself is not in use. */
static bool is_in_use(const struct cuda_image *image) {
    return atomic_load_explicit(&image->references, memory_order_relaxed) > 1 ||
           atomic_load_explicit(&image->buffer->references, memory_order_relaxed) > 1;
}

/* ---- under the lock ---- */

static struct cuda_image *find(const struct cuda_cache *cache, uint64_t id) {
    struct sx_hash_link *link = sx_hash_table_find(&cache->images, sx_hash_mix(0, id));
    while (link && ((struct cuda_image *)link)->id != id)
        link = sx_hash_table_next(link);
    return (struct cuda_image *)link;
}

/* The image leaves the cache for the list of those to be released. */
static void evict(struct cuda_cache *cache, struct cuda_image *image, struct cuda_image **evicted) {
    sx_hash_table_remove(&cache->images, &image->link);
    sx_lru_remove(&cache->order, &image->use);
    cache->held_bytes -= image->buffer->size_bytes;
    cache->values_bytes -= image->values_bytes;
    image->next_evicted = *evicted;
    *evicted = image;
}

static void evict_above(struct cuda_cache *cache, size_t limit_bytes, struct cuda_image **evicted) {
    while (cache->held_bytes > limit_bytes)
        evict(cache, used_by(cache->order.oldest), evicted);
}

/* Not under the lock. */
static void release_evicted(struct cuda_image *image) {
    while (image) {
        struct cuda_image *next = image->next_evicted;
        cuda_image_release(image);
        image = next;
    }
}

/* ---- finding and keeping ---- */

bool cuda_cache_takes(struct cuda_cache *cache, size_t bytes) {
    pthread_mutex_lock(&cache->lock);
    const bool takes = bytes <= cache->limit_bytes;
    pthread_mutex_unlock(&cache->lock);
    return takes;
}

bool cuda_cache_takes_values(struct cuda_cache *cache, size_t bytes) {
    pthread_mutex_lock(&cache->lock);
    const bool takes = cache->values_bytes + bytes <= cache->values_limit_bytes;
    pthread_mutex_unlock(&cache->lock);
    return takes;
}

bool cuda_cache_has(struct cuda_cache *cache, uint64_t id) {
    pthread_mutex_lock(&cache->lock);
    const bool has = find(cache, id) != NULL;
    pthread_mutex_unlock(&cache->lock);
    return has;
}

struct cuda_image *cuda_cache_find(struct cuda_cache *cache, uint64_t id) {
    struct cuda_image *evicted = NULL;
    pthread_mutex_lock(&cache->lock);
    struct cuda_image *image = find(cache, id);
    if (image) {
        sx_lru_touch(&cache->order, &image->use);
        cuda_image_retain(image);
        cache->n_hits++;
        cache->hit_bytes += (int64_t)image->span_bytes;
        if (image->n_left > 0 && --image->n_left == 0)
            evict(cache, image, &evicted);
    } else {
        cache->n_misses++;
    }
    pthread_mutex_unlock(&cache->lock);
    release_evicted(evicted);
    return image;
}

void cuda_cache_note_taken(struct cuda_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    cache->n_values_taken++;
    pthread_mutex_unlock(&cache->lock);
}

/* Under the lock: no longer the image's; to be released without it. */
static struct sx_buffer *take_values(struct cuda_cache *cache, struct cuda_image *image) {
    struct sx_buffer *values = image->values_buffer;
    cache->values_bytes -= image->values_bytes;
    image->values_buffer = NULL;
    image->values = NULL;
    image->values_bytes = 0;
    return values;
}

void cuda_cache_insert(struct cuda_cache *cache, struct cuda_stream *stream, struct cuda_image *image) {
    struct cuda_image *evicted = NULL;
    struct sx_buffer *values = NULL;
    cuda_share(stream, image->buffer->data);
    if (image->values)
        cuda_share(stream, image->values_buffer->data);
    pthread_mutex_lock(&cache->lock);
    if (image->buffer->size_bytes <= cache->limit_bytes && !find(cache, image->id)) {
        cache->values_bytes += image->values_bytes;
        if (cache->values_bytes > cache->values_limit_bytes)
            values = take_values(cache, image);
        image->link.hash = sx_hash_mix(0, image->id);
        sx_hash_table_add(&cache->images, &image->link);
        sx_lru_add(&cache->order, &image->use);
        cache->held_bytes += image->buffer->size_bytes;
        cuda_image_retain(image);
        evict_above(cache, cache->limit_bytes, &evicted);
    }
    pthread_mutex_unlock(&cache->lock);
    release_evicted(evicted);
    sx_buffer_release(values);
}

/* Of images that nobody has but the cache. Some at a time: they are released without the lock. */
static size_t reclaim_values(struct cuda_cache *cache, size_t wanted_bytes) {
    enum { MOST = 64 };
    struct sx_buffer *given_up[MOST];
    size_t given = 0;
    int n;
    do {
        n = 0;
        pthread_mutex_lock(&cache->lock);
        cache->values_limit_bytes = 0;
        for (struct sx_lru_link *use = cache->order.oldest; use && n < MOST && given < wanted_bytes;
             use = use->newer) {
            struct cuda_image *image = used_by(use);
            if (!image->values || atomic_load_explicit(&image->references, memory_order_acquire) > 1)
                continue;
            given += image->values_bytes;
            given_up[n++] = take_values(cache, image);
        }
        pthread_mutex_unlock(&cache->lock);
        for (int i = 0; i < n; i++)
            sx_buffer_release(given_up[i]);
    } while (n == MOST);
    return given;
}

static size_t reclaim_images(struct cuda_cache *cache, size_t wanted_bytes) {
    struct cuda_image *evicted = NULL;
    size_t given = 0;
    pthread_mutex_lock(&cache->lock);
    for (struct sx_lru_link *use = cache->order.oldest, *newer; use && given < wanted_bytes; use = newer) {
        struct cuda_image *image = used_by(use);
        newer = use->newer;
        if (is_in_use(image))
            continue;
        given += image->buffer->size_bytes;
        evict(cache, image, &evicted);
    }
    pthread_mutex_unlock(&cache->lock);
    release_evicted(evicted);
    return given;
}

size_t cuda_cache_reclaim(struct cuda_cache *cache, size_t wanted_bytes) {
    const size_t given = reclaim_values(cache, wanted_bytes);
    return given > 0 ? given : reclaim_images(cache, wanted_bytes);
}

/* ---- life ---- */

enum sx_status cuda_cache_create(struct cuda_cache **out_cache, struct sx_error *error) {
    struct cuda_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a device's cache");
    enum sx_status status = sx_hash_table_create(&cache->images, error);
    if (status != SX_OK) {
        free(cache);
        return status;
    }
    pthread_mutex_init(&cache->lock, NULL);
    *out_cache = cache;
    return SX_OK;
}

void cuda_cache_limit(struct cuda_cache *cache, size_t limit_bytes, size_t values_bytes) {
    struct cuda_image *evicted = NULL;
    pthread_mutex_lock(&cache->lock);
    cache->limit_bytes = limit_bytes;
    cache->values_limit_bytes = values_bytes;
    evict_above(cache, limit_bytes, &evicted);
    pthread_mutex_unlock(&cache->lock);
    release_evicted(evicted);
}

void cuda_cache_destroy(struct cuda_cache *cache) {
    if (!cache)
        return;
    cuda_cache_limit(cache, 0, 0);
    pthread_mutex_destroy(&cache->lock);
    sx_hash_table_release(&cache->images);
    free(cache);
}

struct sx_cache_usage cuda_cache_usage(struct cuda_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    const struct sx_cache_usage usage = {
        .held_bytes = cache->held_bytes,
        .limit_bytes = cache->limit_bytes,
        .n_entries = (int64_t)cache->images.n_links,
        .n_hits = cache->n_hits,
        .n_misses = cache->n_misses,
        .hit_bytes = cache->hit_bytes,
        .values_bytes = cache->values_bytes,
        .n_values_taken = cache->n_values_taken,
    };
    pthread_mutex_unlock(&cache->lock);
    return usage;
}
