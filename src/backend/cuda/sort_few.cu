/* The order of few rows, by comparing them: runs in shared memory, a block each, and then pairs of runs,
 * until there is one. A merge gives every row its place by itself: that in its own run, and as many as are in
 * front of it in the other one, which a binary search tells. 20 bytes a row are moved in a pass, of which 16
 * tell most rows apart: few comparisons look at a column. So of strings those begin behind what all have
 * alike, which a kernel finds first. Nothing is waited for. */
#include "backend/cuda/launch_sort.h"
#include "backend/cuda/sort_kernel.h"

/* A thread a row. */
constexpr int RUN = int(CUDA_SORT_RUN);

/* ---- comparing ---- */

/* A number of 64 bits that never goes down where values go up. */
__device__ static inline uint64_t value_prefix(const struct cuda_column &column, int64_t row,
                                               int64_t skipped) {
    const sx_u128 middle = (sx_u128)1 << 127, reach = (sx_u128)1 << 63;
    if (column.phys == SX_PHYS_STRING)
        return string_bits(string_at(column, row), skipped, 64);
    const sx_u128 code = code_of(column, row);
    switch (column.phys) {
    case SX_PHYS_I128:
        return code < middle - reach                  ? 0
               : code - (middle - reach) > UINT64_MAX ? UINT64_MAX
                                                      : (uint64_t)(code - (middle - reach));
    case SX_PHYS_U128: return code > UINT64_MAX ? UINT64_MAX : (uint64_t)code;
    case SX_PHYS_INTERVAL: return (uint64_t)(code >> 64);
    default: return (uint64_t)code;
    }
}

/* A row whose prefix of a key is smaller comes first. `skipped` bits of a string are in front of its prefix.
 */
__device__ static inline uint64_t key_prefix(const struct cuda_sort_key &key, int64_t row, int64_t skipped) {
    if (!cuda_is_valid(key.column, row))
        return key.nulls_first ? 0 : UINT64_MAX;
    const uint64_t prefix = value_prefix(key.column, row, skipped);
    return key.descending ? ~prefix : prefix;
}

struct few_prefix {
    uint64_t high, low;
};

/* Which key's strings prefixes tell of; -1: none's. */
__host__ __device__ static inline int string_key(const struct cuda_sort_keys &keys) {
    return keys.n_told < keys.n && keys.n_told < CUDA_SORT_PREFIXES &&
                   keys.keys[keys.n_told].column.phys == SX_PHYS_STRING
               ? keys.n_told
               : -1;
}

enum { MOST_ALIKE = 512 }; /* bits */

/* The first bits that the two do not have alike, as if bytes of 0 were behind them. */
__device__ static inline uint32_t alike_bits(const struct sx_string *a, const struct sx_string *b) {
    for (uint32_t bit = 0; bit < MOST_ALIKE; bit += 64) {
        const uint64_t differing = string_bits(a, bit, 64) ^ string_bits(b, bit, 64);
        if (differing)
            return bit + (uint32_t)__clzll((long long)differing);
    }
    return MOST_ALIKE;
}

/* *alike (UINT32_MAX before): bits that all strings of the key begin with, those of NULL left out. */
__global__ void find_alike(const __grid_constant__ struct cuda_sort_key key, int64_t rows, uint32_t *alike) {
    const bool has_first = cuda_is_valid(key.column, 0);
    uint32_t least = MOST_ALIKE;
    for (int64_t row = cuda_thread(); row < rows; row += cuda_threads())
        if (!has_first)
            least = 0;
        else if (cuda_is_valid(key.column, row)) {
            const uint32_t bits = alike_bits(string_at(key.column, 0), string_at(key.column, row));
            least = bits < least ? bits : least;
        }
    if (least < *(const volatile uint32_t *)alike)
        atomicMin(alike, least);
}

