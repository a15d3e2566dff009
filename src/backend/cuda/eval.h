/* Expression evaluation, host side. At creation every instruction is lowered to steps over registers of their
 * own (eval_lower.c, eval_lower_cast.c). A plan puts the steps that some outputs need in order, with the
 * loads, stores and tests between them, and gives registers slots (eval_plan.c); it is uploaded once and
 * launched for every batch (eval_run.c). Instructions over one dictionary column are computed per entry
 * (eval_dict.c). */
#ifndef SX_BACKEND_CUDA_EVAL_H
#define SX_BACKEND_CUDA_EVAL_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_eval.h"
#include "tensor/failure.h"
#include "tensor/program_part.h"

enum { CUDA_EVAL_CACHED_DICTS = 4, CUDA_EVAL_MOST_MAPPED = 64 };

/* A step before registers have slots: `out`, `arguments` and `mask` are registers. */
struct eval_step {
    struct cuda_eval_step code;
    const struct sx_instruction *instruction;
    enum sx_failure failure;
};

struct eval_cached {
    uint64_t dict_id;
    int64_t rows_seen;
    bool ready;
    struct sx_tensor table; /* result per entry, FLAT or CONSTANT */
    struct sx_dict *dict;   /* VARCHAR without nulls: the table as a dictionary */
};

/* An instruction whose only varying input is one column and that can't fail: computed per dictionary entry.
 */
struct eval_mapped {
    struct sx_program_part part;
    struct sx_eval *eval;
    struct sx_tensor null_value; /* result for NULL: one row; made when first needed */
    bool null_is_valid;
    struct eval_cached cached[CUDA_EVAL_CACHED_DICTS];
    int next;
    struct eval_cached *active; /* for this batch; NULL: per row */
};

struct eval_instruction {
    int32_t first_step, n_steps;
    int32_t mapped; /* index, or -1 */
};

/* Steps on the device for one way to run the program. */
struct eval_plan {
    struct eval_plan *next;
    bool is_select;
    uint64_t mapped;  /* bit m: mapped instruction m is looked up */
    uint64_t skipped; /* bit m: it is an output that needs no step */
    struct sx_buffer *steps;
    struct cuda_eval_step *host_steps; /* until they are uploaded */
    struct eval_direct *direct;        /* NULL: its runs are not */
    int32_t n_steps;
    int n_slots;
    enum cuda_eval_level level;
    bool can_fail, makes_strings;
    bool fails_on_text; /* whose bytes an error's text needs while the batch is there */
};

struct sx_eval {
    struct cuda_stream *stream;
    const struct sx_program *program;
    struct sx_type *types; /* of the registers: the program's, then those between steps */
    int32_t n_registers;
    struct eval_step *steps;
    int32_t n_steps, steps_capacity;
    struct eval_instruction *instructions;
    struct eval_mapped *mapped;
    int n_mapped;
    struct cuda_eval_value *host_constants; /* strings' pointers lead to host memory */
    struct sx_buffer *constants;            /* n_constants values, as many validity bytes, long strings */
    char *host_block;                       /* the same, until it is uploaded */
    size_t block_bytes;
    struct sx_buffer **lists; /* values of IN lists and the like */
    int n_lists;
    struct sx_buffer *failure;
    struct eval_plan *plans;
    size_t heap_bytes;                /* of new strings, a guess from the last batch */
    struct cuda_stream *unchecked_by; /* in whose list it is; or NULL */
};

/* eval_create.c */
SX_MUST_CHECK enum sx_status cuda_eval_create(struct cuda_stream *stream, const struct sx_program *program,
                                              bool with_dictionaries, struct sx_eval **out_eval);
void cuda_eval_destroy(struct sx_eval *eval);
static inline SX_MUST_CHECK enum sx_status cuda_eval_no_memory(struct sx_eval *eval) {
    (void)sx_error_set(&eval->stream->base.error, SX_OUT_OF_MEMORY, "no memory for an expression");
    return SX_OUT_OF_MEMORY;
}
/* A further register, or -1: no memory. */
int32_t cuda_eval_add_register(struct sx_eval *eval, struct sx_type type);
/* A step of `instruction` without arguments; NULL: no memory. Valid until the next one is added. */
struct eval_step *cuda_eval_add_step(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     enum cuda_eval_op op, int32_t out);
/* An array on the device that lives as long as the object. */
SX_MUST_CHECK enum sx_status cuda_eval_add_list(struct sx_eval *eval, const void *values, size_t bytes,
                                                const void **out_device);
