/* zstd (RFC 8878), two warps a page: one reads, the other writes what it has read.
 *
 * A block's literals are made first, by a lane a stream, at the end of the page's room: what is written of
 * the block never passes those that are not written yet, so they need no memory of their own. Then sequences
 * are read, one for each lane, while what the last ones make is written.
 *
 * The reader gives orders, in two slots that take turns. A barrier of both hands one over: behind it the
 * reader fills the other slot. What an order finds wrong the reader sees at the end of the block.
 *
 * Nothing is read or written outside of the page, whatever the bytes are; what does not come out even is a
 * fault. So are frames with a dictionary. */
#include "backend/cuda/zstd_checksum.h"
#include "backend/cuda/zstd_literals.h"
#include "backend/cuda/zstd_write.h"

constexpr uint32_t MOST_BLOCK = 128 << 10;

/* ---- orders ---- */

/* A block of sequences: its literals, and where it ends; sequences; the literals behind them. Bytes as they
 * are, or one of them many times. */
enum order_kind { BEGIN_BLOCK, WRITE_SEQUENCES, END_BLOCK, COPY_BYTES, REPEAT_BYTE, NO_ORDER, LEAVE };

struct order {
    enum order_kind kind;
    const uint8_t *bytes;
    uint32_t n; /* bytes */
    bool is_in_room;
    uint32_t room_end, frame;
    struct sequence sequences[CUDA_WARP];
};

/* In shared memory. */
struct zstd_orders {
    struct order slots[2];
    uint32_t made; /* plain bytes, when all orders have been obeyed */
    bool is_wrong; /* one of them could not be */
};

/* Both warps, from different places of the code. */
__device__ static inline void hand_over() {
    SX_BARRIER(1, 2 * CUDA_WARP);
}

/* ---- the writer ---- */

__device__ static inline bool obey(struct writer *writer, const struct order &order) {
    switch (order.kind) {
    case BEGIN_BLOCK:
        writer->literals = {order.bytes, order.n, order.is_in_room};
        writer->room_end = order.room_end;
        writer->frame = order.frame;
        return true;
    case WRITE_SEQUENCES: return write_sequences(writer, order.sequences[warp_lane()]);
    case END_BLOCK:
        if (writer->literals.n > writer->room_end - writer->made)
            return false;
        write_literals(writer, writer->literals.n);
        return true;
    case COPY_BYTES: write_bytes(writer, order.bytes, order.n); return true;
    case REPEAT_BYTE: write_repeated(writer, *order.bytes, order.n); return true;
    default: return true;
    }
}

__device__ static inline void write_page(struct zstd_orders &orders, uint8_t *plain) {
    struct writer writer = {};
    writer.plain = plain;
    for (uint32_t turn = 0;; turn++) {
        hand_over();
        const struct order &order = orders.slots[turn % 2];
        if (order.kind == LEAVE)
            return;
        if (order.kind == NO_ORDER)
            continue;
        const bool is_wrong = orders.is_wrong;
        __syncwarp();
        if (!is_wrong && !obey(&writer, order) && warp_lane() == 0)
            orders.is_wrong = true;
        if (warp_lane() == 0)
            orders.made = writer.made;
        __syncwarp();
    }
}

/* ---- blocks ---- */

/* The slot that is free; lane 0 fills it, and all lanes their sequence. */
__device__ static inline struct order &free_slot(struct zstd_orders &orders, const struct zstd_state &state) {
    return orders.slots[state.turn % 2];
}

__device__ static inline void give_order(struct zstd_state *state) {
    state->turn++;
    hand_over();
}

__device__ static inline void give_bytes(struct zstd_orders &orders, struct zstd_state *state,
                                         enum order_kind kind, const uint8_t *bytes, uint32_t n) {
    struct order &order = free_slot(orders, *state);
    if (threadIdx.x == 0) {
        order.kind = kind;
        order.bytes = bytes;
        order.n = n;
    }
    give_order(state);
}

/* Until all orders have been obeyed: the next one is given when the last has been. False: one of them could
 * not be. */
