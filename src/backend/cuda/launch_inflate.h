/* Decompression on the device: our kernels for snappy, gzip and zstd, and those around nvCOMP's; what they
 * share with inflate.c, and their launches. */
#ifndef SX_BACKEND_CUDA_LAUNCH_INFLATE_H
#define SX_BACKEND_CUDA_LAUNCH_INFLATE_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"
#include "backend/cuda/nvcomp.h"

/* nvCOMP's. */
enum inflate_codec { INFLATE_LZ4, INFLATE_ZSTD, INFLATE_N_CODECS };

/* Pointers lead to device memory. */
struct inflate_piece {
    const uint8_t *stored;
    uint8_t *plain;
    uint32_t stored_bytes, plain_bytes;
    uint32_t what;
};

/* Takes the place of a damaged piece; one plain byte comes out. */
enum { INFLATE_SPARE_BYTES = 16 };

/* Arrays of n on the device: what nvCOMP is given, and what it answers. */
struct inflate_work {
    const struct inflate_piece *pieces;
    const void **stored;
    size_t *stored_bytes;
    void **plain;
    size_t *plain_bytes;
    size_t *got_bytes;
    enum nvcomp_status *statuses;
    uint8_t *spare; /* up to INFLATE_SPARE_BYTES, and behind these the byte that they become */
    uint32_t spare_bytes;
    int64_t n;
    enum inflate_codec codec;
    struct cuda_control *control;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Pages of a codec; those that are damaged, or do not give plain_bytes, become faults. */
typedef void cuda_inflate_kernel(cudaStream_t stream, const struct inflate_piece *pieces, int64_t n,
                                 struct cuda_control *control);
cuda_inflate_kernel cuda_snappy, cuda_gzip, cuda_zstd;
/* Fills the arrays for nvCOMP; pieces that are seen to be damaged become faults, and spare ones in the
 * arrays. */
void cuda_inflate_check(cudaStream_t stream, const struct inflate_work *work);
/* Faults of what nvCOMP could not decompress, or to another size. */
void cuda_inflate_confirm(cudaStream_t stream, const struct inflate_work *work);

#ifdef __cplusplus
}
#endif
#endif
