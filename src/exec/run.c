#include <string.h>

#include "exec/schedule.h"

/* From now on the worker's time goes to `op`. Returns whose it was. */
static struct sx_operator *account(struct sx_worker *worker, struct sx_operator *op) {
    struct sx_operator *before = worker->current;
    int64_t now = sx_clock_ns();
    if (before)
        before->counts[worker->index].nanoseconds += now - worker->since;
    worker->since = now;
    worker->current = op;
    return before;
}

static void count_rows(struct sx_worker *worker, struct sx_operator *op, const struct sx_batch *batch) {
    op->counts[worker->index].rows += batch->rows_bound;
    op->counts[worker->index].batches++;
}

/* One call of an operator, for the trace. */
struct span {
    const struct sx_operator *op;
    int64_t began_ns, rows_in, rows_before;
};

static struct span span_begin(const struct sx_worker *worker, const struct sx_operator *op, int64_t rows_in) {
    return (struct span){op, sx_span_begin(worker->stream->lane), rows_in, op->counts[worker->index].rows};
}

static void span_end(struct sx_worker *worker, const struct span *span) {
    sx_span_end(worker->stream->lane, SX_SPAN_OPERATOR, span->op->name, span->began_ns, span->rows_in,
                span->op->counts[worker->index].rows - span->rows_before);
}

/* An allocation that the budget refused is reported with the operator that asked for it, and with the sink of
 * its pipeline, which often holds the memory. */
static enum sx_status name_operator(struct sx_worker *worker, const struct sx_operator *op,
                                    enum sx_status status) {
    struct sx_error *error = sx_worker_error(worker);
    if (status != SX_OUT_OF_MEMORY || strncmp(error->text, "out of memory", 13) != 0)
        return status;
    const struct sx_operator *sink = &worker->pipeline->sink->base;
    if (op != sink)
        return sx_error_prefix(error, "%s for %s", op->name, sink->name);
    return sx_error_prefix(error, "%s", op->name);
}

static enum sx_status hand_on(struct sx_worker *worker, int at, struct sx_batch *batch) {
    const struct sx_pipeline *pipeline = worker->pipeline;
    if (worker->run->options.counts_early)
        SX_TRY(sx_ops(worker)->batch_rows(worker->stream, batch));
    if (at == pipeline->n_transforms)
        return pipeline->sink->consume(pipeline->sink, worker, batch);
    return pipeline->transforms[at]->push(pipeline->transforms[at], worker, at, batch);
}

static struct sx_operator *operator_at(const struct sx_worker *worker, int at) {
    const struct sx_pipeline *pipeline = worker->pipeline;
    return at == pipeline->n_transforms ? &pipeline->sink->base : &pipeline->transforms[at]->base;
}

const enum sx_reading *sx_readings_behind(const struct sx_worker *worker, int at) {
    return operator_at(worker, at + 1)->readings;
}

enum sx_status sx_emit(struct sx_worker *worker, int at, struct sx_batch *batch) {
    enum sx_status status = SX_OK;
    if (batch->rows_bound > 0) {
        if (worker->current)
            count_rows(worker, worker->current, batch);
        struct sx_operator *op = operator_at(worker, at);
        struct sx_operator *caller = account(worker, op);
        const struct span span = span_begin(worker, op, batch->rows_bound);
        status = name_operator(worker, op, hand_on(worker, at, batch));
        span_end(worker, &span);
        account(worker, caller);
    }
    sx_batch_release(batch);
    return status;
}

/* Keeps the first error and stops the others. */
static void fail(struct sx_worker *worker, enum sx_status status) {
    struct sx_run *run = worker->run;
    pthread_mutex_lock(&run->error_lock);
    if (!atomic_load(&run->failed)) {
        run->error = worker->stream->error;
        run->error.status = status;
        atomic_store(&run->failed, true);
    }
    pthread_mutex_unlock(&run->error_lock);
    if (!run->options.net)
        return;
    sx_net_fail(run->options.net, &run->error);
    sx_events_add(&run->events);
}

static bool stopped(const struct sx_run *run) {
    return atomic_load_explicit(&run->failed, memory_order_relaxed);
}

