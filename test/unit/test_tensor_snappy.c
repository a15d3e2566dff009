/* Our decompression of snappy against the library's: the same bytes, and the same streams are damaged. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <snappy-c.h>

#include "tensor/snappy.h"

enum { MOST_PLAIN = 200000, MOST_STORED = 300000, ROUNDS = 3000, DAMAGES = 12 };

static uint64_t state = 1;

static uint32_t below(uint32_t n) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

/* Both sides in memory of exactly their size, for the address sanitizer. */
static uint8_t *copy_of(const uint8_t *bytes, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    assert(copy);
    if (n)
        memcpy(copy, bytes, n);
    return copy;
}

/* Returns whether the stream is good. */
static bool compare(const uint8_t *stream, size_t stored_bytes) {
    uint8_t *stored = copy_of(stream, stored_bytes);
    size_t plain_bytes = 0, told = 0;
    const bool has_length =
        snappy_uncompressed_length((const char *)stored, stored_bytes, &plain_bytes) == SNAPPY_OK;
    const size_t head = sx_snappy_length(stored, stored_bytes, &told);
    assert(has_length == (head > 0) && (!has_length || told == plain_bytes));
    bool good = false;
    if (has_length && plain_bytes <= 4 * MOST_PLAIN) {
        uint8_t *wanted = malloc(plain_bytes + 1), *given = malloc(plain_bytes + 1);
        uint8_t *exact = copy_of(given, plain_bytes);
        size_t bytes = plain_bytes;
        assert(wanted && given && exact);
        good = snappy_uncompress((const char *)stored, stored_bytes, (char *)wanted, &bytes) == SNAPPY_OK;
        if (sx_snappy_open(stored, stored_bytes, exact, plain_bytes) != good ||
            (good && memcmp(exact, wanted, plain_bytes) != 0)) {
            fprintf(stderr, "%zu bytes of %zu: the library says %s\n", stored_bytes, plain_bytes,
                    good ? "good" : "damaged");
            abort();
        }
        assert(!sx_snappy_open(stored, stored_bytes, exact, plain_bytes ? plain_bytes - 1 : 0) ||
               plain_bytes == 0);
        free(wanted);
        free(given);
        free(exact);
    }
    free(stored);
    return good;
}

/* The stream, then versions of it that are cut, longer, or have other bytes. */
static void compare_damaged(uint8_t *stream, size_t stored_bytes, int *good) {
    *good += compare(stream, stored_bytes);
    for (int i = 0; i < DAMAGES && stored_bytes > 0; i++) {
        size_t n = stored_bytes;
        const size_t at = below(4) ? below((uint32_t)n) : n - 1 - below(n < 40 ? (uint32_t)n : 40);
        const uint8_t before = stream[at];
        if (below(3) == 0)
            n = at;
        else
            stream[at] = (uint8_t)(below(2) ? below(256) : before ^ (1u << below(8)));
        *good += compare(stream, n);
        stream[at] = before;
    }
}

/* What columns and texts are like: words of a few values, runs, and noise. */
static size_t make_plain(uint8_t *plain) {
    const size_t n = below(3) ? below(400) : below(MOST_PLAIN);
    const uint32_t width = 1 + below(12), values = 1 + below(300), noise = below(20);
    for (size_t i = 0; i < n; i++)
        plain[i] = below(20) < noise ? (uint8_t)below(256)
                   : i >= width      ? plain[i - width]
                                     : (uint8_t)below(values);
    for (uint32_t runs = below(6); runs > 0 && n > 1; runs--) {
        const size_t first = below((uint32_t)n), length = below((uint32_t)(n - first));
        memset(plain + first, (int)below(256), length);
    }
    return n;
}

