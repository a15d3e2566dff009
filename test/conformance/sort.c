#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "tensor/semantics.h"
#include "tensor/semantics_date.h"

enum { MAX_KEYS = 4 };

struct sort_case {
    int n_keys;
    struct sx_tensor keys[MAX_KEYS]; /* in host memory */
    struct sx_sort_key orders[MAX_KEYS];
    int64_t rows, limit;
};

/* ---- reference: a stable order by comparing scalars ---- */

static int compare_double(double a, double b) {
    return sx_f64_less(a, b) ? -1 : sx_f64_less(b, a);
}

static int compare_values(const struct sx_scalar *a, const struct sx_scalar *b) {
    switch (sx_type_phys(a->type)) {
    case SX_PHYS_I128: return a->v.i128 < b->v.i128 ? -1 : a->v.i128 > b->v.i128;
    case SX_PHYS_U128: return a->v.u128 < b->v.u128 ? -1 : a->v.u128 > b->v.u128;
    case SX_PHYS_U8:
    case SX_PHYS_U16:
    case SX_PHYS_U32:
    case SX_PHYS_U64: return a->v.u64 < b->v.u64 ? -1 : a->v.u64 > b->v.u64;
    case SX_PHYS_F32: return compare_double((double)a->v.f32, (double)b->v.f32);
    case SX_PHYS_F64: return compare_double(a->v.f64, b->v.f64);
    case SX_PHYS_INTERVAL: return sx_interval_compare(a->v.interval, b->v.interval);
    case SX_PHYS_STRING: {
        uint32_t x = a->v.text.length_bytes, y = b->v.text.length_bytes, shorter = x < y ? x : y;
        int order = shorter ? memcmp(a->v.text.bytes, b->v.text.bytes, shorter) : 0;
        return order ? order : x < y ? -1 : x > y;
    }
    default: return a->v.i64 < b->v.i64 ? -1 : a->v.i64 > b->v.i64;
    }
}

static int compare_rows(const struct sort_case *test, int64_t row_a, int64_t row_b) {
    for (int k = 0; k < test->n_keys; k++) {
        struct sx_scalar a, b;
        sx_tensor_scalar(&test->keys[k], row_a, &a);
        sx_tensor_scalar(&test->keys[k], row_b, &b);
        int order = 0;
        if (a.is_null || b.is_null)
            order = a.is_null == b.is_null ? 0 : a.is_null == test->orders[k].nulls_first ? -1 : 1;
        else
            order = test->orders[k].descending ? compare_values(&b, &a) : compare_values(&a, &b);
        if (order)
            return order;
    }
    return 0;
}

/* ---- checks ---- */

/* Neighbours are in order, equal ones by row; with a limit no row that was left out belongs in front of the
 * last. Those properties leave one order only. */
static bool order_right(const struct sort_case *test, const int64_t *order, int64_t n) {
    uint8_t *seen = calloc((size_t)test->rows + 1, 1);
    bool right = seen != NULL;
    for (int64_t i = 0; right && i < n; i++) {
        right = order[i] >= 0 && order[i] < test->rows && !seen[order[i]];
        if (!right)
            break;
        seen[order[i]] = 1;
        int before = i ? compare_rows(test, order[i - 1], order[i]) : -1;
        right = before < 0 || (before == 0 && order[i - 1] < order[i]);
    }
    for (int64_t row = 0; right && n && row < test->rows; row++) {
        int before = seen[row] ? -1 : compare_rows(test, order[n - 1], row);
        right = before < 0 || (before == 0 && order[n - 1] < row);
    }
    free(seen);
    return right;
}

static enum sx_status run_case(struct conformance *c, const struct sort_case *test) {
    struct sx_tensor keys[MAX_KEYS] = {0}, out = {0}, got = {0};
    char name[SX_TYPE_NAME_BYTES];
    enum sx_status status = SX_OK;
    if (!conformance_takes(c))
        return SX_OK;
    for (int k = 0; k < test->n_keys; k++)
        SX_GO(conformance_send(c, &test->keys[k], &keys[k]));
    SX_GO(c->backend->ops.sort(c->stream, keys, test->orders, test->n_keys, test->rows, test->limit, &out));
    SX_GO(conformance_receive(c, &out, &got));
    int64_t expected = test->limit < 0 || test->limit > test->rows ? test->rows : test->limit;
    bool right = got.type.id == SX_TYPE_I64 && got.length == expected && got.layout == SX_FLAT &&
                 order_right(test, got.values, got.length);
    CONFORM(c, right,
            "sort by %d keys, first %s layout %d descending %d nulls first %d, %lld rows limit %lld",
            test->n_keys, sx_type_name(test->keys[0].type, name), test->keys[0].layout,
            test->orders[0].descending, test->orders[0].nulls_first, (long long)test->rows,
            (long long)test->limit);
out:
    for (int k = 0; k < MAX_KEYS; k++)
        sx_tensor_release(&keys[k]);
    sx_tensor_release(&out);
    sx_tensor_release(&got);
    return status;
}

