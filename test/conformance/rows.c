/* rows_pack and rows_unpack: parts come back as the rows that were put in, by way of the host's memory or
 * not. */
#include <stdlib.h>
#include <string.h>

#include "rows_case.h"

enum { SEQUENCE = ROWS_SEQUENCE };

static const struct sx_type types[] = {
    {SX_TYPE_BOOL, 0, 0},     {SX_TYPE_I16, 0, 0},     {SX_TYPE_I32, 0, 0},       {SX_TYPE_I64, 0, 0},
    {SX_TYPE_I128, 0, 0},     {SX_TYPE_F32, 0, 0},     {SX_TYPE_F64, 0, 0},       {SX_TYPE_DECIMAL, 15, 2},
    {SX_TYPE_DECIMAL, 30, 4}, {SX_TYPE_DATE, 0, 0},    {SX_TYPE_TIMESTAMP, 0, 0}, {SX_TYPE_INTERVAL, 0, 0},
    {SX_TYPE_NULLTYPE, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},   {SX_TYPE_VARCHAR, 0, 0},
};
enum { N_TYPES = sizeof types / sizeof types[0], DICTIONARY = N_TYPES - 2, CONSTANT = N_TYPES - 1 };

void rows_case_release(struct rows_case *rows) {
    sx_batch_release(&rows->host);
    sx_batch_release(&rows->sent);
    sx_tensor_release(&rows->order);
    sx_tensor_release(&rows->sent_order);
}

static enum sx_status make_column(struct conformance *c, int t, int64_t n, double null_share,
                                  struct sx_tensor *out) {
    struct sx_tensor flat = {0};
    if (t != DICTIONARY && t != CONSTANT)
        return conformance_column(c, types[t], n, FILL_RANDOM, null_share, out);
    if (t == CONSTANT) {
        const struct sx_scalar text = {.type = types[t],
                                       .v.text = {"the same text, and a long one, in every row", 43}};
        return sx_tensor_create_constant(c->pool, &text, n, out, &c->error);
    }
    SX_TRY(conformance_column(c, types[t], n, FILL_FEW_VALUES, null_share, &flat));
    const enum sx_status status = conformance_dictionary(c, &flat, out);
    sx_tensor_release(&flat);
    return status;
}

static enum sx_status make_order(struct conformance *c, int64_t n, struct sx_tensor *out) {
    SX_TRY(sx_tensor_create_index(c->pool, SX_TYPE_I32, n, out, &c->error));
    int32_t *order = out->values;
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(conformance_random(c) % (uint64_t)(i + 1));
        const int32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    return SX_OK;
}

void rows_case_parts(struct conformance *c, int64_t n, struct rows_case *rows) {
    rows->n_parts = 1 + (int)(conformance_random(c) % ROWS_FEW_PARTS);
    rows->own = (int)(conformance_random(c) % (uint64_t)(rows->n_parts + 1)) - 1;
    const int64_t last = n > 20 ? n - 2 : n;
    int64_t at = n > 10 ? (int64_t)(conformance_random(c) % 3) : 0;
    for (int p = 0; p <= rows->n_parts; p++) {
        rows->offsets[p] = at;
        if (p + 1 == rows->n_parts)
            at = last;
        else if (at < last && conformance_random(c) % 4)
            at += (int64_t)(conformance_random(c) % (uint64_t)(last - at));
    }
}

