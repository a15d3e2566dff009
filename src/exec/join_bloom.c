#include "exec/join_bloom.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/bloom_share.h"

enum {
    BITS_A_ROW = 12,          /* about 3 rows in 100 pass that should not */
    MOST_BYTES = 16 << 20,    /* of a filter: a processor's or a device's cache */
    MOST_GATHERED = 64 << 20, /* of all ranks' filters, which every rank gets */
    MOST_LOCAL = 1 << 20,     /* of one that saves no sending: it must cost next to nothing */
    WORD_BITS = 64
};

struct bloom_worker {
    struct sx_tensor *hashes; /* a tensor for each batch */
    int64_t count, capacity;
};

static int64_t most_words(const struct sx_worker *worker, bool is_local) {
    size_t bytes = MOST_LOCAL;
    if (!is_local) {
        const size_t share = MOST_GATHERED / (size_t)sx_net_size(worker->run->options.net);
        bytes = share < MOST_BYTES ? share : MOST_BYTES;
    }
    return (int64_t)(bytes / sizeof(uint64_t));
}

static int64_t words_of(int64_t rows) {
    return rows / WORD_BITS * BITS_A_ROW + BITS_A_ROW;
}

bool join_bloom_takes(const struct sx_worker *worker, int64_t rows) {
    return words_of(rows) <= most_words(worker, false);
}

static void drop_hashes(struct bloom_worker *mine) {
    for (int64_t i = 0; i < mine->count; i++)
        sx_tensor_release(&mine->hashes[i]);
    free(mine->hashes);
    *mine = (struct bloom_worker){0};
}

enum sx_status join_bloom_create(struct sx_join_bloom *bloom, struct sx_run *run, struct sx_error *error) {
    bloom->workers = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct bloom_worker);
    return bloom->workers ? SX_OK : sx_no_memory(error, "a join");
}

void join_bloom_release(struct sx_join_bloom *bloom, const struct sx_run *run) {
    for (int w = 0; bloom->workers && w < run->n_workers; w++)
        drop_hashes(&bloom->workers[w]);
    sx_tensor_release(&bloom->words);
}

/* ---- the build side ---- */

enum sx_status join_bloom_note(struct sx_join_bloom *bloom, struct sx_worker *worker,
                               const struct sx_batch *keys, bool is_local) {
    struct bloom_worker *mine = &bloom->workers[worker->index];
    if (words_of(atomic_fetch_add(&bloom->kept, keys->rows) + keys->rows) > most_words(worker, is_local)) {
        drop_hashes(mine);
        return SX_OK;
    }
    struct sx_tensor *grown = sx_array_grow(mine->hashes, sizeof *grown, mine->count, &mine->capacity);
    if (!grown)
        return sx_no_memory(sx_worker_error(worker), "a join's filter");
    mine->hashes = grown;
    SX_TRY(sx_ops(worker)->hash(worker->stream, keys->columns, keys->n_columns, keys->rows,
                                &mine->hashes[mine->count]));
    mine->count++;
    return SX_OK;
}

/* One value of every rank's. */
static enum sx_status gather(struct sx_worker *worker, const void *own, size_t bytes, struct sx_arena *arena,
                             void **out_all) {
    const struct sx_exec_options *options = &worker->run->options;
    *out_all = sx_arena_alloc(arena, bytes * (size_t)sx_net_size(options->net));
    if (!*out_all)
        return sx_no_memory(sx_worker_error(worker), "a join's filter");
    return sx_net_gather(options->net, own, bytes, *out_all, options->cancel, sx_worker_error(worker));
}

enum sx_status join_bloom_words(struct sx_worker *worker, const uint64_t *values, int64_t n_words,
                                struct sx_tensor *out_words) {
    struct sx_batch host = {0}, made = {0};
    enum sx_status status;
    SX_GO(sx_batch_create(1, n_words, &host, sx_worker_error(worker)));
    SX_GO(sx_tensor_create(worker->run->options.pool, sx_type_of(SX_TYPE_U64), n_words, false,
                           &host.columns[0], sx_worker_error(worker)));
    memcpy(host.columns[0].values, values, (size_t)n_words * sizeof *values);
    SX_GO(sx_ops(worker)->batch_from_host(worker->stream, &host, &made));
    sx_tensor_share(&made.columns[0], out_words);
out:
    sx_batch_release(&host);
    sx_batch_release(&made);
    return status;
}

enum sx_status join_bloom_empty(struct sx_worker *worker, int64_t n_words, struct sx_tensor *out_words) {
    const struct sx_scalar zero = {.type = sx_type_of(SX_TYPE_U64)};
    struct sx_tensor zeros = {0};
    const struct sx_tensor *one = &zeros;
    SX_TRY(sx_ops(worker)->constant(worker->stream, &zero, n_words, &zeros));
    const enum sx_status status =
        sx_ops(worker)->concat(worker->stream, zero.type, &one, 1, SX_CONCAT_SHARED, out_words);
    sx_tensor_release(&zeros);
    return status;
}

/* What the ranks tell each other. */
struct bloom_size {
    int64_t rows;
    size_t link_bytes; /* rank 0's counts */
};

