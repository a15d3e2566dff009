/* The CPU backend's primitives, one for each slot of struct sx_backend_ops (documented there).
 * Files: stream.c, move_*.c, hash*.c, eval_*.c, group_*.c, join_*.c, sort_*.c, decode_*.c. */
#ifndef SX_BACKEND_CPU_CPU_H
#define SX_BACKEND_CPU_CPU_H

#include "tensor/backend.h"

extern const struct sx_backend sx_cpu_backend;

SX_MUST_CHECK enum sx_status sx_cpu_stream_create(const struct sx_backend *backend, struct sx_pool *pool,
                                                  const atomic_bool *cancel, struct sx_stream **out_stream,
                                                  struct sx_error *error);
void sx_cpu_stream_destroy(struct sx_stream *stream);
SX_MUST_CHECK enum sx_status sx_cpu_synchronise(struct sx_stream *stream, const char *why);
SX_MUST_CHECK enum sx_status sx_cpu_prioritise(struct sx_stream *stream, bool is_first);
SX_MUST_CHECK enum sx_status sx_cpu_batch_rows(struct sx_stream *stream, struct sx_batch *batch);
SX_MUST_CHECK enum sx_status sx_cpu_batch_to_host(struct sx_stream *stream, const struct sx_batch *batch,
                                                  struct sx_batch *out_batch);
SX_MUST_CHECK enum sx_status sx_cpu_batch_from_host(struct sx_stream *stream, const struct sx_batch *batch,
                                                    struct sx_batch *out_batch);
SX_MUST_CHECK enum sx_status sx_cpu_constant(struct sx_stream *stream, const struct sx_scalar *scalar,
                                             int64_t length, struct sx_tensor *out_column);
SX_MUST_CHECK enum sx_status sx_cpu_eval_create(struct sx_stream *stream, const struct sx_program *program,
                                                struct sx_eval **out_eval);
void sx_cpu_eval_destroy(struct sx_stream *stream, struct sx_eval *eval);
SX_MUST_CHECK enum sx_status sx_cpu_eval_run(struct sx_stream *stream, struct sx_eval *eval,
                                             const struct sx_batch *batch, struct sx_tensor *out_columns);
SX_MUST_CHECK enum sx_status sx_cpu_eval_select(struct sx_stream *stream, struct sx_eval *eval,
                                                const struct sx_batch *batch,
                                                const struct sx_tensor *selection,
                                                struct sx_tensor *out_selection);
SX_MUST_CHECK enum sx_status sx_cpu_gather(struct sx_stream *stream, const struct sx_tensor *column,
                                           const struct sx_tensor *index, struct sx_tensor *out_column);
SX_MUST_CHECK enum sx_status sx_cpu_gather_columns(struct sx_stream *stream,
                                                   const struct sx_tensor *const *columns, int n,
                                                   const struct sx_tensor *index,
                                                   struct sx_tensor *out_columns);
SX_MUST_CHECK enum sx_status sx_cpu_concat(struct sx_stream *stream, struct sx_type type,
                                           const struct sx_tensor *const *columns, int64_t n,
                                           enum sx_concat how, struct sx_tensor *out_column);
SX_MUST_CHECK enum sx_status sx_cpu_iota(struct sx_stream *stream, enum sx_type_id id, int64_t first,
                                         int64_t length, struct sx_tensor *out_index);
SX_MUST_CHECK enum sx_status sx_cpu_index_to_mask(struct sx_stream *stream, const struct sx_tensor *index,
                                                  int64_t rows, struct sx_tensor *out_mask);
SX_MUST_CHECK enum sx_status sx_cpu_mask_to_index(struct sx_stream *stream, const struct sx_tensor *mask,
                                                  bool wanted, struct sx_tensor *out_index);
SX_MUST_CHECK enum sx_status sx_cpu_hash(struct sx_stream *stream, const struct sx_tensor *keys, int n_keys,
                                         int64_t rows, struct sx_tensor *out_hashes);
SX_MUST_CHECK enum sx_status sx_cpu_partition(struct sx_stream *stream, const struct sx_tensor *hashes,
                                              int n_parts, struct sx_tensor *out_index, int64_t *out_offsets);
SX_MUST_CHECK enum sx_status sx_cpu_bloom_add(struct sx_stream *stream, const struct sx_tensor *hashes,
                                              struct sx_tensor *words);
SX_MUST_CHECK enum sx_status sx_cpu_bloom_merge(struct sx_stream *stream, const struct sx_tensor *other,
                                                struct sx_tensor *words);
SX_MUST_CHECK enum sx_status sx_cpu_bloom_test(struct sx_stream *stream, const struct sx_tensor *hashes,
                                               const struct sx_tensor *words,
                                               struct sx_tensor *out_selection);
SX_MUST_CHECK enum sx_status sx_cpu_rows_pack(struct sx_stream *stream, const struct sx_batch *batch,
                                              const struct sx_row_parts *parts, int64_t sequence, bool packs,
                                              struct sx_rows_narrow *narrow, struct sx_buffer **out_parts,
                                              size_t *out_plain_bytes, struct sx_batch *out_own);
