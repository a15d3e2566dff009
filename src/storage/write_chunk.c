/* One column chunk: its values become pages. */
#include <libdeflate.h>
#include <string.h>

#include "storage/write_values.h"

enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2, PAGE_DATA_V2 = 3 };

enum {
    ROWS_STEP = 256,       /* pages have a multiple of so many rows, */
    LEAST_PAGE_ROWS = 2048 /* and at least these, unless their texts are long */
};
static const int64_t most_text_bytes = (int64_t)16 << 20; /* of a page with more than one value */
static const size_t most_page_bytes = (size_t)1 << 30;
static const size_t most_reserved_bytes = (size_t)256 << 20;

struct chunk_writer {
    const struct sx_write_options *options;
    const struct sx_write_column *column;
    const atomic_bool *cancel;
    struct sx_error *error;
    struct sx_pool *pool;
    struct sx_write_values values;
    struct sx_bytes spans;  /* struct sx_write_span */
    struct sx_bytes ranges; /* struct sx_write_range, one a page */
    struct sx_write_packer packer;
    struct sx_bytes body;       /* scratch: a page's values, V1: its levels too */
    struct sx_bytes levels;     /* scratch: a V2 page's levels */
    struct sx_bytes dictionary; /* the dictionary's page, header included */
    struct sx_write_chunk chunk;
};

/* ---- where pages begin ---- */

static int64_t rows_of_page(const struct sx_write_options *options, int64_t rows) {
    int64_t page = rows / options->pages / ROWS_STEP * ROWS_STEP;
    page += page * options->pages < rows ? ROWS_STEP : 0;
    return page < LEAST_PAGE_ROWS ? LEAST_PAGE_ROWS : page;
}

static int64_t text_bytes(const struct sx_write_values *values, int64_t value) {
    const struct sx_string *texts = values->memory, *entries = values->dictionary.memory;
    if (values->stored.physical != SX_PARQUET_BYTE_ARRAY)
        return 0;
    return texts ? texts[value].length_bytes : entries[values->codes[value]].length_bytes;
}

/* The rows from span->row on that make a page. */
static void measure_span(const struct sx_write_values *values, int64_t page_rows,
                         struct sx_write_span *span) {
    int64_t bytes = 0;
    for (int64_t row = span->row; row < values->rows && span->rows < page_rows; row++, span->rows++) {
        if (values->valid && !values->valid[row])
            continue;
        bytes += text_bytes(values, span->value + span->values);
        if (bytes > most_text_bytes && span->values > 0)
            return;
        span->values++;
    }
}

static enum sx_status make_spans(struct chunk_writer *writer) {
    const struct sx_write_values *values = &writer->values;
    const int64_t page_rows = rows_of_page(writer->options, values->rows);
    struct sx_write_span span = {0};
    while (span.row < values->rows) {
        measure_span(values, page_rows, &span);
        sx_bytes_append(&writer->spans, &span, sizeof span);
        span = (struct sx_write_span){.row = span.row + span.rows, .value = span.value + span.values};
    }
    return sx_bytes_status(&writer->spans);
}

static const struct sx_write_span *span_at(const struct chunk_writer *writer, int page) {
    return (const struct sx_write_span *)(const void *)writer->spans.data + page;
}

static int n_spans(const struct chunk_writer *writer) {
    return (int)(writer->spans.size / sizeof(struct sx_write_span));
}

/* ---- headers ---- */

/* What a page is stored as. */
struct stored_page {
    const uint8_t *bytes; /* behind the levels of a V2 page */
    size_t length_bytes;
    size_t plain_bytes; /* of `bytes`, decompressed */
    bool is_compressed;
};

static void put_sizes(struct chunk_writer *writer, struct sx_thrift_out *out, int type,
                      const struct stored_page *page) {
    const struct sx_bytes *levels = &writer->levels;
    sx_thrift_put_i32(out, 1, type);
    sx_thrift_put_i32(out, 2, (int32_t)(levels->size + page->plain_bytes));
    sx_thrift_put_i32(out, 3, (int32_t)(levels->size + page->length_bytes));
    if (writer->options->checksums) {
        uint32_t crc = libdeflate_crc32(0, levels->data, levels->size);
        crc = libdeflate_crc32(crc, page->bytes, page->length_bytes);
        sx_thrift_put_i32(out, 4, (int32_t)crc);
    }
}

