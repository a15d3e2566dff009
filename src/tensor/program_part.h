/* Parts of a program that depend on one VARCHAR input only: a backend computes them per dictionary entry. */
#ifndef SX_TENSOR_PROGRAM_PART_H
#define SX_TENSOR_PROGRAM_PART_H

#include "base/status.h"
#include "tensor/program.h"

struct sx_program_part {
    int32_t instruction;       /* whose value the part gives */
    int32_t input;             /* of the whole program */
    struct sx_program program; /* over that input alone, one output, no masks; borrows types and constants */
};

/* The parts whose values are used from outside of them, at most `most`. can_fail[i]: instruction i can raise
 * an error; such ones are in no part, since an entry that no row uses must raise none. *out_parts is malloc's
 * (each part is released by sx_program_part_release, then the array by free); NULL where there are none. */
SX_MUST_CHECK enum sx_status sx_program_parts(const struct sx_program *program, const bool *can_fail,
                                              int most, struct sx_program_part **out_parts, int *out_n,
                                              struct sx_error *error);
void sx_program_part_release(struct sx_program_part *part);

#endif