enum sx_status sx_check_cancel(struct sx_worker *worker) {
    const atomic_bool *cancel = worker->run->options.cancel;
    if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
        return sx_error_set(sx_worker_error(worker), SX_CANCELLED, "the query was cancelled");
    if (worker->run->deadline_ns && sx_clock_ns() > worker->run->deadline_ns)
        return sx_error_set(sx_worker_error(worker), SX_CANCELLED, "the query's time is over");
    if (stopped(worker->run))
        return sx_error_set(sx_worker_error(worker), SX_CANCELLED, "another worker has failed");
    return worker->run->options.net ? sx_net_check(worker->run->options.net, sx_worker_error(worker)) : SX_OK;
}

bool sx_worker_satisfied(const struct sx_worker *worker) {
    const struct sx_sink *sink = worker->pipeline->sink;
    return sink->n_feeders - sink->n_ended == 1 && sink->satisfied && sink->satisfied(sink, worker);
}

enum sx_status sx_synchronise(struct sx_worker *worker, const char *why) {
    return sx_ops(worker)->synchronise(worker->stream, why);
}

enum sx_status sx_publish(struct sx_worker *worker, const char *why) {
    if (worker->run->n_at_work > 1)
        return sx_synchronise(worker, why);
    worker->run->unpublished = why;
    return SX_OK;
}

/* Before others go to work. */
static void publish_first(struct sx_run *run) {
    const char *why = run->unpublished;
    const enum sx_status status = why && !stopped(run) ? sx_synchronise(&run->workers[0], why) : SX_OK;
    run->unpublished = NULL;
    if (status != SX_OK)
        fail(&run->workers[0], status);
}

static enum sx_status next_batch(struct sx_worker *worker, struct sx_source *source,
                                 struct sx_batch *out_batch, bool *out_done) {
    const int64_t began_ns = sx_span_begin(worker->stream->lane);
    const enum sx_status status = source->next(source, worker, out_batch, out_done);
    sx_span_end(worker->stream->lane, SX_SPAN_OPERATOR, source->base.name, began_ns, 0,
                out_batch->rows_bound);
    return name_operator(worker, &source->base, status);
}

/* ---- sources that have nothing now ---- */

/* Until there are more events than that, or for a while: a cancellation is no event. */
static void wait_for_event(struct sx_worker *worker, int64_t n_events) {
    enum { WAIT_MS = 50 };
    const int64_t began_ns = sx_span_begin(worker->stream->lane);
    sx_events_wait(&worker->run->events, n_events, WAIT_MS);
    sx_span_end(worker->stream->lane, SX_SPAN_WAIT, "other ranks", began_ns, 0, 0);
}

/* ---- what comes next: the network ---- */

/* As sx_team_run_some. The caller is the first worker again, whomever it has worked for. */
static void run_workers(struct sx_run *run, int n, void (*work)(int member, void *context)) {
    if (n > 1)
        publish_first(run);
    if (stopped(run))
        return;
    run->n_at_work = n;
    sx_team_run_some(run->options.team, n, work, run);
    sx_lane_claim(run->workers[0].stream->lane);
}

/* Lets workers that would be idle begin with what the next pipeline sends. */
static enum sx_status begin_early(struct sx_worker *worker) {
    struct sx_run *run = worker->run;
    const struct sx_pipeline *next = sx_schedule_behind(run), *outer = worker->pipeline;
    bool has_begun = false;
    if (atomic_load(&run->early) || run->n_round == 0 || !next || !next->source->begin_early)
        return SX_OK;
    struct sx_operator *caller = account(worker, &next->source->base);
    worker->pipeline = next;
    const enum sx_status status = name_operator(worker, &next->source->base,
                                                next->source->begin_early(next->source, worker, &has_begun));
    worker->pipeline = outer;
    account(worker, caller);
    if (status == SX_OK && has_begun)
        atomic_store(&run->early, next);
    return status;
}

/* A batch further. */
static enum sx_status drive_early(struct sx_worker *worker, const struct sx_pipeline *early, bool *out_more) {
    struct sx_source *source = early->source;
    const struct sx_pipeline *outer = worker->pipeline;
    struct sx_operator *caller = account(worker, &source->base);
    worker->pipeline = early;
    const enum sx_status status =
        name_operator(worker, &source->base, source->drive_early(source, worker, out_more));
    worker->pipeline = outer;
    account(worker, caller);
    return status;
}

