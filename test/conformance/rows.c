/* rows_pack and rows_unpack: parts come back as the rows that were put in, by way of the host's memory or
 * not. */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "tensor/pack.h"
#include "tensor/rows.h"

enum { MAX_PARTS = 1024, FEW_PARTS = 8, MAX_RUNS = 2 * MAX_PARTS, SEQUENCE = 4711 };

static const struct sx_type types[] = {
    {SX_TYPE_BOOL, 0, 0},     {SX_TYPE_I16, 0, 0},     {SX_TYPE_I32, 0, 0},       {SX_TYPE_I64, 0, 0},
    {SX_TYPE_I128, 0, 0},     {SX_TYPE_F32, 0, 0},     {SX_TYPE_F64, 0, 0},       {SX_TYPE_DECIMAL, 15, 2},
    {SX_TYPE_DECIMAL, 30, 4}, {SX_TYPE_DATE, 0, 0},    {SX_TYPE_TIMESTAMP, 0, 0}, {SX_TYPE_INTERVAL, 0, 0},
    {SX_TYPE_NULLTYPE, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},   {SX_TYPE_VARCHAR, 0, 0},
};
enum { N_TYPES = sizeof types / sizeof types[0], DICTIONARY = N_TYPES - 2, CONSTANT = N_TYPES - 1 };

/* What goes into a call. `host` and `order` are in host memory. */
struct rows_case {
    const struct sx_type *types; /* of the columns */
    struct sx_batch host, sent;
    struct sx_tensor order, sent_order;
    bool in_order; /* no order is given */
    bool packs;
    int64_t offsets[MAX_PARTS + 1];
    int n_parts, own;
    int64_t runs[MAX_RUNS + 1];
    int n_runs; /* 0: nothing is told of them */
};

