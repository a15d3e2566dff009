/* Probing, and runtime filters. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/join.h"

enum { COUNTER_ROUND = 4 }; /* and those that follow: struct cuda_join_round */

static enum sx_status create_pairs(struct cuda_stream *stream, int64_t n, struct sx_tensor *probe_rows,
                                   struct sx_tensor *build_rows) {
    SX_TRY(sx_tensor_create_index(stream->base.pool, SX_TYPE_I32, n, probe_rows, &stream->base.error));
    enum sx_status status =
        sx_tensor_create_index(stream->base.pool, SX_TYPE_I64, n, build_rows, &stream->base.error);
    if (status != SX_OK)
        sx_tensor_release(probe_rows);
    return status;
}

/* ---- looking a batch up ---- */

static enum sx_status create_words(struct cuda_stream *stream, int64_t n, struct sx_buffer **out_words) {
    return sx_buffer_create(stream->base.pool, (size_t)n * sizeof(int64_t), out_words, &stream->base.error);
}

/* Entries of the dictionary's values in one of the two forms. */
struct code_lookup {
    struct sx_buffer *entries, *counts, *flags, *list;
};

static void release_codes(struct code_lookup *codes) {
    sx_buffer_release(codes->entries);
    sx_buffer_release(codes->counts);
    sx_buffer_release(codes->flags);
    sx_buffer_release(codes->list);
}

static enum sx_status find_codes(struct cuda_stream *stream, const struct sx_join *join,
                                 const struct sx_tensor *values, bool is_first, struct code_lookup *codes,
                                 struct cuda_join_found *out_found) {
    static const struct cuda_join_found none;
    struct cuda_join_keys keys;
    SX_TRY(cuda_join_keys_of(stream, join, values, &keys, &codes->list));
    SX_TRY(create_words(stream, values->length, &codes->entries));
    if (is_first)
        SX_TRY(
            sx_buffer_create(stream->base.pool, (size_t)values->length, &codes->flags, &stream->base.error));
    else
        SX_TRY(create_words(stream, values->length, &codes->counts));
    *out_found = (struct cuda_join_found){
        .entries = codes->entries->data,
        .counts = is_first ? NULL : codes->counts->data,
    };
    cuda_join_find(stream->handle, &join->table, &keys, &none, values->length, codes->entries->data,
                   is_first ? NULL : codes->counts->data, is_first ? codes->flags->data : NULL);
    return cuda_launched(stream, "a probe of a dictionary");
}

/* Entries, and in *sums counts or in *flags whether there is one. */
static enum sx_status find_rows(struct cuda_stream *stream, const struct sx_join *join,
                                const struct sx_tensor *keys, struct join_lookup *lookup, uint8_t *flags) {
    struct code_lookup codes = {0};
    struct cuda_join_found by_code = {0};
    struct cuda_join_keys probe_keys;
    struct sx_buffer *list = NULL;
    enum sx_status status;
    SX_GO(cuda_join_keys_of(stream, join, keys, &probe_keys, &list));
    if (cuda_join_is_coded(join, keys, lookup->rows))
        SX_GO(find_codes(stream, join, &keys[0].dict->values, lookup->is_first, &codes, &by_code));
    cuda_join_find(stream->handle, &join->table, &probe_keys, &by_code, lookup->rows, lookup->entries->data,
                   lookup->is_first ? NULL : lookup->sums->data, flags);
    SX_GO(cuda_launched(stream, "a probe"));
out:
    sx_buffer_release(list);
    release_codes(&codes);
    return status;
}

/* The rows that match, and a build row of each. */
static enum sx_status look_up_first(struct cuda_stream *stream, const struct sx_join *join,
                                    const struct sx_tensor *keys, struct join_lookup *lookup) {
    struct sx_buffer *flags = NULL, *made = NULL;
    void *scratch;
    struct sx_pool *pool = stream->base.pool;
    struct sx_error *error = &stream->base.error;
    enum sx_status status;
    SX_GO(create_words(stream, lookup->rows, &lookup->entries));
    SX_GO(create_words(stream, 1, &lookup->n_index));
    SX_GO(sx_tensor_create_index(pool, SX_TYPE_I32, lookup->rows, &lookup->index, error));
    SX_GO(sx_buffer_create(pool, (size_t)lookup->rows, &flags, error));
    SX_GO(cuda_select_scratch(stream, lookup->rows, &made, &scratch));
    SX_GO(find_rows(stream, join, keys, lookup, flags->data));
    cuda_select_flags(stream->handle, flags->data, lookup->rows, lookup->index.values, lookup->n_index->data,
                      scratch);
    SX_GO(cuda_launched(stream, "a probe"));
out:
    sx_buffer_release(flags);
    sx_buffer_release(made);
    return status;
}

