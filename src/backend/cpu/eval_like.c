#include "backend/cpu/eval.h"
#include "tensor/semantics_like.h"

#include <stdlib.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

/* ---- searching ---- */

#ifdef __AVX2__
/* A place is a candidate when the needle's first and last byte stand there at their distance (W. Mula,
 * "SIMD-friendly algorithms for substring searching"). A window is that many places side by side. */
enum { WIDE_WINDOW = 32, NARROW_WINDOW = 16 };

struct needle {
    const char *bytes;
    uint32_t length_bytes;
    __m256i first, last;
};

static inline int64_t check_candidates(const char *text, uint32_t at, const struct needle *needle,
                                       uint32_t found) {
    for (; found; found &= found - 1) {
        const uint32_t place = at + (uint32_t)__builtin_ctz(found);
        if (memcmp(text + place, needle->bytes, needle->length_bytes) == 0)
            return place;
    }
    return -1;
}

static inline int64_t find_wide(const char *text, uint32_t at, const struct needle *needle) {
    const __m256i heads = _mm256_loadu_si256((const __m256i *)(const void *)(text + at));
    const __m256i tails =
        _mm256_loadu_si256((const __m256i *)(const void *)(text + at + needle->length_bytes - 1));
    const __m256i both =
        _mm256_and_si256(_mm256_cmpeq_epi8(heads, needle->first), _mm256_cmpeq_epi8(tails, needle->last));
    return check_candidates(text, at, needle, (uint32_t)_mm256_movemask_epi8(both));
}

static inline int64_t find_narrow(const char *text, uint32_t at, const struct needle *needle) {
    const __m128i heads = _mm_loadu_si128((const __m128i *)(const void *)(text + at));
    const __m128i tails =
        _mm_loadu_si128((const __m128i *)(const void *)(text + at + needle->length_bytes - 1));
    const __m128i both = _mm_and_si128(_mm_cmpeq_epi8(heads, _mm256_castsi256_si128(needle->first)),
                                       _mm_cmpeq_epi8(tails, _mm256_castsi256_si128(needle->last)));
    return check_candidates(text, at, needle, (uint32_t)_mm_movemask_epi8(both));
}

/* The last window of the text overlaps the one before it, so that nothing behind the text is read. */
static int64_t find_by_windows(const char *text, uint32_t places, const struct needle *needle) {
    uint32_t at = 0;
    int64_t place = -1;
    if (places < WIDE_WINDOW) {
        place = find_narrow(text, 0, needle);
        return place >= 0 ? place : find_narrow(text, places - NARROW_WINDOW, needle);
    }
    for (; at + WIDE_WINDOW <= places && place < 0; at += WIDE_WINDOW)
        place = find_wide(text, at, needle);
    if (place >= 0 || at == places)
        return place;
    return places - at <= NARROW_WINDOW ? find_narrow(text, places - NARROW_WINDOW, needle)
                                        : find_wide(text, places - WIDE_WINDOW, needle);
}
#endif

static int64_t find_by_bytes(const char *text, uint32_t places, const char *needle, uint32_t needle_bytes) {
    for (uint32_t at = 0; at < places; at++)
        if (text[at] == needle[0] && memcmp(text + at, needle, needle_bytes) == 0)
            return at;
    return -1;
}

int64_t sx_bytes_find(const char *text, uint32_t text_bytes, const char *needle, uint32_t needle_bytes) {
    if (needle_bytes > text_bytes)
        return -1;
    if (needle_bytes == 0)
        return 0;
    const uint32_t places = text_bytes - needle_bytes + 1;
#ifdef __AVX2__
    if (places >= NARROW_WINDOW) {
        const struct needle prepared = {needle, needle_bytes, _mm256_set1_epi8(needle[0]),
                                        _mm256_set1_epi8(needle[needle_bytes - 1])};
        return find_by_windows(text, places, &prepared);
    }
#endif
    return find_by_bytes(text, places, needle, needle_bytes);
}

/* ---- patterns that are constants ---- */

struct literal {
    const char *bytes;
    uint32_t length_bytes;
};

/* Without '_': literals with '%' between them. */
struct sx_like_pattern {
    bool is_general; /* has '_' or a dangling escape, or '%' is the escape character: see sx_like */
    bool dangling_escape;
    bool has_escape;
    char escape;
    char *source;
    uint32_t source_bytes;
    char *text; /* the literals' bytes */
    struct literal *literals;
    uint32_t n_literals; /* 1: no '%' */
};

