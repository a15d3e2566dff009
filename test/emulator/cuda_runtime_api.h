/* The part of the CUDA runtime that the backend uses, for machines without a GPU: "device" memory is host
 * memory and work is done when the call returns. Names and values are CUDA's. See README.md. */
#ifndef TEST_EMULATOR_CUDA_RUNTIME_API_H
#define TEST_EMULATOR_CUDA_RUNTIME_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorMapBufferObjectFailed = 205,
    cudaErrorNotReady = 600
} cudaError_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum {
    cudaStreamNonBlocking = 1,
    cudaEventDisableTiming = 2,
    cudaHostAllocDefault = 0,
    cudaHostRegisterPortable = 1,
    cudaIpcMemLazyEnablePeerAccess = 1
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrCanUseHostPointerForRegisteredMem = 91,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76
};

typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
typedef struct emulated_pool *cudaMemPool_t;
/* Of one process: another's memory can't be opened, nor that of the device CUDA_EMULATOR_CLOSED. */
typedef struct {
    char reserved[64];
} cudaIpcMemHandle_t;
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int multiProcessorCount, major, minor;
};

cudaError_t cudaGetDeviceCount(int *out_count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out_properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char *out_bus, int bytes, int device);
cudaError_t cudaDeviceGetAttribute(int *out_value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total);
cudaError_t cudaMalloc(void **out_memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out_handle, void *memory);
cudaError_t cudaIpcOpenMemHandle(void **out_memory, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *memory);
cudaError_t cudaMallocAsync(void **out_memory, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out_pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaHostAlloc(void **out_memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out_stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out_stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *out_least, int *out_greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out_event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);

#ifdef __cplusplus
}
#endif
#endif
