/* Runs that are an argument of their kernel (cuda_eval_direct): of plans with few steps of the common kinds,
 * over batches without NULLs in what they read. */
#include "backend/cuda/eval.h"

#include <stdlib.h>

_Static_assert(sizeof(struct cuda_eval_direct) <= 4096, "arguments of a kernel on any device");

struct eval_direct {
    struct cuda_eval_direct run; /* but for columns, outputs, and what is the batch's or the stream's */
    int32_t columns[CUDA_EVAL_DIRECT_COLUMNS]; /* inputs, or n_inputs + mapped instruction */
    int32_t outputs[CUDA_EVAL_DIRECT_COLUMNS];
    int32_t constants[CUDA_EVAL_DIRECT_CONSTANTS];
    int32_t n_columns, n_outputs, n_constants;
};

/* ---- plans ---- */

static bool is_number(int kind) {
    return kind <= CUDA_EVAL_U128;
}

static bool is_direct(const struct cuda_eval_step *step) {
    if (step->on_fail == CUDA_EVAL_NULL)
        return false;
    switch (step->op) {
    case CUDA_EVAL_ADD:
    case CUDA_EVAL_SUB:
    case CUDA_EVAL_MUL:
        return (step->kind == CUDA_EVAL_I64 && step->phys == SX_PHYS_I64) || step->kind == CUDA_EVAL_F64 ||
               step->kind == CUDA_EVAL_I128;
    case CUDA_EVAL_EQ:
    case CUDA_EVAL_NE:
        return step->kind == CUDA_EVAL_I64 || step->kind == CUDA_EVAL_I128 || step->kind == CUDA_EVAL_STRING;
    case CUDA_EVAL_LT:
    case CUDA_EVAL_LE: return step->kind == CUDA_EVAL_I64 || step->kind == CUDA_EVAL_I128;
    case CUDA_EVAL_IN_LIST: return cuda_eval_list_is_quick(step->kind, step->place);
    case CUDA_EVAL_RESIZE: return is_number(step->kind) && is_number(step->to);
    case CUDA_EVAL_LOAD: return is_number(step->to) || step->to == CUDA_EVAL_STRING;
    case CUDA_EVAL_LOAD_TABLE:
    case CUDA_EVAL_CHOOSE: return is_number(step->to);
    case CUDA_EVAL_STORE: return is_number(step->kind);
    case CUDA_EVAL_TEST:
    case CUDA_EVAL_AND:
    case CUDA_EVAL_OR:
    case CUDA_EVAL_NOT:
    case CUDA_EVAL_IS_TRUE:
    case CUDA_EVAL_PREFIX:
    case CUDA_EVAL_SUBSTRING: return true;
    default: return false;
    }
}

/* *place, where it is in the list or has room there. */
static bool list(int32_t *listed, int32_t *n, int32_t room, int32_t *place) {
    int32_t at = 0;
    while (at < *n && listed[at] != *place)
        at++;
    if (at == room)
        return false;
    listed[at] = *place;
    *n += at == *n;
    *place = at;
    return true;
}

/* Whether its value here is what it is on the device, too. */
static bool is_whole(const struct sx_scalar *constant) {
    return !constant->is_null &&
           (constant->type.id != SX_TYPE_VARCHAR || constant->v.text.length_bytes <= SX_STRING_INLINE_BYTES);
}

/* Constants have numbers below 0. */
static bool list_constant(const struct sx_eval *eval, struct eval_direct *direct, int32_t *argument) {
    int32_t at = -1 - *argument;
    if (*argument >= 0 || *argument == CUDA_EVAL_NO_SLOT)
        return true;
    if (!is_whole(&eval->program->constants[at]) ||
        !list(direct->constants, &direct->n_constants, CUDA_EVAL_DIRECT_CONSTANTS, &at))
        return false;
    direct->run.constants[at] = eval->host_constants[-1 - *argument];
    *argument = -1 - at;
    return true;
}

static bool add_step(const struct sx_eval *eval, struct eval_direct *direct, struct cuda_eval_step step) {
    const bool is_table = step.op == CUDA_EVAL_LOAD_TABLE;
    bool fits = is_direct(&step) && list_constant(eval, direct, &step.mask);
    for (int k = 0; k < step.n_arguments; k++)
        fits = fits && list_constant(eval, direct, &step.arguments[k]);
    if (fits && (is_table || step.op == CUDA_EVAL_LOAD))
        fits = list(direct->columns, &direct->n_columns, CUDA_EVAL_DIRECT_COLUMNS, &step.place);
    if (fits && step.op == CUDA_EVAL_STORE)
        fits = list(direct->outputs, &direct->n_outputs, CUDA_EVAL_DIRECT_COLUMNS, &step.place);
    if (is_table)
        step.op = CUDA_EVAL_LOAD;
    direct->run.steps[direct->run.n_steps++] = step;
    return fits;
}

enum sx_status cuda_eval_direct_make(struct sx_eval *eval, struct eval_plan *plan,
                                     const struct cuda_eval_step *steps) {
    if (plan->n_steps > CUDA_EVAL_DIRECT_STEPS || plan->n_slots > CUDA_EVAL_FEW_SLOTS ||
        plan->level > CUDA_EVAL_WIDE)
        return SX_OK;
    struct eval_direct *direct = calloc(1, sizeof *direct);
    if (!direct)
        return cuda_eval_no_memory(eval);
    direct->run.n_slots = plan->n_slots;
    direct->run.is_wide = plan->level == CUDA_EVAL_WIDE;
    bool fits = true;
    for (int32_t s = 0; s < plan->n_steps && fits; s++)
        fits = add_step(eval, direct, steps[s]);
    if (fits)
        plan->direct = direct;
    else
        free(direct);
    return SX_OK;
}

/* ---- runs ---- */

/* False: it may have NULLs. */
static bool take_column(const struct sx_eval *eval, const struct sx_batch *batch, int32_t place,
                        struct cuda_eval_column *out) {
    const int32_t mapped = place - eval->program->n_inputs;
    if (mapped < 0)
        *out = (struct cuda_eval_column){.column = cuda_column_of(&batch->columns[place])};
    else
        *out = cuda_eval_dict_column(&eval->mapped[mapped], batch);
    return !out->column.valid && !out->entry_valid && (mapped < 0 || out->column.layout == CUDA_DICT);
}

bool cuda_eval_direct_begin(const struct sx_eval *eval, const struct eval_plan *plan,
                            const struct sx_batch *batch, const struct sx_tensor *outputs,
                            struct cuda_eval_direct *out_run) {
    const struct eval_direct *direct = plan->direct;
    if (!direct)
        return false;
    *out_run = direct->run;
    for (int32_t c = 0; c < direct->n_columns; c++)
        if (!take_column(eval, batch, direct->columns[c], &out_run->columns[c]))
            return false;
    for (int32_t o = 0; o < direct->n_outputs; o++) {
        const struct sx_tensor *output = &outputs[direct->outputs[o]];
        out_run->outputs[o] = (struct cuda_eval_output){output->values, output->valid};
    }
    out_run->control = eval->stream->control;
    out_run->failure = eval->failure->data;
    out_run->owner = eval;
    return true;
}
