/* Rows from rank to rank, within one pipeline: a worker that asks for rows gets what has come from other
 * ranks; as long as nothing has, it drives the pipelines below one batch further, whose rows are sent
 * (exchange_send.c). So reading, computing and the network go on at the same time, and no worker waits in the
 * midst of nested exchanges. */
#include "exec/exchange_filter.h"
#include "exec/exchange_range.h"
#include "exec/exchange_skew.h"
#include "exec/schedule.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

enum {
    ALL_WINDOWS = 256 << 20, /* what may come from all other ranks before it is taken */
    MOST_WINDOW = 16 << 20,
    LEAST_WINDOW = 2 << 20,
    MOST_UNSENT = 8 << 20,
    DEVICE_UNSENT = 32 << 20, /* in place of MOST_UNSENT; a few batches */
    DEVICE_SCALE = 32,        /* of all these where a message is what a device makes of a batch, */
    DEVICE_SHARE = 16,        /* but no more than this part of its memory for all windows */
    EARLY_SCALE = 4,          /* least one with which rows are sent early, */
    EARLY_BATCHES = 4         /* and least large batches of a table: it is made as soon as one is packed */
};

int64_t exchange_sequence(const struct sx_exchange *exchange, int64_t sequence, int rank) {
    if (exchange->plan->u.exchange.kind == SX_EXCHANGE_GATHER_RANGES)
        return sx_sequence_place(rank, sequence);
    const uint64_t placed = (uint64_t)sequence * (uint64_t)exchange->n_ranks + (uint64_t)rank;
    return (int64_t)(placed & ((UINT64_C(1) << SX_SEQUENCE_BITS) - 1));
}

int64_t exchange_place(const struct sx_exchange *exchange, const struct sx_worker *worker) {
    if (exchange->kept)
        return worker->sequence;
    return sx_sequence_place(exchange->workers[worker->index].n_through, worker->sequence);
}

/* ---- what has come ---- */

/* The next frame of the message in work. */
static enum sx_status unpack(struct sx_exchange *exchange, struct sx_worker *worker,
                             struct sx_batch *out_batch) {
    struct exchange_worker *state = &exchange->workers[worker->index];
    int64_t sequence = 0;
    if (worker->stream->backend->traits.is_host)
        SX_TRY(sx_wire_unpack(&state->reader, worker->run->options.pool, out_batch, &sequence,
                              sx_worker_error(worker)));
    else
        SX_TRY(exchange_device_unpack(exchange, worker, out_batch, &sequence));
    worker->sequence = exchange_sequence(exchange, sequence, state->from);
    return SX_OK;
}

static bool receive(struct sx_exchange *exchange, struct sx_net_message *out_message) {
    if (exchange->mode == EXCHANGE_STAY)
        return false;
    return exchange->is_blocking ? exchange_next_gathered(exchange, out_message)
                                 : sx_channel_receive(exchange->channel, out_message);
}

/* Whether there is a frame to unpack. */
static bool has_frame(struct sx_exchange *exchange, struct exchange_worker *state) {
    struct sx_net_message message;
    if (state->reader.buffer && state->reader.offset < state->reader.bytes)
        return true;
    sx_buffer_release(state->reader.buffer);
    state->reader.buffer = NULL;
    while (receive(exchange, &message)) {
        if (message.bytes > 0) {
            state->from = message.rank;
            state->is_on_device = message.on_device;
            state->reader = (struct sx_wire_reader){message.buffer, message.bytes, exchange->types,
                                                    exchange->plan->n_columns, 0};
            return true;
        }
        sx_buffer_release(message.buffer);
    }
    return false;
}

/* ---- driving the pipelines below ---- */

/* All drivers are through with a pipeline: the next one may begin, which may need what this one has left
 * behind. */
