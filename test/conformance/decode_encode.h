/* Writes Parquet column chunks: small encoders for the tests of page decoding. */
#ifndef TEST_CONFORMANCE_DECODE_ENCODE_H
#define TEST_CONFORMANCE_DECODE_ENCODE_H

#include "conformance.h"

/* Bytes that grow. Starts zeroed. */
struct bytes {
    uint8_t *data;
    size_t length, room;
};
void bytes_put(struct bytes *bytes, const void *data, size_t length);
void bytes_put_varint(struct bytes *out, uint64_t value); /* of 7 bits a byte, the lowest first */
void bytes_release(struct bytes *bytes);

/* Stored values: each `stored_bytes` long, or (0) of any length. */
struct stored_values {
    size_t stored_bytes;
    int64_t n;
    struct bytes bytes;
    struct bytes ends; /* uint64_t for each, where the length varies */
};
void stored_put(struct stored_values *values, const void *data, size_t length);
const uint8_t *stored_at(const struct stored_values *values, int64_t i, size_t *out_length);
void stored_release(struct stored_values *values);

/* Values [first, end) in one of the encodings, appended. `random` mixes runs and packed groups. */
void encode_values(enum sx_parquet_encoding encoding, bool is_boolean, const struct stored_values *values,
                   int64_t first, int64_t end, uint64_t *random, struct bytes *out);
void encode_hybrid(const uint32_t *values, int64_t n, uint32_t width, uint64_t *random, struct bytes *out);

/* False where the codec has no encoder here (brotli). */
bool encode_compress(enum sx_parquet_codec codec, const uint8_t *plain, size_t length, struct bytes *out);
/* A frame of zstd. level and window_log 0: the default; blocks are no larger than the window. */
struct zstd_frame {
    int level, window_log;
    bool has_checksum;
    bool is_unsized; /* does not tell how many bytes it becomes, as of a stream */
};
void encode_zstd(const struct bytes *plain, const struct zstd_frame *frame, struct bytes *out);

/* decode_bad.c */
void conform_decode_bad(struct conformance *c);

#endif