static void put_header_v1(struct sx_thrift_out *out, const struct sx_write_span *span,
                          enum sx_parquet_encoding encoding) {
    sx_thrift_begin(out, 5);
    sx_thrift_put_i32(out, 1, (int32_t)span->rows);
    sx_thrift_put_i32(out, 2, (int32_t)encoding);
    sx_thrift_put_i32(out, 3, SX_ENCODING_RLE);
    sx_thrift_put_i32(out, 4, SX_ENCODING_RLE);
    sx_thrift_end(out);
}

static void put_header_v2(struct sx_thrift_out *out, const struct sx_write_span *span,
                          enum sx_parquet_encoding encoding, size_t levels_bytes, bool is_compressed) {
    sx_thrift_begin(out, 8);
    sx_thrift_put_i32(out, 1, (int32_t)span->rows);
    sx_thrift_put_i32(out, 2, (int32_t)(span->rows - span->values));
    sx_thrift_put_i32(out, 3, (int32_t)span->rows);
    sx_thrift_put_i32(out, 4, (int32_t)encoding);
    sx_thrift_put_i32(out, 5, (int32_t)levels_bytes);
    sx_thrift_put_i32(out, 6, 0);
    sx_thrift_put_bool(out, 7, is_compressed);
    sx_thrift_end(out);
}

static void put_header_dictionary(struct sx_thrift_out *out, int32_t n_entries) {
    sx_thrift_begin(out, 7);
    sx_thrift_put_i32(out, 1, n_entries);
    sx_thrift_put_i32(out, 2, SX_ENCODING_PLAIN);
    sx_thrift_put_bool(out, 3, false);
    sx_thrift_end(out);
}

/* ---- pages ---- */

/* `must`: a page that says nothing of its compression has to have the chunk's. */
static enum sx_status pack_body(struct chunk_writer *writer, bool must, struct stored_page *page) {
    const struct sx_bytes *body = &writer->body;
    *page = (struct stored_page){body->data, body->size, body->size, false};
    SX_TRY(sx_bytes_status(body));
    if (body->size > most_page_bytes)
        return sx_error_set(writer->error, SX_UNSUPPORTED,
                            "column %s: a page of %zu bytes is more than readers take; values are too long",
                            writer->column->name, body->size);
    bool smaller = false;
    if (writer->packer.codec != SX_CODEC_UNCOMPRESSED)
        SX_TRY(sx_write_pack(&writer->packer, body->data, body->size, &smaller, writer->error));
    if (smaller || (must && writer->packer.codec != SX_CODEC_UNCOMPRESSED && body->size)) {
        page->bytes = writer->packer.packed.data;
        page->length_bytes = writer->packer.packed.size;
        page->is_compressed = true;
    }
    return SX_OK;
}

static void encode_body(struct chunk_writer *writer, const struct sx_write_span *span) {
    if (writer->chunk.encoding == SX_ENCODING_RLE_DICTIONARY)
        sx_encode_codes(writer->values.codes + span->value, span->values,
                        sx_write_dictionary_bits(&writer->values.dictionary), &writer->body);
    else
        sx_encode_values(&writer->values.stored, writer->chunk.encoding, span->value, span->values,
                         &writer->body);
}

/* The levels of a V1 page stand in its body, behind their length. */
static void encode_levels(struct chunk_writer *writer, const struct sx_write_span *span) {
    const uint8_t *valid = writer->values.valid ? writer->values.valid + span->row : NULL;
    if (!writer->column->is_optional)
        return;
    if (!writer->options->data_page_v1) {
        sx_encode_levels(valid, span->rows, &writer->levels);
        return;
    }
    sx_bytes_append_u32(&writer->body, 0);
    sx_encode_levels(valid, span->rows, &writer->body);
    if (writer->body.failed)
        return;
    uint32_t length_bytes = (uint32_t)(writer->body.size - sizeof length_bytes);
    memcpy(writer->body.data, &length_bytes, sizeof length_bytes);
}

