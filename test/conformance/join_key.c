/* Joins whose payload has the key as well, so that a backend may keep it once: the same column, a copy of it,
 * or one in some batches and the other in others. All payload follows from the key, so that a pair tells
 * whether it is right. */
#include "join_case.h"

enum { MOST_COLUMNS = 9, N_BATCHES = 3, SPREAD = 1000003, NULL_EACH = 7 };

enum key_column { SAME, COPY, SAME_OR_COPY };

struct key_case {
    int n_columns, key_at; /* of payload */
    enum key_column how;
    bool has_nulls; /* of keys: every NULL_EACH-th */
    int64_t copies; /* rows of each key */
    bool is_expected;
};

static int64_t key_of(const struct key_case *test, int64_t row) {
    return row / test->copies * SPREAD;
}

/* What column k has beside a key. */
static int64_t value_of(const struct key_case *test, int k, int64_t key) {
    return k == test->key_at ? key : key / SPREAD * (k + 2) - k;
}

static enum sx_status make_column(struct conformance *c, const struct key_case *test, int k, int64_t first,
                                  int64_t rows, struct sx_tensor *out) {
    struct sx_tensor host;
    const bool has_valid = test->has_nulls && k == test->key_at;
    SX_TRY(sx_tensor_create(c->pool, sx_type_of(SX_TYPE_I64), rows, has_valid, &host, &c->error));
    for (int64_t i = 0; i < rows; i++) {
        ((int64_t *)host.values)[i] = value_of(test, k, key_of(test, first + i));
        if (has_valid)
            host.valid[i] = (first + i) % NULL_EACH != 0;
    }
    const enum sx_status status = conformance_send(c, &host, out);
    sx_tensor_release(&host);
    return status;
}

static enum sx_status append(struct conformance *c, const struct key_case *test, int batch, int64_t first,
                             int64_t rows, struct sx_join *join) {
    const bool is_copy = test->how == COPY || (test->how == SAME_OR_COPY && batch > 0);
    struct sx_tensor payload[MOST_COLUMNS] = {0}, key = {0};
    enum sx_status status;
    for (int k = 0; k < test->n_columns; k++)
        SX_GO(make_column(c, test, k, first, rows, &payload[k]));
    if (is_copy)
        SX_GO(make_column(c, test, test->key_at, first, rows, &key));
    else
        sx_tensor_share(&payload[test->key_at], &key);
    SX_GO(c->backend->ops.join_append(c->stream, join, 0, &key, payload, rows));
out:
    sx_tensor_release(&key);
    join_case_release_all(payload, MOST_COLUMNS);
    return status;
}

static enum sx_status build(struct conformance *c, const struct key_case *test, int64_t rows,
                            struct sx_join *join) {
    int parts;
    if (test->is_expected)
        c->backend->ops.join_expect(join, rows);
    for (int b = 0; b < N_BATCHES; b++) {
        const int64_t first = rows * b / N_BATCHES;
        SX_TRY(append(c, test, b, first, rows * (b + 1) / N_BATCHES - first, join));
    }
    SX_TRY(c->backend->ops.join_finish(c->stream, join, &parts));
    for (int p = 0; p < parts; p++)
        SX_TRY(c->backend->ops.join_build(c->stream, join, p));
    return SX_OK;
}

/* Rows of the build side with a key that is not NULL. */
static int64_t count_valid(const struct key_case *test, int64_t rows) {
    return test->has_nulls ? rows - (rows + NULL_EACH - 1) / NULL_EACH : rows;
}

/* Columns of some build rows; `probe_rows`: those that found them (NULL: none did). */
static enum sx_status check_columns(struct conformance *c, const struct key_case *test,
                                    const struct sx_tensor *columns, const struct sx_tensor *probe_rows) {
    struct sx_tensor host[MOST_COLUMNS] = {0};
    bool is_right = true;
    enum sx_status status;
    for (int k = 0; k < test->n_columns; k++)
        SX_GO(conformance_receive(c, &columns[k], &host[k]));
    for (int64_t i = 0; i < host[0].length && is_right; i++) {
        const struct sx_tensor *keys = &host[test->key_at];
        const int64_t key = ((const int64_t *)keys->values)[i];
        const bool is_null = keys->valid && !keys->valid[i];
        if (probe_rows)
            is_right = !is_null && key == ((const int32_t *)probe_rows->values)[i] * (int64_t)SPREAD;
        for (int k = 0; k < test->n_columns && is_right && !is_null; k++)
            is_right = ((const int64_t *)host[k].values)[i] == value_of(test, k, key);
    }
    CONFORM(c, is_right, "%d columns, the key is %d, %d", test->n_columns, test->key_at, (int)test->how);
out:
    join_case_release_all(host, MOST_COLUMNS);
    return status;
}

