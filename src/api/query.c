#include "api/query.h"

#include <stdlib.h>
#include <string.h>

#include "api/library.h"
#include "api/system.h"

struct stachio_query *sx_query_retain(struct stachio_query *query) {
    atomic_fetch_add_explicit(&query->references, 1, memory_order_relaxed);
    return query;
}

void sx_query_release(struct stachio_query *query) {
    if (!query || atomic_fetch_sub_explicit(&query->references, 1, memory_order_acq_rel) != 1)
        return;
    if (query->run)
        sx_run_destroy(query->run);
    sx_footprint_destroy(query->footprint);
    if (query->has_plan)
        sx_query_plan_release(&query->plan);
    sx_duckdb_answer_release(&query->duckdb);
    sx_trace_release(query->trace);
    sx_arena_release(&query->arena);
    free(query->operators);
    free(query->sql);
    pthread_mutex_destroy(&query->progress_lock);
    sem_destroy(&query->wake);
    sx_db_release(query->db);
    free(query);
}

enum stachio_status stachio_query_create(struct stachio_db *db, const char *sql,
                                         struct stachio_query **out_query, struct stachio_error *error) {
    struct stachio_query *query = calloc(1, sizeof *query);
    char *text = strdup(sql);
    if (!query || !text) {
        free(query);
        free(text);
        return sx_api_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a query");
    }
    atomic_init(&query->references, 1);
    atomic_init(&query->cancel, false);
    query->db = sx_db_retain(db);
    query->sql = text;
    query->broadcast_bytes = sx_environment_integer("STACHIO_BROADCAST_BYTES", (int64_t)32 << 20);
    query->wanted = (enum stachio_engine)atomic_load(&db->engine);
    sem_init(&query->wake, 0, 0);
    pthread_mutex_init(&query->progress_lock, NULL);
    *out_query = query;
    return STACHIO_OK;
}

void stachio_query_set_origin(struct stachio_query *query, int line, int column) {
    query->line = line;
    query->column = column;
}

void stachio_query_destroy(struct stachio_query *query) {
    sx_query_release(query);
}

void stachio_query_cancel(struct stachio_query *query) {
    atomic_store(&query->cancel, true);
    sem_post(&query->wake);
}

enum sx_status sx_query_cancelled(const struct stachio_query *query, enum sx_status status,
                                  struct sx_error *error) {
    if (status == SX_OK || !atomic_load(&query->cancel))
        return status;
    return sx_error_set(error, SX_CANCELLED, "cancelled");
}

/* What is left to do when an inner function has said `status`. */
static enum stachio_status finish(struct stachio_query *query, enum sx_status status, struct sx_error *inner,
                                  struct stachio_error *error) {
    status = sx_query_cancelled(query, status, inner);
    if (status == SX_OK)
        return STACHIO_OK;
    inner->status = status;
    return sx_api_fail(inner, error);
}

enum stachio_status stachio_query_explain(struct stachio_query *query, const char **out_text,
                                          struct stachio_error *error) {
    struct sx_error inner = {0};
    pthread_mutex_lock(&query->db->lock);
    enum sx_status status = sx_query_explain(query, out_text, &inner);
    pthread_mutex_unlock(&query->db->lock);
    return finish(query, status, &inner, error);
}

static void set_times(struct stachio_query *query, double started, double ended) {
    pthread_mutex_lock(&query->progress_lock);
    query->started = started;
    query->ended = ended;
    pthread_mutex_unlock(&query->progress_lock);
}

enum stachio_status stachio_query_execute(struct stachio_query *query, struct stachio_error *error) {
    return sx_query_run(query, error);
}

static int64_t device_cache_hit_bytes(const struct stachio_db *db) {
    return db->backend->cache_usage ? db->backend->cache_usage(db->backend).hit_bytes : 0;
}

static void set_device_cache_bytes(struct stachio_query *query, int64_t bytes) {
    pthread_mutex_lock(&query->progress_lock);
    query->device_cache_bytes = bytes;
    pthread_mutex_unlock(&query->progress_lock);
}

