/* What the process's control group and those above it allow, of both versions: the least of their limits;
 * UINT64_MAX: none. Files are read below the folder `root`, as "". */
#ifndef SX_API_CONTROL_GROUP_H
#define SX_API_CONTROL_GROUP_H

#include <stdint.h>

/* Bytes. */
uint64_t sx_group_memory(const char *root);
/* Processors' time in a period over the period, a part of a processor counting as one. */
uint64_t sx_group_processors(const char *root);

#endif
