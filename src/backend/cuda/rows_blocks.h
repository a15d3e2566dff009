/* For kernels: blocks of 1,024 rows of PACKED columns (rows.h), a thread block each. A vector's integers meet
 * in shared memory, from where each thread makes words of its own. */
#ifndef SX_BACKEND_CUDA_ROWS_BLOCKS_H
#define SX_BACKEND_CUDA_ROWS_BLOCKS_H

#include "backend/cuda/rows_kernel.h"
#include "tensor/pack_words.h"

/* ---- integers of a vector ---- */

/* Value of number `vector`, sign-extended: narrow types have one. */
template <typename T> __device__ static inline int64_t integer_of(T value, int vector) {
    (void)vector;
    return (int64_t)value;
}
__device__ static inline int64_t integer_of(sx_u128 value, int vector) {
    return (int64_t)(uint64_t)(vector == 0 ? value : value >> PACK_WORD_BITS);
}

__device__ static inline int64_t integer_of(const struct sx_string &view, int vector) {
    (void)vector;
    return view.length_bytes;
}

template <typename T> constexpr bool is_string = false;
template <> inline constexpr bool is_string<struct sx_string> = true;
template <typename T> constexpr int values_vectors = sizeof(T) > PACK_WORD_BYTES && !is_string<T> ? 2 : 1;

/* Rows of a part. */
struct block_rows {
    int64_t first; /* position */
    int64_t index; /* of the block in its part */
    int part, n;
};

__device__ static inline struct block_rows find_block(const struct cuda_rows_parts &parts,
                                                      const struct cuda_rows_blocks &blocks, int64_t b) {
    struct block_rows rows;
    rows.part = part_of(blocks.firsts, parts.n_parts, b);
    rows.index = b - blocks.firsts[rows.part];
    rows.first = parts.offsets[rows.part] + rows.index * SX_PACK_BLOCK;
    rows.n = pack_block_length(parts.offsets[rows.part + 1] - parts.offsets[rows.part], rows.index);
    return rows;
}

/* False: the row is null, and any integer will do. A null string is empty. */
template <typename T>
__device__ static inline bool load_integer(const struct cuda_column &column,
                                           const struct cuda_rows_parts &parts, int64_t at, int vector,
                                           int64_t *out) {
    const int64_t row = row_of(parts, at);
    const bool valid = cuda_is_valid(column, row);
    if (vector == values_vectors<T>) {
        *out = valid;
        return true;
    }
    if (valid)
        *out = integer_of(cuda_load<T>(column, row), vector);
    else if (is_string<T>)
        *out = 0;
    return valid || is_string<T>;
}

/* ---- ranges ---- */

__device__ static inline void warp_range(int64_t *least, int64_t *most) {
    for (int by = CUDA_WARP / 2; by > 0; by /= 2) {
        const int64_t low = __shfl_xor_sync(0xffffffffu, *least, by);
        const int64_t high = __shfl_xor_sync(0xffffffffu, *most, by);
        *least = low < *least ? low : *least;
        *most = high > *most ? high : *most;
    }
}

/* Of all threads of a block, for all of them. */
__device__ static inline void block_range(int64_t *least, int64_t *most) {
    __shared__ int64_t leasts[CUDA_THREADS / CUDA_WARP], mosts[CUDA_THREADS / CUDA_WARP];
    warp_range(least, most);
    __syncthreads(); /* the ranges before have been read */
    if (threadIdx.x % CUDA_WARP == 0) {
        leasts[threadIdx.x / CUDA_WARP] = *least;
        mosts[threadIdx.x / CUDA_WARP] = *most;
    }
    __syncthreads();
    for (int w = 0; w < CUDA_THREADS / CUDA_WARP; w++) {
        *least = leasts[w] < *least ? leasts[w] : *least;
        *most = mosts[w] > *most ? mosts[w] : *most;
    }
}

/* Base and bits of block b's vectors, and the bytes of their words. */
template <typename T>
__device__ static inline void measure_vectors(const struct cuda_column &column,
                                              const struct cuda_rows_parts &parts,
                                              const struct block_rows &rows, int64_t b,
                                              const struct cuda_rows_measured &measured) {
    for (int v = 0; v < measured.n_vectors; v++) {
        int64_t least = INT64_MAX, most = INT64_MIN, value;
        for (int i = (int)threadIdx.x; i < rows.n; i += CUDA_THREADS)
            if (load_integer<T>(column, parts, rows.first + i, v, &value)) {
                least = value < least ? value : least;
                most = value > most ? value : most;
            }
        block_range(&least, &most);
        if (least > most) /* all are null */
            least = most = 0;
        if (threadIdx.x == 0) {
            struct sx_pack_block entry = {};
            entry.base = (uint64_t)least;
            entry.bits = (uint8_t)pack_bits_of((uint64_t)most - (uint64_t)least);
            measured.entries[b * measured.n_vectors + v] = entry;
            measured.sums[b * measured.n_vectors + v] = (int64_t)pack_words_bytes(rows.n, entry.bits);
        }
    }
}

