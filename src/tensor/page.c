#include "tensor/page.h"

#include <string.h>

const char *sx_page_encoding_name(enum sx_parquet_encoding encoding) {
    static const char *const names[] = {
        [SX_ENCODING_PLAIN] = "PLAIN",
        [SX_ENCODING_PLAIN_DICTIONARY] = "PLAIN_DICTIONARY",
        [SX_ENCODING_RLE] = "RLE",
        [SX_ENCODING_BIT_PACKED] = "BIT_PACKED",
        [SX_ENCODING_DELTA_BINARY_PACKED] = "DELTA_BINARY_PACKED",
        [SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY] = "DELTA_LENGTH_BYTE_ARRAY",
        [SX_ENCODING_DELTA_BYTE_ARRAY] = "DELTA_BYTE_ARRAY",
        [SX_ENCODING_RLE_DICTIONARY] = "RLE_DICTIONARY",
        [SX_ENCODING_BYTE_STREAM_SPLIT] = "BYTE_STREAM_SPLIT",
        [10] = "ALP",
    };
    size_t at = (size_t)encoding;
    return at < sizeof names / sizeof names[0] && names[at] ? names[at] : "unknown";
}

size_t sx_stored_bytes(const struct sx_chunk_spec *spec) {
    switch (spec->physical) {
    case SX_PARQUET_BOOLEAN: return 1;
    case SX_PARQUET_INT32:
    case SX_PARQUET_FLOAT: return 4;
    case SX_PARQUET_INT64:
    case SX_PARQUET_DOUBLE: return 8;
    case SX_PARQUET_INT96: return 12;
    case SX_PARQUET_FIXED_LEN_BYTE_ARRAY: return (size_t)spec->type_length;
    default: return 0;
    }
}

int64_t sx_plain_most(const struct sx_chunk_spec *spec, size_t bytes) {
    enum { LENGTH_BYTES = 4 };
    const size_t width = sx_stored_bytes(spec);
    switch (spec->physical) {
    case SX_PARQUET_BOOLEAN: return (int64_t)bytes * 8;
    case SX_PARQUET_BYTE_ARRAY: return (int64_t)(bytes / LENGTH_BYTES);
    default: return width ? (int64_t)(bytes / width) : 0;
    }
}

/* ---- checks ---- */

static bool fits(enum sx_parquet_encoding encoding, enum sx_parquet_physical physical) {
    switch (encoding) {
    case SX_ENCODING_PLAIN: return true;
    case SX_ENCODING_PLAIN_DICTIONARY:
    case SX_ENCODING_RLE_DICTIONARY: return physical != SX_PARQUET_BOOLEAN;
    case SX_ENCODING_RLE: return physical == SX_PARQUET_BOOLEAN;
    case SX_ENCODING_DELTA_BINARY_PACKED: return physical == SX_PARQUET_INT32 || physical == SX_PARQUET_INT64;
    case SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY: return physical == SX_PARQUET_BYTE_ARRAY;
    case SX_ENCODING_DELTA_BYTE_ARRAY:
        return physical == SX_PARQUET_BYTE_ARRAY || physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY;
    case SX_ENCODING_BYTE_STREAM_SPLIT:
        return physical != SX_PARQUET_BOOLEAN && physical != SX_PARQUET_INT96 &&
               physical != SX_PARQUET_BYTE_ARRAY;
    default: return false;
    }
}

enum sx_status sx_page_check(const struct sx_page *page, int index, enum sx_parquet_physical physical,
                             struct sx_error *error) {
    if (!page->bytes)
        return sx_error_set(error, SX_INTERNAL, "page %d: its rows were pruned and are read", index);
    if (!fits(page->encoding, physical))
        return sx_error_set(error, SX_FILE, "page %d: encoding %s (%d) is not supported for physical type %d",
                            index, sx_page_encoding_name(page->encoding), (int)page->encoding, (int)physical);
    return SX_OK;
}

enum sx_status sx_pages_check(const struct sx_chunk_spec *spec, const struct sx_page *pages, int n_pages,
                              int *out_dictionary_page, int64_t *out_rows, struct sx_error *error) {
    int dictionary_page = -1;
    int64_t rows = 0;
    for (int i = 0; i < n_pages; i++) {
        const struct sx_page *page = &pages[i];
        const bool is_dictionary = page->kind == SX_PAGE_DICTIONARY;
        if (page->n_values < 0 || (!is_dictionary && __builtin_add_overflow(rows, page->n_values, &rows)))
            return sx_error_set(error, SX_FILE, "page %d: %lld values", i, (long long)page->n_values);
        if (!is_dictionary)
            continue;
        if (dictionary_page >= 0)
            return sx_error_set(error, SX_FILE, "page %d: a second dictionary page", i);
        dictionary_page = i;
    }
    if (rows > spec->n_rows)
        return sx_error_set(error, SX_FILE, "the pages hold %lld rows, the row group %lld", (long long)rows,
                            (long long)spec->n_rows);
    *out_dictionary_page = dictionary_page;
    *out_rows = rows;
    return SX_OK;
}

/* ---- levels ---- */

static enum sx_status cut_off(int index, struct sx_error *error) {
    return sx_error_set(error, SX_FILE, "page %d: the definition levels are cut off", index);
}

enum sx_status sx_page_level_encoding(const struct sx_page *page, int index, bool *out_is_bit_packed,
                                      struct sx_error *error) {
    const enum sx_parquet_encoding encoding = page->definition_encoding;
    if (encoding != SX_ENCODING_BIT_PACKED && encoding != SX_ENCODING_RLE)
        return sx_error_set(error, SX_FILE, "page %d: definition levels in encoding %s (%d)", index,
                            sx_page_encoding_name(encoding), (int)encoding);
    *out_is_bit_packed = encoding == SX_ENCODING_BIT_PACKED;
    return SX_OK;
}

enum sx_status sx_page_levels_v1(const struct sx_page *page, int index, const uint8_t *plain,
                                 size_t plain_bytes, struct sx_page_levels *out_levels,
                                 struct sx_error *error) {
    bool is_bit_packed = false;
    SX_TRY(sx_page_level_encoding(page, index, &is_bit_packed, error));
    if (is_bit_packed) {
        const uint64_t count = (uint64_t)page->n_values;
        if (count > plain_bytes * (uint64_t)8)
            return cut_off(index, error);
        *out_levels = (struct sx_page_levels){0, (size_t)((count + 7) / 8), true};
        return SX_OK;
    }
    uint32_t length;
    if (plain_bytes < sizeof length)
        return cut_off(index, error);
    memcpy(&length, plain, sizeof length);
    if (length > plain_bytes - sizeof length)
        return cut_off(index, error);
    *out_levels = (struct sx_page_levels){sizeof length, length, false};
    return SX_OK;
}

enum sx_status sx_page_levels_v2(const struct sx_page *page, int index, struct sx_page_levels *out_levels,
                                 struct sx_error *error) {
    const uint64_t level_bytes = (uint64_t)page->repetition_bytes + page->definition_bytes;
    if (level_bytes > page->stored_bytes || level_bytes > page->plain_bytes)
        return sx_error_set(error, SX_FILE, "page %d: %llu bytes of levels in a page of %u", index,
                            (unsigned long long)level_bytes, page->stored_bytes);
    *out_levels = (struct sx_page_levels){page->repetition_bytes, page->definition_bytes, false};
    return SX_OK;
}
