/* What statements that DuckDB has run leave for those after them. */
#include <string.h>

#include "base/arrow.h"
#include "plan/duckdb_handle.h"

/* ---- what only DuckDB's runner knows ---- */

/* Settings that are not in a plan: the parser's, the functions', and those of operators. */
static const char settings[] =
    "SELECT CASE WHEN current_setting('integer_division') THEN 1"
    " WHEN NOT current_setting('ieee_floating_point_ops') THEN 2"
    " WHEN current_setting('default_collation') <> '' THEN 3"
    " WHEN NOT current_setting('scalar_subquery_error_on_multiple_rows') THEN 4 ELSE 0 END::INTEGER";
static const char *const reasons[] = {NULL, "setting integer_division", "setting ieee_floating_point_ops",
                                      "setting default_collation",
                                      "setting scalar_subquery_error_on_multiple_rows"};

static enum sx_status look_at_settings(struct sx_frontend *frontend, struct sx_error *error) {
    duckdb_result result = {0};
    enum sx_status status = SX_OK;
    if (duckdb_query(frontend->planner, settings, &result) != DuckDBSuccess)
        status = sx_duckdb_error(error, duckdb_result_error(&result));
    duckdb_data_chunk chunk = status == SX_OK ? duckdb_fetch_chunk(result) : NULL;
    if (chunk) {
        const int32_t *reason = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, 0));
        frontend->foreign_setting = reasons[*reason];
    }
    duckdb_destroy_data_chunk(&chunk);
    duckdb_destroy_result(&result);
    return status;
}

enum sx_status sx_session_check(const struct sx_frontend *frontend, const char *sql, struct sx_error *error) {
    const char *reason = frontend->in_transaction   ? "a statement within a transaction"
                         : frontend->has_own_values ? "values that only DuckDB's session has"
                                                    : frontend->foreign_setting;
    if (!reason)
        return SX_OK;
    SX_TRY(sx_statement_refuse_temporary(sql, error));
    return sx_error_set(error, SX_UNSUPPORTED, "%s", reason);
}

/* ---- after a statement ---- */

enum sx_status sx_session_follow(struct sx_frontend *frontend, const char *sql, struct sx_error *error) {
    if (sx_statement_begins_transaction(sql))
        frontend->in_transaction = true;
    else if (sx_statement_ends_transaction(sql))
        frontend->in_transaction = false;
    if (!sx_statement_sets_session(sql))
        return SX_OK;
    frontend->has_own_values |= frontend->in_transaction || sx_statement_sets_by_chance(sql);
    if (frontend->has_own_values)
        return SX_OK;
    frontend->optimizers = NULL;
    SX_TRY(sx_duckdb_execute(frontend->binder, sql, error));
    SX_TRY(sx_duckdb_execute(frontend->planner, sql, error));
    return look_at_settings(frontend, error);
}

void sx_session_failed(struct sx_frontend *frontend, const char *sql, const struct sx_error *error) {
    if (sx_statement_ends_transaction(sql) &&
        (strstr(error->text, "ailed to commit") || strstr(error->text, "no transaction is active")))
        frontend->in_transaction = false;
}

/* ---- other processes ---- */

bool sx_frontend_tells(const char *sql) {
    return sx_statement_sets_session(sql) || !sx_statement_leaves_nothing(sql);
}

void sx_frontend_follow(struct sx_frontend *frontend, const char *sql) {
    struct ArrowArrayStream stream = {0};
    struct sx_error ignored = {0}; /* of a view of a table that only the other one has, say */
    sx_plan_memo_clear(&frontend->memo);
    frontend->has_objects |= !sx_statement_leaves_nothing(sql);
    if ((sx_statement_sets_session(sql) || sx_statement_names(sql)) &&
        sx_frontend_run(frontend, sql, &stream, &ignored) == SX_OK)
        stream.release(&stream);
}

bool sx_frontend_may_change(const struct sx_frontend *frontend, const char *sql) {
    return frontend->has_objects || sx_statement_may_change(sql);
}
