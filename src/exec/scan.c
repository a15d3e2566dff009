/* Table scan with late decoding: the columns of the first filter are decoded, then those of the next for the
 * rows that are left, and the rest only for rows that pass all. */
#include "exec/scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exec/prune.h"
#include "exec/reuse.h"

enum {
    MOST_ROWS = 1 << 30, /* of a batch without columns: backends may number rows with 32 bits */
    FEW_GROUPS = 4       /* of a batch */
};

/* ---- filtering a chunk ---- */

static void drop_column(struct scan_chunk *chunk, int32_t column) {
    sx_tensor_release(&chunk->columns.columns[column]);
    chunk->decoded[column] = false;
}

static bool used_later(const struct sx_scan_source *scan, const struct scan_worker *state, int32_t from,
                       int32_t column) {
    if (scan->projected[column])
        return true;
    for (int32_t i = from; i < state->n_order; i++) {
        const struct scan_step *step = &scan->steps[state->order[i]];
        for (int32_t c = 0; c < step->n_columns; c++)
            if (step->columns[c] == column)
                return true;
    }
    return false;
}

/* Of all columns that are decoded. */
static enum sx_status narrow_columns(struct sx_worker *worker, struct scan_chunk *chunk, int32_t n_columns,
                                     const struct sx_tensor *passing) {
    int32_t *decoded = calloc((size_t)n_columns + 1, sizeof *decoded), n = 0;
    struct sx_batch kept = {0};
    if (!decoded)
        return sx_no_memory(sx_worker_error(worker), "a list of columns");
    for (int32_t c = 0; c < n_columns; c++)
        if (chunk->decoded[c])
            decoded[n++] = c;
    const enum sx_status status = sx_batch_gather(worker, &chunk->columns, decoded, n, passing, &kept);
    for (int32_t i = 0; i < n && status == SX_OK; i++) {
        sx_tensor_release(&chunk->columns.columns[decoded[i]]);
        chunk->columns.columns[decoded[i]] = kept.columns[i];
        kept.columns[i] = (struct sx_tensor){0};
    }
    sx_batch_release(&kept);
    free(decoded);
    return status;
}

/* Keeps the rows of `passing` in the selection and in every decoded column that is still needed. */
static enum sx_status narrow(struct sx_scan_source *scan, struct sx_worker *worker, struct scan_worker *state,
                             int32_t next_step, struct sx_tensor *passing) {
    struct scan_chunk *chunk = &state->work;
    const struct sx_backend_ops *ops = sx_ops(worker);
    for (int32_t c = 0; c < scan->plan->u.scan.n_columns; c++)
        if (chunk->decoded[c] && !used_later(scan, state, next_step, c))
            drop_column(chunk, c);
    SX_TRY(narrow_columns(worker, chunk, scan->plan->u.scan.n_columns, passing));
    if (chunk->selection.length < 0) {
        chunk->selection = *passing;
        *passing = (struct sx_tensor){0};
    } else {
        struct sx_tensor positions;
        SX_TRY(ops->gather(worker->stream, &chunk->selection, passing, &positions));
        sx_tensor_release(&chunk->selection);
        chunk->selection = positions;
    }
    chunk->rows = chunk->selection.length;
    chunk->columns.rows = chunk->columns.rows_bound = chunk->rows;
    return SX_OK;
}

/* What the later steps and the answer need of the batch: rows pass the first step, so all of it will be asked
 * for, mostly. */
static enum sx_status bring_rest(struct sx_scan_source *scan, struct sx_worker *worker,
                                 struct scan_worker *state, struct scan_taken *batch) {
    const bool *decoded = batch == &state->now ? state->work.decoded : NULL;
    int32_t n = 0;
    for (int32_t c = 0; c < scan->plan->u.scan.n_columns; c++)
        if (!(decoded && decoded[c]) && used_later(scan, state, 1, c))
            state->bring[n++] = c;
    return n > 0 ? scan_bring(scan, worker, batch, state->bring, n) : SX_OK;
}

