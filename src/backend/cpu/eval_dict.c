#include "backend/cpu/eval_load.h"

#include <stdlib.h>
#include <string.h>

/* Dictionaries with more entries than this many times the rows seen so far are not computed per entry. */
enum { ENTRIES_PER_ROW = 4 };

/* ---- at creation: which instructions depend on one column only ---- */

enum { LEAF_NONE = -1, LEAF_MANY = -2 };

static int32_t join_leaves(int32_t a, int32_t b) {
    if (a == LEAF_NONE || a == b)
        return b;
    return b == LEAF_NONE ? a : LEAF_MANY;
}

static bool can_fail(const struct sx_eval *eval, int32_t index) {
    const struct sx_eval_instruction *at = &eval->instructions[index];
    for (int32_t s = 0; s < at->n_steps; s++)
        if (eval->steps[at->first_step + s].describe && !eval->steps[at->first_step + s].null_on_fail)
            return true;
    return false;
}

/* leaves[reg]: the one input that the register depends on; LEAF_MANY also where something can fail, since an
 * entry that no row uses must raise no error. */
static void find_leaves(const struct sx_eval *eval, int32_t *leaves) {
    const struct sx_program *program = eval->program;
    const int32_t first = program->n_inputs + program->n_constants;
    for (int32_t reg = 0; reg < first; reg++)
        leaves[reg] = reg < program->n_inputs ? reg : LEAF_NONE;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct sx_instruction *instruction = &program->instructions[i];
        int32_t leaf = can_fail(eval, i) ? LEAF_MANY : LEAF_NONE;
        for (int k = 0; k < sx_function_arguments(instruction->function); k++)
            leaf = join_leaves(leaf, leaves[instruction->arguments[k]]);
        leaves[first + i] = leaf;
    }
}

static int32_t renumber(const struct sx_program *program, const int32_t *places, int32_t reg) {
    const int32_t first = program->n_inputs + program->n_constants;
    if (reg < program->n_inputs)
        return 0;
    return reg < first ? reg - program->n_inputs + 1 : places[reg - first];
}

/* The instructions that lead to `target`, over input `leaf` as the only one. */
static enum sx_status extract(const struct sx_program *program, const int32_t *leaves, int32_t target,
                              int32_t leaf, struct sx_program *out, struct sx_error *error) {
    const int32_t first = program->n_inputs + program->n_constants;
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
    *out = (struct sx_program){
        1, &program->input_types[leaf], program->n_constants, program->constants, n, instructions, 1, output};
    return SX_OK;
}

static enum sx_status make_mapped(struct sx_eval *eval, const int32_t *leaves, int32_t index) {
    const struct sx_program *program = eval->program;
    struct sx_eval_mapped *mapped = calloc(1, sizeof *mapped);
    struct sx_error *error = &eval->stream->error;
    if (!mapped)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for an expression");
    eval->instructions[index].mapped = mapped;
    mapped->input = leaves[program->n_inputs + program->n_constants + index];
    return extract(program, leaves, index, mapped->input, &mapped->program, error);
}

/* Marks the instructions that are used from outside of their column's part of the program. */
static void find_borders(const struct sx_program *program, const int32_t *leaves, uint8_t *borders) {
    const int32_t first = program->n_inputs + program->n_constants;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct sx_instruction *instruction = &program->instructions[i];
        for (int k = 0; k < sx_function_arguments(instruction->function); k++)
            borders[instruction->arguments[k]] |= leaves[first + i] == LEAF_MANY;
        if (instruction->mask != SX_NO_REGISTER)
            borders[instruction->mask] = 1;
    }
    for (int32_t o = 0; o < program->n_outputs; o++)
        borders[program->outputs[o]] = 1;
}

