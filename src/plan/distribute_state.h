/* Private to src/plan/distribute*.c. */
#ifndef SX_PLAN_DISTRIBUTE_STATE_H
#define SX_PLAN_DISTRIBUTE_STATE_H

#include "plan/build.h"
#include "plan/distribute.h"

/* Where the rows of a node are. */
enum spread_kind {
    SPREAD_ANY,        /* each on one rank, whichever */
    SPREAD_HASH,       /* each on the rank that EXCHANGE HASH by these columns would send it to */
    SPREAD_REPLICATED, /* all of them on every rank, in any order */
    SPREAD_ROOT        /* on rank 0; what other ranks have of them does not count */
};

struct spread {
    enum spread_kind kind;
    const int32_t *columns; /* HASH: output columns, in the order in which they are hashed */
    int32_t n_columns;
    const int64_t *ends; /* HASH: the exchange's */
};

struct distribution {
    struct sx_builder b;
    struct spread *materialized;                 /* by id */
    const struct sx_distribute_options *options; /* NULL: nothing is replicated */
    bool replicates;                             /* scans below give all rows to every rank */
};

/* Of the table's columns; INT64_MAX: not known, or each rank has files of its own. */
static inline int64_t distribute_scan_bytes(const struct sx_distribute_options *options,
                                            const struct sx_scan_plan *scan) {
    return scan->parts ? INT64_MAX : options->scan_bytes(options->context, scan);
}

/* Functions that give a plan give NULL after a failure, and pass a NULL child on. */

/* ---- distribute.c ---- */

struct sx_plan *distribute_node(struct distribution *d, struct sx_plan *plan, struct spread *out_spread);
/* Every rank has what there is to have: rank 0's rows, or all. */
bool spread_is_whole(const struct spread *spread);
/* Of several whole inputs' rows together. */
struct spread spread_of_whole(const struct spread *a, const struct spread *b);
/* Output i is column projection[i] of what is spread so. */
struct spread spread_project(struct distribution *d, const struct spread *spread, const int32_t *projection,
                             int32_t n_projection);
/* Rows are where EXCHANGE HASH by these keys would send them. */
bool spread_is_by(const struct spread *spread, struct sx_expression *const *keys, int32_t n_keys);

struct sx_plan *distribute_exchange(struct distribution *d, struct sx_plan *child, enum sx_exchange_kind kind,
                                    struct sx_expression **keys, int32_t n_keys);
/* Makes *spread ROOT, or leaves it REPLICATED. */
struct sx_plan *distribute_to_root(struct distribution *d, struct sx_plan *child, struct spread *spread);
/* Makes *spread ANY or HASH. */
struct sx_plan *distribute_to_any(struct distribution *d, struct sx_plan *child, struct spread *spread);
/* Sends rows to where the keys' hash (or, if `ends` is not NULL, the key's range) says, unless they are
 * there. */
struct sx_plan *distribute_by(struct distribution *d, struct sx_plan *child, const struct spread *spread,
                              struct sx_expression **keys, int32_t n_keys, const int64_t *ends);

/* ---- distribute_aggregate.c, distribute_join.c: of a node whose children are not distributed yet ---- */

struct sx_plan *distribute_aggregate(struct distribution *d, struct sx_plan *plan, struct spread *out_spread);
struct sx_plan *distribute_join(struct distribution *d, struct sx_plan *plan, struct spread *out_spread);

/* ---- distribute_ends.c ---- */

/* Ends of ranges of `key`, over the columns of `child`, by which most of child's rows stay where they have
 * been scanned; NULL: there are none. is_moved: also where exchanges by other keys may have moved them since,
 * if these do not turn out to be broadcasts. */
const int64_t *distribute_ends(struct distribution *d, const struct sx_plan *child,
                               const struct sx_expression *key, bool is_moved);
/* Sets scan and scan_column of an exchange with ends. */
void distribute_find_scan(struct sx_exchange_plan *exchange, const struct sx_plan *child);
bool distribute_same_ends(const struct distribution *d, const int64_t *a, const int64_t *b);

/* ---- distribute_root.c ---- */

/* Sets root_choice of the exchanges from the root of a distributed plan down. */
void distribute_root_choice(struct sx_plan *root);

/* ---- distribute_replicate.c ---- */

/* Whether it is better that each rank makes all of this build side than that they send it to each other. */
bool distribute_replicates(const struct distribution *d, const struct sx_plan *build);

#endif
