#include "exec/execute.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "exec/build.h"
#include "exec/reuse.h"
#include "observe/traced.h"
#include "tensor/semantics.h"

/* ---- creation ---- */

static enum sx_status create_workers(struct sx_run *run, struct sx_error *error) {
    run->n_workers = sx_team_members(run->options.team);
    run->workers = calloc((size_t)run->n_workers, sizeof *run->workers);
    if (!run->workers)
        return sx_no_memory(error, "workers");
    for (int w = 0; w < run->n_workers; w++) {
        struct sx_worker *worker = &run->workers[w];
        *worker = (struct sx_worker){.index = w, .run = run};
        SX_TRY(run->options.backend->ops.stream_create(run->options.backend, run->options.pool,
                                                       run->options.cancel, &worker->stream, error));
    }
    return SX_OK;
}

static enum sx_status create_parts(struct sx_run *run, const struct sx_query_plan *plan,
                                   struct sx_error *error) {
    run->scans = SX_ARENA_ARRAY(&run->arena, sx_plan_scans(plan->root), struct sx_scan_source *);
    run->materialized = SX_ARENA_ARRAY(&run->arena, plan->n_materialized, struct sx_collector *);
    if (!run->scans || !run->materialized)
        return sx_no_memory(error, "a query");
    if (run->options.trace) {
        SX_TRY(sx_traced_create(run->options.trace, run->options.backend, &run->traced, error));
        run->options.backend = run->traced;
    }
    SX_TRY(create_workers(run, error));
    SX_TRY(sx_reuse_plan(run, plan->root, error));
    struct sx_sink *sink;
    if (run->options.write) {
        SX_TRY(sx_write_create(run, plan->root, &sink, error));
    } else {
        SX_TRY(sx_collector_create(run, plan->root, "RESULT", &run->result, error));
        sink = &run->result->sink;
    }
    return sx_pipelines_build(run, plan->root, sink, error);
}

enum sx_status sx_run_create(const struct sx_exec_options *options, const struct sx_query_plan *plan,
                             struct sx_run **out_run, struct sx_error *error) {
    struct sx_run *run = calloc(1, sizeof *run);
    if (!run)
        return sx_no_memory(error, "a query");
    run->options = *options;
    pthread_mutex_init(&run->error_lock, NULL);
    pthread_rwlock_init(&run->early_lock, NULL);
    sx_events_init(&run->events);
    run->events.spin_ns = run->options.net ? sx_net_spin_ns(run->options.net) : 0;
    enum sx_status status = create_parts(run, plan, error);
    if (status != SX_OK) {
        sx_run_destroy(run);
        return status;
    }
    *out_run = run;
    return SX_OK;
}

void sx_run_destroy(struct sx_run *run) {
    if (!run)
        return;
    for (struct sx_operator *op = run->created; op; op = op->next_created)
        if (op->destroy)
            op->destroy(run, op);
    for (int w = 0; run->workers && w < run->n_workers; w++)
        if (run->workers[w].stream)
            run->options.backend->ops.stream_destroy(run->workers[w].stream);
    sx_traced_destroy(run->traced);
    sx_reuse_destroy(run->reuse);
    free(run->workers);
    free(run->pipelines);
    sx_events_release(&run->events);
    pthread_mutex_destroy(&run->error_lock);
    pthread_rwlock_destroy(&run->early_lock);
    sx_arena_release(&run->arena);
    free(run);
}

/* ---- running ---- */

static void trace_round(void *context, const struct sx_net_round *round) {
    sx_span_end(sx_trace_lane(context, round->is_pull ? "from rank" : "link", round->place), SX_SPAN_ROUND,
                round->is_pull ? "pull" : "round", round->began_ns, (int64_t)round->sent_bytes,
                (int64_t)round->received_bytes);
}

static enum sx_status execute(struct sx_run *run, struct sx_error *error) {
    const struct sx_round_watch watch = {trace_round, run->options.trace};
    if (!run->options.net)
        return sx_run_pipelines(run, error);
    if (run->options.trace)
        sx_net_watch_rounds(run->options.net, &watch);
    enum sx_status status = sx_exchanges_open(run, error);
    if (status == SX_OK)
        status = sx_run_pipelines(run, error);
    else
        sx_net_fail(run->options.net, error);
    if (status == SX_OK)
        status = sx_exchanges_compare(run, error);
    sx_exchanges_close(run);
    sx_net_watch_rounds(run->options.net, NULL);
    return status;
}

enum sx_status sx_run_execute(struct sx_run *run, struct sx_error *error) {
    sx_reuse_begin(run->reuse);
    run->deadline_ns = run->options.most_ns > 0 ? sx_clock_ns() + run->options.most_ns : 0;
    const enum sx_status status = execute(run, error);
    sx_reuse_end(run->reuse);
    return status;
}

void sx_run_set_least_memory(struct sx_run *run, size_t bytes) {
    run->least_memory_bytes = bytes;
}

bool sx_run_reuses(const struct sx_run *run) {
    return run->reuse != NULL;
}

