/* What a backend needs to decode the pages of one Parquet column chunk. Filled by src/storage, which has
 * checked the headers: every page's bytes lie within the chunk, sizes and counts are not negative, CRCs hold
 * where present. */
#ifndef SX_TENSOR_PAGE_H
#define SX_TENSOR_PAGE_H

#include "tensor/tensor.h"

/* Numbers are the format's own (parquet.thrift). */
enum sx_parquet_physical {
    SX_PARQUET_BOOLEAN = 0,
    SX_PARQUET_INT32 = 1,
    SX_PARQUET_INT64 = 2,
    SX_PARQUET_INT96 = 3,
    SX_PARQUET_FLOAT = 4,
    SX_PARQUET_DOUBLE = 5,
    SX_PARQUET_BYTE_ARRAY = 6,
    SX_PARQUET_FIXED_LEN_BYTE_ARRAY = 7
};

enum sx_parquet_encoding {
    SX_ENCODING_PLAIN = 0,
    SX_ENCODING_PLAIN_DICTIONARY = 2,
    SX_ENCODING_RLE = 3,
    SX_ENCODING_BIT_PACKED = 4,
    SX_ENCODING_DELTA_BINARY_PACKED = 5,
    SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY = 6,
    SX_ENCODING_DELTA_BYTE_ARRAY = 7,
    SX_ENCODING_RLE_DICTIONARY = 8,
    SX_ENCODING_BYTE_STREAM_SPLIT = 9
};

enum sx_parquet_codec {
    SX_CODEC_UNCOMPRESSED = 0,
    SX_CODEC_SNAPPY = 1,
    SX_CODEC_GZIP = 2,
    SX_CODEC_BROTLI = 4,
    SX_CODEC_LZ4 = 5,
    SX_CODEC_ZSTD = 6,
    SX_CODEC_LZ4_RAW = 7
};

/* How stored values become values of the column's type. */
enum sx_conversion {
    SX_CONVERT_NONE,    /* same representation, or narrowing of INT32 to 8 and 16 bits, signed or unsigned */
    SX_CONVERT_DECIMAL, /* INT32, INT64, or big-endian two's complement bytes */
    SX_CONVERT_INT96_TIMESTAMP, /* nanoseconds of day, Julian day */
    SX_CONVERT_MILLIS,          /* to microseconds */
    SX_CONVERT_NANOS,           /* to microseconds, towards zero, as DuckDB casts */
    SX_CONVERT_F16
};

enum sx_page_kind { SX_PAGE_DATA_V1, SX_PAGE_DATA_V2, SX_PAGE_DICTIONARY };

struct sx_page {
    enum sx_page_kind kind;
    enum sx_parquet_encoding encoding;
    enum sx_parquet_encoding definition_encoding; /* V1: RLE or BIT_PACKED */
    const uint8_t
        *bytes; /* stored bytes, where the span's are; NULL: page pruned, its rows are only ever skipped */
    uint32_t stored_bytes;
    uint32_t plain_bytes;      /* after decompression, levels included */
    int64_t n_values;          /* nulls included; flat columns: rows */
    uint32_t definition_bytes; /* V2: stored in front, never compressed */
    uint32_t repetition_bytes; /* V2 */
    bool is_compressed;
    bool is_checked; /* it has a CRC, which holds */
};

struct sx_chunk_spec {
    enum sx_parquet_physical physical;
    enum sx_parquet_codec codec;
    int32_t type_length; /* FIXED_LEN_BYTE_ARRAY */
    struct sx_type type; /* of the tensors that come out */
    enum sx_conversion conversion;
    bool optional;        /* max definition level 1, else 0 */
    bool keep_dictionary; /* VARCHAR pages in dictionary encoding come out as SX_DICT */
    int64_t n_rows;       /* of the row group */
};

/* Bytes of a file as they were read, in one piece. */
struct sx_stored_span {
    const uint8_t *bytes;
    size_t length_bytes;
    struct sx_buffer *owner; /* the buffer that they are in; borrowed */
    uint64_t cache_id;       /* spans with one id have the same bytes, now and later; 0: not known */
    bool on_device;          /* the bytes are in the backend's memory, not the host's */
    void *held;              /* of the backend's cache (cache_hold): the bytes are not there, but this is */
    int n_readers; /* readers that spans with this id have, after which a cache may drop them; 0: not known */
};

/* A column chunk. */
struct sx_stored_chunk {
    struct sx_chunk_spec spec;
    const struct sx_page *pages; /* dictionary page first if there is one; pruned pages have bytes NULL */
    int n_pages;
    /* What all pages' bytes lie in, by address; none: each page's bytes are a span of their own. */
    const struct sx_stored_span *spans;
    int n_spans;
    struct sx_buffer *owner; /* keeps the pages' bytes; may be NULL for memory that outlives all use */
};

/* ---- page.c: what every backend has to know of a page ---- */

const char *sx_page_encoding_name(enum sx_parquet_encoding encoding);
static inline bool sx_encoding_is_dictionary(enum sx_parquet_encoding encoding) {
    return encoding == SX_ENCODING_PLAIN_DICTIONARY || encoding == SX_ENCODING_RLE_DICTIONARY;
}
/* Bytes of a stored value of fixed length; BOOLEAN: 1 (unpacked). 0: BYTE_ARRAY. */
size_t sx_stored_bytes(const struct sx_chunk_spec *spec);
/* Most values that so many bytes of PLAIN may be. */
int64_t sx_plain_most(const struct sx_chunk_spec *spec, size_t bytes);
/* SX_INTERNAL where the page was pruned, SX_FILE where its encoding is not for the physical type. `index` is
 * the page's number in the chunk, for the text: as below. */
SX_MUST_CHECK enum sx_status sx_page_check(const struct sx_page *page, int index,
                                           enum sx_parquet_physical physical, struct sx_error *error);
/* No page is out of range, at most one is a dictionary. *out_dictionary_page: -1 where there is none;
 * *out_rows: of all data pages. */
SX_MUST_CHECK enum sx_status sx_pages_check(const struct sx_chunk_spec *spec, const struct sx_page *pages,
                                            int n_pages, int *out_dictionary_page, int64_t *out_rows,
                                            struct sx_error *error);

/* Definition levels: `length` bytes behind `skip` others; then the values. */
struct sx_page_levels {
    size_t skip;
    size_t length;
    bool is_bit_packed; /* old writers': one bit each, the first in the highest; else the hybrid */
};
/* Of a V1 page that has levels. */
SX_MUST_CHECK enum sx_status sx_page_level_encoding(const struct sx_page *page, int index,
                                                    bool *out_is_bit_packed, struct sx_error *error);
/* Of a V1 page that has levels; `plain` is the page after decompression. */
SX_MUST_CHECK enum sx_status sx_page_levels_v1(const struct sx_page *page, int index, const uint8_t *plain,
                                               size_t plain_bytes, struct sx_page_levels *out_levels,
                                               struct sx_error *error);
/* Of a V2 page, in its stored bytes. */
SX_MUST_CHECK enum sx_status sx_page_levels_v2(const struct sx_page *page, int index,
                                               struct sx_page_levels *out_levels, struct sx_error *error);

#endif
