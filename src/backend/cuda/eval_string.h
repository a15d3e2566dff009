/* Strings of the interpreter. For eval.cu only. */
#ifndef SX_BACKEND_CUDA_EVAL_STRING_H
#define SX_BACKEND_CUDA_EVAL_STRING_H

#include "backend/cuda/eval_value.h"
#include "backend/cuda/view.h"
#include "tensor/semantics_case.h"
#include "tensor/semantics_like.h"

/* ---- tests ---- */

/* The part is no longer than the text. */
__device__ static inline bool eval_contains(const char *text, uint32_t text_bytes, const char *part,
                                            uint32_t part_bytes) {
    if (part_bytes == 0)
        return true;
    const uint32_t n_places = text_bytes - part_bytes + 1;
    uint32_t at = sx_text_find_byte(text, n_places, 0, part[0]);
    while (at < n_places && sx_bytes_compare(text + at, part, part_bytes) != 0)
        at = sx_text_find_byte(text, n_places, at + 1, part[0]);
    return at < n_places;
}

__device__ static inline bool eval_test_part(const struct cuda_eval_step &step, const struct sx_string &text,
                                             const struct sx_string &part) {
    const char *a = view_bytes(text), *b = view_bytes(part);
    const uint32_t n = part.length_bytes;
    if (n > text.length_bytes)
        return false;
    if (step.op == CUDA_EVAL_CONTAINS)
        return eval_contains(a, text.length_bytes, b, n);
    return sx_bytes_compare(step.op == CUDA_EVAL_PREFIX ? a : a + text.length_bytes - n, b, n) == 0;
}

/* The escape, if there is one, is empty or one byte. */
__device__ static inline bool eval_like(const struct cuda_eval_step &step, const struct sx_string &text,
                                        const struct sx_string &pattern, const struct sx_string &escape,
                                        struct eval_result *result) {
    const bool has_escape = step.n_arguments > 2 && escape.length_bytes == 1;
    const enum sx_like_result like =
        sx_like(view_bytes(text), text.length_bytes, view_bytes(pattern), pattern.length_bytes, has_escape,
                has_escape ? escape.u.inlined[0] : 0);
    result->failed = like == SX_LIKE_BAD_ESCAPE || (step.n_arguments > 2 && escape.length_bytes > 1);
    return (like == SX_LIKE_YES) != (step.variant != 0);
}

/* ---- parts ---- */

__device__ static inline struct sx_string eval_substring(const struct sx_string &text, int64_t start,
                                                         int64_t wanted, struct eval_result *result) {
    const int64_t min = -(INT64_C(1) << 32), max = UINT32_MAX;
    const char *bytes = view_bytes(text);
    uint32_t first = 0, end = 0;
    if (start < min || start > max || wanted < min || wanted > max)
        result->failed = true;
    else
        sx_utf8_substring(bytes, text.length_bytes, start, wanted, &first, &end);
    return view_of(bytes + first, end - first);
}

template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_string(const struct cuda_eval_step &step,
                                                            const struct cuda_eval_value arguments[3],
                                                            struct eval_result *result) {
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        const struct sx_string a = eval_as<struct sx_string>(arguments[0]);
        const struct sx_string b = eval_as<struct sx_string>(arguments[1]);
        switch (step.op) {
        case CUDA_EVAL_LIKE: {
            const struct sx_string c = eval_as<struct sx_string>(arguments[2]);
            return eval_of((uint64_t)eval_like(step, a, b, c, result));
        }
        case CUDA_EVAL_LENGTH: return eval_of(sx_utf8_count(view_bytes(a), a.length_bytes));
        case CUDA_EVAL_SUBSTRING:
            return eval_of(
                eval_substring(a, eval_as<int64_t>(arguments[1]), eval_as<int64_t>(arguments[2]), result));
        default: return eval_of((uint64_t)eval_test_part(step, a, b));
        }
    }
    return arguments[0];
}

/* ---- new strings ---- */

/* Room for each lane of a warp, of which all lanes ask; NULL where bytes is 0 and where the heap is full. */
__device__ static inline char *eval_heap_take(const struct cuda_eval_run &run, int64_t bytes) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    int64_t upto = bytes;
    for (int by = 1; by < CUDA_WARP; by *= 2) {
        const int64_t left = __shfl_up_sync(0xffffffffu, upto, by);
        if (lane >= by)
            upto += left;
    }
    const int64_t total = __shfl_sync(0xffffffffu, upto, CUDA_WARP - 1);
    int64_t first = 0;
    if (lane == 0 && total > 0)
        first = (int64_t)atomicAdd((unsigned long long *)run.heap_used_bytes, (unsigned long long)total);
    first = __shfl_sync(0xffffffffu, first, 0) + upto - bytes;
    return bytes > 0 && first + bytes <= run.heap_bytes ? run.heap + first : NULL;
}

/* A string of `bytes`, of which all lanes of a warp ask: *out_place is where they go, `inlined` or the heap;
 * NULL: the heap is full, which *full remembers. */
__device__ static inline char *eval_place(const struct cuda_eval_run &run, uint64_t bytes, char *inlined,
                                          bool *full) {
    char *place = eval_heap_take(run, bytes > SX_STRING_INLINE_BYTES ? (int64_t)bytes : 0);
    if (bytes <= SX_STRING_INLINE_BYTES)
        return inlined;
    *full |= !place;
    return place;
}

/* Null arguments are empty. */
__device__ static inline struct sx_string eval_concat(const struct cuda_eval_run &run, struct sx_string a,
                                                      struct sx_string b, struct eval_result *result,
                                                      bool *full) {
    uint64_t bytes = (uint64_t)a.length_bytes + b.length_bytes;
    char inlined[SX_STRING_INLINE_BYTES];
    result->failed = bytes > UINT32_MAX;
    if (result->failed)
        bytes = 0;
    char *place = eval_place(run, bytes, inlined, full);
    if (!place || result->failed)
        return view_of(NULL, 0);
    memcpy(place, view_bytes(a), a.length_bytes);
    memcpy(place + a.length_bytes, view_bytes(b), b.length_bytes);
    return view_of(place, (uint32_t)bytes);
}

__device__ static inline struct sx_string eval_case(const struct cuda_eval_run &run, struct sx_string a,
                                                    bool upper, bool *full) {
    const uint32_t bytes = sx_text_case(view_bytes(a), a.length_bytes, upper, NULL);
    char inlined[SX_STRING_INLINE_BYTES];
    char *place = eval_place(run, bytes, inlined, full);
    if (!place)
        return view_of(NULL, 0);
    sx_text_case(view_bytes(a), a.length_bytes, upper, place);
    return view_of(place, bytes);
}

#endif
