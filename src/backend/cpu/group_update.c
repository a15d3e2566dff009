/* One block of input into the groups. */
#include <string.h>

#include "backend/cpu/group_state.h"

/* How the groups of a block's rows are told. */
struct block {
    struct sx_group_worker *worker;
    const struct sx_group_layout *layout;
    struct sx_stream *stream;
    const struct sx_tensor *inputs;
    const struct sx_tensor *filters;
    int64_t first;
    int32_t n;
    bool coded;              /* worker->codes[i] numbers the row's group in group_rows */
    int32_t n_groups;        /* if coded */
    char *const *group_rows; /* if coded, or for the one group */
    bool one;                /* all rows belong to group_rows[0] */
    bool counted;            /* worker->counts holds the rows of each group */
    bool has_rows;           /* worker->rows is set */
};

/* ---- inputs ---- */

static inline void gather(const char *from, const int32_t *codes, int32_t n, size_t bytes, char *to) {
    for (int32_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * bytes, from + (codes ? (size_t)codes[i] * bytes : 0), bytes);
}

static void gather_sized(const void *from, const int32_t *codes, int32_t n, size_t bytes, char *to) {
    switch (bytes) {
    case 1: gather(from, codes, n, 1, to); break;
    case 2: gather(from, codes, n, 2, to); break;
    case 4: gather(from, codes, n, 4, to); break;
    case 8: gather(from, codes, n, 8, to); break;
    default: gather(from, codes, n, 16, to);
    }
}

static const void *flat_values(const struct block *block, const struct sx_tensor *input) {
    const size_t bytes = sx_type_bytes(input->type);
    char *to = block->worker->values;
    if (input->layout == SX_FLAT)
        return (const char *)input->values + (size_t)block->first * bytes;
    if (input->layout == SX_CONSTANT)
        gather_sized(input->values, NULL, block->n, bytes, to);
    else
        gather_sized(input->dict->values.values, (const int32_t *)input->values + block->first, block->n,
                     bytes, to);
    return to;
}

static bool all_null(const struct sx_tensor *column) {
    if (column->type.id == SX_TYPE_NULLTYPE)
        return true;
    if (column->layout == SX_CONSTANT)
        return column->valid && !column->valid[0];
    return column->layout == SX_DICT && column->dict->values.length == 0;
}

/* mask[i] becomes 0 where the column's row is NULL. */
static void mask_nulls(const struct block *block, const struct sx_tensor *column, uint8_t *mask) {
    const uint8_t *valid = column->valid;
    if (all_null(column)) {
        memset(mask, 0, (size_t)block->n);
    } else if (valid && column->layout != SX_CONSTANT) {
        for (int32_t i = 0; i < block->n; i++)
            mask[i] = mask[i] && valid[block->first + i];
    }
}

static void mask_filter(const struct block *block, const struct sx_tensor *filter, uint8_t *mask) {
    mask_nulls(block, filter, mask);
    if (all_null(filter))
        return;
    const uint8_t *values = filter->values;
    for (int32_t i = 0; i < block->n; i++) {
        const int64_t row = block->first + i;
        const uint8_t pass =
            filter->layout == SX_FLAT ? values[row]
            : filter->layout == SX_DICT
                ? ((const uint8_t *)filter->dict->values.values)[((const int32_t *)filter->values)[row]]
                : values[0];
        mask[i] = mask[i] && pass;
    }
}

static void select_rows(struct block *block, struct sx_group_call *call) {
    const uint8_t *mask = block->worker->mask;
    int32_t *selection = block->worker->selection;
    int32_t kept = 0;
    for (int32_t i = 0; i < block->n; i++) {
        selection[kept] = i;
        kept += mask[i] != 0;
    }
    call->n = kept;
    call->selection = kept == block->n ? NULL : selection;
}

static const struct sx_tensor *filter_of(const struct block *block, int a) {
    return block->filters && block->filters[a].length >= 0 ? &block->filters[a] : NULL;
}

static bool reads_values(enum sx_aggregate function) {
    return function != SX_AGG_COUNT_STAR && function != SX_AGG_COUNT;
}

