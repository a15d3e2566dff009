/* Binding a query: the errors in what was written, and the names of the answer's columns. */
#include <stdlib.h>

#include "base/signals.h"
#include "plan/duckdb_handle.h"

static enum sx_status read_names(struct sx_binding *binding, duckdb_prepared_statement statement) {
    const idx_t n = duckdb_prepared_statement_column_count(statement);
    binding->names = calloc(n + 1, sizeof(char *));
    bool complete = binding->names != NULL && n <= SX_PLAN_MAX_COLUMNS;
    for (idx_t i = 0; complete && i < n; i++) {
        binding->names[i] = duckdb_prepared_statement_column_name(statement, i);
        complete = binding->names[i] != NULL;
        binding->n_names += complete ? 1 : 0;
    }
    if (!complete)
        return sx_error_set(&binding->error, SX_OUT_OF_MEMORY, "no memory for the columns' names");
    return SX_OK;
}

static enum sx_status check_statement(duckdb_prepared_statement statement, const char *sql,
                                      struct sx_error *error) {
    SX_TRY(sx_statement_check(sql, duckdb_prepared_statement_type(statement), error));
    if (duckdb_nparams(statement) > 0)
        return sx_error_set(error, SX_QUERY, "the query has parameters, which have no values here");
    return SX_OK;
}

static enum sx_status bind_statement(struct sx_binding *binding, duckdb_extracted_statements statements) {
    struct sx_frontend *frontend = binding->frontend;
    struct sx_error *error = &binding->error;
    duckdb_prepared_statement statement = NULL;
    enum sx_status status = SX_OK;
    if (duckdb_prepare_extracted_statement(frontend->binder, statements, 0, &statement) != DuckDBSuccess)
        status = sx_duckdb_query_error(frontend, error, duckdb_prepare_error(statement), binding->sql);
    if (status == SX_OK)
        status = check_statement(statement, binding->sql, error);
    if (status == SX_OK)
        status = read_names(binding, statement);
    duckdb_destroy_prepare(&statement);
    return status;
}

static enum sx_status bind(struct sx_binding *binding) {
    struct sx_frontend *frontend = binding->frontend;
    struct sx_error *error = &binding->error;
    duckdb_extracted_statements statements = NULL;
    const idx_t n = duckdb_extract_statements(frontend->binder, binding->sql, &statements);
    enum sx_status status;
    if (n == 1)
        status = bind_statement(binding, statements);
    else if (n > 1)
        status = sx_statement_check_several(binding->sql, (int)n, error);
    else if (duckdb_extract_statements_error(statements))
        status =
            sx_duckdb_query_error(frontend, error, duckdb_extract_statements_error(statements), binding->sql);
    else
        status = sx_error_set(error, SX_QUERY, "the query is empty");
    duckdb_destroy_extracted(&statements);
    return status;
}

static void *run_bind(void *argument) {
    struct sx_binding *binding = argument;
    binding->status = bind(binding);
    return NULL;
}

enum sx_status sx_binding_begin(struct sx_frontend *frontend, const char *sql,
                                struct sx_binding *out_binding) {
    *out_binding = (struct sx_binding){.frontend = frontend, .sql = sql};
    if (sx_statement_is_query(sql)) {
        sigset_t previous;
        sx_signals_block(&previous);
        out_binding->runs = pthread_create(&out_binding->thread, NULL, run_bind, out_binding) == 0;
        sx_signals_restore(&previous);
    }
    if (out_binding->runs)
        return SX_OK;
    (void)run_bind(out_binding);
    return out_binding->status;
}

enum sx_status sx_binding_wait(struct sx_binding *binding) {
    if (binding->runs)
        pthread_join(binding->thread, NULL);
    binding->runs = false;
    return binding->status;
}

void sx_binding_release(struct sx_binding *binding) {
    (void)sx_binding_wait(binding);
    for (int32_t i = 0; i < binding->n_names; i++)
        duckdb_free((void *)(uintptr_t)binding->names[i]);
    free(binding->names);
    *binding = (struct sx_binding){0};
}
