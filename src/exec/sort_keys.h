/* The order of a SORT or TOP_N node: its expressions and the sort primitive. */
#ifndef SX_EXEC_SORT_KEYS_H
#define SX_EXEC_SORT_KEYS_H

#include "exec/operators.h"

struct sx_sort_keys {
    struct sx_evaluator expressions;
    struct sx_sort_key *orders; /* room for two more behind the node's own */
    int32_t n_orders;
};

SX_MUST_CHECK enum sx_status sx_sort_keys_init(struct sx_run *run, const struct sx_plan *plan,
                                               struct sx_sort_keys *out_keys, struct sx_error *error);
void sx_sort_keys_release(struct sx_run *run, struct sx_sort_keys *keys);

/* Order of the batch's rows (I64), the first `limit` (< 0: all). Columns of the batch behind those of the
 * node's child are further ascending keys (at most two). */
SX_MUST_CHECK enum sx_status sx_sort_keys_order(struct sx_sort_keys *keys, struct sx_worker *worker,
                                                const struct sx_batch *batch, int64_t limit,
                                                struct sx_tensor *out_order);

#endif
