/* The part of NVML that device_visible.c calls. The library is the driver's, and its header is not on every
 * machine. */
#ifndef SX_API_NVML_API_H
#define SX_API_NVML_API_H

#define NVML_LIBRARY "libnvidia-ml.so.1"

enum { NVML_SUCCESS = 0, NVML_NOT_SUPPORTED = 3, NVML_COMPUTE_SHARED = 0, NVML_UUID_BYTES = 96 };

typedef struct nvml_device *nvml_device;

struct nvml_memory {
    unsigned long long total, free, used;
};

/* X(name, type); all return NVML_SUCCESS or what failed. */
#define NVML_FUNCTION_LIST(X)                                                                   \
    X(nvmlInit_v2, int (*)(void))                                                               \
    X(nvmlShutdown, int (*)(void))                                                              \
    X(nvmlDeviceGetCount_v2, int (*)(unsigned *out_count))                                      \
    X(nvmlDeviceGetHandleByIndex_v2, int (*)(unsigned index, nvml_device *out_device))          \
    X(nvmlDeviceGetCudaComputeCapability, int (*)(nvml_device, int *out_major, int *out_minor)) \
    X(nvmlDeviceGetComputeMode, int (*)(nvml_device, int *out_mode))                            \
    X(nvmlDeviceGetMigMode, int (*)(nvml_device, unsigned *out_current, unsigned *out_pending)) \
    X(nvmlDeviceGetMemoryInfo, int (*)(nvml_device, struct nvml_memory * out_memory))           \
    X(nvmlDeviceGetUUID, int (*)(nvml_device, char *out_uuid, unsigned bytes))

#endif
