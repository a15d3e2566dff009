/* Rows that the run was given (sx_exec_options.tables). */
#include "exec/operators.h"

struct memory_source {
    struct sx_source source;
    const struct sx_exec_table *table;
    atomic_int_fast64_t next;
};

static enum sx_status memory_next(struct sx_source *source, struct sx_worker *worker,
                                  struct sx_batch *out_batch, bool *out_done) {
    struct memory_source *memory = (struct memory_source *)source;
    const int64_t at = atomic_fetch_add(&memory->next, 1);
    *out_done = at >= memory->table->n_batches;
    if (*out_done)
        return SX_OK;
    worker->sequence = at;
    return sx_batch_share(&memory->table->batches[at], out_batch, sx_worker_error(worker));
}

static struct sx_source_size memory_size(const struct sx_source *source) {
    return (struct sx_source_size){((const struct memory_source *)source)->table->n_batches, INT64_MAX};
}

enum sx_status sx_memory_create(struct sx_run *run, const struct sx_plan *plan, struct sx_source **out_source,
                                struct sx_error *error) {
    const int32_t id = plan->u.memory.id;
    if (id < 0 || id >= run->options.n_tables)
        return sx_error_set(error, SX_INTERNAL, "a plan reads table %d in memory of %d", id,
                            run->options.n_tables);
    struct memory_source *memory = sx_operator_create(run, sizeof *memory, NULL, "MEMORY %d", id);
    if (!memory)
        return sx_no_memory(error, "a table in memory");
    memory->table = &run->options.tables[id];
    memory->source.next = memory_next;
    memory->source.size = memory_size;
    *out_source = &memory->source;
    return SX_OK;
}
