/* Runs of plans: outputs, new strings, selection. */
#include "backend/cuda/eval.h"
#include "backend/cuda/launch.h"

#include <stdlib.h>
#include <string.h>

enum { HEAP_COUNTER = 1, MIN_HEAP_BYTES = 1 << 16, GUESSED_STRING_BYTES = 16 };

/* ---- which outputs may have nulls ---- */

static bool instruction_may_be_null(const struct sx_instruction *instruction, const bool *may_be_null) {
    bool some = false, all = true;
    for (int k = 0; k < sx_function_arguments(instruction->function); k++) {
        const bool argument = may_be_null[instruction->arguments[k]];
        if (instruction->function == SX_FN_CHOOSE && k == 0)
            continue;
        some |= argument;
        all &= argument;
    }
    switch (instruction->function) {
    case SX_FN_DISTINCT_FROM:
    case SX_FN_NOT_DISTINCT_FROM:
    case SX_FN_IS_NULL:
    case SX_FN_IS_NOT_NULL:
    case SX_FN_IS_TRUE:
    case SX_FN_CONCAT_SKIP_NULL: return false;
    case SX_FN_COALESCE: return all;
    case SX_FN_TRY_CAST:
    case SX_FN_INT_DIV:
    case SX_FN_MOD:
    case SX_FN_YEAR:
    case SX_FN_MONTH:
    case SX_FN_DAY: return true;
    default: return some;
    }
}

/* Per register; calloc's. */
static bool *find_nullable(const struct sx_eval *eval, const struct sx_batch *batch) {
    const struct sx_program *program = eval->program;
    const int32_t first = cuda_eval_first_instruction(program);
    bool *may_be_null = calloc((size_t)first + (size_t)program->n_instructions + 1, sizeof *may_be_null);
    if (!may_be_null)
        return NULL;
    for (int32_t i = 0; i < program->n_inputs; i++)
        may_be_null[i] = batch->columns[i].valid != NULL;
    for (int32_t i = 0; i < program->n_constants; i++)
        may_be_null[program->n_inputs + i] = program->constants[i].is_null;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const int at = eval->instructions[i].mapped;
        const struct eval_mapped *mapped = at >= 0 ? &eval->mapped[at] : NULL;
        bool *out = &may_be_null[first + i];
        if (mapped && mapped->active)
            *out = mapped->active->table.valid ||
                   (batch->columns[mapped->part.input].valid && !mapped->null_is_valid);
        else
            *out = instruction_may_be_null(&program->instructions[i], may_be_null);
    }
    return may_be_null;
}

/* ---- what strings point into ---- */

struct found {
    const struct sx_eval *eval;
    const struct sx_batch *batch;
    struct sx_buffer *made;
    struct sx_buffer **buffers;
    int n;
    uint8_t *visited; /* per register of the program */
};

static void visit_instruction(struct found *found, int32_t index);

static void visit(struct found *found, int32_t reg) {
    const struct sx_program *program = found->eval->program;
    const int32_t index = reg - cuda_eval_first_instruction(program);
    if (found->visited[reg])
        return;
    found->visited[reg] = 1;
    if (index >= 0) {
        visit_instruction(found, index);
    } else if (reg >= program->n_inputs) {
        found->buffers[found->n++] = found->eval->constants;
    } else {
        const struct sx_tensor *column = &found->batch->columns[reg];
        found->buffers[found->n++] = column->heap;
        found->buffers[found->n++] = column->dict ? column->dict->values.heap : NULL;
    }
}

static void visit_instruction(struct found *found, int32_t index) {
    const struct sx_eval *eval = found->eval;
    const struct sx_instruction *instruction = &eval->program->instructions[index];
    const int at = eval->instructions[index].mapped;
    const struct eval_mapped *mapped = at >= 0 ? &eval->mapped[at] : NULL;
    if (mapped && mapped->active) {
        found->buffers[found->n++] = mapped->active->table.heap;
        found->buffers[found->n++] = mapped->null_value.heap;
        return;
    }
    switch (instruction->function) {
    case SX_FN_SUBSTRING:
    case SX_FN_CHOOSE:
    case SX_FN_COALESCE:
    case SX_FN_CONSTANT_OR_NULL:
    case SX_FN_CAST:
    case SX_FN_TRY_CAST:
        for (int k = 0; k < sx_function_arguments(instruction->function); k++)
            if (eval->types[instruction->arguments[k]].id == SX_TYPE_VARCHAR)
                visit(found, instruction->arguments[k]);
        break;
    default: break; /* makes its strings */
    }
}

