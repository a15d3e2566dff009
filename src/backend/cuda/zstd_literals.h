/* The literals of a zstd block (RFC 8878, 3.1.1.3.1), by one warp. */
#ifndef SX_BACKEND_CUDA_ZSTD_LITERALS_H
#define SX_BACKEND_CUDA_ZSTD_LITERALS_H

#include "backend/cuda/zstd.h"

/* ---- the tree of literals ---- */

/* Two states take turns; what the last one has read was not whole, and then the other's symbol is the last.
 */
__device__ static inline uint32_t coded_weights(struct zstd_memory &memory, const struct zstd_state &state,
                                                uint32_t bytes) {
    struct fse_front front = {&state.piece, state.at * 8, (state.at + bytes) * 8};
    uint32_t log, n = 0;
    const uint32_t symbols = fse_read(&front, MOST_TREE_BITS + 2, WEIGHTS_LOG, memory.counts, &log);
    struct fse_back back;
    if (log == 0 || !back_open(state.piece.stored + front.at / 8, (front.end - front.at) / 8, &back))
        return 0;
    fse_make(memory.counts, symbols, log, memory.weights_table, [](uint32_t) { return 0u; });
    uint32_t entry = memory.weights_table[back_take(&back, log)];
    uint32_t other = memory.weights_table[back_take(&back, log)];
    if (back.left < 0)
        return 0;
    for (bool is_whole = true; n < MOST_WEIGHTS; n++) {
        if (threadIdx.x == 0)
            memory.weights[n] = (uint8_t)fse_symbol(entry);
        if (!is_whole)
            return n + 1;
        const uint32_t next = fse_next(entry, &back);
        is_whole = back.left >= 0;
        entry = other;
        other = is_whole ? memory.weights_table[next] : 0;
    }
    return 0;
}

__device__ static inline uint32_t plain_weights(struct zstd_memory &memory, const struct zstd_state &state,
                                                uint32_t n) {
    for (uint32_t i = threadIdx.x; i < n; i += CUDA_WARP) {
        const uint32_t two = (uint32_t)bytes_at(state, state.at + i / 2, 1);
        memory.weights[i] = i % 2 ? two & 15 : two >> 4;
    }
    return n;
}

/* The tree's bits, from n weights to which the last one is added; 0: they are of no tree. */
__device__ static inline uint32_t complete_weights(struct zstd_memory &memory, uint32_t n) {
    uint32_t sum = 0, ones = 0, most = 0;
    for (uint32_t i = threadIdx.x; i < n; i += CUDA_WARP) {
        const uint32_t weight = memory.weights[i];
        sum += weight ? 1u << (weight - 1) : 0;
        ones += weight == 1;
        most |= weight > MOST_TREE_BITS;
    }
    sum = __reduce_add_sync(ALL_LANES, sum);
    ones = __reduce_add_sync(ALL_LANES, ones);
    if (n == 0 || sum == 0 || __any_sync(ALL_LANES, (int)most))
        return 0;
    const uint32_t bits = highest_bit(sum) + 1, left = (1u << bits) - sum;
    if (bits > MOST_TREE_BITS || left & (left - 1))
        return 0;
    ones += left == 1;
    if (threadIdx.x == 0)
        memory.weights[n] = (uint8_t)(highest_bit(left) + 1);
    __syncwarp();
    return ones >= 2 && ones % 2 == 0 ? bits : 0;
}

/* Symbols by their weights, the lightest first; each has as many entries as its weight tells. */
__device__ static inline void fill_tree(struct zstd_memory &memory, uint32_t n, uint32_t bits) {
    uint32_t place = 0;
    for (uint32_t weight = 1; weight <= bits; weight++) {
        const uint32_t entries = 1u << (weight - 1);
        for (uint32_t first = 0; first < n; first += CUDA_WARP) {
            const uint32_t symbol = first + threadIdx.x;
            const bool is_this = symbol < n && memory.weights[symbol] == weight;
            const uint32_t all = __ballot_sync(ALL_LANES, is_this);
            const uint32_t begin = place + (uint32_t)__popc(all & ((1u << threadIdx.x) - 1)) * entries;
            for (uint32_t i = 0; is_this && i < entries; i++)
                memory.tree[begin + i] = (uint16_t)(symbol << 4 | (bits + 1 - weight));
            place += (uint32_t)__popc(all) * entries;
        }
    }
    __syncwarp();
}

/* The tree at state->at, which moves behind it; not behind `end`. */
__device__ static inline bool read_tree(struct zstd_memory &memory, struct zstd_state *state, uint64_t end) {
    constexpr uint32_t PLAIN = 127;
    const uint32_t head = (uint32_t)bytes_at(*state, state->at++, 1);
    const uint32_t bytes = head > PLAIN ? (head - PLAIN + 1) / 2 : head;
    __syncwarp();
    if (state->at + bytes > end)
        return false;
    const uint32_t n =
        head > PLAIN ? plain_weights(memory, *state, head - PLAIN) : coded_weights(memory, *state, bytes);
    __syncwarp();
    state->at += bytes;
    state->tree_bits = complete_weights(memory, n);
    if (state->tree_bits)
        fill_tree(memory, n + 1, state->tree_bits);
    return state->tree_bits != 0;
}

