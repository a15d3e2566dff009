#include "exec/exchange_skew.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "exec/origin.h"
#include "exec/skew_memory.h"
#include "tensor/semantics.h"

enum {
    READ_ROWS = 256 << 10,  /* of a rank's probe side */
    SAMPLE_A_RANK = 2048,   /* of which a heavy key has 128 */
    SAMPLE_ROWS = 64 << 10, /* at most */
    COUNT_ROWS = 1 << 20,   /* of a rank's build side */
    LEAST_ROWS = 8,         /* of a key in the sample */
    SHARES_A_RANK = 16,     /* a key is heavy from such a part of a rank's even share */
    FILTER_WORDS = 1024
};

/* ---- creation ---- */

/* The scan whose columns the keys are, or NULL; columns[n_keys] of its output. */
static const struct sx_plan *find_scan(const struct sx_exchange_plan *probe, const struct sx_plan *child,
                                       int32_t *columns) {
    const struct sx_plan *scan = NULL;
    for (int32_t k = 0; k < probe->n_keys; k++) {
        if (probe->keys[k]->kind != SX_EXPR_COLUMN)
            return NULL;
        const struct sx_origin origin = sx_origin_of(child, probe->keys[k]->column);
        if (origin.plan->kind != SX_PLAN_SCAN || (scan && origin.plan != scan))
            return NULL;
        scan = origin.plan;
        columns[k] = origin.column;
    }
    return scan;
}

/* A scan of the key columns alone. */
static struct sx_plan *plan_sample(struct sx_run *run, const struct sx_plan *scan, const int32_t *columns,
                                   int32_t n_keys) {
    struct sx_plan *plan = SX_ARENA_NEW(&run->arena, struct sx_plan);
    struct sx_scan_column *sources = SX_ARENA_ARRAY(&run->arena, n_keys, struct sx_scan_column);
    struct sx_column_info *infos = SX_ARENA_ARRAY(&run->arena, n_keys, struct sx_column_info);
    int32_t *projection = SX_ARENA_ARRAY(&run->arena, n_keys, int32_t);
    if (!plan || !sources || !infos || !projection)
        return NULL;
    *plan = *scan;
    for (int32_t k = 0; k < n_keys; k++) {
        sources[k] = scan->u.scan.columns[scan->u.scan.projection[columns[k]]];
        infos[k] = scan->columns[columns[k]];
        projection[k] = k;
    }
    plan->columns = infos;
    plan->u.scan.columns = sources;
    plan->u.scan.projection = projection;
    plan->n_columns = plan->u.scan.n_columns = plan->u.scan.n_projection = n_keys;
    plan->u.scan.filters = NULL;
    plan->u.scan.n_filters = 0;
    return plan;
}

/* By the files and the columns; where a sample of them tells something else all the same, that costs time
 * only. */
static enum sx_status name_sample(const struct sx_run *run, const struct sx_plan *sample, uint64_t *out_name,
                                  struct sx_error *error) {
    const struct sx_scan_plan *scan = &sample->u.scan;
    SX_TRY(sx_storage_hash_files(run->options.storage, scan->files, scan->n_files, out_name, error));
    for (int32_t k = 0; k < scan->n_columns; k++) {
        const char *source = scan->columns[k].source;
        *out_name = sx_hash_mix(*out_name, sx_hash_bytes(source, (uint32_t)strlen(source)));
    }
    return SX_OK;
}

/* What an earlier query's sample has told, or a scan for one. */
static enum sx_status recall(struct exchange_skew *skew, struct sx_run *run, const struct sx_plan *sample,
                             struct sx_error *error) {
    SX_TRY(name_sample(run, sample, &skew->sample_name, error));
    struct sx_skew_memory *memory = run->options.skew_memory;
    const struct sx_heavy_list *known = memory ? sx_skew_memory_find(memory, skew->sample_name) : NULL;
    if (!known)
        return sx_scan_create_sample(run, sample, READ_ROWS, &skew->sample, error);
    skew->known = SX_ARENA_NEW(&run->arena, struct sx_heavy_list);
    if (!skew->known)
        return sx_no_memory(error, "an exchange");
    *skew->known = *known;
    return SX_OK;
}

