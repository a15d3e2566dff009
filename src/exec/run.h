/* Inside of src/exec: pipelines of a source, transforms and a sink, and the workers that run them. An
 * operator is one file with its own struct that begins with one of the three bases below. */
#ifndef SX_EXEC_RUN_H
#define SX_EXEC_RUN_H

#include <pthread.h>

#include "base/events.h"
#include "exec/execute.h"

struct sx_worker;
struct sx_sink;

/* Of a batch's sequence number; the pipeline's number is above them. */
enum { SX_SEQUENCE_BITS = 48 };

struct sx_operator_count {
    int64_t rows;
    int64_t batches;
    int64_t nanoseconds;
    char padding[40]; /* one cache line a worker */
};

/* How an operator reads a column of what it gets, so that a gather in front of it can be put off. */
enum sx_reading {
    SX_READS_ANY,  /* in whatever way: it has to be there */
    SX_READS_ONCE, /* value by value, about once: it may be SELECTED, of what is FLAT */
    SX_READS_SUM   /* the same, and by SUM and COUNT without keys alone: of what is NARROW, too */
};

/* What every operator has. */
struct sx_operator {
    const char *name;                 /* lives as long as the run, and the trace */
    struct sx_operator_count *counts; /* one a worker */
    const enum sx_reading *readings;  /* of each column; NULL: SX_READS_ANY of all */
    void (*destroy)(struct sx_run *run, struct sx_operator *op);
    /* May be NULL: its name with what it has measured, after the run, in `arena`. NULL: nothing to tell. */
    const char *(*tell)(const struct sx_operator *op, struct sx_arena *arena);
    const struct sx_need *needs; /* sinks that have to be whole before it gets to run; sx_operator_needs */
    struct sx_operator *next_created;
};

struct sx_need {
    const struct sx_sink *sink;
    const struct sx_need *next;
};

/* Of a source, at the most. */
struct sx_source_size {
    int64_t batches; /* for workers to work on */
    int64_t bytes;   /* stored ones that are read for them; INT64_MAX: nobody knows what comes */
};

/* Why a source is asked to look ahead. */
enum sx_ahead {
    SX_AHEAD_SAME, /* the worker has work on a batch of the same source */
    SX_AHEAD_NEXT, /* it has had all of the pipeline in front */
    SX_AHEAD_LATER /* the same, and between the two come others that need nothing more of storage */
};
/* Of a scan that may be on the link whole before what is needed sooner: 2 to 3 ms of a device's link. */
enum { SX_FAR_BYTES = 128 << 20 };

/* Gives batches. `open` (may be NULL) is called once before the workers start, or early, by one of them while
 * none is at work on the source; what it makes on its worker's stream it gives to the others by
 * sx_publish. */
struct sx_source {
    struct sx_operator base;
    enum sx_status (*open)(struct sx_source *source, struct sx_worker *worker);
    /* The next batch (the caller's), or *out_done. Sets worker->sequence: batches of one source are ordered
     * by it (below 2^48), and one worker gets them in ascending order. Called by all workers at the same
     * time. No batch, not done and worker->is_starved: there is none now; run->events tells when to
     * ask again. */
    enum sx_status (*next)(struct sx_source *source, struct sx_worker *worker, struct sx_batch *out_batch,
                           bool *out_done);
    /* NULL where it reads nothing from storage: tells the source that a later pipeline will need it. */
    void (*prefetch)(struct sx_source *source);
    /* May be NULL: nobody knows. Asked when all that it needs is whole. */
    struct sx_source_size (*size)(const struct sx_source *source);
    int64_t (*most_rows)(const struct sx_source *source); /* likewise */
    const struct sx_scan_plan *scan;                      /* what it is a scan of; NULL: of nothing */
    /* May be NULL. Whether the worker will get no further batch. True may come late. */
    bool (*spent)(const struct sx_source *source, const struct sx_worker *worker);
    /* May be NULL. What the worker's next batch will need first may be brought to the device; or all that it
     * will need, if it is likely to be asked for. may_read: false where that may take no longer than what a
     * cache has. */
    enum sx_status (*ahead)(struct sx_source *source, struct sx_worker *worker, enum sx_ahead when,
                            bool may_read);
    /* May be NULL: it may. Whether storage has batches for it that no worker has yet. */
    bool (*has_more)(const struct sx_source *source);
    /* An exchange's sending half, whose pipelines this source drives; else NULL. Batches come in any order
     * then, and all workers that it has some for take them to the end, whatever the sink still wants: other
     * ranks wait for what is sent meanwhile. */
    struct sx_sink *drives;
    /* May be NULL. The workers are through with what it drives, and other ranks have room for what of it is
     * still to be sent: other ranks' rows are all that is to come. */
    bool (*has_sent)(const struct sx_source *source, const struct sx_worker *worker);
    /* Both may be NULL. While pipelines in front of it wait for other ranks, or their sinks end: opens the
     * source, if what it drives can begin; then drives it a batch further. *out_more: this worker may ask
     * again. */
    enum sx_status (*begin_early)(struct sx_source *source, struct sx_worker *worker, bool *out_begun);
    enum sx_status (*drive_early)(struct sx_source *source, struct sx_worker *worker, bool *out_more);
};

