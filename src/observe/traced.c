#include "observe/traced.h"

#include <stdlib.h>

struct traced {
    struct sx_backend backend; /* first: the streams' backend pointer leads here */
    const struct sx_backend *inner;
    struct sx_trace *trace;
    int n_streams;
};

static const struct sx_backend_ops *inner_of(const struct sx_stream *stream) {
    return &((const struct traced *)stream->backend)->inner->ops;
}

static int64_t rows_of(const struct sx_tensor *selection, int64_t rows) {
    return selection ? selection->length : rows;
}

static int64_t rows_of_all(const struct sx_tensor *const *columns, int64_t n) {
    int64_t rows = 0;
    for (int64_t i = 0; i < n; i++)
        rows += columns[i]->length;
    return rows;
}

static int64_t rows_of_parts(const struct sx_column_read *read) {
    int64_t rows = 0;
    for (int i = 0; i < read->n_parts; i++)
        rows += read->parts[i].rows;
    return rows;
}

/* X(slot, rows that it works on, parameters, arguments): what waits or takes time in proportion to rows. */
#define TRACED_LIST(X)                                                                                      \
    X(synchronise, 0, (struct sx_stream * stream, const char *why), (stream, why))                          \
    X(batch_rows, batch->rows_bound, (struct sx_stream * stream, struct sx_batch * batch), (stream, batch)) \
    X(batch_to_host, batch->rows_bound,                                                                     \
      (struct sx_stream * stream, const struct sx_batch *batch, struct sx_batch *out_batch),                \
      (stream, batch, out_batch))                                                                           \
    X(batch_from_host, batch->rows_bound,                                                                   \
      (struct sx_stream * stream, const struct sx_batch *batch, struct sx_batch *out_batch),                \
      (stream, batch, out_batch))                                                                           \
    X(constant, length,                                                                                     \
      (struct sx_stream * stream, const struct sx_scalar *scalar, int64_t length,                           \
       struct sx_tensor *out_column),                                                                       \
      (stream, scalar, length, out_column))                                                                 \
    X(eval_create, 0,                                                                                       \
      (struct sx_stream * stream, const struct sx_program *program, struct sx_eval **out_eval),             \
      (stream, program, out_eval))                                                                          \
    X(eval_run, batch->rows_bound,                                                                          \
      (struct sx_stream * stream, struct sx_eval * eval, const struct sx_batch *batch,                      \
       struct sx_tensor *out_columns),                                                                      \
      (stream, eval, batch, out_columns))                                                                   \
    X(eval_select, rows_of(selection, batch->rows_bound),                                                   \
      (struct sx_stream * stream, struct sx_eval * eval, const struct sx_batch *batch,                      \
       const struct sx_tensor *selection, struct sx_tensor *out_selection),                                 \
      (stream, eval, batch, selection, out_selection))                                                      \
    X(gather, index->length,                                                                                \
      (struct sx_stream * stream, const struct sx_tensor *column, const struct sx_tensor *index,            \
       struct sx_tensor *out_column),                                                                       \
      (stream, column, index, out_column))                                                                  \
    X(gather_columns, index->length,                                                                        \
      (struct sx_stream * stream, const struct sx_tensor *const *columns, int n,                            \
       const struct sx_tensor *index, struct sx_tensor *out_columns),                                       \
      (stream, columns, n, index, out_columns))                                                             \
    X(concat, rows_of_all(columns, n),                                                                      \
      (struct sx_stream * stream, struct sx_type type, const struct sx_tensor *const *columns, int64_t n,   \
       enum sx_concat how, struct sx_tensor *out_column),                                                   \
      (stream, type, columns, n, how, out_column))                                                          \
    X(iota, length,                                                                                         \
      (struct sx_stream * stream, enum sx_type_id id, int64_t first, int64_t length,                        \
       struct sx_tensor * out_index),                                                                       \
      (stream, id, first, length, out_index))                                                               \
    X(index_to_mask, index->length,                                                                         \
      (struct sx_stream * stream, const struct sx_tensor *index, int64_t rows, struct sx_tensor *out_mask), \
      (stream, index, rows, out_mask))                                                                      \
    X(mask_to_index, mask->length,                                                                          \
      (struct sx_stream * stream, const struct sx_tensor *mask, bool wanted, struct sx_tensor *out_index),  \
      (stream, mask, wanted, out_index))                                                                    \
    X(hash, rows,                                                                                           \
      (struct sx_stream * stream, const struct sx_tensor *keys, int n_keys, int64_t rows,                   \
       struct sx_tensor *out_hashes),                                                                       \
      (stream, keys, n_keys, rows, out_hashes))                                                             \
    X(partition, hashes->length,                                                                            \
      (struct sx_stream * stream, const struct sx_tensor *hashes, int n_parts, struct sx_tensor *out_index, \
       int64_t *out_offsets),                                                                               \
      (stream, hashes, n_parts, out_index, out_offsets))                                                    \
    X(partition_keys, rows,                                                                                 \
      (struct sx_stream * stream, const struct sx_tensor *keys, int n_keys, int64_t rows,                   \
       const struct sx_tensor *words, int n_parts, struct sx_tensor *out_index, int64_t *out_offsets),      \
      (stream, keys, n_keys, rows, words, n_parts, out_index, out_offsets))                                 \
    X(bloom_add, hashes->length,                                                                            \
      (struct sx_stream * stream, const struct sx_tensor *hashes, struct sx_tensor *words),                 \
      (stream, hashes, words))                                                                              \
    X(bloom_add_keys, rows,                                                                                 \
      (struct sx_stream * stream, const struct sx_tensor *keys, int n_keys, int64_t rows,                   \
       struct sx_tensor *words),                                                                            \
      (stream, keys, n_keys, rows, words))                                                                  \
    X(bloom_merge, other->length,                                                                           \
      (struct sx_stream * stream, const struct sx_tensor *other, struct sx_tensor *words),                  \
      (stream, other, words))                                                                               \
    X(bloom_test, hashes->length,                                                                           \
      (struct sx_stream * stream, const struct sx_tensor *hashes, const struct sx_tensor *words,            \
       struct sx_tensor *out_selection),                                                                    \
      (stream, hashes, words, out_selection))                                                               \
    X(rows_pack, batch->rows_bound,                                                                         \
      (struct sx_stream * stream, const struct sx_batch *batch, const struct sx_row_parts *parts,           \
       int64_t sequence, bool packs, struct sx_rows_narrow *narrow, struct sx_buffer **out_parts,           \
       size_t *out_plain_bytes, struct sx_batch *out_own),                                                  \
      (stream, batch, parts, sequence, packs, narrow, out_parts, out_plain_bytes, out_own))                 \
    X(rows_unpack, 0,                                                                                       \
      (struct sx_stream * stream, struct sx_buffer * frame, size_t bytes, bool from_host,                   \
       const struct sx_type *types, int n_columns, const bool *are_moved, struct sx_batch *out_batch,       \
       int64_t *out_sequence),                                                                              \
      (stream, frame, bytes, from_host, types, n_columns, are_moved, out_batch, out_sequence))              \
    X(bytes_to_host, 0,                                                                                     \
      (struct sx_stream * stream, struct sx_buffer *const *buffers, int n, struct sx_pool *pool,            \
       struct sx_buffer **out_buffers),                                                                     \
      (stream, buffers, n, pool, out_buffers))                                                              \
    X(bytes_from_host, 0,                                                                                   \
      (struct sx_stream * stream, struct sx_buffer * buffer, size_t bytes, struct sx_buffer * *out_buffer), \
      (stream, buffer, bytes, out_buffer))                                                                  \
    X(bytes_to_send, 0,                                                                                     \
      (struct sx_stream * stream, const struct sx_buffer *buffer, size_t first, size_t bytes,               \
       struct sx_buffer **out_buffer),                                                                      \
      (stream, buffer, first, bytes, out_buffer))                                                           \
    X(group_create, 0,                                                                                      \
      (struct sx_stream * stream, const struct sx_group_spec *spec, struct sx_group **out_group),           \
      (stream, spec, out_group))                                                                            \
    X(group_update, rows,                                                                                   \
      (struct sx_stream * stream, struct sx_group * group, int worker, const struct sx_tensor *keys,        \
       const struct sx_tensor *inputs, const struct sx_tensor *filters, int64_t rows),                      \
      (stream, group, worker, keys, inputs, filters, rows))                                                 \
    X(group_finish, 0,                                                                                      \
      (struct sx_stream * stream, struct sx_group * group, int *out_parts, int64_t *out_most_rows),         \
      (stream, group, out_parts, out_most_rows))                                                            \
    X(group_emit, 0,                                                                                        \
      (struct sx_stream * stream, struct sx_group * group, int part, int64_t *cursor, int64_t max_rows,     \
       struct sx_batch *out_batch),                                                                         \
      (stream, group, part, cursor, max_rows, out_batch))                                                   \
    X(join_create, 0,                                                                                       \
      (struct sx_stream * stream, const struct sx_join_spec *spec, struct sx_join **out_join),              \
      (stream, spec, out_join))                                                                             \
    X(join_append, rows,                                                                                    \
      (struct sx_stream * stream, struct sx_join * join, int worker, const struct sx_tensor *keys,          \
       const struct sx_tensor *payload, int64_t rows),                                                      \
      (stream, join, worker, keys, payload, rows))                                                          \
    X(join_finish, 0, (struct sx_stream * stream, struct sx_join * join, int *out_parts),                   \
      (stream, join, out_parts))                                                                            \
    X(join_build, 0, (struct sx_stream * stream, struct sx_join * join, int part), (stream, join, part))    \
    X(join_probe, rows,                                                                                     \
      (struct sx_stream * stream, const struct sx_join *join, const struct sx_tensor *keys, int64_t rows,   \
       enum sx_probe_mode mode, int64_t max_pairs, struct sx_probe_cursor *cursor,                          \
       struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows),                                 \
      (stream, join, keys, rows, mode, max_pairs, cursor, out_probe_rows, out_build_rows))                  \
    X(join_take, rows,                                                                                      \
      (struct sx_stream * stream, const struct sx_join *join, const struct sx_tensor *keys, int64_t rows,   \
       int64_t max_pairs, struct sx_probe_cursor *cursor, const int32_t *payload, int n,                    \
       struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows, struct sx_tensor *out_columns),  \
      (stream, join, keys, rows, max_pairs, cursor, payload, n, out_probe_rows, out_build_rows,             \
       out_columns))                                                                                        \
    X(join_gather, build_rows->length,                                                                      \
      (struct sx_stream * stream, const struct sx_join *join, const int32_t *payload, int n,                \
       const struct sx_tensor *build_rows, struct sx_tensor *out_columns),                                  \
      (stream, join, payload, n, build_rows, out_columns))                                                  \
    X(join_filter, rows_of(selection, key->length),                                                         \
      (struct sx_stream * stream, const struct sx_join *join, const struct sx_tensor *key,                  \
       const struct sx_tensor *selection, struct sx_tensor *out_selection),                                 \
      (stream, join, key, selection, out_selection))                                                        \
    X(join_mark, build_rows->length,                                                                        \
      (struct sx_stream * stream, struct sx_join * join, const struct sx_tensor *build_rows),               \
      (stream, join, build_rows))                                                                           \
    X(join_marked, count,                                                                                   \
      (struct sx_stream * stream, const struct sx_join *join, bool wanted, int64_t first, int64_t count,    \
       struct sx_tensor *out_build_rows),                                                                   \
      (stream, join, wanted, first, count, out_build_rows))                                                 \
    X(sort, rows,                                                                                           \
      (struct sx_stream * stream, const struct sx_tensor *keys, const struct sx_sort_key *orders,           \
       int n_keys, int64_t rows, int64_t limit, struct sx_tensor *out_order),                               \
      (stream, keys, orders, n_keys, rows, limit, out_order))                                               \
    X(decoder_create, chunk->spec.n_rows,                                                                   \
      (struct sx_stream * stream, const struct sx_stored_chunk *chunk, struct sx_decoder **out_decoder),    \
      (stream, chunk, out_decoder))                                                                         \
    X(decode, rows_of(selection, n_reads > 0 ? rows_of_parts(&reads[0]) : 0),                               \
      (struct sx_stream * stream, const struct sx_column_read *reads, int n_reads,                          \
       const struct sx_tensor *selection, struct sx_decode_place *out_place),                               \
      (stream, reads, n_reads, selection, out_place))                                                       \
    X(decode_ahead, 0, (struct sx_stream * stream, struct sx_decoder *const *decoders, int n),              \
      (stream, decoders, n))

