#include "exec/build.h"

#include <stdlib.h>

#include "exec/build_order.h"

/* Transforms still to be applied to a node's rows, nearest first, and where they go in the end. */
struct link {
    struct sx_transform *transform;
    const struct link *next;
};

struct target {
    const struct link *chain;
    struct sx_sink *sink;
    struct sx_pending_build **pending; /* joins in the chain whose build side has no pipelines yet */
    int n_exchanges;                   /* between here and the chain's end */
};

struct builder {
    struct sx_run *run;
    struct sx_error *error;
};

static enum sx_status build_node(struct builder *b, const struct sx_plan *plan, struct target target,
                                 const struct sx_pending_filter *filters);

static enum sx_status grow_pipelines(struct builder *b) {
    struct sx_run *run = b->run;
    if (run->n_pipelines < run->capacity_pipelines)
        return SX_OK;
    int capacity = run->capacity_pipelines ? 2 * run->capacity_pipelines : 16;
    struct sx_pipeline *grown = realloc(run->pipelines, (size_t)capacity * sizeof *grown);
    if (!grown)
        return sx_no_memory(b->error, "pipelines");
    run->pipelines = grown;
    run->capacity_pipelines = capacity;
    return SX_OK;
}

/* Driven pipelines have the number of the one that drives them. */
static void number_driven(const struct sx_source *source, int number) {
    struct sx_pipeline *driven = source->drives ? source->drives->driven : NULL;
    for (; driven; driven = driven->next) {
        driven->index = number;
        number_driven(driven->source, number);
    }
}

static enum sx_status add_driven(struct builder *b, const struct sx_pipeline *pipeline) {
    struct sx_pipeline *made = SX_ARENA_NEW(&b->run->arena, struct sx_pipeline);
    if (!made)
        return sx_no_memory(b->error, "a pipeline");
    *made = *pipeline;
    struct sx_pipeline **at = &pipeline->sink->driven;
    while (*at)
        at = &(*at)->next;
    *at = made;
    return SX_OK;
}

static enum sx_status add_pipeline(struct builder *b, struct sx_source *source, struct target target) {
    SX_TRY(grow_pipelines(b));
    int n = 0;
    for (const struct link *l = target.chain; l; l = l->next)
        n++;
    struct sx_transform **transforms = SX_ARENA_ARRAY(&b->run->arena, n, struct sx_transform *);
    if (!transforms)
        return sx_no_memory(b->error, "a pipeline");
    n = 0;
    for (const struct link *l = target.chain; l; l = l->next)
        transforms[n++] = l->transform;
    struct sx_pipeline pipeline = {.index = b->run->n_pipelines,
                                   .source = source,
                                   .transforms = transforms,
                                   .n_transforms = n,
                                   .sink = target.sink,
                                   .feeder = target.sink->n_feeders++};
    if (target.sink->is_driven)
        return add_driven(b, &pipeline);
    number_driven(source, pipeline.index);
    b->run->pipelines[b->run->n_pipelines++] = pipeline;
    return SX_OK;
}

static enum sx_status prepend(struct builder *b, struct sx_transform *transform, struct target *target) {
    struct link *link = SX_ARENA_NEW(&b->run->arena, struct link);
    if (!link)
        return sx_no_memory(b->error, "a pipeline");
    *link = (struct link){.transform = transform, .next = target->chain};
    target->chain = link;
    return SX_OK;
}

/* Pipelines that compute `plan` into a sink of its own. */
static enum sx_status build_into(struct builder *b, const struct sx_plan *plan, struct sx_sink *sink,
                                 const struct sx_pending_filter *filters) {
    struct sx_pending_build *pending = NULL;
    return build_node(b, plan, (struct target){.sink = sink, .pending = &pending}, filters);
}

static enum sx_status build_side(struct builder *b, struct sx_join_build *join, int side,
                                 struct target target, const struct sx_pending_filter *filters);

