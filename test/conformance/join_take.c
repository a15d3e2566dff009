/* Pairs that come with payload. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "join_case.h"

enum { BATCH = 5000, SMALL_BATCH = 700 };
static const int32_t payload[N_PAYLOAD] = {2, 0, 1}; /* 0: the row's number */

struct take_check {
    const struct join_case *test;
    const struct sides *sides;
    const struct numbering *numbering;
    const int64_t *original; /* of the table's rows: the build side's */
    int64_t *n_pairs;        /* of each probe row */
    int64_t *last;           /* of each build row: the last probe row that it came with, and 1 */
    int64_t at;              /* the last probe row */
    bool is_right;
};

/* What a call gave, in host memory. */
struct taken {
    struct sx_tensor probe_rows, build_rows, columns[N_PAYLOAD];
};

static void release_taken(struct taken *taken) {
    sx_tensor_release(&taken->probe_rows);
    sx_tensor_release(&taken->build_rows);
    join_case_release_all(taken->columns, N_PAYLOAD);
}

static bool payload_right(const struct sides *sides, const struct taken *taken, int64_t i, int64_t row) {
    for (int k = 0; k < N_PAYLOAD; k++) {
        struct sx_scalar expected, scalar;
        sx_tensor_scalar(&sides->payload[payload[k]], row, &expected);
        sx_tensor_scalar(&taken->columns[k], i, &scalar);
        if (!conformance_scalar_equal(&expected, &scalar))
            return false;
    }
    return true;
}

/* Pair i, of a batch that begins at probe row `first`. */
static bool pair_right(struct take_check *check, const struct taken *taken, int64_t i, int64_t first) {
    const int64_t probe_row = first + ((const int32_t *)taken->probe_rows.values)[i];
    const int64_t row = ((const int64_t *)taken->columns[1].values)[i];
    if (probe_row < check->at || probe_row >= check->test->probe_rows || row < 0 ||
        row >= check->test->build_rows || check->last[row] == probe_row + 1)
        return false;
    check->at = probe_row;
    check->last[row] = probe_row + 1;
    check->n_pairs[probe_row]++;
    if (check->test->n_keys && check->numbering->build[row] != check->numbering->probe[probe_row])
        return false;
    if (taken->build_rows.length && check->original[((const int64_t *)taken->build_rows.values)[i]] != row)
        return false;
    return payload_right(check->sides, taken, i, row);
}

static enum sx_status take(struct conformance *c, const struct join_case *test, const struct sx_join *join,
                           const struct sx_tensor *keys, int64_t rows, bool wants_rows,
                           struct sx_probe_cursor *cursor, struct taken *out_taken) {
    struct sx_tensor p = {0}, b = {0}, columns[N_PAYLOAD] = {0};
    enum sx_status status;
    SX_GO(c->backend->ops.join_take(c->stream, join, keys, rows, test->max_pairs, cursor, payload, N_PAYLOAD,
                                    &p, wants_rows ? &b : NULL, columns));
    SX_GO(conformance_receive(c, &p, &out_taken->probe_rows));
    if (wants_rows)
        SX_GO(conformance_receive(c, &b, &out_taken->build_rows));
    for (int k = 0; k < N_PAYLOAD; k++)
        SX_GO(conformance_receive(c, &columns[k], &out_taken->columns[k]));
out:
    sx_tensor_release(&p);
    sx_tensor_release(&b);
    join_case_release_all(columns, N_PAYLOAD);
    return status;
}

/* Probe rows [first, first + rows). */
static enum sx_status check_batch(struct conformance *c, struct take_check *check, const struct sx_join *join,
                                  int64_t first, int64_t rows, bool wants_rows) {
    struct sx_tensor keys[MAX_KEYS] = {0};
    struct taken taken = {0};
    struct sx_probe_cursor cursor = {0};
    enum sx_status status;
    SX_GO(join_case_send_slices(c, check->sides->probe, check->test->n_keys, first, rows, keys));
    while (!cursor.done) {
        SX_GO(take(c, check->test, join, keys, rows, wants_rows, &cursor, &taken));
        const int64_t n = taken.probe_rows.length;
        check->is_right &= n <= check->test->max_pairs && (n > 0 || cursor.done);
        check->is_right &= taken.build_rows.length == (wants_rows ? n : 0);
        for (int k = 0; k < N_PAYLOAD; k++)
            check->is_right &= taken.columns[k].length == n;
        for (int64_t i = 0; i < n && check->is_right; i++)
            check->is_right = pair_right(check, &taken, i, first);
        release_taken(&taken);
    }
out:
    release_taken(&taken);
    join_case_release_all(keys, MAX_KEYS);
    return status;
}

