/* SQL text -> DuckDB's optimised plan as JSON -> the logical plan. */
#include <stdlib.h>
#include <string.h>

#include "plan/duckdb_handle.h"

/* Left out when planning:
 * column_lifetime, compressed_materialization, common_aggregate: leave operators' types stale, on which
 *   json_serialize_plan fails (and the engine prunes columns and shares aggregates itself);
 * common_subexpressions: programs share them anyway, and a cast stays beside the call that it was made for;
 * in_clause: makes joins of IN lists, which the engine has;
 * late_materialization, top_n_window_elimination, window_self_join, row_group_pruner, join_filter_pushdown,
 *   sampling_pushdown: make what the engine does otherwise, or not at all. */
#define PLANNING                                                                                   \
    "column_lifetime,compressed_materialization,common_aggregate,common_subexpressions,in_clause," \
    "late_materialization,top_n_window_elimination,window_self_join,row_group_pruner,"             \
    "join_filter_pushdown,sampling_pushdown"

/* For a query whose plan can't be serialised after all that. */
#define CAREFUL PLANNING ",statistics_propagation,duplicate_groups,sum_rewriter,common_subplan"

static const char *const planning = PLANNING, *const careful = CAREFUL;

/* ---- the plan as JSON ---- */

static enum sx_status run_serialize(struct sx_frontend *frontend, const char *sql, duckdb_result *out_result,
                                    struct sx_error *error) {
    if (!frontend->serialize &&
        duckdb_prepare(frontend->planner, "SELECT json_serialize_plan($1::VARCHAR, optimize := true)",
                       &frontend->serialize) != DuckDBSuccess) {
        enum sx_status status = sx_duckdb_error(error, duckdb_prepare_error(frontend->serialize));
        duckdb_destroy_prepare(&frontend->serialize);
        return status;
    }
    if (duckdb_bind_varchar(frontend->serialize, 1, sql) != DuckDBSuccess)
        return sx_error_set(error, SX_INTERNAL, "the query can't be given to DuckDB");
    if (duckdb_execute_prepared(frontend->serialize, out_result) != DuckDBSuccess)
        return sx_duckdb_query_error(frontend, error, duckdb_result_error(out_result), sql);
    return SX_OK;
}

/* json_serialize_plan reports failures within its answer: {"error": true, …}. */
static enum sx_status reported_error(const char *json, size_t length, struct sx_error *error) {
    static const char mark[] = "{\"error\":true";
    if (length < sizeof mark - 1 || strncmp(json, mark, sizeof mark - 1) != 0)
        return SX_OK;
    struct json_object *root = json_tokener_parse(json);
    const char *type = sx_json_text(root, "error_type"), *message = sx_json_text(root, "error_message");
    enum sx_status status = sx_duckdb_status(type, message);
    if (strstr(message, "CSVReaderSerialize"))
        status = sx_error_set(error, SX_UNSUPPORTED, "table function read_csv");
    else if (status == SX_OUT_OF_MEMORY || status == SX_CANCELLED)
        status = sx_duckdb_failure(error, type, message);
    else
        status =
            sx_error_set(error, SX_UNSUPPORTED, "DuckDB can't give the plan (%s: %.300s)", type, message);
    json_object_put(root);
    return status;
}

/* With the names of the answer's columns. */
static enum sx_status convert(struct sx_frontend *frontend, const char *json, size_t length,
                              const char *const *names, int32_t n_names, struct sx_query_plan *out_plan,
                              struct sx_error *error) {
    struct sx_table_files *tables = calloc((size_t)frontend->n_tables + 1, sizeof *tables);
    if (!tables)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the plan");
    for (int i = 0; i < frontend->n_tables; i++)
        tables[i] = (struct sx_table_files){
            frontend->tables[i].name, (const char *const *)frontend->tables[i].files,
            frontend->tables[i].n_files, frontend->tables[i].parts, frontend->tables[i].stand_in};
    enum sx_status status =
        sx_duckdb_convert(json, length, tables, frontend->n_tables, names, n_names, out_plan, error);
    free(tables);
    return status;
}

static enum sx_status convert_result(struct sx_frontend *frontend, duckdb_result *result,
                                     const struct sx_binding *binding, struct sx_query_plan *out_plan,
                                     struct sx_error *error) {
    duckdb_data_chunk chunk = duckdb_fetch_chunk(*result);
    char *json = NULL;
    enum sx_status status = SX_OK;
    if (!chunk || duckdb_data_chunk_get_size(chunk) != 1)
        SX_GO(sx_error_set(error, SX_INTERNAL, "DuckDB gave no plan"));
    duckdb_string_t *text = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, 0));
    const size_t length = duckdb_string_t_length(*text);
    json = malloc(length + 1);
    if (!json)
        SX_GO(sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the plan"));
    memcpy(json, duckdb_string_t_data(text), length);
    json[length] = '\0';
    SX_GO(reported_error(json, length, error));
    SX_GO(convert(frontend, json, length, binding->names, binding->n_names, out_plan, error));
    if (!out_plan->names_files)
        sx_plan_memo_keep(frontend, binding, json, length);
out:
    free(json);
    duckdb_destroy_data_chunk(&chunk);
    return status;
}

