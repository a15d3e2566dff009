/* Keeps batches in memory: materialised CTEs, the answer, and the input of sorts. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/operators.h"

struct kept_batch {
    int64_t sequence;
    int64_t place; /* in which it came, while they are sorted */
    struct sx_batch batch;
};

struct sx_worker_batches {
    struct kept_batch *kept;
    int64_t count;
    int64_t capacity;
    int64_t rows;
    bool is_unordered;
};

/* Rows behind this one are not kept. */
static int64_t last_row(const struct sx_collector *collector) {
    if (collector->limit < 0 || collector->limit > INT64_MAX - collector->offset)
        return INT64_MAX;
    return collector->limit + collector->offset;
}

/* Where a worker's batches ascend: once it has brought enough rows, its later ones can't be among the first.
 */
static bool collector_satisfied(const struct sx_sink *sink, const struct sx_worker *worker) {
    const struct sx_collector *collector = (const struct sx_collector *)sink;
    return !worker->pipeline->source->drives && collector->workers[worker->index].rows >= last_row(collector);
}

static enum sx_status collector_consume(struct sx_sink *sink, struct sx_worker *worker,
                                        struct sx_batch *batch) {
    struct sx_collector *collector = (struct sx_collector *)sink;
    struct sx_worker_batches *mine = &collector->workers[worker->index];
    if (collector_satisfied(sink, worker))
        return SX_OK;
    struct kept_batch *grown = sx_array_grow(mine->kept, sizeof *grown, mine->count, &mine->capacity);
    if (!grown)
        return sx_no_memory(sx_worker_error(worker), "a list of batches");
    mine->kept = grown;
    if (mine->count > 0 && mine->kept[mine->count - 1].sequence > worker->sequence)
        mine->is_unordered = true;
    mine->rows += batch->rows;
    mine->kept[mine->count++] = (struct kept_batch){.sequence = worker->sequence, .batch = *batch};
    *batch = (struct sx_batch){0};
    return SX_OK;
}

/* Cuts what lies outside of [offset, offset + limit) from a batch that begins at row `first`. */
static enum sx_status trim_batch(struct sx_collector *collector, struct sx_worker *worker, int64_t first,
                                 struct sx_batch *batch) {
    int64_t begin = collector->offset > first ? collector->offset - first : 0;
    int64_t end = last_row(collector) - first;
    if (end > batch->rows)
        end = batch->rows;
    if (end < begin)
        end = begin;
    if (begin == 0 && end == batch->rows)
        return SX_OK;
    if (begin > batch->rows)
        begin = end = batch->rows;
    struct sx_batch cut = {0};
    SX_TRY(sx_batch_slice(batch, begin, end - begin, &cut, sx_worker_error(worker)));
    sx_batch_release(batch);
    *batch = cut;
    return SX_OK;
}

static enum sx_status trim(struct sx_collector *collector, struct sx_worker *worker) {
    int64_t first = 0, kept = 0;
    for (int64_t i = 0; i < collector->n_batches; i++) {
        struct sx_batch *batch = &collector->batches[i];
        int64_t rows = batch->rows;
        SX_TRY(trim_batch(collector, worker, first, batch));
        first += rows;
        if (batch->rows == 0) {
            sx_batch_release(batch);
        } else if (kept++ < i) {
            collector->batches[kept - 1] = *batch;
            *batch = (struct sx_batch){0};
            if (collector->sequences)
                collector->sequences[kept - 1] = collector->sequences[i];
        }
    }
    collector->n_batches = kept;
    return SX_OK;
}

/* Which worker's next batch comes first; -1: none left. */
static int earliest(const struct sx_collector *collector, const int64_t *taken, int n_workers) {
    int best = -1;
    for (int w = 0; w < n_workers; w++) {
        const struct sx_worker_batches *list = &collector->workers[w];
        if (taken[w] == list->count)
            continue;
        if (best < 0 || list->kept[taken[w]].sequence < collector->workers[best].kept[taken[best]].sequence)
            best = w;
    }
    return best;
}