/* While the source waits for other ranks' rows, and has sent all of this one's. */
static enum sx_status drive_meanwhile(struct sx_worker *worker, const struct sx_source *source,
                                      bool *out_more) {
    struct sx_run *run = worker->run;
    *out_more = false;
    if (!source->has_sent || !source->has_sent(source, worker))
        return SX_OK;
    if (!atomic_load(&run->early) && pthread_rwlock_trywrlock(&run->early_lock) == 0) {
        const enum sx_status begun = begin_early(worker);
        pthread_rwlock_unlock(&run->early_lock);
        SX_TRY(begun);
    }
    const struct sx_pipeline *early = atomic_load(&run->early);
    return early ? drive_early(worker, early, out_more) : SX_OK;
}

/* ---- what comes next: storage ---- */

/* The next one behind `past` that reads from storage, where things may go on at the same time; or NULL. */
static struct sx_pipeline *pipeline_ahead(const struct sx_run *run, const struct sx_pipeline *past) {
    struct sx_pipeline *ahead = run->options.overlap >= SX_OVERLAP_IO ? NULL : sx_schedule_ahead(run, past);
    return ahead && past && !sx_schedule_may_be_far(ahead) ? NULL : ahead;
}

/* That it can keep busy. Only these, by their numbers, may have looked ahead, so that what they have is not
 * left behind. */
static int64_t most_workers(const struct sx_source *source) {
    return source->size ? source->size(source).batches : INT64_MAX;
}

static enum sx_status look_at(struct sx_worker *worker, const struct sx_pipeline *pipeline,
                              enum sx_ahead when, bool may_read) {
    struct sx_source *source = pipeline->source;
    if (!source->ahead || worker->index >= most_workers(source) || sx_schedule_repeats(worker->run, pipeline))
        return SX_OK;
    struct sx_operator *caller = account(worker, &source->base);
    const enum sx_status status =
        name_operator(worker, &source->base, source->ahead(source, worker, when, may_read));
    account(worker, caller);
    return status;
}

/* What a worker that looks ahead has to do. */
enum looker { LOOKER_HAS_WORK, LOOKER_HAS_NONE, LOOKER_WAITS /* for other ranks, which may wait for it */ };

/* For a batch of the next pipeline that has some left; of those in front of it the worker may get one each,
 * or only one in all where its own work waits. */
static enum sx_status look_ahead(struct sx_worker *worker, enum looker looker) {
    struct sx_run *run = worker->run;
    const struct sx_pipeline *first = pipeline_ahead(run, NULL), *at = first;
    const enum sx_ahead when = first == sx_schedule_behind(run) ? SX_AHEAD_NEXT : SX_AHEAD_LATER;
    const int64_t n_early = worker->n_early;
    enum sx_status status = SX_OK;
    pthread_rwlock_rdlock(&run->early_lock);
    while (at && status == SX_OK && !stopped(run)) {
        status = at == first ? look_at(worker, at, when, looker != LOOKER_WAITS)
                             : look_at(worker, at, SX_AHEAD_LATER, false);
        if (sx_schedule_has_more(at) || (looker == LOOKER_HAS_WORK && worker->n_early > n_early))
            break;
        at = pipeline_ahead(run, at);
    }
    pthread_rwlock_unlock(&run->early_lock);
    return status;
}

/* Workers that may find something ahead. */
static int64_t count_lookers(const struct sx_run *run) {
    const struct sx_pipeline *at = pipeline_ahead(run, NULL);
    while (at && !sx_schedule_has_more(at))
        at = pipeline_ahead(run, at);
    return at && at->source->ahead && !sx_schedule_repeats(run, at) ? most_workers(at->source) : 0;
}

/* Before the worker works on a batch, so that the link has something to do meanwhile. `is_last`: its pipeline
 * is, of the round, or of those that the round's drives. */
static enum sx_status look_on(struct sx_worker *worker, struct sx_source *source, bool is_last) {
    if (!source->spent || !source->ahead || worker->run->options.overlap >= SX_OVERLAP_IO)
        return SX_OK;
    if (source->spent(source, worker))
        return is_last ? look_ahead(worker, LOOKER_HAS_WORK) : SX_OK;
    return name_operator(worker, &source->base, source->ahead(source, worker, SX_AHEAD_SAME, true));
}

static enum sx_status work_on(struct sx_worker *worker, struct sx_source *source, bool is_last,
                              struct sx_batch *batch) {
    const enum sx_status status = look_on(worker, source, is_last);
    if (status == SX_OK)
        return sx_emit(worker, 0, batch);
    sx_batch_release(batch);
    return status;
}

