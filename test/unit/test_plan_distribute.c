/* Where exchanges are put into the plans of queries for several ranks. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/distribute.h"
#include "plan_tables.h"

static const struct {
    const char *sql;
    const char *text; /* the plan's operators from the root on, with their exchanges' details, in preorder */
} cases[] = {
    {"SELECT * FROM t", "GATHER(SCAN)"},
    {"SELECT k + 1 FROM t WHERE s LIKE '%1%'", "GATHER(PROJECT(SCAN))"},
    {"SELECT * FROM (VALUES (1), (2)) v(x)", "VALUES"},
    {"SELECT k FROM t ORDER BY k", "GATHER RANGES(SORT(RANGE(SCAN)))"},
    {"SELECT k FROM t ORDER BY id LIMIT 5", "TOP_N(GATHER(TOP_N(SCAN)))"},
    {"SELECT k FROM t LIMIT 5 OFFSET 3", "LIMIT(GATHER(LIMIT(SCAN)))"},
    {"SELECT k FROM t OFFSET 3", "LIMIT(GATHER(SCAN))"},
    {"SELECT k, id, count(*), sum(d), avg(f), min(s) FROM t GROUP BY k, id",
     "GATHER^(PROJECT(AGGREGATE(HASH=(AGGREGATE(SCAN)))))"},
    {"SELECT DISTINCT k FROM t", "GATHER^(PROJECT(AGGREGATE(HASH=(AGGREGATE(SCAN)))))"},
    {"SELECT k, count(*) FROM t GROUP BY k ORDER BY 2, 1",
     "GATHER RANGES^(SORT(RANGE^(PROJECT(AGGREGATE(HASH=(AGGREGATE(SCAN)))))))"},
    {"SELECT k, count(*) FROM t GROUP BY k ORDER BY 2, 1 LIMIT 3",
     "TOP_N(GATHER^(TOP_N(PROJECT(AGGREGATE(HASH=(AGGREGATE(SCAN)))))))"},
    {"WITH c AS MATERIALIZED (SELECT k, count(*) n FROM t GROUP BY k) SELECT x.n, max(y.n) FROM c x JOIN c y "
     "ON x.k = y.k + 1 GROUP BY x.n",
     "GATHER^(MATERIALIZE(PROJECT(AGGREGATE(HASH(AGGREGATE(SCAN)))),PROJECT(AGGREGATE(HASH=(AGGREGATE("},
    {"SELECT k, n FROM (SELECT k, count(*) n FROM t GROUP BY k) JOIN u USING (k)", "HASH(AGGREGATE(SCAN))"},
    {"SELECT k, count(DISTINCT s) FROM t GROUP BY k", "GATHER(AGGREGATE(HASH(SCAN)))"},
    {"SELECT count(DISTINCT s), sum(k) FROM t", "PROJECT(AGGREGATE(GATHER(AGGREGATE(HASH(SCAN)))))"},
    {"SELECT count(DISTINCT s), count(DISTINCT k) FROM t", "AGGREGATE(GATHER(SCAN))"},
    {"SELECT first(s) FROM t", "AGGREGATE(GATHER(SCAN))"},
    {"SELECT k, count(*) FROM (SELECT DISTINCT k, id FROM t) GROUP BY k",
     "GATHER^(PROJECT(AGGREGATE(HASH=(AGGREGATE(PROJECT(AGGREGATE(HASH(AGGREGATE(SCAN)))))))))"},
    {"SELECT k, id, count(*) FROM (SELECT k, id, s FROM t GROUP BY ALL HAVING count(*) > 1) GROUP BY k, id, "
     "s",
     "GATHER^(PROJECT(AGGREGATE(FILTER(PROJECT(AGGREGATE(HASH=("},
    {"SELECT a.id, c.s FROM t a JOIN u c ON a.k = c.k", "GATHER(JOIN(HASH?(SCAN),HASH?(SCAN)))"},
    {"SELECT a.id, c.s FROM t a FULL JOIN u c ON a.k = c.k", "JOIN(HASH(SCAN),HASH(SCAN))"},
    {"SELECT a.id, c.s FROM t a, u c WHERE a.id < c.id", "JOIN(SCAN,BROADCAST(SCAN))"},
    {"SELECT id, k IN (SELECT k FROM u) FROM t", "JOIN(SCAN,BROADCAST(SCAN))"},
    {"SELECT id FROM t WHERE k > (SELECT avg(k) FROM u)", "BROADCAST(ROOT ONLY("},
    {"SELECT id FROM t WHERE k IN (1, 2) UNION ALL SELECT id FROM u", "GATHER(UNION_ALL(SCAN,SCAN))"},
    {"SELECT id FROM t UNION ALL SELECT count(*) FROM u", "UNION_ALL(SCAN,ROOT ONLY("},
    {"SELECT sum(k) FROM t UNION ALL SELECT 7",
     "UNION_ALL(PROJECT(AGGREGATE(GATHER(AGGREGATE(SCAN)))),PROJECT(VALUES))"},
    {"SELECT k FROM t EXCEPT ALL SELECT k FROM u", "GATHER(SET_ALL(HASH(SCAN),HASH(SCAN)))"},
    {"WITH c AS MATERIALIZED (SELECT k, count(*) n FROM t GROUP BY k) SELECT x.k FROM c x JOIN c y ON x.k = "
     "y.k",
     "JOIN(REFERENCE,REFERENCE)"},
};

