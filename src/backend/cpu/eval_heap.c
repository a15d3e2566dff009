#include "backend/cpu/eval.h"

#include <stdlib.h>

enum { MIN_HEAP_BYTES = 1 << 14, MAX_HEAP_BYTES = 1 << 20 };

/* Buffers grow, so that few are needed for many strings. */
static enum sx_status add_buffer(struct sx_eval *eval, size_t needed_bytes) {
    if (eval->n_heap == eval->heap_capacity) {
        int capacity = eval->heap_capacity ? 2 * eval->heap_capacity : 8;
        struct sx_buffer **heap = realloc(eval->heap, (size_t)capacity * sizeof *heap);
        if (!heap)
            return sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for strings");
        eval->heap = heap;
        eval->heap_capacity = capacity;
    }
    size_t bytes = eval->n_heap ? 2 * eval->heap[eval->n_heap - 1]->size_bytes : MIN_HEAP_BYTES;
    bytes = bytes > MAX_HEAP_BYTES ? MAX_HEAP_BYTES : bytes;
    bytes = bytes < needed_bytes ? needed_bytes : bytes;
    SX_TRY(sx_buffer_create(eval->stream->pool, bytes, &eval->heap[eval->n_heap], &eval->stream->error));
    eval->n_heap++;
    eval->heap_used_bytes = 0;
    return SX_OK;
}

char *sx_eval_heap_take(struct sx_eval_call *call, size_t size_bytes) {
    struct sx_eval *eval = call->eval;
    if (!eval->n_heap || eval->heap[eval->n_heap - 1]->size_bytes - eval->heap_used_bytes < size_bytes) {
        call->status = add_buffer(eval, size_bytes);
        if (call->status != SX_OK)
            return NULL;
    }
    char *place = (char *)eval->heap[eval->n_heap - 1]->data + eval->heap_used_bytes;
    eval->heap_used_bytes += size_bytes;
    return place;
}

void sx_eval_heap_reset(struct sx_eval *eval) {
    for (int i = 0; i < eval->n_heap; i++)
        sx_buffer_release(eval->heap[i]);
    eval->n_heap = 0;
    eval->heap_used_bytes = 0;
}

/* Buffers found on the way down from an output. */
struct found {
    struct sx_eval *eval;
    const struct sx_batch *batch;
    struct sx_buffer **buffers;
    int n, capacity;
    uint8_t *visited; /* per register of the program */
    bool failed;
};

static void add_found(struct found *found, struct sx_buffer *buffer) {
    if (!buffer || found->failed)
        return;
    for (int i = 0; i < found->n; i++)
        if (found->buffers[i] == buffer)
            return;
    if (found->n == found->capacity) {
        int capacity = 2 * found->capacity + 8;
        struct sx_buffer **buffers = realloc(found->buffers, (size_t)capacity * sizeof *buffers);
        found->failed = !buffers;
        if (!buffers)
            return;
        found->buffers = buffers;
        found->capacity = capacity;
    }
    found->buffers[found->n++] = buffer;
}

static void visit(struct found *found, int32_t reg);

static void visit_instruction(struct found *found, int32_t index) {
    struct sx_eval *eval = found->eval;
    const struct sx_instruction *instruction = &eval->program->instructions[index];
    const struct sx_eval_mapped *mapped = eval->instructions[index].mapped;
    for (int i = 0; i < eval->n_heap; i++)
        add_found(found, eval->heap[i]);
    if (mapped && mapped->active) {
        add_found(found, mapped->active->table.heap);
        add_found(found, mapped->active->dict ? mapped->active->dict->values.heap : NULL);
        add_found(found, mapped->null_value.heap);
        return;
    }
    for (int k = 0; k < sx_function_arguments(instruction->function); k++)
        if (eval->types[instruction->arguments[k]].id == SX_TYPE_VARCHAR)
            visit(found, instruction->arguments[k]);
}

static void visit(struct found *found, int32_t reg) {
    const struct sx_program *program = found->eval->program;
    if (found->visited[reg])
        return;
    found->visited[reg] = 1;
    if (reg < program->n_inputs) {
        const struct sx_tensor *column = &found->batch->columns[reg];
        add_found(found, column->heap);
        add_found(found, column->dict ? column->dict->values.heap : NULL);
    } else if (reg < program->n_inputs + program->n_constants) {
        add_found(found, found->eval->constants[reg - program->n_inputs].heap);
    } else {
        visit_instruction(found, reg - program->n_inputs - program->n_constants);
    }
}

enum sx_status sx_eval_heap_of(struct sx_eval *eval, int32_t reg, const struct sx_batch *batch,
                               struct sx_buffer **out_heap) {
    struct found found = {.eval = eval, .batch = batch};
    enum sx_status status;
    found.visited = calloc((size_t)eval->n_registers + 1, 1);
    found.failed = !found.visited;
    if (!found.failed)
        visit(&found, reg);
    if (found.failed)
        status = sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for strings");
    else
        status = sx_buffer_join(eval->stream->pool, found.buffers, found.n, out_heap, &eval->stream->error);
    free(found.visited);
    free(found.buffers);
    return status;
}
