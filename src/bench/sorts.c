#include "bench/case.h"

static enum sx_status sort_rows(struct bench_worker *worker, struct bench_case *c) {
    const struct sx_sort_key orders[BENCH_COLUMNS] = {0};
    struct sx_tensor order = {0};
    SX_TRY(worker->bench->ops->sort(worker->stream, worker->columns, orders, c->n_columns, worker->rows,
                                    c->count, &order));
    sx_tensor_release(&order);
    return SX_OK;
}

static enum sx_status run(struct bench *bench, struct bench_case *c) {
    return bench_parallel(bench, c, sort_rows);
}

/* The floor: keys are read and the order is written; between, a pass over keys and rows for each 8 bits that
 * differ. With a limit: the keys are read. */
static void sort(struct bench *bench, int64_t rows, struct sx_type type, int n_keys, int64_t values, int bits,
                 int64_t limit, const char *name) {
    struct bench_case c = {.primitive = "sort", .rows = rows, .count = limit, .run = run};
    for (int k = 0; k < n_keys; k++)
        bench_add_column(&c, type, k + 1 < n_keys ? 1000 : values, false);
    const int passes = (bits + 7) / 8;
    const double keys = n_keys * (double)sx_type_bytes(type);
    c.bytes = (limit >= 0 ? keys : keys + 8 + passes * 2.0 * (8 + 8)) * (double)rows;
    if (limit >= 0)
        bench_name(&c, "%s, the first %lld", name, (long long)limit);
    else
        bench_name(&c, "%s", name);
    bench_measure(bench, &c);
}

void bench_sorts(struct bench *bench, int64_t rows) {
    const struct sx_type number = sx_type_of(SX_TYPE_I64);
    for (int64_t limit = -1; limit <= 100; limit += 101) {
        sort(bench, rows, number, 1, INT64_MAX, 63, limit, "int64");
        sort(bench, rows, sx_type_decimal(15, 2), 1, 1 << 24, 31, limit, "decimal64");
        sort(bench, rows, sx_type_of(SX_TYPE_VARCHAR), 1, 1000000, 64, limit, "strings");
        sort(bench, rows, number, 2, 1 << 24, 34, limit, "two int64");
    }
}
