/* Sort keys as words of bits. A word costs its columns' bytes, read in the order of the rows that are left
 * (ascending, so that they come in order of memory), and 8 written. */
#include "backend/cuda/launch_sort.h"
#include "backend/cuda/sort_kernel.h"

/* ---- ranges ---- */

__device__ static inline void range_add(struct cuda_sort_range *range, const struct cuda_sort_range &more) {
    if (more.has_value && (!range->has_value || more.min < range->min))
        range->min = more.min;
    if (more.has_value && (!range->has_value || more.max > range->max))
        range->max = more.max;
    range->longest = more.longest > range->longest ? more.longest : range->longest;
    range->has_null |= more.has_null;
    range->has_value |= more.has_value;
}

/* Of the block's threads, in thread 0. */
__device__ static inline void block_range(struct cuda_sort_range *range) {
    __shared__ struct cuda_sort_range ranges[CUDA_THREADS];
    ranges[threadIdx.x] = *range;
    for (unsigned half = CUDA_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            range_add(&ranges[threadIdx.x], ranges[threadIdx.x + half]);
    }
    *range = ranges[threadIdx.x];
}

__global__ void measure_rows(const struct cuda_column column, int64_t rows, struct cuda_sort_range *out) {
    struct cuda_sort_range range = {};
    for (int64_t row = cuda_thread(); row < rows; row += cuda_threads()) {
        struct cuda_sort_range one = {};
        one.has_value = cuda_is_valid(column, row);
        one.has_null = !one.has_value;
        if (one.has_value && column.phys == SX_PHYS_STRING)
            one.longest = string_at(column, row)->length_bytes;
        else if (one.has_value)
            one.min = one.max = code_of(column, row);
        range_add(&range, one);
    }
    block_range(&range);
    if (threadIdx.x == 0)
        out[blockIdx.x] = range;
}

__global__ void merge_ranges(const struct cuda_sort_range *ranges, int n, struct cuda_sort_range *out) {
    struct cuda_sort_range range = {};
    for (int i = (int)threadIdx.x; i < n; i += CUDA_THREADS)
        range_add(&range, ranges[i]);
    block_range(&range);
    if (threadIdx.x == 0)
        *out = range;
}

/* ---- words ---- */

/* The lowest `count` bits, 1 to 64 of them. */
__device__ __forceinline__ uint64_t low_bits_of(uint64_t x, int64_t count) {
    return x & (~UINT64_C(0) >> (64 - count));
}

/* `count` bits of a part behind `skipped` ones. */
__device__ static inline uint64_t part_bits(const struct cuda_sort_part &part, int64_t row, int64_t skipped,
                                            int64_t count) {
    const bool valid = cuda_is_valid(part.column, row);
    if (part.kind == CUDA_SORT_VALID)
        return valid != part.flipped;
    if (!valid)
        return 0;
    if (part.kind == CUDA_SORT_CODE) {
        const sx_u128 code = code_of(part.column, row);
        const sx_u128 distance = part.flipped ? part.base - code : code - part.base;
        return low_bits_of((uint64_t)(distance >> (part.bits - skipped - count)), count);
    }
    const struct sx_string *string = string_at(part.column, row);
    const uint64_t bits = part.kind == CUDA_SORT_BYTES
                              ? string_bits(string, skipped, count)
                              : string->length_bytes >> (part.bits - skipped - count);
    return low_bits_of(part.flipped ? ~bits : bits, count);
}

__device__ static inline uint64_t word_of(const struct cuda_sort_words &words, int64_t word, int64_t row) {
    const int64_t first = word * 64, end = first + 64;
    uint64_t bits = 0;
    for (int p = 0; p < words.n_parts; p++) {
        const struct cuda_sort_part &part = words.parts[p];
        const int64_t part_end = part.first_bit + part.bits;
        const int64_t from = part.first_bit > first ? part.first_bit : first,
                      to = part_end < end ? part_end : end;
        if (from < to)
            bits |= part_bits(part, row, from - part.first_bit, to - from) << (end - to);
    }
    return bits;
}

__device__ __forceinline__ int64_t row_at(const struct cuda_sort_rows &rows, int64_t i) {
    return rows.rows ? rows.rows[i] : i;
}
__device__ __forceinline__ bool has_left_neighbour(const struct cuda_sort_rows &rows, int64_t i) {
    return i > 0 && (!rows.segments || rows.segments[i] == rows.segments[i - 1]);
}

/* Pairs stop at the first word in which any pair was seen to differ, so that mostly one word is read. */
__global__ void find_word(struct cuda_sort_words words, struct cuda_sort_rows rows, int64_t word,
                          uint64_t mask, long long *left) {
    const volatile long long *seen = left;
    for (int64_t i = cuda_thread(); i < rows.n; i += cuda_threads()) {
        if (!has_left_neighbour(rows, i))
            continue;
        const int64_t a = row_at(rows, i - 1), b = row_at(rows, i);
        for (int64_t w = word; w < words.n_words - *seen; w++) {
            const uint64_t differing = word_of(words, w, a) ^ word_of(words, w, b);
            if (w == word ? differing & mask : differing) {
                atomicMax(left, (long long)(words.n_words - w));
                break;
            }
        }
    }
}

