/* The order of few rows, by comparing them: runs in shared memory, a block each, and then pairs of runs,
 * until there is one. A merge gives every row its place by itself: that in its own run, and as many as are in
 * front of it in the other one, which a binary search tells. 12 bytes a row are moved in a pass, and few
 * comparisons look at a column. Nothing is measured before, and nothing is waited for. */
#include "backend/cuda/launch_sort.h"
#include "backend/cuda/sort_kernel.h"

constexpr int RUN = int(CUDA_SORT_RUN), EACH = RUN / int(CUDA_THREADS);

/* ---- comparing ---- */

/* A number of 64 bits that never goes down where values go up. */
__device__ static inline uint64_t value_prefix(const struct cuda_column &column, int64_t row) {
    const sx_u128 middle = (sx_u128)1 << 127, reach = (sx_u128)1 << 63;
    if (column.phys == SX_PHYS_STRING)
        return string_bits(string_at(column, row), 0, 64);
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

/* Of the first key: a row whose prefix is smaller comes first. */
__device__ static inline uint64_t row_prefix(const struct cuda_sort_keys &keys, int64_t row) {
    if (keys.n == 0)
        return 0;
    const struct cuda_sort_key &key = keys.keys[0];
    if (!cuda_is_valid(key.column, row))
        return key.nulls_first ? 0 : UINT64_MAX;
    const uint64_t prefix = value_prefix(key.column, row);
    return key.descending ? ~prefix : prefix;
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

/* By the keys that the prefix does not tell, and then by the rows' numbers. */
__device__ static inline bool keys_before(const struct cuda_sort_keys &keys, uint32_t a, uint32_t b) {
    for (int k = keys.prefix_is_key; k < keys.n; k++) {
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

struct few_row {
    uint64_t prefix;
    uint32_t row;
};

__device__ static inline bool comes_before(const struct cuda_sort_keys &keys, const struct few_row &a,
                                           const struct few_row &b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : keys_before(keys, a.row, b.row);
}

/* ---- merging ---- */

/* Where row i goes when its run of `width` rows is merged with the one beside it, of `n` rows in all. */
__device__ static inline int64_t place_of(const struct cuda_sort_keys &keys, const uint64_t *prefixes,
                                          const uint32_t *rows, int64_t n, int64_t width, int64_t i) {
    const int64_t run = i / width, begin = (run ^ 1) * width;
    const struct few_row mine = {prefixes[i], rows[i]};
    int64_t low = begin < n ? begin : n, high = begin + width < n ? begin + width : n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (comes_before(keys, {prefixes[middle], rows[middle]}, mine))
            low = middle + 1;
        else
            high = middle;
    }
    const int64_t in_front = low - (begin < n ? begin : n);
    return (run & ~INT64_C(1)) * width + (i - run * width) + in_front;
}

struct few_run {
    uint64_t prefixes[2][RUN];
    uint32_t rows[2][RUN];
};

/* A block's run into order; which of the two halves has it. */
__device__ static inline int sort_run(const struct cuda_sort_keys &keys, struct few_run &run, int n) {
    int from = 0;
    for (int width = 1; width < n; width *= 2, from ^= 1) {
        __syncthreads();
        for (int k = 0; k < EACH; k++) {
            const int i = k * (int)CUDA_THREADS + (int)threadIdx.x;
            if (i >= n)
                break;
            const int64_t to = place_of(keys, run.prefixes[from], run.rows[from], n, width, i);
            run.prefixes[from ^ 1][to] = run.prefixes[from][i];
            run.rows[from ^ 1][to] = run.rows[from][i];
        }
    }
    __syncthreads();
    return from;
}

/* `order` not NULL: this is all, and the first `limit` rows go there. */
__global__ void sort_runs(const __grid_constant__ struct cuda_sort_keys keys, int64_t rows, int64_t limit,
                          uint64_t *out_prefixes, uint32_t *out_rows, int64_t *order) {
    __shared__ struct few_run run;
    const int64_t first = (int64_t)blockIdx.x * RUN;
    const int n = rows - first < RUN ? (int)(rows - first) : (int)RUN;
    for (int i = (int)threadIdx.x; i < n; i += CUDA_THREADS) {
        run.prefixes[0][i] = row_prefix(keys, first + i);
        run.rows[0][i] = (uint32_t)(first + i);
    }
    const int at = sort_run(keys, run, n);
    for (int i = (int)threadIdx.x; i < n; i += CUDA_THREADS) {
        if (order && i < limit)
            order[i] = run.rows[at][i];
        if (order)
            continue;
        out_prefixes[first + i] = run.prefixes[at][i];
        out_rows[first + i] = run.rows[at][i];
    }
}

__global__ void merge_runs(const __grid_constant__ struct cuda_sort_keys keys, int64_t n, int64_t width,
                           int64_t limit, const uint64_t *prefixes, const uint32_t *rows,
                           uint64_t *out_prefixes, uint32_t *out_rows, int64_t *order) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const int64_t to = place_of(keys, prefixes, rows, n, width, i);
        if (order && to < limit)
            order[to] = rows[i];
        if (order)
            continue;
        out_prefixes[to] = prefixes[i];
        out_rows[to] = rows[i];
    }
}

extern "C" {

size_t cuda_sort_few_bytes(int64_t rows) {
    return rows <= RUN ? 0 : (size_t)rows * 2 * (sizeof(uint64_t) + sizeof(uint32_t));
}

void cuda_sort_few(cudaStream_t stream, const struct cuda_sort_keys *keys, int64_t rows, int64_t limit,
                   void *scratch, int64_t *out_order) {
    uint64_t *prefixes[2] = {(uint64_t *)scratch, (uint64_t *)scratch + rows};
    uint32_t *numbers[2] = {(uint32_t *)(prefixes[0] + 2 * rows),
                            (uint32_t *)(prefixes[0] + 2 * rows) + rows};
    int64_t *const no_order = nullptr;
    const unsigned blocks = (unsigned)((rows + RUN - 1) / RUN);
    SX_LAUNCH(sort_runs, blocks, CUDA_THREADS, 0, stream, *keys, rows, limit, prefixes[0], numbers[0],
              blocks == 1 ? out_order : no_order);
    int from = 0;
    for (int64_t width = RUN; width < rows; width *= 2, from ^= 1)
        SX_LAUNCH(merge_runs, cuda_blocks(rows), CUDA_THREADS, 0, stream, *keys, rows, width, limit,
                  prefixes[from], numbers[from], prefixes[from ^ 1], numbers[from ^ 1],
                  2 * width >= rows ? out_order : no_order);
}
}
