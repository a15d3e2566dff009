/* DuckDB's error messages, with positions shown as line and column. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plan/duckdb_handle.h"

enum sx_status sx_duckdb_status(const char *type, const char *message) {
    static const struct {
        const char *type;
        enum sx_status status;
    } statuses[] = {
        {"IO", SX_FILE},
        {"HTTP", SX_FILE},
        {"Permission", SX_FILE},
        {"Out of Memory", SX_OUT_OF_MEMORY},
        {"INTERRUPT", SX_CANCELLED},
        {"Interrupt", SX_CANCELLED},
        {"INTERNAL", SX_INTERNAL},
        {"Internal", SX_INTERNAL},
        {"FATAL", SX_INTERNAL},
        {"Fatal", SX_INTERNAL},
    };
    static const char *const of_files[] = {"magic bytes",
                                           "too small to be a Parquet",
                                           "footer",
                                           "Parquet file",
                                           "parquet file",
                                           "Failed to read Parquet",
                                           "Incorrect stats size"};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (strcasecmp(type, statuses[i].type) == 0)
            return statuses[i].status;
    if (strcmp(type, "Invalid Input") == 0)
        for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
            if (strstr(message, of_files[i]))
                return SX_FILE;
    return SX_QUERY;
}

/* Room is left for the position behind the message. */
enum { LONGEST_SHOWN_LINE = 200, LONGEST_MESSAGE = SX_ERROR_TEXT_BYTES - 3 * LONGEST_SHOWN_LINE - 100 };

/* Bytes of a text that are shown: no half character at the end. */
static int shown_length(const char *text, size_t most) {
    size_t length = strnlen(text, most);
    if (text[length])
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    return (int)length;
}

/* "message\nline 3, column 9:\n    the line\n            ^" */
static void show_position(const struct sx_frontend *frontend, struct sx_error *error, enum sx_status status,
                          const char *message, const char *sql, size_t position) {
    size_t start = 0;
    int line = frontend->first_line, column = frontend->first_column;
    for (size_t i = 0; i < position; i++)
        if (sql[i] == '\n') {
            line++;
            column = 1;
            start = i + 1;
        }
    for (size_t i = start; i < position; i++)
        column += ((unsigned char)sql[i] & 0xc0) != 0x80; /* characters, not bytes */
    const int length = (int)strcspn(sql + start, "\r\n");
    const size_t before = position - start;
    const int shown = shown_length(message, LONGEST_MESSAGE);
    if (length > LONGEST_SHOWN_LINE || before > (size_t)length) {
        (void)sx_error_set(error, status, "%.*s\nline %d, column %d", shown, message, line, column);
        return;
    }
    char gap[LONGEST_SHOWN_LINE + 1];
    size_t width = 0;
    for (size_t i = 0; i < before; i++)
        if (((unsigned char)sql[start + i] & 0xc0) != 0x80)
            gap[width++] = sql[start + i] == '\t' ? '\t' : ' ';
    gap[width] = '\0';
    (void)sx_error_set(error, status, "%.*s\nline %d, column %d:\n    %.*s\n    %s^", shown, message, line,
                       column, length, sql + start, gap);
}

/* Behind its first paragraph DuckDB gives advice about settings that are not ours. */
static void show_out_of_memory(struct sx_error *error, const char *message) {
    const char *advice = strstr(message, "\n\n");
    const size_t length = advice ? (size_t)(advice - message) : strlen(message);
    (void)sx_error_set(error, SX_OUT_OF_MEMORY, "DuckDB is out of memory: %.*s (see --memory-limit)",
                       shown_length(message, length < LONGEST_MESSAGE ? length : LONGEST_MESSAGE), message);
}

/* The parser's words for a stack that is full. */
static const char *clearer(const char *message, char buffer[SX_ERROR_TEXT_BYTES]) {
    static const char full[] = "memory exhausted";
    if (strncmp(message, full, sizeof full - 1) != 0)
        return message;
    snprintf(buffer, SX_ERROR_TEXT_BYTES, "the statement is nested too deeply%s", message + sizeof full - 1);
    return buffer;
}

enum sx_status sx_duckdb_failure(struct sx_error *error, const char *type, const char *message) {
    const enum sx_status status = sx_duckdb_status(type, message);
    char buffer[SX_ERROR_TEXT_BYTES];
    if (status == SX_OUT_OF_MEMORY)
        show_out_of_memory(error, message);
    else
        (void)sx_error_set(error, status, "%s", clearer(message, buffer));
    return status;
}

/* `frontend` and `sql`: NULL, or what the position counts in. */
static enum sx_status read_error(const struct sx_frontend *frontend, struct sx_error *error,
                                 const char *message, const char *sql) {
    if (!message || !*message)
        return sx_error_set(error, SX_INTERNAL, "DuckDB failed without a message");
    const char *brace = strchr(message, '{');
    struct json_object *json = brace ? json_tokener_parse(brace) : NULL;
    const char *text = sx_json_text(json, "exception_message");
    const char *position = sx_json_text(json, "position");
    const size_t at = (size_t)strtoull(position, NULL, 10);
    char buffer[SX_ERROR_TEXT_BYTES];
    enum sx_status status = SX_QUERY;
    if (*text)
        status = sx_duckdb_failure(error, sx_json_text(json, "exception_type"), text);
    else
        (void)sx_error_set(error, status, "%s", message);
    if (*text && sql && *position && status == SX_QUERY && at <= strlen(sql))
        show_position(frontend, error, status, clearer(text, buffer), sql, at);
    json_object_put(json);
    return status;
}

enum sx_status sx_duckdb_error(struct sx_error *error, const char *message) {
    return read_error(NULL, error, message, NULL);
}

enum sx_status sx_duckdb_query_error(const struct sx_frontend *frontend, struct sx_error *error,
                                     const char *message, const char *sql) {
    return read_error(frontend, error, message, sql);
}
