/* Probe side of a hash join. Matching pairs come from the table a round at a time; the residual thins them;
 * what is made of them depends on the kind of join. */
#include <stdlib.h>

#include "base/array.h"
#include "exec/join_mark.h"
#include "exec/operators.h"

struct join_probe {
    struct sx_transform transform;
    struct sx_join_build *build;
    struct sx_evaluator keys;
    struct sx_evaluator residual;
    bool has_residual;
    int32_t *residual_columns; /* of (probe child, build child) that the residual reads */
    int32_t n_residual_columns;
    bool takes_payload;        /* with the pairs */
    const int32_t *payload_of; /* per build output column: where it is in the table's payload */
    struct sx_mark mark;       /* MARK only */
};

/* One batch on its way through the probe. */
struct probing {
    struct join_probe *probe;
    struct sx_worker *worker;
    const struct sx_backend_ops *ops;
    int at;
    struct sx_batch *batch;
    struct sx_tensor *keys;
    struct sx_tensor *matched; /* probe rows that matched, a tensor for each round */
    int64_t n_matched;
    int64_t capacity_matched;
    int64_t listed;    /* rows in all of `matched` */
    int64_t max_pairs; /* of a round */
    int64_t pairs;     /* found so far */
};

/* ---- pairs ---- */

struct pairs {
    struct sx_tensor probe_rows; /* I32 */
    struct sx_tensor build_rows; /* I64; without values if payload is taken and nothing else needs them */
    struct sx_batch output;      /* if payload is taken: its columns, behind room for the probe side's */
};

static void release_pairs(struct pairs *pairs) {
    sx_tensor_release(&pairs->probe_rows);
    sx_tensor_release(&pairs->build_rows);
    sx_batch_release(&pairs->output);
}

/* Batch over (probe child's columns, build child's columns) with those that the residual reads. */
static enum sx_status residual_input(struct probing *p, const struct pairs *pairs,
                                     struct sx_batch *out_batch) {
    const struct join_probe *probe = p->probe;
    const int32_t n_probe = p->batch->n_columns;
    const int32_t n_columns = n_probe + probe->build->plan->children[1]->n_columns;
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    SX_GO(sx_batch_create(n_columns, pairs->probe_rows.length, &made, sx_worker_error(p->worker)));
    for (int32_t i = 0; i < probe->n_residual_columns; i++) {
        int32_t c = probe->residual_columns[i];
        if (c < n_probe) {
            SX_GO(p->ops->gather(p->worker->stream, &p->batch->columns[c], &pairs->probe_rows,
                                 &made.columns[c]));
        } else {
            const int32_t at = sx_join_payload_index(probe->build, c - n_probe);
            SX_GO(p->ops->join_gather(p->worker->stream, probe->build->table, &at, 1, &pairs->build_rows,
                                      &made.columns[c]));
        }
    }
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}

/* Keeps the pairs for which the residual is true. */
static enum sx_status thin_pairs(struct probing *p, struct pairs *pairs) {
    struct sx_batch input = {0};
    struct sx_tensor passing = {0};
    struct pairs kept = {0};
    enum sx_status status = SX_OK;
    if (pairs->probe_rows.length == 0)
        return SX_OK;
    SX_GO(residual_input(p, pairs, &input));
    SX_GO(sx_evaluator_select(&p->probe->residual, p->worker, &input, &passing));
    if (passing.length == pairs->probe_rows.length)
        goto out;
    SX_GO(p->ops->gather(p->worker->stream, &pairs->probe_rows, &passing, &kept.probe_rows));
    SX_GO(p->ops->gather(p->worker->stream, &pairs->build_rows, &passing, &kept.build_rows));
    release_pairs(pairs);
    *pairs = kept;
    kept = (struct pairs){0};
out:
    release_pairs(&kept);
    sx_tensor_release(&passing);
    sx_batch_release(&input);
    return status;
}