/* Everything that an output's strings may point into; `made`: this run's new strings. */
static enum sx_status join_heaps(struct sx_eval *eval, int32_t reg, const struct sx_batch *batch,
                                 struct sx_buffer *made, struct sx_buffer **out_heap) {
    const struct sx_program *program = eval->program;
    const size_t n = (size_t)cuda_eval_first_instruction(program) + (size_t)program->n_instructions + 1;
    struct found found = {.eval = eval, .batch = batch};
    enum sx_status status = SX_OK;
    found.visited = calloc(n, 1);
    found.buffers = calloc(2 * n + 1, sizeof *found.buffers);
    if (found.visited && found.buffers) {
        found.buffers[found.n++] = made;
        visit(&found, reg);
        status = sx_buffer_join(eval->stream->base.pool, found.buffers, found.n, out_heap,
                                &eval->stream->base.error);
    } else {
        status = cuda_eval_no_memory(eval);
    }
    free(found.visited);
    free(found.buffers);
    return status;
}

/* ---- launching ---- */

static enum sx_status upload_all(struct sx_eval *eval, struct eval_plan *plan, const char *places,
                                 size_t bytes, struct sx_buffer **out_buffer) {
    struct cuda_stream *stream = eval->stream;
    struct cuda_copies uploads = {.n = 0};
    SX_TRY(sx_buffer_create(stream->base.pool, bytes, out_buffer, &stream->base.error));
    SX_TRY(cuda_upload_later(stream, &uploads, (*out_buffer)->data, places, bytes));
    return cuda_eval_upload(eval, plan, &uploads);
}

/* The columns and outputs as the kernel gets them, in one buffer (the caller's, also after an error), and
 * what else is not there yet. `outputs` NULL: there are none. */
static enum sx_status upload_places(struct sx_eval *eval, struct eval_plan *plan,
                                    const struct sx_batch *batch, const struct sx_tensor *outputs,
                                    struct cuda_eval_run *run, struct sx_buffer **out_buffer) {
    const struct sx_program *program = eval->program;
    const size_t n_columns = (size_t)program->n_inputs + (size_t)eval->n_mapped,
                 n_outputs = outputs ? (size_t)program->n_outputs : 0;
    const size_t columns_bytes = n_columns * sizeof(struct cuda_eval_column),
                 bytes = columns_bytes + n_outputs * sizeof(struct cuda_eval_output);
    char *places = calloc(1, bytes + 1);
    if (!places)
        return cuda_eval_no_memory(eval);
    struct cuda_eval_column *columns = (struct cuda_eval_column *)(void *)places;
    struct cuda_eval_output *out = (struct cuda_eval_output *)(void *)(places + columns_bytes);
    for (int32_t i = 0; i < program->n_inputs; i++)
        columns[i].column = cuda_column_of(&batch->columns[i]);
    for (int m = 0; m < eval->n_mapped; m++)
        if (eval->mapped[m].active)
            columns[program->n_inputs + m] = cuda_eval_dict_column(&eval->mapped[m], batch);
    for (size_t o = 0; o < n_outputs; o++)
        out[o] = (struct cuda_eval_output){outputs[o].values, outputs[o].valid};
    const enum sx_status status = upload_all(eval, plan, places, bytes, out_buffer);
    free(places);
    if (status != SX_OK)
        return status;
    run->columns = (*out_buffer)->data;
    run->outputs = (const void *)((const char *)(*out_buffer)->data + columns_bytes);
    return SX_OK;
}

static void begin_run(const struct sx_eval *eval, const struct eval_plan *plan, struct cuda_eval_run *run) {
    const size_t n = (size_t)eval->program->n_constants;
    run->steps = plan->steps->data;
    run->n_steps = plan->n_steps;
    run->constants = eval->constants->data;
    run->constant_valid = (const uint8_t *)eval->constants->data + n * sizeof(struct cuda_eval_value);
    run->control = eval->stream->control;
    run->failure = eval->failure->data;
    run->owner = eval;
}