/* Builds the joins that the chain probes, before the pipeline that probes them. */
static enum sx_status build_pending(struct builder *b, struct target target) {
    for (;;) {
        const struct sx_pending_filter *filters = NULL;
        struct sx_join_build *next = NULL;
        SX_TRY(sx_pending_take(b->run, *target.pending, &next, &filters, b->error));
        if (!next)
            return SX_OK;
        struct sx_pending_build *pending = NULL;
        SX_TRY(build_side(b, next, 1, (struct target){.sink = &next->sink, .pending = &pending}, filters));
        next->scheduled = true;
    }
}

static enum sx_status build_child(struct builder *b, const struct sx_plan *plan, int child,
                                  struct target target, const struct sx_pending_filter *filters) {
    const struct sx_pending_filter *below = NULL;
    SX_TRY(sx_filters_below(b->run, plan, child, filters, &below, b->error));
    return build_node(b, plan->children[child], target, below);
}

/* ---- one function for each kind of node ---- */

static enum sx_status build_scan(struct builder *b, const struct sx_plan *plan, struct target target,
                                 const struct sx_pending_filter *filters) {
    SX_TRY(build_pending(b, target));
    int n = 0;
    for (const struct sx_pending_filter *f = filters; f; f = f->next)
        n++;
    struct sx_runtime_filter *list = SX_ARENA_ARRAY(&b->run->arena, n, struct sx_runtime_filter);
    if (!list)
        return sx_no_memory(b->error, "a scan");
    n = 0;
    for (const struct sx_pending_filter *f = filters; f; f = f->next) {
        const int32_t n_keys = f->join->plan->u.join.n_keys;
        int32_t *columns = SX_ARENA_ARRAY(&b->run->arena, n_keys, int32_t);
        if (!columns)
            return sx_no_memory(b->error, "a scan");
        for (int32_t k = 0; k < n_keys; k++)
            columns[k] = plan->u.scan.projection[f->columns[k]];
        list[n++] = (struct sx_runtime_filter){.join = f->join, .columns = columns, .reach = f->reach};
    }
    struct sx_source *source;
    SX_TRY(sx_scan_create(b->run, plan, list, n, &source, b->error));
    for (int i = 0; i < n; i++)
        SX_TRY(sx_operator_needs(b->run, &source->base, &list[i].join->sink, b->error));
    b->run->scans[b->run->n_scans++] = (struct sx_scan_source *)source;
    return add_pipeline(b, source, target);
}

static enum sx_status build_values(struct builder *b, const struct sx_plan *plan, struct target target) {
    struct sx_source *source;
    SX_TRY(build_pending(b, target));
    if (plan->kind == SX_PLAN_MEMORY)
        SX_TRY(sx_memory_create(b->run, plan, &source, b->error));
    else
        SX_TRY(sx_values_create(b->run, plan, &source, b->error));
    return add_pipeline(b, source, target);
}

static enum sx_status build_transform(struct builder *b, const struct sx_plan *plan, struct target target,
                                      const struct sx_pending_filter *filters) {
    struct sx_transform *transform;
    if (plan->kind == SX_PLAN_FILTER)
        SX_TRY(sx_filter_create(b->run, plan, &transform, b->error));
    else
        SX_TRY(sx_project_create(b->run, plan, &transform, b->error));
    SX_TRY(prepend(b, transform, &target));
    return build_child(b, plan, 0, target, filters);
}

static enum sx_status build_join(struct builder *b, const struct sx_plan *plan, struct target target,
                                 const struct sx_pending_filter *filters) {
    struct sx_join_build *build;
    struct sx_transform *probe;
    SX_TRY(sx_join_build_create(b->run, plan, &build, b->error));
    const struct sx_pending_filter *on_build = NULL;
    SX_TRY(sx_filters_below(b->run, plan, 1, filters, &on_build, b->error));
    SX_TRY(sx_pending_add(b->run, build, on_build, target.n_exchanges, target.pending, b->error));
    SX_TRY(sx_join_probe_create(b->run, build, &probe, b->error));
    SX_TRY(sx_operator_needs(b->run, &probe->base, &build->sink, b->error));
    struct target probed = target;
    SX_TRY(prepend(b, probe, &probed));
    const struct sx_pending_filter *below = NULL;
    SX_TRY(sx_filters_below(b->run, plan, 0, filters, &below, b->error));
    SX_TRY(sx_filters_of_join(b->run, build, &below, b->error));
    SX_TRY(build_side(b, build, 0, probed, below));
    if (!sx_join_is_right(plan->u.join.kind))
        return SX_OK;
    struct sx_source *rest;
    SX_TRY(sx_join_rest_create(b->run, build, &rest, b->error));
    SX_TRY(sx_operator_needs(b->run, &rest->base, &build->sink, b->error));
    return add_pipeline(b, rest, target);
}

