#include "storage/bloom.h"

#include <string.h>

#include "storage/file.h"

/* ---- xxHash, 64 bits, seed 0 ---- */

static const uint64_t prime_1 = UINT64_C(0x9E3779B185EBCA87), prime_2 = UINT64_C(0xC2B2AE3D27D4EB4F),
                      prime_3 = UINT64_C(0x165667B19E3779F9), prime_4 = UINT64_C(0x85EBCA77C2B2AE63),
                      prime_5 = UINT64_C(0x27D4EB2F165667C5);

static uint64_t rotate(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

static uint64_t load_u64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint32_t load_u32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t mix(uint64_t lane, uint64_t word) {
    return rotate(lane + word * prime_2, 31) * prime_1;
}

static uint64_t hash_stripes(const uint8_t **at, const uint8_t *end) {
    uint64_t lanes[4] = {prime_1 + prime_2, prime_2, 0, -prime_1};
    for (; end - *at >= 32; *at += 32)
        for (int i = 0; i < 4; i++)
            lanes[i] = mix(lanes[i], load_u64(*at + 8 * i));
    uint64_t hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
    for (int i = 0; i < 4; i++)
        hash = (hash ^ mix(0, lanes[i])) * prime_1 + prime_4;
    return hash;
}

uint64_t sx_xxhash64(const uint8_t *bytes, size_t length_bytes) {
    const uint8_t *at = bytes, *end = bytes + length_bytes;
    uint64_t hash = (length_bytes >= 32 ? hash_stripes(&at, end) : prime_5) + length_bytes;
    for (; end - at >= 8; at += 8)
        hash = rotate(hash ^ mix(0, load_u64(at)), 27) * prime_1 + prime_4;
    if (end - at >= 4) {
        hash = rotate(hash ^ load_u32(at) * prime_1, 23) * prime_2 + prime_3;
        at += 4;
    }
    for (; at < end; at++)
        hash = rotate(hash ^ *at * prime_5, 11) * prime_1;
    hash = (hash ^ hash >> 33) * prime_2;
    hash = (hash ^ hash >> 29) * prime_3;
    return hash ^ hash >> 32;
}

/* ---- the filter ---- */

enum { BLOCK_BYTES = 32, WORDS = 8, HEADER_BYTES = 64, MOST_VALUES = 32 };

struct filter {
    int64_t offset; /* of the first block */
    int64_t n_blocks;
};

/* A union of which only member 1 is known. */
static bool is_member_one(struct sx_thrift *in, const struct sx_thrift_field *field) {
    struct sx_thrift_field member = {0};
    bool is_one = false;
    if (!sx_thrift_struct(in, field))
        return false;
    while (sx_thrift_next(in, &member)) {
        is_one = member.id == 1;
        sx_thrift_skip(in, &member);
    }
    return is_one;
}

static bool read_header(int fd, int64_t file_bytes, int64_t offset, struct filter *out_filter) {
    uint8_t bytes[HEADER_BYTES];
    size_t length = file_bytes - offset < HEADER_BYTES ? (size_t)(file_bytes - offset) : HEADER_BYTES;
    if (sx_file_read(fd, offset, length, bytes, NULL) != SX_OK)
        return false;
    struct sx_thrift in = sx_thrift_from(bytes, length);
    struct sx_thrift_field field = {0};
    int64_t n_bytes = 0;
    bool is_known = true;
    while (sx_thrift_next(&in, &field)) {
        if (field.id == 1)
            n_bytes = sx_thrift_i64(&in, &field);
        else
            is_known &= is_member_one(&in, &field);
    }
    out_filter->offset = offset + (in.at - bytes);
    out_filter->n_blocks = n_bytes / BLOCK_BYTES;
    return !in.wrong && is_known && n_bytes > 0 && n_bytes % BLOCK_BYTES == 0 && n_bytes <= INT32_MAX &&
           n_bytes <= file_bytes - out_filter->offset;
}

static bool block_lacks(const uint8_t *block, uint32_t key) {
    static const uint32_t salts[WORDS] = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                          0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};
    for (int i = 0; i < WORDS; i++)
        if (!(load_u32(block + 4 * i) >> (key * salts[i] >> 27) & 1))
            return true;
    return false;
}

static bool filter_lacks(int fd, const struct filter *filter, const struct sx_file_column *column,
                         const struct sx_scalar *value) {
    uint8_t buffer[SX_STORED_VALUE_BYTES], block[BLOCK_BYTES];
    struct sx_slice stored;
    if (!sx_stored_value(column, value, buffer, &stored))
        return false;
    uint64_t hash = sx_xxhash64(stored.bytes, stored.length_bytes);
    int64_t index = (int64_t)((hash >> 32) * (uint64_t)filter->n_blocks >> 32);
    if (sx_file_read(fd, filter->offset + index * BLOCK_BYTES, sizeof block, block, NULL) != SX_OK)
        return false;
    return block_lacks(block, (uint32_t)hash);
}

bool sx_bloom_exclude(int fd, int64_t file_bytes, const struct sx_file_column *column,
                      const struct sx_chunk_meta *chunk, const struct sx_prune *prune) {
    bool is_equality = prune->op == SX_PRUNE_EQ || prune->op == SX_PRUNE_IN;
    if (!is_equality || prune->n_values > MOST_VALUES || chunk->bloom_offset < 4 ||
        chunk->bloom_offset >= file_bytes)
        return false;
    struct filter filter;
    if (!read_header(fd, file_bytes, chunk->bloom_offset, &filter))
        return false;
    for (int i = 0; i < prune->n_values; i++)
        if (!prune->values[i].is_null && !filter_lacks(fd, &filter, column, &prune->values[i]))
            return false;
    return true;
}
