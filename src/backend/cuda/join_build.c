/* From the appended batches to a table. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/join.h"

enum { FILTER_BITS_PER_ROW = 16, FILTER_WORD_BITS = 32, LEAST_FILTER_WORDS = 4, WIDE_ROW_BITS = 48 };

/* ---- join_finish ---- */

static int compare_batches(const void *a, const void *b) {
    const struct join_batch *x = *(struct join_batch *const *)a, *y = *(struct join_batch *const *)b;
    return (x->ahead_row > y->ahead_row) - (x->ahead_row < y->ahead_row);
}

/* Those with numbers already come first. */
static enum sx_status order_batches(struct cuda_stream *stream, struct sx_join *join) {
    int64_t n = 0, n_ahead = 0;
    for (int w = 0; w < join->n_workers; w++)
        n += join->workers[w].n_batches;
    join->batches = calloc((size_t)n + 1, sizeof(struct join_batch *));
    if (!join->batches)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
    for (int is_behind = 0; is_behind < 2; is_behind++)
        for (int w = 0; w < join->n_workers; w++)
            for (int64_t b = 0; b < join->workers[w].n_batches; b++) {
                struct join_batch *batch = &join->workers[w].batches[b];
                if ((batch->ahead_row < 0) != is_behind)
                    continue;
                join->batches[join->n_batches++] = batch;
                join->rows += batch->rows;
                n_ahead += !is_behind;
            }
    qsort(join->batches, (size_t)n_ahead, sizeof(struct join_batch *), compare_batches);
    return SX_OK;
}

static enum sx_status concat_parts(struct cuda_stream *stream, struct sx_type type, bool may_be_coded,
                                   const struct sx_tensor *const *parts, int64_t n, struct sx_tensor *out) {
    if (n == 1 && !(may_be_coded && parts[0]->layout == SX_DICT))
        return cuda_flatten(stream, parts[0], out);
    return sx_cuda_concat(&stream->base, type, parts, n, may_be_coded ? SX_CONCAT_CODED : SX_CONCAT_SHARED,
                          out);
}

void cuda_join_drop_column(struct sx_join *join, int i) {
    for (int64_t b = 0; b < join->n_batches; b++)
        sx_tensor_release(&join->batches[b]->columns[i]);
}

enum sx_status cuda_join_take_column(struct cuda_stream *stream, struct sx_join *join, int i,
                                     struct sx_tensor *out) {
    const struct sx_tensor **parts = calloc((size_t)join->n_batches + 1, sizeof *parts);
    if (!parts)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
    int64_t n = 0;
    if (i == 0 && join->n_keys > 0 && join->ahead->rows > 0)
        parts[n++] = &join->ahead->keys;
    for (int64_t b = 0; b < join->n_batches; b++)
        if (i > 0 || join->batches[b]->ahead_row < 0)
            parts[n++] = &join->batches[b]->columns[i];
    enum sx_status status = concat_parts(stream, join->types[i], i >= join->n_keys, parts, n, out);
    free(parts);
    if (status == SX_OK)
        cuda_join_drop_column(join, i);
    if (status == SX_OK && i == 0)
        sx_tensor_release(&join->ahead->keys);
    return status;
}

struct join_range cuda_join_range_of(const struct cuda_join_bounds *bounds) {
    const uint64_t high = (uint64_t)1 << 63;
    return (struct join_range){(int64_t)(~bounds->below ^ high), (int64_t)(bounds->max ^ high),
                               bounds->has_null != 0};
}

bool cuda_join_note_range(cudaStream_t stream, const struct sx_join *join, int k,
                          const struct sx_tensor *column, struct cuda_join_bounds *bounds) {
    const struct cuda_join_key key = {.column = cuda_column_of(column),
                                      .form = cuda_join_has_range(join->types[k]) ? CUDA_JOIN_WORD
                                                                                  : CUDA_JOIN_WIDE};
    const bool counts = column->length > 0 && (column->valid || key.form == CUDA_JOIN_WORD);
    if (counts)
        cuda_join_widen(stream, &key, column->length, bounds);
    return counts;
}

