/* Group by. A DISTINCT aggregate first collects the distinct (keys, argument) rows in a group table of its
 * own, whose rows are fed to the aggregate at the end. */
#include <string.h>

#include "exec/build_order.h"
#include "exec/operators.h"

struct distinct_set {
    int32_t call;
    struct sx_group *group; /* keys, then the argument */
    int parts;
};

struct aggregate_worker {
    int part; /* -1: none taken */
    int64_t cursor;
    int64_t batches;
};

struct aggregate {
    struct sx_sink sink;
    const struct sx_plan *plan;
    struct sx_evaluator inputs; /* keys, arguments, filters */
    int32_t *argument_at;       /* per call: which output of `inputs`; -1: none */
    int32_t *filter_at;
    struct sx_group *group;
    struct distinct_set *sets;
    int32_t n_sets;
    bool is_fed; /* all that `group` gets comes from the sets */
    int parts;
    int64_t most_rows;
};

struct aggregate_source {
    struct sx_source source;
    struct aggregate *aggregate;
    struct aggregate_worker *workers;
    atomic_int next_part;
};

/* MIN and MAX of distinct values are those of all values. */
static bool needs_set(const struct sx_aggregate_call *call) {
    return call->distinct && call->function != SX_CALL_MIN && call->function != SX_CALL_MAX;
}

static struct sx_tensor untouched(void) {
    return (struct sx_tensor){.length = -1};
}

/* ---- update ---- */

/* Adds the rows whose filter is true to a distinct set. */
static enum sx_status add_to_set(struct sx_worker *worker, struct aggregate *aggregate,
                                 struct distinct_set *set, const struct sx_tensor *evaluated, int64_t rows,
                                 struct sx_tensor *scratch) {
    const struct sx_backend_ops *ops = sx_ops(worker);
    const int32_t n_keys = aggregate->plan->u.aggregate.n_keys;
    const int32_t filter = aggregate->filter_at[set->call];
    struct sx_tensor index = {0};
    enum sx_status status = SX_OK;
    int32_t n_made = 0;
    if (filter >= 0)
        SX_TRY(ops->mask_to_index(worker->stream, &evaluated[filter], true, &index));
    int64_t kept = filter >= 0 ? index.length : rows;
    if (kept == 0)
        goto out;
    for (; n_made <= n_keys; n_made++) {
        const struct sx_tensor *column =
            &evaluated[n_made < n_keys ? n_made : aggregate->argument_at[set->call]];
        if (filter >= 0)
            SX_GO(ops->gather(worker->stream, column, &index, &scratch[n_made]));
        else
            sx_tensor_share(column, &scratch[n_made]);
    }
    status = ops->group_update(worker->stream, set->group, worker->index, scratch, NULL, NULL, kept);
out:
    for (int32_t i = 0; i < n_made; i++)
        sx_tensor_release(&scratch[i]);
    sx_tensor_release(&index);
    return status;
}

/* inputs and filters borrow from `evaluated`. */
static enum sx_status update(struct sx_worker *worker, struct aggregate *aggregate,
                             const struct sx_tensor *evaluated, int64_t rows, struct sx_tensor *inputs,
                             struct sx_tensor *filters) {
    const struct sx_aggregate_plan *plan = &aggregate->plan->u.aggregate;
    bool filtered = false;
    for (int32_t i = 0; i < plan->n_calls; i++) {
        const int32_t argument = aggregate->argument_at[i], filter = aggregate->filter_at[i];
        inputs[i] = argument >= 0 ? evaluated[argument] : (struct sx_tensor){.length = rows};
        filters[i] = filter >= 0 ? evaluated[filter] : untouched();
        filtered |= filter >= 0;
        if (needs_set(&plan->calls[i]))
            inputs[i] = untouched();
    }
    if (!aggregate->is_fed)
        SX_TRY(sx_ops(worker)->group_update(worker->stream, aggregate->group, worker->index, evaluated,
                                            inputs, filtered ? filters : NULL, rows));
    for (int32_t i = 0; i < aggregate->n_sets; i++)
        SX_TRY(add_to_set(worker, aggregate, &aggregate->sets[i], evaluated, rows, inputs));
    return SX_OK;
}

