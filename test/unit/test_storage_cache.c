/* The cache of column chunks: what it finds, what goes first, its budget, and many users at once. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/cache.h"

enum { CHUNK_BYTES = 64 << 10, N_THREADS = 4, N_STEPS = 20000, N_PLACES = 300 };

static struct sx_chunk_place place_of(uint64_t inode, int64_t offset) {
    return (struct sx_chunk_place){
        {.device = 1, .inode = inode, .size_bytes = 1 << 30, .modified_ns = 5}, offset, CHUNK_BYTES};
}

/* One chunk in a buffer of its own, filled with a mark of its place. */
static uint64_t insert(struct sx_chunk_cache *cache, struct sx_pool *pool, struct sx_chunk_place place) {
    struct sx_buffer *buffer;
    if (sx_buffer_create(pool, CHUNK_BYTES, &buffer, NULL) != SX_OK)
        return 0;
    memset(buffer->data, (int)(place.file.inode * 31 + (uint64_t)place.offset) & 0xff, CHUNK_BYTES);
    struct sx_cached_part part = {place, buffer->data, 99};
    sx_chunk_cache_insert(cache, buffer, NULL, &part, 1);
    sx_buffer_release(buffer);
    return part.id;
}

static uint64_t find(struct sx_chunk_cache *cache, struct sx_chunk_place place) {
    struct sx_cached_chunk found;
    if (sx_chunk_cache_find(cache, &place, 1, &found) == 0)
        return 0;
    const uint8_t mark = (uint8_t)(place.file.inode * 31 + (uint64_t)place.offset);
    assert(found.bytes[0] == mark && found.bytes[place.length_bytes - 1] == mark);
    sx_buffer_release(found.buffer);
    assert(!found.pages || found.pages->n_pages == 1 || place.file.inode != 9);
    sx_cached_pages_release(found.pages);
    return found.id;
}

static struct sx_chunk_cache *create(size_t pool_bytes, size_t limit_bytes, struct sx_pool **out_pool) {
    struct sx_chunk_cache *cache;
    assert(sx_pool_create(pool_bytes, out_pool, NULL) == SX_OK);
    assert(sx_chunk_cache_create(*out_pool, limit_bytes, &cache, NULL) == SX_OK);
    return cache;
}

static void destroy(struct sx_chunk_cache *cache, struct sx_pool *pool) {
    sx_chunk_cache_destroy(cache);
    assert(sx_pool_usage(pool).used_bytes == 0);
    sx_pool_destroy(pool);
}

static void test_order(void) {
    struct sx_pool *pool;
    struct sx_chunk_cache *cache = create(0, 4 * CHUNK_BYTES, &pool);
    uint64_t ids[5];
    for (int i = 0; i < 4; i++) {
        assert(find(cache, place_of(1, i)) == 0);
        ids[i] = insert(cache, pool, place_of(1, i));
        assert(ids[i] && find(cache, place_of(1, i)) == ids[i]);
    }
    assert(find(cache, place_of(1, 0)) == ids[0]); /* so 1 is the oldest */
    ids[4] = insert(cache, pool, place_of(1, 4));
    assert(find(cache, place_of(1, 1)) == 0 && find(cache, place_of(1, 0)) == ids[0]);
    for (int i = 2; i < 5; i++)
        assert(find(cache, place_of(1, i)) == ids[i]);
    const uint64_t again = insert(cache, pool, place_of(1, 1));
    for (int i = 0; i < 5; i++)
        assert(again != ids[i]);                          /* an id never comes again */
    assert(insert(cache, pool, place_of(1, 1)) == again); /* is there already */
    const struct sx_cache_usage usage = sx_chunk_cache_usage(cache);
    assert(usage.held_bytes == 4 * CHUNK_BYTES && usage.n_entries == 4 && usage.n_hits == 9);
    assert(sx_pool_usage(pool).used_bytes == 4 * CHUNK_BYTES);
    destroy(cache, pool);
}

/* Several at a time, some of which are not there; they are used in their order. */
static void test_several(void) {
    struct sx_pool *pool;
    struct sx_chunk_cache *cache = create(0, 4 * CHUNK_BYTES, &pool);
    const struct sx_chunk_place places[] = {place_of(1, 2), place_of(1, 9), place_of(1, 0)};
    struct sx_cached_chunk found[3];
    for (int i = 0; i < 4; i++)
        insert(cache, pool, place_of(1, i));
    assert(sx_chunk_cache_find(cache, places, 3, found) == 2);
    assert(found[0].bytes[0] == 33 && !found[1].bytes && !found[1].buffer && found[2].bytes[0] == 31);
    sx_buffer_release(found[0].buffer);
    sx_buffer_release(found[2].buffer);
    const struct sx_cache_usage usage = sx_chunk_cache_usage(cache);
    assert(usage.n_hits == 2 && usage.n_misses == 1 && usage.hit_bytes == 2 * CHUNK_BYTES);
    static const int64_t goes[] = {1, 3, 2, 0};
    for (int i = 0; i < 4; i++) {
        insert(cache, pool, place_of(2, i));
        const struct sx_chunk_place gone = place_of(1, goes[i]);
        assert(sx_chunk_cache_usage(cache).held_bytes == 4 * CHUNK_BYTES);
        assert(sx_chunk_cache_find(cache, &gone, 1, found) == 0);
    }
    destroy(cache, pool);
}