static void end_literal(struct sx_like_pattern *p, const char *from, const char *to) {
    p->literals[p->n_literals++] = (struct literal){from, (uint32_t)(to - from)};
}

static void split(struct sx_like_pattern *p) {
    char *out = p->text, *from = out;
    p->is_general = p->has_escape && p->escape == '%';
    for (uint32_t i = 0; i < p->source_bytes; i++) {
        char c = p->source[i];
        if (p->has_escape && c == p->escape) {
            if (++i == p->source_bytes) {
                p->is_general = p->dangling_escape = true;
                return;
            }
            *out++ = p->source[i];
        } else if (c == '%') {
            end_literal(p, from, out);
            from = out;
        } else {
            p->is_general |= c == '_';
            *out++ = c;
        }
    }
    end_literal(p, from, out);
}

struct sx_like_pattern *sx_like_compile(const char *pattern, uint32_t length_bytes, bool has_escape,
                                        char escape) {
    struct sx_like_pattern *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->has_escape = has_escape;
    p->escape = escape;
    p->source_bytes = length_bytes;
    p->source = malloc((size_t)length_bytes + 1);
    p->text = malloc((size_t)length_bytes + 1);
    p->literals = malloc(((size_t)length_bytes + 1) * sizeof *p->literals);
    if (!p->source || !p->text || !p->literals) {
        sx_like_destroy(p);
        return NULL;
    }
    memcpy(p->source, pattern, length_bytes);
    split(p);
    return p;
}

void sx_like_destroy(struct sx_like_pattern *pattern) {
    if (!pattern)
        return;
    free(pattern->source);
    free(pattern->text);
    free(pattern->literals);
    free(pattern);
}

bool sx_like_can_fail(const struct sx_like_pattern *pattern) {
    return pattern->dangling_escape;
}

/* Without a call for the empty literal that a '%' at an end leaves. */
static inline bool stands_at(const char *text, const struct literal *literal) {
    return literal->length_bytes == 0 || memcmp(text, literal->bytes, literal->length_bytes) == 0;
}

/* First literal at the begin, last at the end, the others in between, each as early as it goes. */
static bool matches_literals(const struct sx_like_pattern *p, const char *text, uint32_t text_bytes) {
    const struct literal *first = &p->literals[0], *last = &p->literals[p->n_literals - 1];
    if (p->n_literals == 1)
        return text_bytes == first->length_bytes && memcmp(text, first->bytes, text_bytes) == 0;
    if ((uint64_t)first->length_bytes + last->length_bytes > text_bytes || !stands_at(text, first) ||
        !stands_at(text + text_bytes - last->length_bytes, last))
        return false;
    uint32_t at = first->length_bytes;
    const uint32_t end = text_bytes - last->length_bytes;
    for (const struct literal *middle = first + 1; middle < last; middle++) {
        const int64_t place = sx_bytes_find(text + at, end - at, middle->bytes, middle->length_bytes);
        if (place < 0)
            return false;
        at += (uint32_t)place + middle->length_bytes;
    }
    return true;
}

static void match_general(struct sx_eval_call *call, const struct sx_like_pattern *p, bool negate) {
    const struct sx_string *a = call->in[0];
    uint8_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const enum sx_like_result result = sx_like(sx_string_bytes(&a[i]), a[i].length_bytes, p->source,
                                                   p->source_bytes, p->has_escape, p->escape);
        call->failed |= result == SX_LIKE_BAD_ESCAPE;
        out[i] = (result == SX_LIKE_YES) != negate;
    }
}

void sx_eval_like(struct sx_eval_call *call) {
    const enum sx_function function = call->of->instruction->function;
    const bool negate = function == SX_FN_NOT_LIKE || function == SX_FN_NOT_LIKE_ESCAPE;
    const struct sx_like_pattern *p = call->of->like;
    const struct sx_string *a = call->in[0];
    uint8_t *restrict out = call->out;
    if (p->is_general) {
        match_general(call, p, negate);
        return;
    }
    for (int64_t i = 0; i < call->n; i++)
        out[i] = matches_literals(p, sx_string_bytes(&a[i]), a[i].length_bytes) != negate;
}
