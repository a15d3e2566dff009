/* The steps that most programs are made of, over all rows of a thread at a time: the operation and the kind
 * are looked at once. For eval.cu only; it takes every other step row by row. */
#ifndef SX_BACKEND_CUDA_EVAL_QUICK_H
#define SX_BACKEND_CUDA_EVAL_QUICK_H

#include "backend/cuda/eval_frame.h"
#include "backend/cuda/eval_number.h"
#include "backend/cuda/eval_quick_string.h"

/* ---- operations that see NULLs ---- */

/* False: `op` is none of these. */
__device__ __forceinline__ bool eval_with_nulls(int op, const struct cuda_eval_value *values,
                                                const bool *valid, struct eval_result *result) {
    bool truth;
    switch (op) {
    case CUDA_EVAL_NOTHING: result->valid = false; return true;
    case CUDA_EVAL_ZERO: result->valid = true; return true;
    case CUDA_EVAL_AND:
        truth = !(valid[0] && values[0].low == 0) && !(valid[1] && values[1].low == 0);
        result->valid = !truth || (valid[0] && valid[1]);
        break;
    case CUDA_EVAL_OR:
        truth = (valid[0] && values[0].low != 0) || (valid[1] && values[1].low != 0);
        result->valid = truth || (valid[0] && valid[1]);
        break;
    case CUDA_EVAL_IS_NULL:
    case CUDA_EVAL_IS_NOT_NULL:
        truth = valid[0] == (op == CUDA_EVAL_IS_NOT_NULL);
        result->valid = true;
        break;
    case CUDA_EVAL_IS_TRUE:
        truth = valid[0] && values[0].low != 0;
        result->valid = true;
        break;
    case CUDA_EVAL_CHOOSE:
        truth = valid[0] && values[0].low != 0;
        result->value = truth ? values[1] : values[2];
        result->valid = truth ? valid[1] : valid[2];
        return true;
    case CUDA_EVAL_COALESCE:
        result->value = valid[0] ? values[0] : values[1];
        result->valid = valid[0] || valid[1];
        return true;
    default: return false;
    }
    result->value = eval_of((uint64_t)truth);
    return true;
}

template <int OP, int N, int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_quick_nulls(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                 const struct cuda_eval_step &step) {
    eval_apply<N>(frame, run, step,
                  [](const struct cuda_eval_value *values, const bool *valid, struct eval_result *result) {
                      eval_with_nulls(OP, values, valid, result);
                  });
}

/* ---- arithmetic ---- */

/* operation(a, b, &out) tells whether the result does not fit T; the step's bounds are looked at, too. */
template <typename T, int LEVEL, int ROWS, typename RUN, typename F>
__device__ __forceinline__ void eval_quick_checked(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                   const struct cuda_eval_step &step, F operation) {
    const T low = (T)step.low, high = (T)step.high;
    eval_apply<2>(frame, run, step,
                  [=](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                      T out = 0;
                      if (!result->valid)
                          return;
                      result->failed = operation(eval_as<T>(values[0]), eval_as<T>(values[1]), &out);
                      result->failed |= out < low || out > high;
                      result->value = eval_of(out);
                  });
}

/* ADD, SUB, MUL. */
template <typename T, int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_quick_integers(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                    const struct cuda_eval_step &step) {
    switch (step.op) {
    case CUDA_EVAL_ADD:
        return eval_quick_checked<T>(frame, run, step, [](T a, T b, T *out) { return eval_add(a, b, out); });
    case CUDA_EVAL_SUB:
        return eval_quick_checked<T>(frame, run, step, [](T a, T b, T *out) { return eval_sub(a, b, out); });
    default:
        return eval_quick_checked<T>(frame, run, step, [](T a, T b, T *out) { return eval_mul(a, b, out); });
    }
}

/* False: not of this step's kind. A DOUBLE can't fail. */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ bool eval_quick_arithmetic(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                      const struct cuda_eval_step &step) {
    if (step.kind == CUDA_EVAL_I64 && step.phys == SX_PHYS_I64) {
        eval_quick_integers<int64_t>(frame, run, step);
        return true;
    }
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        if (step.kind == CUDA_EVAL_I128) {
            eval_quick_integers<sx_i128>(frame, run, step);
            return true;
        }
    if (step.kind != CUDA_EVAL_F64)
        return false;
    const int op = step.op;
    eval_apply<2>(frame, run, step,
                  [=](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                      const double a = eval_as<double>(values[0]), b = eval_as<double>(values[1]);
                      const double out = op == CUDA_EVAL_ADD ? a + b : op == CUDA_EVAL_SUB ? a - b : a * b;
                      if (result->valid)
                          result->value = eval_of(out);
                  });
    return true;
}

