/* stachio bench primitives, stachio bench scan. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "options.h"

/* argv[0] is "bench". Returns the exit status. */
int bench_main(int argc, char **argv, const char *help);

/* bench_scan.c; argv[0] is "scan". */
int bench_scan_main(int argc, char **argv, const char *help);

#endif
