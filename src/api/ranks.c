#include "api/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/parts.h"
#include "api/ranks_files.h"
#include "base/hash_table.h"
#include "net/net.h"

/* What rank 0 says: the kind, then texts that are zero-terminated. */
enum command {
    COMMAND_STOP,
    COMMAND_TABLE,
    COMMAND_PARTS,
    COMMAND_PLAN,
    COMMAND_QUERY,
    COMMAND_EXCHANGE,
    COMMAND_JOIN,
    COMMAND_PLACE,
    COMMAND_SESSION,
    COMMAND_WAIT
};

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a message to the ranks");
}

enum sx_status sx_ranks_meet(struct stachio_db *db, enum sx_status status, struct sx_error *error) {
    struct sx_error failure = {0};
    if (status != SX_OK)
        sx_net_fail(db->net, error);
    if (sx_net_barrier(db->net, NULL, &failure) == SX_OK || status != SX_OK)
        return status;
    *error = failure;
    return failure.status;
}

/* Says it, or fails. Where it is the net that has failed, all the others meet, too (see follow_one). */
static enum sx_status tell(struct stachio_db *db, enum command command, const char *const *texts, int n_texts,
                           struct sx_error *error) {
    size_t bytes = 1;
    for (int i = 0; i < n_texts; i++)
        bytes += strlen(texts[i]) + 1;
    char *message = malloc(bytes);
    if (!message)
        return no_memory(error);
    char *at = message;
    *at++ = (char)command;
    for (int i = 0; i < n_texts; i++) {
        const size_t length = strlen(texts[i]) + 1;
        memcpy(at, texts[i], length);
        at += length;
    }
    const void *data = message;
    enum sx_status status = sx_net_broadcast(db->net, 0, NULL, &data, &bytes, NULL, error);
    free(message);
    return sx_net_check(db->net, NULL) == SX_OK || status == SX_OK ? status
                                                                   : sx_ranks_meet(db, status, error);
}

/* ---- queries ---- */

struct agreed {
    uint64_t hash;       /* of the plan */
    uint64_t files_hash; /* of what it reads */
    size_t memory_bytes; /* of the device */
    bool planned;
};

/* Only rank 0 has a last pipeline where the answer is written. */
static struct agreed own_plan(const struct stachio_query *query, const struct sx_ranks_files *files) {
    const uint64_t hash = sx_hash_mix(query->plan.text_hash, sx_run_hash(query->run, query->write != NULL));
    return (struct agreed){hash, files->hash, query->db->backend->traits.memory_bytes, true};
}

/* Why one of the ranks has no plan, for all of them. `own`: SX_OK where it has one. */
static enum sx_status gather_reason(struct stachio_query *query, const struct sx_error *own,
                                    struct sx_error *out_verdict, struct sx_error *error) {
    struct sx_net *net = query->db->net;
    struct sx_arena arena = {0};
    struct sx_error *all = SX_ARENA_ARRAY(&arena, sx_net_size(net), struct sx_error);
    enum sx_status status =
        all ? sx_net_gather(net, own, sizeof *own, all, &query->cancel, error) : no_memory(error);
    for (int r = 0; status == SX_OK && out_verdict->status == SX_OK && r < sx_net_size(net); r++)
        if (all[r].status != SX_OK)
            (void)sx_error_set(out_verdict, all[r].status, "%s: %.1900s", sx_net_rank_name(net, r),
                               all[r].text);
    sx_arena_release(&arena);
    return status;
}

static void compare_plans(struct stachio_query *query, const struct agreed *all,
                          struct sx_error *out_verdict) {
    struct sx_net *net = query->db->net;
    size_t memory_bytes = all[0].memory_bytes;
    for (int r = 0; r < sx_net_size(net); r++) {
        memory_bytes = all[r].memory_bytes < memory_bytes ? all[r].memory_bytes : memory_bytes;
        if (out_verdict->status == SX_OK && all[r].hash != all[0].hash)
            (void)sx_error_set(
                out_verdict, SX_USAGE,
                "%s has another plan for the query than rank 0: all ranks need the same version, "
                "options and tables",
                sx_net_rank_name(net, r));
    }
    sx_run_set_least_memory(query->run, memory_bytes);
}

