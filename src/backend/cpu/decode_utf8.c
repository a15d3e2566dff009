#include "backend/cpu/decode.h"

bool decode_is_ascii(const uint8_t *bytes, size_t length) {
    enum { BLOCK = 256 };
    size_t at = 0;
    for (; at + BLOCK <= length; at += BLOCK) {
        uint8_t all = 0;
        for (size_t i = 0; i < BLOCK; i++)
            all |= bytes[at + i];
        if (all & 0x80)
            return false;
    }
    uint8_t all = 0;
    for (; at < length; at++)
        all |= bytes[at];
    return !(all & 0x80);
}

/* Length of the character that begins here, 0 where none does: no overlong forms, surrogates or code points
 * above 10FFFF. */
static size_t character_bytes(const uint8_t *bytes, size_t left) {
    uint8_t first = bytes[0], low = 0x80, high = 0xbf;
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first > 0xf4 || length > left)
        return 0;
    switch (first) {
    case 0xe0: low = 0xa0; break;
    case 0xed: high = 0x9f; break;
    case 0xf0: low = 0x90; break;
    case 0xf4: high = 0x8f; break;
    default: break;
    }
    if (length > 1 && (bytes[1] < low || bytes[1] > high))
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

bool decode_is_utf8(const uint8_t *bytes, size_t length) {
    const uint64_t high_bits = UINT64_C(0x8080808080808080);
    for (size_t at = 0; at < length;) {
        if (length - at >= 8 && !(decode_load_u64(bytes + at) & high_bits)) {
            at += 8;
            continue;
        }
        size_t character = character_bytes(bytes + at, length - at);
        if (character == 0)
            return false;
        at += character;
    }
    return true;
}
