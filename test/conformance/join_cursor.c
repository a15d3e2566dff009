/* Probes in many calls: keys with very many rows, calls of one pair, two batches in turns on one stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "join_case.h"

/* Build row i has key number i % distinct, probe row j of batch b number (j + b) % (distinct + 2): two of the
 * numbers are not on the build side. */
struct cursor_case {
    int64_t build_rows, distinct;
    int64_t stride; /* from one key to the next */
    int64_t probe_rows;
    int64_t max_pairs;
    enum sx_probe_mode mode;
    bool is_text;
};

enum { N_BATCHES = 2, N_PARTS = 3, N_COLUMNS = 3, TEXT_BYTES = 48 }; /* key, row number, string */

static int64_t probe_number(const struct cursor_case *test, int batch, int64_t row) {
    return (row + batch) % (test->distinct + 2);
}

static int64_t expected_pairs(const struct cursor_case *test, int64_t number) {
    if (number >= test->distinct || number >= test->build_rows)
        return 0;
    return test->mode == SX_PROBE_FIRST ? 1 : (test->build_rows - number - 1) / test->distinct + 1;
}

static struct sx_string make_text(const char *stem, int64_t number, char *bytes) {
    int length = snprintf(bytes, TEXT_BYTES, "%s number %lld", stem, (long long)number);
    return sx_string_make(bytes, (uint32_t)length);
}

/* `batch` -1: the build side. */
static enum sx_status make_keys(struct conformance *c, const struct cursor_case *test, int batch,
                                struct sx_tensor *out) {
    const int64_t rows = batch < 0 ? test->build_rows : test->probe_rows;
    const enum sx_type_id id = test->is_text ? SX_TYPE_VARCHAR : SX_TYPE_I64;
    SX_TRY(sx_tensor_create(c->pool, sx_type_of(id), rows, false, out, &c->error));
    if (test->is_text)
        SX_TRY(sx_buffer_create(c->pool, (size_t)rows * TEXT_BYTES, &out->heap, &c->error));
    for (int64_t i = 0; i < rows; i++) {
        const int64_t number = batch < 0 ? i % test->distinct : probe_number(test, batch, i);
        if (test->is_text)
            ((struct sx_string *)out->values)[i] =
                make_text("key", number * test->stride, (char *)out->heap->data + i * TEXT_BYTES);
        else
            ((int64_t *)out->values)[i] = number * test->stride;
    }
    return SX_OK;
}

/* The key, the row's number, and a string of few values, in a dictionary. */
static enum sx_status make_build(struct conformance *c, const struct cursor_case *test,
                                 struct sx_tensor *host) {
    struct sx_tensor strings = {0};
    enum sx_status status;
    SX_GO(make_keys(c, test, -1, &host[0]));
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I64, test->build_rows, &host[1], &c->error));
    for (int64_t i = 0; i < test->build_rows; i++)
        ((int64_t *)host[1].values)[i] = i;
    SX_GO(
        conformance_column(c, sx_type_of(SX_TYPE_VARCHAR), test->build_rows, FILL_FEW_VALUES, 0.1, &strings));
    SX_GO(conformance_dictionary(c, &strings, &host[2]));
out:
    sx_tensor_release(&strings);
    return status;
}

/* The columns are sent whole and appended in parts, so that these share a dictionary. */
static enum sx_status build(struct conformance *c, const struct sx_tensor *host, struct sx_join *join) {
    struct sx_tensor sent[N_COLUMNS] = {0}, part[N_COLUMNS] = {0};
    const int64_t rows = host[0].length, share = rows / N_PARTS + 1;
    int parts = 0;
    enum sx_status status;
    for (int k = 0; k < N_COLUMNS; k++)
        SX_GO(conformance_send(c, &host[k], &sent[k]));
    for (int64_t at = 0; at < rows; at += share) {
        const int64_t n = rows - at < share ? rows - at : share;
        for (int k = 0; k < N_COLUMNS; k++)
            sx_tensor_slice(&sent[k], at, n, &part[k]);
        SX_GO(c->backend->ops.join_append(c->stream, join, 0, part, part + 1, n));
        join_case_release_all(part, N_COLUMNS);
    }
    SX_GO(c->backend->ops.join_finish(c->stream, join, &parts));
    for (int p = 0; p < parts; p++)
        SX_GO(c->backend->ops.join_build(c->stream, join, p));
out:
    join_case_release_all(sent, N_COLUMNS);
    join_case_release_all(part, N_COLUMNS);
    return status;
}

