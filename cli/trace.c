#include "trace.h"

#include "output.h"

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

enum stachio_status trace_write(struct stachio_trace *trace, const char *path, struct stachio_error *error) {
    struct trace_output to = {.error = error};
    struct stachio_error outer;
    enum stachio_status status = output_open(&to.output, path, error);
    if (!status)
        status = stachio_trace_write(trace, write_piece, &to, &outer); /* the reason stands in `error` */
    if (!status)
        status = output_commit(&to.output, error);
    output_close(&to.output);
    return status;
}