static enum sx_status check_in_batches(struct conformance *c, struct take_check *check,
                                       const struct sx_join *join, int64_t batch) {
    const struct join_case *test = check->test;
    char name[SX_TYPE_NAME_BYTES];
    enum sx_status status = SX_OK;
    check->n_pairs = calloc((size_t)test->probe_rows + 1, sizeof *check->n_pairs);
    check->last = calloc((size_t)test->build_rows + 1, sizeof *check->last);
    check->is_right = true;
    check->at = 0;
    if (!check->n_pairs || !check->last) {
        status = sx_error_set(&c->error, SX_OUT_OF_MEMORY, "no memory");
        goto out;
    }
    for (int64_t at = 0; at < test->probe_rows; at += batch) {
        const int64_t rows = test->probe_rows - at < batch ? test->probe_rows - at : batch;
        SX_GO(check_batch(c, check, join, at, rows, at / batch % 2 == 0));
    }
    for (int64_t i = 0; i < test->probe_rows && check->is_right; i++)
        check->is_right = check->n_pairs[i] ==
                          (test->n_keys ? join_case_expected_matches(check->numbering, i) : test->build_rows);
    CONFORM(c, check->is_right,
            "payload with pairs: %d keys of %s, style %d, %lld with %lld rows, %lld a batch", test->n_keys,
            sx_type_name(test->types[0], name), test->styles[0], (long long)test->build_rows,
            (long long)test->probe_rows, (long long)batch);
out:
    free(check->n_pairs);
    free(check->last);
    return status;
}

enum sx_status join_case_check_take(struct conformance *c, const struct join_case *test,
                                    const struct sides *sides, const struct numbering *numbering,
                                    const struct sx_join *join, const int64_t *original) {
    struct take_check check = {.test = test, .sides = sides, .numbering = numbering, .original = original};
    SX_TRY(check_in_batches(c, &check, join, BATCH));
    return test->probe_rows > SMALL_BATCH ? check_in_batches(c, &check, join, SMALL_BATCH) : SX_OK;
}

/* ---- keys and payload of several types, and how much matches ---- */

/* Build row i has key number i * 7919 % build_rows; probe row j that of a build row where j % every is 0.
 * Keys of doubles: number 0 is -0.0 on the build side, number 1 NaN on both. */
struct width_case {
    int64_t build_rows, probe_rows;
    int64_t step; /* from key to key */
    int64_t every;
    int n_payload;
    enum sx_type_id key, value;
    bool has_nulls; /* every fifth build row's in the first column; probe row 0's key, and a build row's more
                     */
    bool wants_rows;
};
enum { MOST_COLUMNS = 9, NULL_EVERY = 5 };

static int64_t number_of(const struct width_case *test, int64_t build_row) {
    return build_row * 7919 % test->build_rows;
}

static int64_t build_row_of(const struct width_case *test, int64_t probe_row) {
    if (probe_row % test->every || (test->has_nulls && probe_row == 0))
        return -1;
    return probe_row * 31 % test->build_rows;
}

static void set_value(struct sx_tensor *column, int64_t row, int64_t value) {
    switch (sx_type_phys(column->type)) {
    case SX_PHYS_I16: ((int16_t *)column->values)[row] = (int16_t)value; break;
    case SX_PHYS_I32: ((int32_t *)column->values)[row] = (int32_t)value; break;
    case SX_PHYS_I128: ((sx_i128 *)column->values)[row] = value; break;
    case SX_PHYS_F64: ((double *)column->values)[row] = (double)value; break;
    default: ((int64_t *)column->values)[row] = value;
    }
}

static bool has_value(const struct sx_tensor *column, int64_t row, int64_t value) {
    switch (sx_type_phys(column->type)) {
    case SX_PHYS_I16: return ((const int16_t *)column->values)[row] == (int16_t)value;
    case SX_PHYS_I32: return ((const int32_t *)column->values)[row] == (int32_t)value;
    case SX_PHYS_I128: return ((const sx_i128 *)column->values)[row] == value;
    default: return ((const int64_t *)column->values)[row] == value;
    }
}

static void set_key(const struct width_case *test, struct sx_tensor *column, int64_t row, int64_t number,
                    bool is_build) {
    set_value(column, row, number * test->step);
    if (test->key != SX_TYPE_F64 || number < 0 || number > 1)
        return;
    ((double *)column->values)[row] = number ? (is_build ? NAN : -NAN) : (is_build ? -0.0 : 0.0);
}

