#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "backend/cpu/decode.h"

enum { GROUP = 8, GROUP_READ_BYTES = 40 }; /* 8 values take `width` bytes; loads stay within so many */

/* 64-bit loads: up to 8 bytes behind the group's last. */
static inline void unpack_group(const uint8_t *packed, uint32_t width, uint32_t *out) {
    const uint32_t mask = width == 32 ? UINT32_MAX : (1u << width) - 1;
    for (uint32_t i = 0; i < GROUP; i++) {
        uint32_t bit = i * width;
        out[i] = (uint32_t)(decode_load_u64(packed + bit / 8) >> (bit % 8)) & mask;
    }
}

#ifdef __AVX2__
enum { MAX_SHUFFLE_WIDTH = 25 }; /* a value with the bits in front of it in its first byte fits 32 bits */

/* Values 0 to 3 of a group are picked from the 16 bytes at its start, 4 to 7 from those where value 4 begins.
 */
struct shuffle {
    uint8_t pick[32]; /* bytes of each value, in a 32-bit lane */
    uint32_t shift[GROUP];
};

#define BYTE(w, i)  ((i) * (w) / 8 - ((i) < 4 ? 0 : 4 * (w) / 8))
#define PICK(w, i)  BYTE(w, i), BYTE(w, i) + 1, BYTE(w, i) + 2, BYTE(w, i) + 3
#define SHIFT(w, i) ((i) * (w) % 8)
#define EACH(f, w)  f(w, 0), f(w, 1), f(w, 2), f(w, 3), f(w, 4), f(w, 5), f(w, 6), f(w, 7)
#define ROW(w)      [w] = {{EACH(PICK, w)}, {EACH(SHIFT, w)}},
/* clang-format splits the list differently every time */
/* clang-format off */
#define WIDTH_LIST(X)                                                          \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)       \
    X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25)
/* clang-format on */
static const struct shuffle shuffles[MAX_SHUFFLE_WIDTH + 1] = {WIDTH_LIST(ROW)};

static int64_t unpack_groups(const uint8_t *packed, const uint8_t *readable_end, uint32_t width,
                             int64_t groups, uint32_t *out) {
    const struct shuffle *shuffle = &shuffles[width];
    const uint32_t upper_byte = 4 * width / 8;
    const __m256i picks = _mm256_loadu_si256((const __m256i *)(const void *)shuffle->pick);
    const __m256i shifts = _mm256_loadu_si256((const __m256i *)(const void *)shuffle->shift);
    const __m256i mask = _mm256_set1_epi32((int)((1u << width) - 1));
    int64_t done = 0;
    for (; done < groups && readable_end - packed >= GROUP_READ_BYTES;
         done++, packed += width, out += GROUP) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)packed);
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(packed + upper_byte));
        __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        __m256i values = _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(both, picks), shifts), mask);
        _mm256_storeu_si256((__m256i *)(void *)out, values);
    }
    return done;
}
#else
enum { MAX_SHUFFLE_WIDTH = 0 };
static int64_t unpack_groups(const uint8_t *packed, const uint8_t *readable_end, uint32_t width,
                             int64_t groups, uint32_t *out) {
    (void)packed, (void)readable_end, (void)width, (void)groups, (void)out;
    return 0;
}
#endif

static int64_t unpack_wide_groups(const uint8_t *packed, const uint8_t *readable_end, uint32_t width,
                                  int64_t groups, uint32_t *out) {
    int64_t done = 0;
    for (; done < groups && readable_end - packed >= GROUP_READ_BYTES; done++, packed += width, out += GROUP)
        unpack_group(packed, width, out);
    return done;
}

void decode_unpack(const uint8_t *packed, size_t packed_bytes, size_t slack, uint32_t width, int64_t count,
                   uint32_t *out_values) {
    if (width == 0) {
        memset(out_values, 0, (size_t)count * sizeof *out_values);
        return;
    }
    const uint8_t *end = packed + packed_bytes, *readable_end = end + slack;
    int64_t groups = count / GROUP;
    int64_t done = width <= MAX_SHUFFLE_WIDTH
                       ? unpack_groups(packed, readable_end, width, groups, out_values)
                       : unpack_wide_groups(packed, readable_end, width, groups, out_values);
    for (int64_t at = done * GROUP; at < count; at += GROUP) {
        uint8_t copy[GROUP_READ_BYTES] = {0};
        uint32_t values[GROUP];
        const uint8_t *group = packed + (size_t)(at / GROUP) * width;
        size_t left = (size_t)(end - group);
        memcpy(copy, group, left < width ? left : width);
        unpack_group(copy, width, values);
        int64_t wanted = count - at < GROUP ? count - at : GROUP;
        memcpy(out_values + at, values, (size_t)wanted * sizeof *values);
    }
}

/* One bit to each byte, the lowest bit first. */
static inline uint64_t spread_bits(uint8_t bits) {
    uint64_t word = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return (word + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
}

void decode_unpack_bits(const uint8_t *packed, int64_t first, int64_t count, uint8_t *out_values) {
    int64_t i = 0;
    for (; i < count && (first + i) % 8; i++)
        out_values[i] = packed[(first + i) / 8] >> ((first + i) % 8) & 1;
    for (; i + 8 <= count; i += 8) {
        uint64_t word = spread_bits(packed[(first + i) / 8]);
        memcpy(out_values + i, &word, sizeof word);
    }
    for (; i < count; i++)
        out_values[i] = packed[(first + i) / 8] >> ((first + i) % 8) & 1;
}