enum sx_status sx_pipeline_step(struct sx_worker *worker, const struct sx_pipeline *pipeline,
                                bool *out_done) {
    const struct sx_pipeline *outer = worker->pipeline;
    struct sx_operator *caller = account(worker, &pipeline->source->base);
    struct sx_batch batch = {0};
    worker->pipeline = pipeline;
    worker->is_starved = false;
    *out_done = false;
    enum sx_status status = next_batch(worker, pipeline->source, &batch, out_done);
    if (status == SX_OK && !*out_done && !worker->is_starved)
        status = work_on(worker, pipeline->source, !pipeline->next, &batch);
    if (status == SX_OK && *out_done && pipeline->next) /* which may need what this one has left behind */
        status = sx_publish(worker, "the end of a pipeline");
    worker->pipeline = outer;
    account(worker, caller);
    return status;
}

/* ---- pipelines ---- */

/* `is_last` of the round for this worker: storage has nothing to do from its last batch on. */
static enum sx_status drain_source(struct sx_worker *worker, const struct sx_pipeline *pipeline,
                                   bool is_last) {
    struct sx_source *source = pipeline->source;
    struct sx_sink *sink = pipeline->sink;
    bool has_looked = !is_last;
    while (!stopped(worker->run) && !(sink->satisfied && sink->satisfied(sink, worker))) {
        SX_TRY(sx_check_cancel(worker));
        const int64_t n_events = source->drives ? sx_events_count(&worker->run->events) : 0;
        struct sx_batch batch = {0};
        bool done = false;
        enum sx_status status = next_batch(worker, source, &batch, &done);
        if (status != SX_OK)
            return status;
        if (done)
            break;
        if (source->drives && worker->is_starved) {
            bool more;
            SX_TRY(drive_meanwhile(worker, source, &more));
            if (more)
                continue;
            if (has_looked)
                wait_for_event(worker, n_events);
            else
                SX_TRY(look_ahead(worker, LOOKER_WAITS));
            has_looked = true;
            continue;
        }
        worker->sequence += (int64_t)pipeline->index << SX_SEQUENCE_BITS;
        SX_TRY(work_on(worker, source, is_last, &batch));
    }
    if (sink->drained)
        sink->drained(sink, worker);
    return SX_OK;
}

/* What the worker has made may be read by others then. */
static enum sx_status end_pipelines(struct sx_worker *worker) {
    enum sx_status status = look_ahead(worker, LOOKER_HAS_NONE);
    if (status == SX_OK)
        status =
            name_operator(worker, &worker->pipeline->sink->base, sx_publish(worker, "the end of a pipeline"));
    return status;
}

static enum sx_status work_pipeline(struct sx_worker *worker, const struct sx_pipeline *pipeline,
                                    bool is_last) {
    struct sx_lane *lane = worker->stream->lane;
    const int64_t began_ns = sx_span_begin(lane);
    worker->pipeline = pipeline;
    account(worker, &pipeline->source->base);
    enum sx_status status = drain_source(worker, pipeline, is_last);
    if (status == SX_OK && is_last)
        status = end_pipelines(worker);
    account(worker, NULL);
    sx_span_end(lane, SX_SPAN_PIPELINE, pipeline->sink->base.name, began_ns, pipeline->index, 0);
    return status;
}

/* Of the round's pipelines: that whose batches its number falls into, so that no worker waits for what
 * another one reads while there is something to read in the next pipeline. */
static int first_of_worker(const struct sx_run *run, int64_t worker) {
    for (int i = 0; i < run->n_round; i++) {
        const int64_t n = most_workers(run->round[i]->source);
        if (worker < n)
            return i;
        worker -= n;
    }
    return 0;
}

static void work_pipelines(int member, void *context) {
    struct sx_run *run = context;
    struct sx_worker *worker = &run->workers[member];
    const int n = run->n_round, first = first_of_worker(run, member);
    enum sx_status status = SX_OK;
    sx_lane_claim(worker->stream->lane);
    for (int i = 0; i < n && status == SX_OK; i++)
        status = work_pipeline(worker, run->round[(first + i) % n], i == n - 1);
    if (status != SX_OK)
        fail(worker, status);
}

/* ---- the ends of sinks ---- */

