#include <string.h>

#include "tensor/pack_words.h"

/* A FRAME or DELTA vector whose lengths have been looked at. */
struct blocks {
    const struct sx_pack_block *blocks;
    const char *words;
    size_t words_bytes;
    int64_t n;
    bool is_delta;
};

/* Block `b`; false: it is not within the vector. */
static bool read_block(const struct blocks *vector, int64_t b, int64_t *out) {
    const struct sx_pack_block *block = &vector->blocks[b];
    const int n = pack_block_length(vector->n, b);
    if (!pack_is_inside(block, n, vector->words_bytes))
        return false;
    pack_read_words((const void *)(vector->words + block->offset), n, block->base, block->bits, out);
    if (vector->is_delta)
        pack_sum(out, n, block->first);
    return true;
}

/* NULL: it is cut off. */
static const struct sx_pack_header *find_header(const char *packed, size_t available) {
    const struct sx_pack_header *header = (const void *)packed;
    if (available < sizeof *header || header->bytes > available || header->bytes < sizeof *header ||
        header->bytes % SX_PACK_ALIGNMENT || header->scheme >= SX_PACK_SCHEMES)
        return NULL;
    return header;
}

static bool find_blocks(const char *packed, size_t available, int64_t n, struct blocks *out_blocks) {
    const struct sx_pack_header *header = find_header(packed, available);
    if (!header || (header->scheme != SX_PACK_FRAME && header->scheme != SX_PACK_DELTA) ||
        pack_directory_bytes(n) > header->bytes)
        return false;
    *out_blocks = (struct blocks){.blocks = (const void *)(header + 1),
                                  .words = packed + pack_directory_bytes(n),
                                  .words_bytes = (size_t)header->bytes - pack_directory_bytes(n),
                                  .n = n,
                                  .is_delta = header->scheme == SX_PACK_DELTA};
    return true;
}

/* The runs' integers and lengths. */
static bool find_run_blocks(const struct sx_pack_header *header, struct blocks *out_values,
                            struct blocks *out_lengths) {
    const char *at = (const char *)(header + 1);
    const size_t available = (size_t)header->bytes - sizeof *header;
    if (!find_blocks(at, available, header->n_runs, out_values))
        return false;
    const size_t first = (size_t)((const struct sx_pack_header *)(const void *)at)->bytes;
    return find_blocks(at + first, available - first, header->n_runs, out_lengths);
}

size_t sx_unpack_bytes(const char *packed, size_t available, int64_t n, uint32_t width_bytes,
                       const char **out_plain) {
    const struct sx_pack_header *header = find_header(packed, available);
    struct blocks first, second;
    *out_plain = NULL;
    if (!header || n < 0 || n > SX_PACK_MOST)
        return 0;
    switch ((enum sx_pack_scheme)header->scheme) {
    case SX_PACK_PLAIN:
        *out_plain = (const char *)(header + 1);
        return (size_t)n * width_bytes <= header->bytes - sizeof *header ? (size_t)header->bytes : 0;
    case SX_PACK_FRAME:
    case SX_PACK_DELTA: return find_blocks(packed, available, n, &first) ? (size_t)header->bytes : 0;
    default: return find_run_blocks(header, &first, &second) ? (size_t)header->bytes : 0;
    }
}

static bool unpack_blocks(const struct blocks *vector, uint32_t width_bytes, uint32_t stride_bytes,
                          char *out) {
    int64_t values[SX_PACK_BLOCK];
    for (int64_t b = 0; b < pack_blocks_of(vector->n); b++) {
        if (!read_block(vector, b, values))
            return false;
        pack_store(values, pack_block_length(vector->n, b), width_bytes, stride_bytes,
                   out + (size_t)b * SX_PACK_BLOCK * stride_bytes);
    }
    return true;
}

static void unpack_plain(const char *plain, int64_t n, uint32_t width_bytes, uint32_t stride_bytes,
                         char *out) {
    const struct sx_pack_input input = {
        .values = plain, .width_bytes = width_bytes, .stride_bytes = width_bytes, .n = n};
    int64_t values[SX_PACK_BLOCK];
    for (int64_t b = 0; b < pack_blocks_of(n); b++) {
        sx_pack_load(&input, b * SX_PACK_BLOCK, pack_block_length(n, b), 0, values);
        pack_store(values, pack_block_length(n, b), width_bytes, stride_bytes,
                   out + (size_t)b * SX_PACK_BLOCK * stride_bytes);
    }
}

/* `length` times the integer. */
static inline __attribute__((always_inline)) void repeat(int64_t value, int64_t length, uint32_t width_bytes,
                                                         int64_t stride, char *out) {
    for (int64_t i = 0; i < length; i++)
        memcpy(out + i * stride, &value, width_bytes);
}

static void repeat_any(int64_t value, int64_t length, uint32_t width_bytes, int64_t stride, char *out) {
    switch (width_bytes) {
    case 1: repeat(value, length, 1, stride, out); break;
    case 2: repeat(value, length, 2, stride, out); break;
    case 4: repeat(value, length, 4, stride, out); break;
    default: repeat(value, length, PACK_WORD_BYTES, stride, out); break;
    }
}

static bool unpack_runs(const struct blocks *values, const struct blocks *lengths, int64_t n,
                        uint32_t width_bytes, uint32_t stride_bytes, char *out) {
    int64_t value[SX_PACK_BLOCK], length[SX_PACK_BLOCK], at = 0;
    for (int64_t b = 0; b < pack_blocks_of(values->n); b++) {
        if (!read_block(values, b, value) || !read_block(lengths, b, length))
            return false;
        for (int i = 0, count = pack_block_length(values->n, b); i < count; i++) {
            if (length[i] < 0 || length[i] > n - at)
                return false;
            repeat_any(value[i], length[i], width_bytes, stride_bytes, out + at * stride_bytes);
            at += length[i];
        }
    }
    return at == n;
}

size_t sx_unpack(const char *packed, size_t available, int64_t n, uint32_t width_bytes, uint32_t stride_bytes,
                 char *out) {
    const struct sx_pack_header *header = (const void *)packed;
    const char *plain;
    struct blocks first, second;
    bool fine = true;
    if (!sx_unpack_bytes(packed, available, n, width_bytes, &plain))
        return 0;
    if (plain) {
        unpack_plain(plain, n, width_bytes, stride_bytes, out);
    } else if (header->scheme == SX_PACK_FRAME || header->scheme == SX_PACK_DELTA) {
        fine = find_blocks(packed, available, n, &first) &&
               unpack_blocks(&first, width_bytes, stride_bytes, out);
    } else {
        fine = find_run_blocks(header, &first, &second) &&
               unpack_runs(&first, &second, n, width_bytes, stride_bytes, out);
    }
    return fine ? (size_t)header->bytes : 0;
}
