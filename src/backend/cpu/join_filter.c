/* Runtime filters: which probe rows may have a match. */
#include <stdlib.h>

#include "backend/cpu/join.h"
#include "tensor/semantics.h"

enum {
    BITMAP_MIN_SLOTS = 1 << 16,    /* an array of fewer is in the cache anyway */
    BITMAP_SMALL_WORDS = 32 << 10, /* 256 KiB: within a processor's second cache */
    BITMAP_BLOOMS = 2,             /* larger ones: at most as many times as large as a bloom filter */
    BLOOM_BITS_PER_ROW = 12,
    WORD_BITS = 64
};

/* A bit a value where that takes little: it is exact, and tested in less time than a bloom filter. */
static void size_sparse(struct sx_join *join) {
    const uint64_t values = join->digits[0].count + (join->digits[0].null_digit != SX_JOIN_NONE);
    const uint64_t words = values / WORD_BITS + 1;
    if (words > BITMAP_SMALL_WORDS && words / BITMAP_BLOOMS > join->filter_words)
        return;
    join->filter_bits = values + 1;
    join->filter_words = words;
}

void sx_join_filter_size(struct sx_join *join) {
    if (join->n_keys != 1)
        return;
    if (join->kind != SX_JOIN_DIRECT) {
        join->filter_words = (uint64_t)join->rows * BLOOM_BITS_PER_ROW / WORD_BITS + 1;
        if (join->kind == SX_JOIN_SPARSE)
            size_sparse(join);
    } else if (join->table_slots > BITMAP_MIN_SLOTS) {
        join->filter_bits = join->table_slots;
        join->filter_words = join->table_slots / WORD_BITS + 1;
    }
    join->filter_bytes = join->filter_words * sizeof *join->filter;
}

static void set_bits(struct sx_join *join, uint64_t *word, uint64_t bits) {
    if (join->n_parts <= 1)
        *word |= bits;
    else if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bits) != bits)
        __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

/* Numbers become hashes in SPARSE joins; GENERIC ones come with hashes. */
static uint64_t bloom_hash(const struct sx_join *join, uint64_t number_or_hash) {
    return join->kind == SX_JOIN_SPARSE ? sx_hash_u64(number_or_hash) : number_or_hash;
}

void sx_join_filter_insert(struct sx_join *join, const uint64_t *numbers_or_hashes, int64_t rows) {
    if (join->filter_bits > 0) {
        for (int64_t i = 0; i < rows; i++)
            if (numbers_or_hashes[i] < join->filter_bits - 1)
                set_bits(join, &join->filter[numbers_or_hashes[i] / WORD_BITS],
                         UINT64_C(1) << (numbers_or_hashes[i] % WORD_BITS));
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        uint64_t hash = bloom_hash(join, numbers_or_hashes[i]);
        set_bits(join, &join->filter[sx_bloom_word(hash, join->filter_words)], sx_bloom_bits(hash));
    }
}

static void test_bitmap(const struct sx_join *join, const uint64_t *numbers, int64_t rows, uint8_t *out_hit) {
    const uint64_t none = join->filter_bits - 1;
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t number = numbers[i] < none ? numbers[i] : none;
        out_hit[i] = join->filter[number / WORD_BITS] >> (number % WORD_BITS) & 1;
    }
}

static void test_bloom(const struct sx_join *join, const uint64_t *numbers_or_hashes, int64_t rows,
                       uint8_t *out_hit) {
    for (int64_t i = 0; i < rows; i++) {
        uint64_t hash = bloom_hash(join, numbers_or_hashes[i]), bits = sx_bloom_bits(hash);
        out_hit[i] = (join->filter[sx_bloom_word(hash, join->filter_words)] & bits) == bits;
    }
}

static void test_block(const struct sx_join *join, const struct sx_join_keys *keys, int64_t rows,
                       uint8_t *out_hit) {
    uint64_t numbers[SX_JOIN_BLOCK];
    uint8_t matchable[SX_JOIN_BLOCK];
    if (join->kind == SX_JOIN_GENERIC) {
        sx_join_hashes(join, keys, rows, numbers, matchable);
        test_bloom(join, numbers, rows, out_hit);
        for (int64_t i = 0; i < rows; i++)
            out_hit[i] &= matchable[i];
        return;
    }
    sx_join_numbers(join, keys, rows, numbers);
    if (join->filter_bits > 0) {
        test_bitmap(join, numbers, rows, out_hit);
    } else if (join->kind == SX_JOIN_DIRECT) {
        for (int64_t i = 0; i < rows; i++)
            out_hit[i] = join->direct[numbers[i]] != 0;
    } else {
        test_bloom(join, numbers, rows, out_hit);
        for (int64_t i = 0; i < rows; i++)
            out_hit[i] &= numbers[i] != SX_JOIN_NONE;
    }
}

