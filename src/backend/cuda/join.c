/* A join's life, its build side while it comes in, and what it tells. */
#include "backend/cuda/join.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static void release_columns(struct sx_tensor *columns, int n) {
    for (int i = 0; columns && i < n; i++)
        sx_tensor_release(&columns[i]);
    free(columns);
}

static void release_worker(const struct sx_join *join, struct join_worker *worker) {
    for (int64_t b = 0; b < worker->n_batches; b++)
        release_columns(worker->batches[b].columns, join->n_keys + join->n_payload);
    free(worker->batches);
    if (worker->appended)
        (void)cudaEventDestroy(worker->appended);
}

void cuda_join_lookup_release(const struct sx_join *join, struct join_lookup *lookup) {
    release_columns(lookup->keys, join->n_keys);
    sx_tensor_release(&lookup->index);
    sx_buffer_release(lookup->n_index);
    sx_buffer_release(lookup->sums);
    sx_buffer_release(lookup->entries);
    *lookup = (struct join_lookup){0};
}

static void release_users(const struct sx_join *join) {
    while (join->users->first) {
        struct join_user *user = join->users->first;
        join->users->first = user->next;
        cuda_join_lookup_release(join, &user->lookup);
        if (user->marked)
            (void)cudaEventDestroy(user->marked);
        free(user);
    }
    pthread_mutex_destroy(&join->users->lock);
    free(join->users);
}

static void release_filter(struct join_filter *filter) {
    sx_buffer_release(filter->words);
    pthread_mutex_destroy(&filter->lock);
    free(filter);
}

void sx_cuda_join_destroy(struct sx_stream *base, struct sx_join *join) {
    (void)base;
    if (!join)
        return;
    cuda_join_ahead_destroy(join->ahead); /* first: it waits for what reads the batches */
    for (int w = 0; join->workers && w < join->n_workers; w++)
        release_worker(join, &join->workers[w]);
    if (join->users)
        release_users(join);
    if (join->filter)
        release_filter(join->filter);
    release_columns(join->keys, join->n_keys);
    release_columns(join->payload, join->n_payload);
    sx_buffer_release(join->marks);
    sx_buffer_release(join->key_list);
    sx_buffer_release(join->slots);
    sx_buffer_release(join->ranked);
    sx_buffer_release(join->row_of);
    sx_buffer_release(join->starts);
    sx_buffer_release(join->runs);
    sx_buffer_release(join->payload_rows);
    free(join->batches);
    free(join->rows_at);
    free(join->rows_valid_at);
    free(join->workers);
    free(join->types);
    free(join->null_equal);
    free(join->ranges);
    free(join);
}

/* One element more than asked, so that no size is 0. */
static bool allocate(struct sx_join *join) {
    const size_t keys = (size_t)join->n_keys + 1, payload = (size_t)join->n_payload + 1;
    join->types = calloc(keys + payload, sizeof *join->types);
    join->null_equal = calloc(keys, sizeof *join->null_equal);
    join->ranges = calloc(keys, sizeof *join->ranges);
    join->keys = calloc(keys, sizeof *join->keys);
    join->payload = calloc(payload, sizeof *join->payload);
    join->rows_at = calloc(payload, sizeof *join->rows_at);
    join->rows_valid_at = calloc(payload, sizeof *join->rows_valid_at);
    join->workers = calloc((size_t)join->n_workers + 1, sizeof *join->workers);
    join->users = calloc(1, sizeof *join->users);
    join->filter = calloc(1, sizeof *join->filter);
    join->ahead = cuda_join_ahead_create();
    if (join->users)
        pthread_mutex_init(&join->users->lock, NULL);
    if (join->filter)
        pthread_mutex_init(&join->filter->lock, NULL);
    return join->types && join->null_equal && join->ranges && join->keys && join->payload && join->workers &&
           join->rows_at && join->rows_valid_at && join->users && join->filter && join->ahead;
}

enum sx_status sx_cuda_join_create(struct sx_stream *base, const struct sx_join_spec *spec,
                                   struct sx_join **out_join) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    struct sx_join *join = calloc(1, sizeof *join);
    if (!join)
        return sx_error_set(&base->error, SX_OUT_OF_MEMORY, "no memory for a join");
    join->n_keys = spec->n_keys;
    join->n_payload = spec->n_payload;
    join->n_workers = spec->n_workers;
    join->track_matches = spec->track_matches;
    if (!allocate(join)) {
        sx_cuda_join_destroy(base, join);
        return sx_error_set(&base->error, SX_OUT_OF_MEMORY, "no memory for a join");
    }
    for (int k = 0; k < spec->n_keys; k++) {
        join->types[k] = spec->key_types[k];
        join->null_equal[k] = spec->null_equal[k];
    }
    for (int k = 0; k < spec->n_payload; k++)
        join->types[spec->n_keys + k] = spec->payload_types[k];
    *out_join = join;
    return SX_OK;
}