__device__ static inline bool await(struct zstd_orders &orders, struct zstd_state *state) {
    give_bytes(orders, state, NO_ORDER, NULL, 0);
    state->made = orders.made;
    return !orders.is_wrong;
}

__device__ static inline bool begin_block(struct zstd_memory &memory, struct zstd_orders &orders,
                                          struct zstd_state *state, uint64_t end) {
    struct literals literals;
    const uint32_t room = state->piece.plain_bytes - state->made;
    if (!read_literals(memory, state, end, &literals))
        return false;
    struct order &order = free_slot(orders, *state);
    if (threadIdx.x == 0) {
        order.is_in_room = literals.is_in_room;
        order.room_end = state->made + (room < state->most_block ? room : state->most_block);
        order.frame = state->frame;
    }
    give_bytes(orders, state, BEGIN_BLOCK, literals.bytes, literals.n);
    return true;
}

/* Of `bytes` bytes at state->at. */
__device__ static inline bool compressed_block(struct zstd_memory &memory, struct zstd_orders &orders,
                                               struct zstd_state *state, uint32_t bytes) {
    const uint64_t end = state->at + bytes;
    struct sequences rest;
    if (!begin_block(memory, orders, state, end) || !open_sequences(memory, state, end, &rest))
        return false;
    while (rest.n > 0) {
        struct order &order = free_slot(orders, *state);
        if (!read_sequences(memory, state, &rest, &order.sequences[threadIdx.x]))
            return false;
        if (threadIdx.x == 0)
            order.kind = WRITE_SEQUENCES;
        give_order(state);
    }
    give_bytes(orders, state, END_BLOCK, NULL, 0);
    state->at = end;
    return await(orders, state);
}

__device__ static inline bool plain_block(struct zstd_orders &orders, struct zstd_state *state,
                                          uint32_t bytes, bool is_repeated) {
    if (bytes > state->piece.plain_bytes - state->made)
        return false;
    give_bytes(orders, state, is_repeated ? REPEAT_BYTE : COPY_BYTES, state->piece.stored + state->at, bytes);
    state->at += is_repeated ? 1 : bytes;
    return await(orders, state);
}

__device__ static inline bool read_block(struct zstd_memory &memory, struct zstd_orders &orders,
                                         struct zstd_state *state, bool *out_last) {
    constexpr uint32_t HEADER_BYTES = 3;
    const uint32_t header = (uint32_t)bytes_at(*state, state->at, HEADER_BYTES);
    const uint32_t kind = header >> 1 & 3, bytes = header >> 3;
    *out_last = header & 1;
    state->at += HEADER_BYTES;
    state->n_blocks++;
    if (inflate_is_scattered(state->piece, state->n_blocks) || kind > COMPRESSED ||
        bytes > state->most_block || state->at + (kind == REPEATED ? 1 : bytes) > state->piece.stored_bytes)
        return false;
    return kind == COMPRESSED ? compressed_block(memory, orders, state, bytes)
                              : plain_block(orders, state, bytes, kind == REPEATED);
}

/* ---- frames ---- */

struct frame_header {
    uint64_t size; /* UINT64_MAX: it does not tell */
    bool has_checksum;
};

/* The header at state->at, which moves behind it. */
__device__ static inline bool read_frame_header(struct zstd_state *state, struct frame_header *out) {
    constexpr uint32_t DICTIONARY = 3, CHECKSUM = 4, RESERVED = 8, SINGLE = 32, MOST_WINDOW = 21;
    const uint32_t flags = (uint32_t)bytes_at(*state, state->at, 1),
                   window = (uint32_t)bytes_at(*state, state->at + 1, 1);
    const bool is_single = flags & SINGLE;
    const uint32_t kind = flags >> 6, size_bytes = kind ? 1u << kind : is_single;
    state->at += is_single ? 1 : 2;
    out->size =
        size_bytes ? bytes_at(*state, state->at, size_bytes) + (size_bytes == 2 ? 256 : 0) : UINT64_MAX;
    out->has_checksum = flags & CHECKSUM;
    state->at += size_bytes;
    uint64_t window_bytes = (uint64_t)1 << (10 + (window >> 3));
    window_bytes = is_single ? out->size : window_bytes + window_bytes / 8 * (window & 7);
    state->most_block = window_bytes < MOST_BLOCK ? (uint32_t)window_bytes : MOST_BLOCK;
    return !(flags & (DICTIONARY | RESERVED)) && (is_single || window >> 3 <= MOST_WINDOW) &&
           state->at <= state->piece.stored_bytes;
}