static enum sx_status look_up_runs(struct cuda_stream *stream, const struct sx_join *join,
                                   const struct sx_tensor *keys, struct join_lookup *lookup) {
    struct sx_buffer *scratch = NULL;
    enum sx_status status;
    SX_GO(create_words(stream, lookup->rows, &lookup->entries));
    SX_GO(create_words(stream, lookup->rows + 1, &lookup->sums));
    SX_GO(sx_buffer_create(stream->base.pool, cuda_exclusive_sum_bytes(lookup->rows), &scratch,
                           &stream->base.error));
    SX_GO(find_rows(stream, join, keys, lookup, NULL));
    cuda_exclusive_sum(stream->handle, lookup->sums->data, lookup->rows, lookup->sums->data, scratch->data);
    SX_GO(cuda_launched(stream, "a probe"));
out:
    sx_buffer_release(scratch);
    return status;
}

/* The lookup keeps the keys, so that equal pointers mean equal keys. */
static bool is_of(const struct sx_join *join, const struct join_lookup *lookup, const struct sx_tensor *keys,
                  int64_t rows, bool is_first) {
    if (!lookup->keys || lookup->rows != rows || lookup->is_first != is_first)
        return false;
    for (int k = 0; k < join->n_keys; k++) {
        const struct sx_tensor *a = &lookup->keys[k], *b = &keys[k];
        if (a->values != b->values || a->valid != b->valid || a->layout != b->layout || a->dict != b->dict)
            return false;
    }
    return true;
}

static enum sx_status look_up(struct cuda_stream *stream, const struct sx_join *join,
                              const struct sx_tensor *keys, int64_t rows, bool is_first,
                              struct join_lookup *lookup) {
    cuda_join_lookup_release(join, lookup);
    struct sx_tensor *kept = calloc((size_t)join->n_keys, sizeof *kept);
    if (!kept)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a probe");
    for (int k = 0; k < join->n_keys; k++)
        sx_tensor_share(&keys[k], &kept[k]);
    lookup->keys = kept;
    lookup->rows = rows;
    lookup->is_first = is_first;
    enum sx_status status =
        is_first ? look_up_first(stream, join, keys, lookup) : look_up_runs(stream, join, keys, lookup);
    if (status != SX_OK)
        cuda_join_lookup_release(join, lookup);
    return status;
}

/* ---- pairs ---- */

static enum sx_status next_round(struct cuda_stream *stream, const struct join_lookup *lookup,
                                 const struct sx_probe_cursor *at, int64_t max_pairs,
                                 struct cuda_join_round *out_round) {
    SX_TRY(cuda_counters_reset(stream, COUNTER_ROUND, sizeof(struct cuda_join_round) / sizeof(int64_t)));
    struct cuda_join_round *round = (struct cuda_join_round *)cuda_counter_place(stream, COUNTER_ROUND);
    if (lookup->is_first)
        cuda_join_round_of_index(stream->handle, lookup->index.values, lookup->n_index->data, lookup->rows,
                                 at->row, max_pairs, round);
    else
        cuda_join_round_of_sums(stream->handle, lookup->sums->data, lookup->rows, at->row, at->entry,
                                max_pairs, round);
    SX_TRY(cuda_launched(stream, "a round of a probe"));
    SX_TRY(cuda_sync_counters(stream, "pairs of a probe"));
    *out_round = (struct cuda_join_round){
        .start = cuda_counter(stream, COUNTER_ROUND),
        .n = cuda_counter(stream, COUNTER_ROUND + 1),
        .row = cuda_counter(stream, COUNTER_ROUND + 2),
        .entry = cuda_counter(stream, COUNTER_ROUND + 3),
    };
    return SX_OK;
}

