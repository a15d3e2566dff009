#include <stdlib.h>
#include <string.h>

#include "api/alone.h"
#include "api/library.h"
#include "api/parts.h"
#include "api/query.h"
#include "api/ranks.h"
#include "api/system.h"
#include "api/watch.h"
#include "base/clock.h"
#include "base/hash_table.h"
#include "plan/distribute.h"
#include "storage/file.h"

/* In the file's terms; to be freed. NULL: no memory. */
static const char **column_names(const struct sx_scan_plan *scan) {
    const char **columns = calloc((size_t)scan->n_columns + 1, sizeof *columns);
    for (int32_t c = 0; columns && c < scan->n_columns; c++)
        columns[c] = scan->columns[c].source;
    return columns;
}

/* For distributing a plan: what is asked of files' footers. */
struct asked {
    struct stachio_db *db;
    bool has_failed; /* once, so the plan is not what it would be another time */
};

static int64_t scan_bytes(void *context, const struct sx_scan_plan *scan) {
    struct asked *asked = context;
    const struct stachio_db *db = asked->db;
    const char **columns = column_names(scan);
    int64_t bytes = INT64_MAX;
    if (!columns || sx_storage_plain_bytes(db->storage, scan->files, scan->n_files, columns, scan->n_columns,
                                           &bytes, NULL) != SX_OK) {
        bytes = INT64_MAX;
        asked->has_failed = true;
    }
    free(columns);
    return bytes;
}

static bool share_ends(void *context, const struct sx_scan_plan *scan, int32_t column, int64_t *out_ends) {
    struct asked *asked = context;
    const struct stachio_db *db = asked->db;
    const char **columns = column_names(scan);
    bool found = false;
    if (!columns || sx_storage_share_ends(db->storage, scan->files, scan->n_files, columns, scan->n_columns,
                                          column, sx_net_size(db->net), out_ends, &found, NULL) != SX_OK) {
        found = false;
        asked->has_failed = true;
    }
    free(columns);
    return found;
}

/* Below it a copy to the host costs less than a round between devices does (a guess, not measured). */
static size_t link_bytes(void) {
    return (size_t)sx_environment_integer("STACHIO_LINK_BYTES", 64 << 10);
}

static int64_t rows_of_root(const char *name, int64_t usual) {
    const int64_t most = INT64_MAX / 16; /* devices take a multiple */
    const int64_t rows = sx_environment_integer(name, usual);
    return rows < 0 ? 0 : rows < most ? rows : most;
}

/* Below it a rank's sort is over before the ranks have found their ranges. */
static int64_t root_sort_rows(void) {
    return rows_of_root("STACHIO_ROOT_SORT_ROWS", 128 << 10);
}

/* Up to so many groups of all ranks, rank 0 is through with them before each rank has got its part and sent
 * it on. (A guess.) */
static int64_t few_groups(void) {
    return rows_of_root("STACHIO_FEW_GROUPS", 16 << 10);
}

/* Small ones are sent soon. (A guess.) */
static int64_t filter_rows(void) {
    return sx_environment_integer("STACHIO_FILTER_ROWS", 1 << 20);
}

/* It saves time, so it may not take much memory. */
static size_t filter_bytes(const struct stachio_db *db) {
    enum { PART = 32 };
    const size_t most = (size_t)512 << 20, limit = sx_db_memory(db).limit_bytes;
    return limit > 0 && limit / PART < most ? limit / PART : most;
}

static void set_run(struct stachio_query *query, struct sx_run *run) {
    pthread_mutex_lock(&query->progress_lock);
    struct sx_run *previous = query->run;
    query->run = run;
    pthread_mutex_unlock(&query->progress_lock);
    if (previous)
        sx_run_destroy(previous);
}

/* DuckDB takes the query over, if that is allowed. `error` says why stachio can't run it. */
static enum sx_status fall_back(struct stachio_query *query, struct sx_error *error) {
    if (query->wanted == STACHIO_ENGINE_STACHIO)
        return sx_error_prefix(error, "stachio can't %s, and DuckDB may not",
                               query->write ? "make what is to be written" : "run the query");
    set_run(query, NULL);
    query->engine = STACHIO_ENGINE_DUCKDB;
    query->is_alone = false;
    query->reason = sx_arena_copy_text(&query->arena, error->text, strlen(error->text));
    if (!query->reason)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a message");
    *error = (struct sx_error){0};
    return SX_OK;
}

/* DuckDB's words for a broken file are replaced by stachio's own, which say where and what. */
static enum sx_status explain_file(struct sx_frontend *frontend, enum sx_status status,
                                   struct sx_error *error) {
    const char *const *files;
    struct sx_error found = {0};
    for (int i = 0, n = status == SX_FILE ? sx_frontend_broken_files(frontend, &files) : 0; i < n; i++)
        if (sx_file_check(files[i], &found) == SX_FILE) {
            *error = found;
            break;
        }
    return status;
}

