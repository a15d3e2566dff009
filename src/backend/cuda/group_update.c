/* One batch goes into the groups. The host waits once with keys (for the number of new groups), or without
 * keys but with sums of floating point (for the digits they need); once more where strings are kept. */
#include <stdlib.h>

#include "backend/cuda/group.h"

struct update {
    struct cuda_stream *stream;
    struct sx_group *group;
    const struct sx_tensor *inputs;
    const struct sx_tensor *filters;
    int64_t rows;
    struct cuda_group_search search;
    struct cuda_group_order_of_batch order;
    struct cuda_group_additions *additions; /* few groups: those that are not launched yet */
};

static bool is_left_alone(const struct update *update, int a) {
    return update->inputs[a].length < 0;
}

/* Of NARROW entries the offsets are read: as unsigned integers of half the width. */
static void read_offsets(const struct cuda_group_aggregate *aggregate, const struct sx_tensor *entries,
                         struct cuda_group_input *input) {
    input->values.phys = sx_type_bytes(entries->type) > sizeof(uint64_t) ? SX_PHYS_U64 : SX_PHYS_U32;
    input->base = entries->base;
    input->base_is_unsigned = aggregate->phys == SX_PHYS_U64;
}

/* What aggregate a reads; without group numbers until the search has ended. */
static struct cuda_group_input input_of(const struct update *update, int a) {
    const struct cuda_group_aggregate *aggregate = &update->group->aggregates[a];
    const struct sx_tensor *values = &update->inputs[a];
    const struct sx_tensor *filter = update->filters ? &update->filters[a] : NULL;
    const enum sx_aggregate function = aggregate->spec.function;
    struct cuda_group_input input = {.rows = update->search.numbers};
    input.rows.n = update->rows;
    input.counts_nulls = function == SX_AGG_COUNT_STAR || function == SX_AGG_FIRST;
    input.has_filter = filter && filter->length >= 0;
    if (input.has_filter)
        input.filter = cuda_column_of(filter);
    input.all_null = function == SX_AGG_COUNT_STAR || aggregate->spec.input.id == SX_TYPE_NULLTYPE ||
                     (values->layout == SX_DICT && values->dict->values.length == 0);
    if (!input.all_null)
        input.values = cuda_column_of(values);
    input.values.phys = (int32_t)aggregate->phys;
    if (values->layout == SX_SELECTED && values->dict->values.layout == SX_NARROW)
        read_offsets(aggregate, &values->dict->values, &input);
    return input;
}

/* ---- sums of floating point: their words ---- */

static bool has_range(const struct update *update, int a) {
    return update->group->aggregates[a].range >= 0 && !is_left_alone(update, a);
}

/* Issues the search for the batch's highest and lowest digits. */
static enum sx_status find_ranges(const struct update *update, bool *out_any) {
    struct cuda_stream *stream = update->stream;
    const int n_aggregates = update->group->n_aggregates;
    *out_any = false;
    for (int a = 0; a < n_aggregates; a++)
        *out_any |= has_range(update, a);
    if (*out_any)
        SX_TRY(cuda_counters_reset(stream, CUDA_GROUP_RANGES, 2 * CUDA_GROUP_N_RANGES));
    for (int a = 0; a < n_aggregates; a++)
        if (has_range(update, a))
            cuda_group_range(
                stream->handle, input_of(update, a),
                &stream->control->counters[CUDA_GROUP_RANGES + 2 * update->group->aggregates[a].range]);
    return cuda_launched(stream, "digits of sums");
}

struct digits {
    bool any;
    int first_word;
    int end_bit; /* past the highest, from bit 0 of word 0 */
};

static struct digits digits_of(const struct update *update, int a) {
    const int at = CUDA_GROUP_RANGES + 2 * update->group->aggregates[a].range;
    const int highest = (int)cuda_counter(update->stream, at);
    const int lowest = CUDA_GROUP_BITS - (int)cuda_counter(update->stream, at + 1);
    return (struct digits){highest > 0, lowest / 64, highest};
}

