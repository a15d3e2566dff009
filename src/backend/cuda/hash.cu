/* Hashes of rows, and bloom filters of them. All keys in one pass: a row costs the bytes of its keys and 8
 * for the hash, or 1. */
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

/* A row costs a sector of the filter besides, at random. */
__global__ void hash_digits_passing(const __grid_constant__ struct cuda_hash_keys keys, int64_t rows,
                                    int shift, const uint64_t *words, uint64_t n_words, uint8_t *out_digits) {
    for (int64_t row = cuda_thread(); row < rows; row += cuda_threads()) {
        const uint64_t hash = hash_row(keys, row, 0);
        out_digits[row] =
            (uint8_t)(sx_bloom_has(words, n_words, hash) ? hash >> shift : (uint64_t)1 << (64 - shift));
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
    if (words)
        SX_LAUNCH(hash_digits_passing, cuda_blocks(rows), CUDA_THREADS, 0, stream, *keys, rows, shift, words,
                  n_words, out_digits);
    else
        SX_LAUNCH(hash_digits, cuda_blocks(rows), CUDA_THREADS, 0, stream, *keys, rows, shift, out_digits);
}
