/* Reading the pages of one row group in few large requests. */
#include <stdlib.h>
#include <string.h>

#include "storage/scan_fetch.h"

static const int64_t most_extent_bytes = (int64_t)8 << 20;

/* What is read as one stays in the cache as one. */
static const int64_t most_cached_extent_bytes = (int64_t)1 << 20;

/* What reading a gap costs is to be below what another request costs. */
static const int64_t cold_gap_bytes = 64 << 10, warm_gap_bytes = 8 << 10;

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan");
}

/* ---- spans ---- */

static struct span *add_span(struct fetch *fetch, int column, int64_t offset, int64_t length_bytes) {
    struct span *span = &fetch->spans[fetch->n_spans++];
    *span =
        (struct span){.offset = offset,
                      .length_bytes = length_bytes,
                      .column = column,
                      .on_device = fetch->device && scan_column_on_device(fetch->scan, fetch->unit, column)};
    return span;
}

/* Wanted pages from page p on of which each begins where the one before it ends. */
static int count_run(const struct fetch *fetch, const struct sx_page_places *places, int p) {
    const struct sx_page_place *page = places->places;
    int n = 0;
    while (p + n < places->count &&
           sx_row_ranges_touch(&fetch->selection->rows, page[p + n].first_row, page[p + n].rows) &&
           (n == 0 || page[p + n].offset == page[p + n - 1].offset + page[p + n - 1].stored_bytes))
        n++;
    return n;
}

/* As many of the run's pages as are a power of two, at a multiple of it. So there are few spans for the
 * device and the caches, and runs that differ in where they begin and end have most of them in common. */
static int count_block(int p, int run) {
    enum { MOST = 16 }; /* larger ones would all be others where a run's end moves by one */
    int n = 1;
    while (p % (2 * n) == 0 && 2 * n <= run && n < MOST)
        n *= 2;
    return n;
}

static void add_run_spans(struct fetch *fetch, int column, const struct sx_page_places *places, int p,
                          int run) {
    for (int n; run > 0; p += n, run -= n) {
        const struct sx_page_place *first = &places->places[p];
        n = count_block(p, run);
        const struct sx_page_place *last = first + n - 1;
        struct span *span =
            add_span(fetch, column, first->offset, last->offset + last->stored_bytes - first->offset);
        span->page = p;
        span->n_pages = n;
    }
}

static void add_column_spans(struct fetch *fetch, int column) {
    const struct sx_chunk_meta *chunk = scan_chunk(fetch->scan, fetch->unit, column);
    const struct sx_page_places *places = scan_places(fetch->selection, column);
    int64_t begin = sx_chunk_begin(chunk);
    if (!places) {
        struct span *whole = add_span(fetch, column, begin, chunk->stored_bytes);
        whole->is_laid_out = !whole->on_device && scan_layout_has(fetch->layout, fetch->unit, column);
        return;
    }
    if (places->places[0].offset > begin)
        add_span(fetch, column, begin, places->places[0].offset - begin);
    for (int p = 0; p < places->count;) {
        const int run = count_run(fetch, places, p);
        add_run_spans(fetch, column, places, p, run);
        p += run > 0 ? run : 1;
    }
}

static enum sx_status list_spans(struct fetch *fetch, struct sx_error *error) {
    const int n_columns = fetch->scan->n_columns;
    size_t most = 0;
    for (int c = 0; c < n_columns; c++)
        most += scan_places(fetch->selection, c) ? (size_t)scan_places(fetch->selection, c)->count + 1 : 1;
    fetch->spans = SX_ARENA_ARRAY(&fetch->arena, most, struct span);
    fetch->order = SX_ARENA_ARRAY(&fetch->arena, most, int);
    fetch->extents = SX_ARENA_ARRAY(&fetch->arena, most, struct extent);
    fetch->first_span = SX_ARENA_ARRAY(&fetch->arena, n_columns + 1, int);
    if (!fetch->spans || !fetch->order || !fetch->extents || !fetch->first_span)
        return no_memory(error);
    for (int c = 0; c < n_columns; c++) {
        add_column_spans(fetch, c);
        fetch->first_span[c + 1] = fetch->n_spans;
    }
    return SX_OK;
}

