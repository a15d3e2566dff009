#include "backend/cpu/eval.h"
#include "tensor/semantics_case.h"
#include "tensor/semantics_like.h"

#include <string.h>

static bool is_out_valid(const struct sx_eval_call *call, int64_t row) {
    return !call->out_valid || call->out_valid[row];
}

/* ---- tests ---- */

static bool starts_with(const struct sx_string *text, const struct sx_string *part) {
    return part->length_bytes <= text->length_bytes &&
           memcmp(sx_string_bytes(text), sx_string_bytes(part), part->length_bytes) == 0;
}
static bool ends_with(const struct sx_string *text, const struct sx_string *part) {
    return part->length_bytes <= text->length_bytes &&
           memcmp(sx_string_bytes(text) + text->length_bytes - part->length_bytes, sx_string_bytes(part),
                  part->length_bytes) == 0;
}
static bool has_part(const struct sx_string *text, const struct sx_string *part) {
    return sx_bytes_find(sx_string_bytes(text), text->length_bytes, sx_string_bytes(part),
                         part->length_bytes) >= 0;
}

SX_INLINE void test_part(struct sx_eval_call *call,
                         bool (*test)(const struct sx_string *text, const struct sx_string *part)) {
    const struct sx_string *a = call->in[0], *b = call->in[1];
    uint8_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = test(&a[i * call->step[0]], &b[i * call->step[1]]);
}
static void prefix(struct sx_eval_call *call) {
    test_part(call, starts_with);
}
static void suffix(struct sx_eval_call *call) {
    test_part(call, ends_with);
}
static void contains(struct sx_eval_call *call) {
    test_part(call, has_part);
}

/* LIKE with a pattern that is no constant. The third argument, if there is one, is the escape: empty or one
 * byte. */
SX_INLINE void like(struct sx_eval_call *call, bool negate) {
    const struct sx_string *a = call->in[0], *b = call->in[1],
                           *c = call->of->n_arguments > 2 ? call->in[2] : NULL;
    uint8_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const struct sx_string *text = &a[i * call->step[0]], *pattern = &b[i * call->step[1]];
        const struct sx_string *escape = c ? &c[i * call->step[2]] : NULL;
        const bool has_escape = escape && escape->length_bytes == 1;
        const enum sx_like_result result =
            sx_like(sx_string_bytes(text), text->length_bytes, sx_string_bytes(pattern),
                    pattern->length_bytes, has_escape, has_escape ? escape->u.inlined[0] : 0);
        call->failed |= result == SX_LIKE_BAD_ESCAPE || (escape && escape->length_bytes > 1);
        out[i] = (result == SX_LIKE_YES) != negate;
    }
}
static void like_yes(struct sx_eval_call *call) {
    like(call, false);
}
static void like_no(struct sx_eval_call *call) {
    like(call, true);
}

/* ---- parts and lengths ---- */

static bool is_ascii(const char *bytes, uint32_t length_bytes) {
    uint64_t seen = 0;
    uint32_t i = 0;
    for (; i + 8 <= length_bytes; i += 8)
        seen |= sx_load_u64(bytes + i);
    for (; i < length_bytes; i++)
        seen |= (uint64_t)(uint8_t)bytes[i];
    return !(seen & UINT64_C(0x8080808080808080));
}

static void length(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0];
    int64_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const char *bytes = sx_string_bytes(&a[i]);
        out[i] =
            is_ascii(bytes, a[i].length_bytes) ? a[i].length_bytes : sx_utf8_count(bytes, a[i].length_bytes);
    }
}

/* Where characters are bytes. */
static void ascii_substring(uint32_t length_bytes, int64_t start, int64_t wanted, uint32_t *out_first,
                            uint32_t *out_end) {
    const int64_t bytes = length_bytes;
    int64_t first = start < 0 ? bytes + start + 1 : start, end = first + wanted;
    if (wanted < 0) {
        const int64_t swap = first;
        first = end;
        end = swap;
    }
    first = first < 1 ? 1 : first > bytes + 1 ? bytes + 1 : first;
    end = end < first ? first : end > bytes + 1 ? bytes + 1 : end;
    *out_first = (uint32_t)(first - 1);
    *out_end = (uint32_t)(end - 1);
}

/* As sx_string_make; short parts without a call for the copy. */
static inline struct sx_string part_of(const char *bytes, uint32_t length_bytes) {
    struct sx_string part = {.length_bytes = length_bytes};
    if (length_bytes > SX_STRING_INLINE_BYTES)
        return sx_string_make(bytes, length_bytes);
    if (length_bytes >= 8) {
        memcpy(part.u.inlined, bytes, 8);
        uint32_t last;
        memcpy(&last, bytes + length_bytes - 4, 4);
        memcpy(part.u.inlined + length_bytes - 4, &last, 4);
    } else {
        for (uint32_t i = 0; i < length_bytes; i++)
            part.u.inlined[i] = bytes[i];
    }
    return part;
}

/* Counting from the front, the bytes behind the part don't matter; if those before are ASCII, so many are
 * characters. */
