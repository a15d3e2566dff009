/* Cases of group bys that are made up by a few properties. */
#ifndef TEST_CONFORMANCE_GROUP_CASE_H
#define TEST_CONFORMANCE_GROUP_CASE_H

#include "group_reference.h"

enum { MAX_KEYS = 10, MAX_AGGREGATES = 20, MAX_WORKERS = 3 };

#define TYPE(name)           \
    (struct sx_type) {       \
        SX_TYPE_##name, 0, 0 \
    }
#define DECIMAL(precision, scale)             \
    (struct sx_type) {                        \
        SX_TYPE_DECIMAL, (precision), (scale) \
    }

struct group_columns {
    struct sx_tensor keys[MAX_KEYS];
    struct sx_tensor inputs[MAX_AGGREGATES];
    struct sx_tensor filters[MAX_AGGREGATES];
};

/* Of a key's rows. */
enum group_order {
    GROUP_AS_FILLED,
    GROUP_SHORT_RUNS,    /* ascending, a key has a few rows */
    GROUP_LONG_RUNS,     /* some hundreds */
    GROUP_DISTINCT,      /* one */
    GROUP_ONE_KEY,       /* all */
    GROUP_LATER_FIRST,   /* two ascending parts, the greater one first */
    GROUP_LAST_OVERLAPS, /* ascending batches, the last of which begins within the one before it */
    GROUP_LAST_FALLS,    /* ascending but for the last row */
    GROUP_N_ORDERS
};

struct group_shape {
    int64_t rows;
    enum conformance_fill fill;
    double null_share;
    int n_workers;
    bool filtered;
    bool dictionaries;
    unsigned constant_keys;   /* a bit per key */
    unsigned constant_inputs; /* a bit per aggregate */
    unsigned coded_inputs;    /* a bit per aggregate: they come as a dictionary */
    bool selects;             /* which is rows that are selected, where it can be */
    unsigned left_alone;      /* a bit per aggregate */
    bool shared;              /* sums and counts of one type are of one column */
    int64_t chunk_rows;
    int64_t max_rows;
    enum group_order order; /* of the first key; the others are as they are filled */
};

struct sx_aggregate_spec group_aggregate_of(enum sx_aggregate function, struct sx_type input);
void group_check_shape(struct conformance *c, const struct sx_group_spec *base,
                       const struct group_shape *shape, const char *what);

/* ---- group_order.c ---- */

/* Overwrites the key, an integer or alike of 32 or 64 bits; it has no NULLs then, but with GROUP_LAST_FALLS.
 */
void group_put_in_order(struct conformance *c, const struct group_shape *shape, int64_t chunk_rows,
                        struct sx_tensor *key);
void conform_group_order(struct conformance *c);

/* ---- group_coded.c ---- */

void conform_group_coded(struct conformance *c);

/* ---- group_one.c ---- */

/* SUM and COUNT, without keys, of a column in the backend's memory, after an update of no rows. */
SX_MUST_CHECK enum sx_status group_sum_and_count(struct conformance *c, const struct sx_tensor *column,
                                                 struct sx_batch *out_host);
void conform_group_one(struct conformance *c);

#endif