static enum sx_status emit_first(struct cuda_stream *stream, const struct join_lookup *lookup,
                                 const struct cuda_join_round *round, struct sx_tensor *out_probe_rows,
                                 struct sx_tensor *out_build_rows) {
    struct sx_tensor build_rows;
    SX_TRY(
        sx_tensor_create_index(stream->base.pool, SX_TYPE_I64, round->n, &build_rows, &stream->base.error));
    if (round->n > 0)
        cuda_join_emit_first(stream->handle, (const int32_t *)lookup->index.values + round->start,
                             lookup->entries->data, round->n, build_rows.values);
    enum sx_status status = cuda_launched(stream, "pairs");
    if (status != SX_OK) {
        sx_tensor_release(&build_rows);
        return status;
    }
    sx_tensor_slice(&lookup->index, round->start, round->n, out_probe_rows);
    *out_build_rows = build_rows;
    return SX_OK;
}

static enum sx_status emit_runs(struct cuda_stream *stream, const struct sx_join *join,
                                const struct join_lookup *lookup, const struct cuda_join_round *round,
                                struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows) {
    struct sx_tensor probe_rows, build_rows;
    SX_TRY(create_pairs(stream, round->n, &probe_rows, &build_rows));
    if (round->n > 0)
        cuda_join_emit_runs(stream->handle, lookup->sums->data, lookup->rows, lookup->entries->data,
                            join->table.runs, round->start, round->n, probe_rows.values, build_rows.values);
    enum sx_status status = cuda_launched(stream, "pairs");
    if (status != SX_OK) {
        sx_tensor_release(&probe_rows);
        sx_tensor_release(&build_rows);
        return status;
    }
    *out_probe_rows = probe_rows;
    *out_build_rows = build_rows;
    return SX_OK;
}

static enum sx_status probe_table(struct cuda_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *keys, int64_t rows, bool is_first,
                                  int64_t max_pairs, struct sx_probe_cursor *cursor,
                                  struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows) {
    struct join_user *user = NULL;
    struct cuda_join_round round;
    SX_TRY(cuda_join_user(stream, join, &user));
    struct join_lookup *lookup = &user->lookup;
    if ((cursor->row == 0 && cursor->entry == 0) || !is_of(join, lookup, keys, rows, is_first))
        SX_TRY(look_up(stream, join, keys, rows, is_first, lookup));
    SX_TRY(next_round(stream, lookup, cursor, max_pairs, &round));
    SX_TRY(is_first ? emit_first(stream, lookup, &round, out_probe_rows, out_build_rows)
                    : emit_runs(stream, join, lookup, &round, out_probe_rows, out_build_rows));
    *cursor = (struct sx_probe_cursor){round.row, round.entry, round.row >= rows};
    if (cursor->done)
        cuda_join_lookup_release(join, lookup);
    return SX_OK;
}

/* Every row has `matches` pairs, so that the host knows all counts. */
static enum sx_status probe_cross(struct cuda_stream *stream, const struct sx_join *join, int64_t rows,
                                  bool is_first, int64_t max_pairs, struct sx_probe_cursor *cursor,
                                  struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows) {
    const int64_t matches = is_first && join->rows > 1 ? 1 : join->rows;
    const sx_i128 left = (sx_i128)(rows - cursor->row) * matches - cursor->entry;
    const int64_t n = left < max_pairs ? (int64_t)left : max_pairs;
    struct sx_tensor probe_rows, build_rows;
    SX_TRY(create_pairs(stream, n, &probe_rows, &build_rows));
    if (n > 0)
        cuda_join_emit_cross(stream->handle, cursor->row, cursor->entry, matches, n, probe_rows.values,
                             build_rows.values);
    enum sx_status status = cuda_launched(stream, "pairs");
    if (status != SX_OK) {
        sx_tensor_release(&probe_rows);
        sx_tensor_release(&build_rows);
        return status;
    }
    const int64_t end = cursor->entry + n;
    if (n == left)
        *cursor = (struct sx_probe_cursor){rows, 0, true};
    else
        *cursor = (struct sx_probe_cursor){cursor->row + end / matches, end % matches, false};
    *out_probe_rows = probe_rows;
    *out_build_rows = build_rows;
    return SX_OK;
}

