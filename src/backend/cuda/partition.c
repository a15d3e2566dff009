/* Rows in the order of their parts, on the host's side: one pass to 2^CUDA_RADIX_BITS parts, two above. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/launch_hash.h"

enum { MAX_PARTS = 1 << 16 };

/* What rows are ordered by: their hashes, or the keys that these are of. */
struct ordering {
    const struct sx_tensor *hashes; /* or NULL */
    const struct sx_tensor *keys;
    int n_keys;
    int64_t rows;
    const struct sx_tensor *words; /* with keys: a bloom filter; rows that it lacks are a part behind all */
};

static enum sx_status one_pass(struct cuda_stream *stream, const struct ordering *by, int bits,
                               uint32_t *out_rows, int64_t *out_starts) {
    struct sx_buffer *digits = NULL, *scratch = NULL;
    struct sx_pool *pool = stream->base.pool;
    struct cuda_radix_pass pass = {
        .n = by->rows, .shift = 64 - bits, .bits = bits + (by->words != NULL), .out_rows = out_rows};
    enum sx_status status;
    SX_GO(sx_buffer_create(pool, cuda_radix_bytes(by->rows, pass.bits), &scratch, &stream->base.error));
    pass.scratch = scratch->data;
    if (by->hashes)
        pass.keys = by->hashes->values;
    else
        SX_GO(cuda_digits_of(stream, by->keys, by->n_keys, by->rows, pass.shift, by->words, &digits));
    pass.digits = digits ? digits->data : NULL;
    cuda_radix(stream->handle, &pass, out_starts);
    status = cuda_launched(stream, "partition");
out:
    sx_buffer_release(digits);
    sx_buffer_release(scratch);
    return status;
}

/* By the low bits of the part, then by the high ones. */
static enum sx_status two_passes(struct cuda_stream *stream, const struct sx_tensor *hashes, int bits,
                                 uint32_t *out_rows, int64_t *out_starts) {
    const int64_t n = hashes->length;
    const int low = bits - CUDA_RADIX_BITS;
    struct sx_buffer *scratch = NULL, *rows = NULL, *keys = NULL, *sorted = NULL;
    struct sx_pool *pool = stream->base.pool;
    enum sx_status status;
    SX_GO(sx_buffer_create(pool, cuda_radix_bytes(n, CUDA_RADIX_BITS), &scratch, &stream->base.error));
    SX_GO(sx_buffer_create(pool, (size_t)n * sizeof(uint32_t), &rows, &stream->base.error));
    SX_GO(sx_buffer_create(pool, (size_t)n * sizeof(uint64_t), &keys, &stream->base.error));
    SX_GO(sx_buffer_create(pool, (size_t)n * sizeof(uint64_t), &sorted, &stream->base.error));
    const struct cuda_radix_pass by_low = {.n = n,
                                           .keys = hashes->values,
                                           .shift = 64 - bits,
                                           .bits = low,
                                           .out_keys = keys->data,
                                           .out_rows = rows->data,
                                           .scratch = scratch->data};
    const struct cuda_radix_pass by_high = {.n = n,
                                            .keys = keys->data,
                                            .rows = rows->data,
                                            .shift = 64 - CUDA_RADIX_BITS,
                                            .bits = CUDA_RADIX_BITS,
                                            .out_keys = sorted->data,
                                            .out_rows = out_rows,
                                            .scratch = scratch->data};
    cuda_radix(stream->handle, &by_low, NULL);
    cuda_radix(stream->handle, &by_high, NULL);
    cuda_find_starts(stream->handle, sorted->data, n, 64 - bits, 1 << bits, out_starts);
    SX_GO(cuda_launched(stream, "partition"));
out:
    sx_buffer_release(scratch);
    sx_buffer_release(rows);
    sx_buffer_release(keys);
    sx_buffer_release(sorted);
    return status;
}

static enum sx_status partition(struct sx_stream *base, const struct ordering *by, int n_parts,
                                struct sx_tensor *out_index, int64_t *out_offsets) {
    const int64_t rows = by->rows;
    if (n_parts < 1 || n_parts > MAX_PARTS || (n_parts & (n_parts - 1)) || rows > INT32_MAX)
        return sx_error_set(&base->error, SX_INTERNAL, "partition of %lld rows into %d parts",
                            (long long)rows, n_parts);
    if (n_parts == 1) {
        SX_TRY(sx_cuda_iota(base, SX_TYPE_I32, 0, rows, out_index));
        out_offsets[0] = 0;
        out_offsets[1] = rows;
        return SX_OK;
    }
    struct cuda_stream *stream;
    struct sx_tensor index = {0};
    struct sx_buffer *starts = NULL;
    const size_t offsets_bytes = ((size_t)n_parts + 1) * sizeof(int64_t),
                 starts_bytes = by->words ? 2 * offsets_bytes : offsets_bytes;
    const int bits = __builtin_ctz((unsigned)n_parts);
    enum sx_status status;
    SX_TRY(cuda_enter(base, &stream));
    SX_GO(sx_tensor_create_index(base->pool, SX_TYPE_I32, rows, &index, &base->error));
    SX_GO(sx_buffer_create(base->pool, starts_bytes, &starts, &base->error));
    if (!by->hashes || bits <= CUDA_RADIX_BITS)
        SX_GO(one_pass(stream, by, bits, index.values, starts->data));
    else
        SX_GO(two_passes(stream, by->hashes, bits, index.values, starts->data));
    SX_GO(cuda_download(stream, out_offsets, starts->data, offsets_bytes, "offsets of a partition"));
    index.length = out_offsets[n_parts];
    *out_index = index;
    index = (struct sx_tensor){0};
out:
    sx_tensor_release(&index);
    sx_buffer_release(starts);
    return status;
}

enum sx_status sx_cuda_partition(struct sx_stream *base, const struct sx_tensor *hashes, int n_parts,
                                 struct sx_tensor *out_index, int64_t *out_offsets) {
    const struct ordering by = {.hashes = hashes, .rows = hashes->length};
    return partition(base, &by, n_parts, out_index, out_offsets);
}

/* Of few parts a digit a row is kept in place of its hash. */
enum sx_status sx_cuda_partition_keys(struct sx_stream *base, const struct sx_tensor *keys, int n_keys,
                                      int64_t rows, const struct sx_tensor *words, int n_parts,
                                      struct sx_tensor *out_index, int64_t *out_offsets) {
    const struct ordering by = {.keys = keys, .n_keys = n_keys, .rows = rows, .words = words};
    const int most_parts = 1 << (words ? CUDA_RADIX_FEW_BITS - 1 : CUDA_RADIX_FEW_BITS);
    if (n_keys > 0 && n_keys <= CUDA_HASH_KEYS && n_parts <= most_parts && (n_parts > 1 || !words))
        return partition(base, &by, n_parts, out_index, out_offsets);
    return sx_partition_hashed(base, keys, n_keys, rows, words, n_parts, out_index, out_offsets);
}