/* Launches again with as much heap as was asked for, until the strings have room: their sizes are known to
 * the device only. Strings made of strings that had no room need more than one repetition. */
static enum sx_status launch_with_heap(struct sx_eval *eval, const struct eval_plan *plan,
                                       struct cuda_eval_run *run, struct sx_buffer **out_heap) {
    struct cuda_stream *stream = eval->stream;
    size_t bytes = (size_t)run->rows * GUESSED_STRING_BYTES;
    bytes = bytes > eval->heap_bytes ? bytes : eval->heap_bytes;
    bytes = bytes > MIN_HEAP_BYTES ? bytes : MIN_HEAP_BYTES;
    for (;;) {
        struct sx_buffer *heap;
        SX_TRY(sx_buffer_create(stream->base.pool, bytes, &heap, &stream->base.error));
        run->heap = heap->data;
        run->heap_bytes = (int64_t)bytes;
        enum sx_status status = cuda_counter_reset(stream, HEAP_COUNTER, &run->heap_used_bytes);
        if (status == SX_OK) {
            cuda_eval_launch(stream->handle, run, plan->level, plan->n_slots);
            status = cuda_launched(stream, "an expression");
        }
        if (status == SX_OK)
            status = cuda_sync_counters(stream, "string bytes of an expression");
        const size_t used = status == SX_OK ? (size_t)cuda_counter(stream, HEAP_COUNTER) : 0;
        if (status == SX_OK && used <= bytes) {
            eval->heap_bytes = used;
            *out_heap = heap;
            return SX_OK;
        }
        sx_buffer_release(heap);
        SX_TRY(status);
        bytes = used;
    }
}

/* `is_waited_for`: by who calls, while faults get this object's words. Else the next synchronisation of the
 * stream tells faults, whatever it is for. */
static enum sx_status launched(struct sx_eval *eval, const struct eval_plan *plan, bool is_waited_for) {
    SX_TRY(cuda_launched(eval->stream, "an expression"));
    if (is_waited_for || !plan->can_fail || (!plan->fails_on_text && cuda_eval_check_later(eval)))
        return SX_OK;
    return cuda_sync(eval->stream, "faults of an expression");
}

/* What a batch is run for. */
struct use {
    const struct sx_tensor *outputs;   /* or NULL, and flags */
    const struct sx_tensor *selection; /* NULL: all rows */
    int64_t rows;
    uint8_t *flags;
    struct sx_buffer *places, *heap; /* made for it */
};

static enum sx_status launch(struct sx_eval *eval, struct eval_plan *plan, const struct sx_batch *batch,
                             struct use *use) {
    struct cuda_stream *stream = eval->stream;
    struct cuda_eval_direct direct;
    const int32_t *selection = use->selection ? use->selection->values : NULL;
    if (use->rows == 0)
        return SX_OK;
    if (cuda_eval_direct_begin(eval, plan, batch, use->outputs, &direct)) {
        direct.rows = use->rows;
        direct.selection = selection;
        direct.flags = use->flags;
        cuda_eval_launch_direct(stream->handle, &direct);
        return launched(eval, plan, use->flags != NULL);
    }
    struct cuda_eval_run run = {.rows = use->rows, .selection = selection, .flags = use->flags};
    SX_TRY(upload_places(eval, plan, batch, use->outputs, &run, &use->places));
    begin_run(eval, plan, &run);
    if (plan->makes_strings)
        return launch_with_heap(eval, plan, &run, &use->heap);
    cuda_eval_launch(stream->handle, &run, plan->level, plan->n_slots);
    return launched(eval, plan, use->flags != NULL);
}

static void release(struct use *use) {
    sx_buffer_release(use->places);
    sx_buffer_release(use->heap);
}

/* ---- eval_run ---- */

static int first_output_of(const struct sx_program *program, int output) {
    for (int o = 0; o < output; o++)
        if (program->outputs[o] == program->outputs[output])
            return o;
    return output;
}

static const struct eval_mapped *mapped_of(const struct sx_eval *eval, int32_t reg) {
    const int32_t index = reg - cuda_eval_first_instruction(eval->program);
    const int at = index >= 0 ? eval->instructions[index].mapped : -1;
    return at >= 0 && eval->mapped[at].active ? &eval->mapped[at] : NULL;
}

