/* Expression programs: several expressions over the columns of a batch, as one list of instructions in which
 * every instruction writes its own register once. Data only; a backend interprets or compiles it. */
#ifndef SX_TENSOR_PROGRAM_H
#define SX_TENSOR_PROGRAM_H

#include "tensor/function.h"
#include "tensor/type.h"

enum { SX_NO_REGISTER = -1, SX_PROGRAM_MAX_ARGUMENTS = 3 };

struct sx_instruction {
    enum sx_function function;
    struct sx_type type; /* of the result */
    int32_t arguments[SX_PROGRAM_MAX_ARGUMENTS];
    int32_t
        mask; /* BOOL register: an error counts only on rows where it is a valid 1; SX_NO_REGISTER: on all */
    int32_t list_first; /* IN_LIST: first constant (index into constants), */
    int32_t list_count; /* and how many; they have the argument's type */
};

/* Registers are numbered: inputs, then constants, then instructions. An argument is always a lower register.
 */
struct sx_program {
    int32_t n_inputs;
    const struct sx_type *input_types; /* input i is column i of the batch */
    int32_t n_constants;
    const struct sx_scalar *constants;
    int32_t n_instructions;
    const struct sx_instruction *instructions;
    int32_t n_outputs;
    const int32_t *outputs; /* registers */
};

static inline struct sx_type sx_program_type(const struct sx_program *program, int32_t reg) {
    if (reg < program->n_inputs)
        return program->input_types[reg];
    reg -= program->n_inputs;
    if (reg < program->n_constants)
        return program->constants[reg].type;
    return program->instructions[reg - program->n_constants].type;
}

#endif
