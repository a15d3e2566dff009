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