static enum sx_status take_pairs(struct probing *p, struct sx_probe_cursor *cursor, struct pairs *out_pairs) {
    const struct join_probe *probe = p->probe;
    const struct sx_join_plan *join = &probe->build->plan->u.join;
    struct pairs pairs = {0};
    SX_TRY(sx_batch_create(join->n_probe_output + join->n_build_output, 0, &pairs.output,
                           sx_worker_error(p->worker)));
    const enum sx_status status = p->ops->join_take(
        p->worker->stream, probe->build->table, p->keys, p->batch->rows, p->max_pairs, cursor,
        probe->payload_of, join->n_build_output, &pairs.probe_rows,
        probe->build->is_right ? &pairs.build_rows : NULL, &pairs.output.columns[join->n_probe_output]);
    if (status != SX_OK) {
        release_pairs(&pairs);
        return status;
    }
    pairs.output.rows = pairs.output.rows_bound = pairs.probe_rows.length;
    *out_pairs = pairs;
    return SX_OK;
}

static enum sx_status next_pairs(struct probing *p, enum sx_probe_mode mode, struct sx_probe_cursor *cursor,
                                 struct pairs *out_pairs) {
    struct pairs pairs = {0};
    if (p->probe->takes_payload)
        return take_pairs(p, cursor, out_pairs);
    SX_TRY(p->ops->join_probe(p->worker->stream, p->probe->build->table, p->keys, p->batch->rows, mode,
                              p->max_pairs, cursor, &pairs.probe_rows, &pairs.build_rows));
    if (p->probe->has_residual) {
        enum sx_status status = thin_pairs(p, &pairs);
        if (status != SX_OK) {
            release_pairs(&pairs);
            return status;
        }
    }
    *out_pairs = pairs;
    return SX_OK;
}

/* ---- output ---- */

/* Build columns by `build_rows` (NULL: all null). */
static enum sx_status make_build_columns(struct probing *p, const struct sx_tensor *build_rows, int64_t rows,
                                         struct sx_tensor *out_columns) {
    const struct sx_join_plan *join = &p->probe->build->plan->u.join;
    const struct sx_plan *build_child = p->probe->build->plan->children[1];
    if (build_rows)
        return p->ops->join_gather(p->worker->stream, p->probe->build->table, p->probe->payload_of,
                                   join->n_build_output, build_rows, out_columns);
    for (int32_t i = 0; i < join->n_build_output; i++) {
        struct sx_scalar null = {.type = build_child->columns[join->build_output[i]].type, .is_null = true};
        SX_TRY(p->ops->constant(p->worker->stream, &null, rows, &out_columns[i]));
    }
    return SX_OK;
}

/* Probe columns by `probe_rows` (NULL: all rows), build columns by `build_rows` (NULL: all null). */
static enum sx_status emit_rows(struct probing *p, const struct sx_tensor *probe_rows,
                                const struct sx_tensor *build_rows) {
    const struct sx_join_plan *join = &p->probe->build->plan->u.join;
    const int64_t rows = probe_rows ? probe_rows->length : p->batch->rows;
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    if (rows == 0)
        return SX_OK;
    SX_GO(sx_batch_create(join->n_probe_output + join->n_build_output, rows, &made,
                          sx_worker_error(p->worker)));
    SX_GO(sx_columns_gather(p->worker, p->batch, join->probe_output, join->n_probe_output, probe_rows,
                            sx_readings_behind(p->worker, p->at), made.columns));
    SX_GO(make_build_columns(p, build_rows, rows, &made.columns[join->n_probe_output]));
    return sx_emit(p->worker, p->at + 1, &made);
out:
    sx_batch_release(&made);
    return status;
}

/* The pairs' output is given away. */
static enum sx_status emit_taken(struct probing *p, const struct sx_tensor *probe_rows,
                                 struct sx_batch *output) {
    const struct sx_join_plan *join = &p->probe->build->plan->u.join;
    struct sx_batch made = *output;
    SX_TRY(sx_columns_gather(p->worker, p->batch, join->probe_output, join->n_probe_output, probe_rows,
                             sx_readings_behind(p->worker, p->at), made.columns));
    *output = (struct sx_batch){0};
    return sx_emit(p->worker, p->at + 1, &made);
}

