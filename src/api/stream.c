#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/export.h"
#include "api/query.h"

/* An answer on its way to the caller. */
struct answer {
    struct stachio_query *query;
    struct sx_batch batch; /* in work */
    int64_t row;           /* of the batch: rows below are given */
    int64_t array;         /* of DuckDB's answer: the next to give */
    struct sx_error error;
};

static int error_code(enum sx_status status) {
    return status == SX_OK ? 0 : status == SX_OUT_OF_MEMORY ? ENOMEM : EIO;
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
    struct answer *answer = stream->private_data;
    return answer->error.text[0] ? answer->error.text : NULL;
}

static void release_stream(struct ArrowArrayStream *stream) {
    struct answer *answer = stream->private_data;
    sx_batch_release(&answer->batch);
    sx_query_release(answer->query);
    free(answer);
    stream->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out_schema) {
    struct answer *answer = stream->private_data;
    const struct sx_plan *root = answer->query->plan.root;
    return error_code(sx_export_schema(root->columns, root->n_columns, out_schema, &answer->error));
}

/* Sees to it that the batch has rows to give, unless the answer has ended. */
static enum sx_status refill(struct answer *answer) {
    if (answer->row < answer->batch.rows)
        return SX_OK;
    sx_batch_release(&answer->batch);
    answer->row = 0;
    return sx_run_next(answer->query->run, &answer->batch, &answer->error);
}

static enum sx_status next_array(struct answer *answer, struct ArrowArray *out_array) {
    SX_TRY(refill(answer));
    *out_array = (struct ArrowArray){0};
    if (!answer->batch.rows)
        return SX_OK;
    int64_t rows;
    SX_TRY(sx_export_rows(&answer->batch, answer->row, &rows, &answer->error));
    SX_TRY(sx_export_batch(answer->query->db, &answer->batch, answer->row, rows, out_array, &answer->error));
    answer->row += rows;
    return SX_OK;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out_array) {
    return error_code(next_array(stream->private_data, out_array));
}

static int get_duckdb_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out_schema) {
    struct answer *answer = stream->private_data;
    struct stachio_query *query = answer->query;
    return error_code(sx_duckdb_schema(query, &query->duckdb.schema, out_schema, &answer->error));
}

static int get_duckdb_next(struct ArrowArrayStream *stream, struct ArrowArray *out_array) {
    struct answer *answer = stream->private_data;
    struct sx_duckdb_answer *duckdb = &answer->query->duckdb;
    *out_array = (struct ArrowArray){0};
    if (answer->array == duckdb->n_arrays)
        return 0;
    struct ArrowArray *array = &duckdb->arrays[answer->array++];
    *out_array = *array;
    array->release = NULL;
    return 0;
}

enum stachio_status stachio_query_stream(struct stachio_query *query, struct ArrowArrayStream *out_stream,
                                         struct stachio_error *error) {
    bool is_duckdb = query->engine == STACHIO_ENGINE_DUCKDB;
    if (!query->succeeded || query->streamed || query->write)
        return sx_api_error(error, STACHIO_USAGE,
                            "the query has no answer to give: execute it first, take it once");
    struct answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        return sx_api_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the answer");
    query->streamed = true;
    answer->query = sx_query_retain(query);
    *out_stream = (struct ArrowArrayStream){
        .get_schema = is_duckdb ? get_duckdb_schema : get_schema,
        .get_next = is_duckdb ? get_duckdb_next : get_next,
        .get_last_error = get_last_error,
        .release = release_stream,
        .private_data = answer,
    };
    return STACHIO_OK;
}
