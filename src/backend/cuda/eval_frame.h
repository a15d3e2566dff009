/* The interpreter's frame: what a thread holds of the rows that it takes through the steps together. For
 * eval.cu only. */
#ifndef SX_BACKEND_CUDA_EVAL_FRAME_H
#define SX_BACKEND_CUDA_EVAL_FRAME_H

#include "backend/cuda/eval_value.h"

template <int LEVEL> struct eval_word {
    uint64_t low, high;
};
template <> struct eval_word<CUDA_EVAL_NARROW> {
    uint64_t low;
};

/* RUN: cuda_eval_run, or cuda_eval_direct, which has no NULL anywhere. */
template <typename RUN> constexpr bool EVAL_HAS_NULLS = true;
template <> constexpr bool EVAL_HAS_NULLS<struct cuda_eval_direct> = false;

/* Finding out what a step is costs more than most steps: it is done once for ROWS rows, a block's width
 * apart, so that neighbours read and write neighbours. Loops over them are unrolled: what is indexed by row
 * stays in registers. */
template <int LEVEL, int ROWS, typename RUN> struct eval_frame {
    /* In shared memory: local memory is written through to the L2 cache, which then is the bound. Slot s of
     * row r is slots[(s * ROWS + r) * CUDA_THREADS]. */
    eval_word<LEVEL> *slots;
    uint32_t valid[ROWS]; /* a bit a slot */
    int64_t row[ROWS];    /* of the batch */
    uint32_t active;      /* a bit a row that exists and passed every TEST so far */
    uint32_t full; /* a bit a row for whose strings there is no room: its values and faults mean nothing */
};

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ eval_word<LEVEL> *eval_slot(const eval_frame<LEVEL, ROWS, RUN> &frame,
                                                       int32_t place, int r) {
    return frame.slots + (place * ROWS + r) * CUDA_THREADS;
}
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ bool eval_valid(const eval_frame<LEVEL, ROWS, RUN> &frame, int32_t place, int r) {
    return !EVAL_HAS_NULLS<RUN> || (frame.valid[r] >> place & 1);
}
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_set_valid(eval_frame<LEVEL, ROWS, RUN> &frame, int32_t place, int r,
                                               bool valid) {
    if (!EVAL_HAS_NULLS<RUN>)
        return;
    const uint32_t bit = 1u << place;
    frame.valid[r] = valid ? frame.valid[r] | bit : frame.valid[r] & ~bit;
}

/* Programs that need many values at a time: a row at a time, in local memory. */
template <int LEVEL, typename RUN> struct eval_frame<LEVEL, 0, RUN> {
    eval_word<LEVEL> slots[CUDA_EVAL_MOST_SLOTS];
    uint64_t valid[CUDA_EVAL_MOST_SLOTS / 64];
    int64_t row[1];
    uint32_t active, full;
};

template <int LEVEL, typename RUN>
__device__ __forceinline__ const eval_word<LEVEL> *eval_slot(const eval_frame<LEVEL, 0, RUN> &frame,
                                                             int32_t place, int) {
    return &frame.slots[place];
}
template <int LEVEL, typename RUN>
__device__ __forceinline__ eval_word<LEVEL> *eval_slot(eval_frame<LEVEL, 0, RUN> &frame, int32_t place, int) {
    return &frame.slots[place];
}
template <int LEVEL, typename RUN>
__device__ __forceinline__ bool eval_valid(const eval_frame<LEVEL, 0, RUN> &frame, int32_t place, int) {
    return frame.valid[place / 64] >> (place % 64) & 1;
}
template <int LEVEL, typename RUN>
__device__ __forceinline__ void eval_set_valid(eval_frame<LEVEL, 0, RUN> &frame, int32_t place, int,
                                               bool valid) {
    const uint64_t bit = (uint64_t)1 << (place % 64);
    uint64_t *word = &frame.valid[place / 64];
    *word = valid ? *word | bit : *word & ~bit;
}

/* Rows of a frame. */
template <int ROWS> constexpr int EVAL_ROWS = ROWS ? ROWS : 1;

/* An argument of a step. */
struct eval_operand {
    int32_t place; /* below 0: a constant */
    bool is_valid;
    struct cuda_eval_value constant;
};

template <typename RUN>
__device__ __forceinline__ struct eval_operand eval_operand_of(const RUN &run, int32_t place) {
    if (place >= 0)
        return {place, false, {0, 0}};
    if constexpr (EVAL_HAS_NULLS<RUN>)
        return {place, run.constant_valid[-1 - place] != 0, run.constants[-1 - place]};
    else
        return {place, true, run.constants[-1 - place]};
}

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ struct cuda_eval_value eval_get(const eval_frame<LEVEL, ROWS, RUN> &frame,
                                                           const struct eval_operand &operand, int r,
                                                           bool *out_valid) {
    const int32_t place = operand.place;
    if (place < 0) {
        *out_valid = operand.is_valid;
        return operand.constant;
    }
    *out_valid = eval_valid(frame, place, r);
    const eval_word<LEVEL> *word = eval_slot(frame, place, r);
    struct cuda_eval_value value = {word->low, 0};
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        value.high = word->high;
    return value;
}

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_set(eval_frame<LEVEL, ROWS, RUN> &frame, int32_t place, int r,
                                         struct cuda_eval_value value, bool valid) {
    eval_set_valid(frame, place, r, valid);
    eval_word<LEVEL> *word = eval_slot(frame, place, r);
    word->low = value.low;
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        word->high = value.high;
}