static int compare_kept(const void *a, const void *b) {
    const struct kept_batch *left = a, *right = b;
    if (left->sequence != right->sequence)
        return left->sequence < right->sequence ? -1 : 1;
    return (left->place > right->place) - (left->place < right->place);
}

/* For the order among all ranks' batches. A number has no room for the rank that rows were gathered from:
 * among those the order that they are kept in counts. */
static int64_t place_of(const struct sx_collector *collector, const struct kept_batch *kept) {
    const int64_t place = sx_sequence_place(kept->sequence >> SX_SEQUENCE_BITS, kept->sequence);
    const int64_t least = collector->n_batches > 0 ? collector->sequences[collector->n_batches - 1] + 1 : 0;
    return place > least ? place : least;
}

/* Batches that other ranks sent came in any order. */
static void order_kept(struct sx_worker_batches *list) {
    if (!list->is_unordered)
        return;
    for (int64_t i = 0; i < list->count; i++)
        list->kept[i].place = i;
    qsort(list->kept, (size_t)list->count, sizeof *list->kept, compare_kept);
}

/* Each worker's batches ascend then, so this is a merge. */
static enum sx_status collector_seal(struct sx_sink *sink, struct sx_worker *worker) {
    struct sx_collector *collector = (struct sx_collector *)sink;
    int n_workers = worker->run->n_workers;
    int64_t total = 0;
    for (int w = 0; w < n_workers; w++) {
        order_kept(&collector->workers[w]);
        total += collector->workers[w].count;
    }
    const bool has_ranks = worker->run->options.net;
    struct sx_batch *batches = calloc((size_t)total + 1, sizeof *batches);
    int64_t *taken = calloc((size_t)n_workers, sizeof *taken);
    collector->sequences = has_ranks ? calloc((size_t)total + 1, sizeof *collector->sequences) : NULL;
    if (!batches || !taken || (has_ranks && !collector->sequences)) {
        free(batches);
        free(taken);
        return sx_no_memory(sx_worker_error(worker), "a list of batches");
    }
    for (int w = earliest(collector, taken, n_workers); w >= 0; w = earliest(collector, taken, n_workers)) {
        const struct kept_batch *kept = &collector->workers[w].kept[taken[w]++];
        batches[collector->n_batches] = kept->batch;
        if (has_ranks)
            collector->sequences[collector->n_batches] = place_of(collector, kept);
        collector->rows += batches[collector->n_batches++].rows;
    }
    for (int w = 0; w < n_workers; w++) {
        free(collector->workers[w].kept);
        collector->workers[w] = (struct sx_worker_batches){0};
    }
    free(taken);
    collector->batches = batches;
    if (collector->limit >= 0 || collector->offset > 0)
        SX_TRY(trim(collector, worker));
    return collector->combines ? sx_collector_combine(collector, worker) : SX_OK;
}

void sx_collector_drop(struct sx_collector *collector) {
    for (int64_t i = 0; i < collector->n_batches; i++)
        sx_batch_release(&collector->batches[i]);
    collector->n_batches = 0;
}

static void collector_destroy(struct sx_run *run, struct sx_operator *op) {
    struct sx_collector *collector = (struct sx_collector *)op;
    for (int w = 0; collector->workers && w < run->n_workers; w++) {
        struct sx_worker_batches *list = &collector->workers[w];
        for (int64_t i = 0; i < list->count; i++)
            sx_batch_release(&list->kept[i].batch);
        free(list->kept);
    }
    sx_collector_drop(collector);
    free(collector->batches);
    free(collector->sequences);
}

