/* Making the table of a join.
 *
 * Bytes a build row moves, with one key of 8 bytes. Ranked: 8 of the key, 8 again where its slot or its row
 * is listed, and 8 to that list, or 4; and a quarter of a byte there and back, mostly in the cache, for each
 * place, with 24 for the ranks of 32. Claiming: 8 of the key, 8 to the list of slots, and a sector of 32 at
 * random there and back for the slot. Unique keys need no more. Otherwise counting: 8 + 8 in lists and a
 * sector there and back; sums: 24 for each of two slots; filling: 16 of lists, a sector of `starts` and one
 * of `runs`, which keys in order make 8 each. The filter takes a sector at random, mostly in the cache. */
#include "backend/cuda/block.h"
#include "backend/cuda/join_kernel.h"

enum { RANGE_ROWS = 16 * CUDA_THREADS /* that a block looks at, at least */, RANK_THREADS = 1024 };

/* ---- ranges ---- */

__global__ void widen(struct cuda_join_key key, int64_t rows, struct cuda_join_bounds *bounds) {
    int64_t min = INT64_MAX, max = INT64_MIN;
    bool has_null = false;
    for (int64_t i = cuda_thread(); i < rows; i += cuda_threads()) {
        const bool valid = cuda_is_valid(key.column, i);
        has_null |= !valid;
        if (!valid || key.form != CUDA_JOIN_WORD)
            continue;
        const int64_t word = join_word(key.column, i);
        min = word < min ? word : min;
        max = word > max ? word : max;
    }
    for (int by = CUDA_WARP / 2; by > 0; by /= 2) {
        const int64_t other_min = __shfl_xor_sync(0xffffffffu, min, by);
        const int64_t other_max = __shfl_xor_sync(0xffffffffu, max, by);
        min = other_min < min ? other_min : min;
        max = other_max > max ? other_max : max;
    }
    has_null = __any_sync(0xffffffffu, has_null);
    if (threadIdx.x % CUDA_WARP != 0)
        return;
    if (min <= max) {
        constexpr unsigned long long HIGH = 1ull << 63;
        atomicMax((unsigned long long *)&bounds->below, ~((unsigned long long)min ^ HIGH));
        atomicMax((unsigned long long *)&bounds->max, (unsigned long long)max ^ HIGH);
    }
    if (has_null)
        bounds->has_null = 1; /* all write the same */
}

/* ---- ranks ---- */

/* A place that is taken stays so, so an old value that tells it is as good as a new one: only places that are
 * free cost an atomic operation. */
__global__ void take_places(struct cuda_join_table table, struct word_key keys, int64_t rows,
                            int64_t *duplicates) {
    for (int64_t i = cuda_thread(); i < rows; i += cuda_threads()) {
        if (!can_match(keys, i))
            continue;
        const int64_t place = rank_place(table, keys, i);
        const uint32_t bit = 1u << place % CUDA_JOIN_PLACES;
        uint32_t *taken = &table.ranked[place / CUDA_JOIN_PLACES].taken;
        uint32_t found = *taken;
        if (!(found & bit))
            found = atomicOr(taken, bit);
        if (found & bit && *(volatile int64_t *)duplicates == 0)
            *(volatile int64_t *)duplicates = 1;
    }
}

__global__ void count_places(const struct cuda_join_rank *ranked, int64_t n, int32_t *counts) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        counts[i] = __popc(ranked[i].taken);
}

__global__ void set_ranks(struct cuda_join_rank *ranked, int64_t n, const int64_t *sums, int64_t *slots) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        ranked[i].before = (uint32_t)sums[i];
    if (cuda_thread() == 0)
        *slots = sums[n];
}

/* One block of RANK_THREADS. */
__global__ void __launch_bounds__(RANK_THREADS)
    rank_few(struct cuda_join_rank *ranked, int64_t n, int64_t *slots) {
    uint32_t before = 0;
    for (int64_t first = 0; first < n; first += RANK_THREADS) {
        const int64_t i = first + threadIdx.x;
        uint32_t total;
        const uint32_t count = i < n ? (uint32_t)__popc(ranked[i].taken) : 0;
        const uint32_t own = block_exclusive<uint32_t, RANK_THREADS>(count, &total);
        if (i < n)
            ranked[i].before = before + own;
        before += total;
    }
    if (threadIdx.x == 0)
        *slots = before;
}