enum stachio_status sx_query_run(struct stachio_query *query, struct stachio_error *error) {
    struct sx_error inner = {0};
    if (query->executed)
        return sx_api_error(error, STACHIO_USAGE, "the query has been executed already");
    query->executed = true;
    pthread_mutex_lock(&query->db->lock);
    double started = sx_system_seconds();
    const int64_t hit_bytes = device_cache_hit_bytes(query->db);
    set_times(query, started, 0);
    enum sx_status status = sx_query_execute(query, &inner);
    set_device_cache_bytes(query, device_cache_hit_bytes(query->db) - hit_bytes);
    query->succeeded = status == SX_OK;
    double ended = sx_system_seconds();
    set_times(query, started, ended);
    pthread_mutex_unlock(&query->db->lock);
    return finish(query, status, &inner, error);
}

void stachio_query_progress(struct stachio_query *query, struct stachio_progress *out_progress) {
    *out_progress = (struct stachio_progress){0};
    pthread_mutex_lock(&query->progress_lock);
    if (query->run) {
        struct sx_exec_progress progress = {0};
        sx_run_progress(query->run, &progress);
        out_progress->total_rows = progress.total_rows;
        out_progress->done_rows = progress.done_rows;
        out_progress->pruned_rows = progress.pruned_rows;
        out_progress->read_bytes = progress.read_bytes;
        out_progress->device_read_bytes = progress.device_bytes;
        out_progress->device_cache_bytes = query->device_cache_bytes;
        out_progress->host_cache_bytes = progress.cached_bytes > query->device_cache_bytes
                                             ? progress.cached_bytes - query->device_cache_bytes
                                             : 0;
    }
    if (query->started > 0)
        out_progress->seconds = (query->ended > 0 ? query->ended : sx_system_seconds()) - query->started;
    pthread_mutex_unlock(&query->progress_lock);
}

/* The run's reports with public types. */
static int copy_operators(struct stachio_query *query) {
    const struct sx_operator_report *reports;
    int n = sx_run_report(query->run, &reports);
    free(query->operators);
    query->operators = calloc((size_t)n + 1, sizeof *query->operators);
    if (!query->operators)
        return 0;
    for (int i = 0; i < n; i++)
        query->operators[i] = (struct stachio_operator){reports[i].pipeline, reports[i].name, reports[i].rows,
                                                        reports[i].batches, reports[i].seconds};
    return n;
}

static int copy_ranks(struct stachio_query *query, const struct stachio_rank **out_ranks) {
    const struct stachio_db *db = query->db;
    const int n = db->net ? sx_net_size(db->net) : 0;
    struct stachio_rank *ranks = SX_ARENA_ARRAY(&query->arena, n, struct stachio_rank);
    for (int r = 0; ranks && r < n; r++) {
        const struct sx_seat *seat = &db->seats[r];
        ranks[r] = (struct stachio_rank){seat->host, seat->pid, seat->device, seat->bus, seat->processors};
    }
    *out_ranks = ranks;
    return ranks ? n : 0;
}

/* NULL: there is none. */
static const char *copy_gds_reason(struct stachio_query *query) {
    char reason[SX_STORAGE_REASON_BYTES];
    if (!query->db->storage)
        return NULL;
    sx_storage_device_reason(query->db->storage, reason);
    return reason[0] ? sx_arena_format(&query->arena, "%s", reason) : NULL;
}

void stachio_query_report(struct stachio_query *query, struct stachio_report *out_report) {
    *out_report = (struct stachio_report){
        .engine = query->engine,
        .fallback_reason = query->reason,
        .device = query->engine == STACHIO_ENGINE_STACHIO ? sx_db_device(query->db) : "cpu",
        .device_reason = query->db->device.reason[0] ? query->db->device.reason : NULL,
        .threads = query->db->threads,
        .plan_seconds = query->plan_seconds,
        .execute_seconds = query->execute_seconds,
        .plan_known = query->has_plan && query->plan.is_known,
        .peak_memory_bytes = (int64_t)sx_pool_usage(query->db->pool).peak_bytes,
        .network = query->db->net ? query->db->network : NULL,
        .alone = query->is_alone,
    };
    if (query->db->backend->memory_usage)
        out_report->peak_device_memory_bytes = sx_db_peak_memory(query->db);
    out_report->n_ranks = copy_ranks(query, &out_report->ranks);
    stachio_query_progress(query, &out_report->progress);
    if (query->run && query->engine == STACHIO_ENGINE_STACHIO)
        out_report->n_operators = copy_operators(query);
    out_report->operators = query->operators;
    out_report->gds_reason = copy_gds_reason(query);
}
