/* The Parquet writer's parts: Thrift both ways, bits, codecs both ways, column chunks under every budget. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/encode.h"
#include "storage/page_walk.h"
#include "storage/write.h"

static struct sx_pool *pool_of(size_t limit_bytes) {
    struct sx_pool *pool;
    assert(sx_pool_create(limit_bytes, &pool, NULL) == SX_OK);
    return pool;
}

static void close_pool(struct sx_pool *pool) {
    assert(sx_pool_usage(pool).used_bytes == 0);
    sx_pool_destroy(pool);
}

static void test_thrift(void) {
    struct sx_pool *pool = pool_of(0);
    struct sx_bytes bytes = sx_bytes_in(pool, NULL);
    struct sx_thrift_out out = sx_thrift_to(&bytes);
    sx_thrift_put_i32(&out, 1, -3);
    sx_thrift_put_text(&out, 2, "ab");
    sx_thrift_put_list(&out, 4, SX_THRIFT_TRUE, 20);
    for (int i = 0; i < 20; i++)
        sx_thrift_add_bool(&out, i % 3 == 0);
    sx_thrift_begin(&out, 40);
    sx_thrift_put_i64(&out, 7, INT64_MIN);
    sx_thrift_end(&out);
    sx_thrift_put_bool(&out, 41, true);
    sx_thrift_end(&out);
    assert(sx_bytes_status(&bytes) == SX_OK);

    struct sx_thrift in = sx_thrift_from(bytes.data, bytes.size);
    struct sx_thrift_field field = {0}, inner = {0};
    assert(sx_thrift_next(&in, &field) && field.id == 1 && sx_thrift_i32(&in, &field) == -3);
    assert(sx_thrift_next(&in, &field) && field.id == 2);
    struct sx_slice text = sx_thrift_binary(&in, &field);
    assert(text.length_bytes == 2 && memcmp(text.bytes, "ab", 2) == 0);
    assert(sx_thrift_next(&in, &field) && sx_thrift_list(&in, &field, SX_THRIFT_TRUE) == 20);
    for (int i = 0; i < 20; i++)
        assert(sx_thrift_element_bool(&in) == (i % 3 == 0));
    assert(sx_thrift_next(&in, &field) && field.id == 40 && sx_thrift_struct(&in, &field));
    assert(sx_thrift_next(&in, &inner) && inner.id == 7 && sx_thrift_i64(&in, &inner) == INT64_MIN);
    assert(!sx_thrift_next(&in, &inner));
    assert(sx_thrift_next(&in, &field) && field.id == 41 && sx_thrift_bool(&in, &field));
    assert(!sx_thrift_next(&in, &field) && !in.wrong && in.at == in.end);
    sx_bytes_release(&bytes);
    close_pool(pool);
}

static uint64_t bit_at(const uint8_t *bytes, size_t bit) {
    return bytes[bit / 8] >> bit % 8 & 1;
}

static void test_bits(void) {
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t values[32];
        uint8_t packed[32 * 64 / 8 + 8] = {0};
        for (unsigned i = 0; i < 32; i++)
            values[i] = bits ? (i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits) : 0;
        sx_pack_bits(values, 32, bits, packed);
        for (unsigned i = 0; i < 32; i++)
            for (unsigned b = 0; b < bits; b++)
                assert(bit_at(packed, (size_t)i * bits + b) == (values[i] >> b & 1));
        for (size_t at = (size_t)bits * 4; at < sizeof packed; at++)
            assert(packed[at] == 0);
    }
    assert(sx_bits_of(0) == 0 && sx_bits_of(1) == 1 && sx_bits_of(UINT64_MAX) == 64);
}

static void test_codecs(void) {
    static const enum sx_parquet_codec codecs[] = {SX_CODEC_SNAPPY, SX_CODEC_LZ4_RAW, SX_CODEC_ZSTD};
    uint8_t plain[5000], back[5000], stored[20000];
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (uint8_t)(i % 7 * (i / 100));
    for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
        struct sx_compressor *compressor = NULL;
        struct sx_codecs *opener = NULL;
        for (size_t n = 1; n <= sizeof plain; n += 833) {
            size_t room = sx_codec_bound(codecs[c], n);
            assert(room >= n && room <= sizeof stored);
            assert(sx_codec_compress(&compressor, codecs[c], 1, plain, n, stored, &room, NULL) == SX_OK);
            assert(sx_codec_decompress(&opener, codecs[c], stored, room, back, n, NULL) == SX_OK);
            assert(memcmp(plain, back, n) == 0);
        }
        sx_compressor_destroy(compressor);
        sx_codecs_destroy(opener);
    }
    assert(sx_codec_bound(SX_CODEC_GZIP, 10) == 0);
}

/* ---- column chunks ---- */

