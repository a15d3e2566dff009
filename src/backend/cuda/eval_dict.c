/* Instructions over one dictionary column: computed per entry, once per dictionary, and looked up by code. */
#include "backend/cuda/eval.h"

#include <stdlib.h>
#include <string.h>

/* Dictionaries with more entries than this many times the rows seen so far are not computed per entry. */
enum { ENTRIES_PER_ROW = 4 };

/* ---- at creation: which instructions depend on one column only ---- */

static bool can_fail(const struct sx_eval *eval, int32_t index) {
    const struct eval_instruction *at = &eval->instructions[index];
    for (int32_t s = 0; s < at->n_steps; s++)
        if (eval->steps[at->first_step + s].code.on_fail == CUDA_EVAL_ERROR)
            return true;
    return false;
}

/* Takes the parts over. */
static enum sx_status add_mapped(struct sx_eval *eval, struct sx_program_part *parts, int n) {
    eval->mapped = calloc((size_t)n + 1, sizeof *eval->mapped);
    for (int i = 0; !eval->mapped && i < n; i++)
        sx_program_part_release(&parts[i]);
    if (!eval->mapped)
        return cuda_eval_no_memory(eval);
    for (int i = 0; i < n; i++) {
        eval->mapped[i].part = parts[i];
        eval->instructions[parts[i].instruction].mapped = i;
    }
    eval->n_mapped = n;
    return SX_OK;
}

enum sx_status cuda_eval_dict_find(struct sx_eval *eval) {
    const int32_t n = eval->program->n_instructions;
    bool *fails = calloc((size_t)n + 1, sizeof *fails);
    struct sx_program_part *parts = NULL;
    int n_parts = 0;
    if (!fails)
        return cuda_eval_no_memory(eval);
    for (int32_t i = 0; i < n; i++)
        fails[i] = can_fail(eval, i);
    enum sx_status status = sx_program_parts(eval->program, fails, CUDA_EVAL_MOST_MAPPED, &parts, &n_parts,
                                             &eval->stream->base.error);
    if (status == SX_OK)
        status = add_mapped(eval, parts, n_parts);
    free(parts);
    free(fails);
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
    sx_program_part_release(&mapped->part);
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
    const struct sx_scalar null = {.type = mapped->part.program.input_types[0], .is_null = true};
    struct sx_tensor column = {0};
    uint8_t valid = 1;
    enum sx_status status;
    if (!mapped->eval)
        SX_TRY(cuda_eval_create(eval->stream, &mapped->part.program, false, &mapped->eval));
    SX_GO(sx_cuda_constant(&eval->stream->base, &null, 1, &column));
    SX_GO(run_mapped(eval, mapped, &column, &mapped->null_value));
    if (mapped->null_value.valid)
        SX_GO(cuda_download(eval->stream, &valid, mapped->null_value.valid, sizeof valid,
                            "an expression of NULL"));
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
    const struct sx_tensor *column = &batch->columns[mapped->part.input];
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
    struct cuda_eval_column column = {.column = cuda_column_of(&batch->columns[mapped->part.input]),
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
           !(batch->columns[mapped->part.input].valid && mapped->null_is_valid);
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
    sx_tensor_share(&batch->columns[mapped->part.input], out_column);
    sx_dict_release(out_column->dict);
    out_column->dict = sx_dict_retain(cached->dict);
    out_column->type = cached->table.type;
    return SX_OK;
}
