#include "tensor/pack_words.h"

#include <string.h>

_Static_assert(sizeof(struct sx_pack_header) == 16 && sizeof(struct sx_pack_block) == 24, "as documented");

/* ---- blocks ---- */

/* One block's words at `words`; returns their bytes, or SIZE_MAX: no room. Room for padding is behind
 * `values`. */
static size_t write_block(int64_t *values, int n, bool is_delta, struct sx_pack_block *block, char *words,
                          size_t room) {
    int64_t differences[SX_PACK_BLOCK], least = 0, most = 0;
    *block = (struct sx_pack_block){0};
    if (is_delta) {
        block->first = (uint64_t)values[0];
        pack_differ(values, n, differences);
        if (n > 1)
            pack_range(differences + 1, n - 1, &least, &most);
        differences[0] = least;
        values = differences;
    } else {
        pack_range(values, n, &least, &most);
    }
    const unsigned bits = pack_bits_of((uint64_t)most - (uint64_t)least);
    const size_t bytes = pack_words_bytes(n, bits);
    block->base = (uint64_t)least;
    block->bits = (uint8_t)bits;
    if (bytes > room)
        return SIZE_MAX;
    for (int i = n; i < pack_positions(n) * SX_PACK_LANES; i++)
        values[i] = least;
    if (bits > 0)
        pack_write_words(values, n, block->base, bits, (uint64_t *)(uintptr_t)words);
    return bytes;
}

static size_t pack_blocks(const struct sx_pack_input *input, enum sx_pack_scheme scheme, char *out,
                          size_t capacity) {
    struct sx_pack_block *blocks = (void *)(out + sizeof(struct sx_pack_header));
    const size_t begin = pack_directory_bytes(input->n);
    size_t used = begin;
    int64_t values[SX_PACK_BLOCK], last = 0;
    if (begin > capacity)
        return 0;
    if (pack_aligned((size_t)pack_blocks_of(input->n) * sizeof *blocks) % sizeof *blocks)
        memset(out + begin - SX_PACK_ALIGNMENT, 0, SX_PACK_ALIGNMENT);
    for (int64_t b = 0; b < pack_blocks_of(input->n); b++) {
        const int n = pack_block_length(input->n, b);
        sx_pack_load(input, b * SX_PACK_BLOCK, n, last, values);
        last = values[n - 1];
        const size_t bytes =
            write_block(values, n, scheme == SX_PACK_DELTA, &blocks[b], out + used, capacity - used);
        if (bytes == SIZE_MAX)
            return 0;
        blocks[b].offset = (uint32_t)(used - begin);
        used += bytes;
    }
    const struct sx_pack_header header = {.bytes = used, .scheme = (uint32_t)scheme};
    memcpy(out, &header, sizeof header);
    return used;
}

/* ---- runs ---- */

struct runs {
    int64_t *values, *ends; /* of `n`; room for `most` and a block */
    int64_t n, most;
};

size_t sx_pack_scratch_bytes(int64_t n) {
    return 2 * ((size_t)n / 2 + SX_PACK_BLOCK) * sizeof(int64_t);
}

/* False: too many. */
static bool find_runs(const struct sx_pack_input *input, struct runs *runs) {
    int64_t values[SX_PACK_BLOCK], last = 0, at = -1;
    for (int64_t b = 0; b < pack_blocks_of(input->n); b++) {
        const int n = pack_block_length(input->n, b);
        sx_pack_load(input, b * SX_PACK_BLOCK, n, last, values);
        if (b == 0)
            last = ~values[0];
        for (int i = 0; i < n; i++) {
            at += values[i] != last;
            last = values[i];
            runs->values[at] = last;
            runs->ends[at] = b * SX_PACK_BLOCK + i + 1;
        }
        if (at + 1 > runs->most)
            return false;
    }
    runs->n = at + 1;
    return true;
}

static size_t pack_runs(const struct sx_pack_input *input, enum sx_pack_scheme scheme, void *scratch,
                        char *out, size_t capacity) {
    struct runs runs = {.values = scratch, .most = input->n / 2};
    runs.ends = runs.values + runs.most + SX_PACK_BLOCK;
    if (capacity < sizeof(struct sx_pack_header) || !find_runs(input, &runs))
        return 0;
    for (int64_t i = runs.n - 1; i > 0; i--)
        runs.ends[i] -= runs.ends[i - 1]; /* lengths from now on */
    const struct sx_pack_input values = {.values = (const char *)runs.values,
                                         .width_bytes = PACK_WORD_BYTES,
                                         .stride_bytes = PACK_WORD_BYTES,
                                         .n = runs.n};
    struct sx_pack_input lengths = values;
    lengths.values = (const char *)runs.ends;
    size_t used = sizeof(struct sx_pack_header);
    const size_t first = pack_blocks(&values, scheme == SX_PACK_RUNS ? SX_PACK_FRAME : SX_PACK_DELTA,
                                     out + used, capacity - used);
    used += first;
    const size_t second = first ? pack_blocks(&lengths, SX_PACK_FRAME, out + used, capacity - used) : 0;
    const struct sx_pack_header header = {
        .bytes = used + second, .scheme = (uint32_t)scheme, .n_runs = (uint32_t)runs.n};
    memcpy(out, &header, sizeof header);
    return second ? used + second : 0;
}

/* ---- any vector ---- */

static size_t pack_plain(const struct sx_pack_input *input, char *out, size_t capacity) {
    const size_t bytes = sizeof(struct sx_pack_header) + pack_aligned((size_t)input->n * input->width_bytes);
    int64_t values[SX_PACK_BLOCK], last = 0;
    if (bytes > capacity)
        return 0;
    const struct sx_pack_header header = {.bytes = bytes, .scheme = SX_PACK_PLAIN};
    memcpy(out, &header, sizeof header);
    out += sizeof header;
    for (int64_t b = 0; b < pack_blocks_of(input->n); b++) {
        const int n = pack_block_length(input->n, b);
        sx_pack_load(input, b * SX_PACK_BLOCK, n, last, values);
        last = values[n - 1];
        pack_store(values, n, input->width_bytes, input->width_bytes,
                   out + (size_t)b * SX_PACK_BLOCK * input->width_bytes);
    }
    const size_t used = (size_t)input->n * input->width_bytes;
    memset(out + used, 0, pack_aligned(used) - used);
    return bytes;
}

size_t sx_pack(const struct sx_pack_input *input, enum sx_pack_scheme scheme, void *scratch, char *out,
               size_t capacity) {
    if (input->n > SX_PACK_MOST)
        return 0;
    switch (scheme) {
    case SX_PACK_FRAME:
    case SX_PACK_DELTA: return pack_blocks(input, scheme, out, capacity);
    case SX_PACK_RUNS:
    case SX_PACK_RUN_DELTAS: return pack_runs(input, scheme, scratch, out, capacity);
    default: return pack_plain(input, out, capacity);
    }
}
