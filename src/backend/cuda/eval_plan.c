/* Plans: the steps that the outputs need, each as late as it can be, and the slots of their registers. */
#include "backend/cuda/eval.h"

#include <stdlib.h>
#include <string.h>

struct emitter {
    struct sx_eval *eval;
    struct eval_plan *plan;
    struct cuda_eval_step *steps;
    int32_t n, capacity;
    uint8_t *computed; /* per register */
    bool failed;       /* no memory */
};

/* ---- order ---- */

/* Arguments are registers still; CUDA_EVAL_NO_SLOT where there is none. */
static struct cuda_eval_step *emit(struct emitter *e, const struct cuda_eval_step *step) {
    if (e->n == e->capacity) {
        const int32_t capacity = e->capacity ? 2 * e->capacity : 32;
        struct cuda_eval_step *steps = realloc(e->steps, (size_t)capacity * sizeof *steps);
        e->failed |= !steps;
        if (!steps)
            return NULL;
        e->steps = steps;
        e->capacity = capacity;
    }
    e->steps[e->n] = *step;
    return &e->steps[e->n++];
}

static void emit_load(struct emitter *e, int32_t reg, enum cuda_eval_op op, int32_t column) {
    const struct cuda_eval_step load = {.op = (uint8_t)op,
                                        .to = (uint8_t)cuda_eval_kind_of(e->eval->types[reg]),
                                        .phys = (uint8_t)sx_type_phys(e->eval->types[reg]),
                                        .out = reg,
                                        .mask = CUDA_EVAL_NO_SLOT,
                                        .place = column};
    emit(e, &load);
}

/* A STORE to output `place`, or a TEST. */
static void emit_use(struct emitter *e, int32_t reg, enum cuda_eval_op op, int32_t place) {
    const struct cuda_eval_step use = {.op = (uint8_t)op,
                                       .kind = (uint8_t)cuda_eval_kind_of(e->eval->types[reg]),
                                       .phys = (uint8_t)sx_type_phys(e->eval->types[reg]),
                                       .n_arguments = 1,
                                       .out = CUDA_EVAL_NO_SLOT,
                                       .arguments = {reg},
                                       .mask = CUDA_EVAL_NO_SLOT,
                                       .place = place};
    emit(e, &use);
}

static void emit_register(struct emitter *e, int32_t reg);

static void emit_instruction(struct emitter *e, int32_t index, int32_t reg) {
    struct sx_eval *eval = e->eval;
    const struct eval_instruction *at = &eval->instructions[index];
    const struct sx_instruction *instruction = &eval->program->instructions[index];
    if (at->mapped >= 0 && (e->plan->mapped >> at->mapped & 1)) {
        emit_load(e, reg, CUDA_EVAL_LOAD_TABLE, eval->program->n_inputs + at->mapped);
        return;
    }
    for (int k = 0; k < sx_function_arguments(instruction->function); k++)
        emit_register(e, instruction->arguments[k]);
    if (instruction->mask != SX_NO_REGISTER)
        emit_register(e, instruction->mask);
    for (int32_t s = 0; s < at->n_steps; s++)
        emit(e, &eval->steps[at->first_step + s].code);
}

static void emit_register(struct emitter *e, int32_t reg) {
    const struct sx_program *program = e->eval->program;
    const int32_t index = reg - cuda_eval_first_instruction(program);
    if (e->computed[reg] || (reg >= program->n_inputs && index < 0))
        return;
    e->computed[reg] = 1;
    if (index < 0)
        emit_load(e, reg, CUDA_EVAL_LOAD, reg);
    else
        emit_instruction(e, index, reg);
}

static bool is_met_before(const struct sx_program *program, int32_t output) {
    for (int32_t o = 0; o < output; o++)
        if (program->outputs[o] == program->outputs[output])
            return true;
    return false;
}

/* Outputs that are inputs or constants need no step, and one that is met twice is shared. */
static void emit_outputs(struct emitter *e) {
    const struct sx_program *program = e->eval->program;
    for (int32_t o = 0; o < program->n_outputs; o++) {
        const int32_t reg = program->outputs[o], index = reg - cuda_eval_first_instruction(program);
        const int mapped = index >= 0 ? e->eval->instructions[index].mapped : -1;
        if (!e->plan->is_select && (index < 0 || is_met_before(program, o)))
            continue;
        if (mapped >= 0 && (e->plan->skipped >> mapped & 1))
            continue;
        emit_register(e, reg);
        emit_use(e, reg, e->plan->is_select ? CUDA_EVAL_TEST : CUDA_EVAL_STORE, o);
    }
}

/* ---- slots ---- */

struct allocation {
    const struct sx_program *program;
    int32_t *last_use; /* per register: step */
    int32_t *slots;    /* per register */
    int32_t *free;     /* stack of slots that were used and are free */
    int32_t n_free, n_slots;
};

static bool is_constant(const struct sx_program *program, int32_t reg) {
    return reg >= program->n_inputs && reg < cuda_eval_first_instruction(program);
}

static void find_last_uses(const struct emitter *e, struct allocation *a) {
    for (int32_t s = 0; s < e->n; s++) {
        const struct cuda_eval_step *step = &e->steps[s];
        for (int k = 0; k < step->n_arguments; k++)
            a->last_use[step->arguments[k]] = s;
        if (step->mask != CUDA_EVAL_NO_SLOT)
            a->last_use[step->mask] = s;
        if (step->out != CUDA_EVAL_NO_SLOT)
            a->last_use[step->out] = s;
    }
}

