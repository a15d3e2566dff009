#include "storage/scan_layout.h"

#include <stdlib.h>

/* A copy engine takes about as long for the bytes of several blocks as for those of one. */
static const size_t most_block_bytes = (size_t)8 << 20;
static const int64_t most_chunk_bytes = (int64_t)2 << 20; /* of larger ones each is worth a copy */
enum { LEAST_CACHED_BLOCKS = 16, LINE_BYTES = 64 };

/* What a column's chunks are being read into. */
struct scan_layout_block {
    struct sx_buffer *buffer; /* NULL: none yet */
    size_t used_bytes;
    struct sx_chunk_place kept; /* with length_bytes 0: nothing is */
};

/* Whether several row groups are read, and not straight into the device's memory, as far as the first one
 * tells. */
static bool is_worth_it(struct sx_scan *scan, const struct scan_batch *batch,
                        const struct scan_selection *selections) {
    struct sx_device_source *source = NULL;
    struct sx_error untold = {0}; /* reading tells it */
    int n = 0;
    for (int i = 0; i < batch->n_units && n < 2; i++) {
        if (sx_row_ranges_rows(&selections[i].rows) == 0)
            continue;
        if (n++ == 0 &&
            scan_device_source(scan, &scan->units[batch->first_unit + i], &source, &untold) != SX_OK)
            return false;
    }
    return n > 1 && !source;
}

void scan_layout_begin(struct sx_scan *scan, const struct scan_batch *batch,
                       const struct scan_selection *selections, struct scan_layout *out_layout) {
    struct sx_storage *storage = scan->storage;
    *out_layout = (struct scan_layout){.scan = scan, .batch = batch, .selections = selections};
    if (!storage->cache || !sx_pool_is_pinned(storage->pool) || !is_worth_it(scan, batch, selections))
        return;
    out_layout->is_direct = sx_reader_is_direct(storage->reader, scan->files_bytes);
    if (out_layout->is_direct && sx_pool_alignment(storage->pool) % SX_DIRECT_PAGE_BYTES != 0)
        return;
    const size_t part = sx_chunk_cache_usage(storage->cache).limit_bytes / LEAST_CACHED_BLOCKS;
    out_layout->most_bytes = part < most_block_bytes ? part : most_block_bytes;
    out_layout->blocks = calloc((size_t)scan->n_columns + 1, sizeof *out_layout->blocks);
}

void scan_layout_end(struct scan_layout *layout) {
    for (int c = 0; layout->blocks && c < layout->scan->n_columns; c++)
        sx_buffer_release(layout->blocks[c].buffer);
    free(layout->blocks);
    layout->blocks = NULL;
}

bool scan_layout_has(const struct scan_layout *layout, const struct scan_unit *unit, int column) {
    const int64_t index = unit - &layout->scan->units[layout->batch->first_unit];
    const struct scan_selection *selection = &layout->selections[index];
    return layout->blocks && sx_row_ranges_rows(&selection->rows) > 0 && !scan_places(selection, column) &&
           scan_chunk(layout->scan, unit, column)->stored_bytes <= most_chunk_bytes;
}

/* How far into its room the chunk begins: read past the page cache it comes with all of its pages. */
static size_t lead_of(const struct scan_layout *layout, int64_t offset) {
    return layout->is_direct ? (size_t)(offset % SX_DIRECT_PAGE_BYTES) : 0;
}

static size_t room_of(const struct scan_layout *layout, int64_t offset, int64_t length_bytes) {
    const size_t unit = layout->is_direct ? SX_DIRECT_PAGE_BYTES : LINE_BYTES;
    return (lead_of(layout, offset) + (size_t)length_bytes + unit - 1) / unit * unit;
}

/* What the column's chunks from the unit on need that are not in the cache, up to a block's size. */
static size_t bytes_to_come(const struct scan_layout *layout, const struct scan_unit *from, int column,
                            int *out_n) {
    const struct sx_scan *scan = layout->scan;
    const struct scan_unit *end = &scan->units[layout->batch->first_unit + layout->batch->n_units];
    size_t bytes = 0;
    *out_n = 0;
    for (const struct scan_unit *unit = from; unit < end; unit++) {
        const struct sx_chunk_place place = scan_chunk_place(scan, unit, column);
        if (!scan_layout_has(layout, unit, column) || sx_chunk_cache_has(scan->storage->cache, &place))
            continue;
        const size_t room = room_of(layout, place.offset, place.length_bytes);
        if (bytes + room > layout->most_bytes)
            break;
        bytes += room;
        ++*out_n;
    }
    return bytes;
}

/* False: no memory, or nothing to be put together. */
static bool open_block(struct scan_layout *layout, const struct scan_unit *unit, int column,
                       struct scan_layout_block *block) {
    int n;
    const size_t bytes = bytes_to_come(layout, unit, column, &n);
    sx_buffer_release(block->buffer);
    *block = (struct scan_layout_block){0};
    if (n > 1 && sx_buffer_create(layout->scan->storage->pool, bytes, &block->buffer, NULL) != SX_OK)
        layout->is_refused = true;
    return block->buffer != NULL;
}

void scan_layout_take(struct scan_layout *layout, const struct scan_unit *unit, int column,
                      struct sx_read *read) {
    struct scan_layout_block *block = &layout->blocks[column];
    const size_t room = room_of(layout, read->offset, read->length_bytes);
    if ((!block->buffer || block->used_bytes + room > block->buffer->size_bytes) &&
        (layout->is_refused || !open_block(layout, unit, column, block)))
        return;
    if (block->used_bytes + room > block->buffer->size_bytes)
        return;
    read->buffer = sx_buffer_retain(block->buffer);
    read->to = (uint8_t *)block->buffer->data + block->used_bytes + lead_of(layout, read->offset);
    block->used_bytes += room;
}

const struct sx_chunk_place *scan_layout_beside(const struct scan_layout *layout, int column,
                                                const struct sx_buffer *buffer) {
    const struct scan_layout_block *block = layout->blocks ? &layout->blocks[column] : NULL;
    return block && block->buffer == buffer && block->kept.length_bytes > 0 ? &block->kept : NULL;
}

void scan_layout_note_kept(struct scan_layout *layout, int column, const struct sx_buffer *buffer,
                           const struct sx_chunk_place *place) {
    if (layout->blocks && layout->blocks[column].buffer == buffer)
        layout->blocks[column].kept = *place;
}