/* Of keys [first, first + n), up to JOIN_MOST_BOUNDS. Waits for it, unless nothing counts. */
static enum sx_status find_some(struct cuda_stream *stream, const struct sx_join *join, int first, int n) {
    bool any = false;
    SX_TRY(cuda_counters_reset(stream, JOIN_BOUNDS, n * CUDA_JOIN_BOUNDS_WORDS));
    for (int k = 0; k < n; k++) {
        int64_t *place = cuda_counter_place(stream, JOIN_BOUNDS + k * CUDA_JOIN_BOUNDS_WORDS);
        any |= cuda_join_note_range(stream->handle, join, first + k, &join->keys[first + k],
                                    (struct cuda_join_bounds *)(void *)place);
    }
    SX_TRY(cuda_launched(stream, "ranges of keys"));
    if (any)
        SX_TRY(cuda_sync_counters(stream, "ranges of a join's keys"));
    for (int k = 0; k < n; k++) {
        const int at = JOIN_BOUNDS + k * CUDA_JOIN_BOUNDS_WORDS;
        struct cuda_join_bounds bounds = {0};
        if (any)
            bounds = (struct cuda_join_bounds){(uint64_t)cuda_counter(stream, at),
                                               (uint64_t)cuda_counter(stream, at + 1),
                                               cuda_counter(stream, at + 2)};
        join->ranges[first + k] = cuda_join_range_of(&bounds);
    }
    return SX_OK;
}

static enum sx_status find_ranges(struct cuda_stream *stream, const struct sx_join *join) {
    for (int k = 0; k < join->n_keys; k += JOIN_MOST_BOUNDS) {
        const int left = join->n_keys - k;
        SX_TRY(find_some(stream, join, k, left < JOIN_MOST_BOUNDS ? left : JOIN_MOST_BOUNDS));
    }
    return SX_OK;
}

/* What the device has to do for it, join_build issues, so that nobody waits for it before. */
enum sx_status sx_cuda_join_finish(struct sx_stream *base, struct sx_join *join, int *out_parts) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(order_batches(stream, join));
    cuda_join_find_key_payload(join);
    *out_parts = 1;
    return SX_OK;
}

/* ---- join_build ---- */

enum sx_status cuda_join_zeroed(struct cuda_stream *stream, size_t bytes, struct sx_buffer **out_buffer) {
    SX_TRY(sx_buffer_create(stream->base.pool, bytes, out_buffer, &stream->base.error));
    return cuda_check(stream, cudaMemsetAsync((*out_buffer)->data, 0, bytes, stream->handle), "a table");
}

enum sx_status cuda_join_make_runs(struct cuda_stream *stream, struct sx_join *join, const int64_t *slots) {
    struct sx_buffer *ranks = NULL, *scratch = NULL;
    const int64_t n_slots = (int64_t)join->table.n_slots;
    const size_t rows_bytes = (size_t)join->rows * sizeof(int64_t);
    struct sx_pool *pool = stream->base.pool;
    struct sx_error *error = &stream->base.error;
    enum sx_status status;
    SX_GO(cuda_join_zeroed(stream, ((size_t)n_slots + 1) * sizeof(int64_t), &join->starts));
    SX_GO(sx_buffer_create(pool, rows_bytes, &ranks, error));
    SX_GO(sx_buffer_create(pool, rows_bytes, &join->runs, error));
    SX_GO(sx_buffer_create(pool, cuda_exclusive_sum_bytes(n_slots), &scratch, error));
    cuda_join_count(stream->handle, slots, join->rows, join->starts->data, ranks->data);
    cuda_exclusive_sum(stream->handle, join->starts->data, n_slots, join->starts->data, scratch->data);
    cuda_join_fill(stream->handle, slots, ranks->data, join->rows, join->starts->data, join->runs->data);
    SX_GO(cuda_launched(stream, "runs of equal keys"));
    join->table.starts = join->starts->data;
    join->table.runs = join->runs->data;
out:
    sx_buffer_release(ranks);
    sx_buffer_release(scratch);
    return status;
}

