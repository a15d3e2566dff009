#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "move_streams.h"

static const struct sx_type types[] = {
    {SX_TYPE_BOOL, 0, 0},      {SX_TYPE_I8, 0, 0},       {SX_TYPE_I16, 0, 0},      {SX_TYPE_I32, 0, 0},
    {SX_TYPE_I64, 0, 0},       {SX_TYPE_I128, 0, 0},     {SX_TYPE_U8, 0, 0},       {SX_TYPE_U16, 0, 0},
    {SX_TYPE_U32, 0, 0},       {SX_TYPE_U64, 0, 0},      {SX_TYPE_U128, 0, 0},     {SX_TYPE_F32, 0, 0},
    {SX_TYPE_F64, 0, 0},       {SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_DECIMAL, 30, 4}, {SX_TYPE_DATE, 0, 0},
    {SX_TYPE_TIMESTAMP, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

enum index_kind { INDEX_RANDOM, INDEX_RUN, INDEX_NEGATIVE, INDEX_ALL_NEGATIVE, N_INDEX_KINDS };

static bool rows_equal(const struct sx_tensor *a, int64_t row_a, const struct sx_tensor *b, int64_t row_b) {
    struct sx_scalar x, y;
    sx_tensor_scalar(a, row_a, &x);
    sx_tensor_scalar(b, row_b, &y);
    return conformance_scalar_equal(&x, &y);
}

static bool row_is_null(const struct sx_tensor *column, int64_t row) {
    struct sx_scalar scalar;
    sx_tensor_scalar(column, row, &scalar);
    return scalar.is_null;
}

static int64_t index_value(struct conformance *c, enum index_kind kind, int64_t i, int64_t rows) {
    uint64_t random = conformance_random(c);
    bool negative = kind == INDEX_ALL_NEGATIVE || rows == 0 || (kind == INDEX_NEGATIVE && random % 3 == 0);
    if (negative)
        return -1 - (int64_t)(random % 2);
    if (kind == INDEX_RUN)
        return rows / 3 + i;
    return (int64_t)((random >> 8) % (uint64_t)rows);
}

/* An index in host memory. */
static enum sx_status make_index(struct conformance *c, enum index_kind kind, enum sx_type_id id,
                                 int64_t rows, struct sx_tensor *out) {
    int64_t length = kind == INDEX_RUN ? rows - rows / 3 : rows + rows / 2 + (kind != INDEX_RANDOM || rows);
    if (kind == INDEX_RANDOM && rows == 0)
        length = 0;
    SX_TRY(sx_tensor_create_index(c->pool, id, length, out, &c->error));
    for (int64_t i = 0; i < length; i++) {
        int64_t value = index_value(c, kind, i, rows);
        if (id == SX_TYPE_I64)
            ((int64_t *)out->values)[i] = value;
        else
            ((int32_t *)out->values)[i] = (int32_t)value;
    }
    return SX_OK;
}

static int64_t index_at(const struct sx_tensor *index, int64_t i) {
    return index->type.id == SX_TYPE_I64 ? ((const int64_t *)index->values)[i]
                                         : ((const int32_t *)index->values)[i];
}

static bool gathered_equal(const struct sx_tensor *column, const struct sx_tensor *index,
                           const struct sx_tensor *got) {
    if (got->length != index->length)
        return false;
    for (int64_t i = 0; i < index->length; i++) {
        int64_t row = index_at(index, i);
        if (row < 0 ? !row_is_null(got, i) : !rows_equal(column, row, got, i))
            return false;
    }
    return true;
}

/* `host` is what `column` holds. */
static enum sx_status check_gather(struct conformance *c, const struct sx_tensor *host,
                                   const struct sx_tensor *column, enum index_kind kind, enum sx_type_id id) {
    struct sx_tensor host_index = {0}, index = {0}, out = {0}, got = {0};
    char name[SX_TYPE_NAME_BYTES];
    enum sx_status status = SX_OK;
    SX_GO(make_index(c, kind, id, host->length, &host_index));
    SX_GO(conformance_send(c, &host_index, &index));
    SX_GO(c->backend->ops.gather(c->stream, column, &index, &out));
    bool may_flatten = column->layout == SX_CONSTANT && !c->backend->traits.is_host;
    bool keeps =
        may_flatten || kind != INDEX_RANDOM || host_index.length == 0 || out.layout == column->layout;
    CONFORM(c, keeps, "gather: layout %d became %d", column->layout, out.layout);
    SX_GO(conformance_receive(c, &out, &got));
    CONFORM(c, gathered_equal(host, &host_index, &got), "gather %s, layout %d, %lld rows, index kind %d",
            sx_type_name(host->type, name), column->layout, (long long)host->length, kind);
out:
    sx_tensor_release(&host_index);
    sx_tensor_release(&index);
    sx_tensor_release(&out);
    sx_tensor_release(&got);
    return status;
}

/* More columns than go into one launch: slices that begin at different rows, and every other is a constant.
 */
static enum sx_status check_gather_columns(struct conformance *c, const struct sx_tensor *host,
                                           enum sx_type_id id) {
    enum { N = 35 };
    struct sx_tensor host_columns[N] = {0}, columns[N] = {0}, host_index = {0}, index = {0}, outs[N] = {0},
                     got;
    const int64_t rows = host->length > N ? host->length - N : host->length;
    const struct sx_tensor *list[N];
    char name[SX_TYPE_NAME_BYTES];
    struct sx_scalar first = {.type = host->type, .is_null = true};
    enum sx_status status = SX_OK;
    if (host->length > 0)
        sx_tensor_scalar(host, 0, &first);
    for (int i = 0; i < N; i++) {
        if (i % 2)
            SX_GO(sx_tensor_create_constant(c->pool, &first, rows, &host_columns[i], &c->error));
        else
            sx_tensor_slice(host, rows < host->length ? i : 0, rows, &host_columns[i]);
        SX_GO(conformance_send(c, &host_columns[i], &columns[i]));
        list[i] = &columns[i];
    }
    SX_GO(make_index(c, INDEX_RANDOM, id, rows, &host_index));
    SX_GO(conformance_send(c, &host_index, &index));
    SX_GO(c->backend->ops.gather_columns(c->stream, list, N, &index, outs));
    for (int i = 0; i < N; i++) {
        SX_GO(conformance_receive(c, &outs[i], &got));
        CONFORM(c, gathered_equal(&host_columns[i], &host_index, &got), "gather of columns, %s, %lld rows",
                sx_type_name(host->type, name), (long long)host->length);
        sx_tensor_release(&got);
    }
out:
    for (int i = 0; i < N; i++) {
        sx_tensor_release(&host_columns[i]);
        sx_tensor_release(&columns[i]);
        sx_tensor_release(&outs[i]);
    }
    sx_tensor_release(&host_index);
    sx_tensor_release(&index);
    return status;
}

static enum sx_status check_gathers(struct conformance *c, const struct sx_tensor *host) {
    struct sx_tensor column = {0};
    SX_TRY(conformance_send(c, host, &column));
    enum sx_status status = SX_OK;
    for (int kind = 0; kind < N_INDEX_KINDS; kind++) {
        SX_GO(check_gather(c, host, &column, (enum index_kind)kind, SX_TYPE_I32));
        SX_GO(check_gather(c, host, &column, (enum index_kind)kind, SX_TYPE_I64));
    }
    SX_GO(check_gather_columns(c, host, SX_TYPE_I32));
    SX_GO(check_gather_columns(c, host, SX_TYPE_I64));
out:
    sx_tensor_release(&column);
    return status;
}

/* The first row of `flat`, for `rows` rows. */
static enum sx_status make_constant(struct conformance *c, const struct sx_tensor *flat, int64_t rows,
                                    struct sx_tensor *out) {
    struct sx_scalar scalar = {.type = flat->type, .is_null = true};
    if (flat->length)
        sx_tensor_scalar(flat, 0, &scalar);
    return sx_tensor_create_constant(c->pool, &scalar, rows, out, &c->error);
}

static enum sx_status gather_layouts(struct conformance *c, struct sx_type type, int64_t rows, double nulls) {
    if (!conformance_takes(c))
        return SX_OK;
    struct sx_tensor flat = {0}, constant = {0}, dictionary = {0};
    enum sx_status status = SX_OK;
    SX_GO(conformance_column(c, type, rows, FILL_RANDOM, nulls, &flat));
    SX_GO(check_gathers(c, &flat));
    SX_GO(make_constant(c, &flat, rows, &constant));
    SX_GO(check_gathers(c, &constant));
    if (type.id == SX_TYPE_VARCHAR) {
        SX_GO(conformance_dictionary(c, &flat, &dictionary));
        SX_GO(check_gathers(c, &dictionary));
    }
out:
    sx_tensor_release(&flat);
    sx_tensor_release(&constant);
    sx_tensor_release(&dictionary);
    return status;
}

enum { MOST_PARTS = 130 }; /* of a concat */

static bool concatenated_equal(const struct sx_tensor *parts, int n, const struct sx_tensor *got) {
    int64_t at = 0;
    for (int p = 0; p < n; p++)
        for (int64_t i = 0; i < parts[p].length; i++, at++)
            if (at >= got->length || !rows_equal(&parts[p], i, got, at))
                return false;
    return at == got->length;
}

/* Concatenates `sent`, lets it go before the result is read, and compares with the parts in host memory. */
static enum sx_status check_sent(struct conformance *c, struct sx_type type, const struct sx_tensor *parts,
                                 struct sx_tensor *sent, int n, enum sx_concat how) {
    struct sx_tensor out = {0}, got = {0};
    const struct sx_tensor *columns[MOST_PARTS] = {0};
    char name[SX_TYPE_NAME_BYTES];
    enum sx_status status = SX_OK;
    for (int p = 0; p < n; p++)
        columns[p] = &sent[p];
    SX_GO(c->backend->ops.concat(c->stream, type, columns, n, how, &out));
    CONFORM(c, out.layout == SX_FLAT || (how == SX_CONCAT_CODED && out.layout == SX_DICT),
            "concat of %d %s: layout %d", n, sx_type_name(type, name), out.layout);
    for (int p = 0; p < n; p++)
        sx_tensor_release(&sent[p]);
    SX_GO(conformance_receive(c, &out, &got));
    CONFORM(c, concatenated_equal(parts, n, &got), "concat of %d %s, how: %d", n, sx_type_name(type, name),
            (int)how);
out:
    sx_tensor_release(&out);
    sx_tensor_release(&got);
    return status;
}

static enum sx_status check_concat(struct conformance *c, struct sx_type type, const struct sx_tensor *parts,
                                   int n, enum sx_concat how) {
    struct sx_tensor sent[MOST_PARTS] = {0};
    enum sx_status status = SX_OK;
    for (int p = 0; p < n; p++)
        SX_GO(conformance_send(c, &parts[p], &sent[p]));
    status = check_sent(c, type, parts, sent, n, how);
out:
    for (int p = 0; p < n; p++)
        sx_tensor_release(&sent[p]);
    return status;
}

/* FLAT without nulls, FLAT with nulls, CONSTANT, empty, slice; for strings DICT, and its slice. */
static enum sx_status make_parts(struct conformance *c, struct sx_type type, int64_t rows,
                                 struct sx_tensor *parts, int *out_n) {
    int n = 0;
    SX_TRY(conformance_column(c, type, rows, FILL_RANDOM, 0, &parts[n++]));
    SX_TRY(conformance_column(c, type, rows, FILL_RANDOM, 0.3, &parts[n++]));
    SX_TRY(make_constant(c, &parts[0], rows / 2, &parts[n++]));
    SX_TRY(conformance_column(c, type, 0, FILL_RANDOM, 0, &parts[n++]));
    sx_tensor_slice(&parts[1], rows / 3, rows - rows / 3, &parts[n++]);
    if (type.id == SX_TYPE_VARCHAR) {
        SX_TRY(conformance_dictionary(c, &parts[1], &parts[n++]));
        sx_tensor_slice(&parts[n - 1], rows / 3, rows - rows / 3, &parts[n]);
        n++;
    }
    *out_n = n;
    return SX_OK;
}

static enum sx_status concat_type(struct conformance *c, struct sx_type type, int64_t rows) {
    if (!conformance_takes(c))
        return SX_OK;
    struct sx_tensor parts[8] = {0};
    int n = 0;
    enum sx_status status = SX_OK;
    SX_GO(make_parts(c, type, rows, parts, &n));
    for (enum sx_concat how = SX_CONCAT_SHARED; how <= SX_CONCAT_CODED; how++) {
        SX_GO(check_concat(c, type, parts, n, how));
        SX_GO(check_concat(c, type, parts, 0, how));
        for (int p = 0; p < n; p++)
            SX_GO(check_concat(c, type, parts + p, 1, how));
    }
out:
    for (int p = 0; p < 8; p++)
        sx_tensor_release(&parts[p]);
    return status;
}

/* More parts than a launch takes, all of them codes: of dictionaries of few entries, each of several parts,
 * and with `many` of more dictionaries than are put together. */
static enum sx_status concat_codes(struct conformance *c, int64_t rows, bool many) {
    enum { N_DICTIONARIES = 100 };
    const struct sx_type type = sx_type_of(SX_TYPE_VARCHAR);
    const int n = many ? N_DICTIONARIES : 3;
    struct sx_tensor coded[N_DICTIONARIES] = {0}, sent[N_DICTIONARIES] = {0}, parts[MOST_PARTS],
                     sent_parts[MOST_PARTS];
    enum sx_status status = SX_OK;
    if (!conformance_takes(c))
        return SX_OK;
    for (int d = 0; d < n; d++) {
        struct sx_tensor flat;
        SX_GO(conformance_column(c, type, rows, FILL_FEW_VALUES, d % 2 * 0.3, &flat));
        status = conformance_dictionary(c, &flat, &coded[d]);
        sx_tensor_release(&flat);
        SX_GO(status);
        SX_GO(conformance_send(c, &coded[d], &sent[d]));
    }
    for (int p = 0; p < MOST_PARTS; p++) {
        sx_tensor_slice(&coded[p % n], rows / 7 * (p % 3), rows / 2, &parts[p]);
        sx_tensor_slice(&sent[p % n], rows / 7 * (p % 3), rows / 2, &sent_parts[p]);
    }
    status = check_sent(c, type, parts, sent_parts, MOST_PARTS, SX_CONCAT_CODED);
    for (int p = 0; p < MOST_PARTS; p++) {
        sx_tensor_release(&parts[p]);
        sx_tensor_release(&sent_parts[p]);
    }
out:
    for (int d = 0; d < N_DICTIONARIES; d++) {
        sx_tensor_release(&coded[d]);
        sx_tensor_release(&sent[d]);
    }
    return status;
}

static enum sx_status check_iota(struct conformance *c, enum sx_type_id id, int64_t first, int64_t rows) {
    struct sx_tensor out = {0}, got = {0};
    enum sx_status status = SX_OK;
    SX_GO(c->backend->ops.iota(c->stream, id, first, rows, &out));
    SX_GO(conformance_receive(c, &out, &got));
    bool equal = got.length == rows && got.type.id == id;
    for (int64_t i = 0; equal && i < rows; i++)
        equal = index_at(&got, i) == first + i;
    CONFORM(c, equal, "iota from %lld, %lld rows", (long long)first, (long long)rows);
out:
    sx_tensor_release(&out);
    sx_tensor_release(&got);
    return status;
}

static bool wanted_positions_equal(const struct sx_tensor *mask, bool wanted, const struct sx_tensor *got) {
    int64_t found = 0;
    for (int64_t i = 0; i < mask->length; i++) {
        struct sx_scalar scalar;
        sx_tensor_scalar(mask, i, &scalar);
        if (scalar.is_null || scalar.v.b != wanted)
            continue;
        if (found >= got->length || index_at(got, found) != i)
            return false;
        found++;
    }
    return found == got->length;
}

static enum sx_status check_mask(struct conformance *c, const struct sx_tensor *host, bool wanted) {
    struct sx_tensor mask = {0}, index = {0}, back = {0}, got = {0}, got_mask = {0};
    enum sx_status status = SX_OK;
    SX_GO(conformance_send(c, host, &mask));
    SX_GO(c->backend->ops.mask_to_index(c->stream, &mask, wanted, &index));
    SX_GO(conformance_receive(c, &index, &got));
    bool equal = got.type.id == SX_TYPE_I32 && wanted_positions_equal(host, wanted, &got);
    CONFORM(c, equal, "mask_to_index, %lld rows, wanted %d", (long long)host->length, wanted);
    SX_GO(c->backend->ops.index_to_mask(c->stream, &index, host->length, &back));
    SX_GO(conformance_receive(c, &back, &got_mask));
    bool same = got_mask.length == host->length && !got_mask.valid;
    int64_t at = 0;
    for (int64_t i = 0; same && i < host->length; i++) {
        bool expected = at < got.length && index_at(&got, at) == i;
        at += expected;
        same = ((const uint8_t *)got_mask.values)[i] == expected;
    }
    CONFORM(c, same, "index_to_mask, %lld rows", (long long)host->length);
out:
    sx_tensor_release(&mask);
    sx_tensor_release(&index);
    sx_tensor_release(&back);
    sx_tensor_release(&got);
    sx_tensor_release(&got_mask);
    return status;
}

static enum sx_status check_masks(struct conformance *c, int64_t rows, double nulls) {
    if (!conformance_takes(c))
        return SX_OK;
    struct sx_tensor flat = {0}, constant = {0};
    enum sx_status status = SX_OK;
    SX_GO(conformance_column(c, sx_type_of(SX_TYPE_BOOL), rows, FILL_RANDOM, nulls, &flat));
    SX_GO(make_constant(c, &flat, rows, &constant));
    for (int wanted = 0; wanted < 2; wanted++) {
        SX_GO(check_mask(c, &flat, wanted));
        SX_GO(check_mask(c, &constant, wanted));
    }
out:
    sx_tensor_release(&flat);
    sx_tensor_release(&constant);
    return status;
}

static enum sx_status check_rows(struct conformance *c, int64_t rows) {
    for (int t = 0; t < N_TYPES; t++) {
        SX_TRY(gather_layouts(c, types[t], rows, 0));
        SX_TRY(gather_layouts(c, types[t], rows, 0.4));
        SX_TRY(concat_type(c, types[t], rows));
    }
    SX_TRY(concat_codes(c, rows, false));
    SX_TRY(concat_codes(c, rows, true));
    SX_TRY(check_iota(c, SX_TYPE_I32, 5, rows));
    SX_TRY(check_iota(c, SX_TYPE_I64, INT64_C(1) << 40, rows));
    SX_TRY(check_masks(c, rows, 0));
    return check_masks(c, rows, 0.4);
}

/* More than any one block or warp looks at. */
static enum sx_status check_long_mask(struct conformance *c, double nulls) {
    enum { LONG_ROWS = 140001 };
    struct sx_tensor mask = {0};
    if (!conformance_may_have(LONG_ROWS) || !conformance_takes(c))
        return SX_OK;
    SX_TRY(conformance_column(c, sx_type_of(SX_TYPE_BOOL), LONG_ROWS, FILL_RANDOM, nulls, &mask));
    enum sx_status status = check_mask(c, &mask, true);
    sx_tensor_release(&mask);
    return status;
}

void conform_move(struct conformance *c) {
    for (int i = 0; i < conformance_n_rows; i++) {
        enum sx_status status = check_rows(c, conformance_rows[i]);
        const char *text = c->stream->error.text[0] ? c->stream->error.text : c->error.text;
        CONFORM(c, status == SX_OK, "%lld rows: %s", (long long)conformance_rows[i], text);
    }
    CONFORM(c, check_long_mask(c, 0) == SX_OK && check_long_mask(c, 0.998) == SX_OK, "long masks: %s",
            c->stream->error.text);
    move_between_streams(c);
}
