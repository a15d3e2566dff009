/* Joins that are told how many build rows will come: as many, fewer or more do. */
#include "join_case.h"

static enum sx_status of_keys(struct conformance *c, struct sx_type type, int64_t rows, double nulls) {
    /* words that are not dense; that are for all rows, but not for a quarter of them; that are */
    static const int64_t steps[] = {40000, 40000, 500, 3};
    const int64_t expected[] = {rows, rows * 2 / 3, rows / 4, rows * 3, rows * 6 / 5};
    enum { N = sizeof expected / sizeof expected[0] };
    for (int variant = 0; variant < 3 * N; variant++) {
        const struct join_case test = {
            .n_keys = 1,
            .types = {type},
            .styles = {UNIQUE},
            .step = steps[variant % 4],
            .copies = 1 + variant / N,
            .null_equal = nulls > 0 && variant % 2,
            .nulls = nulls,
            .build_rows = rows,
            .probe_rows = rows < 3000 ? rows : 3000,
            .n_workers = 1 + variant % 3,
            .max_pairs = variant % 2 ? 997 : 100000,
            .expected_rows = expected[variant % N],
        };
        SX_TRY(join_case_run(c, &test));
    }
    return SX_OK;
}

/* Keys of which some batches have no NULL. */
static enum sx_status some_nulls(struct conformance *c, int64_t rows) {
    return of_keys(c, sx_type_of(SX_TYPE_I64), rows, 1.0 / 2000);
}

/* No single key of one word. */
static enum sx_status other_keys(struct conformance *c, int64_t rows) {
    const struct join_case cases[] = {
        {.n_keys = 1, .types = {{SX_TYPE_VARCHAR, 0, 0}}, .styles = {RANDOM}},
        {.n_keys = 1, .types = {{SX_TYPE_F64, 0, 0}}, .styles = {RANDOM}},
        {.n_keys = 1, .types = {{SX_TYPE_DECIMAL, 30, 4}}, .styles = {RANDOM}},
        {.n_keys = 2, .types = {{SX_TYPE_I64, 0, 0}, {SX_TYPE_I32, 0, 0}}, .styles = {RANDOM, FEW}},
        {.n_keys = 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct join_case test = cases[i];
        test.build_rows = test.n_keys ? rows : 100;
        test.probe_rows = test.n_keys ? 1000 : 30;
        test.n_workers = 2;
        test.max_pairs = 4096;
        test.expected_rows = rows;
        SX_TRY(join_case_run(c, &test));
    }
    return SX_OK;
}

enum sx_status join_expect_cases(struct conformance *c) {
    enum {
        ROWS = 6000,
        NARROW_ROWS = 3200,  /* whose slots are narrow, but for room of 4096 */
        MANY_ROWS = 1300000, /* enough for a GPU */
    };
    const enum sx_type_id types[] = {SX_TYPE_I32,  SX_TYPE_I64,     SX_TYPE_U32,      SX_TYPE_U64,
                                     SX_TYPE_DATE, SX_TYPE_DECIMAL, SX_TYPE_TIMESTAMP};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const struct sx_type type = {types[t], types[t] == SX_TYPE_DECIMAL ? 15 : 0, 0};
        SX_TRY(of_keys(c, type, ROWS, 0));
        SX_TRY(of_keys(c, type, NARROW_ROWS, 0));
    }
    SX_TRY(some_nulls(c, ROWS));
    SX_TRY(other_keys(c, ROWS));
    struct join_case test = {.n_keys = 1,
                             .types = {{SX_TYPE_I64, 0, 0}},
                             .styles = {UNIQUE},
                             .step = 40000,
                             .build_rows = ROWS,
                             .probe_rows = 3000,
                             .n_workers = 2,
                             .max_pairs = 1000,
                             .expected_rows = ROWS};
    SX_TRY(join_case_run_short_of_memory(c, &test));
    test.build_rows = test.expected_rows = MANY_ROWS;
    test.max_pairs = 100000;
    for (test.copies = 1; test.copies <= 2 && conformance_may_have(MANY_ROWS); test.copies++)
        SX_TRY(join_case_run(c, &test));
    return SX_OK;
}