/* Of the first key, and of what decides behind its prefix. `alike`: of the key that has strings, in bits. */
__device__ static inline struct few_prefix row_prefix(const struct cuda_sort_keys &keys, int64_t row,
                                                      int64_t alike) {
    const int strings = string_key(keys);
    struct few_prefix prefix = {0, 0};
    if (keys.n == 0)
        return prefix;
    prefix.high = key_prefix(keys.keys[0], row, strings == 0 ? alike : 0);
    if (strings == 0)
        prefix.low = key_prefix(keys.keys[0], row, alike + 64);
    else if (keys.n_told > 0 && keys.n > 1)
        prefix.low = key_prefix(keys.keys[1], row, strings == 1 ? alike : 0);
    return prefix;
}

/* -1, 0, 1 */
__device__ static inline int compare_strings(const struct sx_string *a, const struct sx_string *b) {
    const int64_t shorter = a->length_bytes < b->length_bytes ? a->length_bytes : b->length_bytes;
    for (int64_t bit = 0; bit < shorter * 8; bit += 64) {
        const uint64_t x = string_bits(a, bit, 64), y = string_bits(b, bit, 64);
        if (x != y)
            return x < y ? -1 : 1;
    }
    /* what the longer one has behind the shorter one's end decides only by being there */
    return a->length_bytes == b->length_bytes ? 0 : a->length_bytes < b->length_bytes ? -1 : 1;
}

__device__ static inline int compare_values(const struct cuda_column &column, int64_t a, int64_t b) {
    if (column.phys == SX_PHYS_STRING)
        return compare_strings(string_at(column, a), string_at(column, b));
    const sx_u128 x = code_of(column, a), y = code_of(column, b);
    return x == y ? 0 : x < y ? -1 : 1;
}

/* By the keys that prefixes do not tell, and then by the rows' numbers. */
__device__ static inline bool keys_before(const struct cuda_sort_keys &keys, uint32_t a, uint32_t b) {
    for (int k = keys.n_told; k < keys.n; k++) {
        const struct cuda_sort_key &key = keys.keys[k];
        const bool has_a = cuda_is_valid(key.column, a), has_b = cuda_is_valid(key.column, b);
        if (has_a != has_b)
            return has_b == key.nulls_first;
        const int order = has_a ? compare_values(key.column, a, b) : 0;
        if (order)
            return (order < 0) != key.descending;
    }
    return a < b;
}

/* By places. */
struct few_rows {
    uint64_t *high, *low;
    uint32_t *rows;
};

__device__ static inline void few_move(const struct few_rows &to, int64_t place, const struct few_rows &from,
                                       int64_t i) {
    to.high[place] = from.high[i];
    to.low[place] = from.low[i];
    to.rows[place] = from.rows[i];
}

/* Whether the row of place `at` comes before this one. */
__device__ static inline bool comes_before(const struct cuda_sort_keys &keys, const struct few_rows &all,
                                           int64_t at, const struct few_prefix &prefix, uint32_t row) {
    const uint64_t high = all.high[at];
    if (high != prefix.high)
        return high < prefix.high;
    const uint64_t low = all.low[at];
    return low != prefix.low ? low < prefix.low : keys_before(keys, all.rows[at], row);
}

/* ---- merging ---- */

/* Where row i goes when its run of `width` rows is merged with the one beside it, of `n` rows in all. */
__device__ static inline int64_t place_of(const struct cuda_sort_keys &keys, const struct few_rows &all,
                                          int64_t n, int64_t width, int64_t i) {
    const int64_t run = i / width, begin = (run ^ 1) * width;
    const struct few_prefix prefix = {all.high[i], all.low[i]};
    const uint32_t row = all.rows[i];
    int64_t low = begin < n ? begin : n, high = begin + width < n ? begin + width : n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (comes_before(keys, all, middle, prefix, row))
            low = middle + 1;
        else
            high = middle;
    }
    const int64_t in_front = low - (begin < n ? begin : n);
    return (run & ~INT64_C(1)) * width + (i - run * width) + in_front;
}

struct few_run {
    uint64_t high[RUN], low[RUN];
    uint32_t rows[RUN];
};

