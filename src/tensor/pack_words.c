/* The tight loops of packing: over the integers of a block. */
#include "tensor/pack_words.h"

#include <string.h>

/* ---- loading ---- */

static void load_nullable(const struct sx_pack_input *input, int64_t first, int n, int64_t last,
                          int64_t *out) {
    for (int i = 0; i < n; i++) {
        int64_t at = input->rows ? input->rows[first + i] : first + i;
        if (input->valid[at]) {
            if (input->codes)
                at = input->codes[at];
            last = pack_load(input->values + at * input->stride_bytes, input->width_bytes);
        } else if (input->nulls_are_zero) {
            last = 0;
        }
        out[i] = last;
    }
}

/* `width_bytes` is a constant where this is called. */
static inline __attribute__((always_inline)) void load_width(const struct sx_pack_input *input, int64_t first,
                                                             int n, uint32_t width_bytes, int64_t *out) {
    const int64_t stride = input->stride_bytes;
    const int32_t *rows = input->rows ? input->rows + first : NULL, *codes = input->codes;
    const char *values = input->values;
    if (codes)
        for (int i = 0; i < n; i++)
            out[i] = pack_load(values + codes[rows ? rows[i] : first + i] * stride, width_bytes);
    else if (rows && stride == width_bytes)
        for (int i = 0; i < n; i++)
            out[i] = pack_load(values + (int64_t)rows[i] * width_bytes, width_bytes);
    else if (rows)
        for (int i = 0; i < n; i++)
            out[i] = pack_load(values + rows[i] * stride, width_bytes);
    else if (stride == width_bytes)
        for (int i = 0; i < n; i++)
            out[i] = pack_load(values + (first + i) * width_bytes, width_bytes);
    else
        for (int i = 0; i < n; i++)
            out[i] = pack_load(values + (first + i) * stride, width_bytes);
}

void sx_pack_load(const struct sx_pack_input *input, int64_t first, int n, int64_t last, int64_t *out) {
    if (input->valid) {
        load_nullable(input, first, n, last, out);
        return;
    }
    switch (input->width_bytes) {
    case 1: load_width(input, first, n, 1, out); break;
    case 2: load_width(input, first, n, 2, out); break;
    case 4: load_width(input, first, n, 4, out); break;
    default: load_width(input, first, n, PACK_WORD_BYTES, out); break;
    }
}

/* ---- storing ---- */

#define STORE_WIDTH(width, type)                            \
    case width:                                             \
        for (int i = 0; i < n; i++) {                       \
            const type value = (type)values[i];             \
            memcpy(out + i * stride, &value, sizeof value); \
        }                                                   \
        break;

static inline __attribute__((always_inline)) void store_stride(const int64_t *values, int n,
                                                               uint32_t width_bytes, int64_t stride,
                                                               char *out) {
    switch (width_bytes) {
        STORE_WIDTH(1, uint8_t)
        STORE_WIDTH(2, uint16_t)
        STORE_WIDTH(4, uint32_t)
    default: STORE_WIDTH(8, uint64_t)
    }
}

/* The ways without gaps are vectorised. */
void pack_store(const int64_t *values, int n, uint32_t width_bytes, int64_t stride_bytes, char *out) {
    if (stride_bytes != width_bytes) {
        store_stride(values, n, width_bytes, stride_bytes, out);
        return;
    }
    switch (width_bytes) {
    case 1: store_stride(values, n, 1, 1, out); break;
    case 2: store_stride(values, n, 2, 2, out); break;
    case 4: store_stride(values, n, 4, 4, out); break;
    default: store_stride(values, n, PACK_WORD_BYTES, PACK_WORD_BYTES, out); break;
    }
}

/* ---- words ---- */

void pack_write_words(const int64_t *values, int n, uint64_t base, unsigned bits, uint64_t *out) {
    uint64_t word[SX_PACK_LANES] = {0};
    unsigned shift = 0;
    for (int p = 0; p < pack_positions(n); p++, values += SX_PACK_LANES) {
        for (int lane = 0; lane < SX_PACK_LANES; lane++)
            word[lane] |= ((uint64_t)values[lane] - base) << shift;
        shift += bits;
        if (shift < PACK_WORD_BITS)
            continue;
        memcpy(out, word, sizeof word);
        out += SX_PACK_LANES;
        shift -= PACK_WORD_BITS;
        const unsigned done = bits - shift; /* bits of this position that were written */
        for (int lane = 0; lane < SX_PACK_LANES; lane++)
            word[lane] = shift ? ((uint64_t)values[lane] - base) >> done : 0;
    }
    if (shift > 0)
        memcpy(out, word, sizeof word);
}

void pack_range(const int64_t *values, int n, int64_t *out_least, int64_t *out_most) {
    int64_t least = values[0], most = values[0];
    for (int i = 1; i < n; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    *out_least = least;
    *out_most = most;
}

void pack_differ(const int64_t *values, int n, int64_t *out) {
    for (int i = 1; i < n; i++)
        out[i] = (int64_t)((uint64_t)values[i] - (uint64_t)values[i - 1]);
}

static void read_words(const uint64_t *words, int n, uint64_t base, unsigned bits, int64_t *out) {
    const uint64_t mask = bits == PACK_WORD_BITS ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    unsigned shift = 0;
    for (int p = 0; p < pack_positions(n); p++, out += SX_PACK_LANES) {
        if (shift + bits > PACK_WORD_BITS)
            for (int lane = 0; lane < SX_PACK_LANES; lane++)
                out[lane] = (int64_t)((((words[lane] >> shift) |
                                        (words[lane + SX_PACK_LANES] << (PACK_WORD_BITS - shift))) &
                                       mask) +
                                      base);
        else
            for (int lane = 0; lane < SX_PACK_LANES; lane++)
                out[lane] = (int64_t)(((words[lane] >> shift) & mask) + base);
        shift += bits;
        if (shift >= PACK_WORD_BITS) {
            shift -= PACK_WORD_BITS;
            words += SX_PACK_LANES;
        }
    }
}

void pack_read_words(const uint64_t *words, int n, uint64_t base, unsigned bits, int64_t *out) {
    if (bits > 0)
        read_words(words, n, base, bits, out);
    else
        for (int i = 0; i < n; i++)
            out[i] = (int64_t)base;
}

void pack_sum(int64_t *values, int n, uint64_t first) {
    values[0] = (int64_t)first;
    for (int i = 1; i < n; i++) {
        first += (uint64_t)values[i];
        values[i] = (int64_t)first;
    }
}
