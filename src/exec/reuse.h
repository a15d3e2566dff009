/* Which columns several scans of a plan read. */
#ifndef SX_EXEC_REUSE_H
#define SX_EXEC_REUSE_H

#include "exec/run.h"
#include "storage/reuse.h"

/* A column of a table's files. */
struct sx_reused_column {
    const struct sx_scan_plan *scan; /* the first that reads it */
    const char *source;
    int n_readers; /* scans, 2 or more */
};

/* Fills run->reused with those that have room in options.reuse_bytes as they are before they are compressed,
 * and makes run->reuse where there is any. Not where the answer is written. */
SX_MUST_CHECK enum sx_status sx_reuse_plan(struct sx_run *run, const struct sx_plan *root,
                                           struct sx_error *error);
/* Whether two scans are of one table's files. */
bool sx_scans_same_files(const struct sx_scan_plan *a, const struct sx_scan_plan *b);
/* Nodes of the plan that are scans. */
int sx_plan_scans(const struct sx_plan *plan);
/* Scans of the run that read the scan's column; 0: it is not reused. */
int sx_reuse_readers(const struct sx_run *run, const struct sx_scan_plan *scan, int32_t column);

#endif
