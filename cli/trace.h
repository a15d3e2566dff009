/* The file of a trace. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "stachio.h"

/* Whatever became of what was traced. */
enum stachio_status trace_write(struct stachio_trace *trace, const char *path, struct stachio_error *error);

#endif
