#include <string.h>

#include "base/clock.h"
#include "exec/make.h"
#include "exec/scan.h"

struct column_set {
    bool *used;
};

static void note_column(int32_t column, void *context) {
    ((struct column_set *)context)->used[column] = true;
}

static enum sx_status set_columns(struct scan_step *step, struct sx_run *run, const bool *used,
                                  int32_t n_columns, struct sx_error *error) {
    step->columns = SX_ARENA_ARRAY(&run->arena, n_columns, int32_t);
    if (!step->columns)
        return sx_no_memory(error, "a scan's filter");
    for (int32_t c = 0; c < n_columns; c++)
        if (used[c])
            step->columns[step->n_columns++] = c;
    return SX_OK;
}

/* Comparisons for what is less, more or different. */
static bool is_wide(const struct sx_expression *conjunct) {
    if (conjunct->kind != SX_EXPR_CALL)
        return false;
    switch (conjunct->function) {
    case SX_FN_NE:
    case SX_FN_LT:
    case SX_FN_LE:
    case SX_FN_GT:
    case SX_FN_GE:
    case SX_FN_NOT_LIKE:
    case SX_FN_NOT_LIKE_ESCAPE:
    case SX_FN_IS_NOT_NULL: return true;
    case SX_FN_AND:
    case SX_FN_OR: return is_wide(conjunct->arguments[0]) && is_wide(conjunct->arguments[1]);
    default: return false;
    }
}

static enum sx_status make_conjunct(struct scan_step *step, struct sx_run *run,
                                    const struct sx_scan_plan *plan, struct sx_expression *conjunct,
                                    struct sx_error *error) {
    struct column_set set = {SX_ARENA_ARRAY(&run->arena, plan->n_columns, bool)};
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, plan->n_columns, struct sx_type);
    if (!set.used || !types)
        return sx_no_memory(error, "a scan's filter");
    for (int32_t c = 0; c < plan->n_columns; c++)
        types[c] = plan->columns[c].type;
    sx_expression_columns(conjunct, note_column, &set);
    SX_TRY(set_columns(step, run, set.used, plan->n_columns, error));
    step->fallible = sx_expression_fallible(conjunct);
    step->is_wide = is_wide(conjunct);
    return sx_evaluator_init(run, &conjunct, 1, types, plan->n_columns, &step->conjunct, error);
}

bool scan_step_passes_some(const struct scan_step *step, int64_t n_batches) {
    enum { KEYS_A_BATCH = 4 };
    if (!step->join)
        return step->is_wide;
    const struct sx_join_info *info = step->reach != SX_REACH_RANK ? &step->join->all : &step->join->info;
    return info->rows / KEYS_A_BATCH >= n_batches;
}

bool scan_step_needs_bloom(const struct scan_step *step) {
    return step->join->plan->u.join.n_keys > 1 ||
           (step->reach != SX_REACH_RANK && !step->is_near && !step->join->is_everywhere);
}

/* passes OR (input 0, compared with the value) */
static struct sx_expression *or_compares(struct sx_arena *arena, struct sx_expression *passes,
                                         enum sx_function function, struct sx_type type, int64_t value) {
    const struct sx_type boolean = sx_type_of(SX_TYPE_BOOL);
    const struct sx_scalar end = {.type = type, .v.i64 = value};
    struct sx_expression *sides[] = {sx_make_column(arena, 0, type), sx_make_constant(arena, &end)};
    struct sx_expression *both[] = {passes, sx_make_call(arena, function, boolean, sides, 2)};
    return sx_make_call(arena, SX_FN_OR, boolean, both, 2);
}

