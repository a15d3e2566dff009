/* The file of a trace. In its path {rank} is the rank's number; without that rank 0 alone writes one. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "stachio.h"

/* Whatever became of what was traced. `rank`: whose trace it is. */
enum stachio_status trace_write(struct stachio_trace *trace, const char *path, int rank,
                                struct stachio_error *error);
/* stachio_follow of a rank other than 0, traced where `path` (NULL: none) is one for each rank. */
enum stachio_status trace_follow(struct stachio_db *db, const char *path, struct stachio_error *error);

#endif
