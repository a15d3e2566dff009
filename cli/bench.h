/* stachio bench primitives. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "options.h"

/* argv[0] is "bench". Returns the exit status. */
int bench_main(int argc, char **argv, const char *help);

#endif
