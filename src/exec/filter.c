#include "exec/operators.h"

struct filter {
    struct sx_transform transform;
    const struct sx_plan *plan;
    struct sx_evaluator conjuncts;
};

static enum sx_status filter_push(struct sx_transform *transform, struct sx_worker *worker, int at,
                                  struct sx_batch *batch) {
    struct filter *filter = (struct filter *)transform;
    struct sx_tensor selection = {0};
    struct sx_batch kept = {0};
    enum sx_status status = SX_OK;
    SX_GO(sx_evaluator_select(&filter->conjuncts, worker, batch, &selection));
    if (selection.length == 0)
        goto out;
    const struct sx_tensor *index = selection.length == batch->rows ? NULL : &selection;
    SX_GO(sx_batch_gather(worker, batch, filter->plan->u.filter.projection,
                          filter->plan->u.filter.n_projection, index, &kept));
    sx_batch_release(batch);
    status = sx_emit(worker, at + 1, &kept);
out:
    sx_tensor_release(&selection);
    sx_batch_release(&kept);
    return status;
}

static void filter_destroy(struct sx_run *run, struct sx_operator *op) {
    sx_evaluator_release(run, &((struct filter *)op)->conjuncts);
}

enum sx_status sx_filter_create(struct sx_run *run, const struct sx_plan *plan,
                                struct sx_transform **out_transform, struct sx_error *error) {
    struct filter *filter = sx_operator_create(run, sizeof *filter, filter_destroy, "FILTER");
    const struct sx_plan *child = plan->children[0];
    struct sx_type *types = sx_plan_types(run, child);
    if (!filter || !types)
        return sx_no_memory(error, "a filter");
    filter->plan = plan;
    filter->transform.push = filter_push;
    SX_TRY(sx_evaluator_init(run, plan->u.filter.conjuncts, plan->u.filter.n_conjuncts, types,
                             child->n_columns, &filter->conjuncts, error));
    *out_transform = &filter->transform;
    return SX_OK;
}
