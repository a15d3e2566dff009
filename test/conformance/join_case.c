#include "join_case.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/semantics.h"

enum { KEY_BYTES = 64 };

void join_case_release_sides(struct sides *sides) {
    for (int k = 0; k < MAX_KEYS; k++) {
        sx_tensor_release(&sides->build[k]);
        sx_tensor_release(&sides->probe[k]);
    }
    for (int k = 0; k < N_PAYLOAD; k++)
        sx_tensor_release(&sides->payload[k]);
}

/* ---- inputs ---- */

static void make_dense(struct conformance *c, struct sx_tensor *column) {
    size_t width = sx_type_bytes(column->type);
    for (int64_t i = 0; i < column->length; i++) {
        uint64_t range = width == 1 ? 100 : (uint64_t)column->length + 3;
        sx_i128 value = (sx_i128)(conformance_random(c) % range) - (sx_i128)(range / 2);
        memcpy((char *)column->values + (size_t)i * width, &value, width);
    }
}

static void make_unique(const struct join_case *test, struct sx_tensor *column) {
    const size_t width = sx_type_bytes(column->type);
    const int64_t n = column->length, stride = 7919; /* a prime that is no factor of n */
    for (int64_t i = 0; i < n; i++) {
        const int64_t number = i * stride % n - n / 2;
        const int64_t value = number / (test->copies ? test->copies : 1) * test->step;
        memcpy((char *)column->values + (size_t)i * width, &value, width);
        if (column->valid && test->null_equal)
            column->valid[i] = i != test->build_rows / 3;
    }
}

static enum sx_status recode(struct conformance *c, struct sx_tensor *column) {
    struct sx_tensor coded = {0};
    SX_TRY(conformance_dictionary(c, column, &coded));
    sx_tensor_release(column);
    *column = coded;
    return SX_OK;
}

/* Both sides' keys are slices of one column, so that rows match. */
static enum sx_status make_keys(struct conformance *c, const struct join_case *test, int k,
                                struct sides *sides) {
    struct sx_tensor all = {0};
    enum conformance_fill fill = test->styles[k] == FEW ? FILL_FEW_VALUES : FILL_RANDOM;
    int64_t rows = test->build_rows + test->probe_rows;
    SX_TRY(conformance_column(c, test->types[k], rows, fill, test->nulls, &all));
    if (test->styles[k] == DENSE)
        make_dense(c, &all);
    else if (test->styles[k] == UNIQUE)
        make_unique(test, &all);
    int64_t shared = test->build_rows < test->probe_rows ? test->build_rows / 2 : test->probe_rows / 2;
    sx_tensor_slice(&all, 0, test->build_rows, &sides->build[k]);
    sx_tensor_slice(&all, test->build_rows - shared, test->probe_rows, &sides->probe[k]);
    sx_tensor_release(&all);
    bool is_text = test->types[k].id == SX_TYPE_VARCHAR;
    if (is_text && (test->dictionaries == BUILD_DICT || test->dictionaries == BOTH_DICT))
        SX_TRY(recode(c, &sides->build[k]));
    if (is_text && (test->dictionaries == PROBE_DICT || test->dictionaries == BOTH_DICT))
        SX_TRY(recode(c, &sides->probe[k]));
    return SX_OK;
}

enum sx_status join_case_make_sides(struct conformance *c, const struct join_case *test,
                                    struct sides *sides) {
    for (int k = 0; k < test->n_keys; k++)
        SX_TRY(make_keys(c, test, k, sides));
    SX_TRY(sx_tensor_create_index(c->pool, SX_TYPE_I64, test->build_rows, &sides->payload[0], &c->error));
    for (int64_t i = 0; i < test->build_rows; i++)
        ((int64_t *)sides->payload[0].values)[i] = i;
    SX_TRY(conformance_column(c, sx_type_of(SX_TYPE_VARCHAR), test->build_rows, FILL_FEW_VALUES, test->nulls,
                              &sides->payload[1]));
    return conformance_dictionary(c, &sides->payload[1], &sides->payload[2]);
}

/* ---- reference ---- */

