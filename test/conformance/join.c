#include "join_case.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 3 };

/* original[r]: which row of the build input became build row r. Checks the payload on the way. */
static enum sx_status read_payload(struct conformance *c, const struct join_case *test,
                                   const struct sides *sides, const struct sx_join *join, int64_t *original) {
    struct sx_tensor got[N_PAYLOAD] = {0};
    enum sx_status status = SX_OK;
    SX_GO(join_case_receive_all(c, join, got));
    bool lengths = got[0].length == test->build_rows && got[1].length == test->build_rows &&
                   got[2].length == test->build_rows;
    if (!CONFORM(c, lengths, "payload of %lld rows", (long long)got[0].length))
        goto out;
    bool equal = true;
    for (int64_t r = 0; r < test->build_rows; r++) {
        struct sx_scalar expected, scalar;
        original[r] = ((const int64_t *)got[0].values)[r];
        for (int k = 1; k < N_PAYLOAD; k++) {
            sx_tensor_scalar(&sides->payload[k], original[r], &expected);
            sx_tensor_scalar(&got[k], r, &scalar);
            equal &= conformance_scalar_equal(&expected, &scalar);
        }
    }
    CONFORM(c, equal, "payload of %lld rows", (long long)test->build_rows);
out:
    join_case_release_all(got, N_PAYLOAD);
    return status;
}

/* ---- checks ---- */

static void check_info(struct conformance *c, const struct join_case *test, const struct sides *sides,
                       const struct numbering *numbering, const struct sx_join *join) {
    struct sx_join_info info;
    bool has_null = false, has_value = false;
    int64_t min = INT64_MAX, max = INT64_MIN;
    c->backend->ops.join_info(join, &info);
    for (int k = 0; k < test->n_keys; k++)
        for (int64_t i = 0; i < test->build_rows; i++) {
            struct sx_scalar scalar;
            sx_tensor_scalar(&sides->build[k], i, &scalar);
            has_null |= scalar.is_null;
            has_value |= !scalar.is_null;
            if (scalar.is_null)
                continue;
            min = scalar.v.i64 < min ? scalar.v.i64 : min;
            max = scalar.v.i64 > max ? scalar.v.i64 : max;
        }
    CONFORM(c, info.rows == test->build_rows, "info: %lld rows", (long long)info.rows);
    CONFORM(c, info.has_null_key == (has_null && !test->null_equal), "info: null key %d", info.has_null_key);
    CONFORM(c, !info.keys_unique || numbering->unique || test->n_keys == 0, "info: keys_unique");
    bool is_signed = test->n_keys == 1 && sx_type_phys(test->types[0]) <= SX_PHYS_I64;
    if (is_signed)
        CONFORM(c, info.has_range == has_value, "info: range %d", info.has_range);
    if (info.has_range)
        CONFORM(c, info.key_min == min && info.key_max == max, "info: range %lld to %lld",
                (long long)info.key_min, (long long)info.key_max);
}

