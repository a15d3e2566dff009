/* Expression evaluation. An eval object interprets its program block by block, so that registers stay in the
 * cache. At creation every instruction is lowered to steps, each with one kernel for its physical types.
 * Files: eval_create.c (registers, dictionaries), eval_lower.c (instructions to steps), eval_frame.c (one
 * block), eval_run.c, eval_select.c, eval_dict.c, eval_error.c, and one file of kernels per group of
 * functions. */
#ifndef SX_BACKEND_CPU_EVAL_H
#define SX_BACKEND_CPU_EVAL_H

#include "backend/cpu/cpu.h"
#include "tensor/program_part.h"

enum { SX_EVAL_BLOCK_ROWS = 2048, SX_EVAL_CACHED_DICTS = 4 };

struct sx_eval_call;
struct sx_eval_step;
struct sx_like_pattern;
struct sx_value_set;

/* Computes rows 0 … n-1 of the result. Rows whose arguments are null hold any value. */
typedef void (*sx_eval_kernel)(struct sx_eval_call *call);
/* Writes why the one row of `call` failed. */
typedef enum sx_status (*sx_eval_describe)(const struct sx_eval_call *call, struct sx_error *error);

struct sx_eval_call {
    int64_t n;
    const void *in[SX_PROGRAM_MAX_ARGUMENTS];
    int64_t step[SX_PROGRAM_MAX_ARGUMENTS]; /* 1, or 0 where one value (and validity) stands for all rows */
    const uint8_t *valid[SX_PROGRAM_MAX_ARGUMENTS]; /* NULL: no nulls */
    void *out;
    const uint8_t *out_valid; /* set before: rows where all arguments are valid; NULL: all */
    uint8_t *own_valid;       /* room for validity that the kernel writes */
    bool failed;              /* set: some row can't be computed (it may be a null one) */
    enum sx_status status;    /* set: SX_OUT_OF_MEMORY */
    struct sx_eval *eval;
    const struct sx_eval_step *of;
};

struct sx_eval_step {
    sx_eval_kernel kernel;     /* NULL: the result is argument 0 */
    sx_eval_describe describe; /* NULL: can't fail */
    int32_t out;
    int32_t n_arguments;
    int32_t arguments[SX_PROGRAM_MAX_ARGUMENTS];
    bool nulls_own;    /* the kernel sets out_valid itself from `valid` */
    bool null_on_fail; /* TRY_CAST */
    const struct sx_instruction *instruction;
    sx_i128 factor, low;
    sx_u128 high;
    double factor_f64;
    struct sx_like_pattern *like;
    struct sx_value_set *set;
};

struct sx_eval_register {
    const void *values;
    const uint8_t *valid;
    bool is_constant; /* one value for all rows */
    uint64_t epoch;   /* frame for which it was computed */
};

struct sx_eval_cached {
    uint64_t dict_id;
    int64_t rows_seen;
    bool ready;
    struct sx_tensor table; /* result per entry, FLAT */
    struct sx_dict *dict;   /* VARCHAR without nulls: the table as a dictionary */
};

/* An instruction whose only varying input is one column and that can't fail: computed per dictionary entry.
 */
struct sx_eval_mapped {
    struct sx_program_part part;
    struct sx_eval *eval;
    struct sx_tensor null_value; /* result for NULL: one row, FLAT; made when first needed */
    struct sx_eval_cached cached[SX_EVAL_CACHED_DICTS];
    int next;
    struct sx_eval_cached *active; /* for this batch; NULL: per row */
};

struct sx_eval_instruction {
    int32_t first_step, n_steps;
    struct sx_eval_mapped *mapped; /* may be NULL */
};

/* What is being computed: rows base … base+n-1 of the batch, or those that `positions` names. */
struct sx_eval_frame {
    const struct sx_batch *batch;
    int64_t base;
    const int32_t *positions;
    int64_t n;
    const uint8_t *active; /* errors count on these rows only; NULL: on all */
};

