/* Strings without a dictionary, in frames: short, long and both, and damage. */
#include <string.h>

#include "rows_case.h"

enum { ROWS = 2100, MOST_BYTES = 300 };
static const struct sx_type text = {SX_TYPE_VARCHAR, 0, 0};

/* Lengths of a column's strings. */
static const struct {
    uint32_t least, most;
} kinds[] = {{0, 0}, {1, 2}, {0, 13}, {11, 12}, {12, 12}, {13, 13}, {15, 15}, {0, 40}, {100, MOST_BYTES}};
enum { N_KINDS = sizeof kinds / sizeof kinds[0], CODED = N_KINDS, CONSTANT, N_COLUMNS };
static const struct sx_type types[N_COLUMNS] = {
    {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},
    {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},
    {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}};

/* Any bytes. Null rows have a string, too. */
static enum sx_status make_strings(struct conformance *c, uint32_t least, uint32_t most, int64_t n,
                                   double null_share, struct sx_tensor *out) {
    SX_TRY(conformance_column(c, text, n, FILL_RANDOM, null_share, out));
    sx_buffer_release(out->heap);
    out->heap = NULL;
    SX_TRY(sx_buffer_create(c->pool, (size_t)n * most + 1, &out->heap, &c->error));
    char *heap = out->heap->data;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t length = least + (uint32_t)(conformance_random(c) % (most - least + 1));
        for (uint32_t k = 0; k < length; k++)
            heap[k] = (char)conformance_random(c);
        ((struct sx_string *)out->values)[i] = sx_string_make(heap, length);
        heap += length;
    }
    return SX_OK;
}

static enum sx_status make_column(struct conformance *c, int column, int64_t n, double null_share,
                                  struct sx_tensor *out) {
    const struct sx_scalar constant = {.type = text, .v.text = {"the same text in every row", 26}};
    if (column < N_KINDS)
        return make_strings(c, kinds[column].least, kinds[column].most, n, null_share, out);
    if (column == CONSTANT)
        return sx_tensor_create_constant(c->pool, &constant, n, out, &c->error);
    struct sx_tensor flat = {0};
    enum sx_status status = make_strings(c, 0, MOST_BYTES / 10, n, null_share, &flat);
    if (status == SX_OK)
        status = conformance_dictionary(c, &flat, out);
    sx_tensor_release(&flat);
    return status;
}

/* Rows from `skipped` on, of as many more; on the backend they are a slice of all. */
static enum sx_status make_case(struct conformance *c, int64_t n, int64_t skipped, double null_share,
                                int runs, struct rows_case *rows) {
    struct sx_batch all = {0}, sent = {0};
    enum sx_status status;
    rows->types = types;
    SX_GO(sx_batch_create(N_COLUMNS, n + skipped, &all, &c->error));
    for (int t = 0; t < N_COLUMNS; t++)
        SX_GO(make_column(c, t, n + skipped, null_share, &all.columns[t]));
    SX_GO(sx_batch_slice(&all, skipped, n, &rows->host, &c->error));
    rows_case_parts(c, n, rows);
    SX_GO(rows_case_send(c, runs, rows));
    sx_batch_release(&rows->sent);
    SX_GO(c->backend->ops.batch_from_host(c->stream, &all, &sent));
    status = sx_batch_slice(&sent, skipped, n, &rows->sent, &c->error);
out:
    sx_batch_release(&all);
    sx_batch_release(&sent);
    return status;
}

/* Plain and packed, with an order and without. */
static enum sx_status try_all_ways(struct conformance *c, struct rows_case *rows) {
    for (int way = 0; way < 4; way++) {
        rows->in_order = way % 2;
        rows->packs = way / 2;
        SX_TRY(rows_case_try(c, rows));
    }
    return SX_OK;
}

static enum sx_status try_strings(struct conformance *c, int64_t n, int64_t skipped, double null_share,
                                  int runs) {
    if (!conformance_takes(c))
        return SX_OK;
    struct rows_case rows = {0};
    enum sx_status status;
    SX_GO(make_case(c, n, skipped, null_share, runs, &rows));
    SX_GO(try_all_ways(c, &rows));
    rows.own = -1;
    rows.n_parts = 1;
    rows.n_runs = 0;
    rows.offsets[0] = 0;
    rows.offsets[1] = n;
    memset(rows.plain_bytes, 0, sizeof rows.plain_bytes);
    SX_GO(try_all_ways(c, &rows));
out:
    rows_case_release(&rows);
    return status;
}