/* ---- append ---- */

static enum sx_status add_batch(struct cuda_stream *stream, const struct sx_join *join,
                                struct join_worker *worker, const struct sx_tensor *keys,
                                const struct sx_tensor *payload, int64_t rows) {
    if (worker->n_batches == worker->capacity) {
        const int64_t capacity = worker->capacity ? 2 * worker->capacity : 16;
        struct join_batch *grown = realloc(worker->batches, (size_t)capacity * sizeof *grown);
        if (!grown)
            return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
        worker->batches = grown;
        worker->capacity = capacity;
    }
    struct sx_tensor *columns = calloc((size_t)join->n_keys + (size_t)join->n_payload + 1, sizeof *columns);
    if (!columns)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a join's build side");
    for (int k = 0; k < join->n_keys; k++)
        sx_tensor_share(&keys[k], &columns[k]);
    for (int k = 0; k < join->n_payload; k++)
        sx_tensor_share(&payload[k], &columns[join->n_keys + k]);
    worker->batches[worker->n_batches++] =
        (struct join_batch){.rows = rows, .ahead_row = -1, .columns = columns};
    return SX_OK;
}

/* Notes in `*event` all that was issued to the stream, besides what it notes already. */
static enum sx_status note(struct cuda_stream *stream, cudaEvent_t *event) {
    if (*event)
        SX_TRY(cuda_check(stream, cudaStreamWaitEvent(stream->handle, *event, 0), "an event"));
    else
        SX_TRY(cuda_check(stream, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event"));
    return cuda_check(stream, cudaEventRecord(*event, stream->handle), "an event");
}

/* A worker's batches are its own, so there is nothing to lock for them. */
enum sx_status sx_cuda_join_append(struct sx_stream *base, struct sx_join *join, int worker,
                                   const struct sx_tensor *keys, const struct sx_tensor *payload,
                                   int64_t rows) {
    struct join_worker *own = &join->workers[worker];
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    if (rows == 0)
        return SX_OK;
    SX_TRY(add_batch(stream, join, own, keys, payload, rows));
    SX_TRY(note(stream, &own->appended));
    return cuda_join_claim_ahead(stream, join, &own->batches[own->n_batches - 1], own->appended);
}

/* ---- keys ---- */

static enum cuda_join_form form_of(struct sx_type type) {
    switch (sx_type_phys(type)) {
    case SX_PHYS_STRING: return CUDA_JOIN_TEXT;
    case SX_PHYS_I128:
    case SX_PHYS_U128:
    case SX_PHYS_INTERVAL: return CUDA_JOIN_WIDE;
    default: return CUDA_JOIN_WORD;
    }
}

bool cuda_join_has_range(struct sx_type type) {
    const enum sx_phys phys = sx_type_phys(type);
    return form_of(type) == CUDA_JOIN_WORD && phys != SX_PHYS_F32 && phys != SX_PHYS_F64 &&
           type.id != SX_TYPE_NULLTYPE;
}

static struct cuda_join_key key_of(const struct sx_join *join, int k, const struct sx_tensor *column) {
    return (struct cuda_join_key){
        .column = cuda_column_of(column),
        .form = (int32_t)form_of(join->types[k]),
        .null_equal = join->null_equal[k],
    };
}

enum sx_status cuda_join_keys_of(struct cuda_stream *stream, const struct sx_join *join,
                                 const struct sx_tensor *columns, struct cuda_join_keys *out_keys,
                                 struct sx_buffer **out_list) {
    const struct cuda_join_key first = key_of(join, 0, &columns[0]);
    *out_keys = (struct cuda_join_keys){.first = first, .n = join->n_keys};
    *out_list = NULL;
    if (join->n_keys == 1 && first.form == CUDA_JOIN_WORD)
        return SX_OK;
    struct cuda_join_key *list = calloc((size_t)join->n_keys, sizeof *list);
    if (!list)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a join's keys");
    for (int k = 0; k < join->n_keys; k++)
        list[k] = key_of(join, k, &columns[k]);
    enum sx_status status = cuda_upload_buffer(stream, list, (size_t)join->n_keys * sizeof *list, out_list);
    free(list);
    if (status == SX_OK)
        out_keys->all = (*out_list)->data;
    return status;
}

bool cuda_join_is_coded(const struct sx_join *join, const struct sx_tensor *keys, int64_t rows) {
    return join->n_keys == 1 && keys[0].layout == SX_DICT && keys[0].dict->values.length < rows;
}

/* ---- what is known ---- */

void sx_cuda_join_info(const struct sx_join *join, struct sx_join_info *out_info) {
    *out_info = (struct sx_join_info){.rows = join->rows};
    for (int k = 0; k < join->n_keys; k++)
        out_info->has_null_key |= join->ranges[k].has_null && !join->null_equal[k];
    out_info->keys_unique = join->n_keys ? !join->has_duplicates : join->rows <= 1;
    if (join->n_keys != 1 || join->types[0].id == SX_TYPE_BOOL || !cuda_join_has_range(join->types[0]) ||
        join->ranges[0].min > join->ranges[0].max)
        return;
    const bool is_unsigned = sx_type_phys(join->types[0]) == SX_PHYS_U64;
    const int64_t bias = is_unsigned ? INT64_MIN : 0;
    out_info->key_min = join->ranges[0].min ^ bias;
    out_info->key_max = join->ranges[0].max ^ bias;
    /* an UBIGINT beyond BIGINT has no range that can be shown */
    out_info->has_range = !is_unsigned || (out_info->key_min >= 0 && out_info->key_max >= 0);
}

/* ---- streams that use it, and marks ---- */

static struct join_user *find_user(const struct join_users *users, const struct cuda_stream *stream) {
    struct join_user *user = users->first;
    while (user && user->stream != stream)
        user = user->next;
    return user;
}

enum sx_status cuda_join_user(struct cuda_stream *stream, const struct sx_join *join,
                              struct join_user **out_user) {
    struct join_users *users = join->users;
    pthread_mutex_lock(&users->lock);
    struct join_user *user = find_user(users, stream);
    if (!user) {
        user = calloc(1, sizeof *user);
        if (user) {
            user->stream = stream;
            user->next = users->first;
            users->first = user;
        }
    }
    pthread_mutex_unlock(&users->lock);
    if (!user)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a join");
    *out_user = user;
    return SX_OK;
}

/* The event is set under the lock, since join_marked of other streams reads it. */
enum sx_status sx_cuda_join_mark(struct sx_stream *base, struct sx_join *join,
                                 const struct sx_tensor *build_rows) {
    struct cuda_stream *stream;
    struct join_user *user = NULL;
    SX_TRY(cuda_enter(base, &stream));
    if (build_rows->length == 0)
        return SX_OK;
    SX_TRY(cuda_join_user(stream, join, &user));
    cuda_join_set_marks(stream->handle, build_rows->values, build_rows->length, join->marks->data);
    SX_TRY(cuda_launched(stream, "marks"));
    pthread_mutex_lock(&join->users->lock);
    enum sx_status status = note(stream, &user->marked);
    pthread_mutex_unlock(&join->users->lock);
    return status;
}

static enum sx_status wait_for_marks(struct cuda_stream *stream, const struct sx_join *join) {
    enum sx_status status = SX_OK;
    pthread_mutex_lock(&join->users->lock);
    for (const struct join_user *user = join->users->first; user && status == SX_OK; user = user->next)
        if (user->marked)
            status = cuda_check(stream, cudaStreamWaitEvent(stream->handle, user->marked, 0), "an event");
    pthread_mutex_unlock(&join->users->lock);
    return status;
}

enum sx_status sx_cuda_join_marked(struct sx_stream *base, const struct sx_join *join, bool wanted,
                                   int64_t first, int64_t count, struct sx_tensor *out_build_rows) {
    struct cuda_stream *stream;
    struct sx_buffer *flags = NULL, *made = NULL;
    void *scratch;
    struct sx_tensor rows = {0};
    int64_t n = join->rows - first < count ? join->rows - first : count;
    n = n > 0 ? n : 0;
    enum sx_status status;
    SX_GO(cuda_enter(base, &stream));
    SX_GO(wait_for_marks(stream, join));
    SX_GO(sx_buffer_create(base->pool, (size_t)n, &flags, &base->error));
    SX_GO(cuda_select_scratch(stream, n, &made, &scratch));
    SX_GO(sx_tensor_create_index(base->pool, SX_TYPE_I64, n, &rows, &base->error));
    const struct cuda_column marks = {
        .values = (const uint8_t *)join->marks->data + first, .layout = CUDA_FLAT, .phys = SX_PHYS_U8};
    cuda_mask_flags(stream->handle, marks, wanted, n, flags->data);
    cuda_select_flags_i64(stream->handle, flags->data, n, first, rows.values, cuda_counter_place(stream, 0),
                          scratch);
    SX_GO(cuda_launched(stream, "marked rows"));
    SX_GO(cuda_sync(stream, "marked rows"));
    rows.length = cuda_counter(stream, 0);
    *out_build_rows = rows;
    rows = (struct sx_tensor){0};
out:
    sx_buffer_release(flags);
    sx_buffer_release(made);
    sx_tensor_release(&rows);
    return status;
}
