/* Payload strings that come in several dictionaries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "join_case.h"

struct payload_case {
    int64_t rows, distinct;
    int64_t batch_rows;
    int64_t dict_rows; /* rows that share a dictionary; more than batch_rows: it is longer than its batches */
    double nulls;
    int64_t flat_batch;     /* every n-th batch is FLAT; 0: none */
    int64_t constant_batch; /* every n-th batch is CONSTANT; 0: none */
    int n_workers;
    bool is_coded; /* the payload must be DICT on a host */
};

enum { N_COLUMNS = 2, TEXT_BYTES = 48 }; /* the row's number, the string */

/* Short ones lie in their views, long ones do not. */
static enum sx_status make_strings(struct conformance *c, const struct payload_case *test,
                                   struct sx_tensor *out) {
    struct sx_tensor made = {0};
    enum sx_status status;
    SX_GO(sx_tensor_create(c->pool, sx_type_of(SX_TYPE_VARCHAR), test->rows, test->nulls > 0, &made,
                           &c->error));
    SX_GO(sx_buffer_create(c->pool, (size_t)test->rows * TEXT_BYTES, &made.heap, &c->error));
    for (int64_t i = 0; i < test->rows; i++) {
        char *text = (char *)made.heap->data + i * TEXT_BYTES;
        uint64_t number = conformance_random(c) % (uint64_t)test->distinct;
        int bytes = snprintf(text, TEXT_BYTES, number % 2 ? "%llu" : "a string of some length, number %llu",
                             (unsigned long long)number);
        ((struct sx_string *)made.values)[i] = sx_string_make(text, (uint32_t)bytes);
        if (made.valid)
            made.valid[i] = (double)(conformance_random(c) % 1000) >= 1000 * test->nulls;
    }
    *out = made;
    return SX_OK;
out:
    sx_tensor_release(&made);
    return status;
}

/* Rows [first, first + rows) in the layout of their batch; `coded` are those of the dictionary's rows. */
static enum sx_status make_batch(struct conformance *c, const struct payload_case *test,
                                 const struct sx_tensor *strings, const struct sx_tensor *coded,
                                 int64_t first, int64_t rows, struct sx_tensor *out) {
    int64_t batch = first / test->batch_rows;
    if (test->constant_batch && batch % test->constant_batch == 1) {
        struct sx_scalar scalar;
        sx_tensor_scalar(strings, first, &scalar);
        return sx_tensor_create_constant(c->pool, &scalar, rows, out, &c->error);
    }
    if (test->flat_batch && batch % test->flat_batch == test->flat_batch - 1)
        sx_tensor_slice(strings, first, rows, out);
    else
        sx_tensor_slice(coded, first % test->dict_rows, rows, out);
    return SX_OK;
}

/* Keeps what the constant batches made of the rows. */
static void note_constant(const struct payload_case *test, struct sx_tensor *strings, int64_t first,
                          int64_t rows) {
    if (!test->constant_batch || first / test->batch_rows % test->constant_batch != 1)
        return;
    struct sx_string *views = strings->values;
    for (int64_t i = first; i < first + rows; i++) {
        views[i] = views[first];
        if (strings->valid)
            strings->valid[i] = strings->valid[first];
    }
}

static enum sx_status append_batch(struct conformance *c, const struct payload_case *test,
                                   struct sx_tensor *strings, const struct sx_tensor *coded,
                                   struct sx_join *join, int64_t first, int64_t rows) {
    struct sx_tensor host[N_COLUMNS] = {0}, sent[N_COLUMNS] = {0};
    enum sx_status status;
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I64, rows, &host[0], &c->error));
    for (int64_t i = 0; i < rows; i++)
        ((int64_t *)host[0].values)[i] = first + i;
    SX_GO(make_batch(c, test, strings, coded, first, rows, &host[1]));
    note_constant(test, strings, first, rows);
    for (int k = 0; k < N_COLUMNS; k++)
        SX_GO(conformance_send(c, &host[k], &sent[k]));
    int worker = (int)(first / test->batch_rows % test->n_workers);
    SX_GO(c->backend->ops.join_append(c->stream, join, worker, &sent[0], sent, rows));
out:
    join_case_release_all(host, N_COLUMNS);
    join_case_release_all(sent, N_COLUMNS);
    return status;
}

