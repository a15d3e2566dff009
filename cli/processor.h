/* Whether this machine can run what the compiler made. */
#ifndef CLI_PROCESSOR_H
#define CLI_PROCESSOR_H

#include <stdbool.h>

/* Tells on standard error what is missing. */
bool processor_is_too_old(void);

#endif