/* Exchanges only meet when all ranks run the same pipelines in the same order. This rank has a plan
 * (`planned`: SX_OK), or `error` says why not. *out_verdict is the same on all ranks: SX_OK, or why the query
 * can't run. */
static enum sx_status agree(struct stachio_query *query, enum sx_status planned, struct sx_error *out_verdict,
                            struct sx_error *error) {
    struct sx_net *net = query->db->net;
    struct sx_arena arena = {0};
    struct sx_error reason = {0};
    if (planned != SX_OK) {
        reason = *error;
        reason.status = planned;
    }
    enum sx_status status = SX_OK;
    struct sx_ranks_files files = {0};
    if (planned == SX_OK)
        SX_GO(sx_ranks_list_files(query, &arena, &files, error));
    const struct agreed own = planned == SX_OK ? own_plan(query, &files) : (struct agreed){0};
    struct agreed *all = SX_ARENA_ARRAY(&arena, sx_net_size(net), struct agreed);
    SX_GO(all ? sx_net_gather(net, &own, sizeof own, all, &query->cancel, error) : no_memory(error));
    bool all_planned = true, same_files = true;
    for (int r = 0; r < sx_net_size(net); r++) {
        all_planned &= all[r].planned;
        same_files &= all[r].files_hash == all[0].files_hash;
    }
    if (all_planned)
        compare_plans(query, all, out_verdict);
    else
        SX_GO(gather_reason(query, &reason, out_verdict, error));
    query->differs = out_verdict->status != SX_OK && sx_frontend_may_change(query->db->frontend, query->sql);
    if (out_verdict->status == SX_OK && !same_files)
        SX_GO(sx_ranks_compare_files(query, &files, out_verdict, error));
out:
    sx_arena_release(&arena);
    return status;
}

static enum sx_status run_together(struct stachio_query *query, enum sx_status status,
                                   struct sx_error *error) {
    struct sx_error verdict = {0};
    if (status == SX_OK || status == SX_QUERY || status == SX_UNSUPPORTED)
        status = agree(query, status, &verdict, error);
    if (status == SX_OK && verdict.status == SX_OK)
        status = sx_parts_explain(query->db->parts, sx_run_execute(query->run, error), error);
    status = sx_ranks_meet(query->db, status, error);
    if (status == SX_OK && verdict.status != SX_OK)
        *error = verdict;
    return status == SX_OK ? verdict.status : status;
}

static enum sx_status tell_query(struct stachio_query *query, enum command command, struct sx_error *error) {
    char broadcast_bytes[24];
    snprintf(broadcast_bytes, sizeof broadcast_bytes, "%" PRId64, query->broadcast_bytes);
    return tell(query->db, command, (const char *const[]){query->sql, broadcast_bytes}, 2, error);
}

enum sx_status sx_ranks_plan(struct stachio_query *query, struct sx_error *error) {
    const enum sx_status status = tell_query(query, COMMAND_PLAN, error);
    if (status != SX_RANK_LOST)
        return status;
    *error = (struct sx_error){0};
    return SX_OK;
}

enum sx_status sx_ranks_execute(struct stachio_query *query, struct sx_error *error) {
    SX_TRY(tell_query(query, COMMAND_QUERY, error));
    return run_together(query, SX_OK, error);
}

static void drop_ahead(struct stachio_db *db) {
    struct stachio_query *query = db->ahead;
    db->ahead = NULL;
    sx_query_release(query);
}