enum sx_status sx_cuda_join_probe(struct sx_stream *base, const struct sx_join *join,
                                  const struct sx_tensor *keys, int64_t rows, enum sx_probe_mode mode,
                                  int64_t max_pairs, struct sx_probe_cursor *cursor,
                                  struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    if (cursor->row >= rows) {
        SX_TRY(create_pairs(stream, 0, out_probe_rows, out_build_rows));
        cursor->done = true;
        return SX_OK;
    }
    if (join->n_keys == 0)
        return probe_cross(stream, join, rows, mode == SX_PROBE_FIRST, max_pairs, cursor, out_probe_rows,
                           out_build_rows);
    return probe_table(stream, join, keys, rows, mode == SX_PROBE_FIRST || !join->has_duplicates, max_pairs,
                       cursor, out_probe_rows, out_build_rows);
}

/* ---- filter ---- */

static enum sx_status test_values(struct cuda_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *key, const struct cuda_join_found *by_code,
                                  const struct sx_tensor *selection, int64_t n, uint8_t *flags) {
    struct cuda_join_table table;
    struct cuda_join_keys keys;
    struct sx_buffer *list;
    SX_TRY(cuda_join_filtered(stream, join, &table));
    SX_TRY(cuda_join_keys_of(stream, join, key, &keys, &list));
    cuda_join_test(stream->handle, &table, &keys, by_code, selection ? selection->values : NULL, n, flags);
    enum sx_status status = cuda_launched(stream, "a join's filter");
    sx_buffer_release(list);
    return status;
}

/* Of `n` rows of the key, or of those in `selection`. */
static enum sx_status test_rows(struct cuda_stream *stream, const struct sx_join *join,
                                const struct sx_tensor *key, const struct sx_tensor *selection, int64_t n,
                                uint8_t *flags) {
    struct cuda_join_found by_code = {0};
    if (!cuda_join_is_coded(join, key, n))
        return test_values(stream, join, key, &by_code, selection, n, flags);
    const struct sx_tensor *values = &key->dict->values;
    struct sx_buffer *of_values;
    SX_TRY(sx_buffer_create(stream->base.pool, (size_t)values->length, &of_values, &stream->base.error));
    enum sx_status status =
        test_values(stream, join, values, &by_code, NULL, values->length, of_values->data);
    by_code.flags = of_values->data;
    if (status == SX_OK)
        status = test_values(stream, join, key, &by_code, selection, n, flags);
    sx_buffer_release(of_values);
    return status;
}

/* selection[index[i]], where a selection is given. */
static enum sx_status select_from(struct cuda_stream *stream, const struct sx_tensor *selection,
                                  struct sx_tensor *index, struct sx_tensor *out_selection) {
    struct sx_tensor chosen;
    if (!selection) {
        *out_selection = *index;
        *index = (struct sx_tensor){0};
        return SX_OK;
    }
    SX_TRY(
        sx_tensor_create_index(stream->base.pool, SX_TYPE_I32, index->length, &chosen, &stream->base.error));
    if (index->length > 0)
        cuda_gather_values(stream->handle, cuda_column_of(selection), index->values, false, sizeof(int32_t),
                           index->length, chosen.values, NULL);
    enum sx_status status = cuda_launched(stream, "a join's filter");
    if (status == SX_OK)
        *out_selection = chosen;
    else
        sx_tensor_release(&chosen);
    return status;
}

enum sx_status sx_cuda_join_filter(struct sx_stream *base, const struct sx_join *join,
                                   const struct sx_tensor *key, const struct sx_tensor *selection,
                                   struct sx_tensor *out_selection) {
    const int64_t n = selection ? selection->length : key->length;
    struct cuda_stream *stream;
    struct sx_buffer *flags = NULL;
    struct sx_tensor index = {0};
    enum sx_status status;
    SX_GO(cuda_enter(base, &stream));
    SX_GO(sx_buffer_create(base->pool, (size_t)n, &flags, &base->error));
    SX_GO(test_rows(stream, join, key, selection, n, flags->data));
    SX_GO(cuda_select(stream, flags->data, n, &index));
    SX_GO(select_from(stream, selection, &index, out_selection));
out:
    sx_buffer_release(flags);
    sx_tensor_release(&index);
    return status;
}
