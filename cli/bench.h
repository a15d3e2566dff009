/* stachio bench primitives, scan, exchange, join. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "options.h"

/* argv[0] is "bench". Returns the exit status. */
int bench_main(int argc, char **argv, const char *help);

enum { BENCH_MOST_SIZES = 16 };

/* "1048576,16777216", from 1024, into an array of BENCH_MOST_SIZES. Returns the exit status. */
int bench_read_sizes(const char *text, int64_t *out_sizes, int *out_n);

/* bench_exchange.c; argv[0] is "exchange". */
int bench_exchange_main(int argc, char **argv, const char *help);

/* bench_join.c; argv[0] is "join". */
int bench_join_main(int argc, char **argv, const char *help);

/* bench_scan.c; argv[0] is "scan". */
int bench_scan_main(int argc, char **argv, const char *help);

#endif
