/* What is remembered of queries that rank 0 began by itself and gave up, or that took it some milliseconds.
 * The first run may take long because nothing has been read yet, which later runs need not pay for: so what
 * was given up is tried once more, with more time. After two runs each way the times decide; a quick one
 * alone needs no others. Not thread-safe. */
#ifndef SX_API_ALONE_MEMORY_H
#define SX_API_ALONE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

enum sx_alone_way { SX_WAY_ALONE, SX_WAY_TOGETHER, SX_WAYS };

enum { SX_ALONE_RECORDS = 64 /* queries; those used least recently are forgotten */ };

struct sx_alone_record {
    uint64_t query; /* the hash of its text */
    uint64_t used;  /* 0: there is none */
    int n_given_up;
    int n_runs[SX_WAYS];       /* to their end, from the first on that was given up or slow */
    int64_t least_ns[SX_WAYS]; /* of these */
};

/* Starts zeroed. */
struct sx_alone_memory {
    struct sx_alone_record records[SX_ALONE_RECORDS];
    uint64_t uses;
};

/* Which way the query goes next; by its text it is known again. */
enum sx_alone_way sx_alone_memory_way(const struct sx_alone_memory *memory, const char *sql);
/* How many times the usual time rank 0 gets for it. */
int sx_alone_memory_patience(const struct sx_alone_memory *memory, const char *sql);
void sx_alone_memory_gave_up(struct sx_alone_memory *memory, const char *sql);
/* It went that way, to its end. */
void sx_alone_memory_ran(struct sx_alone_memory *memory, const char *sql, enum sx_alone_way way, int64_t ns);
/* The ranks could not run it together: from then on rank 0 does, unless it has given it up too often. */
void sx_alone_memory_failed_together(struct sx_alone_memory *memory, const char *sql);

#endif