/* The output's columns of the probe side, where all rows are wanted: NARROW ones have to be moved even so. */
static bool can_share(const struct probing *p) {
    const struct sx_join_plan *join = &p->probe->build->plan->u.join;
    for (int32_t i = 0; i < join->n_probe_output; i++)
        if (p->batch->columns[join->probe_output[i]].layout == SX_NARROW)
            return false;
    return true;
}

static enum sx_status emit_pairs(struct probing *p, struct pairs *pairs) {
    const bool each_once =
        p->probe->build->info.keys_unique && pairs->probe_rows.length == p->batch->rows && can_share(p);
    const struct sx_tensor *probe_rows = each_once ? NULL : &pairs->probe_rows;
    return p->probe->takes_payload ? emit_taken(p, probe_rows, &pairs->output)
                                   : emit_rows(p, probe_rows, &pairs->build_rows);
}

/* ---- which probe rows matched ---- */

static void drop_matched(struct probing *p) {
    for (int64_t i = 0; i < p->n_matched; i++)
        sx_tensor_release(&p->matched[i]);
    p->n_matched = p->listed = 0;
}

/* BOOL column over the batch's rows: which matched. */
static enum sx_status matched_mask(struct probing *p, struct sx_tensor *out_mask) {
    const struct sx_tensor **parts = calloc((size_t)p->n_matched + 1, sizeof(*parts));
    struct sx_tensor all = {0};
    if (!parts)
        return sx_no_memory(sx_worker_error(p->worker), "a join's matches");
    for (int64_t i = 0; i < p->n_matched; i++)
        parts[i] = &p->matched[i];
    enum sx_status status = p->ops->concat(p->worker->stream, sx_type_of(SX_TYPE_I32), parts, p->n_matched,
                                           SX_CONCAT_SHARED, &all);
    if (status == SX_OK)
        status = p->ops->index_to_mask(p->worker->stream, &all, p->batch->rows, out_mask);
    sx_tensor_release(&all);
    free(parts);
    return status;
}

/* Lists each row that matched once. */
static enum sx_status fold_matched(struct probing *p) {
    struct sx_tensor mask = {0}, index = {0};
    SX_TRY(matched_mask(p, &mask));
    enum sx_status status = p->ops->mask_to_index(p->worker->stream, &mask, true, &index);
    sx_tensor_release(&mask);
    SX_TRY(status);
    drop_matched(p);
    p->listed = index.length;
    p->matched[p->n_matched++] = index;
    return SX_OK;
}

/* Takes over the tensor. A row that matches often is not kept as often. */
static enum sx_status note_matched(struct probing *p, struct sx_tensor *probe_rows) {
    enum { MOST_ROUNDS = 16 };
    struct sx_tensor *grown = sx_array_grow(p->matched, sizeof *grown, p->n_matched, &p->capacity_matched);
    if (!grown)
        return sx_no_memory(sx_worker_error(p->worker), "a join's matches");
    p->matched = grown;
    p->pairs += probe_rows->length;
    p->listed += probe_rows->length;
    p->matched[p->n_matched++] = *probe_rows;
    *probe_rows = (struct sx_tensor){0};
    return p->listed > p->batch->rows + MOST_ROUNDS * p->max_pairs ? fold_matched(p) : SX_OK;
}

/* Emits the probe rows that matched, or that did not; build columns (LEFT, FULL, SINGLE) are null. */
static enum sx_status emit_by_match(struct probing *p, bool wanted) {
    struct sx_tensor mask = {0}, index = {0};
    enum sx_status status = SX_OK;
    if (wanted && !p->probe->has_residual && p->n_matched == 1) { /* ascending, each row once */
        sx_tensor_share(&p->matched[0], &index);
    } else {
        SX_GO(matched_mask(p, &mask));
        SX_GO(p->ops->mask_to_index(p->worker->stream, &mask, wanted, &index));
    }
    status = emit_rows(p, index.length == p->batch->rows && can_share(p) ? NULL : &index, NULL);
out:
    sx_tensor_release(&mask);
    sx_tensor_release(&index);
    return status;
}

