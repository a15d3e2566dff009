/* LZ4's blocks (LZ4_RAW), a warp a page.
 *
 * 1. Compressed bytes are taken a window at a time into shared memory.
 * 2. All lanes read one sequence after another, literals and the copy behind them, each keeps its own.
 * 3. Sums of what they make tell where they write. They are checked, then literals are written by their lanes
 * at once, and copies in turns.
 *
 * Nothing is read or written outside of the page, whatever the bytes are. */
#include "backend/cuda/copies.h"
#include "backend/cuda/inflate_kernel.h"

constexpr uint32_t WINDOW_BYTES = 2048, WORD_BYTES = 8;
/* At the end of a page, at least: bytes that are literals, and from the last copy's first byte on. */
constexpr uint32_t LAST_LITERALS = 5, LAST_COPY = 12;

/* Every lane has the same. */
struct lz4_state {
    struct inflate_piece piece;
    uint32_t at, made;     /* stored and plain bytes */
    uint32_t begin, end;   /* of the window */
    const uint8_t *window; /* in shared memory; its first byte is that at `begin` */
};

/* The window begins at state->at. */
__device__ static inline void load_window(struct lz4_state *state, uint64_t *memory) {
    const uint32_t left = state->piece.stored_bytes - state->at,
                   n = left < WINDOW_BYTES ? left : WINDOW_BYTES;
    __syncwarp();
    for (uint32_t k = threadIdx.x; k < WINDOW_BYTES / WORD_BYTES; k += CUDA_WARP)
        memory[k] = load_bits(state->piece.stored, state->piece.stored_bytes,
                              ((uint64_t)state->at + k * WORD_BYTES) * 8, 64);
    __syncwarp();
    state->begin = state->at;
    state->end = state->at + n;
    state->window = (const uint8_t *)memory;
}

/* The next byte; the caller has seen that there is one. Behind the window it is read where it is. */
__device__ static inline uint32_t take_byte(struct lz4_state *state) {
    const uint32_t at = state->at++;
    return at < state->end ? state->window[at - state->begin] : state->piece.stored[at];
}

/* A length whose first four bits are `bits`; false: it is cut off, or more than a page has. */
__device__ static inline bool take_length(struct lz4_state *state, uint32_t bits, uint32_t *out_length) {
    constexpr uint32_t MORE_BITS = 15, MORE_BYTE = 255;
    *out_length = bits;
    for (uint32_t byte = bits == MORE_BITS ? MORE_BYTE : 0; byte == MORE_BYTE; *out_length += byte) {
        if (state->at >= state->piece.stored_bytes || *out_length > state->piece.plain_bytes)
            return false;
        byte = take_byte(state);
    }
    return *out_length <= state->piece.plain_bytes;
}

/* The sequence at state->at, which moves behind it. Its copy has 0 bytes: it is the last. False: damaged;
 * that it has room, and that what it copies is there, is not looked at. */
__device__ static inline bool read_sequence(struct lz4_state *state, struct placed *out) {
    constexpr uint32_t OFFSET_BYTES = 2, LEAST_COPY = 4;
    const uint32_t token = take_byte(state);
    *out = {};
    if (!take_length(state, token >> 4, &out->literals) ||
        out->literals > state->piece.stored_bytes - state->at)
        return false;
    out->literals_at = state->at;
    state->at += out->literals;
    if (state->at == state->piece.stored_bytes)
        return true;
    if (state->piece.stored_bytes - state->at < OFFSET_BYTES)
        return false;
    out->distance = take_byte(state);
    out->distance |= take_byte(state) << 8;
    if (out->distance == 0 || !take_length(state, token & 15, &out->bytes))
        return false;
    out->bytes += LEAST_COPY;
    return state->at < state->piece.stored_bytes;
}

/* The lanes' sequences; false: one of them copies what is not there, or there is no room. */
__device__ static inline bool write_sequences(struct lz4_state *state, struct placed own) {
    const uint64_t made = (uint64_t)own.literals + own.bytes, behind = warp_inclusive(made);
    const uint64_t n = __shfl_sync(ALL_LANES, behind, CUDA_WARP - 1);
    if (n > state->piece.plain_bytes - state->made)
        return false;
    own.to = state->made + (uint32_t)(behind - made);
    own.match_to = own.to + own.literals;
    const bool is_wrong = own.distance > own.match_to ||
                          own.match_to + LAST_COPY > state->piece.plain_bytes ||
                          own.match_to + own.bytes + LAST_LITERALS > state->piece.plain_bytes;
    if (__any_sync(ALL_LANES, own.bytes > 0 && is_wrong))
        return false;
    place_sequences(state->piece.plain, state->piece.stored, own);
    state->made += (uint32_t)n;
    return true;
}

__device__ static inline bool read_page(struct lz4_state *state, uint64_t *memory) {
    while (state->at < state->piece.stored_bytes) {
        struct placed own = {};
        for (uint32_t k = 0; k < (uint32_t)CUDA_WARP && state->at < state->piece.stored_bytes; k++) {
            struct placed sequence;
            if (state->at >= state->end)
                load_window(state, memory);
            if (!read_sequence(state, &sequence))
                return false;
            if (k == threadIdx.x)
                own = sequence;
        }
        if (!write_sequences(state, own))
            return false;
    }
    return state->piece.stored_bytes > 0 && state->made == state->piece.plain_bytes;
}

__global__ void lz4_pieces(const struct inflate_piece *pieces, struct cuda_control *control) {
    __shared__ uint64_t memory[WINDOW_BYTES / WORD_BYTES];
    struct lz4_state state = {};
    state.piece = pieces[blockIdx.x];
    const bool is_right = read_page(&state, memory);
    if (threadIdx.x == 0 && !is_right)
        inflate_fault(control, state.piece);
}

extern "C" void cuda_lz4(cudaStream_t stream, const struct inflate_piece *pieces, int64_t n,
                         struct cuda_control *control) {
    SX_LAUNCH(lz4_pieces, (unsigned)n, CUDA_WARP, 0, stream, pieces, control);
}
