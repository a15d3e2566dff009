/* Probing the table of a join.
 *
 * Bytes a probe row moves, with one key of 8 bytes. Finding: 8 of the key; a sector of 32 at random for the
 * bucket, and one for the build row's key where a slot's tag agrees (of a ranked table a quarter of a byte
 * for each place, mostly in the cache, and 4 where rows have another order); 8 to the list of entries. (Keys
 * in the slots, 64 bytes for four, and so one access: on an H100 look-ups took two thirds, and making the
 * table half as long again.) Where a row has one match at most: 1 + 2 of flags and, per pair, 4 written, 4 +
 * 8 read, 8 written. Otherwise a sector of `starts`, 8 of counts, 24 of sums, and per pair 8 of `runs` and 12
 * written, besides 16 per row. */
#include "backend/cuda/join_find.h"

/* ---- finding ---- */

__device__ static inline const struct cuda_join_key &first_key(const struct word_key &keys) {
    return keys.key;
}
__device__ static inline const struct cuda_join_key &first_key(const struct any_keys &keys) {
    return keys.keys[0];
}

/* The dictionary entry whose result is row i's; -1: it is NULL. */
template <typename K> __device__ static inline int64_t code_of(const K &keys, int64_t i) {
    const struct cuda_column &column = first_key(keys).column;
    return cuda_is_valid(column, i) ? ((const int32_t *)column.values)[i] : -1;
}

template <typename K, typename S>
__global__ void find_runs(struct cuda_join_table table, K keys, S *slots, struct cuda_join_found by_code,
                          int64_t rows, int64_t *entries, int64_t *counts) {
    for (int64_t i = cuda_thread(); i < rows; i += cuda_threads()) {
        const int64_t code = by_code.entries ? code_of(keys, i) : -1;
        if (code >= 0) {
            entries[i] = by_code.entries[code];
            counts[i] = by_code.counts[code];
            continue;
        }
        const int64_t slot = find(table, keys, slots, i, false).slot;
        const int64_t start = slot < 0 ? 0 : table.starts[slot];
        entries[i] = start;
        counts[i] = slot < 0 ? 0 : table.starts[slot + 1] - start;
    }
}

template <typename K, typename S>
__global__ void find_first(struct cuda_join_table table, K keys, S *slots, struct cuda_join_found by_code,
                           int64_t rows, int64_t *entries, uint8_t *flags) {
    for (int64_t i = cuda_thread(); i < rows; i += cuda_threads()) {
        const int64_t code = by_code.entries ? code_of(keys, i) : -1;
        const int64_t row = code >= 0 ? by_code.entries[code] : find(table, keys, slots, i, true).row;
        entries[i] = row;
        flags[i] = row >= 0;
    }
}

/* ---- filter ---- */

/* Without a look at the build rows. */
template <typename K>
__device__ static inline bool may_match(const struct cuda_join_table &table, const K &keys, int64_t row) {
    if (!can_match(keys, row))
        return false;
    if (table.ranked)
        return ranked_slot(table, keys, row) >= 0;
    const uint64_t hash = place_hash(keys, row);
    const uint32_t bits = bloom_bits(hash);
    return (table.filter[join_filter_word(hash, table.filter_words)] & bits) == bits;
}

template <typename K>
__global__ void test_rows(struct cuda_join_table table, K keys, struct cuda_join_found by_code,
                          const int32_t *selection, int64_t n, uint8_t *flags) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const int64_t row = selection ? selection[i] : i;
        const int64_t code = by_code.flags ? code_of(keys, row) : -1;
        flags[i] = code >= 0 ? by_code.flags[code] != 0 : may_match(table, keys, row);
    }
}

/* ---- rounds ---- */