static int compare_pairs(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

struct pairs {
    int64_t (*rows)[2]; /* probe row, build row (of the table) */
    int64_t n, capacity;
    bool in_order;
};

static void add_pair(struct pairs *pairs, int64_t probe_row, int64_t build_row) {
    if (pairs->n == pairs->capacity) {
        pairs->capacity = pairs->capacity ? 2 * pairs->capacity : 1024;
        void *grown = realloc(pairs->rows, (size_t)pairs->capacity * sizeof *pairs->rows);
        if (!grown)
            abort();
        pairs->rows = grown;
    }
    pairs->in_order &= !pairs->n || pairs->rows[pairs->n - 1][0] <= probe_row;
    pairs->rows[pairs->n][0] = probe_row;
    pairs->rows[pairs->n++][1] = build_row;
}

/* Probes rows [first, first + rows) with as many calls as it takes. */
static enum sx_status probe_batch(struct conformance *c, const struct join_case *test,
                                  const struct sides *sides, const struct sx_join *join,
                                  enum sx_probe_mode mode, int64_t first, int64_t rows, struct pairs *pairs) {
    struct sx_tensor keys[MAX_KEYS] = {0}, p = {0}, b = {0}, host_p = {0}, host_b = {0};
    struct sx_probe_cursor cursor = {0};
    enum sx_status status;
    SX_GO(join_case_send_slices(c, sides->probe, test->n_keys, first, rows, keys));
    while (!cursor.done) {
        SX_GO(
            c->backend->ops.join_probe(c->stream, join, keys, rows, mode, test->max_pairs, &cursor, &p, &b));
        SX_GO(conformance_receive(c, &p, &host_p));
        SX_GO(conformance_receive(c, &b, &host_b));
        bool sane = host_p.length == host_b.length && host_p.length <= test->max_pairs &&
                    (host_p.length > 0 || cursor.done);
        if (!CONFORM(c, sane, "probe gave %lld and %lld rows", (long long)host_p.length,
                     (long long)host_b.length))
            break;
        for (int64_t i = 0; i < host_p.length; i++)
            add_pair(pairs, first + ((const int32_t *)host_p.values)[i], ((const int64_t *)host_b.values)[i]);
        sx_tensor_release(&p);
        sx_tensor_release(&b);
        sx_tensor_release(&host_p);
        sx_tensor_release(&host_b);
    }
out:
    join_case_release_all(keys, MAX_KEYS);
    sx_tensor_release(&p);
    sx_tensor_release(&b);
    sx_tensor_release(&host_p);
    sx_tensor_release(&host_b);
    return status;
}

static bool pairs_right(const struct join_case *test, const struct numbering *numbering,
                        const int64_t *original, enum sx_probe_mode mode, struct pairs *pairs) {
    int64_t at = 0;
    if (!pairs->in_order)
        return false;
    if (pairs->n)
        qsort(pairs->rows, (size_t)pairs->n, sizeof *pairs->rows, compare_pairs);
    for (int64_t i = 0; i < test->probe_rows; i++) {
        int64_t expected = test->n_keys ? join_case_expected_matches(numbering, i) : test->build_rows,
                got = 0;
        if (mode == SX_PROBE_FIRST && expected > 1)
            expected = 1;
        for (; at < pairs->n && pairs->rows[at][0] == i; at++, got++) {
            int64_t row = pairs->rows[at][1];
            if (row < 0 || row >= test->build_rows || (got && row == pairs->rows[at - 1][1]))
                return false;
            if (test->n_keys && numbering->build[original[row]] != numbering->probe[i])
                return false;
        }
        if (got != expected)
            return false;
    }
    return at == pairs->n;
}

static enum sx_status check_probe(struct conformance *c, const struct join_case *test,
                                  const struct sides *sides, const struct numbering *numbering,
                                  const struct sx_join *join, const int64_t *original,
                                  enum sx_probe_mode mode) {
    enum { BATCH = 5000 };
    struct pairs pairs = {.in_order = true};
    char name[SX_TYPE_NAME_BYTES];
    enum sx_status status = SX_OK;
    for (int64_t at = 0; at < test->probe_rows; at += BATCH) {
        int64_t rows = test->probe_rows - at < BATCH ? test->probe_rows - at : BATCH;
        SX_GO(probe_batch(c, test, sides, join, mode, at, rows, &pairs));
    }
    CONFORM(c, pairs_right(test, numbering, original, mode, &pairs),
            "probe mode %d, %d keys of %s, style %d, nulls %g equal %d, %lld with %lld rows, dictionaries %d",
            mode, test->n_keys, sx_type_name(test->types[0], name), test->styles[0], test->nulls,
            test->null_equal, (long long)test->build_rows, (long long)test->probe_rows, test->dictionaries);
out:
    free(pairs.rows);
    return status;
}

/* Every row with a match passes; rows pass in order and once, out of the selection. */
static bool filter_right(const struct numbering *numbering, int64_t rows, int64_t step,
                         const struct sx_tensor *got) {
    const int32_t *positions = got->values;
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i += step) {
        bool passes = at < got->length && positions[at] == i;
        if (!passes && join_case_expected_matches(numbering, i))
            return false;
        at += passes;
    }
    return at == got->length;
}

