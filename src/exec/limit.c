/* LIMIT and OFFSET without an order: the first rows in the order of the files. */
#include "exec/operators.h"

enum sx_status sx_limit_create(struct sx_run *run, const struct sx_plan *plan, struct sx_sink **out_sink,
                               struct sx_source **out_source, struct sx_error *error) {
    struct sx_collector *collector;
    SX_TRY(sx_collector_create(run, plan, "LIMIT", &collector, error));
    collector->limit = plan->u.limit.limit;
    collector->offset = plan->u.limit.offset;
    *out_sink = &collector->sink;
    return sx_collector_source(run, collector, "LIMIT result", out_source, error);
}