/* With the optimisers that are set. */
static enum sx_status plan_query(struct sx_frontend *frontend, struct sx_binding *binding,
                                 struct sx_query_plan *out_plan, struct sx_error *error) {
    duckdb_result result = {0};
    enum sx_status status = run_serialize(frontend, binding->sql, &result, error);
    if (status == SX_OK)
        status = sx_binding_wait(binding);
    if (status == SX_OK)
        status = convert_result(frontend, &result, binding, out_plan, error);
    duckdb_destroy_result(&result);
    return status;
}

static enum sx_status plan_carefully(struct sx_frontend *frontend, struct sx_binding *binding,
                                     struct sx_query_plan *out_plan) {
    struct sx_error ignored = {0};
    SX_TRY(sx_duckdb_set_optimizers(frontend, careful, &ignored));
    return plan_query(frontend, binding, out_plan, &ignored);
}

/* Most of DuckDB's own failures come from an optimiser that leaves types stale. */
static bool may_be_careful(enum sx_status status, const struct sx_error *error) {
    return status == SX_INTERNAL || (status == SX_UNSUPPORTED && strstr(error->text, "can't give the plan"));
}

/* The first query after the one that was planned has it made; one that changes its plan, each time. */
static enum sx_status use_known(struct sx_frontend *frontend, struct sx_plan_text *known,
                                enum sx_plan_for purpose, struct sx_query_plan *out_plan,
                                struct sx_error *error) {
    struct sx_query_plan made = {0};
    if (!known->shared || purpose == SX_PLAN_TO_CHANGE) {
        SX_TRY(convert(frontend, known->json, known->length_bytes, (const char *const *)known->names,
                       known->n_names, &made, error));
        made.is_known = true;
        if (purpose == SX_PLAN_TO_READ)
            known->shared = sx_shared_plan_create(&made);
    }
    if (known->shared && purpose == SX_PLAN_TO_READ)
        sx_shared_plan_use(known->shared, out_plan);
    else
        *out_plan = made;
    return SX_OK;
}

enum sx_status sx_frontend_plan_known(struct sx_frontend *frontend, const char *sql, enum sx_plan_for purpose,
                                      struct sx_query_plan *out_plan, bool *out_known,
                                      struct sx_error *error) {
    *out_known = false;
    SX_TRY(sx_session_check(frontend, sql, error));
    struct sx_plan_text *known = sx_plan_memo_find(frontend, sql);
    if (!known)
        return SX_OK;
    SX_TRY(use_known(frontend, known, purpose, out_plan, error));
    *out_known = true;
    return SX_OK;
}

enum sx_status sx_frontend_plan_distributed(struct sx_frontend *frontend, const char *sql, uint64_t setting,
                                            struct sx_query_plan *out_plan, bool *out_known,
                                            struct sx_error *error) {
    *out_known = false;
    SX_TRY(sx_session_check(frontend, sql, error));
    const struct sx_plan_text *known = sx_plan_memo_find(frontend, sql);
    if (!known || !known->distributed || known->setting != setting)
        return SX_OK;
    sx_shared_plan_use(known->distributed, out_plan);
    out_plan->is_known = true;
    *out_known = true;
    return SX_OK;
}

void sx_frontend_keep_distributed(struct sx_frontend *frontend, const char *sql, uint64_t setting,
                                  struct sx_query_plan *plan) {
    struct sx_plan_text *known = sx_plan_memo_find(frontend, sql);
    struct sx_shared_plan *shared = known ? sx_shared_plan_create(plan) : NULL;
    if (!shared)
        return;
    sx_shared_plan_use(shared, plan);
    sx_shared_plan_release(known->distributed);
    known->distributed = shared;
    known->setting = setting;
}

/* Binding and planning, which binds once more, go on at the same time. What binding finds comes first: it is
 * about what was written. */
enum sx_status sx_frontend_plan(struct sx_frontend *frontend, const char *sql, struct sx_query_plan *out_plan,
                                struct sx_error *error) {
    struct sx_binding binding;
    struct sx_error first = {0};
    SX_TRY(sx_session_check(frontend, sql, error));
    SX_TRY(sx_duckdb_make_views(frontend, sql, SX_VIEWS_FOR_PLANNING, error));
    /* settings of the whole database are not changed while something is bound */
    SX_TRY(sx_duckdb_set_optimizers(frontend, planning, error));
    enum sx_status status = sx_binding_begin(frontend, sql, &binding);
    if (status == SX_OK)
        status = plan_query(frontend, &binding, out_plan, &first);
    if (sx_binding_wait(&binding) != SX_OK) {
        status = binding.status;
        *error = binding.error;
    } else if (may_be_careful(status, &first) && plan_carefully(frontend, &binding, out_plan) == SX_OK) {
        status = SX_OK;
    } else if (status != SX_OK) {
        status = sx_error_set(error, status, "%s", first.text);
    }
    sx_binding_release(&binding);
    return status;
}
