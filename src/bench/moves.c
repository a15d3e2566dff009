/* Moving rows: the copy that others are compared with, gather, concat, masks. */
#include "bench/case.h"

/* ---- concat ---- */

/* Rows [first, first + rows) of the worker's column in two halves, put together. */
static enum sx_status concat_halves(struct bench_worker *worker, struct sx_type type, int64_t first,
                                    int64_t rows) {
    struct sx_tensor halves[2], out = {0};
    const struct sx_tensor *list[2] = {&halves[0], &halves[1]};
    sx_tensor_slice(&worker->columns[0], first, rows / 2, &halves[0]);
    sx_tensor_slice(&worker->columns[0], first + rows / 2, rows - rows / 2, &halves[1]);
    enum sx_status status = worker->bench->ops->concat(worker->stream, type, list, 2, SX_CONCAT_SHARED, &out);
    sx_tensor_release(&halves[0]);
    sx_tensor_release(&halves[1]);
    sx_tensor_release(&out);
    return status;
}

/* On the host in pieces whose memory is used again: fresh memory costs a page fault for each 4 KiB. */
static enum sx_status concat_pieces(struct bench_worker *worker, struct bench_case *c) {
    const int64_t most = worker->bench->is_host ? 1 << 20 : worker->rows;
    for (int64_t first = 0; first < worker->rows; first += most) {
        const int64_t left = worker->rows - first;
        SX_TRY(concat_halves(worker, c->columns[0].type, first, left < most ? left : most));
    }
    return SX_OK;
}

static enum sx_status run_concat(struct bench *bench, struct bench_case *c) {
    return bench_parallel(bench, c, concat_pieces);
}

static void concat(struct bench *bench, int64_t rows, struct sx_type type, const char *name) {
    struct bench_case c = {.primitive = "concat", .rows = rows, .run = run_concat};
    bench_add_column(&c, type, 100000, false);
    c.bytes = 2 * (double)sx_type_bytes(type) * (double)rows;
    bench_name(&c, "%s", name);
    bench_measure(bench, &c);
}

/* Nothing but words: a column of random values would bring its validity. */
static enum sx_status prepare_words(struct bench_worker *worker, struct bench_case *c) {
    (void)c;
    return worker->bench->ops->iota(worker->stream, SX_TYPE_I64, worker->first, worker->rows,
                                    &worker->columns[0]);
}

void bench_copies(struct bench *bench, int64_t rows) {
    struct bench_case c = {.primitive = "copy", .rows = rows, .prepare = prepare_words, .run = run_concat};
    bench_add_column(&c, sx_type_of(SX_TYPE_I64), 0, false);
    c.bytes = 2.0 * sizeof(int64_t) * (double)rows;
    bench_name(&c, "int64");
    bench_measure(bench, &c);
}

/* ---- gather ---- */

enum { INDEX = 0, SOURCE = BENCH_COLUMNS - 1 };

static enum sx_status use_gather(struct bench_worker *worker, struct bench_case *c,
                                 const struct sx_batch *batch) {
    struct sx_tensor out = {0};
    (void)c;
    SX_TRY(
        worker->bench->ops->gather(worker->stream, &worker->columns[SOURCE], &batch->columns[INDEX], &out));
    sx_tensor_release(&out);
    return SX_OK;
}

/* c->columns[1] describes the source: as many rows as the worker has, so that the index may be anywhere. */
static enum sx_status prepare_source(struct bench_worker *worker, struct bench_case *c) {
    const struct bench_column *source = &c->columns[1];
    struct sx_tensor *out = &worker->columns[SOURCE];
    return source->is_dictionary
               ? bench_dictionary(worker, source->values, worker->first, worker->rows, out)
               : bench_values(worker, source->type, source->values, worker->first, worker->rows, out);
}

static enum sx_status prepare_sequence(struct bench_worker *worker, struct bench_case *c) {
    SX_TRY(prepare_source(worker, c));
    return worker->bench->ops->iota(worker->stream, c->is_wide ? SX_TYPE_I64 : SX_TYPE_I32, 0, worker->rows,
                                    &worker->columns[INDEX]);
}