#define TRACED(slot, rows, parameters, arguments)                                 \
    static enum sx_status traced_##slot parameters {                              \
        const int64_t n_rows = (rows), began_ns = sx_span_begin(stream->lane);    \
        const enum sx_status result = inner_of(stream)->slot arguments;           \
        sx_span_end(stream->lane, SX_SPAN_PRIMITIVE, #slot, began_ns, n_rows, 0); \
        return result;                                                            \
    }
TRACED_LIST(TRACED)
#undef TRACED

static enum sx_status traced_stream_create(const struct sx_backend *backend, struct sx_pool *pool,
                                           const atomic_bool *cancel, struct sx_stream **out_stream,
                                           struct sx_error *error) {
    struct traced *traced = (struct traced *)(uintptr_t)backend;
    SX_TRY(traced->inner->ops.stream_create(traced->inner, pool, cancel, out_stream, error));
    (*out_stream)->backend = backend;
    (*out_stream)->lane = sx_trace_lane(traced->trace, "worker", traced->n_streams++);
    return SX_OK;
}

enum sx_status sx_traced_create(struct sx_trace *trace, const struct sx_backend *inner,
                                const struct sx_backend **out_backend, struct sx_error *error) {
    struct traced *traced = calloc(1, sizeof *traced);
    if (!traced)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a trace");
    *traced = (struct traced){.backend = *inner, .inner = inner, .trace = trace};
    traced->backend.ops.stream_create = traced_stream_create;
#define SLOT(slot, rows, parameters, arguments) traced->backend.ops.slot = traced_##slot;
    TRACED_LIST(SLOT)
#undef SLOT
    *out_backend = &traced->backend;
    return SX_OK;
}

void sx_traced_destroy(const struct sx_backend *backend) {
    free((struct traced *)(uintptr_t)backend);
}
