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

typedef int (*nvml_init_function)(void);
typedef int (*nvml_shutdown_function)(void);
typedef int (*nvml_count_function)(unsigned *out_count);
typedef int (*nvml_device_function)(unsigned index, nvml_device *out_device);
typedef int (*nvml_capability_function)(nvml_device device, int *out_major, int *out_minor);
typedef int (*nvml_compute_mode_function)(nvml_device device, int *out_mode);
typedef int (*nvml_mig_function)(nvml_device device, unsigned *out_current, unsigned *out_pending);
typedef int (*nvml_memory_function)(nvml_device device, struct nvml_memory *out_memory);
typedef int (*nvml_uuid_function)(nvml_device device, char *out_uuid, unsigned bytes);

#endif
