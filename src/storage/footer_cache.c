#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "storage/file.h"

enum { N_BUCKETS = 1024, MOST_ENTRIES = 16384 };
static const size_t most_bytes = (size_t)128 << 20;

struct entry {
    struct entry *next;          /* of its bucket */
    struct entry *newer, *older; /* by use */
    char *path;
    size_t bucket;
    size_t size_bytes;
    struct sx_file_stamp stamp;
    struct sx_footer *footer;
};

struct sx_footer_cache {
    pthread_mutex_t lock;
    struct entry *buckets[N_BUCKETS];
    struct entry by_use; /* a ring; `older` leads to the newest */
    size_t n_entries;
    size_t total_bytes;
};

enum sx_status sx_footer_cache_create(struct sx_footer_cache **out_cache, struct sx_error *error) {
    struct sx_footer_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for the footer cache");
    pthread_mutex_init(&cache->lock, NULL);
    cache->by_use.newer = cache->by_use.older = &cache->by_use;
    *out_cache = cache;
    return SX_OK;
}

static void unlink_use(struct entry *entry) {
    entry->newer->older = entry->older;
    entry->older->newer = entry->newer;
}

static void link_newest(struct sx_footer_cache *cache, struct entry *entry) {
    entry->newer = &cache->by_use;
    entry->older = cache->by_use.older;
    entry->older->newer = entry;
    cache->by_use.older = entry;
}

static void drop_oldest(struct sx_footer_cache *cache) {
    struct entry *entry = cache->by_use.newer;
    struct entry **at = &cache->buckets[entry->bucket];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    cache->by_use.newer = entry->newer;
    entry->newer->older = &cache->by_use;
    cache->n_entries--;
    cache->total_bytes -= entry->size_bytes;
    sx_footer_release(entry->footer);
    free(entry->path);
    free(entry);
}

void sx_footer_cache_destroy(struct sx_footer_cache *cache) {
    if (!cache)
        return;
    while (cache->n_entries > 0)
        drop_oldest(cache);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static size_t bucket_of(const char *path) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    return (size_t)(hash >> 32) % N_BUCKETS;
}

static struct entry *find(struct sx_footer_cache *cache, const char *path, size_t bucket) {
    struct entry *entry = cache->buckets[bucket];
    while (entry && strcmp(entry->path, path) != 0)
        entry = entry->next;
    return entry;
}

/* A footer of the cache, retained, or NULL. */
static struct sx_footer *look_up(struct sx_footer_cache *cache, const char *path,
                                 const struct sx_file_stamp *stamp) {
    struct sx_footer *footer = NULL;
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = find(cache, path, bucket_of(path));
    if (entry && sx_file_stamp_equal(&entry->stamp, stamp)) {
        unlink_use(entry);
        link_newest(cache, entry);
        footer = sx_footer_retain(entry->footer);
    }
    pthread_mutex_unlock(&cache->lock);
    return footer;
}

static struct entry *insert(struct sx_footer_cache *cache, const char *path, size_t bucket) {
    struct entry *entry = calloc(1, sizeof *entry);
    char *copy = strdup(path);
    if (!entry || !copy) {
        free(entry);
        free(copy);
        return NULL;
    }
    *entry = (struct entry){.path = copy, .bucket = bucket, .next = cache->buckets[bucket]};
    cache->buckets[bucket] = entry;
    cache->n_entries++;
    return entry;
}

/* Failing to keep it is no error. */
static void keep(struct sx_footer_cache *cache, const char *path, const struct sx_file_stamp *stamp,
                 struct sx_footer *footer) {
    size_t bucket = bucket_of(path);
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = find(cache, path, bucket);
    if (entry)
        unlink_use(entry);
    else
        entry = insert(cache, path, bucket);
    if (entry) {
        cache->total_bytes -= entry->size_bytes;
        sx_footer_release(entry->footer);
        entry->footer = sx_footer_retain(footer);
        entry->stamp = *stamp;
        entry->size_bytes = sizeof *entry + footer->arena.total_bytes + footer->length_bytes;
        cache->total_bytes += entry->size_bytes;
        link_newest(cache, entry);
    }
    while (cache->n_entries > 1 && (cache->n_entries > MOST_ENTRIES || cache->total_bytes > most_bytes))
        drop_oldest(cache);
    pthread_mutex_unlock(&cache->lock);
}

static bool stamp_of(const char *path, struct sx_file_stamp *stamp) {
    struct stat found;
    if (stat(path, &found) != 0)
        return false;
    sx_file_stamp_set(&found, stamp);
    return true;
}

enum sx_status sx_footer_cache_get(struct sx_footer_cache *cache, const char *path,
                                   struct sx_footer **out_footer, struct sx_file_stamp *out_stamp,
                                   struct sx_error *error) {
    struct sx_footer *footer = stamp_of(path, out_stamp) ? look_up(cache, path, out_stamp) : NULL;
    if (!footer) {
        int fd = -1;
        SX_TRY(sx_file_open(path, &fd, out_stamp, error));
        enum sx_status status = sx_footer_read(path, fd, out_stamp->size_bytes, &footer, error);
        sx_file_close(fd);
        SX_TRY(status);
        keep(cache, path, out_stamp, footer);
    }
    *out_footer = footer;
    return SX_OK;
}
