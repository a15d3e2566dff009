/* Hashes of rows, and bloom filters of them. All keys in one pass (but for large filters, below): a row costs
 * the bytes of its keys and 8 for the hash, or 1. */
#include "backend/cuda/kernel.h"
#include "backend/cuda/launch_hash.h"

/* Signed values hash as 64 bits with their sign, unsigned ones with zeros. */
template <typename T>
__device__ __forceinline__ uint64_t hash_integer(const struct cuda_column &column, int64_t row) {
    return sx_hash_u64((uint64_t)(int64_t)cuda_load<T>(column, row));
}

__device__ static inline uint64_t hash_value(const struct cuda_column &column, int64_t row) {
    switch (column.phys) {
    case SX_PHYS_I8: return hash_integer<int8_t>(column, row);
    case SX_PHYS_I16: return hash_integer<int16_t>(column, row);
    case SX_PHYS_I32: return hash_integer<int32_t>(column, row);
    case SX_PHYS_U8: return hash_integer<uint8_t>(column, row);
    case SX_PHYS_U16: return hash_integer<uint16_t>(column, row);
    case SX_PHYS_U32: return hash_integer<uint32_t>(column, row);
    case SX_PHYS_I64:
    case SX_PHYS_U64: return hash_integer<int64_t>(column, row);
    case SX_PHYS_I128:
    case SX_PHYS_U128: return sx_hash_u128(cuda_load<sx_u128>(column, row));
    case SX_PHYS_F32: return sx_hash_f64((double)cuda_load<float>(column, row));
    case SX_PHYS_F64: return sx_hash_f64(cuda_load<double>(column, row));
    case SX_PHYS_STRING: {
        const struct sx_string view = cuda_load<struct sx_string>(column, row);
        return sx_hash_string(&view);
    }
    case CUDA_HASH_READY: return cuda_load<uint64_t>(column, row);
    default: return SX_HASH_NULL;
    }
}

/* `hash`: so far, if keys are combined with it. */
__device__ static inline uint64_t hash_row(const struct cuda_hash_keys &keys, int64_t row, uint64_t hash) {
    for (int k = 0; k < keys.n; k++) {
        const struct cuda_column &column = keys.columns[k];
        const uint64_t next = cuda_is_valid(column, row) ? hash_value(column, row) : SX_HASH_NULL;
        hash = k == 0 && !keys.combine ? next : sx_hash_combine(hash, next);
    }
    return hash;
}

__global__ void hash_rows(const __grid_constant__ struct cuda_hash_keys keys, int64_t rows,
                          uint64_t *out_hashes) {
    for (int64_t row = cuda_thread(); row < rows; row += cuda_threads())
        out_hashes[row] = hash_row(keys, row, keys.combine ? out_hashes[row] : 0);
}

__global__ void hash_digits(const __grid_constant__ struct cuda_hash_keys keys, int64_t rows, int shift,
                            uint8_t *out_digits) {
    for (int64_t row = cuda_thread(); row < rows; row += cuda_threads())
        out_digits[row] = (uint8_t)(hash_row(keys, row, 0) >> shift);
}

/* `word`: where the filter has the hash's bits. */
__device__ __forceinline__ uint32_t digit_passing(uint64_t hash, uint64_t word, int shift) {
    const uint64_t bits = sx_bloom_bits(hash);
    return (uint32_t)((word & bits) == bits ? hash >> shift : (uint64_t)1 << (64 - shift));
}

/* A row costs a sector of the filter besides, at random. */
__global__ void hash_digits_passing(const __grid_constant__ struct cuda_hash_keys keys, int64_t rows,
                                    int shift, const uint64_t *words, uint64_t n_words, uint8_t *out_digits) {
    for (int64_t row = cuda_thread(); row < rows; row += cuda_threads()) {
        const uint64_t hash = hash_row(keys, row, 0);
        out_digits[row] = (uint8_t)digit_passing(hash, words[sx_bloom_word(hash, n_words)], shift);
    }
}

/* ---- digits of plain values ----
 * One key of integers as they are, without NULLs, and maybe a constant behind it, as exchanges have: four
 * rows a thread, in one store. A filter that is larger than the cache is looked at part by part, each for all
 * rows: to read keys again costs less than sectors that come from memory. */

enum { PLAIN_ROWS = 4 };

