/* From the appended chunks to a table. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/join.h"

enum {
    PART_ROWS = 1 << 15, /* fewer are not worth another part */
    MAX_PARTS = 64,
    DIRECT_SMALL_SLOTS = 1 << 16,  /* always an array */
    DIRECT_SLOTS_PER_ROW = 8,      /* an array up to this many slots per row, */
    DIRECT_SPARSE_SLOTS = 1 << 23, /* and while it has no more slots than this, up to the following */
    DIRECT_SPARSE_SLOTS_PER_ROW = 128
};

/* ---- join_finish ---- */

static enum sx_status list_chunks(struct sx_stream *stream, struct sx_join *join) {
    size_t n = 0;
    for (int w = 0; w < join->n_workers; w++)
        n += (size_t)join->workers[w].n_chunks;
    join->chunks = calloc(n + 1, sizeof *join->chunks);
    if (!join->chunks)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
    int64_t rows = 0;
    for (int w = 0; w < join->n_workers; w++)
        for (int i = 0; i < join->workers[w].n_chunks; i++) {
            struct sx_join_chunk *chunk = &join->workers[w].chunks[i];
            chunk->first_row = rows;
            rows += chunk->rows;
            join->chunks[join->n_chunks++] = chunk;
        }
    join->rows = rows;
    return SX_OK;
}

static void merge_ranges(struct sx_join *join) {
    for (int k = 0; k < join->n_keys; k++) {
        struct sx_join_range merged = {INT64_MAX, INT64_MIN, false};
        for (int w = 0; w < join->n_workers; w++) {
            const struct sx_join_range *range = &join->workers[w].ranges[k];
            merged.min = range->min < merged.min ? range->min : merged.min;
            merged.max = range->max > merged.max ? range->max : merged.max;
            merged.has_null |= range->has_null;
        }
        join->ranges[k] = merged;
    }
}

/* Makes digits of the keys; false when their number does not fit 64 bits (or keys are not words). */
static bool plan_digits(struct sx_join *join, uint64_t *out_total) {
    sx_u128 total = 1;
    for (int k = 0; k < join->n_keys; k++) {
        if (join->forms[k] != SX_JOIN_WORD)
            return false;
        const struct sx_join_range *range = &join->ranges[k];
        bool any = range->min <= range->max, with_null = range->has_null && join->null_equal[k];
        sx_u128 count = any ? (sx_u128)((uint64_t)range->max - (uint64_t)range->min) + 1 : 0;
        sx_u128 values = count + with_null;
        if (count > UINT64_MAX || total * (values ? values : 1) >= SX_JOIN_NONE)
            return false;
        join->digits[k] = (struct sx_join_digit){
            .min = any ? range->min : 0,
            .count = (uint64_t)count,
            .stride = (uint64_t)total,
            .null_digit = with_null ? (uint64_t)(count * total) : SX_JOIN_NONE,
        };
        total *= values ? values : 1;
    }
    *out_total = (uint64_t)total;
    return true;
}

static bool is_dense(uint64_t total, int64_t rows) {
    uint64_t n = (uint64_t)rows;
    if (rows >= SX_JOIN_WIDE_ROWS)
        return false;
    return total <= DIRECT_SMALL_SLOTS || total / DIRECT_SLOTS_PER_ROW <= n ||
           (total <= DIRECT_SPARSE_SLOTS && total / DIRECT_SPARSE_SLOTS_PER_ROW <= n);
}

static void plan_table(struct sx_join *join) {
    uint64_t total = 0, loose = 2 * (uint64_t)join->rows + 8; /* half full */
    size_t slot_bytes = 0;
    join->none = SX_JOIN_NONE;
    if (join->n_keys == 0) {
        join->kind = SX_JOIN_CROSS;
    } else if (!plan_digits(join, &total)) {
        join->kind = SX_JOIN_GENERIC;
        join->table_slots = loose;
        slot_bytes = sizeof *join->generic;
    } else if (is_dense(total, join->rows)) {
        join->kind = SX_JOIN_DIRECT;
        join->none = total;
        join->table_slots = total + 1;
        slot_bytes = sizeof *join->direct;
    } else {
        join->kind = SX_JOIN_SPARSE;
        join->table_slots = loose;
        slot_bytes = sizeof *join->sparse;
    }
    join->table_bytes = join->table_slots * slot_bytes;
}

