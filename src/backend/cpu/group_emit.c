/* The result: rows of all workers merged, part after part. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/group_state.h"

/* The partitions of a part lie together. */
static int first_partition(const struct sx_group *group, int part) {
    return part * (SX_GROUP_PARTITIONS / group->n_parts);
}

void sx_group_part_release(struct sx_group *group, int index) {
    struct sx_group_part *part = &group->parts[index];
    sx_pool_free(group->pool, part->rows, (size_t)part->capacity * sizeof(char *));
    sx_buffer_release(part->heap);
    *part = (struct sx_group_part){.merged = part->merged};
    const int first = first_partition(group, index), end = first_partition(group, index + 1);
    for (int w = 0; w < group->n_workers; w++)
        for (int p = first; group->workers[w] && p < end; p++)
            sx_group_partition_release(&group->workers[w]->partitions[p], group->pool);
}

/* ---- merging ---- */

struct merge {
    struct sx_group *group;
    struct sx_group_part *part;
    struct sx_stream *stream;
    struct sx_group_merge *rows; /* NULL: no two rows have equal keys */
};

static void list_rows(struct merge *merge, char *base, int64_t n) {
    const size_t stride = merge->group->layout.row_bytes;
    struct sx_group_part *part = merge->part;
    for (int64_t i = 0; i < n; i++)
        part->rows[part->n_rows++] = base + (size_t)i * stride;
}

static enum sx_status merge_chunk(struct merge *merge, const struct sx_group_chunk *chunk) {
    const atomic_bool *cancel = merge->stream->cancel;
    if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
        return sx_error_set(&merge->stream->error, SX_CANCELLED, "cancelled");
    if (!merge->rows) {
        list_rows(merge, chunk->rows, chunk->n_rows);
        return SX_OK;
    }
    for (int64_t at = 0; at < chunk->n_rows; at += SX_GROUP_BLOCK_ROWS) {
        const int64_t left = chunk->n_rows - at;
        char *base = chunk->rows + (size_t)at * merge->group->layout.row_bytes;
        SX_TRY(sx_group_merge_rows(merge->rows, base, left < SX_GROUP_BLOCK_ROWS ? left : SX_GROUP_BLOCK_ROWS,
                                   merge->part->rows, &merge->part->n_rows));
    }
    return SX_OK;
}

static int64_t count_rows(const struct sx_group *group, int first, int end, bool *out_distinct) {
    int64_t rows = 0;
    int sources = 0;
    *out_distinct = true;
    for (int w = 0; w < group->n_workers; w++) {
        const struct sx_group_worker *worker = group->workers[w];
        int64_t before = rows;
        for (int p = first; worker && p < end; p++)
            rows += worker->partitions[p].n_rows;
        if (rows == before)
            continue;
        sources++;
        *out_distinct &= sources == 1 && !worker->cleared;
    }
    return rows;
}

/* One buffer that keeps the strings of all rows of these partitions. */
static enum sx_status join_heaps(const struct sx_group *group, int first, int end, struct sx_stream *stream,
                                 struct sx_buffer **out_heap) {
    int n = 0, at = 0;
    for (int w = 0; w < group->n_workers; w++)
        for (int p = first; group->workers[w] && p < end; p++)
            n += group->workers[w]->partitions[p].heap.n_blocks;
    if (n == 0)
        return SX_OK;
    struct sx_buffer **blocks = calloc((size_t)n, sizeof(struct sx_buffer *));
    if (!blocks)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for the strings of groups");
    for (int w = 0; w < group->n_workers; w++)
        for (int p = first; group->workers[w] && p < end; p++) {
            const struct sx_group_heap *heap = &group->workers[w]->partitions[p].heap;
            for (int i = 0; i < heap->n_blocks; i++)
                blocks[at++] = heap->blocks[i];
        }
    enum sx_status status = sx_buffer_join(stream->pool, blocks, n, out_heap, &stream->error);
    free(blocks);
    return status;
}

