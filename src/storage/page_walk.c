#include "storage/page_walk.h"

#include <libdeflate.h>
#include <stdlib.h>

enum page_type { PAGE_DATA = 0, PAGE_INDEX = 1, PAGE_DICTIONARY = 2, PAGE_DATA_V2 = 3, PAGE_NONE = -1 };

/* A page may claim to be larger than its whole chunk only if it is small, since some writers count wrongly.
 */
static const int64_t unsuspicious_bytes = (int64_t)16 << 20, most_page_bytes = (int64_t)1 << 30;

struct header {
    int32_t type;
    int32_t plain_bytes, stored_bytes;
    uint32_t crc;
    bool has_crc;
    bool has_body; /* the part that goes with the type */
    int32_t n_values;
    int32_t encoding;
    int32_t definition_encoding;
    int32_t n_nulls, n_rows; /* V2; -1 elsewhere */
    int32_t definition_bytes, repetition_bytes;
    bool is_compressed;
};

/* ---- decoding a header ---- */

static void read_data_v1(struct sx_thrift *in, struct header *header) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: header->n_values = sx_thrift_i32(in, &field); break;
        case 2: header->encoding = sx_thrift_i32(in, &field); break;
        case 3: header->definition_encoding = sx_thrift_i32(in, &field); break;
        default: sx_thrift_skip(in, &field);
        }
    }
}

static void read_dictionary(struct sx_thrift *in, struct header *header) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: header->n_values = sx_thrift_i32(in, &field); break;
        case 2: header->encoding = sx_thrift_i32(in, &field); break;
        default: sx_thrift_skip(in, &field);
        }
    }
}

static void read_data_v2(struct sx_thrift *in, struct header *header) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: header->n_values = sx_thrift_i32(in, &field); break;
        case 2: header->n_nulls = sx_thrift_i32(in, &field); break;
        case 3: header->n_rows = sx_thrift_i32(in, &field); break;
        case 4: header->encoding = sx_thrift_i32(in, &field); break;
        case 5: header->definition_bytes = sx_thrift_i32(in, &field); break;
        case 6: header->repetition_bytes = sx_thrift_i32(in, &field); break;
        case 7: header->is_compressed = sx_thrift_bool(in, &field); break;
        default: sx_thrift_skip(in, &field);
        }
    }
}

static void read_body(struct sx_thrift *in, const struct sx_thrift_field *field, struct header *header) {
    static const int body_of_type[] = {5, 6, 7, 8};
    bool is_its_own =
        header->type >= PAGE_DATA && header->type <= PAGE_DATA_V2 && body_of_type[header->type] == field->id;
    if (!is_its_own || header->type == PAGE_INDEX) {
        sx_thrift_skip(in, field);
    } else if (sx_thrift_struct(in, field)) {
        header->has_body = true;
        if (header->type == PAGE_DATA_V2)
            read_data_v2(in, header);
        else if (header->type == PAGE_DICTIONARY)
            read_dictionary(in, header);
        else
            read_data_v1(in, header);
    }
}

static void read_header(struct sx_thrift *in, struct header *header) {
    *header = (struct header){
        .type = PAGE_NONE,
        .plain_bytes = -1,
        .stored_bytes = -1,
        .n_values = -1,
        .encoding = -1,
        .definition_encoding = SX_ENCODING_RLE,
        .n_nulls = -1,
        .n_rows = -1,
        .is_compressed = true,
    };
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: header->type = sx_thrift_i32(in, &field); break;
        case 2: header->plain_bytes = sx_thrift_i32(in, &field); break;
        case 3: header->stored_bytes = sx_thrift_i32(in, &field); break;
        case 4:
            header->crc = (uint32_t)sx_thrift_i32(in, &field);
            header->has_crc = true;
            break;
        default: read_body(in, &field, header);
        }
    }
}

/* ---- checks; the texts continue "page N " ---- */

static enum sx_status check_sizes(const struct sx_page_walk *walk, const struct header *header,
                                  size_t left_bytes, struct sx_error *error) {
    if (header->stored_bytes < 0 || header->plain_bytes < 0)
        return sx_error_set(error, SX_FILE, "has no size, or a negative one");
    if ((size_t)header->stored_bytes > left_bytes)
        return sx_error_set(error, SX_FILE, "has %d bytes, but only %zu are left of the column chunk",
                            header->stored_bytes, left_bytes);
    int64_t plain = header->plain_bytes;
    if (plain > most_page_bytes || (plain > walk->chunk->plain_bytes && plain > unsuspicious_bytes))
        return sx_error_set(error, SX_FILE,
                            "claims %lld bytes when decompressed, its column chunk %lld in all",
                            (long long)plain, (long long)walk->chunk->plain_bytes);
    return SX_OK;
}

