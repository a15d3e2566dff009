/* Columns into the interpreter's frame, and out of it. For eval.cu only. */
#ifndef SX_BACKEND_CUDA_EVAL_COLUMN_H
#define SX_BACKEND_CUDA_EVAL_COLUMN_H

#include "backend/cuda/eval_frame.h"

/* What is stored as a T becomes a slot's value by way of a W. */
template <typename T, typename W, int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_load_rows(eval_frame<LEVEL, ROWS, RUN> &frame,
                                               const struct cuda_column &column, int32_t out) {
    int64_t at[EVAL_ROWS<ROWS>];
    T values[EVAL_ROWS<ROWS>] = {};
    const T *from = (const T *)(column.layout == CUDA_DICT ? column.dict : column.values);
    SX_UNROLL
    for (int r = 0; r < EVAL_ROWS<ROWS>; r++)
        at[r] = column.layout == CUDA_CONSTANT ? 0 : frame.row[r];
    if (column.layout == CUDA_DICT) {
        SX_UNROLL
        for (int r = 0; r < EVAL_ROWS<ROWS>; r++)
            if (frame.active >> r & 1)
                at[r] = ((const int32_t *)column.values)[frame.row[r]];
    }
    SX_UNROLL
    for (int r = 0; r < EVAL_ROWS<ROWS>; r++)
        if (frame.active >> r & 1)
            values[r] = from[at[r]];
    SX_UNROLL
    for (int r = 0; r < EVAL_ROWS<ROWS>; r++)
        if (!EVAL_HAS_NULLS<RUN>)
            eval_set(frame, out, r, eval_of((W)values[r]), true);
        else if (frame.active >> r & 1)
            eval_set(frame, out, r, eval_of((W)values[r]), cuda_is_valid(column, frame.row[r]));
}

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_load_step(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                               const struct cuda_eval_step &step) {
    const struct cuda_column column = run.columns[step.place].column;
    const int32_t out = step.out;
    switch (step.phys) {
    case SX_PHYS_I8: return eval_load_rows<int8_t, int64_t>(frame, column, out);
    case SX_PHYS_I16: return eval_load_rows<int16_t, int64_t>(frame, column, out);
    case SX_PHYS_I32: return eval_load_rows<int32_t, int64_t>(frame, column, out);
    case SX_PHYS_U8: return eval_load_rows<uint8_t, uint64_t>(frame, column, out);
    case SX_PHYS_U16: return eval_load_rows<uint16_t, uint64_t>(frame, column, out);
    case SX_PHYS_F32:
    case SX_PHYS_U32: return eval_load_rows<uint32_t, uint64_t>(frame, column, out);
    case SX_PHYS_F64:
    case SX_PHYS_I64:
    case SX_PHYS_U64: return eval_load_rows<uint64_t, uint64_t>(frame, column, out);
    default:
        if constexpr (LEVEL >= CUDA_EVAL_WIDE)
            eval_load_rows<struct cuda_eval_value, struct cuda_eval_value>(frame, column, out);
    }
}

/* A function of a dictionary column, by code. */
template <int LEVEL, int ROWS, typename RUN>
__device__ static inline void eval_table_step(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                              const struct cuda_eval_step &step) {
    const struct cuda_eval_column table = run.columns[step.place];
    struct cuda_column null = table.column;
    null.values = table.null_value;
    null.layout = CUDA_CONSTANT;
    SX_UNROLL
    for (int r = 0; r < EVAL_ROWS<ROWS>; r++) {
        const int64_t row = frame.row[r];
        if (!(frame.active >> r & 1))
            continue;
        const bool is_null = !cuda_is_valid(table.column, row);
        const bool valid =
            is_null ? table.null_is_valid
                    : !table.entry_valid || table.entry_valid[((const int32_t *)table.column.values)[row]];
        eval_set(frame, step.out, r, eval_load<LEVEL>(is_null ? null : table.column, step.phys, row), valid);
    }
}

/* `at`: of the first row, in the outputs. */
template <int LEVEL, int ROWS, typename RUN>
__device__ static inline void eval_store_step(const eval_frame<LEVEL, ROWS, RUN> &frame, int64_t at,
                                              const RUN &run, const struct cuda_eval_step &step) {
    const struct cuda_eval_output output = run.outputs[step.place];
    const struct eval_operand operand = eval_operand_of(run, step.arguments[0]);
    SX_UNROLL
    for (int r = 0; r < EVAL_ROWS<ROWS>; r++) {
        if (!(frame.active >> r & 1))
            continue;
        bool valid;
        struct cuda_eval_value value = eval_get(frame, operand, r, &valid);
        if (!valid)
            value = cuda_eval_value{0, 0};
        const int64_t to = at + r * CUDA_THREADS;
        eval_store<LEVEL>(output.values, step.phys, to, value);
        if (output.valid)
            output.valid[to] = valid;
    }
}

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_test_step(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                               const struct cuda_eval_step &step) {
    const struct eval_operand operand = eval_operand_of(run, step.arguments[0]);
    SX_UNROLL
    for (int r = 0; r < EVAL_ROWS<ROWS>; r++) {
        if (!(frame.active >> r & 1))
            continue;
        bool valid;
        const bool passes = eval_get(frame, operand, r, &valid).low != 0;
        if (!passes || !valid)
            frame.active &= ~(1u << r);
    }
}

#endif
