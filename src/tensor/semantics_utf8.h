/* UTF-8: characters are code points. Bytes that are no UTF-8 count as characters of one byte. */
#ifndef SX_TENSOR_SEMANTICS_UTF8_H
#define SX_TENSOR_SEMANTICS_UTF8_H

#include "tensor/semantics.h"

SX_BOTH bool sx_utf8_is_first(char byte) {
    return ((uint8_t)byte & 0xc0) != 0x80;
}

SX_BOTH int64_t sx_utf8_count(const char *bytes, uint32_t length_bytes) {
    int64_t count = 0;
    for (uint32_t i = 0; i < length_bytes; i++)
        count += sx_utf8_is_first(bytes[i]);
    return count;
}

/* Offset behind the character at `at`. */
SX_BOTH uint32_t sx_utf8_next(const char *bytes, uint32_t length_bytes, uint32_t at) {
    at++;
    while (at < length_bytes && !sx_utf8_is_first(bytes[at]))
        at++;
    return at;
}

/* Offset of character number `index` (from 0), or the length. */
SX_BOTH uint32_t sx_utf8_offset(const char *bytes, uint32_t length_bytes, int64_t index) {
    uint32_t at = 0;
    while (index-- > 0 && at < length_bytes)
        at = sx_utf8_next(bytes, length_bytes, at);
    return at;
}

/* Code point at `at`; sets its length. */
SX_BOTH uint32_t sx_utf8_decode(const char *bytes, uint32_t length_bytes, uint32_t at, uint32_t *out_length) {
    const uint8_t first = (uint8_t)bytes[at];
    uint32_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first < 0xc0 || length > length_bytes - at) {
        *out_length = 1;
        return first;
    }
    uint32_t point = first & (0xffu >> (length + 1));
    for (uint32_t i = 1; i < length; i++)
        point = point << 6 | ((uint8_t)bytes[at + i] & 0x3f);
    *out_length = length;
    return point;
}

/* Number of bytes written, 1 to 4. */
SX_BOTH uint32_t sx_utf8_encode(uint32_t point, char *out) {
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    uint32_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (uint32_t i = length - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)((0xf00u >> length) | point);
    return length;
}

/* Length of the character that begins here, 0 where none does: no overlong forms, surrogates or code points
 * above 10FFFF. left_bytes > 0. */
SX_BOTH uint32_t sx_utf8_valid_bytes(const uint8_t *bytes, uint64_t left_bytes) {
    const uint8_t first = bytes[0];
    const uint32_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first > 0xf4 || length > left_bytes)
        return 0;
    const uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (length > 1 && (bytes[1] < low || bytes[1] > high))
        return 0;
    for (uint32_t i = 2; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

SX_BOTH bool sx_utf8_is_valid(const uint8_t *bytes, uint64_t length_bytes) {
    const uint64_t high_bits = UINT64_C(0x8080808080808080);
    for (uint64_t at = 0; at < length_bytes;) {
        if (length_bytes - at >= 8 && !(sx_load_u64((const char *)bytes + at) & high_bits)) {
            at += 8;
            continue;
        }
        const uint32_t character = sx_utf8_valid_bytes(bytes + at, length_bytes - at);
        if (character == 0)
            return false;
        at += character;
    }
    return true;
}

/* Bytes [*out_first, *out_end) of SUBSTRING: characters from `start` (1 is the first, -1 the last) for
 * `length`; a negative length counts backwards from `start`. */
SX_BOTH void sx_utf8_substring(const char *bytes, uint32_t length_bytes, int64_t start, int64_t length,
                               uint32_t *out_first, uint32_t *out_end) {
    int64_t first = start;
    if (start < 0)
        first = sx_utf8_count(bytes, length_bytes) + start + 1;
    int64_t end = first + length;
    if (length < 0) {
        int64_t swap = first;
        first = end;
        end = swap;
    }
    first = first < 1 ? 1 : first;
    if (end <= first) {
        *out_first = *out_end = 0;
        return;
    }
    *out_first = sx_utf8_offset(bytes, length_bytes, first - 1);
    *out_end = *out_first + sx_utf8_offset(bytes + *out_first, length_bytes - *out_first, end - first);
}

#endif
