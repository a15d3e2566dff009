/* Payload strings: codes of one dictionary where that is worth it, otherwise views.
 *
 * Batches come with a dictionary per row group. Each worker makes one of those it meets while it appends, and
 * its chunks hold codes of that; when all have ended, the workers' dictionaries become the payload's. A
 * worker that meets too many strings or too many FLAT rows turns its codes into views and stays with views.
 */
#include <string.h>

#include "backend/cpu/join.h"

static struct sx_tensor *stored_column(const struct sx_join *join, struct sx_join_chunk *chunk, int k) {
    return &chunk->columns[join->n_keys + k];
}

struct sx_type sx_join_stored_type(const struct sx_join *join, const struct sx_join_worker *worker,
                                   int column) {
    const int k = column - join->n_keys;
    return k >= 0 && worker->codes[k].on ? sx_type_of(SX_TYPE_I32) : join->column_types[column];
}

/* A few row groups without a dictionary are looked up row by row. */
static bool is_mostly_flat(const struct sx_join_codes *codes, int64_t rows) {
    enum { ROWS_PER_FLAT_ROW = 8 };
    return codes->flat_rows > rows / ROWS_PER_FLAT_ROW;
}

enum sx_status sx_join_codes_append(struct sx_stream *stream, const struct sx_join *join,
                                    struct sx_join_worker *worker, const struct sx_join_chunk *chunk, int k,
                                    const struct sx_tensor *column) {
    struct sx_join_codes *codes = &worker->codes[k];
    const int64_t rows = worker->rows + column->length;
    int32_t *place = (int32_t *)chunk->columns[join->n_keys + k].values + chunk->rows;
    codes->flat_rows += column->layout == SX_FLAT ? column->length : 0;
    bool fits = !is_mostly_flat(codes, rows);
    if (fits)
        SX_TRY(sx_unified_recode(stream, &codes->unified, column, sx_unified_limit(rows), place, &fits));
    return fits ? SX_OK : sx_join_codes_stop(stream, join, worker, k);
}

/* ---- codes to views ---- */

static void look_up_views(const struct sx_unified *unified, const int32_t *codes, int64_t rows,
                          struct sx_string *out_views) {
    if (unified->n)
        sx_cpu_gather_values(unified->strings, sizeof *out_views, codes, SX_TYPE_I32, false, rows, out_views);
    else if (rows) /* all are null */
        memset(out_views, 0, (size_t)rows * sizeof *out_views);
}

/* The views lead to the bytes of `codes`. */
static enum sx_status write_views(struct sx_stream *stream, const struct sx_join *join,
                                  struct sx_join_worker *worker, int k) {
    const struct sx_unified *unified = &worker->codes[k].unified;
    for (int c = 0; c < worker->n_chunks; c++) {
        struct sx_join_chunk *chunk = &worker->chunks[c];
        struct sx_tensor *stored = stored_column(join, chunk, k), views = {0};
        SX_TRY(sx_cpu_check_cancel(stream));
        SX_TRY(sx_tensor_create(stream->pool, sx_type_of(SX_TYPE_VARCHAR), chunk->capacity, false, &views,
                                &stream->error));
        look_up_views(unified, stored->values, chunk->rows, views.values);
        views.valid = stored->valid;
        views.valid_buffer = sx_buffer_retain(stored->valid_buffer);
        sx_tensor_release(stored);
        *stored = views;
    }
    return SX_OK;
}

static enum sx_status keep_heap(struct sx_stream *stream, const struct sx_string_heap *from,
                                struct sx_string_heap *heap) {
    for (int b = 0; b < from->n_blocks; b++)
        SX_TRY(sx_string_heap_keep(stream, heap, from->blocks[b]));
    return SX_OK;
}

enum sx_status sx_join_codes_stop(struct sx_stream *stream, const struct sx_join *join,
                                  struct sx_join_worker *worker, int k) {
    struct sx_join_codes *codes = &worker->codes[k];
    SX_TRY(write_views(stream, join, worker, k));
    SX_TRY(keep_heap(stream, &codes->unified.heap, &worker->heap));
    sx_unified_release(stream->pool, &codes->unified);
    codes->on = false;
    return SX_OK;
}

/* ---- the payload ---- */