__device__ static inline struct few_rows rows_of(struct few_run &run) {
    return {run.high, run.low, run.rows};
}

/* A block's run into order; which of the two has it. */
__device__ static inline int sort_run(const struct cuda_sort_keys &keys, struct few_run runs[2], int n) {
    const int i = (int)threadIdx.x;
    int from = 0;
    for (int width = 1; width < n; width *= 2, from ^= 1) {
        __syncthreads();
        const struct few_rows all = rows_of(runs[from]);
        if (i < n)
            few_move(rows_of(runs[from ^ 1]), place_of(keys, all, n, width, i), all, i);
    }
    __syncthreads();
    return from;
}

/* `order` not NULL: this is all, and the first `limit` rows go there. */
__global__ void __launch_bounds__(RUN)
    sort_runs(const __grid_constant__ struct cuda_sort_keys keys, int64_t rows, int64_t limit,
              const uint32_t *alike, struct few_rows out, int64_t *order) {
    __shared__ struct few_run runs[2];
    const int64_t first = (int64_t)blockIdx.x * RUN;
    const int n = rows - first < RUN ? (int)(rows - first) : (int)RUN, i = (int)threadIdx.x;
    if (i < n) {
        const struct few_prefix prefix = row_prefix(keys, first + i, alike ? *alike : 0);
        runs[0].high[i] = prefix.high;
        runs[0].low[i] = prefix.low;
        runs[0].rows[i] = (uint32_t)(first + i);
    }
    const int at = sort_run(keys, runs, n);
    if (order && i < n && i < limit)
        order[i] = runs[at].rows[i];
    if (!order && i < n)
        few_move(out, first + i, rows_of(runs[at]), i);
}

__global__ void merge_runs(const __grid_constant__ struct cuda_sort_keys keys, int64_t n, int64_t width,
                           int64_t limit, struct few_rows from, struct few_rows out, int64_t *order) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const int64_t to = place_of(keys, from, n, width, i);
        if (order && to < limit)
            order[to] = from.rows[i];
        if (!order)
            few_move(out, to, from, i);
    }
}

extern "C" {

size_t cuda_sort_few_bytes(int64_t rows) {
    return sizeof(uint32_t) +
           (rows <= RUN ? 0 : (size_t)rows * 2 * (2 * sizeof(uint64_t) + sizeof(uint32_t)));
}

void cuda_sort_few(cudaStream_t stream, const struct cuda_sort_keys *keys, int64_t rows, int64_t limit,
                   void *scratch, int64_t *out_order) {
    uint64_t *const words = (uint64_t *)scratch;
    uint32_t *const numbers = (uint32_t *)(words + 4 * rows);
    const struct few_rows halves[2] = {{words, words + rows, numbers},
                                       {words + 2 * rows, words + 3 * rows, numbers + rows}};
    int64_t *const no_order = nullptr;
    const unsigned blocks = (unsigned)((rows + RUN - 1) / RUN);
    const int strings = string_key(*keys);
    uint32_t *alike = nullptr;
    if (strings >= 0) {
        alike = rows <= RUN ? (uint32_t *)scratch : numbers + 2 * rows;
        (void)cudaMemsetAsync(alike, 0xff, sizeof *alike, stream);
        SX_LAUNCH(find_alike, cuda_blocks(rows), CUDA_THREADS, 0, stream, keys->keys[strings], rows, alike);
    }
    const uint32_t *const found = alike;
    SX_LAUNCH(sort_runs, blocks, RUN, 0, stream, *keys, rows, limit, found, halves[0],
              blocks == 1 ? out_order : no_order);
    int from = 0;
    for (int64_t width = RUN; width < rows; width *= 2, from ^= 1)
        SX_LAUNCH(merge_runs, cuda_blocks(rows), CUDA_THREADS, 0, stream, *keys, rows, width, limit,
                  halves[from], halves[from ^ 1], 2 * width >= rows ? out_order : no_order);
}
}
