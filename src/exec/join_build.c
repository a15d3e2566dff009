/* Build side of a hash join. */
#include <string.h>

#include "exec/exchange_filter.h"
#include "exec/exchange_skew.h"

static const char *const join_names[] = {
#define SX_JOIN_NAME(name, text) text,
    SX_JOIN_LIST(SX_JOIN_NAME)
#undef SX_JOIN_NAME
};

bool sx_join_is_right(enum sx_join_kind kind) {
    return kind == SX_JOIN_RIGHT || kind == SX_JOIN_FULL || kind == SX_JOIN_RIGHT_SEMI ||
           kind == SX_JOIN_RIGHT_ANTI;
}

/* ---- tables for NULL in grouped MARK joins ---- */

/* Rows whose mark keys (those behind the group's) hold a NULL, as positions. */
static enum sx_status null_mark_rows(struct sx_worker *worker, const struct sx_tensor *key, int64_t rows,
                                     struct sx_tensor *out_index) {
    if (!key->valid)
        return sx_tensor_create_index(worker->stream->pool, SX_TYPE_I32, 0, out_index,
                                      sx_worker_error(worker));
    struct sx_tensor valid = {.type = sx_type_of(SX_TYPE_BOOL), .layout = SX_FLAT, .length = rows};
    valid.layout = key->layout == SX_CONSTANT ? SX_CONSTANT : SX_FLAT;
    valid.values = key->valid;
    return sx_ops(worker)->mask_to_index(worker->stream, &valid, false, out_index);
}

static enum sx_status append_group_nulls(struct sx_join_build *build, struct sx_worker *worker,
                                         const struct sx_tensor *keys, int64_t rows) {
    enum { MAX_GROUP_KEYS = 16 };
    const int32_t n_group = build->plan->u.join.n_mark_group;
    const struct sx_backend_ops *ops = sx_ops(worker);
    struct sx_tensor index = {0}, picked[MAX_GROUP_KEYS];
    memset(picked, 0, sizeof picked);
    enum sx_status status = SX_OK;
    if (n_group > MAX_GROUP_KEYS)
        return sx_error_set(sx_worker_error(worker), SX_UNSUPPORTED, "a mark join with %d correlated columns",
                            n_group);
    SX_GO(null_mark_rows(worker, &keys[n_group], rows, &index));
    if (index.length == 0)
        goto out;
    for (int32_t k = 0; k < n_group; k++)
        SX_GO(ops->gather(worker->stream, &keys[k], &index, &picked[k]));
    status = ops->join_append(worker->stream, build->group_nulls, worker->index, picked, NULL, index.length);
out:
    for (int32_t k = 0; k < n_group && k < MAX_GROUP_KEYS; k++)
        sx_tensor_release(&picked[k]);
    sx_tensor_release(&index);
    return status;
}

/* ---- sink ---- */

static enum sx_status append(struct sx_join_build *build, struct sx_worker *worker,
                             const struct sx_batch *batch, const struct sx_batch *keys) {
    const struct sx_backend_ops *ops = sx_ops(worker);
    struct sx_batch payload = {0};
    SX_TRY(sx_batch_gather(worker, batch, build->payload, build->n_payload, NULL, &payload));
    enum sx_status status = ops->join_append(worker->stream, build->table, worker->index, keys->columns,
                                             payload.columns, batch->rows);
    sx_batch_release(&payload);
    SX_TRY(status);
    if (!build->group_rows)
        return SX_OK;
    SX_TRY(
        ops->join_append(worker->stream, build->group_rows, worker->index, keys->columns, NULL, batch->rows));
    return append_group_nulls(build, worker, keys->columns, batch->rows);
}

/* Both are the same on all ranks, from when its pipeline begins. */
static bool is_local(const struct sx_join_build *build, const struct sx_worker *worker) {
    return !worker->run->options.net || build->is_everywhere;
}

static bool wants_bloom(const struct sx_join_build *build) {
    return build->bloom.is_wanted && (build->plan->u.join.n_keys > 1 || !build->is_everywhere);
}

static enum sx_status build_consume(struct sx_sink *sink, struct sx_worker *worker, struct sx_batch *batch) {
    struct sx_join_build *build = (struct sx_join_build *)sink;
    struct sx_batch keys = {0};
    atomic_fetch_add(&build->n_rows, (long long)batch->rows_bound);
    SX_TRY(sx_batch_create(build->plan->u.join.n_keys, batch->rows, &keys, sx_worker_error(worker)));
    enum sx_status status = sx_evaluator_run(&build->keys, worker, batch, keys.columns);
    if (status == SX_OK && wants_bloom(build))
        status = join_bloom_note(&build->bloom, worker, &keys, is_local(build, worker));
    if (status == SX_OK)
        status = append(build, worker, batch, &keys);
    sx_batch_release(&keys);
    return status;
}

/* Finishes and builds a small table here and now. */
static enum sx_status build_whole(struct sx_worker *worker, struct sx_join *table) {
    if (!table)
        return SX_OK;
    int parts;
    SX_TRY(sx_ops(worker)->join_finish(worker->stream, table, &parts));
    for (int i = 0; i < parts; i++)
        SX_TRY(sx_ops(worker)->join_build(worker->stream, table, i));
    return SX_OK;
}

