/* The answer as Parquet files. Workers bring batches in any order; rows are put in order as soon as no worker
 * can bring earlier ones, and cut into row groups. The columns of a finished row group are encoded by
 * whichever workers come by, and whoever encodes the last one writes it. */
#include "exec/write.h"

#include <stdlib.h>
#include <time.h>

#include "base/array.h"

/* The pipeline's number is above a batch's own (run.c). */
enum { WAIT_MS = 5 };
/* Of the memory limit, for each: rows waiting for earlier ones, and a row group. */
enum { SHARE_OF_LIMIT = 8 };

struct waiting_batch {
    int64_t sequence;
    struct sx_batch batch;
    size_t bytes;
};

/* What one worker has brought and nobody has taken: ascending. */
struct worker_queue {
    struct waiting_batch *batches;
    int64_t begin, end, capacity;
    int64_t brought; /* sequence of the last batch; -1: none */
    int drained;     /* the pipeline that it brings no more from; -1: none */
};

struct sx_write_sink {
    struct sx_sink sink;
    struct sx_write_table *table;
    struct sx_write_options options;
    struct sx_write_column *columns;
    int n_columns;
    int n_workers;
    size_t most_waiting_bytes;
    atomic_int_fast64_t written_rows;
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    struct worker_queue *queues;
    size_t waiting_bytes;
    struct sx_write_cutter cutter;
    bool is_writing; /* somebody writes row groups */
};

/* ---- order ---- */

/* Whether a worker may still bring a batch in front of `sequence`. */
static bool may_bring(const struct worker_queue *queue, int64_t sequence) {
    return queue->brought < sequence && queue->drained < (int)(sequence >> SX_SEQUENCE_BITS);
}

static struct worker_queue *earliest(struct sx_write_sink *sink) {
    struct worker_queue *best = NULL;
    for (int w = 0; w < sink->n_workers; w++) {
        struct worker_queue *queue = &sink->queues[w];
        if (queue->begin < queue->end &&
            (!best || queue->batches[queue->begin].sequence < best->batches[best->begin].sequence))
            best = queue;
    }
    return best;
}

static bool is_next(const struct sx_write_sink *sink, const struct worker_queue *queue) {
    for (int w = 0; w < sink->n_workers; w++)
        if (may_bring(&sink->queues[w], queue->batches[queue->begin].sequence))
            return false;
    return true;
}

/* Cuts everything that is in order. With the lock held. */
static enum sx_status advance(struct sx_write_sink *sink, struct sx_error *error) {
    for (;;) {
        struct worker_queue *queue = earliest(sink);
        if (!queue || !is_next(sink, queue))
            return SX_OK;
        struct waiting_batch *first = &queue->batches[queue->begin++];
        sink->waiting_bytes -= first->bytes;
        SX_TRY(sx_write_cut(&sink->cutter, &first->batch, error));
    }
}

static enum sx_status push(struct sx_write_sink *sink, struct worker_queue *queue, int64_t sequence,
                           struct sx_batch *batch, struct sx_error *error) {
    if (queue->begin == queue->end)
        queue->begin = queue->end = 0;
    struct waiting_batch *grown = sx_array_grow(queue->batches, sizeof *grown, queue->end, &queue->capacity);
    if (!grown)
        return sx_no_memory(error, "a list of batches");
    queue->batches = grown;
    struct waiting_batch *last = &queue->batches[queue->end++];
    *last = (struct waiting_batch){sequence, *batch, sx_batch_bytes(batch)};
    *batch = (struct sx_batch){0};
    queue->brought = sequence;
    sink->waiting_bytes += last->bytes;
    return SX_OK;
}

/* ---- encoding ---- */

/* A column that nobody has taken; false: none. With the lock held. */
static bool take_column(struct sx_write_sink *sink, struct sx_write_group **out_group, int *out_column) {
    for (struct sx_write_group *group = sink->cutter.sealed; group; group = group->next)
        if (group->n_taken < group->n_columns - group->n_partition) {
            *out_group = group;
            *out_column = group->n_taken++;
            return true;
        }
    return false;
}

static bool is_encoded(const struct sx_write_group *group) {
    return group && group->n_encoded == group->n_columns - group->n_partition;
}

static enum sx_status write_group(struct sx_write_sink *sink, struct sx_write_group *group,
                                  struct sx_error *error) {
    SX_TRY(sx_write_table_group(sink->table, group->chunks, group->rows,
                                (const char *const *)group->partition, group->is_last, error));
    atomic_fetch_add(&sink->written_rows, group->rows);
    return SX_OK;
}

