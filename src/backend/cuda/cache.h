/* What scans have brought to the device and later queries may read there: an image for each span of stored
 * bytes, found by the span's cache_id. The least recently used go first, and all may be given up before an
 * allocation is refused. */
#ifndef SX_BACKEND_CUDA_CACHE_H
#define SX_BACKEND_CUDA_CACHE_H

#include "backend/cuda/cuda.h"
#include "base/hash_table.h"
#include "base/lru.h"

/* A page that was compressed, or stands beside such. */
struct cuda_image_page {
    size_t stored_at;                   /* in the span */
    size_t plain_at;                    /* in the buffer; V2: behind the levels */
    uint32_t stored_bytes, plain_bytes; /* without `lead_bytes` */
    uint32_t lead_bytes;                /* levels of V2, in front of both */
};

/* The bytes of a span as kernels read them: as they are stored, where no page is compressed; else all pages
 * of the span one after another, decompressed. Counted, and immutable once it is in the cache,
 * but for values that are given up while nobody else has it. */
struct cuda_image {
    struct sx_hash_link link; /* first; of the cache, as are the next two */
    struct sx_lru_link use;
    struct cuda_image *next_evicted;
    atomic_int references;
    uint64_t id;
    int n_left; /* times that it will be looked for, and leaves the cache at the last; 0: not known. The
                   cache's */
    size_t span_bytes;
    struct sx_buffer *buffer;
    struct cuda_image_page *pages; /* by stored_at; NULL: stored bytes */
    int n_pages;
    /* What all pages of the span, a whole chunk, were decoded to: a value for each row, none NULL. NULL: that
     * was not kept. Of the buffer, which other chunks of the decode share, so many bytes are the image's. */
    const uint8_t *values;
    struct sx_buffer *values_buffer;
    size_t values_bytes;
};

static inline struct cuda_image *cuda_image_retain(struct cuda_image *image) {
    atomic_fetch_add_explicit(&image->references, 1, memory_order_relaxed);
    return image;
}
void cuda_image_release(struct cuda_image *image); /* NULL allowed */

struct cuda_cache;

SX_MUST_CHECK enum sx_status cuda_cache_create(struct cuda_cache **out_cache, struct sx_error *error);
/* Before the streams whose memory it holds. NULL allowed. */
void cuda_cache_destroy(struct cuda_cache *cache);

/* See struct sx_backend. */
void cuda_cache_limit(struct cuda_cache *cache, size_t limit_bytes, size_t values_bytes);
struct sx_cache_usage cuda_cache_usage(struct cuda_cache *cache);

/* Whether an image of so many bytes may be kept. */
bool cuda_cache_takes(struct cuda_cache *cache, size_t bytes);
/* Whether an image may have so many bytes of values besides. */
bool cuda_cache_takes_values(struct cuda_cache *cache, size_t bytes);
/* For a guess: asks without being one of the span's readers. */
bool cuda_cache_has(struct cuda_cache *cache, uint64_t id);
/* One reference, the caller's; NULL: it is not there. Work of any stream may read it at once, and the
 * reference is to be kept until that work is issued. */
struct cuda_image *cuda_cache_find(struct cuda_cache *cache, uint64_t id);
/* Keeps a second reference, unless there is one with that id. All work that makes the image has ended
 * without a fault; `stream` is the one that its memory is from. Values that there is no room for leave the
 * image, which nobody else has yet. */
void cuda_cache_insert(struct cuda_cache *cache, struct cuda_stream *stream, struct cuda_image *image);
/* A column was taken from images' values. */
void cuda_cache_note_taken(struct cuda_cache *cache);
/* Gives up values, or else images, that nobody uses, of about so many bytes or more; returns how many bytes.
 * They go back to the streams' allocators. No more values are kept until the next limit. No allocator's lock
 * is held. */
size_t cuda_cache_reclaim(struct cuda_cache *cache, size_t wanted_bytes);

#endif
