/* Finite state entropy as zstd has it (RFC 8878, 4.1), by a block of one warp: tables in shared memory, and
 * bits that are read from the end. */
#ifndef SX_BACKEND_CUDA_FSE_H
#define SX_BACKEND_CUDA_FSE_H

#include "backend/cuda/inflate_kernel.h"

/* An entry: what is added to the bits of the next state, the symbol, how many bits of the next state follow,
 * and how many belong to the symbol besides. */
__device__ static inline uint32_t fse_entry(uint32_t base, uint32_t bits, uint32_t extra, uint32_t symbol) {
    return base | symbol << 10 | bits << 16 | extra << 24;
}
__device__ static inline uint32_t fse_base(uint32_t entry) {
    return entry & 0x3ff;
}
__device__ static inline uint32_t fse_symbol(uint32_t entry) {
    return entry >> 10 & 0x3f;
}
__device__ static inline uint32_t fse_bits(uint32_t entry) {
    return entry >> 16 & 0xff;
}
__device__ static inline uint32_t fse_extra(uint32_t entry) {
    return entry >> 24;
}

constexpr uint32_t FSE_SYMBOLS = 64; /* more than any table has */

/* How often each symbol is there in a table of 2^log entries; -1: less than once. In shared memory. */
struct fse_counts {
    int16_t of[FSE_SYMBOLS];
    uint16_t next[FSE_SYMBOLS];
};

__device__ static inline uint32_t highest_bit(uint32_t word) {
    return 31 - (uint32_t)__clz((int)word);
}

/* The first thread: symbols to the entries that they are at. */
__device__ static inline void fse_spread(const struct fse_counts &counts, uint32_t n, uint32_t log,
                                         uint32_t *table) {
    const uint32_t size = 1u << log, step = (size >> 1) + (size >> 3) + 3;
    uint32_t high = size - 1, at = 0;
    for (uint32_t symbol = 0; symbol < n; symbol++)
        if (counts.of[symbol] == -1)
            table[high--] = symbol;
    for (uint32_t symbol = 0; symbol < n; symbol++)
        for (int32_t i = 0; i < counts.of[symbol]; i++) {
            table[at] = symbol;
            do
                at = (at + step) & (size - 1);
            while (at > high);
        }
}

/* The table of counts that are right: their sum is 2^log. extra(symbol): the bits that belong to it. */
template <typename Extra>
__device__ static inline void fse_make(struct fse_counts &counts, uint32_t n, uint32_t log, uint32_t *table,
                                       const Extra &extra) {
    __syncwarp();
    for (uint32_t symbol = threadIdx.x; symbol < n; symbol += CUDA_WARP)
        counts.next[symbol] = counts.of[symbol] == -1 ? 1 : (uint16_t)counts.of[symbol];
    __syncwarp();
    if (threadIdx.x == 0) {
        fse_spread(counts, n, log, table);
        for (uint32_t i = 0; i < 1u << log; i++) {
            const uint32_t symbol = table[i], state = counts.next[symbol]++, bits = log - highest_bit(state);
            table[i] = fse_entry((state << bits) - (1u << log), bits, extra(symbol), symbol);
        }
    }
    __syncwarp();
}

/* Bytes [at, end) of a page, read from the front. */
struct fse_front {
    const struct inflate_piece *piece;
    uint64_t at, end; /* bits */
};

__device__ static inline uint32_t front_peek(const struct fse_front &front, uint32_t n) {
    return (uint32_t)load_bits(front.piece->stored, front.end / 8, front.at, n);
}

/* Zeros that are not there one by one: behind a count of 0. */
__device__ static inline uint32_t take_zeros(struct fse_front *front) {
    uint32_t zeros = 0;
    for (uint32_t more = 3; more == 3 && front->at < front->end; zeros += more) {
        more = front_peek(*front, 2);
        front->at += 2;
    }
    return zeros;
}

/* A symbol's count, less than once as 0, of `left` that there may be. */
__device__ static inline uint32_t take_count(struct fse_front *front, uint32_t left) {
    const uint32_t bits = highest_bit(left) + 1, half = 1u << (bits - 1), spare = 2 * half - 1 - left;
    const uint32_t value = front_peek(*front, bits), low = value & (half - 1);
    const bool is_short = low < spare;
    front->at += bits - is_short;
    return is_short ? low : value < half ? value : value - spare;
}

