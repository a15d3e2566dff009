/* Life of a group by, and its memory. */
#include "backend/cuda/group.h"

#include <stdlib.h>
#include <string.h>

/* ---- arrays ---- */

/* Where an array begins in a buffer, for its elements and for copies by words. */
static size_t aligned(size_t bytes) {
    enum { ALIGNMENT = 256 };
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void note_copies(const struct cuda_group_growth *growth, char *data, struct cuda_copies *copies) {
    const size_t used = growth->used_bytes;
    if (used > 0)
        copies->of[copies->n++] = (struct cuda_copy){data, growth->array->data, (int64_t)used};
    if (growth->is_zeroed && growth->bytes > used)
        copies->of[copies->n++] = (struct cuda_copy){data + used, NULL, (int64_t)(growth->bytes - used)};
}

enum sx_status cuda_group_grow_noted(struct cuda_stream *stream, struct cuda_group_growing *growing) {
    const int n = growing->n;
    const size_t bytes = growing->bytes;
    struct cuda_copies copies;
    struct sx_buffer *buffer;
    copies.n = 0;
    growing->n = 0;
    growing->bytes = 0;
    if (n == 0)
        return SX_OK;
    SX_TRY(cuda_shared_create(stream, bytes, &buffer));
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        note_copies(&growing->of[i], (char *)buffer->data + at, &copies);
        at += aligned(growing->of[i].bytes);
    }
    if (copies.n > 0)
        cuda_copy_several(stream->handle, &copies);
    at = 0;
    for (int i = 0; i < n; i++) {
        struct cuda_group_array *array = growing->of[i].array;
        sx_buffer_release(array->buffer);
        array->buffer = sx_buffer_retain(buffer);
        array->data = (char *)buffer->data + at;
        at += aligned(growing->of[i].bytes);
    }
    sx_buffer_release(buffer);
    return cuda_launched(stream, "moving groups");
}

enum sx_status cuda_group_array_grow(struct cuda_stream *stream, struct cuda_group_array *array, int64_t used,
                                     int64_t capacity, bool zeroed, struct cuda_group_growing *growing) {
    enum { TOGETHER_BYTES = 4 << 20 };
    const size_t bytes = (size_t)capacity * array->width;
    if (array->width == 0)
        return SX_OK;
    if (growing->n == CUDA_GROUP_GROWING || growing->bytes + bytes > TOGETHER_BYTES)
        SX_TRY(cuda_group_grow_noted(stream, growing));
    growing->of[growing->n++] =
        (struct cuda_group_growth){array, array->buffer ? (size_t)used * array->width : 0, bytes, zeroed};
    growing->bytes += aligned(bytes);
    return SX_OK;
}

enum {
    EXPECTED_SHARE = 16, /* of the device's memory, for groups that are not there yet */
    MOST_TOLD = 64       /* times as many: few rows do not tell of far more */
};

int64_t cuda_group_expected(const struct sx_group *group, int64_t needed) {
    const double waiting = (double)atomic_load(&group->rows_waiting);
    const double left = group->rows_left > waiting ? group->rows_left : waiting;
    const double told = (double)needed * MOST_TOLD, likely = (double)needed + group->new_share * left,
                 expected = likely < told ? likely : told;
    const int64_t most = needed > group->most_expected ? needed : group->most_expected;
    return expected < (double)most ? (int64_t)expected : most;
}

/* Up to the next number with three bits in front of zeroes. */
static int64_t round_up(int64_t capacity) {
    int64_t step = 1;
    while (capacity / step >= 8)
        step *= 2;
    return (capacity + step - 1) / step * step;
}

int64_t cuda_group_capacity(int64_t capacity, int64_t needed, int64_t expected) {
    enum { LEAST = 1 << 10, LARGE = 1 << 24 };
    if (needed <= capacity)
        return capacity;
    const int64_t grown = capacity < LARGE ? 2 * capacity : capacity + capacity / 2;
    capacity = needed > grown ? needed : grown;
    capacity = capacity > expected ? capacity : expected;
    return capacity > LEAST ? round_up(capacity) : LEAST;
}