struct sx_exec_options sx_db_exec_options(struct stachio_db *db) {
    static const enum sx_overlap overlaps[] = {[STACHIO_OVERLAP_FULL] = SX_OVERLAP_FULL,
                                               [STACHIO_OVERLAP_COMBINED] = SX_OVERLAP_COMBINED,
                                               [STACHIO_OVERLAP_IO] = SX_OVERLAP_IO,
                                               [STACHIO_OVERLAP_BLOCKING] = SX_OVERLAP_BLOCKING};
    static const enum sx_shuffle_compression compressions[] = {
        [STACHIO_SHUFFLE_COMPRESSION_AUTO] = SX_COMPRESSION_AUTO,
        [STACHIO_SHUFFLE_COMPRESSION_OFF] = SX_COMPRESSION_OFF,
        [STACHIO_SHUFFLE_COMPRESSION_ON] = SX_COMPRESSION_ON};
    return (struct sx_exec_options){
        .backend = db->backend,
        .pool = db->pool,
        .message_pool = db->io_pool,
        .storage = db->storage,
        .team = db->team,
        .queue_bytes = sx_db_queue_bytes(db),
        .net = db->net,
        .link_bytes = link_bytes(),
        .large_rows = sx_environment_integer("STACHIO_LARGE_ROWS", 1 << 20),
        .root_sort_rows = root_sort_rows(),
        .few_groups = few_groups(),
        .filter_rows = filter_rows(),
        .filter_bytes = filter_bytes(db),
        .overlap = overlaps[db->overlap],
        .shuffle_compression = compressions[db->shuffle_compression],
        .shuffle = db->shuffle,
        .reuse_bytes = db->reuse_bytes,
        .skew_memory = &db->skew,
        .filter_memory = &db->filters,
    };
}

/* The pipelines. */
static enum sx_status make_run(struct stachio_query *query, bool may_reuse, struct sx_error *error) {
    struct sx_exec_options options = sx_db_exec_options(query->db);
    options.cancel = &query->cancel;
    options.trace = query->trace;
    options.footprint = query->footprint;
    options.write = query->write;
    options.broadcast_bytes = query->broadcast_bytes;
    if (query->is_alone) {
        options.net = NULL;
        options.most_ns = query->runners == SX_RUNNERS_ALONE ? 0 : sx_alone_most_ns(query);
    }
    if (!may_reuse)
        options.reuse_bytes = 0;
    struct sx_run *run;
    SX_TRY(sx_run_create(&options, &query->plan, &run, error));
    set_run(query, run);
    return SX_OK;
}

static enum sx_status plan_with_duckdb(struct stachio_query *query, struct sx_error *error) {
    struct stachio_db *db = query->db;
    struct sx_watch watch;
    SX_TRY(sx_watch_start(&watch, db->frontend, &query->cancel, &query->wake, error));
    enum sx_status status = sx_frontend_plan(db->frontend, query->sql, &query->plan, error);
    sx_watch_stop(&watch);
    status = explain_file(db->frontend, status, error);
    return sx_query_cancelled(query, status, error);
}

/* Distributed it is another plan than the one that queries share. */
static enum sx_status own_plan(struct stachio_query *query, struct sx_error *error) {
    bool known;
    if (!query->plan.shared)
        return SX_OK;
    sx_query_plan_release(&query->plan);
    query->has_plan = false;
    SX_TRY(sx_frontend_plan_known(query->db->frontend, query->sql, SX_PLAN_TO_CHANGE, &query->plan, &known,
                                  error));
    if (!known) /* files have changed just now */
        SX_TRY(plan_with_duckdb(query, error));
    query->has_plan = true;
    return SX_OK;
}

/* The caller's thread is worker 0. */
static struct sx_lane *lane_of(struct stachio_query *query) {
    return query->trace ? sx_trace_lane(query->trace, "worker", 0) : NULL;
}

/* What a distributed plan depends on beside the statement and its files. */
static uint64_t setting_of(const struct sx_distribute_options *options) {
    const uint64_t hash =
        sx_hash_mix(sx_hash_mix(0, (uint64_t)options->n_ranks), (uint64_t)options->replicate_bytes);
    return sx_hash_mix(hash, (uint64_t)options->exchange_bytes);
}

