/* A join's payload of many columns of different widths, gathered together: more than one launch takes, rows
 * that a device keeps side by side, and those that are too wide for it. */
#include "join_case.h"

enum { MOST_COLUMNS = 21 };

struct wide_case {
    int n_columns;
    bool in_eights; /* all columns have 8 bytes and nulls, but for the first */
};

static enum sx_type_id type_of(const struct wide_case *test, int k) {
    static const enum sx_type_id ids[] = {SX_TYPE_I64, SX_TYPE_I8,  SX_TYPE_I128,
                                          SX_TYPE_I32, SX_TYPE_F64, SX_TYPE_I16};
    return test->in_eights ? SX_TYPE_I64 : ids[(size_t)k % (sizeof ids / sizeof *ids)];
}

/* The key of every step-th row from `first` on. Keys are dense and unique, in another order than rows. */
static enum sx_status make_keys(struct conformance *c, int64_t rows, int64_t first, int64_t step, int64_t n,
                                struct sx_tensor *out) {
    const int64_t stride = 7919; /* a prime that is no factor of `rows` */
    struct sx_tensor host = {0};
    SX_TRY(sx_tensor_create_index(c->pool, SX_TYPE_I64, n, &host, &c->error));
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)host.values)[i] = (first + i * step) * stride % rows;
    const enum sx_status status = conformance_send(c, &host, out);
    sx_tensor_release(&host);
    return status;
}

/* The first column is the row's number. */
static enum sx_status make_columns(struct conformance *c, const struct wide_case *test, int64_t rows,
                                   struct sx_tensor *out) {
    SX_TRY(sx_tensor_create_index(c->pool, SX_TYPE_I64, rows, &out[0], &c->error));
    for (int64_t i = 0; i < rows; i++)
        ((int64_t *)out[0].values)[i] = i;
    for (int k = 1; k < test->n_columns; k++)
        SX_TRY(conformance_column(c, sx_type_of(type_of(test, k)), rows, FILL_RANDOM,
                                  test->in_eights || k % 3 == 1 ? 0.2 : 0, &out[k]));
    return SX_OK;
}

static enum sx_status build(struct conformance *c, const struct wide_case *test, const struct sx_tensor *host,
                            struct sx_join *join) {
    struct sx_tensor keys = {0}, sent[MOST_COLUMNS] = {0};
    enum sx_status status;
    int parts = 0;
    SX_GO(make_keys(c, host[0].length, 0, 1, host[0].length, &keys));
    SX_GO(join_case_send_slices(c, host, test->n_columns, 0, host[0].length, sent));
    SX_GO(c->backend->ops.join_append(c->stream, join, 0, &keys, sent, host[0].length));
    SX_GO(c->backend->ops.join_finish(c->stream, join, &parts));
    for (int p = 0; p < parts; p++)
        SX_GO(c->backend->ops.join_build(c->stream, join, p));
out:
    sx_tensor_release(&keys);
    join_case_release_all(sent, MOST_COLUMNS);
    return status;
}

/* Row `row` of what came is row `original`. */
static bool same_row(const struct wide_case *test, const struct sx_tensor *host, const struct sx_tensor *got,
                     int64_t row, int64_t original) {
    for (int k = 0; k < test->n_columns; k++) {
        struct sx_scalar expected, scalar;
        sx_tensor_scalar(&host[k], original, &expected);
        sx_tensor_scalar(&got[k], row, &scalar);
        if (!conformance_scalar_equal(&expected, &scalar))
            return false;
    }
    return true;
}

/* Every third row that was appended, from the last one, found by its key; all columns in another order than
 * theirs. */
static enum sx_status check(struct conformance *c, const struct wide_case *test, const struct sx_tensor *host,
                            const struct sx_join *join) {
    const int n = test->n_columns;
    const int64_t rows = host[0].length, n_rows = (rows + 2) / 3;
    struct sx_tensor keys = {0}, found = {0}, index = {0}, columns[MOST_COLUMNS] = {0},
                     got[MOST_COLUMNS] = {0};
    struct sx_probe_cursor cursor = {0};
    int32_t payload[MOST_COLUMNS];
    int64_t n_right = 0;
    enum sx_status status;
    for (int k = 0; k < n; k++)
        payload[k] = (k + n / 2) % n;
    SX_GO(make_keys(c, rows, rows - 1, -3, n_rows, &keys));
    SX_GO(c->backend->ops.join_probe(c->stream, join, &keys, n_rows, SX_PROBE_ALL, n_rows, &cursor, &found,
                                     &index));
    if (!CONFORM(c, index.length == n_rows, "%d payload columns: %lld of %lld rows are found", n,
                 (long long)index.length, (long long)n_rows))
        goto out;
    SX_GO(c->backend->ops.join_gather(c->stream, join, payload, n, &index, columns));
    for (int k = 0; k < n; k++)
        SX_GO(conformance_receive(c, &columns[k], &got[payload[k]]));
    for (int64_t r = 0; r < n_rows; r++)
        n_right += same_row(test, host, got, r, rows - 1 - 3 * r);
    CONFORM(c, n_right == n_rows, "%d payload columns%s: %lld of %lld rows are right", n,
            test->in_eights ? " of 8 bytes" : "", (long long)n_right, (long long)n_rows);
out:
    sx_tensor_release(&keys);
    sx_tensor_release(&found);
    sx_tensor_release(&index);
    join_case_release_all(columns, MOST_COLUMNS);
    join_case_release_all(got, MOST_COLUMNS);
    return status;
}

static enum sx_status run_case(struct conformance *c, const struct wide_case *test, int64_t rows) {
    struct sx_type types[MOST_COLUMNS];
    const struct sx_type key_type = sx_type_of(SX_TYPE_I64);
    const bool null_equal = false;
    for (int k = 0; k < test->n_columns; k++)
        types[k] = sx_type_of(k ? type_of(test, k) : SX_TYPE_I64);
    const struct sx_join_spec spec = {.n_keys = 1,
                                      .key_types = &key_type,
                                      .null_equal = &null_equal,
                                      .n_payload = test->n_columns,
                                      .payload_types = types,
                                      .n_workers = 1};
    struct sx_tensor host[MOST_COLUMNS] = {0};
    struct sx_join *join = NULL;
    enum sx_status status;
    if (!conformance_takes(c))
        return SX_OK;
    SX_GO(make_columns(c, test, rows, host));
    SX_GO(c->backend->ops.join_create(c->stream, &spec, &join));
    SX_GO(build(c, test, host, join));
    SX_GO(check(c, test, host, join));
out:
    if (join)
        c->backend->ops.join_destroy(c->stream, join);
    join_case_release_all(host, MOST_COLUMNS);
    return status;
}

enum sx_status join_wide_cases(struct conformance *c) {
    static const struct wide_case cases[] = {{1, false},  {2, false},  {8, false}, {16, false},
                                             {17, false}, {21, false}, {8, true},  {9, true},
                                             {16, true},  {17, true},  {21, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        SX_TRY(run_case(c, &cases[i], conformance_rows[conformance_n_rows - 1]));
    return SX_OK;
}