static enum sx_status check_v2(const struct header *header, struct sx_error *error) {
    if (header->definition_bytes < 0 || header->repetition_bytes < 0)
        return sx_error_set(error, SX_FILE, "has levels of negative length");
    int64_t level_bytes = (int64_t)header->definition_bytes + header->repetition_bytes;
    if (level_bytes > header->stored_bytes || level_bytes > header->plain_bytes)
        return sx_error_set(error, SX_FILE, "has levels of %lld bytes, and %d bytes in all",
                            (long long)level_bytes, header->stored_bytes);
    if (header->n_nulls > header->n_values || (header->n_rows >= 0 && header->n_rows != header->n_values))
        return sx_error_set(error, SX_FILE, "has %d values, %d nulls and %d rows", header->n_values,
                            header->n_nulls, header->n_rows);
    return SX_OK;
}

static enum sx_status check_encoding(const struct sx_page_walk *walk, const struct header *header,
                                     struct sx_error *error) {
    char name[SX_FORMAT_NAME_BYTES];
    if (!sx_encoding_is_known(header->encoding))
        return sx_error_set(error, SX_FILE, "has the encoding %s, which is not supported",
                            sx_encoding_name(header->encoding, name));
    bool is_dictionary = header->type == PAGE_DICTIONARY;
    bool uses_dictionary =
        header->encoding == SX_ENCODING_PLAIN_DICTIONARY || header->encoding == SX_ENCODING_RLE_DICTIONARY;
    if (is_dictionary && header->encoding != SX_ENCODING_PLAIN &&
        header->encoding != SX_ENCODING_PLAIN_DICTIONARY)
        return sx_error_set(error, SX_FILE, "is a dictionary with the encoding %s",
                            sx_encoding_name(header->encoding, name));
    bool all_null = walk->chunk->statistics.n_nulls == walk->chunk->n_values;
    if (!is_dictionary && uses_dictionary && !walk->has_dictionary && !all_null)
        return sx_error_set(error, SX_FILE, "needs a dictionary, and the column chunk has none");
    if (header->type == PAGE_DATA && walk->column->is_optional &&
        header->definition_encoding != SX_ENCODING_RLE &&
        header->definition_encoding != SX_ENCODING_BIT_PACKED)
        return sx_error_set(error, SX_FILE, "has definition levels in the encoding %s",
                            sx_encoding_name(header->definition_encoding, name));
    return SX_OK;
}

static enum sx_status check_order(const struct sx_page_walk *walk, const struct header *header,
                                  struct sx_error *error) {
    if (header->type == PAGE_DICTIONARY) {
        if (walk->has_dictionary || walk->n_values > 0)
            return sx_error_set(error, SX_FILE, "is a dictionary, but not the first page");
    } else if (header->n_values > walk->chunk->n_values - walk->n_values) {
        return sx_error_set(error, SX_FILE, "has %d values, but only %lld are left of the column chunk",
                            header->n_values, (long long)(walk->chunk->n_values - walk->n_values));
    }
    return SX_OK;
}

static enum sx_status check_header(const struct sx_page_walk *walk, const struct header *header,
                                   size_t left_bytes, struct sx_error *error) {
    SX_TRY(check_sizes(walk, header, left_bytes, error));
    if (header->type == PAGE_INDEX)
        return SX_OK;
    if (header->type < PAGE_DATA || header->type > PAGE_DATA_V2 || !header->has_body)
        return sx_error_set(error, SX_FILE,
                            "is of the unknown type %d, or lacks the header that goes with it", header->type);
    if (header->n_values < 0)
        return sx_error_set(error, SX_FILE, "has no number of values, or a negative one");
    SX_TRY(check_order(walk, header, error));
    SX_TRY(check_encoding(walk, header, error));
    return header->type == PAGE_DATA_V2 ? check_v2(header, error) : SX_OK;
}