static enum sx_status check_filter(struct conformance *c, const struct join_case *test,
                                   const struct sides *sides, const struct numbering *numbering,
                                   const struct sx_join *join, int64_t step) {
    struct sx_tensor key = {0}, host_selection = {0}, selection = {0}, out = {0}, got = {0};
    enum sx_status status;
    int64_t n = (test->probe_rows + step - 1) / step;
    SX_GO(conformance_send(c, &sides->probe[0], &key));
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I32, n, &host_selection, &c->error));
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)host_selection.values)[i] = (int32_t)(i * step);
    SX_GO(conformance_send(c, &host_selection, &selection));
    SX_GO(c->backend->ops.join_filter(c->stream, join, &key, step > 1 ? &selection : NULL, &out));
    SX_GO(conformance_receive(c, &out, &got));
    CONFORM(c, filter_right(numbering, test->probe_rows, step, &got), "filter, %lld rows, every %lld",
            (long long)test->probe_rows, (long long)step);
out:
    sx_tensor_release(&key);
    sx_tensor_release(&host_selection);
    sx_tensor_release(&selection);
    sx_tensor_release(&out);
    sx_tensor_release(&got);
    return status;
}

static enum sx_status check_marked(struct conformance *c, const struct sx_join *join, const uint8_t *marks,
                                   bool wanted, int64_t first, int64_t count) {
    struct sx_tensor out = {0}, got = {0};
    enum sx_status status;
    SX_GO(c->backend->ops.join_marked(c->stream, join, wanted, first, count, &out));
    SX_GO(conformance_receive(c, &out, &got));
    int64_t at = 0;
    bool right = true;
    for (int64_t i = first; i < first + count; i++)
        if (marks[i] == wanted)
            right = right && at < got.length && ((const int64_t *)got.values)[at++] == i;
    CONFORM(c, right && at == got.length, "marked %d of %lld rows from %lld", wanted, (long long)count,
            (long long)first);
out:
    sx_tensor_release(&out);
    sx_tensor_release(&got);
    return status;
}

static enum sx_status check_marks(struct conformance *c, const struct join_case *test, struct sx_join *join) {
    struct sx_tensor host = {0}, rows = {0};
    uint8_t *marks = calloc((size_t)test->build_rows + 1, 1);
    enum sx_status status;
    int64_t n = test->build_rows / 3;
    if (!marks)
        return sx_error_set(&c->error, SX_OUT_OF_MEMORY, "no memory");
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I64, n, &host, &c->error));
    for (int64_t i = 0; i < n; i++) {
        int64_t row = (int64_t)(conformance_random(c) % (uint64_t)test->build_rows);
        ((int64_t *)host.values)[i] = row;
        marks[row] = 1;
    }
    SX_GO(conformance_send(c, &host, &rows));
    SX_GO(c->backend->ops.join_mark(c->stream, join, &rows));
    for (int wanted = 0; wanted < 2; wanted++) {
        SX_GO(check_marked(c, join, marks, wanted, 0, test->build_rows));
        SX_GO(check_marked(c, join, marks, wanted, test->build_rows / 4, test->build_rows / 2));
    }
out:
    free(marks);
    sx_tensor_release(&host);
    sx_tensor_release(&rows);
    return status;
}

