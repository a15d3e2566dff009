/* Spans of a row group and the caches: the host's, the device's, and what a query keeps for its later scans.
 */
#include "storage/scan_fetch.h"

static struct sx_chunk_place cache_place(const struct fetch *fetch, const struct span *span) {
    return (struct sx_chunk_place){fetch->scan->files[fetch->unit->file].stamp, span->offset,
                                   span->length_bytes};
}

/* Where the notes on the row group are. */
static struct sx_chunk_cache *reuse_places(const struct fetch *fetch) {
    const uint64_t file = fetch->scan->files[fetch->unit->file].stamp.inode;
    return fetch->scan->reuse->places[(file + (uint64_t)fetch->unit->group) % SX_REUSE_PARTS];
}

/* Whether other scans of the query read it too. */
static bool is_reused(const struct fetch *fetch, const struct span *span) {
    return fetch->scan->reuse && fetch->scan->n_readers[span->column] > 1;
}

static void take_found(struct span *span, const struct sx_cached_chunk *found) {
    span->bytes = found->bytes;
    span->buffer = found->buffer;
    span->cache_id = found->id;
    span->pages = found->pages;
    span->is_cached = true;
}

void scan_find_cached(struct fetch *fetch) {
    struct sx_chunk_cache *cache = fetch->scan->storage->cache;
    struct sx_lane *lane = sx_trace_thread_lane(fetch->scan->trace, "reader");
    const int64_t began_ns = sx_span_begin(lane);
    int64_t bytes = 0;
    if (!cache)
        return;
    struct sx_chunk_place *places = SX_ARENA_ARRAY(&fetch->arena, fetch->n_spans, struct sx_chunk_place);
    struct sx_cached_chunk *found = SX_ARENA_ARRAY(&fetch->arena, fetch->n_spans, struct sx_cached_chunk);
    if (!places || !found) /* what is not found is read */
        return;
    for (int i = 0; i < fetch->n_spans; i++)
        places[i] = cache_place(fetch, &fetch->spans[i]);
    if (sx_chunk_cache_find(cache, places, fetch->n_spans, found) == 0)
        return;
    for (int i = 0; i < fetch->n_spans; i++) {
        if (!found[i].bytes)
            continue;
        take_found(&fetch->spans[i], &found[i]);
        fetch->spans[i].on_device = false;
        bytes += fetch->spans[i].length_bytes;
    }
    sx_span_end(lane, SX_SPAN_CACHE, "in the host's memory", began_ns, bytes, 0);
}

/* Notes on what the device has of the span, or is to have; NULL: nobody takes any. */
static struct sx_chunk_cache *notes_of(const struct fetch *fetch, const struct span *span) {
    const struct sx_scan *scan = fetch->scan;
    return is_reused(fetch, span) ? reuse_places(fetch) : span->on_device ? scan->storage->on_device : NULL;
}

void scan_find_held(struct fetch *fetch) {
    const struct sx_storage *storage = fetch->scan->storage;
    for (int i = 0; fetch->takes_held && i < fetch->n_spans; i++) {
        struct span *span = &fetch->spans[i];
        struct sx_chunk_cache *notes = span->bytes ? NULL : notes_of(fetch, span);
        const struct sx_chunk_place place = cache_place(fetch, span);
        struct sx_cached_chunk found;
        if (!notes || sx_chunk_cache_find(notes, &place, 1, &found) == 0)
            continue;
        if (found.pages)
            span->held = storage->backend->cache_hold(storage->backend, found.id);
        if (span->held) {
            take_found(span, &found);
            fetch->n_held++;
            continue;
        }
        sx_buffer_release(found.buffer);
        sx_cached_pages_release(found.pages);
    }
}

/* Where held pages seem to be: at addresses that nothing else ever has, since pages are told apart by them.
 */
static const uint8_t *new_place(const struct fetch *fetch, const struct span *span) {
    static const uint64_t first = (uint64_t)1 << 62;
    return (const uint8_t *)(uintptr_t)(first + atomic_fetch_add(&fetch->scan->storage->places_bytes,
                                                                 (uint64_t)span->length_bytes));
}

