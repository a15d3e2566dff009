/* What the parts of the zstd kernel share (zstd.cu). */
#ifndef SX_BACKEND_CUDA_ZSTD_H
#define SX_BACKEND_CUDA_ZSTD_H

#include "backend/cuda/block.h"
#include "backend/cuda/fse.h"

constexpr uint32_t MOST_TREE_BITS = 11, MOST_WEIGHTS = 255, WEIGHTS_LOG = 6;

enum { LENGTHS, OFFSETS, MATCHES, N_TABLES };
constexpr uint32_t LITERAL_CODES = 36, MATCH_CODES = 53, NO_TABLE = UINT32_MAX;

/* In shared memory. */
struct zstd_memory {
    uint16_t tree[1 << MOST_TREE_BITS]; /* symbol and, in the low four bits, the code's length */
    uint32_t tables[N_TABLES][1 << 9];
    uint32_t logs[N_TABLES]; /* NO_TABLE: there is none */
    bool is_default[N_TABLES];
    uint32_t literal_base[LITERAL_CODES], match_base[MATCH_CODES];
    uint32_t weights_table[1 << WEIGHTS_LOG];
    uint8_t weights[MOST_WEIGHTS + 1];
    struct fse_counts counts;
    struct fse_window window;
};

/* Every lane has the same. Positions are bytes of the page. */
struct zstd_state {
    struct inflate_piece piece;
    uint64_t at;
    uint32_t made, frame; /* plain bytes, and how many there were when the frame began */
    uint32_t n_blocks;
    uint32_t most_block;          /* plain bytes of a block */
    uint32_t last, second, third; /* distances */
    uint32_t turn;                /* orders that have been given */
    uint32_t tree_bits;           /* 0: there is no tree */
};

/* A block's that are not written yet. */
struct literals {
    const uint8_t *bytes;
    uint32_t n;
    bool is_in_room; /* at the end of the page's room, else elsewhere */
};

/* All lanes: one byte, n times. */
__device__ static inline void fill_bytes(uint8_t *to, uint8_t byte, uint32_t n) {
    for (uint32_t i = warp_lane(); i < n; i += CUDA_WARP)
        to[i] = byte;
}

__device__ static inline uint64_t bytes_at(const struct zstd_state &state, uint64_t at, uint32_t n) {
    return load_bits(state.piece.stored, state.piece.stored_bytes, at * 8, n * 8);
}

#endif