enum sx_status join_case_run(struct conformance *c, const struct join_case *test) {
    struct sides sides = {0};
    struct numbering numbering = {0};
    struct sx_join *join = NULL;
    if (!conformance_takes(c))
        return SX_OK;
    int64_t *original = calloc((size_t)test->build_rows + 1, sizeof *original);
    enum sx_status status;
    SX_GO(join_case_make_sides(c, test, &sides));
    if (!original || !join_case_number_keys(test, &sides, &numbering)) {
        status = sx_error_set(&c->error, SX_OUT_OF_MEMORY, "no memory");
        goto out;
    }
    SX_GO(join_case_create(c, test, &join));
    SX_GO(join_case_build(c, test, &sides, join));
    check_info(c, test, &sides, &numbering, join);
    SX_GO(read_payload(c, test, &sides, join, original));
    SX_GO(check_probe(c, test, &sides, &numbering, join, original, SX_PROBE_ALL));
    SX_GO(check_probe(c, test, &sides, &numbering, join, original, SX_PROBE_FIRST));
    SX_GO(join_case_check_take(c, test, &sides, &numbering, join, original));
    if (test->n_keys == 1) {
        SX_GO(check_filter(c, test, &sides, &numbering, join, 1));
        SX_GO(check_filter(c, test, &sides, &numbering, join, 3));
    }
    SX_GO(check_marks(c, test, join));
out:
    c->backend->ops.join_destroy(c->stream, join);
    join_case_release_numbering(&numbering);
    join_case_release_sides(&sides);
    free(original);
    return status;
}

/* ---- families of cases ---- */

