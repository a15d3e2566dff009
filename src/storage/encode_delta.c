#include "storage/encode.h"

/* Blocks longer than the usual 128: a reader on a GPU goes from block to block, one access to memory each. */
enum { BLOCK_VALUES = 1024, MINIBLOCKS = 32, MINIBLOCK_VALUES = BLOCK_VALUES / MINIBLOCKS };

static void put_header(int64_t count, int64_t first, struct sx_bytes *out) {
    sx_bytes_append_varint(out, BLOCK_VALUES);
    sx_bytes_append_varint(out, MINIBLOCKS);
    sx_bytes_append_varint(out, (uint64_t)count);
    sx_bytes_append_zigzag(out, first);
}

/* `deltas`, relative to the least one, with zeros behind the `count` that there are. A last miniblock is
 * padded, those behind it are left out. */
static void put_block(const uint64_t deltas[BLOCK_VALUES], int64_t count, int64_t least,
                      struct sx_bytes *out) {
    unsigned bits[MINIBLOCKS] = {0}, all_bits = 0;
    for (int m = 0; m < MINIBLOCKS; m++) {
        uint64_t used = 0;
        for (int i = 0; i < MINIBLOCK_VALUES; i++)
            used |= deltas[m * MINIBLOCK_VALUES + i];
        bits[m] = m * MINIBLOCK_VALUES < count ? sx_bits_of(used) : 0;
        all_bits += bits[m];
    }
    sx_bytes_append_zigzag(out, least);
    for (int m = 0; m < MINIBLOCKS; m++)
        sx_bytes_append_byte(out, (uint8_t)bits[m]);
    uint8_t *at = sx_bytes_take(out, (size_t)all_bits * MINIBLOCK_VALUES / 8);
    for (int m = 0; at && m < MINIBLOCKS; m++) {
        sx_pack_bits(deltas + (size_t)m * MINIBLOCK_VALUES, MINIBLOCK_VALUES, bits[m], at);
        at += bits[m] * MINIBLOCK_VALUES / 8;
    }
}

#define VALUE      int32_t
#define UNSIGNED   uint32_t
#define BLOCK_NAME put_block_i32
#define NAME       sx_encode_delta_i32
#include "storage/encode_delta.tmpl.h"

#define VALUE      int64_t
#define UNSIGNED   uint64_t
#define BLOCK_NAME put_block_i64
#define NAME       sx_encode_delta_i64
#include "storage/encode_delta.tmpl.h"