/* A scalar subquery may give one row: more pairs than rows that matched mean more. */
static enum sx_status check_single(struct probing *p) {
    struct sx_tensor mask = {0}, index = {0};
    enum sx_status status = SX_OK;
    if (p->pairs == 0 || p->probe->build->info.keys_unique)
        return SX_OK;
    SX_GO(matched_mask(p, &mask));
    SX_GO(p->ops->mask_to_index(p->worker->stream, &mask, true, &index));
    if (index.length < p->pairs)
        status = sx_error_set(
            sx_worker_error(p->worker), SX_QUERY,
            "Invalid Input Error: More than one row returned by a subquery used as an expression - "
            "scalar subqueries can only return a single row.");
out:
    sx_tensor_release(&mask);
    sx_tensor_release(&index);
    return status;
}

static enum sx_status emit_mark(struct probing *p) {
    const struct sx_join_plan *join = &p->probe->build->plan->u.join;
    struct sx_tensor mask = {0};
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    SX_GO(matched_mask(p, &mask));
    SX_GO(sx_batch_create(join->n_probe_output + 1, p->batch->rows, &made, sx_worker_error(p->worker)));
    for (int32_t i = 0; i < join->n_probe_output; i++)
        sx_tensor_share(&p->batch->columns[join->probe_output[i]], &made.columns[i]);
    SX_GO(sx_mark_column(&p->probe->mark, p->worker, p->probe->build, p->keys, &mask,
                         &made.columns[join->n_probe_output]));
    status = sx_emit(p->worker, p->at + 1, &made);
out:
    sx_tensor_release(&mask);
    sx_batch_release(&made);
    return status;
}

/* ---- kinds of join ---- */

static bool emits_pairs(enum sx_join_kind kind) {
    return kind == SX_JOIN_INNER || kind == SX_JOIN_LEFT || kind == SX_JOIN_RIGHT || kind == SX_JOIN_FULL ||
           kind == SX_JOIN_SINGLE;
}

static bool needs_matched(enum sx_join_kind kind) {
    return kind != SX_JOIN_INNER && kind != SX_JOIN_RIGHT && kind != SX_JOIN_RIGHT_SEMI &&
           kind != SX_JOIN_RIGHT_ANTI;
}

static enum sx_status take_round(struct probing *p, struct pairs *pairs) {
    const enum sx_join_kind kind = p->probe->build->plan->u.join.kind;
    if (pairs->probe_rows.length == 0)
        return SX_OK;
    if (p->probe->build->is_right)
        SX_TRY(p->ops->join_mark(p->worker->stream, p->probe->build->table, &pairs->build_rows));
    if (emits_pairs(kind))
        SX_TRY(emit_pairs(p, pairs));
    return needs_matched(kind) ? note_matched(p, &pairs->probe_rows) : SX_OK;
}

static enum sx_status end_batch(struct probing *p) {
    switch (p->probe->build->plan->u.join.kind) {
    case SX_JOIN_SEMI: return p->n_matched ? emit_by_match(p, true) : SX_OK;
    case SX_JOIN_SINGLE: SX_TRY(check_single(p)); return emit_by_match(p, false);
    case SX_JOIN_ANTI:
    case SX_JOIN_LEFT:
    case SX_JOIN_FULL: return emit_by_match(p, false);
    case SX_JOIN_MARK: return emit_mark(p);
    case SX_JOIN_INNER:
    case SX_JOIN_RIGHT:
    case SX_JOIN_RIGHT_SEMI:
    case SX_JOIN_RIGHT_ANTI: break;
    }
    return SX_OK;
}

static enum sx_status probe_rounds(struct probing *p) {
    const enum sx_join_kind kind = p->probe->build->plan->u.join.kind;
    bool first_is_enough = !p->probe->has_residual && !emits_pairs(kind) && !p->probe->build->is_right;
    struct sx_probe_cursor cursor = {0};
    while (!cursor.done) {
        struct pairs pairs = {0};
        SX_TRY(next_pairs(p, first_is_enough ? SX_PROBE_FIRST : SX_PROBE_ALL, &cursor, &pairs));
        enum sx_status status = take_round(p, &pairs);
        release_pairs(&pairs);
        SX_TRY(status);
        SX_TRY(sx_check_cancel(p->worker));
        if (sx_worker_satisfied(p->worker))
            return SX_OK;
    }
    return end_batch(p);
}