static const struct sx_type types[] = {
    {SX_TYPE_BOOL, 0, 0},    {SX_TYPE_I8, 0, 0},        {SX_TYPE_I16, 0, 0},      {SX_TYPE_I32, 0, 0},
    {SX_TYPE_I64, 0, 0},     {SX_TYPE_I128, 0, 0},      {SX_TYPE_U8, 0, 0},       {SX_TYPE_U16, 0, 0},
    {SX_TYPE_U32, 0, 0},     {SX_TYPE_U64, 0, 0},       {SX_TYPE_U128, 0, 0},     {SX_TYPE_F32, 0, 0},
    {SX_TYPE_F64, 0, 0},     {SX_TYPE_DATE, 0, 0},      {SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_DECIMAL, 30, 4},
    {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_TIMESTAMP, 0, 0},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

static bool is_integer(struct sx_type type) {
    return sx_type_phys(type) <= SX_PHYS_I64 && type.id != SX_TYPE_BOOL;
}

static enum sx_status one_key(struct conformance *c, struct sx_type type, int64_t rows) {
    bool is_tiny = sx_type_bytes(type) == 1; /* few values whatever the style */
    for (int variant = 0; variant<12; variant += rows> 8000 ? 5 : 1) {
        bool few = variant % 3 == 1 || is_tiny, with_nulls = variant & 1, null_equal = variant / 6;
        struct join_case test = {
            .n_keys = 1,
            .types = {type},
            .styles = {variant % 3 == 2 && is_integer(type) ? DENSE
                       : few                                ? FEW
                                                            : RANDOM},
            .null_equal = null_equal,
            .nulls = with_nulls ? 0.2 : 0,
            .build_rows = (few || (null_equal && with_nulls)) && rows > 500 ? 500 : rows,
            .probe_rows = rows,
            .n_workers = 1 + variant % 3,
            .max_pairs = variant % 2 ? 997 : 100000,
            .dictionaries = (enum dictionaries)(variant % 4),
        };
        if (test.build_rows < rows && rows > 2000)
            test.probe_rows = 2000;
        SX_TRY(join_case_run(c, &test));
    }
    return SX_OK;
}

/* Of one key, so that tables may be in the keys' order. */
static enum sx_status unique_keys(struct conformance *c, int64_t rows) {
    const struct sx_type of[] = {types[3], types[4], types[13], types[14]};
    const int64_t steps[] = {1, 3, 60, 900, 40000};
    for (int i = 0; i < (int)(sizeof of / sizeof of[0]); i++)
        for (int variant = 0; variant < 15; variant++) {
            const struct join_case test = {
                .n_keys = 1,
                .types = {of[i]},
                .styles = {UNIQUE},
                .step = steps[variant / 3],
                .null_equal = variant % 3 == 2,
                .nulls = variant % 3 ? 0.2 : 0,
                .build_rows = rows,
                .probe_rows = rows < 3000 ? rows : 3000,
                .n_workers = 1 + variant % 3,
                .max_pairs = variant % 2 ? 997 : 100000,
            };
            SX_TRY(join_case_run(c, &test));
        }
    return SX_OK;
}

static enum sx_status several_keys(struct conformance *c, int64_t rows) {
    const struct join_case cases[] = {
        /* numbers that pack */
        {.n_keys = 2, .types = {types[3], types[13]}, .styles = {DENSE, FEW}},
        {.n_keys = 2, .types = {types[4], types[3]}, .styles = {DENSE, DENSE}},
        {.n_keys = 3, .types = {types[1], types[2], types[4]}, .styles = {DENSE, DENSE, FEW}},
        /* that don't */
        {.n_keys = 2, .types = {types[4], types[9]}, .styles = {RANDOM, RANDOM}},
        {.n_keys = 2, .types = {types[16], types[4]}, .styles = {FEW, DENSE}},
        {.n_keys = 3, .types = {types[12], types[16], types[5]}, .styles = {FEW, RANDOM, FEW}},
        {.n_keys = 2, .types = {types[15], types[7]}, .styles = {FEW, FEW}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int variant = 0; variant < 4; variant++) {
            struct join_case test = cases[i];
            test.null_equal = variant / 2;
            test.nulls = variant % 2 ? 0.3 : 0;
            test.build_rows = rows < 1500 ? rows : 1500;
            test.probe_rows = rows < 3000 ? rows : 3000;
            test.n_workers = 2;
            test.max_pairs = 4096;
            test.dictionaries = (enum dictionaries)variant;
            SX_TRY(join_case_run(c, &test));
        }
    return SX_OK;
}

static enum sx_status cross_products(struct conformance *c, int64_t rows) {
    int64_t few = rows < 300 ? rows : 300;
    const struct join_case cases[] = {
        {.build_rows = few, .probe_rows = 70, .n_workers = 2, .max_pairs = 128},
        {.build_rows = few, .probe_rows = 70, .n_workers = 2, .max_pairs = few ? few : 1},
        {.build_rows = 3, .probe_rows = few, .n_workers = 1, .max_pairs = 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        SX_TRY(join_case_run(c, &cases[i]));
    return SX_OK;
}

/* One key a hundred thousand times: the work follows the output. */
static enum sx_status long_chains(struct conformance *c) {
    struct join_case test = {.n_keys = 1,
                             .types = {types[4]},
                             .styles = {FEW},
                             .build_rows = 100000,
                             .probe_rows = 8,
                             .n_workers = 1,
                             .max_pairs = 1000};
    SX_TRY(join_case_run(c, &test));
    test.types[0] = types[16];
    return join_case_run(c, &test);
}

/* ---- threads ---- */

struct thread {
    pthread_t id;
    struct conformance c; /* with a stream of its own */
    const struct join_case *test;
    const struct sides *sides;
    struct sx_join *join;
    int number, parts;
    int64_t n_pairs;
    enum sx_status status;
};

static void *append_share(void *argument) {
    struct thread *thread = argument;
    const struct join_case *test = thread->test;
    int64_t share = test->build_rows / MAX_THREADS + 1, first = thread->number * share;
    int64_t last = first + share < test->build_rows ? first + share : test->build_rows;
    for (int64_t at = first; at < last && thread->status == SX_OK; at += 4096)
        thread->status = join_case_append_batch(&thread->c, thread->join, test, thread->sides, thread->number,
                                                at, last - at < 4096 ? last - at : 4096);
    return NULL;
}

static void *build_share(void *argument) {
    struct thread *thread = argument;
    for (int p = thread->number; p < thread->parts && thread->status == SX_OK; p += MAX_THREADS)
        thread->status = thread->c.backend->ops.join_build(thread->c.stream, thread->join, p);
    return NULL;
}

static enum sx_status probe_and_mark(struct thread *thread) {
    struct conformance *c = &thread->c;
    struct sx_tensor keys[MAX_KEYS] = {0}, p = {0}, b = {0};
    struct sx_probe_cursor cursor = {0};
    enum sx_status status;
    SX_GO(join_case_send_slices(c, thread->sides->probe, thread->test->n_keys, 0, thread->test->probe_rows,
                                keys));
    while (!cursor.done) {
        SX_GO(c->backend->ops.join_probe(c->stream, thread->join, keys, thread->test->probe_rows,
                                         SX_PROBE_ALL, thread->test->max_pairs, &cursor, &p, &b));
        thread->n_pairs += p.length;
        SX_GO(c->backend->ops.join_mark(c->stream, thread->join, &b));
        sx_tensor_release(&p);
        sx_tensor_release(&b);
    }
out:
    join_case_release_all(keys, MAX_KEYS);
    sx_tensor_release(&p);
    sx_tensor_release(&b);
    return status;
}

static void *probe_share(void *argument) {
    struct thread *thread = argument;
    thread->status = probe_and_mark(thread);
    return NULL;
}

static enum sx_status run_threads(struct thread *threads, void *(*body)(void *)) {
    for (int t = 0; t < MAX_THREADS; t++)
        if (pthread_create(&threads[t].id, NULL, body, &threads[t]) != 0)
            abort();
    for (int t = 0; t < MAX_THREADS; t++)
        pthread_join(threads[t].id, NULL);
    for (int t = 0; t < MAX_THREADS; t++) {
        struct sx_stream *stream = threads[t].c.stream;
        SX_TRY(threads[t].status);
        SX_TRY(stream->backend->ops.synchronise(stream, "the end of a worker"));
    }
    return SX_OK;
}

static enum sx_status with_threads(struct conformance *c, const struct join_case *test,
                                   const struct sides *sides, struct sx_join *join,
                                   const struct numbering *numbering, struct thread *threads) {
    int parts = 0;
    int64_t expected = 0;
    struct sx_join_info info;
    for (int t = 0; t < MAX_THREADS; t++) {
        threads[t] = (struct thread){.c = *c, .test = test, .sides = sides, .join = join, .number = t};
        SX_TRY(c->backend->ops.stream_create(c->backend, c->pool, NULL, &threads[t].c.stream, &c->error));
    }
    SX_TRY(run_threads(threads, append_share));
    SX_TRY(c->backend->ops.join_finish(c->stream, join, &parts));
    SX_TRY(c->backend->ops.synchronise(c->stream, "a join's build side is whole"));
    for (int t = 0; t < MAX_THREADS; t++)
        threads[t].parts = parts;
    SX_TRY(run_threads(threads, build_share));
    SX_TRY(run_threads(threads, probe_share));
    c->backend->ops.join_info(join, &info);
    CONFORM(c, !info.keys_unique || numbering->unique, "threads: keys_unique");
    for (int64_t i = 0; i < test->probe_rows; i++)
        expected += join_case_expected_matches(numbering, i);
    for (int t = 0; t < MAX_THREADS; t++)
        CONFORM(c, threads[t].n_pairs == expected, "threads: %lld pairs, expected %lld",
                (long long)threads[t].n_pairs, (long long)expected);
    return SX_OK;
}

static enum sx_status threaded_case(struct conformance *c, const struct join_case *test) {
    struct thread threads[MAX_THREADS] = {0};
    struct sides sides = {0};
    struct numbering numbering = {0};
    struct sx_join *join = NULL;
    enum sx_status status;
    if (!conformance_takes(c))
        return SX_OK;
    SX_GO(join_case_make_sides(c, test, &sides));
    if (!join_case_number_keys(test, &sides, &numbering)) {
        status = sx_error_set(&c->error, SX_OUT_OF_MEMORY, "no memory");
        goto out;
    }
    SX_GO(join_case_create(c, test, &join));
    SX_GO(with_threads(c, test, &sides, join, &numbering, threads));
out:
    c->backend->ops.join_destroy(c->stream, join);
    for (int t = 0; t < MAX_THREADS; t++)
        if (threads[t].c.stream)
            c->backend->ops.stream_destroy(threads[t].c.stream);
    join_case_release_numbering(&numbering);
    join_case_release_sides(&sides);
    return status;
}

static enum sx_status threaded(struct conformance *c) {
    const struct join_case cases[] = {
        {.n_keys = 1, .types = {types[4]}, .styles = {DENSE}},
        {.n_keys = 1, .types = {types[4]}, .styles = {RANDOM}},
        {.n_keys = 1, .types = {types[16]}, .styles = {RANDOM}},
        {.n_keys = 2, .types = {types[3], types[16]}, .styles = {DENSE, FEW}},
        {.n_keys = 1, .types = {types[4]}, .styles = {UNIQUE}, .step = 40000, .expected_rows = 110000},
        {.n_keys = 1, .types = {types[4]}, .styles = {UNIQUE}, .step = 40000, .expected_rows = 90000},
        {.n_keys = 1,
         .types = {types[4]},
         .styles = {UNIQUE},
         .step = 40000,
         .copies = 3,
         .expected_rows = 110000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct join_case test = cases[i];
        test.build_rows = 110000;
        test.probe_rows = 9000;
        test.nulls = test.styles[0] == UNIQUE ? 0 : 0.01;
        test.n_workers = MAX_THREADS;
        test.max_pairs = 4000;
        SX_TRY(threaded_case(c, &test));
    }
    return SX_OK;
}

enum sx_status join_case_run_short_of_memory(struct conformance *c, const struct join_case *test) {
    for (size_t limit = 1000; limit < 8000000; limit += limit / 5) {
        struct conformance poor = *c;
        SX_TRY(sx_pool_create(limit, &poor.pool, &c->error));
        enum sx_status status =
            c->backend->ops.stream_create(c->backend, poor.pool, NULL, &poor.stream, &c->error);
        if (status == SX_OK) {
            status = join_case_run(&poor, test);
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

static enum sx_status memory_limits(struct conformance *c) {
    struct join_case test = {.n_keys = 1,
                             .types = {types[4]},
                             .styles = {DENSE},
                             .nulls = 0.1,
                             .build_rows = 6000,
                             .probe_rows = 3000,
                             .n_workers = 2,
                             .max_pairs = 1000};
    SX_TRY(join_case_run_short_of_memory(c, &test));
    test.types[0] = types[16];
    test.styles[0] = RANDOM;
    test.dictionaries = PROBE_DICT;
    return join_case_run_short_of_memory(c, &test);
}

static enum sx_status all_cases(struct conformance *c) {
    for (int i = 0; i < conformance_n_rows; i++) {
        for (int t = 0; t < N_TYPES; t++)
            SX_TRY(one_key(c, types[t], conformance_rows[i]));
        SX_TRY(unique_keys(c, conformance_rows[i]));
        SX_TRY(several_keys(c, conformance_rows[i]));
        SX_TRY(cross_products(c, conformance_rows[i]));
    }
    SX_TRY(long_chains(c));
    SX_TRY(join_expect_cases(c));
    SX_TRY(join_payload_cases(c));
    SX_TRY(join_wide_cases(c));
    SX_TRY(join_cursor_cases(c));
    SX_TRY(join_take_cases(c));
    SX_TRY(join_key_cases(c));
    SX_TRY(memory_limits(c));
    return threaded(c);
}

void conform_join(struct conformance *c) {
    enum sx_status status = all_cases(c);
    CONFORM(c, status == SX_OK, "%s%s", c->stream->error.text, c->error.text);
}