static int compare_rows(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* `most` runs a part or fewer, some of them empty, whose rows ascend. */
static void make_runs(struct conformance *c, int most, struct rows_case *rows) {
    int32_t *order = rows->order.values;
    rows->n_runs = 0;
    for (int p = 0; p < rows->n_parts; p++) {
        const int n = 1 + (int)(conformance_random(c) % (uint64_t)most);
        int64_t at = rows->offsets[p];
        for (int r = 0; r < n; r++) {
            const uint64_t left = (uint64_t)(rows->offsets[p + 1] - at);
            const int64_t take = r + 1 == n ? (int64_t)left : (int64_t)(conformance_random(c) % (left + 1));
            rows->runs[rows->n_runs++] = at;
            qsort(order + at, (size_t)take, sizeof *order, compare_rows);
            at += take;
        }
    }
    rows->runs[rows->n_runs] = rows->offsets[rows->n_parts];
}

enum sx_status rows_case_send(struct conformance *c, int runs, struct rows_case *rows) {
    SX_TRY(make_order(c, rows->host.rows, &rows->order));
    if (runs > 0)
        make_runs(c, runs, rows);
    SX_TRY(conformance_send(c, &rows->order, &rows->sent_order));
    return c->backend->ops.batch_from_host(c->stream, &rows->host, &rows->sent);
}

static enum sx_status make_case(struct conformance *c, int64_t n, double null_share, int runs,
                                struct rows_case *rows) {
    rows->types = types;
    SX_TRY(sx_batch_create(N_TYPES, n, &rows->host, &c->error));
    for (int t = 0; t < N_TYPES; t++)
        SX_TRY(make_column(c, t, n, null_share, &rows->host.columns[t]));
    rows_case_parts(c, n, rows);
    return rows_case_send(c, runs, rows);
}

static bool are_equal(const struct rows_case *rows, int part, const struct sx_batch *got) {
    const int64_t first = rows->offsets[part], n = rows->offsets[part + 1] - first;
    const int32_t *order = rows->order.values;
    if (got->rows != n || got->n_columns != rows->host.n_columns)
        return false;
    for (int c = 0; c < got->n_columns; c++)
        for (int64_t i = 0; i < n; i++) {
            struct sx_scalar a, b;
            sx_tensor_scalar(&rows->host.columns[c], rows->in_order ? first + i : order[first + i], &a);
            sx_tensor_scalar(&got->columns[c], i, &b);
            if (!conformance_scalar_equal(&a, &b))
                return false;
        }
    return true;
}

/* Short strings have zeros behind them, and long ones begin as they do. */
static bool has_right_views(const struct sx_tensor *column) {
    const struct sx_string *views = column->values;
    for (int64_t i = 0; i < column->length; i++) {
        const struct sx_string right = sx_string_make(sx_string_bytes(&views[i]), views[i].length_bytes);
        if ((!column->valid || column->valid[i]) && memcmp(&views[i], &right, sizeof right) != 0)
            return false;
    }
    return true;
}

static enum sx_status check_frame(struct conformance *c, const struct rows_case *rows, int part,
                                  struct sx_buffer *frame, size_t bytes, bool from_host) {
    struct sx_batch got = {0}, host = {0};
    int64_t sequence = 0;
    enum sx_status status;
    SX_GO(c->backend->ops.rows_unpack(c->stream, frame, bytes, from_host, rows->types, rows->host.n_columns,
                                      NULL, &got, &sequence));
    SX_GO(c->backend->ops.batch_to_host(c->stream, &got, &host));
    CONFORM(c, sequence == SEQUENCE && are_equal(rows, part, &host), "part %d of %d", part, rows->n_parts);
    for (int t = 0; t < host.n_columns; t++)
        if (host.columns[t].type.id == SX_TYPE_VARCHAR && host.columns[t].layout == SX_FLAT)
            CONFORM(c, has_right_views(&host.columns[t]), "views of column %d", t);
out:
    sx_batch_release(&got);
    sx_batch_release(&host);
    return status;
}

/* ---- damaged frames ---- */

enum damage {
    HEAP_OF_NUMBERS,
    NO_HEAP,
    STRING_OUTSIDE,
    CODE_OUTSIDE,
    CODE_BELOW,
    ENTRIES_OUTSIDE,
    N_DAMAGES
};

/* The column's first long string, or that of its dictionary; NULL: there is none. */
static struct sx_string *find_long(char *frame, const struct sx_rows_column *column, int64_t rows) {
    const bool is_coded = column->n_entries > 0;
    if (!is_coded && column->encoding == SX_ROWS_PACKED)
        return NULL;
    struct sx_string *views =
        (struct sx_string *)(void *)(frame + (is_coded ? column->heap : column->values));
    for (int64_t i = 0, n = is_coded ? (int64_t)column->n_entries : rows; i < n; i++)
        if (views[i].length_bytes > SX_STRING_INLINE_BYTES)
            return &views[i];
    return NULL;
}

/* False: the frame has nothing that can be damaged so. */
static bool do_damage(char *frame, enum damage damage) {
    struct sx_rows_column *number = &sx_rows_columns(frame)[3], *text = &sx_rows_columns(frame)[DICTIONARY];
    const int64_t rows = ((const struct sx_rows_frame *)(const void *)frame)->rows;
    const bool has_codes = text->n_entries > 0 && text->encoding == SX_ROWS_PLAIN;
    struct sx_string *view = find_long(frame, text, rows);
    int32_t *codes = (int32_t *)(void *)(frame + text->values);
    switch (damage) {
    case HEAP_OF_NUMBERS: number->heap_bytes = text->heap_bytes; return text->heap_bytes > 0;
    case NO_HEAP: text->heap_bytes = 0; return view != NULL;
    case STRING_OUTSIDE:
        if (view)
            view->u.ref.pointer =
                (const char *)(uintptr_t)(text->heap_bytes - sx_rows_entries_bytes(text->n_entries) - 1);
        return view != NULL;
    case CODE_OUTSIDE:
    case CODE_BELOW:
        if (has_codes)
            codes[rows / 2] = damage == CODE_BELOW ? -1 : (int32_t)text->n_entries;
        return has_codes;
    default: break;
    }
    const bool is_coded = text->n_entries > 0;
    text->n_entries += text->heap_bytes;
    return is_coded;
}

/* A copy of the frame, whose bytes are `host`'s, is damaged and refused. */
static enum sx_status check_damage(struct conformance *c, const struct rows_case *rows,
                                   const struct sx_buffer *host, size_t bytes, enum damage damage) {
    struct sx_buffer *copy;
    SX_TRY(sx_buffer_create(c->pool, bytes, &copy, &c->error));
    memcpy(copy->data, host->data, bytes);
    if (do_damage(copy->data, damage))
        CONFORM(c, rows_is_refused(c, copy, types, rows->host.n_columns), "damage %d", (int)damage);
    sx_buffer_release(copy);
    return SX_OK;
}

/* A dictionary goes with the frame where it has few entries for the rows, and else not. */
static void check_coded(struct conformance *c, const struct rows_case *rows, int part,
                        const struct sx_rows_frame *head) {
    enum { FEW_ROWS_AN_ENTRY = 4 };
    const struct sx_rows_column *column =
        (const struct sx_rows_column *)(const void *)(head + 1) + DICTIONARY;
    const int64_t n = rows->offsets[part + 1] - rows->offsets[part],
                  all = rows->offsets[rows->n_parts] - rows->offsets[0],
                  least = FEW_ROWS_AN_ENTRY * rows->host.columns[DICTIONARY].dict->values.length;
    if (n >= least * rows->n_parts)
        CONFORM(c, column->n_entries > 0 && column->n_entries * FEW_ROWS_AN_ENTRY <= (uint64_t)n,
                "%lld rows go without their dictionary", (long long)n);
    if (all < least)
        CONFORM(c, column->n_entries == 0, "%lld rows go with their dictionary", (long long)n);
}

/* By way of the host's memory, as frames go where the device's can't. What is no frame is refused. */
static enum sx_status check_part(struct conformance *c, const struct rows_case *rows, int part,
                                 struct sx_buffer *frame) {
    struct sx_buffer *host = NULL, *back = NULL, *message = NULL, *taken = NULL;
    struct sx_batch got = {0};
    int64_t sequence;
    const size_t bytes = frame->size_bytes, first = sizeof(uint64_t);
    enum sx_status status;
    SX_GO(c->backend->ops.bytes_to_host(c->stream, &frame, 1, c->pool, &host));
    SX_GO(c->backend->ops.bytes_to_send(c->stream, frame, first, bytes - first, &message));
    SX_GO(c->backend->ops.bytes_to_host(c->stream, &message, 1, c->pool, &taken));
    CONFORM(c, memcmp(taken->data, (const char *)host->data + first, bytes - first) == 0,
            "the bytes of part %d as a message", part);
    const struct sx_rows_frame *head = host->data;
    CONFORM(c, head->bytes == bytes && head->rows == rows->offsets[part + 1] - rows->offsets[part],
            "the head of part %d", part);
    if (rows->types == types)
        check_coded(c, rows, part, head);
    SX_GO(c->backend->ops.bytes_from_host(c->stream, host, bytes, &back));
    CONFORM(c,
            c->backend->ops.rows_unpack(c->stream, back, bytes - 16, false, rows->types, rows->host.n_columns,
                                        NULL, &got, &sequence) == SX_INTERNAL,
            "a frame that is cut off");
    CONFORM(c,
            c->backend->ops.rows_unpack(c->stream, back, bytes, false, rows->types + 1,
                                        rows->host.n_columns - 1, NULL, &got, &sequence) == SX_INTERNAL,
            "a frame of other columns");
    c->stream->error = (struct sx_error){0};
    for (int d = 0; d < N_DAMAGES && rows->types == types; d++)
        SX_GO(check_damage(c, rows, host, bytes, (enum damage)d));
    if (!c->backend->traits.is_host) /* else it is the same one, which is unpacked once */
        SX_GO(check_frame(c, rows, part, host, bytes, true));
    status = check_frame(c, rows, part, back, bytes, false);
out:
    sx_buffer_release(host);
    sx_buffer_release(back);
    sx_buffer_release(message);
    sx_buffer_release(taken);
    return status;
}

static enum sx_status check_own(struct conformance *c, const struct rows_case *rows,
                                const struct sx_batch *own) {
    const int64_t n = rows->own < 0 ? 0 : rows->offsets[rows->own + 1] - rows->offsets[rows->own];
    struct sx_batch host = {0};
    if (!CONFORM(c, own->rows == n, "%lld own rows, not %lld", (long long)own->rows, (long long)n) || n == 0)
        return SX_OK;
    SX_TRY(c->backend->ops.batch_to_host(c->stream, own, &host));
    CONFORM(c, are_equal(rows, rows->own, &host), "the own part, %d of %d, %d runs", rows->own, rows->n_parts,
            rows->n_runs);
    sx_batch_release(&host);
    return SX_OK;
}

/* Told right, whether they go PLAIN or not. */
static void check_plain_bytes(struct conformance *c, struct rows_case *rows, size_t bytes,
                              size_t plain_bytes) {
    size_t *known = &rows->plain_bytes[rows->in_order];
    if (!rows->packs && !rows->narrow)
        *known = bytes;
    if (*known > 0)
        CONFORM(c, plain_bytes == *known, "%zu plain bytes, not %zu", plain_bytes, *known);
}

enum sx_status rows_case_try(struct conformance *c, struct rows_case *rows) {
    struct sx_buffer *parts[ROWS_MAX_PARTS] = {0};
    struct sx_batch own = {0};
    size_t plain_bytes, bytes = 0;
    const struct sx_row_parts asked = {.order = rows->in_order ? NULL : &rows->sent_order,
                                       .offsets = rows->offsets,
                                       .n_parts = rows->n_parts,
                                       .own = rows->own,
                                       .runs = rows->n_runs > 0 && !rows->in_order ? rows->runs : NULL,
                                       .n_runs = rows->n_runs};
    enum sx_status status = SX_OK;
    SX_GO(c->backend->ops.rows_pack(c->stream, &rows->sent, &asked, SEQUENCE, rows->packs, rows->narrow,
                                    parts, &plain_bytes, &own));
    SX_GO(check_own(c, rows, &own));
    for (int p = 0; p < rows->n_parts; p++)
        bytes += parts[p] ? parts[p]->size_bytes : 0;
    check_plain_bytes(c, rows, bytes, plain_bytes);
    for (int p = 0; p < rows->n_parts; p++) {
        const bool is_wanted = p != rows->own && rows->offsets[p + 1] > rows->offsets[p];
        if (!CONFORM(c, is_wanted == (parts[p] != NULL), "part %d of %d, but %d", p, rows->n_parts,
                     rows->own) ||
            !parts[p])
            continue;
        SX_GO(check_part(c, rows, p, parts[p]));
        if (!c->backend->traits.is_host) /* there it was the same memory, and its views have been changed */
            SX_GO(check_frame(c, rows, p, parts[p], parts[p]->size_bytes, false));
    }
out:
    sx_batch_release(&own);
    for (int p = 0; p < ROWS_MAX_PARTS; p++)
        sx_buffer_release(parts[p]);
    return status;
}

static enum sx_status try_shape(struct conformance *c, int64_t n, double null_share, int runs) {
    if (!conformance_takes(c))
        return SX_OK;
    struct rows_case rows = {0};
    enum sx_status status;
    SX_GO(make_case(c, n, null_share, runs, &rows));
    for (int i = 0; i < 4; i++) {
        rows.in_order = i % 2;
        rows.packs = i / 2;
        SX_GO(rows_case_try(c, &rows));
    }
out:
    rows_case_release(&rows);
    return status;
}

void conform_rows(struct conformance *c) {
    enum { ROUNDS = 3 };
    for (int r = 0; r < conformance_n_rows; r++)
        for (int round = 0; round < ROUNDS; round++) {
            const enum sx_status status = try_shape(c, conformance_rows[r], round % 2 ? 0.3 : 0, round * 2);
            CONFORM(c, status == SX_OK, "rows: %s %s", c->error.text, c->stream->error.text);
        }
    conform_rows_packed(c);
    conform_rows_narrow(c);
    conform_rows_strings(c);
}
