/* The plan of `stachio bench join`: a join of two tables in memory, counted and summed. */
#ifndef SX_PLAN_BENCH_JOIN_H
#define SX_PLAN_BENCH_JOIN_H

#include "plan/plan.h"

/* The tables are MEMORY nodes of BIGINT columns, whose first one is the key. */
enum sx_bench_table { SX_BENCH_PROBE, SX_BENCH_BUILD, SX_BENCH_TABLES };

struct sx_bench_join_spec {
    int32_t n_columns[SX_BENCH_TABLES];
    bool is_shuffle; /* the probe table is exchanged, and nothing joined */
    bool has_ranks;  /* exchanges are put in */
};

/* SELECT count(*), sum(each column of the probe, then of the build table) of the inner join by the keys; in
 * query->arena, which is zeroed before. Released with sx_query_plan_release in every case. */
SX_MUST_CHECK enum sx_status sx_bench_join_plan(const struct sx_bench_join_spec *spec,
                                                struct sx_query_plan *query, struct sx_error *error);

#endif
