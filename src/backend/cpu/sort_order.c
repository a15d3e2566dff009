#include <stdlib.h>
#include <string.h>

#include "backend/cpu/sort.h"
#include "tensor/semantics.h"

/* ---- dictionaries: entries are sorted, rows by the rank of theirs ---- */

static void rank_entries(const struct sx_tensor *values, const int64_t *order, int32_t *out_ranks) {
    const struct sx_string *views = values->values;
    int32_t rank = 0;
    for (int64_t i = 0; i < values->length; i++) {
        if (i && sx_string_compare(&views[order[i - 1]], &views[order[i]]) != 0)
            rank++;
        out_ranks[order[i]] = rank;
    }
}

/* INTEGER ranks of the rows of a DICT column of strings. */
static enum sx_status rank_rows(struct sx_stream *stream, const struct sx_tensor *column,
                                struct sx_tensor *out_ranks) {
    const struct sx_tensor *values = &column->dict->values;
    const struct sx_sort_key ascending = {false, false};
    struct sx_tensor order = {0}, ranks = {0}, out = {0};
    enum sx_status status = SX_OK;
    SX_GO(sx_cpu_sort(stream, values, &ascending, 1, values->length, -1, &order));
    SX_GO(sx_tensor_create_index(stream->pool, SX_TYPE_I32, values->length + 1, &ranks, &stream->error));
    memset(ranks.values, 0, ((size_t)values->length + 1) * sizeof(int32_t));
    rank_entries(values, order.values, ranks.values);
    SX_GO(sx_tensor_create_index(stream->pool, SX_TYPE_I32, column->length, &out, &stream->error));
    sx_cpu_gather_values(ranks.values, sizeof(int32_t), column->values, SX_TYPE_I32, false, column->length,
                         out.values);
    out.valid = column->valid;
    out.valid_buffer = sx_buffer_retain(column->valid_buffer);
    *out_ranks = out;
out:
    sx_tensor_release(&order);
    sx_tensor_release(&ranks);
    return status;
}

/* ---- planning ---- */

static enum sx_status open_column(struct sx_stream *stream, const struct sx_tensor *key,
                                  struct sx_sort_column *column) {
    bool by_rank =
        key->layout == SX_DICT && key->type.id == SX_TYPE_VARCHAR && key->dict->values.length <= key->length;
    SX_TRY(by_rank ? rank_rows(stream, key, &column->values) : sx_cpu_flatten(stream, key, &column->values));
    return sx_sort_measure(stream, column);
}

static bool holds_all(const struct sx_sort_column *column) {
    bool whole = column->values.type.id != SX_TYPE_VARCHAR || column->is_short_string || !column->has_value;
    return whole && !column->halved && !column->drop;
}

/* Lays the columns' numbers out in an entry of `entry_bits`, the first column highest. */
static void lay_out(struct sx_sort_plan *plan, int entry_bits) {
    int left = entry_bits - plan->row_bits;
    plan->is_exact = true;
    plan->n_encoded = 0;
    for (int k = 0; k < plan->n_columns && plan->is_exact; k++) {
        struct sx_sort_column *column = &plan->columns[k];
        int taken = column->bits < left ? column->bits : left;
        column->drop = column->bits - taken;
        left -= taken;
        column->shift = plan->row_bits + left;
        plan->is_exact = holds_all(column);
        plan->first_loose = k;
        if (taken || !column->bits)
            plan->n_encoded = k + 1;
    }
}

/* The row takes what bits are left, so that numbers stand at the top. */
static void choose_width(struct sx_sort_plan *plan) {
    plan->row_bits = 1;
    while (plan->rows > INT64_C(1) << plan->row_bits)
        plan->row_bits++;
    lay_out(plan, 64);
    if (plan->is_exact)
        return;
    plan->is_wide = true;
    lay_out(plan, 128);
}

static enum sx_status order_rows(struct sx_stream *stream, struct sx_sort_plan *plan, int64_t limit,
                                 int64_t *out_rows) {
    choose_width(plan);
    return plan->is_wide ? sx_sort_wide(stream, plan, limit, out_rows)
                         : sx_sort_narrow(stream, plan, limit, out_rows);
}

enum sx_status sx_cpu_sort(struct sx_stream *stream, const struct sx_tensor *keys,
                           const struct sx_sort_key *orders, int n_keys, int64_t rows, int64_t limit,
                           struct sx_tensor *out_order) {
    int64_t wanted = limit < 0 || limit > rows ? rows : limit;
    struct sx_sort_plan plan = {.rows = rows};
    struct sx_tensor out = {0};
    enum sx_status status = SX_OK;
    SX_TRY(sx_cpu_check_cancel(stream));
    plan.columns = calloc((size_t)n_keys + 1, sizeof *plan.columns);
    if (!plan.columns)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a sort");
    for (int k = 0; k < n_keys && wanted; k++) {
        if (keys[k].layout == SX_CONSTANT)
            continue;
        struct sx_sort_column *column = &plan.columns[plan.n_columns++];
        column->order = orders[k];
        SX_GO(open_column(stream, &keys[k], column));
    }
    SX_GO(sx_tensor_create_index(stream->pool, SX_TYPE_I64, wanted, &out, &stream->error));
    if (wanted)
        SX_GO(order_rows(stream, &plan, wanted, out.values));
    *out_order = out;
out:
    if (status != SX_OK)
        sx_tensor_release(&out);
    for (int k = 0; k < plan.n_columns; k++)
        sx_tensor_release(&plan.columns[k].values);
    free(plan.columns);
    return status;
}
