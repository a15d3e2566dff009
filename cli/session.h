/* Runs statements and prints their answers. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "options.h"

/* Where the next statement begins in its script, from 1. */
struct place {
    int line, column;
};

struct session {
    struct stachio_db *db;
    struct output output;
    struct stachio_trace *trace; /* of all statements; NULL: none */
    enum format format;
    int64_t max_rows;
    enum progress_mode progress;
    bool explain;
    bool analyze;
    struct stachio_write_options write; /* FORMAT_PARQUET */
    bool wrote_parquet;
    bool timer; /* tell each statement's time */
    struct place place;
};

/* One statement: its answer goes to the output, which is flushed. An answer that
 * fails halfway leaves nothing in a file. */
enum stachio_status session_run(struct session *session, const char *sql, struct stachio_error *error);
/* A script's statements, up to the first that fails. */
enum stachio_status session_run_script(struct session *session, const char *script,
                                       struct stachio_error *error);

/* The profile of an executed query as text. */
void print_report(struct text *out, const struct stachio_report *report, const struct stachio_floor *floor);

#endif