/* Input 0 is the key, input 1 whether this rank's table has it; rows that other ranks get pass. */
static struct sx_expression *passes_of(struct sx_arena *arena, const int64_t *ends, const struct sx_net *net,
                                       struct sx_type type) {
    const int rank = sx_net_rank(net);
    struct sx_expression *passes = sx_make_column(arena, 1, sx_type_of(SX_TYPE_BOOL));
    if (rank > 0)
        passes = or_compares(arena, passes, SX_FN_LE, type, ends[rank - 1]);
    return rank < sx_net_size(net) - 1 ? or_compares(arena, passes, SX_FN_GT, type, ends[rank]) : passes;
}

/* Which rows of the scan go to this rank, if they are told by ranges of the join's key. */
static enum sx_status set_range(struct scan_step *step, struct sx_run *run, struct sx_type type,
                                struct sx_error *error) {
    const int64_t *ends = step->join->plan->u.join.ends;
    const struct sx_type types[] = {type, sx_type_of(SX_TYPE_BOOL)};
    step->is_near = step->reach == SX_REACH_RANKS && ends && run->options.net;
    if (!step->is_near)
        return SX_OK;
    sx_ends_range(ends, run->options.net, &step->least, &step->most);
    struct sx_expression *passing = passes_of(&run->arena, ends, run->options.net, type);
    return passing ? sx_evaluator_init(run, &passing, 1, types, 2, &step->others, error)
                   : sx_no_memory(error, "a scan's filter");
}

static enum sx_status make_join_step(struct scan_step *step, struct sx_run *run,
                                     const struct sx_scan_plan *plan, const struct sx_runtime_filter *filter,
                                     struct sx_error *error) {
    const int32_t n_keys = filter->join->plan->u.join.n_keys;
    bool *used = SX_ARENA_ARRAY(&run->arena, plan->n_columns, bool);
    if (!used)
        return sx_no_memory(error, "a scan's filter");
    step->join = filter->join;
    step->keys = filter->columns;
    step->reach = filter->reach;
    SX_TRY(set_range(step, run, plan->columns[filter->columns[0]].type, error));
    step->join->is_all_wanted |= step->reach != SX_REACH_RANK;
    step->join->bloom.is_wanted |= (step->reach != SX_REACH_RANK && !step->is_near) || n_keys > 1;
    for (int32_t k = 0; k < n_keys; k++)
        used[filter->columns[k]] = true;
    return set_columns(step, run, used, plan->n_columns, error);
}

enum sx_status scan_steps_create(struct sx_scan_source *scan, struct sx_run *run,
                                 const struct sx_runtime_filter *filters, int n_filters,
                                 struct sx_error *error) {
    const struct sx_scan_plan *plan = &scan->plan->u.scan;
    scan->steps = SX_ARENA_ARRAY(&run->arena, plan->n_filters + n_filters, struct scan_step);
    if (!scan->steps)
        return sx_no_memory(error, "a scan's filters");
    for (int32_t i = 0; i < plan->n_filters; i++)
        SX_TRY(make_conjunct(&scan->steps[scan->n_steps++], run, plan, plan->filters[i], error));
    for (int i = 0; i < n_filters; i++)
        SX_TRY(make_join_step(&scan->steps[scan->n_steps++], run, plan, &filters[i], error));
    return SX_OK;
}

/* Conjuncts in front of one that may raise an error may guard it. */
static bool keeps_place(const struct scan_step *step) {
    return !step->join && step->fallible;
}

/* Rows dropped per nanosecond; steps not measured yet come first, conjuncts before joins. */
static double worth(struct scan_step *step) {
    int64_t in = atomic_load_explicit(&step->rows_in, memory_order_relaxed);
    int64_t out = atomic_load_explicit(&step->rows_out, memory_order_relaxed);
    int64_t spent = atomic_load_explicit(&step->nanoseconds, memory_order_relaxed);
    if (in == 0)
        return step->join ? 1e9 : 2e9;
    return (double)(in - out) / (double)(spent + 1);
}

