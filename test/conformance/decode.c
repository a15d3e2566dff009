/* Column chunks that are read in pieces, and damaged ones. */
#include <string.h>

#include "decode_chunk.h"

/* ---- reading ---- */

static enum sx_status own_error(struct conformance *c, enum sx_status status) {
    if (status != SX_OK)
        c->error = c->stream->error;
    return status;
}

static bool rows_agree(const struct chunk *chunk, int64_t first, const struct sx_tensor *selection,
                       const struct sx_tensor *got) {
    for (int64_t i = 0; i < got->length; i++) {
        struct sx_scalar wanted, have;
        int64_t row = first + (selection ? ((const int32_t *)selection->values)[i] : i);
        sx_tensor_scalar(&chunk->host, row, &wanted);
        sx_tensor_scalar(got, i, &have);
        if (!conformance_scalar_equal(&wanted, &have))
            return false;
    }
    return true;
}

static enum sx_status read_rows(struct conformance *c, struct sx_decoder *decoder, int64_t first,
                                int64_t rows, const struct sx_tensor *selection, struct sx_tensor *out) {
    struct sx_decode_part part = {decoder, first, rows};
    struct sx_column_read one = {&part, 1, out};
    struct sx_decode_place place = {-1, -1};
    return c->backend->ops.decode(c->stream, &one, 1, selection, &place);
}

static enum sx_status read_some(struct conformance *c, struct sx_decoder *decoder, const struct chunk *chunk,
                                int64_t first, int64_t rows) {
    char name[SX_TYPE_NAME_BYTES];
    struct sx_tensor host_selection = {0}, selection = {0}, out = {0}, got = {0};
    enum sx_status status = SX_OK;
    bool selects = below(c, 2);
    if (selects) {
        SX_GO(chunk_select(c, rows, &host_selection));
        SX_GO(conformance_send(c, &host_selection, &selection));
    }
    SX_GO(own_error(c, read_rows(c, decoder, first, rows, selects ? &selection : NULL, &out)));
    SX_GO(conformance_receive(c, &out, &got));
    int64_t wanted = selects ? host_selection.length : rows;
    CONFORM(c, got.length == wanted, "decode: %lld rows of %lld", (long long)got.length, (long long)wanted);
    CONFORM(c, rows_agree(chunk, first, selects ? &host_selection : NULL, &got),
            "decode %s from physical type %d, codec %d, encoding %d, rows from %lld on",
            sx_type_name(chunk->spec.type, name), (int)chunk->spec.physical, (int)chunk->spec.codec,
            (int)chunk->pages[chunk->n_pages - 1].encoding, (long long)first);
out:
    sx_tensor_release(&host_selection);
    sx_tensor_release(&selection);
    sx_tensor_release(&out);
    sx_tensor_release(&got);
    return status;
}

/* Reads and skips of random lengths, to the end. */
static enum sx_status walk(struct conformance *c, const struct chunk *chunk) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    struct sx_decoder *decoder = NULL;
    const struct sx_stored_chunk stored = chunk_stored(c, chunk);
    enum sx_status status = own_error(c, chunk_open(c, &stored, &decoder));
    if (status != SX_OK)
        return status;
    int64_t rows = chunk->host.length, row = 0;
    do {
        int64_t n = 1 + (int64_t)below(c, (uint64_t)(below(c, 3) ? rows / 4 + 1 : rows + 1));
        n = n < rows - row ? n : rows - row;
        if (below(c, 3))
            SX_GO(read_some(c, decoder, chunk, row, n));
        row += n;
    } while (row < rows);
out:
    ops->decoder_destroy(c->stream, decoder);
    return status;
}

/* Status of a read of all rows, and of looking at them. */
static enum sx_status read_damaged(struct conformance *c, const struct chunk *chunk,
                                   const struct sx_stored_chunk *stored) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    struct sx_decoder *decoder = NULL;
    struct sx_tensor out = {0}, host = {0};
    SX_TRY(own_error(c, chunk_open(c, stored, &decoder)));
    enum sx_status status = read_rows(c, decoder, 0, chunk->host.length, NULL, &out);
    CONFORM(c, status == SX_OK || status == SX_FILE, "decode: damaged pages give status %d: %s", (int)status,
            c->stream->error.text);
    if (status == SX_OK)
        status = conformance_receive(c, &out, &host);
    sx_tensor_release(&out);
    sx_tensor_release(&host);
    ops->decoder_destroy(c->stream, decoder);
    return status;
}

/* Some bytes are others than they were: rows come out, or SX_FILE, and so again. What matters is that nothing
 * else is touched. */
static enum sx_status try_damaged(struct conformance *c, struct chunk *chunk) {
    uint8_t *bytes = chunk->owner->data;
    if (chunk->bytes.length == 0)
        return SX_OK;
    for (uint64_t n = 1 + below(c, 4); n > 0; n--)
        bytes[below(c, chunk->bytes.length)] = (uint8_t)conformance_random(c);
    chunk_renew(chunk);
    const struct sx_stored_chunk stored = chunk_stored(c, chunk);
    const enum sx_status status = read_damaged(c, chunk, &stored), again = read_damaged(c, chunk, &stored);
    CONFORM(c, status == again, "decode: damaged pages give status %d, and then %d", (int)status, (int)again);
    memcpy(bytes, chunk->bytes.data, chunk->bytes.length);
    chunk_renew(chunk);
    return status == SX_FILE ? SX_OK : status;
}

