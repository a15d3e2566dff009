#include "backend/cpu/eval_load.h"

#include <string.h>

bool sx_eval_cancelled(const struct sx_eval *eval) {
    return eval->stream->cancel && atomic_load_explicit(eval->stream->cancel, memory_order_relaxed);
}

void sx_eval_begin(struct sx_eval *eval, const struct sx_eval_frame *frame) {
    eval->frame = *frame;
    eval->epoch++;
}

enum sx_status sx_eval_slot(struct sx_eval *eval, int32_t reg, void **out_values, uint8_t **out_valid) {
    const size_t width = sx_type_bytes(eval->types[reg]);
    if (!eval->slots[reg])
        SX_TRY(sx_pool_alloc(eval->stream->pool, SX_EVAL_BLOCK_ROWS * (width + 1), &eval->slots[reg],
                             &eval->stream->error));
    *out_values = eval->slots[reg];
    *out_valid = (uint8_t *)eval->slots[reg] + SX_EVAL_BLOCK_ROWS * width;
    return SX_OK;
}

uint8_t *sx_eval_own_valid(struct sx_eval_call *call) {
    if (call->out_valid == call->own_valid)
        return call->own_valid;
    if (call->out_valid)
        memcpy(call->own_valid, call->out_valid, (size_t)call->n);
    else
        memset(call->own_valid, 1, (size_t)call->n);
    call->out_valid = call->own_valid;
    return call->own_valid;
}

/* ---- inputs ---- */

static enum sx_status load_input(struct sx_eval *eval, int32_t reg) {
    const struct sx_eval_frame *frame = &eval->frame;
    const struct sx_tensor *column = &frame->batch->columns[reg];
    struct sx_eval_register *r = &eval->registers[reg];
    const size_t width = sx_type_bytes(column->type);
    r->is_constant = column->layout == SX_CONSTANT;
    if (r->is_constant) {
        r->values = column->values;
        r->valid = column->valid;
        return SX_OK;
    }
    if (column->layout == SX_FLAT && !frame->positions) {
        r->values = (const char *)column->values + (size_t)frame->base * width;
        r->valid = column->valid ? column->valid + frame->base : NULL;
        return SX_OK;
    }
    void *values;
    uint8_t *valid;
    SX_TRY(sx_eval_slot(eval, reg, &values, &valid));
    if (column->layout == SX_DICT)
        sx_eval_gather(column->dict->values.values, column->values, width, frame, values);
    else
        sx_eval_gather(column->values, NULL, width, frame, values);
    r->values = values;
    r->valid = NULL;
    if (column->valid && frame->positions) {
        sx_eval_gather(column->valid, NULL, 1, frame, valid);
        r->valid = valid;
    } else if (column->valid) {
        r->valid = column->valid + frame->base;
    }
    return SX_OK;
}

/* ---- steps ---- */

/* Validity of the result where every argument has to be valid. *out_null: a constant argument is null. */
static void combine_valid(struct sx_eval_call *call, int n_arguments, bool *out_null) {
    *out_null = false;
    call->out_valid = NULL;
    for (int k = 0; k < n_arguments; k++) {
        const uint8_t *valid = call->valid[k];
        if (!valid)
            continue;
        if (call->step[k] == 0) {
            *out_null |= !valid[0];
        } else if (!call->out_valid) {
            call->out_valid = valid;
        } else if (call->out_valid != valid) {
            const uint8_t *so_far = call->out_valid;
            for (int64_t i = 0; i < call->n; i++)
                call->own_valid[i] = so_far[i] & valid[i];
            call->out_valid = call->own_valid;
        }
    }
}

static bool is_masked_in(const struct sx_eval *eval, const struct sx_instruction *instruction, int64_t row) {
    if (instruction->mask == SX_NO_REGISTER)
        return true;
    const struct sx_eval_register *mask = &eval->registers[instruction->mask];
    const int64_t at = mask->is_constant ? 0 : row;
    return ((const uint8_t *)mask->values)[at] && (!mask->valid || mask->valid[at]);
}

/* Whether an error in the row counts; a constant's row stands for all rows of the frame. */
static bool row_counts(const struct sx_eval *eval, const struct sx_instruction *instruction, bool is_constant,
                       int64_t row) {
    const uint8_t *active = eval->frame.active;
    const int64_t end = is_constant ? eval->frame.n : row + 1;
    for (; row < end; row++)
        if ((!active || active[row]) && is_masked_in(eval, instruction, row))
            return true;
    return false;
}

