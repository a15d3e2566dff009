/* Rows repeated by a count. For each bit of the counts: the rows that have it set, in batches that hold all
 * of them once or, where they are few, several times; full batches share their columns. */
#include "exec/make.h"
#include "exec/operators.h"

enum { COUNT_BITS = 63 };

struct repeat {
    struct sx_transform transform;
    int n_columns;
    int32_t *projection;      /* all columns, the count included */
    struct sx_evaluator more; /* count >= power over (count, power) */
    struct sx_evaluator odd;  /* count // power is odd */
};

/* Rows of `rows` that pass `condition` for `power`. */
static enum sx_status select_rows(const struct repeat *repeat, struct sx_evaluator *condition,
                                  struct sx_worker *worker, const struct sx_batch *rows, int64_t power,
                                  struct sx_tensor *out_index) {
    const struct sx_scalar scalar = {.type = sx_type_of(SX_TYPE_I64), .v.i64 = power};
    struct sx_batch input = {0};
    enum sx_status status = SX_OK;
    SX_GO(sx_batch_create(2, rows->rows, &input, sx_worker_error(worker)));
    sx_tensor_share(&rows->columns[repeat->n_columns], &input.columns[0]);
    SX_GO(sx_ops(worker)->constant(worker->stream, &scalar, rows->rows, &input.columns[1]));
    SX_GO(sx_evaluator_select(condition, worker, &input, out_index));
out:
    sx_batch_release(&input);
    return status;
}

/* Keeps the rows whose count is at least `power`. */
static enum sx_status keep_more(struct repeat *repeat, struct sx_worker *worker, struct sx_batch *rows,
                                int64_t power) {
    struct sx_batch kept = {0};
    struct sx_tensor index = {0};
    enum sx_status status = SX_OK;
    SX_GO(select_rows(repeat, &repeat->more, worker, rows, power, &index));
    if (index.length == rows->rows)
        goto out;
    SX_GO(sx_batch_gather(worker, rows, repeat->projection, repeat->n_columns + 1, &index, &kept));
    sx_batch_release(rows);
    *rows = kept;
out:
    sx_tensor_release(&index);
    return status;
}

/* `index` `copies` times over. */
static enum sx_status repeat_index(struct sx_worker *worker, struct sx_tensor *index, int64_t copies) {
    const struct sx_tensor *parts[2] = {index, index};
    for (; copies > 1; copies /= 2) {
        struct sx_tensor twice = {0};
        SX_TRY(sx_ops(worker)->concat(worker->stream, index->type, parts, 2, SX_CONCAT_SHARED, &twice));
        sx_tensor_release(index);
        *index = twice;
    }
    return SX_OK;
}

static enum sx_status emit_times(struct sx_worker *worker, int at, const struct sx_batch *batch,
                                 int64_t times) {
    for (int64_t i = 0; i < times && !sx_worker_satisfied(worker); i++) {
        struct sx_batch once = {0};
        SX_TRY(sx_check_cancel(worker));
        SX_TRY(sx_batch_share(batch, &once, sx_worker_error(worker)));
        SX_TRY(sx_emit(worker, at + 1, &once));
    }
    return SX_OK;
}

/* Emits the rows whose count has the bit `power`, `power` times. */
static enum sx_status emit_bit(struct repeat *repeat, struct sx_worker *worker, int at,
                               const struct sx_batch *rows, int64_t power) {
    const int64_t chunk_rows = worker->stream->backend->traits.chunk_rows;
    struct sx_tensor index = {0};
    struct sx_batch batch = {0};
    enum sx_status status = SX_OK;
    int64_t copies = 1; /* within a batch */
    SX_GO(select_rows(repeat, &repeat->odd, worker, rows, power, &index));
    if (index.length == 0)
        goto out;
    while (copies < power && 2 * copies * index.length <= chunk_rows)
        copies *= 2;
    SX_GO(repeat_index(worker, &index, copies));
    SX_GO(sx_batch_gather(worker, rows, repeat->projection, repeat->n_columns, &index, &batch));
    SX_GO(emit_times(worker, at, &batch, power / copies));
out:
    sx_tensor_release(&index);
    sx_batch_release(&batch);
    return status;
}

static enum sx_status repeat_push(struct sx_transform *transform, struct sx_worker *worker, int at,
                                  struct sx_batch *batch) {
    struct repeat *repeat = (struct repeat *)transform;
    for (int bit = 0; bit < COUNT_BITS; bit++) {
        const int64_t power = (int64_t)1 << bit;
        SX_TRY(keep_more(repeat, worker, batch, power));
        if (batch->rows == 0 || sx_worker_satisfied(worker))
            break;
        SX_TRY(emit_bit(repeat, worker, at, batch, power));
    }
    return SX_OK;
}

static void repeat_destroy(struct sx_run *run, struct sx_operator *op) {
    sx_evaluator_release(run, &((struct repeat *)op)->more);
    sx_evaluator_release(run, &((struct repeat *)op)->odd);
}

static enum sx_status make_conditions(struct sx_run *run, struct repeat *repeat, struct sx_error *error) {
    const struct sx_type bigint = sx_type_of(SX_TYPE_I64), bool_type = sx_type_of(SX_TYPE_BOOL);
    struct sx_arena *arena = &run->arena;
    struct sx_type *types = SX_ARENA_ARRAY(arena, 2, struct sx_type);
    struct sx_expression *sides[] = {sx_make_column(arena, 0, bigint), sx_make_column(arena, 1, bigint)};
    struct sx_expression *more = sx_make_call(arena, SX_FN_GE, bool_type, sides, 2);
    struct sx_expression *halves[] = {sx_make_call(arena, SX_FN_INT_DIV, bigint, sides, 2),
                                      sx_make_bigint(arena, 2)};
    struct sx_expression *ones[] = {sx_make_call(arena, SX_FN_MOD, bigint, halves, 2),
                                    sx_make_bigint(arena, 1)};
    struct sx_expression *odd = sx_make_call(arena, SX_FN_EQ, bool_type, ones, 2);
    if (!types || !more || !odd)
        return sx_no_memory(error, "a set operation");
    types[0] = types[1] = bigint;
    SX_TRY(sx_evaluator_init(run, &more, 1, types, 2, &repeat->more, error));
    return sx_evaluator_init(run, &odd, 1, types, 2, &repeat->odd, error);
}

enum sx_status sx_repeat_create(struct sx_run *run, int n_columns, struct sx_transform **out_transform,
                                struct sx_error *error) {
    struct repeat *repeat = sx_operator_create(run, sizeof *repeat, repeat_destroy, "REPEAT");
    if (!repeat)
        return sx_no_memory(error, "a set operation");
    repeat->n_columns = n_columns;
    repeat->transform.push = repeat_push;
    repeat->projection = SX_ARENA_ARRAY(&run->arena, n_columns + 1, int32_t);
    if (!repeat->projection)
        return sx_no_memory(error, "a set operation");
    for (int c = 0; c <= n_columns; c++)
        repeat->projection[c] = c;
    SX_TRY(make_conditions(run, repeat, error));
    *out_transform = &repeat->transform;
    return SX_OK;
}
