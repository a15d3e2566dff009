#include "answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "message.h"

static enum stachio_status stream_failed(struct answer *answer, int code, struct stachio_error *error) {
    const char *text = answer->stream.get_last_error(&answer->stream);
    return set_error(error, code == ENOMEM ? STACHIO_OUT_OF_MEMORY : STACHIO_QUERY, "%s",
                     text ? text : strerror(code));
}

static enum stachio_status read_columns(struct answer *answer, struct stachio_error *error) {
    answer->columns = calloc((size_t)answer->schema.n_children + 1, sizeof *answer->columns);
    if (!answer->columns)
        return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the answer's columns");
    for (int64_t i = 0; i < answer->schema.n_children; i++) {
        const struct ArrowSchema *child = answer->schema.children[i];
        if (!column_read(child, &answer->columns[i]))
            return set_error(error, STACHIO_UNSUPPORTED,
                             "column %s: values of Arrow type '%s' can't be printed", child->name,
                             child->format);
        answer->n_columns++;
    }
    return STACHIO_OK;
}

enum stachio_status answer_open(struct answer *answer, struct stachio_query *query,
                                struct stachio_error *error) {
    *answer = (struct answer){0};
    enum stachio_status status = stachio_query_stream(query, &answer->stream, error);
    if (status)
        return status;
    int code = answer->stream.get_schema(&answer->stream, &answer->schema);
    return code ? stream_failed(answer, code, error) : read_columns(answer, error);
}

enum stachio_status answer_next(struct answer *answer, struct ArrowArray *out_array,
                                struct stachio_error *error) {
    if (interrupt_seen())
        return set_error(error, STACHIO_CANCELLED, "cancelled");
    *out_array = answer->first;
    answer->first = (struct ArrowArray){0};
    if (answer->has_first) {
        answer->has_first = false;
        return STACHIO_OK;
    }
    int code = answer->stream.get_next(&answer->stream, out_array);
    return code ? stream_failed(answer, code, error) : STACHIO_OK;
}

enum stachio_status answer_is_empty(struct answer *answer, bool *out_empty, struct stachio_error *error) {
    enum stachio_status status = answer_next(answer, &answer->first, error);
    answer->has_first = !status;
    *out_empty = !answer->first.release;
    return status;
}

void answer_close(struct answer *answer) {
    if (answer->first.release)
        answer->first.release(&answer->first);
    for (int i = 0; i < answer->n_columns; i++)
        column_release(&answer->columns[i]);
    free(answer->columns);
    if (answer->schema.release)
        answer->schema.release(&answer->schema);
    if (answer->stream.release)
        answer->stream.release(&answer->stream);
    *answer = (struct answer){0};
}
