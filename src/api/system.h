/* What this process may use of the machine. */
#ifndef SX_API_SYSTEM_H
#define SX_API_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of memory: the machine's, or less where a control group says so. */
uint64_t sx_system_memory(void);

/* The least limit of the process's control group and those above it, of both versions; UINT64_MAX: none.
 * Files are read below the folder `root`, as "". */
uint64_t sx_system_group_limit(const char *root);

/* Seconds of the monotonic clock. */
double sx_system_seconds(void);

#endif