enum sx_status exchange_skew_create(struct sx_exchange *exchange, struct sx_run *run,
                                    struct sx_error *error) {
    const struct sx_plan *probe = exchange->join->plan->children[0];
    if (probe->kind != SX_PLAN_EXCHANGE || !probe->u.exchange.adaptive || probe->u.exchange.ends)
        return SX_OK;
    const int32_t n_keys = probe->u.exchange.n_keys;
    struct exchange_skew *skew = SX_ARENA_NEW(&run->arena, struct exchange_skew);
    int32_t *columns = SX_ARENA_ARRAY(&run->arena, n_keys, int32_t);
    if (!skew || !columns)
        return sx_no_memory(error, "an exchange");
    const struct sx_plan *scan = find_scan(&probe->u.exchange, probe->children[0], columns);
    if (!scan)
        return SX_OK;
    const struct sx_plan *sample = plan_sample(run, scan, columns, n_keys);
    if (!sample)
        return sx_no_memory(error, "an exchange");
    skew->n_keys = n_keys;
    SX_TRY(sx_storage_count_rows(run->options.storage, scan->u.scan.files, scan->u.scan.n_files,
                                 &skew->probe_rows, error));
    SX_TRY(recall(skew, run, sample, error));
    exchange->join->skew = skew;
    return SX_OK;
}

void exchange_skew_release(struct exchange_skew *skew) {
    if (skew)
        sx_tensor_release(&skew->words);
}

/* ---- the probe side's sample ---- */

struct sample {
    uint64_t *hashes;
    int64_t n, capacity;
    int64_t step; /* every step-th row is taken */
    int64_t rows; /* seen */
};

static void take(struct sample *sample, const uint64_t *hashes, int64_t rows) {
    const int64_t past = sample->rows % sample->step;
    for (int64_t i = past ? sample->step - past : 0; i < rows && sample->n < sample->capacity;
         i += sample->step)
        sample->hashes[sample->n++] = hashes[i];
    sample->rows += rows;
}

/* In host memory. */
static enum sx_status hashes_to_host(struct sx_worker *worker, struct sx_tensor *hashes,
                                     struct sx_batch *out_host) {
    const struct sx_batch batch = {
        .rows = hashes->length, .rows_bound = hashes->length, .n_columns = 1, .columns = hashes};
    return sx_ops(worker)->batch_to_host(worker->stream, &batch, out_host);
}

static enum sx_status take_batch(struct sample *sample, struct sx_worker *worker, int32_t n_keys,
                                 struct sx_batch *batch) {
    struct sx_batch keys = {0}, host = {0};
    struct sx_tensor hashes = {0};
    enum sx_status status;
    SX_GO(sx_batch_create(n_keys + 1, batch->rows, &keys, sx_worker_error(worker)));
    for (int32_t k = 0; k < n_keys; k++)
        sx_tensor_share(&batch->columns[k], &keys.columns[k]);
    SX_GO(exchange_hash(worker, &keys, &hashes));
    SX_GO(hashes_to_host(worker, &hashes, &host));
    take(sample, host.columns[0].values, batch->rows);
out:
    sx_batch_release(&keys);
    sx_batch_release(&host);
    sx_tensor_release(&hashes);
    return status;
}

/* Of a batch with very many rows some here and there: all of them would be brought from a device. */
static enum sx_status take_some(struct sample *sample, struct sx_worker *worker, int32_t n_keys,
                                struct sx_batch *batch) {
    enum { PLACES = 4 };
    SX_TRY(sx_ops(worker)->batch_rows(worker->stream, batch));
    if (batch->rows <= READ_ROWS)
        return take_batch(sample, worker, n_keys, batch);
    for (int p = 0; p < PLACES; p++) {
        struct sx_batch part = {0};
        SX_TRY(sx_batch_slice(batch, batch->rows / PLACES * p, READ_ROWS / PLACES, &part,
                              sx_worker_error(worker)));
        const enum sx_status status = take_batch(sample, worker, n_keys, &part);
        sx_batch_release(&part);
        SX_TRY(status);
    }
    return SX_OK;
}

