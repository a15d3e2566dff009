#include "exec/schedule.h"

static bool is_served(const struct sx_operator *op) {
    for (const struct sx_need *need = op->needs; need; need = need->next)
        if (!need->sink->is_whole)
            return false;
    return true;
}

/* All that it reads is there; pipelines into one sink follow each other. */
static bool is_ready(const struct sx_pipeline *pipeline) {
    bool ready = pipeline->feeder == pipeline->sink->n_ended && is_served(&pipeline->source->base);
    for (int t = 0; t < pipeline->n_transforms && ready; t++)
        ready = is_served(&pipeline->transforms[t]->base);
    return ready;
}

static bool leaves_workers_idle(const struct sx_run *run, struct sx_source *source) {
    return source->most_batches && source->most_batches(source) < run->n_workers;
}

struct sx_pipeline *sx_schedule_behind(const struct sx_run *run) {
    for (int i = 0; i < run->n_pipelines; i++)
        if (!run->pipelines[i].has_run)
            return &run->pipelines[i];
    return NULL;
}

int sx_schedule_next(struct sx_run *run, struct sx_pipeline **out) {
    struct sx_pipeline *const first = sx_schedule_behind(run), *const end = run->pipelines + run->n_pipelines;
    int n = 0;
    if (!first)
        return 0;
    const bool first_is_short = leaves_workers_idle(run, first->source);
    if (first_is_short)
        out[n++] = first;
    if (!run->options.net && run->options.overlap == SX_OVERLAP_FULL)
        for (struct sx_pipeline *p = first + 1; p < end && n < run->n_workers; p++)
            if (!p->has_run && is_ready(p) && leaves_workers_idle(run, p->source))
                out[n++] = p;
    if (!first_is_short)
        out[n++] = first; /* who finds nothing to do in the short ones turns to it at once */
    for (int i = 0; i < n; i++)
        out[i]->has_run = true;
    return n;
}
