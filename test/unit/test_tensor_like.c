/* LIKE against its definition, over short patterns and texts at all alignments. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/semantics_like.h"

enum { MOST_TEXT_BYTES = 40, MOST_PATTERN_BYTES = 8, ROUNDS = 200000 };

static uint64_t state = 1;

static uint32_t below(uint32_t n) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static bool matches(const char *text, const char *pattern, bool has_escape) {
    if (!*pattern)
        return !*text;
    if (has_escape && *pattern == '!')
        return *text && *text == pattern[1] && matches(text + 1, pattern + 2, has_escape);
    if (*pattern == '%' && pattern[1] == '%')
        return matches(text, pattern + 1, has_escape);
    if (*pattern == '%')
        return matches(text, pattern + 1, has_escape) || (*text && matches(text + 1, pattern, has_escape));
    return *text && (*pattern == '_' || *text == *pattern) && matches(text + 1, pattern + 1, has_escape);
}

static void fill(char *text, uint32_t length_bytes, const char *letters, uint32_t n_letters) {
    for (uint32_t i = 0; i < length_bytes; i++)
        text[i] = letters[below(n_letters)];
    text[length_bytes] = '\0';
}

static void test_like(void) {
    int n_matches = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t text_bytes = below(2) ? below(MOST_TEXT_BYTES + 1) : below(12);
        const uint32_t pattern_bytes = below(MOST_PATTERN_BYTES + 1);
        const bool has_escape = below(4) == 0;
        char pattern[MOST_PATTERN_BYTES + 2];
        char *text = malloc(text_bytes + 9); /* exact, for the address sanitizer */
        assert(text);
        char *at = text + below(8);
        fill(at, text_bytes, "aaab!", below(3) ? 4 : 5);
        fill(pattern, pattern_bytes, "%%%_ab!", has_escape ? 7 : 6);
        const bool dangles = has_escape && pattern_bytes && pattern[pattern_bytes - 1] == '!';
        const enum sx_like_result result = sx_like(at, text_bytes, pattern, pattern_bytes, has_escape, '!');
        if (!dangles && (result == SX_LIKE_YES) != matches(at, pattern, has_escape)) {
            fprintf(stderr, "'%s' LIKE '%s'%s: %d\n", at, pattern, has_escape ? " ESCAPE '!'" : "",
                    (int)result);
            abort();
        }
        n_matches += result == SX_LIKE_YES;
        free(text);
    }
    assert(n_matches > ROUNDS / 20 && n_matches < ROUNDS / 20 * 19);
}

static void test_find_byte(void) {
    const uint8_t bytes[] = {0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff};
    for (int i = 0; i < ROUNDS; i++) {
        char text[MOST_TEXT_BYTES];
        const uint32_t n = below(MOST_TEXT_BYTES + 1), from = below(n + 1);
        const char wanted = (char)bytes[below(sizeof bytes)];
        for (uint32_t b = 0; b < n; b++)
            text[b] = (char)(below(3) ? (uint8_t)(wanted ^ 1) : bytes[below(sizeof bytes)]);
        const char *found = n > from ? memchr(text + from, wanted, n - from) : NULL;
        assert(sx_text_find_byte(text, n, from, wanted) == (found ? (uint32_t)(found - text) : n));
    }
}

int main(void) {
    test_like();
    test_find_byte();
    return 0;
}