static enum sx_status with_limits(struct conformance *c, struct sort_case *test) {
    const int64_t limits[] = {-1, 0, 1, 10, test->rows / 2, test->rows + 5};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        test->limit = limits[i];
        SX_TRY(run_case(c, test));
    }
    return SX_OK;
}

static const struct sx_type types[] = {
    {SX_TYPE_BOOL, 0, 0},      {SX_TYPE_I8, 0, 0},       {SX_TYPE_I16, 0, 0},      {SX_TYPE_I32, 0, 0},
    {SX_TYPE_I64, 0, 0},       {SX_TYPE_I128, 0, 0},     {SX_TYPE_U8, 0, 0},       {SX_TYPE_U16, 0, 0},
    {SX_TYPE_U32, 0, 0},       {SX_TYPE_U64, 0, 0},      {SX_TYPE_U128, 0, 0},     {SX_TYPE_F32, 0, 0},
    {SX_TYPE_F64, 0, 0},       {SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_DECIMAL, 30, 4}, {SX_TYPE_DATE, 0, 0},
    {SX_TYPE_TIMESTAMP, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},  {SX_TYPE_INTERVAL, 0, 0},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

static void release_case(struct sort_case *test) {
    for (int k = 0; k < MAX_KEYS; k++)
        sx_tensor_release(&test->keys[k]);
}

static enum sx_status as_dictionary(struct conformance *c, struct sx_tensor *column) {
    struct sx_tensor coded = {0};
    SX_TRY(conformance_dictionary(c, column, &coded));
    sx_tensor_release(column);
    *column = coded;
    return SX_OK;
}

static enum sx_status one_key(struct conformance *c, struct sx_type type, int64_t rows, int variant) {
    struct sort_case test = {.n_keys = 1, .rows = rows};
    enum sx_status status;
    test.orders[0] = (struct sx_sort_key){.descending = variant & 1, .nulls_first = variant & 2};
    enum conformance_fill fill = (enum conformance_fill)(variant / 4);
    SX_GO(conformance_column(c, type, rows, fill, variant & 3 ? 0.2 : 0, &test.keys[0]));
    SX_GO(with_limits(c, &test));
    if (type.id == SX_TYPE_VARCHAR) {
        SX_GO(as_dictionary(c, &test.keys[0]));
        SX_GO(with_limits(c, &test));
    }
out:
    release_case(&test);
    return status;
}

/* Keys of random types; the first ones with few values, so that later ones decide. */
static enum sx_status several_keys(struct conformance *c, int64_t rows) {
    struct sort_case test = {.n_keys = 2 + (int)(conformance_random(c) % (MAX_KEYS - 1)), .rows = rows};
    enum sx_status status = SX_OK;
    for (int k = 0; k < test.n_keys; k++) {
        struct sx_type type = types[conformance_random(c) % N_TYPES];
        enum conformance_fill fill = k + 1 < test.n_keys ? FILL_FEW_VALUES : FILL_RANDOM;
        uint64_t bits = conformance_random(c);
        SX_GO(conformance_column(c, type, rows, fill, bits & 4 ? 0.2 : 0, &test.keys[k]));
        if (type.id == SX_TYPE_VARCHAR && bits & 8)
            SX_GO(as_dictionary(c, &test.keys[k]));
        test.orders[k] = (struct sx_sort_key){.descending = bits & 1, .nulls_first = bits & 2};
    }
    SX_GO(with_limits(c, &test));
out:
    release_case(&test);
    return status;
}

/* All rows equal, by a constant and by a column of nulls. */
static enum sx_status all_equal(struct conformance *c, int64_t rows) {
    struct sort_case test = {.n_keys = 2, .rows = rows};
    const struct sx_scalar seven = {.type = types[4], .v.i64 = 7};
    enum sx_status status;
    SX_GO(sx_tensor_create_constant(c->pool, &seven, rows, &test.keys[0], &c->error));
    SX_GO(conformance_column(c, types[17], rows, FILL_RANDOM, 1.1, &test.keys[1]));
    SX_GO(with_limits(c, &test));
out:
    release_case(&test);
    return status;
}

/* Strings that share more bytes than any prefix holds, behind n_front other keys. */
static enum sx_status long_prefixes(struct conformance *c, int64_t rows, int n_front) {
    struct sort_case test = {.n_keys = n_front + 1, .rows = rows};
    struct sx_tensor *column = &test.keys[n_front];
    enum { BYTES = 48 };
    enum sx_status status;
    SX_GO(sx_tensor_create(c->pool, types[17], rows, false, column, &c->error));
    SX_GO(sx_buffer_create(c->pool, (size_t)rows * BYTES, &column->heap, &c->error));
    for (int64_t i = 0; i < rows; i++) {
        char *bytes = (char *)column->heap->data + i * BYTES;
        memset(bytes, 'x', BYTES);
        snprintf(bytes + 40, 8, "%d", (int)(conformance_random(c) % 1000));
        ((struct sx_string *)column->values)[i] = sx_string_make(bytes, 40 + (uint32_t)(i % 8));
    }
    for (int k = 0; k < n_front; k++) {
        SX_GO(conformance_column(c, types[4], rows, FILL_FEW_VALUES, 0, &test.keys[k]));
        test.orders[k].descending = k == 0;
    }
    SX_GO(with_limits(c, &test));
out:
    release_case(&test);
    return status;
}

/* Strings that differ only behind eight bytes, in their length, or in zeros at the end; and NULLs. */
static enum sx_status alike_strings(struct conformance *c, int64_t rows, int variant) {
    static const struct {
        const char *bytes;
        uint32_t length;
    } texts[] = {{"", 0},
                 {"\0", 1},
                 {"a", 1},
                 {"a\0", 2},
                 {"a\0\0", 3},
                 {"a\0z", 3},
                 {"aaaaaaaa", 8},
                 {"aaaaaaaa\0", 9},
                 {"aaaaaaaab", 9},
                 {"aaaaaaaa\xff", 9},
                 {"aaaaaaaabbbbbbbbcccc", 20},
                 {"aaaaaaaabbbbbbbbcccc\0", 21},
                 {"aaaaaaaabbbbbbbbcccd", 20}};
    struct sort_case test = {.n_keys = 2, .rows = rows};
    struct sx_tensor *column = &test.keys[0];
    enum sx_status status;
    SX_GO(sx_tensor_create(c->pool, types[17], rows, true, column, &c->error));
    for (int64_t i = 0; i < rows; i++) {
        const size_t at = conformance_random(c) % (sizeof texts / sizeof texts[0]);
        column->valid[i] = conformance_random(c) % 8 != 0;
        ((struct sx_string *)column->values)[i] = sx_string_make(texts[at].bytes, texts[at].length);
    }
    SX_GO(conformance_column(c, types[5], rows, FILL_RANDOM, 0.1, &test.keys[1]));
    for (int k = 0; k < test.n_keys; k++)
        test.orders[k] = (struct sx_sort_key){.descending = (variant ^ k) & 1, .nulls_first = variant & 2};
    SX_GO(with_limits(c, &test));
out:
    release_case(&test);
    return status;
}

/* Sizes around those of runs that are merged. */
static enum sx_status some_runs(struct conformance *c) {
    static const int64_t sizes[] = {2, 3, 1023, 1024, 1025, 2048, 2049, 5123};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int variant = 0; variant < 4; variant++)
            SX_TRY(alike_strings(c, sizes[i], variant));
        SX_TRY(several_keys(c, sizes[i]));
        SX_TRY(one_key(c, types[i], sizes[i], (int)i));
        SX_TRY(all_equal(c, sizes[i]));
    }
    return SX_OK;
}

