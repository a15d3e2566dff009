/* What a statement is, as far as its words tell. DuckDB's own kinds are coarser: CHECKPOINT is a CALL to it,
 * PRAGMA a SELECT, and a PIVOT several statements. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "plan/duckdb_handle.h"
#include "plan/split.h"

enum { MAX_WORD_BYTES = 32 };

/* The word that comes next, in capitals ("" when there is none or it is too long); returns what is behind. */
static const char *next_word(const char *at, char out_word[MAX_WORD_BYTES]) {
    size_t length = 0;
    at = sx_skip_blanks(at);
    while (*at == '(')
        at = sx_skip_blanks(at + 1);
    for (; isalpha((unsigned char)*at) || *at == '_'; at++)
        if (length < MAX_WORD_BYTES)
            out_word[length++] = (char)toupper((unsigned char)*at);
    out_word[length < MAX_WORD_BYTES ? length : 0] = '\0';
    return at;
}

static bool begins_with_one_of(const char *sql, const char *const *words) {
    char word[MAX_WORD_BYTES];
    next_word(sql, word);
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words;
}

bool sx_statement_sets_session(const char *sql) {
    static const char *const words[] = {"SET", "RESET", "USE", "PREPARE", "DEALLOCATE", NULL};
    static const char *const pragma[] = {"PRAGMA", NULL}; /* with a value it is a SET */
    return begins_with_one_of(sql, words) || (begins_with_one_of(sql, pragma) && strchr(sql, '='));
}

bool sx_statement_begins_transaction(const char *sql) {
    static const char *const words[] = {"BEGIN", "START", NULL};
    return begins_with_one_of(sql, words);
}

bool sx_statement_ends_transaction(const char *sql) {
    static const char *const words[] = {"COMMIT", "END", "ROLLBACK", "ABORT", NULL};
    return begins_with_one_of(sql, words);
}

/* Its value may be another one on each connection. */
bool sx_statement_sets_by_chance(const char *sql) {
    static const char *const words[] = {"VARIABLE", NULL};
    static const char *const scopes[] = {"SESSION", "LOCAL", "GLOBAL", NULL};
    char word[MAX_WORD_BYTES];
    const char *at = next_word(sql, word);
    if (strcmp(word, "SET") != 0)
        return false;
    if (begins_with_one_of(at, scopes))
        at = next_word(at, word);
    return begins_with_one_of(at, words) && sx_statement_may_change(sql);
}

/* CREATE [OR REPLACE] [RECURSIVE] VIEW … */
bool sx_statement_names(const char *sql) {
    static const char *const kinds[] = {"RECURSIVE", "VIEW", "MACRO", "FUNCTION", "SCHEMA", "TYPE", NULL};
    char word[MAX_WORD_BYTES];
    const char *at = next_word(sql, word);
    if (strcmp(word, "CREATE") != 0)
        return strcmp(word, "DROP") == 0 || strcmp(word, "ALTER") == 0;
    const char *behind = next_word(at, word);
    if (strcmp(word, "OR") == 0)
        at = next_word(behind, word);
    return begins_with_one_of(at, kinds);
}

bool sx_statement_is_query(const char *sql) {
    static const char *const words[] = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", NULL};
    return begins_with_one_of(sql, words);
}

/* EXPLAIN ANALYZE runs, and so does EXPLAIN (ANALYZE). */
bool sx_statement_only_tells(const char *sql) {
    static const char *const words[] = {"SHOW", "DESCRIBE", "DESC", NULL};
    char word[MAX_WORD_BYTES];
    const char *at = next_word(sql, word);
    const bool explains = strcmp(word, "EXPLAIN") == 0;
    (void)next_word(at, word);
    return explains ? strncmp(word, "ANALY", 5) != 0 : begins_with_one_of(sql, words);
}

bool sx_statement_leaves_nothing(const char *sql) {
    static const char *const words[] = {"SELECT",   "WITH", "FROM", "VALUES",    "TABLE", "EXPLAIN",
                                        "DESCRIBE", "DESC", "SHOW", "SUMMARIZE", "PIVOT", "UNPIVOT",
                                        "COPY",     "SET",  "USE",  "RESET",     NULL};
    return begins_with_one_of(sql, words);
}

bool sx_statement_reads_catalog(const char *sql) {
    static const char *const words[] = {"SHOW", "DESCRIBE", "DESC", "PRAGMA", "EXPORT", NULL};
    static const char *const parts[] = {"information_schema", "duckdb_", "pg_", "sqlite_"};
    if (begins_with_one_of(sql, words) || strcasestr(sql, "show "))
        return true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcasestr(sql, parts[i]))
            return true;
    return false;
}

/* CREATE [OR REPLACE] TEMP … */
static bool creates_temporary(const char *sql) {
    char word[MAX_WORD_BYTES];
    const char *at = next_word(sql, word);
    if (strcmp(word, "CREATE") != 0)
        return false;
    at = next_word(at, word);
    if (strcmp(word, "OR") == 0)
        (void)next_word(next_word(at, word), word);
    return strcmp(word, "TEMP") == 0 || strcmp(word, "TEMPORARY") == 0;
}

enum sx_status sx_statement_refuse_temporary(const char *sql, struct sx_error *error) {
    return creates_temporary(sql)
               ? sx_error_set(error, SX_QUERY,
                              "temporary tables and views do not outlast their statement; leave out TEMP")
               : SX_OK;
}

enum sx_status sx_statement_check(const char *sql, duckdb_statement_type type, struct sx_error *error) {
    static const char *const not_selects[] = {"PRAGMA", "EXECUTE", "CALL", NULL};
    char word[MAX_WORD_BYTES];
    SX_TRY(sx_statement_refuse_temporary(sql, error));
    if (type == DUCKDB_STATEMENT_TYPE_SELECT && !begins_with_one_of(sql, not_selects))
        return SX_OK;
    next_word(sql, word);
    if (strcmp(word, "WITH") == 0)
        return sx_error_set(error, SX_UNSUPPORTED, "statement WITH that changes a table");
    return sx_error_set(error, SX_UNSUPPORTED, "statement %s", word);
}

enum sx_status sx_statement_check_several(const char *sql, int n, struct sx_error *error) {
    char word[MAX_WORD_BYTES];
    if (!sx_is_one_statement(sql))
        return sx_error_set(error, SX_QUERY, "%d statements where one is wanted", n);
    if (strcasestr(sql, "pivot"))
        return sx_error_set(error, SX_UNSUPPORTED, "PIVOT without IN");
    next_word(sql, word);
    return sx_error_set(error, SX_UNSUPPORTED, "statement %s", word);
}
