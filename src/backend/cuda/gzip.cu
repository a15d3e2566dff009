/* gzip (RFC 1952) and the deflate in it (RFC 1951), a warp a page.
 *
 * 1. Compressed bytes are taken a window at a time into shared memory.
 * 2. All lanes read one symbol after another, each keeps its own: a literal, or a copy with its distance.
 * 3. Sums of what they make tell where they write. They are checked, then literals are written by their lanes
 * at once, and copies in turns.
 *
 * Nothing is read or written outside of the page, whatever the bytes are. Every member's CRC and size are
 * checked. As on the host (tensor/codec.c) a page may be several members, and what is behind the last byte
 * that it wants is not looked at. zlib's format, which zlib takes there too, is a fault here. */
#include "backend/cuda/block.h"
#include "backend/cuda/copies.h"
#include "backend/cuda/crc32.h"
#include "backend/cuda/inflate_kernel.h"
#include "backend/cuda/prefix_code.h"

/* A window, and words from a bit's own on that a read needs; bits in a word. */
constexpr uint32_t INPUT_WORDS = 256, NEEDED_WORDS = 6, WORD_BITS = 32;

constexpr uint32_t LITERAL_SYMBOLS = 288, DISTANCE_SYMBOLS = 32, LENGTH_SYMBOLS = 19;
constexpr uint32_t END_OF_BLOCK = 256, MOST_LENGTH_SYMBOL = 285, MOST_DISTANCE_SYMBOL = 29;

struct gzip_memory {
    uint32_t input[INPUT_WORDS];
    uint8_t lengths[LITERAL_SYMBOLS + DISTANCE_SYMBOLS];
    union {
        struct prefix_code<LENGTH_SYMBOLS, 7> of_lengths; /* until the others are made */
        struct prefix_code<LITERAL_SYMBOLS, 10> literals;
    };
    struct prefix_code<DISTANCE_SYMBOLS, 8> distances;
};

/* Every lane has the same. Bits count from the aligned word with the page's first byte. */
struct gzip_state {
    struct inflate_piece piece;
    uint32_t skew;         /* bytes in that word in front of the page */
    uint64_t at, end;      /* bits */
    uint64_t first_word;   /* of the window */
    uint32_t made, member; /* plain bytes, and how many there were when the member began */
    uint32_t n_blocks;
};

/* ---- input ---- */

__device__ static inline uint32_t load_input(const struct gzip_state &state, uint64_t word) {
    const int64_t at = (int64_t)(word * sizeof(uint32_t)) - (int64_t)state.skew,
                  bytes = state.piece.stored_bytes;
    if (at >= 0 && at + (int64_t)sizeof(uint32_t) <= bytes)
        return *(const uint32_t *)(state.piece.stored + at);
    uint32_t value = 0;
    for (int64_t k = 0; k < (int64_t)sizeof value; k++)
        if (at + k >= 0 && at + k < bytes)
            value |= (uint32_t)state.piece.stored[at + k] << 8 * k;
    return value;
}

/* Before reads, of up to 64 bits each, that begin within 64 bits of state->at. Behind the end are zeros. */
__device__ static inline void need_input(struct gzip_memory &memory, struct gzip_state *state) {
    const uint64_t word = state->at / WORD_BITS;
    if (word >= state->first_word && word + NEEDED_WORDS <= state->first_word + INPUT_WORDS)
        return;
    __syncwarp();
    state->first_word = word;
    for (uint32_t k = threadIdx.x; k < INPUT_WORDS; k += CUDA_WARP)
        memory.input[k] = load_input(*state, word + k);
    __syncwarp();
}

/* 64 bits from `at` on. */
__device__ static inline uint64_t peek(const struct gzip_memory &memory, const struct gzip_state &state,
                                       uint64_t at) {
    const uint32_t *words = &memory.input[at / WORD_BITS - state.first_word];
    const uint32_t shift = (uint32_t)(at % WORD_BITS);
    const uint64_t low = words[0] | (uint64_t)words[1] << WORD_BITS;
    return shift ? low >> shift | (uint64_t)words[2] << (2 * WORD_BITS - shift) : low;
}

/* The next n bits, fewer than 32. */
__device__ static inline uint32_t take(struct gzip_memory &memory, struct gzip_state *state, uint32_t n) {
    need_input(memory, state);
    const uint32_t bits = (uint32_t)peek(memory, *state, state->at) & ((1u << n) - 1);
    state->at += n;
    return bits;
}