/* The plan that an earlier query of the statement has distributed, or this one's own. */
static enum sx_status distribute_plan(struct stachio_query *query,
                                      const struct sx_distribute_options *options, struct sx_error *error) {
    struct sx_frontend *frontend = query->db->frontend;
    const uint64_t setting = setting_of(options);
    struct sx_query_plan plan = {0};
    bool known;
    SX_TRY(sx_frontend_plan_distributed(frontend, query->sql, setting, &plan, &known, error));
    if (known) {
        sx_query_plan_release(&query->plan);
        query->plan = plan;
        return SX_OK;
    }
    SX_TRY(own_plan(query, error));
    const int64_t began_ns = sx_span_begin(lane_of(query));
    const enum sx_status status = sx_plan_distribute(&query->plan, options, error);
    sx_span_end(lane_of(query), SX_SPAN_QUERY, "distributing", began_ns, 0, 0);
    if (status == SX_OK && !((const struct asked *)options->context)->has_failed)
        sx_frontend_keep_distributed(frontend, query->sql, setting, &query->plan);
    return status;
}

/* Files are written together, so that none is begun twice. */
static enum sx_status distribute(struct stachio_query *query, struct sx_error *error) {
    struct asked asked = {.db = query->db};
    const struct sx_distribute_options options = {
        .replicate_bytes = query->broadcast_bytes,
        .scan_bytes = scan_bytes,
        .share_ends = share_ends,
        .context = &asked,
        .n_ranks = sx_net_size(query->db->net),
        .exchange_bytes = query->runners == SX_RUNNERS_ALONE ? INT64_MAX : sx_alone_exchange_bytes(query->db),
    };
    const bool is_forced = query->runners == SX_RUNNERS_ALONE,
               is_chosen = query->runners == SX_RUNNERS_CHOSEN;
    if (is_forced || is_chosen)
        query->is_small = (is_forced || !query->write) && sx_plan_is_small(&query->plan, &options);
    query->is_alone = query->is_small && (is_forced || (is_chosen && sx_alone_is_worth_it(query)));
    if (query->is_alone)
        return SX_OK;
    return distribute_plan(query, &options, error);
}

/* The logical plan and the pipelines. */
static enum sx_status plan_run(struct stachio_query *query, struct sx_error *error) {
    struct stachio_db *db = query->db;
    if (query->has_plan)
        sx_query_plan_release(&query->plan);
    query->has_plan = false;
    SX_TRY(sx_parts_check(db->parts, query->sql, error));
    SX_TRY(sx_db_start(db, error));
    SX_TRY(sx_frontend_plan_known(db->frontend, query->sql, SX_PLAN_TO_READ, &query->plan, &query->has_plan,
                                  error));
    if (!query->has_plan)
        SX_TRY(plan_with_duckdb(query, error));
    query->has_plan = true;
    if (db->net)
        SX_TRY(distribute(query, error));
    if (!query->footprint)
        SX_TRY(sx_footprint_create(&query->footprint, error));
    return make_run(query, true, error);
}

enum sx_status sx_query_plan(struct stachio_query *query, struct sx_error *error) {
    sx_frontend_set_origin(query->db->frontend, query->line, query->column);
    if (query->planned)
        return SX_OK;
    const int64_t began_ns = sx_span_begin(lane_of(query));
    double started = sx_system_seconds();
    query->engine = query->wanted == STACHIO_ENGINE_DUCKDB ? STACHIO_ENGINE_DUCKDB : STACHIO_ENGINE_STACHIO;
    enum sx_status status = SX_OK;
    if (query->engine == STACHIO_ENGINE_STACHIO)
        status = sx_parts_explain(query->db->parts, plan_run(query, error), error);
    if (status == SX_UNSUPPORTED)
        status = fall_back(query, error);
    query->planned = status == SX_OK;
    sx_span_end(lane_of(query), SX_SPAN_QUERY, "planning", began_ns, 0, 0);
    query->plan_seconds = sx_system_seconds() - started;
    return status;
}

/* The second column of DuckDB's answer to EXPLAIN. */
static const char *explain_text(struct sx_arena *arena, const struct sx_duckdb_answer *answer) {
    const char *text = "";
    for (int64_t a = 0; text && a < answer->n_arrays; a++) {
        const struct ArrowArray *column = answer->arrays[a].children[1];
        const int32_t *offsets = (const int32_t *)column->buffers[1] + column->offset;
        const char *bytes = column->buffers[2];
        for (int64_t row = 0; text && row < column->length; row++)
            text = sx_arena_format(arena, "%s%.*s\n", text, (int)(offsets[row + 1] - offsets[row]),
                                   bytes + offsets[row]);
    }
    return text;
}

static bool is_text(const struct ArrowSchema *schema) {
    return schema->n_children == 2 && strcmp(schema->children[1]->format, "u") == 0;
}

