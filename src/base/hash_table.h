/* Objects that are found by a hash: chains through links inside of them. Not thread-safe. */
#ifndef SX_BASE_HASH_TABLE_H
#define SX_BASE_HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct sx_hash_link {
    struct sx_hash_link *next; /* the table's */
    uint64_t hash;
};

struct sx_hash_table {
    struct sx_hash_link **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_links;
};

/* `hash` with `value` mixed in; all bits count. */
static inline uint64_t sx_hash_mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

SX_MUST_CHECK enum sx_status sx_hash_table_create(struct sx_hash_table *out_table, struct sx_error *error);
/* What is in it stays the caller's. Zeroed tables are allowed. */
void sx_hash_table_release(struct sx_hash_table *table);

/* link->hash is set. */
void sx_hash_table_add(struct sx_hash_table *table, struct sx_hash_link *link);
/* It is in the table. */
void sx_hash_table_remove(struct sx_hash_table *table, const struct sx_hash_link *link);
/* The first link with that hash, and the next one with the same; NULL: there is none. */
struct sx_hash_link *sx_hash_table_find(const struct sx_hash_table *table, uint64_t hash);
struct sx_hash_link *sx_hash_table_next(const struct sx_hash_link *link);

#endif
