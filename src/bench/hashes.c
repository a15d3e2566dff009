/* hash and partition. */
#include <stdlib.h>

#include "bench/case.h"

static enum sx_status use_hash(struct bench_worker *worker, struct bench_case *c,
                               const struct sx_batch *batch) {
    struct sx_tensor out = {0};
    SX_TRY(worker->bench->ops->hash(worker->stream, batch->columns, c->n_columns, batch->rows, &out));
    sx_tensor_release(&out);
    return SX_OK;
}

static void hash(struct bench *bench, int64_t rows, struct sx_type type, int n_keys, double bytes,
                 const char *name) {
    struct bench_case c = {.primitive = "hash", .rows = rows, .use = use_hash, .run = bench_run_chunks};
    for (int k = 0; k < n_keys; k++)
        bench_add_column(&c, type, 100000, false);
    c.bytes = (n_keys * bytes + 8) * (double)rows;
    bench_name(&c, "%s", name);
    bench_measure(bench, &c);
}

static enum sx_status prepare_hashes(struct bench_worker *worker, struct bench_case *c) {
    (void)c;
    return bench_random(worker, worker->first, worker->rows, &worker->columns[0]);
}

static enum sx_status use_partition(struct bench_worker *worker, struct bench_case *c,
                                    const struct sx_batch *batch) {
    struct sx_tensor index = {0};
    int64_t *offsets = calloc((size_t)c->count + 1, sizeof *offsets);
    if (!offsets)
        return sx_error_set(&worker->stream->error, SX_OUT_OF_MEMORY, "no memory for offsets");
    enum sx_status status =
        worker->bench->ops->partition(worker->stream, &batch->columns[0], (int)c->count, &index, offsets);
    sx_tensor_release(&index);
    free(offsets);
    return status;
}

static void partition(struct bench *bench, int64_t rows, int n_parts) {
    struct bench_case c = {.primitive = "partition",
                           .rows = rows,
                           .n_columns = 1,
                           .count = n_parts,
                           .bytes = (8 + 4) * (double)rows,
                           .use = use_partition,
                           .run = bench_run_chunks};
    c.prepare = prepare_hashes;
    bench_name(&c, "%d parts", n_parts);
    bench_measure(bench, &c);
}

void bench_hashes(struct bench *bench, int64_t rows) {
    hash(bench, rows, sx_type_of(SX_TYPE_I64), 1, 8, "int64");
    hash(bench, rows, sx_type_of(SX_TYPE_I64), 2, 8, "two int64");
    hash(bench, rows, sx_type_decimal(30, 2), 1, 16, "decimal128");
    hash(bench, rows, sx_type_of(SX_TYPE_VARCHAR), 1, 16 + 24, "strings");
    partition(bench, rows, 16);
    partition(bench, rows, 256);
    partition(bench, rows, 1024);
}
