/* What is read and joined once for two places of a query, and what may not be (src/plan/share.c). */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_tables.h"

/* Over t and p (id BIGINT, k BIGINT, s VARCHAR, d DECIMAL(15,2)), k and s with NULLs. n_scans: of t in the
 * plan. */
#define JOINED "SELECT t.id FROM t, p WHERE p.id = t.k AND p.d < 6 "
static const struct {
    const char *sql;
    int n_scans;
} cases[] = {
    {JOINED "AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id)", 1},
    {JOINED "AND p.s = '3' AND t.d = (SELECT min(d) FROM t c WHERE c.k = p.id)", 1},
    {JOINED "AND t.d < (SELECT count(DISTINCT d) FROM t c WHERE c.k = p.id)", 1},
    {JOINED "AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id AND c.s = t.s)", 1},
    {JOINED "AND t.id > 5 AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id AND c.id > 5)", 1},
    {JOINED "AND p.s = t.s AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id AND c.s = p.s)", 1},
    {"SELECT t.id FROM t, p, p q WHERE p.id = t.k AND t.s = q.s AND q.d = 3 AND t.d < (SELECT avg(c.d) FROM "
     "t c, p r WHERE c.k = p.id AND c.s = r.s AND r.d = 3)",
     1},
    {"SELECT id FROM t WHERE s = '3' AND d < (SELECT sum(d) FROM t c WHERE c.k = t.k AND c.s = '3')", 1},
    /* each row as often as p has its key */
    {JOINED "AND t.d < (SELECT sum(d) FROM t c WHERE c.k = p.id)", 2},
    {JOINED "AND t.d < (SELECT count(*) FROM t c WHERE c.k = p.id)", 2},
    /* other rows */
    {JOINED "AND t.id > 5 AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id)", 2},
    {JOINED "AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id AND c.id > 5)", 2},
    {JOINED "AND t.id > 5 AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id AND c.id > 6)", 2},
    {JOINED "AND p.s = t.s AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id)", 2},
    {JOINED "AND t.d < (SELECT avg(d) FROM t c WHERE c.k = p.id AND c.id > t.id)", 2},
    {JOINED "AND p.s = '3' AND t.d < (SELECT avg(d) FROM t c WHERE c.id = p.id)", 2},
    {JOINED "AND p.s = '3' AND t.d < (SELECT avg(c.d) FROM t c, p q WHERE c.k = p.id AND c.s = q.s)", 2},
    {JOINED "AND p.s = t.s AND t.s = (SELECT max(s) FROM t c WHERE c.k = p.id)", 2},
    {JOINED "AND t.d < (SELECT avg(c.d + t.id) FROM t c WHERE c.k = p.id)", 2},
    {"SELECT t.id FROM t, p, p z WHERE t.k = p.id AND t.s = p.s AND p.k = z.id AND z.d < 6 AND t.d < (SELECT "
     "avg(c.d) FROM t c, p q WHERE c.k = q.id AND q.k = z.id)",
     2},
    /* groups of groups */
    {"SELECT k, sum(d) FROM t GROUP BY k HAVING sum(d) > (SELECT sum(d) / 10 FROM t)", 1},
    {"SELECT k, min(s), sum(d) FROM t GROUP BY k HAVING min(s) > (SELECT min(s) FROM t)", 1},
    {"SELECT p.s, sum(t.d) FROM t, p WHERE t.k = p.id GROUP BY p.s HAVING sum(t.d) > (SELECT sum(c.d) / 10 "
     "FROM t c, p q WHERE c.k = q.id)",
     1},
    {"SELECT k, sum(d) FROM t GROUP BY k HAVING sum(d) > (SELECT sum(d) / 10 FROM t WHERE id > 3)", 2},
    {"SELECT k, sum(d) FROM t GROUP BY k HAVING sum(d) > (SELECT sum(d + 1) / 10 FROM t)", 2},
    {"SELECT k, sum(d) FILTER (id > 3) FROM t GROUP BY k HAVING sum(d) FILTER (id > 3) > (SELECT sum(d) / 10 "
     "FROM t)",
     2},
    {"SELECT t.k, sum(t.d) FROM t, p GROUP BY t.k HAVING sum(t.d) > (SELECT sum(c.d) FROM t c)", 2},
    {"SELECT k, avg(d) FROM t GROUP BY k HAVING avg(d) > (SELECT avg(d) FROM t)", 2},
    {"SELECT p.s, sum(t.d) FROM t, p WHERE t.k = p.id GROUP BY p.s HAVING sum(t.d) > (SELECT sum(c.d) / 10 "
     "FROM t c, p q WHERE c.id = q.id)",
     2},
    /* a join leaves out some of what is aggregated, as it is scanned */
    {"SELECT x.k, x.n, y.n FROM (SELECT k, s, sum(d) AS n FROM t GROUP BY k, s) x JOIN (SELECT s, sum(d) AS "
     "n FROM t GROUP BY s) y ON x.s = y.s",
     2},
};

static int count_scans(const char *text) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, "SCAN t (")); at++)
        n++;
    return n;
}

static int check_case(struct sx_frontend *frontend, size_t number) {
    struct sx_query_plan query = {0};
    struct sx_error error = {0};
    const enum sx_status status = sx_frontend_plan(frontend, cases[number].sql, &query, &error);
    const char *text = status == SX_OK ? sx_plan_text(&query.arena, query.root) : error.text;
    const bool is_right = status == SX_OK && count_scans(text) == cases[number].n_scans;
    if (!is_right)
        fprintf(stderr, "%s\nexpected %d scans of t in\n%s\n", cases[number].sql, cases[number].n_scans,
                text);
    sx_query_plan_release(&query);
    return !is_right;
}

int main(void) {
    static const char rows[] = "SELECT range AS id, CASE WHEN range %% 5 > 0 THEN range %% 7 END AS k, "
                               "nullif(range, 4)::VARCHAR AS s, "
                               "range::DECIMAL(15,2) AS d FROM range(%d)";
    static const char *const names[] = {"t", "p"};
    struct sx_frontend *frontend;
    struct sx_error error = {0};
    int failures = 0;
    make_scratch();
    assert(sx_frontend_open(2, 0, &frontend, &error) == SX_OK);
    for (int i = 0; i < 2; i++) {
        char select[512];
        snprintf(select, sizeof select, rows, i == 0 ? 100 : 20);
        add_table(frontend, names[i], select);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        failures += check_case(frontend, i);
    sx_frontend_close(frontend);
    remove_scratch();
    return failures > 0;
}