/* All rows of the key, one byte each. */
static enum sx_status test_rows(struct sx_stream *stream, const struct sx_join *join,
                                const struct sx_tensor *key, uint8_t *out_hit) {
    struct sx_join_probe probe = {0};
    SX_TRY(sx_join_probe_open(stream, join, key, &probe));
    for (int64_t at = 0; at < key->length; at += SX_JOIN_BLOCK) {
        int64_t rows = key->length - at < SX_JOIN_BLOCK ? key->length - at : SX_JOIN_BLOCK;
        sx_join_probe_block(&probe, at, rows);
        test_block(join, &probe.keys, rows, out_hit + at);
    }
    sx_join_probe_close(&probe);
    return SX_OK;
}

/* hit[i] says it of row i, or of dictionary entry i. */
static int64_t select_hits(const struct sx_tensor *key, bool by_code, const uint8_t *hit, const int32_t *from,
                           int64_t n, uint8_t null_hit, int32_t *out) {
    const int32_t *codes = key->values;
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t row = from ? from[i] : (int32_t)i;
        bool is_null = key->valid && !key->valid[row];
        out[found] = row;
        found += is_null ? null_hit : hit[by_code ? codes[row] : row];
    }
    return found;
}

/* Whether NULL may have a match. */
static uint8_t null_may_match(const struct sx_join *join) {
    return join->null_equal[0] && join->ranges[0].has_null;
}

/* Tests the dictionary's entries, and looks the rows up. */
static enum sx_status filter_dictionary(struct sx_stream *stream, const struct sx_join *join,
                                        const struct sx_tensor *key, const int32_t *from, int64_t n,
                                        struct sx_tensor *out) {
    int64_t entries = key->dict->values.length;
    void *hit = NULL;
    SX_TRY(sx_pool_alloc(stream->pool, (size_t)entries, &hit, &stream->error));
    enum sx_status status = test_rows(stream, join, &key->dict->values, hit);
    if (status == SX_OK)
        out->length = select_hits(key, true, hit, from, n, null_may_match(join), out->values);
    sx_pool_free(stream->pool, hit, (size_t)entries);
    return status;
}

/* Tests the selected rows block by block. */
static enum sx_status filter_rows(struct sx_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *key, const struct sx_tensor *selection,
                                  struct sx_tensor *out) {
    struct sx_tensor chosen = {0};
    void *hit = NULL;
    enum sx_status status = SX_OK;
    int64_t n = selection ? selection->length : key->length, found = 0;
    const int32_t *from = selection ? selection->values : NULL;
    int32_t *positions = out->values;
    if (selection)
        SX_GO(sx_cpu_gather(stream, key, selection, &chosen));
    SX_GO(sx_pool_alloc(stream->pool, (size_t)n, &hit, &stream->error));
    SX_GO(test_rows(stream, join, selection ? &chosen : key, hit));
    for (int64_t i = 0; i < n; i++) {
        positions[found] = from ? from[i] : (int32_t)i;
        found += ((const uint8_t *)hit)[i];
    }
    out->length = found;
out:
    sx_pool_free(stream->pool, hit, (size_t)n);
    sx_tensor_release(&chosen);
    return status;
}

enum sx_status sx_cpu_join_filter(struct sx_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *key, const struct sx_tensor *selection,
                                  struct sx_tensor *out_selection) {
    SX_TRY(sx_cpu_check_cancel(stream));
    int64_t n = selection ? selection->length : key->length;
    const int32_t *from = selection ? selection->values : NULL;
    struct sx_tensor out = {0};
    SX_TRY(sx_tensor_create_index(stream->pool, SX_TYPE_I32, n + 1, &out, &stream->error));
    enum sx_status status = key->layout == SX_DICT && key->dict->values.length <= n
                                ? filter_dictionary(stream, join, key, from, n, &out)
                                : filter_rows(stream, join, key, selection, &out);
    if (status == SX_OK)
        *out_selection = out;
    else
        sx_tensor_release(&out);
    return status;
}