static enum sx_status aggregate_consume(struct sx_sink *sink, struct sx_worker *worker,
                                        struct sx_batch *batch) {
    struct aggregate *aggregate = (struct aggregate *)sink;
    const struct sx_aggregate_plan *plan = &aggregate->plan->u.aggregate;
    const int32_t n_evaluated = aggregate->inputs.program.n_outputs;
    /* keys, arguments and filters; then inputs (also scratch for keys and one argument), then filters */
    const int32_t n_inputs = plan->n_calls + plan->n_keys + 1;
    struct sx_batch work = {0};
    SX_TRY(
        sx_batch_create(n_evaluated + n_inputs + plan->n_calls, batch->rows, &work, sx_worker_error(worker)));
    struct sx_tensor *inputs = work.columns + n_evaluated;
    enum sx_status status = sx_evaluator_run(&aggregate->inputs, worker, batch, work.columns);
    if (status == SX_OK)
        status = update(worker, aggregate, work.columns, batch->rows, inputs, inputs + n_inputs);
    work.n_columns = n_evaluated; /* the rest is borrowed */
    sx_batch_release(&work);
    return status;
}

/* ---- end of input ---- */

static enum sx_status aggregate_finish(struct sx_sink *sink, struct sx_worker *worker, int *out_parts) {
    struct aggregate *aggregate = (struct aggregate *)sink;
    int64_t most_rows; /* a set's, which nobody asks for */
    *out_parts = 0;
    for (int32_t i = 0; i < aggregate->n_sets; i++) {
        SX_TRY(sx_ops(worker)->group_finish(worker->stream, aggregate->sets[i].group,
                                            &aggregate->sets[i].parts, &most_rows));
        *out_parts += aggregate->sets[i].parts;
    }
    return SX_OK;
}

static enum sx_status feed_set(struct aggregate *aggregate, struct sx_worker *worker,
                               const struct distinct_set *set, int part, struct sx_tensor *inputs) {
    const int32_t n_keys = aggregate->plan->u.aggregate.n_keys;
    const int32_t n_calls = aggregate->plan->u.aggregate.n_calls;
    const struct sx_backend_ops *ops = sx_ops(worker);
    int64_t cursor = 0;
    for (;;) {
        struct sx_batch rows = {0};
        SX_TRY(ops->group_emit(worker->stream, set->group, part, &cursor,
                               worker->stream->backend->traits.chunk_rows, &rows));
        enum sx_status status = SX_OK;
        bool any = rows.rows > 0;
        for (int32_t i = 0; i < n_calls; i++)
            inputs[i] = untouched();
        if (any) {
            inputs[set->call] = rows.columns[n_keys];
            status = ops->group_update(worker->stream, aggregate->group, worker->index, rows.columns, inputs,
                                       NULL, rows.rows);
        }
        sx_batch_release(&rows);
        if (status != SX_OK || !any)
            return status;
    }
}

static enum sx_status aggregate_part(struct sx_sink *sink, struct sx_worker *worker, int part) {
    struct aggregate *aggregate = (struct aggregate *)sink;
    struct sx_batch inputs = {0};
    int32_t set = 0;
    for (; part >= aggregate->sets[set].parts; set++)
        part -= aggregate->sets[set].parts;
    SX_TRY(sx_batch_create(aggregate->plan->u.aggregate.n_calls, 0, &inputs, sx_worker_error(worker)));
    enum sx_status status = feed_set(aggregate, worker, &aggregate->sets[set], part, inputs.columns);
    inputs.n_columns = 0; /* borrowed */
    sx_batch_release(&inputs);
    return status;
}

static enum sx_status aggregate_seal(struct sx_sink *sink, struct sx_worker *worker) {
    struct aggregate *aggregate = (struct aggregate *)sink;
    for (int32_t i = 0; i < aggregate->n_sets; i++) {
        sx_ops(worker)->group_destroy(worker->stream, aggregate->sets[i].group);
        aggregate->sets[i].group = NULL;
    }
    return sx_ops(worker)->group_finish(worker->stream, aggregate->group, &aggregate->parts,
                                        &aggregate->most_rows);
}

static void aggregate_destroy(struct sx_run *run, struct sx_operator *op) {
    struct aggregate *aggregate = (struct aggregate *)op;
    const struct sx_backend_ops *ops = &run->options.backend->ops;
    struct sx_stream *stream = run->workers[0].stream;
    if (aggregate->group)
        ops->group_destroy(stream, aggregate->group);
    for (int32_t i = 0; i < aggregate->n_sets; i++)
        if (aggregate->sets[i].group)
            ops->group_destroy(stream, aggregate->sets[i].group);
    sx_evaluator_release(run, &aggregate->inputs);
}

/* ---- source ---- */