/* With tables of which t takes 1000 bytes and u 100 bytes a column. */
static const struct {
    int64_t replicate_bytes;
    const char *sql;
    const char *text; /* scans of all rows by each rank are "SCAN!" */
} replicated_cases[] = {
    {200, "SELECT a.id, c.s FROM t a JOIN u c ON a.k = c.k", "GATHER(JOIN(SCAN,SCAN!))"},
    {199, "SELECT a.id, c.s FROM t a JOIN u c ON a.k = c.k", "GATHER(JOIN(HASH?(SCAN),HASH?(SCAN)))"},
    {0, "SELECT a.id, c.s FROM t a JOIN u c ON a.k = c.k", "GATHER(JOIN(HASH?(SCAN),HASH?(SCAN)))"},
    {1600, "SELECT a.id, c.s FROM t a JOIN u c ON a.k = c.k WHERE c.s LIKE '%1%'",
     "GATHER(JOIN(SCAN,SCAN!))"},
    {1599, "SELECT a.id, c.s FROM t a JOIN u c ON a.k = c.k WHERE c.s LIKE '%1%'", "JOIN(HASH?(SCAN),HASH?("},
    {200, "SELECT a.id, c.s FROM t a, u c WHERE a.id < c.id", "JOIN(SCAN,SCAN!)"},
    {100, "SELECT id, k IN (SELECT k FROM u) FROM t", "JOIN(SCAN,SCAN!)"},
    {200, "SELECT a.id, c.s FROM t a FULL JOIN u c ON a.k = c.k", "JOIN(HASH(SCAN),HASH(SCAN))"},
    {400, "SELECT a.id, c.s FROM t a JOIN (SELECT x.k, y.s FROM u x JOIN u y ON x.id = y.id) c ON a.k = c.k",
     "GATHER(JOIN(SCAN,PROJECT(JOIN(SCAN!,SCAN!))))"},
    {399, "SELECT a.id, c.s FROM t a JOIN (SELECT x.k, y.s FROM u x JOIN u y ON x.id = y.id) c ON a.k = c.k",
     "(SCAN,SCAN!)"},
    {9999, "SELECT a.id FROM t a JOIN (SELECT k, count(*) n FROM u GROUP BY k) c ON a.k = c.k AND a.id > c.n",
     "HASH(AGGREGATE(SCAN))"},
    {9999, "SELECT k, count(*) FROM u GROUP BY k", "GATHER^(PROJECT(AGGREGATE(HASH=(AGGREGATE(SCAN)))))"},
};

/* The most that the other ranks' shares may be, an exchange, for which rank 0 is to be alone. */
static const struct {
    const char *sql;
    int n_ranks;
    int64_t exchange_bytes;
} small_cases[] = {
    {"SELECT k FROM t", 2, 500},
    {"SELECT k FROM t", 3, 667},
    {"SELECT k, id FROM t", 2, 1000},
    {"SELECT k FROM t WHERE id > 3", 2, 1000},
    {"SELECT k, count(*) FROM t GROUP BY k", 2, 250},
    {"SELECT a.id FROM t a JOIN u c ON a.k = c.k", 2, (2000 + 100) / 2 / 2},
    {"SELECT k FROM t UNION ALL SELECT k FROM t", 2, 1000},
    {"SELECT k FROM t ORDER BY k", 2, 250},
};

static int64_t scan_bytes(void *context, const struct sx_scan_plan *scan) {
    (void)context;
    return (strcmp(scan->table, "t") == 0 ? 1000 : 100) * (int64_t)scan->n_columns;
}

static int failures;

static void append(char *text, size_t size, const char *more) {
    const size_t length = strlen(text);
    assert(length + strlen(more) < size);
    memcpy(text + length, more, strlen(more) + 1);
}

