#include "trace.h"

#include <string.h>

#include "message.h"
#include "output.h"

static const char placeholder[] = "{rank}";

/* An output that takes the pieces of a trace. */
struct trace_output {
    struct output output;
    struct stachio_error *error;
};

static int write_piece(void *context, const char *bytes, size_t size_bytes) {
    struct trace_output *to = context;
    text_append(&to->output.text, bytes, size_bytes);
    return (int)output_write(&to->output, to->error);
}

static void add_path(struct text *text, const char *path, int rank) {
    for (const char *at; (at = strstr(path, placeholder)) != NULL; path = at + strlen(placeholder)) {
        text_append(text, path, (size_t)(at - path));
        text_format(text, "%d", rank);
    }
    text_add(text, path);
}

enum stachio_status trace_write(struct stachio_trace *trace, const char *path, int rank,
                                struct stachio_error *error) {
    struct trace_output to = {.error = error};
    struct stachio_error outer;
    struct text own_path = {0};
    add_path(&own_path, path, rank);
    const char *name = text_string(&own_path);
    enum stachio_status status = own_path.failed
                                     ? set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a path")
                                     : output_open(&to.output, name, error);
    if (!status)
        status = stachio_trace_write(trace, write_piece, &to, &outer); /* the reason stands in `error` */
    if (!status)
        status = output_commit(&to.output, error);
    output_close(&to.output);
    text_release(&own_path);
    return status;
}

enum stachio_status trace_follow(struct stachio_db *db, const char *path, struct stachio_error *error) {
    struct stachio_error later;
    struct stachio_trace *trace;
    if (!path || !strstr(path, placeholder))
        return stachio_follow(db, error);
    enum stachio_status status = stachio_trace_create(&trace, error);
    if (status)
        return status;
    stachio_set_follow_trace(db, trace);
    status = stachio_follow(db, error);
    const enum stachio_status written = trace_write(trace, path, stachio_rank(db), status ? &later : error);
    stachio_trace_destroy(trace);
    return status ? status : written;
}
