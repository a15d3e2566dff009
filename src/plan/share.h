/* Inside of sx_plan_share. */
#ifndef SX_PLAN_SHARE_H
#define SX_PLAN_SHARE_H

#include "plan/join_tree.h"

/* ---- share.c ---- */

/* By output of the part: the whole's output that is the same column (match->to), or -1. NULL after an error.
 */
int32_t *sx_share_outputs(struct sx_builder *b, const struct sx_plan *part_plan,
                          const struct sx_join_tree *part, const struct sx_plan *whole_plan,
                          const struct sx_join_tree *whole, const int32_t *to);
/* The aggregate over other rows, with map[i] in place of column i. False: a column is missing, or an error.
 */
bool sx_share_move(struct sx_builder *b, const struct sx_aggregate_plan *from, const int32_t *map, int32_t n,
                   struct sx_aggregate_plan *to);

/* ---- share_groups.c ---- */

/* Aggregates of what others aggregate by more keys. */
struct sx_plan *sx_share_groups(struct sx_builder *b, struct sx_plan *root);

#endif