static enum sx_status read_sample(const struct exchange_skew *skew, struct sx_worker *worker,
                                  struct sample *sample) {
    const int64_t wanted = (int64_t)SAMPLE_A_RANK * sx_net_size(worker->run->options.net);
    struct sx_exec_progress progress = {0};
    sx_scan_source_progress((const struct sx_scan_source *)skew->sample, &progress);
    const int64_t rows = progress.total_rows < 2 * READ_ROWS ? progress.total_rows : 2 * READ_ROWS;
    sample->capacity = wanted < SAMPLE_ROWS ? wanted : SAMPLE_ROWS;
    sample->step = rows / sample->capacity + 1;
    sample->hashes = calloc((size_t)sample->capacity, sizeof *sample->hashes);
    if (!sample->hashes)
        return sx_no_memory(sx_worker_error(worker), "a sample");
    SX_TRY(skew->sample->open(skew->sample, worker));
    for (bool done = false; !done && sample->rows < rows;) {
        struct sx_batch batch = {0};
        SX_TRY(skew->sample->next(skew->sample, worker, &batch, &done));
        const enum sx_status status = done ? SX_OK : take_some(sample, worker, skew->n_keys, &batch);
        sx_batch_release(&batch);
        SX_TRY(status);
        SX_TRY(sx_check_cancel(worker));
    }
    return SX_OK;
}

/* ---- which keys are heavy ---- */

/* Keeps the list's order, by rows and then by hash, so that it is the same everywhere. */
static void add_key(struct sx_heavy_list *list, struct sx_heavy_key key) {
    int64_t at = list->n;
    while (at > 0 && (list->keys[at - 1].rows < key.rows ||
                      (list->keys[at - 1].rows == key.rows && list->keys[at - 1].hash > key.hash)))
        at--;
    if (at == SX_SKEW_MOST_HEAVY)
        return;
    const int64_t last = list->n < SX_SKEW_MOST_HEAVY ? list->n++ : SX_SKEW_MOST_HEAVY - 1;
    memmove(&list->keys[at + 1], &list->keys[at], (size_t)(last - at) * sizeof key);
    list->keys[at] = key;
}

static bool is_heavy(int64_t rows, int64_t of_rows, int n_ranks) {
    return rows >= LEAST_ROWS && (double)rows * SHARES_A_RANK * n_ranks >= (double)of_rows;
}

/* The sampled keys by hash, each with its rows; *out_places is a power of two. */
static struct sx_heavy_key *count_keys(const struct sample *sample, size_t *out_places) {
    size_t places = 2;
    while (places < 2 * (size_t)sample->n)
        places *= 2;
    struct sx_heavy_key *counts = calloc(places, sizeof *counts);
    for (int64_t i = 0; counts && i < sample->n; i++) {
        const uint64_t hash = sample->hashes[i];
        size_t at = (size_t)(hash ^ hash >> 32) & (places - 1);
        while (counts[at].rows > 0 && counts[at].hash != hash)
            at = (at + 1) & (places - 1);
        counts[at].hash = hash;
        counts[at].rows++;
    }
    *out_places = places;
    return counts;
}

static enum sx_status list_heavy(const struct sample *sample, int n_ranks, struct sx_heavy_list *list,
                                 struct sx_error *error) {
    size_t places;
    struct sx_heavy_key *counts = count_keys(sample, &places);
    if (!counts)
        return sx_no_memory(error, "a sample");
    list->rows = sample->n;
    for (size_t p = 0; p < places; p++)
        if (is_heavy(counts[p].rows, sample->n, n_ranks))
            add_key(list, counts[p]);
    free(counts);
    return SX_OK;
}

static int compare_keys(const void *a, const void *b) {
    const uint64_t left = ((const struct sx_heavy_key *)a)->hash,
                   right = ((const struct sx_heavy_key *)b)->hash;
    return (left > right) - (left < right);
}