/* Whether some row of each batch is likely to pass the first step: by those before, or a guess. */
static bool passes_some(struct sx_scan_source *scan, const struct scan_step *first) {
    int64_t n_batches, bytes;
    if (atomic_load_explicit(&scan->n_tried, memory_order_relaxed) > 0)
        return atomic_load_explicit(&scan->n_empty, memory_order_relaxed) == 0;
    sx_scan_size(scan->scan, &n_batches, &bytes);
    return scan_step_passes_some(first, n_batches);
}

static const struct scan_step *first_step(const struct sx_scan_source *scan,
                                          const struct scan_worker *state) {
    return state->n_order > 0 ? &scan->steps[state->order[0]] : NULL;
}

static enum sx_status bring_first(struct sx_scan_source *scan, struct sx_worker *worker,
                                  const struct scan_worker *state, struct scan_taken *batch) {
    const struct sx_scan_plan *plan = &scan->plan->u.scan;
    const struct scan_step *first = first_step(scan, state);
    return first ? scan_bring(scan, worker, batch, first->columns, first->n_columns)
                 : scan_bring(scan, worker, batch, plan->projection, plan->n_projection);
}

/* All that the batch will need, if it will: else the link has nothing to do while workers look for the rows
 * that are left, and what they need of one batch comes after what is only looked at of others. */
static enum sx_status bring_batch(struct sx_scan_source *scan, struct sx_worker *worker,
                                  struct scan_worker *state, struct scan_taken *batch) {
    const struct scan_step *first = first_step(scan, state);
    if (!scan->brings_ahead || !batch->first || !first || !passes_some(scan, first))
        return SX_OK;
    SX_TRY(bring_first(scan, worker, state, batch));
    return bring_rest(scan, worker, state, batch);
}

/* Only rows that pass the state's step i are left. */
static enum sx_status take_step(struct sx_scan_source *scan, struct sx_worker *worker,
                                struct scan_worker *state, int32_t i) {
    struct scan_chunk *chunk = &state->work;
    struct scan_step *step = &scan->steps[state->order[i]];
    struct sx_tensor passing = {0};
    enum sx_status status = SX_OK;
    SX_TRY(scan_decode(scan, worker, state, step->columns, step->n_columns));
    SX_TRY(scan_step_select(step, worker, state, &passing));
    if (passing.length == 0)
        chunk->rows = 0;
    else if (passing.length < chunk->rows)
        status = narrow(scan, worker, state, i + 1, &passing);
    sx_tensor_release(&passing);
    return status;
}

static enum sx_status filter_chunk(struct sx_scan_source *scan, struct sx_worker *worker,
                                   struct scan_worker *state) {
    struct scan_chunk *chunk = &state->work;
    for (int32_t i = 0; i < state->n_order && chunk->rows > 0; i++) {
        SX_TRY(take_step(scan, worker, state, i));
        if (i > 0)
            continue;
        atomic_fetch_add_explicit(&scan->n_tried, 1, memory_order_relaxed);
        if (chunk->rows == 0)
            atomic_fetch_add_explicit(&scan->n_empty, 1, memory_order_relaxed);
        else if (scan->brings_ahead)
            SX_TRY(bring_rest(scan, worker, state, &state->now));
    }
    return SX_OK;
}

/* The projected columns of the rows that are left. */
static enum sx_status take_output(struct sx_scan_source *scan, struct sx_worker *worker,
                                  struct scan_worker *state, struct sx_batch *out_batch) {
    const struct sx_scan_plan *plan = &scan->plan->u.scan;
    SX_TRY(scan_decode(scan, worker, state, plan->projection, plan->n_projection));
    return sx_batch_gather(worker, &state->work.columns, plan->projection, plan->n_projection, NULL,
                           out_batch);
}

static void reset_chunk(struct sx_scan_source *scan, struct scan_worker *state, int64_t rows) {
    struct scan_chunk *chunk = &state->work;
    for (int32_t c = 0; c < scan->plan->u.scan.n_columns; c++)
        drop_column(chunk, c);
    sx_tensor_release(&chunk->selection);
    chunk->selection.length = -1;
    chunk->chunk_rows = chunk->rows = rows;
    chunk->columns.rows = chunk->columns.rows_bound = rows;
}

/* ---- the source ---- */

