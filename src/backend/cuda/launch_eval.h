/* Expressions on the device: a program is a list of steps that one kernel interprets for every row. Plain
 * data for C and for kernels. */
#ifndef SX_BACKEND_CUDA_LAUNCH_EVAL_H
#define SX_BACKEND_CUDA_LAUNCH_EVAL_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"
#include "tensor/semantics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a slot holds. Integers of up to 64 bits are widened: one kind serves I8 to I64 and U8 to U32, with the
 * bounds of the type in the step. F32 is the bits of a float. */
enum cuda_eval_kind {
    CUDA_EVAL_I64,
    CUDA_EVAL_U64,
    CUDA_EVAL_F32,
    CUDA_EVAL_F64,
    CUDA_EVAL_I128, /* from here on 16 bytes */
    CUDA_EVAL_U128,
    CUDA_EVAL_STRING,
    CUDA_EVAL_INTERVAL
};

/* X(name): in the order of the kernel's switch. `kind` of a step is that of its arguments unless said
 * otherwise. */
#define CUDA_EVAL_OP_LIST(X)                                                               \
    X(LOAD)       /* column `place` */                                                     \
    X(LOAD_TABLE) /* column `place`: result per dictionary entry, by code */               \
    X(STORE)      /* output `place` */                                                     \
    X(TEST)       /* a row whose BOOL is not a valid 1 is left out from here on */         \
    X(COPY)       /* argument 0, NULL where any argument is */                             \
    X(NOTHING)    /* NULL */                                                               \
    X(ZERO)                                                                                \
    X(ADD)                                                                                 \
    X(SUB)                                                                                 \
    X(MUL)                                                                                 \
    X(DIV)                                                                                 \
    X(INT_DIV)                                                                             \
    X(MOD)                                                                                 \
    X(NEG)                                                                                 \
    X(ABS)                                                                                 \
    X(ROUND) /* integers, floats (list: powers of ten) */                                  \
    X(FLOOR) /* floats */                                                                  \
    X(CEIL)                                                                                \
    X(DECIMAL_FLOOR) /* by factor */                                                       \
    X(DECIMAL_CEIL)                                                                        \
    X(DECIMAL_ROUND) /* by factor, then times high */                                      \
    X(SCALE_UP)      /* by factor; low, high bound the argument */                         \
    X(SCALE_DOWN)    /* by factor; low, high bound the result */                           \
    X(RESIZE)        /* integers of kind to kind `to`, within low, high */                 \
    X(TO_BOOL)                                                                             \
    X(TO_FLOAT)         /* numbers of `kind` to F32 or F64 */                              \
    X(DECIMAL_TO_FLOAT) /* over factor */                                                  \
    X(FLOAT_TO_INTEGER) /* to `phys`, within low_f64, end_f64 */                           \
    X(FLOAT_TO_DECIMAL) /* times factor_f64, within end_f64 */                             \
    X(EQ)                                                                                  \
    X(NE)                                                                                  \
    X(LT)                                                                                  \
    X(LE)                                                                                  \
    X(DISTINCT)                                                                            \
    X(NOT_DISTINCT)                                                                        \
    X(IN_LIST) /* list: `place` sorted values (intervals: in any order) */                 \
    X(AND)                                                                                 \
    X(OR)                                                                                  \
    X(NOT)                                                                                 \
    X(IS_NULL)                                                                             \
    X(IS_NOT_NULL)                                                                         \
    X(IS_TRUE)                                                                             \
    X(CHOOSE)                                                                              \
    X(COALESCE)                                                                            \
    X(DATE_YEAR) /* variant: of a timestamp */                                             \
    X(DATE_MONTH)                                                                          \
    X(DATE_DAY)                                                                            \
    X(DATE_TO_TIMESTAMP)                                                                   \
    X(TIMESTAMP_TO_DATE)                                                                   \
    X(DATE_ADD_DAYS) /* variant, here and below: minus */                                  \
    X(DATE_SUB_DATE)                                                                       \
    X(DATE_ADD_INTERVAL) /* from here on only in the wide kernels */                       \
    X(TIMESTAMP_ADD_INTERVAL)                                                              \
    X(TIMESTAMP_SUB)                                                                       \
    X(INTERVAL_ADD)                                                                        \
    X(INTERVAL_NEG)                                                                        \
    X(AVERAGE) /* of a sum in units of 1 / factor_f64 */                                   \
    X(LIKE)    /* variant: NOT LIKE */                                                     \
    X(PREFIX)                                                                              \
    X(SUFFIX)                                                                              \
    X(CONTAINS)                                                                            \
    X(LENGTH)                                                                              \
    X(SUBSTRING)                                                                           \
    X(FAIL)                                                                                \
    X(CONCAT) /* variant: NULL counts as empty; from here on strings may go to the heap */ \
    X(UPPER)                                                                               \
    X(LOWER)                                                                               \
    X(TO_TEXT)   /* values of type `type_id`; from here on only in the text kernel */      \
    X(FROM_TEXT) /* to `type_id` */

enum cuda_eval_op {
#define CUDA_EVAL_OP_ENUM(name) CUDA_EVAL_##name,
    CUDA_EVAL_OP_LIST(CUDA_EVAL_OP_ENUM)
#undef CUDA_EVAL_OP_ENUM
};