static void arrays_of(struct cuda_group_aggregate *aggregate,
                      struct cuda_group_array *out_arrays[CUDA_GROUP_STATE_ARRAYS]) {
    out_arrays[0] = &aggregate->states;
    out_arrays[1] = &aggregate->counts;
    out_arrays[2] = &aggregate->seen;
    out_arrays[3] = &aggregate->winners;
}

/* The first `state_capacity` elements have zeroes where there is no group yet, so they are all kept. */
static enum sx_status grow_states(struct cuda_stream *stream, struct sx_group *group, int64_t capacity,
                                  struct cuda_group_growing *growing) {
    for (int a = 0; a < group->n_aggregates; a++) {
        struct cuda_group_array *arrays[CUDA_GROUP_STATE_ARRAYS];
        arrays_of(&group->aggregates[a], arrays);
        for (int i = 0; i < CUDA_GROUP_STATE_ARRAYS; i++)
            SX_TRY(cuda_group_array_grow(stream, arrays[i], group->state_capacity, capacity, true, growing));
    }
    SX_TRY(cuda_group_grow_noted(stream, growing));
    group->state_capacity = capacity;
    return SX_OK;
}

enum sx_status cuda_group_grow(struct cuda_stream *stream, struct sx_group *group, int64_t capacity,
                               int64_t n_groups, cuda_group_grow_some *grow) {
    if (n_groups <= capacity)
        return SX_OK;
    const int64_t more = cuda_group_capacity(capacity, n_groups, cuda_group_expected(group, n_groups));
    const int64_t least = cuda_group_capacity(capacity, n_groups, n_groups);
    struct cuda_group_growing growing = {.n = 0};
    const enum sx_status status = grow(stream, group, more, &growing);
    return status == SX_OUT_OF_MEMORY && least < more ? grow(stream, group, least, &growing) : status;
}

enum sx_status cuda_group_grow_states(struct cuda_stream *stream, struct sx_group *group, int64_t n_groups) {
    return cuda_group_grow(stream, group, group->state_capacity, n_groups, grow_states);
}

enum sx_status cuda_group_heap_alloc(struct cuda_stream *stream, struct sx_group *group, size_t bytes,
                                     char **out_memory) {
    enum { LEAST_BYTES = 64 << 10, MOST_BYTES = 64 << 20 };
    struct sx_buffer *last = group->n_blocks > 0 ? group->blocks[group->n_blocks - 1] : NULL;
    if (!last || last->size_bytes - group->block_used < bytes) {
        size_t block_bytes = last ? 2 * last->size_bytes : LEAST_BYTES;
        block_bytes = block_bytes < MOST_BYTES ? block_bytes : MOST_BYTES;
        block_bytes = block_bytes > bytes ? block_bytes : bytes;
        struct sx_buffer **blocks =
            realloc(group->blocks, ((size_t)group->n_blocks + 1) * sizeof(struct sx_buffer *));
        if (!blocks)
            return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for the strings of groups");
        group->blocks = blocks;
        SX_TRY(cuda_shared_create(stream, block_bytes, &last));
        blocks[group->n_blocks++] = last;
        group->block_used = 0;
    }
    *out_memory = (char *)last->data + group->block_used;
    group->block_used += bytes;
    return SX_OK;
}

/* ---- what the aggregates need ---- */

static const char *const function_names[] = {
#define NAME(name) [SX_AGG_##name] = #name,
    SX_AGGREGATE_LIST(NAME)
#undef NAME
};

static bool is_float_type(struct sx_type type) {
    return type.id == SX_TYPE_F32 || type.id == SX_TYPE_F64;
}

bool cuda_group_is_float(const struct cuda_group_aggregate *aggregate) {
    return is_float_type(aggregate->spec.input);
}

struct cuda_group_sum cuda_group_sum_of(const struct cuda_group_aggregate *aggregate) {
    return (struct cuda_group_sum){
        .words = aggregate->states.data,
        .n_words = (int32_t)(aggregate->states.width / sizeof(uint64_t)),
        .first_word = aggregate->first_word,
        .counts = aggregate->counts.data,
        .flags = aggregate->seen.data,
        .flag_bytes = (int32_t)aggregate->seen.width,
    };
}

