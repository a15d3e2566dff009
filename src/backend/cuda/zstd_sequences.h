/* The sequences of a zstd block (RFC 8878, 3.1.1.3.2), read by one warp: their tables, and a lane's worth of
 * them at a time. */
#ifndef SX_BACKEND_CUDA_ZSTD_SEQUENCES_H
#define SX_BACKEND_CUDA_ZSTD_SEQUENCES_H

#include "backend/cuda/zstd.h"

__device__ constexpr uint32_t MOST_LOG[N_TABLES] = {9, 8, 9},
                              MOST_SYMBOLS[N_TABLES] = {LITERAL_CODES, 32, MATCH_CODES};
__device__ constexpr uint32_t DEFAULT_LOG[N_TABLES] = {6, 5, 6}, DEFAULT_SYMBOLS[N_TABLES] = {36, 29, 53};

__device__ constexpr int8_t default_counts[N_TABLES][53] = {
    {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
     2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
    {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
    {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}};

/* Of codes from 16 (literals) and 32 (matches) on: the least number, and bits that are added to it. */
__device__ constexpr uint32_t literal_base[] = {16,  18,  20,  22,   24,   28,   32,   40,    48,    64,
                                                128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
__device__ constexpr uint8_t literal_bits[] = {1, 1, 1, 1,  2,  2,  3,  3,  4,  6,
                                               7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
__device__ constexpr uint32_t match_base[] = {35,  37,  39,  41,   43,   47,   51,   59,    67,    83,   99,
                                              131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};
__device__ constexpr uint8_t match_bits[] = {1, 1, 1, 1,  2,  2,  3,  3,  4,  4, 5,
                                             7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
constexpr uint32_t PLAIN_LITERALS = 16, PLAIN_MATCHES = 32, LEAST_MATCH = 3;

__device__ static inline uint32_t extra_bits(int t, uint32_t symbol) {
    if (t == OFFSETS)
        return symbol;
    if (t == LENGTHS)
        return symbol < PLAIN_LITERALS ? 0 : literal_bits[symbol - PLAIN_LITERALS];
    return symbol < PLAIN_MATCHES ? 0 : match_bits[symbol - PLAIN_MATCHES];
}

/* Once, before the first block. */
__device__ static inline void make_bases(struct zstd_memory &memory) {
    for (uint32_t code = threadIdx.x; code < MATCH_CODES; code += CUDA_WARP) {
        memory.match_base[code] =
            code < PLAIN_MATCHES ? code + LEAST_MATCH : match_base[code - PLAIN_MATCHES];
        if (code < LITERAL_CODES)
            memory.literal_base[code] = code < PLAIN_LITERALS ? code : literal_base[code - PLAIN_LITERALS];
    }
    __syncwarp();
}

/* The table at state->at, which moves behind it. */
__device__ static inline bool read_table(struct zstd_memory &memory, struct zstd_state *state, uint64_t end,
                                         int t, uint32_t mode) {
    enum { DEFAULT, ONE, CODED, AGAIN };
    uint32_t log = 0, n = 0;
    if (mode == AGAIN || (mode == DEFAULT && memory.is_default[t]))
        return memory.logs[t] != NO_TABLE;
    if (mode == ONE) {
        const uint32_t symbol = (uint32_t)bytes_at(*state, state->at++, 1);
        if (state->at > end || symbol >= MOST_SYMBOLS[t])
            return false;
        if (threadIdx.x == 0) {
            memory.tables[t][0] = fse_entry(0, 0, extra_bits(t, symbol), symbol);
            memory.logs[t] = 0;
            memory.is_default[t] = false;
        }
        __syncwarp();
        return true;
    }
    if (mode == DEFAULT) {
        log = DEFAULT_LOG[t];
        n = DEFAULT_SYMBOLS[t];
        for (uint32_t i = threadIdx.x; i < n; i += CUDA_WARP)
            memory.counts.of[i] = default_counts[t][i];
    } else {
        struct fse_front front = {&state->piece, state->at * 8, end * 8};
        n = fse_read(&front, MOST_SYMBOLS[t], MOST_LOG[t], memory.counts, &log);
        state->at = front.at / 8;
        if (log == 0)
            return false;
    }
    fse_make(memory.counts, n, log, memory.tables[t], [t](uint32_t symbol) { return extra_bits(t, symbol); });
    if (threadIdx.x == 0) {
        memory.logs[t] = log;
        memory.is_default[t] = mode == DEFAULT;
    }
    __syncwarp();
    return true;
}

struct sequence {
    uint32_t literals, distance, bytes;
};

/* A block's that are not read yet: their bits, and the states as indices of the tables. */
struct sequences {
    struct fse_back back;
    int32_t begin; /* of memory.window */
    uint32_t n;
    uint32_t length, offset, match;
};

/* The distance that a number stands for; 0: none. */
__device__ static inline uint32_t find_distance(struct zstd_state *state, uint32_t number,
                                                bool has_literals) {
    const uint32_t which = number - has_literals;
    const uint32_t distance = number > 3   ? number - 3
                              : which == 0 ? state->last
                              : which == 1 ? state->second
                              : which == 2 ? state->third
                                           : state->last - 1;
    if (which > 1)
        state->third = state->second;
    if (which > 0)
        state->second = state->last;
    state->last = distance;
    return distance;
}

/* Of all bits that one takes, and a word in front. */
constexpr int32_t MOST_SEQUENCE_BITS = 160;

__device__ static inline void need_bits(struct zstd_memory &memory, struct sequences *rest) {
    if (rest->back.left - MOST_SEQUENCE_BITS < rest->begin)
        window_fill(memory.window, rest->back, &rest->begin);
}

/* From state->at to `end`: how many, their tables, the first states. *out: n is 0: there are none. */
__device__ static inline bool open_sequences(struct zstd_memory &memory, struct zstd_state *state,
                                             uint64_t end, struct sequences *out) {
    const uint64_t head = bytes_at(*state, state->at, 3);
    const uint32_t first = head & 0xff, bytes = first < 128 ? 1 : first < 255 ? 2 : 3;
    *out = {};
    out->n = first < 128   ? first
             : first < 255 ? (first - 128) << 8 | (uint32_t)(head >> 8 & 0xff)
                           : (uint32_t)(head >> 8 & 0xffff) + 0x7f00;
    state->at += bytes;
    if (out->n == 0)
        return state->at == end;
    const uint32_t modes = (uint32_t)bytes_at(*state, state->at++, 1);
    if (modes & 3 || state->at > end)
        return false;
    for (int t = 0; t < N_TABLES; t++)
        if (!read_table(memory, state, end, t, modes >> (6 - 2 * t) & 3))
            return false;
    if (state->at >= end || !back_open(state->piece.stored + state->at, end - state->at, &out->back))
        return false;
    out->length = (uint32_t)back_take(&out->back, memory.logs[LENGTHS]);
    out->offset = (uint32_t)back_take(&out->back, memory.logs[OFFSETS]);
    out->match = (uint32_t)back_take(&out->back, memory.logs[MATCHES]);
    out->begin = INT32_MAX;
    return out->back.left >= 0;
}

/* The next one; its states follow. The bits of a field are known once the three entries are, so all are read
 * at the same time. */
__device__ static inline struct sequence next_sequence(const struct zstd_memory &memory,
                                                       struct zstd_state *state, struct sequences *rest) {
    const uint32_t length = memory.tables[LENGTHS][rest->length],
                   offset = memory.tables[OFFSETS][rest->offset], match = memory.tables[MATCHES][rest->match];
    const uint32_t far = fse_extra(offset), match_more = fse_extra(match), length_more = fse_extra(length);
    const uint32_t match_bits = fse_bits(match), offset_bits = fse_bits(offset),
                   state_bits = fse_bits(length) + match_bits + offset_bits;
    const int32_t behind_offset = rest->back.left - (int32_t)far,
                  behind_lengths = behind_offset - (int32_t)(match_more + length_more);
    const uint32_t number = (1u << far) + window_peek(memory.window, rest->begin, rest->back.left, far);
    const uint32_t more = window_peek(memory.window, rest->begin, behind_offset, match_more + length_more);
    rest->back.left = behind_lengths;
    if (--rest->n > 0) {
        const uint32_t next = window_peek(memory.window, rest->begin, behind_lengths, state_bits);
        rest->back.left -= (int32_t)state_bits;
        rest->length = fse_base(length) + (next >> (match_bits + offset_bits));
        rest->match = fse_base(match) + (next >> offset_bits & ((1u << match_bits) - 1));
        rest->offset = fse_base(offset) + (next & ((1u << offset_bits) - 1));
    }
    struct sequence sequence;
    sequence.bytes = memory.match_base[fse_symbol(match)] + (more >> length_more);
    sequence.literals = memory.literal_base[fse_symbol(length)] + (more & ((1u << length_more) - 1));
    sequence.distance = find_distance(state, number, sequence.literals > 0);
    return sequence;
}

/* A sequence for each of the first lanes, as many as there are; false: the bits are fewer, or more. */
__device__ static inline bool read_sequences(struct zstd_memory &memory, struct zstd_state *state,
                                             struct sequences *rest, struct sequence *out) {
    const uint32_t n = rest->n < (uint32_t)CUDA_WARP ? rest->n : (uint32_t)CUDA_WARP;
    *out = {0, 0, 0};
    for (uint32_t k = 0; k < n; k++) {
        need_bits(memory, rest);
        const struct sequence sequence = next_sequence(memory, state, rest);
        if (rest->back.left < 0)
            return false;
        if (k == threadIdx.x)
            *out = sequence;
    }
    return rest->n > 0 || rest->back.left == 0;
}

#endif
