/* Keys of joins in kernels: their words, hashes and equality, and the search for a slot. One key of the form
 * WORD is in the kernel's arguments, others are in an array; everything is a template over the two. */
#ifndef SX_BACKEND_CUDA_JOIN_KERNEL_H
#define SX_BACKEND_CUDA_JOIN_KERNEL_H

#include "backend/cuda/kernel.h"
#include "backend/cuda/launch_join.h"
#include "backend/cuda/value.h"
#include "tensor/semantics_date.h"

struct word_key {
    struct cuda_join_key key;
};
struct any_keys {
    const struct cuda_join_key *keys;
    int n;
};

/* ---- values ---- */

__device__ static inline int64_t join_word(const struct cuda_column &column, int64_t row) {
    switch (column.phys) {
    case SX_PHYS_I8: return cuda_load<int8_t>(column, row);
    case SX_PHYS_I16: return cuda_load<int16_t>(column, row);
    case SX_PHYS_I32: return cuda_load<int32_t>(column, row);
    case SX_PHYS_U8: return cuda_load<uint8_t>(column, row);
    case SX_PHYS_U16: return cuda_load<uint16_t>(column, row);
    case SX_PHYS_U32: return cuda_load<uint32_t>(column, row);
    case SX_PHYS_U64: return (int64_t)(cuda_load<uint64_t>(column, row) ^ UINT64_C(1) << 63);
    case SX_PHYS_F32: return (int64_t)sx_f64_bits((double)cuda_load<float>(column, row));
    case SX_PHYS_F64: return (int64_t)sx_f64_bits(cuda_load<double>(column, row));
    default: return cuda_load<int64_t>(column, row);
    }
}

__device__ static inline sx_u128 join_wide(const struct cuda_column &column, int64_t row) {
    if (column.phys == SX_PHYS_INTERVAL)
        return sx_interval_code(cuda_load<struct sx_interval>(column, row));
    return cuda_load<sx_u128>(column, row);
}

__device__ static inline uint64_t key_hash(const struct cuda_join_key &key, int64_t row) {
    if (!cuda_is_valid(key.column, row))
        return SX_HASH_NULL;
    if (key.form == CUDA_JOIN_WORD)
        return sx_hash_u64((uint64_t)join_word(key.column, row));
    if (key.form == CUDA_JOIN_WIDE)
        return sx_hash_u128(join_wide(key.column, row));
    const struct sx_string view = cuda_load<struct sx_string>(key.column, row);
    return sx_hash_string(&view);
}

/* NULLs get here only where they are equal. */
__device__ static inline bool key_equal(const struct cuda_join_key &a, int64_t row_a,
                                        const struct cuda_join_key &b, int64_t row_b) {
    const bool valid_a = cuda_is_valid(a.column, row_a), valid_b = cuda_is_valid(b.column, row_b);
    if (!valid_a || !valid_b)
        return valid_a == valid_b;
    if (a.form == CUDA_JOIN_WORD)
        return join_word(a.column, row_a) == join_word(b.column, row_b);
    if (a.form == CUDA_JOIN_WIDE)
        return join_wide(a.column, row_a) == join_wide(b.column, row_b);
    const struct sx_string view_a = cuda_load<struct sx_string>(a.column, row_a);
    const struct sx_string view_b = cuda_load<struct sx_string>(b.column, row_b);
    return sx_string_equal(&view_a, &view_b);
}

/* ---- rows ---- */

__device__ static inline bool can_match(const struct cuda_join_key &key, int64_t row) {
    return key.null_equal || cuda_is_valid(key.column, row);
}
__device__ static inline bool can_match(const struct word_key &keys, int64_t row) {
    return can_match(keys.key, row);
}
__device__ static inline bool can_match(const struct any_keys &keys, int64_t row) {
    for (int k = 0; k < keys.n; k++)
        if (!can_match(keys.keys[k], row))
            return false;
    return true;
}

/* By which a row has its place in tables and filters. */
__device__ static inline uint64_t place_hash(const struct word_key &keys, int64_t row) {
    if (!cuda_is_valid(keys.key.column, row))
        return SX_HASH_NULL;
    return cuda_near_hash((uint64_t)join_word(keys.key.column, row));
}
__device__ static inline uint64_t place_hash(const struct any_keys &keys, int64_t row) {
    uint64_t hash = key_hash(keys.keys[0], row);
    for (int k = 1; k < keys.n; k++)
        hash = sx_hash_combine(hash, key_hash(keys.keys[k], row));
    return keys.n > 1 ? sx_hash_u64(hash) : hash; /* combining leaves the high bits weak */
}

__device__ static inline bool rows_equal(const struct word_key &a, int64_t row_a, const struct word_key &b,
                                         int64_t row_b) {
    return key_equal(a.key, row_a, b.key, row_b);
}
__device__ static inline bool rows_equal(const struct any_keys &a, int64_t row_a, const struct any_keys &b,
                                         int64_t row_b) {
    for (int k = 0; k < a.n; k++)
        if (!key_equal(a.keys[k], row_a, b.keys[k], row_b))
            return false;
    return true;
}