/* The sum's words take in those of the batch, and 64 bits above them: for up to 2^63 rows. */
static enum sx_status cover_digits(const struct update *update, int a) {
    struct cuda_group_aggregate *aggregate = &update->group->aggregates[a];
    const struct digits digits = digits_of(update, a);
    const int n_words = (int)(aggregate->states.width / sizeof(uint64_t));
    if (!digits.any)
        return SX_OK;
    int first = digits.first_word, end = (digits.end_bit + 64 + 63) / 64;
    if (n_words > 0) {
        first = first < aggregate->first_word ? first : aggregate->first_word;
        end = end > aggregate->first_word + n_words ? end : aggregate->first_word + n_words;
        if (end - first == n_words)
            return SX_OK;
    }
    struct cuda_group_aggregate wide = *aggregate;
    struct cuda_group_growing growing = {.n = 0};
    wide.first_word = first;
    wide.states = (struct cuda_group_array){.width = (size_t)(end - first) * sizeof(uint64_t)};
    SX_TRY(cuda_group_array_grow(update->stream, &wide.states, 0, update->group->state_capacity, true,
                                 &growing));
    SX_TRY(cuda_group_grow_noted(update->stream, &growing));
    if (n_words > 0)
        cuda_group_widen(update->stream->handle, cuda_group_sum_of(aggregate), cuda_group_sum_of(&wide),
                         update->group->n_groups);
    enum sx_status status = cuda_launched(update->stream, "widening sums");
    sx_buffer_release(aggregate->states.buffer);
    *aggregate = wide;
    return status;
}

/* ---- sums and counts of the same values: one pass ---- */

static bool has_filter(const struct update *update, int a) {
    return update->filters && update->filters[a].length >= 0;
}

static bool same_values(const struct sx_tensor *x, const struct sx_tensor *y) {
    return x->values == y->values && x->valid == y->valid && x->layout == y->layout && x->dict == y->dict;
}

/* Whether what aggregate b adds is known from what is added for a, another one or the same. */
static bool leads(const struct update *update, int a, int b) {
    const struct cuda_group_aggregate *leader = &update->group->aggregates[a];
    const struct cuda_group_aggregate *other = &update->group->aggregates[b];
    const struct sx_tensor *values = &update->inputs[a];
    if (leader->kind != CUDA_GROUP_SUM || leader->range >= 0 || is_left_alone(update, a) ||
        has_filter(update, a) || has_filter(update, b))
        return false;
    if (other->kind == CUDA_GROUP_SUM)
        return other->range < 0 && leader->phys == other->phys && same_values(values, &update->inputs[b]);
    if (other->kind != CUDA_GROUP_COUNT || values->valid || input_of(update, a).all_null)
        return false;
    return other->spec.function == SX_AGG_COUNT_STAR ||
           (!update->inputs[b].valid && !input_of(update, b).all_null);
}

/* The first that leads it; itself where none does. */
static int leader_of(const struct update *update, int b) {
    for (int a = 0; a < update->group->n_aggregates; a++)
        if (leads(update, a, b))
            return a;
    return b;
}

static struct cuda_group_sum sum_or_count(const struct cuda_group_aggregate *aggregate) {
    if (aggregate->kind == CUDA_GROUP_COUNT)
        return (struct cuda_group_sum){.counts = aggregate->states.data};
    return cuda_group_sum_of(aggregate);
}

/* ---- without keys, or with few groups: one launch for all but floating point ---- */

static bool adds_together(const struct update *update, int a) {
    const struct sx_group *group = update->group;
    return group->aggregates[a].range < 0 && (group->n_keys == 0 || (!update->search.numbers.runs.are_short &&
                                                                     cuda_group_sums_few(group->n_groups)));
}

static void launch_additions(const struct update *update) {
    cudaStream_t stream = update->stream->handle;
    if (update->additions->n == 0)
        return;
    if (update->group->n_keys == 0)
        cuda_group_sum_one(stream, update->additions);
    else
        cuda_group_sum_few(stream, update->additions, update->group->n_groups);
    update->additions->n = 0;
}

static void add_later(const struct update *update, const struct cuda_group_input *input,
                      const struct cuda_group_sums *sums) {
    struct cuda_group_additions *additions = update->additions;
    if (additions->n == CUDA_GROUP_ADDITIONS)
        launch_additions(update);
    additions->of[additions->n++] = (struct cuda_group_addition){*input, *sums};
}

