/* Decoding of Parquet pages: what the files decode_*.c share.
 * decode_parts.c puts columns together; decode.c walks the rows of a column chunk; decode_page.c makes a page
 * readable; decode_values.c turns stored values into a column's; the others read one encoding each. */
#ifndef SX_BACKEND_CPU_DECODE_H
#define SX_BACKEND_CPU_DECODE_H

#include <string.h>

#include "backend/cpu/cpu.h"
#include "tensor/codec.h"

/* Rows decoded at a time: bounds the scratch memory, and keeps it in the cache. */
enum { DECODE_STEP_ROWS = 8192 };
/* Readable bytes behind a decompressed page, so that vector loads may pass its end. */
enum { DECODE_SLACK_BYTES = 64 };

/* Stored bytes that are read forwards. Loads may go up to `slack` bytes past the end. */
struct decode_bytes {
    const uint8_t *at;
    const uint8_t *end;
    size_t slack;
};

static inline size_t decode_left(const struct decode_bytes *bytes) {
    return (size_t)(bytes->end - bytes->at);
}

static inline uint32_t decode_load_u32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t decode_load_u64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* ULEB128. False when the bytes end or the value passes 64 bits. */
bool decode_varint(struct decode_bytes *bytes, uint64_t *out_value);

/* Memory that grows and is used again. Starts zeroed. */
struct decode_scratch {
    void *memory;
    size_t size_bytes;
};
SX_MUST_CHECK enum sx_status decode_reserve(struct sx_stream *stream, struct decode_scratch *scratch,
                                            size_t size_bytes);

/* ---- RLE and bit-packing hybrid ---- */

struct decode_hybrid {
    struct decode_bytes bytes; /* behind the current run */
    uint32_t width;            /* 0..32 bits */
    bool is_packed;
    uint64_t run_left;     /* values of the current run not yet read */
    uint64_t packed_at;    /* next value in the packed run */
    const uint8_t *packed; /* its first byte */
    size_t packed_bytes;
    uint32_t value; /* of a repeated run */
};

struct decode_hybrid decode_hybrid_make(struct decode_bytes bytes, uint32_t width);
/* One packed run of `count` values. */
struct decode_hybrid decode_hybrid_packed(struct decode_bytes bytes, uint32_t width, uint64_t count);
/* Makes the current run one with values left. False at the end of the bytes, or where they are damaged. */
bool decode_hybrid_run(struct decode_hybrid *hybrid);
/* Number of values read or skipped; fewer than `count` when the bytes end. */
int64_t decode_hybrid_read(struct decode_hybrid *hybrid, int64_t count, uint32_t *out_values);
int64_t decode_hybrid_skip(struct decode_hybrid *hybrid, int64_t count);
/* Width 1, as bytes; adds up the values. */
int64_t decode_hybrid_read_bits(struct decode_hybrid *hybrid, int64_t count, uint8_t *out_values,
                                int64_t *out_sum);
int64_t decode_hybrid_skip_bits(struct decode_hybrid *hybrid, int64_t count, int64_t *out_sum);

/* `count` values of `width` bits (0..32), the first at bit 0; at least that many bits and `slack` bytes more
 * are readable. */
void decode_unpack(const uint8_t *packed, size_t packed_bytes, size_t slack, uint32_t width, int64_t count,
                   uint32_t *out_values);
/* `count` bits from bit number `first` on, as bytes. */
void decode_unpack_bits(const uint8_t *packed, int64_t first, int64_t count, uint8_t *out_values);

/* ---- DELTA_BINARY_PACKED ---- */

enum { DECODE_DELTA_GROUP = 32 };

struct decode_delta {
    struct decode_bytes bytes; /* behind the current miniblock's values */
    uint64_t values_left;      /* in the page, those in `group` included */
    uint64_t miniblock_values;
    uint32_t n_miniblocks; /* per block */
    uint32_t miniblock;    /* next in the block; n_miniblocks: a block begins */
    const uint8_t *widths; /* of the block's miniblocks */
    uint64_t min_delta;
    uint32_t width;
    uint64_t miniblock_left; /* values of the current miniblock not yet in a group */
    const uint8_t *packed;   /* their bits */
    size_t packed_bytes;
    uint64_t last;
    bool is_first; /* the value in the header has not been read */
    uint32_t group_at, group_length;
    uint64_t group[DECODE_DELTA_GROUP];
};

/* NULL, or what is wrong. */
const char *decode_delta_start(struct decode_delta *delta, struct decode_bytes bytes);
/* Where the values end and other bytes begin. */
const char *decode_delta_end(const struct decode_delta *delta, const uint8_t **out_end);
/* `value_bytes` is 4 or 8. */
const char *decode_delta_read(struct decode_delta *delta, int64_t count, size_t value_bytes,
                              void *out_values);
const char *decode_delta_skip(struct decode_delta *delta, int64_t count);

/* ---- values ---- */

/* Reads `n` stored values: dense (`positions` NULL), or those at positions[i] - base (ascending). False when
 * one can't be converted. */
