/* Statements of a script: what ends at a semicolon outside of texts, names and comments. */
#include <ctype.h>
#include <string.h>

#include "plan/frontend.h"
#include "plan/split.h"

/* Past the closing quote; doubled quotes stay inside, and after a backslash anything when `escapes`. */
static const char *skip_quoted(const char *at, char quote, bool escapes) {
    for (at++; *at; at++) {
        if (escapes && *at == '\\' && at[1])
            at++;
        else if (*at == quote && at[1] == quote)
            at++;
        else if (*at == quote)
            return at + 1;
    }
    return at;
}

/* Comments nest. */
static const char *skip_comment(const char *at) {
    int depth = 1;
    for (at += 2; *at && depth > 0;) {
        if (at[0] == '/' && at[1] == '*') {
            depth++;
            at += 2;
        } else if (at[0] == '*' && at[1] == '/') {
            depth--;
            at += 2;
        } else {
            at++;
        }
    }
    return at;
}

static bool is_name_byte(char byte) {
    return isalnum((unsigned char)byte) || byte == '_' || (unsigned char)byte >= 0x80;
}

/* Past $tag$ … $tag$, or past the dollar sign when it starts none. */
static const char *skip_dollar(const char *at) {
    const char *end = at + 1;
    while (is_name_byte(*end))
        end++;
    if (*end != '$' || isdigit((unsigned char)at[1]))
        return at + 1;
    const size_t tag_length = (size_t)(end + 1 - at);
    for (const char *close = end + 1; *close; close++)
        if (*close == '$' && strncmp(close, at, tag_length) == 0)
            return close + tag_length;
    return end + strlen(end);
}

/* Past a name; E'…' has escapes. */
static const char *skip_name(const char *at) {
    if ((*at == 'e' || *at == 'E') && at[1] == '\'')
        return skip_quoted(at + 1, '\'', true);
    while (is_name_byte(*at) || *at == '$')
        at++;
    return at;
}

const char *sx_skip_blanks(const char *at) {
    for (;;) {
        if (at[0] == '-' && at[1] == '-')
            at += strcspn(at, "\n");
        else if (at[0] == '/' && at[1] == '*')
            at = skip_comment(at);
        else if (isspace((unsigned char)*at))
            at++;
        else
            return at;
    }
}

/* The end of the statement: its semicolon or the script's end. *out_empty: only blanks and comments. */
static const char *statement_end(const char *at, bool *out_empty) {
    *out_empty = true;
    for (at = sx_skip_blanks(at); *at && *at != ';'; at = sx_skip_blanks(at)) {
        *out_empty = false;
        if (*at == '\'' || *at == '"')
            at = skip_quoted(at, *at, false);
        else if (*at == '$')
            at = skip_dollar(at);
        else if (is_name_byte(*at))
            at = skip_name(at);
        else
            at++;
    }
    return at;
}

bool sx_is_one_statement(const char *text) {
    int n = 0;
    for (const char *at = text; *at;) {
        bool empty;
        const char *end = statement_end(at, &empty);
        n += !empty;
        at = *end ? end + 1 : end;
    }
    return n == 1;
}

enum sx_status sx_frontend_split(struct sx_frontend *frontend, struct sx_arena *arena, const char *script,
                                 const char *const **out_statements, int *out_n, struct sx_error *error) {
    (void)frontend;
    int capacity = 1, n = 0;
    for (const char *at = script; *at; at++)
        capacity += *at == ';';
    const char **statements = SX_ARENA_ARRAY(arena, capacity, const char *);
    if (!statements)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the script");
    for (const char *at = script; *at;) {
        bool empty;
        const char *end = statement_end(at, &empty);
        if (!empty) {
            statements[n] = sx_arena_copy_text(arena, at, (size_t)(end - at));
            if (!statements[n++])
                return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the script");
        }
        at = *end ? end + 1 : end;
    }
    *out_statements = statements;
    *out_n = n;
    return SX_OK;
}