/* DuckDB's plan, or no more than the reason for a statement that it can't explain. */
static enum sx_status explain_duckdb(struct stachio_query *query, const char **out_text,
                                     struct sx_error *error) {
    struct sx_arena *arena = &query->arena;
    struct sx_duckdb_answer answer = {0};
    const char *sql = sx_arena_format(arena, "EXPLAIN %s", query->sql);
    if (!sql)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the plan's text");
    SX_TRY(sx_duckdb_fetch(query, sql, &answer, error));
    const char *plan = is_text(&answer.schema) ? explain_text(arena, &answer) : "";
    const char *separator = query->reason ? ": " : "";
    const char *reason = query->reason ? query->reason : "";
    *out_text = plan ? sx_arena_format(arena, "DuckDB answers%s%s\n\n%s", separator, reason, plan) : NULL;
    sx_duckdb_answer_release(&answer);
    return *out_text ? SX_OK : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the plan's text");
}

enum sx_status sx_query_explain(struct stachio_query *query, const char **out_text, struct sx_error *error) {
    SX_TRY(sx_query_plan(query, error));
    if (query->engine == STACHIO_ENGINE_DUCKDB)
        return explain_duckdb(query, out_text, error);
    const char *plan = sx_plan_text(&query->arena, query->plan.root);
    const char *pipelines = sx_run_text(query->run, &query->arena);
    *out_text = plan && pipelines
                    ? sx_arena_format(&query->arena, "Logical plan\n%s\nPipelines\n%s", plan, pipelines)
                    : NULL;
    return *out_text ? SX_OK : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the plan's text");
}

/* What lacks the memory for columns that it reads again has another try without keeping them. */
static enum sx_status run_alone(struct stachio_query *query, struct sx_error *error) {
    enum sx_status status = sx_run_execute(query->run, error);
    if (status != SX_OUT_OF_MEMORY || !sx_run_reuses(query->run))
        return status;
    *error = (struct sx_error){0};
    set_run(query, NULL); /* its streams and memory are there for the next one */
    SX_TRY(make_run(query, false, error));
    return sx_run_execute(query->run, error);
}

static enum sx_status plan_again(struct stachio_query *query, enum sx_runners runners,
                                 struct sx_error *error) {
    set_run(query, NULL);
    query->planned = false;
    query->runners = runners;
    return sx_query_plan(query, error);
}

/* The ranks' plans have different times in them, say: one of them counts. */
static enum sx_status run_together(struct stachio_query *query, struct sx_error *error) {
    struct sx_error differs = {0};
    const int64_t began_ns = sx_clock_ns();
    const enum sx_status status = sx_ranks_execute(query, &differs);
    if (query->is_small)
        sx_alone_ended_together(query, status, sx_clock_ns() - began_ns);
    if (query->differs)
        SX_TRY(plan_again(query, SX_RUNNERS_ALONE, error));
    if (!query->differs || (query->engine == STACHIO_ENGINE_STACHIO && !query->is_alone)) {
        *error = differs;
        return status;
    }
    if (query->is_alone)
        SX_TRY(run_alone(query, error));
    return sx_alone_check(query->db, error);
}

/* Rank 0 begins with what is small by itself. */
static enum sx_status run_shared(struct stachio_query *query, struct sx_error *error) {
    bool done;
    if (query->is_alone) {
        SX_TRY(sx_alone_execute(query, &done, error));
        if (done)
            return SX_OK;
        SX_TRY(plan_again(query, SX_RUNNERS_ALL, error));
    }
    return query->engine == STACHIO_ENGINE_STACHIO ? run_together(query, error) : SX_OK;
}

enum sx_status sx_query_execute(struct stachio_query *query, struct sx_error *error) {
    if (query->db->net && !query->planned && query->wanted != STACHIO_ENGINE_DUCKDB)
        SX_TRY(sx_ranks_plan(query, error));
    SX_TRY(sx_query_plan(query, error));
    if (atomic_load(&query->cancel))
        return SX_CANCELLED;
    double started = sx_system_seconds();
    const int64_t began_ns = sx_span_begin(lane_of(query));
    enum sx_status status = SX_OK;
    if (query->engine == STACHIO_ENGINE_STACHIO)
        status = query->db->net ? run_shared(query, error) : run_alone(query, error);
    if (status == SX_UNSUPPORTED)
        status = fall_back(query, error);
    if (status == SX_OK && query->engine == STACHIO_ENGINE_DUCKDB)
        status = query->write ? sx_duckdb_write(query, error)
                              : sx_duckdb_fetch(query, query->sql, &query->duckdb, error);
    if (status == SX_OK && query->db->net && query->engine == STACHIO_ENGINE_DUCKDB &&
        sx_frontend_tells(query->sql))
        status = sx_ranks_session(query->db, query->sql, error);
    if (status == SX_UNSUPPORTED && query->reason)
        status = sx_error_prefix(error, "stachio can't run the query (%.900s), and neither can DuckDB",
                                 query->reason);
    sx_span_end(lane_of(query), SX_SPAN_QUERY, "running", began_ns, 0, 0);
    query->execute_seconds = sx_system_seconds() - started;
    return status;
}
