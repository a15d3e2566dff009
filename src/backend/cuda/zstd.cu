/* zstd (RFC 8878), a warp a page.
 *
 * A block's literals are made first, by a lane a stream, at the end of the page's room: what is written of
 * the block never passes those that are not written yet, so they need no memory of their own. Then all lanes
 * read the sequences, and together copy their bytes.
 *
 * Nothing is read or written outside of the page, whatever the bytes are; what does not come out even is a
 * fault. So are frames with a checksum, which Parquet's writers do not make, and those with a dictionary. */
#include "backend/cuda/fse.h"

constexpr uint32_t ALL = 0xffffffffu;
constexpr uint32_t MOST_BLOCK = 128 << 10, MOST_TREE_BITS = 11, MOST_WEIGHTS = 255, WEIGHTS_LOG = 6;

enum { LENGTHS, OFFSETS, MATCHES, N_TABLES };
__device__ constexpr uint32_t MOST_LOG[N_TABLES] = {9, 8, 9}, MOST_SYMBOLS[N_TABLES] = {36, 32, 53};
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

struct zstd_memory {
    uint16_t tree[1 << MOST_TREE_BITS]; /* symbol and, in the low four bits, the code's length */
    uint32_t tables[N_TABLES][1 << 9];
    uint32_t weights_table[1 << WEIGHTS_LOG];
    uint8_t weights[MOST_WEIGHTS + 1];
    struct fse_counts counts;
};

/* Every lane has the same. Positions are bytes of the page. */
struct zstd_state {
    struct inflate_piece piece;
    uint64_t at;
    uint32_t made, frame;    /* plain bytes, and how many there were when the frame began */
    uint32_t most_block;     /* plain bytes of a block */
    uint32_t recent[3];      /* distances */
    uint32_t tree_bits;      /* 0: there is no tree */
    uint32_t logs[N_TABLES]; /* NO_TABLE: there is none */
};
constexpr uint32_t NO_TABLE = UINT32_MAX;

__device__ static inline uint64_t bytes_at(const struct zstd_state &state, uint64_t at, uint32_t n) {
    return load_bits(state.piece.stored, state.piece.stored_bytes, at * 8, n * 8);
}

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
    fse_make(memory.counts, symbols, log, memory.weights_table);
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
    sum = __reduce_add_sync(ALL, sum);
    ones = __reduce_add_sync(ALL, ones);
    if (n == 0 || sum == 0 || __any_sync(ALL, (int)most))
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
            const uint32_t all = __ballot_sync(ALL, is_this);
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

struct literals {
    const uint8_t *bytes;
    uint32_t n;
};