/* Rows whose number has to be known stay in a collector first. */
static enum sx_status build_kept(struct builder *b, const struct sx_plan *plan, struct sx_sink *exchange,
                                 const struct sx_pending_filter *filters) {
    struct sx_collector *kept;
    struct sx_source *source;
    SX_TRY(sx_collector_create(b->run, plan, "EXCHANGE size", &kept, b->error));
    SX_TRY(build_into(b, plan, &kept->sink, filters));
    SX_TRY(sx_collector_source(b->run, kept, "EXCHANGE rows", &source, b->error));
    sx_exchange_set_kept(exchange, kept);
    return add_pipeline(b, source, (struct target){.sink = exchange});
}

static enum sx_status build_exchange(struct builder *b, const struct sx_plan *plan, struct target target,
                                     const struct sx_pending_filter *filters, struct sx_join_build *join,
                                     bool is_build) {
    struct sx_sink *sink;
    struct sx_source *source;
    const struct sx_pending_filter *below = NULL;
    SX_TRY(sx_exchange_create(b->run, plan, join, is_build, &sink, &source, b->error));
    SX_TRY(sx_filters_below(b->run, plan, 0, filters, &below, b->error));
    if (sx_exchange_wants_size(plan, is_build)) {
        SX_TRY(build_kept(b, plan->children[0], sink, below));
        return add_pipeline(b, source, target);
    }
    /* one chain with what it drives: the smallest of all its joins is built first */
    const struct target driven = {
        .sink = sink, .pending = target.pending, .n_exchanges = target.n_exchanges + 1};
    SX_TRY(build_node(b, plan->children[0], driven, below));
    return add_pipeline(b, source, target);
}

static enum sx_status build_root_only(struct builder *b, const struct sx_plan *plan, struct target target,
                                      const struct sx_pending_filter *filters) {
    struct sx_transform *transform;
    SX_TRY(sx_root_only_create(b->run, &transform, b->error));
    SX_TRY(prepend(b, transform, &target));
    return build_child(b, plan, 0, target, filters);
}

/* A child of a join: 0 its probe side, 1 its build side. */
static enum sx_status build_side(struct builder *b, struct sx_join_build *join, int side,
                                 struct target target, const struct sx_pending_filter *filters) {
    const struct sx_plan *plan = join->plan->children[side];
    if (plan->kind == SX_PLAN_EXCHANGE && plan->u.exchange.kind != SX_EXCHANGE_ROOT_ONLY)
        return build_exchange(b, plan, target, filters, join, side == 1);
    return build_node(b, plan, target, filters);
}

typedef enum sx_status breaker_create(struct sx_run *run, const struct sx_plan *plan,
                                      struct sx_sink **out_sink, struct sx_source **out_source,
                                      struct sx_error *error);

static enum sx_status build_breaker(struct builder *b, const struct sx_plan *plan, struct target target,
                                    const struct sx_pending_filter *filters, breaker_create *create) {
    struct sx_sink *sink;
    struct sx_source *source;
    SX_TRY(create(b->run, plan, &sink, &source, b->error));
    SX_TRY(sx_operator_needs(b->run, &source->base, sink, b->error));
    const struct sx_pending_filter *below = NULL;
    SX_TRY(build_pending(b, target)); /* the child's scans may be filtered by them */
    SX_TRY(sx_filters_below(b->run, plan, 0, filters, &below, b->error));
    SX_TRY(build_into(b, plan->children[0], sink, below));
    return add_pipeline(b, source, target);
}

static enum sx_status build_union(struct builder *b, const struct sx_plan *plan, struct target target,
                                  const struct sx_pending_filter *filters) {
    SX_TRY(build_pending(b, target));
    for (int32_t i = 0; i < plan->n_children; i++)
        SX_TRY(build_child(b, plan, i, target, filters));
    return SX_OK;
}