enum sx_status sx_collector_create(struct sx_run *run, const struct sx_plan *plan, const char *name,
                                   struct sx_collector **out_collector, struct sx_error *error) {
    struct sx_collector *collector =
        sx_operator_create(run, sizeof *collector, collector_destroy, "%s", name);
    if (!collector)
        return sx_no_memory(error, name);
    collector->workers = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct sx_worker_batches);
    collector->types = sx_plan_types(run, plan);
    if (!collector->workers || !collector->types)
        return sx_no_memory(error, name);
    collector->n_columns = plan->n_columns;
    collector->limit = -1;
    collector->sink.satisfied = collector_satisfied;
    collector->sink.consume = collector_consume;
    collector->sink.seal = collector_seal;
    *out_collector = collector;
    return SX_OK;
}

/* A column that is as it would be made anew. */
static bool is_whole(const struct sx_batch *batches, int64_t n_batches, int c, enum sx_concat how) {
    return n_batches == 1 && how == SX_CONCAT_SHARED && batches[0].columns[c].layout == SX_FLAT;
}

enum sx_status sx_batches_concat(struct sx_worker *worker, const struct sx_type *types, int32_t n_columns,
                                 const struct sx_batch *batches, int64_t n_batches, enum sx_concat how,
                                 struct sx_batch *out_batch) {
    enum sx_status status = SX_OK;
    struct sx_batch made = {0};
    int64_t rows = 0;
    const struct sx_tensor **parts = calloc((size_t)n_batches + 1, sizeof(*parts));
    if (!parts)
        return sx_no_memory(sx_worker_error(worker), "a list of columns");
    for (int64_t i = 0; i < n_batches; i++)
        rows += batches[i].rows;
    SX_GO(sx_batch_create(n_columns, rows, &made, sx_worker_error(worker)));
    for (int c = 0; c < n_columns; c++) {
        if (is_whole(batches, n_batches, c, how)) {
            sx_tensor_share(&batches[0].columns[c], &made.columns[c]);
            continue;
        }
        for (int64_t i = 0; i < n_batches; i++)
            parts[i] = &batches[i].columns[c];
        SX_GO(sx_ops(worker)->concat(worker->stream, types[c], parts, n_batches, how, &made.columns[c]));
    }
    *out_batch = made;
    made = (struct sx_batch){0};
out:
    free(parts);
    sx_batch_release(&made);
    return status;
}

enum sx_status sx_collector_concat(struct sx_collector *collector, struct sx_worker *worker,
                                   struct sx_batch *out_batch) {
    return sx_batches_concat(worker, collector->types, collector->n_columns, collector->batches,
                             collector->n_batches, SX_CONCAT_SHARED, out_batch);
}

struct collector_source {
    struct sx_source source;
    struct sx_collector *collector;
    atomic_int_fast64_t next;
};

static enum sx_status source_next(struct sx_source *source, struct sx_worker *worker,
                                  struct sx_batch *out_batch, bool *out_done) {
    struct collector_source *reader = (struct collector_source *)source;
    int64_t at = atomic_fetch_add(&reader->next, 1);
    *out_done = at >= reader->collector->n_batches;
    if (*out_done)
        return SX_OK;
    worker->sequence = reader->collector->sequences ? reader->collector->sequences[at] : at;
    return sx_batch_share(&reader->collector->batches[at], out_batch, sx_worker_error(worker));
}

static struct sx_source_size source_size(const struct sx_source *source) {
    return (struct sx_source_size){.batches =
                                       ((const struct collector_source *)source)->collector->n_batches};
}

enum sx_status sx_collector_source(struct sx_run *run, struct sx_collector *collector, const char *name,
                                   struct sx_source **out_source, struct sx_error *error) {
    struct collector_source *reader = sx_operator_create(run, sizeof *reader, NULL, "%s", name);
    if (!reader)
        return sx_no_memory(error, name);
    reader->collector = collector;
    reader->source.next = source_next;
    reader->source.size = source_size;
    *out_source = &reader->source;
    return sx_operator_needs(run, &reader->source.base, &collector->sink, error);
}