static enum sx_status end_driven(struct sx_exchange *exchange, struct sx_worker *worker,
                                 const struct sx_pipeline *next) {
    if (!next) {
        if (exchange->kept)
            sx_collector_drop(exchange->kept);
        if (exchange->join && !exchange->is_build)
            exchange_filter_release(exchange->join->filter);
        if (exchange->is_blocking)
            SX_TRY(exchange_send_held(exchange, worker));
        if (exchange->mode != EXCHANGE_STAY)
            SX_TRY(sx_channel_end(exchange->channel, sx_worker_error(worker)));
    } else {
        if (next->source->open)
            SX_TRY(next->source->open(next->source, worker));
        atomic_fetch_add(&exchange->n_open, 1);
    }
    sx_events_add(&worker->run->events);
    return SX_OK;
}

/* An exchange has nothing for those that do not drive it, whatever it has for others. */
static bool takes_part(const struct sx_source *source, const struct sx_worker *worker) {
    return !source->drives || worker->index < ((const struct sx_exchange *)source)->n_drivers;
}

static enum sx_status drive(struct sx_exchange *exchange, struct sx_worker *worker) {
    struct exchange_worker *state = &exchange->workers[worker->index];
    bool done = false;
    if (state->n_through >= atomic_load(&exchange->n_open)) {
        worker->is_starved = true;
        return SX_OK;
    }
    SX_TRY(sx_pipeline_step(worker, state->driven, &done));
    if (!done)
        return SX_OK;
    const bool is_spent = takes_part(state->driven->source, worker);
    state->driven = state->driven->next;
    state->n_through++;
    int spent = atomic_load(&exchange->n_spent);
    while (is_spent && spent < state->n_through &&
           !atomic_compare_exchange_weak(&exchange->n_spent, &spent, state->n_through))
        ;
    if (!state->driven)
        SX_TRY(exchange_flush(exchange, worker));
    if (atomic_fetch_add(&exchange->n_through, 1) + 1 == state->n_through * exchange->n_drivers)
        SX_TRY(end_driven(exchange, worker, state->driven));
    return SX_OK;
}

/* Of a rank to another. */
static size_t window_of(size_t scale, size_t n_ranks) {
    const size_t share = ALL_WINDOWS / n_ranks * scale, most = MOST_WINDOW * scale,
                 least = LEAST_WINDOW * scale;
    return share > most ? most : share > least ? share : least;
}

static size_t scale_of(const struct sx_run *run) {
    const struct sx_backend_traits *traits = &run->options.backend->traits;
    const size_t n_ranks = (size_t)sx_net_size(run->options.net),
                 memory_bytes = run->least_memory_bytes ? run->least_memory_bytes : traits->memory_bytes;
    size_t scale = traits->is_host ? 1 : DEVICE_SCALE;
    while (scale > 1 && memory_bytes > 0 && window_of(scale, n_ranks) * n_ranks > memory_bytes / DEVICE_SHARE)
        scale /= 2;
    return scale;
}

static bool may_send(const struct sx_exchange *exchange) {
    return exchange->mode == EXCHANGE_STAY ||
           sx_channel_unsent_bytes(exchange->channel) < exchange->most_unsent;
}

static bool has_ended(const struct sx_exchange *exchange) {
    return exchange->mode == EXCHANGE_STAY || sx_channel_ended(exchange->channel);
}

/* A batch as it was sent; without columns where there is nothing to do for now, or all is done. */
static enum sx_status next_batch(struct sx_exchange *exchange, struct sx_worker *worker,
                                 struct sx_batch *out_batch, bool *out_taken, bool *out_done) {
    struct exchange_worker *state = &exchange->workers[worker->index];
    bool gives = true;
    *out_taken = *out_done = false;
    for (;;) {
        if (state->driven && state->n_through < atomic_load(&exchange->n_spent) &&
            !exchange_has_own(exchange, worker) && may_send(exchange))
            SX_TRY(drive(exchange, worker)); /* other ranks wait for the last worker that is through */
        worker->is_starved = false;
        if (exchange->is_blocking)
            SX_TRY(exchange_gather(exchange, worker, &gives));
        *out_taken = gives && exchange_take_own(exchange, worker, out_batch);
        if (*out_taken)
            return SX_OK;
        if (gives && has_frame(exchange, state)) {
            *out_taken = true;
            return unpack(exchange, worker, out_batch);
        }
        SX_TRY(sx_check_cancel(worker));
        if (state->driven && may_send(exchange))
            SX_TRY(drive(exchange, worker));
        else
            worker->is_starved = true;
        if (worker->is_starved)
            break;
    }
    *out_taken = gives && exchange_take_anothers(exchange, worker, out_batch);
    *out_done = !*out_taken && !state->driven && gives && has_ended(exchange);
    worker->is_starved = !*out_taken && !*out_done;
    return SX_OK;
}