static int compare_spans(const void *a, const void *b, void *context) {
    const struct span *spans = context;
    int64_t first = spans[*(const int *)a].offset, second = spans[*(const int *)b].offset;
    return (first > second) - (first < second);
}

/* The spans that are still to be read. */
static void group_spans(struct fetch *fetch) {
    int n = 0;
    for (int i = 0; i < fetch->n_spans; i++)
        if (!fetch->spans[i].bytes)
            fetch->order[n++] = i;
    qsort_r(fetch->order, (size_t)n, sizeof *fetch->order, compare_spans, fetch->spans);
    int64_t gap = fetch->scan->cold_batches > 0 ? cold_gap_bytes : warm_gap_bytes;
    struct extent *last = NULL;
    for (int i = 0; i < n; i++) {
        const struct span *span = &fetch->spans[fetch->order[i]];
        int64_t end = span->offset + span->length_bytes;
        int64_t last_end = last ? last->read.offset + last->read.length_bytes : 0;
        bool may_join = last && last->on_device == span->on_device;
        const bool is_kept = fetch->scan->storage->cache && !span->on_device;
        const int64_t most_bytes = is_kept ? most_cached_extent_bytes : most_extent_bytes;
        bool overlaps = may_join && span->offset < last_end;
        if (overlaps || (may_join && !span->is_laid_out && !last->is_laid_out &&
                         span->offset - last_end < gap && end - last->read.offset <= most_bytes)) {
            last->read.length_bytes = (end > last_end ? end : last_end) - last->read.offset;
            last->count++;
            last->is_laid_out = false;
            continue;
        }
        last = &fetch->extents[fetch->n_extents++];
        *last = (struct extent){.read = {.offset = span->offset, .length_bytes = span->length_bytes},
                                .first = i,
                                .count = 1,
                                .on_device = span->on_device,
                                .is_laid_out = span->is_laid_out};
    }
}

/* ---- reading ---- */

/* The spans of an extent that has been read. */
static void place_spans(struct fetch *fetch, const struct extent *extent) {
    const struct sx_read *read = &extent->read;
    for (int i = 0; i < extent->count; i++) {
        struct span *span = &fetch->spans[fetch->order[extent->first + i]];
        span->bytes = read->bytes + (span->offset - read->offset);
        span->buffer = read->buffer;
        span->is_cold = read->is_cold;
    }
}

static enum sx_status name_column(const struct fetch *fetch, int column, struct sx_error *error) {
    if (error->status != SX_FILE)
        return error->status;
    return sx_error_prefix(error, "%s, row group %d, column %s", fetch->scan->files[fetch->unit->file].path,
                           fetch->unit->group, fetch->scan->column_names[column]);
}

static void note_arrived(void *context, int64_t bytes) {
    const struct fetch *fetch = context;
    scan_note_arrived(fetch->scan, fetch->unit->batch, bytes);
}

/* The extents that go to one place. */
static enum sx_status read_kind(struct fetch *fetch, bool on_device, struct sx_error *error) {
    struct sx_scan *scan = fetch->scan;
    struct sx_storage *storage = scan->storage;
    struct sx_read_request request = {
        .table_bytes = scan->files_bytes, .cancel = scan->cancel, .arrived = note_arrived, .context = fetch};
    request.reads = SX_ARENA_ARRAY(&fetch->arena, fetch->n_extents, struct sx_read);
    struct extent **extents = SX_ARENA_ARRAY(&fetch->arena, fetch->n_extents, struct extent *);
    if (!request.reads || !extents)
        return no_memory(error);
    for (int e = 0; e < fetch->n_extents; e++)
        if (fetch->extents[e].on_device == on_device) {
            extents[request.n_reads] = &fetch->extents[e];
            request.reads[request.n_reads++] = fetch->extents[e].read;
        }
    if (request.n_reads == 0)
        return SX_OK;
    SX_TRY(scan_file_fd(scan, fetch->unit->file, &request.fd, error));
    for (int i = 0; i < request.n_reads; i++)
        if (extents[i]->is_laid_out)
            scan_layout_take(fetch->layout, fetch->unit, fetch->spans[fetch->order[extents[i]->first]].column,
                             &request.reads[i]);
    enum sx_status status =
        on_device ? sx_device_reader_read(storage->device_reader, fetch->device, &request, error)
                  : sx_reader_read(storage->reader, &request, error);
    fetch->is_cold |= request.is_cold;
    for (int i = 0; i < request.n_reads; i++)
        extents[i]->read = request.reads[i];
    return status == SX_OK
               ? SX_OK
               : name_column(fetch, fetch->spans[fetch->order[extents[request.failed]->first]].column, error);
}

