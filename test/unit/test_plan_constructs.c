/* What SQL constructs become: plans, refusals that name the cause, and errors that show the place. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_tables.h"

/* Over t (id BIGINT, k INTEGER, s VARCHAR, d DECIMAL(15,2), f DOUBLE, day DATE, moment TIMESTAMP, b BOOLEAN,
 * list INTEGER[]), all but id with NULLs. `text`: what the plan's or the error's text must contain. */
static const struct {
    enum sx_status status;
    const char *sql;
    const char *text;
} cases[] = {
    {SX_OK, "SELECT 1 AS one, NULL, 'it''s'", "VALUES"},
    {SX_OK, "SELECT id FROM t WHERE k = 3 AND s LIKE '%a%b'", "SCAN t (id) where"},
    {SX_OK, "SELECT id FROM t WHERE k IN (9, 5, 3)", "IN (3, 5, 9)"},
    {SX_OK, "SELECT k IN (1, 2, NULL) FROM t", "OR NULL"},
    {SX_OK, "SELECT k NOT IN (1, id) FROM t", "not("},
    {SX_OK, "SELECT id FROM t WHERE k BETWEEN 1 AND id", ">= 1"},
    {SX_OK, "SELECT count(*) FROM t WHERE k > 1", "count(*)"},
    {SX_OK, "SELECT count(DISTINCT s) FILTER (b), sum(d), avg(k), min(day), max(moment) FROM t",
     "DISTINCT s"},
    {SX_OK, "SELECT k, sum(f) FROM t GROUP BY k HAVING sum(f) > 1", "by k"},
    {SX_OK, "SELECT k, s, count(*), grouping(k, s) FROM t GROUP BY ROLLUP (k, s)", "UNION_ALL"},
    {SX_OK, "SELECT DISTINCT k FROM t", "AGGREGATE by k"},
    {SX_OK, "SELECT id FROM t ORDER BY k DESC NULLS FIRST, s", "SORT by k DESC NULLS FIRST, s"},
    {SX_OK, "SELECT id FROM t ORDER BY k LIMIT 5 OFFSET 2", "limit 5 offset 2"},
    {SX_OK, "SELECT id FROM t LIMIT 3", "LIMIT limit 3"},
    {SX_OK, "SELECT a.id FROM t a JOIN t c ON a.k = c.k AND a.id < c.id", "JOIN INNER on k = k where"},
    {SX_OK, "SELECT a.id, c.id FROM t a LEFT JOIN t c ON a.k = c.k AND a.id + c.id > 3",
     "JOIN LEFT on k = k"},
    {SX_OK, "SELECT a.id, c.id FROM t a FULL JOIN t c ON a.k = c.k", "JOIN FULL"},
    {SX_OK, "SELECT a.id, c.id FROM t a, t c", "JOIN INNER\n"},
    {SX_OK, "SELECT a.id FROM t a, t c WHERE a.s IS NOT DISTINCT FROM c.s", "IS NOT DISTINCT FROM"},
    {SX_OK, "SELECT id FROM t WHERE k IN (SELECT k FROM t WHERE id > 5)", "SEMI"},
    {SX_OK, "SELECT id, k IN (SELECT k FROM t WHERE id > 5) FROM t", "JOIN MARK on k = k"},
    {SX_OK, "SELECT id, id > ALL (SELECT k FROM t) FROM t", "THEN NULL"},
    {SX_OK, "SELECT id, k IN (SELECT k FROM t c WHERE c.s = t.s AND c.id > t.id) FROM t", "within groups"},
    {SX_OK, "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t c WHERE c.k = t.k AND c.id > t.id)", "SEMI"},
    {SX_OK, "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t c WHERE c.k = t.k AND c.id + t.id > 9)",
     "ANTI"},
    {SX_OK, "SELECT id, (SELECT c.s FROM t c WHERE c.id = t.k) FROM t", "JOIN SINGLE"},
    {SX_OK, "SELECT id, (SELECT sum(c.id) FROM t c WHERE c.k = t.k AND c.s <> t.s) FROM t", "MATERIALIZE"},
    {SX_OK, "SELECT id FROM t UNION SELECT k FROM t", "UNION_ALL"},
    {SX_OK, "SELECT id FROM t EXCEPT ALL SELECT k FROM t", "SET_ALL EXCEPT"},
    {SX_OK, "SELECT id FROM t INTERSECT SELECT k FROM t", "JOIN SEMI"},
    {SX_OK,
     "WITH c AS MATERIALIZED (SELECT k, count(*) n FROM t GROUP BY k) SELECT * FROM c x JOIN c y USING "
     "(n)",
     "REFERENCE"},
    {SX_OK, "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(x, y)", "VALUES 2 rows (1, 'a') (2, NULL)"},
    {SX_OK, "SELECT CASE k WHEN 1 THEN s ELSE upper(s) END, coalesce(k, 7), nullif(s, '') FROM t",
     "CASE WHEN"},
    {SX_OK, "SELECT d * (1 - d), d + 1, d % 3, -d, round(d, 1), floor(d), abs(d), k // 2, f / 3 FROM t",
     "round(d, 1)"},
    {SX_OK,
     "SELECT day + INTERVAL 3 MONTH, day - 3, moment - moment, 3 + day, year(day), extract(month FROM "
     "moment) FROM t",
     "month(moment)"},
    {SX_OK,
     "SELECT s || 'x', concat(s, k, NULL), substr(s, 2), length(s), s NOT LIKE 'a!%' ESCAPE '!' FROM t",
     "not_like_escape"},
    {SX_OK, "SELECT CAST(k AS VARCHAR), TRY_CAST(s AS INTEGER), CAST(s AS DATE), CAST(d AS DOUBLE) FROM t",
     "TRY_CAST(s AS INTEGER)"},
    {SX_OK, "SELECT id FROM t WHERE false", "VALUES 0 rows"},
    {SX_OK, "SELECT sum(id), sum(id), sum(id + 1) FROM t", "AGGREGATE sum(id), count"},
    {SX_UNSUPPORTED, "SELECT list FROM t", "type LIST (list)"},
    {SX_UNSUPPORTED, "SELECT list(id) FROM t", "list"},
    {SX_UNSUPPORTED, "SELECT row_number() OVER (ORDER BY id) FROM t", "operator WINDOW"},
    {SX_UNSUPPORTED, "SELECT string_agg(s, ',') FROM t", "aggregate string_agg"},
    {SX_UNSUPPORTED, "SELECT reverse(s) FROM t", "function reverse(VARCHAR)"},
    {SX_UNSUPPORTED, "SELECT * FROM range(5)", "table function range"},
    {SX_UNSUPPORTED, "EXPLAIN SELECT 1", "statement EXPLAIN"},
    {SX_UNSUPPORTED, "CREATE TABLE x (i INTEGER)", "statement CREATE"},
    {SX_UNSUPPORTED, "SELECT id FROM t LIMIT 10 PERCENT", "LIMIT by CONSTANT_PERCENTAGE"},
    {SX_QUERY, "SELECT id\nFROM t\nGROUPED BY id", "line 3, column 9"},
    {SX_QUERY, "SELECT nothing FROM t", "nothing"},
    {SX_QUERY, "SELECT 1 FROM nowhere", "nowhere"},
    {SX_QUERY, "SELECT 'é', nothing FROM t", "line 1, column 13"},
    {SX_QUERY, "SELECT no_function(1)", "no_function"},
    {SX_QUERY, "", "empty"},
    {SX_QUERY, "SELECT 1; SELECT 2", "2 statements"},
    {SX_QUERY, "SELECT $1", "parameters"},
};