static enum sx_status build(struct conformance *c, const struct payload_case *test, struct sx_tensor *strings,
                            struct sx_join *join) {
    struct sx_tensor slice = {0}, coded = {0};
    enum sx_status status = SX_OK;
    int parts = 0;
    for (int64_t at = 0; at < test->rows; at += test->batch_rows) {
        if (at % test->dict_rows == 0) {
            int64_t rows = test->rows - at < test->dict_rows ? test->rows - at : test->dict_rows;
            sx_tensor_release(&coded);
            sx_tensor_slice(strings, at, rows, &slice);
            SX_GO(conformance_dictionary(c, &slice, &coded));
            sx_tensor_release(&slice);
        }
        int64_t rows = test->rows - at < test->batch_rows ? test->rows - at : test->batch_rows;
        SX_GO(append_batch(c, test, strings, &coded, join, at, rows));
    }
    SX_GO(c->backend->ops.join_finish(c->stream, join, &parts));
    for (int p = 0; p < parts; p++)
        SX_GO(c->backend->ops.join_build(c->stream, join, p));
out:
    sx_tensor_release(&slice);
    sx_tensor_release(&coded);
    return status;
}

/* ---- checks ---- */

static bool rows_right(const struct sx_tensor *strings, const struct sx_tensor *numbers,
                       const struct sx_tensor *got, uint8_t *seen) {
    for (int64_t r = 0; r < got->length; r++) {
        struct sx_scalar expected, scalar;
        int64_t original = ((const int64_t *)numbers->values)[r];
        if (original < 0 || original >= strings->length || seen[original]++)
            return false;
        sx_tensor_scalar(strings, original, &expected);
        sx_tensor_scalar(got, r, &scalar);
        if (!conformance_scalar_equal(&expected, &scalar))
            return false;
    }
    return true;
}

static bool entries_differ(const struct sx_tensor *entries) {
    for (int64_t i = 0; i < entries->length; i++)
        for (int64_t j = 0; j < i; j++) {
            struct sx_scalar a, b;
            sx_tensor_scalar(entries, i, &a);
            sx_tensor_scalar(entries, j, &b);
            if (conformance_scalar_equal(&a, &b))
                return false;
        }
    return true;
}

static void check_codes(struct conformance *c, const struct payload_case *test,
                        const struct sx_tensor *payload) {
    enum { FEW_ENTRIES = 1000 };
    bool is_coded = payload->layout == SX_DICT;
    if (!CONFORM(c, is_coded || !test->is_coded, "%lld strings in %lld rows are not codes",
                 (long long)test->distinct, (long long)test->rows))
        return;
    if (is_coded && payload->dict->values.length <= FEW_ENTRIES)
        CONFORM(c, entries_differ(&payload->dict->values), "an entry of %lld is there twice",
                (long long)payload->dict->values.length);
    if (is_coded)
        CONFORM(c, payload->dict->values.length <= test->distinct, "%lld entries for %lld strings",
                (long long)payload->dict->values.length, (long long)test->distinct);
}

static enum sx_status check_payload(struct conformance *c, const struct payload_case *test,
                                    const struct sx_tensor *strings, const struct sx_join *join) {
    struct sx_tensor got[N_COLUMNS] = {0};
    uint8_t *seen = calloc((size_t)test->rows + 1, 1);
    enum sx_status status = SX_OK;
    if (!seen)
        return sx_error_set(&c->error, SX_OUT_OF_MEMORY, "no memory");
    struct sx_tensor payload = {0};
    SX_GO(join_case_payload(c, join, 1, &payload));
    if (c->backend->traits.is_host)
        check_codes(c, test, &payload);
    sx_tensor_release(&payload);
    for (int k = 0; k < N_COLUMNS; k++)
        SX_GO(join_case_receive(c, join, k, &got[k]));
    bool is_right = got[0].length == test->rows && got[1].length == test->rows &&
                    rows_right(strings, &got[0], &got[1], seen);
    CONFORM(c, is_right,
            "%lld rows of %lld strings, %lld rows a dictionary, nulls %g, flat %lld, constant %lld",
            (long long)test->rows, (long long)test->distinct, (long long)test->dict_rows, test->nulls,
            (long long)test->flat_batch, (long long)test->constant_batch);
out:
    join_case_release_all(got, N_COLUMNS);
    free(seen);
    return status;
}

static enum sx_status run_case(struct conformance *c, const struct payload_case *test) {
    const struct sx_type types[N_COLUMNS] = {sx_type_of(SX_TYPE_I64), sx_type_of(SX_TYPE_VARCHAR)};
    const bool null_equal = false;
    const struct sx_join_spec spec = {.n_keys = 1,
                                      .key_types = types,
                                      .null_equal = &null_equal,
                                      .n_payload = N_COLUMNS,
                                      .payload_types = types,
                                      .n_workers = test->n_workers};
    struct sx_tensor strings = {0};
    struct sx_join *join = NULL;
    enum sx_status status;
    if (!conformance_takes(c))
        return SX_OK;
    SX_GO(make_strings(c, test, &strings));
    SX_GO(c->backend->ops.join_create(c->stream, &spec, &join));
    SX_GO(build(c, test, &strings, join));
    status = check_payload(c, test, &strings, join);
out:
    if (join)
        c->backend->ops.join_destroy(c->stream, join);
    sx_tensor_release(&strings);
    return status;
}

