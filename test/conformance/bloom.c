/* Bloom filters bit by bit against tensor/semantics.h: what was added is found, and filters of parts merge by
 * OR. */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "tensor/semantics.h"

enum { N_KEYS = 5 };

static enum sx_status make_words(struct conformance *c, int64_t n_words, struct sx_tensor *out_words) {
    struct sx_tensor host = {0};
    SX_TRY(sx_tensor_create(c->pool, sx_type_of(SX_TYPE_U64), n_words, false, &host, &c->error));
    memset(host.values, 0, (size_t)n_words * sizeof(uint64_t));
    const enum sx_status status = conformance_send(c, &host, out_words);
    sx_tensor_release(&host);
    return status;
}

static bool is_in(const uint64_t *words, uint64_t n_words, uint64_t hash) {
    return (words[sx_bloom_word(hash, n_words)] & sx_bloom_bits(hash)) == sx_bloom_bits(hash);
}

/* `always`: bits that all words have. */
static void check_words(struct conformance *c, const struct sx_tensor *hashes, uint64_t always,
                        const struct sx_tensor *got) {
    const uint64_t *from = hashes->values;
    const uint64_t n_words = (uint64_t)got->length;
    uint64_t *expected = calloc(n_words, sizeof *expected);
    for (uint64_t i = 0; expected && i < n_words; i++)
        expected[i] = always;
    for (int64_t i = 0; expected && i < hashes->length; i++)
        expected[sx_bloom_word(from[i], n_words)] |= sx_bloom_bits(from[i]);
    CONFORM(c, expected && memcmp(expected, got->values, n_words * sizeof *expected) == 0,
            "bloom filter of %lld words, %lld hashes", (long long)got->length, (long long)hashes->length);
    free(expected);
}

static void check_found(struct conformance *c, const struct sx_tensor *hashes, const struct sx_tensor *words,
                        const struct sx_tensor *found) {
    const uint64_t *from = hashes->values;
    const int32_t *positions = found->values;
    int64_t at = 0;
    bool equal = true;
    for (int64_t i = 0; i < hashes->length && equal; i++)
        if (is_in(words->values, (uint64_t)words->length, from[i])) {
            equal = at < found->length && positions[at] == i;
            at++;
        }
    CONFORM(c, equal && at == found->length,
            "bloom filter of %lld words: %lld of %lld hashes found, not %lld", (long long)words->length,
            (long long)found->length, (long long)hashes->length, (long long)at);
}

/* `added` are added, and both are looked for. */
static enum sx_status try_filter(struct conformance *c, const struct sx_tensor *added,
                                 const struct sx_tensor *others, int64_t n_words) {
    if (!conformance_takes(c))
        return SX_OK;
    const struct sx_tensor *hosts[] = {added, others};
    struct sx_tensor words = {0}, host_words = {0}, hashes = {0}, found = {0}, host_found = {0};
    enum sx_status status = SX_OK;
    SX_GO(make_words(c, n_words, &words));
    for (int i = 0; i < 2; i++) {
        SX_GO(conformance_send(c, hosts[i], &hashes));
        if (i == 0) {
            SX_GO(c->backend->ops.bloom_add(c->stream, &hashes, &words));
            SX_GO(conformance_receive(c, &words, &host_words));
            check_words(c, added, 0, &host_words);
        }
        SX_GO(c->backend->ops.bloom_test(c->stream, &hashes, &words, &found));
        SX_GO(conformance_receive(c, &found, &host_found));
        check_found(c, hosts[i], &host_words, &host_found);
        CONFORM(c, i > 0 || host_found.length == added->length, "an added hash is not found");
        sx_tensor_release(&hashes);
        sx_tensor_release(&found);
        sx_tensor_release(&host_found);
    }
out:
    sx_tensor_release(&words);
    sx_tensor_release(&host_words);
    sx_tensor_release(&hashes);
    sx_tensor_release(&found);
    sx_tensor_release(&host_found);
    return status;
}

/* Keys are added as their hashes are. */
static enum sx_status try_keys(struct conformance *c, const struct sx_tensor *host_keys, int n_keys,
                               int64_t n_words) {
    enum { MOST_KEYS = 20 };
    struct sx_tensor keys[MOST_KEYS] = {0}, words = {0}, hashes = {0}, host_words = {0}, host_hashes = {0};
    const int64_t rows = host_keys[0].length;
    enum sx_status status = SX_OK;
    if (!conformance_takes(c))
        return SX_OK;
    for (int k = 0; k < n_keys; k++)
        SX_GO(conformance_send(c, &host_keys[k % N_KEYS], &keys[k]));
    SX_GO(make_words(c, n_words, &words));
    SX_GO(c->backend->ops.bloom_add_keys(c->stream, keys, n_keys, rows, &words));
    SX_GO(c->backend->ops.hash(c->stream, keys, n_keys, rows, &hashes));
    SX_GO(conformance_receive(c, &words, &host_words));
    SX_GO(conformance_receive(c, &hashes, &host_hashes));
    check_words(c, &host_hashes, 0, &host_words);
out:
    for (int k = 0; k < n_keys; k++)
        sx_tensor_release(&keys[k]);
    sx_tensor_release(&words);
    sx_tensor_release(&hashes);
    sx_tensor_release(&host_words);
    sx_tensor_release(&host_hashes);
    return status;
}

