#include "exec/join_mark.h"

#include "exec/make.h"

enum { INPUT_MATCHED, INPUT_HAS_ROWS, INPUT_HAS_NULL, INPUT_KEYS };

/* Is one of the mark keys NULL in the probe row? NULL: no memory. */
static struct sx_expression *any_key_null(struct sx_arena *arena, const struct sx_join_plan *join) {
    const struct sx_type bool_type = sx_type_of(SX_TYPE_BOOL);
    struct sx_expression *any = sx_make_bool(arena, false, false);
    for (int32_t k = join->n_mark_group; k < join->n_keys; k++) {
        if (join->keys[k].null_equal)
            continue;
        struct sx_expression *key = sx_make_column(arena, INPUT_KEYS + k, join->keys[k].probe->type);
        struct sx_expression *is_null = sx_make_call(arena, SX_FN_IS_NULL, bool_type, &key, 1);
        any = sx_make_call(arena, SX_FN_OR, bool_type, (struct sx_expression *[]){any, is_null}, 2);
    }
    return any;
}

enum sx_status sx_mark_init(struct sx_run *run, const struct sx_plan *plan, struct sx_mark *out_mark,
                            struct sx_error *error) {
    const struct sx_join_plan *join = &plan->u.join;
    const struct sx_type bool_type = sx_type_of(SX_TYPE_BOOL);
    struct sx_arena *arena = &run->arena;
    struct sx_type *types = SX_ARENA_ARRAY(arena, INPUT_KEYS + join->n_keys, struct sx_type);
    if (!types)
        return sx_no_memory(error, "a mark join");
    for (int32_t i = 0; i < INPUT_KEYS; i++)
        types[i] = bool_type;
    for (int32_t k = 0; k < join->n_keys; k++)
        types[INPUT_KEYS + k] = join->keys[k].probe->type;
    struct sx_expression *matched = sx_make_column(arena, INPUT_MATCHED, bool_type);
    struct sx_expression *has_rows = sx_make_column(arena, INPUT_HAS_ROWS, bool_type);
    struct sx_expression *has_null = sx_make_column(arena, INPUT_HAS_NULL, bool_type);
    struct sx_expression *asked_null = sx_make_call(
        arena, SX_FN_AND, bool_type, (struct sx_expression *[]){has_rows, any_key_null(arena, join)}, 2);
    struct sx_expression *unknown =
        sx_make_call(arena, SX_FN_OR, bool_type, (struct sx_expression *[]){has_null, asked_null}, 2);
    struct sx_expression *otherwise =
        sx_make_case(arena, unknown, sx_make_bool(arena, true, false), sx_make_bool(arena, false, false));
    struct sx_expression *column = sx_make_case(arena, matched, sx_make_bool(arena, false, true), otherwise);
    if (!column)
        return sx_no_memory(error, "a mark join");
    return sx_evaluator_init(run, &column, 1, types, INPUT_KEYS + join->n_keys, &out_mark->column, error);
}

void sx_mark_release(struct sx_run *run, struct sx_mark *mark) {
    sx_evaluator_release(run, &mark->column);
}

static enum sx_status constant_flag(struct sx_worker *worker, bool value, int64_t rows,
                                    struct sx_tensor *out_flag) {
    struct sx_scalar scalar = {.type = sx_type_of(SX_TYPE_BOOL), .v.i64 = value ? 1 : 0};
    return sx_ops(worker)->constant(worker->stream, &scalar, rows, out_flag);
}

/* Which probe rows have a row with their group keys in `table`. */
static enum sx_status group_flag(struct sx_worker *worker, const struct sx_join *table,
                                 const struct sx_tensor *keys, int64_t rows, struct sx_tensor *out_flag) {
    const struct sx_backend_ops *ops = sx_ops(worker);
    struct sx_probe_cursor cursor = {0};
    struct sx_tensor probe_rows = {0}, build_rows = {0};
    SX_TRY(ops->join_probe(worker->stream, table, keys, rows, SX_PROBE_FIRST, rows, &cursor, &probe_rows,
                           &build_rows));
    enum sx_status status = ops->index_to_mask(worker->stream, &probe_rows, rows, out_flag);
    sx_tensor_release(&probe_rows);
    sx_tensor_release(&build_rows);
    return status;
}

/* Whether no mark is NULL: then they are what has matched. */
static bool is_never_unknown(const struct sx_join_build *build, const struct sx_tensor *keys) {
    const struct sx_join_plan *join = &build->plan->u.join;
    if (build->group_rows || build->info.has_null_key)
        return false;
    for (int32_t k = join->n_mark_group; k < join->n_keys && build->info.rows > 0; k++)
        if (keys[k].valid && !join->keys[k].null_equal)
            return false;
    return true;
}

enum sx_status sx_mark_column(struct sx_mark *mark, struct sx_worker *worker,
                              const struct sx_join_build *build, const struct sx_tensor *keys,
                              const struct sx_tensor *matched, struct sx_tensor *out_column) {
    const int32_t n_keys = build->plan->u.join.n_keys;
    const int64_t rows = matched->length;
    struct sx_batch input = {0};
    enum sx_status status = SX_OK;
    if (is_never_unknown(build, keys)) {
        sx_tensor_share(matched, out_column);
        return SX_OK;
    }
    SX_GO(sx_batch_create(INPUT_KEYS + n_keys, rows, &input, sx_worker_error(worker)));
    sx_tensor_share(matched, &input.columns[INPUT_MATCHED]);
    if (build->group_rows) {
        SX_GO(group_flag(worker, build->group_rows, keys, rows, &input.columns[INPUT_HAS_ROWS]));
        SX_GO(group_flag(worker, build->group_nulls, keys, rows, &input.columns[INPUT_HAS_NULL]));
    } else {
        SX_GO(constant_flag(worker, build->info.rows > 0, rows, &input.columns[INPUT_HAS_ROWS]));
        SX_GO(constant_flag(worker, build->info.has_null_key, rows, &input.columns[INPUT_HAS_NULL]));
    }
    for (int32_t k = 0; k < n_keys; k++)
        sx_tensor_share(&keys[k], &input.columns[INPUT_KEYS + k]);
    status = sx_evaluator_run(&mark->column, worker, &input, out_column);
out:
    sx_batch_release(&input);
    return status;
}
