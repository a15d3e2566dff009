/* The table of a key whose words are dense. A bit for each word between the least and the greatest tells
 * whether a build row has it, and the number of bits in front of one is its slot: with those numbers a
 * quarter of a byte a word, where a row number for each would take 4. Where keys are unique the payload lies
 * in the order of the slots, and a slot is the row itself. */
#include "backend/cuda/join.h"

enum {
    SMALL_WORDS = 1 << 16,   /* always dense */
    WORDS_PER_ROW = 16,      /* up to this many words a row: less memory than hashing takes, */
    CACHED_WORDS = 64 << 20, /* and while their ranks (16 MB) fit the cache, up to the following */
    CACHED_WORDS_PER_ROW = 1024
};
static const int64_t most_rows = UINT32_MAX;

bool cuda_join_is_dense(const struct sx_join *join, const struct join_range *range, int64_t n_rows) {
    const uint64_t rows = (uint64_t)n_rows;
    if (join->n_keys != 1 || !cuda_join_has_range(join->types[0]) || n_rows == 0 || n_rows > most_rows)
        return false;
    if (range->min > range->max)
        return true;
    const uint64_t distance = (uint64_t)range->max - (uint64_t)range->min;
    return distance < SMALL_WORDS || distance / WORDS_PER_ROW < rows ||
           (distance < CACHED_WORDS && distance / CACHED_WORDS_PER_ROW < rows);
}

/* Issues the ranks of `n` words of places. */
static enum sx_status rank_many(struct cuda_stream *stream, struct cuda_join_rank *ranked, int64_t n) {
    struct sx_buffer *counts = NULL, *sums = NULL, *scratch = NULL;
    struct sx_pool *pool = stream->base.pool;
    struct sx_error *error = &stream->base.error;
    enum sx_status status;
    SX_GO(sx_buffer_create(pool, (size_t)n * sizeof(int32_t), &counts, error));
    SX_GO(sx_buffer_create(pool, ((size_t)n + 1) * sizeof(int64_t), &sums, error));
    SX_GO(sx_buffer_create(pool, cuda_exclusive_sum_bytes(n), &scratch, error));
    cuda_join_count_places(stream->handle, ranked, n, counts->data);
    cuda_exclusive_sum_i32(stream->handle, counts->data, n, sums->data, scratch->data);
    cuda_join_set_ranks(stream->handle, ranked, n, sums->data, cuda_counter_place(stream, JOIN_SLOTS));
    SX_GO(cuda_launched(stream, "ranks of a join's keys"));
out:
    sx_buffer_release(counts);
    sx_buffer_release(sums);
    sx_buffer_release(scratch);
    return status;
}

/* Issues the ranks of the words that build rows have. */
static enum sx_status make_ranks(struct cuda_stream *stream, struct sx_join *join) {
    struct cuda_join_table *table = &join->table;
    const struct join_range *range = &join->ranges[0];
    int64_t *duplicates;
    table->min = range->min;
    table->n_words = range->min > range->max ? 0 : (uint64_t)range->max - (uint64_t)range->min + 1;
    const int64_t n = (int64_t)(table->n_words / CUDA_JOIN_PLACES) + 1;
    SX_TRY(cuda_join_zeroed(stream, (size_t)n * sizeof *table->ranked, &join->ranked));
    table->ranked = join->ranked->data;
    SX_TRY(cuda_counter_reset(stream, JOIN_DUPLICATES, &duplicates));
    cuda_join_take_places(stream->handle, table, join->rows, duplicates);
    if (n > CUDA_JOIN_FEW_RANKS)
        return rank_many(stream, table->ranked, n);
    cuda_join_rank_few(stream->handle, table->ranked, n, cuda_counter_place(stream, JOIN_SLOTS));
    return cuda_launched(stream, "ranks of a join's keys");
}

static enum sx_status list_slots(struct cuda_stream *stream, const struct sx_join *join,
                                 struct sx_buffer **out_slots) {
    SX_TRY(sx_buffer_create(stream->base.pool, (size_t)join->rows * sizeof(int64_t), out_slots,
                            &stream->base.error));
    cuda_join_list_slots(stream->handle, &join->table, join->rows, (*out_slots)->data);
    return cuda_launched(stream, "slots of a join's table");
}

static enum sx_status list_rows(struct cuda_stream *stream, struct sx_join *join) {
    SX_TRY(sx_buffer_create(stream->base.pool, (size_t)join->rows * sizeof(uint32_t), &join->row_of,
                            &stream->base.error));
    join->table.row_of = join->row_of->data;
    cuda_join_list_rows(stream->handle, &join->table, join->rows);
    return cuda_launched(stream, "rows of a join's table");
}

/* Rows stay as they were appended, and a slot has one or, in runs, several. */
static enum sx_status keep_order(struct cuda_stream *stream, struct sx_join *join) {
    struct sx_buffer *slots = NULL;
    enum sx_status status;
    SX_GO(cuda_join_lay_payload(stream, join, NULL));
    if (!join->row_of)
        SX_GO(list_rows(stream, join));
    if (join->has_duplicates) {
        SX_GO(list_slots(stream, join, &slots));
        SX_GO(cuda_join_make_runs(stream, join, slots->data));
    }
out:
    sx_buffer_release(slots);
    return status;
}

/* Where there is no memory for the list, rows stay as they were appended: the batches go before more is
 * taken. */
static enum sx_status order_by_slot(struct cuda_stream *stream, struct sx_join *join) {
    struct sx_buffer *slots = NULL;
    enum sx_status status = list_slots(stream, join, &slots);
    if (status == SX_OUT_OF_MEMORY) {
        sx_buffer_release(slots);
        stream->base.error = (struct sx_error){0};
        return keep_order(stream, join);
    }
    if (status == SX_OK)
        status = cuda_join_lay_payload(stream, join, slots->data);
    sx_buffer_release(slots);
    return status;
}

enum sx_status cuda_join_make_ranked(struct cuda_stream *stream, struct sx_join *join) {
    const bool all_have_slots = !join->ranges[0].has_null || join->null_equal[0];
    SX_TRY(make_ranks(stream, join));
    SX_TRY(cuda_join_prepare_payload(stream, join, all_have_slots ? 1 : 2));
    const bool may_be_ordered = all_have_slots && cuda_join_can_order(join);
    if (!may_be_ordered)
        SX_TRY(list_rows(stream, join));
    SX_TRY(cuda_sync_counters(stream, "slots of a join's table"));
    join->has_duplicates = cuda_counter(stream, JOIN_DUPLICATES) != 0;
    join->table.n_slots = (uint64_t)cuda_counter(stream, JOIN_SLOTS);
    const bool is_ordered = may_be_ordered && !join->has_duplicates;
    if (!join->has_duplicates && !join->payload_rows)
        return SX_OK; /* nothing is left to do */
    return is_ordered ? order_by_slot(stream, join) : keep_order(stream, join);
}