/* Bytes that are equal for equal keys; 0 bytes: the row matches nothing. */
static size_t key_bytes(const struct join_case *test, const struct sx_tensor *keys, int64_t row, char *out) {
    size_t n = 0;
    for (int k = 0; k < test->n_keys; k++) {
        struct sx_scalar scalar;
        sx_tensor_scalar(&keys[k], row, &scalar);
        if (scalar.is_null && !test->null_equal)
            return 0;
        out[n++] = scalar.is_null;
        if (scalar.is_null)
            continue;
        enum sx_phys phys = sx_type_phys(scalar.type);
        if (phys == SX_PHYS_STRING) {
            out[n++] = (char)scalar.v.text.length_bytes;
            if (scalar.v.text.length_bytes)
                memcpy(out + n, scalar.v.text.bytes, scalar.v.text.length_bytes);
            n += scalar.v.text.length_bytes;
            continue;
        }
        if (phys == SX_PHYS_F32)
            scalar.v.u64 = sx_f64_bits((double)scalar.v.f32);
        else if (phys == SX_PHYS_F64)
            scalar.v.u64 = sx_f64_bits(scalar.v.f64);
        size_t width = phys == SX_PHYS_I128 || phys == SX_PHYS_U128 ? 16 : 8;
        memcpy(out + n, &scalar.v, width);
        n += width;
    }
    return n ? n : 1;
}

struct entry {
    char bytes[MAX_KEYS * KEY_BYTES];
    size_t n_bytes;
    int64_t *place;
};

static int compare_entries(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->n_bytes != y->n_bytes)
        return x->n_bytes < y->n_bytes ? -1 : 1;
    return x->n_bytes ? memcmp(x->bytes, y->bytes, x->n_bytes) : 0;
}

bool join_case_number_keys(const struct join_case *test, const struct sides *sides, struct numbering *out) {
    int64_t n = test->build_rows + test->probe_rows;
    struct entry *entries = calloc((size_t)n + 1, sizeof *entries);
    out->build = calloc((size_t)test->build_rows + 1, sizeof *out->build);
    out->probe = calloc((size_t)test->probe_rows + 1, sizeof *out->probe);
    out->build_count = calloc((size_t)n + 1, sizeof *out->build_count);
    out->unique = true;
    if (!entries || !out->build || !out->probe || !out->build_count) {
        free(entries);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        bool is_build = i < test->build_rows;
        int64_t row = is_build ? i : i - test->build_rows;
        entries[i].n_bytes = key_bytes(test, is_build ? sides->build : sides->probe, row, entries[i].bytes);
        entries[i].place = is_build ? &out->build[row] : &out->probe[row];
    }
    qsort(entries, (size_t)n, sizeof *entries, compare_entries);
    int64_t number = 0;
    for (int64_t i = 0; i < n; i++) {
        number += i && compare_entries(&entries[i - 1], &entries[i]) != 0;
        *entries[i].place = entries[i].n_bytes ? number : -1;
    }
    for (int64_t i = 0; i < test->build_rows; i++)
        if (out->build[i] >= 0 && out->build_count[out->build[i]]++)
            out->unique = false;
    free(entries);
    return true;
}

void join_case_release_numbering(struct numbering *numbering) {
    free(numbering->build);
    free(numbering->probe);
    free(numbering->build_count);
}

int64_t join_case_expected_matches(const struct numbering *numbering, int64_t probe_row) {
    int64_t number = numbering->probe[probe_row];
    return number < 0 ? 0 : numbering->build_count[number];
}

/* ---- build ---- */

/* Of a batch without NULL. */
static void forget_validity(struct sx_tensor *slice) {
    if (!slice->valid || slice->layout != SX_FLAT || memchr(slice->valid, 0, (size_t)slice->length))
        return;
    sx_buffer_release(slice->valid_buffer);
    slice->valid_buffer = NULL;
    slice->valid = NULL;
}

enum sx_status join_case_send_slices(struct conformance *c, const struct sx_tensor *columns, int n,
                                     int64_t first, int64_t rows, struct sx_tensor *out) {
    for (int k = 0; k < n; k++) {
        struct sx_tensor slice = {0};
        sx_tensor_slice(&columns[k], first, rows, &slice);
        forget_validity(&slice);
        enum sx_status status = conformance_send(c, &slice, &out[k]);
        sx_tensor_release(&slice);
        SX_TRY(status);
    }
    return SX_OK;
}

enum sx_status join_case_payload(struct conformance *c, const struct sx_join *join, int k,
                                 struct sx_tensor *out_column) {
    struct sx_join_info info;
    struct sx_tensor rows;
    c->backend->ops.join_info(join, &info);
    SX_TRY(c->backend->ops.iota(c->stream, SX_TYPE_I64, 0, info.rows, &rows));
    const int32_t payload = k;
    const enum sx_status status =
        c->backend->ops.join_gather(c->stream, join, &payload, 1, &rows, out_column);
    sx_tensor_release(&rows);
    return status;
}

