/* Which GPUs CUDA is to see. It starts each that it sees, whichever is used: with four H200 a process needs
 * 0.87 s until they are there, with one of them visible 0.18. NVML tells of them without that, where the
 * driver keeps them ready (persistence mode). */
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/device.h"
#include "api/library.h"
#include "api/nvml_api.h"

/* Of memory that has to be free for a GPU to be taken without a trial: a context needs about half of it. */
static const unsigned long long context_bytes = 1ULL << 30;

#define NVML_FIELD(name, type) __typeof__(type) name;
struct nvml_functions {
    NVML_FUNCTION_LIST(NVML_FIELD)
};
#undef NVML_FIELD

/* Its daemon says which GPUs its clients may name. */
static bool has_mps(void) {
    return sx_environment("CUDA_MPS_PIPE_DIRECTORY") || access("/tmp/nvidia-mps/control", F_OK) == 0;
}

/* A look into a folder of the driver; another namespace's GPUs may be among them. */
static bool may_be_several(void) {
    if (sx_environment("STACHIO_NVML_LIBRARY"))
        return true;
    DIR *gpus = opendir("/proc/driver/nvidia/gpus");
    int n = 0;
    if (!gpus)
        return false;
    for (const struct dirent *entry = readdir(gpus); entry; entry = readdir(gpus))
        n += entry->d_name[0] != '.';
    closedir(gpus);
    return n > 1;
}

static bool find(void *library, struct nvml_functions *out) {
    bool finds_all = true;
#define NVML_FIND(name, type)                                            \
    out->name = (__typeof__(out->name))(uintptr_t)dlsym(library, #name); \
    finds_all = finds_all && out->name;
    NVML_FUNCTION_LIST(NVML_FIND)
#undef NVML_FIND
    return finds_all;
}

static bool is_new_enough(const struct nvml_functions *nvml, nvml_device device) {
    int major = 0, minor = 0;
    return nvml->nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == NVML_SUCCESS &&
           major >= SX_CUDA_LEAST_MAJOR;
}

static bool is_whole(const struct nvml_functions *nvml, nvml_device device) {
    unsigned current = 0, pending = 0;
    const int result = nvml->nvmlDeviceGetMigMode(device, &current, &pending);
    return result == NVML_NOT_SUPPORTED || (result == NVML_SUCCESS && current == 0);
}

/* Whether it can be expected to work: another can't be tried in its place once CUDA has seen it alone. */
static bool is_free(const struct nvml_functions *nvml, nvml_device device) {
    struct nvml_memory memory = {0};
    int mode = -1;
    return nvml->nvmlDeviceGetComputeMode(device, &mode) == NVML_SUCCESS && mode == NVML_COMPUTE_SHARED &&
           nvml->nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS && memory.free >= context_bytes;
}

/* Of the one that sx_device_choose would take as number 0, by NVML's order, which is by PCI address, too.
 * False: another one may be taken, or it is the only one. */
static bool find_first(const struct nvml_functions *nvml, char uuid[NVML_UUID_BYTES]) {
    unsigned n = 0;
    nvml_device device = NULL;
    if (nvml->nvmlDeviceGetCount_v2(&n) != NVML_SUCCESS || n < 2)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS)
            return false;
        if (is_new_enough(nvml, device))
            return is_whole(nvml, device) && is_free(nvml, device) &&
                   nvml->nvmlDeviceGetUUID(device, uuid, NVML_UUID_BYTES) == NVML_SUCCESS;
    }
    return false;
}

void sx_device_hide_others(void) {
    const char *named = sx_environment("STACHIO_NVML_LIBRARY");
    struct nvml_functions nvml;
    char uuid[NVML_UUID_BYTES];
    if (getenv("CUDA_VISIBLE_DEVICES") || has_mps() || !may_be_several())
        return;
    void *library = dlopen(named ? named : NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library && find(library, &nvml) && nvml.nvmlInit_v2() == NVML_SUCCESS) {
        if (find_first(&nvml, uuid))
            setenv("CUDA_VISIBLE_DEVICES", uuid, 0);
        (void)nvml.nvmlShutdown();
    }
    if (library)
        dlclose(library);
}
