/* A join's bloom filter. Over all ranks: each rank's table has the keys of one partition, so that it says
 * nothing about rows that go to other ranks; the filters of all partitions together do. Or, where a rank has
 * the whole table, of that: join_filter is for one key, this is for several. Every rank hashes the keys of
 * its build rows while they come, the ranks agree on a size once their number is known, and the filters are
 * merged when the table is whole. */
#ifndef SX_EXEC_JOIN_BLOOM_H
#define SX_EXEC_JOIN_BLOOM_H

#include "exec/run.h"

struct sx_join_bloom {
    bool is_wanted;         /* a scan asks for it; set while pipelines are made */
    bool is_local;          /* this rank has all keys; set by join_bloom_open */
    size_t link_bytes;      /* from which on the filter goes from device to device; set by join_bloom_open */
    struct sx_tensor words; /* once the table is sealed; length 0: there is none */
    struct bloom_worker *workers;
    atomic_int_fast64_t kept; /* hashes, of all workers */
};

SX_MUST_CHECK enum sx_status join_bloom_create(struct sx_join_bloom *bloom, struct sx_run *run,
                                               struct sx_error *error);
void join_bloom_release(struct sx_join_bloom *bloom, const struct sx_run *run);

/* Notes the keys of a worker's build rows. */
SX_MUST_CHECK enum sx_status join_bloom_note(struct sx_join_bloom *bloom, struct sx_worker *worker,
                                             const struct sx_batch *keys, bool is_local);
/* Collective, unless is_local: all ranks have come to the end of their build rows. Decides on the size. */
SX_MUST_CHECK enum sx_status join_bloom_open(struct sx_join_bloom *bloom, struct sx_worker *worker,
                                             bool is_local);
/* Adds what worker `part` has noted. Different parts may be added at the same time. */
SX_MUST_CHECK enum sx_status join_bloom_add(struct sx_join_bloom *bloom, struct sx_worker *worker, int part);
/* Collective, unless is_local: the filter of all ranks. With `needless` there is none in the end. */
SX_MUST_CHECK enum sx_status join_bloom_merge(struct sx_join_bloom *bloom, struct sx_worker *worker,
                                              bool needless);

/* Rows whose keys may be in the table of some rank: I32 positions, ascending. */
SX_MUST_CHECK enum sx_status join_bloom_select(const struct sx_join_bloom *bloom, struct sx_worker *worker,
                                               const struct sx_batch *keys, struct sx_tensor *out_selection);

/* Whether a filter of all ranks would be made for so many build rows. */
bool join_bloom_takes(const struct sx_worker *worker, int64_t rows);

/* The words of a filter without keys, made where it will be. */
SX_MUST_CHECK enum sx_status join_bloom_empty(struct sx_worker *worker, int64_t n_words,
                                              struct sx_tensor *out_words);
/* A filter's words in the backend's memory, from host memory. */
SX_MUST_CHECK enum sx_status join_bloom_words(struct sx_worker *worker, const uint64_t *values,
                                              int64_t n_words, struct sx_tensor *out_words);

#endif