/* The caller holds the lock. The end of it is waited for, since other streams read the filter. */
static enum sx_status make_filter(struct cuda_stream *stream, const struct sx_join *join) {
    struct cuda_join_table table = join->table;
    struct sx_buffer *words = NULL;
    enum sx_status status;
    table.filter_words = (uint64_t)join->rows * FILTER_BITS_PER_ROW / FILTER_WORD_BITS + LEAST_FILTER_WORDS;
    SX_GO(cuda_join_zeroed(stream, table.filter_words * sizeof *table.filter, &words));
    table.filter = words->data;
    cuda_join_fill_filter(stream->handle, &table, join->rows);
    SX_GO(cuda_launched(stream, "a join's filter"));
    SX_GO(cuda_sync(stream, "a join's filter is whole"));
    cuda_share(stream, words->data);
    join->filter->n_words = table.filter_words;
    join->filter->words = words;
    words = NULL;
out:
    sx_buffer_release(words);
    return status;
}

enum sx_status cuda_join_filtered(struct cuda_stream *stream, const struct sx_join *join,
                                  struct cuda_join_table *out_table) {
    struct join_filter *filter = join->filter;
    *out_table = join->table;
    if (join->table.ranked)
        return SX_OK;
    pthread_mutex_lock(&filter->lock);
    const enum sx_status status = filter->words ? SX_OK : make_filter(stream, join);
    if (status == SX_OK) {
        out_table->filter = filter->words->data;
        out_table->filter_words = filter->n_words;
    }
    pthread_mutex_unlock(&filter->lock);
    return status;
}

/* Open addressing, half full. */
enum sx_status cuda_join_slots_create(struct cuda_stream *stream, int64_t n_rows,
                                      struct join_slots *out_slots) {
    struct cuda_join_table *table = &out_slots->table;
    const uint64_t rows = (uint64_t)n_rows;
    const bool is_narrow = rows < CUDA_JOIN_NARROW_ROWS;
    *out_slots = (struct join_slots){0};
    table->slot_bytes = is_narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    table->row_bits = is_narrow ? 1 : WIDE_ROW_BITS;
    while (is_narrow && rows >> table->row_bits)
        table->row_bits++;
    const uint64_t of_bucket = CUDA_JOIN_BUCKET_BYTES / table->slot_bytes;
    table->n_slots = (2 * rows / of_bucket + 1) * of_bucket;
    SX_TRY(cuda_join_zeroed(stream, table->n_slots * table->slot_bytes, &out_slots->slots));
    table->slots = out_slots->slots->data;
    SX_TRY(cuda_join_zeroed(stream, sizeof(int64_t), &out_slots->duplicates));
    return sx_buffer_create(stream->base.pool, rows * sizeof(int64_t), &out_slots->of_rows,
                            &stream->base.error);
}

void cuda_join_slots_share(struct cuda_stream *stream, const struct join_slots *slots) {
    cuda_share(stream, slots->slots->data);
    cuda_share(stream, slots->of_rows->data);
    cuda_share(stream, slots->duplicates->data);
}

void cuda_join_slots_release(struct join_slots *slots) {
    sx_buffer_release(slots->slots);
    sx_buffer_release(slots->of_rows);
    sx_buffer_release(slots->duplicates);
    *slots = (struct join_slots){0};
}

/* Of open addressing; `slots` keeps the others. */
static void set_table(struct sx_join *join, struct join_slots *slots) {
    const struct cuda_join_keys keys = join->table.keys;
    join->table = slots->table;
    join->table.keys = keys;
    join->slots = slots->slots;
    slots->slots = NULL;
}

/* The rows that have no slots yet claim theirs. */
static enum sx_status claim_slots(struct cuda_stream *stream, struct sx_join *join,
                                  struct join_slots *slots) {
    int64_t first = 0;
    if (!cuda_join_take_ahead(join, slots, &first))
        SX_TRY(cuda_join_slots_create(stream, join->rows, slots));
    set_table(join, slots);
    if (first < join->rows)
        cuda_join_claim(stream->handle, &join->table, first, join->rows - first, slots->of_rows->data,
                        slots->duplicates->data);
    return cuda_launched(stream, "a join's table");
}

