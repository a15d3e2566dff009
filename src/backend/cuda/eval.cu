/* The interpreter of expressions: every thread takes a row at a time through all steps. The steps are the
 * same for all threads, so the switches do not diverge. Slots are local memory, which the host has made few
 * (see eval_plan.c); inputs are read once and outputs are written once, and nothing else goes through memory:
 * a row moves the bytes of its inputs and outputs, and its strings. Three kernels, so that programs over
 * values of up to 8 bytes do not carry the registers of 128-bit arithmetic and strings: NARROW, WIDE and
 * TEXT. */
#include "backend/cuda/eval_number.h"
#include "backend/cuda/eval_string.h"
#include "backend/cuda/eval_text.h"

/* ---- slots ---- */

template <int LEVEL> struct eval_word {
    uint64_t low, high;
};
template <> struct eval_word<CUDA_EVAL_NARROW> {
    uint64_t low;
};

template <int LEVEL, int SLOTS> struct eval_frame {
    eval_word<LEVEL> slots[SLOTS];
    uint64_t valid[(SLOTS + 63) / 64];
    int64_t row;
    bool active; /* the row exists and passed every TEST so far */
    bool full;   /* a string found no room: the row's values and faults mean nothing */
};

template <int LEVEL, int SLOTS>
__device__ __forceinline__ struct cuda_eval_value eval_get(const eval_frame<LEVEL, SLOTS> &frame,
                                                           const struct cuda_eval_run &run, int32_t place,
                                                           bool *out_valid) {
    if (place < 0) {
        *out_valid = run.constant_valid[-1 - place];
        return run.constants[-1 - place];
    }
    *out_valid = frame.valid[SLOTS > 64 ? place / 64 : 0] >> (place % 64) & 1;
    struct cuda_eval_value value = {frame.slots[place].low, 0};
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        value.high = frame.slots[place].high;
    return value;
}

template <int LEVEL, int SLOTS>
__device__ __forceinline__ void eval_set(eval_frame<LEVEL, SLOTS> &frame, int32_t place,
                                         struct cuda_eval_value value, bool valid) {
    const uint64_t bit = (uint64_t)1 << (place % 64);
    uint64_t *word = &frame.valid[SLOTS > 64 ? place / 64 : 0];
    *word = valid ? *word | bit : *word & ~bit;
    frame.slots[place].low = value.low;
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        frame.slots[place].high = value.high;
}

/* ---- columns ---- */

template <int LEVEL, int SLOTS>
__device__ static inline void eval_load_step(eval_frame<LEVEL, SLOTS> &frame, const struct cuda_eval_run &run,
                                             const struct cuda_eval_step &step) {
    const struct cuda_column &column = run.columns[step.place].column;
    eval_set(frame, step.out, eval_load<LEVEL>(column, step.phys, frame.row),
             cuda_is_valid(column, frame.row));
}

/* A function of a dictionary column, by code. */
template <int LEVEL, int SLOTS>
__device__ static inline void eval_table_step(eval_frame<LEVEL, SLOTS> &frame,
                                              const struct cuda_eval_run &run,
                                              const struct cuda_eval_step &step) {
    const struct cuda_eval_column &table = run.columns[step.place];
    struct cuda_column column = table.column;
    bool valid = table.null_is_valid;
    if (cuda_is_valid(column, frame.row)) {
        valid = !table.entry_valid || table.entry_valid[((const int32_t *)column.values)[frame.row]];
    } else {
        column.values = table.null_value;
        column.layout = CUDA_CONSTANT;
    }
    eval_set(frame, step.out, eval_load<LEVEL>(column, step.phys, frame.row), valid);
}

template <int LEVEL, int SLOTS>
__device__ static inline void eval_store_step(const eval_frame<LEVEL, SLOTS> &frame, int64_t at,
                                              const struct cuda_eval_run &run,
                                              const struct cuda_eval_step &step) {
    const struct cuda_eval_output &output = run.outputs[step.place];
    bool valid;
    struct cuda_eval_value value = eval_get(frame, run, step.arguments[0], &valid);
    if (!valid)
        value = cuda_eval_value{0, 0};
    eval_store<LEVEL>(output.values, step.phys, at, value);
    if (output.valid)
        output.valid[at] = valid;
}

