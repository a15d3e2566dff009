/* Inside of src/api: queries that rank 0 answers without the other ranks. */
#ifndef SX_API_ALONE_H
#define SX_API_ALONE_H

#include "api/query.h"

/* For sx_distribute_options. */
int64_t sx_alone_exchange_bytes(const struct stachio_db *db);
/* Whether rank 0 is to try it by itself: what is known of the query's earlier runs does not speak against it.
 */
bool sx_alone_is_worth_it(const struct stachio_query *query);
/* For sx_exec_options: what takes longer is done together after all. */
int64_t sx_alone_most_ns(const struct stachio_query *query);

/* A lost rank ends a query of rank 0 alone, too. */
SX_MUST_CHECK enum sx_status sx_alone_check(struct stachio_db *db, struct sx_error *error);
/* Runs the pipelines, which are one rank's. *out_done false: the time was over, or the memory not enough for
 * one, and nothing has failed. */
SX_MUST_CHECK enum sx_status sx_alone_execute(struct stachio_query *query, bool *out_done,
                                              struct sx_error *error);
/* All ranks have run the query, which is small enough for one, in so much time, or could not. */
void sx_alone_ended_together(struct stachio_query *query, enum sx_status status, int64_t ns);

#endif