/* Outputs that are whole dictionaries, as bits of their mapped instructions. */
static uint64_t find_dict_outputs(const struct sx_eval *eval, const struct sx_batch *batch) {
    uint64_t bits = 0;
    for (int32_t o = 0; o < eval->program->n_outputs; o++) {
        const struct eval_mapped *mapped = mapped_of(eval, eval->program->outputs[o]);
        if (mapped && cuda_eval_dict_is_output(mapped, batch))
            bits |= (uint64_t)1 << (mapped - eval->mapped);
    }
    return bits;
}

/* A constant as a column: a slot's first bytes are the value. */
static enum sx_status constant_output(struct sx_eval *eval, int32_t index, int64_t rows,
                                      struct sx_tensor *out) {
    const size_t n = (size_t)eval->program->n_constants;
    const struct sx_scalar *scalar = &eval->program->constants[index];
    char *values = eval->constants->data;
    *out = (struct sx_tensor){
        .type = scalar->type, .layout = SX_CONSTANT, .length = rows, .values = values + (size_t)index * 16};
    out->values_buffer = sx_buffer_retain(eval->constants);
    if (scalar->is_null) {
        out->valid = (uint8_t *)values + n * sizeof(struct cuda_eval_value) + index;
        out->valid_buffer = sx_buffer_retain(eval->constants);
    }
    if (scalar->type.id == SX_TYPE_VARCHAR)
        out->heap = sx_buffer_retain(eval->constants);
    return cuda_eval_upload(eval, NULL, &(struct cuda_copies){.n = 0});
}

static enum sx_status begin_output(struct sx_eval *eval, const struct sx_batch *batch, int output,
                                   uint64_t dict_outputs, const bool *may_be_null, struct sx_tensor *out) {
    const struct sx_program *program = eval->program;
    const int32_t reg = program->outputs[output], index = reg - cuda_eval_first_instruction(program);
    if (reg < program->n_inputs) {
        sx_tensor_share(&batch->columns[reg], out);
        return SX_OK;
    }
    if (index < 0) {
        return constant_output(eval, reg - program->n_inputs, batch->rows, out);
    }
    if (first_output_of(program, output) != output)
        return SX_OK; /* shared at the end */
    const int mapped = eval->instructions[index].mapped;
    if (mapped >= 0 && (dict_outputs >> mapped & 1))
        return cuda_eval_dict_output(eval, &eval->mapped[mapped], batch, out);
    return sx_tensor_create(eval->stream->base.pool, eval->types[reg], batch->rows, may_be_null[reg], out,
                            &eval->stream->base.error);
}

static enum sx_status begin_outputs(struct sx_eval *eval, const struct sx_batch *batch, uint64_t dict_outputs,
                                    struct sx_tensor *out) {
    bool *may_be_null = find_nullable(eval, batch);
    enum sx_status status = may_be_null ? SX_OK : cuda_eval_no_memory(eval);
    for (int32_t o = 0; status == SX_OK && o < eval->program->n_outputs; o++)
        status = begin_output(eval, batch, o, dict_outputs, may_be_null, &out[o]);
    free(may_be_null);
    return status;
}

static enum sx_status end_outputs(struct sx_eval *eval, const struct sx_batch *batch, struct sx_buffer *made,
                                  struct sx_tensor *out) {
    const struct sx_program *program = eval->program;
    for (int32_t o = 0; o < program->n_outputs; o++) {
        const int32_t reg = program->outputs[o];
        const int first = first_output_of(program, o);
        if (reg < cuda_eval_first_instruction(program))
            continue;
        if (first != o)
            sx_tensor_share(&out[first], &out[o]);
        else if (out[o].layout == SX_FLAT && eval->types[reg].id == SX_TYPE_VARCHAR)
            SX_TRY(join_heaps(eval, reg, batch, made, &out[o].heap));
    }
    return SX_OK;
}

