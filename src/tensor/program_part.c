#include "tensor/program_part.h"

#include <stdlib.h>

/* What a register depends on: one input, none, or several. */
enum { LEAF_NONE = -1, LEAF_MANY = -2 };

static int32_t first_instruction(const struct sx_program *program) {
    return program->n_inputs + program->n_constants;
}

static int32_t join_leaves(int32_t a, int32_t b) {
    if (a == LEAF_NONE || a == b)
        return b;
    return b == LEAF_NONE ? a : LEAF_MANY;
}

static void find_leaves(const struct sx_program *program, const bool *can_fail, int32_t *leaves) {
    const int32_t first = first_instruction(program);
    for (int32_t reg = 0; reg < first; reg++)
        leaves[reg] = reg < program->n_inputs ? reg : LEAF_NONE;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct sx_instruction *instruction = &program->instructions[i];
        int32_t leaf = can_fail[i] ? LEAF_MANY : LEAF_NONE;
        for (int k = 0; k < sx_function_arguments(instruction->function); k++)
            leaf = join_leaves(leaf, leaves[instruction->arguments[k]]);
        leaves[first + i] = leaf;
    }
}

/* Marks the instructions that are used from outside of their input's part of the program. */
static void find_borders(const struct sx_program *program, const int32_t *leaves, bool *borders) {
    const int32_t first = first_instruction(program);
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct sx_instruction *instruction = &program->instructions[i];
        for (int k = 0; k < sx_function_arguments(instruction->function); k++)
            borders[instruction->arguments[k]] |= leaves[first + i] == LEAF_MANY;
        if (instruction->mask != SX_NO_REGISTER)
            borders[instruction->mask] = true;
    }
    for (int32_t o = 0; o < program->n_outputs; o++)
        borders[program->outputs[o]] = true;
}

static int32_t renumber(const struct sx_program *program, const int32_t *places, int32_t reg) {
    const int32_t first = first_instruction(program);
    if (reg < program->n_inputs)
        return 0;
    return reg < first ? reg - program->n_inputs + 1 : places[reg - first];
}

/* The instructions that lead to `target`, over input `leaf` as the only one. */
static enum sx_status extract(const struct sx_program *program, const int32_t *leaves, int32_t target,
                              struct sx_program_part *out, struct sx_error *error) {
    const int32_t first = first_instruction(program), leaf = leaves[first + target];
    struct sx_instruction *instructions = calloc((size_t)target + 1, sizeof *instructions);
    int32_t *places = calloc((size_t)target + 1, sizeof *places), *output = calloc(1, sizeof *output);
    if (!instructions || !places || !output) {
        free(instructions);
        free(places);
        free(output);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for an expression");
    }
    int32_t n = 0;
    for (int32_t i = 0; i <= target; i++) {
        const struct sx_instruction *instruction = &program->instructions[i];
        if (leaves[first + i] != leaf && leaves[first + i] != LEAF_NONE)
            continue;
        instructions[n] = *instruction;
        for (int k = 0; k < sx_function_arguments(instruction->function); k++)
            instructions[n].arguments[k] = renumber(program, places, instruction->arguments[k]);
        instructions[n].mask = SX_NO_REGISTER;
        places[i] = 1 + program->n_constants + n++;
    }
    *output = places[target];
    free(places);
    *out = (struct sx_program_part){target,
                                    leaf,
                                    {1, &program->input_types[leaf], program->n_constants, program->constants,
                                     n, instructions, 1, output}};
    return SX_OK;
}

void sx_program_part_release(struct sx_program_part *part) {
    free((void *)(uintptr_t)part->program.instructions);
    free((void *)(uintptr_t)part->program.outputs);
    *part = (struct sx_program_part){0};
}

enum sx_status sx_program_parts(const struct sx_program *program, const bool *can_fail, int most,
                                struct sx_program_part **out_parts, int *out_n, struct sx_error *error) {
    const int32_t first = first_instruction(program);
    const size_t n_registers = (size_t)(first + program->n_instructions) + 1;
    int32_t *leaves = calloc(n_registers, sizeof *leaves);
    bool *borders = calloc(n_registers, sizeof *borders);
    struct sx_program_part *parts = calloc((size_t)program->n_instructions + 1, sizeof *parts);
    enum sx_status status = SX_OK;
    int n = 0;
    if (!leaves || !borders || !parts) {
        status = SX_OUT_OF_MEMORY;
        (void)sx_error_set(error, status, "no memory for an expression");
        goto out;
    }
    find_leaves(program, can_fail, leaves);
    find_borders(program, leaves, borders);
    for (int32_t i = 0; i < program->n_instructions && n < most; i++) {
        const int32_t leaf = leaves[first + i];
        if (leaf < 0 || !borders[first + i] || program->input_types[leaf].id != SX_TYPE_VARCHAR)
            continue;
        SX_GO(extract(program, leaves, i, &parts[n], error));
        n++;
    }
out:
    free(leaves);
    free(borders);
    while (status != SX_OK && n > 0)
        sx_program_part_release(&parts[--n]);
    if (n == 0) {
        free(parts);
        parts = NULL;
    }
    *out_parts = parts;
    *out_n = n;
    return status;
}