static void add_shape(const struct sx_plan *plan, char *text, size_t size) {
    static const char *const kinds[] = {
#define KIND(name, shown) shown,
        SX_PLAN_LIST(KIND)
#undef KIND
    };
    static const char *const exchanges[] = {
#define KIND(name, shown) shown,
        SX_EXCHANGE_LIST(KIND)
#undef KIND
    };
    append(text, size, plan->kind == SX_PLAN_EXCHANGE ? exchanges[plan->u.exchange.kind] : kinds[plan->kind]);
    if (plan->kind == SX_PLAN_EXCHANGE && plan->u.exchange.adaptive)
        append(text, size, "?");
    if (plan->kind == SX_PLAN_EXCHANGE && plan->u.exchange.root_choice)
        append(text, size, plan->u.exchange.root_choice == plan ? "=" : "^");
    if (plan->kind == SX_PLAN_SCAN && plan->u.scan.is_replicated)
        append(text, size, "!");
    for (int32_t i = 0; i < plan->n_children; i++) {
        append(text, size, i ? "," : "(");
        add_shape(plan->children[i], text, size);
    }
    append(text, size, plan->n_children ? ")" : "");
}

static void check_case(struct sx_frontend *frontend, const struct sx_distribute_options *options,
                       const char *sql, const char *wanted) {
    struct sx_query_plan query = {0};
    struct sx_error error = {0};
    char shape[4096] = "";
    enum sx_status status = sx_frontend_plan(frontend, sql, &query, &error);
    if (status == SX_OK)
        status = sx_plan_distribute(&query, options, &error);
    if (status == SX_OK)
        add_shape(query.root, shape, sizeof shape);
    if (status != SX_OK || !strstr(shape, wanted)) {
        fprintf(stderr, "%s\n%s\nlooked for \"%s\" in\n%s\n%s\n", sql, error.text, wanted, shape,
                status == SX_OK ? sx_plan_text(&query.arena, query.root) : "");
        failures++;
    }
    sx_query_plan_release(&query);
}

static void check_small(struct sx_frontend *frontend, const char *sql, int n_ranks, int64_t exchange_bytes,
                        bool wanted) {
    const struct sx_distribute_options options = {
        .scan_bytes = scan_bytes, .n_ranks = n_ranks, .exchange_bytes = exchange_bytes};
    struct sx_query_plan query = {0};
    struct sx_error error = {0};
    assert(sx_frontend_plan(frontend, sql, &query, &error) == SX_OK);
    if (sx_plan_is_small(&query, &options) != wanted) {
        fprintf(stderr, "%s\n%d ranks, %lld bytes: should %sbe small\n%s\n", sql, n_ranks,
                (long long)exchange_bytes, wanted ? "" : "not ", sx_plan_text(&query.arena, query.root));
        failures++;
    }
    sx_query_plan_release(&query);
}

static void check_small_cases(struct sx_frontend *frontend) {
    for (size_t i = 0; i < sizeof small_cases / sizeof *small_cases; i++) {
        const char *sql = small_cases[i].sql;
        check_small(frontend, sql, small_cases[i].n_ranks, small_cases[i].exchange_bytes, true);
        check_small(frontend, sql, small_cases[i].n_ranks, small_cases[i].exchange_bytes - 1, false);
        check_small(frontend, sql, small_cases[i].n_ranks, 0, false);
        check_small(frontend, sql, 1, INT64_MAX, false);
    }
}

int main(void) {
    static const char rows[] =
        "SELECT range AS id, (range %% 7)::INTEGER AS k, range::VARCHAR AS s, range::DECIMAL(15,2) AS d, "
        "range::DOUBLE AS f FROM range(%d)";
    static const char *const names[] = {"t", "u"};
    struct sx_frontend *frontend;
    struct sx_error error = {0};
    make_scratch();
    assert(sx_frontend_open(2, 0, &frontend, &error) == SX_OK);
    for (int i = 0; i < 2; i++) {
        char select[512];
        snprintf(select, sizeof select, rows, 1000 >> i);
        add_table(frontend, names[i], select);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(frontend, NULL, cases[i].sql, cases[i].text);
    for (size_t i = 0; i < sizeof replicated_cases / sizeof *replicated_cases; i++) {
        const struct sx_distribute_options options = {.replicate_bytes = replicated_cases[i].replicate_bytes,
                                                      .scan_bytes = scan_bytes};
        check_case(frontend, &options, replicated_cases[i].sql, replicated_cases[i].text);
    }
    check_small_cases(frontend);
    sx_frontend_close(frontend);
    remove_scratch();
    return failures ? 1 : 0;
}