/* What a cache has in place of bytes that are on the device. NULL: no memory. */
static struct sx_buffer *new_note(const struct sx_storage *storage) {
    enum { NOTE_BYTES = 64 };
    struct sx_buffer *note;
    return sx_buffer_create(storage->budget, NOTE_BYTES, &note, NULL) == SX_OK ? note : NULL;
}

/* The cache for an extent, and the buffer that it keeps: of what is on the device, a note. */
static struct sx_chunk_cache *cache_for(const struct fetch *fetch, const struct extent *extent,
                                        struct sx_buffer **out_buffer) {
    const struct sx_storage *storage = fetch->scan->storage;
    if (!extent->on_device) {
        *out_buffer = sx_buffer_retain(extent->read.buffer);
        return storage->cache;
    }
    *out_buffer = storage->on_device ? new_note(storage) : NULL;
    return *out_buffer ? storage->on_device : NULL;
}

void scan_keep_extent(struct fetch *fetch, const struct extent *extent) {
    struct sx_buffer *buffer;
    struct sx_chunk_cache *cache = cache_for(fetch, extent, &buffer);
    struct sx_cached_part *parts =
        cache ? SX_ARENA_ARRAY(&fetch->arena, extent->count, struct sx_cached_part) : NULL;
    for (int i = 0; parts && i < extent->count; i++) {
        const struct span *span = &fetch->spans[fetch->order[extent->first + i]];
        parts[i] = (struct sx_cached_part){cache_place(fetch, span),
                                           extent->on_device ? new_place(fetch, span) : span->bytes, 0};
    }
    const int column = fetch->spans[fetch->order[extent->first]].column;
    if (parts) {
        const struct sx_chunk_place *beside = scan_layout_beside(fetch->layout, column, buffer);
        if (sx_chunk_cache_insert(cache, buffer, beside, parts, extent->count))
            scan_layout_note_kept(fetch->layout, column, buffer, &parts[0].place);
    }
    for (int i = 0; parts && i < extent->count; i++)
        fetch->spans[fetch->order[extent->first + i]].cache_id = parts[i].id;
    sx_buffer_release(buffer);
}

void scan_number_reused(struct fetch *fetch) {
    struct sx_reuse *reuse = fetch->scan->reuse;
    struct sx_cached_part *parts =
        reuse ? SX_ARENA_ARRAY(&fetch->arena, fetch->n_spans, struct sx_cached_part) : NULL;
    struct sx_buffer *note = parts ? new_note(fetch->scan->storage) : NULL;
    int n = 0;
    for (int i = 0; note && i < fetch->n_spans; i++) {
        const struct span *span = &fetch->spans[i];
        if (is_reused(fetch, span) && !span->held)
            parts[n++] = (struct sx_cached_part){cache_place(fetch, span), new_place(fetch, span), 0};
    }
    if (n > 0)
        sx_chunk_cache_insert(reuse_places(fetch), note, NULL, parts, n);
    for (int i = fetch->n_spans - 1; i >= 0 && n > 0; i--)
        if (is_reused(fetch, &fetch->spans[i]) && !fetch->spans[i].held)
            fetch->spans[i].reuse_id = parts[--n].id;
    sx_buffer_release(note);
}

void scan_note_pages(const struct fetch *fetch, const struct span *span, const struct sx_page_walk *walk,
                     int first) {
    const struct sx_storage *storage = fetch->scan->storage;
    const struct sx_chunk_place place = cache_place(fetch, span);
    const struct sx_page *pages = walk->list->pages + first;
    const int n = walk->list->count - first;
    if (span->cache_id != 0 && !span->pages)
        sx_chunk_cache_note_pages(span->on_device ? storage->on_device : storage->cache, &place, span->bytes,
                                  pages, n);
    if (span->reuse_id != 0)
        sx_chunk_cache_note_pages(reuse_places(fetch), &place, span->bytes, pages, n);
}
