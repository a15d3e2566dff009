#include <string.h>

#include "storage/write_values.h"
#include "tensor/semantics.h"

enum { LEAST_ENTRIES = 1 << 10, MOST_ENTRIES = 1 << 26, SLOTS_PER_ENTRY = 2 };

unsigned sx_write_dictionary_bits(const struct sx_write_dictionary *dictionary) {
    unsigned bits = dictionary->n_entries ? sx_bits_of((uint64_t)dictionary->n_entries - 1) : 0;
    return bits ? bits : 1;
}

/* With the codes that its entries need at the least. */
static bool is_too_large(const struct sx_write_dictionary *dictionary) {
    int64_t code_bytes = dictionary->n_codes / 8 * sx_write_dictionary_bits(dictionary);
    return dictionary->n_entries >= MOST_ENTRIES ||
           dictionary->plain_bytes + code_bytes > dictionary->most_bytes;
}

/* Room for twice as many entries; the slots are free afterwards. */
static bool grow_memory(struct sx_write_dictionary *dictionary, struct sx_error *error) {
    const size_t width = dictionary->entries.width;
    const int32_t capacity = dictionary->capacity ? 2 * dictionary->capacity : LEAST_ENTRIES;
    const int64_t n_slots = (int64_t)capacity * SLOTS_PER_ENTRY;
    void *slots = dictionary->slots;
    if (sx_pool_resize(dictionary->pool, &dictionary->memory, (size_t)dictionary->capacity * width,
                       (size_t)capacity * width, error) != SX_OK)
        return false;
    dictionary->entries.values = dictionary->memory;
    dictionary->capacity = capacity;
    if (sx_pool_resize(dictionary->pool, &slots, (size_t)dictionary->n_slots * sizeof *dictionary->slots,
                       (size_t)n_slots * sizeof *dictionary->slots, error) != SX_OK)
        return false;
    dictionary->slots = slots;
    dictionary->n_slots = n_slots;
    memset(slots, 0xff, (size_t)n_slots * sizeof *dictionary->slots);
    return true;
}

#define KEY              uint32_t
#define HASH(key)        sx_hash_u64(key)
#define EQUAL(a, b)      ((a) == (b))
#define PLAIN_BYTES(key) ((int64_t)sizeof(key))
#define NAME             add_u32
#define GROW_NAME        grow_u32
#include "storage/write_dictionary.tmpl.h"

#define KEY              uint64_t
#define HASH(key)        sx_hash_u64(key)
#define EQUAL(a, b)      ((a) == (b))
#define PLAIN_BYTES(key) ((int64_t)sizeof(key))
#define NAME             add_u64
#define GROW_NAME        grow_u64
#include "storage/write_dictionary.tmpl.h"

#define KEY              struct sx_string
#define HASH(key)        sx_hash_string(&(key))
#define EQUAL(a, b)      sx_string_equal(&(a), &(b))
#define PLAIN_BYTES(key) ((int64_t)(key).length_bytes + (int64_t)sizeof(uint32_t))
#define NAME             add_text
#define GROW_NAME        grow_text
#include "storage/write_dictionary.tmpl.h"

enum sx_write_coded sx_write_dictionary_add(struct sx_write_dictionary *dictionary, const void *values,
                                            int64_t count, int32_t *out_codes, struct sx_error *error) {
    if (dictionary->entries.physical == SX_PARQUET_BYTE_ARRAY)
        return add_text(dictionary, values, count, out_codes, error);
    if (dictionary->entries.width == sizeof(uint32_t))
        return add_u32(dictionary, values, count, out_codes, error);
    if (dictionary->entries.width == sizeof(uint64_t))
        return add_u64(dictionary, values, count, out_codes, error);
    return SX_CODED_TOO_LARGE; /* fixed-length bytes: of decimals, which seldom repeat */
}

void sx_write_dictionary_release(struct sx_write_dictionary *dictionary) {
    if (dictionary->memory)
        sx_pool_free(dictionary->pool, dictionary->memory,
                     (size_t)dictionary->capacity * dictionary->entries.width);
    if (dictionary->slots)
        sx_pool_free(dictionary->pool, dictionary->slots,
                     (size_t)dictionary->n_slots * sizeof *dictionary->slots);
    *dictionary = (struct sx_write_dictionary){.pool = dictionary->pool};
}