static enum sx_status limit_memory(struct conformance *c, const struct payload_case *test) {
    for (size_t limit = 1000; limit < 8000000; limit += limit / 5) {
        struct conformance poor = *c;
        SX_TRY(sx_pool_create(limit, &poor.pool, &c->error));
        enum sx_status status =
            c->backend->ops.stream_create(c->backend, poor.pool, NULL, &poor.stream, &c->error);
        if (status == SX_OK) {
            status = run_case(&poor, test);
            c->backend->ops.stream_destroy(poor.stream);
        }
        c->n_cases = poor.n_cases;
        CONFORM(c, status == SX_OK || status == SX_OUT_OF_MEMORY, "limit %zu: status %d", limit, status);
        CONFORM(c, poor.failures == c->failures, "limit %zu: wrong rows", limit);
        CONFORM(c, sx_pool_usage(poor.pool).used_bytes == 0, "limit %zu: bytes left", limit);
        sx_pool_destroy(poor.pool);
    }
    return SX_OK;
}

enum sx_status join_payload_cases(struct conformance *c) {
    static const struct payload_case cases[] = {
        /* one dictionary, one a batch, one for several batches */
        {.rows = 3000, .distinct = 5, .batch_rows = 500, .dict_rows = 3000, .n_workers = 1, .is_coded = true},
        {.rows = 9000, .distinct = 5, .batch_rows = 100, .dict_rows = 100, .n_workers = 1, .is_coded = true},
        {.rows = 9000,
         .distinct = 300,
         .batch_rows = 100,
         .dict_rows = 900,
         .n_workers = 3,
         .is_coded = true},
        {.rows = 9000,
         .distinct = 300,
         .batch_rows = 250,
         .dict_rows = 500,
         .nulls = 0.3,
         .n_workers = 3,
         .is_coded = true},
        /* nothing but nulls */
        {.rows = 2000,
         .distinct = 3,
         .batch_rows = 100,
         .dict_rows = 200,
         .nulls = 1,
         .n_workers = 2,
         .is_coded = true},
        /* dictionaries much longer than their batches */
        {.rows = 20000,
         .distinct = 4000,
         .batch_rows = 50,
         .dict_rows = 10000,
         .nulls = 0.1,
         .n_workers = 2,
         .is_coded = true},
        /* constants, nulls among them */
        {.rows = 9000,
         .distinct = 40,
         .batch_rows = 100,
         .dict_rows = 300,
         .nulls = 0.4,
         .n_workers = 2,
         .constant_batch = 4,
         .is_coded = true},
        /* FLAT batches early, late, for one worker only */
        {.rows = 9000,
         .distinct = 40,
         .batch_rows = 100,
         .dict_rows = 300,
         .nulls = 0.1,
         .n_workers = 1,
         .flat_batch = 7},
        {.rows = 9000, .distinct = 40, .batch_rows = 100, .dict_rows = 300, .n_workers = 2, .flat_batch = 85},
        {.rows = 9000,
         .distinct = 40,
         .batch_rows = 100,
         .dict_rows = 300,
         .nulls = 0.5,
         .n_workers = 3,
         .flat_batch = 2,
         .constant_batch = 5},
        /* few of them */
        {.rows = 9000,
         .distinct = 40,
         .batch_rows = 100,
         .dict_rows = 300,
         .nulls = 0.2,
         .n_workers = 1,
         .flat_batch = 30},
        /* too many strings, for a worker and for all together */
        {.rows = 20000,
         .distinct = 1000000,
         .batch_rows = 1000,
         .dict_rows = 2000,
         .nulls = 0.1,
         .n_workers = 2},
        {.rows = 16000, .distinct = 1000000, .batch_rows = 1000, .dict_rows = 2000, .n_workers = 4},
        /* many, but few for their rows */
        {.rows = 80000, .distinct = 9000, .batch_rows = 4000, .dict_rows = 20000, .n_workers = 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        SX_TRY(run_case(c, &cases[i]));
    SX_TRY(limit_memory(c, &cases[3]));
    SX_TRY(limit_memory(c, &cases[8]));
    return SX_OK;
}
