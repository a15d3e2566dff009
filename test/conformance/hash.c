/* Hashes against tensor/semantics.h value by value, and partitions. */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "tensor/semantics.h"

enum { MAX_KEYS = 3, MAX_PARTS = 1 << 12 };

static uint64_t expected_hash(const struct sx_scalar *value) {
    if (value->is_null || value->type.id == SX_TYPE_NULLTYPE)
        return SX_HASH_NULL;
    switch (sx_type_phys(value->type)) {
    case SX_PHYS_I128:
    case SX_PHYS_U128: return sx_hash_u128(value->v.u128);
    case SX_PHYS_F32: return sx_hash_f64((double)value->v.f32);
    case SX_PHYS_F64: return sx_hash_f64(value->v.f64);
    case SX_PHYS_STRING: {
        const struct sx_string view = sx_string_make(value->v.text.bytes, value->v.text.length_bytes);
        return sx_hash_string(&view);
    }
    default: return sx_hash_u64(value->v.u64);
    }
}

static void check_hashes(struct conformance *c, const struct sx_tensor *keys, int n_keys, int64_t rows,
                         const struct sx_tensor *got) {
    bool equal = got->length == rows;
    for (int64_t i = 0; i < rows && equal; i++) {
        uint64_t hash = 0;
        for (int k = 0; k < n_keys; k++) {
            struct sx_scalar value;
            sx_tensor_scalar(&keys[k], i, &value);
            const uint64_t next = expected_hash(&value);
            hash = k ? sx_hash_combine(hash, next) : next;
        }
        equal = ((const uint64_t *)got->values)[i] == hash;
    }
    char name[SX_TYPE_NAME_BYTES];
    CONFORM(c, equal, "hash of %d keys, %lld rows, the first %s in layout %d", n_keys, (long long)rows,
            sx_type_name(keys[0].type, name), (int)keys[0].layout);
}

/* A row's place among its part's rows; -1: the filter lacks it. */
static int64_t part_of(uint64_t hash, int n_parts, const struct sx_tensor *words) {
    if (words && !sx_bloom_has(words->values, (uint64_t)words->length, hash))
        return -1;
    return n_parts == 1 ? 0 : (int64_t)(hash >> (64 - __builtin_ctz((unsigned)n_parts)));
}

static void check_partition(struct conformance *c, const struct sx_tensor *hashes,
                            const struct sx_tensor *words, int n_parts, const struct sx_tensor *index,
                            const int64_t *offsets) {
    const uint64_t *values = hashes->values;
    const int32_t *order = index->values;
    int64_t rows = 0;
    for (int64_t i = 0; i < hashes->length; i++)
        rows += part_of(values[i], n_parts, words) >= 0;
    bool fine = index->length == rows && offsets[0] == 0 && offsets[n_parts] == rows;
    for (int p = 0; p < n_parts && fine; p++)
        for (int64_t i = offsets[p]; i < offsets[p + 1] && fine; i++)
            fine = part_of(values[order[i]], n_parts, words) == p &&
                   (i == offsets[p] || order[i - 1] < order[i]);
    CONFORM(c, fine, "partition of %lld rows into %d parts%s", (long long)hashes->length, n_parts,
            words ? ", by a filter" : "");
}

/* What rows are ordered by: hashes, or (NULL) keys, and maybe a filter of some of their hashes. */
struct ordered_by {
    const struct sx_tensor *hashes, *keys;
    int n_keys;
    const struct sx_tensor *host_words, *words;
};

static enum sx_status try_parts(struct conformance *c, const struct ordered_by *by,
                                const struct sx_tensor *host_hashes, int n_parts) {
    int64_t offsets[MAX_PARTS + 1];
    struct sx_tensor index = {0}, host = {0};
    enum sx_status status;
    SX_GO(by->hashes ? c->backend->ops.partition(c->stream, by->hashes, n_parts, &index, offsets)
                     : c->backend->ops.partition_keys(c->stream, by->keys, by->n_keys, host_hashes->length,
                                                      by->words, n_parts, &index, offsets));
    SX_GO(conformance_receive(c, &index, &host));
    check_partition(c, host_hashes, by->host_words, n_parts, &host, offsets);
out:
    sx_tensor_release(&index);
    sx_tensor_release(&host);
    return status;
}

