/* DuckDB as the engine, its answer as an Arrow stream. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arrow.h"
#include "plan/duckdb_handle.h"

struct stream {
    duckdb_result result;
    duckdb_arrow_options options;
    duckdb_logical_type *types;
    const char **names; /* borrowed from the result */
    idx_t n_columns;
    struct sx_error error;
};

static void release_stream_state(struct stream *stream) {
    if (!stream)
        return;
    for (idx_t i = 0; stream->types && i < stream->n_columns; i++)
        duckdb_destroy_logical_type(&stream->types[i]);
    free(stream->types);
    free(stream->names);
    duckdb_destroy_arrow_options(&stream->options);
    duckdb_destroy_result(&stream->result);
    free(stream);
}

/* What the stream's calls return; see sx_frontend_run. */
static int error_code(enum sx_status status) {
    switch (status) {
    case SX_OK: return 0;
    case SX_OUT_OF_MEMORY: return ENOMEM;
    case SX_CANCELLED: return ECANCELED;
    case SX_FILE: return EIO;
    default: return EINVAL;
    }
}

static int finish_call(struct stream *stream, duckdb_error_data *data) {
    if (duckdb_error_data_has_error(*data))
        (void)sx_duckdb_error(&stream->error, duckdb_error_data_message(*data));
    duckdb_destroy_error_data(data);
    return error_code(stream->error.status);
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out_schema) {
    struct stream *stream = self->private_data;
    duckdb_error_data data =
        duckdb_to_arrow_schema(stream->options, stream->types, stream->names, stream->n_columns, out_schema);
    return finish_call(stream, &data);
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out_array) {
    struct stream *stream = self->private_data;
    memset(out_array, 0, sizeof *out_array);
    if (stream->error.status != SX_OK)
        return error_code(stream->error.status);
    duckdb_data_chunk chunk = duckdb_fetch_chunk(stream->result);
    if (!chunk) {
        const char *message = duckdb_result_error(&stream->result);
        if (!message || !*message)
            return 0;
        return error_code(sx_duckdb_error(&stream->error, message));
    }
    duckdb_error_data data = duckdb_data_chunk_to_arrow(stream->options, chunk, out_array);
    duckdb_destroy_data_chunk(&chunk);
    return finish_call(stream, &data);
}

static const char *get_last_error(struct ArrowArrayStream *self) {
    struct stream *stream = self->private_data;
    return stream->error.status == SX_OK ? NULL : stream->error.text;
}

static void release(struct ArrowArrayStream *self) {
    release_stream_state(self->private_data);
    *self = (struct ArrowArrayStream){0};
}

static enum sx_status describe_result(struct stream *stream, struct sx_error *error) {
    stream->n_columns = duckdb_column_count(&stream->result);
    stream->options = duckdb_result_get_arrow_options(&stream->result);
    stream->types = calloc(stream->n_columns + 1, sizeof(duckdb_logical_type));
    stream->names = calloc(stream->n_columns + 1, sizeof(char *));
    if (!stream->types || !stream->names)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the answer");
    for (idx_t i = 0; i < stream->n_columns; i++) {
        stream->types[i] = duckdb_column_logical_type(&stream->result, i);
        stream->names[i] = duckdb_column_name(&stream->result, i);
    }
    return SX_OK;
}

/* Statement number `at`. Streaming: chunks are made when they are fetched. */
static enum sx_status execute(struct sx_frontend *frontend, duckdb_extracted_statements statements, idx_t at,
                              const char *sql, duckdb_result *out_result, struct sx_error *error) {
    duckdb_prepared_statement statement = NULL;
    duckdb_pending_result pending = NULL;
    enum sx_status status = SX_OK;
    if (duckdb_prepare_extracted_statement(frontend->runner, statements, at, &statement) != DuckDBSuccess) {
        status = sx_duckdb_query_error(frontend, error, duckdb_prepare_error(statement), sql);
        goto out;
    }
    if (duckdb_pending_prepared_streaming(statement, &pending) != DuckDBSuccess) {
        status = sx_duckdb_query_error(frontend, error, duckdb_pending_error(pending), sql);
        goto out;
    }
    if (duckdb_execute_pending(pending, out_result) != DuckDBSuccess)
        status = sx_duckdb_query_error(frontend, error, duckdb_result_error(out_result), sql);
out:
    duckdb_destroy_pending(&pending);
    duckdb_destroy_prepare(&statement);
    return status;
}

/* Of the statements that DuckDB made of one, only the last has an answer. */
static enum sx_status execute_all(struct sx_frontend *frontend, duckdb_extracted_statements statements,
                                  idx_t n, const char *sql, duckdb_result *out_result,
                                  struct sx_error *error) {
    for (idx_t i = 0; i + 1 < n; i++) {
        duckdb_result result = {0};
        enum sx_status status = execute(frontend, statements, i, sql, &result, error);
        duckdb_destroy_result(&result);
        SX_TRY(status);
    }
    return execute(frontend, statements, n - 1, sql, out_result, error);
}

enum sx_status sx_frontend_run(struct sx_frontend *frontend, const char *sql,
                               struct ArrowArrayStream *out_stream, struct sx_error *error) {
    duckdb_extracted_statements statements = NULL;
    enum sx_status status = SX_OK;
    SX_TRY(sx_duckdb_refuse_parts(frontend, sql, error));
    frontend->has_objects |= !sx_statement_leaves_nothing(sql);
    if (!sx_statement_is_query(sql))
        sx_plan_memo_clear(&frontend->memo);
    SX_TRY(sx_duckdb_make_views(frontend, sql, SX_VIEWS_FOR_RUNNING, error));
    SX_TRY(sx_duckdb_set_optimizers(frontend, "", error));
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the answer");
    const idx_t n = duckdb_extract_statements(frontend->runner, sql, &statements);
    if (n == 0 && duckdb_extract_statements_error(statements))
        SX_GO(sx_duckdb_query_error(frontend, error, duckdb_extract_statements_error(statements), sql));
    if (n == 0)
        SX_GO(sx_error_set(error, SX_QUERY, "the query is empty"));
    if (n > 1 && sx_statement_check_several(sql, (int)n, error) == SX_QUERY)
        SX_GO(SX_QUERY);
    status = execute_all(frontend, statements, n, sql, &stream->result, error);
    if (status != SX_OK)
        sx_session_failed(frontend, sql, error);
    SX_GO(status);
    SX_GO(sx_session_follow(frontend, sql, error));
    SX_GO(describe_result(stream, error));
    *out_stream = (struct ArrowArrayStream){.get_schema = get_schema,
                                            .get_next = get_next,
                                            .get_last_error = get_last_error,
                                            .release = release,
                                            .private_data = stream};
    stream = NULL;
out:
    duckdb_destroy_extracted(&statements);
    release_stream_state(stream);
    return status;
}