/* n literals of a stream; one lane. False: its bits are more, or fewer. */
__device__ static inline bool read_stream(const struct zstd_memory &memory, const struct zstd_state &state,
                                          uint64_t at, uint64_t bytes, uint8_t *out, uint32_t n) {
    constexpr uint32_t TURN_BITS = 55, TURN = TURN_BITS / MOST_TREE_BITS;
    struct fse_back back;
    if (!back_open(state.piece.stored + at, bytes, &back))
        return false;
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
    constexpr uint32_t JUMPS_BYTES = 6, JUMP_BITS = 16;
    const uint32_t lane = threadIdx.x, each = (n + n_streams - 1) / n_streams;
    uint64_t at = state.at, end = state.at + bytes;
    bool is_right = true;
    if (n_streams > 1) {
        if (bytes < JUMPS_BYTES || each * (n_streams - 1) > n)
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
    return __all_sync(ALL, is_right || lane >= n_streams);
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
    *out = {head.kind == RAW ? state->piece.stored + state->at : made, head.plain_bytes};
    bool is_right = true;
    if (head.kind == REPEATED) {
        const uint8_t byte = (uint8_t)bytes_at(*state, state->at, 1);
        for (uint32_t i = threadIdx.x; i < head.plain_bytes; i += CUDA_WARP)
            made[i] = byte;
    } else if (head.kind != RAW) {
        is_right = head.kind == COMPRESSED ? read_tree(memory, state, behind) : state->tree_bits != 0;
        is_right = is_right &&
                   read_streams(memory, *state, head.n_streams, behind - state->at, made, head.plain_bytes);
    }
    __syncwarp();
    state->at = behind;
    return is_right;
}

/* ---- sequences ---- */

/* The table at state->at, which moves behind it. */
__device__ static inline bool read_table(struct zstd_memory &memory, struct zstd_state *state, uint64_t end,
                                         int t, uint32_t mode) {
    enum { DEFAULT, ONE, CODED, AGAIN };
    uint32_t log = 0, n = 0;
    if (mode == AGAIN)
        return state->logs[t] != NO_TABLE;
    state->logs[t] = NO_TABLE;
    if (mode == ONE) {
        const uint32_t symbol = (uint32_t)bytes_at(*state, state->at++, 1);
        if (state->at > end || symbol >= MOST_SYMBOLS[t])
            return false;
        if (threadIdx.x == 0)
            memory.tables[t][0] = fse_entry(0, 0, symbol);
        __syncwarp();
        state->logs[t] = 0;
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
    fse_make(memory.counts, n, log, memory.tables[t]);
    state->logs[t] = log;
    return true;
}

struct sequence {
    uint32_t literals, distance, bytes;
};

/* The distance that a number stands for; 0: none. */
__device__ static inline uint32_t find_distance(struct zstd_state *state, uint32_t number,
                                                bool has_literals) {
    uint32_t *recent = state->recent;
    uint32_t distance;
    if (number > 3) {
        distance = number - 3;
    } else {
        const uint32_t which = number - has_literals;
        if (which == 0)
            return recent[0];
        distance = which == 1 ? recent[1] : which == 2 ? recent[2] : recent[0] - 1;
        if (which == 1) {
            recent[1] = recent[0];
            recent[0] = distance;
            return distance;
        }
    }
    recent[2] = recent[1];
    recent[1] = recent[0];
    recent[0] = distance;
    return distance;
}

/* From the states' entries, and bits that are taken. */
__device__ static inline struct sequence read_sequence(struct zstd_state *state, const uint32_t *entries,
                                                       struct fse_back *back) {
    const uint32_t far = fse_symbol(entries[OFFSETS]), match = fse_symbol(entries[MATCHES]),
                   literal = fse_symbol(entries[LENGTHS]);
    const uint32_t match_more = match < PLAIN_MATCHES ? 0 : match_bits[match - PLAIN_MATCHES];
    const uint32_t literal_more = literal < PLAIN_LITERALS ? 0 : literal_bits[literal - PLAIN_LITERALS];
    const uint32_t number = (1u << far) + (uint32_t)back_take(back, far);
    const uint64_t more = back_take(back, match_more + literal_more);
    struct sequence sequence;
    sequence.bytes = (match < PLAIN_MATCHES ? match + LEAST_MATCH : match_base[match - PLAIN_MATCHES]) +
                     (uint32_t)(more >> literal_more);
    sequence.literals = (literal < PLAIN_LITERALS ? literal : literal_base[literal - PLAIN_LITERALS]) +
                        ((uint32_t)more & ((1u << literal_more) - 1));
    sequence.distance = find_distance(state, number, sequence.literals > 0);
    return sequence;
}

/* All lanes. They may lie in front of where they are written, with less between than there are. */
__device__ static inline void write_literals(struct zstd_state *state, struct literals *literals,
                                             uint32_t n) {
    uint8_t *out = state->piece.plain + state->made;
    for (uint32_t first = 0; first < n; first += CUDA_WARP) {
        const uint32_t i = first + threadIdx.x;
        const uint8_t byte = i < n ? literals->bytes[i] : 0;
        __syncwarp();
        if (i < n)
            out[i] = byte;
    }
    __syncwarp();
    literals->bytes += n;
    literals->n -= n;
    state->made += n;
}

/* A match that goes on in what it has made. */
__device__ static inline void write_near_match(struct zstd_state *state, const struct sequence &sequence) {
    uint8_t *out = state->piece.plain + state->made;
    for (uint32_t i = threadIdx.x; i < sequence.bytes; i += CUDA_WARP)
        out[i] = *(out - sequence.distance + (i < sequence.distance ? i : i % sequence.distance));
    __syncwarp();
    state->made += sequence.bytes;
}

/* Literals and match at once: its distance is a warp's bytes or more, so what it reads is there. */
__device__ static inline void write_far(struct zstd_state *state, const struct sequence &sequence,
                                        struct literals *literals) {
    uint8_t *out = state->piece.plain + state->made;
    const uint32_t n = sequence.literals + sequence.bytes;
    for (uint32_t first = 0; first < n; first += CUDA_WARP) {
        const uint32_t i = first + threadIdx.x;
        const uint8_t *from = i < sequence.literals ? literals->bytes + i : out + i - sequence.distance;
        const uint8_t byte = i < n ? *from : 0;
        __syncwarp();
        if (i < n)
            out[i] = byte;
        __syncwarp();
    }
    literals->bytes += sequence.literals;
    literals->n -= sequence.literals;
    state->made += n;
}

/* `room_end`: plain bytes that there may be after the block. */
__device__ static inline bool write_sequence(struct zstd_state *state, const struct sequence &sequence,
                                             uint32_t room_end, struct literals *literals) {
    const uint32_t made = state->made + sequence.literals;
    if (sequence.literals > literals->n || literals->n > room_end - state->made ||
        sequence.bytes > room_end - state->made - literals->n || sequence.distance == 0 ||
        sequence.distance > made - state->frame)
        return false;
    if (sequence.distance >= CUDA_WARP) {
        write_far(state, sequence, literals);
        return true;
    }
    write_literals(state, literals, sequence.literals);
    write_near_match(state, sequence);
    return true;
}

__device__ static inline bool run_sequences(const struct zstd_memory &memory, struct zstd_state *state,
                                            struct fse_back *back, uint32_t n, uint32_t room_end,
                                            struct literals *literals) {
    constexpr int order[N_TABLES] = {LENGTHS, OFFSETS, MATCHES},
                  next_order[N_TABLES] = {LENGTHS, MATCHES, OFFSETS};
    uint32_t entries[N_TABLES];
    for (int k = 0; k < N_TABLES; k++)
        entries[order[k]] = memory.tables[order[k]][back_take(back, state->logs[order[k]])];
    for (uint32_t done = 1; back->left >= 0; done++) {
        const struct sequence sequence = read_sequence(state, entries, back);
        if (back->left < 0 || !write_sequence(state, sequence, room_end, literals))
            return false;
        if (done == n)
            return back->left == 0;
        for (int k = 0; k < N_TABLES; k++)
            entries[next_order[k]] = memory.tables[next_order[k]][fse_next(entries[next_order[k]], back)];
    }
    return false;
}

/* From state->at to `end`: how many, their tables, their bits. */
__device__ static inline bool read_sequences(struct zstd_memory &memory, struct zstd_state *state,
                                             uint64_t end, uint32_t room_end, struct literals *literals) {
    const uint64_t head = bytes_at(*state, state->at, 3);
    const uint32_t first = head & 0xff, bytes = first < 128 ? 1 : first < 255 ? 2 : 3;
    const uint32_t n = first < 128   ? first
                       : first < 255 ? (first - 128) << 8 | (uint32_t)(head >> 8 & 0xff)
                                     : (uint32_t)(head >> 8 & 0xffff) + 0x7f00;
    state->at += bytes;
    if (n == 0)
        return state->at == end;
    const uint32_t modes = (uint32_t)bytes_at(*state, state->at++, 1);
    if (modes & 3 || state->at > end)
        return false;
    for (int t = 0; t < N_TABLES; t++)
        if (!read_table(memory, state, end, t, modes >> (6 - 2 * t) & 3))
            return false;
    struct fse_back back;
    return state->at < end && back_open(state->piece.stored + state->at, end - state->at, &back) &&
           run_sequences(memory, state, &back, n, room_end, literals);
}

/* ---- blocks and frames ---- */

/* Of `bytes` bytes at state->at. */
__device__ static inline bool compressed_block(struct zstd_memory &memory, struct zstd_state *state,
                                               uint32_t bytes) {
    const uint64_t end = state->at + bytes;
    const uint32_t room = state->piece.plain_bytes - state->made;
    const uint32_t room_end = state->made + (room < state->most_block ? room : state->most_block);
    struct literals literals;
    if (!read_literals(memory, state, end, &literals) ||
        !read_sequences(memory, state, end, room_end, &literals) || literals.n > room_end - state->made)
        return false;
    write_literals(state, &literals, literals.n);
    state->at = end;
    return true;
}

__device__ static inline bool plain_block(struct zstd_state *state, uint32_t bytes, bool is_repeated) {
    if (bytes > state->piece.plain_bytes - state->made)
        return false;
    const uint8_t *from = state->piece.stored + state->at;
    for (uint32_t i = threadIdx.x; i < bytes; i += CUDA_WARP)
        state->piece.plain[state->made + i] = from[is_repeated ? 0 : i];
    __syncwarp();
    state->made += bytes;
    state->at += is_repeated ? 1 : bytes;
    return true;
}

__device__ static inline bool read_block(struct zstd_memory &memory, struct zstd_state *state,
                                         bool *out_last) {
    constexpr uint32_t HEADER_BYTES = 3;
    const uint32_t header = (uint32_t)bytes_at(*state, state->at, HEADER_BYTES);
    const uint32_t kind = header >> 1 & 3, bytes = header >> 3;
    *out_last = header & 1;
    state->at += HEADER_BYTES;
    if (kind > COMPRESSED || bytes > state->most_block ||
        state->at + (kind == REPEATED ? 1 : bytes) > state->piece.stored_bytes)
        return false;
    return kind == COMPRESSED ? compressed_block(memory, state, bytes)
                              : plain_block(state, bytes, kind == REPEATED);
}

/* The header at state->at, which moves behind it. *out_size: UINT64_MAX: it does not tell. */
__device__ static inline bool read_frame_header(struct zstd_state *state, uint64_t *out_size) {
    constexpr uint32_t DICTIONARY = 3, CHECKSUM = 4, RESERVED = 8, SINGLE = 32, MOST_WINDOW = 21;
    const uint32_t flags = (uint32_t)bytes_at(*state, state->at, 1),
                   window = (uint32_t)bytes_at(*state, state->at + 1, 1);
    const bool is_single = flags & SINGLE;
    const uint32_t kind = flags >> 6, size_bytes = kind ? 1u << kind : is_single;
    state->at += is_single ? 1 : 2;
    *out_size =
        size_bytes ? bytes_at(*state, state->at, size_bytes) + (size_bytes == 2 ? 256 : 0) : UINT64_MAX;
    state->at += size_bytes;
    uint64_t window_bytes = (uint64_t)1 << (10 + (window >> 3));
    window_bytes = is_single ? *out_size : window_bytes + window_bytes / 8 * (window & 7);
    state->most_block = window_bytes < MOST_BLOCK ? (uint32_t)window_bytes : MOST_BLOCK;
    return !(flags & (DICTIONARY | CHECKSUM | RESERVED)) && (is_single || window >> 3 <= MOST_WINDOW) &&
           state->at <= state->piece.stored_bytes;
}

__device__ static inline bool read_frame(struct zstd_memory &memory, struct zstd_state *state) {
    uint64_t size;
    state->frame = state->made;
    state->tree_bits = 0;
    state->recent[0] = 1;
    state->recent[1] = 4;
    state->recent[2] = 8;
    for (int t = 0; t < N_TABLES; t++)
        state->logs[t] = NO_TABLE;
    if (!read_frame_header(state, &size))
        return false;
    for (bool is_last = false; !is_last;)
        if (!read_block(memory, state, &is_last))
            return false;
    return size == UINT64_MAX || size == state->made - state->frame;
}

/* A frame, or one that is to be skipped. */
__device__ static inline bool read_any_frame(struct zstd_memory &memory, struct zstd_state *state) {
    constexpr uint32_t MAGIC = 0xfd2fb528, SKIPPED_MAGIC = 0x184d2a50, MAGIC_BYTES = 4;
    const uint64_t head = bytes_at(*state, state->at, 2 * MAGIC_BYTES);
    state->at += MAGIC_BYTES;
    if ((uint32_t)head == MAGIC)
        return read_frame(memory, state);
    state->at += MAGIC_BYTES + (head >> 32);
    return ((uint32_t)head & ~15u) == SKIPPED_MAGIC && state->at <= state->piece.stored_bytes;
}

__global__ void zstd_pieces(const struct inflate_piece *pieces, struct cuda_control *control) {
    __shared__ struct zstd_memory memory;
    struct zstd_state state = {};
    state.piece = pieces[blockIdx.x];
    bool is_right = true;
    while (is_right && state.at < state.piece.stored_bytes)
        is_right = read_any_frame(memory, &state);
    if (threadIdx.x == 0 && !(is_right && state.made == state.piece.plain_bytes))
        inflate_fault(control, state.piece);
}

extern "C" void cuda_zstd(cudaStream_t stream, const struct inflate_piece *pieces, int64_t n,
                          struct cuda_control *control) {
    SX_LAUNCH(zstd_pieces, (unsigned)n, CUDA_WARP, 0, stream, pieces, control);
}
