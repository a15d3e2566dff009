#include "tensor/backend.h"

enum sx_status sx_backend_check(const struct sx_backend *backend, struct sx_error *error) {
    /* The table holds function pointers only, so it can be walked as an array of them. */
    typedef void (*slot)(void);
    const slot *slots = (const slot *)&backend->ops;
    for (size_t i = 0; i < sizeof backend->ops / sizeof(slot); i++)
        if (!slots[i])
            return sx_error_set(error, SX_INTERNAL, "backend %s: slot %zu of its operations is empty",
                                backend->name, i);
    return SX_OK;
}

enum sx_status sx_bloom_add_hashed(struct sx_stream *stream, const struct sx_tensor *keys, int n_keys,
                                   int64_t rows, struct sx_tensor *words) {
    struct sx_tensor hashes;
    SX_TRY(stream->backend->ops.hash(stream, keys, n_keys, rows, &hashes));
    const enum sx_status status = stream->backend->ops.bloom_add(stream, &hashes, words);
    sx_tensor_release(&hashes);
    return status;
}

void sx_join_expect_nothing(struct sx_join *join, int64_t rows) {
    (void)join;
    (void)rows;
}

enum sx_status sx_join_take_pairs(struct sx_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *keys, int64_t rows, int64_t max_pairs,
                                  struct sx_probe_cursor *cursor, const int32_t *payload, int n,
                                  struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows,
                                  struct sx_tensor *out_columns) {
    const struct sx_backend_ops *ops = &stream->backend->ops;
    struct sx_probe_cursor at = *cursor;
    struct sx_tensor probe_rows, build_rows;
    SX_TRY(ops->join_probe(stream, join, keys, rows, SX_PROBE_ALL, max_pairs, &at, &probe_rows, &build_rows));
    const enum sx_status status = ops->join_gather(stream, join, payload, n, &build_rows, out_columns);
    if (status != SX_OK || !out_build_rows)
        sx_tensor_release(&build_rows);
    if (status != SX_OK) {
        sx_tensor_release(&probe_rows);
        return status;
    }
    *cursor = at;
    *out_probe_rows = probe_rows;
    if (out_build_rows)
        *out_build_rows = build_rows;
    return SX_OK;
}

/* The rows of the column at these positions, in its place. */
static enum sx_status pick(struct sx_stream *stream, const struct sx_tensor *index,
                           struct sx_tensor *column) {
    struct sx_tensor picked;
    SX_TRY(stream->backend->ops.gather(stream, column, index, &picked));
    sx_tensor_release(column);
    *column = picked;
    return SX_OK;
}

enum sx_status sx_partition_hashed(struct sx_stream *stream, const struct sx_tensor *keys, int n_keys,
                                   int64_t rows, const struct sx_tensor *words, int n_parts,
                                   struct sx_tensor *out_index, int64_t *out_offsets) {
    const struct sx_backend_ops *ops = &stream->backend->ops;
    struct sx_tensor hashes = {0}, passing = {0}, index = {0};
    enum sx_status status;
    SX_GO(ops->hash(stream, keys, n_keys, rows, &hashes));
    if (words) {
        SX_GO(ops->bloom_test(stream, &hashes, words, &passing));
        SX_GO(pick(stream, &passing, &hashes));
    }
    SX_GO(ops->partition(stream, &hashes, n_parts, &index, out_offsets));
    if (words) {
        SX_GO(ops->gather(stream, &passing, &index, out_index));
    } else {
        *out_index = index;
        index = (struct sx_tensor){0};
    }
out:
    sx_tensor_release(&hashes);
    sx_tensor_release(&passing);
    sx_tensor_release(&index);
    return status;
}
