#include "backend/cpu/eval.h"

#include <stdlib.h>
#include <string.h>

static enum sx_status no_memory(struct sx_eval *eval) {
    return sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for an expression");
}

/* Room grows by doubling; `types` has room for a power of two of registers. */
int32_t sx_eval_add_register(struct sx_eval *eval, struct sx_type type) {
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

struct sx_eval_step *sx_eval_add_step(struct sx_eval *eval, const struct sx_instruction *instruction,
                                      int32_t out) {
    if (eval->n_steps == eval->steps_capacity) {
        const int32_t capacity = eval->steps_capacity ? 2 * eval->steps_capacity : 16;
        struct sx_eval_step *steps = realloc(eval->steps, (size_t)capacity * sizeof *steps);
        if (!steps)
            return NULL;
        eval->steps = steps;
        eval->steps_capacity = capacity;
    }
    struct sx_eval_step *step = &eval->steps[eval->n_steps++];
    *step = (struct sx_eval_step){.instruction = instruction, .out = out};
    return step;
}

static enum sx_status make_constants(struct sx_eval *eval) {
    const struct sx_program *program = eval->program;
    eval->constants = calloc((size_t)program->n_constants + 1, sizeof *eval->constants);
    if (!eval->constants)
        return no_memory(eval);
    for (int32_t i = 0; i < program->n_constants; i++)
        SX_TRY(sx_tensor_create_constant(eval->stream->pool, &program->constants[i], 1, &eval->constants[i],
                                         &eval->stream->error));
    return SX_OK;
}

static enum sx_status lower_all(struct sx_eval *eval) {
    const struct sx_program *program = eval->program;
    const int32_t first = program->n_inputs + program->n_constants, n = first + program->n_instructions;
    for (int32_t reg = 0; reg < n; reg++)
        if (sx_eval_add_register(eval, sx_program_type(program, reg)) < 0)
            return no_memory(eval);
    eval->instructions = calloc((size_t)eval->n_registers + 1, sizeof *eval->instructions);
    if (!eval->instructions)
        return no_memory(eval);
    for (int32_t i = 0; i < program->n_instructions; i++) {
        eval->instructions[i].first_step = eval->n_steps;
        SX_TRY(sx_eval_lower(eval, &program->instructions[i], first + i));
        eval->instructions[i].n_steps = eval->n_steps - eval->instructions[i].first_step;
    }
    return SX_OK;
}

static enum sx_status make_registers(struct sx_eval *eval) {
    const size_t n = (size_t)eval->n_registers + 1;
    eval->registers = calloc(n, sizeof *eval->registers);
    eval->slots = calloc(n, sizeof *eval->slots);
    eval->destinations = calloc(n, sizeof *eval->destinations);
    eval->mask = malloc(SX_EVAL_BLOCK_ROWS);
    eval->positions = malloc((SX_EVAL_BLOCK_ROWS + 8) * sizeof *eval->positions);
    if (!eval->registers || !eval->slots || !eval->destinations || !eval->mask || !eval->positions)
        return no_memory(eval);
    for (int32_t i = 0; i < eval->program->n_constants; i++) {
        const struct sx_tensor *constant = &eval->constants[i];
        eval->registers[eval->program->n_inputs + i] =
            (struct sx_eval_register){constant->values, constant->valid, true, 0};
    }
    return SX_OK;
}

enum sx_status sx_eval_create(struct sx_stream *stream, const struct sx_program *program,
                              bool with_dictionaries, struct sx_eval **out_eval) {
    struct sx_eval *eval = calloc(1, sizeof *eval);
    enum sx_status status;
    if (!eval)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for an expression");
    eval->stream = stream;
    eval->program = program;
    SX_GO(make_constants(eval));
    SX_GO(lower_all(eval));
    SX_GO(make_registers(eval));
    if (with_dictionaries)
        SX_GO(sx_eval_dict_find(eval));
    *out_eval = eval;
    return SX_OK;
out:
    sx_eval_destroy(eval);
    return status;
}

static void free_slots(struct sx_eval *eval) {
    for (int32_t reg = 0; eval->slots && reg < eval->n_registers; reg++)
        if (eval->slots[reg])
            sx_pool_free(eval->stream->pool, eval->slots[reg],
                         SX_EVAL_BLOCK_ROWS * (sx_type_bytes(eval->types[reg]) + 1));
}

void sx_eval_destroy(struct sx_eval *eval) {
    if (!eval)
        return;
    sx_eval_heap_reset(eval);
    free_slots(eval);
    for (int32_t i = 0; eval->constants && i < eval->program->n_constants; i++)
        sx_tensor_release(&eval->constants[i]);
    for (int32_t i = 0; eval->instructions && i < eval->program->n_instructions; i++)
        sx_eval_dict_destroy(eval->instructions[i].mapped);
    for (int32_t i = 0; i < eval->n_steps; i++) {
        sx_like_destroy(eval->steps[i].like);
        sx_value_set_destroy(eval->steps[i].set);
    }
    free(eval->heap);
    free(eval->constants);
    free(eval->instructions);
    free(eval->steps);
    free(eval->types);
    free(eval->registers);
    free(eval->slots);
    free(eval->destinations);
    free(eval->mask);
    free(eval->positions);
    free(eval);
}

enum sx_status sx_cpu_eval_create(struct sx_stream *stream, const struct sx_program *program,
                                  struct sx_eval **out_eval) {
    return sx_eval_create(stream, program, true, out_eval);
}

void sx_cpu_eval_destroy(struct sx_stream *stream, struct sx_eval *eval) {
    (void)stream;
    sx_eval_destroy(eval);
}
