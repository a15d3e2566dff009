/* What this process may use of the machine. */
#ifndef SX_API_SYSTEM_H
#define SX_API_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of memory: the machine's, or less where a control group says so. */
uint64_t sx_system_memory(void);

/* Seconds of the monotonic clock. */
double sx_system_seconds(void);

#endif