struct plain_digits {
    const void *values;
    struct cuda_column behind; /* the constant; its values NULL: there is none */
    int64_t rows;
    int shift;
    const uint64_t *words;
    uint64_t n_words;
    uint32_t pass, n_passes; /* the part of the words' range that is looked at */
    uint8_t *out_digits;
};

template <typename T> struct alignas(16) plain_values {
    T values[PLAIN_ROWS];
};

/* Past what the cache has of a filter. */
template <typename T>
__device__ __forceinline__ struct plain_values<T> load_plain(const void *values, int64_t at) {
    struct plain_values<T> four;
    ulonglong2 parts[sizeof four / sizeof(ulonglong2)];
    const ulonglong2 *from = (const ulonglong2 *)((const struct plain_values<T> *)values + at);
    SX_UNROLL
    for (int i = 0; i < (int)(sizeof four / sizeof *from); i++)
        parts[i] = __ldcs(from + i);
    memcpy(&four, parts, sizeof four);
    return four;
}

__device__ __forceinline__ uint64_t
hash_behind(const struct plain_digits &by) {
    return by.behind.values ? hash_value(by.behind, 0) : 0;
}

/* `behind`: the constant's. */
template <typename T>
__device__ __forceinline__ uint64_t plain_hash(const struct plain_digits &by, T value, uint64_t behind) {
    const uint64_t hash = sx_hash_u64((uint64_t)(int64_t)value);
    return by.behind.values ? sx_hash_combine(hash, behind) : hash;
}

__device__ __forceinline__ bool is_of_pass(const struct plain_digits &by, uint64_t hash) {
    return (uint32_t)((hash >> 32) * by.n_passes >> 32) == by.pass;
}

/* Digits of this pass are added to those of the passes before. */
template <bool FILTERED>
__device__ static inline uint32_t plain_four(const struct plain_digits &by,
                                             const uint64_t (&hashes)[PLAIN_ROWS], uint32_t digits) {
    uint64_t words[PLAIN_ROWS];
    SX_UNROLL
    for (int i = 0; FILTERED && i < PLAIN_ROWS; i++)
        words[i] = is_of_pass(by, hashes[i]) ? by.words[sx_bloom_word(hashes[i], by.n_words)] : 0;
    SX_UNROLL
    for (int i = 0; i < PLAIN_ROWS; i++)
        if (!FILTERED)
            digits |= (uint32_t)(hashes[i] >> by.shift) << 8 * i;
        else if (is_of_pass(by, hashes[i]))
            digits |= digit_passing(hashes[i], words[i], by.shift) << 8 * i;
    return digits;
}

template <typename T, bool FILTERED>
__global__ void __launch_bounds__(CUDA_THREADS, 6)
    hash_plain_digits(const __grid_constant__ struct plain_digits by) {
    const int64_t n = by.rows / PLAIN_ROWS;
    const uint64_t behind = hash_behind(by);
    uint32_t *out = (uint32_t *)by.out_digits;
    for (int64_t at = cuda_thread(); at < n; at += cuda_threads()) {
        const struct plain_values<T> four = load_plain<T>(by.values, at);
        uint64_t hashes[PLAIN_ROWS];
        SX_UNROLL
        for (int i = 0; i < PLAIN_ROWS; i++)
            hashes[i] = plain_hash(by, four.values[i], behind);
        out[at] = plain_four<FILTERED>(by, hashes, by.pass == 0 ? 0 : out[at]);
    }
    const int64_t row = n * PLAIN_ROWS + cuda_thread();
    if (row >= by.rows)
        return;
    const uint64_t hash = plain_hash(by, ((const T *)by.values)[row], behind);
    if (!FILTERED)
        by.out_digits[row] = (uint8_t)(hash >> by.shift);
    else if (is_of_pass(by, hash))
        by.out_digits[row] =
            (uint8_t)digit_passing(hash, by.words[sx_bloom_word(hash, by.n_words)], by.shift);
}

template <typename T> static void plain_digits_of(cudaStream_t stream, const struct plain_digits &by) {
    const unsigned blocks = cuda_many_blocks((by.rows + PLAIN_ROWS - 1) / PLAIN_ROWS);
    if (by.words)
        SX_LAUNCH((hash_plain_digits<T, true>), blocks, CUDA_THREADS, 0, stream, by);
    else
        SX_LAUNCH((hash_plain_digits<T, false>), blocks, CUDA_THREADS, 0, stream, by);
}

