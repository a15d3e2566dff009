#include "bench/program.h"

#include <string.h>

int32_t bench_input(struct bench_program *p, struct sx_type type) {
    p->inputs[p->n_inputs] = type;
    return p->n_inputs++;
}

static int32_t add_constant(struct bench_program *p, const struct sx_scalar *scalar) {
    p->constants[p->n_constants] = *scalar;
    return p->n_inputs + p->n_constants++;
}

int32_t bench_number(struct bench_program *p, struct sx_type type, int64_t value) {
    struct sx_scalar scalar = {.type = type};
    if (sx_type_phys(type) == SX_PHYS_I128)
        scalar.v.i128 = value;
    else
        scalar.v.i64 = value;
    return add_constant(p, &scalar);
}

int32_t bench_text(struct bench_program *p, const char *text) {
    struct sx_scalar scalar = {.type = sx_type_of(SX_TYPE_VARCHAR)};
    scalar.v.text.bytes = text;
    scalar.v.text.length_bytes = (uint32_t)strlen(text);
    return add_constant(p, &scalar);
}

int32_t bench_call(struct bench_program *p, enum sx_function function, struct sx_type type, int32_t a,
                   int32_t b, int32_t c) {
    p->instructions[p->n_instructions] = (struct sx_instruction){
        .function = function, .type = type, .arguments = {a, b, c}, .mask = SX_NO_REGISTER};
    return p->n_inputs + p->n_constants + p->n_instructions++;
}

void bench_output(struct bench_program *p, int32_t reg) {
    p->outputs[p->n_outputs++] = reg;
}

const struct sx_program *bench_program_end(struct bench_program *p) {
    p->program = (struct sx_program){
        p->n_inputs,       p->inputs,       p->n_constants, p->constants,
        p->n_instructions, p->instructions, p->n_outputs,   p->outputs,
    };
    return &p->program;
}
