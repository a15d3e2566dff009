#include <stdlib.h>
#include <string.h>

#include "backend/cpu/move.h"

enum { FIRST_BLOCK_BYTES = 4096, MAX_BLOCK_BYTES = 1 << 20 };

enum sx_status sx_cpu_alloc_zeroed(struct sx_stream *stream, size_t size_bytes, void **out_memory) {
    enum { STEP_BYTES = 1 << 24 };
    void *memory = NULL;
    SX_TRY(sx_pool_alloc(stream->pool, size_bytes, &memory, &stream->error));
    for (size_t at = 0; at < size_bytes; at += STEP_BYTES) {
        enum sx_status status = sx_cpu_check_cancel(stream);
        if (status != SX_OK) {
            sx_pool_free(stream->pool, memory, size_bytes);
            return status;
        }
        memset((char *)memory + at, 0, size_bytes - at < STEP_BYTES ? size_bytes - at : STEP_BYTES);
    }
    *out_memory = memory;
    return SX_OK;
}

/* Room for one more in the list of blocks, which grows by powers of two. */
static enum sx_status reserve_slot(struct sx_stream *stream, struct sx_string_heap *heap) {
    int n = heap->n_blocks;
    if (n & (n - 1))
        return SX_OK;
    struct sx_buffer **grown = realloc(heap->blocks, (n ? 2 * (size_t)n : 1) * sizeof(struct sx_buffer *));
    if (!grown)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a string heap");
    heap->blocks = grown;
    return SX_OK;
}

static enum sx_status add_block(struct sx_stream *stream, struct sx_string_heap *heap, size_t size_bytes) {
    SX_TRY(reserve_slot(stream, heap));
    SX_TRY(sx_buffer_create(stream->pool, size_bytes, &heap->blocks[heap->n_blocks], &stream->error));
    heap->n_blocks++;
    heap->used_bytes = 0;
    return SX_OK;
}

static size_t last_block_bytes(const struct sx_string_heap *heap) {
    return heap->n_blocks ? heap->blocks[heap->n_blocks - 1]->size_bytes : 0;
}

/* Where `size_bytes` more fit without another block. Blocks double with what has been needed so far. */
static enum sx_status reserve(struct sx_stream *stream, struct sx_string_heap *heap, size_t size_bytes) {
    size_t last = last_block_bytes(heap);
    if (heap->n_blocks && size_bytes <= last - heap->used_bytes)
        return SX_OK;
    size_t block = 2 * last;
    block = block < FIRST_BLOCK_BYTES ? FIRST_BLOCK_BYTES : block;
    block = block > MAX_BLOCK_BYTES ? MAX_BLOCK_BYTES : block;
    return add_block(stream, heap, size_bytes > block ? size_bytes : block);
}

static size_t outside_bytes(const struct sx_string *views, int64_t rows) {
    size_t bytes = 0;
    for (int64_t i = 0; i < rows; i++)
        bytes += views[i].length_bytes > SX_STRING_INLINE_BYTES ? views[i].length_bytes : 0;
    return bytes;
}

enum { TAKE_ROWS = 1024 };

static void copy_out(struct sx_string *views, int64_t rows, char *place) {
    for (int64_t i = 0; i < rows; i++) {
        if (views[i].length_bytes <= SX_STRING_INLINE_BYTES)
            continue;
        memcpy(place, views[i].u.ref.pointer, views[i].length_bytes);
        views[i].u.ref.pointer = place;
        place += views[i].length_bytes;
    }
}

enum sx_status sx_string_heap_take(struct sx_stream *stream, struct sx_string_heap *heap,
                                   struct sx_string *views, const uint8_t *valid, int64_t rows) {
    for (int64_t i = 0; valid && i < rows; i++)
        if (!valid[i])
            views[i] = (struct sx_string){0};
    for (int64_t at = 0; at < rows; at += TAKE_ROWS) {
        int64_t n = rows - at < TAKE_ROWS ? rows - at : TAKE_ROWS;
        size_t bytes = outside_bytes(views + at, n);
        if (!bytes)
            continue;
        SX_TRY(reserve(stream, heap, bytes));
        copy_out(views + at, n, (char *)heap->blocks[heap->n_blocks - 1]->data + heap->used_bytes);
        heap->used_bytes += bytes;
    }
    return SX_OK;
}

enum sx_status sx_string_heap_keep(struct sx_stream *stream, struct sx_string_heap *heap,
                                   struct sx_buffer *buffer) {
    bool is_repeated = heap->n_blocks > 1 && heap->blocks[heap->n_blocks - 2] == buffer;
    if (!buffer || is_repeated)
        return SX_OK;
    if (!heap->n_blocks) /* the last block is always one that can be written */
        SX_TRY(add_block(stream, heap, 0));
    SX_TRY(reserve_slot(stream, heap));
    heap->blocks[heap->n_blocks] = heap->blocks[heap->n_blocks - 1];
    heap->blocks[heap->n_blocks - 1] = sx_buffer_retain(buffer);
    heap->n_blocks++;
    return SX_OK;
}

void sx_string_heap_release(struct sx_string_heap *heap) {
    for (int i = 0; i < heap->n_blocks; i++)
        sx_buffer_release(heap->blocks[i]);
    free(heap->blocks);
    *heap = (struct sx_string_heap){0};
}