/* A worker's codes, from row `first_row` of its first chunk on, as codes of `all`. */
static enum sx_status merge_worker(struct sx_stream *stream, const struct sx_join *join,
                                   struct sx_join_worker *worker, int k, struct sx_unified *all,
                                   struct sx_tensor *out, bool *out_fits) {
    const struct sx_unified *unified = &worker->codes[k].unified;
    const size_t bytes = ((size_t)unified->n + 1) * sizeof(int32_t);
    void *memory = NULL;
    SX_TRY(sx_pool_alloc(stream->pool, bytes, &memory, &stream->error));
    int32_t *numbers = memory;
    enum sx_status status;
    numbers[0] = 0; /* that of null rows, when there is no string */
    SX_GO(sx_unified_merge(stream, all, unified, sx_unified_limit(join->rows), numbers, out_fits));
    for (int c = 0; *out_fits && c < worker->n_chunks; c++) {
        struct sx_join_chunk *chunk = &worker->chunks[c];
        struct sx_tensor *stored = stored_column(join, chunk, k);
        SX_GO(sx_cpu_check_cancel(stream));
        sx_cpu_gather_values(numbers, sizeof *numbers, stored->values, SX_TYPE_I32, false, chunk->rows,
                             (int32_t *)out->values + chunk->first_row);
        if (out->valid)
            sx_cpu_copy_valid(stored, 0, chunk->rows, out->valid + chunk->first_row);
    }
out:
    sx_pool_free(stream->pool, memory, bytes);
    return status;
}

static bool has_valid(const struct sx_join *join, int k) {
    for (int c = 0; c < join->n_chunks; c++)
        if (stored_column(join, join->chunks[c], k)->valid)
            return true;
    return false;
}

/* Leaves *out alone when there are too many strings. */
static enum sx_status unify(struct sx_stream *stream, const struct sx_join *join, int k,
                            struct sx_tensor *out) {
    struct sx_unified all = {0};
    struct sx_tensor codes = {0};
    bool fits = true;
    enum sx_status status;
    SX_GO(sx_tensor_create(stream->pool, sx_type_of(SX_TYPE_I32), join->rows, has_valid(join, k), &codes,
                           &stream->error));
    for (int w = 0; w < join->n_workers && fits; w++)
        SX_GO(merge_worker(stream, join, &join->workers[w], k, &all, &codes, &fits));
    if (!fits)
        goto out;
    SX_GO(sx_unified_dict(stream, &all, &codes.dict));
    codes.layout = SX_DICT;
    codes.type = sx_type_of(SX_TYPE_VARCHAR);
    *out = codes;
    codes = (struct sx_tensor){0};
out:
    sx_unified_release(stream->pool, &all);
    sx_tensor_release(&codes);
    return status;
}

static enum sx_status concat_views(struct sx_stream *stream, const struct sx_join *join, int k,
                                   struct sx_tensor *out) {
    struct sx_string_heap heap = {0};
    struct sx_buffer *bytes = NULL;
    enum sx_status status = SX_OK;
    for (int w = 0; w < join->n_workers; w++)
        if (join->workers[w].codes[k].on) {
            SX_GO(write_views(stream, join, &join->workers[w], k));
            SX_GO(keep_heap(stream, &join->workers[w].codes[k].unified.heap, &heap));
        }
    SX_GO(sx_join_concat_chunks(stream, join, join->n_keys + k, out));
    SX_GO(sx_string_heap_keep(stream, &heap, out->heap));
    SX_GO(sx_buffer_join(stream->pool, heap.blocks, heap.n_blocks, &bytes, &stream->error));
    sx_buffer_release(out->heap);
    out->heap = bytes;
out:
    sx_string_heap_release(&heap);
    return status;
}

enum sx_status sx_join_payload_strings(struct sx_stream *stream, const struct sx_join *join, int k,
                                       struct sx_tensor *out) {
    bool all_coded = join->rows > 0;
    for (int w = 0; w < join->n_workers; w++)
        all_coded &= join->workers[w].codes[k].on || join->workers[w].rows == 0;
    if (all_coded)
        SX_TRY(unify(stream, join, k, out));
    if (!out->dict)
        SX_TRY(concat_views(stream, join, k, out));
    for (int w = 0; w < join->n_workers; w++)
        sx_unified_release(join->pool, &join->workers[w].codes[k].unified);
    return SX_OK;
}