__global__ void list_slots(struct cuda_join_table table, struct word_key keys, int64_t rows, int64_t *slots) {
    for (int64_t i = cuda_thread(); i < rows; i += cuda_threads())
        slots[i] = can_match(keys, i) ? ranked_slot(table, keys, i) : -1;
}

/* Rows of one slot may write at the same time: any of them will do. */
__global__ void list_rows(struct cuda_join_table table, struct word_key keys, int64_t rows) {
    for (int64_t i = cuda_thread(); i < rows; i += cuda_threads())
        if (can_match(keys, i))
            *(volatile uint32_t *)&table.row_of[ranked_slot(table, keys, i)] = (uint32_t)i;
}

/* ---- slots ---- */

/* What the slot had before: 0 where it is taken now. */
__device__ static inline uint32_t claim_slot(uint32_t *slot, uint32_t own) {
    return atomicCAS(slot, 0u, own);
}
__device__ static inline uint64_t claim_slot(uint64_t *slot, uint64_t own) {
    return atomicCAS((unsigned long long *)slot, 0ull, (unsigned long long)own);
}

/* *out_met: another row has the same keys. Only slots that were seen empty cost an atomic operation. */
template <typename K, typename S>
__device__ static inline int64_t claim_hashed(const struct cuda_join_table &table, const K &keys, S *slots,
                                              int64_t row, bool *out_met) {
    enum { SLOTS = join_bucket_slots<S> };
    const uint64_t hash = place_hash(keys, row), n_buckets = table.n_slots / SLOTS;
    const S own = join_tag<S>(table, hash) | (S)(row + 1);
    for (uint64_t bucket = join_place(hash, n_buckets);; bucket = join_next(bucket, n_buckets))
        for (int k = 0; k < SLOTS; k++) { /* neighbours begin at different slots */
            const uint64_t slot = bucket * SLOTS + (hash + (uint64_t)k) % SLOTS;
            S found = slots[slot];
            if (!found)
                found = claim_slot(&slots[slot], own);
            if (!found)
                return (int64_t)slot;
            if (join_tag_matches(table, found, hash) &&
                rows_equal(keys, row, keys, join_row_of(table, found))) {
                *out_met = true;
                return (int64_t)slot;
            }
        }
}

template <typename K, typename S>
__global__ void claim(struct cuda_join_table table, K keys, S *slots, int64_t first, int64_t rows,
                      int64_t *out_slots, int64_t *duplicates) {
    for (int64_t i = first + cuda_thread(); i < first + rows; i += cuda_threads()) {
        bool met = false;
        int64_t slot = -1;
        if (can_match(keys, i))
            slot = claim_hashed(table, keys, slots, i, &met);
        out_slots[i] = slot;
        if (met && *(volatile int64_t *)duplicates == 0)
            *(volatile int64_t *)duplicates = 1;
    }
}

/* ---- runs ---- */

/* Lanes of one slot send one addition, so that a key of many rows is not a queue at one address. */
__global__ void count_slots(const int64_t *slots, int64_t rows, int64_t *counts, int64_t *ranks) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    for (int64_t base = cuda_thread() - lane; base < rows; base += cuda_threads()) {
        const int64_t i = base + lane, slot = i < rows ? slots[i] : -1;
        const unsigned same = __match_any_sync(0xffffffffu, slot);
        const int leader = __ffs((int)same) - 1;
        int64_t before = 0;
        if (slot >= 0 && lane == leader)
            before =
                (int64_t)atomicAdd((unsigned long long *)&counts[slot], (unsigned long long)__popc(same));
        before = __shfl_sync(0xffffffffu, before, leader);
        if (slot >= 0)
            ranks[i] = before + __popc(same & ((1u << lane) - 1));
    }
}

__global__ void fill_runs(const int64_t *slots, const int64_t *ranks, int64_t rows, const int64_t *starts,
                          int64_t *runs) {
    for (int64_t i = cuda_thread(); i < rows; i += cuda_threads())
        if (slots[i] >= 0)
            runs[starts[slots[i]] + ranks[i]] = i;
}