/* A row each, none, or two blocks. */
static enum sx_status try_many_parts(struct conformance *c) {
    enum { PARTS = 40 };
    if (!conformance_takes(c))
        return SX_OK;
    struct rows_case rows = {0};
    enum sx_status status;
    SX_GO(make_case(c, PARTS + ROWS, 0, 0.2, 0, &rows));
    rows.n_parts = PARTS;
    rows.own = PARTS / 2;
    for (int p = 0; p < PARTS; p++)
        rows.offsets[p] = p / 2 * 2;
    rows.offsets[PARTS] = PARTS + ROWS;
    SX_GO(try_all_ways(c, &rows));
out:
    rows_case_release(&rows);
    return status;
}

/* ---- what becomes of a column ---- */

/* Two blocks. */
static enum sx_status pack_kind(struct conformance *c, uint32_t least, uint32_t most,
                                struct sx_buffer **out_frame) {
    struct sx_batch host = {0};
    enum sx_status status;
    SX_GO(sx_batch_create(1, 2 * SX_PACK_BLOCK, &host, &c->error));
    SX_GO(make_strings(c, least, most, host.rows, 0, &host.columns[0]));
    status = rows_pack_one(c, &host, out_frame);
out:
    sx_batch_release(&host);
    return status;
}

/* Packed by so many bits a length, or not, because they would hardly take less. */
static enum sx_status try_choice(struct conformance *c, uint32_t least, uint32_t most,
                                 enum sx_rows_encoding encoding, unsigned bits) {
    enum { DIRECTORY = 48, LANES_BYTES = 2 * SX_PACK_BLOCK / 8 };
    struct sx_buffer *frame = NULL;
    SX_TRY(pack_kind(c, least, most, &frame));
    const struct sx_rows_column *column = sx_rows_columns(frame->data);
    CONFORM(c, column->encoding == encoding, "strings of %u to %u bytes: %d", least, most, column->encoding);
    if (column->encoding == SX_ROWS_PACKED)
        CONFORM(c,
                column->values_bytes == DIRECTORY + LANES_BYTES * bits &&
                    column->heap_bytes >= 2ull * SX_PACK_BLOCK * least &&
                    column->heap_bytes <= 2ull * SX_PACK_BLOCK * most &&
                    (column->long_bytes > 0) == (most > SX_STRING_INLINE_BYTES),
                "strings of %u to %u bytes: %llu and %llu", least, most,
                (unsigned long long)column->values_bytes, (unsigned long long)column->heap_bytes);
    sx_buffer_release(frame);
    return SX_OK;
}

/* ---- damage ---- */

enum { N_DAMAGES = 18 };

static void do_damage(int damage, struct sx_rows_frame *frame, struct sx_rows_column *column,
                      struct sx_pack_block *blocks) {
    switch (damage) {
    case 0: blocks[0].base++; break; /* longer ones */
    case 1: blocks[0].base--; break; /* of -1 bytes */
    case 2: blocks[1].base = UINT64_C(1) << 32; break;
    case 3: blocks[1].base = UINT64_C(1) << 63; break;
    case 4: blocks[1].bits++; break;
    case 5: blocks[1].bits--; break;
    case 6: blocks[0].first++; break;
    case 7: blocks[1].first++; break;
    case 8: blocks[1].first--; break;
    case 9: blocks[1].first = UINT64_MAX; break;
    case 10: column->heap_bytes -= 1; break;
    case 11: column->heap_bytes = 0; break;
    case 12: column->heap += SX_ROWS_ALIGNMENT; break;
    case 13: column->long_bytes = 0; break;
    case 14: column->long_bytes = column->heap_bytes + 1; break;
    case 15: column->encoding = SX_ROWS_PLAIN; break;
    case 16: column->n_entries = 1; break;
    default: frame->rows--;
    }
}

