/* The interpreter of expressions: every thread takes a few rows at a time through all steps. The steps are
 * the same for all threads, so the switches do not diverge. Slots are shared memory, and the host has made
 * them few (see eval_plan.c); inputs are read once and outputs are written once, and nothing else goes
 * through memory: a row moves the bytes of its inputs and outputs, and its strings. Three levels of kernels,
 * so that programs over values of up to 8 bytes do not carry the registers of 128-bit arithmetic and strings:
 * NARROW, WIDE and TEXT. */
#include "backend/cuda/eval_column.h"
#include "backend/cuda/eval_quick.h"
#include "backend/cuda/eval_string.h"
#include "backend/cuda/eval_text.h"

/* ---- what is not common ---- */

template <int LEVEL>
__device__ static inline void eval_values(const struct cuda_eval_step &step,
                                          const struct cuda_eval_value *values, struct eval_result *result) {
    const struct cuda_eval_value a = values[0], b = values[1];
    switch (step.op) {
    case CUDA_EVAL_COPY: result->value = a; break;
    case CUDA_EVAL_NOT: result->value = eval_of((uint64_t)(a.low == 0)); break;
    case CUDA_EVAL_RESIZE: result->value = eval_resize<LEVEL>(step, a, result); break;
    case CUDA_EVAL_TO_BOOL: result->value = eval_of((uint64_t)eval_to_bool<LEVEL>(step, a)); break;
    case CUDA_EVAL_TO_FLOAT: result->value = eval_to_float<LEVEL>(step, a, result); break;
    case CUDA_EVAL_DECIMAL_TO_FLOAT: result->value = eval_decimal_to_float<LEVEL>(step, a); break;
    case CUDA_EVAL_FLOAT_TO_INTEGER: result->value = eval_float_to_integer<LEVEL>(step, a, result); break;
    case CUDA_EVAL_FLOAT_TO_DECIMAL: result->value = eval_float_to_decimal<LEVEL>(step, a, result); break;
    case CUDA_EVAL_EQ:
    case CUDA_EVAL_NE:
    case CUDA_EVAL_LT:
    case CUDA_EVAL_LE: result->value = eval_of((uint64_t)eval_compare<LEVEL>(step, a, b)); break;
    case CUDA_EVAL_IN_LIST: result->value = eval_of((uint64_t)eval_in_list<LEVEL>(step, a)); break;
    case CUDA_EVAL_FAIL: result->failed = true; break;
    case CUDA_EVAL_FROM_TEXT:
        if constexpr (LEVEL >= CUDA_EVAL_TEXT)
            result->failed = !eval_from_text(step, eval_as<struct sx_string>(a), &result->value);
        break;
    default:
        if (step.op < CUDA_EVAL_RESIZE)
            result->value = eval_arithmetic<LEVEL>(step, a, b, result);
        else if (step.op < CUDA_EVAL_LIKE)
            result->value = eval_date<LEVEL>(step, a, b, result);
        else
            result->value = eval_string<LEVEL>(step, values, result);
    }
}

/* DISTINCT and NOT_DISTINCT: NULL is a value. */
template <int LEVEL>
__device__ static inline void eval_distinct(const struct cuda_eval_step &step,
                                            const struct cuda_eval_value *values, const bool *valid,
                                            struct eval_result *result) {
    bool truth = (valid[0] != valid[1]) == (step.op == CUDA_EVAL_DISTINCT);
    if (valid[0] && valid[1])
        truth = eval_compare<LEVEL>(step, values[0], values[1]);
    result->value = eval_of((uint64_t)truth);
    result->valid = true;
}

/* Strings that may go to the heap; every lane of the warp comes here, those without a row with NULLs. */
template <int LEVEL>
__device__ static inline void eval_new_string(const struct cuda_eval_run &run,
                                              const struct cuda_eval_step &step,
                                              const struct cuda_eval_value *values, const bool *valid,
                                              struct eval_result *result, bool *full) {
    struct sx_string made = {};
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        const struct sx_string nothing = {};
        const bool skips_null = step.op == CUDA_EVAL_CONCAT && step.variant;
        result->valid |= skips_null;
        const struct sx_string a = valid[0] && result->valid ? eval_as<struct sx_string>(values[0]) : nothing;
        const struct sx_string b = valid[1] && result->valid ? eval_as<struct sx_string>(values[1]) : nothing;
        if (step.op == CUDA_EVAL_CONCAT)
            made = eval_concat(run, a, b, result, full);
        else if (LEVEL == CUDA_EVAL_WIDE || step.op != CUDA_EVAL_TO_TEXT)
            made = eval_case(run, a, step.op == CUDA_EVAL_UPPER, full);
    }
    if constexpr (LEVEL >= CUDA_EVAL_TEXT)
        if (step.op == CUDA_EVAL_TO_TEXT)
            made = eval_to_text(run, step, values[0], result->valid, full);
    result->value = eval_of(made);
}

