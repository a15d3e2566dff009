/* Ranks that answer queries together. Rank 0 has the caller's handle; it tells the others what to do, and
 * they follow. */
#ifndef SX_API_RANKS_H
#define SX_API_RANKS_H

#include "api/bench_join.h"
#include "api/placement.h"
#include "api/query.h"
#include "bench/exchange.h"
#include "net/pull.h"

struct sx_ranks;

/* stachio_open of n ranks, of which 1 … n - 1 are threads of this process: for tests. */
enum stachio_status sx_ranks_open_local(const struct stachio_options *options, int n,
                                        struct stachio_db **out_db, struct stachio_error *error);
/* stachio_open where mpirun or srun has started several ranks: collective, on each of them. */
enum stachio_status sx_ranks_open_launched(const struct stachio_options *options, struct stachio_db **out_db,
                                           struct stachio_error *error);
/* Either's, of one rank. Takes the net over in every case. */
enum stachio_status sx_ranks_open_one(const struct stachio_options *options, struct sx_net *net,
                                      struct stachio_db **out_db, struct stachio_error *error);
/* Collective, before queries: rows go from GPU to GPU where all ranks can; db->network says so. */
SX_MUST_CHECK enum sx_status sx_ranks_link(struct stachio_db *db, struct sx_net *net, struct sx_error *error);
/* Collective, with sx_ranks_link: a puller, if this rank pulls from others, or they from it (*out_n of them);
 * else NULL. *out_all: each rank pulls from each other one, as all are told. */
SX_MUST_CHECK enum sx_status sx_ranks_find_puller(struct stachio_db *db, struct sx_net *net,
                                                  struct sx_puller **out_puller, int *out_n, bool *out_all,
                                                  struct sx_error *error);
/* Such a rank goes; rank 0 tells the others to. */
void sx_ranks_leave(struct stachio_db *db);
/* Ends the ranks, if there are several. */
void sx_ranks_stop(struct stachio_db *db);

/* Rank 0, after its own front end has the table: the others' get it. */
SX_MUST_CHECK enum sx_status sx_ranks_add_table(struct stachio_db *db, const char *name,
                                                const char *const *paths, int n_paths,
                                                struct sx_error *error);
/* Rank 0: as sx_parts_add, on all ranks. */
SX_MUST_CHECK enum sx_status sx_ranks_add_parts(struct stachio_db *db, const char *name,
                                                const char *const *patterns, int n_patterns,
                                                struct sx_error *error);
/* Rank 0, before it plans a query to run it: the others plan it at the same time. A lost rank is no failure
 * yet: DuckDB may answer. */
SX_MUST_CHECK enum sx_status sx_ranks_plan(struct stachio_query *query, struct sx_error *error);
/* Rank 0: runs a planned query on all ranks. */
SX_MUST_CHECK enum sx_status sx_ranks_execute(struct stachio_query *query, struct sx_error *error);

/* Rank 0: an exchange of all ranks is timed; options->net and pool are the database's. */
SX_MUST_CHECK enum sx_status sx_ranks_exchange(struct stachio_db *db,
                                               const struct sx_bench_exchange_options *options,
                                               struct sx_bench_exchange_result *out_result,
                                               struct sx_error *error);

/* What one rank has failed with, all fail with; afterwards everything is as before. Collective;
 * ranks that follow need not look at the status. */
enum sx_status sx_ranks_meet(struct stachio_db *db, enum sx_status status, struct sx_error *error);
/* Rank 0: sx_bench_join_run on all ranks. */
SX_MUST_CHECK enum sx_status sx_ranks_join(struct stachio_db *db,
                                           const struct stachio_bench_join_options *options,
                                           struct sx_bench_join_result *out_result, struct sx_error *error);

/* Rank 0: where each rank is, and what is meant for it. `topology`: of rank 0's machine; out: one per rank.
 */
SX_MUST_CHECK enum sx_status sx_ranks_place(struct stachio_db *db, const struct stachio_topology *topology,
                                            struct sx_placement *out_placements, struct sx_error *error);

/* Rank 0, after DuckDB has run `sql` there: the others' front ends follow (sx_frontend_follow). */
SX_MUST_CHECK enum sx_status sx_ranks_session(struct stachio_db *db, const char *sql, struct sx_error *error);

/* Until all ranks have heard what rank 0 has said before. */
SX_MUST_CHECK enum sx_status sx_ranks_wait(struct stachio_db *db, struct sx_error *error);
void sx_ranks_tell_stop(struct stachio_db *db);

/* The other ranks: does what rank 0 says until it stops, or is lost. */
void sx_ranks_follow(struct stachio_db *db);

#endif
