/* zstd (RFC 8878), a warp a page.
 *
 * A block's literals are made first, by a lane a stream, at the end of the page's room: what is written of
 * the block never passes those that are not written yet, so they need no memory of their own. Then the
 * sequences are read, one for each lane, and what these make is written.
 *
 * Nothing is read or written outside of the page, whatever the bytes are; what does not come out even is a
 * fault. So are frames with a checksum, which Parquet's writers do not make, and those with a dictionary. */
#include "backend/cuda/zstd_literals.h"
#include "backend/cuda/zstd_write.h"

constexpr uint32_t MOST_BLOCK = 128 << 10;

/* Of `bytes` bytes at state->at. */
__device__ static inline bool compressed_block(struct zstd_memory &memory, struct zstd_state *state,
                                               uint32_t bytes) {
    const uint64_t end = state->at + bytes;
    const uint32_t room = state->piece.plain_bytes - state->made;
    const uint32_t room_end = state->made + (room < state->most_block ? room : state->most_block);
    struct literals literals;
    struct sequences rest;
    if (!read_literals(memory, state, end, &literals) || !open_sequences(memory, state, end, &rest))
        return false;
    while (rest.n > 0) {
        struct sequence own;
        if (!read_sequences(memory, state, &rest, &own) || !write_sequences(state, own, room_end, &literals))
            return false;
    }
    if (literals.n > room_end - state->made)
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
    state->last = 1;
    state->second = 4;
    state->third = 8;
    __syncwarp();
    if (threadIdx.x < N_TABLES)
        memory.logs[threadIdx.x] = NO_TABLE;
    __syncwarp();
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
    make_bases(memory);
    while (is_right && state.at < state.piece.stored_bytes)
        is_right = read_any_frame(memory, &state);
    if (threadIdx.x == 0 && !(is_right && state.made == state.piece.plain_bytes))
        inflate_fault(control, state.piece);
}

extern "C" void cuda_zstd(cudaStream_t stream, const struct inflate_piece *pieces, int64_t n,
                          struct cuda_control *control) {
    SX_LAUNCH(zstd_pieces, (unsigned)n, CUDA_WARP, 0, stream, pieces, control);
}
