/* The BOOL column of a MARK join: TRUE where a build row matches; else NULL where a comparison with some
 * build row is unknown; else FALSE. */
#ifndef SX_EXEC_JOIN_MARK_H
#define SX_EXEC_JOIN_MARK_H

#include "exec/operators.h"

struct sx_mark {
    struct sx_evaluator column; /* over (matched, group has rows, group has a NULL, keys…) */
};

SX_MUST_CHECK enum sx_status sx_mark_init(struct sx_run *run, const struct sx_plan *plan,
                                          struct sx_mark *out_mark, struct sx_error *error);
void sx_mark_release(struct sx_run *run, struct sx_mark *mark);

/* `keys`: the probe's key columns; `matched`: BOOL for each probe row. */
SX_MUST_CHECK enum sx_status sx_mark_column(struct sx_mark *mark, struct sx_worker *worker,
                                            const struct sx_join_build *build, const struct sx_tensor *keys,
                                            const struct sx_tensor *matched, struct sx_tensor *out_column);

#endif