/* ---- packing ---- */

/* Word `w` of a block: bits of the values of lane w % 16. */
__device__ static inline uint64_t make_word(const uint64_t *values, int n_positions, int w, unsigned bits) {
    const int lane = w % SX_PACK_LANES;
    const unsigned first = (unsigned)(w / SX_PACK_LANES) * PACK_WORD_BITS;
    uint64_t word = 0;
    for (unsigned p = first / bits; p < (unsigned)n_positions && p * bits < first + PACK_WORD_BITS; p++) {
        const uint64_t value = values[p * SX_PACK_LANES + lane];
        word |= p * bits >= first ? value << (p * bits - first) : value >> (first - p * bits);
    }
    return word;
}

/* Block b's part of the directory, and its words. `first`: of its first vector. `values`: in shared memory.
 */
template <typename T>
__device__ static inline void pack_vectors(const struct cuda_column &column,
                                           const struct cuda_rows_parts &parts, const struct block_rows &rows,
                                           int64_t b, const struct cuda_rows_measured &measured,
                                           const struct cuda_rows_place &place, uint64_t first,
                                           uint64_t (&values)[SX_PACK_BLOCK]) {
    const int n_positions = pack_positions(rows.n), n_vectors = measured.n_vectors;
    for (int v = 0; v < n_vectors; v++) {
        struct sx_pack_block entry = measured.entries[b * n_vectors + v];
        entry.offset = (uint32_t)(measured.sums[b * n_vectors + v] - place.words_first);
        entry.first = v == 0 ? first : 0;
        if (threadIdx.x == 0)
            ((struct sx_pack_block *)place.values)[rows.index * n_vectors + v] = entry;
        if (entry.bits == 0)
            continue;
        for (int i = (int)threadIdx.x; i < n_positions * SX_PACK_LANES; i += CUDA_THREADS) {
            int64_t value;
            const bool is_there = i < rows.n && load_integer<T>(column, parts, rows.first + i, v, &value);
            values[i] = is_there ? (uint64_t)value - entry.base : 0;
        }
        __syncthreads();
        uint64_t *words = (uint64_t *)(place.words + entry.offset);
        const int n_words = (int)(pack_words_bytes(rows.n, entry.bits) / PACK_WORD_BYTES);
        for (int w = (int)threadIdx.x; w < n_words; w += CUDA_THREADS)
            words[w] = make_word(values, n_positions, w, entry.bits);
        __syncthreads();
    }
}

/* ---- unpacking ---- */

/* Integer `i` of a block. */
__device__ static inline uint64_t read_integer(const struct sx_pack_block &entry, const char *all_words,
                                               int i) {
    const uint64_t *words = (const uint64_t *)(all_words + entry.offset);
    if (entry.bits == 0)
        return entry.base;
    const unsigned first = (unsigned)(i / SX_PACK_LANES) * entry.bits, shift = first % PACK_WORD_BITS;
    const unsigned w = first / PACK_WORD_BITS * SX_PACK_LANES + (unsigned)(i % SX_PACK_LANES);
    uint64_t value = words[w] >> shift;
    if (shift + entry.bits > PACK_WORD_BITS)
        value |= words[w + SX_PACK_LANES] << (PACK_WORD_BITS - shift);
    if (entry.bits < PACK_WORD_BITS)
        value &= (UINT64_C(1) << entry.bits) - 1;
    return value + entry.base;
}

/* A vector's block, or zeros. */
__device__ static inline struct sx_pack_block find_entry(const struct cuda_rows_packed &packed, int64_t b,
                                                         int n, int vector, struct cuda_control *control) {
    const struct sx_pack_block entry = packed.entries[b * packed.n_vectors + vector];
    if (pack_is_inside(&entry, n, packed.words_bytes))
        return entry;
    if (threadIdx.x == 0)
        cuda_fault_set(control, CUDA_FAULT_ROWS, (uint32_t)packed.column, b * SX_PACK_BLOCK);
    return {};
}

#endif