/* The same, small ones put together. */
static enum sx_status next_whole(struct sx_exchange *exchange, struct sx_worker *worker,
                                 struct sx_batch *out_batch, bool *out_done) {
    struct exchange_few *few = &exchange->workers[worker->index].few;
    const int64_t enough_rows = exchange_enough_rows(exchange, worker);
    bool taken;
    do {
        SX_TRY(next_batch(exchange, worker, out_batch, &taken, out_done));
        if (taken && !exchange_put_by(few, enough_rows, out_batch, worker->sequence))
            return SX_OK;
    } while (taken && !exchange_has_enough(few, enough_rows));
    if (few->n == 0)
        return SX_OK;
    worker->is_starved = *out_done = false;
    return exchange_combine(exchange, worker, out_batch);
}

static enum sx_status exchange_next(struct sx_source *source, struct sx_worker *worker,
                                    struct sx_batch *out_batch, bool *out_done) {
    struct sx_exchange *exchange = (struct sx_exchange *)source;
    *out_done = worker->index >= exchange->n_drivers;
    if (*out_done)
        return SX_OK;
    SX_TRY(next_whole(exchange, worker, out_batch, out_done));
    if (!exchange->is_build || !exchange_filter_is_pending(exchange->join->filter) || *out_done ||
        worker->is_starved)
        return SX_OK;
    const enum sx_status status = exchange_filter_add(exchange, worker, out_batch);
    if (status != SX_OK)
        sx_batch_release(out_batch);
    return status;
}

/* ---- opening ---- */

/* As many workers as this rank's batches keep busy, and other ranks' if they have as many. Of the others each
 * would be one more for which all ranks wait: rows end when the last worker is through. */
static struct sx_source_size exchange_size(const struct sx_source *source) {
    const struct sx_exchange *exchange = (const struct sx_exchange *)source;
    const struct sx_pipeline *first = exchange->sink->sink.driven;
    const struct sx_source *driven = first->source;
    struct sx_source_size size = {INT64_MAX, INT64_MAX};
    if (atomic_load(&exchange->n_open) > 0) /* what it drives may be going away */
        return (struct sx_source_size){exchange->n_drivers, INT64_MAX};
    if (first->next || !driven->size)
        return size;
    size = driven->size(driven);
    if (size.batches > INT_MAX)
        size.batches = INT64_MAX;
    else
        size.batches = (size.batches < 1 ? 1 : size.batches) * exchange->n_ranks;
    return size;
}

static int drivers_of(const struct sx_exchange *exchange, const struct sx_run *run) {
    const struct sx_source *source = &exchange->source;
    const int64_t n = source->size ? source->size(source).batches : INT64_MAX;
    return n < run->n_workers ? (int)n : run->n_workers;
}

static enum exchange_mode mode_of(const struct sx_exchange *exchange) {
    const struct sx_exchange_plan *plan = &exchange->plan->u.exchange;
    if (exchange->is_at_root)
        return exchange_root_mode(exchange);
    if (plan->adaptive && exchange->join && exchange->join->is_everywhere)
        return exchange->is_build ? EXCHANGE_TO_ALL : EXCHANGE_STAY;
    switch (plan->kind) {
    case SX_EXCHANGE_HASH: return EXCHANGE_TO_HASH;
    case SX_EXCHANGE_BROADCAST: return EXCHANGE_TO_ALL;
    case SX_EXCHANGE_RANGE: return exchange->range->n_ranges > 0 ? EXCHANGE_TO_RANGE : EXCHANGE_TO_ROOT;
    case SX_EXCHANGE_GATHER:
    case SX_EXCHANGE_GATHER_RANGES:
    case SX_EXCHANGE_ROOT_ONLY: break;
    }
    return EXCHANGE_TO_ROOT;
}