static uint32_t bytes_that_matter(uint32_t length_bytes, int64_t start, int64_t wanted) {
    if (start < 0 || wanted < 0 || start + wanted > length_bytes)
        return length_bytes;
    return start + wanted < 1 ? 0 : (uint32_t)(start + wanted - 1);
}

static void substring(struct sx_eval_call *call) {
    const int64_t min = -(INT64_C(1) << 32), max = UINT32_MAX;
    const struct sx_string *a = call->in[0];
    const int64_t *starts = call->in[1], *lengths = call->in[2];
    struct sx_string *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const struct sx_string *text = &a[i * call->step[0]];
        const int64_t start = starts[i * call->step[1]], wanted = lengths[i * call->step[2]];
        const char *bytes = sx_string_bytes(text);
        uint32_t first = 0, end = 0;
        if (start < min || start > max || wanted < min || wanted > max)
            call->failed = true;
        else if (is_ascii(bytes, bytes_that_matter(text->length_bytes, start, wanted)))
            ascii_substring(text->length_bytes, start, wanted, &first, &end);
        else
            sx_utf8_substring(bytes, text->length_bytes, start, wanted, &first, &end);
        out[i] = part_of(bytes + first, end - first);
    }
}

/* ---- new strings ---- */

static void concat(struct sx_eval_call *call) {
    const struct sx_string *a = call->in[0], *b = call->in[1];
    const uint8_t *valid_a = call->valid[0], *valid_b = call->valid[1];
    const bool skip_null = call->of->instruction->function == SX_FN_CONCAT_SKIP_NULL;
    struct sx_string *restrict out = call->out;
    const struct sx_string nothing = {0};
    if (skip_null)
        call->out_valid = NULL;
    for (int64_t i = 0; i < call->n; i++) {
        const bool has_a = !valid_a || valid_a[i * call->step[0]],
                   has_b = !valid_b || valid_b[i * call->step[1]];
        const struct sx_string *x = has_a ? &a[i * call->step[0]] : &nothing;
        const struct sx_string *y = has_b ? &b[i * call->step[1]] : &nothing;
        const uint64_t bytes = (uint64_t)x->length_bytes + y->length_bytes;
        out[i] = nothing;
        if (!is_out_valid(call, i))
            continue;
        char inlined[SX_STRING_INLINE_BYTES], *joined = inlined;
        if (bytes > UINT32_MAX) {
            call->failed = true;
            continue;
        }
        if (bytes > sizeof inlined && !(joined = sx_eval_heap_take(call, bytes)))
            return;
        memcpy(joined, sx_string_bytes(x), x->length_bytes);
        memcpy(joined + x->length_bytes, sx_string_bytes(y), y->length_bytes);
        out[i] = sx_string_make(joined, (uint32_t)bytes);
    }
}

SX_INLINE void change_case(struct sx_eval_call *call, bool upper) {
    const struct sx_string *a = call->in[0];
    struct sx_string *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const uint32_t bytes = a[i].length_bytes;
        char inlined[3 * SX_STRING_INLINE_BYTES], *room = inlined;
        out[i] = sx_string_make(NULL, 0);
        if (!is_out_valid(call, i))
            continue;
        const char *text = sx_string_bytes(&a[i]);
        const size_t most = is_ascii(text, bytes) ? bytes : (size_t)bytes * 3;
        if (bytes > SX_STRING_INLINE_BYTES && !(room = sx_eval_heap_take(call, most)))
            return;
        uint32_t written = sx_text_case(text, bytes, upper, room);
        if (room == inlined && written > SX_STRING_INLINE_BYTES) {
            if (!(room = sx_eval_heap_take(call, written)))
                return;
            memcpy(room, inlined, written);
        }
        out[i] = sx_string_make(room, written);
    }
}
static void upper_case(struct sx_eval_call *call) {
    change_case(call, true);
}
static void lower_case(struct sx_eval_call *call) {
    change_case(call, false);
}

/* Every row fails; those that count raise the message. */
static void error(struct sx_eval_call *call) {
    memset(call->out, 0, (size_t)call->n * sx_type_bytes(call->of->instruction->type));
    memset(call->own_valid, 0, (size_t)call->n);
    call->failed = call->n > 0;
}

sx_eval_kernel sx_eval_kernel_string(enum sx_function function) {
    switch (function) {
    case SX_FN_PREFIX: return prefix;
    case SX_FN_SUFFIX: return suffix;
    case SX_FN_CONTAINS: return contains;
    case SX_FN_LIKE:
    case SX_FN_LIKE_ESCAPE: return like_yes;
    case SX_FN_NOT_LIKE:
    case SX_FN_NOT_LIKE_ESCAPE: return like_no;
    case SX_FN_SUBSTRING: return substring;
    case SX_FN_LENGTH: return length;
    case SX_FN_UPPER: return upper_case;
    case SX_FN_LOWER: return lower_case;
    case SX_FN_CONCAT:
    case SX_FN_CONCAT_SKIP_NULL: return concat;
    case SX_FN_ERROR: return error;
    default: return NULL;
    }
}
