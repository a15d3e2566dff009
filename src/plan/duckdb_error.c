/* DuckDB's error messages, with positions shown as line and column. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plan/duckdb_handle.h"

static enum sx_status status_of(const char *type, const char *message) {
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
    static const char *const of_files[] = {"magic bytes",  "too small to be a Parquet",
                                           "footer",       "Parquet file",
                                           "parquet file", "Failed to read Parquet"};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (strcasecmp(type, statuses[i].type) == 0)
            return statuses[i].status;
    if (strcmp(type, "Invalid Input") == 0)
        for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
            if (strstr(message, of_files[i]))
                return SX_FILE;
    return SX_QUERY;
}

enum { LONGEST_SHOWN_LINE = 200 };

/* "message\nline 3, column 9:\n    the line\n            ^" */
static void show_position(struct sx_error *error, enum sx_status status, const char *message, const char *sql,
                          size_t position) {
    size_t start = 0;
    int line = 1, column = 1;
    for (size_t i = 0; i < position; i++)
        if (sql[i] == '\n') {
            line++;
            start = i + 1;
        }
    for (size_t i = start; i < position; i++)
        column += ((unsigned char)sql[i] & 0xc0) != 0x80; /* characters, not bytes */
    const int length = (int)strcspn(sql + start, "\r\n");
    const size_t before = position - start;
    if (length > LONGEST_SHOWN_LINE || before > (size_t)length) {
        (void)sx_error_set(error, status, "%s\nline %d, column %d", message, line, column);
        return;
    }
    char gap[LONGEST_SHOWN_LINE + 1];
    size_t width = 0;
    for (size_t i = 0; i < before; i++)
        if (((unsigned char)sql[start + i] & 0xc0) != 0x80)
            gap[width++] = sql[start + i] == '\t' ? '\t' : ' ';
    gap[width] = '\0';
    (void)sx_error_set(error, status, "%s\nline %d, column %d:\n    %.*s\n    %s^", message, line, column,
                       length, sql + start, gap);
}

enum sx_status sx_duckdb_error(struct sx_error *error, const char *message, const char *sql) {
    if (!message || !*message)
        return sx_error_set(error, SX_INTERNAL, "DuckDB failed without a message");
    const char *brace = strchr(message, '{');
    struct json_object *json = brace ? json_tokener_parse(brace) : NULL;
    const char *text = sx_json_text(json, "exception_message");
    const char *type = sx_json_text(json, "exception_type");
    const char *position = sx_json_text(json, "position");
    const enum sx_status status = *text ? status_of(type, text) : SX_QUERY;
    const size_t at = (size_t)strtoull(position, NULL, 10);
    if (!*text)
        (void)sx_error_set(error, status, "%s", message);
    else if (sql && *position && status == SX_QUERY && at <= strlen(sql))
        show_position(error, status, text, sql, at);
    else
        (void)sx_error_set(error, status, "%s", text);
    json_object_put(json);
    return status;
}
