/* Columns that are told to be moved alone, and so may have stayed NARROW: whatever moves them gives values.
 */
#include <stdlib.h>

#include "group_case.h"
#include "rows_case.h"

/* A frame as all values, and as what has stayed NARROW in it, on the backend. */
struct moved {
    struct conformance *c;
    const struct sx_type *types;
    int n_columns;
    struct sx_batch given;    /* are_moved: all of them */
    struct sx_batch expected; /* in host memory */
    struct sx_tensor order;   /* I32, of all rows, on the backend */
    const int32_t *positions; /* the same on the host */
};

/* Whether row i of the column, which is on the backend, is row positions[i] (NULL: i) of what is expected,
 * and those behind the first `rows` are them once more, in order. */
static enum sx_status check_column(const struct moved *m, int k, const struct sx_tensor *column,
                                   const int32_t *positions, const char *what) {
    const struct sx_tensor *expected = &m->expected.columns[k];
    const int64_t rows = m->expected.rows;
    struct sx_tensor host;
    bool is_right = true;
    SX_TRY(conformance_receive(m->c, column, &host));
    for (int64_t i = 0; i < host.length && is_right; i++) {
        struct sx_scalar a, b;
        sx_tensor_scalar(expected, i < rows && positions ? positions[i] : i % rows, &a);
        sx_tensor_scalar(&host, i, &b);
        is_right = conformance_scalar_equal(&a, &b);
    }
    CONFORM(m->c, is_right && column->layout != SX_NARROW, "column %d by %s", k, what);
    sx_tensor_release(&host);
    return SX_OK;
}

static enum sx_status check_gather(const struct moved *m) {
    enum sx_status status = SX_OK;
    for (int k = 0; k < m->n_columns && status == SX_OK; k++) {
        struct sx_tensor got;
        SX_TRY(m->c->backend->ops.gather(m->c->stream, &m->given.columns[k], &m->order, &got));
        status = check_column(m, k, &got, m->positions, "gather");
        sx_tensor_release(&got);
    }
    return status;
}

static enum sx_status check_gather_columns(const struct moved *m) {
    const struct sx_tensor **columns = calloc((size_t)m->n_columns + 1, sizeof *columns);
    struct sx_tensor *got = calloc((size_t)m->n_columns + 1, sizeof *got);
    enum sx_status status;
    if (!columns || !got)
        SX_GO(sx_error_set(&m->c->error, SX_OUT_OF_MEMORY, "no memory"));
    for (int k = 0; k < m->n_columns; k++)
        columns[k] = &m->given.columns[k];
    SX_GO(m->c->backend->ops.gather_columns(m->c->stream, columns, m->n_columns, &m->order, got));
    for (int k = 0; k < m->n_columns; k++)
        SX_GO(check_column(m, k, &got[k], m->positions, "gather_columns"));
out:
    for (int k = 0; got && k < m->n_columns; k++)
        sx_tensor_release(&got[k]);
    free(columns);
    free(got);
    return status;
}

/* The column, and behind it the same in two slices. */
static enum sx_status check_concat(const struct moved *m) {
    const int64_t rows = m->given.rows, first = rows / 3;
    enum sx_status status = SX_OK;
    for (int k = 0; k < m->n_columns && status == SX_OK; k++) {
        struct sx_tensor slices[2], got;
        sx_tensor_slice(&m->given.columns[k], 0, first, &slices[0]);
        sx_tensor_slice(&m->given.columns[k], first, rows - first, &slices[1]);
        const struct sx_tensor *const parts[] = {&m->given.columns[k], &slices[0], &slices[1]};
        status = m->c->backend->ops.concat(m->c->stream, m->types[k], parts, 3, SX_CONCAT_SHARED, &got);
        if (status == SX_OK) {
            CONFORM(m->c, got.length == 2 * rows, "concat: %lld rows", (long long)got.length);
            status = check_column(m, k, &got, NULL, "concat");
            sx_tensor_release(&got);
        }
        sx_tensor_release(&slices[0]);
        sx_tensor_release(&slices[1]);
    }
    return status;
}

/* ---- payload ---- */

/* SOME: as many as go side by side into rows of a table */
enum { MOST_PAYLOAD = 32, MOST_BATCHES = 3, FEW = 3, SOME = 13, SPREAD = 1000003 };

/* A join that is built of all rows in some batches. Payload: the row's position, then columns of the rows
 * from the first one on. The key is the position times `spread`, so that it is dense or not. */
struct joined {
    const struct moved *moved;
    int n_payload, n_batches;
    int64_t spread;
    struct sx_join *join;
};

