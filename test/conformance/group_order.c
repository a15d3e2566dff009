/* Group by where rows come in the order of their key. */
#include "group_case.h"

static void put(struct sx_tensor *key, int64_t row, int64_t value) {
    if (sx_phys_bytes(sx_type_phys(key->type)) == 4)
        ((int32_t *)key->values)[row] = (int32_t)value;
    else
        ((int64_t *)key->values)[row] = value;
}

static int64_t rows_of_run(struct conformance *c, enum group_order order) {
    switch (order) {
    case GROUP_DISTINCT: return 1;
    case GROUP_ONE_KEY: return INT64_MAX;
    case GROUP_LONG_RUNS: return 1 + (int64_t)(conformance_random(c) % 500);
    default: return 1 + (int64_t)(conformance_random(c) % 7);
    }
}

static bool is_unsigned(struct sx_type type) {
    return type.id == SX_TYPE_U32 || type.id == SX_TYPE_U64;
}

void group_put_in_order(struct conformance *c, const struct group_shape *shape, int64_t chunk_rows,
                        struct sx_tensor *key) {
    enum { STEP = 3, LESS = 20 };
    const int64_t n = shape->rows, half = n / 2 / chunk_rows * chunk_rows,
                  last = (n - 1) / chunk_rows * chunk_rows;
    int64_t value = is_unsigned(key->type) ? LESS * n : -n, left = rows_of_run(c, shape->order);
    for (int64_t row = 0; row < n; row++, left--) {
        if (left == 0) {
            value += 1 + (int64_t)(conformance_random(c) % STEP);
            left = rows_of_run(c, shape->order);
        }
        if (shape->order == GROUP_LAST_OVERLAPS && row == last)
            value -= LESS;
        const int64_t at = shape->order == GROUP_LATER_FIRST ? (row + half) % n : row;
        put(key, at, value);
    }
    key->valid = NULL;
    if (shape->order == GROUP_LAST_FALLS)
        put(key, n - 1, value - LESS);
}

void conform_group_order(struct conformance *c) {
    const struct sx_type types[] = {TYPE(I32),  TYPE(I64),       TYPE(U32),     TYPE(U64),
                                    TYPE(DATE), TYPE(TIMESTAMP), DECIMAL(15, 2)};
    enum { N_TYPES = sizeof types / sizeof types[0] };
    const struct sx_aggregate_spec aggregates[] = {
        group_aggregate_of(SX_AGG_SUM, DECIMAL(15, 2)), group_aggregate_of(SX_AGG_COUNT_STAR, TYPE(I8)),
        group_aggregate_of(SX_AGG_AVG, TYPE(I32)),      group_aggregate_of(SX_AGG_SUM, TYPE(F64)),
        group_aggregate_of(SX_AGG_COUNT, TYPE(I64)),    group_aggregate_of(SX_AGG_MIN, TYPE(VARCHAR)),
        group_aggregate_of(SX_AGG_SUM, DECIMAL(30, 4)), group_aggregate_of(SX_AGG_MAX, TYPE(I64)),
    };
    for (int order = GROUP_SHORT_RUNS; order < GROUP_N_ORDERS; order++)
        for (int t = 0; t < N_TYPES; t++)
            for (int chunks = 1; chunks <= 2; chunks++) {
                const struct sx_group_spec spec = {1, &types[t], 8, aggregates, 1, 0};
                const struct group_shape shape = {.rows = 21013,
                                                  .n_workers = 1 + (order + t + chunks) % MAX_WORKERS,
                                                  .null_share = (order + t) % 2 ? 0.1 : 0,
                                                  .filtered = t % 3 == 2,
                                                  .shared = t % 2 == 0,
                                                  .chunk_rows = chunks == 1 ? 5000 : 4099,
                                                  .order = (enum group_order)order};
                char what[64];
                snprintf(what, sizeof what, "rows in order %d of keys %d", order, t);
                group_check_shape(c, &spec, &shape, what);
            }
}
