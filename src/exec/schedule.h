/* Which pipelines run at the same time. */
#ifndef SX_EXEC_SCHEDULE_H
#define SX_EXEC_SCHEDULE_H

#include "exec/run.h"

/* The next round, short pipelines first: the first one that has not run, and short ones of those behind it
 * that wait for nothing. Short: with fewer batches than there are workers, so that what they wait for (a
 * device, a file) is waited for together; in all they read no more than a scan may read ahead, and no table
 * is read by two, since the second finds what the first has read only later. One pipeline at a time between
 * ranks, whose collective calls have one order, and where less is to overlap than could. `out` has room for
 * run->n_workers + 1. Returns how many; 0: all have run. They count as run from here on. */
int sx_schedule_next(struct sx_run *run, struct sx_pipeline **out);

/* Whether all that it reads is there, and the pipelines into its sink that come before it have ended. */
bool sx_schedule_is_ready(const struct sx_pipeline *pipeline);

/* The first that has not run; NULL: there is none. */
struct sx_pipeline *sx_schedule_behind(const struct sx_run *run);

/* Whether both are scans of the same files: the second finds what the first has read only when that is
 * decoded. */
bool sx_schedule_reads_same(const struct sx_pipeline *a, const struct sx_pipeline *b);

/* The first behind `past` (NULL: of all) that has not run and reads from storage, of those near enough; NULL:
 * there is none. */
struct sx_pipeline *sx_schedule_ahead(const struct sx_run *run, const struct sx_pipeline *past);

/* Whether one of the round, or one in front of it that has not run, reads the same, so that there will be
 * something to find. */
bool sx_schedule_repeats(const struct sx_run *run, const struct sx_pipeline *ahead);

/* Whether it may be looked at before those in front of it are through. */
bool sx_schedule_may_be_far(const struct sx_pipeline *pipeline);

/* Whether storage may have batches for it that no worker has yet. */
bool sx_schedule_has_more(const struct sx_pipeline *pipeline);

#endif