/* Each key that there may be, and as many that there are not. */
static enum sx_status check_take(struct conformance *c, const struct key_case *test, int64_t rows,
                                 const struct sx_join *join, const int32_t *payload) {
    struct sx_probe_cursor cursor = {0};
    const int64_t n = 2 * rows;
    struct sx_tensor host = {0}, keys = {0}, probe_rows = {0}, taken = {0}, columns[MOST_COLUMNS] = {0};
    int64_t pairs = 0;
    enum sx_status status;
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I64, n, &host, &c->error));
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)host.values)[i] = i * SPREAD;
    SX_GO(conformance_send(c, &host, &keys));
    while (!cursor.done) {
        SX_GO(c->backend->ops.join_take(c->stream, join, &keys, n, INT32_MAX, &cursor, payload,
                                        test->n_columns, &probe_rows, NULL, columns));
        SX_GO(conformance_receive(c, &probe_rows, &taken));
        SX_GO(check_columns(c, test, columns, &taken));
        pairs += taken.length;
        sx_tensor_release(&probe_rows);
        sx_tensor_release(&taken);
        join_case_release_all(columns, MOST_COLUMNS);
    }
    CONFORM(c, pairs == count_valid(test, rows), "%lld pairs of %lld rows", (long long)pairs,
            (long long)rows);
out:
    sx_tensor_release(&host);
    sx_tensor_release(&keys);
    sx_tensor_release(&probe_rows);
    sx_tensor_release(&taken);
    join_case_release_all(columns, MOST_COLUMNS);
    return status;
}

static enum sx_status check_gather(struct conformance *c, const struct key_case *test, int64_t rows,
                                   const struct sx_join *join, const int32_t *payload) {
    struct sx_tensor all = {0}, columns[MOST_COLUMNS] = {0};
    enum sx_status status;
    SX_GO(c->backend->ops.iota(c->stream, SX_TYPE_I64, 0, rows, &all));
    SX_GO(c->backend->ops.join_gather(c->stream, join, payload, test->n_columns, &all, columns));
    SX_GO(check_columns(c, test, columns, NULL));
out:
    sx_tensor_release(&all);
    join_case_release_all(columns, MOST_COLUMNS);
    return status;
}

static enum sx_status run(struct conformance *c, const struct key_case *test, int64_t rows) {
    static const bool null_equal = false;
    struct sx_type types[MOST_COLUMNS];
    int32_t payload[MOST_COLUMNS];
    struct sx_join_info info;
    struct sx_join *join;
    if (!conformance_takes(c))
        return SX_OK;
    for (int k = 0; k < test->n_columns; k++) {
        types[k] = sx_type_of(SX_TYPE_I64);
        payload[k] = k;
    }
    const struct sx_join_spec spec = {.n_keys = 1,
                                      .key_types = types,
                                      .null_equal = &null_equal,
                                      .n_payload = test->n_columns,
                                      .payload_types = types,
                                      .n_workers = 1};
    SX_TRY(c->backend->ops.join_create(c->stream, &spec, &join));
    enum sx_status status = build(c, test, rows, join);
    if (status == SX_OK) {
        c->backend->ops.join_info(join, &info);
        CONFORM(c, info.rows == rows && info.keys_unique == (test->copies == 1) && info.has_range,
                "what is known of the table");
        CONFORM(c, info.key_min == key_of(test, test->has_nulls) && info.key_max == key_of(test, rows - 1),
                "keys from %lld to %lld", (long long)info.key_min, (long long)info.key_max);
        status = check_take(c, test, rows, join, payload);
    }
    if (status == SX_OK)
        status = check_gather(c, test, rows, join, payload);
    c->backend->ops.join_destroy(c->stream, join);
    return status;
}

/* Rows with the key once are of 8 to 64 bytes, or wider than what is taken at once. */
enum sx_status join_key_cases(struct conformance *c) {
    enum { ROWS = 3000 /* slots of the emulator's tables are narrow, and the last row is not NULL */ };
    static const int columns[] = {1, 2, 4, 8, 9};
    for (size_t n = 0; n < sizeof columns / sizeof *columns; n++)
        for (int how = SAME; how <= SAME_OR_COPY; how++)
            for (int64_t copies = 1; copies <= 2; copies++)
                for (int more = 0; more < 4; more++) {
                    const struct key_case test = {.n_columns = columns[n],
                                                  .key_at = columns[n] / 2,
                                                  .how = (enum key_column)how,
                                                  .has_nulls = more == 1,
                                                  .copies = copies,
                                                  .is_expected = more >= 2};
                    SX_TRY(run(c, &test, more == 3 ? ROWS / 2 : ROWS));
                }
    return SX_OK;
}
