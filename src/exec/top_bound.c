#include "exec/top_bound.h"

#include "exec/make.h"

void sx_bound_release(struct sx_bound *bound) {
    sx_batch_release(&bound->holder);
    *bound = (struct sx_bound){0};
}

/* ---- creation ---- */

/* The scan and its column from which a node's column comes, if a row of the scan that goes missing only takes
 * rows with that value with it. */
static void find_scan(const struct sx_plan *plan, int32_t column, struct sx_bound_finder *finder) {
    for (;;) {
        switch (plan->kind) {
        case SX_PLAN_FILTER: column = plan->u.filter.projection[column]; break;
        case SX_PLAN_PROJECT:
            if (plan->u.project.expressions[column]->kind != SX_EXPR_COLUMN)
                return;
            column = plan->u.project.expressions[column]->column;
            break;
        case SX_PLAN_JOIN:
            if (sx_join_is_right(plan->u.join.kind) || column >= plan->u.join.n_probe_output)
                return;
            column = plan->u.join.probe_output[column];
            break;
        case SX_PLAN_SCAN:
            finder->scan = plan;
            finder->scan_column = plan->u.scan.projection[column];
            return;
        default: return;
        }
        plan = plan->children[0];
    }
}

/* key <= bound (>= if descending); NULL keys pass where they come first. */
static struct sx_expression *within_bound(struct sx_arena *arena, const struct sx_order *order) {
    const struct sx_type type = order->expression->type, bool_type = sx_type_of(SX_TYPE_BOOL);
    struct sx_expression *sides[] = {sx_make_column(arena, 0, type), sx_make_column(arena, 1, type)};
    struct sx_expression *within =
        sx_make_call(arena, order->descending ? SX_FN_GE : SX_FN_LE, bool_type, sides, 2);
    if (!order->nulls_first)
        return within;
    struct sx_expression *is_null = sx_make_call(arena, SX_FN_IS_NULL, bool_type, sides, 1);
    return sx_make_call(arena, SX_FN_OR, bool_type, (struct sx_expression *[]){is_null, within}, 2);
}

enum sx_status sx_bound_finder_init(struct sx_run *run, const struct sx_plan *plan, int32_t n_extra,
                                    struct sx_bound_finder *out_finder, struct sx_error *error) {
    const struct sx_plan *child = plan->children[0];
    const struct sx_order *order = &plan->u.sort.orders[0];
    struct sx_type *types = sx_plan_types(run, child);
    struct sx_type *sides = SX_ARENA_ARRAY(&run->arena, 2, struct sx_type);
    struct sx_expression *key = order->expression;
    struct sx_expression *within = within_bound(&run->arena, order);
    *out_finder = (struct sx_bound_finder){.plan = plan};
    out_finder->projection = SX_ARENA_ARRAY(&run->arena, child->n_columns + n_extra, int32_t);
    if (!types || !sides || !within || !out_finder->projection)
        return sx_no_memory(error, "a top-N");
    for (int32_t c = 0; c < child->n_columns + n_extra; c++)
        out_finder->projection[c] = c;
    sides[0] = sides[1] = key->type;
    if (key->kind == SX_EXPR_COLUMN && !order->nulls_first)
        find_scan(child, key->column, out_finder);
    SX_TRY(sx_evaluator_init(run, &key, 1, types, child->n_columns, &out_finder->first_key, error));
    return sx_evaluator_init(run, &within, 1, sides, 2, &out_finder->within, error);
}

void sx_bound_finder_release(struct sx_run *run, struct sx_bound_finder *finder) {
    sx_evaluator_release(run, &finder->first_key);
    sx_evaluator_release(run, &finder->within);
}

/* ---- use ---- */

static bool has_range(struct sx_type type) {
    switch (type.id) {
    case SX_TYPE_I8:
    case SX_TYPE_I16:
    case SX_TYPE_I32:
    case SX_TYPE_I64:
    case SX_TYPE_DATE:
    case SX_TYPE_TIMESTAMP: return true;
    case SX_TYPE_DECIMAL: return sx_type_phys(type) == SX_PHYS_I64;
    default: return false;
    }
}

static void restrict_scan(struct sx_bound_finder *finder, struct sx_run *run, const struct sx_scalar *key) {
    if (!finder->scan || !has_range(key->type))
        return;
    const bool descending = finder->plan->u.sort.orders[0].descending;
    for (int i = 0; i < run->n_scans; i++)
        if (sx_scan_source_plan(run->scans[i]) == finder->scan)
            sx_scan_source_restrict(run->scans[i], finder->scan_column, descending ? key->v.i64 : INT64_MIN,
                                    descending ? INT64_MAX : key->v.i64);
}

/* First key of the child's columns of `batch`. */
static enum sx_status evaluate_key(struct sx_bound_finder *finder, struct sx_worker *worker,
                                   const struct sx_batch *batch, struct sx_tensor *out_key) {
    struct sx_batch child = *batch;
    child.n_columns = finder->first_key.program.n_inputs;
    return sx_evaluator_run(&finder->first_key, worker, &child, out_key);
}

enum sx_status sx_bound_set(struct sx_bound_finder *finder, struct sx_worker *worker,
                            const struct sx_batch *best, struct sx_bound *bound) {
    struct sx_batch last = {0}, key = {0};
    enum sx_status status = SX_OK;
    sx_bound_release(bound);
    SX_GO(sx_batch_slice(best, best->rows - 1, 1, &last, sx_worker_error(worker)));
    SX_GO(sx_batch_create(1, 1, &key, sx_worker_error(worker)));
    SX_GO(evaluate_key(finder, worker, &last, &key.columns[0]));
    SX_GO(sx_ops(worker)->batch_to_host(worker->stream, &key, &bound->holder));
    sx_tensor_scalar(&bound->holder.columns[0], 0, &bound->first_key);
    bound->is_set = !bound->first_key.is_null;
    if (bound->is_set)
        restrict_scan(finder, worker->run, &bound->first_key);
out:
    sx_batch_release(&last);
    sx_batch_release(&key);
    return status;
}

enum sx_status sx_bound_apply(struct sx_bound_finder *finder, struct sx_worker *worker,
                              const struct sx_bound *bound, struct sx_batch *batch) {
    struct sx_batch sides = {0}, kept = {0};
    struct sx_tensor index = {0};
    enum sx_status status = SX_OK;
    if (!bound->is_set)
        return SX_OK;
    SX_GO(sx_batch_create(2, batch->rows, &sides, sx_worker_error(worker)));
    SX_GO(evaluate_key(finder, worker, batch, &sides.columns[0]));
    SX_GO(sx_ops(worker)->constant(worker->stream, &bound->first_key, batch->rows, &sides.columns[1]));
    SX_GO(sx_evaluator_select(&finder->within, worker, &sides, &index));
    if (index.length == batch->rows)
        goto out;
    SX_GO(sx_batch_gather(worker, batch, finder->projection, batch->n_columns, &index, &kept));
    sx_batch_release(batch);
    *batch = kept;
out:
    sx_batch_release(&sides);
    sx_tensor_release(&index);
    return status;
}
