/* Whether all ranks have the same files of the tables that a query reads. */
#ifndef SX_API_RANKS_FILES_H
#define SX_API_RANKS_FILES_H

#include "api/query.h"

/* Of the plan's scans, but for those of which each rank has files of its own. */
struct sx_ranks_files {
    int32_t n;
    const struct sx_scan_plan **scans;
    uint64_t *hashes; /* of each one's files */
    uint64_t hash;    /* of them all */
};

/* In `arena`. SX_FILE: one can't be read. */
SX_MUST_CHECK enum sx_status sx_ranks_list_files(const struct stachio_query *query, struct sx_arena *arena,
                                                 struct sx_ranks_files *out_files, struct sx_error *error);

/* Collective, where the ranks' plans are the same and their files are not: *out_verdict names the first rank
 * with other files than rank 0, and the table. */
SX_MUST_CHECK enum sx_status sx_ranks_compare_files(struct stachio_query *query,
                                                    const struct sx_ranks_files *files,
                                                    struct sx_error *out_verdict, struct sx_error *error);

#endif