static enum sx_status allocate_table(struct sx_stream *stream, struct sx_join *join) {
    if (join->kind == SX_JOIN_CROSS)
        return SX_OK;
    SX_TRY(sx_cpu_alloc_zeroed(stream, join->table_bytes, &join->table));
    join->direct = join->table;
    join->sparse = join->table;
    join->generic = join->table;
    join->is_wide = join->rows >= SX_JOIN_WIDE_ROWS;
    join->groups_bytes = (size_t)join->rows * (join->is_wide ? sizeof(uint64_t) : sizeof(uint32_t));
    SX_TRY(sx_pool_alloc(stream->pool, join->groups_bytes, &join->groups, &stream->error));
    sx_join_filter_size(join);
    if (join->filter_bytes) {
        void *filter = NULL;
        SX_TRY(sx_cpu_alloc_zeroed(stream, join->filter_bytes, &filter));
        join->filter = filter;
    }
    return SX_OK;
}

/* Strings in the workers' heaps stay alive. */
static enum sx_status concat_strings(struct sx_stream *stream, const struct sx_join *join,
                                     const struct sx_tensor *const *parts, struct sx_tensor *out) {
    struct sx_tensor flat = {0};
    SX_TRY(
        sx_cpu_concat(stream, sx_type_of(SX_TYPE_VARCHAR), parts, join->n_chunks, SX_CONCAT_SHARED, &flat));
    struct sx_buffer *heaps[] = {join->heap, flat.heap}, *heap = NULL;
    enum sx_status status = sx_buffer_join(stream->pool, heaps, 2, &heap, &stream->error);
    if (status != SX_OK) {
        sx_tensor_release(&flat);
        return status;
    }
    sx_buffer_release(flat.heap);
    flat.heap = heap;
    *out = flat;
    return SX_OK;
}

enum sx_status sx_join_concat_chunks(struct sx_stream *stream, const struct sx_join *join, int i,
                                     struct sx_tensor *out) {
    size_t n = (size_t)join->n_chunks;
    const struct sx_tensor **parts = calloc(n + 1, sizeof *parts);
    if (!parts)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
    for (size_t c = 0; c < n; c++) {
        join->chunks[c]->columns[i].length = join->chunks[c]->rows;
        parts[c] = &join->chunks[c]->columns[i];
    }
    enum sx_status status =
        join->column_types[i].id == SX_TYPE_VARCHAR
            ? concat_strings(stream, join, parts, out)
            : sx_cpu_concat(stream, join->column_types[i], parts, join->n_chunks, SX_CONCAT_SHARED, out);
    free(parts);
    return status;
}

static void drop_chunks_column(struct sx_join *join, int i) {
    for (int c = 0; c < join->n_chunks; c++)
        sx_tensor_release(&join->chunks[c]->columns[i]);
}

/* One buffer that keeps the string bytes of all workers alive. */
static enum sx_status merge_heaps(struct sx_stream *stream, struct sx_join *join) {
    size_t n = 0;
    for (int w = 0; w < join->n_workers; w++)
        n += (size_t)join->workers[w].heap.n_blocks;
    struct sx_buffer **blocks = calloc(n + 1, sizeof *blocks);
    if (!blocks)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
    int at = 0;
    for (int w = 0; w < join->n_workers; w++)
        for (int i = 0; i < join->workers[w].heap.n_blocks; i++)
            blocks[at++] = join->workers[w].heap.blocks[i];
    enum sx_status status = sx_buffer_join(stream->pool, blocks, at, &join->heap, &stream->error);
    free(blocks);
    return status;
}

static int plan_parts(const struct sx_join *join) {
    int64_t parts = join->rows / PART_ROWS;
    parts = parts < join->n_workers ? parts : join->n_workers;
    parts = parts < MAX_PARTS ? parts : MAX_PARTS;
    return parts > 1 ? (int)parts : 1;
}

enum sx_status sx_cpu_join_finish(struct sx_stream *stream, struct sx_join *join, int *out_parts) {
    SX_TRY(list_chunks(stream, join));
    merge_ranges(join);
    SX_TRY(merge_heaps(stream, join));
    if (join->track_matches) {
        void *marks = NULL;
        SX_TRY(sx_cpu_alloc_zeroed(stream, (size_t)join->rows, &marks));
        join->marks = marks;
    }
    plan_table(join);
    SX_TRY(allocate_table(stream, join));
    for (int k = 0; join->kind == SX_JOIN_GENERIC && k < join->n_keys; k++) {
        SX_TRY(sx_join_concat_chunks(stream, join, k, &join->keys[k]));
        drop_chunks_column(join, k);
    }
    join->n_parts = plan_parts(join);
    atomic_init(&join->parts_left, join->n_parts);
    *out_parts = join->n_parts;
    return SX_OK;
}

