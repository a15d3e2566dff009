#include "backend/cuda/eval.h"

#include <stdlib.h>
#include <string.h>

enum cuda_eval_kind cuda_eval_kind_of(struct sx_type type) {
    switch (sx_type_phys(type)) {
    case SX_PHYS_U64: return CUDA_EVAL_U64;
    case SX_PHYS_F32: return CUDA_EVAL_F32;
    case SX_PHYS_F64: return CUDA_EVAL_F64;
    case SX_PHYS_I128: return CUDA_EVAL_I128;
    case SX_PHYS_U128: return CUDA_EVAL_U128;
    case SX_PHYS_STRING: return CUDA_EVAL_STRING;
    case SX_PHYS_INTERVAL: return CUDA_EVAL_INTERVAL;
    default: return CUDA_EVAL_I64;
    }
}

/* ---- registers and steps ---- */

/* Room grows by doubling; `types` has room for a power of two of registers. */
int32_t cuda_eval_add_register(struct sx_eval *eval, struct sx_type type) {
    const int32_t n = eval->n_registers;
    if ((n & (n - 1)) == 0) {
        struct sx_type *types = realloc(eval->types, (n ? 2 * (size_t)n : 1) * sizeof *types);
        if (!types)
            return -1;
        eval->types = types;
    }
    eval->types[n] = type;
    eval->n_registers++;
    return n;
}

struct eval_step *cuda_eval_add_step(struct sx_eval *eval, const struct sx_instruction *instruction,
                                     enum cuda_eval_op op, int32_t out) {
    if (eval->n_steps == eval->steps_capacity) {
        const int32_t capacity = eval->steps_capacity ? 2 * eval->steps_capacity : 16;
        struct eval_step *steps = realloc(eval->steps, (size_t)capacity * sizeof *steps);
        if (!steps)
            return NULL;
        eval->steps = steps;
        eval->steps_capacity = capacity;
    }
    struct eval_step *step = &eval->steps[eval->n_steps];
    memset(step, 0, sizeof *step);
    step->instruction = instruction;
    step->code.op = (uint8_t)op;
    step->code.out = out;
    step->code.to = (uint8_t)cuda_eval_kind_of(eval->types[out]);
    step->code.phys = (uint8_t)sx_type_phys(eval->types[out]);
    step->code.mask = instruction->mask == SX_NO_REGISTER ? CUDA_EVAL_NO_SLOT : instruction->mask;
    step->code.number = eval->n_steps++;
    return step;
}

enum sx_status cuda_eval_add_list(struct sx_eval *eval, const void *values, size_t bytes,
                                  const void **out_device) {
    struct sx_buffer **lists = realloc(eval->lists, ((size_t)eval->n_lists + 1) * sizeof *lists);
    if (!lists)
        return cuda_eval_no_memory(eval);
    eval->lists = lists;
    SX_TRY(cuda_upload_buffer(eval->stream, values, bytes, &lists[eval->n_lists]));
    *out_device = lists[eval->n_lists++]->data;
    return SX_OK;
}

/* ---- constants ---- */

const struct sx_scalar *cuda_eval_constant(const struct sx_eval *eval, int32_t reg) {
    const struct sx_program *program = eval->program;
    reg -= program->n_inputs;
    if (reg < 0 || reg >= program->n_constants || program->constants[reg].is_null)
        return NULL;
    return &program->constants[reg];
}

static struct cuda_eval_value constant_value(const struct sx_scalar *scalar) {
    struct cuda_eval_value value = {0};
    struct sx_string text;
    switch (cuda_eval_kind_of(scalar->type)) {
    case CUDA_EVAL_F32: memcpy(&value, &scalar->v.f32, sizeof scalar->v.f32); break;
    case CUDA_EVAL_F64: memcpy(&value, &scalar->v.f64, sizeof scalar->v.f64); break;
    case CUDA_EVAL_I128:
    case CUDA_EVAL_U128: memcpy(&value, &scalar->v.u128, sizeof value); break;
    case CUDA_EVAL_INTERVAL: memcpy(&value, &scalar->v.interval, sizeof value); break;
    case CUDA_EVAL_STRING:
        text = sx_string_make(scalar->v.text.bytes, scalar->v.text.length_bytes);
        memcpy(&value, &text, sizeof value);
        break;
    default: value.low = scalar->type.id == SX_TYPE_BOOL ? scalar->v.b : scalar->v.u64;
    }
    return value;
}

static size_t outside_bytes(const struct sx_scalar *scalar) {
    const bool is_text = scalar->type.id == SX_TYPE_VARCHAR && !scalar->is_null;
    return is_text && scalar->v.text.length_bytes > SX_STRING_INLINE_BYTES ? scalar->v.text.length_bytes : 0;
}

/* As they go to the device: at the first run, with what else it needs. */
static void fill_block(struct sx_eval *eval) {
    const struct sx_program *program = eval->program;
    const size_t n = (size_t)program->n_constants;
    struct cuda_eval_value *values = (struct cuda_eval_value *)(void *)eval->host_block;
    uint8_t *valid = (uint8_t *)(values + n);
    size_t at = n * (sizeof *values + 1);
    for (size_t i = 0; i < n; i++) {
        const struct sx_scalar *scalar = &program->constants[i];
        valid[i] = !scalar->is_null;
        values[i] = eval->host_constants[i];
        const size_t outside = outside_bytes(scalar);
        if (!outside)
            continue;
        struct sx_string view = sx_string_make(scalar->v.text.bytes, scalar->v.text.length_bytes);
        view.u.ref.pointer = (char *)eval->constants->data + at;
        memcpy(&values[i], &view, sizeof view);
        memcpy(eval->host_block + at, scalar->v.text.bytes, outside);
        at += outside;
    }
}