__global__ void fill_words(struct cuda_sort_words words, struct cuda_sort_rows rows, const int64_t *left,
                           uint64_t *out) {
    const int64_t word = words.n_words - *left;
    for (int64_t i = cuda_thread(); i < rows.n && *left; i += cuda_threads())
        out[i] = word_of(words, word, row_at(rows, i));
}

__global__ void find_differing(const uint64_t *words, struct cuda_sort_rows rows, const int64_t *left,
                               unsigned long long *out) {
    uint64_t differing = 0;
    for (int64_t i = cuda_thread(); i < rows.n && *left; i += cuda_threads())
        if (has_left_neighbour(rows, i))
            differing |= words[i] ^ words[i - 1];
    for (int by = CUDA_WARP / 2; by > 0; by /= 2)
        differing |= __shfl_xor_sync(0xffffffffu, differing, by);
    if (threadIdx.x % CUDA_WARP == 0 && differing)
        atomicOr(out, (unsigned long long)differing);
}

/* Compress of "Hacker's Delight" 7-4, with the moves worked out by the host. */
__device__ static inline uint64_t gather_bits(const struct cuda_sort_gather &gather, uint64_t word) {
    word &= gather.mask;
    for (int i = 0; i < 6; i++) {
        const uint64_t moved = word & gather.moves[i];
        word = (word ^ moved) | moved >> (1 << i);
    }
    return word;
}

__global__ void make_keys(struct cuda_sort_rows rows, const struct cuda_sort_gather gather, int low_bits,
                          uint64_t *keys) {
    for (int64_t i = cuda_thread(); i < rows.n; i += cuda_threads()) {
        const uint64_t bits = gather_bits(gather, keys[i]);
        keys[i] = rows.segments ? (uint64_t)rows.segments[i] << low_bits | bits : bits;
    }
}

/* ---- ranks ---- */

__global__ void flag_changes(struct cuda_sort_words words, const int64_t *order, int64_t n, int64_t *out) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        bool differ = false;
        for (int64_t w = 0; w < words.n_words && i > 0 && !differ; w++)
            differ = word_of(words, w, order[i]) != word_of(words, w, order[i - 1]);
        out[i] = differ;
    }
}

__global__ void write_ranks(const int64_t *order, const int64_t *sums, int64_t n, int32_t *out) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        out[order[i]] = (int32_t)sums[i + 1];
}

/* Blocks whose threads have several rows each. */
static unsigned range_blocks(int64_t rows) {
    return cuda_blocks((rows + 7) / 8);
}

extern "C" {

size_t cuda_sort_range_bytes(int64_t rows) {
    return range_blocks(rows) * sizeof(struct cuda_sort_range);
}
void cuda_sort_measure(cudaStream_t stream, struct cuda_column column, int64_t rows, void *scratch,
                       struct cuda_sort_range *out_range) {
    struct cuda_sort_range *ranges = (struct cuda_sort_range *)scratch;
    const unsigned blocks = range_blocks(rows);
    SX_LAUNCH(measure_rows, blocks, CUDA_THREADS, 0, stream, column, rows, blocks > 1 ? ranges : out_range);
    if (blocks > 1)
        SX_LAUNCH(merge_ranges, 1, CUDA_THREADS, 0, stream, ranges, (int)blocks, out_range);
}
void cuda_sort_find_word(cudaStream_t stream, struct cuda_sort_words words, struct cuda_sort_rows rows,
                         int64_t word, uint64_t mask, int64_t *out_left) {
    SX_LAUNCH(find_word, cuda_blocks(rows.n), CUDA_THREADS, 0, stream, words, rows, word, mask,
              (long long *)out_left);
}
void cuda_sort_fill_words(cudaStream_t stream, struct cuda_sort_words words, struct cuda_sort_rows rows,
                          const int64_t *left, uint64_t *out_words, int64_t *out_differing) {
    SX_LAUNCH(fill_words, cuda_blocks(rows.n), CUDA_THREADS, 0, stream, words, rows, left, out_words);
    SX_LAUNCH(find_differing, range_blocks(rows.n), CUDA_THREADS, 0, stream, out_words, rows, left,
              (unsigned long long *)out_differing);
}
void cuda_sort_make_keys(cudaStream_t stream, struct cuda_sort_rows rows, struct cuda_sort_gather gather,
                         int low_bits, uint64_t *keys) {
    SX_LAUNCH(make_keys, cuda_blocks(rows.n), CUDA_THREADS, 0, stream, rows, gather, low_bits, keys);
}
void cuda_sort_flag_changes(cudaStream_t stream, struct cuda_sort_words words, const int64_t *order,
                            int64_t n, int64_t *out_flags) {
    SX_LAUNCH(flag_changes, cuda_blocks(n), CUDA_THREADS, 0, stream, words, order, n, out_flags);
}
void cuda_sort_write_ranks(cudaStream_t stream, const int64_t *order, const int64_t *sums, int64_t n,
                           int32_t *out_ranks) {
    SX_LAUNCH(write_ranks, cuda_blocks(n), CUDA_THREADS, 0, stream, order, sums, n, out_ranks);
}
}
