/* Families that are still being written. */
#include "backend/cuda/cuda.h"
#pragma GCC diagnostic ignored "-Wunused-parameter"
__attribute__((weak)) enum sx_status sx_cuda_join_create(struct sx_stream *stream,
                                                         const struct sx_join_spec *spec,
                                                         struct sx_join **out_join) {
    return sx_error_set(&stream->error, SX_UNSUPPORTED, "sx_cuda_join_create is not there yet");
}
__attribute__((weak)) void sx_cuda_join_destroy(struct sx_stream *stream, struct sx_join *join) {}
__attribute__((weak)) enum sx_status sx_cuda_join_append(struct sx_stream *stream, struct sx_join *join,
                                                         int worker, const struct sx_tensor *keys,
                                                         const struct sx_tensor *payload, int64_t rows) {
    return sx_error_set(&stream->error, SX_UNSUPPORTED, "sx_cuda_join_append is not there yet");
}
__attribute__((weak)) enum sx_status sx_cuda_join_finish(struct sx_stream *stream, struct sx_join *join,
                                                         int *out_parts) {
    return sx_error_set(&stream->error, SX_UNSUPPORTED, "sx_cuda_join_finish is not there yet");
}
__attribute__((weak)) enum sx_status sx_cuda_join_build(struct sx_stream *stream, struct sx_join *join,
                                                        int part) {
    return sx_error_set(&stream->error, SX_UNSUPPORTED, "sx_cuda_join_build is not there yet");
}
__attribute__((weak)) void sx_cuda_join_info(const struct sx_join *join, struct sx_join_info *out_info) {}
__attribute__((weak)) const struct sx_tensor *sx_cuda_join_payload(const struct sx_join *join, int k) {
    return NULL;
}
__attribute__((weak)) enum sx_status sx_cuda_join_probe(struct sx_stream *stream, const struct sx_join *join,
                                                        const struct sx_tensor *keys, int64_t rows,
                                                        enum sx_probe_mode mode, int64_t max_pairs,
                                                        struct sx_probe_cursor *cursor,
                                                        struct sx_tensor *out_probe_rows,
                                                        struct sx_tensor *out_build_rows) {
    return sx_error_set(&stream->error, SX_UNSUPPORTED, "sx_cuda_join_probe is not there yet");
}
__attribute__((weak)) enum sx_status sx_cuda_join_filter(struct sx_stream *stream, const struct sx_join *join,
                                                         const struct sx_tensor *key,
                                                         const struct sx_tensor *selection,
                                                         struct sx_tensor *out_selection) {
    return sx_error_set(&stream->error, SX_UNSUPPORTED, "sx_cuda_join_filter is not there yet");
}
__attribute__((weak)) enum sx_status sx_cuda_join_mark(struct sx_stream *stream, struct sx_join *join,
                                                       const struct sx_tensor *build_rows) {
    return sx_error_set(&stream->error, SX_UNSUPPORTED, "sx_cuda_join_mark is not there yet");
}
__attribute__((weak)) enum sx_status sx_cuda_join_marked(struct sx_stream *stream, const struct sx_join *join,
                                                         bool wanted, int64_t first, int64_t count,
                                                         struct sx_tensor *out_build_rows) {
    return sx_error_set(&stream->error, SX_UNSUPPORTED, "sx_cuda_join_marked is not there yet");
}