static enum sx_status make_constants(struct sx_eval *eval) {
    const size_t n = (size_t)eval->program->n_constants;
    eval->host_constants = calloc(n + 1, sizeof *eval->host_constants);
    if (!eval->host_constants)
        return cuda_eval_no_memory(eval);
    eval->block_bytes = n * (sizeof(struct cuda_eval_value) + 1);
    for (size_t i = 0; i < n; i++) {
        const struct sx_scalar *scalar = &eval->program->constants[i];
        eval->block_bytes += outside_bytes(scalar);
        if (!scalar->is_null)
            eval->host_constants[i] = constant_value(scalar);
    }
    eval->host_block = calloc(1, eval->block_bytes + 1);
    if (!eval->host_block)
        return cuda_eval_no_memory(eval);
    SX_TRY(sx_buffer_create(eval->stream->base.pool, eval->block_bytes, &eval->constants,
                            &eval->stream->base.error));
    fill_block(eval);
    return SX_OK;
}

enum sx_status cuda_eval_upload(struct sx_eval *eval, struct eval_plan *plan, struct cuda_copies *uploads) {
    struct cuda_stream *stream = eval->stream;
    if (eval->host_block)
        SX_TRY(
            cuda_upload_later(stream, uploads, eval->constants->data, eval->host_block, eval->block_bytes));
    if (plan && plan->host_steps)
        SX_TRY(cuda_upload_later(stream, uploads, plan->steps->data, plan->host_steps,
                                 (size_t)plan->n_steps * sizeof *plan->host_steps));
    SX_TRY(cuda_uploads_issue(stream, uploads));
    free(eval->host_block);
    eval->host_block = NULL;
    if (plan) {
        free(plan->host_steps);
        plan->host_steps = NULL;
    }
    return SX_OK;
}

/* ---- life ---- */

static enum sx_status lower_all(struct sx_eval *eval) {
    const struct sx_program *program = eval->program;
    const int32_t first = cuda_eval_first_instruction(program), n = first + program->n_instructions;
    for (int32_t reg = 0; reg < n; reg++)
        if (cuda_eval_add_register(eval, sx_program_type(program, reg)) < 0)
            return cuda_eval_no_memory(eval);
    eval->instructions = calloc((size_t)program->n_instructions + 1, sizeof *eval->instructions);
    if (!eval->instructions)
        return cuda_eval_no_memory(eval);
    for (int32_t i = 0; i < program->n_instructions; i++) {
        eval->instructions[i] = (struct eval_instruction){.first_step = eval->n_steps, .mapped = -1};
        SX_TRY(cuda_eval_lower(eval, &program->instructions[i], first + i));
        eval->instructions[i].n_steps = eval->n_steps - eval->instructions[i].first_step;
    }
    return SX_OK;
}

enum sx_status cuda_eval_create(struct cuda_stream *stream, const struct sx_program *program,
                                bool with_dictionaries, struct sx_eval **out_eval) {
    struct sx_eval *eval = calloc(1, sizeof *eval);
    enum sx_status status;
    if (!eval)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for an expression");
    eval->stream = stream;
    eval->program = program;
    SX_GO(make_constants(eval));
    SX_GO(lower_all(eval));
    SX_GO(sx_buffer_create(stream->base.pool, sizeof(struct cuda_eval_failure), &eval->failure,
                           &stream->base.error));
    if (with_dictionaries)
        SX_GO(cuda_eval_dict_find(eval));
    *out_eval = eval;
    return SX_OK;
out:
    cuda_eval_destroy(eval);
    return status;
}

void cuda_eval_destroy(struct sx_eval *eval) {
    if (!eval)
        return;
    cuda_eval_leave_unchecked(eval);
    for (struct eval_plan *plan = eval->plans, *next; plan; plan = next) {
        next = plan->next;
        sx_buffer_release(plan->steps);
        free(plan->host_steps);
        free(plan->direct);
        free(plan);
    }
    for (int m = 0; m < eval->n_mapped; m++)
        cuda_eval_dict_destroy(&eval->mapped[m]);
    for (int l = 0; l < eval->n_lists; l++)
        sx_buffer_release(eval->lists[l]);
    sx_buffer_release(eval->constants);
    sx_buffer_release(eval->failure);
    free(eval->types);
    free(eval->steps);
    free(eval->instructions);
    free(eval->mapped);
    free(eval->host_constants);
    free(eval->host_block);
    free(eval->lists);
    free(eval);
}

enum sx_status sx_cuda_eval_create(struct sx_stream *base, const struct sx_program *program,
                                   struct sx_eval **out_eval) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    return cuda_eval_create(stream, program, true, out_eval);
}

void sx_cuda_eval_destroy(struct sx_stream *base, struct sx_eval *eval) {
    (void)base;
    cuda_eval_destroy(eval);
}
