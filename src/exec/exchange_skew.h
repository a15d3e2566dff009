/* Keys that hold a large share of a join's probe side. Their build rows go to all ranks, and their probe rows
 * stay where they are, so that no rank gets more than the others. Which keys these are the ranks find out
 * together, from a sample of the probe side's table that is read before build rows are sent; a wrong sample
 * costs time only. For adaptive joins (src/plan/distribute_join.c): these keep no build rows. */
#ifndef SX_EXEC_EXCHANGE_SKEW_H
#define SX_EXEC_EXCHANGE_SKEW_H

#include "exec/exchange.h"

struct sx_heavy_list;

struct exchange_skew {
    struct sx_source *sample;    /* of the probe side's key columns */
    struct sx_heavy_list *known; /* what it has told an earlier query; else NULL */
    uint64_t sample_name;        /* by which it is known again */
    int32_t n_keys;
    int64_t probe_rows; /* of the whole table that these are from */
    /* Found before build rows are sent, the same on all ranks: */
    int n_heavy;
    struct sx_tensor words; /* bloom filter of their hashes; length 0: there are none */
};

/* For the exchange of an adaptive join's build side: sets join->skew where the probe side's keys are columns
 * of one table. */
SX_MUST_CHECK enum sx_status exchange_skew_create(struct sx_exchange *exchange, struct sx_run *run,
                                                  struct sx_error *error);
void exchange_skew_release(struct exchange_skew *skew);

/* Collective, by the build side's exchange, whose rows are in `kept`. */
SX_MUST_CHECK enum sx_status exchange_skew_find(struct sx_exchange *exchange, struct sx_worker *worker);

/* Positions of rows with heavy keys, and of the others; *hashes becomes those of the others. Without heavy
 * rows *out_heavy is empty, and the rest is left as it is. */
SX_MUST_CHECK enum sx_status exchange_skew_split(const struct exchange_skew *skew, struct sx_worker *worker,
                                                 struct sx_tensor *hashes, struct sx_tensor *out_heavy,
                                                 struct sx_tensor *out_rest);

#endif