static enum sx_status scan_next(struct sx_source *source, struct sx_worker *worker,
                                struct sx_batch *out_batch, bool *out_done) {
    struct sx_scan_source *scan = (struct sx_scan_source *)source;
    struct scan_worker *state = &scan->workers[worker->index];
    *out_done = scan->never;
    while (!*out_done) {
        int64_t rows = scan_next_chunk(scan, state);
        if (rows == 0) {
            SX_TRY(scan_take_batch(scan, worker, state));
            *out_done = !state->now.first;
            scan_steps_order(scan, state);
            SX_TRY(bring_batch(scan, worker, state, &state->now));
            continue;
        }
        worker->sequence = scan_chunk_sequence(state);
        reset_chunk(scan, state, rows);
        SX_TRY(filter_chunk(scan, worker, state));
        bool any = state->work.rows > 0;
        if (any)
            return take_output(scan, worker, state, out_batch);
        SX_TRY(sx_check_cancel(worker));
    }
    return SX_OK;
}

/* Joins that filter this scan are built by now. */
static enum sx_status scan_open(struct sx_source *source, struct sx_worker *worker) {
    struct sx_scan_source *scan = (struct sx_scan_source *)source;
    (void)worker;
    for (int32_t i = 0; i < scan->n_steps; i++) {
        const struct sx_join_build *join = scan->steps[i].join;
        if (!join)
            continue;
        scan->steps[i].is_off = scan_step_needs_bloom(&scan->steps[i]) && join->bloom.words.length == 0;
        const struct sx_join_info *info = scan->steps[i].reach != SX_REACH_RANK ? &join->all : &join->info;
        if (info->rows == 0)
            scan->never = true;
        if (info->has_range)
            sx_scan_restrict(scan->scan, scan->steps[i].keys[0], info->key_min, info->key_max);
    }
    return SX_OK;
}

static bool waits_for_joins(const struct sx_scan_source *scan) {
    return scan->n_steps > 0 && scan->steps[scan->n_steps - 1].join;
}

static void scan_prefetch(struct sx_source *source) {
    struct sx_scan_source *scan = (struct sx_scan_source *)source;
    if (!waits_for_joins(scan))
        sx_scan_prefetch(scan->scan);
}

static bool scan_spent(const struct sx_source *source, const struct sx_worker *worker) {
    const struct sx_scan_source *scan = (const struct sx_scan_source *)source;
    const struct scan_worker *state = &scan->workers[worker->index];
    return !state->next.first && !scan_has_chunk(state) && sx_scan_is_spent(scan->scan);
}

static bool scan_has_more(const struct sx_source *source) {
    return !sx_scan_is_spent(((const struct sx_scan_source *)source)->scan);
}

static bool is_small(const struct sx_scan_source *scan) {
    int64_t n_batches, bytes;
    sx_scan_size(scan->scan, &n_batches, &bytes);
    return bytes <= SX_FAR_BYTES;
}

/* The next batch, and of it what the first step reads; all of it where the link has time, or it will be asked
 * for: behind the first columns of all workers' batches the rest would have all of them ready at about the
 * same time. (Not of many row groups, before their scan has begun: their small chunks came no sooner, and Q13
 * of default files took 1.07 times as long on two H200.) */
static enum sx_status scan_ahead(struct sx_source *source, struct sx_worker *worker, enum sx_ahead when,
                                 bool may_read) {
    struct sx_scan_source *scan = (struct sx_scan_source *)source;
    struct scan_worker *state = &scan->workers[worker->index];
    if (state->next.first || scan_has_chunk(state) || !(may_read || sx_scan_is_cached(scan->scan)))
        return SX_OK;
    SX_TRY(scan_take_early(scan, worker, state));
    if (!state->next.first)
        return SX_OK;
    scan_steps_order(scan, state);
    SX_TRY(bring_first(scan, worker, state, &state->next));
    const struct scan_step *first = first_step(scan, state);
    const bool has_time =
        when == SX_AHEAD_LATER || (when == SX_AHEAD_NEXT && is_small(scan) && !scan_has_more(source));
    const bool is_due = when == SX_AHEAD_SAME || state->next.n_groups <= FEW_GROUPS;
    return first && (has_time || (is_due && passes_some(scan, first)))
               ? bring_rest(scan, worker, state, &state->next)
               : SX_OK;
}