/* Some row of the call failed: computes its rows one by one to find those that count. */
static enum sx_status resolve_failures(struct sx_eval_call *call, bool is_constant) {
    const struct sx_eval_step *step = call->of;
    struct sx_eval *eval = call->eval;
    _Alignas(16) char out[16];
    for (int64_t row = 0; row < call->n; row++) {
        if (call->out_valid && !call->out_valid[row])
            continue;
        uint8_t own_valid;
        struct sx_eval_call one = {.n = 1, .out = out, .own_valid = &own_valid, .eval = eval, .of = step};
        for (int k = 0; k < step->n_arguments; k++) {
            const int64_t at = row * call->step[k];
            one.in[k] =
                (const char *)call->in[k] + (size_t)at * sx_type_bytes(eval->types[step->arguments[k]]);
            one.valid[k] = call->valid[k] ? call->valid[k] + at : NULL;
        }
        step->kernel(&one);
        if (one.status != SX_OK)
            return one.status;
        if (!one.failed)
            continue;
        if (step->null_on_fail)
            sx_eval_own_valid(call)[row] = 0;
        else if (row_counts(eval, step->instruction, is_constant, row))
            return step->describe(&one, &eval->stream->error);
    }
    return SX_OK;
}

static void make_null(struct sx_eval *eval, struct sx_eval_register *r, int32_t reg, void *values,
                      uint8_t *valid) {
    memset(values, 0, sx_type_bytes(eval->types[reg]));
    valid[0] = 0;
    *r = (struct sx_eval_register){values, valid, true, eval->epoch};
}

static enum sx_status run_step(struct sx_eval *eval, const struct sx_eval_step *step) {
    struct sx_eval_register *r = &eval->registers[step->out];
    struct sx_eval_call call = {.eval = eval, .of = step};
    bool is_constant = true, is_null = false;
    for (int k = 0; k < step->n_arguments; k++) {
        const struct sx_eval_register *argument = &eval->registers[step->arguments[k]];
        call.in[k] = argument->values;
        call.valid[k] = argument->valid;
        call.step[k] = !argument->is_constant;
        is_constant &= argument->is_constant;
    }
    if (!step->kernel) {
        *r = eval->registers[step->arguments[0]];
        r->epoch = eval->epoch;
        return SX_OK;
    }
    SX_TRY(sx_eval_slot(eval, step->out, &call.out, &call.own_valid));
    void *const slot = call.out;
    if (eval->destinations[step->out] && !is_constant)
        call.out =
            eval->destinations[step->out] + (size_t)eval->frame.base * sx_type_bytes(eval->types[step->out]);
    call.n = is_constant ? 1 : eval->frame.n;
    if (!step->nulls_own) {
        if (is_constant)
            for (int k = 0; k < step->n_arguments; k++)
                is_null |= call.valid[k] && !call.valid[k][0];
        else
            combine_valid(&call, step->n_arguments, &is_null);
    }
    if (is_null) {
        make_null(eval, r, step->out, slot, call.own_valid);
        return SX_OK;
    }
    step->kernel(&call);
    if (call.status != SX_OK)
        return call.status;
    if (call.failed && (step->describe || step->null_on_fail))
        SX_TRY(resolve_failures(&call, is_constant));
    *r = (struct sx_eval_register){call.out, call.out_valid, is_constant, eval->epoch};
    return SX_OK;
}

enum sx_status sx_eval_register_compute(struct sx_eval *eval, int32_t reg) {
    const struct sx_program *program = eval->program;
    struct sx_eval_register *r = &eval->registers[reg];
    const int32_t index = reg - program->n_inputs - program->n_constants;
    if (r->epoch == eval->epoch || (reg >= program->n_inputs && index < 0))
        return SX_OK;
    if (reg < program->n_inputs) {
        SX_TRY(load_input(eval, reg));
        r->epoch = eval->epoch;
        return SX_OK;
    }
    const struct sx_eval_instruction *at = &eval->instructions[index];
    if (at->mapped && at->mapped->active)
        return sx_eval_dict_map(eval, at->mapped, reg);
    const struct sx_instruction *instruction = &program->instructions[index];
    for (int k = 0; k < sx_function_arguments(instruction->function); k++)
        SX_TRY(sx_eval_register_compute(eval, instruction->arguments[k]));
    if (instruction->mask != SX_NO_REGISTER)
        SX_TRY(sx_eval_register_compute(eval, instruction->mask));
    for (int32_t s = 0; s < at->n_steps; s++)
        SX_TRY(run_step(eval, &eval->steps[at->first_step + s]));
    return SX_OK;
}