/* Which rows of the block count for aggregate a, and their values. */
static struct sx_group_call prepare(struct block *block, int a) {
    struct sx_group_worker *worker = block->worker;
    const struct sx_group_aggregate *aggregate = &block->layout->aggregates[a];
    const enum sx_aggregate function = aggregate->spec.function;
    const struct sx_tensor *input = &block->inputs[a];
    const struct sx_tensor *filter = filter_of(block, a);
    struct sx_group_call call = {.aggregate = aggregate,
                                 .n = block->n,
                                 .rows = block->one ? block->group_rows : worker->rows,
                                 .worker = worker,
                                 .layout = block->layout,
                                 .stream = block->stream};
    const bool has_nulls = function != SX_AGG_COUNT_STAR && (input->valid || all_null(input));
    const bool skips_nulls = has_nulls && function != SX_AGG_FIRST;
    if (skips_nulls || filter) {
        memset(worker->mask, 1, (size_t)block->n);
        if (skips_nulls)
            mask_nulls(block, input, worker->mask);
        if (filter)
            mask_filter(block, filter, worker->mask);
        select_rows(block, &call);
    }
    if (has_nulls && function == SX_AGG_FIRST) {
        memset(worker->mask, 1, (size_t)block->n);
        mask_nulls(block, input, worker->mask);
        call.valid = worker->mask;
    }
    if (reads_values(function) && call.n > 0) {
        if (all_null(input))
            call.values = memset(worker->values, 0, (size_t)block->n * sx_phys_bytes(aggregate->phys));
        else
            call.values = flat_values(block, input);
    }
    return call;
}

/* ---- few groups ---- */

static void count_codes(const struct sx_group_call *call, const uint16_t *codes, int32_t n_groups,
                        int32_t *counts) {
    memset(counts, 0, (size_t)n_groups * SX_GROUP_LANES * sizeof *counts);
    for (int32_t k = 0; k < call->n; k++)
        counts[codes[sx_group_position(call, k)] * SX_GROUP_LANES + k % SX_GROUP_LANES]++;
    for (int32_t g = 0; g < n_groups; g++) {
        int32_t count = 0;
        for (int32_t lane = 0; lane < SX_GROUP_LANES; lane++)
            count += counts[g * SX_GROUP_LANES + lane];
        counts[g] = count;
    }
}

static bool same_input(const struct block *block, int a, int b) {
    const struct sx_tensor *x = &block->inputs[a], *y = &block->inputs[b];
    const struct sx_group_aggregate *aggregates = block->layout->aggregates;
    return reads_values(aggregates[b].spec.function) && aggregates[a].phys == aggregates[b].phys &&
           y->length >= 0 && x->layout == SX_FLAT && y->layout == SX_FLAT && x->values == y->values &&
           !y->valid && !filter_of(block, b);
}

/* SUM and AVG of one column need one addition. */
static void add_block(struct block *block, int a, bool whole) {
    struct sx_group_worker *worker = block->worker;
    const struct sx_group_aggregate *aggregates = block->layout->aggregates;
    for (int b = a; b < block->layout->n_aggregates; b++) {
        if (b > a && !(whole && aggregates[b].ops->add_sums && same_input(block, a, b)))
            continue;
        aggregates[b].ops->add_sums(&aggregates[b], block->group_rows, block->n_groups, worker->sums,
                                    worker->counts);
        worker->done[b] = true;
    }
}

/* True when aggregate a is through. */
static bool update_few(struct block *block, int a, const struct sx_group_call *call) {
    struct sx_group_worker *worker = block->worker;
    if (!block->coded || block->n_groups > SX_GROUP_FEW || !call->aggregate->ops->add_sums)
        return false;
    const bool reads = reads_values(call->aggregate->spec.function);
    if (reads && !sx_group_block_sums(call, worker->codes, block->n_groups, worker->sums))
        return false;
    if (call->selection || !block->counted)
        count_codes(call, worker->codes, block->n_groups, worker->counts);
    block->counted = !call->selection;
    add_block(block, a, reads && !call->selection);
    return true;
}

