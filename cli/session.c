#include "session.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "interrupt.h"
#include "message.h"
#include "progress.h"
#include "statement.h"

enum action { ACTION_ANSWER, ACTION_EXPLAIN, ACTION_ANALYZE };

/* DuckDB's statements without an answer (SET, CREATE VIEW) give an empty column of one of these names; a
 * Count with a row (INSERT) is an answer, but not one for a Parquet file. */
static enum stachio_status has_answer(struct answer *answer, const char *sql, enum format format,
                                      bool *out_has, struct stachio_error *error) {
    bool is_select = statement_is_select(sql);
    const char *name = answer->n_columns == 1 ? answer->columns[0].name : "";
    *out_has = is_select || (strcmp(name, "Success") != 0 && strcmp(name, "Count") != 0);
    if (*out_has || format == FORMAT_PARQUET)
        return STACHIO_OK;
    bool is_empty;
    enum stachio_status status = answer_is_empty(answer, &is_empty, error);
    *out_has = !is_empty;
    return status;
}

static enum stachio_status print_answer(struct session *session, const char *sql, struct stachio_query *query,
                                        struct stachio_error *error) {
    struct answer answer;
    bool has = false;
    enum stachio_status status = answer_open(&answer, query, error);
    if (!status)
        status = has_answer(&answer, sql, session->format, &has, error);
    if (status || !has) {
        answer_close(&answer);
        return status;
    }
    switch (session->format) {
    case FORMAT_TABLE: status = print_table(&answer, &session->output, session->max_rows, error); break;
    case FORMAT_CSV: status = print_csv(&answer, &session->output, error); break;
    case FORMAT_JSON: status = print_json(&answer, &session->output, error); break;
    case FORMAT_PARQUET:
        status = set_error(error, STACHIO_USAGE,
                           "--format: this statement's answer can't be written as Parquet, a query's can");
        break;
    }
    answer_close(&answer);
    return status;
}

/* Into the temporary file that the output has opened. */
static enum stachio_status write_parquet(struct session *session, struct stachio_query *query,
                                         struct stachio_error *error) {
    if (!session->output.temporary)
        return set_error(error, STACHIO_USAGE, "--format: parquet is written to files only, not to %s",
                         session->output.name);
    if (session->wrote_parquet)
        return set_error(error, STACHIO_USAGE, "--format: a Parquet file has one answer; there are more");
    enum stachio_status status =
        stachio_query_write(query, session->output.temporary, &session->write, error);
    session->wrote_parquet = !status;
    return status;
}

static enum stachio_status execute(struct session *session, struct stachio_query *query, bool to_parquet,
                                   struct stachio_error *error) {
    struct progress progress;
    progress_start(&progress, query, session->progress);
    enum stachio_status status =
        to_parquet ? write_parquet(session, query, error) : stachio_query_execute(query, error);
    progress_stop(&progress);
    struct stachio_report report;
    stachio_query_report(query, &report);
    if (!status && report.fallback_reason)
        report_note("DuckDB answers: %s", report.fallback_reason);
    return status;
}

static enum stachio_status explain(struct session *session, struct stachio_query *query,
                                   struct stachio_error *error) {
    const char *text;
    enum stachio_status status = stachio_query_explain(query, &text, error);
    if (!status)
        text_add(&session->output.text, text);
    return status;
}

static enum stachio_status act(struct session *session, enum action action, const char *sql,
                               struct stachio_query *query, struct stachio_error *error) {
    if (session->format == FORMAT_PARQUET && action != ACTION_ANSWER)
        return set_error(error, STACHIO_USAGE, "--format: a plan can't be written as Parquet");
    if (action == ACTION_EXPLAIN)
        return explain(session, query, error);
    const bool to_parquet =
        session->format == FORMAT_PARQUET && action == ACTION_ANSWER && statement_is_select(sql);
    enum stachio_status status = execute(session, query, to_parquet, error);
    if (status || to_parquet)
        return status;
    if (action == ACTION_ANSWER)
        return print_answer(session, sql, query, error);
    struct stachio_report report;
    struct stachio_floor floor;
    stachio_query_report(query, &report);
    status = stachio_query_floor(query, &floor, error);
    if (!status)
        print_report(&session->output.text, &report, &floor);
    return status;
}

/* Past the text from `at` to `end`. */
static void advance(struct place *place, const char *at, const char *end) {
    for (; at < end; at++) {
        if (*at == '\n')
            *place = (struct place){place->line + 1, 1};
        else
            place->column += ((unsigned char)*at & 0xc0) != 0x80;
    }
}

enum stachio_status session_run(struct session *session, const char *sql, struct stachio_error *error) {
    struct place place = session->place.line ? session->place : (struct place){1, 1};
    double started = seconds_now();
    enum action action = session->explain   ? ACTION_EXPLAIN
                         : session->analyze ? ACTION_ANALYZE
                                            : ACTION_ANSWER;
    const char *rest = statement_after(sql, "EXPLAIN");
    if (rest && *rest != '(') {
        const char *behind = statement_after(rest, "ANALYZE");
        action = behind ? ACTION_ANALYZE : ACTION_EXPLAIN;
        advance(&place, sql, behind ? behind : rest);
        sql = behind ? behind : rest;
    }
    struct stachio_query *query;
    enum stachio_status status = stachio_query_create(session->db, sql, &query, error);
    if (status)
        return status;
    stachio_query_set_origin(query, place.line, place.column);
    stachio_query_set_trace(query, session->trace);
    const int64_t mark = session->format == FORMAT_PARQUET ? -1 : output_mark(&session->output);
    interrupt_set_query(query);
    status = interrupt_seen() ? set_error(error, STACHIO_CANCELLED, "cancelled")
                              : act(session, action, sql, query, error);
    interrupt_set_query(NULL);
    stachio_query_destroy(query);
    if (!status)
        status = output_flush(&session->output, error);
    if (status)
        output_take_back(&session->output, mark);
    if (session->timer)
        fprintf(stderr, "%.3f s\n", seconds_now() - started);
    return status;
}

/* The statements are parts of the script, in order. */
static enum stachio_status run_statements(struct session *session, const char *script,
                                          char *const *statements, int n, struct stachio_error *error) {
    enum stachio_status status = STACHIO_OK;
    const char *at = script, *rest = script; /* `at`: where the place is */
    session->place = (struct place){1, 1};
    for (int i = 0; !status && i < n; i++) {
        const char *begin = strstr(rest, statements[i]);
        if (begin) {
            advance(&session->place, at, begin);
            at = begin;
            rest = begin + strlen(statements[i]);
        }
        status = session_run(session, statements[i], error);
    }
    session->place = (struct place){1, 1};
    return status;
}

enum stachio_status session_run_script(struct session *session, const char *script,
                                       struct stachio_error *error) {
    const char *const *borrowed;
    int n;
    enum stachio_status status = stachio_split(session->db, script, &borrowed, &n, error);
    if (status)
        return status;
    char **statements = statements_copy(borrowed, n);
    if (!statements)
        return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the script");
    status = run_statements(session, script, statements, n, error);
    statements_free(statements, n);
    return status;
}