static enum sx_status check_bytes(const struct sx_page_walk *walk, const struct header *header,
                                  bool is_compressed, const uint8_t *bytes, struct sx_error *error) {
    if (!is_compressed && header->stored_bytes != header->plain_bytes)
        return sx_error_set(error, SX_FILE,
                            "is not compressed, but has %d bytes stored and %d when decompressed",
                            header->stored_bytes, header->plain_bytes);
    if (!header->has_crc)
        return SX_OK;
    if (walk->device_reader) {
        atomic_store_explicit(&walk->column->has_checksums, true, memory_order_relaxed);
        return sx_error_set(error, SX_UNSUPPORTED, "a checksum of bytes in the device's memory");
    }
    uint32_t crc = libdeflate_crc32(0, bytes, (size_t)header->stored_bytes);
    if (crc != header->crc)
        return sx_error_set(error, SX_FILE, "has the CRC checksum %08x, but the file says %08x", crc,
                            header->crc);
    return SX_OK;
}

/* ---- the list ---- */

static struct sx_page *append(struct sx_page_list *list, struct sx_error *error) {
    if (list->count == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 64;
        struct sx_page *pages = realloc(list->pages, (size_t)capacity * sizeof *pages);
        if (!pages) {
            sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a list of pages");
            return NULL;
        }
        list->pages = pages;
        list->capacity = capacity;
    }
    struct sx_page *page = &list->pages[list->count++];
    *page = (struct sx_page){0};
    return page;
}

static enum sx_page_kind kind_of(int32_t type) {
    switch (type) {
    case PAGE_DICTIONARY: return SX_PAGE_DICTIONARY;
    case PAGE_DATA_V2: return SX_PAGE_DATA_V2;
    default: return SX_PAGE_DATA_V1;
    }
}

static enum sx_status add_page(struct sx_page_walk *walk, const struct header *header, const uint8_t *bytes,
                               bool is_compressed, struct sx_error *error) {
    bool is_dictionary = header->type == PAGE_DICTIONARY;
    if (!is_dictionary && header->n_values == 0)
        return SX_OK;
    struct sx_page *page = append(walk->list, error);
    if (!page)
        return SX_OUT_OF_MEMORY;
    page->kind = kind_of(header->type);
    page->encoding = (enum sx_parquet_encoding)header->encoding;
    page->definition_encoding =
        walk->column->is_optional ? (enum sx_parquet_encoding)header->definition_encoding : SX_ENCODING_RLE;
    page->bytes = bytes;
    page->stored_bytes = (uint32_t)header->stored_bytes;
    page->plain_bytes = (uint32_t)header->plain_bytes;
    page->n_values = header->n_values;
    page->definition_bytes = (uint32_t)header->definition_bytes;
    page->repetition_bytes = (uint32_t)header->repetition_bytes;
    page->is_checked = header->has_crc;
    page->is_compressed = is_compressed;
    walk->has_dictionary |= is_dictionary;
    walk->n_values += is_dictionary ? 0 : header->n_values;
    return SX_OK;
}

/* ---- walking ---- */

/* The header at `at`, and how long it is. */
static enum sx_status open_header(const struct sx_page_walk *walk, const uint8_t *at, size_t left_bytes,
                                  struct header *header, size_t *out_bytes, struct sx_error *error) {
    uint8_t copy[SX_DEVICE_PEEK_BYTES];
    const uint8_t *seen = at;
    size_t seen_bytes = left_bytes;
    if (walk->device_reader) {
        seen = copy;
        seen_bytes = left_bytes < sizeof copy ? left_bytes : sizeof copy;
        SX_TRY(sx_device_reader_peek(walk->device_reader, at, seen_bytes, copy, error));
    }
    struct sx_thrift in = sx_thrift_from(seen, seen_bytes);
    read_header(&in, header);
    if (in.wrong)
        return sx_error_set(error, seen_bytes < left_bytes ? SX_UNSUPPORTED : SX_FILE,
                            "page %d: its header is corrupt: %s", walk->n_seen, in.wrong);
    *out_bytes = (size_t)(in.at - seen);
    return SX_OK;
}

