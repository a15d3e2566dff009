/* Instructions over one dictionary column: computed per entry, once per dictionary, and looked up by code. */
#include "backend/cuda/eval.h"

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
    const struct eval_instruction *at = &eval->instructions[index];
    for (int32_t s = 0; s < at->n_steps; s++)
        if (eval->steps[at->first_step + s].code.on_fail == CUDA_EVAL_ERROR)
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

static enum sx_status add_mapped(struct sx_eval *eval, const int32_t *leaves, int32_t index) {
    const struct sx_program *program = eval->program;
    struct eval_mapped *grown = realloc(eval->mapped, ((size_t)eval->n_mapped + 1) * sizeof *grown);
    if (!grown)
        return cuda_eval_no_memory(eval);
    eval->mapped = grown;
    struct eval_mapped *mapped = &grown[eval->n_mapped];
    memset(mapped, 0, sizeof *mapped);
    mapped->instruction = index;
    mapped->input = leaves[cuda_eval_first_instruction(program) + index];
    eval->instructions[index].mapped = eval->n_mapped++;
    return extract(program, leaves, index, mapped->input, &mapped->program, &eval->stream->base.error);
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

enum sx_status cuda_eval_dict_find(struct sx_eval *eval) {
    const struct sx_program *program = eval->program;
    const int32_t first = cuda_eval_first_instruction(program);
    const size_t n = (size_t)(first + program->n_instructions) + 1;
    int32_t *leaves = calloc(n, sizeof *leaves);
    uint8_t *borders = calloc(n, 1);
    enum sx_status status = SX_OK;
    if (!leaves || !borders)
        SX_GO(cuda_eval_no_memory(eval));
    find_leaves(eval, leaves);
    find_borders(program, leaves, borders);
    for (int32_t i = 0; i < program->n_instructions && eval->n_mapped < CUDA_EVAL_MOST_MAPPED; i++) {
        const int32_t leaf = leaves[first + i];
        if (leaf >= 0 && borders[first + i] && program->input_types[leaf].id == SX_TYPE_VARCHAR)
            SX_GO(add_mapped(eval, leaves, i));
    }
out:
    free(leaves);
    free(borders);
    return status;
}

static void drop_cached(struct eval_cached *cached) {
    sx_tensor_release(&cached->table);
    sx_dict_release(cached->dict);
    *cached = (struct eval_cached){0};
}

void cuda_eval_dict_destroy(struct eval_mapped *mapped) {
    for (int i = 0; i < CUDA_EVAL_CACHED_DICTS; i++)
        drop_cached(&mapped->cached[i]);
    sx_tensor_release(&mapped->null_value);
    cuda_eval_destroy(mapped->eval);
    free((void *)(uintptr_t)mapped->program.instructions);
    free((void *)(uintptr_t)mapped->program.outputs);
}

/* ---- per batch ---- */

/* The result for one column. */
static enum sx_status run_mapped(struct sx_eval *eval, struct eval_mapped *mapped, struct sx_tensor *column,
                                 struct sx_tensor *out) {
    const struct sx_batch batch = {
        .rows = column->length, .rows_bound = column->length, .n_columns = 1, .columns = column};
    mapped->eval->stream = eval->stream;
    return cuda_eval_run(eval->stream, mapped->eval, &batch, out);
}

static enum sx_status make_null_value(struct sx_eval *eval, struct eval_mapped *mapped) {
    const struct sx_scalar null = {.type = mapped->program.input_types[0], .is_null = true};
    struct sx_tensor column = {0};
    uint8_t valid = 1;
    enum sx_status status;
    if (!mapped->eval)
        SX_TRY(cuda_eval_create(eval->stream, &mapped->program, false, &mapped->eval));
    SX_GO(sx_cuda_constant(&eval->stream->base, &null, 1, &column));
    SX_GO(run_mapped(eval, mapped, &column, &mapped->null_value));
    if (mapped->null_value.valid)
        SX_GO(cuda_download(eval->stream, &valid, mapped->null_value.valid, sizeof valid));
    mapped->null_is_valid = valid;
out:
    sx_tensor_release(&column);
    return status;
}

static struct eval_cached *find_cached(struct eval_mapped *mapped, const struct sx_dict *dict) {
    for (int i = 0; i < CUDA_EVAL_CACHED_DICTS; i++)
        if (mapped->cached[i].dict_id == dict->id)
            return &mapped->cached[i];
    struct eval_cached *cached = &mapped->cached[mapped->next];
    mapped->next = (mapped->next + 1) % CUDA_EVAL_CACHED_DICTS;
    drop_cached(cached);
    cached->dict_id = dict->id;
    return cached;
}

static enum sx_status prepare(struct sx_eval *eval, struct eval_mapped *mapped,
                              const struct sx_batch *batch) {
    const struct sx_tensor *column = &batch->columns[mapped->input];
    mapped->active = NULL;
    if (column->layout != SX_DICT || batch->rows == 0)
        return SX_OK;
    struct eval_cached *cached = find_cached(mapped, column->dict);
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

enum sx_status cuda_eval_dict_prepare(struct sx_eval *eval, const struct sx_batch *batch,
                                      uint64_t *out_mapped) {
    *out_mapped = 0;
    for (int m = 0; m < eval->n_mapped; m++) {
        SX_TRY(prepare(eval, &eval->mapped[m], batch));
        *out_mapped |= (uint64_t)(eval->mapped[m].active != NULL) << m;
    }
    return SX_OK;
}

struct cuda_eval_column cuda_eval_dict_column(const struct eval_mapped *mapped,
                                              const struct sx_batch *batch) {
    const struct sx_tensor *table = &mapped->active->table;
    struct cuda_eval_column column = {.column = cuda_column_of(&batch->columns[mapped->input]),
                                      .entry_valid = table->valid,
                                      .null_value = mapped->null_value.values,
                                      .null_is_valid = mapped->null_is_valid};
    column.column.dict = table->values;
    column.column.phys = (int32_t)sx_type_phys(table->type);
    return column;
}

bool cuda_eval_dict_is_output(const struct eval_mapped *mapped, const struct sx_batch *batch) {
    const struct sx_tensor *table = &mapped->active->table;
    return table->type.id == SX_TYPE_VARCHAR && table->layout == SX_FLAT && !table->valid &&
           !(batch->columns[mapped->input].valid && mapped->null_is_valid);
}

enum sx_status cuda_eval_dict_output(struct sx_eval *eval, struct eval_mapped *mapped,
                                     const struct sx_batch *batch, struct sx_tensor *out_column) {
    struct eval_cached *cached = mapped->active;
    if (!cached->dict) {
        struct sx_tensor values;
        sx_tensor_share(&cached->table, &values);
        const enum sx_status status = sx_dict_create(&values, &cached->dict, &eval->stream->base.error);
        if (status != SX_OK) {
            sx_tensor_release(&values);
            return status;
        }
    }
    sx_tensor_share(&batch->columns[mapped->input], out_column);
    sx_dict_release(out_column->dict);
    out_column->dict = sx_dict_retain(cached->dict);
    out_column->type = cached->table.type;
    return SX_OK;
}