/* Of all ranks' lists. */
static enum sx_status merge_lists(const struct sx_heavy_list *lists, int n_ranks,
                                  struct sx_heavy_list *out_all, struct sx_error *error) {
    struct sx_heavy_key *keys = calloc((size_t)n_ranks * SX_SKEW_MOST_HEAVY, sizeof *keys);
    int64_t n = 0;
    if (!keys)
        return sx_no_memory(error, "a sample");
    *out_all = (struct sx_heavy_list){0};
    for (int r = 0; r < n_ranks; r++) {
        out_all->rows += lists[r].rows;
        memcpy(keys + n, lists[r].keys, (size_t)lists[r].n * sizeof *keys);
        n += lists[r].n;
    }
    qsort(keys, (size_t)n, sizeof *keys, compare_keys);
    for (int64_t first = 0, next; first < n; first = next) {
        struct sx_heavy_key key = keys[first];
        for (next = first + 1; next < n && keys[next].hash == key.hash; next++)
            key.rows += keys[next].rows;
        if (is_heavy(key.rows, out_all->rows, n_ranks))
            add_key(out_all, key);
    }
    free(keys);
    return SX_OK;
}

static enum sx_status sample_own(const struct exchange_skew *skew, struct sx_worker *worker,
                                 struct sx_heavy_list *out_own) {
    struct sx_skew_memory *memory = worker->run->options.skew_memory;
    struct sample sample = {0};
    enum sx_status status = read_sample(skew, worker, &sample);
    if (status == SX_OK)
        status = list_heavy(&sample, sx_net_size(worker->run->options.net), out_own, sx_worker_error(worker));
    if (status == SX_OK && memory)
        sx_skew_memory_keep(memory, skew->sample_name, out_own);
    free(sample.hashes);
    return status;
}

static enum sx_status sample_probe(const struct exchange_skew *skew, struct sx_worker *worker,
                                   struct sx_heavy_list *out_all) {
    const struct sx_exec_options *options = &worker->run->options;
    const int n_ranks = sx_net_size(options->net);
    struct sx_heavy_list own = {0};
    struct sx_heavy_list *lists = calloc((size_t)n_ranks, sizeof *lists);
    enum sx_status status = SX_OK;
    if (!lists)
        return sx_no_memory(sx_worker_error(worker), "a sample");
    if (skew->known)
        own = *skew->known;
    else
        SX_GO(sample_own(skew, worker, &own));
    SX_GO(sx_net_gather(options->net, &own, sizeof own, lists, options->cancel, sx_worker_error(worker)));
    status = merge_lists(lists, n_ranks, out_all, sx_worker_error(worker));
out:
    free(lists);
    return status;
}

/* ---- their build rows ---- */

static enum sx_status set_words(struct exchange_skew *skew, struct sx_worker *worker,
                                const struct sx_heavy_list *list) {
    uint64_t words[FILTER_WORDS] = {0};
    sx_tensor_release(&skew->words);
    skew->n_heavy = (int)list->n;
    for (int64_t k = 0; k < list->n; k++)
        words[sx_bloom_word(list->keys[k].hash, FILTER_WORDS)] |= sx_bloom_bits(list->keys[k].hash);
    return list->n > 0 ? join_bloom_words(worker, words, FILTER_WORDS, &skew->words) : SX_OK;
}

/* Adds those of a batch, `weight` times each. */
static enum sx_status count_batch(struct sx_exchange *exchange, struct sx_worker *worker,
                                  const struct sx_batch *batch, const struct sx_heavy_list *list,
                                  int64_t weight, int64_t *counts) {
    struct sx_tensor hashes = {0}, heavy = {0}, found = {0};
    struct sx_batch host = {0};
    enum sx_status status;
    SX_GO(exchange_hash_keys(exchange, worker, batch, &hashes));
    SX_GO(sx_ops(worker)->bloom_test(worker->stream, &hashes, &exchange->join->skew->words, &heavy));
    if (heavy.length == 0)
        goto out;
    SX_GO(sx_ops(worker)->gather(worker->stream, &hashes, &heavy, &found));
    SX_GO(hashes_to_host(worker, &found, &host));
    const uint64_t *values = host.columns[0].values;
    for (int64_t i = 0; i < heavy.length; i++)
        for (int64_t k = 0; k < list->n; k++)
            if (values[i] == list->keys[k].hash)
                counts[k] += weight;
out:
    sx_tensor_release(&hashes);
    sx_tensor_release(&heavy);
    sx_tensor_release(&found);
    sx_batch_release(&host);
    return status;
}

