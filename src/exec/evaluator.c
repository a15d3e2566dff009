#include "exec/evaluator.h"

#include <stdlib.h>
#include <string.h>

enum sx_status sx_evaluator_init(struct sx_run *run, struct sx_expression *const *expressions,
                                 int32_t n_expressions, const struct sx_type *input_types, int32_t n_inputs,
                                 struct sx_evaluator *out_evaluator, struct sx_error *error) {
    out_evaluator->workers = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct sx_eval *);
    if (!out_evaluator->workers)
        return sx_no_memory(error, "an expression");
    return sx_program_compile(&run->arena, expressions, n_expressions, input_types, n_inputs,
                              &out_evaluator->program, error);
}

void sx_evaluator_release(struct sx_run *run, struct sx_evaluator *evaluator) {
    if (!evaluator->workers)
        return;
    for (int i = 0; i < run->n_workers; i++)
        if (evaluator->workers[i])
            run->options.backend->ops.eval_destroy(run->workers[i].stream, evaluator->workers[i]);
}

static enum sx_status worker_eval(struct sx_evaluator *evaluator, struct sx_worker *worker,
                                  struct sx_eval **out_eval) {
    struct sx_eval **slot = &evaluator->workers[worker->index];
    if (!*slot)
        SX_TRY(sx_ops(worker)->eval_create(worker->stream, &evaluator->program, slot));
    *out_eval = *slot;
    return SX_OK;
}

enum sx_status sx_evaluator_run(struct sx_evaluator *evaluator, struct sx_worker *worker,
                                const struct sx_batch *batch, struct sx_tensor *out_columns) {
    if (evaluator->program.n_outputs == 0)
        return SX_OK;
    struct sx_eval *eval;
    SX_TRY(worker_eval(evaluator, worker, &eval));
    return sx_ops(worker)->eval_run(worker->stream, eval, batch, out_columns);
}

enum sx_status sx_evaluator_select(struct sx_evaluator *evaluator, struct sx_worker *worker,
                                   const struct sx_batch *batch, struct sx_tensor *out_selection) {
    struct sx_eval *eval;
    SX_TRY(worker_eval(evaluator, worker, &eval));
    return sx_ops(worker)->eval_select(worker->stream, eval, batch, NULL, out_selection);
}

struct sx_type *sx_plan_types(struct sx_run *run, const struct sx_plan *plan) {
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, plan->n_columns, struct sx_type);
    for (int32_t i = 0; types && i < plan->n_columns; i++)
        types[i] = plan->columns[i].type;
    return types;
}

/* Memory of the host is read again from its caches. */
static bool can_select(const struct sx_worker *worker, const struct sx_tensor *column,
                       enum sx_reading reading) {
    return reading != SX_READS_ANY && !worker->stream->backend->traits.is_host && !column->valid &&
           column->type.id != SX_TYPE_VARCHAR &&
           (column->layout == SX_FLAT || (column->layout == SX_NARROW && reading == SX_READS_SUM));
}

/* Those of the columns that can be are SELECTED; the others are listed. */
static enum sx_status select_columns(struct sx_worker *worker, const struct sx_batch *batch,
                                     const int32_t *projection, int32_t n_projection,
                                     const struct sx_tensor *index, const enum sx_reading *readings,
                                     struct sx_tensor *out_columns, const struct sx_tensor **out_others,
                                     int32_t *out_n_others) {
    *out_n_others = 0;
    for (int32_t i = 0; i < n_projection; i++) {
        const struct sx_tensor *column = &batch->columns[projection ? projection[i] : i];
        if (readings && can_select(worker, column, readings[i]))
            SX_TRY(sx_tensor_select(column, index, &out_columns[i], sx_worker_error(worker)));
        else
            out_others[(*out_n_others)++] = column;
    }
    return SX_OK;
}

enum sx_status sx_columns_gather(struct sx_worker *worker, const struct sx_batch *batch,
                                 const int32_t *projection, int32_t n_projection,
                                 const struct sx_tensor *index, const enum sx_reading *readings,
                                 struct sx_tensor *out_columns) {
    if (!index) {
        for (int32_t i = 0; i < n_projection; i++)
            sx_tensor_share(&batch->columns[projection ? projection[i] : i], &out_columns[i]);
        return SX_OK;
    }
    const struct sx_tensor **others = calloc((size_t)n_projection + 1, sizeof *others);
    struct sx_tensor *gathered = calloc((size_t)n_projection + 1, sizeof *gathered);
    enum sx_status status = others && gathered ? SX_OK : SX_OUT_OF_MEMORY;
    int32_t n_others, taken = 0;
    memset(out_columns, 0, (size_t)n_projection * sizeof *out_columns);
    if (status != SX_OK) {
        (void)sx_no_memory(sx_worker_error(worker), "a list of columns");
        goto out;
    }
    SX_GO(select_columns(worker, batch, projection, n_projection, index, readings, out_columns, others,
                         &n_others));
    SX_GO(sx_ops(worker)->gather_columns(worker->stream, others, n_others, index, gathered));
    for (int32_t i = 0; i < n_projection; i++)
        if (out_columns[i].layout != SX_SELECTED)
            out_columns[i] = gathered[taken++];
out:
    for (int32_t i = 0; status != SX_OK && i < n_projection; i++)
        sx_tensor_release(&out_columns[i]);
    free(others);
    free(gathered);
    return status;
}

enum sx_status sx_batch_gather(struct sx_worker *worker, const struct sx_batch *batch,
                               const int32_t *projection, int32_t n_projection, const struct sx_tensor *index,
                               struct sx_batch *out_batch) {
    struct sx_batch made = {0};
    enum sx_status status;
    SX_GO(sx_batch_create(n_projection, index ? index->length : batch->rows, &made, sx_worker_error(worker)));
    SX_GO(sx_columns_gather(worker, batch, projection, n_projection, index, NULL, made.columns));
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}
