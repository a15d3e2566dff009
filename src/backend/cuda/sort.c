/* Sort keys to words: what the columns hold is measured, and decides how many bits they take. */
#include <stdlib.h>

#include "backend/cuda/launch.h"
#include "backend/cuda/sort.h"

/* ---- dictionaries: entries are sorted, rows by the rank of theirs ---- */

static enum sx_status write_ranks(struct cuda_stream *stream, const struct cuda_sort_plan *plan,
                                  const struct sx_tensor *order, int32_t *out_ranks) {
    const int64_t n = plan->rows;
    struct sx_buffer *sums = NULL, *scratch = NULL;
    enum sx_status status;
    SX_GO(sx_buffer_create(stream->base.pool, ((size_t)n + 1) * sizeof(int64_t), &sums, &stream->base.error));
    SX_GO(sx_buffer_create(stream->base.pool, cuda_exclusive_sum_bytes(n), &scratch, &stream->base.error));
    cuda_sort_flag_changes(stream->handle, plan->words, order->values, n, sums->data);
    cuda_exclusive_sum(stream->handle, sums->data, n, sums->data, scratch->data);
    cuda_sort_write_ranks(stream->handle, order->values, sums->data, n, out_ranks);
    SX_GO(cuda_launched(stream, "ranks of a dictionary"));
out:
    sx_buffer_release(sums);
    sx_buffer_release(scratch);
    return status;
}

/* Ranks of `entries` (FLAT, not empty): int32 each, equal ones the same. */
static enum sx_status rank_entries(struct cuda_stream *stream, const struct sx_tensor *entries,
                                   struct sx_buffer **out_ranks) {
    const struct sx_sort_key ascending = {false, false};
    const int64_t n = entries->length;
    struct cuda_sort_plan plan = {0};
    struct sx_tensor order = {0};
    struct sx_buffer *ranks = NULL;
    enum sx_status status;
    SX_GO(cuda_sort_open(stream, entries, &ascending, 1, n, &plan));
    SX_GO(cuda_sort_order(stream, &plan, n, &order));
    SX_GO(sx_buffer_create(stream->base.pool, (size_t)n * sizeof(int32_t), &ranks, &stream->base.error));
    SX_GO(write_ranks(stream, &plan, &order, ranks->data));
    *out_ranks = ranks;
    ranks = NULL;
out:
    sx_buffer_release(ranks);
    sx_tensor_release(&order);
    cuda_sort_close(&plan);
    return status;
}

/* ---- columns ---- */

struct sort_column {
    struct cuda_column column;
    struct sx_sort_key order;
    struct cuda_sort_range range;
};

static bool all_equal(const struct sx_tensor *key) {
    return key->layout == SX_CONSTANT || key->type.id == SX_TYPE_NULLTYPE ||
           (key->layout == SX_DICT && key->dict->values.length == 0);
}

/* Strings of a dictionary with fewer entries than rows become ranks. */
static enum sx_status open_column(struct cuda_stream *stream, const struct sx_tensor *key, int64_t rows,
                                  struct cuda_sort_plan *plan, struct cuda_column *out_column) {
    struct cuda_column column = cuda_column_of(key);
    if (key->layout == SX_DICT && key->type.id == SX_TYPE_VARCHAR && key->dict->values.length < rows) {
        struct sx_buffer **ranks = &plan->ranks[plan->n_ranks];
        SX_TRY(rank_entries(stream, &key->dict->values, ranks));
        plan->n_ranks++;
        column.dict = (*ranks)->data;
        column.phys = SX_PHYS_I32;
    }
    *out_column = column;
    return SX_OK;
}