static enum sx_status read_extents(struct fetch *fetch, struct sx_error *error) {
    struct sx_scan *scan = fetch->scan;
    int64_t bytes = 0;
    if (fetch->n_extents == 0)
        return SX_OK;
    struct sx_lane *lane = sx_trace_thread_lane(scan->trace, "reader");
    const int64_t began_ns = sx_span_begin(lane);
    SX_TRY(read_kind(fetch, true, error));
    SX_TRY(read_kind(fetch, false, error));
    for (int e = 0; e < fetch->n_extents; e++) {
        place_spans(fetch, &fetch->extents[e]);
        scan_keep_extent(fetch, &fetch->extents[e]);
        bytes += fetch->extents[e].read.length_bytes;
    }
    sx_span_end(lane, SX_SPAN_READ, scan->files[fetch->unit->file].trace_name, began_ns, bytes,
                fetch->unit->group);
    return SX_OK;
}

/* All spans, also those that the cache had. */
static enum sx_status note_footprint(struct fetch *fetch, struct sx_error *error) {
    const struct scan_file *file = &fetch->scan->files[fetch->unit->file];
    if (!fetch->scan->footprint)
        return SX_OK;
    struct sx_footprint_part *parts = SX_ARENA_ARRAY(&fetch->arena, fetch->n_spans, struct sx_footprint_part);
    if (!parts)
        return no_memory(error);
    for (int i = 0; i < fetch->n_spans; i++) {
        const struct span *span = &fetch->spans[i];
        parts[i] = (struct sx_footprint_part){span->offset, span->length_bytes, span->is_cold};
    }
    return sx_footprint_add(fetch->scan->footprint, file->path, &file->stamp, parts, fetch->n_spans, error);
}

/* ---- pages ---- */

/* Where the bytes are that are to be walked. SX_UNSUPPORTED: nowhere. */
static enum sx_status look_at(const struct fetch *fetch, const struct span *span, struct sx_page_walk *walk,
                              struct sx_error *error) {
    if (span->held)
        return sx_error_set(error, SX_UNSUPPORTED, "pages in the device's cache are not those looked for");
    walk->device_reader = span->on_device ? fetch->scan->storage->device_reader : NULL;
    return SX_OK;
}

/* Whether the cache knows the span's pages, and they are what is looked for: so many rows together. */
static bool knows_pages(const struct span *span, int64_t rows) {
    for (int i = 0; span->pages && i < span->pages->n_pages; i++)
        rows -= span->pages->pages[i].kind == SX_PAGE_DICTIONARY ? 0 : span->pages->pages[i].n_values;
    return span->pages && rows == 0;
}

static enum sx_status walk_known(const struct fetch *fetch, struct sx_page_walk *walk,
                                 const struct span *span, struct sx_error *error) {
    const int first = walk->list->count;
    SX_TRY(sx_page_walk_known(walk, span->pages->pages, span->pages->n_pages, error));
    scan_note_pages(fetch, span, walk, first);
    return SX_OK;
}

static enum sx_status walk_head(const struct fetch *fetch, struct sx_page_walk *walk, const struct span *span,
                                struct sx_error *error) {
    const int first = walk->list->count;
    if (knows_pages(span, 0))
        return walk_known(fetch, walk, span, error);
    SX_TRY(look_at(fetch, span, walk, error));
    SX_TRY(sx_page_walk_head(walk, span->bytes, (size_t)span->length_bytes, error));
    scan_note_pages(fetch, span, walk, first);
    return SX_OK;
}