/* About as many as this rank has of each key: from some of the batches, if they are many. */
static enum sx_status count_build(struct sx_exchange *exchange, struct sx_worker *worker,
                                  const struct sx_heavy_list *list, int64_t *counts) {
    const struct sx_collector *kept = exchange->kept;
    const int64_t step = kept->rows / COUNT_ROWS + 1;
    for (int64_t b = 0; b < kept->n_batches; b += step)
        SX_TRY(count_batch(exchange, worker, &kept->batches[b], list, step, counts));
    return SX_OK;
}

/* Leaves the keys whose build rows, sent to all, are fewer than the probe rows that stay for it. */
static void keep_profitable(const struct exchange_skew *skew, const int64_t *counts, int n_ranks,
                            struct sx_heavy_list *list) {
    const double rows_a_sample = (double)skew->probe_rows / (double)list->rows;
    int64_t n = 0;
    for (int64_t k = 0; k < list->n; k++) {
        int64_t build_rows = 0;
        for (int r = 0; r < n_ranks; r++)
            build_rows += counts[r * SX_SKEW_MOST_HEAVY + k];
        if ((double)build_rows * n_ranks <= (double)list->keys[k].rows * rows_a_sample)
            list->keys[n++] = list->keys[k];
    }
    list->n = n;
}

static enum sx_status weigh_build(struct sx_exchange *exchange, struct sx_worker *worker,
                                  struct sx_heavy_list *list) {
    const struct sx_exec_options *options = &worker->run->options;
    int64_t own[SX_SKEW_MOST_HEAVY] = {0};
    int64_t *counts = calloc((size_t)exchange->n_ranks, sizeof own);
    enum sx_status status = SX_OK;
    if (!counts)
        return sx_no_memory(sx_worker_error(worker), "a sample");
    SX_GO(set_words(exchange->join->skew, worker, list));
    SX_GO(count_build(exchange, worker, list, own));
    SX_GO(sx_net_gather(options->net, own, sizeof own, counts, options->cancel, sx_worker_error(worker)));
    keep_profitable(exchange->join->skew, counts, exchange->n_ranks, list);
    status = set_words(exchange->join->skew, worker, list);
out:
    free(counts);
    return status;
}

enum sx_status exchange_skew_find(struct sx_exchange *exchange, struct sx_worker *worker) {
    struct sx_heavy_list list = {0};
    SX_TRY(sample_probe(exchange->join->skew, worker, &list));
    if (list.n == 0)
        return SX_OK;
    SX_TRY(weigh_build(exchange, worker, &list));
    return sx_synchronise(worker, "heavy keys are known");
}

/* ---- rows on their way ---- */

enum sx_status exchange_skew_split(const struct exchange_skew *skew, struct sx_worker *worker,
                                   struct sx_tensor *hashes, struct sx_tensor *out_heavy,
                                   struct sx_tensor *out_rest) {
    const struct sx_backend_ops *ops = sx_ops(worker);
    struct sx_tensor heavy = {0}, mask = {0}, rest = {0}, others = {0};
    enum sx_status status;
    SX_GO(ops->bloom_test(worker->stream, hashes, &skew->words, &heavy));
    if (heavy.length > 0) {
        SX_GO(ops->index_to_mask(worker->stream, &heavy, hashes->length, &mask));
        SX_GO(ops->mask_to_index(worker->stream, &mask, false, &rest));
        SX_GO(ops->gather(worker->stream, hashes, &rest, &others));
        sx_tensor_release(hashes);
        *hashes = others;
        *out_rest = rest;
        others = rest = (struct sx_tensor){0};
    }
    *out_heavy = heavy;
    heavy = (struct sx_tensor){0};
out:
    sx_tensor_release(&heavy);
    sx_tensor_release(&mask);
    sx_tensor_release(&rest);
    sx_tensor_release(&others);
    return status;
}