/* Whether the function takes and gives these types, as on the CPU. */
static bool types_fit(const struct sx_aggregate_spec *spec) {
    const enum sx_phys input = sx_type_phys(spec->input), output = sx_type_phys(spec->output);
    const enum sx_type_id id = spec->input.id;
    const bool is_number = id != SX_TYPE_DATE && id != SX_TYPE_TIMESTAMP && id != SX_TYPE_NULLTYPE &&
                           input != SX_PHYS_U128 && input != SX_PHYS_STRING && input != SX_PHYS_INTERVAL;
    switch (spec->function) {
    case SX_AGG_COUNT_STAR:
    case SX_AGG_COUNT: return output == SX_PHYS_I64;
    case SX_AGG_AVG: return is_number && spec->output.id == SX_TYPE_F64;
    case SX_AGG_SUM:
        return is_number &&
               (is_float_type(spec->input) ? spec->output.id == SX_TYPE_F64 : output == SX_PHYS_I128);
    case SX_AGG_MIN:
    case SX_AGG_MAX: return input == output && input != SX_PHYS_INTERVAL;
    default: return input == output;
    }
}

static void set_sum(struct cuda_group_aggregate *aggregate, int *n_ranges) {
    const bool average = aggregate->spec.function == SX_AGG_AVG;
    aggregate->kind = CUDA_GROUP_SUM;
    aggregate->counts.width = average ? sizeof(int64_t) : 0;
    if (cuda_group_is_float(aggregate)) {
        aggregate->seen.width = 4;
        aggregate->range = (*n_ranges)++ % CUDA_GROUP_N_RANGES;
    } else {
        aggregate->states.width = aggregate->phys == SX_PHYS_I128 ? 24 : 16;
        aggregate->seen.width = !average;
    }
}

static enum sx_status set_aggregate(struct cuda_group_aggregate *aggregate,
                                    const struct sx_aggregate_spec *spec, int *n_ranges,
                                    struct sx_error *error) {
    char input[SX_TYPE_NAME_BYTES], output[SX_TYPE_NAME_BYTES];
    if (!types_fit(spec))
        return sx_error_set(error, SX_UNSUPPORTED, "aggregate %s of %s to %s", function_names[spec->function],
                            sx_type_name(spec->input, input), sx_type_name(spec->output, output));
    *aggregate = (struct cuda_group_aggregate){.spec = *spec, .range = -1};
    aggregate->phys = sx_type_phys(spec->input);
    const size_t width = sx_phys_bytes(aggregate->phys);
    if (spec->function == SX_AGG_COUNT || spec->function == SX_AGG_COUNT_STAR) {
        aggregate->kind = CUDA_GROUP_COUNT;
        aggregate->states.width = sizeof(int64_t);
    } else if (spec->function == SX_AGG_SUM || spec->function == SX_AGG_AVG) {
        set_sum(aggregate, n_ranges);
    } else if (width <= 8 && (spec->function == SX_AGG_MIN || spec->function == SX_AGG_MAX)) {
        aggregate->kind = CUDA_GROUP_BEST;
        aggregate->states.width = sizeof(uint64_t);
        aggregate->seen.width = 1;
    } else {
        aggregate->kind = CUDA_GROUP_KEPT;
        aggregate->states.width = width;
        aggregate->seen.width = 1;
        aggregate->winners.width = sizeof(uint32_t);
    }
    return SX_OK;
}

static enum sx_status set_key(struct cuda_group_key_store *key, struct sx_type type, struct sx_error *error) {
    if (type.id == SX_TYPE_INTERVAL)
        return sx_error_set(error, SX_UNSUPPORTED, "GROUP BY of type INTERVAL");
    *key = (struct cuda_group_key_store){
        .type = type, .values.width = sx_type_bytes(type), .valid.width = sizeof(uint8_t)};
    return SX_OK;
}

/* ---- life ---- */

