/* The result: slices of the groups' arrays, or what is computed from them. */
#include "backend/cuda/group.h"

#include "tensor/format.h"
#include "tensor/semantics_average.h"

enum { PART_GROUPS = 4 << 20 };

/* ---- finish ---- */

static void text_of(sx_i128 value, char text[SX_TEXT_BYTES + 1]) {
    text[sx_i128_text(value, text)] = 0;
}

/* The CPU names the two numbers whose sum was too large; here the sum alone is known. */
enum sx_status cuda_group_describe(struct cuda_stream *stream, const struct cuda_fault *fault) {
    const bool negative = (int64_t)fault->detail[2] < 0;
    const sx_i128 limit = negative ? SX_I128_MIN : SX_I128_MAX;
    const sx_u128 low = (sx_u128)fault->detail[1] << 64 | fault->detail[0];
    char text[SX_TEXT_BYTES + 1], rest[SX_TEXT_BYTES + 1];
    text_of(limit, text);
    text_of((sx_i128)(low - (sx_u128)limit), rest);
    return sx_error_set(&stream->base.error, SX_QUERY, "Overflow in HUGEINT addition: %s + %s", text, rest);
}

static void launch_checks(struct cuda_stream *stream, const struct sx_group *group,
                          struct cuda_group_checks *checks) {
    if (checks->n > 0)
        cuda_group_check_sums(stream->handle, checks, group->n_groups, stream->control);
    checks->n = 0;
}

static enum sx_status check_sums(struct cuda_stream *stream, const struct sx_group *group) {
    struct cuda_group_checks checks;
    checks.n = 0;
    for (int a = 0; a < group->n_aggregates && group->n_groups > 0; a++) {
        const struct cuda_group_aggregate *aggregate = &group->aggregates[a];
        if (aggregate->kind != CUDA_GROUP_SUM || aggregate->phys != SX_PHYS_I128)
            continue;
        if (checks.n == CUDA_GROUP_RESULTS)
            launch_checks(stream, group, &checks);
        checks.of[checks.n++] = cuda_group_sum_of(aggregate);
    }
    launch_checks(stream, group, &checks);
    return cuda_launched(stream, "checking sums");
}

/* A sum that is too large is told by the stream's next synchronisation. */
enum sx_status sx_cuda_group_finish(struct sx_stream *base, struct sx_group *group, int *out_parts,
                                    int64_t *out_most_rows) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(cuda_group_follow(stream, group->added));
    SX_TRY(cuda_group_grow_states(stream, group, group->n_groups)); /* there may have been no update */
    SX_TRY(check_sums(stream, group));
    sx_buffer_release(group->slots);
    sx_buffer_release(group->hashes.buffer);
    group->slots = NULL;
    group->hashes.buffer = NULL;
    group->hashes.data = NULL;
    SX_TRY(cuda_group_join_heaps(stream, group));
    const int64_t parts = (group->n_groups + PART_GROUPS - 1) / PART_GROUPS;
    *out_parts = parts > 1 ? (int)parts : 1;
    *out_most_rows = group->n_groups;
    return SX_OK;
}

/* ---- emit ---- */

struct slice {
    struct cuda_stream *stream;
    const struct sx_group *group;
    int64_t first;
    int64_t n;
    struct cuda_group_results *results; /* that are not launched yet */
};

static void launch_results(const struct slice *slice) {
    if (slice->results->n > 0)
        cuda_group_emit_results(slice->stream->handle, slice->results, slice->first, slice->n);
    slice->results->n = 0;
}

/* Validity, and of a sum of integers the values: in one launch with others. */
static void emit_later(const struct slice *slice, const struct cuda_group_aggregate *aggregate,
                       const struct sx_tensor *column) {
    struct cuda_group_results *results = slice->results;
    if (results->n == CUDA_GROUP_RESULTS)
        launch_results(slice);
    results->of[results->n++] = (struct cuda_group_result){
        .sum = cuda_group_sum_of(aggregate),
        .values = aggregate->kind == CUDA_GROUP_SUM ? column->values : NULL,
        .valid = column->valid,
    };
}

/* A second owner of the array's elements in the slice. */
static void share_values(const struct slice *slice, const struct cuda_group_array *array, struct sx_type type,
                         struct sx_tensor *out_column) {
    *out_column = (struct sx_tensor){
        .type = type,
        .layout = SX_FLAT,
        .length = slice->n,
        .values = (char *)array->data + (size_t)slice->first * array->width,
        .values_buffer = sx_buffer_retain(array->buffer),
    };
    if (type.id == SX_TYPE_VARCHAR)
        out_column->heap = sx_buffer_retain(slice->group->heap);
}

static void emit_key(const struct slice *slice, const struct cuda_group_key_store *key,
                     struct sx_tensor *out_column) {
    share_values(slice, &key->values, key->type, out_column);
    out_column->valid = (uint8_t *)key->valid.data + slice->first;
    out_column->valid_buffer = sx_buffer_retain(key->valid.buffer);
}

