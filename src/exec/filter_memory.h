/* Filters of exchanges (exchange_filter.h) that nearly all probe rows have passed, for later queries of the
 * same tables: to make one takes time. Each rank remembers its own; what all say counts. Not thread-safe. */
#ifndef SX_EXEC_FILTER_MEMORY_H
#define SX_EXEC_FILTER_MEMORY_H

#include <stdint.h>

enum { SX_FILTER_RECORDS = 64 /* probe sides; those known longest are forgotten */ };

struct sx_filter_record {
    uint64_t probe;     /* whose rows: a hash of files and columns; 0: there is none */
    int64_t build_rows; /* of the last such filter */
};

/* Starts zeroed. */
struct sx_filter_memory {
    struct sx_filter_record records[SX_FILTER_RECORDS];
    uint64_t n_kept;
};

/* The build rows of a filter that was useless for the probe side; 0: none is known. */
int64_t sx_filter_memory_find(const struct sx_filter_memory *memory, uint64_t probe);
/* In place of what was known of it. */
void sx_filter_memory_keep(struct sx_filter_memory *memory, uint64_t probe, int64_t build_rows);

#endif
