/* LIKE. */
#ifndef SX_TENSOR_SEMANTICS_LIKE_H
#define SX_TENSOR_SEMANTICS_LIKE_H

#include "tensor/semantics_utf8.h"

enum sx_like_result { SX_LIKE_NO, SX_LIKE_YES, SX_LIKE_BAD_ESCAPE };

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
            retry_text = t;
            if (p == pattern_bytes)
                return SX_LIKE_YES;
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
        t = ++retry_text;
    }
    while (p < pattern_bytes && pattern[p] == '%' && !(has_escape && escape == '%'))
        p++;
    return p == pattern_bytes ? SX_LIKE_YES : SX_LIKE_NO;
}

#endif