static enum sx_status walk_block(const struct fetch *fetch, struct sx_page_walk *walk,
                                 const struct span *span, const struct sx_page_places *places,
                                 struct sx_error *error) {
    const struct sx_page_place *place = &places->places[span->page], *const end = place + span->n_pages;
    const int first = walk->list->count;
    if (knows_pages(span, end[-1].first_row + end[-1].rows - place->first_row))
        return walk_known(fetch, walk, span, error);
    SX_TRY(look_at(fetch, span, walk, error));
    for (; place < end; place++)
        SX_TRY(sx_page_walk_page(walk, span->bytes + (place->offset - span->offset),
                                 (size_t)place->stored_bytes, place->rows, error));
    scan_note_pages(fetch, span, walk, first);
    return SX_OK;
}

/* The pages of a chunk of which only some were read. */
static enum sx_status walk_places(struct fetch *fetch, struct sx_page_walk *walk, int column,
                                  struct sx_error *error) {
    const struct sx_page_places *places = scan_places(fetch->selection, column);
    int at = fetch->first_span[column], end = fetch->first_span[column + 1];
    if (at < end && fetch->spans[at].n_pages == 0)
        SX_TRY(walk_head(fetch, walk, &fetch->spans[at++], error));
    for (int p = 0; p < places->count;) {
        const struct span *span = at < end && fetch->spans[at].page == p ? &fetch->spans[at++] : NULL;
        if (span)
            SX_TRY(walk_block(fetch, walk, span, places, error));
        else
            SX_TRY(sx_page_walk_pruned(walk, places->places[p].rows, error));
        p += span ? span->n_pages : 1;
    }
    return SX_OK;
}

static enum sx_status walk_chunk(const struct fetch *fetch, struct sx_page_walk *walk,
                                 const struct span *span, struct sx_error *error) {
    const int first = walk->list->count;
    if (knows_pages(span, walk->chunk->n_values))
        return walk_known(fetch, walk, span, error);
    SX_TRY(look_at(fetch, span, walk, error));
    SX_TRY(sx_page_walk_chunk(walk, span->bytes, (size_t)span->length_bytes, error));
    scan_note_pages(fetch, span, walk, first);
    return SX_OK;
}

/* That the pages of a whole chunk, from `first` on, are those by which rows were left out. */
static enum sx_status check_index(const struct sx_page_places *places, const struct sx_page_list *list,
                                  int first, struct sx_error *error) {
    int n = 0;
    for (int i = first; i < list->count; i++) {
        if (list->pages[i].kind == SX_PAGE_DICTIONARY)
            continue;
        const int64_t rows = n < places->count ? places->places[n].rows : 0;
        if (list->pages[i].n_values != rows)
            return sx_error_set(error, SX_FILE, "page %d: it has %lld values, but %lld by the offset index",
                                i - first, (long long)list->pages[i].n_values, (long long)rows);
        n++;
    }
    return SX_OK;
}

static enum sx_status walk_column(struct fetch *fetch, int column, struct sx_page_list *list,
                                  struct sx_error *error) {
    const struct sx_page_places *index = scan_index(fetch->selection, column);
    const int first = list->count;
    struct sx_page_walk walk = {
        .column = scan_column(fetch->scan, fetch->unit, column),
        .chunk = scan_chunk(fetch->scan, fetch->unit, column),
        .list = list,
    };
    if (scan_places(fetch->selection, column))
        return walk_places(fetch, &walk, column, error);
    SX_TRY(walk_chunk(fetch, &walk, &fetch->spans[fetch->first_span[column]], error));
    return index ? check_index(index, list, first, error) : SX_OK;
}

