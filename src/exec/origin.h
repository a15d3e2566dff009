/* Where a column's values come from. */
#ifndef SX_EXEC_ORIGIN_H
#define SX_EXEC_ORIGIN_H

#include "plan/plan.h"

struct sx_origin {
    const struct sx_plan *plan;
    int32_t column;
};

/* The node farthest below `plan` whose column `column` has the values of plan's: of rows with equal origins
 * the values are equal. */
struct sx_origin sx_origin_of(const struct sx_plan *plan, int32_t column);

#endif
