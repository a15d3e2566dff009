#include "storage/encode.h"

#include <string.h>

enum { GROUP = 8 };

/* ---- the hybrid ---- */

/* A reader on a GPU goes from run to run, one access to memory each, so a run has to save some bytes. */
static int64_t least_run_of(unsigned bits) {
    enum { LEAST_BITS = 64 };
    const int64_t run = bits ? (LEAST_BITS + (int64_t)bits - 1) / (int64_t)bits : GROUP;
    return run > GROUP ? run : GROUP;
}

static void put_group(const uint64_t group[GROUP], unsigned bits, struct sx_bytes *out) {
    uint8_t *at = sx_bytes_take(out, bits);
    if (at)
        sx_pack_bits(group, GROUP, bits, at);
}

static void put_run(uint64_t value, int64_t run, unsigned bits, struct sx_bytes *out) {
    sx_bytes_append_varint(out, (uint64_t)run << 1);
    sx_bytes_append(out, &value, (bits + 7) / 8);
}

#define VALUE int32_t
#define NAME  put_codes
#include "storage/encode_hybrid.tmpl.h"

#define VALUE uint8_t
#define NAME  put_flags
#include "storage/encode_hybrid.tmpl.h"

void sx_encode_codes(const int32_t *codes, int64_t count, unsigned bits, struct sx_bytes *out) {
    sx_bytes_append_byte(out, (uint8_t)bits);
    put_codes(codes, count, bits, out);
}

void sx_encode_levels(const uint8_t *valid, int64_t rows, struct sx_bytes *out) {
    if (valid)
        put_flags(valid, rows, 1, out);
    else
        put_run(1, rows, 1, out);
}

/* ---- values ---- */

static void put_booleans_plain(const uint8_t *values, int64_t count, struct sx_bytes *out) {
    uint8_t *at = sx_bytes_take(out, (size_t)(count + 7) / 8);
    for (int64_t first = 0; at && first < count; first += 8) {
        uint8_t byte = 0;
        for (int i = 0; i < 8 && first + i < count; i++)
            byte |= (uint8_t)((values[first + i] != 0) << i);
        *at++ = byte;
    }
}

static void put_booleans_rle(const uint8_t *values, int64_t count, struct sx_bytes *out) {
    size_t length_at = out->size;
    sx_bytes_append_u32(out, 0);
    put_flags(values, count, 1, out);
    if (out->failed)
        return;
    uint32_t length = (uint32_t)(out->size - length_at - sizeof length);
    memcpy(out->data + length_at, &length, sizeof length);
}

static size_t text_bytes(const struct sx_string *texts, int64_t count) {
    size_t bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += texts[i].length_bytes;
    return bytes;
}

static void put_texts_plain(const struct sx_string *texts, int64_t count, struct sx_bytes *out) {
    uint8_t *at = sx_bytes_take(out, text_bytes(texts, count) + (size_t)count * sizeof(uint32_t));
    for (int64_t i = 0; at && i < count; i++) {
        uint32_t length = texts[i].length_bytes;
        memcpy(at, &length, sizeof length);
        memcpy(at + sizeof length, sx_string_bytes(&texts[i]), length);
        at += sizeof length + length;
    }
}

static void put_texts_delta_length(const struct sx_string *texts, int64_t count, struct sx_bytes *out) {
    struct sx_bytes lengths = sx_bytes_in(out->pool, out->error);
    int32_t *length = (int32_t *)(void *)sx_bytes_take(&lengths, (size_t)count * sizeof *length);
    for (int64_t i = 0; length && i < count; i++)
        length[i] = (int32_t)texts[i].length_bytes;
    if (length)
        sx_encode_delta_i32(length, count, out);
    out->failed |= lengths.failed;
    sx_bytes_release(&lengths);
    uint8_t *at = sx_bytes_take(out, text_bytes(texts, count));
    for (int64_t i = 0; at && i < count; i++) {
        memcpy(at, sx_string_bytes(&texts[i]), texts[i].length_bytes);
        at += texts[i].length_bytes;
    }
}

/* The first bytes of all values, then the second ones, … */
static void put_split(const uint8_t *values, size_t width, int64_t count, struct sx_bytes *out) {
    uint8_t *at = sx_bytes_take(out, (size_t)count * width);
    for (size_t b = 0; at && b < width; b++)
        for (int64_t i = 0; i < count; i++)
            *at++ = values[(size_t)i * width + b];
}

bool sx_encode_can(enum sx_parquet_physical physical, enum sx_parquet_encoding encoding) {
    switch (encoding) {
    case SX_ENCODING_PLAIN: return true;
    case SX_ENCODING_RLE: return physical == SX_PARQUET_BOOLEAN;
    case SX_ENCODING_DELTA_BINARY_PACKED: return physical == SX_PARQUET_INT32 || physical == SX_PARQUET_INT64;
    case SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY: return physical == SX_PARQUET_BYTE_ARRAY;
    case SX_ENCODING_BYTE_STREAM_SPLIT: /* that of other types is newer, and not every reader has it */
        return physical == SX_PARQUET_FLOAT || physical == SX_PARQUET_DOUBLE;
    default: return false;
    }
}

static void put_plain(const struct sx_stored *stored, const void *from, int64_t count, struct sx_bytes *out) {
    if (stored->physical == SX_PARQUET_BOOLEAN)
        put_booleans_plain(from, count, out);
    else if (stored->physical == SX_PARQUET_BYTE_ARRAY)
        put_texts_plain(from, count, out);
    else
        sx_bytes_append(out, from, (size_t)count * stored->width);
}

void sx_encode_values(const struct sx_stored *stored, enum sx_parquet_encoding encoding, int64_t first,
                      int64_t count, struct sx_bytes *out) {
    const void *from = (const uint8_t *)stored->values + (size_t)first * stored->width;
    switch (encoding) {
    case SX_ENCODING_RLE: put_booleans_rle(from, count, out); break;
    case SX_ENCODING_DELTA_BINARY_PACKED:
        if (stored->physical == SX_PARQUET_INT32)
            sx_encode_delta_i32(from, count, out);
        else
            sx_encode_delta_i64(from, count, out);
        break;
    case SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY: put_texts_delta_length(from, count, out); break;
    case SX_ENCODING_BYTE_STREAM_SPLIT: put_split(from, stored->width, count, out); break;
    default: put_plain(stored, from, count, out);
    }
}
