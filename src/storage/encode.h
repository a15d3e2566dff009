/* Parquet's encodings, from values to bytes. */
#ifndef SX_STORAGE_ENCODE_H
#define SX_STORAGE_ENCODE_H

#include "storage/bytes.h"
#include "tensor/page.h"

/* The values of a column chunk that are not null, one behind the other, as they are stored. */
struct sx_stored {
    enum sx_parquet_physical physical;
    size_t width;       /* bytes from one to the next: BOOLEAN 1, BYTE_ARRAY those of a view */
    const void *values; /* BYTE_ARRAY: struct sx_string */
};

/* Whether values of that physical type may be encoded so. Dictionary codes are none of these. */
bool sx_encode_can(enum sx_parquet_physical physical, enum sx_parquet_encoding encoding);
/* Appends `count` values from `first` on in an encoding that sx_encode_can allows. */
void sx_encode_values(const struct sx_stored *stored, enum sx_parquet_encoding encoding, int64_t first,
                      int64_t count, struct sx_bytes *out);

/* Codes below 2^bits of a dictionary, with the byte that tells the width in front. */
void sx_encode_codes(const int32_t *codes, int64_t count, unsigned bits, struct sx_bytes *out);
/* Definition levels: 1 for a row that is valid; `valid` NULL: all are. */
void sx_encode_levels(const uint8_t *valid, int64_t rows, struct sx_bytes *out);

/* ---- encode_delta.c ---- */

void sx_encode_delta_i32(const int32_t *values, int64_t count, struct sx_bytes *out);
void sx_encode_delta_i64(const int64_t *values, int64_t count, struct sx_bytes *out);

/* `count` numbers of that many bits each, little-endian, to `at`, which has room for count * bits / 8 bytes;
 * that product has to be whole. */
static inline void sx_pack_bits(const uint64_t *values, unsigned count, unsigned bits, uint8_t *at) {
    uint64_t word = 0;
    unsigned filled = 0;
    for (unsigned i = 0; i < count; i++) {
        word |= values[i] << filled;
        filled += bits;
        if (filled >= 64) {
            __builtin_memcpy(at, &word, sizeof word);
            at += sizeof word;
            filled -= 64;
            word = filled ? values[i] >> (bits - filled) : 0;
        }
    }
    __builtin_memcpy(at, &word, filled / 8);
}

/* Bits that the number needs. */
static inline unsigned sx_bits_of(uint64_t value) {
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

#endif
