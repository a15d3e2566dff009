/* Private to src/plan. */
#ifndef SX_PLAN_UNDELIM_H
#define SX_PLAN_UNDELIM_H

#include "plan/build.h"

struct sx_undelim_key {
    struct sx_expression *side;  /* over L's columns */
    struct sx_expression *other; /* over the other side's columns */
    bool null_equal;
};

struct sx_undelim {
    enum sx_join_kind kind;         /* of the duplicate-eliminated join */
    struct sx_plan *side;           /* L, whose values are made distinct */
    const struct sx_plan *distinct; /* AGGREGATE over L's columns */
    struct sx_plan *other;
    const struct sx_plan *reference; /* the one place in `other` that reads the distinct values */
    const struct sx_undelim_key *keys;
    int32_t n_keys;
};

/* The join without distinct values, with L's columns as its output; NULL where the shape does not allow it
 * (or after an error). Nothing of `in` is changed. */
struct sx_plan *sx_plan_undelim(struct sx_builder *b, const struct sx_undelim *in);

#endif
