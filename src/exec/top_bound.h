/* What a top-N knows once it holds enough rows: rows whose first key lies beyond that of its last row are not
 * needed. They are dropped as they come, and where the key is a column of a scan, row groups beyond it are
 * not read. */
#ifndef SX_EXEC_TOP_BOUND_H
#define SX_EXEC_TOP_BOUND_H

#include "exec/operators.h"

/* Starts zeroed. */
struct sx_bound {
    bool is_set;
    struct sx_scalar first_key;
    struct sx_batch holder; /* keeps the scalar's bytes */
};
void sx_bound_release(struct sx_bound *bound);

struct sx_bound_finder {
    const struct sx_plan *plan;    /* TOP_N */
    struct sx_evaluator first_key; /* over the child's columns */
    struct sx_evaluator within;    /* over (first key, bound): may the row be needed? */
    const struct sx_plan *scan;    /* the first key is column scan_column of this scan; NULL: of none */
    int32_t scan_column;
    int32_t *projection; /* 0, 1, …: all of a batch's columns */
};

/* Batches have `n_extra` columns behind those of the plan's child. */
SX_MUST_CHECK enum sx_status sx_bound_finder_init(struct sx_run *run, const struct sx_plan *plan,
                                                  int32_t n_extra, struct sx_bound_finder *out_finder,
                                                  struct sx_error *error);
void sx_bound_finder_release(struct sx_run *run, struct sx_bound_finder *finder);

/* The bound that follows from `best`: sorted rows, as many as are wanted. */
SX_MUST_CHECK enum sx_status sx_bound_set(struct sx_bound_finder *finder, struct sx_worker *worker,
                                          const struct sx_batch *best, struct sx_bound *bound);
/* Drops the batch's rows beyond the bound, if it is set. */
SX_MUST_CHECK enum sx_status sx_bound_apply(struct sx_bound_finder *finder, struct sx_worker *worker,
                                            const struct sx_bound *bound, struct sx_batch *batch);

#endif