struct sx_eval {
    struct sx_stream *stream;
    const struct sx_program *program;
    int32_t n_registers; /* the program's, then those between the steps of one instruction */
    struct sx_type *types;
    struct sx_eval_register *registers;
    void **slots; /* per register, SX_EVAL_BLOCK_ROWS values and as many validity bytes; made when needed */
    char **destinations; /* per register: values of the output tensor, or NULL */
    struct sx_tensor *constants;
    struct sx_eval_instruction *instructions;
    struct sx_eval_step *steps;
    int32_t n_steps, steps_capacity;
    uint64_t epoch;
    struct sx_eval_frame frame;
    struct sx_buffer **heap; /* bytes of new strings of this call */
    int n_heap, heap_capacity;
    size_t heap_used_bytes; /* of the last one */
    uint8_t *mask;          /* eval_select: rows left in the block */
    int32_t *positions;
};

/* eval_create.c */
SX_MUST_CHECK enum sx_status sx_eval_create(struct sx_stream *stream, const struct sx_program *program,
                                            bool with_dictionaries, struct sx_eval **out_eval);
void sx_eval_destroy(struct sx_eval *eval);
/* A further register; steps that need one between them ask for it. -1: no memory. */
int32_t sx_eval_add_register(struct sx_eval *eval, struct sx_type type);
/* A zeroed step of `instruction` with its arguments; NULL: no memory. Valid until the next one is added. */
struct sx_eval_step *sx_eval_add_step(struct sx_eval *eval, const struct sx_instruction *instruction,
                                      int32_t out);

/* eval_lower.c, eval_lower_cast.c */
SX_MUST_CHECK enum sx_status sx_eval_lower(struct sx_eval *eval, const struct sx_instruction *instruction,
                                           int32_t out);
SX_MUST_CHECK enum sx_status sx_eval_lower_cast(struct sx_eval *eval,
                                                const struct sx_instruction *instruction, int32_t out);
/* Integers and decimals: a register with the same value in type `to`, maybe `from` itself. */
SX_MUST_CHECK enum sx_status sx_eval_lower_convert(struct sx_eval *eval,
                                                   const struct sx_instruction *instruction, int32_t from,
                                                   struct sx_type to, int32_t *out_register);
SX_MUST_CHECK enum sx_status sx_eval_unsupported(struct sx_eval *eval,
                                                 const struct sx_instruction *instruction);
/* The constant that the register holds, not NULL, or NULL. */
const struct sx_scalar *sx_eval_constant(const struct sx_eval *eval, int32_t reg);

/* eval_frame.c */
void sx_eval_begin(struct sx_eval *eval, const struct sx_eval_frame *frame);
SX_MUST_CHECK enum sx_status sx_eval_register_compute(struct sx_eval *eval, int32_t reg);
SX_MUST_CHECK enum sx_status sx_eval_slot(struct sx_eval *eval, int32_t reg, void **out_values,
                                          uint8_t **out_valid);
bool sx_eval_cancelled(const struct sx_eval *eval);

/* eval_dict.c: how a mapped instruction is computed for this batch; then its values for the frame. */
SX_MUST_CHECK enum sx_status sx_eval_dict_prepare(struct sx_eval *eval, const struct sx_batch *batch);
SX_MUST_CHECK enum sx_status sx_eval_dict_map(struct sx_eval *eval, struct sx_eval_mapped *mapped,
                                              int32_t reg);
SX_MUST_CHECK enum sx_status sx_eval_dict_find(struct sx_eval *eval);
/* The whole result as SX_DICT, if it can be; sets *out_done. */
SX_MUST_CHECK enum sx_status sx_eval_dict_output(struct sx_eval *eval, struct sx_eval_mapped *mapped,
                                                 const struct sx_batch *batch, struct sx_tensor *out_column,
                                                 bool *out_done);
void sx_eval_dict_destroy(struct sx_eval_mapped *mapped);

/* eval_heap.c */
/* Bytes for a new string; NULL sets call->status. */
char *sx_eval_heap_take(struct sx_eval_call *call, size_t size_bytes);
void sx_eval_heap_reset(struct sx_eval *eval);
/* Everything that the register's strings may point into. */
SX_MUST_CHECK enum sx_status sx_eval_heap_of(struct sx_eval *eval, int32_t reg, const struct sx_batch *batch,
                                             struct sx_buffer **out_heap);