/* Waits for all claims. */
static enum sx_status end_claims(struct cuda_stream *stream, struct sx_join *join,
                                 const struct join_slots *slots) {
    int64_t duplicates = 0;
    SX_TRY(cuda_download(stream, &duplicates, slots->duplicates->data, sizeof duplicates,
                         "duplicates of a join's table"));
    join->has_duplicates = duplicates != 0;
    return duplicates ? cuda_join_make_runs(stream, join, slots->of_rows->data) : SX_OK;
}

/* Payload is laid last, since rows have their key beside it where keys are unique. */
static enum sx_status make_hashed(struct cuda_stream *stream, struct sx_join *join) {
    struct join_slots slots = {0};
    enum sx_status status;
    SX_GO(claim_slots(stream, join, &slots));
    SX_GO(end_claims(stream, join, &slots));
    cuda_join_slots_release(&slots);
    SX_GO(cuda_join_prepare_payload(stream, join, 2));
    SX_GO(cuda_join_lay_payload(stream, join, NULL));
out:
    cuda_join_slots_release(&slots);
    return status;
}

/* All rows have slots, or will: payload is laid while they claim them, as if keys were unique. */
static enum sx_status make_claimed(struct cuda_stream *stream, struct sx_join *join) {
    struct join_slots slots = {0};
    enum sx_status status;
    int64_t n_claimed;
    (void)cuda_join_take_ahead(join, &slots, &n_claimed);
    set_table(join, &slots);
    SX_GO(cuda_join_prepare_payload(stream, join, 2));
    SX_GO(cuda_join_lay_payload(stream, join, NULL));
    SX_GO(cuda_join_end_ahead(stream, join));
    SX_GO(cuda_join_take_column(stream, join, 0, &join->keys[0]));
    SX_GO(cuda_join_keys_of(stream, join, join->keys, &join->table.keys, &join->key_list));
    SX_GO(cuda_join_range_ahead(stream, join, &join->ranges[0]));
    SX_GO(end_claims(stream, join, &slots));
out:
    cuda_join_settle_ahead(join->ahead); /* where it failed before all had their slots */
    cuda_join_slots_release(&slots);
    return status;
}

/* Behind each other, with their ranges. */
static enum sx_status take_keys(struct cuda_stream *stream, struct sx_join *join) {
    SX_TRY(cuda_join_end_ahead(stream, join));
    for (int k = 0; k < join->n_keys; k++)
        SX_TRY(cuda_join_take_column(stream, join, k, &join->keys[k]));
    SX_TRY(find_ranges(stream, join));
    return cuda_join_keys_of(stream, join, join->keys, &join->table.keys, &join->key_list);
}

/* What the workers' streams have issued is done before what this one issues. */
static enum sx_status wait_for_workers(struct cuda_stream *stream, const struct sx_join *join) {
    for (int w = 0; w < join->n_workers; w++)
        if (join->workers[w].appended)
            SX_TRY(cuda_check(stream, cudaStreamWaitEvent(stream->handle, join->workers[w].appended, 0),
                              "an event"));
    return SX_OK;
}

static enum sx_status make_marks(struct cuda_stream *stream, struct sx_join *join) {
    SX_TRY(sx_buffer_create(stream->base.pool, (size_t)join->rows, &join->marks, &stream->base.error));
    return cuda_check(stream, cudaMemsetAsync(join->marks->data, 0, (size_t)join->rows, stream->handle),
                      "marks");
}

/* What it has issued at the end nobody waits for here: other streams read the table once this one has been
 * synchronised. */
enum sx_status sx_cuda_join_build(struct sx_stream *base, struct sx_join *join, int part) {
    struct cuda_stream *stream;
    (void)part; /* the only one */
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(wait_for_workers(stream, join));
    if (join->track_matches)
        SX_TRY(make_marks(stream, join));
    if (join->n_keys == 0)
        return cuda_join_prepare_payload(stream, join, 0);
    if (cuda_join_are_ahead(join))
        return make_claimed(stream, join);
    SX_TRY(take_keys(stream, join));
    if (!cuda_join_is_dense(join, &join->ranges[0], join->rows))
        return make_hashed(stream, join);
    cuda_join_drop_ahead(join->ahead);
    return cuda_join_make_ranked(stream, join);
}
