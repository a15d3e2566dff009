/* The build side while it comes in. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/join.h"

enum { FIRST_CHUNK_ROWS = 1024, MAX_CHUNK_ROWS = 1 << 20 };

static int n_columns(const struct sx_join *join) {
    return join->n_keys + join->n_payload;
}

static void release_chunk(struct sx_join_chunk *chunk, int n) {
    for (int i = 0; chunk->columns && i < n; i++)
        sx_tensor_release(&chunk->columns[i]);
    free(chunk->columns);
    *chunk = (struct sx_join_chunk){0};
}

static void release_worker(struct sx_join *join, struct sx_join_worker *worker) {
    for (int i = 0; i < worker->n_chunks; i++)
        release_chunk(&worker->chunks[i], n_columns(join));
    for (int k = 0; worker->codes && k < join->n_payload; k++)
        sx_unified_release(join->pool, &worker->codes[k].unified);
    free(worker->chunks);
    free(worker->ranges);
    free(worker->codes);
    sx_string_heap_release(&worker->heap);
}

void sx_cpu_join_destroy(struct sx_stream *stream, struct sx_join *join) {
    (void)stream;
    if (!join)
        return;
    for (int w = 0; join->workers && w < join->n_workers; w++)
        release_worker(join, &join->workers[w]);
    for (int k = 0; join->keys && k < join->n_keys; k++)
        sx_tensor_release(&join->keys[k]);
    for (int k = 0; join->payload && k < join->n_payload; k++)
        sx_tensor_release(&join->payload[k]);
    sx_buffer_release(join->heap);
    sx_pool_free(join->pool, join->table, join->table_bytes);
    sx_pool_free(join->pool, join->groups, join->groups_bytes);
    sx_pool_free(join->pool, join->runs, join->groups_bytes);
    sx_pool_free(join->pool, join->starts, join->groups_bytes);
    sx_pool_free(join->pool, join->filter, join->filter_bytes);
    sx_pool_free(join->pool, join->marks, (size_t)join->rows);
    free(join->workers);
    free(join->chunks);
    free(join->keys);
    free(join->payload);
    free(join->ranges);
    free(join->digits);
    free(join->forms);
    free(join->null_equal);
    free(join->column_types);
    free(join);
}

/* One element more than asked, so that no size is 0. */
static bool allocate(struct sx_join *join) {
    size_t keys = (size_t)join->n_keys + 1, payload = (size_t)join->n_payload + 1;
    join->column_types = calloc(keys + payload, sizeof *join->column_types);
    join->forms = calloc(keys, sizeof *join->forms);
    join->null_equal = calloc(keys, sizeof *join->null_equal);
    join->ranges = calloc(keys, sizeof *join->ranges);
    join->digits = calloc(keys, sizeof *join->digits);
    join->keys = calloc(keys, sizeof *join->keys);
    join->payload = calloc(payload, sizeof *join->payload);
    join->workers = calloc((size_t)join->n_workers + 1, sizeof *join->workers);
    if (!join->column_types || !join->forms || !join->null_equal || !join->ranges || !join->digits ||
        !join->keys || !join->payload || !join->workers)
        return false;
    for (int w = 0; w < join->n_workers; w++) {
        join->workers[w].ranges = calloc(keys, sizeof(struct sx_join_range));
        join->workers[w].codes = calloc(payload, sizeof(struct sx_join_codes));
        if (!join->workers[w].ranges || !join->workers[w].codes)
            return false;
        for (int k = 0; k < join->n_keys; k++)
            join->workers[w].ranges[k] = (struct sx_join_range){INT64_MAX, INT64_MIN, false};
    }
    return true;
}

/* Whether the words of a key are its values, or may be shown as such. */
static bool has_shown_range(struct sx_type type) {
    enum sx_phys phys = sx_type_phys(type);
    return sx_join_form_of(type) == SX_JOIN_WORD && phys != SX_PHYS_F32 && phys != SX_PHYS_F64 &&
           type.id != SX_TYPE_NULLTYPE && type.id != SX_TYPE_BOOL;
}