__device__ static inline void skip_to_byte(struct gzip_state *state) {
    state->at = (state->at + 7) / 8 * 8;
}

/* Of the page. `at` is at a byte's first bit. */
__device__ static inline uint64_t byte_position(const struct gzip_state &state) {
    return state.at / 8 - state.skew;
}

/* ---- symbols ---- */

struct symbol {
    uint32_t plain_bytes; /* 0: the end of the block */
    uint32_t distance;    /* 0: a literal */
    uint8_t byte;
};

/* Bits from state->at on, those that are taken shifted out. */
struct bit_buffer {
    uint64_t bits;
    uint32_t ready;
};

__device__ static inline void need_bits(struct gzip_memory &memory, struct gzip_state *state,
                                        struct bit_buffer *buffer, uint32_t n) {
    if (buffer->ready >= n)
        return;
    need_input(memory, state);
    *buffer = {peek(memory, *state, state->at), 64};
}

__device__ static inline uint32_t use_bits(struct gzip_state *state, struct bit_buffer *buffer, uint32_t n) {
    const uint32_t bits = (uint32_t)buffer->bits & ((1u << n) - 1);
    buffer->bits >>= n;
    buffer->ready -= n;
    state->at += n;
    return bits;
}

/* Bytes of a copy, from its symbol and the bits behind it. */
__device__ static inline uint32_t copy_length(struct gzip_state *state, struct bit_buffer *buffer,
                                              uint32_t symbol) {
    constexpr uint32_t FIRST = 257, LONGEST = 258, LEAST = 3, PLAIN = 8;
    const uint32_t k = symbol - FIRST;
    if (symbol == MOST_LENGTH_SYMBOL)
        return LONGEST;
    if (k < PLAIN)
        return k + LEAST;
    const uint32_t extra = k / 4 - 1;
    return LEAST + ((4 + k % 4) << extra) + use_bits(state, buffer, extra);
}

__device__ static inline uint32_t copy_distance(struct gzip_state *state, struct bit_buffer *buffer,
                                                uint32_t symbol) {
    constexpr uint32_t PLAIN = 4;
    if (symbol < PLAIN)
        return symbol + 1;
    const uint32_t extra = symbol / 2 - 1;
    return 1 + ((2 + symbol % 2) << extra) + use_bits(state, buffer, extra);
}

/* The symbol at state->at, which moves behind it. False: there is none. */
__device__ static inline bool read_symbol(struct gzip_memory &memory, struct gzip_state *state,
                                          struct bit_buffer *buffer, struct symbol *out) {
    constexpr uint32_t MOST_COPY_BITS = 48;
    need_bits(memory, state, buffer, PREFIX_MOST_BITS);
    const uint32_t entry = prefix_find(memory.literals, (uint32_t)buffer->bits), value = entry >> 4;
    if (entry == 0 || value > MOST_LENGTH_SYMBOL)
        return false;
    if (value <= END_OF_BLOCK) {
        use_bits(state, buffer, entry & 15);
        *out = {value < END_OF_BLOCK, 0, (uint8_t)value};
        return true;
    }
    need_bits(memory, state, buffer, MOST_COPY_BITS);
    use_bits(state, buffer, entry & 15);
    const uint32_t length = copy_length(state, buffer, value);
    const uint32_t far = prefix_find(memory.distances, (uint32_t)buffer->bits);
    if (far == 0 || far >> 4 > MOST_DISTANCE_SYMBOL)
        return false;
    use_bits(state, buffer, far & 15);
    *out = {length, copy_distance(state, buffer, far >> 4), 0};
    return true;
}

/* ---- output ---- */

/* The lanes' symbols; false: one of them copies what is not there, or there is no room. */
__device__ static inline bool write_symbols(struct gzip_state *state, const struct symbol &symbol) {
    uint8_t *plain = state->piece.plain;
    const uint32_t own = symbol.plain_bytes, behind = warp_inclusive(own);
    const uint32_t total = __shfl_sync(ALL_LANES, behind, CUDA_WARP - 1), to = state->made + behind - own;
    const bool is_copy = own > 0 && symbol.distance > 0;
    if (total > state->piece.plain_bytes - state->made ||
        __any_sync(ALL_LANES, is_copy && symbol.distance > to - state->member))
        return false;
    if (own > 0 && !is_copy)
        plain[to] = symbol.byte;
    __syncwarp();
    copy_matches(plain, to, symbol.distance, is_copy ? own : 0);
    state->made += total;
    return true;
}

