/* Rows repeated by a count: round k gives the rows whose count is above k. */
#include "exec/make.h"
#include "exec/operators.h"

struct repeat {
    struct sx_transform transform;
    int n_columns;
    int32_t *projection;      /* all columns, the count included */
    struct sx_evaluator more; /* count > k over (count, k) */
};

/* Keeps the rows whose count is above `round`. */
static enum sx_status keep_more(struct repeat *repeat, struct sx_worker *worker, struct sx_batch *rows,
                                int64_t round) {
    struct sx_batch input = {0}, kept = {0};
    struct sx_tensor index = {0};
    enum sx_status status = SX_OK;
    struct sx_scalar k = {.type = sx_type_of(SX_TYPE_I64), .v.i64 = round};
    SX_GO(sx_batch_create(2, rows->rows, &input, sx_worker_error(worker)));
    sx_tensor_share(&rows->columns[repeat->n_columns], &input.columns[0]);
    SX_GO(sx_tensor_create_constant(worker->stream->pool, &k, rows->rows, &input.columns[1],
                                    sx_worker_error(worker)));
    SX_GO(sx_evaluator_select(&repeat->more, worker, &input, &index));
    if (index.length == rows->rows)
        goto out;
    SX_GO(sx_batch_gather(worker, rows, repeat->projection, repeat->n_columns + 1, &index, &kept));
    sx_batch_release(rows);
    *rows = kept;
out:
    sx_batch_release(&input);
    sx_tensor_release(&index);
    return status;
}

static enum sx_status repeat_push(struct sx_transform *transform, struct sx_worker *worker, int at,
                                  struct sx_batch *batch) {
    struct repeat *repeat = (struct repeat *)transform;
    for (int64_t round = 0;; round++) {
        SX_TRY(sx_check_cancel(worker));
        SX_TRY(keep_more(repeat, worker, batch, round));
        if (batch->rows == 0)
            return SX_OK;
        struct sx_batch once = {0};
        SX_TRY(sx_batch_gather(worker, batch, repeat->projection, repeat->n_columns, NULL, &once));
        SX_TRY(sx_emit(worker, at + 1, &once));
    }
}

static void repeat_destroy(struct sx_run *run, struct sx_operator *op) {
    sx_evaluator_release(run, &((struct repeat *)op)->more);
}

enum sx_status sx_repeat_create(struct sx_run *run, int n_columns, struct sx_transform **out_transform,
                                struct sx_error *error) {
    const struct sx_type bigint = sx_type_of(SX_TYPE_I64);
    struct repeat *repeat = sx_operator_create(run, sizeof *repeat, repeat_destroy, "REPEAT");
    if (!repeat)
        return sx_no_memory(error, "a set operation");
    repeat->n_columns = n_columns;
    repeat->transform.push = repeat_push;
    repeat->projection = SX_ARENA_ARRAY(&run->arena, n_columns + 1, int32_t);
    struct sx_expression *sides[] = {sx_make_column(&run->arena, 0, bigint),
                                     sx_make_column(&run->arena, 1, bigint)};
    struct sx_expression *more = sx_make_call(&run->arena, SX_FN_GT, sx_type_of(SX_TYPE_BOOL), sides, 2);
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, 2, struct sx_type);
    if (!repeat->projection || !more || !types)
        return sx_no_memory(error, "a set operation");
    for (int c = 0; c <= n_columns; c++)
        repeat->projection[c] = c;
    types[0] = types[1] = bigint;
    SX_TRY(sx_evaluator_init(run, &more, 1, types, 2, &repeat->more, error));
    *out_transform = &repeat->transform;
    return SX_OK;
}