static enum sx_status exchange_open(struct sx_source *source, struct sx_worker *worker) {
    struct sx_exchange *exchange = (struct sx_exchange *)source;
    struct sx_pipeline *first = exchange->sink->sink.driven;
    if (atomic_load(&exchange->n_open) > 0) /* early */
        return SX_OK;
    SX_TRY(exchange_choose_root(exchange, worker));
    if (exchange->kept && !exchange->is_at_root)
        SX_TRY(exchange->range ? exchange_range_find(exchange, worker) : exchange_choose(exchange, worker));
    exchange->mode = mode_of(exchange);
    exchange->is_blocking =
        worker->run->options.overlap != SX_OVERLAP_FULL && exchange->mode != EXCHANGE_STAY;
    exchange->n_drivers = drivers_of(exchange, worker->run);
    for (int w = 0; w < exchange->n_drivers; w++)
        exchange->workers[w].driven = first;
    if (first->source->open)
        SX_TRY(first->source->open(first->source, worker));
    atomic_store(&exchange->n_open, 1);
    return SX_OK;
}

/* ---- early: while the join's table is made, or waited for the last of its rows ---- */

/* Else rows that are sent early would get in front of its own, by the room that they have. */
static bool exchange_has_sent(const struct sx_source *source, const struct sx_worker *worker) {
    const struct sx_exchange *exchange = (const struct sx_exchange *)source;
    const struct exchange_worker *state = &exchange->workers[worker->index];
    const struct sx_run *run = worker->run;
    return !state->driven && atomic_load(&exchange->n_through) == state->n_through * exchange->n_drivers &&
           sx_channel_unsent_bytes(exchange->channel) <= window_of(scale_of(run), (size_t)exchange->n_ranks);
}

/* The last pipelines into the sink have ended, or are at work. */
static bool gets_last_rows(const struct sx_run *run, const struct sx_sink *sink) {
    int n = sink->n_ended;
    for (int i = 0; i < run->n_round; i++)
        n += run->round[i]->sink == sink;
    return n >= sink->n_feeders;
}

/* What it drives needs nothing that is not there and decides nothing with other ranks, and memory is not that
 * short that the table may need what rows take: both sides of the join are on their way at the same time. */
static bool may_begin_early(const struct sx_exchange *exchange, const struct sx_run *run) {
    const struct sx_pipeline *driven = exchange->sink->sink.driven;
    const struct sx_join_build *join = exchange->join;
    return !run->options.backend->traits.is_host && run->options.overlap == SX_OVERLAP_FULL && join &&
           !exchange->is_build && !exchange->kept && gets_last_rows(run, &join->sink) &&
           !exchange_filter_is_pending(join->filter) && mode_of(exchange) == EXCHANGE_TO_HASH &&
           !driven->next && !driven->source->drives && sx_schedule_is_ready(driven) &&
           scale_of(run) >= EARLY_SCALE &&
           atomic_load(&join->n_rows) / EARLY_BATCHES >= run->options.large_rows;
}

static enum sx_status exchange_begin_early(struct sx_source *source, struct sx_worker *worker,
                                           bool *out_begun) {
    *out_begun = may_begin_early((struct sx_exchange *)source, worker->run);
    return *out_begun ? exchange_open(source, worker) : SX_OK;
}

/* Nobody takes yet what stays here. */
static bool may_keep(const struct sx_exchange *exchange) {
    const int64_t rows = atomic_load(&exchange->kept_rows);
    return rows < (int64_t)exchange->most_unsent / exchange_row_bytes(exchange);
}

/* One worker at a time: what is made of large batches is made in turn, and the sinks' ends would wait for all
 * that have a batch. */