/* What is behind the last block. */
__device__ static inline bool check_frame(struct zstd_state *state, const struct frame_header &header) {
    constexpr uint32_t CHECKSUM_BYTES = 4;
    const uint32_t bytes = state->made - state->frame;
    if (header.size != UINT64_MAX && header.size != bytes)
        return false;
    if (!header.has_checksum)
        return true;
    const uint32_t told = (uint32_t)bytes_at(*state, state->at, CHECKSUM_BYTES);
    state->at += CHECKSUM_BYTES;
    return state->at <= state->piece.stored_bytes &&
           told == (uint32_t)zstd_checksum(state->piece.plain + state->frame, bytes);
}

__device__ static inline bool read_frame(struct zstd_memory &memory, struct zstd_orders &orders,
                                         struct zstd_state *state) {
    struct frame_header header;
    state->frame = state->made;
    state->tree_bits = 0;
    state->last = 1;
    state->second = 4;
    state->third = 8;
    __syncwarp();
    if (threadIdx.x < N_TABLES) {
        memory.logs[threadIdx.x] = NO_TABLE;
        memory.is_default[threadIdx.x] = false;
    }
    __syncwarp();
    if (!read_frame_header(state, &header))
        return false;
    for (bool is_last = false; !is_last;)
        if (!read_block(memory, orders, state, &is_last))
            return false;
    return check_frame(state, header);
}

/* A frame, or one that is to be skipped. */
__device__ static inline bool read_any_frame(struct zstd_memory &memory, struct zstd_orders &orders,
                                             struct zstd_state *state) {
    constexpr uint32_t MAGIC = 0xfd2fb528, SKIPPED_MAGIC = 0x184d2a50, MAGIC_BYTES = 4;
    const uint64_t head = bytes_at(*state, state->at, 2 * MAGIC_BYTES);
    state->at += MAGIC_BYTES;
    if ((uint32_t)head == MAGIC)
        return read_frame(memory, orders, state);
    state->at += MAGIC_BYTES + (head >> 32);
    return ((uint32_t)head & ~15u) == SKIPPED_MAGIC && state->at <= state->piece.stored_bytes;
}

__device__ static inline void read_page(struct zstd_memory &memory, struct zstd_orders &orders,
                                        const struct inflate_piece &piece, struct cuda_control *control) {
    struct zstd_state state = {};
    state.piece = piece;
    bool is_right = true;
    make_bases(memory);
    while (is_right && state.at < piece.stored_bytes)
        is_right = read_any_frame(memory, orders, &state);
    give_bytes(orders, &state, LEAVE, NULL, 0);
    if (threadIdx.x == 0 && !(is_right && state.made == piece.plain_bytes))
        inflate_fault(control, piece);
}

__global__ void zstd_pieces(const struct inflate_piece *pieces, struct cuda_control *control) {
    __shared__ struct zstd_memory memory;
    __shared__ struct zstd_orders orders;
    const struct inflate_piece piece = pieces[blockIdx.x];
    if (threadIdx.x == 0) {
        orders.made = 0;
        orders.is_wrong = false;
    }
    __syncthreads();
    if (threadIdx.x < CUDA_WARP)
        read_page(memory, orders, piece, control);
    else
        write_page(orders, piece.plain);
}

extern "C" void cuda_zstd(cudaStream_t stream, const struct inflate_piece *pieces, int64_t n,
                          struct cuda_control *control) {
    SX_LAUNCH(zstd_pieces, (unsigned)n, 2 * CUDA_WARP, 0, stream, pieces, control);
}