static enum sx_status create_query(struct stachio_db *db, const char *const *texts,
                                   struct stachio_query **out_query, struct sx_error *error) {
    struct stachio_error failure = {0};
    if (stachio_query_create(db, texts[0], out_query, &failure) != STACHIO_OK)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "%.2000s", failure.text);
    (*out_query)->broadcast_bytes = strtoll(texts[1], NULL, 10);
    (*out_query)->runners = SX_RUNNERS_ALL;
    if (db->follow_trace)
        (*out_query)->trace = sx_trace_retain(db->follow_trace);
    (*out_query)->wanted = STACHIO_ENGINE_STACHIO; /* whether DuckDB answers is for rank 0 to say */
    return SX_OK;
}

/* Rank 0 may run it next, or not. If planning fails it will be told when that happens. */
static void follow_plan(struct stachio_db *db, const char *const *texts) {
    struct sx_error error = {0};
    struct stachio_query *query = NULL;
    if (create_query(db, texts, &query, &error) == SX_OK && sx_query_plan(query, &error) == SX_OK)
        db->ahead = query;
    else
        sx_query_release(query);
}

/* The query that was planned ahead; NULL: it was another one. */
static struct stachio_query *take_ahead(struct stachio_db *db, const char *const *texts) {
    struct stachio_query *query = db->ahead;
    if (!query || strcmp(query->sql, texts[0]) != 0 || query->broadcast_bytes != strtoll(texts[1], NULL, 10))
        return NULL;
    db->ahead = NULL;
    return query;
}

static void follow_query(struct stachio_db *db, const char *const *texts) {
    struct sx_error error = {0};
    struct stachio_query *query = take_ahead(db, texts);
    enum sx_status status = SX_OK;
    drop_ahead(db);
    if (!query)
        status = create_query(db, texts, &query, &error);
    if (!query) {
        (void)sx_ranks_meet(db, status, &error);
        return;
    }
    status = sx_query_plan(query, &error);
    (void)run_together(query, status, &error);
    sx_query_release(query);
}

/* ---- statements that DuckDB has run ---- */

enum sx_status sx_ranks_session(struct stachio_db *db, const char *sql, struct sx_error *error) {
    SX_TRY(tell(db, COMMAND_SESSION, (const char *const[]){sql}, 1, error));
    return sx_ranks_meet(db, SX_OK, error);
}

static void follow_session(struct stachio_db *db, const char *sql) {
    struct sx_error error = {0};
    sx_frontend_follow(db->frontend, sql);
    (void)sx_ranks_meet(db, SX_OK, &error);
}

/* ---- tables ---- */

enum sx_status sx_ranks_add_table(struct stachio_db *db, const char *name, const char *const *paths,
                                  int n_paths, struct sx_error *error) {
    if (!db->net)
        return SX_OK;
    const char **texts = calloc((size_t)n_paths + 1, sizeof *texts);
    if (!texts)
        return no_memory(error);
    texts[0] = name;
    memcpy(texts + 1, paths, (size_t)n_paths * sizeof *texts);
    enum sx_status status = tell(db, COMMAND_TABLE, texts, n_paths + 1, error);
    free(texts);
    return status == SX_OK ? sx_ranks_meet(db, SX_OK, error) : status;
}

static void follow_table(struct stachio_db *db, const char *const *texts, int n_texts) {
    struct sx_error error = {0};
    enum sx_status status =
        sx_frontend_add_table(db->frontend, texts[0], texts + 1, n_texts - 1, NULL, &error);
    if (status == SX_OK)
        sx_parts_drop(db->parts, texts[0]);
    (void)sx_ranks_meet(db, status, &error);
}

