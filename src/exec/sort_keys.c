#include "exec/sort_keys.h"

enum { MAX_EXTRA_KEYS = 2 };

enum sx_status sx_sort_keys_init(struct sx_run *run, const struct sx_plan *plan,
                                 struct sx_sort_keys *out_keys, struct sx_error *error) {
    const struct sx_sort_plan *sort = &plan->u.sort;
    const struct sx_plan *child = plan->children[0];
    struct sx_expression **list = SX_ARENA_ARRAY(&run->arena, sort->n_orders, struct sx_expression *);
    struct sx_type *types = sx_plan_types(run, child);
    out_keys->orders = SX_ARENA_ARRAY(&run->arena, sort->n_orders + MAX_EXTRA_KEYS, struct sx_sort_key);
    if (!list || !types || !out_keys->orders)
        return sx_no_memory(error, "a sort");
    for (int32_t i = 0; i < sort->n_orders; i++) {
        list[i] = sort->orders[i].expression;
        out_keys->orders[i] = (struct sx_sort_key){.descending = sort->orders[i].descending,
                                                   .nulls_first = sort->orders[i].nulls_first};
    }
    out_keys->n_orders = sort->n_orders;
    return sx_evaluator_init(run, list, sort->n_orders, types, child->n_columns, &out_keys->expressions,
                             error);
}

void sx_sort_keys_release(struct sx_run *run, struct sx_sort_keys *keys) {
    sx_evaluator_release(run, &keys->expressions);
}

enum sx_status sx_sort_keys_order(struct sx_sort_keys *keys, struct sx_worker *worker,
                                  const struct sx_batch *batch, int64_t limit, struct sx_tensor *out_order) {
    const int32_t n_child = keys->expressions.program.n_inputs;
    const int32_t n_extra = batch->n_columns - n_child;
    struct sx_batch evaluated = {0};
    struct sx_batch child = *batch;
    child.n_columns = n_child;
    SX_TRY(sx_batch_create(keys->n_orders + n_extra, batch->rows, &evaluated, sx_worker_error(worker)));
    enum sx_status status = sx_evaluator_run(&keys->expressions, worker, &child, evaluated.columns);
    for (int32_t i = 0; i < n_extra; i++)
        sx_tensor_share(&batch->columns[n_child + i], &evaluated.columns[keys->n_orders + i]);
    if (status == SX_OK)
        status = sx_ops(worker)->sort(worker->stream, evaluated.columns, keys->orders,
                                      keys->n_orders + n_extra, batch->rows, limit, out_order);
    sx_batch_release(&evaluated);
    return status;
}
