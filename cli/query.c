#include "query.h"

#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"
#include "script.h"
#include "session.h"
#include "shell.h"
#include "trace.h"

static enum stachio_status run_scripts(struct session *session, const struct options *options,
                                       struct stachio_error *error) {
    const struct script_option from_input = {NULL, "-"};
    const struct script_option *scripts = options->n_scripts ? options->scripts : &from_input;
    int n = options->n_scripts ? options->n_scripts : 1;
    enum stachio_status status = STACHIO_OK;
    for (int i = 0; !status && i < n; i++) {
        struct text text = {0};
        if (scripts[i].path)
            status = script_read(scripts[i].path, &text, error);
        else
            status = script_check("-c", scripts[i].text, strlen(scripts[i].text), error);
        if (!status)
            status =
                session_run_script(session, scripts[i].path ? text_string(&text) : scripts[i].text, error);
        text_release(&text);
    }
    return status;
}

static enum stachio_status finish(struct session *session, struct stachio_error *error) {
    if (session->format == FORMAT_PARQUET && !session->wrote_parquet)
        return set_error(error, STACHIO_USAGE, "--format: no statement has an answer for the Parquet file");
    return output_commit(&session->output, error);
}

/* Few rows on a terminal, all elsewhere, unless the option says otherwise. */
static int64_t rows_shown(const struct options *options) {
    if (options->max_rows >= 0)
        return options->max_rows;
    return !options->output && isatty(STDOUT_FILENO) ? 40 : 0;
}

/* -c, -f, standard input or the shell. */
static int run_all(struct session *session, const struct options *options, struct stachio_error *error) {
    int exit_status = 0;
    enum stachio_status status = output_open(&session->output, options->output, error);
    if (!status && (options->n_scripts || !isatty(STDIN_FILENO)))
        status = run_scripts(session, options, error);
    else if (!status)
        exit_status = shell_run(session);
    if (!status && !exit_status)
        status = finish(session, error);
    output_close(&session->output);
    return status ? report_error(error) : exit_status;
}

int query_run_on(const struct options *options, struct stachio_db *db) {
    struct session session = {
        .db = db,
        .format = options->output && !options->has_format ? FORMAT_CSV : options->format,
        .max_rows = rows_shown(options),
        .progress = options->progress,
        .explain = options->explain,
        .analyze = options->analyze,
        .write = options->write,
    };
    struct stachio_error error = {0};
    enum stachio_status status = STACHIO_OK;
    if (options->trace)
        status = stachio_trace_create(&session.trace, &error);
    interrupt_install(); /* from here on there is something to clear away */
    int exit_status = status ? report_error(&error) : run_all(&session, options, &error);
    if (session.trace && trace_write(session.trace, options->trace, 0, &error)) {
        const int failed = report_error(&error);
        exit_status = exit_status ? exit_status : failed;
    }
    stachio_trace_destroy(session.trace);
    return exit_status;
}

int query_run(const struct options *options) {
    struct stachio_error error = {0};
    struct stachio_db *db = NULL;
    if (options_open(options, &db, &error))
        return report_error(&error);
    const int exit_status = query_run_on(options, db);
    stachio_close(db);
    return exit_status;
}