typedef bool decode_convert(const uint8_t *stored, size_t stored_bytes, const int32_t *positions,
                            int32_t base, int64_t n, void *out_values);

struct decode_conversion {
    decode_convert *convert; /* NULL: BYTE_ARRAY, or strings of fixed length */
    bool is_copy;            /* stored and converted bytes are the same */
    const char *problem;     /* why a value can't be converted */
};

/* SX_INTERNAL where the spec asks for a combination that there is none for. */
SX_MUST_CHECK enum sx_status decode_conversion_find(struct sx_stream *stream,
                                                    const struct sx_chunk_spec *spec,
                                                    struct decode_conversion *out_conversion);
/* `n` of `value_bytes` (1, 2, 4, 8, 16) lie dense at `values`: moves them to the rows that are valid; the
 * others become zero. */
void decode_spread(void *values, size_t value_bytes, const uint8_t *valid, int64_t rows, int64_t n);

bool decode_is_ascii(const uint8_t *bytes, size_t length);

/* ---- pages ---- */

struct decode_page {
    bool is_open;
    int index;
    enum sx_parquet_encoding encoding;
    int64_t rows_done;
    struct sx_buffer *buffer; /* keeps what `body` points to; NULL: nobody needs to */
    bool has_levels;
    struct decode_hybrid levels;
    struct decode_bytes body;   /* PLAIN, BYTE_STREAM_SPLIT, DELTA_(LENGTH_)BYTE_ARRAY: values not yet read */
    bool is_ascii;              /* BYTE_ARRAY: all of `body` is; otherwise not known */
    int64_t bit_at;             /* PLAIN BOOLEAN: next bit of body */
    struct decode_hybrid codes; /* dictionary codes, or RLE booleans */
    struct decode_delta delta;  /* values, lengths or prefix lengths */
    struct decode_delta suffixes;
    int64_t split_values; /* BYTE_STREAM_SPLIT: values in body, and the next one */
    int64_t split_at;
};

struct sx_decoder {
    struct sx_chunk_spec spec;
    const struct sx_page *pages;
    int n_pages;
    int dictionary_page; /* -1: none */
    struct sx_buffer *owner;
    size_t stored_bytes, value_bytes;
    struct decode_conversion conversion;
    int64_t page_rows; /* of all data pages */
    int64_t row;       /* next to be read */
    int page_index;    /* page that held the row before; rows of the pages in front: */
    int64_t page_first_row;
    struct decode_page page;
    struct sx_dict *dict;
    struct sx_codecs *codecs;
    struct decode_scratch levels, positions, staged, lengths, previous, reversed;
    size_t previous_bytes; /* DELTA_BYTE_ARRAY: length of the value read last, which is in `previous` */
};

/* SX_FILE: "page N: …". */
enum sx_status decode_error(struct sx_stream *stream, int page, const char *format, ...) SX_PRINTF(3, 4);

/* Decompresses page number `index` and finds its parts. */
SX_MUST_CHECK enum sx_status decode_page_open(struct sx_stream *stream, struct sx_decoder *decoder, int index,
                                              struct decode_page *out_page);
void decode_page_close(struct decode_page *page);

/* ---- reading ---- */

/* Which of the next values of a page are wanted. */
struct decode_pick {
    int64_t n_values;         /* values to pass over, nulls not counted */
    const int32_t *positions; /* NULL: all of them; else those at positions[i] - base */
    int32_t base;
    int64_t n; /* number wanted */
};

/* Where the bytes behind string views are; the caller releases *out_heap. */
SX_MUST_CHECK enum sx_status decode_page_values(struct sx_stream *stream, struct sx_decoder *decoder,
                                                struct decode_page *page, const struct decode_pick *pick,
                                                bool as_codes, void *out_values, struct sx_buffer **out_heap);
SX_MUST_CHECK enum sx_status decode_page_skip(struct sx_stream *stream, struct sx_decoder *decoder,
                                              struct decode_page *page, int64_t n_values);
/* BYTE_ARRAY in PLAIN, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY: views. */
SX_MUST_CHECK enum sx_status decode_byte_arrays(struct sx_stream *stream, struct sx_decoder *decoder,
                                                struct decode_page *page, const struct decode_pick *pick,
                                                struct sx_string *out_views, struct sx_buffer **out_heap);
/* Values of DELTA_BYTE_ARRAY one after another; lengths in decoder->lengths. */
SX_MUST_CHECK enum sx_status decode_front_coded(struct sx_stream *stream, struct sx_decoder *decoder,
                                                struct decode_page *page, int64_t count,
                                                struct sx_buffer **out_bytes);
/* The next `rows` rows; with a selection (positions among them) those only. */
SX_MUST_CHECK enum sx_status decode_read(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows,
                                         const struct sx_tensor *selection, struct sx_tensor *out_column);
SX_MUST_CHECK enum sx_status decode_skip(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows);
/* Reads the dictionary page when that has not been done. */
SX_MUST_CHECK enum sx_status decode_dictionary(struct sx_stream *stream, struct sx_decoder *decoder);

#endif