static void test_of_library(void) {
    uint8_t *plain = calloc(MOST_PLAIN, 1), *stream = malloc(MOST_STORED);
    int good = 0;
    assert(plain && stream);
    for (int i = 0; i < ROUNDS; i++) {
        size_t bytes = MOST_STORED;
        const size_t n = make_plain(plain);
        assert(snappy_compress((const char *)plain, n, (char *)stream, &bytes) == SNAPPY_OK);
        compare_damaged(stream, bytes, &good);
    }
    assert(good >= ROUNDS && good <= ROUNDS * DAMAGES);
    free(plain);
    free(stream);
}

/* ---- elements that the library does not write ---- */

static size_t put_literal(uint8_t *stream, size_t *plain_bytes) {
    const uint32_t length = 1 + (below(4) ? below(20) : below(5) ? below(70) : below(70000));
    const uint32_t rest = length - 1;
    size_t at = 1;
    uint32_t n = length <= 60 && below(8) ? 0 : rest < 256 ? 1 + below(4) : rest < 65536 ? 2 + below(3) : 3;
    stream[0] = (uint8_t)((n ? 59 + n : rest) << 2);
    for (uint32_t i = 0; i < n; i++)
        stream[at++] = (uint8_t)(rest >> (8 * i));
    for (uint32_t i = 0; i < length; i++)
        stream[at++] = (uint8_t)below(256);
    *plain_bytes += length;
    return at;
}

static size_t put_copy(uint8_t *stream, size_t *plain_bytes) {
    const uint32_t kind = 1 + below(3), most = kind == 1 ? 2047 : kind == 2 ? 65535 : 1u << 20;
    const uint32_t reach = *plain_bytes < most ? (uint32_t)*plain_bytes : most;
    uint32_t offset = 1 + below(below(2) && reach > 20 ? 20 : reach ? reach : 1);
    if (below(2000) == 0)
        offset = below(2) ? 0 : reach + 1;
    const uint32_t length = kind == 1 ? 4 + below(8) : 1 + below(64);
    if (kind == 1) {
        stream[0] = (uint8_t)(1 | (length - 4) << 2 | (offset >> 8) << 5);
        stream[1] = (uint8_t)offset;
    } else {
        stream[0] = (uint8_t)(kind | (length - 1) << 2);
        for (uint32_t i = 0; i < (kind == 2 ? 2u : 4u); i++)
            stream[1 + i] = (uint8_t)(offset >> (8 * i));
    }
    *plain_bytes += length;
    return kind == 3 ? 5 : 1 + kind;
}

static void test_elements(void) {
    enum { HEAD_BYTES = 5 };
    uint8_t *stream = malloc(MOST_STORED);
    int good = 0;
    assert(stream);
    for (int i = 0; i < ROUNDS; i++) {
        size_t plain_bytes = 0, at = HEAD_BYTES;
        const size_t most = below(4) ? 300 : 100000;
        const uint32_t literals = 1 + below(6);
        while (at < most)
            at += plain_bytes == 0 || below(8) < literals ? put_literal(stream + at, &plain_bytes)
                                                          : put_copy(stream + at, &plain_bytes);
        plain_bytes += below(30) == 0;
        for (int b = 0; b < HEAD_BYTES; b++) /* in five bytes, whatever it is */
            stream[b] = (uint8_t)((plain_bytes >> (7 * b) & 0x7f) | (b < HEAD_BYTES - 1 ? 0x80 : 0));
        compare_damaged(stream, at, &good);
    }
    assert(good >= ROUNDS / 2 && good <= ROUNDS * DAMAGES);
    free(stream);
}

/* The library's count of its bytes, in 32 bits, is none. */
static void test_longest_literal(void) {
    uint8_t none;
    assert(!sx_snappy_open((const uint8_t *)"\0\xfc\xff\xff\xff\xff", 6, &none, 0));
}

int main(void) {
    assert(compare((const uint8_t *)"\0", 1));
    assert(!compare((const uint8_t *)"", 0));
    assert(!compare((const uint8_t *)"\xff\xff\xff\xff\x1f", 5));
    test_longest_literal();
    test_of_library();
    test_elements();
    return 0;
}