/* ---- faults ---- */

/* By value, since an array whose address is taken lies in local memory. */
struct eval_arguments {
    struct cuda_eval_value values[CUDA_EVAL_MAX_ARGUMENTS];
};

template <typename RUN>
__attribute__((noinline)) __device__ static void eval_report(const RUN &run,
                                                             const struct cuda_eval_step &step, int64_t row,
                                                             struct eval_arguments arguments) {
    struct cuda_fault *fault = &run.control->fault;
    if (atomicCAS(&fault->kind, (uint32_t)CUDA_FAULT_NONE, (uint32_t)CUDA_FAULT_EXPRESSION) !=
        CUDA_FAULT_NONE)
        return;
    fault->what = (uint32_t)step.number;
    fault->row = row;
    fault->detail[0] = (uint64_t)(uintptr_t)run.owner;
    for (int k = 0; k < CUDA_EVAL_MAX_ARGUMENTS; k++)
        run.failure->arguments[k] = arguments.values[k];
}

/* Whether the row's errors count in this step. */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ bool eval_counts(const eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                            const struct cuda_eval_step &step, int r) {
    if (frame.full >> r & 1)
        return false;
    if (step.mask == CUDA_EVAL_NO_SLOT)
        return true;
    bool valid;
    const bool counts = eval_get(frame, eval_operand_of(run, step.mask), r, &valid).low != 0;
    return counts && valid;
}

/* The step's result for an active row. */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_finish(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                            const struct cuda_eval_step &step, int r,
                                            const struct eval_arguments &arguments,
                                            struct eval_result result) {
    if (result.failed && step.on_fail == CUDA_EVAL_NULL)
        result.valid = false;
    else if (result.failed && step.on_fail == CUDA_EVAL_ERROR && eval_counts(frame, run, step, r))
        eval_report(run, step, frame.row[r], arguments);
    eval_set(frame, step.out, r, result.value, result.valid);
}

/* apply(values, valid, &result) for each active row; result is zero, valid where all N arguments are. */
template <int N, int LEVEL, int ROWS, typename RUN, typename F>
__device__ __forceinline__ void eval_apply(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                           const struct cuda_eval_step &step, F apply) {
    struct eval_operand operands[N];
    SX_UNROLL
    for (int k = 0; k < N; k++)
        operands[k] = eval_operand_of(run, step.arguments[k]);
    SX_UNROLL
    for (int r = 0; r < EVAL_ROWS<ROWS>; r++) {
        if (!(frame.active >> r & 1))
            continue;
        struct eval_arguments arguments = {};
        bool valid[N];
        struct eval_result result = {{0, 0}, true, false};
        SX_UNROLL
        for (int k = 0; k < N; k++) {
            arguments.values[k] = eval_get(frame, operands[k], r, &valid[k]);
            result.valid &= valid[k];
        }
        apply(arguments.values, valid, &result);
        eval_finish(frame, run, step, r, arguments, result);
    }
}

/* Those of `rows`, bits, whose errors count are told. Not inlined: it is rare. The frame by value, like
 * arguments above. */
template <int LEVEL, int ROWS, typename RUN>
__attribute__((noinline)) __device__ static void eval_fail(eval_frame<LEVEL, ROWS, RUN> frame, const RUN &run,
                                                           const struct cuda_eval_step &step, uint32_t rows) {
    for (int r = 0; r < EVAL_ROWS<ROWS>; r++) {
        struct eval_arguments arguments = {};
        bool valid;
        if (!(rows >> r & 1) || !eval_counts(frame, run, step, r))
            continue;
        for (int k = 0; k < step.n_arguments; k++)
            arguments.values[k] = eval_get(frame, eval_operand_of(run, step.arguments[k]), r, &valid);
        eval_report(run, step, frame.row[r], arguments);
    }
}

/* The same of a direct run: whether a row is active is asked where it matters, so that rows take no
 * branches. */
template <int N, int LEVEL, int ROWS, typename F>
__device__ __forceinline__ void eval_apply(eval_frame<LEVEL, ROWS, struct cuda_eval_direct> &frame,
                                           const struct cuda_eval_direct &run,
                                           const struct cuda_eval_step &step, F apply) {
    struct eval_operand operands[N];
    struct cuda_eval_value values[ROWS];
    uint32_t failed = 0;
    SX_UNROLL
    for (int k = 0; k < N; k++)
        operands[k] = eval_operand_of(run, step.arguments[k]);
    SX_UNROLL
    for (int r = 0; r < ROWS; r++) {
        struct eval_arguments arguments = {};
        struct eval_result result = {{0, 0}, true, false};
        bool valid[N];
        SX_UNROLL
        for (int k = 0; k < N; k++) {
            arguments.values[k] = eval_get(frame, operands[k], r, &valid[k]);
            valid[k] = true;
        }
        apply(arguments.values, valid, &result);
        failed |= (uint32_t)result.failed << r;
        values[r] = result.value;
    }
    failed &= frame.active;
    if (failed && step.on_fail == CUDA_EVAL_ERROR)
        eval_fail(frame, run, step, failed);
    SX_UNROLL
    for (int r = 0; r < ROWS; r++)
        eval_set(frame, step.out, r, values[r], true);
}

#endif