static enum sx_status probe_push(struct sx_transform *transform, struct sx_worker *worker, int at,
                                 struct sx_batch *batch) {
    struct join_probe *probe = (struct join_probe *)transform;
    struct sx_batch keys = {0};
    SX_TRY(sx_batch_create(probe->build->plan->u.join.n_keys, batch->rows, &keys, sx_worker_error(worker)));
    struct probing p = {.probe = probe,
                        .worker = worker,
                        .ops = sx_ops(worker),
                        .at = at,
                        .batch = batch,
                        .keys = keys.columns,
                        .max_pairs = sx_round_pairs(&worker->stream->backend->traits)};
    enum sx_status status = sx_evaluator_run(&probe->keys, worker, batch, keys.columns);
    if (status == SX_OK)
        status = probe_rounds(&p);
    drop_matched(&p);
    free(p.matched);
    sx_batch_release(&keys);
    return status;
}

/* ---- creation ---- */

static void probe_destroy(struct sx_run *run, struct sx_operator *op) {
    struct join_probe *probe = (struct join_probe *)op;
    sx_evaluator_release(run, &probe->keys);
    sx_evaluator_release(run, &probe->residual);
    sx_mark_release(run, &probe->mark);
}

static void note_residual_column(int32_t column, void *context) {
    bool *used = context;
    used[column] = true;
}

static enum sx_status init_residual(struct join_probe *probe, struct sx_run *run, struct sx_error *error) {
    const struct sx_plan *plan = probe->build->plan;
    const struct sx_join_plan *join = &plan->u.join;
    const int32_t n_probe = plan->children[0]->n_columns;
    const int32_t n_columns = n_probe + plan->children[1]->n_columns;
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, n_columns, struct sx_type);
    bool *used = SX_ARENA_ARRAY(&run->arena, n_columns, bool);
    probe->residual_columns = SX_ARENA_ARRAY(&run->arena, n_columns, int32_t);
    if (!types || !used || !probe->residual_columns)
        return sx_no_memory(error, "a join's condition");
    for (int32_t c = 0; c < n_columns; c++)
        types[c] =
            c < n_probe ? plan->children[0]->columns[c].type : plan->children[1]->columns[c - n_probe].type;
    for (int32_t i = 0; i < join->n_residual; i++)
        sx_expression_columns(join->residual[i], note_residual_column, used);
    for (int32_t c = 0; c < n_columns; c++)
        if (used[c])
            probe->residual_columns[probe->n_residual_columns++] = c;
    probe->has_residual = join->n_residual > 0;
    return sx_evaluator_init(run, join->residual, join->n_residual, types, n_columns, &probe->residual,
                             error);
}

enum sx_status sx_join_probe_create(struct sx_run *run, struct sx_join_build *build,
                                    struct sx_transform **out_transform, struct sx_error *error) {
    const struct sx_join_plan *join = &build->plan->u.join;
    struct join_probe *probe = sx_operator_create(run, sizeof *probe, probe_destroy, "JOIN probe%s",
                                                  build->sink.base.name + sizeof "JOIN build" - 1);
    struct sx_expression **keys = SX_ARENA_ARRAY(&run->arena, join->n_keys, struct sx_expression *);
    struct sx_type *types = sx_plan_types(run, build->plan->children[0]);
    if (!probe || !keys || !types)
        return sx_no_memory(error, "a join");
    probe->build = build;
    probe->transform.push = probe_push;
    for (int32_t k = 0; k < join->n_keys; k++)
        keys[k] = join->keys[k].probe;
    SX_TRY(sx_evaluator_init(run, keys, join->n_keys, types, build->plan->children[0]->n_columns,
                             &probe->keys, error));
    SX_TRY(init_residual(probe, run, error));
    probe->takes_payload = emits_pairs(join->kind) && !probe->has_residual && join->n_build_output > 0;
    if (join->kind == SX_JOIN_MARK)
        SX_TRY(sx_mark_init(run, build->plan, &probe->mark, error));
    probe->payload_of = sx_join_payload_of(run, build);
    if (!probe->payload_of)
        return sx_no_memory(error, "a join");
    *out_transform = &probe->transform;
    return SX_OK;
}