static enum sx_status set_spec(struct sx_group *group, const struct sx_group_spec *spec,
                               struct sx_error *error) {
    int n_ranges = 0;
    group->keys = calloc((size_t)spec->n_keys + 1, sizeof *group->keys);
    group->aggregates = calloc((size_t)spec->n_aggregates + 1, sizeof *group->aggregates);
    if (!group->keys || !group->aggregates)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a group by");
    group->n_keys = spec->n_keys;
    group->n_aggregates = spec->n_aggregates;
    group->hashes.width = sizeof(uint64_t);
    for (int k = 0; k < spec->n_keys; k++)
        SX_TRY(set_key(&group->keys[k], spec->key_types[k], error));
    for (int a = 0; a < spec->n_aggregates; a++)
        SX_TRY(set_aggregate(&group->aggregates[a], &spec->aggregates[a], &n_ranges, error));
    return SX_OK;
}

/* Bytes of the device for a group, at least. */
static size_t group_bytes(const struct sx_group *group) {
    enum { SLOTS = 16 };
    size_t bytes = SLOTS + group->hashes.width;
    for (int k = 0; k < group->n_keys; k++)
        bytes += group->keys[k].values.width + group->keys[k].valid.width;
    for (int a = 0; a < group->n_aggregates; a++) {
        struct cuda_group_array *arrays[CUDA_GROUP_STATE_ARRAYS];
        arrays_of(&group->aggregates[a], arrays);
        for (int i = 0; i < CUDA_GROUP_STATE_ARRAYS; i++)
            bytes += arrays[i]->width;
    }
    return bytes;
}

/* Issues nothing: the device is first used by what comes next. */
enum sx_status sx_cuda_group_create(struct sx_stream *base, const struct sx_group_spec *spec,
                                    struct sx_group **out_group) {
    struct sx_group *group = calloc(1, sizeof *group);
    if (!group)
        return sx_error_set(&base->error, SX_OUT_OF_MEMORY, "no memory for a group by");
    pthread_mutex_init(&group->lock, NULL);
    group->n_groups = spec->n_keys == 0;
    group->rows_left = spec->expected_rows;
    enum sx_status status = set_spec(group, spec, &base->error);
    if (status != SX_OK) {
        sx_cuda_group_destroy(base, group);
        return status;
    }
    group->most_expected =
        (int64_t)(((struct cuda_stream *)base)->device->limit_bytes / EXPECTED_SHARE / group_bytes(group));
    *out_group = group;
    return SX_OK;
}

enum sx_status cuda_group_follow(struct cuda_stream *stream, cudaEvent_t event) {
    return event ? cuda_check(stream, cudaStreamWaitEvent(stream->handle, event, 0), "waiting for a turn")
                 : SX_OK;
}

enum sx_status cuda_group_tell(struct cuda_stream *stream, cudaEvent_t *event) {
    if (!*event)
        SX_TRY(cuda_check(stream, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event"));
    return cuda_check(stream, cudaEventRecord(*event, stream->handle), "an event");
}

void sx_cuda_group_destroy(struct sx_stream *base, struct sx_group *group) {
    (void)base;
    if (!group)
        return;
    for (int k = 0; group->keys && k < group->n_keys; k++) {
        sx_buffer_release(group->keys[k].values.buffer);
        sx_buffer_release(group->keys[k].valid.buffer);
    }
    for (int a = 0; group->aggregates && a < group->n_aggregates; a++) {
        struct cuda_group_array *arrays[CUDA_GROUP_STATE_ARRAYS];
        arrays_of(&group->aggregates[a], arrays);
        for (int i = 0; i < CUDA_GROUP_STATE_ARRAYS; i++)
            sx_buffer_release(arrays[i]->buffer);
    }
    for (int i = 0; i < group->n_blocks; i++)
        sx_buffer_release(group->blocks[i]);
    for (int i = 0; i < group->n_kept; i++)
        sx_buffer_release(group->kept[i]);
    free(group->kept);
    sx_buffer_release(group->hashes.buffer);
    sx_buffer_release(group->slots);
    sx_buffer_release(group->heap);
    if (group->found)
        (void)cudaEventDestroy(group->found);
    if (group->added)
        (void)cudaEventDestroy(group->added);
    pthread_mutex_destroy(&group->lock);
    free(group->stretches);
    free(group->keys);
    free(group->aggregates);
    free(group->blocks);
    free(group);
}
