#include "statement.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Behind the end of a comment that begins at `at`; the text's end when it is open. */
static const char *skip_comment(const char *at) {
    if (at[0] == '-')
        return at + strcspn(at, "\n");
    int depth = 0;
    do {
        if (at[0] == '/' && at[1] == '*')
            depth++, at++;
        else if (at[0] == '*' && at[1] == '/')
            depth--, at++;
        at++;
    } while (*at && depth);
    return at;
}

static bool is_comment(const char *at) {
    return (at[0] == '-' && at[1] == '-') || (at[0] == '/' && at[1] == '*');
}

static const char *skip_space(const char *at) {
    for (;;) {
        if (is_comment(at))
            at = skip_comment(at);
        else if (isspace((unsigned char)*at))
            at++;
        else
            return at;
    }
}

/* Length of "$tag$" at `at`, or 0. */
static size_t dollar_tag(const char *at) {
    size_t n = 1;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    return at[n] == '$' && !isdigit((unsigned char)at[1]) ? n + 1 : 0;
}

/* Behind the closing "$tag$"; NULL when it is open. */
static const char *skip_dollars(const char *at, size_t tag_bytes) {
    for (const char *end = at + tag_bytes; (end = strchr(end, '$')); end++)
        if (!strncmp(end, at, tag_bytes))
            return end + tag_bytes;
    return NULL;
}

/* Behind a quoted text; a doubled quote is within it, and anything after a backslash when `escapes`. NULL
 * when it is open. */
static const char *skip_quoted(const char *at, bool escapes) {
    char quote = *at++;
    for (; *at; at++) {
        if (escapes && *at == '\\' && at[1])
            at++;
        else if (*at == quote && at[1] != quote)
            return at + 1;
        else if (*at == quote)
            at++;
    }
    return NULL;
}

static bool is_name_byte(char byte) {
    return isalnum((unsigned char)byte) || byte == '_' || (unsigned char)byte >= 0x80;
}

/* Behind a name or number; E'…' has escapes. */
static const char *skip_name(const char *at) {
    if ((*at == 'e' || *at == 'E') && at[1] == '\'')
        return skip_quoted(at + 1, true);
    while (is_name_byte(*at) || *at == '$')
        at++;
    return at;
}

/* Behind the token at `at`; NULL when it has no end. */
static const char *skip_token(const char *at) {
    if (*at == '\'' || *at == '"')
        return skip_quoted(at, false);
    if (is_name_byte(*at))
        return skip_name(at);
    size_t tag_bytes = *at == '$' ? dollar_tag(at) : 0;
    if (tag_bytes)
        return skip_dollars(at, tag_bytes);
    return at + 1;
}

const char *statement_after(const char *sql, const char *keyword) {
    const char *at = skip_space(sql);
    size_t n = strlen(keyword);
    if (strncasecmp(at, keyword, n) != 0 || isalnum((unsigned char)at[n]) || at[n] == '_')
        return NULL;
    return skip_space(at + n);
}

bool statement_is_complete(const char *text) {
    bool complete = false;
    for (const char *at = skip_space(text); *at; at = skip_space(at)) {
        complete = *at == ';';
        at = skip_token(at);
        if (!at)
            return false;
    }
    return complete;
}

bool statement_is_empty(const char *text) {
    const char *at = skip_space(text);
    while (*at == ';')
        at = skip_space(at + 1);
    return !*at;
}

char **statements_copy(const char *const *statements, int n) {
    char **copies = calloc((size_t)n + 1, sizeof *copies);
    for (int i = 0; copies && i < n; i++) {
        copies[i] = strdup(statements[i]);
        if (!copies[i]) {
            statements_free(copies, i);
            return NULL;
        }
    }
    return copies;
}

void statements_free(char **statements, int n) {
    for (int i = 0; i < n; i++)
        free(statements[i]);
    free(statements);
}

bool statement_is_select(const char *sql) {
    static const char *const keywords[] = {"SELECT", "WITH",  "FROM",    "VALUES",
                                           "TABLE",  "PIVOT", "UNPIVOT", "DESCRIBE"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (statement_after(sql, keywords[i]))
            return true;
    return *skip_space(sql) == '(';
}
