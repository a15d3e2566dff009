/* Programs put together by hand. */
#ifndef SX_BENCH_PROGRAM_H
#define SX_BENCH_PROGRAM_H

#include "tensor/program.h"

/* Registers are given out in order: inputs first, then constants, then calls. Starts zeroed. */
struct bench_program {
    int32_t n_inputs, n_constants, n_instructions, n_outputs;
    struct sx_type inputs[8];
    struct sx_scalar constants[8];
    struct sx_instruction instructions[12];
    int32_t outputs[4];
    struct sx_program program; /* set by bench_program_end; leads into this struct, which must not move */
};

int32_t bench_input(struct bench_program *p, struct sx_type type);
/* Of an integer, date or decimal type (then unscaled). */
int32_t bench_number(struct bench_program *p, struct sx_type type, int64_t value);
int32_t bench_text(struct bench_program *p, const char *text);
int32_t bench_call(struct bench_program *p, enum sx_function function, struct sx_type type, int32_t a,
                   int32_t b, int32_t c);
void bench_output(struct bench_program *p, int32_t reg);
const struct sx_program *bench_program_end(struct bench_program *p);

#endif
