/* In which order the joins that one pipeline probes are built. The smallest comes first, because what it has
 * learned limits the scans of those after it, when their keys are equal by way of the probe side's columns.
 */
#ifndef SX_EXEC_BUILD_ORDER_H
#define SX_EXEC_BUILD_ORDER_H

#include "exec/build.h"

/* A guess at the rows that the plan gives, from the rows of its files. */
double sx_estimate_rows(struct sx_run *run, const struct sx_plan *plan);

struct sx_pending_build {
    struct sx_join_build *build;
    const struct sx_pending_filter *filters; /* on the build child's output; of joins above */
    double rows;                             /* estimate of what it has to keep */
    int n_exchanges;                         /* behind it in the chain */
    bool taken;
    struct sx_pending_build *next;
};

/* Adds to *list. With as many exchanges behind them joins probe rows where they are. */
SX_MUST_CHECK enum sx_status sx_pending_add(struct sx_run *run, struct sx_join_build *build,
                                            const struct sx_pending_filter *filters, int n_exchanges,
                                            struct sx_pending_build **list, struct sx_error *error);

/* The next join to build and the filters on its build child that can be had by now; *out_build NULL: all are
 * taken. */
SX_MUST_CHECK enum sx_status sx_pending_take(struct sx_run *run, struct sx_pending_build *list,
                                             struct sx_join_build **out_build,
                                             const struct sx_pending_filter **out_filters,
                                             struct sx_error *error);

#endif