/* Row groups in front whose columns are all encoded. With the lock held, which is given up meanwhile. */
static enum sx_status write_groups(struct sx_write_sink *sink, struct sx_pool *pool, struct sx_error *error) {
    enum sx_status status = SX_OK;
    while (status == SX_OK && !sink->is_writing && is_encoded(sink->cutter.sealed)) {
        struct sx_write_group *group = sink->cutter.sealed;
        sink->is_writing = true;
        pthread_mutex_unlock(&sink->lock);
        status = write_group(sink, group, error);
        pthread_mutex_lock(&sink->lock);
        sink->is_writing = false;
        sink->cutter.sealed = group->next;
        if (!group->next)
            sink->cutter.sealed_end = &sink->cutter.sealed;
        sx_write_group_destroy(pool, group);
    }
    return status;
}

/* Encodes a column, if there is one to be encoded. With the lock held, which is given up meanwhile. */
static enum sx_status work(struct sx_write_sink *sink, struct sx_worker *worker, bool *out_worked) {
    struct sx_write_group *group;
    struct sx_error *error = sx_worker_error(worker);
    struct sx_pool *pool = worker->run->options.pool;
    int column = 0;
    *out_worked = take_column(sink, &group, &column);
    if (!*out_worked)
        return SX_OK;
    pthread_mutex_unlock(&sink->lock);
    const int from = group->n_partition + column;
    enum sx_status status = sx_check_cancel(worker);
    if (status == SX_OK)
        status =
            sx_write_chunk_encode(&sink->options, &sink->columns[from], group->pieces[from], group->n_batches,
                                  pool, worker->run->options.cancel, &group->chunks[column], error);
    for (int64_t i = 0; i < group->n_batches; i++)
        sx_tensor_release(&group->pieces[from][i]);
    pthread_mutex_lock(&sink->lock);
    if (status != SX_OK)
        return status;
    group->n_encoded++;
    status = write_groups(sink, pool, error);
    pthread_cond_broadcast(&sink->changed);
    return status;
}

/* ---- the sink ---- */

static enum sx_status to_host(struct sx_worker *worker, struct sx_batch *batch, struct sx_batch *out_batch) {
    if (!worker->stream->backend->traits.is_host)
        return sx_ops(worker)->batch_to_host(worker->stream, batch, out_batch);
    *out_batch = *batch;
    *batch = (struct sx_batch){0};
    return SX_OK;
}

/* Too much waits for a worker that is behind this one. */
static bool must_wait(const struct sx_write_sink *sink, const struct worker_queue *mine) {
    if (sink->waiting_bytes <= sink->most_waiting_bytes || mine->begin == mine->end)
        return false;
    return !is_next(sink, mine);
}

static void wait_for_change(struct sx_write_sink *sink) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_MS * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&sink->changed, &sink->lock, &until);
}

static enum sx_status take_part(struct sx_write_sink *sink, struct sx_worker *worker) {
    bool worked = true;
    while (worked || must_wait(sink, &sink->queues[worker->index])) {
        SX_TRY(work(sink, worker, &worked));
        SX_TRY(sx_check_cancel(worker));
        if (!worked && must_wait(sink, &sink->queues[worker->index]))
            wait_for_change(sink);
    }
    return SX_OK;
}

static enum sx_status write_consume(struct sx_sink *base, struct sx_worker *worker, struct sx_batch *batch) {
    struct sx_write_sink *sink = (struct sx_write_sink *)base;
    struct sx_batch rows = {0};
    SX_TRY(to_host(worker, batch, &rows));
    pthread_mutex_lock(&sink->lock);
    enum sx_status status =
        push(sink, &sink->queues[worker->index], worker->sequence, &rows, sx_worker_error(worker));
    if (status == SX_OK)
        status = advance(sink, sx_worker_error(worker));
    pthread_cond_broadcast(&sink->changed);
    if (status == SX_OK)
        status = take_part(sink, worker);
    pthread_mutex_unlock(&sink->lock);
    sx_batch_release(&rows);
    return status;
}