/* A filter of every third hash. */
static enum sx_status make_words(struct conformance *c, const struct sx_tensor *hashes, int64_t n_words,
                                 struct sx_tensor *out_words) {
    SX_TRY(sx_tensor_create(c->pool, sx_type_of(SX_TYPE_U64), n_words, false, out_words, &c->error));
    uint64_t *words = out_words->values;
    memset(words, 0, (size_t)out_words->length * sizeof *words);
    for (int64_t i = 0; i < hashes->length; i += 3) {
        const uint64_t hash = ((const uint64_t *)hashes->values)[i];
        words[sx_bloom_word(hash, (uint64_t)out_words->length)] |= sx_bloom_bits(hash);
    }
    return SX_OK;
}

static enum sx_status try_filtered(struct conformance *c, const struct sx_tensor *keys, int n_keys,
                                   const struct sx_tensor *host_hashes, int64_t n_words) {
    struct sx_tensor host_words = {0}, words = {0};
    const struct ordered_by by = {.keys = keys, .n_keys = n_keys, .host_words = &host_words, .words = &words};
    enum sx_status status;
    SX_GO(make_words(c, host_hashes, n_words, &host_words));
    SX_GO(conformance_send(c, &host_words, &words));
    for (int n_parts = 1; n_parts <= 64; n_parts *= 2)
        SX_GO(try_parts(c, &by, host_hashes, n_parts));
out:
    sx_tensor_release(&host_words);
    sx_tensor_release(&words);
    return status;
}

static enum sx_status try_partitions(struct conformance *c, const struct sx_tensor *hashes,
                                     const struct sx_tensor *keys, int n_keys,
                                     const struct sx_tensor *host_hashes) {
    const struct ordered_by by_hashes = {.hashes = hashes}, by_keys = {.keys = keys, .n_keys = n_keys};
    for (int n_parts = 1; n_parts <= MAX_PARTS; n_parts *= 2) {
        SX_TRY(try_parts(c, &by_hashes, host_hashes, n_parts));
        if (n_parts <= 64)
            SX_TRY(try_parts(c, &by_keys, host_hashes, n_parts));
    }
    return try_filtered(c, keys, n_keys, host_hashes, host_hashes->length / 8 + 1);
}

static enum sx_status try_plain_rows(struct conformance *c, const struct sx_tensor *keys, int n_keys,
                                     int64_t n_words) {
    struct sx_tensor hashes = {0}, got = {0};
    const struct ordered_by by = {.keys = keys, .n_keys = n_keys};
    enum sx_status status;
    SX_GO(c->backend->ops.hash(c->stream, keys, n_keys, keys->length, &hashes));
    SX_GO(conformance_receive(c, &hashes, &got));
    SX_GO(try_parts(c, &by, &got, 4));
    SX_GO(try_filtered(c, keys, n_keys, &got, n_words));
out:
    sx_tensor_release(&hashes);
    sx_tensor_release(&got);
    return status;
}

/* One key without NULLs, the digits of which a device may make several at a time; with filters, too, that are
 * larger than its cache, and a constant behind it. Its values begin anywhere. */
static enum sx_status try_plain(struct conformance *c, const struct sx_tensor *host, int64_t n_words) {
    const struct sx_scalar constant = {.type = sx_type_of(SX_TYPE_I32), .v.u64 = 7};
    struct sx_tensor key = {0};
    enum sx_status status = conformance_send(c, host, &key);
    for (int64_t first = 0; status == SX_OK && first <= 2 && first <= host->length; first++) {
        struct sx_tensor keys[2] = {0};
        sx_tensor_slice(&key, first, host->length - first, &keys[0]);
        status = c->backend->ops.constant(c->stream, &constant, keys[0].length, &keys[1]);
        for (int n_keys = 1; status == SX_OK && n_keys <= 2; n_keys++)
            status = try_plain_rows(c, keys, n_keys, n_words);
        sx_tensor_release(&keys[0]);
        sx_tensor_release(&keys[1]);
    }
    sx_tensor_release(&key);
    return status;
}

static enum sx_status try_plain_types(struct conformance *c, int64_t rows, int64_t n_words) {
    static const enum sx_type_id types[] = {SX_TYPE_I32, SX_TYPE_U32, SX_TYPE_I64, SX_TYPE_U64};
    enum sx_status status = SX_OK;
    for (size_t t = 0; t < sizeof types / sizeof types[0] && status == SX_OK; t++) {
        struct sx_tensor host = {0};
        if (!conformance_takes(c))
            continue;
        status = conformance_column(c, sx_type_of(types[t]), rows, FILL_RANDOM, 0, &host);
        if (status == SX_OK)
            status = try_plain(c, &host, n_words);
        sx_tensor_release(&host);
    }
    return status;
}