static enum sx_status exchange_drive_early(struct sx_source *source, struct sx_worker *worker,
                                           bool *out_more) {
    struct sx_exchange *exchange = (struct sx_exchange *)source;
    *out_more = exchange->workers[worker->index].driven && may_send(exchange) && may_keep(exchange) &&
                !atomic_exchange(&exchange->is_driven_early, true);
    if (!*out_more)
        return SX_OK;
    worker->is_starved = false;
    enum sx_status status = sx_check_cancel(worker);
    if (status == SX_OK)
        status = drive(exchange, worker);
    atomic_store(&exchange->is_driven_early, false);
    *out_more = !worker->is_starved;
    return status;
}

static enum sx_status exchange_ahead(struct sx_source *source, struct sx_worker *worker, enum sx_ahead when,
                                     bool may_read) {
    const struct sx_exchange *exchange = (struct sx_exchange *)source;
    const struct sx_pipeline *first = exchange->sink->sink.driven;
    if (!first->source->ahead || worker->index >= drivers_of(exchange, worker->run))
        return SX_OK; /* nobody would take what it has */
    return first->source->ahead(first->source, worker, when, may_read);
}

static void exchange_prefetch(struct sx_source *source) {
    const struct sx_pipeline *first = ((struct sx_exchange *)source)->sink->sink.driven;
    if (first->source->prefetch)
        first->source->prefetch(first->source);
}

/* ---- with the other ranks ---- */

enum sx_status sx_exchanges_open(struct sx_run *run, struct sx_error *error) {
    const size_t scale = scale_of(run);
    const bool is_host = run->options.backend->traits.is_host;
    struct sx_channel_options options = {.pool = sx_message_pool(&run->options),
                                         .window_bytes =
                                             window_of(scale, (size_t)sx_net_size(run->options.net)),
                                         .wake = sx_events_add,
                                         .context = &run->events};
    for (struct sx_exchange *exchange = run->exchanges; exchange; exchange = exchange->next) {
        exchange->most_unsent = (is_host ? MOST_UNSENT : DEVICE_UNSENT) * scale;
        options.is_two_level =
            sx_net_in_two_levels(run->options.net, run->options.shuffle, exchange->message_bytes);
        SX_TRY(sx_channel_create(run->options.net, &options, &exchange->channel, error));
    }
    return SX_OK;
}

static void drop_work(struct exchange_worker *state, int n_ranks) {
    exchange_owns_drop(&state->own);
    exchange_few_release(&state->few);
    sx_buffer_release(state->reader.buffer);
    state->reader.buffer = NULL;
    exchange_packing_release(state);
    for (int r = 0; state->outgoing && r < n_ranks; r++) {
        sx_buffer_release(state->outgoing[r].buffer);
        state->outgoing[r] = (struct exchange_outgoing){0};
    }
    exchange_list_release(&state->held);
}

static int64_t rows_taken(const struct sx_run *run, const struct sx_exchange *exchange) {
    int64_t rows = 0;
    for (int w = 0; w < run->n_workers; w++)
        rows += exchange->source.base.counts[w].rows;
    return rows;
}

/* rows[r × n + i]: what rank r has got of exchange i. */
static void note_balance(struct sx_run *run, const int64_t *rows, int n) {
    int i = 0;
    for (struct sx_exchange *exchange = run->exchanges; exchange; exchange = exchange->next, i++) {
        int64_t most = 0, all = 0;
        for (int r = 0; r < exchange->n_ranks; r++) {
            const int64_t has = rows[(size_t)r * (size_t)n + (size_t)i];
            most = has > most ? has : most;
            all += has;
        }
        if ((exchange->mode == EXCHANGE_TO_HASH || exchange->mode == EXCHANGE_TO_RANGE) && all > 0)
            exchange->most_of_mean = (double)most * exchange->n_ranks / (double)all;
    }
}

