/* Which of a scan's conjuncts can prune row groups and pages. */
#ifndef SX_EXEC_PRUNE_H
#define SX_EXEC_PRUNE_H

#include "plan/plan.h"
#include "storage/scan.h"

/* Prunes that follow from the conjuncts, in `arena`. */
SX_MUST_CHECK enum sx_status sx_prune_find(struct sx_arena *arena, const struct sx_scan_plan *scan,
                                           const struct sx_prune **out_prunes, int *out_n_prunes,
                                           struct sx_error *error);

#endif
