#include "exec/evaluator.h"

#include <stdlib.h>

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

enum sx_status sx_columns_gather(struct sx_worker *worker, const struct sx_batch *batch,
                                 const int32_t *projection, int32_t n_projection,
                                 const struct sx_tensor *index, struct sx_tensor *out_columns) {
    if (!index) {
        for (int32_t i = 0; i < n_projection; i++)
            sx_tensor_share(&batch->columns[projection ? projection[i] : i], &out_columns[i]);
        return SX_OK;
    }
    const struct sx_tensor **columns = calloc((size_t)n_projection + 1, sizeof *columns);
    if (!columns)
        return sx_no_memory(sx_worker_error(worker), "a list of columns");
    for (int32_t i = 0; i < n_projection; i++)
        columns[i] = &batch->columns[projection ? projection[i] : i];
    const enum sx_status status =
        sx_ops(worker)->gather_columns(worker->stream, columns, n_projection, index, out_columns);
    free(columns);
    return status;
}

enum sx_status sx_batch_gather(struct sx_worker *worker, const struct sx_batch *batch,
                               const int32_t *projection, int32_t n_projection, const struct sx_tensor *index,
                               struct sx_batch *out_batch) {
    struct sx_batch made = {0};
    enum sx_status status;
    SX_GO(sx_batch_create(n_projection, index ? index->length : batch->rows, &made, sx_worker_error(worker)));
    SX_GO(sx_columns_gather(worker, batch, projection, n_projection, index, made.columns));
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}