/* A file with another size or time is another file, and so is another range. */
static void test_changes(void) {
    struct sx_pool *pool;
    struct sx_chunk_cache *cache = create(0, 1 << 20, &pool);
    struct sx_chunk_place place = place_of(7, 100), other;
    assert(insert(cache, pool, place));
    other = place, other.file.modified_ns++;
    assert(!find(cache, other));
    other = place, other.file.size_bytes--;
    assert(!find(cache, other));
    other = place, other.file.device++;
    assert(!find(cache, other));
    other = place, other.length_bytes--;
    assert(!find(cache, other));
    assert(find(cache, place));
    destroy(cache, pool);
}

/* Parts of one buffer come and go together, and the whole buffer counts. */
static void test_parts(void) {
    struct sx_pool *pool;
    struct sx_chunk_cache *cache = create(0, 4 * CHUNK_BYTES, &pool);
    struct sx_buffer *buffer;
    struct sx_cached_part parts[3];
    assert(sx_buffer_create(pool, 3 * CHUNK_BYTES, &buffer, NULL) == SX_OK);
    for (int i = 0; i < 3; i++) {
        parts[i] = (struct sx_cached_part){place_of(2, i), (uint8_t *)buffer->data + i * CHUNK_BYTES, 0};
        memset((char *)buffer->data + i * CHUNK_BYTES, 62 + i, CHUNK_BYTES);
    }
    const uint64_t first = insert(cache, pool, place_of(2, 1));
    sx_chunk_cache_insert(cache, buffer, NULL, parts, 3);
    sx_buffer_release(buffer);
    assert(parts[1].id == first && parts[0].id && parts[2].id);
    assert(sx_chunk_cache_usage(cache).held_bytes == 4 * CHUNK_BYTES);
    insert(cache, pool, place_of(3, 0)); /* drops the oldest: the chunk on its own */
    assert(!find(cache, place_of(2, 1)) && find(cache, place_of(2, 0)) && find(cache, place_of(2, 2)));
    insert(cache, pool, place_of(3, 1)); /* 3, 0 is the oldest now */
    assert(!find(cache, place_of(3, 0)) && find(cache, place_of(3, 1)));
    insert(cache, pool, place_of(3, 2));
    assert(!find(cache, place_of(2, 0)) && !find(cache, place_of(2, 2)));
    assert(sx_buffer_create(pool, 5 * CHUNK_BYTES, &buffer, NULL) == SX_OK);
    sx_chunk_cache_insert(cache, buffer, NULL, parts, 1); /* larger than the cache */
    assert(!parts[0].id && buffer->references == 1);
    sx_buffer_release(buffer);
    destroy(cache, pool);
}

/* Parts that come later go with those of their buffer that are there, and it counts once. */
static void test_beside(void) {
    struct sx_pool *pool;
    struct sx_chunk_cache *cache = create(0, 4 * CHUNK_BYTES, &pool);
    struct sx_buffer *buffer;
    assert(sx_buffer_create(pool, 3 * CHUNK_BYTES, &buffer, NULL) == SX_OK);
    struct sx_cached_part parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = (struct sx_cached_part){place_of(4, i), (uint8_t *)buffer->data + i * CHUNK_BYTES, 0};
        memset((char *)buffer->data + i * CHUNK_BYTES, 124 + i, CHUNK_BYTES);
    }
    assert(sx_chunk_cache_insert(cache, buffer, NULL, &parts[0], 1));
    assert(!sx_chunk_cache_insert(cache, buffer, NULL, &parts[0], 1) && parts[0].id);
    assert(sx_chunk_cache_has(cache, &parts[0].place) && !sx_chunk_cache_has(cache, &parts[1].place));
    sx_chunk_cache_insert(cache, buffer, &parts[0].place, &parts[1], 1);
    assert(sx_chunk_cache_usage(cache).held_bytes == 3 * CHUNK_BYTES && buffer->references == 2);
    assert(find(cache, place_of(4, 0)) && find(cache, place_of(4, 1)) == parts[1].id);
    insert(cache, pool, place_of(5, 0));
    const struct sx_chunk_place other = place_of(5, 0); /* of another buffer */
    sx_chunk_cache_insert(cache, buffer, &other, &parts[2], 1);
    assert(!find(cache, place_of(4, 0)) && !find(cache, place_of(4, 1))); /* the buffer counted twice */
    assert(find(cache, place_of(5, 0)) && find(cache, place_of(4, 2)));
    assert(sx_chunk_cache_usage(cache).held_bytes == 4 * CHUNK_BYTES && buffer->references == 2);
    sx_chunk_cache_insert(cache, buffer, &parts[0].place, &parts[1], 1); /* which is there no more */
    assert(sx_chunk_cache_usage(cache).held_bytes <= 4 * CHUNK_BYTES && find(cache, place_of(4, 1)));
    sx_buffer_release(buffer);
    destroy(cache, pool);
}