static struct sx_source_size scan_size(const struct sx_source *source) {
    struct sx_source_size size;
    sx_scan_size(((const struct sx_scan_source *)source)->scan, &size.batches, &size.bytes);
    return size;
}

static void scan_destroy(struct sx_run *run, struct sx_operator *op) {
    struct sx_scan_source *scan = (struct sx_scan_source *)op;
    for (int w = 0; scan->workers && w < run->n_workers; w++) {
        struct scan_worker *state = &scan->workers[w];
        if (!state->work.columns.columns)
            continue;
        reset_chunk(scan, state, 0);
        sx_batch_release(&state->work.columns);
        scan_drop_batch(scan, &run->workers[w], &state->now);
        scan_drop_batch(scan, &run->workers[w], &state->next);
    }
    for (int32_t i = 0; i < scan->n_steps; i++) {
        sx_evaluator_release(run, &scan->steps[i].conjunct);
        sx_evaluator_release(run, &scan->steps[i].others);
    }
    sx_scan_close(scan->scan);
}

/* Rows that joins' filters looked at, each for itself. */
static const char *scan_tell(const struct sx_operator *op, struct sx_arena *arena) {
    const struct sx_scan_source *scan = (const struct sx_scan_source *)op;
    int64_t in = 0, out = 0;
    for (int32_t i = 0; i < scan->n_steps; i++) {
        if (!scan->steps[i].join)
            continue;
        in += atomic_load(&scan->steps[i].rows_in);
        out += atomic_load(&scan->steps[i].rows_out);
    }
    return in == 0 ? NULL
                   : sx_arena_format(arena, "%s: filters of joins dropped %" PRId64 " of %" PRId64 " rows",
                                     op->name, in - out, in);
}

/* ---- creation ---- */

static enum sx_status create_workers(struct sx_scan_source *scan, struct sx_run *run,
                                     struct sx_error *error) {
    const int32_t n_columns = scan->plan->u.scan.n_columns;
    struct scan_worker *workers = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct scan_worker);
    if (!workers)
        return sx_no_memory(error, "a scan");
    scan->workers = workers;
    for (int w = 0; w < run->n_workers; w++) {
        struct scan_worker *state = &workers[w];
        state->reads = SX_ARENA_ARRAY(&run->arena, n_columns, struct sx_column_read);
        state->read_columns = SX_ARENA_ARRAY(&run->arena, n_columns, int32_t);
        state->order = SX_ARENA_ARRAY(&run->arena, scan->n_steps, int32_t);
        state->bring = SX_ARENA_ARRAY(&run->arena, n_columns, int32_t);
        state->work.decoded = SX_ARENA_ARRAY(&run->arena, n_columns, bool);
        if (!state->reads || !state->read_columns || !state->order || !state->bring || !state->work.decoded)
            return sx_no_memory(error, "a scan");
        SX_TRY(sx_batch_create(n_columns, 0, &state->work.columns, error));
    }
    return SX_OK;
}

static enum sx_status open_storage(struct sx_scan_source *scan, struct sx_run *run, int64_t sample_rows,
                                   struct sx_error *error) {
    const struct sx_scan_plan *plan = &scan->plan->u.scan;
    const struct sx_net *net = run->options.net;
    const bool is_shared = net && !plan->is_replicated;
    const char **names = SX_ARENA_ARRAY(&run->arena, plan->n_columns, const char *);
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, plan->n_columns, struct sx_type);
    int *n_readers = SX_ARENA_ARRAY(&run->arena, plan->n_columns, int);
    if (!names || !types || !n_readers)
        return sx_no_memory(error, "a scan");
    for (int32_t c = 0; c < plan->n_columns; c++) {
        names[c] = plan->columns[c].source;
        types[c] = plan->columns[c].type;
        n_readers[c] = sample_rows > 0 ? 0 : sx_reuse_readers(run, plan, c);
    }
    struct sx_scan_request request = {
        .table = plan->table,
        .files = plan->files,
        .n_files = plan->n_files,
        .column_names = names,
        .column_types = types,
        .n_columns = plan->n_columns,
        .keep_dictionaries = true,
        .batch_rows = scan->joins_groups ? scan->chunk_rows : 0,
        .share = plan->parts ? plan->parts->share
                 : is_shared ? sx_net_rank(net)
                             : 0,
        .n_shares = plan->parts ? plan->parts->n_shares
                    : is_shared ? sx_net_size(net)
                                : 0,
        .is_local = plan->parts ? plan->parts->is_local : NULL,
        .sample_rows = sample_rows,
        .queue_bytes = run->options.queue_bytes,
        .trace = run->options.trace,
        .footprint = sample_rows > 0 ? NULL : run->options.footprint,
        .reuse = run->reuse,
        .n_readers = n_readers,
    };
    SX_TRY(sx_prune_find(&run->arena, plan, &request.prunes, &request.n_prunes, error));
    return sx_scan_open(run->options.storage, &request, run->options.cancel, &scan->scan, error);
}

