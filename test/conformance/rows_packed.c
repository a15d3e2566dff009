/* PACKED columns of numbers: all widths of bits, and damage. */
#include <string.h>

#include "rows_case.h"

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
    rows_case_parts(c, n, rows);
    return rows_case_send(c, runs, rows);
}

static enum sx_status try_ranged(struct conformance *c, int64_t n, unsigned bits, double null_share) {
    if (!conformance_takes(c))
        return SX_OK;
    struct rows_case rows = {0};
    enum sx_status status;
    SX_GO(make_ranged(c, n, bits, null_share, 0, &rows));
    SX_GO(rows_case_try(c, &rows));
    rows.in_order = true;
    rows.own = -1;
    rows.n_parts = 1;
    rows.offsets[0] = 0;
    rows.offsets[1] = n;
    SX_GO(rows_case_try(c, &rows));
out:
    rows_case_release(&rows);
    return status;
}

/* A row each in many parts, and some in the last one. */
static enum sx_status try_many_parts(struct conformance *c) {
    if (!conformance_takes(c))
        return SX_OK;
    struct rows_case rows = {0};
    enum sx_status status;
    SX_GO(make_ranged(c, ROWS_MAX_PARTS + 200, 9, 0, 0, &rows));
    rows.n_parts = ROWS_MAX_PARTS;
    rows.own = ROWS_MAX_PARTS / 2;
    for (int p = 0; p < ROWS_MAX_PARTS; p++)
        rows.offsets[p] = p;
    rows.offsets[ROWS_MAX_PARTS] = ROWS_MAX_PARTS + 200;
    SX_GO(rows_case_try(c, &rows));
out:
    rows_case_release(&rows);
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
    SX_GO(rows_case_try(c, &rows));
out:
    rows_case_release(&rows);
    return status;
}

enum sx_status rows_pack_one(struct conformance *c, const struct sx_batch *host,
                             struct sx_buffer **out_frame) {
    const int64_t offsets[] = {0, host->rows};
    const struct sx_row_parts parts = {.offsets = offsets, .n_parts = 1, .own = -1};
    struct sx_batch sent = {0}, none;
    size_t plain_bytes;
    struct sx_buffer *frame = NULL;
    enum sx_status status;
    SX_GO(c->backend->ops.batch_from_host(c->stream, host, &sent));
    SX_GO(c->backend->ops.rows_pack(c->stream, &sent, &parts, ROWS_SEQUENCE, true, NULL, &frame, &plain_bytes,
                                    &none));
    SX_GO(c->backend->ops.bytes_to_host(c->stream, &frame, 1, c->pool, out_frame));
out:
    sx_buffer_release(frame);
    sx_batch_release(&sent);
    return status;
}

bool rows_is_refused(struct conformance *c, struct sx_buffer *frame, const struct sx_type *types,
                     int n_columns) {
    struct sx_batch got = {0};
    int64_t sequence;
    enum sx_status status;
    SX_GO(c->backend->ops.rows_unpack(c->stream, frame, frame->size_bytes, true, types, n_columns, NULL, &got,
                                      &sequence));
    status = c->backend->ops.synchronise(c->stream, "a frame");
out:
    sx_batch_release(&got);
    c->stream->error = (struct sx_error){0};
    return status == SX_INTERNAL;
}

/* One column of 1,024 integers below 1,000. */
static enum sx_status pack_thousand(struct conformance *c, struct sx_buffer **out_frame) {
    struct sx_batch host = {0};
    enum sx_status status;
    SX_GO(sx_batch_create(1, SX_PACK_BLOCK, &host, &c->error));
    SX_GO(conformance_column(c, ranged_types[0], SX_PACK_BLOCK, FILL_RANDOM, 0, &host.columns[0]));
    for (int64_t i = 0; i < SX_PACK_BLOCK; i++)
        ((int64_t *)host.columns[0].values)[i] = i % 1000 - 500;
    status = rows_pack_one(c, &host, out_frame);
out:
    sx_batch_release(&host);
    return status;
}

/* Sizes are as computed, and what is damaged is refused. */
static enum sx_status try_damage(struct conformance *c) {
    enum { BITS = 10, WORDS = BITS * 1024 / 8, DIRECTORY = 32 };
    if (!conformance_takes(c))
        return SX_OK;
    struct sx_buffer *host = NULL;
    enum sx_status status;
    SX_GO(pack_thousand(c, &host));
    struct sx_rows_column *column = sx_rows_columns(host->data);
    struct sx_pack_block *block = (struct sx_pack_block *)(void *)((char *)host->data + column->values);
    const struct sx_rows_column column_before = *column;
    const struct sx_pack_block block_before = *block;
    CONFORM(c, column->encoding == SX_ROWS_PACKED && column->values_bytes == DIRECTORY + WORDS,
            "%d, %llu bytes", column->encoding, (unsigned long long)column->values_bytes);
    CONFORM(c, block->bits == BITS && block->base == (uint64_t)-500, "%d bits", block->bits);
    CONFORM(c, !rows_is_refused(c, host, ranged_types, 1), "a frame as it is");
    const struct sx_pack_block damaged[] = {{0, 0, 0, BITS + 1, {0}},
                                            {0, 0, 0, 65, {0}},
                                            {0, 0, 16, BITS, {0}},
                                            {0, 0, 8, 1, {0}},
                                            {0, 0, UINT32_MAX - 15, 1, {0}}};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        *block = damaged[i];
        CONFORM(c, rows_is_refused(c, host, ranged_types, 1), "damaged block %zu", i);
    }
    *block = block_before;
    column->encoding = SX_ROWS_ENCODINGS;
    CONFORM(c, rows_is_refused(c, host, ranged_types, 1), "an encoding that is not there");
    *column = column_before;
    column->values_bytes = DIRECTORY - 16;
    CONFORM(c, rows_is_refused(c, host, ranged_types, 1), "a directory that is cut off");
    *column = column_before;
    ((struct sx_rows_frame *)host->data)->rows = INT64_MAX;
    CONFORM(c, rows_is_refused(c, host, ranged_types, 1), "many rows");
out:
    sx_buffer_release(host);
    return status;
}

void conform_rows_packed(struct conformance *c) {
    enum { MOST_BITS = 64, SPREAD = 2100 };
    for (unsigned bits = 0; bits <= MOST_BITS; bits++) {
        const int64_t n = 1 + (int64_t)(conformance_random(c) % (bits % 16 ? 70 : SPREAD));
        const enum sx_status status = try_ranged(c, n, bits, bits % 2 ? 0.3 : 0);
        CONFORM(c, status == SX_OK, "%u bits: %s %s", bits, c->error.text, c->stream->error.text);
    }
    CONFORM(c, try_ranged(c, SPREAD, 7, 1) == SX_OK, "nulls alone: %s", c->stream->error.text);
    for (int runs = 1; runs <= ROWS_MAX_RUNS / ROWS_FEW_PARTS; runs *= 4)
        for (int i = 0; i < 4; i++)
            CONFORM(c, try_runs(c, runs, i % 2 ? 0.3 : 0, i / 2) == SX_OK, "%d runs: %s", runs,
                    c->stream->error.text);
    CONFORM(c, try_many_parts(c) == SX_OK, "many parts: %s", c->stream->error.text);
    CONFORM(c, try_damage(c) == SX_OK, "damage: %s", c->stream->error.text);
}