/* Issues `uploads` with what is not on the device yet of the constants and of the plan (NULL: of none). */
SX_MUST_CHECK enum sx_status cuda_eval_upload(struct sx_eval *eval, struct eval_plan *plan,
                                              struct cuda_copies *uploads);
enum cuda_eval_kind cuda_eval_kind_of(struct sx_type type);
static inline int32_t cuda_eval_first_instruction(const struct sx_program *program) {
    return program->n_inputs + program->n_constants;
}
/* The constant that the register holds, not NULL, or NULL. */
const struct sx_scalar *cuda_eval_constant(const struct sx_eval *eval, int32_t reg);

/* eval_lower.c, eval_lower_cast.c */
SX_MUST_CHECK enum sx_status cuda_eval_lower(struct sx_eval *eval, const struct sx_instruction *instruction,
                                             int32_t out);
SX_MUST_CHECK enum sx_status cuda_eval_lower_cast(struct sx_eval *eval,
                                                  const struct sx_instruction *instruction, int32_t out);
/* Integers and decimals: a register with the same value in type `to`, maybe `from` itself. */
SX_MUST_CHECK enum sx_status cuda_eval_lower_convert(struct sx_eval *eval,
                                                     const struct sx_instruction *instruction, int32_t from,
                                                     struct sx_type to, int32_t *out_register);
SX_MUST_CHECK enum sx_status cuda_eval_unsupported(struct sx_eval *eval,
                                                   const struct sx_instruction *instruction);
void cuda_eval_bounds(struct sx_type type, struct cuda_eval_step *step);
/* A step's failures count as errors of this kind. */
void cuda_eval_can_fail(struct eval_step *step, enum sx_failure failure);

/* eval_plan.c */
SX_MUST_CHECK enum sx_status cuda_eval_plan(struct sx_eval *eval, bool is_select, uint64_t mapped,
                                            uint64_t skipped, struct eval_plan **out_plan);

/* eval_direct.c: plan->direct, where its runs may be direct; the run over a batch, but for its rows,
 * selection and flags (`outputs` NULL: there are none). False: it can't be direct. */
SX_MUST_CHECK enum sx_status cuda_eval_direct_make(struct sx_eval *eval, struct eval_plan *plan,
                                                   const struct cuda_eval_step *steps);
bool cuda_eval_direct_begin(const struct sx_eval *eval, const struct eval_plan *plan,
                            const struct sx_batch *batch, const struct sx_tensor *outputs,
                            struct cuda_eval_direct *out_run);

/* eval_dict.c: which instructions can be mapped; how they are computed for this batch, as bits; and an output
 * as SX_DICT, if it can be. */
SX_MUST_CHECK enum sx_status cuda_eval_dict_find(struct sx_eval *eval);
SX_MUST_CHECK enum sx_status cuda_eval_dict_prepare(struct sx_eval *eval, const struct sx_batch *batch,
                                                    uint64_t *out_mapped);
bool cuda_eval_dict_is_output(const struct eval_mapped *mapped, const struct sx_batch *batch);
SX_MUST_CHECK enum sx_status cuda_eval_dict_output(struct sx_eval *eval, struct eval_mapped *mapped,
                                                   const struct sx_batch *batch,
                                                   struct sx_tensor *out_column);
struct cuda_eval_column cuda_eval_dict_column(const struct eval_mapped *mapped, const struct sx_batch *batch);
void cuda_eval_dict_destroy(struct eval_mapped *mapped);

/* eval_run.c */
SX_MUST_CHECK enum sx_status cuda_eval_run(struct cuda_stream *stream, struct sx_eval *eval,
                                           const struct sx_batch *batch, struct sx_tensor *out_columns);

/* eval_error.c: words for faults of this object at the synchronisations until the end. */
struct eval_watch {
    struct sx_eval *eval;
    enum sx_status (*describe)(struct cuda_stream *stream, const struct cuda_fault *fault,
                               const void *context);
    const void *context;
};
void cuda_eval_watch_begin(struct cuda_stream *stream, struct sx_eval *eval, struct eval_watch *watch);
void cuda_eval_watch_end(struct cuda_stream *stream, const struct eval_watch *watch);
/* Into its stream's list, until faults are known; false: there is no room. */
bool cuda_eval_check_later(struct sx_eval *eval);
/* Out of it again, before it is destroyed. */
void cuda_eval_leave_unchecked(struct sx_eval *eval);

#endif
