/* After the probe: build rows that no probe row matched, or that some did. */
#include "exec/operators.h"

struct join_rest {
    struct sx_source source;
    struct sx_join_build *build;
    const int32_t *payload_of; /* as in join_probe.c */
    bool wanted;               /* rows that matched, else those that did not */
    int64_t chunk_rows;
    atomic_int_fast64_t next;
};

/* Null probe columns, then the build columns of `rows`. */
static enum sx_status make_rows(struct join_rest *rest, struct sx_worker *worker,
                                const struct sx_tensor *rows, struct sx_batch *out_batch) {
    const struct sx_plan *plan = rest->build->plan;
    const struct sx_join_plan *join = &plan->u.join;
    struct sx_batch made = {0};
    enum sx_status status = SX_OK;
    int32_t n_probe =
        join->kind == SX_JOIN_RIGHT_SEMI || join->kind == SX_JOIN_RIGHT_ANTI ? 0 : join->n_probe_output;
    SX_GO(sx_batch_create(n_probe + join->n_build_output, rows->length, &made, sx_worker_error(worker)));
    for (int32_t i = 0; i < n_probe; i++) {
        struct sx_scalar null = {.type = plan->children[0]->columns[join->probe_output[i]].type,
                                 .is_null = true};
        SX_GO(sx_ops(worker)->constant(worker->stream, &null, rows->length, &made.columns[i]));
    }
    SX_GO(sx_ops(worker)->join_gather(worker->stream, rest->build->table, rest->payload_of,
                                      join->n_build_output, rows, &made.columns[n_probe]));
    *out_batch = made;
    return SX_OK;
out:
    sx_batch_release(&made);
    return status;
}

static enum sx_status rest_next(struct sx_source *source, struct sx_worker *worker,
                                struct sx_batch *out_batch, bool *out_done) {
    struct join_rest *rest = (struct join_rest *)source;
    const int64_t total = rest->build->info.rows, most = rest->chunk_rows;
    for (;;) {
        int64_t first = atomic_fetch_add(&rest->next, most);
        *out_done = first >= total;
        if (*out_done)
            return SX_OK;
        int64_t count = total - first < most ? total - first : most;
        struct sx_tensor rows = {0};
        SX_TRY(sx_ops(worker)->join_marked(worker->stream, rest->build->table, rest->wanted, first, count,
                                           &rows));
        worker->sequence = first;
        enum sx_status status = rows.length ? make_rows(rest, worker, &rows, out_batch) : SX_OK;
        bool any = rows.length > 0;
        sx_tensor_release(&rows);
        if (status != SX_OK || any)
            return status;
    }
}

static struct sx_source_size rest_size(const struct sx_source *source) {
    const struct join_rest *rest = (const struct join_rest *)source;
    return (struct sx_source_size){(rest->build->info.rows + rest->chunk_rows - 1) / rest->chunk_rows,
                                   INT64_MAX};
}

enum sx_status sx_join_rest_create(struct sx_run *run, struct sx_join_build *build,
                                   struct sx_source **out_source, struct sx_error *error) {
    struct join_rest *rest = sx_operator_create(run, sizeof *rest, NULL, "JOIN rest%s",
                                                build->sink.base.name + sizeof "JOIN build" - 1);
    if (!rest)
        return sx_no_memory(error, "a join");
    rest->build = build;
    rest->payload_of = sx_join_payload_of(run, build);
    if (!rest->payload_of)
        return sx_no_memory(error, "a join");
    rest->wanted = build->plan->u.join.kind == SX_JOIN_RIGHT_SEMI;
    rest->chunk_rows = run->options.backend->traits.chunk_rows;
    rest->source.next = rest_next;
    rest->source.size = rest_size;
    *out_source = &rest->source;
    return SX_OK;
}