static enum sx_status build_finish(struct sx_sink *sink, struct sx_worker *worker, int *out_parts) {
    struct sx_join_build *build = (struct sx_join_build *)sink;
    SX_TRY(exchange_filter_share(build->filter, worker));
    SX_TRY(build_whole(worker, build->group_rows));
    SX_TRY(build_whole(worker, build->group_nulls));
    SX_TRY(sx_ops(worker)->join_finish(worker->stream, build->table, &build->n_parts));
    *out_parts = build->n_parts;
    if (!wants_bloom(build))
        return SX_OK;
    *out_parts += worker->run->n_workers;
    return join_bloom_open(&build->bloom, worker, is_local(build, worker));
}

/* Parts of the table, then those of the filter. */
static enum sx_status build_part(struct sx_sink *sink, struct sx_worker *worker, int part) {
    struct sx_join_build *build = (struct sx_join_build *)sink;
    if (part >= build->n_parts)
        return join_bloom_add(&build->bloom, worker, part - build->n_parts);
    return sx_ops(worker)->join_build(worker->stream, build->table, part);
}

/* Adds a rank's rows. */
static void merge_info(struct sx_join_info *all, const struct sx_join_info *info) {
    if (info->rows == 0)
        return;
    all->keys_unique = info->keys_unique && (all->keys_unique || all->rows == 0);
    all->has_range = info->has_range && (all->has_range || all->rows == 0);
    all->key_min = all->rows == 0 || info->key_min < all->key_min ? info->key_min : all->key_min;
    all->key_max = all->rows == 0 || info->key_max > all->key_max ? info->key_max : all->key_max;
    all->rows += info->rows;
}

static enum sx_status share_info(struct sx_join_build *build, struct sx_worker *worker) {
    const struct sx_exec_options *options = &worker->run->options;
    struct sx_arena arena = {0};
    const int n_ranks = sx_net_size(options->net);
    struct sx_join_info *infos = SX_ARENA_ARRAY(&arena, n_ranks, struct sx_join_info);
    enum sx_status status = infos ? sx_net_gather(options->net, &build->info, sizeof build->info, infos,
                                                  options->cancel, sx_worker_error(worker))
                                  : sx_no_memory(sx_worker_error(worker), "a join");
    for (int r = 0; status == SX_OK && r < n_ranks; r++)
        merge_info(&build->all, &infos[r]);
    sx_arena_release(&arena);
    return status;
}

/* Nearly every value of the keys' range is there, which scans know already. Rows with heavy keys, which all
 * ranks have, would count several times. */
static bool range_is_dense(const struct sx_join_build *build) {
    const struct sx_join_info *all = &build->all;
    if (build->skew && build->skew->n_heavy > 0)
        return false;
    const double values = (double)all->key_max - (double)all->key_min + 1;
    return all->keys_unique && all->has_range && (double)all->rows >= 0.9 * values;
}

static enum sx_status build_seal(struct sx_sink *sink, struct sx_worker *worker) {
    struct sx_join_build *build = (struct sx_join_build *)sink;
    sx_ops(worker)->join_info(build->table, &build->info);
    build->all = build->info;
    const bool is_wanted = build->is_all_wanted && build->plan->u.join.n_keys == 1;
    if (is_local(build, worker) || (!is_wanted && !wants_bloom(build)))
        return SX_OK;
    build->all = (struct sx_join_info){0};
    SX_TRY(share_info(build, worker));
    return wants_bloom(build) ? join_bloom_merge(&build->bloom, worker, range_is_dense(build)) : SX_OK;
}

static void build_destroy(struct sx_run *run, struct sx_operator *op) {
    struct sx_join_build *build = (struct sx_join_build *)op;
    struct sx_stream *stream = run->workers[0].stream;
    const struct sx_backend_ops *ops = &run->options.backend->ops;
    struct sx_join *tables[] = {build->table, build->group_rows, build->group_nulls};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (tables[i])
            ops->join_destroy(stream, tables[i]);
    join_bloom_release(&build->bloom, run);
    exchange_skew_release(build->skew);
    exchange_filter_release(build->filter);
    sx_evaluator_release(run, &build->keys);
}

static const char *build_tell(const struct sx_operator *op, struct sx_arena *arena) {
    const struct sx_join_build *build = (const struct sx_join_build *)op;
    const int64_t n_words = build->bloom.words.length;
    if (n_words == 0)
        return NULL;
    return sx_arena_format(arena, "%s: filter of all %s, %.1f MB", op->name,
                           build->bloom.is_local ? "keys" : "ranks",
                           (double)n_words * sizeof(uint64_t) / 1e6);
}

/* ---- creation ---- */

static void note_build_column(int32_t column, void *context) {
    bool *used = context;
    used[column] = true;
}

int32_t sx_join_payload_index(const struct sx_join_build *build, int32_t column) {
    for (int32_t i = 0; i < build->n_payload; i++)
        if (build->payload[i] == column)
            return i;
    return -1;
}