enum sx_status sx_eval_dict_find(struct sx_eval *eval) {
    const struct sx_program *program = eval->program;
    const int32_t first = program->n_inputs + program->n_constants;
    const size_t n = (size_t)(first + program->n_instructions) + 1;
    int32_t *leaves = calloc(n, sizeof *leaves);
    uint8_t *borders = calloc(n, 1);
    enum sx_status status = SX_OK;
    if (!leaves || !borders) {
        status = sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for an expression");
        goto out;
    }
    find_leaves(eval, leaves);
    find_borders(program, leaves, borders);
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const int32_t leaf = leaves[first + i];
        if (leaf >= 0 && borders[first + i] && program->input_types[leaf].id == SX_TYPE_VARCHAR)
            SX_GO(make_mapped(eval, leaves, i));
    }
out:
    free(leaves);
    free(borders);
    return status;
}

static void drop_cached(struct sx_eval_cached *cached) {
    sx_tensor_release(&cached->table);
    sx_dict_release(cached->dict);
    *cached = (struct sx_eval_cached){0};
}

void sx_eval_dict_destroy(struct sx_eval_mapped *mapped) {
    if (!mapped)
        return;
    for (int i = 0; i < SX_EVAL_CACHED_DICTS; i++)
        drop_cached(&mapped->cached[i]);
    sx_tensor_release(&mapped->null_value);
    sx_eval_destroy(mapped->eval);
    free((void *)mapped->program.instructions);
    free((void *)mapped->program.outputs);
    free(mapped);
}

/* ---- per batch ---- */

/* The result for one column, which is FLAT. */
static enum sx_status run_mapped(struct sx_eval *eval, struct sx_eval_mapped *mapped,
                                 const struct sx_tensor *column, struct sx_tensor *out) {
    const struct sx_batch batch = {.rows = column->length,
                                   .rows_bound = column->length,
                                   .n_columns = 1,
                                   .columns = (struct sx_tensor *)column};
    return sx_cpu_eval_run(eval->stream, mapped->eval, &batch, out);
}

static enum sx_status make_null_value(struct sx_eval *eval, struct sx_eval_mapped *mapped) {
    const struct sx_scalar null = {.type = mapped->program.input_types[0], .is_null = true};
    struct sx_tensor column = {0};
    enum sx_status status;
    if (!mapped->eval)
        SX_TRY(sx_eval_create(eval->stream, &mapped->program, false, &mapped->eval));
    SX_GO(sx_tensor_create_constant(eval->stream->pool, &null, 1, &column, &eval->stream->error));
    SX_GO(run_mapped(eval, mapped, &column, &mapped->null_value));
out:
    sx_tensor_release(&column);
    return status;
}

static struct sx_eval_cached *find_cached(struct sx_eval_mapped *mapped, const struct sx_dict *dict) {
    for (int i = 0; i < SX_EVAL_CACHED_DICTS; i++)
        if (mapped->cached[i].dict_id == dict->id)
            return &mapped->cached[i];
    struct sx_eval_cached *cached = &mapped->cached[mapped->next];
    mapped->next = (mapped->next + 1) % SX_EVAL_CACHED_DICTS;
    drop_cached(cached);
    cached->dict_id = dict->id;
    return cached;
}

static enum sx_status prepare(struct sx_eval *eval, struct sx_eval_mapped *mapped,
                              const struct sx_batch *batch) {
    const struct sx_tensor *column = &batch->columns[mapped->input];
    mapped->active = NULL;
    if (column->layout != SX_DICT || batch->rows == 0)
        return SX_OK;
    struct sx_eval_cached *cached = find_cached(mapped, column->dict);
    cached->rows_seen += batch->rows;
    if (!cached->ready) {
        if (column->dict->values.length > ENTRIES_PER_ROW * cached->rows_seen)
            return SX_OK;
        if (!mapped->null_value.values)
            SX_TRY(make_null_value(eval, mapped));
        SX_TRY(run_mapped(eval, mapped, &column->dict->values, &cached->table));
        cached->ready = true;
    }
    mapped->active = cached;
    return SX_OK;
}

