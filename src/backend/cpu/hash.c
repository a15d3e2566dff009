/* Hashes of rows, and rows in the order of their parts. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "tensor/semantics.h"

/* Signed values hash as 64 bits with their sign, unsigned ones with zeros. */
struct hash_source {
    const void *values;
    const int32_t *codes;
    const uint8_t *valid;
};

#define SX_PHYS    I8
#define SX_C       int8_t
#define SX_HASH(x) sx_hash_u64((uint64_t)(int64_t) * (x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    I16
#define SX_C       int16_t
#define SX_HASH(x) sx_hash_u64((uint64_t)(int64_t) * (x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    I32
#define SX_C       int32_t
#define SX_HASH(x) sx_hash_u64((uint64_t)(int64_t) * (x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    I64
#define SX_C       int64_t
#define SX_HASH(x) sx_hash_u64((uint64_t)(int64_t) * (x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    I128
#define SX_C       sx_i128
#define SX_HASH(x) sx_hash_u128((sx_u128) * (x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    U8
#define SX_C       uint8_t
#define SX_HASH(x) sx_hash_u64(*(x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    U16
#define SX_C       uint16_t
#define SX_HASH(x) sx_hash_u64(*(x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    U32
#define SX_C       uint32_t
#define SX_HASH(x) sx_hash_u64(*(x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    U64
#define SX_C       uint64_t
#define SX_HASH(x) sx_hash_u64(*(x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    U128
#define SX_C       sx_u128
#define SX_HASH(x) sx_hash_u128(*(x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    F32
#define SX_C       float
#define SX_HASH(x) sx_hash_f64((double)*(x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    F64
#define SX_C       double
#define SX_HASH(x) sx_hash_f64(*(x))
#include "backend/cpu/hash.tmpl.h"
#define SX_PHYS    STRING
#define SX_C       struct sx_string
#define SX_HASH(x) sx_hash_string(x)
#include "backend/cpu/hash.tmpl.h"

typedef void hash_function(const struct hash_source *from, int64_t n, bool combine, uint64_t *hashes);

static hash_function *const functions[SX_PHYS_COUNT] = {
#define HASHED(X) \
    X(I8) X(I16) X(I32) X(I64) X(I128) X(U8) X(U16) X(U32) X(U64) X(U128) X(F32) X(F64) X(STRING)
#define ROW(phys) [SX_PHYS_##phys] = hash_##phys,
    HASHED(ROW)
#undef ROW
};

static void combine_one(uint64_t hash, int64_t n, bool combine, uint64_t *hashes) {
    for (int64_t i = 0; i < n; i++)
        hashes[i] = combine ? sx_hash_combine(hashes[i], hash) : hash;
}

/* Each entry is hashed once. */
static enum sx_status hash_dict(struct sx_stream *stream, const struct sx_tensor *key, int64_t rows,
                                bool combine, uint64_t *hashes) {
    const int64_t n = key->dict->values.length;
    void *memory = NULL;
    SX_TRY(sx_pool_alloc(stream->pool, (size_t)n * sizeof(uint64_t), &memory, &stream->error));
    uint64_t *entries = memory;
    const struct hash_source from = {.values = key->dict->values.values};
    functions[sx_type_phys(key->type)](&from, n, false, entries);
    const int32_t *codes = key->values;
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t hash = key->valid && !key->valid[i] ? SX_HASH_NULL : entries[codes[i]];
        hashes[i] = combine ? sx_hash_combine(hashes[i], hash) : hash;
    }
    sx_pool_free(stream->pool, memory, (size_t)n * sizeof(uint64_t));
    return SX_OK;
}

static enum sx_status hash_key(struct sx_stream *stream, const struct sx_tensor *key, int64_t rows,
                               bool combine, uint64_t *hashes) {
    hash_function *function = functions[sx_type_phys(key->type)];
    if (!function)
        return sx_error_set(&stream->error, SX_UNSUPPORTED, "hash of type INTERVAL");
    struct hash_source from = {.values = key->values, .valid = key->valid};
    if (key->type.id == SX_TYPE_NULLTYPE || (key->layout == SX_DICT && key->dict->values.length == 0)) {
        combine_one(SX_HASH_NULL, rows, combine, hashes);
    } else if (key->layout == SX_CONSTANT) {
        uint64_t hash;
        function(&from, 1, false, &hash);
        combine_one(hash, rows, combine, hashes);
    } else if (key->layout == SX_DICT && key->dict->values.length < rows) {
        return hash_dict(stream, key, rows, combine, hashes);
    } else {
        if (key->layout == SX_DICT) {
            from.codes = key->values;
            from.values = key->dict->values.values;
        }
        function(&from, rows, combine, hashes);
    }
    return SX_OK;
}

enum sx_status sx_cpu_hash(struct sx_stream *stream, const struct sx_tensor *keys, int n_keys, int64_t rows,
                           struct sx_tensor *out_hashes) {
    struct sx_tensor hashes = {0};
    SX_TRY(sx_tensor_create(stream->pool, sx_type_of(SX_TYPE_U64), rows, false, &hashes, &stream->error));
    if (n_keys == 0)
        memset(hashes.values, 0, (size_t)rows * sizeof(uint64_t));
    for (int k = 0; k < n_keys; k++) {
        const enum sx_status status = hash_key(stream, &keys[k], rows, k > 0, hashes.values);
        if (status != SX_OK) {
            sx_tensor_release(&hashes);
            return status;
        }
    }
    *out_hashes = hashes;
    return SX_OK;
}

/* ---- partition ---- */

enum { MAX_PARTS = 1 << 16 };

static void count_parts(const uint64_t *hashes, int64_t rows, int shift, int n_parts, int64_t *offsets) {
    memset(offsets, 0, ((size_t)n_parts + 1) * sizeof *offsets);
    for (int64_t i = 0; i < rows; i++)
        offsets[(hashes[i] >> shift) + 1]++;
    for (int p = 0; p < n_parts; p++)
        offsets[p + 1] += offsets[p];
}

enum sx_status sx_cpu_partition(struct sx_stream *stream, const struct sx_tensor *hashes, int n_parts,
                                struct sx_tensor *out_index, int64_t *out_offsets) {
    if (n_parts < 1 || n_parts > MAX_PARTS || (n_parts & (n_parts - 1)) || hashes->length > INT32_MAX)
        return sx_error_set(&stream->error, SX_INTERNAL, "partition of %lld rows into %d parts",
                            (long long)hashes->length, n_parts);
    const int64_t rows = hashes->length;
    struct sx_tensor index = {0};
    SX_TRY(sx_tensor_create_index(stream->pool, SX_TYPE_I32, rows, &index, &stream->error));
    int32_t *order = index.values;
    if (n_parts == 1) {
        for (int32_t i = 0; i < rows; i++)
            order[i] = i;
        out_offsets[0] = 0;
        out_offsets[1] = rows;
        *out_index = index;
        return SX_OK;
    }
    const int shift = 64 - __builtin_ctz((unsigned)n_parts);
    const uint64_t *values = hashes->values;
    count_parts(values, rows, shift, n_parts, out_offsets);
    for (int32_t i = 0; i < rows; i++)
        order[out_offsets[values[i] >> shift]++] = i;
    /* every offset has moved to its part's end, where the next part begins */
    memmove(out_offsets + 1, out_offsets, (size_t)n_parts * sizeof *out_offsets);
    out_offsets[0] = 0;
    *out_index = index;
    return SX_OK;
}
