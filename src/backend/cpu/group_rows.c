/* Storage of a group's rows and of their strings. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/group_state.h"

enum {
    FIRST_CHUNK_BYTES = 1 << 10,
    MAX_CHUNK_BYTES = 1 << 17,
    CHUNK_HEADER_BYTES = 64,
    FIRST_HEAP_BYTES = 1 << 10,
    MAX_HEAP_BYTES = 1 << 18
};

static size_t next_size(size_t last_bytes, size_t first_bytes, size_t max_bytes, size_t need_bytes) {
    size_t size_bytes = last_bytes ? 2 * last_bytes : first_bytes;
    if (size_bytes > max_bytes)
        size_bytes = max_bytes;
    return size_bytes < need_bytes ? need_bytes : size_bytes;
}

enum sx_status sx_group_partition_grow(struct sx_group_partition *partition, uint32_t row_bytes,
                                       struct sx_pool *pool, struct sx_error *error) {
    struct sx_group_chunk *last = partition->last;
    size_t need_bytes = CHUNK_HEADER_BYTES + 4 * (size_t)row_bytes;
    size_t size_bytes =
        next_size(last ? last->size_bytes : 0, FIRST_CHUNK_BYTES, MAX_CHUNK_BYTES, need_bytes);
    void *memory = NULL;
    SX_TRY(sx_pool_alloc(pool, size_bytes, &memory, error));
    sx_group_partition_close(partition, row_bytes);
    struct sx_group_chunk *chunk = memory;
    *chunk = (struct sx_group_chunk){.size_bytes = size_bytes, .rows = (char *)memory + CHUNK_HEADER_BYTES};
    if (last)
        last->next = chunk;
    else
        partition->first = chunk;
    partition->last = chunk;
    partition->next_row = chunk->rows;
    partition->end = chunk->rows + (size_bytes - CHUNK_HEADER_BYTES) / row_bytes * row_bytes;
    return SX_OK;
}

void sx_group_partition_close(struct sx_group_partition *partition, uint32_t row_bytes) {
    struct sx_group_chunk *last = partition->last;
    if (!last)
        return;
    int64_t n_rows = (partition->next_row - last->rows) / row_bytes;
    partition->n_rows += n_rows - last->n_rows;
    last->n_rows = n_rows;
}

void sx_group_partition_release(struct sx_group_partition *partition, struct sx_pool *pool) {
    struct sx_group_chunk *chunk = partition->first;
    while (chunk) {
        struct sx_group_chunk *next = chunk->next;
        sx_pool_free(pool, chunk, chunk->size_bytes);
        chunk = next;
    }
    sx_group_heap_release(&partition->heap);
    *partition = (struct sx_group_partition){0};
}

static enum sx_status add_block(struct sx_group_heap *heap, struct sx_pool *pool, size_t need_bytes,
                                struct sx_error *error) {
    if (heap->n_blocks == heap->capacity) {
        int capacity = heap->capacity ? 2 * heap->capacity : 4;
        struct sx_buffer **blocks = realloc(heap->blocks, (size_t)capacity * sizeof(struct sx_buffer *));
        if (!blocks)
            return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the strings of groups");
        heap->blocks = blocks;
        heap->capacity = capacity;
    }
    size_t last_bytes = heap->n_blocks ? heap->blocks[heap->n_blocks - 1]->size_bytes : 0;
    size_t size_bytes = next_size(last_bytes, FIRST_HEAP_BYTES, MAX_HEAP_BYTES, need_bytes);
    struct sx_buffer *block = NULL;
    SX_TRY(sx_buffer_create(pool, size_bytes, &block, error));
    heap->blocks[heap->n_blocks++] = block;
    heap->next = block->data;
    heap->left_bytes = size_bytes;
    return SX_OK;
}

enum sx_status sx_group_heap_alloc(struct sx_group_heap *heap, struct sx_pool *pool, size_t size_bytes,
                                   char **out_bytes, struct sx_error *error) {
    if (size_bytes > heap->left_bytes)
        SX_TRY(add_block(heap, pool, size_bytes, error));
    *out_bytes = heap->next;
    heap->next += size_bytes;
    heap->left_bytes -= size_bytes;
    return SX_OK;
}

void sx_group_heap_release(struct sx_group_heap *heap) {
    for (int i = 0; i < heap->n_blocks; i++)
        sx_buffer_release(heap->blocks[i]);
    free(heap->blocks);
    *heap = (struct sx_group_heap){0};
}