enum cuda_eval_on_fail { CUDA_EVAL_IGNORE, CUDA_EVAL_ERROR, CUDA_EVAL_NULL };

enum { CUDA_EVAL_NO_SLOT = INT32_MIN, CUDA_EVAL_MAX_ARGUMENTS = 3 };

/* Arguments: a slot, or -1 - k for constant k. */
struct cuda_eval_step {
    uint8_t op;        /* enum cuda_eval_op */
    uint8_t kind;      /* enum cuda_eval_kind */
    uint8_t to;        /* kind of the result */
    uint8_t phys;      /* of the result, of the column, of the output */
    uint8_t on_fail;   /* enum cuda_eval_on_fail */
    uint8_t variant;   /* see the list of operations */
    uint8_t type_id;   /* text casts */
    uint8_t precision; /* text casts, decimals */
    uint8_t scale;
    uint8_t n_arguments;
    int32_t out;
    int32_t arguments[CUDA_EVAL_MAX_ARGUMENTS];
    int32_t mask; /* CUDA_EVAL_NO_SLOT: errors count on all rows */
    int32_t place;
    int32_t number; /* of the step in the eval object, for faults */
    const void *list;
    double factor_f64, low_f64, end_f64;
    sx_i128 factor, low;
    sx_u128 high;
};

/* Whether IN_LIST of so many values of a kind compares them one by one. */
SX_BOTH bool cuda_eval_list_is_quick(int kind, int32_t n) {
    enum { MOST = 16 };
    return n <= MOST && (kind <= CUDA_EVAL_U64 || (kind >= CUDA_EVAL_I128 && kind <= CUDA_EVAL_STRING));
}

/* Of a slot: the narrow kernel's have `low` only. */
struct cuda_eval_value {
    uint64_t low, high;
};

struct cuda_eval_column {
    struct cuda_column column;
    /* LOAD_TABLE: validity of the entries (NULL: all valid), and the result for NULL */
    const uint8_t *entry_valid;
    const void *null_value;
    bool null_is_valid;
};

struct cuda_eval_output {
    void *values;
    uint8_t *valid; /* NULL: nothing is null */
};

/* The arguments of the row whose fault was reported. */
struct cuda_eval_failure {
    struct cuda_eval_value arguments[CUDA_EVAL_MAX_ARGUMENTS];
};

enum cuda_eval_level { CUDA_EVAL_NARROW, CUDA_EVAL_WIDE, CUDA_EVAL_TEXT };
/* A row's slots: so many in shared memory, 96 KiB a block, of which small GPUs have 99; or in local memory.
 */
enum { CUDA_EVAL_FEW_SLOTS = 12, CUDA_EVAL_MOST_SLOTS = 128 };

struct cuda_eval_run {
    const struct cuda_eval_step *steps;
    int32_t n_steps;
    const struct cuda_eval_value *constants;
    const uint8_t *constant_valid;
    const struct cuda_eval_column *columns;
    const struct cuda_eval_output *outputs;
    const int32_t *selection; /* row i is selection[i]; NULL: i */
    int64_t rows;
    uint8_t *flags; /* flags[i]: row i passed every TEST; may be NULL */
    char *heap;     /* new strings of more than 12 bytes */
    int64_t heap_bytes;
    int64_t *heap_used_bytes; /* counts on when the heap is full; then the strings are empty */
    struct cuda_control *control;
    struct cuda_eval_failure *failure;
    const void *owner; /* the host's, for faults */
};

/* A run of few steps of the common kinds over columns without NULLs, all of it an argument of the kernel:
 * nothing goes to the device before. Steps are LOAD (of tables by code, too: a DICT column), STORE, TEST,
 * ADD, SUB, MUL, RESIZE, comparisons of numbers, EQ and NE of strings, PREFIX, SUBSTRING, IN_LIST of few
 * values, AND, OR, NOT, CHOOSE and IS_TRUE; none gives NULL. Constants that are strings are their views. */
enum { CUDA_EVAL_DIRECT_STEPS = 20, CUDA_EVAL_DIRECT_COLUMNS = 8, CUDA_EVAL_DIRECT_CONSTANTS = 8 };
struct cuda_eval_direct {
    struct cuda_eval_step steps[CUDA_EVAL_DIRECT_STEPS];
    struct cuda_eval_column columns[CUDA_EVAL_DIRECT_COLUMNS];
    struct cuda_eval_output outputs[CUDA_EVAL_DIRECT_COLUMNS];
    struct cuda_eval_value constants[CUDA_EVAL_DIRECT_CONSTANTS];
    int32_t n_steps, n_slots; /* at most CUDA_EVAL_FEW_SLOTS */
    bool is_wide;             /* some value has 16 bytes */
    const int32_t *selection; /* as in cuda_eval_run, here and below */
    int64_t rows;
    uint8_t *flags;
    struct cuda_control *control;
    struct cuda_eval_failure *failure;
    const void *owner;
};

/* Runs the steps on every row. A fault has kind CUDA_FAULT_EXPRESSION, the step's number in `what`, and the
 * owner in detail[0]. */
void cuda_eval_launch(cudaStream_t stream, const struct cuda_eval_run *run, enum cuda_eval_level level,
                      int n_slots);
void cuda_eval_launch_direct(cudaStream_t stream, const struct cuda_eval_direct *run);

#ifdef __cplusplus
}
#endif
#endif
