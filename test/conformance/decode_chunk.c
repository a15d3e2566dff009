#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decode_chunk.h"

/* ---- what is tried ---- */

#define BIT(encoding) (1u << SX_ENCODING_##encoding)
#define DICTIONARY    BIT(RLE_DICTIONARY)

#define INT32_ENCODINGS (BIT(PLAIN) | DICTIONARY | BIT(DELTA_BINARY_PACKED) | BIT(BYTE_STREAM_SPLIT))
#define FLOAT_ENCODINGS (BIT(PLAIN) | DICTIONARY | BIT(BYTE_STREAM_SPLIT))
#define BYTES_ENCODINGS (BIT(PLAIN) | DICTIONARY | BIT(DELTA_LENGTH_BYTE_ARRAY) | BIT(DELTA_BYTE_ARRAY))
#define FIXED_ENCODINGS (BIT(PLAIN) | DICTIONARY | BIT(DELTA_BYTE_ARRAY) | BIT(BYTE_STREAM_SPLIT))

const struct column_case decode_cases[] = {
    {SX_PARQUET_BOOLEAN, 0, {SX_TYPE_BOOL, 0, 0}, SX_CONVERT_NONE, BIT(PLAIN) | BIT(RLE)},
    {SX_PARQUET_INT32, 0, {SX_TYPE_I8, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT32, 0, {SX_TYPE_U8, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT32, 0, {SX_TYPE_I16, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT32, 0, {SX_TYPE_U16, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT32, 0, {SX_TYPE_I32, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT32, 0, {SX_TYPE_U32, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT32, 0, {SX_TYPE_DATE, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT32, 0, {SX_TYPE_DECIMAL, 9, 2}, SX_CONVERT_DECIMAL, INT32_ENCODINGS},
    {SX_PARQUET_INT64, 0, {SX_TYPE_I64, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT64, 0, {SX_TYPE_U64, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT64, 0, {SX_TYPE_TIMESTAMP, 0, 0}, SX_CONVERT_NONE, INT32_ENCODINGS},
    {SX_PARQUET_INT64, 0, {SX_TYPE_TIMESTAMP, 0, 0}, SX_CONVERT_MILLIS, INT32_ENCODINGS},
    {SX_PARQUET_INT64, 0, {SX_TYPE_TIMESTAMP, 0, 0}, SX_CONVERT_NANOS, INT32_ENCODINGS},
    {SX_PARQUET_INT64, 0, {SX_TYPE_DECIMAL, 18, 3}, SX_CONVERT_DECIMAL, INT32_ENCODINGS},
    {SX_PARQUET_INT96, 0, {SX_TYPE_TIMESTAMP, 0, 0}, SX_CONVERT_INT96_TIMESTAMP, BIT(PLAIN) | DICTIONARY},
    {SX_PARQUET_FLOAT, 0, {SX_TYPE_F32, 0, 0}, SX_CONVERT_NONE, FLOAT_ENCODINGS},
    {SX_PARQUET_DOUBLE, 0, {SX_TYPE_F64, 0, 0}, SX_CONVERT_NONE, FLOAT_ENCODINGS},
    {SX_PARQUET_FIXED_LEN_BYTE_ARRAY, 2, {SX_TYPE_F32, 0, 0}, SX_CONVERT_F16, FIXED_ENCODINGS},
    {SX_PARQUET_FIXED_LEN_BYTE_ARRAY, 7, {SX_TYPE_DECIMAL, 15, 2}, SX_CONVERT_DECIMAL, FIXED_ENCODINGS},
    {SX_PARQUET_FIXED_LEN_BYTE_ARRAY, 9, {SX_TYPE_DECIMAL, 15, 2}, SX_CONVERT_DECIMAL, FIXED_ENCODINGS},
    {SX_PARQUET_FIXED_LEN_BYTE_ARRAY, 16, {SX_TYPE_DECIMAL, 38, 9}, SX_CONVERT_DECIMAL, FIXED_ENCODINGS},
    {SX_PARQUET_BYTE_ARRAY, 0, {SX_TYPE_DECIMAL, 15, 2}, SX_CONVERT_DECIMAL, BYTES_ENCODINGS},
    {SX_PARQUET_BYTE_ARRAY, 0, {SX_TYPE_DECIMAL, 38, 0}, SX_CONVERT_DECIMAL, BYTES_ENCODINGS},
    {SX_PARQUET_BYTE_ARRAY, 0, {SX_TYPE_VARCHAR, 0, 0}, SX_CONVERT_NONE, BYTES_ENCODINGS},
};
const int decode_n_cases = sizeof decode_cases / sizeof decode_cases[0];

static const enum sx_parquet_codec codecs[] = {SX_CODEC_UNCOMPRESSED, SX_CODEC_SNAPPY, SX_CODEC_GZIP,
                                               SX_CODEC_LZ4,          SX_CODEC_ZSTD,   SX_CODEC_LZ4_RAW};
enum { N_CODECS = sizeof codecs / sizeof codecs[0] };

/* ---- values ---- */

/* Makes the values such that the stored type can hold them. */
static void limit_values(struct conformance *c, const struct column_case *kind, struct sx_tensor *host) {
    for (int64_t i = 0; i < host->length; i++) {
        int64_t *micros = (int64_t *)host->values + i;
        switch (kind->conversion) {
        case SX_CONVERT_MILLIS: *micros = *micros / 1000 * 1000; break;
        case SX_CONVERT_NANOS: *micros %= INT64_C(9000000000000000); break;
        case SX_CONVERT_INT96_TIMESTAMP: *micros %= INT64_C(100000000000000000); break;
        case SX_CONVERT_F16: ((float *)host->values)[i] = (float)below(c, 2048) / 8 - 100; break;
        default: break;
        }
    }
}

static uint16_t half_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t exponent = bits >> 23 & 0xff;
    if (exponent == 0)
        return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits >> 16 & 0x8000) | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

static void put_int96(int64_t micros, uint64_t extra_nanos, struct stored_values *out) {
    const int64_t day_micros = INT64_C(86400000000);
    int64_t day = micros / day_micros - (micros % day_micros < 0);
    uint8_t stored[12];
    uint64_t nanos = (uint64_t)(micros - day * day_micros) * 1000 + extra_nanos;
    uint32_t julian = (uint32_t)(day + 2440588);
    memcpy(stored, &nanos, 8);
    memcpy(stored + 8, &julian, 4);
    stored_put(out, stored, sizeof stored);
}

/* Big-endian, in as few bytes as can be where the length varies. */
static void put_decimal(const struct column_case *kind, sx_i128 value, struct stored_values *out) {
    uint8_t stored[16];
    for (int b = 0; b < 16; b++)
        stored[b] = (uint8_t)(value >> (8 * (15 - b)));
    size_t length = (size_t)kind->type_length;
    if (kind->physical == SX_PARQUET_BYTE_ARRAY) {
        length = 16;
        while (length > 1 && stored[16 - length] == (stored[17 - length] & 0x80 ? 0xff : 0))
            length--;
    }
    stored_put(out, stored + 16 - length, length);
}

static void put_stored(struct conformance *c, const struct column_case *kind, const struct sx_scalar *value,
                       struct stored_values *out) {
    sx_i128 wide = sx_type_phys(kind->type) == SX_PHYS_I128 ? value->v.i128 : value->v.i64;
    uint64_t bits = value->v.u64;
    uint16_t half;
    switch (kind->conversion) {
    case SX_CONVERT_MILLIS: bits = (uint64_t)(value->v.i64 / 1000); break;
    case SX_CONVERT_NANOS:
        bits = (uint64_t)(value->v.i64 * 1000 + (value->v.i64 < 0 ? -1 : 1) * (int64_t)below(c, 1000));
        break;
    case SX_CONVERT_INT96_TIMESTAMP: put_int96(value->v.i64, below(c, 1000), out); return;
    case SX_CONVERT_F16:
        half = half_of(value->v.f32);
        stored_put(out, &half, sizeof half);
        return;
    case SX_CONVERT_DECIMAL:
        if (kind->physical == SX_PARQUET_INT32 || kind->physical == SX_PARQUET_INT64)
            break;
        put_decimal(kind, wide, out);
        return;
    default: break;
    }
    if (kind->type.id == SX_TYPE_VARCHAR)
        stored_put(out, value->v.text.bytes, value->v.text.length_bytes);
    else
        stored_put(out, &bits, out->stored_bytes);
}

static size_t stored_bytes_of(const struct column_case *kind) {
    static const size_t widths[] = {
        [SX_PARQUET_BOOLEAN] = 1,   [SX_PARQUET_INT32] = 4, [SX_PARQUET_INT64] = 8,
        [SX_PARQUET_INT96] = 12,    [SX_PARQUET_FLOAT] = 4, [SX_PARQUET_DOUBLE] = 8,
        [SX_PARQUET_BYTE_ARRAY] = 0};
    return kind->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY ? (size_t)kind->type_length
                                                             : widths[kind->physical];
}

/* ---- pages ---- */

/* The values of a chunk that are not null, and the dictionary that some pages use. */
struct source {
    struct stored_values values;
    struct stored_values entries;
    uint32_t *codes; /* of each value */
    int64_t *before; /* values in front of each row */
};

static void collect(struct conformance *c, const struct chunk *chunk, struct source *source) {
    const struct sx_tensor *host = &chunk->host;
    source->values.stored_bytes = source->entries.stored_bytes = stored_bytes_of(chunk->kind);
    source->before = calloc((size_t)host->length + 1, sizeof *source->before);
    source->codes = calloc((size_t)host->length + 1, sizeof *source->codes);
    assert(source->before && source->codes);
    for (int64_t i = 0; i < host->length; i++) {
        struct sx_scalar value;
        sx_tensor_scalar(host, i, &value);
        source->before[i] = source->values.n;
        if (!value.is_null)
            put_stored(c, chunk->kind, &value, &source->values);
    }
    source->before[host->length] = source->values.n;
}

/* Each value is looked for among the last few entries only: entries need not be distinct. */
static void make_dictionary(struct source *source) {
    enum { LOOK_BACK = 64 };
    for (int64_t i = 0; i < source->values.n; i++) {
        size_t length, entry_length;
        const uint8_t *value = stored_at(&source->values, i, &length);
        int64_t entry = source->entries.n - 1, last = entry - LOOK_BACK;
        for (; entry >= 0 && entry > last; entry--) {
            const uint8_t *other = stored_at(&source->entries, entry, &entry_length);
            if (entry_length == length && (length == 0 || memcmp(other, value, length) == 0))
                break;
        }
        if (entry < 0 || entry == last) {
            entry = source->entries.n;
            stored_put(&source->entries, value, length);
        }
        source->codes[i] = (uint32_t)entry;
    }
}

static void release_source(struct source *source) {
    stored_release(&source->values);
    stored_release(&source->entries);
    free(source->codes);
    free(source->before);
}

static void compress(const struct chunk *chunk, const struct bytes *plain, struct bytes *out) {
    if (chunk->spec.codec == SX_CODEC_ZSTD && chunk->n_pages % 3 == 2)
        encode_zstd(plain, &(struct zstd_frame){.is_unsized = true}, out);
    else if (!encode_compress(chunk->spec.codec, plain->data, plain->length, out))
        assert(false);
}

static void add_page(struct chunk *chunk, struct sx_page page, const struct bytes *levels,
                     const struct bytes *body) {
    struct bytes plain = {0}, stored = {0};
    bool is_v2 = page.kind == SX_PAGE_DATA_V2;
    if (!is_v2)
        bytes_put(&plain, levels->data, levels->length);
    bytes_put(&plain, body->data, body->length);
    page.plain_bytes = (uint32_t)(plain.length + (is_v2 ? levels->length : 0));
    if (is_v2) {
        bytes_put(&stored, levels->data, levels->length);
        page.definition_bytes = (uint32_t)levels->length;
    }
    bool empty = is_v2 && plain.length == 0;
    page.is_compressed = chunk->spec.codec != SX_CODEC_UNCOMPRESSED;
    if (!page.is_compressed)
        bytes_put(&stored, plain.data, plain.length);
    else if (!empty)
        compress(chunk, &plain, &stored);
    page.is_checked = chunk->n_pages % 4 > 0; /* as by a CRC: a device may take its word for it */
    page.stored_bytes = (uint32_t)stored.length;
    chunk->offsets[chunk->n_pages] = chunk->bytes.length;
    chunk->pages[chunk->n_pages++] = page;
    bytes_put(&chunk->bytes, stored.data, stored.length);
    bytes_release(&plain);
    bytes_release(&stored);
}

static void put_levels(struct conformance *c, const struct chunk *chunk, int64_t first, int64_t rows,
                       const struct sx_page *page, struct bytes *out) {
    if (!chunk->spec.optional)
        return;
    uint32_t *levels = calloc((size_t)rows + 1, sizeof *levels);
    assert(levels);
    for (int64_t i = 0; i < rows; i++)
        levels[i] = !chunk->host.valid || chunk->host.valid[first + i];
    struct bytes runs = {0};
    if (page->definition_encoding == SX_ENCODING_BIT_PACKED) {
        for (int64_t i = 0; i < rows; i += 8) {
            uint8_t byte = 0;
            for (int64_t b = 0; b < 8 && i + b < rows; b++)
                byte |= (uint8_t)(levels[i + b] << (7 - b));
            bytes_put(out, &byte, 1);
        }
        free(levels);
        return;
    }
    encode_hybrid(levels, rows, 1, &c->random_state, &runs);
    uint32_t size = (uint32_t)runs.length;
    if (page->kind == SX_PAGE_DATA_V1)
        bytes_put(out, &size, sizeof size);
    bytes_put(out, runs.data, runs.length);
    bytes_release(&runs);
    free(levels);
}

static void put_codes(struct conformance *c, const struct source *source, int64_t first, int64_t end,
                      struct bytes *out) {
    int64_t highest = source->entries.n - 1;
    uint8_t width = highest > 0 ? (uint8_t)(64 - __builtin_clzll((unsigned long long)highest)) : 0;
    width = (uint8_t)(width + below(c, 3));
    bytes_put(out, &width, 1);
    encode_hybrid(source->codes + first, end - first, width, &c->random_state, out);
}

static void add_data_page(struct conformance *c, struct chunk *chunk, const struct source *source,
                          enum sx_parquet_encoding encoding, int64_t first, int64_t rows) {
    struct sx_page page = {.kind = below(c, 2) ? SX_PAGE_DATA_V1 : SX_PAGE_DATA_V2,
                           .encoding = encoding,
                           .definition_encoding = SX_ENCODING_RLE,
                           .n_values = rows};
    if (page.kind == SX_PAGE_DATA_V1 && below(c, 4) == 0)
        page.definition_encoding = SX_ENCODING_BIT_PACKED;
    struct bytes levels = {0}, body = {0};
    int64_t from = source->before[first], to = source->before[first + rows];
    put_levels(c, chunk, first, rows, &page, &levels);
    if (encoding == SX_ENCODING_RLE_DICTIONARY || encoding == SX_ENCODING_PLAIN_DICTIONARY)
        put_codes(c, source, from, to, &body);
    else if (from < to || below(c, 2)) /* nothing, or the encoding's header, where all are null */
        encode_values(encoding, chunk->spec.physical == SX_PARQUET_BOOLEAN, &source->values, from, to,
                      &c->random_state, &body);
    add_page(chunk, page, &levels, &body);
    bytes_release(&levels);
    bytes_release(&body);
}

static void add_dictionary_page(struct chunk *chunk, const struct source *source) {
    struct bytes body = {0};
    const struct bytes none = {0};
    encode_values(SX_ENCODING_PLAIN, false, &source->entries, 0, source->entries.n, NULL, &body);
    add_page(chunk,
             (struct sx_page){
                 .kind = SX_PAGE_DICTIONARY, .encoding = SX_ENCODING_PLAIN, .n_values = source->entries.n},
             &none, &body);
    bytes_release(&body);
}

/* Pages of random lengths; of a dictionary chunk the last ones may be PLAIN. */
static enum sx_status make_pages(struct conformance *c, struct chunk *chunk,
                                 enum sx_parquet_encoding encoding) {
    struct source source = {0};
    collect(c, chunk, &source);
    bool with_dictionary = encoding == SX_ENCODING_RLE_DICTIONARY;
    if (with_dictionary) {
        make_dictionary(&source);
        add_dictionary_page(chunk, &source);
    }
    int64_t rows = chunk->host.length, fall_back = chunk->is_whole || below(c, 2) ? rows : rows / 2;
    for (int64_t row = 0; row < rows || chunk->n_pages == 0;) {
        int64_t n = 1 + (int64_t)below(c, (uint64_t)(below(c, 3) ? rows + 1 : rows / 20 + 1));
        n = n < rows - row && !chunk->is_whole && chunk->n_pages < DECODE_MAX_PAGES - 1 ? n : rows - row;
        bool plain = with_dictionary && row >= fall_back;
        add_data_page(c, chunk, &source, plain ? SX_ENCODING_PLAIN : encoding, row, n);
        row += n;
    }
    release_source(&source);
    struct sx_pool *pool = c->io_pool && below(c, 2) ? c->io_pool : c->pool;
    SX_TRY(sx_buffer_create(pool, chunk->bytes.length, &chunk->owner, &c->error));
    if (chunk->bytes.length)
        memcpy(chunk->owner->data, chunk->bytes.data, chunk->bytes.length);
    for (int i = 0; i < chunk->n_pages; i++)
        chunk->pages[i].bytes = (const uint8_t *)chunk->owner->data + chunk->offsets[i];
    chunk->spans[0] =
        (struct sx_stored_span){chunk->owner->data, chunk->bytes.length, chunk->owner, 0, false, NULL, 0};
    for (int i = 0; i < chunk->n_pages; i++)
        chunk->spans[1 + i] = (struct sx_stored_span){
            chunk->pages[i].bytes, chunk->pages[i].stored_bytes, chunk->owner, 0, false, NULL, 0};
    chunk_renew(chunk);
    return SX_OK;
}

void chunk_renew(struct chunk *chunk) {
    static atomic_uint_fast64_t last_id;
    for (int i = 0; i <= chunk->n_pages; i++)
        chunk->spans[i].cache_id = atomic_fetch_add(&last_id, 1) + 1;
}

void chunk_release(struct chunk *chunk) {
    bytes_release(&chunk->bytes);
    sx_buffer_release(chunk->owner);
    sx_tensor_release(&chunk->host);
}

enum sx_status chunk_make(struct conformance *c, const struct column_case *kind,
                          enum sx_parquet_encoding encoding, int64_t rows, double nulls, struct chunk *out) {
    enum conformance_fill fills[] = {FILL_RANDOM, FILL_FEW_VALUES, FILL_EXTREMES};
    out->kind = kind;
    SX_TRY(conformance_column(c, kind->type, rows, fills[below(c, 3)], nulls, &out->host));
    limit_values(c, kind, &out->host);
    out->spec =
        (struct sx_chunk_spec){.physical = kind->physical,
                               .codec = codecs[below(c, N_CODECS)],
                               .type_length = kind->type_length,
                               .type = kind->type,
                               .conversion = kind->conversion,
                               .optional = nulls > 0 || (!out->is_whole && !out->is_required && below(c, 2)),
                               .keep_dictionary = below(c, 2),
                               .n_rows = rows};
    return make_pages(c, out, encoding);
}

struct sx_stored_chunk chunk_stored(struct conformance *c, const struct chunk *chunk) {
    /* none, the chunk, its pages; or the chunk, and in it the first page */
    const int n_spans[] = {0, 1, chunk->n_pages, chunk->n_pages > 0 ? 2 : 1};
    const uint64_t kind = below(c, 4);
    return (struct sx_stored_chunk){.spec = chunk->spec,
                                    .pages = chunk->pages,
                                    .n_pages = chunk->n_pages,
                                    .spans = &chunk->spans[kind == 2],
                                    .n_spans = n_spans[kind],
                                    .owner = chunk->owner};
}

enum sx_status chunk_open(struct conformance *c, const struct sx_stored_chunk *stored,
                          struct sx_decoder **out) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    SX_TRY(ops->decoder_create(c->stream, stored, out));
    if (below(c, 2))
        return SX_OK;
    const enum sx_status status = ops->decode_ahead(c->stream, out, 1);
    if (status != SX_OK) {
        ops->decoder_destroy(c->stream, *out);
        *out = NULL;
    }
    return status;
}

enum sx_status chunk_select(struct conformance *c, int64_t rows, struct sx_tensor *out) {
    SX_TRY(sx_tensor_create_index(c->pool, SX_TYPE_I32, rows, out, &c->error));
    uint64_t sparse = 1 + below(c, below(c, 2) ? 200 : 3);
    int32_t *positions = out->values;
    /* now and then of a part of the rows, so that whole tiles are of no use */
    const bool is_part = rows > 0 && below(c, 2);
    const int64_t first = is_part && below(c, 2) ? (int64_t)below(c, (uint64_t)rows) : 0;
    const int64_t end = is_part ? first + 1 + (int64_t)below(c, (uint64_t)(rows - first)) : rows;
    out->length = 0;
    for (int32_t i = (int32_t)first; i < end; i++)
        if (below(c, sparse) == 0)
            positions[out->length++] = i;
    return SX_OK;
}