static uint32_t passes_over(uint64_t n_words) {
    const uint64_t words_a_pass = 5 << 20 /* 40 MB */, most = 4;
    const uint64_t n = (n_words + words_a_pass - 1) / words_a_pass;
    return (uint32_t)(n < 1 ? 1 : n < most ? n : most);
}

static bool is_plain(const struct cuda_hash_keys &keys) {
    const struct cuda_column &key = keys.columns[0];
    const bool is_word = key.phys == SX_PHYS_I32 || key.phys == SX_PHYS_U32 || key.phys == SX_PHYS_I64 ||
                         key.phys == SX_PHYS_U64;
    const bool is_one = keys.n == 1 || (keys.n == 2 && keys.columns[1].layout == CUDA_CONSTANT &&
                                        keys.columns[1].values && !keys.columns[1].valid);
    return is_one && !keys.combine && is_word && key.layout == CUDA_FLAT && !key.valid &&
           (uintptr_t)key.values % alignof(struct plain_values<int32_t>) == 0;
}

static void digits_of_plain(cudaStream_t stream, const struct cuda_hash_keys &keys, struct plain_digits by) {
    const struct cuda_column &key = keys.columns[0];
    by.values = key.values;
    if (keys.n > 1)
        by.behind = keys.columns[1];
    by.n_passes = by.words ? passes_over(by.n_words) : 1;
    for (by.pass = 0; by.pass < by.n_passes; by.pass++)
        switch (key.phys) {
        case SX_PHYS_I32: plain_digits_of<int32_t>(stream, by); break;
        case SX_PHYS_U32: plain_digits_of<uint32_t>(stream, by); break;
        default: plain_digits_of<int64_t>(stream, by);
        }
}

/* Likewise, mostly in the cache. A word that several lanes of a warp are at is looked at first, so that a key
 * of many rows is not a queue at one address; for others that would be an access more. */
__global__ void bloom_add(const __grid_constant__ struct cuda_hash_keys keys, int64_t rows, uint64_t *words,
                          uint64_t n_words) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    for (int64_t base = cuda_thread() - lane; base < rows; base += cuda_threads()) {
        const int64_t row = base + lane;
        const uint64_t hash = row < rows ? hash_row(keys, row, 0) : 0, bits = sx_bloom_bits(hash),
                       at = sx_bloom_word(hash, n_words);
        const bool is_alone = __popc(__match_any_sync(0xffffffffu, (uint32_t)at)) == 1;
        if (row < rows && (is_alone || (words[at] & bits) != bits))
            atomicOr((unsigned long long *)&words[at], (unsigned long long)bits);
    }
}

extern "C" void cuda_bloom_add(cudaStream_t stream, const struct cuda_hash_keys *keys, int64_t rows,
                               uint64_t *words, uint64_t n_words) {
    SX_LAUNCH(bloom_add, cuda_blocks(rows), CUDA_THREADS, 0, stream, *keys, rows, words, n_words);
}
extern "C" void cuda_hash_rows(cudaStream_t stream, const struct cuda_hash_keys *keys, int64_t rows,
                               uint64_t *out_hashes) {
    SX_LAUNCH(hash_rows, cuda_blocks(rows), CUDA_THREADS, 0, stream, *keys, rows, out_hashes);
}
extern "C" void cuda_hash_digits(cudaStream_t stream, const struct cuda_hash_keys *keys, int64_t rows,
                                 int shift, const uint64_t *words, uint64_t n_words, uint8_t *out_digits) {
    struct plain_digits plain = {};
    plain.rows = rows;
    plain.shift = shift;
    plain.words = words;
    plain.n_words = n_words;
    plain.out_digits = out_digits;
    if (is_plain(*keys))
        digits_of_plain(stream, *keys, plain);
    else if (words)
        SX_LAUNCH(hash_digits_passing, cuda_blocks(rows), CUDA_THREADS, 0, stream, *keys, rows, shift, words,
                  n_words, out_digits);
    else
        SX_LAUNCH(hash_digits, cuda_blocks(rows), CUDA_THREADS, 0, stream, *keys, rows, shift, out_digits);
}