static void add_count(const struct update *update, int a) {
    const struct cuda_group_aggregate *aggregate = &update->group->aggregates[a];
    const struct cuda_group_sums sums = {.of = {sum_or_count(aggregate)}, .n = 1};
    struct cuda_group_input input = input_of(update, a);
    if (!adds_together(update, a)) {
        cuda_group_count(update->stream->handle, input, update->group->n_groups, aggregate->states.data);
        return;
    }
    input.values.phys = CUDA_GROUP_ROWS;
    add_later(update, &input, &sums);
}

static void add_sums(const struct update *update, int a, const struct cuda_group_sums *sums, bool narrow,
                     int first_narrow) {
    const struct cuda_group_input input = input_of(update, a);
    if (adds_together(update, a))
        add_later(update, &input, sums);
    else
        cuda_group_sum(update->stream->handle, input, update->group->n_groups, *sums, narrow, first_narrow);
}

/* Adds to the sum, and to all that it leads. */
static void add_sum(const struct update *update, int a) {
    struct cuda_group_sums sums = {.of = {cuda_group_sum_of(&update->group->aggregates[a])}, .n = 1};
    bool narrow = true;
    int first_narrow = sums.of[0].first_word;
    if (has_range(update, a)) {
        enum { ROW_BITS = 32, NARROW_BITS = 3 * 64 };
        const struct digits digits = digits_of(update, a);
        if (digits.any) {
            first_narrow = digits.first_word;
            narrow = digits.end_bit - 64 * first_narrow + ROW_BITS <= NARROW_BITS;
        }
    }
    for (int b = 0; b < update->group->n_aggregates; b++) {
        if (b == a || is_left_alone(update, b) || leader_of(update, b) != a)
            continue;
        if (sums.n == CUDA_GROUP_SUMS) {
            add_sums(update, a, &sums, narrow, first_narrow);
            sums.n = 0;
        }
        sums.of[sums.n++] = sum_or_count(&update->group->aggregates[b]);
    }
    add_sums(update, a, &sums, narrow, first_narrow);
}

/* ---- values that are kept ---- */

static struct cuda_group_kept kept_of(const struct cuda_group_aggregate *aggregate) {
    return (struct cuda_group_kept){
        .values = aggregate->states.data,
        .seen = aggregate->seen.data,
        .winners = aggregate->winners.data,
        .width = (int32_t)aggregate->states.width,
        .choice = aggregate->spec.function == SX_AGG_MIN   ? CUDA_GROUP_MIN
                  : aggregate->spec.function == SX_AGG_MAX ? CUDA_GROUP_MAX
                                                           : CUDA_GROUP_FIRST,
    };
}

static bool keeps(const struct update *update, int a, bool strings) {
    const struct cuda_group_aggregate *aggregate = &update->group->aggregates[a];
    return aggregate->kind == CUDA_GROUP_KEPT && !is_left_alone(update, a) &&
           (!strings || aggregate->phys == SX_PHYS_STRING);
}

/* Room for the strings that won; strings are the reason for a second synchronisation. */
static enum sx_status make_string_room(const struct update *update, char **out_heap, int64_t **out_used) {
    struct cuda_stream *stream = update->stream;
    int64_t *bytes;
    bool any = false;
    *out_heap = NULL;
    *out_used = NULL;
    for (int a = 0; a < update->group->n_aggregates; a++)
        any |= keeps(update, a, true);
    if (!any)
        return SX_OK;
    SX_TRY(cuda_counter_reset(stream, CUDA_GROUP_KEPT_BYTES, &bytes));
    SX_TRY(cuda_counter_reset(stream, CUDA_GROUP_USED_BYTES, out_used));
    for (int a = 0; a < update->group->n_aggregates; a++)
        if (keeps(update, a, true))
            cuda_group_kept_bytes(stream->handle, input_of(update, a), kept_of(&update->group->aggregates[a]),
                                  (unsigned long long *)bytes);
    SX_TRY(cuda_launched(stream, "strings of groups"));
    SX_TRY(cuda_sync(stream, "string bytes of groups"));
    const int64_t needed = cuda_counter(stream, CUDA_GROUP_KEPT_BYTES);
    return needed > 0 ? cuda_group_heap_alloc(stream, update->group, (size_t)needed, out_heap) : SX_OK;
}