/* The slot of a register that step `s` reads, which goes free where this is the last use. */
static int32_t take_argument(struct allocation *a, int32_t reg, int32_t s) {
    if (is_constant(a->program, reg))
        return -1 - (reg - a->program->n_inputs);
    if (a->last_use[reg] == s) {
        a->last_use[reg] = -1;
        a->free[a->n_free++] = a->slots[reg];
    }
    return a->slots[reg];
}

/* A step reads its arguments, and its mask, before it writes. */
static void place_step(struct allocation *a, struct cuda_eval_step *step, int32_t s) {
    for (int k = 0; k < step->n_arguments; k++)
        step->arguments[k] = take_argument(a, step->arguments[k], s);
    if (step->mask != CUDA_EVAL_NO_SLOT)
        step->mask = take_argument(a, step->mask, s);
    if (step->out == CUDA_EVAL_NO_SLOT)
        return;
    const int32_t reg = step->out;
    a->slots[reg] = a->n_free ? a->free[--a->n_free] : a->n_slots++;
    step->out = a->slots[reg];
    if (a->last_use[reg] == s)
        a->free[a->n_free++] = a->slots[reg];
}

static enum sx_status place_all(struct emitter *e) {
    const size_t n = (size_t)e->eval->n_registers + 1;
    int32_t *memory = calloc(3 * n, sizeof *memory);
    if (!memory)
        return cuda_eval_no_memory(e->eval);
    struct allocation a = {e->eval->program, memory, memory + n, memory + 2 * n, 0, 0};
    find_last_uses(e, &a);
    for (int32_t s = 0; s < e->n; s++)
        place_step(&a, &e->steps[s], s);
    e->plan->n_slots = a.n_slots;
    free(memory);
    return a.n_slots <= CUDA_EVAL_MOST_SLOTS
               ? SX_OK
               : sx_error_set(&e->eval->stream->base.error, SX_UNSUPPORTED,
                              "an expression that needs %d values at a time (on a GPU: %d)", (int)a.n_slots,
                              (int)CUDA_EVAL_MOST_SLOTS);
}

/* ---- plans ---- */

static enum cuda_eval_level level_of(const struct cuda_eval_step *step) {
    if (step->op == CUDA_EVAL_TO_TEXT || step->op == CUDA_EVAL_FROM_TEXT)
        return CUDA_EVAL_TEXT;
    const bool is_wide = step->kind >= CUDA_EVAL_I128 || step->to >= CUDA_EVAL_I128 ||
                         (step->op >= CUDA_EVAL_DATE_ADD_INTERVAL && step->op < CUDA_EVAL_TO_TEXT);
    return is_wide ? CUDA_EVAL_WIDE : CUDA_EVAL_NARROW;
}

static bool has_text(const struct sx_eval *eval, const struct cuda_eval_step *step) {
    const struct cuda_eval_step *origin = &eval->steps[step->number].code; /* with registers */
    bool any = false;
    for (int k = 0; k < origin->n_arguments; k++)
        any |= eval->types[origin->arguments[k]].id == SX_TYPE_VARCHAR;
    return any;
}

static void describe_plan(struct emitter *e) {
    struct eval_plan *plan = e->plan;
    plan->n_steps = e->n;
    for (int32_t s = 0; s < e->n; s++) {
        const struct cuda_eval_step *step = &e->steps[s];
        const enum cuda_eval_level level = level_of(step);
        plan->level = level > plan->level ? level : plan->level;
        const bool can_fail = step->on_fail == CUDA_EVAL_ERROR;
        plan->can_fail |= can_fail;
        plan->fails_on_text |= can_fail && has_text(e->eval, step);
        plan->makes_strings |= step->op >= CUDA_EVAL_CONCAT && step->op <= CUDA_EVAL_TO_TEXT;
    }
}

static enum sx_status fill_plan(struct emitter *e) {
    e->computed = calloc((size_t)e->eval->n_registers + 1, 1);
    if (!e->computed)
        return cuda_eval_no_memory(e->eval);
    emit_outputs(e);
    if (e->failed)
        return cuda_eval_no_memory(e->eval);
    describe_plan(e);
    SX_TRY(place_all(e));
    SX_TRY(cuda_eval_direct_make(e->eval, e->plan, e->steps));
    return sx_buffer_create(e->eval->stream->base.pool, (size_t)e->n * sizeof *e->steps, &e->plan->steps,
                            &e->eval->stream->base.error);
}

enum sx_status cuda_eval_plan(struct sx_eval *eval, bool is_select, uint64_t mapped, uint64_t skipped,
                              struct eval_plan **out_plan) {
    for (struct eval_plan *plan = eval->plans; plan; plan = plan->next)
        if (plan->is_select == is_select && plan->mapped == mapped && plan->skipped == skipped) {
            *out_plan = plan;
            return SX_OK;
        }
    struct eval_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cuda_eval_no_memory(eval);
    *plan = (struct eval_plan){.is_select = is_select, .mapped = mapped, .skipped = skipped};
    struct emitter e = {.eval = eval, .plan = plan};
    const enum sx_status status = fill_plan(&e);
    free(e.computed);
    if (status != SX_OK) {
        free(e.steps);
        free(plan->direct);
        free(plan);
        return status;
    }
    plan->host_steps = e.steps;
    plan->next = eval->plans;
    eval->plans = plan;
    *out_plan = plan;
    return SX_OK;
}
