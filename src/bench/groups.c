/* Group by: updates of all workers, then the end, then all parts of the result. */
#include "bench/case.h"

enum { N_AGGREGATES = 3 };

static enum sx_status use_update(struct bench_worker *worker, struct bench_case *c,
                                 const struct sx_batch *batch) {
    const int n_keys = c->n_columns - 2;
    const struct sx_tensor inputs[N_AGGREGATES] = {
        {.length = batch->rows}, batch->columns[n_keys], batch->columns[n_keys + 1]};
    return worker->bench->ops->group_update(worker->stream, c->group, worker->index, batch->columns, inputs,
                                            NULL, batch->rows);
}

static enum sx_status emit_parts(struct bench_worker *worker, struct bench_case *c) {
    struct bench *bench = worker->bench;
    for (int part; (part = atomic_fetch_add(&bench->next_part, 1)) < bench->n_parts;) {
        struct sx_batch batch = {0};
        int64_t cursor = 0, rows;
        do {
            SX_TRY(
                bench->ops->group_emit(worker->stream, c->group, part, &cursor, bench->chunk_rows, &batch));
            rows = batch.rows_bound;
            sx_batch_release(&batch);
        } while (rows > 0);
    }
    return SX_OK;
}

static enum sx_status begin(struct bench *bench, struct bench_case *c) {
    const struct sx_type sum = sx_type_decimal(38, 2), number = sx_type_of(SX_TYPE_I64);
    struct sx_type keys[BENCH_COLUMNS];
    const int n_keys = c->n_columns - 2;
    for (int k = 0; k < n_keys; k++)
        keys[k] = c->columns[k].type;
    const struct sx_aggregate_spec aggregates[N_AGGREGATES] = {
        {SX_AGG_COUNT_STAR, number, number},
        {SX_AGG_SUM, c->columns[n_keys].type, sum},
        {SX_AGG_MIN, number, number},
    };
    const struct sx_group_spec spec = {n_keys,           keys,           N_AGGREGATES, aggregates,
                                       bench->n_workers, (double)c->rows};
    return bench->ops->group_create(bench->workers[0].stream, &spec, &c->group);
}

/* ---- without keys: a sum of each column ---- */

static enum sx_status use_sums(struct bench_worker *worker, struct bench_case *c,
                               const struct sx_batch *batch) {
    return worker->bench->ops->group_update(worker->stream, c->group, worker->index, NULL, batch->columns,
                                            NULL, batch->rows);
}

static enum sx_status begin_sums(struct bench *bench, struct bench_case *c) {
    struct sx_aggregate_spec sums[BENCH_COLUMNS];
    for (int a = 0; a < c->n_columns; a++)
        sums[a] = (struct sx_aggregate_spec){SX_AGG_SUM, c->columns[a].type, sx_type_of(SX_TYPE_I128)};
    const struct sx_group_spec spec = {0, NULL, c->n_columns, sums, bench->n_workers, (double)c->rows};
    return bench->ops->group_create(bench->workers[0].stream, &spec, &c->group);
}

/* ---- both ---- */

static enum sx_status run(struct bench *bench, struct bench_case *c) {
    int64_t most_rows;
    SX_TRY(bench_run_chunks(bench, c));
    SX_TRY(bench->ops->group_finish(bench->workers[0].stream, c->group, &bench->n_parts, &most_rows));
    SX_TRY(bench->ops->synchronise(bench->workers[0].stream, "groups are whole"));
    atomic_store(&bench->next_part, 0);
    return bench_parallel(bench, c, emit_parts);
}

static void end(struct bench *bench, struct bench_case *c) {
    if (c->group)
        bench->ops->group_destroy(bench->workers[0].stream, c->group);
    c->group = NULL;
}

static void group_by(struct bench *bench, int64_t rows, int64_t groups, struct sx_type type, int n_keys,
                     bool is_dictionary, const char *name) {
    struct bench_case c = {
        .primitive = "group", .rows = rows, .use = use_update, .begin = begin, .run = run, .end = end};
    const int64_t first = n_keys > 1 && groups >= 1000 ? 1000 : groups;
    const bool is_text = type.id == SX_TYPE_VARCHAR;
    const double key = is_dictionary ? 4 : (double)sx_type_bytes(type) + (is_text ? 24 : 0);
    bench_add_column(&c, type, first, is_dictionary);
    if (n_keys > 1)
        bench_add_column(&c, type, groups / first, is_dictionary);
    bench_add_column(&c, sx_type_decimal(15, 2), 100000, false);
    bench_add_column(&c, sx_type_of(SX_TYPE_I64), 100000, false);
    const double result = (n_keys * key + 16 + 8 + 8) * (double)groups; /* and about what the table takes */
    const double sectors = (n_keys + N_AGGREGATES) * bench_sector(bench, result);
    c.bytes = (n_keys * key + 8 + 8 + sectors) * (double)rows + result;
    bench_name(&c, "%lld groups, %s", (long long)groups, name);
    bench_measure(bench, &c);
}

static void sums(struct bench *bench, int64_t rows, int n_sums) {
    const struct sx_type number = sx_type_of(SX_TYPE_I64);
    struct bench_case c = {.primitive = "group",
                           .rows = rows,
                           .bytes = (double)n_sums * sizeof(int64_t) * (double)rows,
                           .use = use_sums,
                           .begin = begin_sums,
                           .run = run,
                           .end = end};
    for (int i = 0; i < n_sums; i++)
        bench_add_column(&c, number, 100000, false);
    bench_name(&c, "no keys, %d int64", n_sums);
    bench_measure(bench, &c);
}

void bench_groups(struct bench *bench, int64_t rows) {
    static const int64_t counts[] = {1, 4, 1000, 1000000, 10000000, 100000000};
    const struct sx_type number = sx_type_of(SX_TYPE_I64), text = sx_type_of(SX_TYPE_VARCHAR);
    sums(bench, rows, 1);
    sums(bench, rows, BENCH_COLUMNS);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i] > rows)
            continue;
        group_by(bench, rows, counts[i], number, 1, false, "int64");
        group_by(bench, rows, counts[i], sx_type_decimal(15, 2), 1, false, "decimal64");
        group_by(bench, rows, counts[i], text, 1, false, "strings");
        group_by(bench, rows, counts[i], number, 2, false, "two int64");
        if (counts[i] <= 1000)
            group_by(bench, rows, counts[i], text, 1, true, "dictionary");
    }
}