/* Header, levels and body to `out`. Returns the bytes that it takes. */
static size_t append_page(struct chunk_writer *writer, const struct sx_write_span *span,
                          const struct stored_page *page, struct sx_bytes *out) {
    const bool is_v1 = writer->options->data_page_v1;
    const size_t before = out->size;
    struct sx_thrift_out thrift = sx_thrift_to(out);
    put_sizes(writer, &thrift, !span ? PAGE_DICTIONARY : is_v1 ? PAGE_DATA : PAGE_DATA_V2, page);
    if (!span)
        put_header_dictionary(&thrift, writer->values.dictionary.n_entries);
    else if (is_v1)
        put_header_v1(&thrift, span, writer->chunk.encoding);
    else
        put_header_v2(&thrift, span, writer->chunk.encoding, writer->levels.size, page->is_compressed);
    sx_thrift_end(&thrift);
    writer->chunk.plain_bytes += (int64_t)(out->size - before + writer->levels.size + page->plain_bytes);
    sx_bytes_append(out, writer->levels.data, writer->levels.size);
    sx_bytes_append(out, page->bytes, page->length_bytes);
    return out->size - before;
}

/* Room for all pages if they are like the first one. */
static void reserve_like(struct sx_write_chunk *chunk, size_t page_bytes) {
    size_t bytes = (page_bytes + page_bytes / 32) * (size_t)chunk->n_pages;
    sx_bytes_reserve(&chunk->bytes, bytes < most_reserved_bytes ? bytes : most_reserved_bytes);
}

static enum sx_status write_page(struct chunk_writer *writer, int number) {
    const struct sx_write_span *span = span_at(writer, number);
    struct stored_page page;
    if (writer->cancel && atomic_load_explicit(writer->cancel, memory_order_relaxed))
        return sx_error_set(writer->error, SX_CANCELLED, "the query was cancelled");
    writer->body.size = writer->levels.size = 0;
    encode_levels(writer, span);
    encode_body(writer, span);
    SX_TRY(sx_bytes_status(&writer->levels));
    SX_TRY(pack_body(writer, writer->options->data_page_v1, &page));
    if (page.is_compressed)
        writer->chunk.codec = writer->packer.codec;
    size_t stored_bytes = append_page(writer, span, &page, &writer->chunk.bytes);
    if (number == 0)
        reserve_like(&writer->chunk, stored_bytes);
    writer->chunk.pages[number] = (struct sx_write_page){(uint32_t)stored_bytes, (uint32_t)span->rows};
    struct sx_write_range range = {.n_nulls = span->rows - span->values, .rows = span->rows};
    sx_write_range_of(&writer->values, span->value, span->values, &range);
    sx_bytes_append(&writer->ranges, &range, sizeof range);
    return sx_bytes_status(&writer->ranges);
}

/* Where no data page became smaller and the dictionary neither, the chunk has no codec. */
static enum sx_status write_dictionary(struct chunk_writer *writer) {
    const struct sx_write_dictionary *dictionary = &writer->values.dictionary;
    struct stored_page page;
    if (writer->chunk.encoding != SX_ENCODING_RLE_DICTIONARY)
        return SX_OK;
    writer->body.size = writer->levels.size = 0;
    sx_encode_values(&dictionary->entries, SX_ENCODING_PLAIN, 0, dictionary->n_entries, &writer->body);
    SX_TRY(pack_body(writer, writer->chunk.codec != SX_CODEC_UNCOMPRESSED, &page));
    if (page.is_compressed)
        writer->chunk.codec = writer->packer.codec;
    writer->chunk.dictionary_bytes = append_page(writer, NULL, &page, &writer->dictionary);
    return sx_bytes_status(&writer->dictionary);
}

/* The dictionary's page is known last and stands first. */
static enum sx_status put_dictionary_in_front(struct chunk_writer *writer) {
    struct sx_bytes *bytes = &writer->chunk.bytes;
    const size_t behind = bytes->size;
    if (writer->chunk.dictionary_bytes == 0)
        return SX_OK;
    if (!sx_bytes_take(bytes, writer->dictionary.size))
        return SX_OUT_OF_MEMORY;
    memmove(bytes->data + writer->dictionary.size, bytes->data, behind);
    memcpy(bytes->data, writer->dictionary.data, writer->dictionary.size);
    return SX_OK;
}

