/* DuckDB's plans of queries that come again: its text, and the names of the answer's columns. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plan/duckdb_handle.h"
#include "plan/split.h"

enum { MOST_PLANS = 64, MOST_BYTES = 1 << 20 /* of a plan */, MAX_WORD_BYTES = 32 };

/* ---- what depends on nothing but its text and the tables ---- */

/* Functions whose value changes or that read more than the tables (a test holds them against what DuckDB says
 * of its own, which is not all: age and time zones go by the present day), literals that mean the present,
 * and what a file's name ends with, which may stand for a table. */
static const char *const changing_words[] = {"age",
                                             "ago",
                                             "csv",
                                             "currval",
                                             "db",
                                             "ddb",
                                             "duckdb",
                                             "error",
                                             "getenv",
                                             "getvariable",
                                             "glob",
                                             "gz",
                                             "in_search_path",
                                             "json",
                                             "jsonl",
                                             "ndjson",
                                             "nextval",
                                             "now",
                                             "parquet",
                                             "query",
                                             "random",
                                             "seq_scan",
                                             "session_user",
                                             "setseed",
                                             "sleep_ms",
                                             "sniff_csv",
                                             "stats",
                                             "summary",
                                             "today",
                                             "tomorrow",
                                             "transaction_timestamp",
                                             "tsv",
                                             "timezone",
                                             "txid_current",
                                             "user",
                                             "write_log",
                                             "yesterday",
                                             "zone",
                                             "zst"};
static const char *const changing_beginnings[] = {
    "current",      "duckdb_",   "gen_random", "get_current", "has_",   "inet_",  "information_schema",
    "json_execute", "localtime", "parquet_",   "pg_",         "pragma", "query_", "read_",
    "sqlite_",      "uuid"};

static bool is_changing(const char *word) {
    for (size_t i = 0; i < sizeof changing_words / sizeof *changing_words; i++)
        if (strcmp(word, changing_words[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof changing_beginnings / sizeof *changing_beginnings; i++)
        if (strncmp(word, changing_beginnings[i], strlen(changing_beginnings[i])) == 0)
            return true;
    return false;
}

/* A text with escapes, or in parts, may have words that are not seen here. */
static bool hides_words(const char *sql) {
    if (strchr(sql, '\\'))
        return true;
    for (const char *quote = strchr(sql, '\''); quote; quote = strchr(quote + 1, '\'')) {
        const char *next = sx_skip_blanks(quote + 1);
        if (*next == '\'' && memchr(quote, '\n', (size_t)(next - quote)))
            return true;
    }
    return false;
}

/* Words within texts and comments count as well. */
bool sx_statement_may_change(const char *sql) {
    if (hides_words(sql))
        return true;
    while (*sql) {
        char word[MAX_WORD_BYTES + 1];
        size_t length = 0;
        for (; isalnum((unsigned char)*sql) || *sql == '_'; sql++)
            if (length < MAX_WORD_BYTES)
                word[length++] = (char)tolower((unsigned char)*sql);
        word[length] = '\0';
        if (length > 0 && is_changing(word))
            return true;
        sql += length == 0;
    }
    return false;
}

/* ---- plans ---- */

/* What it is found by: the text without blanks and comments before it, and without blanks and a semicolon
 * behind. */
static const char *key_of(const char *sql, size_t *out_length) {
    sql = sx_skip_blanks(sql);
    size_t length = strlen(sql);
    while (length > 0 && (isspace((unsigned char)sql[length - 1]) || sql[length - 1] == ';'))
        length--;
    *out_length = length;
    return sql;
}

static void release_plan(struct sx_plan_text *plan) {
    free(plan->sql);
    free(plan->json);
    for (int32_t i = 0; i < plan->n_names; i++)
        free(plan->names[i]);
    free(plan->names);
    sx_shared_plan_release(plan->shared);
    sx_shared_plan_release(plan->distributed);
    *plan = (struct sx_plan_text){0};
}

void sx_plan_memo_clear(struct sx_plan_memo *memo) {
    for (int i = 0; i < memo->n; i++)
        release_plan(&memo->plans[i]);
    free(memo->plans);
    *memo = (struct sx_plan_memo){0};
}

/* NULL: there is none of that text. */
static struct sx_plan_text *find(struct sx_plan_memo *memo, const char *sql) {
    size_t length;
    const char *key = key_of(sql, &length);
    for (int i = 0; i < memo->n; i++)
        if (strncmp(memo->plans[i].sql, key, length) == 0 && memo->plans[i].sql[length] == '\0')
            return &memo->plans[i];
    return NULL;
}

struct sx_plan_text *sx_plan_memo_find(struct sx_frontend *frontend, const char *sql) {
    struct sx_plan_text *plan = find(&frontend->memo, sql);
    if (!plan || !sx_duckdb_has_stand_ins(frontend, sql))
        return NULL;
    plan->used = ++frontend->memo.uses;
    return plan;
}

static bool copy_names(struct sx_plan_text *plan, const struct sx_binding *binding) {
    plan->names = calloc((size_t)binding->n_names + 1, sizeof *plan->names);
    bool complete = plan->names != NULL;
    for (; complete && plan->n_names < binding->n_names; plan->n_names += complete ? 1 : 0) {
        plan->names[plan->n_names] = strdup(binding->names[plan->n_names]);
        complete = plan->names[plan->n_names] != NULL;
    }
    return complete;
}

static struct sx_plan_text *find_oldest(struct sx_plan_memo *memo) {
    struct sx_plan_text *oldest = memo->plans;
    for (int i = 1; i < memo->n; i++)
        if (memo->plans[i].used < oldest->used)
            oldest = &memo->plans[i];
    return oldest;
}

/* A place that is empty: that of the same text, a new one, or that of the plan whose last use is the longest
 * ago. */
static struct sx_plan_text *make_place(struct sx_plan_memo *memo, const char *sql) {
    struct sx_plan_text *place = find(memo, sql);
    if (!memo->plans)
        memo->plans = calloc(MOST_PLANS, sizeof *memo->plans);
    if (!place && (!memo->plans || memo->n < MOST_PLANS))
        return memo->plans ? &memo->plans[memo->n++] : NULL;
    if (!place)
        place = find_oldest(memo);
    release_plan(place);
    return place;
}

void sx_plan_memo_keep(struct sx_frontend *frontend, const struct sx_binding *binding, const char *json,
                       size_t length_bytes) {
    struct sx_plan_memo *memo = &frontend->memo;
    if (length_bytes > MOST_BYTES || !sx_duckdb_has_stand_ins(frontend, binding->sql) ||
        sx_statement_may_change(binding->sql))
        return;
    size_t key_length;
    const char *key = key_of(binding->sql, &key_length);
    struct sx_plan_text plan = {.sql = strndup(key, key_length),
                                .json = malloc(length_bytes + 1),
                                .length_bytes = length_bytes,
                                .used = ++memo->uses};
    struct sx_plan_text *place =
        copy_names(&plan, binding) && plan.sql && plan.json ? make_place(memo, key) : NULL;
    if (!place) {
        release_plan(&plan);
        return;
    }
    memcpy(plan.json, json, length_bytes + 1);
    *place = plan;
}
