/* Which pipelines run at the same time: made-up ones, whose sources give so many batches. */
#include <assert.h>
#include <stdbool.h>

#include "exec/schedule.h"

enum { N_PIPELINES = 6, N_WORKERS = 4, UNKNOWN = -1 };

struct made_source {
    struct sx_source source; /* first */
    struct sx_source_size size;
};

struct made_run {
    struct sx_run run;
    struct sx_worker workers[N_WORKERS];
    struct sx_pipeline pipelines[N_PIPELINES];
    struct made_source sources[N_PIPELINES];
    struct sx_sink sinks[N_PIPELINES];
    struct sx_pipeline *round[N_WORKERS + 1];
};

static struct sx_source_size made_size(const struct sx_source *source) {
    return ((const struct made_source *)source)->size;
}

/* Each pipeline has a sink of its own. */
static void make(struct made_run *made, const int64_t batches[N_PIPELINES]) {
    *made = (struct made_run){0};
    made->run.pipelines = made->pipelines;
    made->run.n_pipelines = N_PIPELINES;
    made->run.n_workers = N_WORKERS;
    for (int i = 0; i < N_PIPELINES; i++) {
        made->sources[i].size.batches = batches[i];
        made->sources[i].source.size = batches[i] == UNKNOWN ? NULL : made_size;
        made->sinks[i].n_feeders = 1;
        made->pipelines[i] =
            (struct sx_pipeline){.index = i, .source = &made->sources[i].source, .sink = &made->sinks[i]};
    }
}

static void need(struct made_run *made, int reader, int sink) {
    assert(sx_operator_needs(&made->run, &made->sources[reader].source.base, &made->sinks[sink], NULL) ==
           SX_OK);
}

/* Whether the next round is of these pipelines, in this order; ends it. */
static bool next_is(struct made_run *made, int n, const int *pipelines) {
    const int n_round = sx_schedule_next(&made->run, made->round);
    bool same = n_round == n;
    for (int i = 0; i < n_round; i++) {
        struct sx_sink *sink = made->round[i]->sink;
        same = same && made->round[i]->index == pipelines[i];
        sink->is_whole = ++sink->n_ended == sink->n_feeders;
    }
    return same;
}

#define NEXT_IS(made, ...) \
    next_is(made, sizeof((int[]){__VA_ARGS__}) / sizeof(int), (const int[]){__VA_ARGS__})

static bool is_through(struct made_run *made) {
    const bool none = sx_schedule_next(&made->run, made->round) == 0 && !sx_schedule_behind(&made->run);
    sx_arena_release(&made->run.arena);
    return none;
}

/* Long ones are last in a round, and alone with short ones that need nothing which is not there. */
static void test_short_ones_join(void) {
    struct made_run made;
    make(&made, (const int64_t[]){1, 9, N_WORKERS - 1, N_WORKERS, UNKNOWN, 0});
    need(&made, 1, 0);
    need(&made, 5, 4);
    assert(NEXT_IS(&made, 0, 2));
    assert(NEXT_IS(&made, 1));
    assert(NEXT_IS(&made, 3));
    assert(sx_schedule_behind(&made.run) == &made.pipelines[4]);
    assert(NEXT_IS(&made, 4));
    assert(NEXT_IS(&made, 5));
    assert(is_through(&made));
}

static void test_long_one_is_last(void) {
    struct made_run made;
    make(&made, (const int64_t[]){100, 1, 100, 1, 1, 1});
    need(&made, 5, 2);
    assert(NEXT_IS(&made, 1, 3, 4, 0));
    assert(NEXT_IS(&made, 2));
    assert(NEXT_IS(&made, 5));
    assert(is_through(&made));
}

static void test_one_sink_one_pipeline(void) {
    struct made_run made;
    make(&made, (const int64_t[]){1, 1, 1, 1, 1, 1});
    for (int i = 1; i < 3; i++) { /* 1 and 2 go where 0 goes; 3 reads it */
        made.pipelines[i].sink = &made.sinks[0];
        made.pipelines[i].feeder = made.sinks[0].n_feeders++;
    }
    need(&made, 3, 0);
    need(&made, 4, 3);
    assert(NEXT_IS(&made, 0, 5));
    assert(NEXT_IS(&made, 1));
    assert(NEXT_IS(&made, 2));
    assert(NEXT_IS(&made, 3));
    assert(NEXT_IS(&made, 4));
    assert(is_through(&made));
}

static void made_prefetch(struct sx_source *source) {
    (void)source;
}

/* What reads from storage next, past those that do not, and past those that have run. */
static void test_ahead(void) {
    struct made_run made;
    make(&made, (const int64_t[]){9, 9, 1, 9, 9, 9});
    need(&made, 2, 1);
    made.sources[0].source.prefetch = made.sources[3].source.prefetch = made_prefetch;
    assert(sx_schedule_ahead(&made.run, NULL) == &made.pipelines[0]);
    assert(sx_schedule_ahead(&made.run, &made.pipelines[0]) == &made.pipelines[3]);
    assert(!sx_schedule_ahead(&made.run, &made.pipelines[3]));
    assert(NEXT_IS(&made, 0));
    assert(sx_schedule_behind(&made.run) == &made.pipelines[1]);
    assert(sx_schedule_ahead(&made.run, NULL) == &made.pipelines[3]);
    assert(NEXT_IS(&made, 1));
    assert(NEXT_IS(&made, 2));
    assert(sx_schedule_ahead(&made.run, NULL) == &made.pipelines[3]);
    assert(NEXT_IS(&made, 3));
    assert(!sx_schedule_ahead(&made.run, NULL));
    assert(NEXT_IS(&made, 4));
    assert(NEXT_IS(&made, 5));
    assert(is_through(&made));
}

