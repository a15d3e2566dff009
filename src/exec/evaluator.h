/* A compiled list of expressions and each worker's state for it. */
#ifndef SX_EXEC_EVALUATOR_H
#define SX_EXEC_EVALUATOR_H

#include "exec/run.h"

/* Starts zeroed. */
struct sx_evaluator {
    struct sx_program program;
    struct sx_eval **workers; /* made when first needed */
};

/* Program and arrays go to the run's arena. n_expressions may be 0. */
SX_MUST_CHECK enum sx_status sx_evaluator_init(struct sx_run *run, struct sx_expression *const *expressions,
                                               int32_t n_expressions, const struct sx_type *input_types,
                                               int32_t n_inputs, struct sx_evaluator *out_evaluator,
                                               struct sx_error *error);
void sx_evaluator_release(struct sx_run *run, struct sx_evaluator *evaluator);

/* out_columns: one for each expression, zeroed on failure. */
SX_MUST_CHECK enum sx_status sx_evaluator_run(struct sx_evaluator *evaluator, struct sx_worker *worker,
                                              const struct sx_batch *batch, struct sx_tensor *out_columns);
/* Rows where all expressions are true (I32 positions). */
SX_MUST_CHECK enum sx_status sx_evaluator_select(struct sx_evaluator *evaluator, struct sx_worker *worker,
                                                 const struct sx_batch *batch,
                                                 struct sx_tensor *out_selection);

/* Types of a plan node's output columns, in the run's arena; NULL: no memory. */
struct sx_type *sx_plan_types(struct sx_run *run, const struct sx_plan *plan);

/* columns[projection[i]] (NULL: columns[i]) by `index`, which has no negative positions; index NULL shares
 * all rows. `readings` (NULL: ANY) are of who gets them: where they allow it columns stay where they are,
 * SELECTED; the index is I32 then. After a failure there are none. */
SX_MUST_CHECK enum sx_status sx_columns_gather(struct sx_worker *worker, const struct sx_batch *batch,
                                               const int32_t *projection, int32_t n_projection,
                                               const struct sx_tensor *index, const enum sx_reading *readings,
                                               struct sx_tensor *out_columns);
/* The same as a batch, all columns gathered. */
SX_MUST_CHECK enum sx_status sx_batch_gather(struct sx_worker *worker, const struct sx_batch *batch,
                                             const int32_t *projection, int32_t n_projection,
                                             const struct sx_tensor *index, struct sx_batch *out_batch);

#endif