static enum sx_status own_column(struct fetch *fetch, int column, struct sx_buffer **out_owner,
                                 struct sx_error *error) {
    int first = fetch->first_span[column], count = fetch->first_span[column + 1] - first;
    struct sx_buffer **buffers = SX_ARENA_ARRAY(&fetch->arena, count, struct sx_buffer *);
    if (!buffers)
        return no_memory(error);
    for (int i = 0; i < count; i++)
        buffers[i] = fetch->spans[first + i].buffer;
    return sx_buffer_join(fetch->scan->storage->pool, buffers, count, out_owner, error);
}

static void set_spec(const struct fetch *fetch, int column, struct sx_stored_chunk *out) {
    const struct sx_file_column *found = scan_column(fetch->scan, fetch->unit, column);
    out->spec = (struct sx_chunk_spec){
        .physical = found->physical,
        .codec = (enum sx_parquet_codec)scan_chunk(fetch->scan, fetch->unit, column)->codec,
        .type_length = found->type_length,
        .type = found->type,
        .conversion = found->conversion,
        .optional = found->is_optional,
        .keep_dictionary = fetch->scan->keep_dictionaries,
        .n_rows = scan_unit_rows(fetch->scan, fetch->unit),
    };
}

/* Where a query reuses columns, only those are for the device's cache. */
static enum sx_status keep_spans(const struct fetch *fetch, struct scan_group *group,
                                 struct sx_error *error) {
    const bool reuse = fetch->scan->reuse != NULL;
    group->spans = calloc((size_t)fetch->n_spans + 1, sizeof *group->spans);
    if (!group->spans)
        return no_memory(error);
    for (int i = 0; i < fetch->n_spans; i++) {
        const struct span *span = &fetch->spans[i];
        group->spans[i] = (struct sx_stored_span){
            .bytes = span->bytes,
            .length_bytes = (size_t)span->length_bytes,
            .owner = span->buffer,
            .cache_id = reuse ? span->reuse_id : span->cache_id,
            .on_device = span->on_device,
            .held = span->held,
            .n_readers = span->reuse_id ? fetch->scan->n_readers[span->column] : 0,
        };
    }
    group->n_spans = fetch->n_spans;
    return SX_OK;
}

static enum sx_status fill_columns(struct fetch *fetch, struct scan_group *group, struct sx_error *error) {
    struct sx_lane *lane = sx_trace_thread_lane(fetch->scan->trace, "reader");
    const int64_t began_ns = sx_span_begin(lane);
    SX_TRY(keep_spans(fetch, group, error));
    for (int c = 0; c < fetch->scan->n_columns; c++) {
        struct sx_stored_chunk *out = &group->group.columns[c];
        int first_page = group->pages.count;
        set_spec(fetch, c, out);
        if (walk_column(fetch, c, &group->pages, error) != SX_OK)
            return name_column(fetch, c, error);
        SX_TRY(own_column(fetch, c, &out->owner, error));
        out->n_pages = group->pages.count - first_page;
        out->spans = group->spans + fetch->first_span[c];
        out->n_spans = fetch->first_span[c + 1] - fetch->first_span[c];
    }
    if (fetch->device)
        sx_span_end(lane, SX_SPAN_SYNC, "page headers come from the device", began_ns, 0, 0);
    const struct sx_page *page = group->pages.pages;
    for (int c = 0; c < fetch->scan->n_columns; c++) {
        group->group.columns[c].pages = page;
        page += group->group.columns[c].n_pages;
    }
    return SX_OK;
}

/* ---- the row group ---- */

static enum sx_status create_group(const struct fetch *fetch, struct scan_group **out_group,
                                   struct sx_error *error) {
    struct sx_scan *scan = fetch->scan;
    const struct sx_row_ranges *rows = &fetch->selection->rows;
    struct scan_group *group = calloc(1, sizeof *group);
    struct sx_stored_chunk *columns = calloc((size_t)scan->n_columns + 1, sizeof *columns);
    struct sx_row_range *ranges = calloc((size_t)rows->count, sizeof *ranges);
    if (!group || !columns || !ranges) {
        free(group);
        free(columns);
        free(ranges);
        return no_memory(error);
    }
    memcpy(ranges, rows->ranges, (size_t)rows->count * sizeof *ranges);
    atomic_fetch_add(&scan->references, 1);
    group->scan = scan;
    group->group = (struct sx_row_group){
        .path = scan->files[fetch->unit->file].path,
        .index = fetch->unit->group,
        .n_rows = scan_unit_rows(scan, fetch->unit),
        .columns = columns,
        .n_columns = scan->n_columns,
        .ranges = ranges,
        .n_ranges = rows->count,
        .first_row = fetch->unit->first_row,
    };
    *out_group = group;
    return SX_OK;
}

