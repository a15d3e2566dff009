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

template <typename S> constexpr int join_bucket_slots = CUDA_JOIN_BUCKET_BYTES / sizeof(S);

/* One of `n`, by the hash's high bits. */
__device__ static inline uint64_t join_place(uint64_t hash, uint64_t n) {
    return __umul64hi(hash, n);
}
/* What a slot of a row with the hash has above the row. */
template <typename S>
__device__ static inline S join_tag(const struct cuda_join_table &table, uint64_t hash) {
    return (S)hash << table.row_bits;
}
template <typename S>
__device__ static inline bool join_tag_matches(const struct cuda_join_table &table, S slot, uint64_t hash) {
    return (slot ^ join_tag<S>(table, hash)) >> table.row_bits == 0;
}
template <typename S>
__device__ static inline int64_t join_row_of(const struct cuda_join_table &table, S slot) {
    return (int64_t)(slot & (((S)1 << table.row_bits) - 1)) - 1;
}

/* Two are a bucket; each comes by one load. */
template <typename S> struct alignas(16) join_half {
    S slots[join_bucket_slots<S> / 2];
};

/* A bucket, and bits for those of its slots that are taken and have the hash's tag. */
template <typename S> struct join_bucket {
    S slots[join_bucket_slots<S>];
    uint32_t tagged;
    bool has_empty;
};

template <typename S>
__device__ static inline struct join_bucket<S> join_open(const struct cuda_join_table &table, const S *slots,
                                                         uint64_t number, uint64_t hash) {
    enum { SLOTS = join_bucket_slots<S> };
    const struct join_half<S> *halves = (const struct join_half<S> *)(slots + number * SLOTS);
    const struct join_half<S> low = halves[0], high = halves[1];
    struct join_bucket<S> bucket;
    bucket.tagged = 0;
    bucket.has_empty = false;
    SX_UNROLL
    for (int k = 0; k < SLOTS; k++) {
        const S slot = k < SLOTS / 2 ? low.slots[k % (SLOTS / 2)] : high.slots[k % (SLOTS / 2)];
        bucket.slots[k] = slot;
        bucket.tagged |= (uint32_t)(slot && join_tag_matches(table, slot, hash)) << k;
        bucket.has_empty |= !slot;
    }
    return bucket;
}

/* Slot k, without an array in memory. */
template <typename S>
__device__ static inline S join_slot_at(const struct join_bucket<S> &bucket, int k) {
    S slot = bucket.slots[0];
    SX_UNROLL
    for (int j = 1; j < join_bucket_slots<S>; j++)
        slot = j == k ? bucket.slots[j] : slot;
    return slot;
}

__device__ static inline uint64_t join_next(uint64_t number, uint64_t n) {
    return number + 1 == n ? 0 : number + 1;
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

/* Of at least four. Neighbours' words lie side by side. */
__device__ static inline uint64_t join_filter_word(uint64_t hash, uint64_t n_words) {
    return join_place(hash, n_words >> 2) << 2 | (hash & 3);
}
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

/* On the host: `launch` with the keys, and with the slots as what they are. */
template <typename F>
static void join_launch(const struct cuda_join_table *table, const struct cuda_join_keys *keys, F launch) {
    const struct word_key word = {keys->first};
    const struct any_keys any = {keys->all, keys->n};
    const bool is_wide = table->slot_bytes == sizeof(uint64_t);
    if (any.keys && is_wide)
        launch(any, (uint64_t *)table->slots);
    else if (any.keys)
        launch(any, (uint32_t *)table->slots);
    else if (is_wide)
        launch(word, (uint64_t *)table->slots);
    else
        launch(word, (uint32_t *)table->slots);
}

#endif
