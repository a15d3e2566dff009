#include "base/hash_table.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 1024 };

static struct sx_hash_link **bucket_of(const struct sx_hash_table *table, uint64_t hash) {
    return &table->buckets[hash & (table->n_buckets - 1)];
}

enum sx_status sx_hash_table_create(struct sx_hash_table *out_table, struct sx_error *error) {
    struct sx_hash_link **buckets = calloc(FIRST_BUCKETS, sizeof *buckets);
    if (!buckets)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a hash table");
    *out_table = (struct sx_hash_table){buckets, FIRST_BUCKETS, 0};
    return SX_OK;
}

void sx_hash_table_release(struct sx_hash_table *table) {
    free(table->buckets);
    *table = (struct sx_hash_table){0};
}

static void add_link(struct sx_hash_table *table, struct sx_hash_link *link) {
    struct sx_hash_link **bucket = bucket_of(table, link->hash);
    link->next = *bucket;
    *bucket = link;
}

/* Longer chains do no harm where there is no memory for more buckets. */
static void grow(struct sx_hash_table *table) {
    const struct sx_hash_table old = *table;
    struct sx_hash_link **grown = calloc(2 * old.n_buckets, sizeof *grown);
    if (!grown)
        return;
    table->buckets = grown;
    table->n_buckets = 2 * old.n_buckets;
    for (size_t b = 0; b < old.n_buckets; b++)
        for (struct sx_hash_link *link = old.buckets[b], *next; link; link = next) {
            next = link->next;
            add_link(table, link);
        }
    free(old.buckets);
}

void sx_hash_table_add(struct sx_hash_table *table, struct sx_hash_link *link) {
    if (table->n_links >= table->n_buckets)
        grow(table);
    add_link(table, link);
    table->n_links++;
}

void sx_hash_table_remove(struct sx_hash_table *table, const struct sx_hash_link *link) {
    struct sx_hash_link **at = bucket_of(table, link->hash);
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    table->n_links--;
}

static struct sx_hash_link *with_hash(struct sx_hash_link *link, uint64_t hash) {
    while (link && link->hash != hash)
        link = link->next;
    return link;
}

struct sx_hash_link *sx_hash_table_find(const struct sx_hash_table *table, uint64_t hash) {
    return with_hash(*bucket_of(table, hash), hash);
}

struct sx_hash_link *sx_hash_table_next(const struct sx_hash_link *link) {
    return with_hash(link->next, link->hash);
}
