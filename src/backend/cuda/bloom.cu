/* Bloom filters over hashes: what is not done where rows are hashed (hash.cu). A row costs 8 bytes of its
 * hash, a byte of its flag, and a sector of the filter at random, mostly in the cache: filters are at most as
 * large as that. */
#include "backend/cuda/kernel.h"
#include "backend/cuda/launch_hash.h"

/* A word costs 24 bytes; 16 with a `step` of 0, where other is one word, in place of 1. */
__global__ void bloom_merge(const uint64_t *other, int64_t step, int64_t n_words, uint64_t *words) {
    for (int64_t i = cuda_thread(); i < n_words; i += cuda_threads())
        words[i] |= other[i * step];
}

__global__ void bloom_test(const uint64_t *hashes, int64_t n, const uint64_t *words, uint64_t n_words,
                           uint8_t *flags) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        flags[i] = sx_bloom_has(words, n_words, hashes[i]);
}

extern "C" void cuda_bloom_merge(cudaStream_t stream, const uint64_t *other, int64_t step, int64_t n_words,
                                 uint64_t *words) {
    SX_LAUNCH(bloom_merge, cuda_blocks(n_words), CUDA_THREADS, 0, stream, other, step, n_words, words);
}

extern "C" void cuda_bloom_test(cudaStream_t stream, const uint64_t *hashes, int64_t n, const uint64_t *words,
                                uint64_t n_words, uint8_t *flags) {
    SX_LAUNCH(bloom_test, cuda_blocks(n), CUDA_THREADS, 0, stream, hashes, n, words, n_words, flags);
}