static void release(struct rows_case *rows) {
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

/* Some parts are empty; the rows before the first and behind the last are of none. */
static void make_parts(struct conformance *c, int64_t n, struct rows_case *rows) {
    rows->n_parts = 1 + (int)(conformance_random(c) % FEW_PARTS);
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

/* Once the batch and its parts are there. `runs`: of a part, at most; 0: they are not told. */
static enum sx_status send_case(struct conformance *c, int runs, struct rows_case *rows) {
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
    make_parts(c, n, rows);
    return send_case(c, runs, rows);
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

static enum sx_status check_frame(struct conformance *c, const struct rows_case *rows, int part,
                                  struct sx_buffer *frame, size_t bytes) {
    struct sx_batch got = {0}, host = {0};
    int64_t sequence = 0;
    enum sx_status status;
    SX_GO(c->backend->ops.rows_unpack(c->stream, frame, bytes, rows->types, rows->host.n_columns, &got,
                                      &sequence));
    SX_GO(c->backend->ops.batch_to_host(c->stream, &got, &host));
    CONFORM(c, sequence == SEQUENCE && are_equal(rows, part, &host), "part %d of %d", part, rows->n_parts);
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

/* A copy of the frame, whose bytes are `host`'s, is damaged and refused: at the next synchronisation at the
 * latest. */
static enum sx_status check_damage(struct conformance *c, const struct rows_case *rows,
                                   const struct sx_buffer *host, size_t bytes, enum damage damage) {
    struct sx_buffer *copy = NULL, *sent = NULL;
    struct sx_batch got = {0};
    int64_t sequence;
    enum sx_status status, found;
    SX_GO(sx_buffer_create(c->pool, bytes, &copy, &c->error));
    memcpy(copy->data, host->data, bytes);
    if (!do_damage(copy->data, damage))
        goto out;
    SX_GO(c->backend->ops.bytes_from_host(c->stream, copy, bytes, &sent));
    found = c->backend->ops.rows_unpack(c->stream, sent, bytes, types, rows->host.n_columns, &got, &sequence);
    if (found == SX_OK)
        found = c->backend->ops.synchronise(c->stream, "the test");
    CONFORM(c, found == SX_INTERNAL, "damage %d: status %d", (int)damage, (int)found);
    c->stream->error = (struct sx_error){0};
out:
    sx_batch_release(&got);
    sx_buffer_release(copy);
    sx_buffer_release(sent);
    return status;
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
    struct sx_buffer *host = NULL, *back = NULL;
    struct sx_batch got = {0};
    int64_t sequence;
    const size_t bytes = frame->size_bytes;
    enum sx_status status;
    SX_GO(c->backend->ops.bytes_to_host(c->stream, frame, bytes, c->pool, &host));
    const struct sx_rows_frame *head = host->data;
    CONFORM(c, head->bytes == bytes && head->rows == rows->offsets[part + 1] - rows->offsets[part],
            "the head of part %d", part);
    if (rows->types == types)
        check_coded(c, rows, part, head);
    SX_GO(c->backend->ops.bytes_from_host(c->stream, host, bytes, &back));
    CONFORM(c,
            c->backend->ops.rows_unpack(c->stream, back, bytes - 16, rows->types, rows->host.n_columns, &got,
                                        &sequence) == SX_INTERNAL,
            "a frame that is cut off");
    CONFORM(c,
            c->backend->ops.rows_unpack(c->stream, back, bytes, rows->types + 1, rows->host.n_columns - 1,
                                        &got, &sequence) == SX_INTERNAL,
            "a frame of other columns");
    c->stream->error = (struct sx_error){0};
    for (int d = 0; d < N_DAMAGES && rows->types == types; d++)
        SX_GO(check_damage(c, rows, host, bytes, (enum damage)d));
    status = check_frame(c, rows, part, back, bytes);
out:
    sx_buffer_release(host);
    sx_buffer_release(back);
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

static enum sx_status try_rows(struct conformance *c, struct rows_case *rows) {
    struct sx_buffer *parts[MAX_PARTS] = {0};
    struct sx_batch own = {0};
    const struct sx_row_parts asked = {.order = rows->in_order ? NULL : &rows->sent_order,
                                       .offsets = rows->offsets,
                                       .n_parts = rows->n_parts,
                                       .own = rows->own,
                                       .runs = rows->n_runs > 0 && !rows->in_order ? rows->runs : NULL,
                                       .n_runs = rows->n_runs};
    enum sx_status status = SX_OK;
    SX_GO(c->backend->ops.rows_pack(c->stream, &rows->sent, &asked, SEQUENCE, rows->packs, parts, &own));
    SX_GO(check_own(c, rows, &own));
    for (int p = 0; p < rows->n_parts; p++) {
        const bool is_wanted = p != rows->own && rows->offsets[p + 1] > rows->offsets[p];
        if (!CONFORM(c, is_wanted == (parts[p] != NULL), "part %d of %d, but %d", p, rows->n_parts,
                     rows->own) ||
            !parts[p])
            continue;
        SX_GO(check_part(c, rows, p, parts[p]));
        if (!c->backend->traits.is_host) /* there it was the same memory, and its views have been changed */
            SX_GO(check_frame(c, rows, p, parts[p], parts[p]->size_bytes));
    }
out:
    sx_batch_release(&own);
    for (int p = 0; p < MAX_PARTS; p++)
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
        SX_GO(try_rows(c, &rows));
    }
out:
    release(&rows);
    return status;
}

/* ---- packed ---- */

static const struct sx_type ranged_types[] = {{SX_TYPE_I64, 0, 0},  {SX_TYPE_U64, 0, 0},
                                              {SX_TYPE_I32, 0, 0},  {SX_TYPE_I16, 0, 0},
                                              {SX_TYPE_BOOL, 0, 0}, {SX_TYPE_DECIMAL, 30, 4}};
enum { N_RANGED = sizeof ranged_types / sizeof ranged_types[0] };

/* Integers of `bits` bits above a random one, which wrap where the type ends. */
static void fill_range(struct conformance *c, unsigned bits, struct sx_tensor *column) {
    const size_t width = sx_type_bytes(column->type), part = width < 8 ? width : 8;
    const uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    const bool is_bool = column->type.id == SX_TYPE_BOOL;
    for (size_t at = 0; at < width; at += part) {
        const uint64_t base = is_bool ? 0 : conformance_random(c);
        for (int64_t i = 0; i < column->length; i++) {
            uint64_t value = base + (conformance_random(c) & mask);
            if (is_bool)
                value &= 1;
            memcpy((char *)column->values + (size_t)i * width + at, &value, part);
        }
    }
}

static enum sx_status make_ranged(struct conformance *c, int64_t n, unsigned bits, double null_share,
                                  int runs, struct rows_case *rows) {
    rows->types = ranged_types;
    rows->packs = true;
    SX_TRY(sx_batch_create(N_RANGED, n, &rows->host, &c->error));
    for (int t = 0; t < N_RANGED; t++) {
        SX_TRY(conformance_column(c, ranged_types[t], n, FILL_RANDOM, null_share, &rows->host.columns[t]));
        fill_range(c, bits, &rows->host.columns[t]);
    }
    make_parts(c, n, rows);
    return send_case(c, runs, rows);
}

static enum sx_status try_ranged(struct conformance *c, int64_t n, unsigned bits, double null_share) {
    if (!conformance_takes(c))
        return SX_OK;
    struct rows_case rows = {0};
    enum sx_status status;
    SX_GO(make_ranged(c, n, bits, null_share, 0, &rows));
    SX_GO(try_rows(c, &rows));
    rows.in_order = true;
    rows.own = -1;
    rows.n_parts = 1;
    rows.offsets[0] = 0;
    rows.offsets[1] = n;
    SX_GO(try_rows(c, &rows));
out:
    release(&rows);
    return status;
}

/* A row each in many parts, and some in the last one. */
static enum sx_status try_many_parts(struct conformance *c) {
    if (!conformance_takes(c))
        return SX_OK;
    struct rows_case rows = {0};
    enum sx_status status;
    SX_GO(make_ranged(c, MAX_PARTS + 200, 9, 0, 0, &rows));
    rows.n_parts = MAX_PARTS;
    rows.own = MAX_PARTS / 2;
    for (int p = 0; p < MAX_PARTS; p++)
        rows.offsets[p] = p;
    rows.offsets[MAX_PARTS] = MAX_PARTS + 200;
    SX_GO(try_rows(c, &rows));
out:
    release(&rows);
    return status;
}

/* More rows than a device takes together, in few or many runs; plain, so that the own part is of the same
 * kind. */
static enum sx_status try_runs(struct conformance *c, int runs, double null_share, bool packs) {
    enum { ROWS = 5000 };
    if (!conformance_takes(c))
        return SX_OK;
    struct rows_case rows = {0};
    enum sx_status status;
    SX_GO(make_ranged(c, ROWS, 20, null_share, runs, &rows));
    rows.packs = packs;
    SX_GO(try_rows(c, &rows));
out:
    release(&rows);
    return status;
}

/* One part of one column of 1,024 integers below 1,000. */
static enum sx_status pack_one(struct conformance *c, struct sx_buffer **out_host) {
    const int64_t offsets[] = {0, 1024};
    const struct sx_row_parts parts = {.offsets = offsets, .n_parts = 1, .own = -1};
    struct sx_batch host = {0}, sent = {0}, none;
    struct sx_buffer *frame = NULL;
    enum sx_status status;
    SX_GO(sx_batch_create(1, offsets[1], &host, &c->error));
    SX_GO(conformance_column(c, ranged_types[0], offsets[1], FILL_RANDOM, 0, &host.columns[0]));
    for (int64_t i = 0; i < offsets[1]; i++)
        ((int64_t *)host.columns[0].values)[i] = i % 1000 - 500;
    SX_GO(c->backend->ops.batch_from_host(c->stream, &host, &sent));
    SX_GO(c->backend->ops.rows_pack(c->stream, &sent, &parts, SEQUENCE, true, &frame, &none));
    SX_GO(c->backend->ops.bytes_to_host(c->stream, frame, frame->size_bytes, c->pool, out_host));
out:
    sx_buffer_release(frame);
    sx_batch_release(&host);
    sx_batch_release(&sent);
    return status;
}

/* Whether the frame is refused, at once or when its work is done. */
static bool is_refused(struct conformance *c, struct sx_buffer *host) {
    struct sx_buffer *frame = NULL;
    struct sx_batch got = {0};
    int64_t sequence;
    enum sx_status status;
    SX_GO(c->backend->ops.bytes_from_host(c->stream, host, host->size_bytes, &frame));
    SX_GO(c->backend->ops.rows_unpack(c->stream, frame, host->size_bytes, ranged_types, 1, &got, &sequence));
    status = c->backend->ops.synchronise(c->stream, "a frame");
out:
    sx_buffer_release(frame);
    sx_batch_release(&got);
    c->stream->error = (struct sx_error){0};
    return status == SX_INTERNAL;
}

/* Sizes are as computed, and what is damaged is refused. */
static enum sx_status try_damage(struct conformance *c) {
    enum { BITS = 10, WORDS = BITS * 1024 / 8, DIRECTORY = 32 };
    if (!conformance_takes(c))
        return SX_OK;
    struct sx_buffer *host = NULL;
    enum sx_status status;
    SX_GO(pack_one(c, &host));
    struct sx_rows_column *column = sx_rows_columns(host->data);
    struct sx_pack_block *block = (struct sx_pack_block *)(void *)((char *)host->data + column->values);
    const struct sx_rows_column column_before = *column;
    const struct sx_pack_block block_before = *block;
    CONFORM(c, column->encoding == SX_ROWS_PACKED && column->values_bytes == DIRECTORY + WORDS,
            "%d, %llu bytes", column->encoding, (unsigned long long)column->values_bytes);
    CONFORM(c, block->bits == BITS && block->base == (uint64_t)-500, "%d bits", block->bits);
    CONFORM(c, !is_refused(c, host), "a frame as it is");
    const struct sx_pack_block damaged[] = {{0, 0, 0, BITS + 1, {0}},
                                            {0, 0, 0, 65, {0}},
                                            {0, 0, 16, BITS, {0}},
                                            {0, 0, 8, 1, {0}},
                                            {0, 0, UINT32_MAX - 15, 1, {0}}};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        *block = damaged[i];
        CONFORM(c, is_refused(c, host), "damaged block %zu", i);
    }
    *block = block_before;
    column->encoding = SX_ROWS_ENCODINGS;
    CONFORM(c, is_refused(c, host), "an encoding that is not there");
    *column = column_before;
    column->values_bytes = DIRECTORY - 16;
    CONFORM(c, is_refused(c, host), "a directory that is cut off");
    *column = column_before;
    ((struct sx_rows_frame *)host->data)->rows = INT64_MAX;
    CONFORM(c, is_refused(c, host), "many rows");
out:
    sx_buffer_release(host);
    return status;
}

static void conform_packed(struct conformance *c) {
    enum { MOST_BITS = 64, SPREAD = 2100 };
    for (unsigned bits = 0; bits <= MOST_BITS; bits++) {
        const int64_t n = 1 + (int64_t)(conformance_random(c) % (bits % 16 ? 70 : SPREAD));
        const enum sx_status status = try_ranged(c, n, bits, bits % 2 ? 0.3 : 0);
        CONFORM(c, status == SX_OK, "%u bits: %s %s", bits, c->error.text, c->stream->error.text);
    }
    CONFORM(c, try_ranged(c, SPREAD, 7, 1) == SX_OK, "nulls alone: %s", c->stream->error.text);
    for (int runs = 1; runs <= MAX_RUNS / FEW_PARTS; runs *= 4)
        for (int i = 0; i < 4; i++)
            CONFORM(c, try_runs(c, runs, i % 2 ? 0.3 : 0, i / 2) == SX_OK, "%d runs: %s", runs,
                    c->stream->error.text);
    CONFORM(c, try_many_parts(c) == SX_OK, "many parts: %s", c->stream->error.text);
    CONFORM(c, try_damage(c) == SX_OK, "damage: %s", c->stream->error.text);
}

void conform_rows(struct conformance *c) {
    enum { ROUNDS = 3 };
    for (int r = 0; r < conformance_n_rows; r++)
        for (int round = 0; round < ROUNDS; round++) {
            const enum sx_status status = try_shape(c, conformance_rows[r], round % 2 ? 0.3 : 0, round * 2);
            CONFORM(c, status == SX_OK, "rows: %s %s", c->error.text, c->stream->error.text);
        }
    conform_packed(c);
}