/* ---- operations that see NULLs ---- */

/* False: the operation is none of these. */
__device__ static inline bool eval_with_nulls(const struct cuda_eval_step &step,
                                              const struct cuda_eval_value values[3], const bool valid[3],
                                              struct eval_result *result) {
    const bool a = values[0].low != 0, b = values[1].low != 0;
    bool truth;
    result->valid = true;
    switch (step.op) {
    case CUDA_EVAL_NOTHING: result->valid = false; return true;
    case CUDA_EVAL_ZERO: return true;
    case CUDA_EVAL_AND:
        truth = !(valid[0] && !a) && !(valid[1] && !b);
        result->valid = !truth || (valid[0] && valid[1]);
        break;
    case CUDA_EVAL_OR:
        truth = (valid[0] && a) || (valid[1] && b);
        result->valid = truth || (valid[0] && valid[1]);
        break;
    case CUDA_EVAL_IS_NULL: truth = !valid[0]; break;
    case CUDA_EVAL_IS_NOT_NULL: truth = valid[0]; break;
    case CUDA_EVAL_IS_TRUE: truth = valid[0] && a; break;
    case CUDA_EVAL_CHOOSE:
    case CUDA_EVAL_COALESCE: {
        const int chosen = step.op == CUDA_EVAL_CHOOSE ? (valid[0] && a ? 1 : 2) : !valid[0];
        result->value = values[chosen];
        result->valid = valid[chosen];
        return true;
    }
    default: return false;
    }
    result->value = eval_of((uint64_t)truth);
    return true;
}

/* ---- all others ---- */