/* ---- comparison ---- */

/* compare(a, b) for valid arguments. */
template <typename T, int LEVEL, int ROWS, typename RUN, typename F>
__device__ __forceinline__ void eval_quick_truth(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                 const struct cuda_eval_step &step, F compare) {
    eval_apply<2>(frame, run, step,
                  [=](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                      if (result->valid)
                          result->value =
                              eval_of((uint64_t)compare(eval_as<T>(values[0]), eval_as<T>(values[1])));
                  });
}

/* EQ, NE, LT, LE. */
template <typename T, int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_quick_compared(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                    const struct cuda_eval_step &step) {
    switch (step.op) {
    case CUDA_EVAL_EQ: return eval_quick_truth<T>(frame, run, step, [](T a, T b) { return a == b; });
    case CUDA_EVAL_NE: return eval_quick_truth<T>(frame, run, step, [](T a, T b) { return a != b; });
    case CUDA_EVAL_LT: return eval_quick_truth<T>(frame, run, step, [](T a, T b) { return a < b; });
    default: return eval_quick_truth<T>(frame, run, step, [](T a, T b) { return a <= b; });
    }
}

/* Of integers and decimals, dates and the like, and whether strings are equal. False: of another kind. */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ bool eval_quick_comparison(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                      const struct cuda_eval_step &step) {
    if (step.kind == CUDA_EVAL_I64) {
        eval_quick_compared<int64_t>(frame, run, step);
        return true;
    }
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        if (step.kind == CUDA_EVAL_I128) {
            eval_quick_compared<sx_i128>(frame, run, step);
            return true;
        }
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        if (step.kind == CUDA_EVAL_STRING && (step.op == CUDA_EVAL_EQ || step.op == CUDA_EVAL_NE)) {
            eval_quick_views(frame, run, step);
            return true;
        }
    return false;
}

/* ---- strings ---- */

/* False: not one of these. */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ bool eval_quick_string(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                  const struct cuda_eval_step &step) {
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        switch (step.op) {
        case CUDA_EVAL_PREFIX: eval_quick_prefix(frame, run, step); return true;
        case CUDA_EVAL_SUBSTRING: eval_quick_part(frame, run, step); return true;
        default: break;
        }
    return false;
}

/* ---- all ---- */

/* False: the step is not among them. */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ bool eval_quick(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                           const struct cuda_eval_step &step) {
    switch (step.op) {
    case CUDA_EVAL_ADD:
    case CUDA_EVAL_SUB:
    case CUDA_EVAL_MUL: return eval_quick_arithmetic(frame, run, step);
    case CUDA_EVAL_EQ:
    case CUDA_EVAL_NE:
    case CUDA_EVAL_LT:
    case CUDA_EVAL_LE: return eval_quick_comparison(frame, run, step);
    case CUDA_EVAL_AND: eval_quick_nulls<CUDA_EVAL_AND, 2>(frame, run, step); return true;
    case CUDA_EVAL_OR: eval_quick_nulls<CUDA_EVAL_OR, 2>(frame, run, step); return true;
    case CUDA_EVAL_CHOOSE: eval_quick_nulls<CUDA_EVAL_CHOOSE, 3>(frame, run, step); return true;
    case CUDA_EVAL_IS_NULL: eval_quick_nulls<CUDA_EVAL_IS_NULL, 1>(frame, run, step); return true;
    case CUDA_EVAL_IS_NOT_NULL: eval_quick_nulls<CUDA_EVAL_IS_NOT_NULL, 1>(frame, run, step); return true;
    case CUDA_EVAL_IS_TRUE: eval_quick_nulls<CUDA_EVAL_IS_TRUE, 1>(frame, run, step); return true;
    case CUDA_EVAL_NOT:
        eval_apply<1>(frame, run, step,
                      [](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                          if (result->valid)
                              result->value = eval_of((uint64_t)(values[0].low == 0));
                      });
        return true;
    case CUDA_EVAL_RESIZE:
        eval_apply<1>(frame, run, step,
                      [&](const struct cuda_eval_value *values, const bool *, struct eval_result *result) {
                          if (result->valid)
                              result->value = eval_resize<LEVEL>(step, values[0], result);
                      });
        return true;
    case CUDA_EVAL_IN_LIST: return eval_quick_list(frame, run, step);
    default: return eval_quick_string(frame, run, step);
    }
}

#endif
