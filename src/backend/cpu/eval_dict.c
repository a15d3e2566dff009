#include "backend/cpu/eval_load.h"

#include <stdlib.h>
#include <string.h>

/* Dictionaries with more entries than this many times the rows seen so far are not computed per entry. */
enum { ENTRIES_PER_ROW = 4 };

/* ---- at creation: which instructions depend on one column only ---- */

static bool can_fail(const struct sx_eval *eval, int32_t index) {
    const struct sx_eval_instruction *at = &eval->instructions[index];
    for (int32_t s = 0; s < at->n_steps; s++)
        if (eval->steps[at->first_step + s].describe && !eval->steps[at->first_step + s].null_on_fail)
            return true;
    return false;
}

/* Takes the parts over. */
static enum sx_status add_mapped(struct sx_eval *eval, struct sx_program_part *parts, int n) {
    for (int i = 0; i < n; i++) {
        struct sx_eval_mapped *mapped = calloc(1, sizeof *mapped);
        if (!mapped) {
            while (i < n)
                sx_program_part_release(&parts[i++]);
            return sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for an expression");
        }
        mapped->part = parts[i];
        eval->instructions[parts[i].instruction].mapped = mapped;
    }
    return SX_OK;
}

enum sx_status sx_eval_dict_find(struct sx_eval *eval) {
    const int32_t n = eval->program->n_instructions;
    bool *fails = calloc((size_t)n + 1, sizeof *fails);
    struct sx_program_part *parts = NULL;
    int n_parts = 0;
    if (!fails)
        return sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for an expression");
    for (int32_t i = 0; i < n; i++)
        fails[i] = can_fail(eval, i);
    enum sx_status status =
        sx_program_parts(eval->program, fails, INT32_MAX, &parts, &n_parts, &eval->stream->error);
    if (status == SX_OK)
        status = add_mapped(eval, parts, n_parts);
    free(parts);
    free(fails);
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
    sx_program_part_release(&mapped->part);
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
    const struct sx_scalar null = {.type = mapped->part.program.input_types[0], .is_null = true};
    struct sx_tensor column = {0};
    enum sx_status status;
    if (!mapped->eval)
        SX_TRY(sx_eval_create(eval->stream, &mapped->part.program, false, &mapped->eval));
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
    const struct sx_tensor *column = &batch->columns[mapped->part.input];
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
    const struct sx_tensor *column = &frame->batch->columns[mapped->part.input],
                           *table = &mapped->active->table;
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
    const struct sx_tensor *column = &batch->columns[mapped->part.input];
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
