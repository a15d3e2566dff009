/* Probe rows without a partner need not travel. While a large build side comes, each rank puts its keys into
 * its part of a bloom filter, the part that the high bits of the hashes lead to, by which rows find their
 * rank, too; so the ranks have only to give each other their parts once all keys are there, before the table
 * is made. The probe side's exchange drops what the filter lacks. For adaptive joins by hash that drop probe
 * rows without a partner. A filter that drops little is not asked any more. */
#ifndef SX_EXEC_EXCHANGE_FILTER_H
#define SX_EXEC_EXCHANGE_FILTER_H

#include "exec/bloom_share.h"
#include "exec/exchange.h"

/* What a rank has to say about it. */
struct exchange_filter_terms {
    size_t most_bytes;    /* the least of all ranks' counts */
    int64_t least_rows;   /* of the build side; < 0: never; rank 0's counts */
    int64_t useless_rows; /* a build side whose filter dropped too little in an earlier query, by all ranks'
                           * word: each has other rows; 0: none */
};

struct exchange_filter {
    struct bloom_span *spans;    /* by rank */
    int64_t n_words;             /* 0: there is none; the same on all ranks */
    struct sx_tensor words;      /* length 0: this rank has no memory for it, or no use any more */
    atomic_bool lacks_keys;      /* there was no memory to add some of this rank's */
    uint64_t probe;              /* names the columns that ask it; 0: they are not of tables alone */
    int64_t build_rows;          /* of all ranks */
    atomic_bool is_whole;        /* all ranks' parts are there */
    atomic_int_fast64_t in, out; /* this rank's probe rows */
};

/* For the exchange of an adaptive join's build side: sets join->filter where the join can use one. */
SX_MUST_CHECK enum sx_status exchange_filter_create(struct sx_exchange *exchange, struct sx_run *run,
                                                    struct sx_error *error);
/* Its memory, once nobody asks it any more; may be called again. NULL allowed. */
void exchange_filter_release(struct exchange_filter *filter);

/* This rank's, of the build side's exchange. */
struct exchange_filter_terms exchange_filter_terms(const struct sx_exchange *exchange,
                                                   const struct sx_run *run);
/* Takes another rank's into those of rank 0. */
void exchange_filter_agree(const struct exchange_filter_terms *terms, struct exchange_filter_terms *all);
/* An empty one for a build side of so many rows, if all ranks' terms allow it. From here on a rank that has
 * no memory for it does without; the others get no part of it, and drop nothing of its rows. */
SX_MUST_CHECK enum sx_status exchange_filter_open(struct sx_exchange *exchange, struct sx_worker *worker,
                                                  int64_t rows, const struct exchange_filter_terms *terms);
/* Adds the keys of build rows that have come. */
SX_MUST_CHECK enum sx_status exchange_filter_add(struct sx_exchange *exchange, struct sx_worker *worker,
                                                 const struct sx_batch *batch);
/* Collective, once all have been added, if there is one: the other ranks' parts. */
SX_MUST_CHECK enum sx_status exchange_filter_share(struct exchange_filter *filter, struct sx_worker *worker);

/* Whether build rows are still to be added to it. NULL allowed. */
bool exchange_filter_is_pending(const struct exchange_filter *filter);
/* Whether rows are to be asked for. NULL allowed. */
bool exchange_filter_is_useful(const struct exchange_filter *filter);
/* So many rows were asked for, and so many of them passed. */
void exchange_filter_count(struct exchange_filter *filter, int64_t in, int64_t out);

/* After a run: what a later query of the same tables should know. */
void exchange_filter_remember(const struct exchange_filter *filter, const struct sx_run *run);
/* ", filter of 3.0 MB: 51 % of 1000 rows passed"; "": none was asked; NULL: no memory. */
const char *exchange_filter_tell(const struct exchange_filter *filter, struct sx_arena *arena);

#endif
