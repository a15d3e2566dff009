/* Makes the two tables of a join benchmark, a rank's share of each, and knows the join's answer without
 * joining. All values follow from the row's number among all ranks' rows, so that the answer does not depend
 * on the number of ranks. */
#ifndef SX_BENCH_JOIN_TABLES_H
#define SX_BENCH_JOIN_TABLES_H

#include "base/int128.h"
#include "base/team.h"
#include "tensor/backend.h"

enum { SX_BENCH_MOST_COLUMNS = 64 };

struct sx_bench_tables_spec {
    struct sx_pool *pool;             /* of host memory */
    int64_t build_rows, probe_rows;   /* of all ranks together; below 2^40 */
    int build_columns, probe_columns; /* BIGINT, the first one is the key */
    double hit_ratio; /* share of probe rows that match one build row; the build keys are distinct */
    double skew;      /* exponent of the Zipf distribution of the keys that match; 0: uniform */
    /* Build: o_orderkey (as sparse as dbgen's) and a priority; probe: l_orderkey. Both in their order. */
    bool is_tpch;
    int rank, n_ranks;
};

/* What the join counts, and sums of each column: the probe table's, then the build table's. */
struct sx_bench_sums {
    int64_t rows;
    sx_i128 sums[2 * SX_BENCH_MOST_COLUMNS];
};

struct sx_bench_rows {
    struct sx_batch *batches;
    int64_t n_batches;
    int64_t bytes;
};

/* This rank's rows in the backend's memory; the team's members fill them. *out_sums: of the join of all
 * ranks' build rows and this rank's probe rows; those of the ranks add up to the answer. */
SX_MUST_CHECK enum sx_status sx_bench_make_build(const struct sx_bench_tables_spec *spec,
                                                 struct sx_stream *stream, struct sx_team *team,
                                                 struct sx_bench_rows *out_rows);
SX_MUST_CHECK enum sx_status sx_bench_make_probe(const struct sx_bench_tables_spec *spec,
                                                 struct sx_stream *stream, struct sx_team *team,
                                                 struct sx_bench_rows *out_rows,
                                                 struct sx_bench_sums *out_sums);
void sx_bench_rows_release(struct sx_bench_rows *rows);

#endif