/* What the round reads, or something in front that has not run, is not read for what is behind it. */
static void test_repeats(void) {
    struct made_run made;
    const char *files[] = {"a", "b"};
    const struct sx_scan_plan scans[] = {{.files = &files[0], .n_files = 1},
                                         {.files = &files[1], .n_files = 1}};
    make(&made, (const int64_t[]){9, 9, 9, 9, 9, 9});
    made.run.round = made.round;
    for (int i = 0; i < N_PIPELINES; i++)
        made.sources[i].source.scan = i == 0 || i == 3 ? &scans[0] : i == 2 || i == 4 ? &scans[1] : NULL;
    assert(sx_schedule_repeats(&made.run, &made.pipelines[3]));
    assert(NEXT_IS(&made, 0));
    made.run.n_round = 1;
    assert(!sx_schedule_repeats(&made.run, &made.pipelines[1]));
    assert(!sx_schedule_repeats(&made.run, &made.pipelines[2]));
    assert(sx_schedule_repeats(&made.run, &made.pipelines[3])); /* 0, of the round */
    assert(sx_schedule_repeats(&made.run, &made.pipelines[4])); /* 2, which has not run */
    assert(NEXT_IS(&made, 1));
    assert(!sx_schedule_repeats(&made.run, &made.pipelines[3]));
    sx_arena_release(&made.run.arena);
}

static bool has_none(const struct sx_source *source) {
    (void)source;
    return false;
}

static void test_has_more(void) {
    struct made_run made;
    make(&made, (const int64_t[]){1, 1, 1, 1, 1, 1});
    assert(sx_schedule_has_more(&made.pipelines[0]));
    made.sources[0].source.has_more = has_none;
    assert(!sx_schedule_has_more(&made.pipelines[0]));
    made.sources[1].size.bytes = SX_FAR_BYTES;
    made.sources[2].size.bytes = (int64_t)SX_FAR_BYTES + 1;
    assert(sx_schedule_may_be_far(&made.pipelines[1]) && !sx_schedule_may_be_far(&made.pipelines[2]));
    sx_arena_release(&made.run.arena);
}

static void test_no_more_than_workers(void) {
    struct made_run made;
    make(&made, (const int64_t[]){1, 1, 1, 1, 1, 1});
    assert(NEXT_IS(&made, 0, 1, 2, 3));
    assert(NEXT_IS(&made, 4, 5));
    assert(is_through(&made));
}

/* What joins reads no more than a scan may read ahead. */
static void test_bytes(void) {
    struct made_run made;
    make(&made, (const int64_t[]){1, 1, 1, 1, 1, 1});
    made.run.options.queue_bytes = 100;
    made.sources[0].size.bytes = 1000;
    made.sources[1].size.bytes = 60;
    made.sources[2].size.bytes = 50;
    made.sources[3].size.bytes = 40;
    made.sources[4].size.bytes = 1;
    assert(NEXT_IS(&made, 0, 1, 3, 5));
    assert(NEXT_IS(&made, 2, 4));
    assert(is_through(&made));
}

/* 1 and 3 are scans of one table, and so are 0 and 4, the first of which is long. */
static void test_one_table_one_scan(void) {
    struct made_run made;
    const char *files[] = {"a", "b"};
    const struct sx_scan_plan scans[] = {{.files = &files[0], .n_files = 1},
                                         {.files = &files[1], .n_files = 1}};
    make(&made, (const int64_t[]){9, 1, 1, 1, 1, 1});
    for (int i = 0; i < 2; i++) {
        made.sources[i].source.scan = &scans[i];
        made.sources[4 - i].source.scan = &scans[i];
    }
    assert(NEXT_IS(&made, 1, 2, 5, 0));
    assert(NEXT_IS(&made, 3, 4));
    assert(is_through(&made));
}

/* A transform's need counts as well. */
static void test_needs_of_transforms(void) {
    struct made_run made;
    struct sx_transform probe = {0}, *transforms[] = {&probe};
    make(&made, (const int64_t[]){1, 1, 1, 1, 1, 1});
    made.pipelines[2].transforms = transforms;
    made.pipelines[2].n_transforms = 1;
    assert(sx_operator_needs(&made.run, &probe.base, &made.sinks[1], NULL) == SX_OK);
    assert(NEXT_IS(&made, 0, 1, 3, 4));
    assert(NEXT_IS(&made, 2, 5));
    assert(is_through(&made));
}

/* Between ranks, and where less is to overlap. */
static void test_one_after_another(void) {
    for (int i = 0; i < 2; i++) {
        struct made_run made;
        make(&made, (const int64_t[]){1, 1, 1, 1, 1, 1});
        if (i == 0)
            made.run.options.net = (struct sx_net *)&made;
        else
            made.run.options.overlap = SX_OVERLAP_COMBINED;
        for (int p = 0; p < N_PIPELINES; p++)
            assert(NEXT_IS(&made, p));
        assert(is_through(&made));
    }
}

int main(void) {
    test_short_ones_join();
    test_long_one_is_last();
    test_one_sink_one_pipeline();
    test_ahead();
    test_repeats();
    test_has_more();
    test_no_more_than_workers();
    test_bytes();
    test_one_table_one_scan();
    test_needs_of_transforms();
    test_one_after_another();
    return 0;
}
