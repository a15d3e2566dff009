/* The part of nvCOMP 5 that inflate.c calls. The library is NVIDIA's and loaded at run time, so its headers
 * may be absent when this is compiled; where they are there, test/nvcomp_header.c holds these against them.
 */
#ifndef SX_BACKEND_CUDA_NVCOMP_H
#define SX_BACKEND_CUDA_NVCOMP_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

/* The major version is that of the interface. */
#ifndef NVCOMP_LIBRARY
#define NVCOMP_LIBRARY "libnvcomp.so.5"
#endif

enum nvcomp_status { NVCOMP_SUCCESS = 0, NVCOMP_CANNOT_DECOMPRESS = 12, NVCOMP_INTERNAL = 10000 };
/* Kernels, not the decompression engine of later GPUs, which asks for memory of a special kind. */
enum { NVCOMP_BACKEND_CUDA = 2 };

/* Each codec has a type of its own; all begin with the backend and take 64 bytes, where zeros are the
 * defaults. */
struct nvcomp_options {
    int backend;
    char more[60];
};

/* Of pointers to device memory; 1: any. */
struct nvcomp_alignments {
    size_t input, output, temp;
};

/* A function's type, with the codec's types put in. Names of the functions: "nvcompBatched", the codec
 * (LZ4, Zstd), and what is at each. All arrays of a decompression are device memory, one element a
 * chunk. */

/* "DecompressGetRequiredAlignments" */
#define NVCOMP_GET_ALIGNMENTS(name, status, options, alignments) status name(options, alignments *)
/* "DecompressGetTempSizeAsync": n_chunks, max_plain_bytes of one, options, *out_bytes, plain_bytes of all */
#define NVCOMP_GET_TEMP_BYTES(name, status, options) status name(size_t, size_t, options, size_t *, size_t)
/* "DecompressAsync": stored, stored_bytes, plain_room_bytes, out_plain_bytes, n_chunks, temp, temp_bytes,
 * plain, options, out_statuses, stream */
#define NVCOMP_DECOMPRESS(name, status, options)                                                       \
    status name(const void *const *, const size_t *, const size_t *, size_t *, size_t, void *, size_t, \
                void *const *, options, status *, cudaStream_t)

typedef NVCOMP_GET_ALIGNMENTS(nvcomp_get_alignments, enum nvcomp_status, struct nvcomp_options,
                              struct nvcomp_alignments);
typedef NVCOMP_GET_TEMP_BYTES(nvcomp_get_temp_bytes, enum nvcomp_status, struct nvcomp_options);
typedef NVCOMP_DECOMPRESS(nvcomp_decompress, enum nvcomp_status, struct nvcomp_options);

#endif