template <int LEVEL>
__device__ static inline void eval_values(const struct cuda_eval_step &step,
                                          const struct cuda_eval_value values[3],
                                          struct eval_result *result) {
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
                                            const struct cuda_eval_value values[3], const bool valid[3],
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
                                              const struct cuda_eval_value values[3], const bool valid[3],
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

/* ---- faults ---- */

template <int LEVEL, int SLOTS>
__device__ static inline void eval_fail(const eval_frame<LEVEL, SLOTS> &frame,
                                        const struct cuda_eval_run &run, const struct cuda_eval_step &step,
                                        const struct cuda_eval_value values[3]) {
    bool counts = true;
    if (step.mask != CUDA_EVAL_NO_SLOT) {
        bool valid;
        counts = eval_get(frame, run, step.mask, &valid).low != 0;
        counts &= valid;
    }
    struct cuda_fault *fault = &run.control->fault;
    if (!counts || frame.full ||
        atomicCAS(&fault->kind, (uint32_t)CUDA_FAULT_NONE, (uint32_t)CUDA_FAULT_EXPRESSION) !=
            CUDA_FAULT_NONE)
        return;
    fault->what = (uint32_t)step.number;
    fault->row = frame.row;
    for (int k = 0; k < CUDA_EVAL_MAX_ARGUMENTS; k++)
        run.failure->arguments[k] = values[k];
}

/* ---- one step, one row ---- */

template <int LEVEL, int SLOTS>
__device__ static inline void eval_operate(eval_frame<LEVEL, SLOTS> &frame, const struct cuda_eval_run &run,
                                           const struct cuda_eval_step &step) {
    struct cuda_eval_value values[CUDA_EVAL_MAX_ARGUMENTS] = {};
    bool valid[CUDA_EVAL_MAX_ARGUMENTS] = {};
    struct eval_result result = {{0, 0}, frame.active, false};
    for (int k = 0; k < CUDA_EVAL_MAX_ARGUMENTS; k++)
        if (k < step.n_arguments && frame.active) {
            values[k] = eval_get(frame, run, step.arguments[k], &valid[k]);
            result.valid &= valid[k];
        }
    const bool all_valid = result.valid;
    if (LEVEL >= CUDA_EVAL_WIDE && (step.op >= CUDA_EVAL_CONCAT && step.op <= CUDA_EVAL_TO_TEXT))
        eval_new_string<LEVEL>(run, step, values, valid, &result, &frame.full);
    else if (step.op == CUDA_EVAL_DISTINCT || step.op == CUDA_EVAL_NOT_DISTINCT)
        eval_distinct<LEVEL>(step, values, valid, &result);
    else if (!eval_with_nulls(step, values, valid, &result)) {
        result.valid = all_valid;
        if (all_valid)
            eval_values<LEVEL>(step, values, &result);
    }
    if (!frame.active)
        return;
    if (result.failed && step.on_fail == CUDA_EVAL_NULL)
        result.valid = false;
    else if (result.failed && step.on_fail == CUDA_EVAL_ERROR)
        eval_fail(frame, run, step, values);
    eval_set(frame, step.out, result.value, result.valid);
}

template <int LEVEL, int SLOTS>
__device__ static inline void eval_row(eval_frame<LEVEL, SLOTS> &frame, const struct cuda_eval_run &run,
                                       int64_t at) {
    for (int32_t s = 0; s < run.n_steps; s++) {
        const struct cuda_eval_step &step = run.steps[s];
        if (!frame.active && (LEVEL == CUDA_EVAL_NARROW || step.op < CUDA_EVAL_CONCAT))
            continue; /* a warp's lanes meet at the steps that make strings */
        bool valid;
        switch (step.op) {
        case CUDA_EVAL_LOAD: eval_load_step(frame, run, step); break;
        case CUDA_EVAL_LOAD_TABLE: eval_table_step(frame, run, step); break;
        case CUDA_EVAL_STORE: eval_store_step(frame, at, run, step); break;
        case CUDA_EVAL_TEST:
            frame.active = eval_get(frame, run, step.arguments[0], &valid).low != 0;
            frame.active &= valid;
            break;
        default: eval_operate(frame, run, step);
        }
    }
}

template <int LEVEL, int SLOTS> __global__ void evaluate(struct cuda_eval_run run) {
    const int64_t lane = threadIdx.x % CUDA_WARP;
    for (int64_t at = cuda_thread(); at - lane < run.rows; at += cuda_threads()) {
        eval_frame<LEVEL, SLOTS> frame;
        frame.active = at < run.rows;
        frame.full = false;
        frame.row = frame.active && run.selection ? (int64_t)run.selection[at] : at;
        for (uint64_t &word : frame.valid)
            word = 0;
        eval_row(frame, run, at);
        if (run.flags && at < run.rows)
            run.flags[at] = frame.active;
    }
}

template <int LEVEL>
static void launch_level(cudaStream_t stream, const struct cuda_eval_run *run, int n_slots) {
    const struct cuda_eval_run value = *run;
    const unsigned blocks = cuda_blocks(run->rows);
    if (n_slots <= CUDA_EVAL_FEW_SLOTS)
        SX_LAUNCH((evaluate<LEVEL, CUDA_EVAL_FEW_SLOTS>), blocks, CUDA_THREADS, 0, stream, value);
    else
        SX_LAUNCH((evaluate<LEVEL, CUDA_EVAL_MOST_SLOTS>), blocks, CUDA_THREADS, 0, stream, value);
}

extern "C" void cuda_eval_launch(cudaStream_t stream, const struct cuda_eval_run *run,
                                 enum cuda_eval_level level, int n_slots) {
    switch (level) {
    case CUDA_EVAL_NARROW: launch_level<CUDA_EVAL_NARROW>(stream, run, n_slots); break;
    case CUDA_EVAL_WIDE: launch_level<CUDA_EVAL_WIDE>(stream, run, n_slots); break;
    default: launch_level<CUDA_EVAL_TEXT>(stream, run, n_slots);
    }
}