enum sx_status sx_run_next(struct sx_run *run, struct sx_batch *out_batch, struct sx_error *error) {
    *out_batch = (struct sx_batch){0};
    if (!run->result || run->result_batch >= run->result->n_batches)
        return SX_OK;
    struct sx_worker *worker = &run->workers[0];
    struct sx_batch *batch = &run->result->batches[run->result_batch++];
    enum sx_status status = sx_ops(worker)->batch_to_host(worker->stream, batch, out_batch);
    if (status != SX_OK)
        *error = *sx_worker_error(worker);
    sx_batch_release(batch);
    return status;
}

void sx_run_progress(struct sx_run *run, struct sx_exec_progress *out_progress) {
    *out_progress = (struct sx_exec_progress){0};
    for (int i = 0; i < run->n_scans; i++)
        sx_scan_source_progress(run->scans[i], out_progress);
    if (run->write)
        out_progress->written_rows = sx_write_rows(run->write);
}

/* ---- telling ---- */

static void report_operator(struct sx_run *run, int pipeline, const struct sx_operator *op,
                            struct sx_operator_report *report) {
    const char *told = op->tell ? op->tell(op, &run->arena) : NULL;
    *report = (struct sx_operator_report){.pipeline = pipeline, .name = told ? told : op->name};
    for (int w = 0; w < run->n_workers; w++) {
        report->rows += op->counts[w].rows;
        report->batches += op->counts[w].batches;
        report->seconds += (double)op->counts[w].nanoseconds * 1e-9;
    }
}

/* The first of the pipelines that p's source drives. */
static const struct sx_pipeline *driven_by(const struct sx_pipeline *p) {
    return p->source->drives ? p->source->drives->driven : NULL;
}

static int count_operators(const struct sx_pipeline *p) {
    int n = p->n_transforms + 2;
    for (const struct sx_pipeline *below = driven_by(p); below; below = below->next)
        n += count_operators(below);
    return n;
}

/* Those of the pipelines that it drives come first; returns how many. */
static int report_pipeline(struct sx_run *run, const struct sx_pipeline *p,
                           struct sx_operator_report *reports) {
    int n = 0;
    for (const struct sx_pipeline *below = driven_by(p); below; below = below->next)
        n += report_pipeline(run, below, reports + n);
    report_operator(run, p->index, &p->source->base, &reports[n++]);
    for (int t = 0; t < p->n_transforms; t++)
        report_operator(run, p->index, &p->transforms[t]->base, &reports[n++]);
    report_operator(run, p->index, &p->sink->base, &reports[n++]);
    return n;
}

int sx_run_report(struct sx_run *run, const struct sx_operator_report **out_reports) {
    int n = 0;
    sx_exchanges_describe(run);
    for (int i = 0; i < run->n_pipelines; i++)
        n += count_operators(&run->pipelines[i]);
    run->reports = SX_ARENA_ARRAY(&run->arena, n, struct sx_operator_report);
    *out_reports = run->reports;
    if (!run->reports)
        return 0;
    n = 0;
    for (int i = 0; i < run->n_pipelines; i++)
        n += report_pipeline(run, &run->pipelines[i], run->reports + n);
    return n;
}

static uint64_t hash_name(uint64_t hash, const struct sx_operator *op) {
    return sx_hash_mix(hash, sx_hash_bytes(op->name, (uint32_t)strlen(op->name)));
}

static uint64_t hash_below(uint64_t hash, const struct sx_pipeline *p);

static uint64_t hash_pipeline(uint64_t hash, const struct sx_pipeline *p) {
    hash = hash_name(sx_hash_mix(hash_below(hash, p), (uint64_t)p->index), &p->source->base);
    for (int t = 0; t < p->n_transforms; t++)
        hash = hash_name(hash, &p->transforms[t]->base);
    return hash_name(hash, &p->sink->base);
}

/* What its source drives. */
static uint64_t hash_below(uint64_t hash, const struct sx_pipeline *p) {
    for (const struct sx_pipeline *below = driven_by(p); below; below = below->next)
        hash = hash_pipeline(hash, below);
    return hash;
}

uint64_t sx_run_hash(const struct sx_run *run, bool without_last) {
    const int n = run->n_pipelines - (without_last && run->n_pipelines > 0);
    uint64_t hash = 0;
    for (int i = 0; i < n; i++)
        hash = hash_pipeline(hash, &run->pipelines[i]);
    return n < run->n_pipelines ? hash_below(hash, &run->pipelines[n]) : hash;
}

/* Behind `text`; NULL: no memory. */
static const char *add_pipeline_text(struct sx_arena *arena, const char *text, const struct sx_pipeline *p) {
    for (const struct sx_pipeline *below = driven_by(p); below && text; below = below->next)
        text = add_pipeline_text(arena, text, below);
    if (text)
        text = sx_arena_format(arena, "%s%d: %s", text, p->index, p->source->base.name);
    for (int t = 0; t < p->n_transforms && text; t++)
        text = sx_arena_format(arena, "%s -> %s", text, p->transforms[t]->base.name);
    return text ? sx_arena_format(arena, "%s => %s\n", text, p->sink->base.name) : NULL;
}

const char *sx_run_text(struct sx_run *run, struct sx_arena *arena) {
    const char *text = "";
    for (int i = 0; i < run->n_pipelines && text; i++)
        text = add_pipeline_text(arena, text, &run->pipelines[i]);
    return text ? text : "";
}