static enum sx_status merge_all(struct merge *merge, int first, int end) {
    const struct sx_group *group = merge->group;
    for (int w = 0; w < group->n_workers; w++)
        for (int p = first; group->workers[w] && p < end; p++) {
            const struct sx_group_chunk *chunk = group->workers[w]->partitions[p].first;
            for (; chunk; chunk = chunk->next)
                SX_TRY(merge_chunk(merge, chunk));
        }
    return SX_OK;
}

static enum sx_status merge_part(struct sx_stream *stream, struct sx_group *group, int index) {
    struct sx_group_part *part = &group->parts[index];
    const int first = first_partition(group, index), end = first_partition(group, index + 1);
    bool distinct;
    const int64_t rows = count_rows(group, first, end, &distinct);
    struct merge merge = {.group = group, .part = part, .stream = stream};
    enum sx_status status = SX_OK;
    void *list = NULL;
    SX_GO(sx_pool_alloc(stream->pool, (size_t)rows * sizeof(char *), &list, &stream->error));
    part->rows = list;
    part->capacity = rows;
    if (!distinct) {
        SX_GO(sx_group_merge_create(&group->layout, stream, &merge.rows));
        SX_GO(sx_group_index_create(&merge.rows->index, rows, stream->pool, &stream->error));
    }
    SX_GO(merge_all(&merge, first, end));
    SX_GO(join_heaps(group, first, end, stream, &part->heap));
    part->merged = true;
out:
    sx_group_merge_destroy(merge.rows);
    return status;
}

/* ---- columns ---- */

static enum sx_status emit_aggregate(struct sx_stream *stream, const struct sx_group_aggregate *aggregate,
                                     char *const *rows, int64_t n, struct sx_buffer *heap,
                                     struct sx_tensor *out_column) {
    const struct sx_group_ops *ops = aggregate->ops;
    bool any_null = false;
    for (int64_t i = 0; ops->is_null && i < n && !any_null; i++)
        any_null = ops->is_null(aggregate, rows[i]);
    SX_TRY(sx_tensor_create(stream->pool, aggregate->spec.output, n, any_null, out_column, &stream->error));
    ops->emit(aggregate, rows, n, out_column);
    if (aggregate->spec.output.id == SX_TYPE_VARCHAR)
        out_column->heap = sx_buffer_retain(heap);
    for (int64_t i = 0; any_null && i < n; i++)
        out_column->valid[i] = !ops->is_null(aggregate, rows[i]);
    return SX_OK;
}

static enum sx_status emit_columns(struct sx_stream *stream, const struct sx_group_layout *layout,
                                   char *const *rows, int64_t n, struct sx_buffer *heap,
                                   struct sx_batch *batch) {
    for (int k = 0; k < layout->n_keys; k++)
        SX_TRY(sx_group_emit_key(layout, k, rows, n, heap, stream, &batch->columns[k]));
    for (int a = 0; a < layout->n_aggregates; a++)
        SX_TRY(emit_aggregate(stream, &layout->aggregates[a], rows, n, heap,
                              &batch->columns[layout->n_keys + a]));
    return SX_OK;
}

enum sx_status sx_cpu_group_emit(struct sx_stream *stream, struct sx_group *group, int part, int64_t *cursor,
                                 int64_t max_rows, struct sx_batch *out_batch) {
    const struct sx_group_layout *layout = &group->layout;
    struct sx_group_part *own = &group->parts[part];
    if (!own->merged)
        SX_TRY(merge_part(stream, group, part));
    int64_t n = own->n_rows > *cursor ? own->n_rows - *cursor : 0;
    if (n > max_rows)
        n = max_rows;
    struct sx_batch batch = {0};
    SX_TRY(sx_batch_create(layout->n_keys + layout->n_aggregates, n, &batch, &stream->error));
    char *const *rows = n > 0 ? own->rows + *cursor : NULL;
    enum sx_status status = emit_columns(stream, layout, rows, n, own->heap, &batch);
    if (status != SX_OK) {
        sx_batch_release(&batch);
        return status;
    }
    if (n == 0)
        sx_group_part_release(group, part);
    *cursor += n;
    *out_batch = batch;
    return SX_OK;
}