/* The page at *at, which is moved behind it. */
static enum sx_status next_page(struct sx_page_walk *walk, const uint8_t **at, const uint8_t *end,
                                struct header *header, struct sx_error *error) {
    size_t header_bytes;
    SX_TRY(open_header(walk, *at, (size_t)(end - *at), header, &header_bytes, error));
    const int number = walk->n_seen++;
    const uint8_t *bytes = *at + header_bytes;
    bool is_compressed = walk->chunk->codec != SX_CODEC_UNCOMPRESSED && header->is_compressed;
    enum sx_status status = check_header(walk, header, (size_t)(end - bytes), error);
    if (status == SX_OK && header->type != PAGE_INDEX)
        status = check_bytes(walk, header, is_compressed, bytes, error);
    if (status == SX_OK && header->type != PAGE_INDEX)
        status = add_page(walk, header, bytes, is_compressed, error);
    if (status == SX_FILE)
        return sx_error_prefix(error, "page %d", number);
    *at = bytes + header->stored_bytes;
    return status;
}

enum sx_status sx_page_walk_chunk(struct sx_page_walk *walk, const uint8_t *bytes, size_t length_bytes,
                                  struct sx_error *error) {
    const uint8_t *at = bytes, *end = bytes + length_bytes;
    struct header header;
    while (walk->n_values < walk->chunk->n_values) {
        if (at == end)
            return sx_error_set(error, SX_FILE,
                                "its %d pages have %lld values, the column chunk should have %lld",
                                walk->n_seen, (long long)walk->n_values, (long long)walk->chunk->n_values);
        SX_TRY(next_page(walk, &at, end, &header, error));
    }
    return SX_OK;
}

enum sx_status sx_page_walk_head(struct sx_page_walk *walk, const uint8_t *bytes, size_t length_bytes,
                                 struct sx_error *error) {
    const uint8_t *at = bytes, *end = bytes + length_bytes;
    struct header header;
    while (at < end && !walk->has_dictionary) {
        SX_TRY(next_page(walk, &at, end, &header, error));
        if (header.type == PAGE_DATA || header.type == PAGE_DATA_V2)
            return sx_error_set(error, SX_FILE, "page %d: the offset index does not have it",
                                walk->n_seen - 1);
    }
    return SX_OK;
}

enum sx_status sx_page_walk_page(struct sx_page_walk *walk, const uint8_t *bytes, size_t length_bytes,
                                 int64_t rows, struct sx_error *error) {
    const uint8_t *at = bytes;
    struct header header;
    SX_TRY(next_page(walk, &at, bytes + length_bytes, &header, error));
    bool is_data = header.type == PAGE_DATA || header.type == PAGE_DATA_V2;
    if (!is_data || header.n_values != rows)
        return sx_error_set(error, SX_FILE, "page %d: it has %d values, but %lld by the offset index",
                            walk->n_seen - 1, is_data ? header.n_values : 0, (long long)rows);
    return SX_OK;
}

enum sx_status sx_page_walk_pruned(struct sx_page_walk *walk, int64_t rows, struct sx_error *error) {
    struct sx_page *page = append(walk->list, error);
    if (!page)
        return SX_OUT_OF_MEMORY;
    page->n_values = rows;
    walk->n_values += rows;
    walk->n_seen++;
    return SX_OK;
}

enum sx_status sx_page_walk_known(struct sx_page_walk *walk, const struct sx_page *pages, int n_pages,
                                  struct sx_error *error) {
    for (int i = 0; i < n_pages; i++) {
        struct sx_page *page = append(walk->list, error);
        if (!page)
            return SX_OUT_OF_MEMORY;
        *page = pages[i];
        const bool is_dictionary = page->kind == SX_PAGE_DICTIONARY;
        walk->has_dictionary |= is_dictionary;
        walk->n_values += is_dictionary ? 0 : page->n_values;
        walk->n_seen++;
    }
    return SX_OK;
}

bool sx_page_peek(const uint8_t *bytes, size_t length_bytes, struct sx_page_peek *out_peek) {
    struct sx_thrift in = sx_thrift_from(bytes, length_bytes);
    struct header header;
    read_header(&in, &header);
    bool is_data = header.type == PAGE_DATA || header.type == PAGE_DATA_V2;
    *out_peek = (struct sx_page_peek){
        .header_bytes = (size_t)(in.at - bytes),
        .stored_bytes = header.stored_bytes,
        .n_values = is_data ? header.n_values : 0,
        .encoding = header.encoding,
        .is_data = is_data,
    };
    return !in.wrong && header.stored_bytes >= 0 && (!is_data || header.n_values >= 0);
}
