/* Whose plans may be used again: not those with any of DuckDB's functions whose value may change. And what
 * several queries share of one. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arrow.h"
#include "plan/duckdb_handle.h"

static const char *const lasting[] = {
    "SELECT sum(v), 'a known text' FROM t WHERE day > DATE '1998-12-01' - INTERVAL 90 DAYS GROUP BY ALL",
    "WITH x AS (SELECT * FROM t) SELECT substring(s FROM 1 FOR 2), extract(year FROM day) FROM x",
    "SELECT concat(a, ' ', b, '') FROM t\nWHERE x = 'a'\nOR y = 'b'",
    "SELECT \"knowing\", nowhere, rerandom FROM t",
};

static const char *const changing[] = {
    "SELECT NOW()",
    "SELECT * FROM t WHERE day < current_date",
    "SELECT * FROM t WHERE day < CURRENT_TIMESTAMP - INTERVAL 1 DAY",
    "SELECT * FROM t WHERE day < 'today'::DATE",
    "SELECT count(*) FROM read_parquet('x')",
    "SELECT count(*) FROM 'files/x.parquet'",
    "SELECT count(*) FROM \"x.CSV\"",
    "SELECT count(*) FROM query_table('t')",
    "SELECT getvariable('x') + v FROM t",
    "SELECT v FROM t WHERE Age(day) > INTERVAL 1 DAY",
    "SELECT '12:00'::TIMETZ AT TIME ZONE 'America/New_York'",
    "SELECT count(*) FROM E'x.p\\x61rquet'",
    "SELECT count(*) FROM 'x.par' -- in two\n 'quet'",
    "SELECT current_setting('threads')",
};

/* What DuckDB says of its own, and macros over them. */
static const char listed[] = "SELECT DISTINCT function_name FROM duckdb_functions() "
                             "WHERE stability IN ('VOLATILE', 'CONSISTENT_WITHIN_QUERY') OR "
                             "(macro_definition IS NOT NULL AND regexp_matches(lower(macro_definition), "
                             "'now\\(|today|current|random|nextval|uuid'))";

static int failures;

static void expect(const char *sql, size_t length, bool may_change) {
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)length, sql);
    if (sx_statement_may_change(text) != may_change) {
        fprintf(stderr, "%s: %s\n", text,
                may_change ? "taken for one that stays as it is" : "taken for one that changes");
        failures++;
    }
}

static int64_t check_functions(const struct ArrowArray *array) {
    const struct ArrowArray *names = array->children[0];
    const int32_t *offsets = (const int32_t *)names->buffers[1] + names->offset;
    const char *bytes = names->buffers[2];
    for (int64_t i = 0; i < names->length; i++)
        expect(bytes + offsets[i], (size_t)(offsets[i + 1] - offsets[i]), true);
    return names->length;
}

static void test_functions(struct sx_frontend *frontend) {
    struct sx_error error = {0};
    struct ArrowArrayStream stream;
    int64_t n = 0;
    if (sx_frontend_run(frontend, listed, &stream, &error) != SX_OK) {
        fprintf(stderr, "%s\n", error.text);
        assert(false);
    }
    for (;;) {
        struct ArrowArray array;
        assert(stream.get_next(&stream, &array) == 0);
        if (!array.release)
            break;
        n += check_functions(&array);
        array.release(&array);
    }
    stream.release(&stream);
    assert(n > 20);
}

static void plan(struct sx_frontend *frontend, const char *sql, enum sx_plan_for purpose, bool is_known,
                 struct sx_query_plan *out_plan) {
    struct sx_error error = {0};
    bool known;
    assert(sx_frontend_plan_known(frontend, sql, purpose, out_plan, &known, &error) == SX_OK);
    assert(known == is_known && (!known || out_plan->is_known));
    if (!known)
        assert(sx_frontend_plan(frontend, sql, out_plan, &error) == SX_OK);
    assert(out_plan->root && strcmp(out_plan->root->columns[0].name, "x") == 0);
}

/* Plans that are read only are one, which lives as long as any of its users; those to be changed are not. */
static void test_sharing(struct sx_frontend *frontend) {
    static const char sql[] = "SELECT 42 AS x", again[] = "\n  SELECT 42 AS x ; ";
    struct sx_query_plan first, second, third, own, planned_anew;
    struct sx_error error = {0};
    plan(frontend, sql, SX_PLAN_TO_READ, false, &first);
    plan(frontend, sql, SX_PLAN_TO_READ, true, &second);
    plan(frontend, again, SX_PLAN_TO_READ, true, &third);
    plan(frontend, sql, SX_PLAN_TO_CHANGE, true, &own);
    assert(!first.shared && second.shared && second.root == third.root && second.arena.total_bytes == 0);
    assert(!own.shared && own.root != second.root && own.arena.total_bytes > 0);
    assert(sx_frontend_plan(frontend, sql, &planned_anew, &error) == SX_OK); /* takes the known one's place */
    sx_query_plan_release(&second);
    assert(strcmp(third.root->columns[0].name, "x") == 0);
    sx_query_plan_release(&third);
    plan(frontend, sql, SX_PLAN_TO_READ, true, &second);
    sx_plan_memo_clear(&frontend->memo);
    assert(strcmp(second.root->columns[0].name, "x") == 0);
    plan(frontend, sql, SX_PLAN_TO_READ, false, &third);
    struct sx_query_plan *const all[] = {&first, &second, &third, &own, &planned_anew};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sx_query_plan_release(all[i]);
}

int main(void) {
    struct sx_frontend *frontend;
    struct sx_error error = {0};
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
        expect(lasting[i], strlen(lasting[i]), false);
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
        expect(changing[i], strlen(changing[i]), true);
    assert(sx_frontend_open(1, 0, &frontend, &error) == SX_OK);
    test_functions(frontend);
    test_sharing(frontend);
    sx_frontend_close(frontend);
    return failures ? 1 : 0;
}