static enum sx_status aggregate_next(struct sx_source *base, struct sx_worker *worker,
                                     struct sx_batch *out_batch, bool *out_done) {
    struct aggregate_source *source = (struct aggregate_source *)base;
    struct aggregate_worker *state = &source->workers[worker->index];
    for (;;) {
        if (state->part < 0) {
            *state = (struct aggregate_worker){.part = atomic_fetch_add(&source->next_part, 1)};
            *out_done = state->part >= source->aggregate->parts;
            if (*out_done)
                return SX_OK;
        }
        *out_done = false;
        SX_TRY(sx_ops(worker)->group_emit(worker->stream, source->aggregate->group, state->part,
                                          &state->cursor, worker->stream->backend->traits.chunk_rows,
                                          out_batch));
        worker->sequence = ((int64_t)state->part << 32) + state->batches++;
        if (out_batch->rows > 0)
            return SX_OK;
        sx_batch_release(out_batch);
        state->part = -1;
    }
}

static struct sx_source_size aggregate_size(const struct sx_source *source) {
    return (struct sx_source_size){((const struct aggregate_source *)source)->aggregate->parts, INT64_MAX};
}

static int64_t aggregate_most_rows(const struct sx_source *source) {
    return ((const struct aggregate_source *)source)->aggregate->most_rows;
}

/* ---- creation ---- */

static const enum sx_aggregate primitive_of[] = {
    [SX_CALL_COUNT_STAR] = SX_AGG_COUNT_STAR,
    [SX_CALL_COUNT] = SX_AGG_COUNT,
    [SX_CALL_SUM] = SX_AGG_SUM,
    [SX_CALL_AVG] = SX_AGG_AVG,
    [SX_CALL_MIN] = SX_AGG_MIN,
    [SX_CALL_MAX] = SX_AGG_MAX,
    [SX_CALL_FIRST] = SX_AGG_FIRST,
    [SX_CALL_ANY_VALUE] = SX_AGG_ANY_VALUE,
};

static enum sx_status create_inputs(struct aggregate *aggregate, struct sx_run *run, struct sx_error *error) {
    const struct sx_aggregate_plan *plan = &aggregate->plan->u.aggregate;
    const struct sx_plan *child = aggregate->plan->children[0];
    struct sx_expression **list =
        SX_ARENA_ARRAY(&run->arena, plan->n_keys + 2 * plan->n_calls, struct sx_expression *);
    struct sx_type *types = sx_plan_types(run, child);
    aggregate->argument_at = SX_ARENA_ARRAY(&run->arena, plan->n_calls, int32_t);
    aggregate->filter_at = SX_ARENA_ARRAY(&run->arena, plan->n_calls, int32_t);
    if (!list || !types || !aggregate->argument_at || !aggregate->filter_at)
        return sx_no_memory(error, "an aggregate");
    int32_t n = 0;
    for (int32_t k = 0; k < plan->n_keys; k++)
        list[n++] = plan->keys[k];
    for (int32_t i = 0; i < plan->n_calls; i++) {
        aggregate->argument_at[i] = plan->calls[i].argument ? n : -1;
        if (plan->calls[i].argument)
            list[n++] = plan->calls[i].argument;
        aggregate->filter_at[i] = plan->calls[i].filter ? n : -1;
        if (plan->calls[i].filter)
            list[n++] = plan->calls[i].filter;
    }
    return sx_evaluator_init(run, list, n, types, child->n_columns, &aggregate->inputs, error);
}

/* ---- how it reads its columns ---- */

static void note_any(int32_t column, void *context) {
    ((enum sx_reading *)context)[column] = SX_READS_ANY;
}
static void note_no_sum(int32_t column, void *context) {
    enum sx_reading *readings = context;
    if (readings[column] == SX_READS_SUM)
        readings[column] = SX_READS_ONCE;
}

static bool is_sum_of_column(const struct sx_aggregate_plan *plan, const struct sx_aggregate_call *call) {
    return plan->n_keys == 0 && (call->function == SX_CALL_SUM || call->function == SX_CALL_COUNT) &&
           call->argument->kind == SX_EXPR_COLUMN;
}

/* Keys, filters and what is DISTINCT are looked at again and again. */
static enum sx_status note_readings(struct aggregate *aggregate, struct sx_run *run, struct sx_error *error) {
    const struct sx_aggregate_plan *plan = &aggregate->plan->u.aggregate;
    const int32_t n = aggregate->plan->children[0]->n_columns;
    enum sx_reading *readings = SX_ARENA_ARRAY(&run->arena, n, enum sx_reading);
    if (!readings)
        return sx_no_memory(error, "an aggregate");
    for (int32_t c = 0; c < n; c++)
        readings[c] = SX_READS_SUM;
    for (int32_t i = 0; i < plan->n_calls; i++)
        if (plan->calls[i].argument && !is_sum_of_column(plan, &plan->calls[i]))
            sx_expression_columns(plan->calls[i].argument, note_no_sum, readings);
    for (int32_t i = 0; i < plan->n_calls; i++) {
        if (plan->calls[i].argument && needs_set(&plan->calls[i]))
            sx_expression_columns(plan->calls[i].argument, note_any, readings);
        if (plan->calls[i].filter)
            sx_expression_columns(plan->calls[i].filter, note_any, readings);
    }
    for (int32_t k = 0; k < plan->n_keys; k++)
        sx_expression_columns(plan->keys[k], note_any, readings);
    aggregate->sink.base.readings = readings;
    return SX_OK;
}

