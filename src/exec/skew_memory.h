/* What samples of probe sides have told, for later queries of the same tables: reading them takes longer than
 * much else of a short query. Each rank remembers its own. Not thread-safe. */
#ifndef SX_EXEC_SKEW_MEMORY_H
#define SX_EXEC_SKEW_MEMORY_H

#include <stdint.h>

enum {
    SX_SKEW_MOST_HEAVY = 64, /* keys */
    SX_SKEW_RECORDS = 64     /* samples; those used least recently are forgotten */
};

struct sx_heavy_key {
    uint64_t hash;
    int64_t rows;
};

/* The most frequent keys, those with most rows first. */
struct sx_heavy_list {
    int64_t rows; /* sampled */
    int64_t n;
    struct sx_heavy_key keys[SX_SKEW_MOST_HEAVY];
};

struct sx_skew_record {
    uint64_t sample; /* of what: a hash of files and columns */
    uint64_t used;   /* 0: there is none */
    struct sx_heavy_list list;
};

/* Starts zeroed. */
struct sx_skew_memory {
    struct sx_skew_record records[SX_SKEW_RECORDS];
    uint64_t uses;
};

/* NULL: nothing is known of it. Valid until the next call of sx_skew_memory_keep. */
const struct sx_heavy_list *sx_skew_memory_find(struct sx_skew_memory *memory, uint64_t sample);
/* In place of what was known of it. */
void sx_skew_memory_keep(struct sx_skew_memory *memory, uint64_t sample, const struct sx_heavy_list *list);

#endif
