/* Plans for several ranks. */
#ifndef SX_PLAN_DISTRIBUTE_H
#define SX_PLAN_DISTRIBUTE_H

#include "plan/plan.h"

/* How large tables are. */
struct sx_distribute_options {
    int64_t replicate_bytes; /* see distribute_replicate.c */
    /* Bytes of the columns that the scan reads, not compressed; INT64_MAX: not known. The same on all ranks.
     */
    int64_t (*scan_bytes)(void *context, const struct sx_scan_plan *scan);
    /* Whether the ranks' shares of the scan are ranges of scan->columns[column] that follow each other, and
     * then the largest value up to each rank's but the last's: out_ends[n_ranks - 1]. The same on all ranks.
     * NULL: that is not known of any. */
    bool (*share_ends)(void *context, const struct sx_scan_plan *scan, int32_t column, int64_t *out_ends);
    void *context;
    /* For sx_plan_is_small: what a rank scans while an exchange takes place; 0: no query is small. */
    int64_t exchange_bytes;
    int n_ranks;
};

/* Rewrites a plan, whose scans give each rank a share of their rows, so that all ranks running it together
 * bring the answer to rank 0: exchanges are put in, aggregates, top-N and limits divided into a partial and a
 * final one. What the other ranks get at the root is of no use. The plan depends on nothing but the query's
 * and the options (NULL: no table is read whole by every rank). New nodes are in the query's arena; after a
 * failure (SX_OUT_OF_MEMORY, SX_INTERNAL) the query can only be released. */
SX_MUST_CHECK enum sx_status sx_plan_distribute(struct sx_query_plan *query,
                                                const struct sx_distribute_options *options,
                                                struct sx_error *error);

/* Of a plan that is not distributed: whether exchanges would take longer than the other ranks' shares of what
 * is to be scanned. Says nothing of rows that joins multiply. */
bool sx_plan_is_small(const struct sx_query_plan *query, const struct sx_distribute_options *options);

#endif