enum sx_status sx_exchanges_compare(struct sx_run *run, struct sx_error *error) {
    int n = 0, at = 0;
    for (const struct sx_exchange *exchange = run->exchanges; exchange; exchange = exchange->next)
        n++;
    const size_t n_all = (size_t)n * (size_t)sx_net_size(run->options.net);
    int64_t *own = SX_ARENA_ARRAY(&run->arena, n, int64_t),
            *all = SX_ARENA_ARRAY(&run->arena, n_all, int64_t);
    if (!own || !all)
        return sx_no_memory(error, "a report");
    if (n == 0)
        return SX_OK;
    for (const struct sx_exchange *exchange = run->exchanges; exchange; exchange = exchange->next)
        own[at++] = rows_taken(run, exchange);
    SX_TRY(sx_net_gather(run->options.net, own, (size_t)n * sizeof *own, all, run->options.cancel, error));
    note_balance(run, all, n);
    return SX_OK;
}

/* "EXCHANGE HASH: 1.2 MB sent (packed, 2.0 : 1), 1.3 MB received, most/mean 1.02, heavy keys: 2"; NULL: no
 * memory. */
static const char *name_with_report(struct sx_run *run, const struct sx_exchange *exchange) {
    const struct sx_channel_report report = exchange->report;
    const struct exchange_skew *skew = exchange->join ? exchange->join->skew : NULL;
    const double plain = (double)exchange->plain_bytes, packed = (double)exchange->packed_bytes;
    const char *ratio = "", *heavy = "", *balance = "", *filter = "";
    if (plain > packed)
        ratio = sx_arena_format(&run->arena, " (%s, %.1f : 1)",
                                atomic_load(&exchange->has_packed) ? "packed" : "narrow", plain / packed);
    if (skew && skew->n_heavy > 0 && exchange->plan->u.exchange.adaptive)
        heavy = sx_arena_format(&run->arena, ", heavy keys: %d", skew->n_heavy);
    if (exchange->most_of_mean > 0)
        balance = sx_arena_format(&run->arena, ", most/mean %.2f", exchange->most_of_mean);
    else if ((exchange->range || exchange->is_at_root) && exchange->mode == EXCHANGE_TO_ROOT)
        balance = ", few rows: all to rank 0";
    if (exchange->join && !exchange->is_build)
        filter = exchange_filter_tell(exchange->join->filter, &run->arena);
    if (!ratio || !heavy || !balance || !filter)
        return NULL;
    return sx_arena_format(&run->arena, "%s: %.1f MB sent%s, %.1f MB received%s%s%s",
                           exchange->source.base.name, (double)report.sent_bytes / 1e6, ratio,
                           (double)report.received_bytes / 1e6, balance, heavy, filter);
}

void sx_exchanges_close(struct sx_run *run) {
    for (struct sx_exchange *exchange = run->exchanges; exchange; exchange = exchange->next) {
        if (!exchange->channel)
            continue;
        exchange->report = sx_channel_report(exchange->channel);
        exchange->has_report = true;
        if (exchange->join && !exchange->is_build)
            exchange_filter_remember(exchange->join->filter, run);
        sx_channel_destroy(exchange->channel);
        exchange->channel = NULL;
        for (int w = 0; w < run->n_workers; w++)
            drop_work(&exchange->workers[w], exchange->n_ranks);
        exchange_list_release(&exchange->arrived);
    }
}

void sx_exchanges_describe(struct sx_run *run) {
    for (struct sx_exchange *exchange = run->exchanges; exchange; exchange = exchange->next) {
        const char *name =
            exchange->has_report && !run->options.trace ? name_with_report(run, exchange) : NULL;
        if (name)
            exchange->source.base.name = name;
        exchange->has_report = false;
    }
}

/* ---- creation ---- */

static void exchange_destroy(struct sx_run *run, struct sx_operator *op) {
    struct sx_exchange *exchange = (struct sx_exchange *)op;
    sx_channel_destroy(exchange->channel);
    for (int w = 0; exchange->workers && w < run->n_workers; w++) {
        drop_work(&exchange->workers[w], exchange->n_ranks);
        exchange_owns_release(&exchange->workers[w].own);
    }
    exchange_list_release(&exchange->arrived);
    pthread_mutex_destroy(&exchange->arrived_lock);
    exchange_device_packing_release(&exchange->device_packing);
    pthread_mutex_destroy(&exchange->order_lock);
    pthread_mutex_destroy(&exchange->pack_lock);
    sx_evaluator_release(run, &exchange->keys);
    sx_evaluator_release(run, &exchange->places);
    exchange_range_release(exchange->range, run);
}