/* The last of places [low, high) whose sum is at most `wanted`; that of `low` is. */
__device__ static inline int64_t last_at_most(const int64_t *sums, int64_t low, int64_t high,
                                              int64_t wanted) {
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (sums[middle] <= wanted)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The first place of an ascending index that has `row` or more. */
__device__ static inline int64_t first_from(const int32_t *index, int64_t n, int64_t row) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (index[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One thread. */
__global__ void round_of_index(const int32_t *index, const int64_t *n_index, int64_t rows, int64_t row,
                               int64_t max_pairs, struct cuda_join_round *round) {
    const int64_t total = *n_index, start = row > 0 ? first_from(index, total, row) : 0;
    const int64_t n = total - start < max_pairs ? total - start : max_pairs;
    *round = {start, n, start + n < total ? index[start + n] : rows, 0};
}

/* One thread. Behind the last pair that is given come those of `row`, of which some may be given already. */
__global__ void round_of_sums(const int64_t *sums, int64_t rows, int64_t row, int64_t entry,
                              int64_t max_pairs, struct cuda_join_round *round) {
    const int64_t start = sums[row] + entry, left = sums[rows] - start;
    const int64_t n = left < max_pairs ? left : max_pairs, end = start + n;
    const int64_t next = n < left ? last_at_most(sums, row, rows, end) : rows;
    *round = {start, n, next, end - sums[next]};
}

/* ---- pairs ---- */

__global__ void emit_first(const int32_t *index, const int64_t *entries, int64_t n, int64_t *build_rows) {
    for (int64_t j = cuda_thread(); j < n; j += cuda_threads())
        build_rows[j] = entries[index[j]];
}

enum { TILE = 4 * CUDA_THREADS };

/* A block finds the rows of its first and last pair, each thread those of its own between the two: the work
 * follows the pairs, however they are spread over the rows. */
__global__ void emit_runs(const int64_t *sums, int64_t rows, const int64_t *entries, const int64_t *runs,
                          int64_t start, int64_t n, int32_t *probe_rows, int64_t *build_rows) {
    __shared__ int64_t bounds[2];
    for (int64_t first = (int64_t)blockIdx.x * TILE; first < n; first += (int64_t)gridDim.x * TILE) {
        const int64_t end = first + TILE < n ? first + TILE : n;
        __syncthreads(); /* the bounds before have been read */
        if (threadIdx.x == 0)
            bounds[0] = last_at_most(sums, 0, rows, start + first);
        if (threadIdx.x == CUDA_WARP)
            bounds[1] = last_at_most(sums, 0, rows, start + end - 1);
        __syncthreads();
        const int64_t low = bounds[0], high = bounds[1] + 1;
        for (int64_t j = first + threadIdx.x; j < end; j += blockDim.x) {
            const int64_t row = last_at_most(sums, low, high, start + j);
            probe_rows[j] = (int32_t)row;
            build_rows[j] = runs[entries[row] + start + j - sums[row]];
        }
    }
}

__global__ void emit_cross(int64_t row, int64_t entry, int64_t n_build, int64_t n, int32_t *probe_rows,
                           int64_t *build_rows) {
    for (int64_t j = cuda_thread(); j < n; j += cuda_threads()) {
        const int64_t from_row = entry + j, rows = from_row / n_build;
        probe_rows[j] = (int32_t)(row + rows);
        build_rows[j] = from_row - rows * n_build;
    }
}

/* Streams may write the same byte at the same time: it is the same value. */
__global__ void set_marks(const int64_t *rows, int64_t n, uint8_t *marks) {
    for (int64_t j = cuda_thread(); j < n; j += cuda_threads())
        if (!marks[rows[j]])
            marks[rows[j]] = 1;
}

extern "C" {

void cuda_join_find(cudaStream_t stream, const struct cuda_join_table *table,
                    const struct cuda_join_keys *keys, const struct cuda_join_found *by_code, int64_t rows,
                    int64_t *out_entries, int64_t *out_counts, uint8_t *out_flags) {
    join_launch(table, keys, [=](auto typed_keys, auto slots) {
        const unsigned blocks = cuda_many_blocks(rows);
        if (out_counts)
            SX_LAUNCH(find_runs, blocks, CUDA_THREADS, 0, stream, *table, typed_keys, slots, *by_code, rows,
                      out_entries, out_counts);
        else
            SX_LAUNCH(find_first, blocks, CUDA_THREADS, 0, stream, *table, typed_keys, slots, *by_code, rows,
                      out_entries, out_flags);
    });
}
void cuda_join_test(cudaStream_t stream, const struct cuda_join_table *table,
                    const struct cuda_join_keys *keys, const struct cuda_join_found *by_code,
                    const int32_t *selection, int64_t n, uint8_t *out_flags) {
    join_launch(table, keys, [=](auto typed_keys, auto) {
        SX_LAUNCH(test_rows, cuda_blocks(n), CUDA_THREADS, 0, stream, *table, typed_keys, *by_code, selection,
                  n, out_flags);
    });
}
void cuda_join_round_of_index(cudaStream_t stream, const int32_t *index, const int64_t *n_index, int64_t rows,
                              int64_t row, int64_t max_pairs, struct cuda_join_round *out_round) {
    SX_LAUNCH(round_of_index, 1, 1, 0, stream, index, n_index, rows, row, max_pairs, out_round);
}
void cuda_join_round_of_sums(cudaStream_t stream, const int64_t *sums, int64_t rows, int64_t row,
                             int64_t entry, int64_t max_pairs, struct cuda_join_round *out_round) {
    SX_LAUNCH(round_of_sums, 1, 1, 0, stream, sums, rows, row, entry, max_pairs, out_round);
}
void cuda_join_emit_first(cudaStream_t stream, const int32_t *index, const int64_t *entries, int64_t n,
                          int64_t *out_build_rows) {
    SX_LAUNCH(emit_first, cuda_blocks(n), CUDA_THREADS, 0, stream, index, entries, n, out_build_rows);
}
void cuda_join_emit_runs(cudaStream_t stream, const int64_t *sums, int64_t rows, const int64_t *entries,
                         const int64_t *runs, int64_t start, int64_t n, int32_t *out_probe_rows,
                         int64_t *out_build_rows) {
    SX_LAUNCH(emit_runs, cuda_blocks(n, TILE), CUDA_THREADS, 0, stream, sums, rows, entries, runs, start, n,
              out_probe_rows, out_build_rows);
}
void cuda_join_emit_cross(cudaStream_t stream, int64_t row, int64_t entry, int64_t build_rows, int64_t n,
                          int32_t *out_probe_rows, int64_t *out_build_rows) {
    SX_LAUNCH(emit_cross, cuda_blocks(n), CUDA_THREADS, 0, stream, row, entry, build_rows, n, out_probe_rows,
              out_build_rows);
}
void cuda_join_set_marks(cudaStream_t stream, const int64_t *rows, int64_t n, uint8_t *marks) {
    SX_LAUNCH(set_marks, cuda_blocks(n), CUDA_THREADS, 0, stream, rows, n, marks);
}
}