/* eval_error.c */
enum sx_status sx_eval_describe_arithmetic(const struct sx_eval_call *call, struct sx_error *error);
enum sx_status sx_eval_describe_cast(const struct sx_eval_call *call, struct sx_error *error);
enum sx_status sx_eval_describe_date(const struct sx_eval_call *call, struct sx_error *error);
enum sx_status sx_eval_describe_string(const struct sx_eval_call *call, struct sx_error *error);

/* out_valid as bytes that the kernel may change. */
uint8_t *sx_eval_own_valid(struct sx_eval_call *call);

/* Kernels, NULL where there is none. */
sx_eval_kernel sx_eval_kernel_arithmetic(enum sx_function function, struct sx_type type);
sx_eval_kernel sx_eval_kernel_average(enum sx_phys sum);
sx_eval_kernel sx_eval_kernel_compare(enum sx_function function,
                                      enum sx_phys phys); /* EQ NE LT LE, (NOT_)DISTINCT_FROM */
sx_eval_kernel sx_eval_kernel_in_list(enum sx_phys phys);
sx_eval_kernel sx_eval_kernel_logic(enum sx_function function);
sx_eval_kernel sx_eval_kernel_choose(enum sx_function function, size_t value_bytes);
sx_eval_kernel sx_eval_kernel_date(enum sx_function function, enum sx_type_id left, enum sx_type_id right);
sx_eval_kernel sx_eval_kernel_string(enum sx_function function);
sx_eval_kernel sx_eval_kernel_resize(enum sx_phys from, enum sx_phys to); /* integers; low <= value <= high */
sx_eval_kernel sx_eval_kernel_scale(enum sx_phys phys, int shift);        /* I64, I128; by `factor` */
sx_eval_kernel sx_eval_kernel_floor(enum sx_function function, enum sx_phys phys); /* decimals */
sx_eval_kernel sx_eval_kernel_to_bool(enum sx_phys from);
sx_eval_kernel sx_eval_kernel_to_float(enum sx_phys from, enum sx_phys to);
sx_eval_kernel sx_eval_kernel_from_float(enum sx_phys from, enum sx_phys to);
sx_eval_kernel sx_eval_kernel_decimal_float(enum sx_phys from, enum sx_phys to); /* either way */
sx_eval_kernel sx_eval_kernel_from_text(struct sx_type to);
void sx_eval_to_text(struct sx_eval_call *call);
void sx_eval_null(struct sx_eval_call *call);
void sx_eval_zero(struct sx_eval_call *call);

/* eval_compare.c: constants of an IN list; the step owns the set even when it fails. */
SX_MUST_CHECK enum sx_status sx_value_set_create(struct sx_eval *eval,
                                                 const struct sx_instruction *instruction,
                                                 struct sx_value_set **out_set);
void sx_value_set_destroy(struct sx_value_set *set);

/* eval_like.c: NULL: no memory. */
struct sx_like_pattern *sx_like_compile(const char *pattern, uint32_t length_bytes, bool has_escape,
                                        char escape);
void sx_like_destroy(struct sx_like_pattern *pattern);
bool sx_like_can_fail(const struct sx_like_pattern *pattern);
void sx_eval_like(struct sx_eval_call *call);
/* Offset of the first occurrence, or -1. */
int64_t sx_bytes_find(const char *text, uint32_t text_bytes, const char *needle, uint32_t needle_bytes);

/* Position k of the result is positions[i], or base + i, for the k-th i with mask[i] = 1. `out` has room for
 * n + 8; it may be `positions`. Returns how many. */
int64_t sx_mask_compact(const uint8_t *mask, int64_t n, int32_t base, const int32_t *positions, int32_t *out);

#define SX_NAME_OF_(base, type) base##_##type
#define SX_NAME_OF(base, type)  SX_NAME_OF_(base, type)
#define SX_INLINE               static inline __attribute__((always_inline))

#endif