enum { ROWS = 5000 };

static const struct sx_write_options defaults = {.row_group_rows = ROWS, .pages = 2, .checksums = true};

/* Texts that repeat, every tenth null. */
static struct sx_tensor make_texts(struct sx_pool *pool) {
    struct sx_tensor tensor;
    assert(sx_tensor_create(pool, sx_type_of(SX_TYPE_VARCHAR), ROWS, true, &tensor, NULL) == SX_OK);
    static const char *const words[] = {"", "short", "a text that is longer than a view",
                                        "another such long text"};
    for (int i = 0; i < ROWS; i++) {
        const char *word = words[i * 7 / 3 % 4];
        ((struct sx_string *)tensor.values)[i] = sx_string_make(word, (uint32_t)strlen(word));
        tensor.valid[i] = i % 10 != 3;
    }
    return tensor;
}

/* The pages of a chunk have all rows. */
static void check_pages(const struct sx_write_chunk *chunk) {
    size_t at = 0;
    int64_t rows = 0;
    int pages = 0;
    while (at < chunk->bytes.size) {
        struct sx_page_peek page;
        assert(sx_page_peek(chunk->bytes.data + at, chunk->bytes.size - at, &page));
        at += page.header_bytes + (size_t)page.stored_bytes;
        rows += page.n_values;
        pages += page.is_data;
    }
    assert(at == chunk->bytes.size && rows == ROWS && pages == chunk->n_pages);
}

/* Every budget either suffices or is refused, and nothing is kept. */
static void test_budgets(void) {
    struct sx_write_column column = {.name = "t", .type = sx_type_of(SX_TYPE_VARCHAR), .is_optional = true};
    assert(sx_write_column_store(&column, NULL) == SX_OK);
    struct sx_pool *pool = pool_of(0);
    struct sx_tensor texts = make_texts(pool);
    int refused = 0, done = 0;
    for (size_t limit = 256; done < 3; limit += limit / 4) {
        struct sx_pool *small = pool_of(limit);
        struct sx_write_chunk chunk = {0};
        struct sx_error error = {0};
        struct sx_write_options options = defaults;
        options.codec = done ? SX_CODEC_ZSTD : SX_CODEC_UNCOMPRESSED;
        enum sx_status status =
            sx_write_chunk_encode(&options, &column, &texts, 1, small, NULL, &chunk, &error);
        assert(status == SX_OK || (status == SX_OUT_OF_MEMORY && error.text[0]));
        refused += status != SX_OK;
        done += status == SX_OK;
        if (status == SX_OK) {
            assert(options.codec || (chunk.encoding == SX_ENCODING_RLE_DICTIONARY && chunk.dictionary_bytes));
            check_pages(&chunk);
        }
        sx_write_chunk_release(small, &chunk);
        close_pool(small);
    }
    assert(refused > 10);
    sx_tensor_release(&texts);
    close_pool(pool);
}

static void test_refusals(void) {
    static const enum sx_type_id ids[] = {SX_TYPE_U128, SX_TYPE_INTERVAL};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct sx_error error = {0};
        struct sx_write_column column = {.name = "some_column", .type = sx_type_of(ids[i])};
        assert(sx_write_column_store(&column, &error) == SX_QUERY && strstr(error.text, "some_column"));
    }
    struct sx_write_column wide = {.name = "d", .type = sx_type_decimal(19, 4)};
    assert(sx_write_column_store(&wide, NULL) == SX_OK && wide.type_length == 9);
    wide.type = sx_type_decimal(38, 10);
    assert(sx_write_column_store(&wide, NULL) == SX_OK && wide.type_length == 16);
}

int main(void) {
    test_thrift();
    test_bits();
    test_codecs();
    test_budgets();
    test_refusals();
    puts("ok");
    return 0;
}
