/* The prefix codes of deflate (RFC 1951, 3.2): made from their lengths and read by a warp, in shared memory.
 */
#ifndef SX_BACKEND_CUDA_PREFIX_CODE_H
#define SX_BACKEND_CUDA_PREFIX_CODE_H

#include "backend/cuda/kernel.h"

constexpr uint32_t PREFIX_MOST_BITS = 15;

/* Codes of up to BITS bits are looked up; longer ones by their length, which is the first one whose limit is
 * above them. An entry is the symbol and, in its low four bits, the code's length; 0: none. */
template <uint32_t SYMBOLS, uint32_t BITS> struct prefix_code {
    uint16_t table[1 << BITS];
    uint16_t sorted[SYMBOLS]; /* symbols by their codes */
    uint16_t counts[PREFIX_MOST_BITS + 1];
    uint16_t first[PREFIX_MOST_BITS + 1]; /* code of a length */
    uint16_t place[PREFIX_MOST_BITS + 1]; /* of its symbol in `sorted` */
    uint16_t limit[PREFIX_MOST_BITS + 1]; /* the code behind a length's last, of PREFIX_MOST_BITS bits */
};

/* The code that these bits begin with (the first one in the lowest bit); 0: none. */
template <uint32_t SYMBOLS, uint32_t BITS>
__device__ static inline uint32_t prefix_find(const struct prefix_code<SYMBOLS, BITS> &code, uint32_t bits) {
    const uint32_t entry = code.table[bits & ((1 << BITS) - 1)];
    if (entry)
        return entry;
    const uint32_t reversed = __brev(bits) >> (32 - PREFIX_MOST_BITS);
    uint32_t length = BITS + 1;
    SX_UNROLL
    for (uint32_t k = BITS + 1; k <= PREFIX_MOST_BITS; k++)
        length += reversed >= code.limit[k];
    if (length > PREFIX_MOST_BITS)
        return 0;
    const uint32_t rank = (reversed >> (PREFIX_MOST_BITS - length)) - code.first[length];
    return (uint32_t)code.sorted[code.place[length] + rank] << 4 | length;
}

/* First codes and places of all lengths. False: the lengths are of no code: too many, or, but for a single
 * code of one bit or none at all, too few. */
template <uint32_t SYMBOLS, uint32_t BITS>
__device__ static inline bool prefix_lay_out(struct prefix_code<SYMBOLS, BITS> &code) {
    uint32_t first = 0, place = 0, left = 1;
    for (uint32_t length = 1; length <= PREFIX_MOST_BITS; length++) {
        const uint32_t count = code.counts[length];
        if (count > 2 * left)
            return false;
        first *= 2;
        left = 2 * left - count;
        if (threadIdx.x == length) {
            code.first[length] = (uint16_t)first;
            code.place[length] = (uint16_t)place;
            code.limit[length] = (uint16_t)((first + count) << (PREFIX_MOST_BITS - length));
        }
        first += count;
        place += count;
    }
    return left == 0 || place == 0 || (place == 1 && code.counts[1] == 1);
}

template <uint32_t SYMBOLS, uint32_t BITS>
__device__ static inline void prefix_put(struct prefix_code<SYMBOLS, BITS> &code, uint32_t symbol,
                                         uint32_t length, uint32_t rank) {
    const uint32_t reversed = __brev(code.first[length] + rank) >> (32 - length);
    code.sorted[code.place[length] + rank] = (uint16_t)symbol;
    if (length <= BITS)
        for (uint32_t at = reversed; at < 1u << BITS; at += 1u << length)
            code.table[at] = (uint16_t)(symbol << 4 | length);
}

/* From the lengths of n symbols' codes, 0 for those without one. A block of one warp. False: they are of no
 * code. */
template <uint32_t SYMBOLS, uint32_t BITS>
__device__ static inline bool prefix_make(struct prefix_code<SYMBOLS, BITS> &code, const uint8_t *lengths,
                                          uint32_t n) {
    constexpr uint32_t ROUNDS = (SYMBOLS + CUDA_WARP - 1) / CUDA_WARP;
    const uint32_t lane = threadIdx.x;
    uint16_t ranks[ROUNDS]; /* among the symbols of this length */
    for (uint32_t at = lane; at < 1u << BITS; at += CUDA_WARP)
        code.table[at] = 0;
    if (lane <= PREFIX_MOST_BITS)
        code.counts[lane] = 0;
    __syncwarp();
    SX_UNROLL
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t symbol = round * CUDA_WARP + lane, length = symbol < n ? lengths[symbol] : 0;
        const uint32_t same = __match_any_sync(0xffffffffu, length), before = same & ((1u << lane) - 1);
        ranks[round] = (uint16_t)(code.counts[length] + __popc(before));
        __syncwarp();
        if (before == 0)
            code.counts[length] = (uint16_t)(code.counts[length] + __popc(same));
        __syncwarp();
    }
    const bool is_code = prefix_lay_out(code);
    __syncwarp();
    SX_UNROLL
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t symbol = round * CUDA_WARP + lane, length = symbol < n ? lengths[symbol] : 0;
        if (is_code && length > 0)
            prefix_put(code, symbol, length, ranks[round]);
    }
    __syncwarp();
    return is_code;
}

#endif