/* ---- literals ---- */

/* n literals of a stream; one lane. False: its bits are more, or fewer. */
__device__ static inline bool read_stream(const struct zstd_memory &memory, const struct zstd_state &state,
                                          uint64_t at, uint64_t bytes, uint8_t *out, uint32_t n) {
    constexpr uint32_t TURN_BITS = 55, TURN = TURN_BITS / MOST_TREE_BITS;
    struct fse_back back;
    if (!back_open(state.piece.stored + at, bytes, &back))
        return false;
    if (n == 0)
        return back.left == 0;
    for (uint32_t done = 0; done < n && back.left > 0;) {
        const uint64_t bits = back_peek(back, TURN_BITS);
        uint32_t used = 0;
        for (uint32_t k = 0; k < TURN && done < n; k++) {
            const uint64_t next =
                bits >> (TURN_BITS - state.tree_bits - used) & ((1u << state.tree_bits) - 1);
            const uint32_t entry = memory.tree[next];
            out[done++] = (uint8_t)(entry >> 4);
            used += entry & 15;
        }
        back.left -= used;
        if (done == n)
            return back.left == 0;
    }
    return false;
}

/* In one stream or four, of `bytes` bytes at state->at. */
__device__ static inline bool read_streams(const struct zstd_memory &memory, const struct zstd_state &state,
                                           uint32_t n_streams, uint64_t bytes, uint8_t *out, uint32_t n) {
    constexpr uint32_t LEAST_SPLIT = 6, JUMPS_BYTES = 6, JUMP_BITS = 16;
    const uint32_t lane = threadIdx.x, each = (n + n_streams - 1) / n_streams;
    uint64_t at = state.at, end = state.at + bytes;
    bool is_right = true;
    if (n_streams > 1) {
        if (n < LEAST_SPLIT || bytes < JUMPS_BYTES || each * (n_streams - 1) > n)
            return false;
        const uint64_t jumps = bytes_at(state, at, JUMPS_BYTES);
        at += JUMPS_BYTES;
        for (uint32_t k = 0; k < lane && k < n_streams - 1; k++)
            at += jumps >> JUMP_BITS * k & 0xffff;
        if (lane < n_streams - 1)
            end = at + (jumps >> JUMP_BITS * lane & 0xffff);
        is_right = at <= end && end <= state.at + bytes;
    }
    if (lane < n_streams && is_right)
        is_right = read_stream(memory, state, at, end - at, out + lane * each,
                               lane == n_streams - 1 ? n - lane * each : each);
    __syncwarp();
    return __all_sync(ALL_LANES, is_right || lane >= n_streams);
}

struct literals_header {
    uint32_t kind, bytes, plain_bytes, stored_bytes, n_streams;
};
enum { RAW, REPEATED, COMPRESSED, COMPRESSED_AGAIN };

__device__ static inline struct literals_header literals_header(const struct zstd_state &state) {
    const uint64_t head = bytes_at(state, state.at, 5);
    const uint32_t kind = head & 3, format = head >> 2 & 3;
    if (kind < COMPRESSED) {
        const uint32_t bytes = format == 1 ? 2 : format == 3 ? 3 : 1;
        const uint32_t n = (uint32_t)(format == 1   ? head >> 4 & 0xfff
                                      : format == 3 ? head >> 4 & 0xfffff
                                                    : head >> 3 & 0x1f);
        return {kind, bytes, n, kind == RAW ? n : 1, 0};
    }
    const uint32_t bits = format < 2 ? 10 : format == 2 ? 14 : 18, mask = (1u << bits) - 1;
    return {kind, format < 2 ? 3 : format + 2, (uint32_t)(head >> 4) & mask,
            (uint32_t)(head >> (4 + bits)) & mask, format == 0 ? 1u : 4u};
}

/* The section at state->at, which moves behind it. */
__device__ static inline bool read_literals(struct zstd_memory &memory, struct zstd_state *state,
                                            uint64_t end, struct literals *out) {
    const struct literals_header head = literals_header(*state);
    state->at += head.bytes;
    const uint64_t behind = state->at + head.stored_bytes;
    if (behind > end || head.plain_bytes > state->most_block ||
        head.plain_bytes > state->piece.plain_bytes - state->made)
        return false;
    uint8_t *made = state->piece.plain + state->piece.plain_bytes - head.plain_bytes;
    *out = {head.kind == RAW ? state->piece.stored + state->at : made, head.plain_bytes, head.kind != RAW};
    bool is_right = true;
    if (head.kind == REPEATED) {
        fill_bytes(made, (uint8_t)bytes_at(*state, state->at, 1), head.plain_bytes);
    } else if (head.kind != RAW) {
        is_right = head.kind == COMPRESSED ? read_tree(memory, state, behind) : state->tree_bits != 0;
        is_right = is_right &&
                   read_streams(memory, *state, head.n_streams, behind - state->at, made, head.plain_bytes);
    }
    __syncwarp();
    state->at = behind;
    return is_right;
}

#endif