static enum sx_status try_chunk(struct conformance *c, const struct column_case *kind,
                                enum sx_parquet_encoding encoding, int64_t rows, double nulls) {
    enum { WALKS = 3, DAMAGES = 8, DAMAGED_ROWS = 1000 };
    struct chunk chunk = {0};
    enum sx_status status;
    if (!conformance_takes(c))
        return SX_OK;
    SX_GO(chunk_make(c, kind, encoding, rows, nulls, &chunk));
    for (int i = 0; i < WALKS; i++)
        SX_GO(walk(c, &chunk));
    for (int i = 0; i < DAMAGES && rows > 0 && rows <= DAMAGED_ROWS; i++)
        SX_GO(try_damaged(c, &chunk));
out:
    chunk_release(&chunk);
    return status;
}

/* Of one page, rows of one tile of the device's alone: what it leaves out of others is no reason to leave out
 * its own. */
static enum sx_status try_tile(struct conformance *c, const struct column_case *kind,
                               enum sx_parquet_encoding encoding, int32_t n_tiles, int32_t tile) {
    if (!conformance_takes(c))
        return SX_OK;
    enum { TILE = 1024 };
    const int64_t rows = (int64_t)n_tiles * TILE + 5;
    char name[SX_TYPE_NAME_BYTES];
    struct chunk chunk = {.is_whole = true};
    struct sx_decoder *decoder = NULL;
    struct sx_tensor host_selection = {0}, selection = {0}, out = {0}, got = {0};
    enum sx_status status;
    SX_GO(chunk_make(c, kind, encoding, rows, 0, &chunk));
    const struct sx_stored_chunk stored = chunk_stored(c, &chunk);
    SX_GO(own_error(c, chunk_open(c, &stored, &decoder)));
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I32, TILE / 2, &host_selection, &c->error));
    for (int32_t i = 0; i < TILE / 2; i++)
        ((int32_t *)host_selection.values)[i] = tile * TILE + 2 * i;
    SX_GO(conformance_send(c, &host_selection, &selection));
    SX_GO(own_error(c, read_rows(c, decoder, 0, rows, &selection, &out)));
    SX_GO(conformance_receive(c, &out, &got));
    CONFORM(c, rows_agree(&chunk, 0, &host_selection, &got),
            "decode %s from physical type %d, encoding %d, of rows in tile %d alone",
            sx_type_name(kind->type, name), (int)kind->physical, (int)encoding, (int)tile);
out:
    if (decoder)
        c->backend->ops.decoder_destroy(c->stream, decoder);
    sx_tensor_release(&host_selection);
    sx_tensor_release(&selection);
    sx_tensor_release(&out);
    sx_tensor_release(&got);
    chunk_release(&chunk);
    return status;
}

static enum sx_status try_tiles(struct conformance *c, const struct column_case *kind,
                                enum sx_parquet_encoding encoding) {
    enum {
        LEAST_ROWS = 60, /* where such inputs are not too large */
        /* of a long page of deltas, which are looked at some hundred tiles at a time */
        LONG_TILES = 1030,
        LONG_ROWS = (LONG_TILES + 1) * 1024
    };
    static const int32_t tiles[] = {507, 508, 509, 1016};
    if (conformance_rows[conformance_n_rows - 1] < LEAST_ROWS)
        return SX_OK;
    for (int32_t tile = 0; tile < 4; tile++)
        SX_TRY(try_tile(c, kind, encoding, 6, tile));
    if (encoding != SX_ENCODING_DELTA_BINARY_PACKED || kind->type.id != SX_TYPE_I64 ||
        !conformance_may_have(LONG_ROWS))
        return SX_OK;
    for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++)
        SX_TRY(try_tile(c, kind, encoding, LONG_TILES, tiles[t]));
    return SX_OK;
}

static enum sx_status try_case(struct conformance *c, const struct column_case *kind) {
    const double null_shares[] = {0, 0.001, 0.3, 1};
    for (int encoding = 0; encoding < 10; encoding++) {
        if (!(kind->encodings >> encoding & 1))
            continue;
        SX_TRY(try_tiles(c, kind, (enum sx_parquet_encoding)encoding));
        for (int r = 0; r < conformance_n_rows; r++)
            for (int n = 0; n < 4; n++)
                SX_TRY(try_chunk(c, kind, (enum sx_parquet_encoding)encoding, conformance_rows[r],
                                 null_shares[n]));
    }
    return SX_OK;
}

void conform_decode(struct conformance *c) {
    for (int i = 0; i < decode_n_cases; i++) {
        if (c->backend->cache_limit) /* none, a small one, or a large one */
            c->backend->cache_limit(c->backend, (size_t[]){0, 20000, 64 << 20}[i % 3], 64 << 20);
        enum sx_status status = try_case(c, &decode_cases[i]);
        char name[SX_TYPE_NAME_BYTES];
        CONFORM(c, status == SX_OK, "decode %s from physical type %d: %s",
                sx_type_name(decode_cases[i].type, name), (int)decode_cases[i].physical, c->error.text);
    }
    conform_decode_columns(c);
    if (c->backend->cache_limit)
        conform_decode_cache(c);
    conform_decode_bad(c);
    conform_decode_strings(c);
}