/* A batch on its way: its pairs come in order of the probe rows. */
struct batch {
    struct sx_tensor keys;
    struct sx_probe_cursor cursor;
    int64_t row, n_of_row; /* the last probe row that had a pair */
    int64_t *seen;         /* per build row: probe row + 1 that it came with last */
    bool is_right;
};

static void end_row(const struct cursor_case *test, int number, struct batch *batch, int64_t next_row) {
    batch->is_right &= batch->n_of_row == expected_pairs(test, probe_number(test, number, batch->row));
    for (int64_t row = batch->row + 1; row < next_row; row++)
        batch->is_right &= expected_pairs(test, probe_number(test, number, row)) == 0;
    batch->row = next_row;
    batch->n_of_row = 0;
}

static void take_pair(const struct cursor_case *test, int number, struct batch *batch, int64_t probe_row,
                      int64_t build_row, const int64_t *original) {
    if (probe_row < batch->row || probe_row >= test->probe_rows || build_row < 0 ||
        build_row >= test->build_rows || batch->seen[build_row] == probe_row + 1) {
        batch->is_right = false;
        return;
    }
    if (probe_row > batch->row)
        end_row(test, number, batch, probe_row);
    batch->n_of_row++;
    batch->seen[build_row] = probe_row + 1;
    batch->is_right &= original[build_row] % test->distinct == probe_number(test, number, probe_row);
}

static enum sx_status probe_once(struct conformance *c, const struct cursor_case *test,
                                 const struct sx_join *join, const int64_t *original, int number,
                                 struct batch *batch) {
    struct sx_tensor p = {0}, b = {0}, host_p = {0}, host_b = {0};
    enum sx_status status;
    SX_GO(c->backend->ops.join_probe(c->stream, join, &batch->keys, test->probe_rows, test->mode,
                                     test->max_pairs, &batch->cursor, &p, &b));
    SX_GO(conformance_receive(c, &p, &host_p));
    SX_GO(conformance_receive(c, &b, &host_b));
    bool sane = host_p.length == host_b.length && host_p.length <= test->max_pairs &&
                (host_p.length > 0 || batch->cursor.done);
    if (!CONFORM(c, sane, "a probe gave %lld and %lld rows", (long long)host_p.length,
                 (long long)host_b.length))
        batch->cursor.done = true;
    for (int64_t i = 0; sane && i < host_p.length; i++)
        take_pair(test, number, batch, ((const int32_t *)host_p.values)[i],
                  ((const int64_t *)host_b.values)[i], original);
out:
    sx_tensor_release(&p);
    sx_tensor_release(&b);
    sx_tensor_release(&host_p);
    sx_tensor_release(&host_b);
    return status;
}

/* Two calls for the first batch, one for the second, and so on. */
static enum sx_status probe_in_turns(struct conformance *c, const struct cursor_case *test,
                                     const struct sx_join *join, const int64_t *original) {
    struct batch batches[N_BATCHES] = {0};
    struct sx_tensor host = {0};
    enum sx_status status = SX_OK;
    for (int b = 0; b < N_BATCHES; b++) {
        batches[b].is_right = true;
        batches[b].seen = calloc((size_t)test->build_rows + 1, sizeof *batches[b].seen);
        if (!batches[b].seen)
            SX_GO(sx_error_set(&c->error, SX_OUT_OF_MEMORY, "no memory"));
        SX_GO(make_keys(c, test, b, &host));
        SX_GO(conformance_send(c, &host, &batches[b].keys));
        sx_tensor_release(&host);
    }
    for (int turn = 0; !batches[0].cursor.done || !batches[1].cursor.done; turn++) {
        const int b = turn % 3 == 2;
        if (!batches[b].cursor.done)
            SX_GO(probe_once(c, test, join, original, b, &batches[b]));
    }
    for (int b = 0; b < N_BATCHES; b++) {
        end_row(test, b, &batches[b], test->probe_rows);
        CONFORM(c, batches[b].is_right,
                "batch %d: %lld rows of %lld keys, text %d, probed by %lld, at most %lld pairs, mode %d", b,
                (long long)test->build_rows, (long long)test->distinct, test->is_text,
                (long long)test->probe_rows, (long long)test->max_pairs, test->mode);
    }
out:
    sx_tensor_release(&host);
    for (int b = 0; b < N_BATCHES; b++) {
        sx_tensor_release(&batches[b].keys);
        free(batches[b].seen);
    }
    return status;
}