/* ---- one step ---- */

/* Called, not inlined: it is large, and the steps that are common do not come here. Every lane of the warp
 * comes here where a step makes strings, those without a row with NULLs. */
template <int LEVEL>
__attribute__((noinline)) __device__ static void eval_operate(const struct cuda_eval_run &run,
                                                              const struct cuda_eval_step &step,
                                                              const struct cuda_eval_value *values,
                                                              const bool *valid, struct eval_result *result,
                                                              bool *full) {
    const bool all_valid = result->valid;
    if (LEVEL >= CUDA_EVAL_WIDE && (step.op >= CUDA_EVAL_CONCAT && step.op <= CUDA_EVAL_TO_TEXT))
        eval_new_string<LEVEL>(run, step, values, valid, result, full);
    else if (step.op == CUDA_EVAL_DISTINCT || step.op == CUDA_EVAL_NOT_DISTINCT)
        eval_distinct<LEVEL>(step, values, valid, result);
    else if (!eval_with_nulls(step.op, values, valid, result) && all_valid)
        eval_values<LEVEL>(step, values, result);
}

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_row_step(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                              const struct cuda_eval_step &step, int r) {
    struct eval_arguments arguments = {};
    bool valid[CUDA_EVAL_MAX_ARGUMENTS] = {}, full = false;
    const bool active = frame.active >> r & 1;
    struct eval_result result = {{0, 0}, active, false};
    for (int k = 0; k < CUDA_EVAL_MAX_ARGUMENTS; k++)
        if (k < step.n_arguments && active) {
            arguments.values[k] = eval_get(frame, eval_operand_of(run, step.arguments[k]), r, &valid[k]);
            result.valid &= valid[k];
        }
    eval_operate<LEVEL>(run, step, arguments.values, valid, &result, &full);
    frame.full |= (uint32_t)full << r;
    if (active)
        eval_finish(frame, run, step, r, arguments, result);
}

/* Of a direct run all are quick. */
template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_other_step(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run,
                                                const struct cuda_eval_step &step) {
    if constexpr (ROWS > 0)
        if (eval_quick(frame, run, step))
            return;
    if constexpr (EVAL_HAS_NULLS<RUN>) {
        if (step.op == CUDA_EVAL_LOAD_TABLE)
            return eval_table_step(frame, run, step);
        SX_UNROLL
        for (int r = 0; r < EVAL_ROWS<ROWS>; r++)
            eval_row_step(frame, run, step, r);
    }
}

template <int LEVEL, int ROWS, typename RUN>
__device__ static inline void eval_rows(eval_frame<LEVEL, ROWS, RUN> &frame, const RUN &run, int64_t at) {
    for (int32_t s = 0; s < run.n_steps; s++) {
        const struct cuda_eval_step &step = run.steps[s];
        if (!frame.active && (LEVEL == CUDA_EVAL_NARROW || step.op < CUDA_EVAL_CONCAT))
            continue; /* a warp's lanes meet at the steps that make strings */
        switch (step.op) {
        case CUDA_EVAL_LOAD: eval_load_step(frame, run, step); break;
        case CUDA_EVAL_STORE: eval_store_step(frame, at, run, step); break;
        case CUDA_EVAL_TEST: eval_test_step(frame, run, step); break;
        default: eval_other_step(frame, run, step);
        }
    }
}

template <int LEVEL, int ROWS, typename RUN>
__device__ __forceinline__ void eval_begin(eval_frame<LEVEL, ROWS, RUN> &frame, eval_word<LEVEL> *shared) {
    if constexpr (ROWS > 0) {
        frame.slots = shared + threadIdx.x;
        for (uint32_t &bits : frame.valid)
            bits = 0;
    } else {
        for (uint64_t &bits : frame.valid)
            bits = 0;
    }
}

