/* States to results. */
#include "backend/cuda/group_kernel.h"
#include "tensor/semantics_average.h"

/* ---- floating-point sums ---- */

enum { MAX_WORDS = (CUDA_GROUP_BITS + 64) / 64 };

__device__ static inline double f64_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 64 bits from bit `at` on. */
__device__ static inline uint64_t bits_from(const group_word *words, int n_words, int at) {
    const int w = at / 64, shift = at % 64;
    const group_word high = w + 1 < n_words ? words[w + 1] : 0;
    return shift ? words[w] >> shift | high << (64 - shift) : words[w];
}

/* Rounded once, half to even. Bit 0 stands for 2^(64 * first_word - 1074). */
__device__ static inline double round_words(const group_word *words, int n_words, int first_word) {
    const group_word flip = n_words > 0 ? (group_word)((int64_t)words[n_words - 1] >> 63) : 0;
    group_word magnitude[MAX_WORDS];
    group_word carry = flip & 1;
    int top = -1, lowest = -1;
    for (int w = 0; w < n_words; w++) {
        magnitude[w] = (words[w] ^ flip) + carry;
        carry = carry && magnitude[w] == 0;
        if (!magnitude[w])
            continue;
        top = w * 64 + 63 - __clzll((long long)magnitude[w]);
        if (lowest < 0)
            lowest = w * 64 + __ffsll((long long)magnitude[w]) - 1;
    }
    if (top < 0)
        return 0;
    const int absolute_top = first_word * 64 + top;
    /* the lowest bit that a double keeps: of subnormal values it is bit 0 */
    const int keep = absolute_top <= 52 ? -first_word * 64 : top - 52;
    uint64_t mantissa = keep >= 0 ? bits_from(magnitude, n_words, keep) : magnitude[0] << -keep;
    bool up = false;
    if (keep > 0 && lowest < keep) {
        const bool half = magnitude[(keep - 1) / 64] >> (keep - 1) % 64 & 1;
        up = half && (lowest < keep - 1 || (mantissa & 1));
    }
    uint64_t bits = mantissa + up;
    if (absolute_top > 52)
        bits += (uint64_t)(absolute_top - 52) << 52; /* the highest bit adds 1 to the exponent */
    if (bits > 0x7ff0000000000000ull)
        bits = 0x7ff0000000000000ull;
    return flip ? -f64_of_bits(bits) : f64_of_bits(bits);
}

__device__ static inline double float_sum(const struct cuda_group_sum &sum, int64_t group) {
    const uint8_t *flags = sum.flags + group * sum.flag_bytes;
    if (flags[1] || (flags[2] && flags[3]))
        return f64_of_bits(0x7ff8000000000000ull);
    if (flags[2] || flags[3])
        return f64_of_bits(flags[2] ? 0x7ff0000000000000ull : 0xfff0000000000000ull);
    return round_words(sum.words + group * sum.n_words, sum.n_words, sum.first_word);
}

__global__ void emit_float_sum(struct cuda_group_sum sum, int64_t first, int64_t n, double *out,
                               uint8_t *valid) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const int64_t group = first + i;
        const double value = float_sum(sum, group);
        out[i] = sum.counts && sum.counts[group] ? value / (double)(int64_t)sum.counts[group] : value;
        valid[i] = sum.flags[group * sum.flag_bytes];
    }
}

/* ---- integers ---- */

__device__ static inline sx_i128 integer_sum(const struct cuda_group_sum &sum, int64_t group) {
    const group_word *words = sum.words + group * sum.n_words;
    return (sx_i128)((sx_u128)words[1] << 64 | words[0]);
}

/* A block is of one column, blockIdx.y. */
__global__ void emit_results(const __grid_constant__ struct cuda_group_results results, int64_t first,
                             int64_t n) {
    const struct cuda_group_result &result = results.of[blockIdx.y];
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        if (result.values)
            result.values[i] = integer_sum(result.sum, first + i);
        result.valid[i] = result.sum.flags[(first + i) * result.sum.flag_bytes] == 1;
    }
}

/* As DuckDB divides. */
__global__ void emit_average(struct cuda_group_sum sum, double scale, bool is_small, int64_t first, int64_t n,
                             double *out, uint8_t *valid) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const int64_t count = (int64_t)sum.counts[first + i];
        const sx_i128 total = integer_sum(sum, first + i);
        valid[i] = count > 0;
        out[i] = sx_average(total, count, scale, is_small);
    }
}

/* A block is of one sum, blockIdx.y. */
__global__ void check_sums(const __grid_constant__ struct cuda_group_checks checks, int64_t n,
                           struct cuda_control *control) {
    const struct cuda_group_sum &sum = checks.of[blockIdx.y];
    for (int64_t group = cuda_thread(); group < n; group += cuda_threads()) {
        const group_word *words = sum.words + group * sum.n_words;
        if (words[2] == (group_word)((int64_t)words[1] >> 63))
            continue;
        if (atomicCAS(&control->fault.kind, (uint32_t)CUDA_FAULT_NONE, (uint32_t)CUDA_FAULT_SUM) ==
            CUDA_FAULT_NONE)
            for (int w = 0; w < 3; w++)
                control->fault.detail[w] = words[w];
    }
}

/* ---- values ---- */

__device__ static inline double float_of_image(group_word image) {
    return f64_of_bits(image >> 63 ? image ^ (1ull << 63) : ~image);
}

template <typename T>
__global__ void emit_best(const group_word *best, group_word flip, int64_t first, int64_t n, T *out) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const group_word image = best[first + i] ^ flip;
        if constexpr ((T)0.5 != (T)0)
            out[i] = (T)float_of_image(image);
        else if constexpr (group_is_signed<T>)
            out[i] = (T)(int64_t)(image ^ (1ull << 63));
        else
            out[i] = (T)image;
    }
}

extern "C" {

void cuda_group_emit_results(cudaStream_t stream, const struct cuda_group_results *results, int64_t first,
                             int64_t n) {
    const dim3 blocks = {cuda_blocks(n), (unsigned)results->n};
    SX_LAUNCH(emit_results, blocks, CUDA_THREADS, 0, stream, *results, first, n);
}
void cuda_group_emit_float_sum(cudaStream_t stream, struct cuda_group_sum sum, int64_t first, int64_t n,
                               double *out, uint8_t *valid) {
    SX_LAUNCH(emit_float_sum, cuda_blocks(n), CUDA_THREADS, 0, stream, sum, first, n, out, valid);
}
void cuda_group_emit_average(cudaStream_t stream, struct cuda_group_sum sum, double scale, bool is_small,
                             int64_t first, int64_t n, double *out, uint8_t *valid) {
    SX_LAUNCH(emit_average, cuda_blocks(n), CUDA_THREADS, 0, stream, sum, scale, is_small, first, n, out,
              valid);
}
void cuda_group_emit_best(cudaStream_t stream, const unsigned long long *best, int32_t phys, bool max,
                          int64_t first, int64_t n, void *out) {
    group_dispatch_small(phys, [=](auto zero) {
        SX_LAUNCH(emit_best, cuda_blocks(n), CUDA_THREADS, 0, stream, best, max ? 0 : ~(group_word)0, first,
                  n, (decltype(zero) *)out);
    });
}
void cuda_group_check_sums(cudaStream_t stream, const struct cuda_group_checks *checks, int64_t n,
                           struct cuda_control *control) {
    const dim3 blocks = {cuda_blocks(n), (unsigned)checks->n};
    SX_LAUNCH(check_sums, blocks, CUDA_THREADS, 0, stream, *checks, n, control);
}
}
