/* Rows with equal keys become one row. */
#include <assert.h>
#include <string.h>

#include "backend/cpu/group_state.h"

enum sx_status sx_group_merge_create(const struct sx_group_layout *layout, struct sx_stream *stream,
                                     struct sx_group_merge **out_merge) {
    void *memory = NULL;
    SX_TRY(sx_pool_alloc(stream->pool, sizeof(struct sx_group_merge), &memory, &stream->error));
    struct sx_group_merge *merge = memory;
    merge->layout = layout;
    merge->stream = stream;
    merge->index = (struct sx_group_index){0};
    *out_merge = merge;
    return SX_OK;
}

void sx_group_merge_destroy(struct sx_group_merge *merge) {
    if (!merge)
        return;
    struct sx_pool *pool = merge->stream->pool;
    sx_group_index_release(&merge->index, pool);
    sx_pool_free(pool, merge, sizeof *merge);
}

static enum sx_status combine(struct sx_group_merge *merge, int64_t n) {
    const struct sx_group_layout *layout = merge->layout;
    for (int a = 0; n > 0 && a < layout->n_aggregates; a++) {
        const struct sx_group_aggregate *aggregate = &layout->aggregates[a];
        SX_TRY(aggregate->ops->combine(aggregate, merge->into, merge->from, n, &merge->stream->error));
    }
    return SX_OK;
}

enum sx_status sx_group_merge_rows(struct sx_group_merge *merge, char *base, int64_t n, char **kept,
                                   int64_t *n_kept) {
    const size_t stride = merge->layout->row_bytes;
    sx_group_hash(merge->layout, base, stride, n, merge->hashes);
    const struct sx_group_probe probe = {.layout = merge->layout,
                                         .index = &merge->index,
                                         .stream = merge->stream,
                                         .base = base,
                                         .stride = stride,
                                         .n = n,
                                         .hashes = merge->hashes,
                                         .rows = merge->found};
    SX_TRY(sx_group_find(&probe));
    int64_t pairs = 0;
    for (int64_t i = 0; i < n; i++) {
        char *row = base + (size_t)i * stride;
        if (merge->found[i] == row) {
            kept[(*n_kept)++] = row;
        } else {
            merge->into[pairs] = merge->found[i];
            merge->from[pairs++] = row;
        }
    }
    return combine(merge, pairs);
}

/* ---- compaction ---- */

/* Where the next row that is kept goes: never behind the row being read. */
struct writer {
    struct sx_group_chunk *chunk;
    int64_t n_rows; /* written to the chunk */
    int64_t total;
};

static int64_t chunk_capacity(const struct sx_group_partition *partition, const struct sx_group_chunk *chunk,
                              uint32_t row_bytes) {
    return chunk == partition->last ? (partition->end - chunk->rows) / row_bytes : chunk->n_rows;
}

static void write_row(struct sx_group_merge *merge, const struct sx_group_partition *partition,
                      struct writer *writer, const char *row) {
    const uint32_t row_bytes = merge->layout->row_bytes;
    if (writer->n_rows == chunk_capacity(partition, writer->chunk, row_bytes)) {
        writer->chunk->n_rows = writer->n_rows;
        writer->chunk = writer->chunk->next;
        assert(writer->chunk);
        writer->n_rows = 0;
    }
    char *to = writer->chunk->rows + (size_t)writer->n_rows * row_bytes;
    writer->n_rows++;
    writer->total++;
    if (to == row)
        return;
    uint64_t hash;
    sx_group_hash(merge->layout, row, 0, 1, &hash);
    memcpy(to, row, row_bytes);
    sx_group_index_move(&merge->index, hash, row, to);
}

static void truncate(struct sx_group_partition *partition, const struct writer *writer, uint32_t row_bytes,
                     struct sx_pool *pool) {
    assert(writer->chunk);
    struct sx_group_chunk *last = writer->chunk, *rest = last->next;
    const int64_t capacity = chunk_capacity(partition, last, row_bytes);
    last->n_rows = writer->n_rows;
    last->next = NULL;
    partition->last = last;
    partition->next_row = last->rows + (size_t)writer->n_rows * row_bytes;
    partition->end = last->rows + (size_t)capacity * row_bytes;
    partition->n_rows = writer->total;
    while (rest) {
        struct sx_group_chunk *next = rest->next;
        sx_pool_free(pool, rest, rest->size_bytes);
        rest = next;
    }
}

static enum sx_status compact_partition(struct sx_group_merge *merge, struct sx_group_partition *partition) {
    const uint32_t row_bytes = merge->layout->row_bytes;
    struct sx_pool *pool = merge->stream->pool;
    struct sx_error refused; /* without memory for an index the rows stay as they are */
    sx_group_partition_close(partition, row_bytes);
    if (partition->n_rows == 0 ||
        sx_group_index_create(&merge->index, partition->n_rows, pool, &refused) != SX_OK)
        return SX_OK;
    struct writer writer = {.chunk = partition->first};
    for (struct sx_group_chunk *chunk = partition->first; chunk; chunk = chunk->next) {
        const int64_t n_rows = chunk->n_rows;
        for (int64_t at = 0; at < n_rows; at += SX_GROUP_BLOCK_ROWS) {
            const int64_t left = n_rows - at;
            int64_t n_kept = 0;
            SX_TRY(sx_group_merge_rows(merge, chunk->rows + (size_t)at * row_bytes,
                                       left < SX_GROUP_BLOCK_ROWS ? left : SX_GROUP_BLOCK_ROWS, merge->kept,
                                       &n_kept));
            for (int64_t i = 0; i < n_kept; i++)
                write_row(merge, partition, &writer, merge->kept[i]);
        }
    }
    truncate(partition, &writer, row_bytes, pool);
    return SX_OK;
}

enum sx_status sx_group_compact(struct sx_group_worker *worker, const struct sx_group_layout *layout,
                                struct sx_stream *stream) {
    struct sx_group_merge *merge = NULL;
    enum sx_status status = SX_OK;
    sx_group_index_clear(&worker->index);
    sx_group_direct_disable(worker);
    worker->epoch_rows = 0;
    worker->cleared = true;
    worker->crowded = false;
    worker->stored_rows = 0;
    SX_GO(sx_group_merge_create(layout, stream, &merge));
    for (int p = 0; p < SX_GROUP_PARTITIONS; p++) {
        SX_GO(compact_partition(merge, &worker->partitions[p]));
        worker->stored_rows += worker->partitions[p].n_rows;
    }
out:
    sx_group_merge_destroy(merge);
    return status;
}