static enum sx_status try_all_keys(struct conformance *c, int64_t rows) {
    static const int counts[] = {1, 2, N_KEYS, 16, 17, 20}; /* more than a GPU takes at once, too */
    static const enum sx_type_id types[] = {SX_TYPE_I64, SX_TYPE_I32, SX_TYPE_VARCHAR, SX_TYPE_F64};
    struct sx_tensor keys[N_KEYS] = {0};
    enum sx_status status = SX_OK;
    for (int k = 0; k < N_KEYS - 1; k++)
        SX_GO(conformance_column(c, sx_type_of(types[k]), rows, FILL_RANDOM, k % 2 ? 0.2 : 0, &keys[k]));
    SX_GO(conformance_dictionary(c, &keys[2], &keys[N_KEYS - 1]));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        SX_GO(try_keys(c, keys, counts[i], 63));
    for (int first = 1; first < N_KEYS; first++)
        SX_GO(try_keys(c, &keys[first], 1, 1000));
out:
    for (int k = 0; k < N_KEYS; k++)
        sx_tensor_release(&keys[k]);
    return status;
}

/* Two filters, merged, are the filter of both. */
static enum sx_status try_merge(struct conformance *c, const struct sx_tensor *const added[2],
                                int64_t n_words) {
    if (!conformance_takes(c))
        return SX_OK;
    struct sx_tensor words[2] = {0}, merged = {0}, all = {0}, hashes = {0};
    enum sx_status status = SX_OK;
    for (int i = 0; i < 2; i++) {
        SX_GO(make_words(c, n_words, &words[i]));
        SX_GO(conformance_send(c, added[i], &hashes));
        SX_GO(c->backend->ops.bloom_add(c->stream, &hashes, &words[i]));
        sx_tensor_release(&hashes);
    }
    SX_GO(c->backend->ops.bloom_merge(c->stream, &words[1], &words[0]));
    SX_GO(conformance_receive(c, &words[0], &merged));
    SX_GO(sx_tensor_create(c->pool, added[0]->type, added[0]->length + added[1]->length, false, &all,
                           &c->error));
    memcpy(all.values, added[0]->values, (size_t)added[0]->length * sizeof(uint64_t));
    memcpy((uint64_t *)all.values + added[0]->length, added[1]->values,
           (size_t)added[1]->length * sizeof(uint64_t));
    check_words(c, &all, 0, &merged);
out:
    for (int i = 0; i < 2; i++)
        sx_tensor_release(&words[i]);
    sx_tensor_release(&merged);
    sx_tensor_release(&all);
    sx_tensor_release(&hashes);
    return status;
}

/* One word, merged with all. */
static enum sx_status try_merge_constant(struct conformance *c, const struct sx_tensor *added,
                                         int64_t n_words) {
    if (!conformance_takes(c))
        return SX_OK;
    const struct sx_scalar word = {.type = sx_type_of(SX_TYPE_U64), .v.u64 = UINT64_C(0x8000000100200003)};
    struct sx_tensor words = {0}, merged = {0}, hashes = {0}, other = {0};
    enum sx_status status = SX_OK;
    SX_GO(make_words(c, n_words, &words));
    SX_GO(conformance_send(c, added, &hashes));
    SX_GO(c->backend->ops.bloom_add(c->stream, &hashes, &words));
    SX_GO(c->backend->ops.constant(c->stream, &word, n_words, &other));
    SX_GO(c->backend->ops.bloom_merge(c->stream, &other, &words));
    SX_GO(conformance_receive(c, &words, &merged));
    check_words(c, added, word.v.u64, &merged);
out:
    sx_tensor_release(&words);
    sx_tensor_release(&merged);
    sx_tensor_release(&hashes);
    sx_tensor_release(&other);
    return status;
}

void conform_bloom(struct conformance *c) {
    static const int64_t sizes[] = {1, 2, 63, 1000, 1 << 14};
    for (int r = 0; r < conformance_n_rows; r++) {
        struct sx_tensor added = {0}, others = {0};
        enum sx_status status = SX_OK;
        SX_GO(conformance_column(c, sx_type_of(SX_TYPE_U64), conformance_rows[r], FILL_RANDOM, 0, &added));
        SX_GO(conformance_column(c, sx_type_of(SX_TYPE_U64), conformance_rows[r], FILL_EXTREMES, 0, &others));
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            SX_GO(try_filter(c, &added, &others, sizes[s]));
            SX_GO(try_filter(c, &others, &added, sizes[s]));
            SX_GO(try_merge(c, (const struct sx_tensor *const[]){&added, &others}, sizes[s]));
            SX_GO(try_merge_constant(c, &added, sizes[s]));
        }
        SX_GO(try_all_keys(c, conformance_rows[r]));
    out:
        CONFORM(c, status == SX_OK, "bloom: %s %s", c->error.text, c->stream->error.text);
        sx_tensor_release(&added);
        sx_tensor_release(&others);
    }
}