static enum sx_status finish_sink(struct sx_worker *worker, int at, int piece) {
    struct sx_sink *sink = worker->run->round[at]->sink;
    (void)piece;
    return sink->finish(sink, worker, &worker->run->round_parts[at]);
}

static enum sx_status do_part(struct sx_worker *worker, int at, int piece) {
    struct sx_sink *sink = worker->run->round[at]->sink;
    SX_TRY(sx_check_cancel(worker));
    return sink->part(sink, worker, piece);
}

static enum sx_status seal_sink(struct sx_worker *worker, int at, int piece) {
    struct sx_sink *sink = worker->run->round[at]->sink;
    (void)piece;
    return sink->seal(sink, worker);
}

/* What the round's sinks go through, each stage in pieces that workers share out. */
struct sx_end_stage {
    enum sx_span_kind kind;
    const char *why; /* the synchronisation behind it */
    bool is_short;   /* mostly: nobody begins with what the next pipeline sends, for which all would wait */
    enum sx_status (*work)(struct sx_worker *worker, int at, int piece);
};
static const struct sx_end_stage finishing = {SX_SPAN_FINISH, "a sink is whole", true, finish_sink};
static const struct sx_end_stage parting = {SX_SPAN_PART, "a sink's part is whole", false, do_part};
static const struct sx_end_stage sealing = {SX_SPAN_SEAL, "a sink is sealed", true, seal_sink};

static enum sx_status work_piece(struct sx_worker *worker, const struct sx_end_stage *stage, int at,
                                 int piece) {
    struct sx_operator *sink = &worker->run->round[at]->sink->base;
    const int64_t began_ns = sx_span_begin(worker->stream->lane);
    worker->pipeline = worker->run->round[at];
    account(worker, sink);
    enum sx_status status = stage->work(worker, at, piece);
    if (status == SX_OK)
        status = sx_publish(worker, stage->why);
    sx_span_end(worker->stream->lane, stage->kind, sink->name, began_ns, piece, 0);
    status = name_operator(worker, sink, status);
    account(worker, NULL);
    return status;
}

/* While others have the last pieces: there is something to send for the next pipeline. */
static enum sx_status drive_until(struct sx_worker *worker, int n_pieces) {
    struct sx_run *run = worker->run;
    enum sx_status status = SX_OK;
    const struct sx_pipeline *early = run->round_stage->is_short ? NULL : atomic_load(&run->early);
    bool more = early != NULL;
    while (status == SX_OK && more && !stopped(run) && atomic_load(&run->round_done) < n_pieces)
        status = drive_early(worker, early, &more);
    return status;
}

static int count_pieces(const struct sx_run *run) {
    int n = 0;
    for (int i = 0; i < run->n_round; i++)
        n += run->round_pieces[i];
    return n;
}

/* All parts are there. In their order, the same on all ranks. */
static void seal_sinks(struct sx_worker *worker) {
    struct sx_run *run = worker->run;
    for (int i = 0; i < run->n_round && !stopped(run); i++) {
        const enum sx_status status = run->round[i]->sink->seal ? work_piece(worker, &sealing, i, 0) : SX_OK;
        if (status != SX_OK)
            fail(worker, status);
    }
}

/* Who has done the last part seals the sinks, while others end what they send early. */
static void work_pieces(int member, void *context) {
    struct sx_run *run = context;
    struct sx_worker *worker = &run->workers[member];
    int at = 0, before = 0; /* pieces of the sinks in front of it */
    sx_lane_claim(worker->stream->lane);
    while (!stopped(run)) {
        const int next = atomic_fetch_add(&run->round_next, 1);
        for (; at < run->n_round && next - before >= run->round_pieces[at]; at++)
            before += run->round_pieces[at];
        if (at == run->n_round)
            break;
        const enum sx_status status = work_piece(worker, run->round_stage, at, next - before);
        if (status != SX_OK)
            fail(worker, status);
        if (atomic_fetch_add(&run->round_done, 1) + 1 == count_pieces(run) && run->round_stage == &parting)
            seal_sinks(worker);
    }
    const enum sx_status status = drive_until(worker, count_pieces(run));
    if (status != SX_OK)
        fail(worker, status);
}