/* A runtime filter is only there to save work: one that passes nearly everything costs more than it saves. */
static bool useless(struct scan_step *step) {
    enum { ENOUGH_ROWS = 100000 };
    if (!step->join)
        return false;
    int64_t in = atomic_load_explicit(&step->rows_in, memory_order_relaxed);
    int64_t out = atomic_load_explicit(&step->rows_out, memory_order_relaxed);
    return in > ENOUGH_ROWS && out > in - in / 8;
}

void scan_steps_order(struct sx_scan_source *scan, struct scan_worker *state) {
    state->n_order = 0;
    for (int32_t i = 0; i < scan->n_steps; i++) {
        if (scan->steps[i].is_off || useless(&scan->steps[i]))
            continue;
        double mine = worth(&scan->steps[i]);
        int32_t at = state->n_order++;
        for (; at > 0 && !keeps_place(&scan->steps[i]) && worth(&scan->steps[state->order[at - 1]]) < mine;
             at--)
            state->order[at] = state->order[at - 1];
        state->order[at] = i;
    }
}

/* The positions in *selection, and those of rows that other ranks get. */
static enum sx_status add_others(struct scan_step *step, struct sx_worker *worker,
                                 const struct sx_tensor *key, struct sx_tensor *selection) {
    struct sx_batch batch = {0};
    struct sx_tensor passing = {0};
    enum sx_status status;
    SX_GO(sx_batch_create(2, key->length, &batch, sx_worker_error(worker)));
    sx_tensor_share(key, &batch.columns[0]);
    SX_GO(sx_ops(worker)->index_to_mask(worker->stream, selection, key->length, &batch.columns[1]));
    SX_GO(sx_evaluator_select(&step->others, worker, &batch, &passing));
    sx_tensor_release(selection);
    *selection = passing;
out:
    sx_batch_release(&batch);
    return status;
}

/* By the join's table. */
static enum sx_status select_by_table(struct scan_step *step, struct sx_worker *worker,
                                      const struct scan_worker *state, struct sx_tensor *out_selection) {
    const struct sx_tensor *key = &state->work.columns.columns[step->keys[0]];
    SX_TRY(sx_ops(worker)->join_filter(worker->stream, step->join->table, key, NULL, out_selection));
    if (!step->is_near || step->join->is_everywhere ||
        scan_chunk_is_within(state, step->keys[0], step->least, step->most, true))
        return SX_OK;
    const enum sx_status status = add_others(step, worker, key, out_selection);
    if (status != SX_OK)
        sx_tensor_release(out_selection);
    return status;
}

/* Rows that may have a partner in the join's table, or in that of some rank. */
static enum sx_status select_by_join(struct scan_step *step, struct sx_worker *worker,
                                     const struct scan_worker *state, struct sx_tensor *out_selection) {
    struct sx_batch keys = {0};
    if (!scan_step_needs_bloom(step))
        return select_by_table(step, worker, state, out_selection);
    SX_TRY(sx_batch_gather(worker, &state->work.columns, step->keys, step->join->plan->u.join.n_keys, NULL,
                           &keys));
    const enum sx_status status = join_bloom_select(&step->join->bloom, worker, &keys, out_selection);
    sx_batch_release(&keys);
    return status;
}

enum sx_status scan_step_select(struct scan_step *step, struct sx_worker *worker,
                                const struct scan_worker *state, struct sx_tensor *out_selection) {
    const struct scan_chunk *chunk = &state->work;
    int64_t begin = sx_clock_ns();
    struct sx_tensor selection = {0};
    if (step->join)
        SX_TRY(select_by_join(step, worker, state, &selection));
    else
        SX_TRY(sx_evaluator_select(&step->conjunct, worker, &chunk->columns, &selection));
    atomic_fetch_add_explicit(&step->rows_in, chunk->rows, memory_order_relaxed);
    atomic_fetch_add_explicit(&step->rows_out, selection.length, memory_order_relaxed);
    atomic_fetch_add_explicit(&step->nanoseconds, sx_clock_ns() - begin, memory_order_relaxed);
    *out_selection = selection;
    return SX_OK;
}