template <int LEVEL, int ROWS, typename RUN> __device__ __forceinline__ void eval_all(const RUN &run) {
    SX_DYNAMIC_SHARED(shared);
    constexpr int64_t TILE = CUDA_THREADS * EVAL_ROWS<ROWS>;
    for (int64_t first = blockIdx.x * TILE; first < run.rows; first += gridDim.x * TILE) {
        eval_frame<LEVEL, ROWS, RUN> frame;
        const int64_t at = first + threadIdx.x;
        if (at - threadIdx.x % CUDA_WARP >= run.rows)
            break; /* no lane of the warp has a row */
        eval_begin(frame, (eval_word<LEVEL> *)shared);
        frame.active = frame.full = 0;
        SX_UNROLL
        for (int r = 0; r < EVAL_ROWS<ROWS>; r++) {
            const int64_t row = at + r * CUDA_THREADS;
            const bool exists = row < run.rows;
            frame.active |= (uint32_t)exists << r;
            frame.row[r] = exists && run.selection ? (int64_t)run.selection[row] : row;
        }
        eval_rows(frame, run, at);
        SX_UNROLL
        for (int r = 0; r < EVAL_ROWS<ROWS>; r++)
            if (run.flags && at + r * CUDA_THREADS < run.rows)
                run.flags[at + r * CUDA_THREADS] = frame.active >> r & 1;
    }
}

/* Three blocks a processor, where rows are taken together. */
template <int LEVEL, int ROWS>
__global__ void __launch_bounds__(CUDA_THREADS, ROWS ? 3 : 1) evaluate(struct cuda_eval_run run) {
    eval_all<LEVEL, ROWS>(run);
}

/* The steps that a direct run may have, without NULLs, read like constants. */
template <int LEVEL, int ROWS>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    evaluate_direct(const __grid_constant__ struct cuda_eval_direct run) {
    eval_all<LEVEL, ROWS>(run);
}

template <int LEVEL, int ROWS> static size_t shared_bytes_of(int n_slots) {
    return (size_t)n_slots * ROWS * CUDA_THREADS * sizeof(eval_word<LEVEL>);
}

/* What is allowed must not depend on the program: another thread may launch the kernel at the same time. */
template <int LEVEL, int ROWS>
static void launch_rows(cudaStream_t stream, const struct cuda_eval_run *run, size_t shared_bytes) {
    const struct cuda_eval_run value = *run;
    const unsigned blocks = cuda_blocks(run->rows, CUDA_THREADS * EVAL_ROWS<ROWS>);
    SX_ALLOW_SHARED((evaluate<LEVEL, ROWS>), (shared_bytes_of<LEVEL, ROWS>(CUDA_EVAL_FEW_SLOTS)));
    SX_LAUNCH((evaluate<LEVEL, ROWS>), blocks, CUDA_THREADS, shared_bytes, stream, value);
}

/* ROWS: as many as leave room for two blocks a processor. */
template <int LEVEL, int ROWS>
static void launch_level(cudaStream_t stream, const struct cuda_eval_run *run, int n_slots) {
    if (n_slots <= CUDA_EVAL_FEW_SLOTS)
        launch_rows<LEVEL, ROWS>(stream, run, shared_bytes_of<LEVEL, ROWS>(n_slots));
    else
        launch_rows<LEVEL, 0>(stream, run, 0);
}

template <int LEVEL, int ROWS>
static void launch_direct(cudaStream_t stream, const struct cuda_eval_direct *run) {
    const unsigned blocks = cuda_blocks(run->rows, CUDA_THREADS * ROWS);
    SX_ALLOW_SHARED((evaluate_direct<LEVEL, ROWS>), (shared_bytes_of<LEVEL, ROWS>(CUDA_EVAL_FEW_SLOTS)));
    SX_LAUNCH((evaluate_direct<LEVEL, ROWS>), blocks, CUDA_THREADS,
              (shared_bytes_of<LEVEL, ROWS>(run->n_slots)), stream, *run);
}

extern "C" void cuda_eval_launch_direct(cudaStream_t stream, const struct cuda_eval_direct *run) {
    if (run->is_wide)
        launch_direct<CUDA_EVAL_WIDE, 2>(stream, run);
    else
        launch_direct<CUDA_EVAL_NARROW, 4>(stream, run);
}

extern "C" void cuda_eval_launch(cudaStream_t stream, const struct cuda_eval_run *run,
                                 enum cuda_eval_level level, int n_slots) {
    switch (level) {
    case CUDA_EVAL_NARROW: launch_level<CUDA_EVAL_NARROW, 4>(stream, run, n_slots); break;
    case CUDA_EVAL_WIDE: launch_level<CUDA_EVAL_WIDE, 2>(stream, run, n_slots); break;
    default: launch_rows<CUDA_EVAL_TEXT, 0>(stream, run, 0);
    }
}