static enum sx_status write_bounds(struct chunk_writer *writer) {
    struct sx_write_chunk *chunk = &writer->chunk;
    const struct sx_write_range *ranges = (const void *)writer->ranges.data;
    struct sx_write_range all = {0};
    for (int i = 0; i < chunk->n_pages; i++)
        sx_write_range_join(writer->column, &all, &ranges[i]);
    sx_write_statistics(writer->column, &all, &chunk->statistics);
    sx_write_column_index(writer->column, ranges, chunk->n_pages, &chunk->column_index);
    SX_TRY(sx_bytes_status(&chunk->statistics));
    return sx_bytes_status(&chunk->column_index);
}

static enum sx_status encode(struct chunk_writer *writer, const struct sx_tensor *pieces, int64_t n) {
    struct sx_write_chunk *chunk = &writer->chunk;
    const enum sx_write_encoding wanted = writer->options->encoding;
    const bool keep_codes = wanted == SX_WRITE_AUTO || wanted == SX_WRITE_DICTIONARY;
    SX_TRY(sx_write_values_load(&writer->values, pieces, n, keep_codes, writer->error));
    SX_TRY(make_spans(writer));
    chunk->n_values = writer->values.rows;
    chunk->n_pages = n_spans(writer);
    void *pages;
    SX_TRY(sx_pool_alloc(writer->pool, (size_t)chunk->n_pages * sizeof *chunk->pages, &pages, writer->error));
    chunk->pages = pages;
    SX_TRY(sx_write_choose(writer->options, &writer->values, span_at(writer, 0), chunk->n_pages,
                           &writer->packer, &chunk->encoding, writer->error));
    for (int i = 0; i < chunk->n_pages; i++)
        SX_TRY(write_page(writer, i));
    SX_TRY(sx_bytes_status(&chunk->bytes));
    SX_TRY(write_dictionary(writer));
    SX_TRY(put_dictionary_in_front(writer));
    SX_TRY(write_bounds(writer));
    sx_bytes_trim(&chunk->bytes);
    return SX_OK;
}

static struct chunk_writer writer_for(const struct sx_write_options *options,
                                      const struct sx_write_column *column, struct sx_pool *pool,
                                      struct sx_error *error) {
    const struct sx_bytes bytes = sx_bytes_in(pool, error);
    struct chunk_writer writer = {
        .options = options,
        .column = column,
        .error = error,
        .pool = pool,
        .values = {.pool = pool, .column = column},
        .packer = {.codec = options->codec, .level = options->codec_level, .packed = bytes},
    };
    writer.spans = writer.ranges = writer.body = writer.levels = writer.dictionary = bytes;
    writer.chunk.bytes = writer.chunk.column_index = writer.chunk.statistics = bytes;
    return writer;
}

enum sx_status sx_write_chunk_encode(const struct sx_write_options *options,
                                     const struct sx_write_column *column, const struct sx_tensor *pieces,
                                     int64_t n, struct sx_pool *pool, const atomic_bool *cancel,
                                     struct sx_write_chunk *out_chunk, struct sx_error *error) {
    struct chunk_writer writer = writer_for(options, column, pool, error);
    writer.cancel = cancel;
    enum sx_status status = encode(&writer, pieces, n);
    sx_write_values_release(&writer.values);
    struct sx_bytes *const scratch[] = {&writer.spans, &writer.ranges, &writer.packer.packed,
                                        &writer.body,  &writer.levels, &writer.dictionary};
    for (size_t i = 0; i < sizeof scratch / sizeof(*scratch); i++)
        sx_bytes_release(scratch[i]);
    sx_compressor_destroy(writer.packer.compressor);
    writer.chunk.bytes.error = writer.chunk.column_index.error = writer.chunk.statistics.error = NULL;
    if (status == SX_OK)
        *out_chunk = writer.chunk;
    else
        sx_write_chunk_release(pool, &writer.chunk);
    return status;
}

void sx_write_chunk_release(struct sx_pool *pool, struct sx_write_chunk *chunk) {
    struct sx_bytes *const kept[] = {&chunk->bytes, &chunk->column_index, &chunk->statistics};
    for (size_t i = 0; i < sizeof kept / sizeof(*kept); i++)
        if (kept[i]->pool)
            sx_bytes_release(kept[i]);
    if (chunk->pages)
        sx_pool_free(pool, chunk->pages, (size_t)chunk->n_pages * sizeof *chunk->pages);
    *chunk = (struct sx_write_chunk){0};
}
