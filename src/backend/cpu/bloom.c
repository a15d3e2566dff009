/* Bloom filters over hashes. */
#include "backend/cpu/move.h"
#include "tensor/semantics.h"

enum sx_status sx_cpu_bloom_add(struct sx_stream *stream, const struct sx_tensor *hashes,
                                struct sx_tensor *words) {
    SX_TRY(sx_cpu_check_cancel(stream));
    const uint64_t *from = hashes->values;
    uint64_t *to = words->values;
    const uint64_t n_words = (uint64_t)words->length;
    for (int64_t i = 0; i < hashes->length; i++) {
        const uint64_t bits = sx_bloom_bits(from[i]);
        uint64_t *word = &to[sx_bloom_word(from[i], n_words)];
        if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bits) != bits)
            __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
    }
    return SX_OK;
}

enum sx_status sx_cpu_bloom_merge(struct sx_stream *stream, const struct sx_tensor *other,
                                  struct sx_tensor *words) {
    SX_TRY(sx_cpu_check_cancel(stream));
    const uint64_t *from = other->values;
    uint64_t *to = words->values;
    const int64_t step = other->layout == SX_CONSTANT ? 0 : 1;
    for (int64_t i = 0; i < words->length; i++)
        to[i] |= from[i * step];
    return SX_OK;
}

enum sx_status sx_cpu_bloom_test(struct sx_stream *stream, const struct sx_tensor *hashes,
                                 const struct sx_tensor *words, struct sx_tensor *out_selection) {
    SX_TRY(sx_cpu_check_cancel(stream));
    const int64_t n = hashes->length;
    struct sx_tensor out = {0};
    SX_TRY(sx_tensor_create_index(stream->pool, SX_TYPE_I32, n + 1, &out, &stream->error));
    const uint64_t *from = hashes->values, *bits_of = words->values;
    const uint64_t n_words = (uint64_t)words->length;
    int32_t *positions = out.values;
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        positions[found] = (int32_t)i;
        found += sx_bloom_has(bits_of, n_words, from[i]);
    }
    out.length = found;
    *out_selection = out;
    return SX_OK;
}