static int failures;

static void check_case(struct sx_frontend *frontend, size_t number) {
    struct sx_query_plan query = {0};
    struct sx_error error = {0};
    const enum sx_status status = sx_frontend_plan(frontend, cases[number].sql, &query, &error);
    const char *text = status == SX_OK ? sx_plan_text(&query.arena, query.root) : error.text;
    if (status != cases[number].status || !strstr(text, cases[number].text)) {
        fprintf(stderr, "%s\nstatus %d, expected %d; looked for \"%s\" in\n%s\n", cases[number].sql,
                (int)status, (int)cases[number].status, cases[number].text, text);
        failures++;
    }
    sx_query_plan_release(&query);
}

static void test_names(struct sx_frontend *frontend) {
    struct sx_query_plan query = {0};
    struct sx_error error = {0};
    assert(sx_frontend_plan(frontend, "SELECT id, id AS \"two words\", id + 1, count(*) FROM t GROUP BY id",
                            &query, &error) == SX_OK);
    static const char *const names[] = {"id", "two words", "(id + 1)", "count_star()"};
    assert(query.root->n_columns == 4);
    for (int i = 0; i < 4; i++)
        assert(strcmp(query.root->columns[i].name, names[i]) == 0);
    sx_query_plan_release(&query);
}

static void test_split(void) {
    static const char script[] =
        "select 'a;b' ; -- c;d\n /* e; /* nested; */ */ ;select \"x;y\", $t$;$t$,E'\\';';"
        "\nselect 3";
    static const char *const parts[] = {"select 'a;b' ", "select \"x;y\", $t$;$t$,E'\\';'", "\nselect 3"};
    struct sx_arena arena = {0};
    struct sx_error error = {0};
    const char *const *statements;
    int n;
    assert(sx_frontend_split(NULL, &arena, script, &statements, &n, &error) == SX_OK);
    assert(n == 3);
    for (int i = 0; i < n; i++)
        assert(strcmp(statements[i], parts[i]) == 0);
    sx_arena_release(&arena);
}