enum sx_status join_case_receive_all(struct conformance *c, const struct sx_join *join,
                                     struct sx_tensor *out_columns) {
    const int32_t payload[N_PAYLOAD] = {2, 0, 1};
    struct sx_tensor rows = {0}, columns[N_PAYLOAD] = {0};
    struct sx_join_info info;
    enum sx_status status;
    c->backend->ops.join_info(join, &info);
    SX_GO(c->backend->ops.iota(c->stream, SX_TYPE_I64, 0, info.rows, &rows));
    SX_GO(c->backend->ops.join_gather(c->stream, join, payload, N_PAYLOAD, &rows, columns));
    for (int k = 0; k < N_PAYLOAD; k++)
        SX_GO(conformance_receive(c, &columns[k], &out_columns[payload[k]]));
out:
    join_case_release_all(columns, N_PAYLOAD);
    sx_tensor_release(&rows);
    return status;
}

enum sx_status join_case_receive(struct conformance *c, const struct sx_join *join, int k,
                                 struct sx_tensor *out_column) {
    struct sx_tensor column;
    SX_TRY(join_case_payload(c, join, k, &column));
    const enum sx_status status = conformance_receive(c, &column, out_column);
    sx_tensor_release(&column);
    return status;
}

void join_case_release_all(struct sx_tensor *columns, int n) {
    for (int k = 0; k < n; k++)
        sx_tensor_release(&columns[k]);
}

enum sx_status join_case_append_batch(struct conformance *c, struct sx_join *join,
                                      const struct join_case *test, const struct sides *sides, int worker,
                                      int64_t first, int64_t rows) {
    struct sx_tensor keys[MAX_KEYS] = {0}, payload[N_PAYLOAD] = {0};
    enum sx_status status;
    SX_GO(join_case_send_slices(c, sides->build, test->n_keys, first, rows, keys));
    SX_GO(join_case_send_slices(c, sides->payload, N_PAYLOAD, first, rows, payload));
    if (test->build_rows > 5000 && first / rows % 5 == 4) { /* the dictionary's strings come without it */
        sx_tensor_release(&payload[2]);
        SX_GO(join_case_send_slices(c, &sides->payload[1], 1, first, rows, &payload[2]));
    }
    SX_GO(c->backend->ops.join_append(c->stream, join, worker, keys, payload, rows));
out:
    join_case_release_all(keys, MAX_KEYS);
    join_case_release_all(payload, N_PAYLOAD);
    return status;
}

enum sx_status join_case_create(struct conformance *c, const struct join_case *test, struct sx_join **out) {
    const bool all_equal[MAX_KEYS] = {true, true, true}, none_equal[MAX_KEYS] = {false, false, false};
    const struct sx_type payload_types[N_PAYLOAD] = {sx_type_of(SX_TYPE_I64), sx_type_of(SX_TYPE_VARCHAR),
                                                     sx_type_of(SX_TYPE_VARCHAR)};
    const struct sx_join_spec spec = {
        .n_keys = test->n_keys,
        .key_types = test->types,
        .null_equal = test->null_equal ? all_equal : none_equal,
        .n_payload = N_PAYLOAD,
        .payload_types = payload_types,
        .track_matches = true,
        .n_workers = test->n_workers,
    };
    SX_TRY(c->backend->ops.join_create(c->stream, &spec, out));
    if (test->expected_rows > 0)
        c->backend->ops.join_expect(*out, test->expected_rows);
    return SX_OK;
}

enum sx_status join_case_build(struct conformance *c, const struct join_case *test, const struct sides *sides,
                               struct sx_join *join) {
    enum { MANY = 1000000 };
    const int64_t batch = test->build_rows < MANY ? 1777 : 100003;
    int parts = 0, worker = 0;
    for (int64_t at = 0; at < test->build_rows; at += batch) {
        int64_t rows = test->build_rows - at < batch ? test->build_rows - at : batch;
        SX_TRY(join_case_append_batch(c, join, test, sides, worker++ % test->n_workers, at, rows));
    }
    SX_TRY(c->backend->ops.join_finish(c->stream, join, &parts));
    for (int p = 0; p < parts; p++)
        SX_TRY(c->backend->ops.join_build(c->stream, join, p));
    return SX_OK;
}
