/* Stored bytes of files that were read before, by place: whole column chunks, dictionaries and pages as scans
 * ask for them. The least recently used go first: in the order in which they were first used after the last
 * change of the cache. Thread-safe. */
#ifndef SX_STORAGE_CACHE_H
#define SX_STORAGE_CACHE_H

#include "storage/file.h"
#include "tensor/page.h"

struct sx_chunk_cache;

/* Bytes [offset, offset + length_bytes) of a file with those contents. */
struct sx_chunk_place {
    struct sx_file_stamp file;
    int64_t offset;
    int64_t length_bytes;
};

/* The pages that were found in a chunk's bytes. Counted. */
struct sx_cached_pages {
    atomic_int references;
    int n_pages;
    struct sx_page pages[];
};
void sx_cached_pages_release(struct sx_cached_pages *pages); /* NULL allowed */

struct sx_cached_chunk {
    struct sx_buffer *buffer; /* keeps `bytes`; one reference, the caller's */
    const uint8_t *bytes;
    struct sx_cached_pages *pages; /* NULL: nobody has told; else one reference, the caller's */
    uint64_t
        id; /* of the entry: no two have the same, ever, so it may be a key for what was made of the bytes */
};

/* Keeps at most `limit_bytes` (of buffers, whatever part of them is wanted). What it holds counts in
 * `budget`, by the buffers' pool, and is given up before that refuses memory. */
SX_MUST_CHECK enum sx_status sx_chunk_cache_create(struct sx_pool *budget, size_t limit_bytes,
                                                   struct sx_chunk_cache **out_cache, struct sx_error *error);
void sx_chunk_cache_destroy(struct sx_chunk_cache *cache); /* NULL allowed */

/* Those of the n places that are there, in out_chunks[n]; the others' `bytes` are NULL. Returns how many are.
 */
int sx_chunk_cache_find(struct sx_chunk_cache *cache, const struct sx_chunk_place *places, int n,
                        struct sx_cached_chunk *out_chunks);

bool sx_chunk_cache_has(struct sx_chunk_cache *cache, const struct sx_chunk_place *place); /* not a use */

/* A part of a buffer. */
struct sx_cached_part {
    struct sx_chunk_place place;
    const uint8_t *bytes;
    uint64_t id; /* out; 0: not kept */
};
/* Keeps `buffer`, retained, with the parts of it that will be asked for; they go together. Parts that are
 * there already are passed over, and nothing is kept where all are, or where it is too large. Contents must
 * not change any more. `beside`: a part of the buffer that was kept before, for the new ones go with it and
 * the buffer counts once, unless it has gone meanwhile; NULL: none was. Returns whether a part was added. */
bool sx_chunk_cache_insert(struct sx_chunk_cache *cache, struct sx_buffer *buffer,
                           const struct sx_chunk_place *beside, struct sx_cached_part *parts, int n_parts);

/* Remembers the pages that were found in the chunk, and are as they should be, for whoever finds it later;
 * `bytes` is where their pointers count from. Passed over where the chunk is not there any more, or has some.
 * They take sizeof(struct sx_page) each, which counts in no budget. */
void sx_chunk_cache_note_pages(struct sx_chunk_cache *cache, const struct sx_chunk_place *place,
                               const uint8_t *bytes, const struct sx_page *pages, int n_pages);

struct sx_cache_usage sx_chunk_cache_usage(struct sx_chunk_cache *cache);

#endif
