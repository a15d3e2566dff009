/* Cuts a logical plan into pipelines at its breakers. */
#ifndef SX_EXEC_BUILD_H
#define SX_EXEC_BUILD_H

#include "exec/operators.h"

/* Appends to run->pipelines those that compute `plan` into `sink`, in the order in which they have to run. */
SX_MUST_CHECK enum sx_status sx_pipelines_build(struct sx_run *run, const struct sx_plan *plan,
                                                struct sx_sink *sink, struct sx_error *error);

/* ---- runtime_filter.c: joins that limit a node's rows, followed down to scans ---- */

/* Rows of a node whose columns have no match in the join are not needed. */
struct sx_pending_filter {
    struct sx_join_build *join;
    const int32_t *columns; /* one for each of the join's keys */
    enum sx_filter_reach reach;
    const struct sx_pending_filter *next;
};

/* Probe rows without a match in the join end there, and its keys tell which. */
bool sx_join_filters_probe(const struct sx_join_plan *join);

/* Adds to *filters (in the run's arena, where `columns` are, too), unless one of the columns is -1. */
SX_MUST_CHECK enum sx_status sx_filters_add(struct sx_run *run, struct sx_join_build *join,
                                            const int32_t *columns, enum sx_filter_reach reach,
                                            const struct sx_pending_filter **filters, struct sx_error *error);

/* What becomes of `filters` (on plan's output) on the rows of child `child`; in the run's arena. A join that
 * plan itself probes is added by sx_filters_of_join. *out NULL: none. */
SX_MUST_CHECK enum sx_status sx_filters_below(struct sx_run *run, const struct sx_plan *plan, int child,
                                              const struct sx_pending_filter *filters,
                                              const struct sx_pending_filter **out_filters,
                                              struct sx_error *error);
/* Adds the join's own filter on its probe child to *filters, if it has one. */
SX_MUST_CHECK enum sx_status sx_filters_of_join(struct sx_run *run, struct sx_join_build *join,
                                                const struct sx_pending_filter **filters,
                                                struct sx_error *error);

/* ---- set_all.c ---- */

/* INTERSECT ALL and EXCEPT ALL as an aggregate that counts each side's rows: (columns…, how often) in the
 * run's arena. */
SX_MUST_CHECK enum sx_status sx_set_all_plan(struct sx_run *run, const struct sx_plan *plan,
                                             const struct sx_plan **out_plan, struct sx_error *error);

#endif