static void emit_average(const struct slice *slice, const struct cuda_group_aggregate *aggregate,
                         struct sx_tensor *column) {
    const struct sx_type input = aggregate->spec.input;
    cuda_group_emit_average(slice->stream->handle, cuda_group_sum_of(aggregate), sx_average_scale(input),
                            sx_average_is_small(input), slice->first, slice->n, column->values,
                            column->valid);
}

/* Values and validity of a column that is computed from the states. */
static void compute(const struct slice *slice, const struct cuda_group_aggregate *aggregate,
                    struct sx_tensor *column) {
    cudaStream_t handle = slice->stream->handle;
    const struct cuda_group_sum sum = cuda_group_sum_of(aggregate);
    if (aggregate->kind == CUDA_GROUP_SUM && cuda_group_is_float(aggregate)) {
        cuda_group_emit_float_sum(handle, sum, slice->first, slice->n, column->values, column->valid);
        return;
    }
    if (aggregate->kind == CUDA_GROUP_SUM && aggregate->spec.function == SX_AGG_AVG) {
        emit_average(slice, aggregate, column);
        return;
    }
    if (aggregate->kind == CUDA_GROUP_BEST)
        cuda_group_emit_best(handle, aggregate->states.data, (int32_t)aggregate->phys,
                             aggregate->spec.function == SX_AGG_MAX, slice->first, slice->n, column->values);
    emit_later(slice, aggregate, column);
}

static enum sx_status emit_aggregate(const struct slice *slice, const struct cuda_group_aggregate *aggregate,
                                     struct sx_tensor *out_column) {
    struct cuda_stream *stream = slice->stream;
    struct sx_pool *pool = stream->base.pool;
    if (aggregate->kind == CUDA_GROUP_COUNT) {
        share_values(slice, &aggregate->states, aggregate->spec.output, out_column);
        return SX_OK;
    }
    if (aggregate->kind == CUDA_GROUP_KEPT) {
        share_values(slice, &aggregate->states, aggregate->spec.output, out_column);
        SX_TRY(sx_buffer_create(pool, (size_t)slice->n, &out_column->valid_buffer, &stream->base.error));
        out_column->valid = out_column->valid_buffer->data;
        emit_later(slice, aggregate, out_column);
        return SX_OK;
    }
    SX_TRY(sx_tensor_create(pool, aggregate->spec.output, slice->n, true, out_column, &stream->base.error));
    compute(slice, aggregate, out_column);
    return SX_OK;
}

static enum sx_status emit_columns(const struct slice *slice, struct sx_tensor *columns) {
    const struct sx_group *group = slice->group;
    slice->results->n = 0;
    for (int k = 0; k < group->n_keys; k++)
        emit_key(slice, &group->keys[k], &columns[k]);
    for (int a = 0; a < group->n_aggregates; a++)
        SX_TRY(emit_aggregate(slice, &group->aggregates[a], &columns[group->n_keys + a]));
    launch_results(slice);
    return cuda_launched(slice->stream, "results of groups");
}

/* There may be no arrays. */
static enum sx_status empty_columns(const struct slice *slice, struct sx_tensor *columns) {
    const struct sx_group *group = slice->group;
    for (int i = 0; i < group->n_keys + group->n_aggregates; i++) {
        const struct sx_type type =
            i < group->n_keys ? group->keys[i].type : group->aggregates[i - group->n_keys].spec.output;
        SX_TRY(sx_tensor_create(slice->stream->base.pool, type, 0, false, &columns[i],
                                &slice->stream->base.error));
    }
    return SX_OK;
}

enum sx_status sx_cuda_group_emit(struct sx_stream *base, struct sx_group *group, int part, int64_t *cursor,
                                  int64_t max_rows, struct sx_batch *out_batch) {
    struct cuda_stream *stream;
    struct sx_batch batch = {0};
    SX_TRY(cuda_enter(base, &stream));
    const int64_t begin = (int64_t)part * PART_GROUPS, left = group->n_groups - begin;
    int64_t n = (left < PART_GROUPS ? left : PART_GROUPS) - *cursor;
    n = n < 0 ? 0 : n < max_rows ? n : max_rows;
    struct cuda_group_results results;
    const struct slice slice = {stream, group, begin + *cursor, n, &results};
    SX_TRY(sx_batch_create(group->n_keys + group->n_aggregates, n, &batch, &base->error));
    enum sx_status status =
        n > 0 ? emit_columns(&slice, batch.columns) : empty_columns(&slice, batch.columns);
    if (status != SX_OK) {
        sx_batch_release(&batch);
        return status;
    }
    *cursor += n;
    *out_batch = batch;
    return SX_OK;
}
