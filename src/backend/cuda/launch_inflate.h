/* Decompression on the device: what the kernels share with inflate.c, and their launches. */
#ifndef SX_BACKEND_CUDA_LAUNCH_INFLATE_H
#define SX_BACKEND_CUDA_LAUNCH_INFLATE_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"

/* Pointers lead to device memory. */
struct inflate_piece {
    const uint8_t *stored;
    uint8_t *plain;
    uint32_t stored_bytes, plain_bytes;
    uint32_t what;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Pages of a codec; those that are damaged, or do not give plain_bytes, become faults. */
typedef void cuda_inflate_kernel(cudaStream_t stream, const struct inflate_piece *pieces, int64_t n,
                                 struct cuda_control *control);
cuda_inflate_kernel cuda_snappy, cuda_gzip, cuda_lz4, cuda_zstd;

#ifdef __cplusplus
}
#endif
#endif