static void test_files(struct sx_frontend *frontend, const char *path) {
    struct sx_error error = {0};
    const char *missing = "/nowhere/at/all.parquet";
    assert(sx_frontend_add_table(frontend, "gone", &missing, 1, NULL, &error) == SX_FILE);
    assert(strstr(error.text, missing));
    FILE *file = fopen(path, "w");
    assert(file && fputs("this is text, not a table", file) >= 0);
    fclose(file);
    struct sx_query_plan query = {0};
    assert(sx_frontend_add_table(frontend, "broken", &path, 1, NULL, &error) == SX_OK);
    assert(sx_frontend_plan(frontend, "SELECT * FROM broken", &query, &error) == SX_FILE);
    assert(strstr(error.text, path));
    assert(sx_frontend_plan(frontend, "SELECT 1", &query, &error) == SX_OK);
    sx_query_plan_release(&query);
}

static void test_tables(struct sx_frontend *frontend) {
    struct sx_arena arena = {0};
    struct sx_error error = {0};
    struct sx_column_info *columns;
    const char *const *names;
    int n;
    assert(sx_frontend_tables(frontend, &names) == 1 && strcmp(names[0], "t") == 0);
    assert(sx_frontend_describe(frontend, &arena, "t", &columns, &n, &error) == SX_OK);
    assert(n == 9 && strcmp(columns[3].name, "d") == 0 && columns[3].type.id == SX_TYPE_DECIMAL &&
           columns[3].type.precision == 15 && columns[8].type.id == SX_TYPE_NULLTYPE);
    assert(sx_frontend_describe(frontend, &arena, "nowhere", &columns, &n, &error) == SX_QUERY);
    sx_arena_release(&arena);
}

int main(void) {
    static const char rows[] = "SELECT range AS id, CASE WHEN range % 5 > 0 THEN range % 7 END::INTEGER AS "
                               "k, nullif(range, 4)::VARCHAR AS s, "
                               "nullif(range, 5)::DECIMAL(15,2) AS d, nullif(range, 6)::DOUBLE AS f, DATE "
                               "'2020-01-01' + nullif(range, "
                               "7)::INTEGER AS day, TIMESTAMP '2020-01-01' + to_days(nullif(range, "
                               "8)::INTEGER) AS moment, nullif(range, 9) % 2 "
                               "= 0 AS b, [range::INTEGER] AS list FROM range(100)";
    struct sx_frontend *frontend;
    struct sx_error error = {0};
    make_scratch();
    assert(sx_frontend_open(2, 0, &frontend, &error) == SX_OK);
    add_table(frontend, "t", rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(frontend, i);
    test_names(frontend);
    test_tables(frontend);
    test_split();
    test_files(frontend, in_scratch("broken.parquet"));
    sx_frontend_close(frontend);
    remove_scratch();
    return failures ? 1 : 0;
}
