/* Bloom filters over hashes, on the host's side. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_hash.h"

enum sx_status sx_cuda_bloom_add(struct sx_stream *base, const struct sx_tensor *hashes,
                                 struct sx_tensor *words) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    const struct cuda_hash_keys keys = {
        .n = 1, .columns = {{.values = hashes->values, .layout = CUDA_FLAT, .phys = CUDA_HASH_READY}}};
    if (hashes->length > 0)
        cuda_bloom_add(stream->handle, &keys, hashes->length, words->values, (uint64_t)words->length);
    return cuda_launched(stream, "a bloom filter");
}

enum sx_status sx_cuda_bloom_merge(struct sx_stream *base, const struct sx_tensor *other,
                                   struct sx_tensor *words) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    cuda_bloom_merge(stream->handle, other->values, other->layout == SX_CONSTANT ? 0 : 1, words->length,
                     words->values);
    return cuda_launched(stream, "merging bloom filters");
}

enum sx_status sx_cuda_bloom_test(struct sx_stream *base, const struct sx_tensor *hashes,
                                  const struct sx_tensor *words, struct sx_tensor *out_selection) {
    struct cuda_stream *stream;
    struct sx_buffer *flags = NULL;
    enum sx_status status;
    SX_GO(cuda_enter(base, &stream));
    SX_GO(sx_buffer_create(base->pool, (size_t)hashes->length, &flags, &base->error));
    if (hashes->length > 0)
        cuda_bloom_test(stream->handle, hashes->values, hashes->length, words->values,
                        (uint64_t)words->length, flags->data);
    SX_GO(cuda_launched(stream, "a bloom filter's test"));
    status = cuda_select(stream, flags->data, hashes->length, out_selection);
out:
    sx_buffer_release(flags);
    return status;
}