enum sx_status sx_cpu_join_create(struct sx_stream *stream, const struct sx_join_spec *spec,
                                  struct sx_join **out_join) {
    struct sx_join *join = calloc(1, sizeof *join);
    if (!join)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a join");
    join->pool = stream->pool;
    join->n_keys = spec->n_keys;
    join->n_payload = spec->n_payload;
    join->n_workers = spec->n_workers;
    join->track_matches = spec->track_matches;
    if (!allocate(join)) {
        sx_cpu_join_destroy(stream, join);
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a join");
    }
    for (int k = 0; k < spec->n_keys; k++) {
        join->forms[k] = sx_join_form_of(spec->key_types[k]);
        join->column_types[k] = sx_join_form_type(join->forms[k]);
        join->null_equal[k] = spec->null_equal[k];
    }
    for (int k = 0; k < spec->n_payload; k++) {
        join->column_types[spec->n_keys + k] = spec->payload_types[k];
        for (int w = 0; w < spec->n_workers; w++)
            join->workers[w].codes[k].on = spec->payload_types[k].id == SX_TYPE_VARCHAR;
    }
    join->shows_range = spec->n_keys == 1 && has_shown_range(spec->key_types[0]);
    join->is_unsigned = spec->n_keys == 1 && sx_type_phys(spec->key_types[0]) == SX_PHYS_U64;
    *out_join = join;
    return SX_OK;
}

static enum sx_status add_chunk(struct sx_stream *stream, const struct sx_join *join,
                                struct sx_join_worker *worker, int64_t capacity) {
    size_t n = (size_t)worker->n_chunks;
    struct sx_join_chunk *grown = realloc(worker->chunks, (n + 1) * sizeof *grown);
    if (!grown)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
    worker->chunks = grown;
    struct sx_join_chunk chunk = {.capacity = capacity};
    chunk.columns = calloc((size_t)n_columns(join) + 1, sizeof *chunk.columns);
    if (!chunk.columns)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
    for (int i = 0; i < n_columns(join); i++) {
        enum sx_status status = sx_tensor_create(stream->pool, sx_join_stored_type(join, worker, i), capacity,
                                                 false, &chunk.columns[i], &stream->error);
        if (status != SX_OK) {
            release_chunk(&chunk, n_columns(join));
            return status;
        }
    }
    worker->chunks[worker->n_chunks++] = chunk;
    return SX_OK;
}

/* The chunk that takes `rows` more. */
static enum sx_status reserve(struct sx_stream *stream, const struct sx_join *join,
                              struct sx_join_worker *worker, int64_t rows, struct sx_join_chunk **out_chunk) {
    struct sx_join_chunk *last = worker->n_chunks ? &worker->chunks[worker->n_chunks - 1] : NULL;
    if (!last || last->capacity - last->rows < rows) {
        int64_t capacity = worker->rows > FIRST_CHUNK_ROWS ? worker->rows : FIRST_CHUNK_ROWS;
        capacity = capacity < MAX_CHUNK_ROWS ? capacity : MAX_CHUNK_ROWS;
        capacity = capacity > rows ? capacity : rows;
        SX_TRY(add_chunk(stream, join, worker, capacity));
    }
    *out_chunk = &worker->chunks[worker->n_chunks - 1];
    return SX_OK;
}

/* Puts the validity of `column`'s rows behind the chunk's; the bytes exist once a column with nulls came. */
static enum sx_status append_valid(struct sx_stream *stream, const struct sx_join_chunk *chunk,
                                   struct sx_tensor *stored, const struct sx_tensor *column) {
    if (!stored->valid && !column->valid)
        return SX_OK;
    if (!stored->valid) {
        SX_TRY(
            sx_buffer_create(stream->pool, (size_t)chunk->capacity, &stored->valid_buffer, &stream->error));
        stored->valid = stored->valid_buffer->data;
        memset(stored->valid, 1, (size_t)chunk->rows);
    }
    sx_cpu_copy_valid(column, 0, column->length, stored->valid + chunk->rows);
    return SX_OK;
}

/* A dictionary no longer than the batch stays alive as it is; of others the strings in use are copied. */
static enum sx_status append_strings(struct sx_stream *stream, struct sx_join_worker *worker,
                                     const struct sx_tensor *column, const uint8_t *valid,
                                     struct sx_string *views) {
    if (column->layout == SX_DICT && column->dict->values.length <= column->length)
        return sx_string_heap_keep(stream, &worker->heap, column->dict->values.heap);
    return sx_string_heap_take(stream, &worker->heap, views, valid, column->length);
}

static enum sx_status append_column(struct sx_stream *stream, struct sx_join_worker *worker,
                                    const struct sx_join_chunk *chunk, struct sx_tensor *stored,
                                    const struct sx_tensor *column) {
    char *place = (char *)stored->values + (size_t)chunk->rows * sx_type_bytes(stored->type);
    sx_cpu_copy_values(column, 0, column->length, place);
    SX_TRY(append_valid(stream, chunk, stored, column));
    if (stored->type.id != SX_TYPE_VARCHAR)
        return SX_OK;
    const uint8_t *valid = stored->valid ? stored->valid + chunk->rows : NULL;
    return append_strings(stream, worker, column, valid, (struct sx_string *)place);
}