static enum sx_status try_plain_keys(struct conformance *c) {
    static const int64_t large[] = {6 << 20, 11 << 20, 22 << 20};
    for (int r = 0; r < conformance_n_rows; r++)
        SX_TRY(try_plain_types(c, conformance_rows[r], conformance_rows[r] / 8 + 1));
    for (size_t w = 0; w < sizeof large / sizeof large[0]; w++)
        SX_TRY(try_plain_types(c, 10007, large[w]));
    return SX_OK;
}

static enum sx_status try_keys(struct conformance *c, const struct sx_tensor *hosts, int n_keys,
                               int64_t rows) {
    struct sx_tensor keys[MAX_KEYS] = {0}, hashes = {0}, got = {0};
    enum sx_status status = SX_OK;
    for (int k = 0; k < n_keys; k++)
        SX_GO(conformance_send(c, &hosts[k], &keys[k]));
    SX_GO(c->backend->ops.hash(c->stream, keys, n_keys, rows, &hashes));
    SX_GO(conformance_receive(c, &hashes, &got));
    check_hashes(c, hosts, n_keys, rows, &got);
    if (n_keys > 1) /* types don't matter to partitions */
        SX_GO(try_partitions(c, &hashes, keys, n_keys, &got));
out:
    for (int k = 0; k < n_keys; k++)
        sx_tensor_release(&keys[k]);
    sx_tensor_release(&hashes);
    sx_tensor_release(&got);
    return status;
}

/* The column in another layout, where there is one. */
static enum sx_status other_layout(struct conformance *c, const struct sx_tensor *flat, bool constant,
                                   struct sx_tensor *out) {
    if (flat->type.id == SX_TYPE_VARCHAR && !constant)
        return conformance_dictionary(c, flat, out);
    struct sx_scalar value = {.type = flat->type, .is_null = true};
    if (flat->length > 0)
        sx_tensor_scalar(flat, flat->length - 1, &value);
    return sx_tensor_create_constant(c->pool, &value, flat->length, out, &c->error);
}

static enum sx_status try_type(struct conformance *c, struct sx_type type, int64_t rows, int variant) {
    struct sx_tensor hosts[MAX_KEYS] = {0};
    enum sx_status status = SX_OK;
    if (!conformance_takes(c))
        return SX_OK;
    const double null_share = variant % 2 ? 0.3 : 0;
    SX_GO(conformance_column(c, type, rows, (enum conformance_fill)variant, null_share, &hosts[0]));
    SX_GO(try_keys(c, hosts, 1, rows));
    SX_GO(other_layout(c, &hosts[0], variant == FILL_EXTREMES, &hosts[1]));
    SX_GO(try_keys(c, hosts + 1, 1, rows));
    SX_GO(conformance_column(c, sx_type_of(SX_TYPE_VARCHAR), rows, FILL_FEW_VALUES, 0.1, &hosts[2]));
    SX_GO(try_keys(c, hosts, MAX_KEYS, rows));
out:
    for (int k = 0; k < MAX_KEYS; k++)
        sx_tensor_release(&hosts[k]);
    return status;
}

void conform_hash(struct conformance *c) {
    static const struct sx_type types[] = {
        {SX_TYPE_BOOL, 0, 0},      {SX_TYPE_I8, 0, 0},       {SX_TYPE_I16, 0, 0},      {SX_TYPE_I32, 0, 0},
        {SX_TYPE_I64, 0, 0},       {SX_TYPE_I128, 0, 0},     {SX_TYPE_U8, 0, 0},       {SX_TYPE_U16, 0, 0},
        {SX_TYPE_U32, 0, 0},       {SX_TYPE_U64, 0, 0},      {SX_TYPE_U128, 0, 0},     {SX_TYPE_F32, 0, 0},
        {SX_TYPE_F64, 0, 0},       {SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_DECIMAL, 30, 4}, {SX_TYPE_DATE, 0, 0},
        {SX_TYPE_TIMESTAMP, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},  {SX_TYPE_NULLTYPE, 0, 0},
    };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int r = 0; r < conformance_n_rows; r++)
            for (int v = FILL_RANDOM; v <= FILL_SORTED; v++) {
                const enum sx_status status = try_type(c, types[t], conformance_rows[r], v);
                CONFORM(c, status == SX_OK, "hash: %s %s", c->error.text, c->stream->error.text);
            }
    CONFORM(c, try_plain_keys(c) == SX_OK, "hash of plain keys: %s %s", c->error.text, c->stream->error.text);
}