/* Takes a batch and emits any number of batches to the operator after it: sx_emit(worker, at + 1, &batch).
 * The batch stays the caller's. */
struct sx_transform {
    struct sx_operator base;
    enum sx_status (*push)(struct sx_transform *transform, struct sx_worker *worker, int at,
                           struct sx_batch *batch);
};

/* Takes batches until all pipelines that feed it have ended; then `finish` once, `part` for each part in
 * parallel, and `seal` once. finish, part and seal may be NULL. */
struct sx_sink {
    struct sx_operator base;
    /* The batch stays the caller's; a sink that keeps it takes its contents and leaves it zeroed. */
    enum sx_status (*consume)(struct sx_sink *sink, struct sx_worker *worker, struct sx_batch *batch);
    enum sx_status (*finish)(struct sx_sink *sink, struct sx_worker *worker, int *out_parts);
    enum sx_status (*part)(struct sx_sink *sink, struct sx_worker *worker, int part);
    enum sx_status (*seal)(struct sx_sink *sink, struct sx_worker *worker);
    /* May be NULL. True: rows that this worker has not brought yet are not needed. */
    bool (*satisfied)(const struct sx_sink *sink, const struct sx_worker *worker);
    /* May be NULL. The worker brings no more rows from the pipeline that it is on. */
    void (*drained)(struct sx_sink *sink, struct sx_worker *worker);
    int n_feeders, n_ended; /* pipelines into it, and those of them that have ended */
    bool is_whole;          /* and so has the sink */
    /* An exchange's: the pipelines into it are run, one after another, by the workers of the pipeline that
     * takes its rows (sx_pipeline_step), or the first few of them. */
    bool is_driven;
    struct sx_pipeline *driven; /* first of them */
};

struct sx_pipeline {
    int index;
    int feeder; /* pipelines into its sink that come before it */
    bool has_run;
    struct sx_source *source;
    struct sx_transform **transforms;
    int n_transforms;
    struct sx_sink *sink;
    struct sx_pipeline *next; /* into the same driven sink */
};

struct sx_worker {
    int index;
    struct sx_run *run;
    struct sx_stream *stream;
    const struct sx_pipeline *pipeline;
    int64_t sequence;            /* of the source batch in work; those of later pipelines are greater */
    bool is_starved;             /* the source's last answer: nothing now, but later */
    int64_t n_early;             /* batches that it has taken before it asked for them */
    struct sx_operator *current; /* whose time it is */
    int64_t since;               /* when it became so, nanoseconds */
};

struct sx_collector;
struct sx_exchange;

struct sx_run {
    struct sx_exec_options options;
    const struct sx_backend *traced; /* options.backend where there is a trace, else NULL */
    struct sx_arena arena;
    int n_workers;
    struct sx_worker *workers;
    struct sx_pipeline *pipelines;
    int n_pipelines;
    int capacity_pipelines;
    int n_have_run;              /* of the first pipelines, as far as all have */
    struct sx_operator *created; /* all, newest first */
    struct sx_scan_source **scans;
    int n_scans;
    struct sx_reuse *reuse; /* NULL: no column is read twice, or there is no cache for it */
    struct sx_reused_column *reused;
    int n_reused;
    struct sx_collector **materialized; /* by id */
    struct sx_collector *result;        /* NULL: the answer is written */
    struct sx_write_sink *write;
    int64_t result_batch;
    struct sx_exchange *exchanges; /* in order of creation, the same on all ranks */
    size_t least_memory_bytes;     /* of any rank's device; 0: only this one's is known */
    struct sx_events events;       /* things that a starved worker may have waited for */
    struct sx_operator_report *reports;
    int64_t deadline_ns; /* of sx_clock_ns; 0: none */
    pthread_mutex_t error_lock;
    struct sx_error error; /* the first that a worker met */
    atomic_bool failed;
    /* The round in progress: pipelines that run at the same time; then those of them whose sinks end, each
     * with its number of parts, and of pieces of the stage that they are in. */
    struct sx_pipeline **round;
    int n_round;
    int *round_parts, *round_pieces;
    const struct sx_end_stage *round_stage;
    atomic_int round_next, round_done;
    int n_at_work;           /* workers */
    const char *unpublished; /* what the first one alone has done that others may not read yet; or NULL */
    /* The pipeline behind the round's, if its source has begun early; else NULL. The lock is held by who
     * opens that while pipelines run, and shared by those that look ahead at it. */
    _Atomic(const struct sx_pipeline *) early;
    pthread_rwlock_t early_lock;
};

