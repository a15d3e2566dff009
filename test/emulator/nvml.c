/* What stands in for NVML, for as many GPUs as the environment's NVML_EMULATOR_GPUS lists, separated by
 * blanks: CAPABILITY:COMPUTE_MODE:MIG:FREE_MIB each; MIG 2: it has none. Number i has the UUID
 * "GPU-emulated-i". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/nvml_api.h"

#define EXPORT __attribute__((visibility("default")))

enum { MOST = 16, FAILED = 999 };
static const unsigned long long mebibyte = 1ULL << 20;

struct gpu {
    int capability, compute_mode, mig;
    unsigned long long free_mebibytes;
};

static struct gpu gpus[MOST];
static unsigned n_gpus;

static struct gpu *gpu_of(nvml_device device) {
    return &gpus[(uintptr_t)device - 1];
}

EXPORT int nvmlInit_v2(void) {
    const char *list = getenv("NVML_EMULATOR_GPUS");
    n_gpus = 0;
    for (const char *at = list; at && n_gpus < MOST; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
        struct gpu *gpu = &gpus[n_gpus++];
        if (sscanf(at, "%d:%d:%d:%llu", &gpu->capability, &gpu->compute_mode, &gpu->mig,
                   &gpu->free_mebibytes) != 4)
            return FAILED;
    }
    return list ? NVML_SUCCESS : FAILED;
}

EXPORT int nvmlShutdown(void) {
    return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *out_count) {
    *out_count = n_gpus;
    return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *out_device) {
    *out_device = (nvml_device)(uintptr_t)(index + 1);
    return index < n_gpus ? NVML_SUCCESS : FAILED;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *out_major, int *out_minor) {
    *out_major = gpu_of(device)->capability;
    *out_minor = 0;
    return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetComputeMode(nvml_device device, int *out_mode) {
    *out_mode = gpu_of(device)->compute_mode;
    return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetMigMode(nvml_device device, unsigned *out_current, unsigned *out_pending) {
    if (gpu_of(device)->mig == 2)
        return NVML_NOT_SUPPORTED;
    *out_current = *out_pending = (unsigned)gpu_of(device)->mig;
    return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *out_memory) {
    out_memory->free = gpu_of(device)->free_mebibytes * mebibyte;
    return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetUUID(nvml_device device, char *out_uuid, unsigned bytes) {
    snprintf(out_uuid, bytes, "GPU-emulated-%d", (int)(gpu_of(device) - gpus));
    return NVML_SUCCESS;
}
