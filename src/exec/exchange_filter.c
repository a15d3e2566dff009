#include "exec/exchange_filter.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash_table.h"
#include "exec/build.h"
#include "exec/exchange_skew.h"
#include "exec/filter_memory.h"
#include "exec/origin.h"
#include "tensor/semantics.h"

enum {
    ROWS_A_WORD = 8,     /* about 6 rows in 100 pass that should not */
    ENOUGH_ROWS = 100000 /* to know whether it drops enough */
};

/* ---- creation ---- */

/* All rows of a table: probably those that all keys of the probe side are of. */
static bool is_whole_table(const struct sx_plan *plan) {
    while (plan->kind == SX_PLAN_PROJECT || plan->kind == SX_PLAN_EXCHANGE)
        plan = plan->children[0];
    return plan->kind == SX_PLAN_SCAN && plan->u.scan.n_filters == 0;
}

static bool is_possible(const struct sx_plan *join) {
    const struct sx_plan *probe = join->children[0];
    return probe->kind == SX_PLAN_EXCHANGE && probe->u.exchange.adaptive && !probe->u.exchange.ends &&
           sx_join_filters_probe(&join->u.join) && !is_whole_table(join->children[1]);
}

/* Which columns of which tables the probe side's keys are made of. */
struct naming {
    const struct sx_plan *child; /* of the exchange */
    const struct sx_plan *scan;  /* of the last of them; may be NULL */
    uint64_t name;
    bool is_unknown;
};

static void add_column(int32_t column, void *context) {
    struct naming *naming = context;
    const struct sx_origin origin = sx_origin_of(naming->child, column);
    const struct sx_plan *from = origin.plan;
    if (from->kind == SX_PLAN_SCAN) {
        const char *source = from->u.scan.columns[from->u.scan.projection[origin.column]].source;
        naming->scan = from;
        naming->name = sx_hash_mix(naming->name, sx_hash_bytes(source, (uint32_t)strlen(source)));
    } else if (from->kind == SX_PLAN_MEMORY) {
        naming->name = sx_hash_mix(naming->name + (uint64_t)from->u.memory.id, (uint64_t)origin.column + 1);
    } else {
        naming->is_unknown = true;
    }
}

/* See struct exchange_filter. Where another filter has the same name, that costs time only. */
static enum sx_status name_probe(struct exchange_filter *filter, const struct sx_run *run,
                                 const struct sx_join_build *join, struct sx_error *error) {
    if (join->skew) {
        filter->probe = join->skew->sample_name;
        return SX_OK;
    }
    const struct sx_plan *probe = join->plan->children[0];
    struct naming naming = {.child = probe->children[0], .name = UINT64_C(0xcbf29ce484222325)};
    uint64_t files = 0;
    for (int32_t k = 0; k < probe->u.exchange.n_keys; k++)
        sx_expression_columns(probe->u.exchange.keys[k], add_column, &naming);
    if (naming.scan)
        SX_TRY(sx_storage_hash_files(run->options.storage, naming.scan->u.scan.files,
                                     naming.scan->u.scan.n_files, &files, error));
    filter->probe = naming.is_unknown ? 0 : sx_hash_mix(naming.name, files);
    return SX_OK;
}

enum sx_status exchange_filter_create(struct sx_exchange *exchange, struct sx_run *run,
                                      struct sx_error *error) {
    if (!is_possible(exchange->join->plan))
        return SX_OK;
    struct exchange_filter *filter = SX_ARENA_NEW(&run->arena, struct exchange_filter);
    if (filter)
        filter->spans = SX_ARENA_ARRAY(&run->arena, exchange->n_ranks, struct bloom_span);
    if (!filter || !filter->spans)
        return sx_no_memory(error, "an exchange");
    exchange->join->filter = filter;
    return name_probe(filter, run, exchange->join, error);
}

void exchange_filter_release(struct exchange_filter *filter) {
    if (filter)
        sx_tensor_release(&filter->words);
}

/* ---- the build side ---- */

struct exchange_filter_terms exchange_filter_terms(const struct sx_exchange *exchange,
                                                   const struct sx_run *run) {
    const struct exchange_filter *filter = exchange->join->filter;
    const struct sx_filter_memory *memory = run->options.filter_memory;
    return (struct exchange_filter_terms){
        .most_bytes = run->options.filter_bytes,
        .least_rows = run->options.filter_rows,
        .useless_rows = filter && memory ? sx_filter_memory_find(memory, filter->probe) : 0};
}

void exchange_filter_agree(const struct exchange_filter_terms *terms, struct exchange_filter_terms *all) {
    if (terms->most_bytes < all->most_bytes)
        all->most_bytes = terms->most_bytes;
    if (terms->useless_rows != all->useless_rows)
        all->useless_rows = 0;
}