/* Keys, then payload of the row's number and the column's; one row more where there are NULLs, which has one
 * for its key. */
static enum sx_status make_build_side(struct conformance *c, const struct width_case *test,
                                      struct sx_tensor *sent) {
    const int64_t rows = test->build_rows + test->has_nulls;
    struct sx_tensor host = {0};
    enum sx_status status = SX_OK;
    for (int k = 0; k <= test->n_payload; k++) {
        SX_GO(sx_tensor_create(c->pool, sx_type_of(k ? test->value : test->key), rows,
                               k <= 1 && test->has_nulls, &host, &c->error));
        for (int64_t i = 0; i < rows; i++) {
            if (k)
                set_value(&host, i, 10 * i + k);
            else
                set_key(test, &host, i, number_of(test, i), true);
            const bool is_valid = k ? i % NULL_EVERY != 0 : i < test->build_rows;
            if (host.valid)
                host.valid[i] = is_valid;
        }
        SX_GO(conformance_send(c, &host, &sent[k]));
        sx_tensor_release(&host);
    }
out:
    sx_tensor_release(&host);
    return status;
}

static enum sx_status make_probe_side(struct conformance *c, const struct width_case *test,
                                      struct sx_tensor *sent) {
    struct sx_tensor host = {0};
    SX_TRY(sx_tensor_create(c->pool, sx_type_of(test->key), test->probe_rows, test->has_nulls, &host,
                            &c->error));
    for (int64_t j = 0; j < test->probe_rows; j++) {
        const int64_t row = build_row_of(test, j);
        set_key(test, &host, j, row >= 0 ? number_of(test, row) : -1 - j, false);
        if (host.valid)
            host.valid[j] = j != 0;
    }
    const enum sx_status status = conformance_send(c, &host, sent);
    sx_tensor_release(&host);
    return status;
}

static bool pair_has(const struct width_case *test, const struct sx_tensor *columns, int64_t pair,
                     int64_t row) {
    for (int k = 0; k < test->n_payload; k++) {
        const bool is_null = k == 0 && test->has_nulls && row % NULL_EVERY == 0;
        if ((columns[k].valid && !columns[k].valid[pair]) != is_null ||
            (!is_null && !has_value(&columns[k], pair, 10 * row + k + 1)))
            return false;
    }
    return true;
}

static bool widths_right(const struct width_case *test, const struct sx_tensor *probe_rows,
                         const struct sx_tensor *columns) {
    int64_t n = 0;
    for (int64_t j = 0; j < test->probe_rows; j++) {
        const int64_t row = build_row_of(test, j);
        if (row < 0)
            continue;
        if (n >= probe_rows->length || ((const int32_t *)probe_rows->values)[n] != j ||
            !pair_has(test, columns, n, row))
            return false;
        n++;
    }
    return n == probe_rows->length;
}

/* Whether payload of `build_rows` is that of the pairs. */
static enum sx_status check_rows(struct conformance *c, const struct width_case *test,
                                 const struct sx_join *join, const struct sx_tensor *build_rows,
                                 const struct sx_tensor *pairs) {
    const int32_t last = test->n_payload - 1;
    struct sx_tensor again = {0}, got = {0};
    enum sx_status status;
    SX_GO(c->backend->ops.join_gather(c->stream, join, &last, 1, build_rows, &again));
    SX_GO(conformance_receive(c, &again, &got));
    const size_t bytes = (size_t)got.length * sx_type_bytes(got.type);
    CONFORM(c, got.length == pairs->length && (got.valid || memcmp(got.values, pairs->values, bytes) == 0),
            "build rows of %lld pairs", (long long)got.length);
out:
    sx_tensor_release(&again);
    sx_tensor_release(&got);
    return status;
}