static enum sx_status copy_frame(struct conformance *c, const struct sx_buffer *frame,
                                 struct sx_buffer **out_copy) {
    SX_TRY(sx_buffer_create(c->pool, frame->size_bytes, out_copy, &c->error));
    memcpy((*out_copy)->data, frame->data, frame->size_bytes);
    return SX_OK;
}

static enum sx_status try_damage(struct conformance *c) {
    struct sx_buffer *frame = NULL, *copy = NULL;
    enum sx_status status;
    if (!conformance_takes(c))
        return SX_OK;
    SX_GO(pack_kind(c, 0, 20, &frame));
    CONFORM(c, !rows_is_refused(c, frame, &text, 1), "a frame as it is");
    for (int d = 0; d < N_DAMAGES; d++) {
        SX_GO(copy_frame(c, frame, &copy));
        struct sx_rows_column *column = sx_rows_columns(copy->data);
        struct sx_pack_block *blocks = (void *)((char *)copy->data + column->values);
        do_damage(d, copy->data, column, blocks);
        CONFORM(c, rows_is_refused(c, copy, &text, 1), "damage %d", d);
        sx_buffer_release(copy);
        copy = NULL;
    }
out:
    sx_buffer_release(frame);
    sx_buffer_release(copy);
    return status;
}

/* Any byte of the head and the lengths: what is not refused has strings, all of them in the frame. */
static enum sx_status try_noise(struct conformance *c) {
    enum { ROUNDS = 300 };
    struct sx_buffer *frame = NULL, *copy = NULL;
    struct sx_batch got = {0}, host = {0};
    int64_t sequence;
    enum sx_status status;
    if (!conformance_takes(c))
        return SX_OK;
    SX_GO(pack_kind(c, 0, 20, &frame));
    const uint64_t most = sx_rows_columns(frame->data)->heap;
    for (int round = 0; round < ROUNDS; round++) {
        SX_GO(copy_frame(c, frame, &copy));
        ((uint8_t *)copy->data)[conformance_random(c) % most] ^= (uint8_t)(1 + conformance_random(c) % 255);
        status = c->backend->ops.rows_unpack(c->stream, copy, copy->size_bytes, true, &text, 1, NULL, &got,
                                             &sequence);
        if (status == SX_OK)
            status = c->backend->ops.synchronise(c->stream, "a frame");
        if (status == SX_OK)
            SX_GO(c->backend->ops.batch_to_host(c->stream, &got, &host));
        CONFORM(c, status == SX_OK || status == SX_INTERNAL, "noise: %d", (int)status);
        c->stream->error = (struct sx_error){0};
        status = SX_OK;
        sx_batch_release(&host);
        sx_batch_release(&got);
        sx_buffer_release(copy);
        copy = NULL;
    }
out:
    sx_batch_release(&host);
    sx_batch_release(&got);
    sx_buffer_release(copy);
    sx_buffer_release(frame);
    return status;
}

void conform_rows_strings(struct conformance *c) {
    static const double null_shares[] = {0, 0.3, 1};
    for (int i = 0; i < 3; i++)
        for (int64_t n = 1; n <= ROWS; n = n * 3 + 30) {
            const enum sx_status status = try_strings(c, n, i * 5, null_shares[i], i % 2 ? 2 : 0);
            CONFORM(c, status == SX_OK, "%lld strings: %s %s", (long long)n, c->error.text,
                    c->stream->error.text);
        }
    CONFORM(c, try_many_parts(c) == SX_OK, "many parts: %s", c->stream->error.text);
    CONFORM(c,
            try_choice(c, 15, 15, SX_ROWS_PACKED, 0) == SX_OK &&
                try_choice(c, 0, 0, SX_ROWS_PACKED, 0) == SX_OK &&
                try_choice(c, 1, 2, SX_ROWS_PACKED, 1) == SX_OK &&
                try_choice(c, 12, 12, SX_ROWS_PACKED, 0) == SX_OK &&
                try_choice(c, 0, 40, SX_ROWS_PACKED, 6) == SX_OK &&
                try_choice(c, 250, 300, SX_ROWS_PLAIN, 0) == SX_OK,
            "choosing: %s", c->stream->error.text);
    CONFORM(c, try_damage(c) == SX_OK, "damage: %s", c->stream->error.text);
    CONFORM(c, try_noise(c) == SX_OK, "noise: %s", c->stream->error.text);
}
