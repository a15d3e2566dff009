/* Strings by their views, where these tell enough: in registers, without a look at bytes elsewhere. A view's
 * words are the length and the first four bytes, and up to eight more or where all of them are (tensor.h).
 * For eval.cu only. */
#ifndef SX_BACKEND_CUDA_EVAL_QUICK_STRING_H
#define SX_BACKEND_CUDA_EVAL_QUICK_STRING_H

#include "backend/cuda/eval_frame.h"
#include "backend/cuda/eval_string.h"

__device__ __forceinline__ uint32_t eval_view_length(struct cuda_eval_value view) {
    return (uint32_t)view.low;
}

/* How many of its first bytes the view has itself. */
__device__ __forceinline__ uint32_t eval_view_has(struct cuda_eval_value view) {
    const uint32_t length = eval_view_length(view);
    return length <= SX_STRING_INLINE_BYTES ? length
                                            : (uint32_t)sizeof(((struct sx_string *)0)->u.ref.prefix);
}

/* The first `n` bytes, as many as the view has, the first one lowest; 0 behind them. */
__device__ __forceinline__ sx_u128 eval_view_bytes(struct cuda_eval_value view, uint32_t n) {
    const sx_u128 bytes = (sx_u128)view.high << 32 | view.low >> 32;
    return bytes & (((sx_u128)1 << 8 * n) - 1);
}

/* EQ, NE */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_quick_views(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                 const struct cuda_eval_step &step) {
    const bool wanted = step.op == CUDA_EVAL_EQ;
    eval_apply<2>(frame, run, step,
                  [=](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                      if (result->valid)
                          result->value = eval_of((
                              uint64_t)(eval_equal<LEVEL>(CUDA_EVAL_STRING, values[0], values[1]) == wanted));
                  });
}

/* ---- a list of constants ---- */

template <int LEVEL>
__device__ __forceinline__ bool eval_is_listed(const struct cuda_eval_step &step,
                                               struct cuda_eval_value value) {
    const struct cuda_eval_value *list = (const struct cuda_eval_value *)step.list;
    bool is_listed = false;
    SX_ROLL
    for (int32_t i = 0; i < step.place; i++)
        is_listed |= eval_equal<LEVEL>(step.kind, list[i], value);
    return is_listed;
}

/* Of few constants, one after another: rows do not part, as they do where they halve a list. */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ bool eval_quick_list(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                const struct cuda_eval_step &step) {
    if (!cuda_eval_list_is_quick(step.kind, step.place))
        return false;
    eval_apply<1>(frame, run, step,
                  [&](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                      if (result->valid)
                          result->value = eval_of((uint64_t)eval_is_listed<LEVEL>(step, values[0]));
                  });
    return true;
}

/* ---- parts ---- */

__attribute__((noinline)) __device__ static bool eval_far_prefix(struct cuda_eval_value text,
                                                                 struct cuda_eval_value part) {
    const struct sx_string a = eval_as<struct sx_string>(text), b = eval_as<struct sx_string>(part);
    return sx_bytes_compare(view_bytes(a), view_bytes(b), b.length_bytes) == 0;
}

__device__ __forceinline__ bool eval_view_begins(struct cuda_eval_value text, struct cuda_eval_value part) {
    const uint32_t n = eval_view_length(part), has = eval_view_has(text), part_has = eval_view_has(part),
                   known = has < part_has ? has : part_has;
    if (n > eval_view_length(text) || eval_view_bytes(text, known) != eval_view_bytes(part, known))
        return false;
    return known == n || eval_far_prefix(text, part);
}

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_quick_prefix(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                  const struct cuda_eval_step &step) {
    eval_apply<2>(frame, run, step,
                  [](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                      if (result->valid)
                          result->value = eval_of((uint64_t)eval_view_begins(values[0], values[1]));
                  });
}

/* Of characters of one byte, all of which the view has. False: others matter. */
__device__ __forceinline__ bool eval_view_part(struct cuda_eval_value text, int64_t start, int64_t wanted,
                                               struct cuda_eval_value *out) {
    if (start < 1 || wanted < 0 || start > SX_STRING_INLINE_BYTES || wanted > SX_STRING_INLINE_BYTES)
        return false;
    const uint32_t length = eval_view_length(text), upto = (uint32_t)(start - 1 + wanted),
                   end = upto < length ? upto : length, skipped = (uint32_t)(start - 1),
                   first = skipped < end ? skipped : end;
    if (end > eval_view_has(text))
        return false;
    const sx_u128 bytes = eval_view_bytes(text, end),
                  above_ascii = (sx_u128)UINT64_C(0x8080808080808080) << 64 | UINT64_C(0x8080808080808080);
    if (bytes & above_ascii)
        return false;
    const sx_u128 part = bytes >> 8 * first;
    *out = {(uint64_t)part << 32 | (end - first), (uint64_t)(part >> 32)};
    return true;
}

__attribute__((noinline)) __device__ static struct eval_result eval_far_part(struct cuda_eval_value text,
                                                                             int64_t start, int64_t wanted) {
    struct eval_result result = {{0, 0}, true, false};
    result.value = eval_of(eval_substring(eval_as<struct sx_string>(text), start, wanted, &result));
    return result;
}

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_quick_part(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                const struct cuda_eval_step &step) {
    eval_apply<3>(frame, run, step,
                  [](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                      const int64_t start = eval_as<int64_t>(values[1]), wanted = eval_as<int64_t>(values[2]);
                      if (result->valid && !eval_view_part(values[0], start, wanted, &result->value))
                          *result = eval_far_part(values[0], start, wanted);
                  });
}

#endif