static const char *const exchange_names[] = {
#define EXCHANGE_NAME(name, text) text,
    SX_EXCHANGE_LIST(EXCHANGE_NAME)
#undef EXCHANGE_NAME
};

/* At the end: the same order on all ranks. */
static void enlist(struct sx_run *run, struct sx_exchange *exchange) {
    struct sx_exchange **at = &run->exchanges;
    while (*at)
        at = &(*at)->next;
    *at = exchange;
}

bool sx_exchange_wants_size(const struct sx_plan *plan, bool is_build) {
    return (is_build && plan->u.exchange.adaptive) || plan->u.exchange.kind == SX_EXCHANGE_RANGE;
}

void sx_exchange_set_kept(struct sx_sink *exchange, struct sx_collector *kept) {
    ((struct exchange_sink *)exchange)->exchange->kept = kept;
}

enum sx_status sx_exchange_create(struct sx_run *run, const struct sx_plan *plan, struct sx_join_build *join,
                                  bool is_build, struct sx_sink **out_sink, struct sx_source **out_source,
                                  struct sx_error *error) {
    struct sx_exchange *exchange = sx_operator_create(run, sizeof *exchange, exchange_destroy, "EXCHANGE %s",
                                                      exchange_names[plan->u.exchange.kind]);
    if (!exchange || !run->options.net)
        return exchange ? sx_error_set(error, SX_INTERNAL, "an exchange where there is one rank")
                        : sx_no_memory(error, "an exchange");
    pthread_mutex_init(&exchange->arrived_lock, NULL);
    exchange_device_packing_init(&exchange->device_packing);
    pthread_mutex_init(&exchange->order_lock, NULL);
    pthread_mutex_init(&exchange->pack_lock, NULL);
    exchange->plan = plan;
    exchange->join = join;
    exchange->is_build = is_build;
    exchange->rank = sx_net_rank(run->options.net);
    exchange->n_ranks = sx_net_size(run->options.net);
    exchange->compression = run->options.shuffle_compression;
    exchange->types = sx_plan_types(run, plan);
    exchange->workers = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct exchange_worker);
    for (int w = 0; exchange->workers && w < run->n_workers; w++)
        exchange_owns_init(&exchange->workers[w].own);
    if (!exchange->types || !exchange->workers)
        return sx_no_memory(error, "an exchange");
    if (join && is_build)
        join->is_everywhere = plan->u.exchange.kind == SX_EXCHANGE_BROADCAST;
    if (join && is_build && plan->u.exchange.adaptive) {
        SX_TRY(exchange_skew_create(exchange, run, error));
        SX_TRY(exchange_filter_create(exchange, run, error));
    }
    if (plan->u.exchange.kind == SX_EXCHANGE_RANGE)
        SX_TRY(exchange_range_create(exchange, run, error));
    SX_TRY(exchange_send_create(exchange, run, error));
    SX_TRY(exchange_ends_create(exchange, run, error));
    SX_TRY(exchange_device_create(exchange, run, error));
    exchange->source.open = exchange_open;
    exchange->source.next = exchange_next;
    exchange->source.prefetch = exchange_prefetch;
    exchange->source.size = run->options.backend->traits.is_host ? NULL : exchange_size;
    exchange->source.ahead = exchange_ahead;
    exchange->source.drives = &exchange->sink->sink;
    exchange->source.has_sent = exchange_has_sent;
    exchange->source.begin_early = exchange_begin_early;
    exchange->source.drive_early = exchange_drive_early;
    enlist(run, exchange);
    *out_sink = &exchange->sink->sink;
    *out_source = &exchange->source;
    return SX_OK;
}