/* All ranges, at one wait. */
static enum sx_status measure(struct cuda_stream *stream, struct sort_column *columns, int n, int64_t rows) {
    struct sx_buffer *ranges = NULL, *scratch = NULL;
    struct cuda_sort_range *found = calloc((size_t)n + 1, sizeof *found);
    const size_t bytes = (size_t)n * sizeof *found;
    enum sx_status status;
    if (!found)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a sort");
    SX_GO(sx_buffer_create(stream->base.pool, bytes, &ranges, &stream->base.error));
    SX_GO(sx_buffer_create(stream->base.pool, cuda_sort_range_bytes(rows), &scratch, &stream->base.error));
    for (int k = 0; k < n; k++)
        cuda_sort_measure(stream->handle, columns[k].column, rows, scratch->data,
                          (struct cuda_sort_range *)ranges->data + k);
    SX_GO(cuda_launched(stream, "ranges of sort keys"));
    SX_GO(cuda_download(stream, found, ranges->data, bytes, "ranges of sort keys"));
    for (int k = 0; k < n; k++)
        columns[k].range = found[k];
out:
    free(found);
    sx_buffer_release(ranges);
    sx_buffer_release(scratch);
    return status;
}

/* ---- parts ---- */

enum { PARTS_OF_COLUMN = 3 };

static int bit_length(sx_u128 number) {
    const uint64_t high = (uint64_t)(number >> 64), low = (uint64_t)number;
    if (high)
        return 128 - __builtin_clzll(high);
    return low ? 64 - __builtin_clzll(low) : 0;
}

/* Parts that would be the same in all rows are left out. Returns how many bits there are now. */
static int64_t add_part(struct cuda_sort_part *parts, int *n_parts, struct cuda_sort_part part,
                        int64_t first_bit) {
    if (part.bits == 0)
        return first_bit;
    part.first_bit = first_bit;
    parts[(*n_parts)++] = part;
    return first_bit + part.bits;
}

static int64_t add_column(struct cuda_sort_part *parts, int *n_parts, const struct sort_column *column,
                          int64_t first_bit) {
    const struct cuda_sort_range *range = &column->range;
    const bool descending = column->order.descending;
    struct cuda_sort_part part = {.column = column->column};
    part.kind = CUDA_SORT_VALID;
    part.flipped = !column->order.nulls_first;
    part.bits = range->has_null && range->has_value;
    first_bit = add_part(parts, n_parts, part, first_bit);
    part.flipped = descending;
    if (column->column.phys == SX_PHYS_STRING) {
        part.kind = CUDA_SORT_BYTES;
        part.bits = (int64_t)range->longest * 8;
        first_bit = add_part(parts, n_parts, part, first_bit);
        part.kind = CUDA_SORT_LENGTH;
        part.bits = bit_length(range->longest);
    } else {
        part.kind = CUDA_SORT_CODE;
        part.base = descending ? range->max : range->min;
        part.bits = bit_length(range->max - range->min);
    }
    return add_part(parts, n_parts, part, first_bit);
}

static enum sx_status lay_out(struct cuda_stream *stream, const struct sort_column *columns, int n,
                              struct cuda_sort_plan *plan) {
    struct cuda_sort_part *parts = calloc((size_t)n * PARTS_OF_COLUMN + 1, sizeof *parts);
    int64_t bits = 0;
    int n_parts = 0;
    if (!parts)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a sort");
    for (int k = 0; k < n; k++)
        bits = add_column(parts, &n_parts, &columns[k], bits);
    enum sx_status status =
        cuda_upload_buffer(stream, parts, ((size_t)n_parts + 1) * sizeof *parts, &plan->parts);
    free(parts);
    SX_TRY(status);
    plan->words.parts = plan->parts->data;
    plan->words.n_parts = n_parts;
    plan->words.n_words = (bits + 63) / 64;
    return SX_OK;
}

