#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/query.h"
#include "api/watch.h"
#include "base/array.h"

void sx_duckdb_answer_release(struct sx_duckdb_answer *answer) {
    for (int64_t i = 0; i < answer->n_arrays; i++)
        if (answer->arrays[i].release)
            answer->arrays[i].release(&answer->arrays[i]);
    free(answer->arrays);
    if (answer->schema.release)
        answer->schema.release(&answer->schema);
    *answer = (struct sx_duckdb_answer){0};
}

static enum sx_status stream_failed(struct ArrowArrayStream *stream, int code, struct sx_error *error) {
    const char *text = stream->get_last_error(stream);
    const enum sx_status status = code == ENOMEM      ? SX_OUT_OF_MEMORY
                                  : code == ECANCELED ? SX_CANCELLED
                                  : code == EIO       ? SX_FILE
                                                      : SX_QUERY;
    return sx_error_set(error, status, "%s", text ? text : strerror(code));
}

/* Takes over `array`. */
static enum sx_status append_array(struct sx_duckdb_answer *answer, struct ArrowArray *array,
                                   struct sx_error *error) {
    struct ArrowArray *arrays =
        sx_array_grow(answer->arrays, sizeof *arrays, answer->n_arrays, &answer->capacity);
    if (!arrays) {
        array->release(array);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for DuckDB's answer");
    }
    answer->arrays = arrays;
    answer->arrays[answer->n_arrays++] = *array;
    return SX_OK;
}

static enum sx_status fetch_all(const struct stachio_query *query, struct ArrowArrayStream *stream,
                                struct sx_duckdb_answer *answer, struct sx_error *error) {
    int code = stream->get_schema(stream, &answer->schema);
    if (code)
        return stream_failed(stream, code, error);
    for (;;) {
        struct ArrowArray array = {0};
        code = stream->get_next(stream, &array);
        if (code)
            return stream_failed(stream, code, error);
        if (!array.release)
            return SX_OK;
        SX_TRY(append_array(answer, &array, error));
        if (atomic_load(&query->cancel))
            return SX_CANCELLED;
    }
}

static enum sx_status run_and_fetch(struct stachio_query *query, const char *sql,
                                    struct sx_duckdb_answer *answer, struct sx_error *error) {
    struct ArrowArrayStream stream = {0};
    SX_TRY(sx_frontend_run(query->db->frontend, sql, &stream, error));
    enum sx_status status = fetch_all(query, &stream, answer, error);
    stream.release(&stream);
    return status;
}

enum sx_status sx_duckdb_fetch(struct stachio_query *query, const char *sql,
                               struct sx_duckdb_answer *out_answer, struct sx_error *error) {
    struct sx_watch watch;
    struct sx_duckdb_answer answer = {0};
    SX_TRY(sx_watch_start(&watch, query->db->frontend, &query->cancel, &query->wake, error));
    enum sx_status status = run_and_fetch(query, sql, &answer, error);
    sx_watch_stop(&watch);
    status = sx_query_cancelled(query, status, error);
    if (status == SX_OK)
        *out_answer = answer;
    else
        sx_duckdb_answer_release(&answer);
    return status;
}

static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    if (schema->dictionary) {
        if (schema->dictionary->release)
            schema->dictionary->release(schema->dictionary);
        free(schema->dictionary);
    }
    sx_query_release(schema->private_data);
    schema->release = NULL;
}

/* A schema of its own that shares the texts of `schema`. */
static struct ArrowSchema *share_schema(struct stachio_query *query, const struct ArrowSchema *schema) {
    struct ArrowSchema *copy = calloc(1, sizeof *copy);
    struct sx_error error;
    if (copy && sx_duckdb_schema(query, schema, copy, &error) != SX_OK) {
        free(copy);
        return NULL;
    }
    return copy;
}

/* Children and dictionary of a schema that has none yet; false: no memory. */
static bool share_parts(struct stachio_query *query, const struct ArrowSchema *schema,
                        struct ArrowSchema *copy) {
    copy->children = calloc((size_t)schema->n_children + 1, sizeof *copy->children);
    if (!copy->children)
        return false;
    for (int64_t i = 0; i < schema->n_children; i++) {
        copy->children[i] = share_schema(query, schema->children[i]);
        if (!copy->children[i])
            return false;
        copy->n_children++;
    }
    if (schema->dictionary)
        copy->dictionary = share_schema(query, schema->dictionary);
    return !schema->dictionary || copy->dictionary;
}

enum sx_status sx_duckdb_schema(struct stachio_query *query, const struct ArrowSchema *schema,
                                struct ArrowSchema *out_schema, struct sx_error *error) {
    struct ArrowSchema copy = {
        .format = schema->format,
        .name = schema->name,
        .metadata = schema->metadata,
        .flags = schema->flags,
        .release = release_schema,
        .private_data = sx_query_retain(query),
    };
    if (!share_parts(query, schema, &copy)) {
        release_schema(&copy);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the answer's schema");
    }
    *out_schema = copy;
    return SX_OK;
}
