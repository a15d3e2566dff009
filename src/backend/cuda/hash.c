/* Hashes of rows, on the host's side. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_hash.h"

/* Hashes of `n` FLAT values, one a value. */
static enum sx_status hash_entries(struct cuda_stream *stream, struct cuda_column values, int64_t n,
                                   struct sx_buffer **out_hashes) {
    const struct cuda_hash_keys one = {.n = 1, .columns = {values}};
    SX_TRY(
        sx_buffer_create(stream->base.pool, (size_t)n * sizeof(uint64_t), out_hashes, &stream->base.error));
    cuda_hash_rows(stream->handle, &one, n, (*out_hashes)->data);
    return SX_OK;
}

/* What the kernel gets of a key. Strings of a dictionary with fewer entries than rows, and the string of a
 * constant, are hashed once (*out_hashes, else NULL); other types cost less to hash than to look up. */
static enum sx_status open_key(struct cuda_stream *stream, const struct sx_tensor *key, int64_t rows,
                               struct cuda_column *out_column, struct sx_buffer **out_hashes) {
    const bool is_dict = key->layout == SX_DICT;
    struct cuda_column column = cuda_column_of(key);
    if (column.phys == SX_PHYS_INTERVAL)
        return sx_error_set(&stream->base.error, SX_UNSUPPORTED, "hash of type INTERVAL");
    if (key->type.id == SX_TYPE_NULLTYPE || (is_dict && key->dict->values.length == 0)) {
        column.phys = CUDA_HASH_NULLS;
    } else if (column.phys == SX_PHYS_STRING && key->layout != SX_FLAT) {
        const int64_t n = is_dict ? key->dict->values.length : 1;
        const struct cuda_column values = {
            .values = is_dict ? column.dict : column.values, .layout = CUDA_FLAT, .phys = SX_PHYS_STRING};
        if (n < rows) {
            SX_TRY(hash_entries(stream, values, n, out_hashes));
            *(is_dict ? &column.dict : &column.values) = (*out_hashes)->data;
            column.phys = CUDA_HASH_READY;
        }
    }
    *out_column = column;
    return SX_OK;
}

/* Keys first, …, at most CUDA_HASH_KEYS of them; out_entries: what they need until the launch. */
static enum sx_status open_some(struct cuda_stream *stream, const struct sx_tensor *keys, int first,
                                int n_keys, int64_t rows, struct cuda_hash_keys *out_some,
                                struct sx_buffer **out_entries) {
    *out_some = (struct cuda_hash_keys){.combine = first > 0};
    for (int k = first; k < n_keys && out_some->n < CUDA_HASH_KEYS; k++) {
        SX_TRY(open_key(stream, &keys[k], rows, &out_some->columns[out_some->n], &out_entries[out_some->n]));
        out_some->n++;
    }
    return SX_OK;
}

static void release_entries(struct sx_buffer **entries) {
    for (int k = 0; k < CUDA_HASH_KEYS; k++)
        sx_buffer_release(entries[k]);
}

static enum sx_status hash_some(struct cuda_stream *stream, const struct sx_tensor *keys, int first,
                                int n_keys, int64_t rows, uint64_t *out_hashes) {
    struct sx_buffer *entries[CUDA_HASH_KEYS] = {0};
    struct cuda_hash_keys some;
    enum sx_status status = open_some(stream, keys, first, n_keys, rows, &some, entries);
    if (status == SX_OK) {
        cuda_hash_rows(stream->handle, &some, rows, out_hashes);
        status = cuda_launched(stream, "hash");
    }
    release_entries(entries);
    return status;
}

enum sx_status cuda_digits_of(struct cuda_stream *stream, const struct sx_tensor *keys, int n_keys,
                              int64_t rows, int shift, const struct sx_tensor *words,
                              struct sx_buffer **out_digits) {
    struct sx_buffer *entries[CUDA_HASH_KEYS] = {0}, *digits = NULL;
    struct cuda_hash_keys all;
    enum sx_status status;
    SX_GO(open_some(stream, keys, 0, n_keys, rows, &all, entries));
    SX_GO(sx_buffer_create(stream->base.pool, (size_t)rows, &digits, &stream->base.error));
    cuda_hash_digits(stream->handle, &all, rows, shift, words ? words->values : NULL,
                     words ? (uint64_t)words->length : 0, digits->data);
    SX_GO(cuda_launched(stream, "hash"));
    *out_digits = digits;
    digits = NULL;
out:
    release_entries(entries);
    sx_buffer_release(digits);
    return status;
}

enum sx_status sx_cuda_bloom_add_keys(struct sx_stream *base, const struct sx_tensor *keys, int n_keys,
                                      int64_t rows, struct sx_tensor *words) {
    struct sx_buffer *entries[CUDA_HASH_KEYS] = {0};
    struct cuda_hash_keys all;
    struct cuda_stream *stream;
    enum sx_status status;
    if (n_keys == 0 || n_keys > CUDA_HASH_KEYS || rows == 0)
        return sx_bloom_add_hashed(base, keys, n_keys, rows, words);
    SX_TRY(cuda_enter(base, &stream));
    SX_GO(open_some(stream, keys, 0, n_keys, rows, &all, entries));
    cuda_bloom_add(stream->handle, &all, rows, words->values, (uint64_t)words->length);
    SX_GO(cuda_launched(stream, "a bloom filter"));
out:
    release_entries(entries);
    return status;
}

enum sx_status sx_cuda_hash(struct sx_stream *base, const struct sx_tensor *keys, int n_keys, int64_t rows,
                            struct sx_tensor *out_hashes) {
    struct cuda_stream *stream;
    struct sx_tensor hashes = {0};
    enum sx_status status;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(sx_tensor_create(base->pool, sx_type_of(SX_TYPE_U64), rows, false, &hashes, &base->error));
    if (n_keys == 0)
        SX_GO(cuda_check(stream,
                         cudaMemsetAsync(hashes.values, 0, (size_t)rows * sizeof(uint64_t), stream->handle),
                         "hash of no keys"));
    for (int k = 0; k < n_keys; k += CUDA_HASH_KEYS)
        SX_GO(hash_some(stream, keys, k, n_keys, rows, hashes.values));
    *out_hashes = hashes;
    return SX_OK;
out:
    sx_tensor_release(&hashes);
    return status;
}
