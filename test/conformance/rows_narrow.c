/* NARROW columns: values come back whatever their range is, and what is found out of it is told. */
#include <string.h>

#include "rows_case.h"

/* Values of a column, before its type's own. */
enum fill {
    SMALL,    /* below 2^20 */
    NEGATIVE, /* around 0 */
    FAR,      /* around -2^40 */
    EDGE,     /* all of 2^32 - 1 from 0 to it */
    OUTLIER,  /* small, but for one row, which a sample of many rows has not */
    WIDE,     /* all of 64 bits */
    HUGE,     /* of 16 bytes: some above 64 bits */
    HIGH,     /* from 2^63 on */
    CONSTANT  /* one value */
};

struct narrow_column {
    double null_share; /* 1: nothing is ever known of it */
    enum fill fill;
    struct sx_type type;
    bool is_narrow;
};

static const struct narrow_column cases[] = {
    {0, SMALL, {SX_TYPE_I64, 0, 0}, true},
    {0.3, NEGATIVE, {SX_TYPE_I64, 0, 0}, true},
    {0, FAR, {SX_TYPE_DECIMAL, 15, 2}, true},
    {0.1, EDGE, {SX_TYPE_TIMESTAMP, 0, 0}, true},
    {0, OUTLIER, {SX_TYPE_I64, 0, 0}, false},
    {0, WIDE, {SX_TYPE_I64, 0, 0}, false},
    {0.2, FAR, {SX_TYPE_DECIMAL, 30, 4}, true},
    {0, WIDE, {SX_TYPE_I128, 0, 0}, true},
    {0, HUGE, {SX_TYPE_I128, 0, 0}, false},
    {0, SMALL, {SX_TYPE_I32, 0, 0}, false},
    {0, SMALL, {SX_TYPE_U64, 0, 0}, true},
    {0, WIDE, {SX_TYPE_F64, 0, 0}, false},
    {0, OUTLIER, {SX_TYPE_DECIMAL, 30, 4}, true},
    {0, HIGH, {SX_TYPE_U64, 0, 0}, true},
    {1, SMALL, {SX_TYPE_I64, 0, 0}, false},
    {0, CONSTANT, {SX_TYPE_I64, 0, 0}, true},
    /* More than one launch has. */
    {0, SMALL, {SX_TYPE_I64, 0, 0}, true},
    {0, SMALL, {SX_TYPE_I64, 0, 0}, true},
    {0, SMALL, {SX_TYPE_I64, 0, 0}, true},
    {0.1, SMALL, {SX_TYPE_I64, 0, 0}, true},
    {0, FAR, {SX_TYPE_I64, 0, 0}, true},
    {0, FAR, {SX_TYPE_I64, 0, 0}, true},
    {0, FAR, {SX_TYPE_I64, 0, 0}, true},
    {0, NEGATIVE, {SX_TYPE_I64, 0, 0}, true},
    {0, NEGATIVE, {SX_TYPE_I64, 0, 0}, true},
    {0, EDGE, {SX_TYPE_I64, 0, 0}, true},
    {0, OUTLIER, {SX_TYPE_I64, 0, 0}, false},
};
enum { N_CASES = sizeof cases / sizeof cases[0], ODD_ROW = 1, INT32 = 9, DOUBLE = 11 };

static sx_i128 make_value(struct conformance *c, const struct narrow_column *column, int64_t row) {
    const uint64_t random = conformance_random(c);
    const int64_t small = (int64_t)(random >> 44);
    switch (column->fill) {
    case NEGATIVE: return small - (1 << 19);
    case FAR: return small - ((int64_t)1 << 40);
    case EDGE: return row % 2 ? UINT32_MAX : row % 3 ? 0 : (int64_t)(random >> 32);
    case OUTLIER: return row == ODD_ROW ? (int64_t)1 << 50 : small;
    case WIDE: return row == 0 ? INT64_MIN : row == 2 ? INT64_MAX : (int64_t)random;
    case HUGE: return (sx_i128)random << 40;
    case HIGH: return INT64_MIN + small;
    default: return small;
    }
}

