/* What all operators have. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exec/run.h"

enum sx_status sx_no_memory(struct sx_error *error, const char *what) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for %s", what);
}

bool sx_lacks_memory(struct sx_worker *worker, enum sx_status status) {
    if (status != SX_OUT_OF_MEMORY)
        return false;
    *sx_worker_error(worker) = (struct sx_error){0};
    return true;
}

void *sx_operator_create(struct sx_run *run, size_t size_bytes,
                         void (*destroy)(struct sx_run *, struct sx_operator *), const char *name_format,
                         ...) {
    struct sx_operator *op = sx_arena_alloc(&run->arena, size_bytes);
    if (!op)
        return NULL;
    op->counts = SX_ARENA_ARRAY(&run->arena, run->n_workers, struct sx_operator_count);
    char name[256];
    va_list arguments;
    va_start(arguments, name_format);
    vsnprintf(name, sizeof name, name_format, arguments);
    va_end(arguments);
    op->name = run->options.trace ? sx_trace_text(run->options.trace, "%s", name)
                                  : sx_arena_copy_text(&run->arena, name, strlen(name));
    if (!op->counts || !op->name)
        return NULL;
    op->destroy = destroy;
    op->next_created = run->created;
    run->created = op;
    return op;
}

enum sx_status sx_operator_needs(struct sx_run *run, struct sx_operator *op, const struct sx_sink *sink,
                                 struct sx_error *error) {
    struct sx_need *need = SX_ARENA_NEW(&run->arena, struct sx_need);
    if (!need)
        return sx_no_memory(error, op->name);
    *need = (struct sx_need){.sink = sink, .next = op->needs};
    op->needs = need;
    return SX_OK;
}
