/* Inside of packing: lengths, and the loops over the integers of a block. */
#ifndef SX_TENSOR_PACK_WORDS_H
#define SX_TENSOR_PACK_WORDS_H

#include <string.h>

#include "tensor/pack.h"
#include "tensor/semantics.h"

enum { PACK_WORD_BITS = 64, PACK_WORD_BYTES = 8 };

SX_BOTH size_t pack_aligned(size_t bytes) {
    return (bytes + SX_PACK_ALIGNMENT - 1) & ~(size_t)(SX_PACK_ALIGNMENT - 1);
}

/* The signed integer of 1, 2, 4 or 8 bytes. */
SX_BOTH int64_t pack_load(const char *at, size_t width_bytes) {
    int64_t wide;
    int32_t word;
    int16_t half;
    switch (width_bytes) {
    case 1: return (int8_t)*at;
    case 2: memcpy(&half, at, sizeof half); return half;
    case 4: memcpy(&word, at, sizeof word); return word;
    default: memcpy(&wide, at, sizeof wide); return wide;
    }
}

/* Integers of a lane. */
SX_BOTH int pack_positions(int n) {
    return (n + SX_PACK_LANES - 1) / SX_PACK_LANES;
}

/* Of `n` integers in one block. */
SX_BOTH size_t pack_words_bytes(int n, unsigned bits) {
    const size_t words = ((size_t)pack_positions(n) * bits + PACK_WORD_BITS - 1) / PACK_WORD_BITS;
    return words * SX_PACK_LANES * PACK_WORD_BYTES;
}

SX_BOTH int64_t pack_blocks_of(int64_t n) {
    return (n + SX_PACK_BLOCK - 1) / SX_PACK_BLOCK;
}

/* Integers of a block, of `n` in all. */
SX_BOTH int pack_block_length(int64_t n, int64_t block) {
    const int64_t left = n - block * SX_PACK_BLOCK;
    return left < SX_PACK_BLOCK ? (int)left : SX_PACK_BLOCK;
}

/* The header and the blocks of a FRAME or DELTA vector. */
SX_BOTH size_t pack_directory_bytes(int64_t n) {
    return sizeof(struct sx_pack_header) +
           pack_aligned((size_t)pack_blocks_of(n) * sizeof(struct sx_pack_block));
}

/* That a difference of `most` takes. */
SX_BOTH unsigned pack_bits_of(uint64_t most) {
    unsigned bits = 0;
    for (unsigned by = PACK_WORD_BITS / 2; by > 0; by /= 2)
        if (most >> by) {
            most >>= by;
            bits += by;
        }
    return bits + (most != 0);
}

/* The block's words are within the words_bytes of its vectors. */
SX_BOTH bool pack_is_inside(const struct sx_pack_block *block, int n, uint64_t words_bytes) {
    return block->bits <= PACK_WORD_BITS && block->offset % SX_PACK_ALIGNMENT == 0 &&
           block->offset <= words_bytes && pack_words_bytes(n, block->bits) <= words_bytes - block->offset;
}

/* 1 … 64 bits each; `values` have room up to whole positions, and are set there. */
void pack_write_words(const int64_t *values, int n, uint64_t base, unsigned bits, uint64_t *out);
/* 0 … 64 bits; writes whole positions. */
void pack_read_words(const uint64_t *words, int n, uint64_t base, unsigned bits, int64_t *out);
void pack_range(const int64_t *values, int n, int64_t *out_least, int64_t *out_most);
/* out[i] = values[i] - values[i - 1], but for the first; and back. */
void pack_differ(const int64_t *values, int n, int64_t *out);
void pack_sum(int64_t *values, int n, uint64_t first);
/* The low bytes of each. */
void pack_store(const int64_t *values, int n, uint32_t width_bytes, int64_t stride_bytes, char *out);

#endif