static enum sx_status build_set_all(struct builder *b, const struct sx_plan *plan, struct target target) {
    const struct sx_plan *counted;
    struct sx_transform *repeat;
    SX_TRY(sx_set_all_plan(b->run, plan, &counted, b->error));
    SX_TRY(sx_repeat_create(b->run, plan->n_columns, &repeat, b->error));
    SX_TRY(prepend(b, repeat, &target));
    return build_node(b, counted, target, NULL);
}

static enum sx_status build_materialize(struct builder *b, const struct sx_plan *plan, struct target target,
                                        const struct sx_pending_filter *filters) {
    struct sx_collector *collector;
    SX_TRY(sx_collector_create(b->run, plan->children[0], "MATERIALIZE", &collector, b->error));
    collector->combines = !b->run->options.backend->traits.is_host;
    b->run->materialized[plan->u.materialize.id] = collector;
    SX_TRY(build_into(b, plan->children[0], &collector->sink, NULL));
    return build_child(b, plan, 1, target, filters);
}

static enum sx_status build_reference(struct builder *b, const struct sx_plan *plan, struct target target) {
    struct sx_collector *collector = b->run->materialized[plan->u.materialize.id];
    struct sx_source *source;
    if (!collector)
        return sx_error_set(b->error, SX_INTERNAL, "a reference comes before what it reads");
    SX_TRY(build_pending(b, target));
    SX_TRY(sx_collector_source(b->run, collector, "REFERENCE", &source, b->error));
    return add_pipeline(b, source, target);
}

static enum sx_status build_node(struct builder *b, const struct sx_plan *plan, struct target target,
                                 const struct sx_pending_filter *filters) {
    switch (plan->kind) {
    case SX_PLAN_SCAN: return build_scan(b, plan, target, filters);
    case SX_PLAN_MEMORY:
    case SX_PLAN_VALUES: return build_values(b, plan, target);
    case SX_PLAN_FILTER:
    case SX_PLAN_PROJECT: return build_transform(b, plan, target, filters);
    case SX_PLAN_JOIN: return build_join(b, plan, target, filters);
    case SX_PLAN_AGGREGATE: return build_breaker(b, plan, target, filters, sx_aggregate_create);
    case SX_PLAN_SORT: return build_breaker(b, plan, target, filters, sx_sort_create);
    case SX_PLAN_TOP_N: return build_breaker(b, plan, target, NULL, sx_top_n_create);
    case SX_PLAN_LIMIT: return build_breaker(b, plan, target, NULL, sx_limit_create);
    case SX_PLAN_UNION_ALL: return build_union(b, plan, target, filters);
    case SX_PLAN_SET_ALL: return build_set_all(b, plan, target);
    case SX_PLAN_MATERIALIZE: return build_materialize(b, plan, target, filters);
    case SX_PLAN_REFERENCE: return build_reference(b, plan, target);
    case SX_PLAN_EXCHANGE:
        return plan->u.exchange.kind == SX_EXCHANGE_ROOT_ONLY
                   ? build_root_only(b, plan, target, filters)
                   : build_exchange(b, plan, target, filters, NULL, false);
    }
    return sx_error_set(b->error, SX_INTERNAL, "a plan node of kind %d", (int)plan->kind);
}

enum sx_status sx_pipelines_build(struct sx_run *run, const struct sx_plan *plan, struct sx_sink *sink,
                                  struct sx_error *error) {
    struct builder b = {.run = run, .error = error};
    struct sx_collector *kept;
    struct sx_source *source;
    if (!run->options.net || !run->options.write)
        return build_into(&b, plan, sink, NULL);
    /* what is written comes in order, which rows of other ranks do not */
    SX_TRY(sx_collector_create(run, plan, "RESULT", &kept, error));
    SX_TRY(build_into(&b, plan, &kept->sink, NULL));
    SX_TRY(sx_collector_source(run, kept, "RESULT", &source, error));
    return add_pipeline(&b, source, (struct target){.sink = sink});
}