static enum sx_status make_positions(struct conformance *c, int64_t first, int64_t rows, int64_t spread,
                                     struct sx_tensor *out) {
    struct sx_tensor host;
    SX_TRY(sx_tensor_create_index(c->pool, SX_TYPE_I64, rows, &host, &c->error));
    for (int64_t i = 0; i < rows; i++)
        ((int64_t *)host.values)[i] = (first + i) * spread;
    const enum sx_status status = conformance_send(c, &host, out);
    sx_tensor_release(&host);
    return status;
}

static enum sx_status append(const struct joined *j, int64_t first, int64_t rows) {
    struct conformance *c = j->moved->c;
    struct sx_tensor key = {0}, payload[MOST_PAYLOAD] = {0};
    enum sx_status status;
    SX_GO(make_positions(c, first, rows, j->spread, &key));
    SX_GO(make_positions(c, first, rows, 1, &payload[0]));
    for (int k = 1; k < j->n_payload; k++)
        sx_tensor_slice(&j->moved->given.columns[k - 1], first, rows, &payload[k]);
    SX_GO(c->backend->ops.join_append(c->stream, j->join, 0, &key, payload, rows));
out:
    sx_tensor_release(&key);
    for (int k = 0; k < MOST_PAYLOAD; k++)
        sx_tensor_release(&payload[k]);
    return status;
}

static enum sx_status build(const struct joined *j) {
    const struct moved *m = j->moved;
    int parts;
    for (int b = 0; b < j->n_batches; b++) {
        const int64_t first = m->given.rows * b / j->n_batches, end = m->given.rows * (b + 1) / j->n_batches;
        SX_TRY(append(j, first, end - first));
    }
    SX_TRY(m->c->backend->ops.join_finish(m->c->stream, j->join, &parts));
    for (int i = 0; i < parts; i++)
        SX_TRY(m->c->backend->ops.join_build(m->c->stream, j->join, i));
    return SX_OK;
}

/* All of the table's rows, by what they tell of their positions. */
static enum sx_status check_payload(const struct joined *j) {
    const struct moved *m = j->moved;
    struct conformance *c = m->c;
    struct sx_tensor rows = {0}, at = {0}, got[MOST_PAYLOAD] = {0};
    int32_t payload[MOST_PAYLOAD], *positions = calloc((size_t)m->given.rows + 1, sizeof *positions);
    enum sx_status status;
    if (!positions)
        return sx_error_set(&c->error, SX_OUT_OF_MEMORY, "no memory");
    for (int k = 0; k < j->n_payload; k++)
        payload[k] = k;
    SX_GO(c->backend->ops.iota(c->stream, SX_TYPE_I64, 0, m->given.rows, &rows));
    SX_GO(c->backend->ops.join_gather(c->stream, j->join, payload, j->n_payload, &rows, got));
    SX_GO(conformance_receive(c, &got[0], &at));
    for (int64_t i = 0; i < at.length; i++)
        positions[i] = (int32_t)((const int64_t *)at.values)[i];
    for (int k = 1; k < j->n_payload; k++)
        SX_GO(check_column(m, k - 1, &got[k], positions, "a join"));
out:
    sx_tensor_release(&rows);
    sx_tensor_release(&at);
    for (int k = 0; k < MOST_PAYLOAD; k++)
        sx_tensor_release(&got[k]);
    free(positions);
    return status;
}

static enum sx_status check_join(const struct moved *m, int n_columns, int n_batches, int64_t spread) {
    static const struct sx_type key_type = {SX_TYPE_I64, 0, 0};
    static const bool null_equal = false;
    struct joined joined = {.moved = m, .n_payload = n_columns + 1, .n_batches = n_batches, .spread = spread};
    struct sx_type types[MOST_PAYLOAD] = {key_type};
    for (int k = 0; k < n_columns; k++)
        types[k + 1] = m->types[k];
    const struct sx_join_spec spec = {.n_keys = 1,
                                      .key_types = &key_type,
                                      .null_equal = &null_equal,
                                      .n_payload = joined.n_payload,
                                      .payload_types = types,
                                      .n_workers = 1};
    SX_TRY(m->c->backend->ops.join_create(m->c->stream, &spec, &joined.join));
    enum sx_status status = build(&joined);
    if (status == SX_OK)
        status = check_payload(&joined);
    m->c->backend->ops.join_destroy(m->c->stream, joined.join);
    return status;
}

static enum sx_status check_joins(const struct moved *m) {
    for (int n_batches = 1; n_batches <= MOST_BATCHES; n_batches += MOST_BATCHES - 1)
        for (int64_t spread = 1; spread <= SPREAD; spread += SPREAD - 1) {
            SX_TRY(check_join(m, FEW, n_batches, spread));
            SX_TRY(check_join(m, SOME, n_batches, spread));
            SX_TRY(check_join(m, m->n_columns < MOST_PAYLOAD ? m->n_columns : MOST_PAYLOAD - 1, n_batches,
                              spread));
        }
    return SX_OK;
}