static enum sx_status create_group(struct sx_run *run, const struct sx_group_spec *spec,
                                   struct sx_group **out_group, struct sx_error *error) {
    struct sx_stream *stream = run->workers[0].stream;
    enum sx_status status = run->options.backend->ops.group_create(stream, spec, out_group);
    if (status != SX_OK)
        *error = stream->error;
    return status;
}

static enum sx_status create_groups(struct aggregate *aggregate, struct sx_run *run, struct sx_error *error) {
    const struct sx_aggregate_plan *plan = &aggregate->plan->u.aggregate;
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, plan->n_keys + 1, struct sx_type);
    struct sx_aggregate_spec *specs = SX_ARENA_ARRAY(&run->arena, plan->n_calls, struct sx_aggregate_spec);
    aggregate->sets = SX_ARENA_ARRAY(&run->arena, plan->n_calls, struct distinct_set);
    if (!types || !specs || !aggregate->sets)
        return sx_no_memory(error, "an aggregate");
    for (int32_t k = 0; k < plan->n_keys; k++)
        types[k] = plan->keys[k]->type;
    struct sx_group_spec spec = {.n_keys = plan->n_keys,
                                 .key_types = types,
                                 .n_aggregates = plan->n_calls,
                                 .aggregates = specs,
                                 .n_workers = run->n_workers,
                                 .expected_rows = sx_estimate_rows(run, aggregate->plan->children[0])};
    for (int32_t i = 0; i < plan->n_calls; i++) {
        const struct sx_aggregate_call *call = &plan->calls[i];
        specs[i].function = primitive_of[call->function];
        if (call->argument)
            specs[i].input = call->argument->type;
        specs[i].output = call->type;
    }
    SX_TRY(create_group(run, &spec, &aggregate->group, error));
    spec.n_keys++;
    spec.n_aggregates = 0;
    for (int32_t i = 0; i < plan->n_calls; i++) {
        if (!needs_set(&plan->calls[i]) || !plan->calls[i].argument)
            continue;
        types[plan->n_keys] = plan->calls[i].argument->type;
        struct distinct_set *set = &aggregate->sets[aggregate->n_sets++];
        set->call = i;
        SX_TRY(create_group(run, &spec, &set->group, error));
    }
    return SX_OK;
}

/* Every call has a set, one of which takes the keys of all rows. */
static bool is_fed_by_sets(const struct aggregate *aggregate) {
    for (int32_t i = 0; i < aggregate->n_sets; i++)
        if (aggregate->filter_at[aggregate->sets[i].call] < 0)
            return aggregate->n_sets == aggregate->plan->u.aggregate.n_calls;
    return false;
}

enum sx_status sx_aggregate_create(struct sx_run *run, const struct sx_plan *plan, struct sx_sink **out_sink,
                                   struct sx_source **out_source, struct sx_error *error) {
    struct aggregate *aggregate = sx_operator_create(run, sizeof *aggregate, aggregate_destroy, "AGGREGATE");
    struct aggregate_source *source = sx_operator_create(run, sizeof *source, NULL, "AGGREGATE result");
    if (!aggregate || !source)
        return sx_no_memory(error, "an aggregate");
    aggregate->plan = plan;
    SX_TRY(create_inputs(aggregate, run, error));
    SX_TRY(create_groups(aggregate, run, error));
    SX_TRY(note_readings(aggregate, run, error));
    aggregate->is_fed = is_fed_by_sets(aggregate);
    aggregate->sink.consume = aggregate_consume;
    aggregate->sink.finish = aggregate_finish;
    aggregate->sink.part = aggregate_part;
    aggregate->sink.seal = aggregate_seal;
    source->aggregate = aggregate;
    source->source.next = aggregate_next;
    source->source.size = aggregate_size;
    source->source.most_rows = aggregate_most_rows;
    source->workers = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct aggregate_worker);
    if (!source->workers)
        return sx_no_memory(error, "an aggregate");
    for (int w = 0; w < run->n_workers; w++)
        source->workers[w].part = -1;
    *out_sink = &aggregate->sink;
    *out_source = &source->source;
    return SX_OK;
}
