/* Rows to the ranks by ranges of their sort keys, so that each rank sorts a range and the ranks' rows, one
 * rank's behind another's, are the whole in order. The rows are kept on their ranks first. Few of them go to
 * rank 0. Else all ranks sample the keys of their rows, tell each other, and so find the same ends of ranges.
 * Rows with equal keys are told apart by the places of their batches, in which ties are kept: a frequent key
 * may have a range over several ranks. */
#ifndef SX_EXEC_EXCHANGE_RANGE_H
#define SX_EXEC_EXCHANGE_RANGE_H

#include "exec/exchange.h"

struct exchange_range {
    struct sx_sort_key *orders; /* of the keys, and of the batches' places behind them */
    /* Found before rows are sent, the same on all ranks: */
    int n_ranges;              /* those of ranks 0, 1, …; 0: all rows go to rank 0 */
    int n_parts;               /* as many, or up to the next power of two */
    struct sx_batch ends;      /* the last sampled row of each range, in host memory */
    struct sx_evaluator parts; /* of rows: keys and place to a number whose high bits tell the part */
};

SX_MUST_CHECK enum sx_status exchange_range_create(struct sx_exchange *exchange, struct sx_run *run,
                                                   struct sx_error *error);
void exchange_range_release(struct exchange_range *range, struct sx_run *run); /* NULL allowed */

/* Collective, once the exchange's rows are in `kept`. */
SX_MUST_CHECK enum sx_status exchange_range_find(struct sx_exchange *exchange, struct sx_worker *worker);

/* Numbers (U64, FLAT) of a batch's rows, whose high bits are their parts, of which rank r has part r. */
SX_MUST_CHECK enum sx_status exchange_range_parts(struct sx_exchange *exchange, struct sx_worker *worker,
                                                  const struct sx_batch *batch, struct sx_tensor *out_parts);

#endif
