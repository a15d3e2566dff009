#include "exec/schedule.h"

#include "exec/reuse.h"

/* Pipelines behind the first that are looked at. */
enum { WINDOW = 64 };

struct round {
    struct sx_run *run;
    struct sx_pipeline **pipelines;
    int n;
    const struct sx_pipeline *first;
    int64_t bytes_left;
};

static bool is_served(const struct sx_operator *op) {
    for (const struct sx_need *need = op->needs; need; need = need->next)
        if (!need->sink->is_whole)
            return false;
    return true;
}

bool sx_schedule_is_ready(const struct sx_pipeline *pipeline) {
    bool ready = pipeline->feeder == pipeline->sink->n_ended && is_served(&pipeline->source->base);
    for (int t = 0; t < pipeline->n_transforms && ready; t++)
        ready = is_served(&pipeline->transforms[t]->base);
    return ready;
}

static bool is_short(const struct sx_run *run, const struct sx_source *source, int64_t *out_bytes) {
    const struct sx_source_size size = source->size ? source->size(source) : (struct sx_source_size){0};
    *out_bytes = size.bytes;
    return source->size && size.batches < run->n_workers;
}

/* Where its rows come from: an exchange's from the first pipeline that it drives. */
static const struct sx_source *origin_of(const struct sx_source *source) {
    while (source->drives)
        source = source->drives->driven->source;
    return source;
}

bool sx_schedule_reads_same(const struct sx_pipeline *a, const struct sx_pipeline *b) {
    const struct sx_scan_plan *x = origin_of(a->source)->scan, *y = origin_of(b->source)->scan;
    return x && y && sx_scans_same_files(x, y);
}

static bool may_join(const struct round *round, const struct sx_pipeline *pipeline, int64_t *out_bytes) {
    if (pipeline->has_run || !sx_schedule_is_ready(pipeline) ||
        !is_short(round->run, pipeline->source, out_bytes) || *out_bytes > round->bytes_left)
        return false;
    bool same = sx_schedule_reads_same(round->first, pipeline);
    for (int i = 0; i < round->n && !same; i++)
        same = sx_schedule_reads_same(round->pipelines[i], pipeline);
    return !same;
}

static void join_short_ones(struct round *round) {
    struct sx_run *run = round->run;
    for (int i = round->first->index + 1;
         i < run->n_pipelines && i <= round->first->index + WINDOW && round->n < run->n_workers; i++) {
        int64_t bytes;
        if (!may_join(round, &run->pipelines[i], &bytes))
            continue;
        round->bytes_left -= bytes;
        round->pipelines[round->n++] = &run->pipelines[i];
    }
}

struct sx_pipeline *sx_schedule_behind(const struct sx_run *run) {
    return run->n_have_run < run->n_pipelines ? &run->pipelines[run->n_have_run] : NULL;
}

struct sx_pipeline *sx_schedule_ahead(const struct sx_run *run, const struct sx_pipeline *past) {
    const int first = past ? past->index + 1 : run->n_have_run;
    for (int i = first; i < run->n_pipelines && i < run->n_have_run + WINDOW; i++)
        if (!run->pipelines[i].has_run && origin_of(run->pipelines[i].source)->prefetch)
            return &run->pipelines[i];
    return NULL;
}

bool sx_schedule_repeats(const struct sx_run *run, const struct sx_pipeline *ahead) {
    for (int i = 0; i < run->n_round; i++)
        if (sx_schedule_reads_same(run->round[i], ahead))
            return true;
    for (int i = run->n_have_run; i < ahead->index; i++)
        if (!run->pipelines[i].has_run && sx_schedule_reads_same(&run->pipelines[i], ahead))
            return true;
    return false;
}

bool sx_schedule_may_be_far(const struct sx_pipeline *pipeline) {
    const struct sx_source *origin = origin_of(pipeline->source);
    return origin->size && origin->size(origin).bytes <= SX_FAR_BYTES;
}

bool sx_schedule_has_more(const struct sx_pipeline *pipeline) {
    const struct sx_source *origin = origin_of(pipeline->source);
    return !origin->has_more || origin->has_more(origin);
}

static void mark_run(struct sx_run *run, struct sx_pipeline **pipelines, int n) {
    for (int i = 0; i < n; i++)
        pipelines[i]->has_run = true;
    while (run->n_have_run < run->n_pipelines && run->pipelines[run->n_have_run].has_run)
        run->n_have_run++;
}

int sx_schedule_next(struct sx_run *run, struct sx_pipeline **out) {
    struct sx_pipeline *first = sx_schedule_behind(run);
    struct round round = {run, out, 0, first, (int64_t)run->options.queue_bytes};
    int64_t bytes;
    if (!first)
        return 0;
    const bool first_is_short = is_short(run, first->source, &bytes);
    if (first_is_short)
        out[round.n++] = first;
    if (!run->options.net && run->options.overlap == SX_OVERLAP_FULL)
        join_short_ones(&round);
    if (!first_is_short)
        out[round.n++] = first;
    mark_run(run, out, round.n);
    return round.n;
}