static void gather(struct bench *bench, int64_t rows, struct sx_type type, bool is_dictionary, bool is_random,
                   bool is_wide, const char *name) {
    struct bench_case c = {.primitive = "gather",
                           .rows = rows,
                           .is_wide = is_wide,
                           .prepare = is_random ? prepare_source : prepare_sequence,
                           .use = use_gather,
                           .run = bench_run_chunks};
    const int64_t share = rows / bench->n_workers;
    const double width = is_dictionary ? 4 : (double)sx_type_bytes(type), index = is_wide ? 8 : 4;
    if (is_random)
        bench_add_column(&c, sx_type_of(is_wide ? SX_TYPE_I64 : SX_TYPE_I32), share, false);
    c.columns[1] = (struct bench_column){type, 1000, is_dictionary};
    c.n_columns = 1;
    const double sector = is_random ? bench_sector(bench, width * (double)share) : 0;
    c.bytes = (index + (sector > width ? sector : width) + width) * (double)rows;
    bench_name(&c, "%s, %s, %s", name, is_random ? "random" : "sequential",
               is_wide ? "int64 index" : "int32 index");
    bench_measure(bench, &c);
}

/* ---- masks ---- */

static enum sx_status use_mask(struct bench_worker *worker, struct bench_case *c,
                               const struct sx_batch *batch) {
    struct sx_tensor out = {0};
    (void)c;
    SX_TRY(worker->bench->ops->mask_to_index(worker->stream, &batch->columns[0], true, &out));
    sx_tensor_release(&out);
    return SX_OK;
}

static enum sx_status prepare_mask(struct bench_worker *worker, struct bench_case *c) {
    struct bench_program p = {0};
    const struct sx_type random = sx_type_of(SX_TYPE_U64);
    struct sx_tensor column = {0};
    const int32_t in = bench_input(&p, random), most = bench_number(&p, random, c->count);
    bench_output(&p, bench_call(&p, SX_FN_LT, sx_type_of(SX_TYPE_BOOL), in, most, 0));
    SX_TRY(bench_values(worker, random, 100, worker->first, worker->rows, &column));
    enum sx_status status = bench_apply(worker, &p, &column, &worker->columns[0]);
    sx_tensor_release(&column);
    return status;
}

static void mask_to_index(struct bench *bench, int64_t rows, int percent) {
    struct bench_case c = {.primitive = "mask_to_index",
                           .rows = rows,
                           .n_columns = 1,
                           .count = percent,
                           .bytes = (1 + 4 * percent / 100.0) * (double)rows,
                           .prepare = prepare_mask,
                           .use = use_mask,
                           .run = bench_run_chunks};
    bench_name(&c, "%d %% set", percent);
    bench_measure(bench, &c);
}

void bench_moves(struct bench *bench, int64_t rows) {
    static const struct {
        struct sx_type type;
        bool is_dictionary;
        const char *name;
    } kinds[] = {
        {{SX_TYPE_I32, 0, 0}, false, "int32"},           {{SX_TYPE_I64, 0, 0}, false, "int64"},
        {{SX_TYPE_DECIMAL, 30, 2}, false, "decimal128"}, {{SX_TYPE_VARCHAR, 0, 0}, false, "strings"},
        {{SX_TYPE_VARCHAR, 0, 0}, true, "dictionary"},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int is_random = 0; is_random < 2; is_random++)
            gather(bench, rows, kinds[k].type, kinds[k].is_dictionary, is_random, false, kinds[k].name);
        if (!kinds[k].is_dictionary)
            concat(bench, rows, kinds[k].type, kinds[k].name);
    }
    gather(bench, rows, sx_type_of(SX_TYPE_I64), false, true, true, "int64");
    mask_to_index(bench, rows, 1);
    mask_to_index(bench, rows, 50);
}