/* The strings of the payload, by the numbers of their rows. */
static void check_strings(struct conformance *c, const struct sx_tensor *expected,
                          const struct sx_tensor *numbers, const struct sx_tensor *got) {
    bool equal = got->length == expected->length;
    for (int64_t r = 0; equal && r < got->length; r++) {
        struct sx_scalar a, b;
        sx_tensor_scalar(expected, ((const int64_t *)numbers->values)[r], &a);
        sx_tensor_scalar(got, r, &b);
        equal = conformance_scalar_equal(&a, &b);
    }
    CONFORM(c, equal, "%lld strings of one dictionary", (long long)got->length);
}

static enum sx_status run_case(struct conformance *c, const struct cursor_case *test) {
    const struct sx_type key_type = sx_type_of(test->is_text ? SX_TYPE_VARCHAR : SX_TYPE_I64);
    const struct sx_type payload_types[] = {sx_type_of(SX_TYPE_I64), sx_type_of(SX_TYPE_VARCHAR)};
    const bool null_equal = false;
    const struct sx_join_spec spec = {.n_keys = 1,
                                      .key_types = &key_type,
                                      .null_equal = &null_equal,
                                      .n_payload = N_COLUMNS - 1,
                                      .payload_types = payload_types,
                                      .n_workers = 1};
    struct sx_tensor host[N_COLUMNS] = {0}, got[N_COLUMNS] = {0};
    struct sx_join *join = NULL;
    struct sx_join_info info;
    enum sx_status status;
    if (!conformance_takes(c))
        return SX_OK;
    SX_GO(make_build(c, test, host));
    SX_GO(c->backend->ops.join_create(c->stream, &spec, &join));
    SX_GO(build(c, host, join));
    c->backend->ops.join_info(join, &info);
    CONFORM(c, info.rows == test->build_rows && info.keys_unique == (test->distinct >= test->build_rows),
            "info: %lld rows, unique %d", (long long)info.rows, info.keys_unique);
    for (int k = 1; k < N_COLUMNS; k++)
        SX_GO(join_case_receive(c, join, k - 1, &got[k]));
    check_strings(c, &host[2], &got[1], &got[2]);
    SX_GO(probe_in_turns(c, test, join, got[1].values));
out:
    if (join)
        c->backend->ops.join_destroy(c->stream, join);
    join_case_release_all(host, N_COLUMNS);
    join_case_release_all(got, N_COLUMNS);
    return status;
}

enum sx_status join_cursor_cases(struct conformance *c) {
    const int64_t far = INT64_C(1000000007) * 1000003;
    const struct cursor_case cases[] = {
        /* one key of all rows */
        {200000, 1, 1, 5, 70000, SX_PROBE_ALL, false},
        {200000, 1, 1, 4, 1 << 20, SX_PROBE_ALL, true},
        /* calls of one pair, of a few */
        {300, 7, 1, 40, 1, SX_PROBE_ALL, false},
        {300, 7, far, 40, 1, SX_PROBE_ALL, false},
        {300, 7, 1, 40, 1, SX_PROBE_ALL, true},
        {300, 7, 1, 40, 1, SX_PROBE_FIRST, false},
        {3000, 7, far, 100, 1013, SX_PROBE_ALL, false},
        {5000, 2500, 1, 5000, 333, SX_PROBE_ALL, false},
        /* unique keys */
        {100, 100, 1, 150, 1, SX_PROBE_ALL, false},
        {2000, 2000, far, 3000, 700, SX_PROBE_ALL, false},
        {2000, 2000, 1, 3000, 700, SX_PROBE_FIRST, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        SX_TRY(run_case(c, &cases[i]));
    return SX_OK;
}