/* Zeroed operator of `size` bytes in the run's arena, registered for destruction; `name` is formatted. NULL:
 * no memory. */
void *sx_operator_create(struct sx_run *run, size_t size_bytes,
                         void (*destroy)(struct sx_run *, struct sx_operator *), const char *name_format, ...)
    SX_PRINTF(4, 5);

/* Tells that the operator reads what the sink has made. */
SX_MUST_CHECK enum sx_status sx_operator_needs(struct sx_run *run, struct sx_operator *op,
                                               const struct sx_sink *sink, struct sx_error *error);

/* Passes rows on to transform `at` of the worker's pipeline, or to the sink behind the last. Empty batches
 * are dropped. Releases the batch in every case. */
SX_MUST_CHECK enum sx_status sx_emit(struct sx_worker *worker, int at, struct sx_batch *batch);

/* Of what comes behind transform `at` of the worker's pipeline. NULL: SX_READS_ANY of all columns. */
const enum sx_reading *sx_readings_behind(const struct sx_worker *worker, int at);

/* The worker's primitives. */
static inline const struct sx_backend_ops *sx_ops(const struct sx_worker *worker) {
    return &worker->stream->backend->ops;
}
static inline struct sx_error *sx_worker_error(struct sx_worker *worker) {
    return &worker->stream->error;
}

/* SX_CANCELLED once the query's cancel flag is set or another worker has failed. Operators call it at least
 * once per batch that they make. */
SX_MUST_CHECK enum sx_status sx_check_cancel(struct sx_worker *worker);

/* What the worker has made may be read by others from here on. */
SX_MUST_CHECK enum sx_status sx_synchronise(struct sx_worker *worker, const char *why);

/* What the worker has made may be read by other workers when they go on. Where it is at work alone, which is
 * the first one then, nothing is waited for until others go to work: to itself it is in its stream's order.
 * The executor calls it at the end of a pipeline (of driven ones where another follows), and of a sink's
 * finish, parts and seal. */
SX_MUST_CHECK enum sx_status sx_publish(struct sx_worker *worker, const char *why);

/* True: what is left of the worker's batch is not needed. Never while another pipeline of the same sink is to
 * come, which may depend on what this one leaves behind (the rest of a RIGHT join). */
bool sx_worker_satisfied(const struct sx_worker *worker);

/* Takes a batch from a driven pipeline's source and passes it on. *out_done: it has none left for this
 * worker, which has brought all by now if another pipeline follows. worker->is_starved: it had none. */
SX_MUST_CHECK enum sx_status sx_pipeline_step(struct sx_worker *worker, const struct sx_pipeline *pipeline,
                                              bool *out_done);

/* A batch's place in the order of a sink's, below 2^48: `pipeline` counts those into the sink. */
enum { SX_PLACE_BITS = 36 };
static inline int64_t sx_sequence_place(int64_t pipeline, int64_t sequence) {
    return (pipeline << SX_PLACE_BITS) + (sequence & ((INT64_C(1) << SX_PLACE_BITS) - 1));
}
static inline int64_t sx_pipeline_of_place(int64_t place) {
    return place >> SX_PLACE_BITS;
}

/* "no memory for WHAT" as a status. */
enum sx_status sx_no_memory(struct sx_error *error, const char *what);
/* Whether `status`, of a call of the worker's, is a lack of memory, which is forgotten then: for what can be
 * done without. Not for calls that tell of other workers' or ranks' failures. */
bool sx_lacks_memory(struct sx_worker *worker, enum sx_status status);

/* Runs all pipelines in rounds (schedule.h), and after each the ends of the sinks that it has filled. */
SX_MUST_CHECK enum sx_status sx_run_pipelines(struct sx_run *run, struct sx_error *error);

#endif