/* Of all ranks. */
static enum sx_status count_kept(struct sx_join_bloom *bloom, struct sx_worker *worker, int64_t *rows) {
    const struct bloom_size own = {*rows, worker->run->options.link_bytes};
    struct sx_arena arena = {0};
    void *gathered = NULL;
    enum sx_status status = gather(worker, &own, sizeof own, &arena, &gathered);
    const struct bloom_size *all = gathered;
    *rows = 0;
    for (int r = 0; status == SX_OK && r < sx_net_size(worker->run->options.net); r++)
        *rows += all[r].rows;
    if (status == SX_OK)
        bloom->link_bytes = all[0].link_bytes;
    sx_arena_release(&arena);
    return status;
}

enum sx_status join_bloom_open(struct sx_join_bloom *bloom, struct sx_worker *worker, bool is_local) {
    enum sx_status status = SX_OK;
    int64_t rows = atomic_load(&bloom->kept);
    bloom->is_local = is_local;
    if (!is_local)
        status = count_kept(bloom, worker, &rows);
    if (status == SX_OK && rows > 0 && words_of(rows) <= most_words(worker, is_local))
        status = join_bloom_empty(worker, words_of(rows), &bloom->words);
    return status;
}

enum sx_status join_bloom_add(struct sx_join_bloom *bloom, struct sx_worker *worker, int part) {
    struct bloom_worker *noted = &bloom->workers[part];
    for (int64_t i = 0; i < noted->count && bloom->words.length > 0; i++)
        SX_TRY(sx_ops(worker)->bloom_add(worker->stream, &noted->hashes[i], &bloom->words));
    drop_hashes(noted);
    return SX_OK;
}

/* ---- all ranks' filters ---- */

static enum sx_status merge(struct sx_join_bloom *bloom, struct sx_worker *worker,
                            const struct sx_tensor *own) {
    const int n_ranks = sx_net_size(worker->run->options.net);
    const int64_t n_words = own->length;
    struct sx_arena arena = {0};
    void *all = NULL;
    enum sx_status status;
    SX_GO(gather(worker, own->values, (size_t)n_words * sizeof(uint64_t), &arena, &all));
    uint64_t *words = all;
    for (int r = 1; r < n_ranks; r++)
        for (int64_t i = 0; i < n_words; i++)
            words[i] |= words[r * n_words + i];
    sx_tensor_release(&bloom->words);
    status = join_bloom_words(worker, words, n_words, &bloom->words);
out:
    sx_arena_release(&arena);
    return status;
}

/* From device to device: each rank has set words all over. Not optional: what scans that all ranks make alike
 * drop has to be the same everywhere. */
static enum sx_status merge_on_devices(struct sx_join_bloom *bloom, struct sx_worker *worker) {
    const int n_ranks = sx_net_size(worker->run->options.net);
    struct sx_arena arena = {0};
    struct bloom_span *spans = SX_ARENA_ARRAY(&arena, n_ranks, struct bloom_span);
    for (int r = 0; spans && r < n_ranks; r++)
        spans[r] = (struct bloom_span){0, bloom->words.length};
    const enum sx_status status = spans ? bloom_share(worker, spans, false, &bloom->words)
                                        : sx_no_memory(sx_worker_error(worker), "a join's filter");
    sx_arena_release(&arena);
    return status;
}

static bool goes_by_link(const struct sx_join_bloom *bloom, const struct sx_worker *worker) {
    const struct sx_exec_options *options = &worker->run->options;
    return !worker->stream->backend->traits.is_host && sx_net_has_link(options->net) &&
           (size_t)bloom->words.length * sizeof(uint64_t) >= bloom->link_bytes;
}

enum sx_status join_bloom_merge(struct sx_join_bloom *bloom, struct sx_worker *worker, bool needless) {
    if (needless)
        sx_tensor_release(&bloom->words);
    if (bloom->words.length == 0 || bloom->is_local)
        return SX_OK;
    if (goes_by_link(bloom, worker))
        return merge_on_devices(bloom, worker);
    struct sx_batch batch = {.rows = bloom->words.length,
                             .rows_bound = bloom->words.length,
                             .n_columns = 1,
                             .columns = &bloom->words};
    struct sx_batch host = {0};
    SX_TRY(sx_ops(worker)->batch_to_host(worker->stream, &batch, &host));
    const enum sx_status status = merge(bloom, worker, &host.columns[0]);
    sx_batch_release(&host);
    return status;
}

/* ---- the probe side ---- */

enum sx_status join_bloom_select(const struct sx_join_bloom *bloom, struct sx_worker *worker,
                                 const struct sx_batch *keys, struct sx_tensor *out_selection) {
    struct sx_tensor hashes = {0};
    SX_TRY(sx_ops(worker)->hash(worker->stream, keys->columns, keys->n_columns, keys->rows, &hashes));
    const enum sx_status status =
        sx_ops(worker)->bloom_test(worker->stream, &hashes, &bloom->words, out_selection);
    sx_tensor_release(&hashes);
    return status;
}