enum sx_status cuda_sort_open(struct cuda_stream *stream, const struct sx_tensor *keys,
                              const struct sx_sort_key *orders, int n_keys, int64_t rows,
                              struct cuda_sort_plan *out_plan) {
    struct cuda_sort_plan plan = {.rows = rows};
    struct sort_column *columns = calloc((size_t)n_keys + 1, sizeof *columns);
    int n = 0;
    enum sx_status status = SX_OK;
    plan.ranks = calloc((size_t)n_keys + 1, sizeof *plan.ranks);
    if (!columns || !plan.ranks)
        SX_GO(sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a sort"));
    for (int k = 0; k < n_keys; k++) {
        if (all_equal(&keys[k]))
            continue;
        columns[n].order = orders[k];
        SX_GO(open_column(stream, &keys[k], rows, &plan, &columns[n].column));
        n++;
    }
    if (n > 0) {
        SX_GO(measure(stream, columns, n, rows));
        SX_GO(lay_out(stream, columns, n, &plan));
    }
    *out_plan = plan;
    plan = (struct cuda_sort_plan){0};
out:
    free(columns);
    cuda_sort_close(&plan);
    return status;
}

void cuda_sort_close(struct cuda_sort_plan *plan) {
    for (int k = 0; k < plan->n_ranks; k++)
        sx_buffer_release(plan->ranks[k]);
    free(plan->ranks);
    sx_buffer_release(plan->parts);
    *plan = (struct cuda_sort_plan){0};
}

/* ---- few rows ---- */

/* Rounds take some 0.3 ms each of launches and waits, however few rows there are (H100). Where they begin to
 * pay is a guess. */
enum { FEW_ROWS = 64 << 10 };

void cuda_sort_choose(struct cuda_device *device) {
    const char *wanted = getenv("STACHIO_SORT_FEW_ROWS");
    device->sort_few_rows = wanted ? strtoll(wanted, NULL, 10) : FEW_ROWS;
}

/* Whether its prefix is all of a value. */
static bool is_told(const struct cuda_column *column) {
    return !column->valid && column->phys != SX_PHYS_STRING && column->phys != SX_PHYS_INTERVAL &&
           column->phys != SX_PHYS_I128 && column->phys != SX_PHYS_U128;
}

/* False: there are too many of them. */
static bool list_keys(const struct sx_tensor *keys, const struct sx_sort_key *orders, int n_keys,
                      struct cuda_sort_keys *out) {
    out->n = 0;
    for (int k = 0; k < n_keys; k++) {
        if (all_equal(&keys[k]))
            continue;
        if (out->n == CUDA_SORT_KEYS)
            return false;
        out->keys[out->n++] =
            (struct cuda_sort_key){cuda_column_of(&keys[k]), orders[k].descending, orders[k].nulls_first};
    }
    out->n_told = 0;
    while (out->n_told < out->n && out->n_told < CUDA_SORT_PREFIXES &&
           is_told(&out->keys[out->n_told].column))
        out->n_told++;
    return true;
}

static enum sx_status sort_few(struct cuda_stream *stream, const struct cuda_sort_keys *keys, int64_t rows,
                               int64_t limit, struct sx_tensor *out_order) {
    struct sx_buffer *scratch = NULL;
    struct sx_tensor order = {0};
    enum sx_status status;
    SX_GO(sx_buffer_create(stream->base.pool, cuda_sort_few_bytes(rows), &scratch, &stream->base.error));
    SX_GO(sx_tensor_create_index(stream->base.pool, SX_TYPE_I64, limit, &order, &stream->base.error));
    cuda_sort_few(stream->handle, keys, rows, limit, scratch->data, order.values);
    SX_GO(cuda_launched(stream, "sorting few rows"));
    *out_order = order;
    order = (struct sx_tensor){0};
out:
    sx_buffer_release(scratch);
    sx_tensor_release(&order);
    return status;
}

enum sx_status sx_cuda_sort(struct sx_stream *base, const struct sx_tensor *keys,
                            const struct sx_sort_key *orders, int n_keys, int64_t rows, int64_t limit,
                            struct sx_tensor *out_order) {
    const int64_t wanted = limit < 0 || limit > rows ? rows : limit;
    struct cuda_stream *stream;
    struct cuda_sort_plan plan = {0};
    struct cuda_sort_keys few;
    SX_TRY(cuda_enter(base, &stream));
    if (wanted == 0)
        return sx_tensor_create_index(base->pool, SX_TYPE_I64, 0, out_order, &base->error);
    if (rows > UINT32_MAX) /* keys and order alone take more memory than there is */
        return sx_error_set(&base->error, SX_OUT_OF_MEMORY, "sort of %lld rows on one device",
                            (long long)rows);
    if (rows <= stream->device->sort_few_rows && list_keys(keys, orders, n_keys, &few))
        return sort_few(stream, &few, rows, wanted, out_order);
    SX_TRY(cuda_sort_open(stream, keys, orders, n_keys, rows, &plan));
    const enum sx_status status = cuda_sort_order(stream, &plan, wanted, out_order);
    cuda_sort_close(&plan);
    return status;
}