/* With every limit on memory it either works or says so, and leaves nothing behind. */
static enum sx_status short_of_memory(struct conformance *c) {
    for (size_t limit = 1000; limit < 8000000; limit += limit / 5) {
        struct conformance poor = *c;
        SX_TRY(sx_pool_create(limit, &poor.pool, &c->error));
        enum sx_status status =
            c->backend->ops.stream_create(c->backend, poor.pool, NULL, &poor.stream, &c->error);
        if (status == SX_OK) {
            status = long_prefixes(&poor, 5000, 0);
            if (status == SX_OK)
                status = several_keys(&poor, 5000);
            c->backend->ops.stream_destroy(poor.stream);
        }
        c->n_cases = poor.n_cases;
        CONFORM(c, status == SX_OK || status == SX_OUT_OF_MEMORY, "limit %zu: status %d", limit, status);
        CONFORM(c, poor.failures == c->failures, "limit %zu: wrong order", limit);
        CONFORM(c, sx_pool_usage(poor.pool).used_bytes == 0, "limit %zu: bytes left", limit);
        sx_pool_destroy(poor.pool);
    }
    return SX_OK;
}

static enum sx_status all_cases(struct conformance *c) {
    for (int i = 0; i < conformance_n_rows; i++) {
        int64_t rows = conformance_rows[i];
        for (int t = 0; t < N_TYPES; t++)
            for (int variant = 0; variant < 16; variant++)
                if (rows <= 1000 || variant % 4 == t % 4)
                    SX_TRY(one_key(c, types[t], rows, variant));
        for (int round = 0; round < 12; round++)
            SX_TRY(several_keys(c, rows));
        SX_TRY(all_equal(c, rows));
        for (int n_front = 0; n_front < 3; n_front++)
            SX_TRY(long_prefixes(c, rows, n_front));
    }
    SX_TRY(some_runs(c));
    return short_of_memory(c);
}

void conform_sort(struct conformance *c) {
    enum sx_status status = all_cases(c);
    CONFORM(c, status == SX_OK, "%s%s", c->stream->error.text, c->error.text);
}
