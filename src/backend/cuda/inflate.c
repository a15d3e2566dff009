/* Decompression on the device: batches of pages for its kernels. See inflate.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/inflate.h"
#include "backend/cuda/launch_inflate.h"

enum { MAX_PIECE_BYTES = INT32_MAX };

static const struct {
    const char *name;
    cuda_inflate_kernel *kernel;
    enum sx_parquet_codec codec;
    uint32_t host_pages; /* that a thread of the host opens while the device opens one, or many at once */
} kernels[] = {{"snappy", cuda_snappy, SX_CODEC_SNAPPY, 0},
               {"gzip", cuda_gzip, SX_CODEC_GZIP, 50},
               {"lz4", cuda_lz4, SX_CODEC_LZ4_RAW, 100},
               {"zstd", cuda_zstd, SX_CODEC_ZSTD, 25}};
enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

/* N_KERNELS: there is none. */
static int find_kernel(enum sx_parquet_codec codec) {
    int k = 0;
    while (k < N_KERNELS && kernels[k].codec != codec)
        k++;
    return k;
}

void cuda_inflate_choose(struct cuda_device *device) {
    const char *wanted = getenv("STACHIO_INFLATE");
    device->inflates = 1u << SX_CODEC_UNCOMPRESSED;
    device->inflates_few = wanted;
    for (int k = 0; k < N_KERNELS; k++)
        if (!wanted || strstr(wanted, kernels[k].name))
            device->inflates |= 1u << kernels[k].codec;
}

bool cuda_inflate_serves(const struct cuda_device *device, enum sx_parquet_codec codec) {
    return (unsigned)codec < CHAR_BIT * sizeof device->inflates && device->inflates >> codec & 1;
}

bool cuda_inflate_pays(const struct cuda_device *device, enum sx_parquet_codec codec, size_t most_bytes,
                       size_t all_bytes) {
    const int k = find_kernel(codec);
    return k < N_KERNELS && cuda_inflate_serves(device, codec) &&
           (device->inflates_few || all_bytes >= most_bytes * kernels[k].host_pages);
}

bool cuda_inflate_takes(enum sx_parquet_codec codec, size_t stored_bytes, size_t plain_bytes) {
    return find_kernel(codec) < N_KERNELS && stored_bytes <= MAX_PIECE_BYTES &&
           plain_bytes <= MAX_PIECE_BYTES;
}

/* Those that have bytes. */
static enum sx_status collect(struct cuda_stream *stream, enum sx_parquet_codec codec,
                              const struct cuda_inflate_item *items, int64_t n,
                              struct inflate_piece *out_pieces, int64_t *out_n) {
    for (int64_t i = 0; i < n; i++) {
        const struct cuda_inflate_item *item = &items[i];
        if (item->plain_bytes == 0)
            continue;
        if (!cuda_inflate_takes(codec, item->stored_bytes, item->plain_bytes))
            return sx_error_set(&stream->base.error, SX_INTERNAL, "a page of %zu bytes is not for the device",
                                item->plain_bytes);
        out_pieces[(*out_n)++] = (struct inflate_piece){
            item->stored, item->plain, (uint32_t)item->stored_bytes, (uint32_t)item->plain_bytes, item->what};
    }
    return SX_OK;
}

static enum sx_status launch(struct cuda_stream *stream, cuda_inflate_kernel *kernel,
                             const struct inflate_piece *pieces, int64_t n) {
    struct sx_buffer *uploaded = NULL;
    enum sx_status status = cuda_upload_buffer(stream, pieces, (size_t)n * sizeof *pieces, &uploaded);
    if (status == SX_OK) {
        kernel(stream->handle, uploaded->data, n, stream->control);
        status = cuda_launched(stream, "decompression");
    }
    sx_buffer_release(uploaded);
    return status;
}

enum sx_status cuda_inflate(struct cuda_stream *stream, enum sx_parquet_codec codec,
                            const struct cuda_inflate_item *items, int64_t n) {
    int64_t n_pieces = 0;
    SX_TRY(cuda_enter(&stream->base, &stream));
    const int k = find_kernel(codec);
    if (k == N_KERNELS)
        return sx_error_set(&stream->base.error, SX_INTERNAL, "codec %d is not for the device", (int)codec);
    struct inflate_piece *pieces = malloc(((size_t)n + 1) * sizeof *pieces);
    if (!pieces)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of %lld pages",
                            (long long)n);
    enum sx_status status = collect(stream, codec, items, n, pieces, &n_pieces);
    if (status == SX_OK && n_pieces > 0)
        status = launch(stream, kernels[k].kernel, pieces, n_pieces);
    free(pieces);
    return status;
}