/* A table has a name. */
enum sx_status sx_ranks_add_parts(struct stachio_db *db, const char *name, const char *const *patterns,
                                  int n_patterns, struct sx_error *error) {
    const char **texts = calloc((size_t)n_patterns + 1, sizeof *texts);
    if (!texts)
        return no_memory(error);
    texts[0] = name ? name : "";
    memcpy(texts + 1, patterns, (size_t)n_patterns * sizeof *texts);
    enum sx_status status = tell(db, COMMAND_PARTS, texts, n_patterns + 1, error);
    free(texts);
    return status == SX_OK ? sx_ranks_meet(db, sx_parts_add(db, name, patterns, n_patterns, error), error)
                           : status;
}

static void follow_parts(struct stachio_db *db, const char *const *texts, int n_texts) {
    struct sx_error error = {0};
    const char *name = *texts[0] ? texts[0] : NULL;
    (void)sx_ranks_meet(db, sx_parts_add(db, name, texts + 1, n_texts - 1, &error), &error);
}

/* ---- benchmarks ---- */

/* Of the devices' memory, where it travels. */
static enum sx_status run_exchange(struct stachio_db *db, const struct sx_bench_exchange_options *options,
                                   struct sx_bench_exchange_result *out_result, struct sx_error *error) {
    const struct sx_backend *backend = db->backend;
    struct sx_bench_exchange_options given = *options;
    if (sx_net_has_link(db->net))
        SX_TRY(backend->ops.stream_create(backend, db->pool, NULL, &given.stream, error));
    const enum sx_status status = sx_bench_exchange(&given, out_result, error);
    if (given.stream)
        backend->ops.stream_destroy(given.stream);
    return status;
}

enum sx_status sx_ranks_exchange(struct stachio_db *db, const struct sx_bench_exchange_options *options,
                                 struct sx_bench_exchange_result *out_result, struct sx_error *error) {
    char text[96];
    snprintf(text, sizeof text, "%" PRId64 " %" PRId64 " %d", options->message_bytes, options->rank_bytes,
             options->runs);
    SX_TRY(tell(db, COMMAND_EXCHANGE, (const char *const[]){text}, 1, error));
    return sx_ranks_meet(db, run_exchange(db, options, out_result, error), error);
}

static void follow_exchange(struct stachio_db *db, const char *text) {
    struct sx_bench_exchange_options options = {.net = db->net, .pool = db->pool, .shuffle = db->shuffle};
    struct sx_bench_exchange_result ignored;
    struct sx_error error = {0};
    char *at;
    options.message_bytes = strtoll(text, &at, 10);
    options.rank_bytes = strtoll(at, &at, 10);
    options.runs = (int)strtol(at, &at, 10);
    (void)sx_ranks_meet(db, run_exchange(db, &options, &ignored, &error), &error);
}

enum sx_status sx_ranks_join(struct stachio_db *db, const struct stachio_bench_join_options *options,
                             struct sx_bench_join_result *out_result, struct sx_error *error) {
    char text[SX_BENCH_JOIN_TEXT];
    sx_bench_join_text(options, text);
    SX_TRY(tell(db, COMMAND_JOIN, (const char *const[]){text}, 1, error));
    return sx_bench_join_run(db, options, out_result, error);
}

static void follow_join(struct stachio_db *db, const char *text) {
    struct sx_bench_join_result ignored = {0};
    struct sx_error error = {0};
    struct stachio_bench_join_options options;
    sx_bench_join_parse(text, &options);
    (void)sx_bench_join_run(db, &options, &ignored, &error);
    sx_bench_join_release(&ignored);
}

/* ---- topology ---- */

enum sx_status sx_ranks_place(struct stachio_db *db, const struct stachio_topology *topology,
                              struct sx_placement *out_placements, struct sx_error *error) {
    SX_TRY(tell(db, COMMAND_PLACE, (const char *const[]){""}, 1, error));
    return sx_ranks_meet(db, sx_place(db->net, topology, out_placements, error), error);
}

