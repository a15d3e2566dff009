#include <stdio.h>

#include "bench/case.h"

enum sx_status bench_random(struct bench_worker *worker, int64_t first, int64_t rows,
                            struct sx_tensor *out_column) {
    const struct sx_backend_ops *ops = worker->bench->ops;
    struct sx_tensor numbers = {0};
    SX_TRY(ops->iota(worker->stream, SX_TYPE_I64, first, rows, &numbers));
    enum sx_status status = ops->hash(worker->stream, &numbers, 1, rows, out_column);
    sx_tensor_release(&numbers);
    return status;
}

enum sx_status bench_apply(struct bench_worker *worker, const struct bench_program *program,
                           const struct sx_tensor *column, struct sx_tensor *out_column) {
    const struct sx_backend_ops *ops = worker->bench->ops;
    struct bench_program own = *program;
    struct sx_tensor input = *column;
    const struct sx_batch batch = {
        .rows = column->length, .rows_bound = column->length, .n_columns = 1, .columns = &input};
    struct sx_eval *eval;
    SX_TRY(ops->eval_create(worker->stream, bench_program_end(&own), &eval));
    enum sx_status status = ops->eval_run(worker->stream, eval, &batch, out_column);
    /* the program is in use until the work is done */
    if (status == SX_OK) {
        status = ops->synchronise(worker->stream, "an input is whole");
        if (status != SX_OK)
            sx_tensor_release(out_column);
    }
    ops->eval_destroy(worker->stream, eval);
    return status;
}

/* Random numbers below `values` as `type`. */
static void values_program(struct bench_program *p, struct sx_type type, int64_t values) {
    const struct sx_type random = sx_type_of(SX_TYPE_U64), number = sx_type_of(SX_TYPE_I64);
    const struct sx_type text = sx_type_of(SX_TYPE_VARCHAR);
    const int32_t in = bench_input(p, random);
    const int32_t most = bench_number(p, random, values);
    const int32_t prefix = type.id == SX_TYPE_VARCHAR ? bench_text(p, "a text of the rows ") : 0;
    const int32_t epoch = type.id == SX_TYPE_DATE ? bench_number(p, type, 8036) : 0;
    int32_t out = bench_call(p, SX_FN_MOD, random, in, most, 0);
    if (type.id == SX_TYPE_U64) {
        bench_output(p, out);
        return;
    }
    out = bench_call(p, SX_FN_CAST, number, out, 0, 0);
    if (type.id == SX_TYPE_VARCHAR)
        out = bench_call(p, SX_FN_CONCAT, text, prefix, bench_call(p, SX_FN_CAST, text, out, 0, 0), 0);
    else if (type.id == SX_TYPE_DATE)
        out = bench_call(p, SX_FN_ADD, type, epoch,
                         bench_call(p, SX_FN_CAST, sx_type_of(SX_TYPE_I32), out, 0, 0), 0);
    else if (type.id != SX_TYPE_I64)
        out = bench_call(p, SX_FN_CAST, type, out, 0, 0);
    bench_output(p, out);
}

enum sx_status bench_values(struct bench_worker *worker, struct sx_type type, int64_t values, int64_t first,
                            int64_t rows, struct sx_tensor *out_column) {
    struct bench_program p = {0};
    struct sx_tensor random = {0};
    values_program(&p, type, values);
    SX_TRY(bench_random(worker, first, rows, &random));
    enum sx_status status = bench_apply(worker, &p, &random, out_column);
    sx_tensor_release(&random);
    return status;
}

/* A column in host memory whose row i is entry i of its dictionary. */
static enum sx_status make_entries(struct sx_pool *pool, int64_t values, struct sx_tensor *out_column,
                                   struct sx_error *error) {
    enum { ENTRY_BYTES = 32 };
    struct sx_tensor entries = {0}, codes = {0};
    struct sx_dict *dict = NULL;
    enum sx_status status;
    SX_GO(sx_tensor_create(pool, sx_type_of(SX_TYPE_VARCHAR), values, false, &entries, error));
    SX_GO(sx_buffer_create(pool, (size_t)values * ENTRY_BYTES, &entries.heap, error));
    for (int64_t i = 0; i < values; i++) {
        char *bytes = (char *)entries.heap->data + i * ENTRY_BYTES;
        const int n = snprintf(bytes, ENTRY_BYTES, "a text of the rows %lld", (long long)i);
        ((struct sx_string *)entries.values)[i] = sx_string_make(bytes, (uint32_t)n);
    }
    SX_GO(sx_dict_create(&entries, &dict, error));
    SX_GO(sx_tensor_create_codes(pool, dict, values, false, &codes, error));
    for (int64_t i = 0; i < values; i++)
        ((int32_t *)codes.values)[i] = (int32_t)i;
    *out_column = codes;
out:
    sx_dict_release(dict);
    sx_tensor_release(&entries);
    return status;
}

enum sx_status bench_dictionary(struct bench_worker *worker, int64_t values, int64_t first, int64_t rows,
                                struct sx_tensor *out_column) {
    const struct sx_backend_ops *ops = worker->bench->ops;
    struct sx_error *error = &worker->stream->error;
    struct sx_tensor index = {0}, host = {0};
    struct sx_batch sent = {0};
    enum sx_status status;
    SX_GO(make_entries(worker->bench->options->pool, values, &host, error));
    const struct sx_batch batch = {.rows = values, .rows_bound = values, .n_columns = 1, .columns = &host};
    SX_GO(ops->batch_from_host(worker->stream, &batch, &sent));
    SX_GO(bench_values(worker, sx_type_of(SX_TYPE_I32), values, first, rows, &index));
    SX_GO(ops->gather(worker->stream, &sent.columns[0], &index, out_column));
out:
    sx_tensor_release(&index);
    sx_batch_release(&sent);
    sx_tensor_release(&host);
    return status;
}