SX_MUST_CHECK enum sx_status sx_cpu_rows_unpack(struct sx_stream *stream, struct sx_buffer *frame,
                                                size_t bytes, bool from_host, const struct sx_type *types,
                                                int n_columns, const bool *are_moved,
                                                struct sx_batch *out_batch, int64_t *out_sequence);
SX_MUST_CHECK enum sx_status sx_cpu_bytes_to_host(struct sx_stream *stream, struct sx_buffer *const *buffers,
                                                  int n, struct sx_pool *pool,
                                                  struct sx_buffer **out_buffers);
SX_MUST_CHECK enum sx_status sx_cpu_bytes_from_host(struct sx_stream *stream, struct sx_buffer *buffer,
                                                    size_t bytes, struct sx_buffer **out_buffer);
SX_MUST_CHECK enum sx_status sx_cpu_bytes_to_send(struct sx_stream *stream, const struct sx_buffer *buffer,
                                                  size_t first, size_t bytes, struct sx_buffer **out_buffer);
SX_MUST_CHECK enum sx_status sx_cpu_group_create(struct sx_stream *stream, const struct sx_group_spec *spec,
                                                 struct sx_group **out_group);
void sx_cpu_group_destroy(struct sx_stream *stream, struct sx_group *group);
SX_MUST_CHECK enum sx_status sx_cpu_group_update(struct sx_stream *stream, struct sx_group *group, int worker,
                                                 const struct sx_tensor *keys, const struct sx_tensor *inputs,
                                                 const struct sx_tensor *filters, int64_t rows);
SX_MUST_CHECK enum sx_status sx_cpu_group_finish(struct sx_stream *stream, struct sx_group *group,
                                                 int *out_parts, int64_t *out_most_rows);
SX_MUST_CHECK enum sx_status sx_cpu_group_emit(struct sx_stream *stream, struct sx_group *group, int part,
                                               int64_t *cursor, int64_t max_rows, struct sx_batch *out_batch);
SX_MUST_CHECK enum sx_status sx_cpu_join_create(struct sx_stream *stream, const struct sx_join_spec *spec,
                                                struct sx_join **out_join);
void sx_cpu_join_destroy(struct sx_stream *stream, struct sx_join *join);
SX_MUST_CHECK enum sx_status sx_cpu_join_append(struct sx_stream *stream, struct sx_join *join, int worker,
                                                const struct sx_tensor *keys, const struct sx_tensor *payload,
                                                int64_t rows);
SX_MUST_CHECK enum sx_status sx_cpu_join_finish(struct sx_stream *stream, struct sx_join *join,
                                                int *out_parts);
SX_MUST_CHECK enum sx_status sx_cpu_join_build(struct sx_stream *stream, struct sx_join *join, int part);
void sx_cpu_join_info(const struct sx_join *join, struct sx_join_info *out_info);
SX_MUST_CHECK enum sx_status sx_cpu_join_gather(struct sx_stream *stream, const struct sx_join *join,
                                                const int32_t *payload, int n,
                                                const struct sx_tensor *build_rows,
                                                struct sx_tensor *out_columns);
SX_MUST_CHECK enum sx_status sx_cpu_join_probe(struct sx_stream *stream, const struct sx_join *join,
                                               const struct sx_tensor *keys, int64_t rows,
                                               enum sx_probe_mode mode, int64_t max_pairs,
                                               struct sx_probe_cursor *cursor,
                                               struct sx_tensor *out_probe_rows,
                                               struct sx_tensor *out_build_rows);
SX_MUST_CHECK enum sx_status sx_cpu_join_filter(struct sx_stream *stream, const struct sx_join *join,
                                                const struct sx_tensor *key,
                                                const struct sx_tensor *selection,
                                                struct sx_tensor *out_selection);
SX_MUST_CHECK enum sx_status sx_cpu_join_mark(struct sx_stream *stream, struct sx_join *join,
                                              const struct sx_tensor *build_rows);
SX_MUST_CHECK enum sx_status sx_cpu_join_marked(struct sx_stream *stream, const struct sx_join *join,
                                                bool wanted, int64_t first, int64_t count,
                                                struct sx_tensor *out_build_rows);
SX_MUST_CHECK enum sx_status sx_cpu_sort(struct sx_stream *stream, const struct sx_tensor *keys,
                                         const struct sx_sort_key *orders, int n_keys, int64_t rows,
                                         int64_t limit, struct sx_tensor *out_order);
SX_MUST_CHECK enum sx_status sx_cpu_decoder_create(struct sx_stream *stream,
                                                   const struct sx_stored_chunk *chunk,
                                                   struct sx_decoder **out_decoder);
void sx_cpu_decoder_destroy(struct sx_stream *stream, struct sx_decoder *decoder);
SX_MUST_CHECK enum sx_status sx_cpu_decode(struct sx_stream *stream, const struct sx_column_read *reads,
                                           int n_reads, const struct sx_tensor *selection,
                                           struct sx_decode_place *out_place);
SX_MUST_CHECK enum sx_status sx_cpu_decode_ahead(struct sx_stream *stream, struct sx_decoder *const *decoders,
                                                 int n);

#endif