/* ---- blocks ---- */

/* False: damaged. */
__device__ static inline bool coded_block(struct gzip_memory &memory, struct gzip_state *state) {
    struct bit_buffer buffer = {0, 0};
    for (bool is_end = false; !is_end;) {
        struct symbol own = {0, 0, 0};
        for (uint32_t k = 0; k < (uint32_t)CUDA_WARP && !is_end; k++) {
            struct symbol symbol;
            if (!read_symbol(memory, state, &buffer, &symbol))
                return false;
            is_end = symbol.plain_bytes == 0;
            if (k == threadIdx.x)
                own = symbol;
        }
        if (state->at > state->end || !write_symbols(state, own))
            return false;
    }
    return true;
}

__device__ static inline bool stored_block(struct gzip_memory &memory, struct gzip_state *state) {
    skip_to_byte(state);
    const uint32_t n = take(memory, state, 16), inverted = take(memory, state, 16);
    if ((n ^ inverted) != 0xffff || state->at > state->end || (uint64_t)n * 8 > state->end - state->at ||
        n > state->piece.plain_bytes - state->made)
        return false;
    copy_bytes(state->piece.plain + state->made, state->piece.stored + byte_position(*state), n);
    __syncwarp();
    state->made += n;
    state->at += (uint64_t)n * 8;
    return true;
}

__device__ static inline void fixed_lengths(struct gzip_memory &memory) {
    for (uint32_t i = threadIdx.x; i < LITERAL_SYMBOLS + DISTANCE_SYMBOLS; i += CUDA_WARP)
        memory.lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < LITERAL_SYMBOLS ? 8 : 5;
    __syncwarp();
}

__device__ constexpr uint8_t length_order[LENGTH_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                             11, 4,  12, 3, 13, 2, 14, 1, 15};

/* The code of the lengths' code. */
__device__ static inline bool read_length_code(struct gzip_memory &memory, struct gzip_state *state,
                                               uint32_t n) {
    constexpr uint32_t BITS = 3;
    need_input(memory, state);
    if (threadIdx.x < LENGTH_SYMBOLS)
        memory.lengths[length_order[threadIdx.x]] =
            threadIdx.x < n ? peek(memory, *state, state->at + threadIdx.x * BITS) & ((1 << BITS) - 1) : 0;
    state->at += n * BITS;
    __syncwarp();
    return prefix_make(memory.of_lengths, memory.lengths, LENGTH_SYMBOLS);
}

/* How often the last length, or 0, comes: the symbols 16, 17 and 18. */
__device__ static inline uint32_t take_repeats(struct gzip_memory &memory, struct gzip_state *state,
                                               uint32_t symbol) {
    return symbol == 16   ? 3 + take(memory, state, 2)
           : symbol == 17 ? 3 + take(memory, state, 3)
                          : 11 + take(memory, state, 7);
}

/* n of them. */
__device__ static inline bool read_lengths(struct gzip_memory &memory, struct gzip_state *state, uint32_t n) {
    constexpr uint32_t REPEAT_LAST = 16;
    uint32_t last = 0;
    for (uint32_t done = 0, times; done < n; done += times) {
        need_input(memory, state);
        const uint32_t entry = prefix_find(memory.of_lengths, (uint32_t)peek(memory, *state, state->at));
        const uint32_t symbol = entry >> 4;
        state->at += entry & 15;
        if (entry == 0 || state->at > state->end || (symbol == REPEAT_LAST && done == 0))
            return false;
        times = symbol < REPEAT_LAST ? 1 : take_repeats(memory, state, symbol);
        last = symbol < REPEAT_LAST ? symbol : symbol == REPEAT_LAST ? last : 0;
        if (times > n - done)
            return false;
        for (uint32_t i = threadIdx.x; i < times; i += CUDA_WARP)
            memory.lengths[done + i] = (uint8_t)last;
    }
    __syncwarp();
    return true;
}

__device__ static inline bool make_codes(struct gzip_memory &memory, uint32_t n_literals,
                                         uint32_t n_distances) {
    const bool has_literals = prefix_make(memory.literals, memory.lengths, n_literals);
    return prefix_make(memory.distances, memory.lengths + n_literals, n_distances) && has_literals;
}

