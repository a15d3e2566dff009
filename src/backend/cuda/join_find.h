/* The search for a probe row's build row, for kernels. */
#ifndef SX_BACKEND_CUDA_JOIN_FIND_H
#define SX_BACKEND_CUDA_JOIN_FIND_H

#include "backend/cuda/join_kernel.h"

struct found {
    int64_t slot;
    int64_t row; /* a build row with the keys; -1: none */
};

/* `build`: keys of build rows, wherever these are read. */
template <typename K, typename B, typename S>
__device__ static inline struct found find_hashed(const struct cuda_join_table &table, const K &keys,
                                                  const B &build, const S *slots, int64_t row) {
    enum { SLOTS = join_bucket_slots<S> };
    const uint64_t hash = place_hash(keys, row), n_buckets = table.n_slots / SLOTS;
    for (uint64_t number = join_place(hash, n_buckets);; number = join_next(number, n_buckets)) {
        const struct join_bucket<S> bucket = join_open(table, slots, number, hash);
        for (uint32_t left = bucket.tagged; left; left &= left - 1) {
            const int at = __ffs((int)left) - 1;
            const int64_t found = join_row_of(table, join_slot_at(bucket, at));
            if (rows_equal(keys, row, build, found))
                return {(int64_t)number * SLOTS + at, found};
        }
        if (bucket.has_empty)
            return {-1, -1};
    }
}

/* Of a row that can match, in a ranked table. With `needs_row` false the row of the slot is not looked at. */
template <typename K>
__device__ static inline struct found find_ranked(const struct cuda_join_table &table, const K &keys,
                                                  int64_t row, bool needs_row) {
    const int64_t slot = ranked_slot(table, keys, row);
    return {slot, needs_row && slot >= 0 && table.row_of ? (int64_t)table.row_of[slot] : slot};
}

template <typename K, typename S>
__device__ static inline struct found find(const struct cuda_join_table &table, const K &keys, const S *slots,
                                           int64_t row, bool needs_row) {
    if (!can_match(keys, row))
        return {-1, -1};
    return table.ranked ? find_ranked(table, keys, row, needs_row)
                        : find_hashed(table, keys, build_keys(table, keys), slots, row);
}

#endif