/* Counts of at most `most` symbols; all lanes do the same. *out_log: 0: damaged. */
__device__ static inline uint32_t fse_read(struct fse_front *front, uint32_t most, uint32_t most_log,
                                           struct fse_counts &counts, uint32_t *out_log) {
    constexpr uint32_t LEAST_LOG = 5;
    const uint32_t log = LEAST_LOG + front_peek(*front, 4);
    uint32_t left = (1u << log) + 1, n = 0;
    front->at += 4;
    *out_log = 0;
    __syncwarp();
    while (left > 1 && n < most && log <= most_log && front->at < front->end) {
        const int32_t count = (int32_t)take_count(front, left) - 1;
        uint32_t zeros = count == 0 ? take_zeros(front) : 0;
        left -= count < 0 ? 1 : (uint32_t)count;
        if (threadIdx.x == 0)
            counts.of[n] = (int16_t)count;
        for (n++; zeros > 0 && n < most; zeros--, n++)
            if (threadIdx.x == 0)
                counts.of[n] = 0;
        if (zeros > 0)
            return 0;
    }
    __syncwarp();
    front->at = (front->at + 7) / 8 * 8;
    if (left == 1 && log <= most_log && front->at <= front->end)
        *out_log = log;
    return n;
}

/* Bytes of a page that are read from the end, whose last bit that is set tells where that is. */
struct fse_back {
    const uint8_t *bytes;
    uint64_t size;
    int32_t left; /* bits; negative: more were read than there are, which were zeros */
};

/* False: there is no end. */
__device__ static inline bool back_open(const uint8_t *bytes, uint64_t size, struct fse_back *out) {
    const uint32_t last = size ? bytes[size - 1] : 0;
    *out = {bytes, size, 0};
    if (last == 0)
        return false;
    out->left = (int32_t)(size - 1) * 8 + (int32_t)highest_bit(last);
    return true;
}

/* The next n bits, at most 57, without taking them. */
__device__ static inline uint64_t back_peek(const struct fse_back &back, uint32_t n) {
    const int32_t from = back.left - (int32_t)n;
    if (from >= 0)
        return load_bits(back.bytes, back.size, (uint64_t)from, n);
    return back.left > 0 ? load_bits(back.bytes, back.size, 0, (uint32_t)back.left) << -from : 0;
}

__device__ static inline uint64_t back_take(struct fse_back *back, uint32_t n) {
    const uint64_t bits = back_peek(*back, n);
    back->left -= (int32_t)n;
    return bits;
}

__device__ static inline uint32_t fse_next(uint32_t entry, struct fse_back *back) {
    return fse_base(entry) + (uint32_t)back_take(back, fse_bits(entry));
}

/* Words of a fse_back's bits in shared memory: those from bit `begin` on, which may lie in front of the first
 * one; there are zeros. */
constexpr int32_t FSE_WINDOW_WORDS = 128, FSE_WORD_BITS = 32;
struct fse_window {
    uint32_t words[FSE_WINDOW_WORDS + 1];
};

/* What begins at a bit that is a word's first. */
__device__ static inline void window_fill(struct fse_window &window, const struct fse_back &back,
                                          int32_t *out_begin) {
    const int32_t behind = (back.left + FSE_WORD_BITS - 1) / FSE_WORD_BITS * FSE_WORD_BITS;
    const int32_t begin = behind - FSE_WINDOW_WORDS * FSE_WORD_BITS;
    __syncwarp();
    for (int32_t k = (int32_t)threadIdx.x; k <= FSE_WINDOW_WORDS; k += CUDA_WARP) {
        const int32_t bit = begin + k * FSE_WORD_BITS;
        window.words[k] =
            bit < 0 ? 0 : (uint32_t)load_bits(back.bytes, back.size, (uint64_t)bit, FSE_WORD_BITS);
    }
    __syncwarp();
    *out_begin = begin;
}

/* The n bits in front of bit `behind`, at most 32. */
__device__ static inline uint32_t window_peek(const struct fse_window &window, int32_t begin, int32_t behind,
                                              uint32_t n) {
    const uint32_t at = (uint32_t)(behind - FSE_WORD_BITS - begin);
    const uint32_t *words = &window.words[at / (uint32_t)FSE_WORD_BITS];
    const uint32_t bits = __funnelshift_r(words[0], words[1], at % (uint32_t)FSE_WORD_BITS);
    return n ? bits >> (FSE_WORD_BITS - n) : 0;
}

#endif