__device__ static inline bool dynamic_codes(struct gzip_memory &memory, struct gzip_state *state) {
    const uint32_t n_literals = 257 + take(memory, state, 5), n_distances = 1 + take(memory, state, 5);
    const uint32_t n_lengths = 4 + take(memory, state, 4);
    return read_length_code(memory, state, n_lengths) &&
           read_lengths(memory, state, n_literals + n_distances) &&
           make_codes(memory, n_literals, n_distances);
}

__device__ static inline bool inflate_block(struct gzip_memory &memory, struct gzip_state *state,
                                            uint32_t kind) {
    enum { STORED, FIXED, DYNAMIC };
    if (kind == STORED)
        return stored_block(memory, state);
    if (kind == FIXED) {
        __syncwarp();
        fixed_lengths(memory);
        return make_codes(memory, LITERAL_SYMBOLS, DISTANCE_SYMBOLS) && coded_block(memory, state);
    }
    return kind == DYNAMIC && dynamic_codes(memory, state) && coded_block(memory, state);
}

/* ---- members ---- */

/* Behind a text that ends with a zero byte. */
__device__ static inline void skip_text(struct gzip_memory &memory, struct gzip_state *state) {
    while (state->at < state->end && take(memory, state, 8) != 0) {}
}

__device__ static inline bool member_header(struct gzip_memory &memory, struct gzip_state *state) {
    enum {
        MAGIC = 0x8b1f,
        DEFLATE = 8,
        HAS_CRC = 2,
        HAS_EXTRA = 4,
        HAS_NAME = 8,
        HAS_COMMENT = 16,
        RESERVED = 0xe0
    };
    constexpr uint32_t TIME_AND_SYSTEM_BITS = 48;
    const uint32_t magic = take(memory, state, 16), method = take(memory, state, 8),
                   flags = take(memory, state, 8);
    state->at += TIME_AND_SYSTEM_BITS;
    if (magic != MAGIC || method != DEFLATE || flags & RESERVED)
        return false;
    if (flags & HAS_EXTRA) {
        const uint64_t extra = take(memory, state, 16);
        state->at += 8 * extra;
    }
    if (flags & HAS_NAME)
        skip_text(memory, state);
    if (flags & HAS_COMMENT)
        skip_text(memory, state);
    if (flags & HAS_CRC)
        state->at += 16;
    return state->at <= state->end;
}

/* Its CRC and size, of 32 bits each. */
__device__ static inline bool member_trailer(struct gzip_memory &memory, struct gzip_state *state) {
    const uint32_t n = state->made - state->member;
    skip_to_byte(state);
    need_input(memory, state);
    const uint64_t told = peek(memory, *state, state->at);
    state->at += 64;
    return state->at <= state->end && told >> 32 == n &&
           (uint32_t)told == crc32_of(state->piece.plain + state->member, n);
}

__device__ static inline bool inflate_member(struct gzip_memory &memory, struct gzip_state *state) {
    state->member = state->made;
    if (!member_header(memory, state))
        return false;
    for (uint32_t is_last = 0; !is_last;) {
        is_last = take(memory, state, 1);
        const uint32_t kind = take(memory, state, 2);
        state->n_blocks++;
        if (state->at > state->end || inflate_is_scattered(state->piece, state->n_blocks) ||
            !inflate_block(memory, state, kind))
            return false;
    }
    return member_trailer(memory, state);
}

__global__ void gzip_pieces(const struct inflate_piece *pieces, struct cuda_control *control) {
    __shared__ struct gzip_memory memory;
    struct gzip_state state = {};
    state.piece = pieces[blockIdx.x];
    state.skew = (uint32_t)((uintptr_t)state.piece.stored % sizeof(uint32_t));
    state.at = state.skew * 8;
    state.end = state.at + (uint64_t)state.piece.stored_bytes * 8;
    state.first_word = UINT64_MAX / 2; /* no window */
    bool is_right = true;
    while (is_right && state.made < state.piece.plain_bytes)
        is_right = state.at < state.end && inflate_member(memory, &state);
    if (!is_right && threadIdx.x == 0)
        inflate_fault(control, state.piece);
}

extern "C" void cuda_gzip(cudaStream_t stream, const struct inflate_piece *pieces, int64_t n,
                          struct cuda_control *control) {
    SX_LAUNCH(gzip_pieces, (unsigned)n, CUDA_WARP, 0, stream, pieces, control);
}