static enum sx_status make_column(struct conformance *c, const struct narrow_column *column, int64_t n,
                                  struct sx_tensor *out) {
    if (column->fill == CONSTANT) {
        const struct sx_scalar value = {.type = column->type, .v.i64 = -4711};
        return sx_tensor_create_constant(c->pool, &value, n, out, &c->error);
    }
    SX_TRY(sx_tensor_create(c->pool, column->type, n, column->null_share > 0, out, &c->error));
    for (int64_t i = 0; i < n; i++) {
        const sx_i128 value = make_value(c, column, i);
        switch (sx_type_bytes(column->type)) {
        case sizeof(int32_t): ((int32_t *)out->values)[i] = (int32_t)value; break;
        case sizeof(int64_t): ((int64_t *)out->values)[i] = (int64_t)value; break;
        default: ((sx_i128 *)out->values)[i] = value;
        }
        if (out->valid)
            out->valid[i] = (double)(conformance_random(c) % 1000) >= column->null_share * 1000;
    }
    return SX_OK;
}

static bool is_sent(const struct rows_case *rows, int64_t at) {
    const int own = rows->own;
    return at >= rows->offsets[0] && at < rows->offsets[rows->n_parts] &&
           (own < 0 || at < rows->offsets[own] || at >= rows->offsets[own + 1]);
}

static void check_fits(struct conformance *c, const struct rows_case *rows) {
    enum { ENOUGH = 8192 /* rows that have all kinds of values, surely */ };
    const int32_t *order = rows->order.values;
    int64_t n_sent = 0;
    bool has_outlier = false;
    for (int64_t i = 0; i < rows->host.rows; i++)
        if (is_sent(rows, i)) {
            n_sent++;
            has_outlier = has_outlier || order[i] == ODD_ROW;
        }
    for (int t = 0; t < N_CASES; t++) {
        const enum sx_rows_fit fit = rows->narrow[t].fit;
        if (!sx_rows_can_narrow(cases[t].type) || cases[t].null_share == 1)
            CONFORM(c, fit == SX_ROWS_FIT_UNKNOWN, "column %d: fit %d", t, (int)fit);
        else if (cases[t].is_narrow && n_sent > ENOUGH)
            CONFORM(c, fit == SX_ROWS_FITS, "column %d: fit %d", t, (int)fit);
        else if (!cases[t].is_narrow && (cases[t].fill == OUTLIER ? has_outlier : n_sent > ENOUGH))
            CONFORM(c, fit == SX_ROWS_FITS_NOT, "column %d: fit %d", t, (int)fit);
    }
}

/* ---- what frames have ---- */

/* Ways of a head to be wrong: of column 0, which is NARROW, and of columns that can't be. */
enum damage {
    TOO_MANY_BYTES,
    TOO_FEW_BYTES,
    NOT_ALIGNED,
    OUTSIDE,
    VALIDITY_OUTSIDE,
    NO_ENCODING,
    NARROW_INT32,
    NARROW_DOUBLE,
    N_DAMAGES
};

static void make_narrow(struct sx_rows_column *column) {
    column->encoding = SX_ROWS_NARROW;
    column->values_bytes /= 2;
}

static void do_damage(char *frame, enum damage damage) {
    struct sx_rows_column *columns = sx_rows_columns(frame);
    const uint64_t end = ((const struct sx_rows_frame *)(const void *)frame)->bytes;
    switch (damage) {
    case TOO_MANY_BYTES: columns[0].values_bytes += sizeof(uint32_t); break;
    case TOO_FEW_BYTES: columns[0].values_bytes -= sizeof(uint32_t); break;
    case NOT_ALIGNED: columns[0].values += sizeof(uint64_t); break;
    case OUTSIDE: columns[0].values = end; break;
    case VALIDITY_OUTSIDE: columns[0].valid = end; break;
    case NO_ENCODING: columns[0].encoding = SX_ROWS_ENCODINGS; break;
    case NARROW_INT32: make_narrow(&columns[INT32]); break;
    default: make_narrow(&columns[DOUBLE]);
    }
}

/* All of them, of copies of the frame. */
static enum sx_status check_damages(struct conformance *c, const struct rows_case *rows,
                                    const struct sx_buffer *host) {
    struct sx_buffer *copy;
    SX_TRY(sx_buffer_create(c->pool, host->size_bytes, &copy, &c->error));
    for (int d = 0; d < N_DAMAGES; d++) {
        memcpy(copy->data, host->data, host->size_bytes);
        do_damage(copy->data, (enum damage)d);
        CONFORM(c, rows_is_refused(c, copy, rows->types, N_CASES), "damage %d of a narrow frame", d);
    }
    sx_buffer_release(copy);
    return SX_OK;
}