/* round_pieces[i] pieces of each of the round's sinks. */
static void run_stage(struct sx_run *run, const struct sx_end_stage *stage) {
    const int n = count_pieces(run);
    if (n == 0 || stopped(run))
        return;
    run->round_stage = stage;
    atomic_store(&run->round_next, 0);
    atomic_store(&run->round_done, 0);
    const bool drives = atomic_load(&run->early) && !stage->is_short;
    run_workers(run, drives ? run->n_workers : n, work_pieces);
}

/* Leaves those of the round's pipelines whose sinks get no more rows. */
static void keep_full_sinks(struct sx_run *run) {
    int n = 0;
    for (int i = 0; i < run->n_round; i++) {
        struct sx_sink *sink = run->round[i]->sink;
        if (++sink->n_ended == sink->n_feeders)
            run->round[n++] = run->round[i];
    }
    run->n_round = n;
}

/* The first worker alone is at work. */
static void begin_early_alone(struct sx_run *run) {
    const enum sx_status status = begin_early(&run->workers[0]);
    if (status != SX_OK)
        fail(&run->workers[0], status);
}

static void end_sinks(struct sx_run *run) {
    keep_full_sinks(run);
    begin_early_alone(run);
    for (int i = 0; i < run->n_round; i++) {
        run->round_parts[i] = 0;
        run->round_pieces[i] = run->round[i]->sink->finish != NULL;
    }
    run_stage(run, &finishing);
    if (!stopped(run)) /* what it needs may be there now */
        begin_early_alone(run);
    for (int i = 0; i < run->n_round; i++)
        run->round_pieces[i] = run->round_parts[i];
    run_stage(run, &parting);
    if (count_pieces(run) == 0) {
        run->n_at_work = 1;
        seal_sinks(&run->workers[0]);
    }
    for (int i = 0; i < run->n_round; i++)
        run->round[i]->sink->is_whole = true;
}

/* ---- rounds ---- */

static enum sx_status open_source(struct sx_worker *worker, const struct sx_pipeline *pipeline) {
    struct sx_source *source = pipeline->source;
    if (!source->open)
        return SX_OK;
    worker->pipeline = pipeline;
    account(worker, &source->base);
    const enum sx_status status = name_operator(worker, &source->base, source->open(source, worker));
    account(worker, NULL);
    return status;
}

/* To wake more takes longer than what there is to do: 0.1 to 0.3 ms for eight. */
static int workers_of_round(const struct sx_run *run) {
    const int64_t n_ahead = count_lookers(run);
    int64_t n = 0;
    for (int i = 0; i < run->n_round && n < run->n_workers; i++) {
        const struct sx_pipeline *pipeline = run->round[i];
        const int64_t more = pipeline->sink->drained ? INT64_MAX : most_workers(pipeline->source);
        n = more < run->n_workers ? n + more : run->n_workers;
    }
    n = n > n_ahead ? n : n_ahead;
    return n < 1 ? 1 : n < run->n_workers ? (int)n : run->n_workers;
}

static void run_round(struct sx_run *run) {
    const int n_workers = workers_of_round(run);
    atomic_store(&run->early, NULL);
    run->n_at_work = 1;
    for (int i = 0; i < run->n_round && !stopped(run); i++) {
        const enum sx_status status = open_source(&run->workers[0], run->round[i]);
        if (status != SX_OK)
            fail(&run->workers[0], status);
    }
    const struct sx_pipeline *ahead = pipeline_ahead(run, NULL);
    if (ahead && !sx_schedule_repeats(run, ahead))
        ahead->source->prefetch(ahead->source);
    if (!stopped(run))
        run_workers(run, n_workers, work_pipelines);
    if (!stopped(run))
        end_sinks(run);
}

enum sx_status sx_run_pipelines(struct sx_run *run, struct sx_error *error) {
    run->round = SX_ARENA_ARRAY(&run->arena, run->n_workers + 1, struct sx_pipeline *);
    run->round_parts = SX_ARENA_ARRAY(&run->arena, run->n_workers + 1, int);
    run->round_pieces = SX_ARENA_ARRAY(&run->arena, run->n_workers + 1, int);
    if (!run->round || !run->round_parts || !run->round_pieces)
        return sx_no_memory(error, "a query");
    while (!stopped(run) && (run->n_round = sx_schedule_next(run, run->round)) > 0)
        run_round(run);
    publish_first(run);
    if (!stopped(run))
        return SX_OK;
    *error = run->error;
    return run->error.status;
}