static enum sx_status create_scan(struct sx_run *run, const struct sx_plan *plan,
                                  const struct sx_runtime_filter *filters, int n_filters, int64_t sample_rows,
                                  struct sx_source **out_source, struct sx_error *error) {
    struct sx_scan_source *scan = sx_operator_create(run, sizeof *scan, scan_destroy, "SCAN %s",
                                                     plan->u.scan.table ? plan->u.scan.table : "");
    if (!scan)
        return sx_no_memory(error, "a scan");
    scan->source.base.tell = scan_tell;
    scan->plan = plan;
    scan->chunk_rows = plan->u.scan.n_columns ? run->options.backend->traits.chunk_rows : MOST_ROWS;
    scan->brings_ahead = !run->options.backend->traits.is_host && plan->u.scan.n_columns;
    scan->joins_groups = run->options.backend->traits.joins_groups && plan->u.scan.n_columns;
    scan->projected = SX_ARENA_ARRAY(&run->arena, plan->u.scan.n_columns, bool);
    if (!scan->projected)
        return sx_no_memory(error, "a scan");
    for (int32_t i = 0; i < plan->u.scan.n_projection; i++)
        scan->projected[plan->u.scan.projection[i]] = true;
    SX_TRY(open_storage(scan, run, sample_rows, error));
    SX_TRY(scan_steps_create(scan, run, filters, n_filters, error));
    SX_TRY(create_workers(scan, run, error));
    scan->source.open = scan_open;
    scan->source.next = scan_next;
    scan->source.prefetch = scan_prefetch;
    scan->source.size = scan_size;
    scan->source.scan = &plan->u.scan;
    scan->source.ahead = scan->brings_ahead ? scan_ahead : NULL;
    scan->source.spent = scan->brings_ahead ? scan_spent : NULL;
    scan->source.has_more = scan_has_more;
    *out_source = &scan->source;
    return SX_OK;
}

enum sx_status sx_scan_create(struct sx_run *run, const struct sx_plan *plan,
                              const struct sx_runtime_filter *filters, int n_filters,
                              struct sx_source **out_source, struct sx_error *error) {
    return create_scan(run, plan, filters, n_filters, 0, out_source, error);
}

enum sx_status sx_scan_create_sample(struct sx_run *run, const struct sx_plan *plan, int64_t rows,
                                     struct sx_source **out_source, struct sx_error *error) {
    return create_scan(run, plan, NULL, 0, rows, out_source, error);
}

void sx_scan_source_progress(const struct sx_scan_source *source, struct sx_exec_progress *progress) {
    struct sx_scan_progress scan;
    sx_scan_progress(source->scan, &scan);
    progress->total_rows += scan.total_rows;
    progress->done_rows += scan.done_rows;
    progress->read_bytes += scan.read_bytes;
    progress->device_bytes += scan.device_bytes;
    progress->cached_bytes += scan.cached_bytes;
    progress->pruned_rows += scan.pruned_rows;
}

bool sx_scan_source_is_within(const struct sx_scan_source *source, const struct sx_worker *worker,
                              int32_t column, int64_t least, int64_t most, bool are_nulls) {
    return scan_chunk_is_within(&source->workers[worker->index], column, least, most, are_nulls);
}

void sx_scan_source_restrict(struct sx_scan_source *source, int32_t column, int64_t min, int64_t max) {
    sx_scan_restrict(source->scan, column, min, max);
}

const struct sx_plan *sx_scan_source_plan(const struct sx_scan_source *source) {
    return source->plan;
}