static void follow_place(struct stachio_db *db) {
    struct sx_arena arena = {0};
    struct sx_error error = {0};
    struct stachio_topology topology;
    struct sx_placement *all = SX_ARENA_ARRAY(&arena, sx_net_size(db->net), struct sx_placement);
    enum sx_status status = all ? sx_discover(&arena, &topology, &error) : no_memory(&error);
    if (status == SX_OK)
        status = sx_place(db->net, &topology, all, &error);
    (void)sx_ranks_meet(db, status, &error);
    sx_arena_release(&arena);
}

enum sx_status sx_ranks_wait(struct stachio_db *db, struct sx_error *error) {
    SX_TRY(tell(db, COMMAND_WAIT, NULL, 0, error));
    return sx_ranks_meet(db, SX_OK, error);
}

static void follow_wait(struct stachio_db *db) {
    struct sx_error error = {0};
    (void)sx_ranks_meet(db, SX_OK, &error);
}

void sx_ranks_tell_stop(struct stachio_db *db) {
    struct sx_error error = {0};
    if (tell(db, COMMAND_STOP, NULL, 0, &error) != SX_OK)
        (void)tell(db, COMMAND_STOP, NULL, 0, &error); /* who can't hear it has ended */
}

/* ---- following ---- */

static const char *const *split_texts(struct sx_arena *arena, const char *message, size_t bytes, int *out_n) {
    int n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += message[i] == '\0';
    const char **texts = SX_ARENA_ARRAY(arena, n, const char *);
    for (int i = 0; texts && i < n; i++) {
        texts[i] = message;
        message += strlen(message) + 1;
    }
    *out_n = n;
    return texts;
}

/* False: there is no memory to read it. */
static bool follow_command(struct stachio_db *db, struct sx_arena *arena, const char *message, size_t bytes) {
    int n_texts;
    const char *const *texts = split_texts(arena, message + 1, bytes - 1, &n_texts);
    if (!texts)
        return false;
    if (message[0] != COMMAND_QUERY) /* tables may change */
        drop_ahead(db);
    switch ((enum command)message[0]) {
    case COMMAND_TABLE: follow_table(db, texts, n_texts); break;
    case COMMAND_PARTS: follow_parts(db, texts, n_texts); break;
    case COMMAND_EXCHANGE: follow_exchange(db, texts[0]); break;
    case COMMAND_JOIN: follow_join(db, texts[0]); break;
    case COMMAND_PLACE: follow_place(db); break;
    case COMMAND_SESSION: follow_session(db, texts[0]); break;
    case COMMAND_WAIT: follow_wait(db); break;
    case COMMAND_PLAN: follow_plan(db, texts); break;
    case COMMAND_QUERY: follow_query(db, texts); break;
    case COMMAND_STOP: break;
    }
    return true;
}

/* False: there is no more to follow.
 *
 * A command may fail anywhere before this rank has heard it: FAIL frames of rank 0, and of ranks that were
 * faster, come behind and before rank 0's BROADCAST, and a failure of this epoch may have come while this
 * rank was in the last barrier. Whether the command is there, or still comes, then makes no difference: it
 * has failed, on every rank, and every rank's next step is the barrier that ends the epoch, which drops
 * what was not heard. */
static bool follow_one(struct stachio_db *db) {
    struct sx_arena arena = {0};
    struct sx_error error = {0};
    const void *data = NULL;
    size_t bytes = 0;
    enum sx_status status = sx_net_broadcast(db->net, 0, &arena, &data, &bytes, NULL, &error);
    const bool is_stop = status == SX_OK && *(const char *)data == COMMAND_STOP;
    if (status == SX_OK && !is_stop && !follow_command(db, &arena, data, bytes))
        status = no_memory(&error);
    if (status != SX_OK)
        (void)sx_ranks_meet(db, status, &error);
    sx_arena_release(&arena);
    return !is_stop && sx_net_check(db->net, NULL) != SX_RANK_LOST;
}

void sx_ranks_follow(struct stachio_db *db) {
    while (follow_one(db))
        ;
    drop_ahead(db);
}