static enum sx_status append_payload(struct sx_stream *stream, const struct sx_join *join,
                                     struct sx_join_worker *worker, const struct sx_join_chunk *chunk, int k,
                                     const struct sx_tensor *column) {
    struct sx_tensor *stored = &chunk->columns[join->n_keys + k];
    if (worker->codes[k].on)
        SX_TRY(sx_join_codes_append(stream, join, worker, chunk, k, column));
    return worker->codes[k].on ? append_valid(stream, chunk, stored, column)
                               : append_column(stream, worker, chunk, stored, column);
}

static enum sx_status append_key(struct sx_stream *stream, struct sx_join *join,
                                 struct sx_join_worker *worker, const struct sx_join_chunk *chunk, int k,
                                 const struct sx_tensor *key) {
    struct sx_tensor *stored = &chunk->columns[k], flat = {0};
    if (join->forms[k] == SX_JOIN_TEXT)
        return append_column(stream, worker, chunk, stored, key);
    enum sx_status status = SX_OK;
    size_t bytes = sx_type_bytes(stored->type);
    void *place = (char *)stored->values + (size_t)chunk->rows * bytes;
    SX_GO(sx_cpu_flatten(stream, key, &flat));
    const void *values = sx_join_normalise(&flat, 0, flat.length, place);
    if (values != place)
        memcpy(place, values, (size_t)flat.length * bytes);
    SX_GO(append_valid(stream, chunk, stored, &flat));
    if (join->forms[k] == SX_JOIN_WORD)
        sx_join_widen_range(&worker->ranges[k], place, flat.valid, flat.length);
out:
    sx_tensor_release(&flat);
    return status;
}

static bool has_null(const struct sx_tensor *column) {
    if (!column->valid)
        return false;
    if (column->layout == SX_CONSTANT)
        return column->length && !column->valid[0];
    return column->length && memchr(column->valid, 0, (size_t)column->length);
}

enum sx_status sx_cpu_join_append(struct sx_stream *stream, struct sx_join *join, int worker_number,
                                  const struct sx_tensor *keys, const struct sx_tensor *payload,
                                  int64_t rows) {
    struct sx_join_worker *worker = &join->workers[worker_number];
    struct sx_join_chunk *chunk;
    SX_TRY(sx_cpu_check_cancel(stream));
    if (rows == 0)
        return SX_OK;
    SX_TRY(reserve(stream, join, worker, rows, &chunk));
    for (int k = 0; k < join->n_keys; k++) {
        SX_TRY(append_key(stream, join, worker, chunk, k, &keys[k]));
        worker->ranges[k].has_null |= has_null(&keys[k]);
    }
    for (int k = 0; k < join->n_payload; k++)
        SX_TRY(append_payload(stream, join, worker, chunk, k, &payload[k]));
    chunk->rows += rows;
    worker->rows += rows;
    return SX_OK;
}

void sx_cpu_join_info(const struct sx_join *join, struct sx_join_info *out_info) {
    *out_info = (struct sx_join_info){.rows = join->rows};
    for (int k = 0; k < join->n_keys; k++)
        out_info->has_null_key |= join->ranges[k].has_null && !join->null_equal[k];
    out_info->keys_unique =
        join->n_keys ? !atomic_load_explicit(&join->has_duplicates, memory_order_relaxed) : join->rows <= 1;
    if (!join->shows_range || join->ranges[0].min > join->ranges[0].max)
        return;
    int64_t bias = join->is_unsigned ? INT64_MIN : 0;
    out_info->key_min = join->ranges[0].min ^ bias;
    out_info->key_max = join->ranges[0].max ^ bias;
    /* an UBIGINT beyond BIGINT has no range that can be shown */
    out_info->has_range = !join->is_unsigned || (out_info->key_min >= 0 && out_info->key_max >= 0);
}

enum sx_status sx_cpu_join_gather(struct sx_stream *stream, const struct sx_join *join,
                                  const int32_t *payload, int n, const struct sx_tensor *build_rows,
                                  struct sx_tensor *out_columns) {
    const struct sx_tensor **columns = calloc((size_t)n + 1, sizeof *columns);
    if (!columns)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for %d columns", n);
    for (int i = 0; i < n; i++)
        columns[i] = &join->payload[payload[i]];
    const enum sx_status status = sx_cpu_gather_columns(stream, columns, n, build_rows, out_columns);
    free(columns);
    return status;
}
