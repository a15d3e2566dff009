/* Constant rows. */
#include "exec/operators.h"

struct values_source {
    struct sx_source source;
    const struct sx_plan *plan;
    atomic_bool given;
};

/* One column of the rows, made by concatenating constants. */
static enum sx_status make_column(struct sx_worker *worker, const struct sx_plan *plan, int32_t column,
                                  struct sx_tensor *cells, const struct sx_tensor **parts,
                                  struct sx_tensor *out_column) {
    enum sx_status status = SX_OK;
    int64_t n_rows = plan->u.values.n_rows;
    int64_t made = 0;
    for (; made < n_rows; made++) {
        struct sx_scalar cell = plan->u.values.cells[made * plan->n_columns + column];
        cell.type = plan->columns[column].type;
        SX_GO(sx_ops(worker)->constant(worker->stream, &cell, 1, &cells[made]));
        parts[made] = &cells[made];
    }
    status = sx_ops(worker)->concat(worker->stream, plan->columns[column].type, parts, n_rows,
                                    SX_CONCAT_COMPACT, out_column);
out:
    while (made-- > 0)
        sx_tensor_release(&cells[made]);
    return status;
}

static enum sx_status values_next(struct sx_source *source, struct sx_worker *worker,
                                  struct sx_batch *out_batch, bool *out_done) {
    struct values_source *values = (struct values_source *)source;
    const struct sx_plan *plan = values->plan;
    *out_done = atomic_exchange(&values->given, true) || plan->u.values.n_rows == 0;
    if (*out_done)
        return SX_OK;
    worker->sequence = 0;
    size_t n_rows = (size_t)plan->u.values.n_rows;
    enum sx_status status = SX_OK;
    struct sx_arena arena = {0};
    struct sx_batch made = {0};
    struct sx_tensor *cells = SX_ARENA_ARRAY(&arena, n_rows, struct sx_tensor);
    const struct sx_tensor **parts = SX_ARENA_ARRAY(&arena, n_rows, const struct sx_tensor *);
    if (!cells || !parts)
        SX_GO(sx_no_memory(sx_worker_error(worker), "constant rows"));
    SX_GO(sx_batch_create(plan->n_columns, plan->u.values.n_rows, &made, sx_worker_error(worker)));
    for (int32_t c = 0; c < plan->n_columns; c++)
        SX_GO(make_column(worker, plan, c, cells, parts, &made.columns[c]));
    *out_batch = made;
    made = (struct sx_batch){0};
out:
    sx_batch_release(&made);
    sx_arena_release(&arena);
    return status;
}

static struct sx_source_size values_size(const struct sx_source *source) {
    (void)source;
    return (struct sx_source_size){.batches = 1};
}

enum sx_status sx_values_create(struct sx_run *run, const struct sx_plan *plan, struct sx_source **out_source,
                                struct sx_error *error) {
    struct values_source *values = sx_operator_create(run, sizeof *values, NULL, "VALUES");
    if (!values)
        return sx_no_memory(error, "constant rows");
    values->plan = plan;
    values->source.next = values_next;
    values->source.size = values_size;
    *out_source = &values->source;
    return SX_OK;
}