static enum sx_status take_widths(struct conformance *c, const struct width_case *test, struct sx_join *join,
                                  const struct sx_tensor *key) {
    struct sx_tensor p = {0}, b = {0}, columns[MOST_COLUMNS] = {0}, got_p = {0}, got[MOST_COLUMNS] = {0};
    struct sx_probe_cursor cursor = {0};
    int32_t wanted[MOST_COLUMNS];
    char name[SX_TYPE_NAME_BYTES];
    enum sx_status status;
    for (int k = 0; k < test->n_payload; k++)
        wanted[k] = k;
    SX_GO(c->backend->ops.join_take(c->stream, join, key, test->probe_rows, test->probe_rows, &cursor, wanted,
                                    test->n_payload, &p, test->wants_rows ? &b : NULL, columns));
    SX_GO(conformance_receive(c, &p, &got_p));
    for (int k = 0; k < test->n_payload; k++)
        SX_GO(conformance_receive(c, &columns[k], &got[k]));
    CONFORM(c, cursor.done && widths_right(test, &got_p, got),
            "%d columns of payload, keys %s, nulls %d, %lld with %lld rows, step %lld, one in %lld",
            test->n_payload, sx_type_name(sx_type_of(test->key), name), test->has_nulls,
            (long long)test->build_rows, (long long)test->probe_rows, (long long)test->step,
            (long long)test->every);
    if (test->wants_rows)
        SX_GO(check_rows(c, test, join, &b, &got[test->n_payload - 1]));
out:
    sx_tensor_release(&p);
    sx_tensor_release(&b);
    sx_tensor_release(&got_p);
    join_case_release_all(columns, MOST_COLUMNS);
    join_case_release_all(got, MOST_COLUMNS);
    return status;
}

static enum sx_status run_widths(struct conformance *c, const struct width_case *test) {
    struct sx_tensor build[MOST_COLUMNS + 1] = {0}, key = {0};
    struct sx_type types[MOST_COLUMNS];
    const struct sx_type key_type = sx_type_of(test->key);
    const bool null_equal = false;
    struct sx_join *join = NULL;
    int parts = 0;
    enum sx_status status;
    if (!conformance_takes(c))
        return SX_OK;
    for (int k = 0; k < test->n_payload; k++)
        types[k] = sx_type_of(test->value);
    const struct sx_join_spec spec = {.n_keys = 1,
                                      .key_types = &key_type,
                                      .null_equal = &null_equal,
                                      .n_payload = test->n_payload,
                                      .payload_types = types,
                                      .n_workers = 1};
    SX_GO(c->backend->ops.join_create(c->stream, &spec, &join));
    SX_GO(make_build_side(c, test, build));
    SX_GO(make_probe_side(c, test, &key));
    SX_GO(c->backend->ops.join_append(c->stream, join, 0, &build[0], &build[1],
                                      test->build_rows + test->has_nulls));
    SX_GO(c->backend->ops.join_finish(c->stream, join, &parts));
    for (int part = 0; part < parts; part++)
        SX_GO(c->backend->ops.join_build(c->stream, join, part));
    for (int times = 0; times < 2; times++) /* the second time it is known how much matches */
        SX_GO(take_widths(c, test, join, &key));
out:
    if (join)
        c->backend->ops.join_destroy(c->stream, join);
    join_case_release_all(build, MOST_COLUMNS + 1);
    sx_tensor_release(&key);
    return status;
}

enum sx_status join_take_cases(struct conformance *c) {
    static const struct {
        int64_t build_rows, probe_rows, every;
    } sizes[] = {{1500, 2900, 2},
                 {1500, 2900, 30},
                 {700, 600, 1},
                 {6000, 1300, 2},
                 /* large enough for a GPU: */ {200000, 300000, 2},
                 {200000, 300000, 30}};
    static const struct {
        int64_t step;
        enum sx_type_id key;
    } kinds[] = {{1, SX_TYPE_I64},    {3, SX_TYPE_I32},
                 {9000, SX_TYPE_I32}, {INT64_C(1) << 40, SX_TYPE_I64},
                 {3, SX_TYPE_F64},    {INT64_C(1) << 40, SX_TYPE_U64}};
    static const struct {
        enum sx_type_id value;
        bool has_nulls, wants_rows;
    } variants[] = {{SX_TYPE_I64, false, false},
                    {SX_TYPE_I32, false, true},
                    {SX_TYPE_I64, true, false},
                    {SX_TYPE_I16, true, true},
                    {SX_TYPE_I128, true, false}};
    enum { EVERYWHERE = 6000, N_VARIANTS = sizeof variants / sizeof variants[0] };
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (int n = 1; n <= MOST_COLUMNS; n += n == 4 ? 3 : 1)
                for (int v = 0; v < N_VARIANTS; v++) {
                    const struct width_case test = {.build_rows = sizes[s].build_rows,
                                                    .probe_rows = sizes[s].probe_rows,
                                                    .every = sizes[s].every,
                                                    .step = kinds[k].step,
                                                    .key = kinds[k].key,
                                                    .value = variants[v].value,
                                                    .n_payload = n,
                                                    .has_nulls = variants[v].has_nulls,
                                                    .wants_rows = variants[v].wants_rows};
                    if (test.build_rows <= EVERYWHERE || conformance_may_have(test.build_rows))
                        SX_TRY(run_widths(c, &test));
                }
    return SX_OK;
}