static void write_drained(struct sx_sink *base, struct sx_worker *worker) {
    struct sx_write_sink *sink = (struct sx_write_sink *)base;
    pthread_mutex_lock(&sink->lock);
    sink->queues[worker->index].drained = worker->pipeline->index;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

/* The columns that are left are encoded in parts. */
static enum sx_status write_finish(struct sx_sink *base, struct sx_worker *worker, int *out_parts) {
    struct sx_write_sink *sink = (struct sx_write_sink *)base;
    struct sx_error *error = sx_worker_error(worker);
    pthread_mutex_lock(&sink->lock);
    enum sx_status status = advance(sink, error);
    if (status == SX_OK)
        status = sx_write_cut_end(&sink->cutter, error);
    *out_parts = 0;
    for (struct sx_write_group *group = sink->cutter.sealed; group; group = group->next)
        *out_parts += group->n_columns - group->n_partition - group->n_taken;
    pthread_mutex_unlock(&sink->lock);
    return status;
}

static enum sx_status write_part(struct sx_sink *base, struct sx_worker *worker, int part) {
    struct sx_write_sink *sink = (struct sx_write_sink *)base;
    bool worked;
    (void)part;
    pthread_mutex_lock(&sink->lock);
    enum sx_status status = work(sink, worker, &worked);
    pthread_mutex_unlock(&sink->lock);
    return status;
}

static enum sx_status write_seal(struct sx_sink *base, struct sx_worker *worker) {
    struct sx_write_sink *sink = (struct sx_write_sink *)base;
    if (sink->cutter.sealed)
        return sx_error_set(sx_worker_error(worker), SX_INTERNAL, "a row group was not written");
    SX_TRY(sx_synchronise(worker, "errors of rows that are not written"));
    return sx_write_table_finish(sink->table, sx_worker_error(worker));
}

int64_t sx_write_rows(const struct sx_write_sink *sink) {
    return atomic_load(&sink->written_rows);
}

static void write_destroy(struct sx_run *run, struct sx_operator *op) {
    struct sx_write_sink *sink = (struct sx_write_sink *)op;
    sx_write_table_destroy(sink->table);
    for (int w = 0; sink->queues && w < sink->n_workers; w++) {
        struct worker_queue *queue = &sink->queues[w];
        for (int64_t i = queue->begin; i < queue->end; i++)
            sx_batch_release(&queue->batches[i].batch);
        free(queue->batches);
    }
    if (sink->cutter.group)
        sx_write_group_destroy(run->options.pool, sink->cutter.group);
    while (sink->cutter.sealed) {
        struct sx_write_group *group = sink->cutter.sealed;
        sink->cutter.sealed = group->next;
        sx_write_group_destroy(run->options.pool, group);
    }
    pthread_cond_destroy(&sink->changed);
    pthread_mutex_destroy(&sink->lock);
}

/* ---- creation ---- */

static enum sx_status set_columns(struct sx_run *run, struct sx_write_sink *sink, const struct sx_plan *plan,
                                  struct sx_error *error) {
    sink->n_columns = plan->n_columns;
    sink->columns = SX_ARENA_ARRAY(&run->arena, plan->n_columns, struct sx_write_column);
    sink->queues = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct worker_queue);
    if (!sink->columns || !sink->queues)
        return sx_no_memory(error, "a table's columns");
    sink->n_workers = run->n_workers;
    for (int w = 0; w < run->n_workers; w++)
        sink->queues[w].brought = sink->queues[w].drained = -1;
    for (int32_t c = 0; c < plan->n_columns; c++) {
        struct sx_write_column *column = &sink->columns[c];
        bool required;
        SX_TRY(sx_plan_is_required(run, plan, c, &required, error));
        *column = (struct sx_write_column){
            .name = plan->columns[c].name, .type = plan->columns[c].type, .is_optional = !required};
        SX_TRY(sx_write_column_store(column, error));
    }
    return SX_OK;
}

enum sx_status sx_write_create(struct sx_run *run, const struct sx_plan *plan, struct sx_sink **out_sink,
                               struct sx_error *error) {
    const struct sx_exec_write *write = run->options.write;
    struct sx_write_sink *sink = sx_operator_create(run, sizeof *sink, write_destroy, "WRITE");
    if (!sink)
        return sx_no_memory(error, "WRITE");
    pthread_mutex_init(&sink->lock, NULL);
    pthread_cond_init(&sink->changed, NULL);
    sink->options = write->options;
    SX_TRY(set_columns(run, sink, plan, error));
    SX_TRY(sx_write_table_create(run->options.pool, write->path, &sink->options, sink->columns,
                                 sink->n_columns, &sink->table, error));
    size_t limit = sx_pool_usage(run->options.pool).limit_bytes;
    sink->most_waiting_bytes = limit ? limit / SHARE_OF_LIMIT : SIZE_MAX;
    sink->cutter = (struct sx_write_cutter){
        .options = &sink->options, .n_columns = sink->n_columns, .most_bytes = sink->most_waiting_bytes};
    sink->cutter.sealed_end = &sink->cutter.sealed;
    sink->sink.consume = write_consume;
    sink->sink.drained = write_drained;
    sink->sink.finish = write_finish;
    sink->sink.part = write_part;
    sink->sink.seal = write_seal;
    run->write = sink;
    *out_sink = &sink->sink;
    return SX_OK;
}