static enum sx_status check_frame(struct conformance *c, const struct rows_case *rows,
                                  struct sx_buffer *frame) {
    struct sx_buffer *host;
    int n_narrow = 0, n_moved = 0;
    SX_TRY(rows_check_moved(c, rows->types, N_CASES, frame, &n_moved));
    SX_TRY(c->backend->ops.bytes_to_host(c->stream, &frame, 1, c->pool, &host));
    const struct sx_rows_column *columns = sx_rows_columns(host->data);
    for (int t = 0; t < N_CASES; t++)
        n_narrow += columns[t].encoding == SX_ROWS_NARROW;
    CONFORM(c, n_moved == (c->backend->traits.is_host ? 0 : n_narrow), "%d of %d columns stay narrow",
            n_moved, n_narrow);
    for (int t = 0; t < N_CASES; t++)
        CONFORM(c, (columns[t].encoding == SX_ROWS_NARROW) == (rows->narrow[t].fit == SX_ROWS_FITS),
                "column %d: encoding %d, fit %d", t, columns[t].encoding, (int)rows->narrow[t].fit);
    const enum sx_status status =
        columns[0].encoding == SX_ROWS_NARROW ? check_damages(c, rows, host) : SX_OK;
    sx_buffer_release(host);
    return status;
}

/* Once all is known of the columns. */
static enum sx_status check_frames(struct conformance *c, struct rows_case *rows) {
    struct sx_buffer *parts[ROWS_FEW_PARTS] = {0};
    struct sx_batch own = {0};
    size_t plain_bytes;
    const struct sx_row_parts asked = {.order = &rows->sent_order,
                                       .offsets = rows->offsets,
                                       .n_parts = rows->n_parts,
                                       .own = rows->own,
                                       .runs = rows->runs,
                                       .n_runs = rows->n_runs};
    enum sx_status status = c->backend->ops.rows_pack(c->stream, &rows->sent, &asked, ROWS_SEQUENCE, false,
                                                      rows->narrow, parts, &plain_bytes, &own);
    for (int p = 0; p < rows->n_parts; p++) {
        if (status == SX_OK && parts[p])
            status = check_frame(c, rows, parts[p]);
        sx_buffer_release(parts[p]);
    }
    sx_batch_release(&own);
    return status;
}

/* PLAIN, and then twice: a second batch knows what the first one has told. */
static enum sx_status try_all(struct conformance *c, struct rows_case *rows) {
    struct sx_rows_narrow narrow[N_CASES] = {0};
    enum sx_status status = rows_case_try(c, rows);
    rows->narrow = narrow;
    for (int i = 0; i < 2 && status == SX_OK; i++) {
        status = rows_case_try(c, rows);
        if (status == SX_OK)
            check_fits(c, rows);
    }
    if (status == SX_OK)
        status = check_frames(c, rows);
    rows->narrow = NULL;
    return status;
}

static enum sx_status try_rows(struct conformance *c, int64_t n, int runs) {
    if (!conformance_takes(c))
        return SX_OK;
    struct sx_type types[N_CASES];
    struct rows_case rows = {.types = types};
    enum sx_status status;
    SX_GO(sx_batch_create(N_CASES, n, &rows.host, &c->error));
    for (int t = 0; t < N_CASES; t++) {
        types[t] = cases[t].type;
        SX_GO(make_column(c, &cases[t], n, &rows.host.columns[t]));
    }
    rows_case_parts(c, n, &rows);
    SX_GO(rows_case_send(c, runs, &rows));
    status = try_all(c, &rows);
out:
    rows_case_release(&rows);
    return status;
}

void conform_rows_narrow(struct conformance *c) {
    enum { MANY_ROWS = 50000, MOST_RUNS = 4 };
    for (int r = 0; r <= conformance_n_rows; r++)
        for (int runs = 1; runs <= MOST_RUNS; runs *= 2) {
            const int64_t n = r == conformance_n_rows ? MANY_ROWS : conformance_rows[r];
            const enum sx_status status = try_rows(c, n, runs);
            CONFORM(c, status == SX_OK, "narrow rows: %s %s", c->error.text, c->stream->error.text);
        }
}