enum sx_status sx_eval_dict_prepare(struct sx_eval *eval, const struct sx_batch *batch) {
    for (int32_t i = 0; i < eval->program->n_instructions; i++)
        if (eval->instructions[i].mapped)
            SX_TRY(prepare(eval, eval->instructions[i].mapped, batch));
    return SX_OK;
}

static bool is_null_value(const struct sx_tensor *one) {
    return one->valid && !one->valid[0];
}

/* Rows where the column is null get the result for NULL. */
static void put_null_value(const struct sx_tensor *null_value, size_t width, const uint8_t *column_valid,
                           int64_t n, char *values, uint8_t *valid) {
    const bool is_null = is_null_value(null_value);
    for (int64_t i = 0; i < n; i++)
        if (!column_valid[i]) {
            memcpy(values + (size_t)i * width, null_value->values, width);
            valid[i] = !is_null;
        }
}

/* The column's validity for the frame's rows, in `room` if it has to be gathered; NULL: no nulls. */
static const uint8_t *column_validity(const struct sx_eval_frame *frame, const struct sx_tensor *column,
                                      uint8_t *room) {
    if (!column->valid)
        return NULL;
    if (!frame->positions)
        return column->valid + frame->base;
    sx_eval_gather(column->valid, NULL, 1, frame, room);
    return room;
}

enum sx_status sx_eval_dict_map(struct sx_eval *eval, struct sx_eval_mapped *mapped, int32_t reg) {
    const struct sx_eval_frame *frame = &eval->frame;
    const struct sx_tensor *column = &frame->batch->columns[mapped->input], *table = &mapped->active->table;
    const size_t width = sx_type_bytes(eval->types[reg]);
    void *values;
    uint8_t *valid, column_room[SX_EVAL_BLOCK_ROWS];
    SX_TRY(sx_eval_slot(eval, reg, &values, &valid));
    if (eval->destinations[reg])
        values = eval->destinations[reg] + (size_t)frame->base * width;
    const uint8_t *column_valid = column_validity(frame, column, column_room);
    struct sx_eval_register *r = &eval->registers[reg];
    *r = (struct sx_eval_register){values, NULL, false, eval->epoch};
    if (table->layout == SX_CONSTANT) {
        for (int64_t i = 0; i < frame->n; i++)
            memcpy((char *)values + (size_t)i * width, table->values, width);
    } else {
        sx_eval_gather(table->values, column->values, width, frame, values);
    }
    if (!table->valid && !column_valid)
        return SX_OK;
    if (table->valid && table->layout != SX_CONSTANT)
        sx_eval_gather(table->valid, column->values, 1, frame, valid);
    else
        memset(valid, table->valid ? table->valid[0] : 1, (size_t)frame->n);
    if (column_valid)
        put_null_value(&mapped->null_value, width, column_valid, frame->n, values, valid);
    r->valid = valid;
    return SX_OK;
}

enum sx_status sx_eval_dict_output(struct sx_eval *eval, struct sx_eval_mapped *mapped,
                                   const struct sx_batch *batch, struct sx_tensor *out_column,
                                   bool *out_done) {
    struct sx_eval_cached *cached = mapped->active;
    *out_done = false;
    if (!cached || cached->table.type.id != SX_TYPE_VARCHAR || cached->table.layout != SX_FLAT ||
        cached->table.valid)
        return SX_OK;
    const struct sx_tensor *column = &batch->columns[mapped->input];
    if (column->valid && !is_null_value(&mapped->null_value))
        return SX_OK;
    if (!cached->dict) {
        struct sx_tensor values;
        sx_tensor_share(&cached->table, &values);
        const enum sx_status status = sx_dict_create(&values, &cached->dict, &eval->stream->error);
        if (status != SX_OK) {
            sx_tensor_release(&values);
            return status;
        }
    }
    sx_tensor_share(column, out_column);
    sx_dict_release(out_column->dict);
    out_column->dict = sx_dict_retain(cached->dict);
    out_column->type = cached->table.type;
    *out_done = true;
    return SX_OK;
}
