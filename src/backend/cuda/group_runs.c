/* Group numbers without a table. Where every batch's rows come in the order of their key, as those of a scan
 * of a table stored in that order do, runs of equal keys are groups. A group of another batch can only be met
 * at the ends of what is known so far: stretches of keys, which batches prolong or lie between. The first
 * batch that does neither ends this, and all groups go into a hash table. */
#include <string.h>

#include "backend/cuda/group.h"
#include "backend/cuda/launch.h"
#include "base/array.h"

enum {
    LEAST_ROWS = 1 << 12, /* of a first batch: a guess at where a table costs less than a wait */
    MOST_STRETCHES = 1 << 12
};

static bool may_be_in_order(const struct sx_group *group, const struct cuda_group_search *search) {
    const enum cuda_group_order order = atomic_load(&group->order);
    const struct sx_tensor *key = &search->keys[0];
    if (group->n_keys != 1 || order == CUDA_GROUP_NOT_IN_ORDER ||
        (order == CUDA_GROUP_ORDER_UNKNOWN && search->rows < LEAST_ROWS))
        return false;
    switch (sx_type_phys(key->type)) {
    case SX_PHYS_I32:
    case SX_PHYS_I64:
    case SX_PHYS_U32:
    case SX_PHYS_U64: return key->layout == SX_FLAT && !key->valid;
    default: return false;
    }
}

static enum sx_status issue_search(struct cuda_stream *stream, struct cuda_group_search *search) {
    struct sx_pool *pool = stream->base.pool;
    const int64_t n = search->rows;
    struct sx_buffer *made = NULL;
    void *scratch;
    SX_TRY(sx_buffer_create(pool, (size_t)n, &search->flags, &stream->base.error));
    SX_TRY(sx_buffer_create(pool, (size_t)n * sizeof(int32_t), &search->new_rows, &stream->base.error));
    SX_TRY(cuda_counters_reset(stream, CUDA_GROUP_RANGES, CUDA_GROUP_RUN_FACTS));
    SX_TRY(cuda_select_scratch(stream, n, &made, &scratch));
    cuda_group_begin_runs(stream->handle, cuda_column_of(&search->keys[0]), n, search->flags->data,
                          &stream->control->counters[CUDA_GROUP_RANGES]);
    cuda_select_flags(stream->handle, search->flags->data, n, search->new_rows->data,
                      cuda_counter_place(stream, CUDA_GROUP_NEW), scratch);
    const enum sx_status status = cuda_launched(stream, "runs of equal keys");
    sx_buffer_release(made);
    return status;
}

enum sx_status cuda_group_find_runs(struct cuda_stream *stream, const struct sx_group *group,
                                    struct cuda_group_search *search,
                                    struct cuda_group_order_of_batch *out_order) {
    *out_order = (struct cuda_group_order_of_batch){0};
    if (!may_be_in_order(group, search))
        return SX_OK;
    SX_TRY(issue_search(stream, search));
    SX_TRY(cuda_sync_counters(stream, "runs of equal keys"));
    *out_order = (struct cuda_group_order_of_batch){
        .is_known = true,
        .is_ascending = cuda_counter(stream, CUDA_GROUP_RANGES + CUDA_GROUP_DESCENT) == 0,
        .are_short = cuda_counter(stream, CUDA_GROUP_RANGES + CUDA_GROUP_LONG_RUN) == 0,
        .n_runs = cuda_counter(stream, CUDA_GROUP_NEW),
        .least = cuda_counter(stream, CUDA_GROUP_RANGES + CUDA_GROUP_FIRST_KEY),
        .most = cuda_counter(stream, CUDA_GROUP_RANGES + CUDA_GROUP_LAST_KEY),
    };
    return SX_OK;
}

/* ---- stretches ---- */