/* ---- filters ---- */

template <typename K> __global__ void fill_bloom(struct cuda_join_table table, K keys, int64_t rows) {
    for (int64_t i = cuda_thread(); i < rows; i += cuda_threads()) {
        if (!can_match(keys, i))
            continue;
        const uint64_t hash = place_hash(keys, i);
        const uint32_t bits = bloom_bits(hash);
        uint32_t *word = &table.filter[join_filter_word(hash, table.filter_words)];
        if ((*word & bits) != bits)
            atomicOr(word, bits);
    }
}

extern "C" {

void cuda_join_widen(cudaStream_t stream, const struct cuda_join_key *key, int64_t rows,
                     struct cuda_join_bounds *bounds) {
    SX_LAUNCH(widen, cuda_blocks(rows, RANGE_ROWS), CUDA_THREADS, 0, stream, *key, rows, bounds);
}
void cuda_join_take_places(cudaStream_t stream, const struct cuda_join_table *table, int64_t rows,
                           int64_t *duplicates) {
    const struct word_key word = {table->keys.first};
    SX_LAUNCH(take_places, cuda_many_blocks(rows), CUDA_THREADS, 0, stream, *table, word, rows, duplicates);
}
void cuda_join_rank_few(cudaStream_t stream, struct cuda_join_rank *ranked, int64_t n, int64_t *out_slots) {
    SX_LAUNCH(rank_few, 1, RANK_THREADS, 0, stream, ranked, n, out_slots);
}
void cuda_join_count_places(cudaStream_t stream, const struct cuda_join_rank *ranked, int64_t n,
                            int32_t *out_counts) {
    SX_LAUNCH(count_places, cuda_blocks(n), CUDA_THREADS, 0, stream, ranked, n, out_counts);
}
void cuda_join_set_ranks(cudaStream_t stream, struct cuda_join_rank *ranked, int64_t n, const int64_t *sums,
                         int64_t *out_slots) {
    SX_LAUNCH(set_ranks, cuda_blocks(n), CUDA_THREADS, 0, stream, ranked, n, sums, out_slots);
}
void cuda_join_list_slots(cudaStream_t stream, const struct cuda_join_table *table, int64_t rows,
                          int64_t *out_slots) {
    const struct word_key word = {table->keys.first};
    SX_LAUNCH(list_slots, cuda_many_blocks(rows), CUDA_THREADS, 0, stream, *table, word, rows, out_slots);
}
void cuda_join_list_rows(cudaStream_t stream, const struct cuda_join_table *table, int64_t rows) {
    const struct word_key word = {table->keys.first};
    SX_LAUNCH(list_rows, cuda_many_blocks(rows), CUDA_THREADS, 0, stream, *table, word, rows);
}
void cuda_join_claim(cudaStream_t stream, const struct cuda_join_table *table, int64_t first, int64_t rows,
                     int64_t *out_slots, int64_t *duplicates) {
    join_launch(table, &table->keys, [=](auto keys, auto slots) {
        SX_LAUNCH(claim, cuda_many_blocks(rows), CUDA_THREADS, 0, stream, *table, keys, slots, first, rows,
                  out_slots, duplicates);
    });
}
void cuda_join_count(cudaStream_t stream, const int64_t *slots, int64_t rows, int64_t *counts,
                     int64_t *out_ranks) {
    SX_LAUNCH(count_slots, cuda_blocks(rows), CUDA_THREADS, 0, stream, slots, rows, counts, out_ranks);
}
void cuda_join_fill(cudaStream_t stream, const int64_t *slots, const int64_t *ranks, int64_t rows,
                    const int64_t *starts, int64_t *runs) {
    SX_LAUNCH(fill_runs, cuda_blocks(rows), CUDA_THREADS, 0, stream, slots, ranks, rows, starts, runs);
}
void cuda_join_fill_filter(cudaStream_t stream, const struct cuda_join_table *table, int64_t rows) {
    join_launch(table, &table->keys, [=](auto keys, auto) {
        SX_LAUNCH(fill_bloom, cuda_blocks(rows), CUDA_THREADS, 0, stream, *table, keys, rows);
    });
}
}
