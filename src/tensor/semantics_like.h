/* LIKE. */
#ifndef SX_TENSOR_SEMANTICS_LIKE_H
#define SX_TENSOR_SEMANTICS_LIKE_H

#include "tensor/semantics_utf8.h"

enum sx_like_result { SX_LIKE_NO, SX_LIKE_YES, SX_LIKE_BAD_ESCAPE };

/* First place of `byte` from `at` on, or `text_bytes`. Looks at eight bytes at a time. */
SX_BOTH uint32_t sx_text_find_byte(const char *text, uint32_t text_bytes, uint32_t at, char byte) {
    const uint64_t ones = UINT64_C(0x0101010101010101), wanted = ones * (uint8_t)byte;
    while (at < text_bytes) {
        if ((uintptr_t)(text + at) % 8 != 0 || text_bytes - at < 8) {
            if (text[at] == byte)
                return at;
            at++;
            continue;
        }
        uint64_t word;
        memcpy(&word, __builtin_assume_aligned(text + at, 8), sizeof word);
        word ^= wanted; /* has a zero byte at the place */
        if ((word - ones) & ~word & ones << 7) {
            for (; word & 0xff; word >>= 8)
                at++;
            return at;
        }
        at += 8;
    }
    return text_bytes;
}

/* Where the text can go on that a '%' has skipped, with `next` behind it in the pattern. */
SX_BOTH uint32_t sx_like_skip(const char *text, uint32_t text_bytes, uint32_t at, char next, bool has_escape,
                              char escape) {
    const bool is_itself = next != '%' && next != '_' && !(has_escape && next == escape);
    return is_itself ? sx_text_find_byte(text, text_bytes, at, next) : at;
}

/* '%' is any bytes, '_' one character; behind the escape character a character stands for itself. Going back
 * to the last '%' only is enough, since what an earlier one took can be taken shortest. */
SX_BOTH enum sx_like_result sx_like(const char *text, uint32_t text_bytes, const char *pattern,
                                    uint32_t pattern_bytes, bool has_escape, char escape) {
    uint32_t t = 0, p = 0, retry_text = 0, retry_pattern = UINT32_MAX;
    while (t < text_bytes) {
        if (p < pattern_bytes && has_escape && pattern[p] == escape) {
            if (p + 1 == pattern_bytes)
                return SX_LIKE_BAD_ESCAPE;
            if (pattern[p + 1] == text[t]) {
                p += 2, t++;
                continue;
            }
        } else if (p < pattern_bytes && pattern[p] == '%') {
            retry_pattern = ++p;
            if (p == pattern_bytes)
                return SX_LIKE_YES;
            retry_text = t = sx_like_skip(text, text_bytes, t, pattern[p], has_escape, escape);
            continue;
        } else if (p < pattern_bytes && pattern[p] == '_') {
            p++;
            t = sx_utf8_next(text, text_bytes, t);
            continue;
        } else if (p < pattern_bytes && pattern[p] == text[t]) {
            p++, t++;
            continue;
        }
        if (retry_pattern == UINT32_MAX)
            return SX_LIKE_NO;
        p = retry_pattern;
        retry_text = t = sx_like_skip(text, text_bytes, retry_text + 1, pattern[p], has_escape, escape);
    }
    /* At the end '%' is itself also where it is the escape character. */
    while (p < pattern_bytes && pattern[p] == '%')
        p++;
    return p == pattern_bytes ? SX_LIKE_YES : SX_LIKE_NO;
}

#endif
