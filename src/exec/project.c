#include "exec/operators.h"

struct project {
    struct sx_transform transform;
    struct sx_evaluator expressions;
};

static enum sx_status project_push(struct sx_transform *transform, struct sx_worker *worker, int at,
                                   struct sx_batch *batch) {
    struct project *project = (struct project *)transform;
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    SX_GO(
        sx_batch_create(project->expressions.program.n_outputs, batch->rows, &made, sx_worker_error(worker)));
    SX_GO(sx_evaluator_run(&project->expressions, worker, batch, made.columns));
    sx_batch_release(batch);
    return sx_emit(worker, at + 1, &made);
out:
    sx_batch_release(&made);
    return status;
}

static void project_destroy(struct sx_run *run, struct sx_operator *op) {
    sx_evaluator_release(run, &((struct project *)op)->expressions);
}

enum sx_status sx_project_create(struct sx_run *run, const struct sx_plan *plan,
                                 struct sx_transform **out_transform, struct sx_error *error) {
    struct project *project = sx_operator_create(run, sizeof *project, project_destroy, "PROJECT");
    const struct sx_plan *child = plan->children[0];
    struct sx_type *types = sx_plan_types(run, child);
    if (!project || !types)
        return sx_no_memory(error, "a projection");
    project->transform.push = project_push;
    SX_TRY(sx_evaluator_init(run, plan->u.project.expressions, plan->n_columns, types, child->n_columns,
                             &project->expressions, error));
    *out_transform = &project->transform;
    return SX_OK;
}