/* The pool asks for memory before it refuses; what is in use stays. */
static void test_pressure(void) {
    struct sx_pool *pool;
    struct sx_chunk_cache *cache = create(16 * CHUNK_BYTES, 12 * CHUNK_BYTES, &pool);
    struct sx_cached_chunk used;
    for (int i = 0; i < 12; i++)
        insert(cache, pool, place_of(1, i));
    const struct sx_chunk_place oldest = place_of(1, 0);
    assert(sx_chunk_cache_find(cache, &oldest, 1, &used) == 1);
    for (int i = 1; i < 12; i++)
        assert(find(cache, place_of(1, i)));
    assert(sx_pool_reserve(pool, 6 * CHUNK_BYTES, NULL) == SX_OK);
    assert(sx_chunk_cache_usage(cache).held_bytes <= 10 * CHUNK_BYTES);
    assert(find(cache, place_of(1, 0)) && !find(cache, place_of(1, 1)) && find(cache, place_of(1, 11)));
    assert(sx_pool_reserve(pool, 9 * CHUNK_BYTES, NULL) == SX_OK);
    assert(sx_pool_reserve(pool, 1 * CHUNK_BYTES, NULL) == SX_OUT_OF_MEMORY);
    assert(sx_chunk_cache_usage(cache).held_bytes == CHUNK_BYTES);
    sx_buffer_release(used.buffer);
    assert(sx_pool_reserve(pool, 1 * CHUNK_BYTES, NULL) == SX_OK);
    assert(sx_chunk_cache_usage(cache).held_bytes == 0);
    sx_pool_unreserve(pool, 16 * CHUNK_BYTES);
    destroy(cache, pool);
}

/* Pages are told once, by whoever found them in his own copy of the bytes, and go with the chunk. */
static void test_pages(void) {
    struct sx_pool *pool;
    struct sx_chunk_cache *cache = create(0, CHUNK_BYTES, &pool);
    const struct sx_chunk_place place = place_of(4, 0);
    struct sx_cached_chunk found;
    uint8_t copy[CHUNK_BYTES] = {0};
    const struct sx_page pages[] = {{.kind = SX_PAGE_DICTIONARY, .bytes = copy + 10, .n_values = 3},
                                    {.bytes = copy + 500, .stored_bytes = 7, .n_values = 90}};
    sx_chunk_cache_note_pages(cache, &place, copy, pages, 2); /* of a chunk that is not there */
    insert(cache, pool, place);
    assert(sx_chunk_cache_find(cache, &place, 1, &found) && !found.pages);
    sx_buffer_release(found.buffer);
    sx_chunk_cache_note_pages(cache, &place, copy, pages, 2);
    sx_chunk_cache_note_pages(cache, &place, copy, pages, 1);
    assert(sx_chunk_cache_find(cache, &place, 1, &found) && found.pages && found.pages->n_pages == 2);
    assert(found.pages->pages[1].bytes == found.bytes + 500 && found.pages->pages[1].n_values == 90);
    insert(cache, pool, place_of(4, 1)); /* drops it */
    assert(!find(cache, place) && found.pages->pages[0].bytes == found.bytes + 10);
    sx_cached_pages_release(found.pages);
    sx_buffer_release(found.buffer);
    insert(cache, pool, place);
    assert(sx_chunk_cache_find(cache, &place, 1, &found) && !found.pages);
    sx_buffer_release(found.buffer);
    destroy(cache, pool);
}

struct user {
    struct sx_chunk_cache *cache;
    struct sx_pool *pool;
    unsigned seed;
};

static void *use(void *context) {
    struct user *user = context;
    uint8_t copy[1];
    const struct sx_page page = {.bytes = copy, .n_values = 1};
    for (int i = 0; i < N_STEPS; i++) {
        const struct sx_chunk_place place = place_of(9, rand_r(&user->seed) % N_PLACES);
        if (!find(user->cache, place) && insert(user->cache, user->pool, place))
            sx_chunk_cache_note_pages(user->cache, &place, copy, &page, 1);
        if (i % 100 == 0 && sx_pool_reserve(user->pool, 40 * CHUNK_BYTES, NULL) == SX_OK)
            sx_pool_unreserve(user->pool, 40 * CHUNK_BYTES);
    }
    return NULL;
}

static void test_users(void) {
    struct sx_pool *pool;
    struct sx_chunk_cache *cache = create(250 * CHUNK_BYTES, 200 * CHUNK_BYTES, &pool);
    struct user users[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        users[i] = (struct user){cache, pool, (unsigned)i + 1};
        assert(pthread_create(&threads[i], NULL, use, &users[i]) == 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    const struct sx_cache_usage usage = sx_chunk_cache_usage(cache);
    assert(usage.held_bytes <= usage.limit_bytes && usage.n_hits > usage.n_misses);
    destroy(cache, pool);
}

int main(void) {
    test_order();
    test_several();
    test_changes();
    test_parts();
    test_beside();
    test_pressure();
    test_pages();
    test_users();
    puts("ok");
    return 0;
}