/* ---- join_build ---- */

/* Rows of `columns` (one per key, in normal form) from `at` on, as a block. */
static void point_keys(const struct sx_join *join, const struct sx_tensor *columns, int64_t at,
                       struct sx_join_keys *keys) {
    for (int k = 0; k < join->n_keys; k++) {
        size_t bytes = sx_type_bytes(join->column_types[k]);
        keys->values[k] = (const char *)columns[k].values + (size_t)at * bytes;
        keys->valid[k] = columns[k].valid ? columns[k].valid + at : NULL;
    }
}

/* Inserts `rows` build rows from `first` on, which are rows `at`, … of `columns`. */
static enum sx_status insert_range(struct sx_stream *stream, struct sx_join *join,
                                   const struct sx_tensor *columns, int64_t at, int64_t first, int64_t rows,
                                   struct sx_join_keys *keys) {
    bool met = false;
    for (int64_t done = 0; done < rows; done += SX_JOIN_BLOCK) {
        if (done % (SX_JOIN_BLOCK * 128) == 0)
            SX_TRY(sx_cpu_check_cancel(stream));
        int64_t n = rows - done < SX_JOIN_BLOCK ? rows - done : SX_JOIN_BLOCK;
        point_keys(join, columns, at + done, keys);
        met |= sx_join_insert(join, keys, first + done, n);
    }
    if (met)
        atomic_store_explicit(&join->has_duplicates, true, memory_order_relaxed);
    return SX_OK;
}

static enum sx_status insert_rows(struct sx_stream *stream, struct sx_join *join, int64_t first, int64_t last,
                                  struct sx_join_keys *keys) {
    if (join->kind == SX_JOIN_GENERIC)
        return insert_range(stream, join, join->keys, first, first, last - first, keys);
    for (int c = 0; c < join->n_chunks; c++) {
        const struct sx_join_chunk *chunk = join->chunks[c];
        int64_t from = first > chunk->first_row ? first : chunk->first_row;
        int64_t end = chunk->first_row + chunk->rows;
        int64_t to = last < end ? last : end;
        if (from < to)
            SX_TRY(
                insert_range(stream, join, chunk->columns, from - chunk->first_row, from, to - from, keys));
    }
    return SX_OK;
}

static enum sx_status insert_part(struct sx_stream *stream, struct sx_join *join, int part) {
    int64_t share = join->rows / join->n_parts + 1;
    int64_t first = part * share, last = first + share < join->rows ? first + share : join->rows;
    if (join->kind == SX_JOIN_CROSS || first >= last)
        return SX_OK;
    struct sx_join_keys keys = {calloc((size_t)join->n_keys, sizeof *keys.values),
                                calloc((size_t)join->n_keys, sizeof *keys.valid)};
    enum sx_status status;
    if (keys.values && keys.valid)
        status = insert_rows(stream, join, first, last, &keys);
    else
        status = sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a join");
    free(keys.values);
    free(keys.valid);
    return status;
}

/* The last part leaves what probes need. */
static enum sx_status settle(struct sx_stream *stream, struct sx_join *join) {
    for (int k = 0; k < join->n_keys; k++)
        drop_chunks_column(join, k);
    if (atomic_load_explicit(&join->has_duplicates, memory_order_relaxed))
        SX_TRY(sx_join_make_runs(stream, join));
    sx_pool_free(join->pool, join->groups, join->groups_bytes);
    join->groups = NULL;
    return SX_OK;
}

enum sx_status sx_cpu_join_build(struct sx_stream *stream, struct sx_join *join, int part) {
    SX_TRY(insert_part(stream, join, part));
    for (;;) {
        int k = atomic_fetch_add(&join->next_payload, 1);
        if (k >= join->n_payload)
            break;
        SX_TRY(join->column_types[join->n_keys + k].id == SX_TYPE_VARCHAR
                   ? sx_join_payload_strings(stream, join, k, &join->payload[k])
                   : sx_join_concat_chunks(stream, join, join->n_keys + k, &join->payload[k]));
        drop_chunks_column(join, join->n_keys + k);
    }
    return atomic_fetch_sub(&join->parts_left, 1) == 1 ? settle(stream, join) : SX_OK;
}