/* ---- sums of what is selected ---- */

static bool can_sum(const struct sx_tensor *column) {
    return !column->valid && column->layout != SX_CONSTANT &&
           (column->type.id == SX_TYPE_DECIMAL || column->type.id == SX_TYPE_I64 ||
            column->type.id == SX_TYPE_U64 || column->type.id == SX_TYPE_I128);
}

static sx_i128 expected_sum(const struct sx_tensor *host) {
    const bool is_wide = sx_type_bytes(host->type) > sizeof(int64_t);
    sx_i128 sum = 0;
    for (int64_t i = 0; i < host->length; i++) {
        struct sx_scalar value;
        sx_tensor_scalar(host, i, &value);
        sum += is_wide ? value.v.i128 : host->type.id == SX_TYPE_U64 ? (sx_i128)value.v.u64 : value.v.i64;
    }
    return sum;
}

static enum sx_status sum_selected(const struct moved *m, int k, struct sx_batch *out_host) {
    struct sx_tensor selected;
    SX_TRY(sx_tensor_select(&m->given.columns[k], &m->order, &selected, &m->c->error));
    const enum sx_status status = group_sum_and_count(m->c, &selected, out_host);
    sx_tensor_release(&selected);
    return status;
}

static enum sx_status check_sums(const struct moved *m) {
    for (int k = 0; k < m->n_columns && !m->c->backend->traits.is_host && m->given.rows > 0; k++) {
        struct sx_batch host = {0};
        struct sx_scalar sum, count;
        if (!can_sum(&m->given.columns[k]))
            continue;
        SX_TRY(sum_selected(m, k, &host));
        sx_tensor_scalar(&host.columns[0], 0, &sum);
        sx_tensor_scalar(&host.columns[1], 0, &count);
        CONFORM(m->c, sum.v.i128 == expected_sum(&m->expected.columns[k]), "column %d by a sum", k);
        CONFORM(m->c, count.v.i64 == m->given.rows, "column %d by a count", k);
        sx_batch_release(&host);
    }
    return SX_OK;
}

/* ---- all of them ---- */

/* In reverse. */
static enum sx_status make_order(struct moved *m, int32_t *positions) {
    struct sx_tensor host;
    const int64_t n = m->given.rows;
    SX_TRY(sx_tensor_create_index(m->c->pool, SX_TYPE_I32, n, &host, &m->c->error));
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)host.values)[i] = positions[i] = (int32_t)(n - 1 - i);
    m->positions = positions;
    const enum sx_status status = conformance_send(m->c, &host, &m->order);
    sx_tensor_release(&host);
    return status;
}

/* As all of them are expected, and as they are given where all are moved alone. */
static enum sx_status unpack(struct moved *m, struct sx_buffer *frame) {
    const struct sx_backend_ops *ops = &m->c->backend->ops;
    struct sx_batch values = {0};
    int64_t sequence;
    bool *are_moved = calloc((size_t)m->n_columns + 1, sizeof *are_moved);
    enum sx_status status = SX_OK;
    if (!are_moved)
        return sx_error_set(&m->c->error, SX_OUT_OF_MEMORY, "no memory");
    SX_GO(ops->rows_unpack(m->c->stream, frame, frame->size_bytes, false, m->types, m->n_columns, are_moved,
                           &values, &sequence));
    SX_GO(ops->batch_to_host(m->c->stream, &values, &m->expected));
    for (int k = 0; k < m->n_columns; k++)
        are_moved[k] = true;
    SX_GO(ops->rows_unpack(m->c->stream, frame, frame->size_bytes, false, m->types, m->n_columns, are_moved,
                           &m->given, &sequence));
out:
    sx_batch_release(&values);
    free(are_moved);
    return status;
}

enum sx_status rows_check_moved(struct conformance *c, const struct sx_type *types, int n_columns,
                                struct sx_buffer *frame, int *out_narrow) {
    struct moved m = {.c = c, .types = types, .n_columns = n_columns};
    int32_t *positions = NULL;
    enum sx_status status;
    SX_GO(unpack(&m, frame));
    *out_narrow = 0;
    for (int k = 0; k < n_columns; k++)
        *out_narrow += m.given.columns[k].layout == SX_NARROW;
    positions = calloc((size_t)m.given.rows + 1, sizeof *positions);
    if (!positions)
        SX_GO(sx_error_set(&c->error, SX_OUT_OF_MEMORY, "no memory"));
    SX_GO(make_order(&m, positions));
    SX_GO(check_gather(&m));
    SX_GO(check_gather_columns(&m));
    SX_GO(check_concat(&m));
    SX_GO(check_joins(&m));
    SX_GO(check_sums(&m));
out:
    sx_batch_release(&m.given);
    sx_batch_release(&m.expected);
    sx_tensor_release(&m.order);
    free(positions);
    return status;
}