/* The first one that does not end below the key. */
static int find_stretch(const struct sx_group *group, int64_t key) {
    int low = 0, high = group->n_stretches;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (group->stretches[middle].most < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where the batch's keys go: *head and *tail are the stretches that it meets at their ends, or -1. False: it
 * lies within others. */
static bool find_place(const struct sx_group *group, const struct cuda_group_order_of_batch *order,
                       int *out_at, int *out_head, int *out_tail) {
    const struct cuda_group_stretch *all = group->stretches;
    const int n = group->n_stretches;
    int at = find_stretch(group, order->least);
    *out_head = *out_tail = -1;
    *out_at = at;
    if (at < n && all[at].most == order->least)
        *out_head = at++;
    if (at < n && all[at].least < order->most)
        return false;
    if (at < n && all[at].least == order->most)
        *out_tail = at;
    return true;
}

static enum sx_status make_room(struct cuda_stream *stream, struct sx_group *group) {
    struct cuda_group_stretch *grown =
        sx_array_grow(group->stretches, sizeof *grown, group->n_stretches, &group->room_stretches);
    if (!grown)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for groups");
    group->stretches = grown;
    return SX_OK;
}

/* `made` at `at`, in the place of the `n_gone` that it meets. There is room for one. */
static void put_stretch(struct sx_group *group, int at, int n_gone, struct cuda_group_stretch made) {
    struct cuda_group_stretch *all = group->stretches;
    memmove(&all[at + 1], &all[at + n_gone], (size_t)(group->n_stretches - at - n_gone) * sizeof *all);
    group->n_stretches += 1 - n_gone;
    all[at] = made;
}

/* ---- the caller's turn ---- */

static enum sx_status number(struct cuda_stream *stream, struct sx_group *group,
                             struct cuda_group_search *search) {
    struct cuda_group_numbers *numbers = &search->numbers;
    const struct cuda_group_runs *runs = &numbers->runs;
    const int64_t n_known = (runs->head >= 0) + (runs->tail >= 0);
    numbers->n = search->rows;
    numbers->width = group->n_groups + runs->n <= INT32_MAX ? 4 : 8;
    SX_TRY(sx_buffer_create(stream->base.pool, (size_t)search->rows * (size_t)numbers->width,
                            &search->numbers_buffer, &stream->base.error));
    numbers->numbers = search->numbers_buffer->data;
    cuda_group_number_runs(stream->handle, search->flags->data, *numbers);
    SX_TRY(cuda_launched(stream, "numbers of runs"));
    return cuda_group_append(stream, group, search, runs->begins + (runs->head >= 0), runs->n - n_known);
}

/* The order is known no more, or no use: what the search made is made again. */
static void give_up(struct sx_group *group, struct cuda_group_search *search) {
    atomic_store(&group->order, CUDA_GROUP_NOT_IN_ORDER);
    sx_buffer_release(search->new_rows);
    search->new_rows = NULL;
}

enum sx_status cuda_group_take_runs(struct cuda_stream *stream, struct sx_group *group,
                                    struct cuda_group_search *search,
                                    const struct cuda_group_order_of_batch *order, bool *out_taken) {
    int at, head, tail;
    *out_taken = order->is_known && order->is_ascending && group->n_stretches < MOST_STRETCHES &&
                 atomic_load(&group->order) != CUDA_GROUP_NOT_IN_ORDER &&
                 find_place(group, order, &at, &head, &tail);
    if (!*out_taken) {
        give_up(group, search);
        return SX_OK;
    }
    const struct cuda_group_runs runs = {
        .begins = search->new_rows->data,
        .n = order->n_runs,
        .head = head < 0 ? -1 : group->stretches[head].most_group,
        .tail = tail < 0 ? -1 : group->stretches[tail].least_group,
        .first = group->n_groups,
        .are_short = order->are_short,
    };
    SX_TRY(make_room(stream, group));
    search->numbers.runs = runs;
    SX_TRY(number(stream, group, search));
    const struct cuda_group_stretch made = {
        .least = head < 0 ? order->least : group->stretches[head].least,
        .most = tail < 0 ? order->most : group->stretches[tail].most,
        .least_group = head < 0 ? cuda_group_of_run(&runs, 0) : group->stretches[head].least_group,
        .most_group = tail < 0 ? cuda_group_of_run(&runs, runs.n - 1) : group->stretches[tail].most_group,
    };
    put_stretch(group, at, (head >= 0) + (tail >= 0), made);
    atomic_store(&group->order, CUDA_GROUP_IN_ORDER);
    return SX_OK;
}