static enum sx_status keep_values(const struct update *update) {
    struct cuda_stream *stream = update->stream;
    char *heap;
    int64_t *used;
    for (int a = 0; a < update->group->n_aggregates; a++)
        if (keeps(update, a, false))
            cuda_group_choose(stream->handle, input_of(update, a), kept_of(&update->group->aggregates[a]));
    SX_TRY(cuda_launched(stream, "choosing values"));
    SX_TRY(make_string_room(update, &heap, &used));
    for (int a = 0; a < update->group->n_aggregates; a++)
        if (keeps(update, a, false))
            cuda_group_keep(stream->handle, input_of(update, a), kept_of(&update->group->aggregates[a]), heap,
                            (unsigned long long *)used);
    return cuda_launched(stream, "keeping values");
}

/* ---- the whole ---- */

static void add_aggregate(const struct update *update, int a) {
    const struct cuda_group_aggregate *aggregate = &update->group->aggregates[a];
    switch (aggregate->kind) {
    case CUDA_GROUP_COUNT: add_count(update, a); break;
    case CUDA_GROUP_SUM: add_sum(update, a); break;
    case CUDA_GROUP_BEST:
        cuda_group_best(update->stream->handle, input_of(update, a), update->group->n_groups,
                        aggregate->spec.function == SX_AGG_MAX, aggregate->states.data, aggregate->seen.data);
        break;
    case CUDA_GROUP_KEPT: break; /* afterwards, all together */
    }
}

static void add_aggregates(struct update *update) {
    struct cuda_group_additions additions;
    additions.n = 0;
    update->additions = &additions;
    for (int a = 0; a < update->group->n_aggregates; a++)
        if (!is_left_alone(update, a) && leader_of(update, a) == a)
            add_aggregate(update, a);
    launch_additions(update);
    update->additions = NULL;
}

static enum sx_status run_update(struct update *update) {
    struct cuda_stream *stream = update->stream;
    struct sx_group *group = update->group;
    bool any_range, has_numbers = group->n_keys == 0;
    group->rows_left = group->rows_left > (double)update->rows ? group->rows_left - (double)update->rows : 0;
    if (!has_numbers)
        SX_TRY(cuda_group_take_runs(stream, group, &update->search, &update->order, &has_numbers));
    if (!has_numbers)
        SX_TRY(cuda_group_search_begin(stream, group, &update->search));
    SX_TRY(find_ranges(update, &any_range));
    if (!has_numbers || any_range)
        SX_TRY(cuda_sync_counters(stream, "new groups of a batch"));
    if (!has_numbers)
        SX_TRY(cuda_group_search_end(stream, group, &update->search));
    SX_TRY(cuda_group_tell(stream, &group->found));
    SX_TRY(cuda_group_follow(stream, group->added));
    SX_TRY(cuda_group_grow_states(stream, group, group->n_groups));
    for (int a = 0; a < group->n_aggregates; a++)
        if (has_range(update, a))
            SX_TRY(cover_digits(update, a));
    add_aggregates(update);
    SX_TRY(cuda_launched(stream, "aggregates"));
    return keep_values(update);
}

enum sx_status sx_cuda_group_update(struct sx_stream *base, struct sx_group *group, int worker,
                                    const struct sx_tensor *keys, const struct sx_tensor *inputs,
                                    const struct sx_tensor *filters, int64_t rows) {
    (void)worker;
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    if (rows > INT32_MAX)
        return sx_error_set(&base->error, SX_INTERNAL, "groups of %lld rows", (long long)rows);
    if (rows == 0)
        return SX_OK;
    struct update update = {
        .stream = stream, .group = group, .inputs = inputs, .filters = filters, .rows = rows};
    update.search.keys = keys;
    update.search.rows = rows;
    enum sx_status found = cuda_group_find_runs(stream, group, &update.search, &update.order);
    atomic_fetch_add(&group->rows_waiting, rows);
    pthread_mutex_lock(&group->lock);
    atomic_fetch_sub(&group->rows_waiting, rows);
    const enum sx_status failed = group->failure.status;
    enum sx_status status = failed ? sx_error_set(&base->error, failed, "%s", group->failure.text)
                                   : cuda_group_follow(stream, group->found);
    if (status == SX_OK)
        status = found == SX_OK ? run_update(&update) : found;
    if (status == SX_OK)
        status = cuda_group_tell(stream, &group->added);
    if (status != SX_OK && !failed)
        group->failure = base->error;
    cuda_group_search_release(group, &update.search);
    cuda_hand_over(stream);
    pthread_mutex_unlock(&group->lock);
    return status;
}