/* Each rank's part of n_runs equal runs of words, which it gets of the hashes' range, too. */
static int64_t set_spans(struct exchange_filter *filter, int n_ranks, int64_t rows) {
    const int64_t n_runs = exchange_count_parts(n_ranks), run_words = rows / ROWS_A_WORD / n_runs + 1;
    for (int r = 0; r < n_ranks; r++) {
        const int64_t first = exchange_first_part(r, n_ranks), next = exchange_first_part(r + 1, n_ranks);
        filter->spans[r] = (struct bloom_span){first * run_words, (next - first) * run_words};
    }
    return n_runs * run_words;
}

enum sx_status exchange_filter_open(struct sx_exchange *exchange, struct sx_worker *worker, int64_t rows,
                                    const struct exchange_filter_terms *terms) {
    struct sx_join_build *join = exchange->join;
    struct exchange_filter *filter = join->filter;
    const bool is_wanted = filter && terms->least_rows >= 0 && rows >= terms->least_rows &&
                           rows != terms->useless_rows && (!join->skew || join->skew->n_heavy == 0);
    if (!is_wanted || (join->bloom.is_wanted && join_bloom_takes(worker, rows)))
        return SX_OK;
    const int64_t n_words = set_spans(filter, exchange->n_ranks, rows);
    if ((uint64_t)n_words > terms->most_bytes / sizeof(uint64_t))
        return SX_OK;
    filter->build_rows = rows;
    filter->n_words = n_words;
    const enum sx_status status = join_bloom_empty(worker, n_words, &filter->words);
    if (sx_lacks_memory(worker, status))
        return SX_OK;
    SX_TRY(status);
    return sx_synchronise(worker, "a filter of an exchange");
}

enum sx_status exchange_filter_add(struct sx_exchange *exchange, struct sx_worker *worker,
                                   const struct sx_batch *batch) {
    struct exchange_filter *filter = exchange->join->filter;
    if (filter->words.length == 0 || atomic_load(&filter->lacks_keys))
        return SX_OK;
    const enum sx_status status = exchange_add_keys(exchange, worker, batch, &filter->words);
    if (!sx_lacks_memory(worker, status))
        return status;
    atomic_store(&filter->lacks_keys, true);
    return SX_OK;
}

enum sx_status exchange_filter_share(struct exchange_filter *filter, struct sx_worker *worker) {
    if (!exchange_filter_is_pending(filter))
        return SX_OK;
    if (atomic_load(&filter->lacks_keys))
        sx_tensor_release(&filter->words);
    SX_TRY(bloom_share(worker, filter->spans, true, &filter->words));
    atomic_store(&filter->is_whole, true);
    return SX_OK;
}

/* ---- the probe side ---- */

bool exchange_filter_is_pending(const struct exchange_filter *filter) {
    return filter && filter->n_words > 0 && !atomic_load(&filter->is_whole);
}

/* To ask costs about as much as to send a fourth of the rows (a guess). */
static bool drops_little(const struct exchange_filter *filter) {
    const int64_t in = atomic_load_explicit(&filter->in, memory_order_relaxed),
                  out = atomic_load_explicit(&filter->out, memory_order_relaxed);
    return in > ENOUGH_ROWS && out > in - in / 4;
}

bool exchange_filter_is_useful(const struct exchange_filter *filter) {
    return filter && atomic_load(&filter->is_whole) && filter->words.length > 0 && !drops_little(filter);
}

void exchange_filter_count(struct exchange_filter *filter, int64_t in, int64_t out) {
    atomic_fetch_add_explicit(&filter->in, in, memory_order_relaxed);
    atomic_fetch_add_explicit(&filter->out, out, memory_order_relaxed);
}

/* ---- afterwards ---- */

void exchange_filter_remember(const struct exchange_filter *filter, const struct sx_run *run) {
    struct sx_filter_memory *memory = run->options.filter_memory;
    if (memory && filter && filter->probe && drops_little(filter))
        sx_filter_memory_keep(memory, filter->probe, filter->build_rows);
}

const char *exchange_filter_tell(const struct exchange_filter *filter, struct sx_arena *arena) {
    const int64_t in = filter ? atomic_load(&filter->in) : 0, out = filter ? atomic_load(&filter->out) : 0;
    if (in == 0)
        return "";
    return sx_arena_format(arena, ", filter of %.1f MB: %.0f %% of %" PRId64 " rows passed",
                           (double)filter->n_words * sizeof(uint64_t) / 1e6, 100.0 * (double)out / (double)in,
                           in);
}
