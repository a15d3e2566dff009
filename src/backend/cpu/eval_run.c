#include "backend/cpu/eval.h"

#include <stdlib.h>
#include <string.h>

/* How an output is made: shared or constant at once, or filled block by block. */
static bool is_filled(const struct sx_eval *eval, int32_t reg) {
    return reg >= eval->program->n_inputs + eval->program->n_constants;
}

static int first_output_of(const struct sx_program *program, int output) {
    for (int o = 0; o < output; o++)
        if (program->outputs[o] == program->outputs[output])
            return o;
    return output;
}

static enum sx_status begin_output(struct sx_eval *eval, const struct sx_batch *batch, int output,
                                   struct sx_tensor *out) {
    const struct sx_program *program = eval->program;
    const int32_t reg = program->outputs[output], index = reg - program->n_inputs - program->n_constants;
    if (reg < program->n_inputs) {
        sx_tensor_share(&batch->columns[reg], out);
        return SX_OK;
    }
    if (index < 0) {
        sx_tensor_share(&eval->constants[reg - program->n_inputs], out);
        out->length = batch->rows;
        return SX_OK;
    }
    if (first_output_of(program, output) != output)
        return SX_OK; /* shared at the end */
    bool done = false;
    if (eval->instructions[index].mapped)
        SX_TRY(sx_eval_dict_output(eval, eval->instructions[index].mapped, batch, out, &done));
    if (done)
        return SX_OK;
    SX_TRY(sx_tensor_create(eval->stream->pool, eval->types[reg], batch->rows, false, out,
                            &eval->stream->error));
    eval->destinations[reg] = out->values;
    return SX_OK;
}

static void broadcast(const void *value, size_t width, int64_t n, char *out) {
    for (int64_t i = 0; i < n; i++)
        memcpy(out + (size_t)i * width, value, width);
}

/* Validity exists from the first block on that has a null. */
static enum sx_status store_valid(struct sx_eval *eval, const struct sx_eval_register *r,
                                  struct sx_tensor *out) {
    const struct sx_eval_frame *frame = &eval->frame;
    const bool all_valid = !r->valid || (r->is_constant && r->valid[0]);
    if (!out->valid && all_valid)
        return SX_OK;
    if (!out->valid) {
        SX_TRY(sx_buffer_create(eval->stream->pool, (size_t)out->length, &out->valid_buffer,
                                &eval->stream->error));
        out->valid = out->valid_buffer->data;
        memset(out->valid, 1, (size_t)frame->base);
    }
    uint8_t *place = out->valid + frame->base;
    if (all_valid)
        memset(place, 1, (size_t)frame->n);
    else if (r->is_constant)
        memset(place, 0, (size_t)frame->n);
    else
        memcpy(place, r->valid, (size_t)frame->n);
    return SX_OK;
}

static enum sx_status store_block(struct sx_eval *eval, int32_t reg, struct sx_tensor *out) {
    const struct sx_eval_register *r = &eval->registers[reg];
    const size_t width = sx_type_bytes(eval->types[reg]);
    char *place = (char *)out->values + (size_t)eval->frame.base * width;
    if (!r->values)
        return sx_error_set(&eval->stream->error, SX_INTERNAL, "a register was not computed");
    if (r->is_constant)
        broadcast(r->values, width, eval->frame.n, place);
    else if (r->values != place)
        memcpy(place, r->values, (size_t)eval->frame.n * width);
    return store_valid(eval, r, out);
}

static enum sx_status run_block(struct sx_eval *eval, struct sx_tensor *out) {
    const struct sx_program *program = eval->program;
    for (int32_t o = 0; o < program->n_outputs; o++) {
        const int32_t reg = program->outputs[o];
        if (!eval->destinations[reg] || !out[o].values)
            continue; /* shared, constant, or an output met before */
        SX_TRY(sx_eval_register_compute(eval, reg));
        SX_TRY(store_block(eval, reg, &out[o]));
    }
    return SX_OK;
}

static enum sx_status run_blocks(struct sx_eval *eval, const struct sx_batch *batch, struct sx_tensor *out) {
    for (int64_t base = 0; base < batch->rows; base += SX_EVAL_BLOCK_ROWS) {
        const int64_t left = batch->rows - base;
        const struct sx_eval_frame frame = {batch, base, NULL,
                                            left < SX_EVAL_BLOCK_ROWS ? left : SX_EVAL_BLOCK_ROWS, NULL};
        if (sx_eval_cancelled(eval))
            return sx_error_set(&eval->stream->error, SX_CANCELLED, "cancelled");
        sx_eval_begin(eval, &frame);
        SX_TRY(run_block(eval, out));
    }
    return SX_OK;
}

static enum sx_status end_outputs(struct sx_eval *eval, const struct sx_batch *batch, struct sx_tensor *out) {
    const struct sx_program *program = eval->program;
    for (int32_t o = 0; o < program->n_outputs; o++) {
        const int32_t reg = program->outputs[o];
        const int first = first_output_of(program, o);
        if (!is_filled(eval, reg))
            continue;
        if (first != o)
            sx_tensor_share(&out[first], &out[o]);
        else if (eval->destinations[reg] && eval->types[reg].id == SX_TYPE_VARCHAR)
            SX_TRY(sx_eval_heap_of(eval, reg, batch, &out[o].heap));
    }
    return SX_OK;
}

enum sx_status sx_cpu_eval_run(struct sx_stream *stream, struct sx_eval *eval, const struct sx_batch *batch,
                               struct sx_tensor *out_columns) {
    const int32_t n = eval->program->n_outputs;
    struct sx_tensor *out = calloc((size_t)n + 1, sizeof *out);
    enum sx_status status;
    if (!out)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for an expression's results");
    eval->stream = stream;
    SX_GO(sx_eval_dict_prepare(eval, batch));
    for (int32_t o = 0; o < n; o++)
        SX_GO(begin_output(eval, batch, o, &out[o]));
    SX_GO(run_blocks(eval, batch, out));
    SX_GO(end_outputs(eval, batch, out));
    memcpy(out_columns, out, (size_t)n * sizeof *out);
out:
    for (int32_t o = 0; o < n; o++) {
        eval->destinations[eval->program->outputs[o]] = NULL;
        if (status != SX_OK)
            sx_tensor_release(&out[o]);
    }
    sx_eval_heap_reset(eval);
    free(out);
    return status;
}