static enum sx_status fetch_into(struct fetch *fetch, struct scan_group *group, struct sx_error *error) {
    if (fetch->scan->n_columns == 0)
        return SX_OK;
    SX_TRY(list_spans(fetch, error));
    scan_find_cached(fetch);
    scan_find_held(fetch);
    scan_number_reused(fetch);
    group_spans(fetch);
    SX_TRY(read_extents(fetch, error));
    SX_TRY(note_footprint(fetch, error));
    return fill_columns(fetch, group, error);
}

/* What was read and found, once it is of use. */
static void count_bytes(const struct fetch *fetch) {
    struct sx_scan *scan = fetch->scan;
    for (int i = 0; i < fetch->n_spans; i++)
        if (fetch->spans[i].is_cached)
            atomic_fetch_add_explicit(&scan->cached_bytes, fetch->spans[i].length_bytes,
                                      memory_order_relaxed);
    for (int e = 0; e < fetch->n_extents; e++) {
        const int64_t bytes = fetch->extents[e].read.length_bytes;
        atomic_fetch_add_explicit(&scan->read_bytes, bytes, memory_order_relaxed);
        if (fetch->extents[e].on_device)
            atomic_fetch_add_explicit(&scan->device_bytes, bytes, memory_order_relaxed);
    }
}

static enum sx_status fetch_group(struct fetch *fetch, struct scan_group **out_group,
                                  struct sx_error *error) {
    struct scan_group *group = NULL;
    SX_TRY(create_group(fetch, &group, error));
    enum sx_status status = fetch_into(fetch, group, error);
    if (status == SX_OK)
        count_bytes(fetch);
    for (int e = 0; e < fetch->n_extents; e++)
        sx_buffer_release(fetch->extents[e].read.buffer);
    for (int i = 0; i < fetch->n_spans; i++)
        if (fetch->spans[i].is_cached) {
            sx_buffer_release(fetch->spans[i].buffer);
            sx_cached_pages_release(fetch->spans[i].pages);
        }
    for (int i = 0; i < fetch->n_spans && group->n_spans == 0; i++) /* else they are the group's */
        if (fetch->spans[i].held)
            fetch->scan->storage->backend->cache_release(fetch->spans[i].held);
    sx_arena_release(&fetch->arena);
    if (status != SX_OK) {
        scan_group_free(group);
        return status;
    }
    *out_group = group;
    return SX_OK;
}

/* Whatever it is that fails on the way to the device, or with what is there: by way of the host it succeeds,
 * or becomes an error with the right words. */
enum sx_status scan_fetch(struct sx_scan *scan, const struct scan_unit *unit,
                          const struct scan_selection *selection, struct scan_layout *layout,
                          struct scan_group **out_group, bool *out_is_cold, struct sx_error *error) {
    struct fetch fetch = {
        .scan = scan, .unit = unit, .selection = selection, .layout = layout, .takes_held = true};
    struct sx_error own = {0};
    SX_TRY(scan_device_source(scan, unit, &fetch.device, error));
    enum sx_status status = fetch_group(&fetch, out_group, &own);
    if (status != SX_OK && status != SX_CANCELLED && (fetch.device || fetch.n_held > 0)) {
        fetch = (struct fetch){.scan = scan, .unit = unit, .selection = selection, .layout = layout};
        own = (struct sx_error){0};
        status = fetch_group(&fetch, out_group, &own);
    }
    *out_is_cold = fetch.is_cold;
    return status == SX_OK ? SX_OK : sx_error_set(error, status, "%s", own.text);
}
