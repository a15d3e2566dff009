/* What INNER joins join, and by what; and whether two plans join the same. Private to src/plan. */
#ifndef SX_PLAN_JOIN_TREE_H
#define SX_PLAN_JOIN_TREE_H

#include "plan/build.h"

/* A plan of INNER joins, by equality of columns, of leaves, which are all that is no such join and no
 * projection. Columns are numbered through all leaves. */
struct sx_join_tree {
    struct sx_plan **leaves;
    int32_t *firsts; /* a leaf's first column */
    int32_t n_leaves;
    int32_t n_columns;
    int32_t *outputs; /* by column of the plan: which of the leaves' it is; -1: it is computed */
    int32_t *equal;   /* by column: a number that it shares with those that joins make equal to it */
};

/* False: it joins by more than columns, or an error. */
bool sx_join_tree_make(struct sx_builder *b, struct sx_plan *plan, struct sx_join_tree *out_tree);

/* The columns that a part's are in the whole, and which leaves of the whole are in the part. */
struct sx_join_match {
    int32_t *to; /* by column of the part; -1: the whole has it not */
    bool *is_used;
    int32_t n_used;
};

/* Looks for each leaf of `part` but `but` (-1: for each) in `whole`. The caller fills match->to for that
 * one's columns. False: one is missing, or an error. */
bool sx_join_tree_match(struct sx_builder *b, const struct sx_join_tree *whole,
                        const struct sx_join_tree *part, int32_t but, struct sx_join_match *out_match);

/* Whether both have the same rows of the leaves that match, for each value of the columns `ties` of the
 * whole: as many of each row in the whole as its other leaves have rows that join that value, and they join
 * nothing else. `ties`: marks by column of the whole. */
bool sx_join_tree_same_rows(struct sx_builder *b, const struct sx_join_tree *whole,
                            const struct sx_join_tree *part, const struct sx_join_match *match,
                            const bool *ties);

/* Copy in which column c, below n, is column map[c]. NULL: it reads one whose map[c] is negative, or an
 * error.
 */
struct sx_expression *sx_join_tree_move(struct sx_builder *b, const struct sx_expression *expression,
                                        const int32_t *map, int32_t n);

#endif