static void set_rows(struct block *block) {
    if (block->has_rows)
        return;
    struct sx_group_worker *worker = block->worker;
    for (int32_t i = 0; i < block->n; i++)
        worker->rows[i] = block->group_rows[worker->codes[i]];
    block->has_rows = true;
}

static enum sx_status update_aggregates(struct block *block) {
    struct sx_group_worker *worker = block->worker;
    const int n_aggregates = block->layout->n_aggregates;
    if (n_aggregates > 0)
        memset(worker->done, 0, (size_t)n_aggregates * sizeof(bool));
    for (int a = 0; a < n_aggregates; a++) {
        if (worker->done[a] || block->inputs[a].length < 0)
            continue;
        const struct sx_group_call call = prepare(block, a);
        const struct sx_group_ops *ops = call.aggregate->ops;
        if (block->one) {
            SX_TRY(ops->update_one(&call));
        } else if (!update_few(block, a, &call)) {
            set_rows(block);
            SX_TRY(ops->update(&call));
        }
    }
    return SX_OK;
}

/* ---- groups of a block ---- */

static enum sx_status find_rows(struct block *block, const struct sx_tensor *keys) {
    struct sx_group_worker *worker = block->worker;
    const struct sx_group_layout *layout = block->layout;
    sx_group_encode(layout, keys, block->first, block->n, worker->heads);
    sx_group_hash(layout, worker->heads, layout->head_bytes, block->n, worker->hashes);
    const struct sx_group_probe probe = {.layout = layout,
                                         .index = &worker->index,
                                         .worker = worker,
                                         .stream = block->stream,
                                         .base = worker->heads,
                                         .stride = layout->head_bytes,
                                         .n = block->n,
                                         .hashes = worker->hashes,
                                         .rows = worker->rows};
    worker->epoch_rows += block->n;
    worker->total_rows += block->n;
    block->has_rows = true;
    return sx_group_find(&probe);
}

static enum sx_status find_groups(struct block *block, const struct sx_tensor *keys) {
    struct sx_group_worker *worker = block->worker;
    if (block->layout->n_keys == 0) {
        block->one = true;
        block->group_rows = &worker->only_row;
        return SX_OK;
    }
    bool complete;
    SX_TRY(
        sx_group_direct_codes(worker, keys, block->first, block->n, block->stream, &block->coded, &complete));
    if (!complete)
        SX_TRY(find_rows(block, keys));
    if (!block->coded)
        return SX_OK;
    if (!complete)
        sx_group_direct_learn(worker, block->n);
    block->n_groups = sx_group_direct_groups(worker, &block->group_rows);
    block->one = block->n_groups == 1;
    return SX_OK;
}

static enum sx_status worker_of(struct sx_group *group, int index, struct sx_stream *stream,
                                struct sx_group_worker **out_worker) {
    if (!group->workers[index])
        SX_TRY(sx_group_worker_create(&group->layout, stream, &group->workers[index]));
    *out_worker = group->workers[index];
    return SX_OK;
}

enum sx_status sx_cpu_group_update(struct sx_stream *stream, struct sx_group *group, int worker,
                                   const struct sx_tensor *keys, const struct sx_tensor *inputs,
                                   const struct sx_tensor *filters, int64_t rows) {
    if (rows == 0)
        return SX_OK;
    struct sx_group_worker *own;
    SX_TRY(worker_of(group, worker, stream, &own));
    for (int64_t first = 0; first < rows; first += SX_GROUP_BLOCK_ROWS) {
        if (stream->cancel && atomic_load_explicit(stream->cancel, memory_order_relaxed))
            return sx_error_set(&stream->error, SX_CANCELLED, "cancelled");
        const int64_t left = rows - first;
        struct block block = {.worker = own,
                              .layout = &group->layout,
                              .stream = stream,
                              .inputs = inputs,
                              .filters = filters,
                              .first = first,
                              .n = left < SX_GROUP_BLOCK_ROWS ? (int32_t)left : SX_GROUP_BLOCK_ROWS};
        if (own->crowded)
            SX_TRY(sx_group_compact(own, &group->layout, stream));
        SX_TRY(find_groups(&block, keys));
        SX_TRY(update_aggregates(&block));
    }
    return SX_OK;
}
