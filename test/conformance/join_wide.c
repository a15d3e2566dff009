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

/* The first column is the row's number, and the key. */
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
    struct sx_tensor sent[MOST_COLUMNS] = {0};
    enum sx_status status;
    int parts = 0;
    SX_GO(join_case_send_slices(c, host, test->n_columns, 0, host[0].length, sent));
    SX_GO(c->backend->ops.join_append(c->stream, join, 0, sent, sent, host[0].length));
    SX_GO(c->backend->ops.join_finish(c->stream, join, &parts));
    for (int p = 0; p < parts; p++)
        SX_GO(c->backend->ops.join_build(c->stream, join, p));
out:
    join_case_release_all(sent, MOST_COLUMNS);
    return status;
}

static bool same_row(const struct wide_case *test, const struct sx_tensor *host, const struct sx_tensor *got,
                     int64_t row) {
    const int64_t original = ((const int64_t *)got[0].values)[row];
    if (original < 0 || original >= host[0].length)
        return false;
    for (int k = 0; k < test->n_columns; k++) {
        struct sx_scalar expected, scalar;
        sx_tensor_scalar(&host[k], original, &expected);
        sx_tensor_scalar(&got[k], row, &scalar);
        if (!conformance_scalar_equal(&expected, &scalar))
            return false;
    }
    return true;
}

/* Every third row of the table, from its end, by all columns in another order than theirs. */
static enum sx_status check(struct conformance *c, const struct wide_case *test, const struct sx_tensor *host,
                            const struct sx_join *join) {
    const int n = test->n_columns;
    const int64_t rows = host[0].length, n_rows = (rows + 2) / 3;
    struct sx_tensor host_index = {0}, index = {0}, columns[MOST_COLUMNS] = {0}, got[MOST_COLUMNS] = {0};
    int32_t payload[MOST_COLUMNS];
    int64_t n_right = 0;
    enum sx_status status;
    for (int k = 0; k < n; k++)
        payload[k] = (k + n / 2) % n;
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I64, n_rows, &host_index, &c->error));
    for (int64_t i = 0; i < n_rows; i++)
        ((int64_t *)host_index.values)[i] = rows - 1 - 3 * i;
    SX_GO(conformance_send(c, &host_index, &index));
    SX_GO(c->backend->ops.join_gather(c->stream, join, payload, n, &index, columns));
    for (int k = 0; k < n; k++)
        SX_GO(conformance_receive(c, &columns[k], &got[payload[k]]));
    for (int64_t r = 0; r < n_rows; r++)
        n_right += same_row(test, host, got, r);
    CONFORM(c, n_right == n_rows, "%d payload columns%s: %lld of %lld rows are right", n,
            test->in_eights ? " of 8 bytes" : "", (long long)n_right, (long long)n_rows);
out:
    sx_tensor_release(&host_index);
    sx_tensor_release(&index);
    join_case_release_all(columns, MOST_COLUMNS);
    join_case_release_all(got, MOST_COLUMNS);
    return status;
}

static enum sx_status run_case(struct conformance *c, const struct wide_case *test, int64_t rows) {
    struct sx_type types[MOST_COLUMNS];
    const bool null_equal = false;
    for (int k = 0; k < test->n_columns; k++)
        types[k] = sx_type_of(k ? type_of(test, k) : SX_TYPE_I64);
    const struct sx_join_spec spec = {.n_keys = 1,
                                      .key_types = types,
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
    static const struct wide_case cases[] = {{2, false}, {8, false}, {16, false}, {17, false}, {21, false},
                                             {8, true},  {9, true},  {16, true},  {17, true},  {21, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        SX_TRY(run_case(c, &cases[i], conformance_rows[conformance_n_rows - 1]));
    return SX_OK;
}