const int32_t *sx_join_payload_of(struct sx_run *run, const struct sx_join_build *build) {
    const struct sx_join_plan *join = &build->plan->u.join;
    int32_t *payload_of = SX_ARENA_ARRAY(&run->arena, join->n_build_output, int32_t);
    for (int32_t i = 0; payload_of && i < join->n_build_output; i++)
        payload_of[i] = sx_join_payload_index(build, join->build_output[i]);
    return payload_of;
}

/* The build child's columns that are output or that the residual reads. */
static enum sx_status choose_payload(struct sx_join_build *build, struct sx_run *run,
                                     struct sx_error *error) {
    const struct sx_join_plan *join = &build->plan->u.join;
    const int32_t n_probe = build->plan->children[0]->n_columns,
                  n_build = build->plan->children[1]->n_columns;
    bool *used = SX_ARENA_ARRAY(&run->arena, n_probe + n_build, bool);
    int32_t *payload = SX_ARENA_ARRAY(&run->arena, n_build, int32_t);
    if (!used || !payload)
        return sx_no_memory(error, "a join");
    for (int32_t i = 0; i < join->n_build_output; i++)
        used[n_probe + join->build_output[i]] = true;
    for (int32_t i = 0; i < join->n_residual; i++)
        sx_expression_columns(join->residual[i], note_build_column, used);
    for (int32_t c = 0; c < n_build; c++)
        if (used[n_probe + c])
            payload[build->n_payload++] = c;
    build->payload = payload;
    return SX_OK;
}

static enum sx_status create_table(struct sx_run *run, const struct sx_join_plan *join, int n_keys,
                                   const struct sx_type *payload_types, int n_payload, bool track_matches,
                                   struct sx_join **out_table, struct sx_error *error) {
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, n_keys, struct sx_type);
    bool *null_equal = SX_ARENA_ARRAY(&run->arena, n_keys, bool);
    if (!types || !null_equal)
        return sx_no_memory(error, "a join");
    for (int k = 0; k < n_keys; k++) {
        types[k] = join->keys[k].build->type;
        null_equal[k] = join->keys[k].null_equal;
    }
    struct sx_join_spec spec = {.n_keys = n_keys,
                                .key_types = types,
                                .null_equal = null_equal,
                                .n_payload = n_payload,
                                .payload_types = payload_types,
                                .track_matches = track_matches,
                                .n_workers = run->n_workers};
    struct sx_stream *stream = run->workers[0].stream;
    enum sx_status status = run->options.backend->ops.join_create(stream, &spec, out_table);
    if (status != SX_OK)
        *error = stream->error;
    return status;
}

static enum sx_status create_tables(struct sx_join_build *build, struct sx_run *run, struct sx_error *error) {
    const struct sx_join_plan *join = &build->plan->u.join;
    struct sx_type *types = SX_ARENA_ARRAY(&run->arena, build->n_payload, struct sx_type);
    if (!types)
        return sx_no_memory(error, "a join");
    for (int32_t i = 0; i < build->n_payload; i++)
        types[i] = build->plan->children[1]->columns[build->payload[i]].type;
    SX_TRY(create_table(run, join, join->n_keys, types, build->n_payload, build->is_right, &build->table,
                        error));
    if (join->kind != SX_JOIN_MARK || join->n_mark_group == 0)
        return SX_OK;
    SX_TRY(create_table(run, join, join->n_mark_group, NULL, 0, false, &build->group_rows, error));
    return create_table(run, join, join->n_mark_group, NULL, 0, false, &build->group_nulls, error);
}

enum sx_status sx_join_build_create(struct sx_run *run, const struct sx_plan *plan,
                                    struct sx_join_build **out_build, struct sx_error *error) {
    const struct sx_join_plan *join = &plan->u.join;
    struct sx_join_build *build =
        sx_operator_create(run, sizeof *build, build_destroy, "JOIN build %s", join_names[join->kind]);
    struct sx_expression **keys = SX_ARENA_ARRAY(&run->arena, join->n_keys, struct sx_expression *);
    struct sx_type *types = sx_plan_types(run, plan->children[1]);
    if (!build || !keys || !types)
        return sx_no_memory(error, "a join");
    for (int32_t k = 0; k < join->n_keys; k++)
        keys[k] = join->keys[k].build;
    build->sink.base.tell = build_tell;
    build->plan = plan;
    build->is_right = sx_join_is_right(join->kind);
    build->is_everywhere = join->build_is_everywhere;
    SX_TRY(
        sx_evaluator_init(run, keys, join->n_keys, types, plan->children[1]->n_columns, &build->keys, error));
    SX_TRY(choose_payload(build, run, error));
    SX_TRY(create_tables(build, run, error));
    SX_TRY(join_bloom_create(&build->bloom, run, error));
    build->sink.consume = build_consume;
    build->sink.finish = build_finish;
    build->sink.part = build_part;
    build->sink.seal = build_seal;
    *out_build = build;
    return SX_OK;
}