/* ---- slots ---- */

enum { JOIN_TAG_SHIFT = 48 };

__device__ static inline uint64_t join_tagged(uint64_t hash, int64_t row) {
    return hash << JOIN_TAG_SHIFT | (uint64_t)(row + 1);
}
__device__ static inline int64_t join_row_of(uint64_t slot) {
    return (int64_t)(slot & ((UINT64_C(1) << JOIN_TAG_SHIFT) - 1)) - 1;
}
__device__ static inline bool join_tag_matches(uint64_t slot, uint64_t hash) {
    return slot >> JOIN_TAG_SHIFT == (hash & 0xffff);
}
/* Of at least four slots, or words of a filter. */
__device__ static inline uint64_t join_first_slot(uint64_t hash, uint64_t n_slots) {
    return __umul64hi(hash, n_slots >> 2) << 2 | (hash & 3);
}
__device__ static inline uint64_t join_next_slot(uint64_t slot, uint64_t n_slots) {
    return slot + 1 == n_slots ? 0 : slot + 1;
}

/* Slots that lie in one sector, and come together. */
struct __attribute__((aligned(16))) join_slot_pair {
    uint64_t slots[2];
};
static_assert(2 * sizeof(struct join_slot_pair) == CUDA_JOIN_QUAD * sizeof(uint64_t), "two are a sector");

/* The first slot from *slot on that is empty or has the hash's tag, which *slot becomes. Build rows are not
 * looked at, so that threads of a warp look at theirs together. */
__device__ static inline uint64_t join_seek(const struct cuda_join_table &table, uint64_t hash,
                                            uint64_t *slot) {
    for (;; *slot = join_next_slot(*slot | (CUDA_JOIN_QUAD - 1), table.n_slots)) {
        const uint64_t first = *slot / CUDA_JOIN_QUAD * CUDA_JOIN_QUAD;
        const struct join_slot_pair *pairs = (const struct join_slot_pair *)(table.slots + first);
        const struct join_slot_pair low = pairs[0], high = pairs[1];
        const uint64_t slots[CUDA_JOIN_QUAD] = {low.slots[0], low.slots[1], high.slots[0], high.slots[1]};
        unsigned stops = 0;
        for (int k = 0; k < CUDA_JOIN_QUAD; k++)
            stops |= (unsigned)(!slots[k] || join_tag_matches(slots[k], hash)) << k;
        stops &= ~0u << (*slot - first);
        if (!stops)
            continue;
        uint64_t found = slots[0];
        const int at = __ffs((int)stops) - 1;
        for (int k = 1; k < CUDA_JOIN_QUAD; k++)
            found = k == at ? slots[k] : found;
        *slot = first + (uint64_t)at;
        return found;
    }
}

/* ---- ranks ---- */

/* In a ranked table, of a row that can match; -1: its key is outside of the range. */
__device__ static inline int64_t rank_place(const struct cuda_join_table &table, const struct word_key &keys,
                                            int64_t row) {
    if (!cuda_is_valid(keys.key.column, row))
        return (int64_t)table.n_words;
    const uint64_t distance = (uint64_t)join_word(keys.key.column, row) - (uint64_t)table.min;
    return distance < table.n_words ? (int64_t)distance : -1;
}
__device__ static inline int64_t rank_place(const struct cuda_join_table &, const struct any_keys &,
                                            int64_t) {
    return -1; /* ranked tables have one key */
}

/* -1: no build row has the row's key. */
template <typename K>
__device__ static inline int64_t ranked_slot(const struct cuda_join_table &table, const K &keys,
                                             int64_t row) {
    const int64_t place = rank_place(table, keys, row);
    if (place < 0)
        return -1;
    const struct cuda_join_rank rank = table.ranked[place / CUDA_JOIN_PLACES];
    const uint32_t bit = 1u << place % CUDA_JOIN_PLACES;
    return rank.taken & bit ? (int64_t)rank.before + __popc(rank.taken & (bit - 1)) : -1;
}

/* ---- bloom filter ---- */

/* Four bits of a word of 32: low bits of the hash choose them, the high bits and the lowest two the word. */
__device__ static inline uint32_t bloom_bits(uint64_t hash) {
    hash >>= 2;
    return 1u << (hash & 31) | 1u << (hash >> 5 & 31) | 1u << (hash >> 10 & 31) | 1u << (hash >> 15 & 31);
}

__device__ static inline struct word_key build_keys(const struct cuda_join_table &table,
                                                    const struct word_key &) {
    return {table.keys.first};
}
__device__ static inline struct any_keys build_keys(const struct cuda_join_table &table,
                                                    const struct any_keys &) {
    return {table.keys.all, table.keys.n};
}

#endif