/* Nothing is launched where every output is shared. */
static enum sx_status run_outputs(struct sx_eval *eval, const struct sx_batch *batch, uint64_t mapped,
                                  uint64_t dict_outputs, struct sx_tensor *out) {
    struct use use = {.outputs = out, .rows = batch->rows};
    struct eval_plan *plan;
    enum sx_status status;
    SX_GO(cuda_eval_plan(eval, false, mapped, dict_outputs, &plan));
    if (plan->n_steps > 0)
        SX_GO(launch(eval, plan, batch, &use));
    SX_GO(end_outputs(eval, batch, use.heap, out));
out:
    release(&use);
    return status;
}

enum sx_status cuda_eval_run(struct cuda_stream *stream, struct sx_eval *eval, const struct sx_batch *batch,
                             struct sx_tensor *out_columns) {
    const int32_t n = eval->program->n_outputs;
    struct sx_tensor *out = calloc((size_t)n + 1, sizeof *out);
    struct eval_watch watch;
    uint64_t mapped, dict_outputs;
    enum sx_status status;
    if (!out)
        return cuda_eval_no_memory(eval);
    cuda_eval_watch_begin(stream, eval, &watch);
    SX_GO(cuda_eval_dict_prepare(eval, batch, &mapped));
    dict_outputs = find_dict_outputs(eval, batch);
    SX_GO(begin_outputs(eval, batch, dict_outputs, out));
    SX_GO(run_outputs(eval, batch, mapped, dict_outputs, out));
    memcpy(out_columns, out, (size_t)n * sizeof *out);
out:
    cuda_eval_watch_end(stream, &watch);
    for (int32_t o = 0; status != SX_OK && o < n; o++)
        sx_tensor_release(&out[o]);
    free(out);
    return status;
}

enum sx_status sx_cuda_eval_run(struct sx_stream *base, struct sx_eval *eval, const struct sx_batch *batch,
                                struct sx_tensor *out_columns) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    eval->stream = stream;
    return cuda_eval_run(stream, eval, batch, out_columns);
}

/* ---- eval_select ---- */

/* Positions within the selection become positions of the batch. */
static enum sx_status compose(struct cuda_stream *stream, const struct sx_tensor *selection,
                              struct sx_tensor *index) {
    struct sx_tensor composed;
    SX_TRY(sx_tensor_create_index(stream->base.pool, SX_TYPE_I32, index->length, &composed,
                                  &stream->base.error));
    if (index->length > 0)
        cuda_gather_values(stream->handle, cuda_column_of(selection), index->values, false, sizeof(int32_t),
                           index->length, composed.values, NULL);
    const enum sx_status status = cuda_launched(stream, "a selection");
    sx_tensor_release(index);
    *index = composed;
    return status;
}

static enum sx_status select_rows(struct sx_eval *eval, const struct sx_batch *batch,
                                  const struct sx_tensor *selection, struct sx_tensor *out_index) {
    struct cuda_stream *stream = eval->stream;
    struct use use = {.selection = selection, .rows = selection ? selection->length : batch->rows};
    struct sx_buffer *flags = NULL;
    struct eval_plan *plan;
    uint64_t mapped;
    enum sx_status status;
    SX_GO(cuda_eval_dict_prepare(eval, batch, &mapped));
    SX_GO(cuda_eval_plan(eval, true, mapped, 0, &plan));
    SX_GO(sx_buffer_create(stream->base.pool, (size_t)use.rows, &flags, &stream->base.error));
    use.flags = flags->data;
    SX_GO(launch(eval, plan, batch, &use));
    SX_GO(cuda_select(stream, flags->data, use.rows, out_index));
    if (selection)
        SX_GO(compose(stream, selection, out_index));
out:
    release(&use);
    sx_buffer_release(flags);
    return status;
}

enum sx_status sx_cuda_eval_select(struct sx_stream *base, struct sx_eval *eval, const struct sx_batch *batch,
                                   const struct sx_tensor *selection, struct sx_tensor *out_selection) {
    struct cuda_stream *stream;
    struct eval_watch watch;
    struct sx_tensor index = {0};
    SX_TRY(cuda_enter(base, &stream));
    eval->stream = stream;
    cuda_eval_watch_begin(stream, eval, &watch);
    const enum sx_status status = select_rows(eval, batch, selection, &index);
    cuda_eval_watch_end(stream, &watch);
    if (status != SX_OK) {
        sx_tensor_release(&index);
        return status;
    }
    *out_selection = index;
    return SX_OK;
}
