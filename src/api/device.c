#include "api/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/library.h"
#include "backend/cpu/cpu.h"
#include "backend/cuda/load.h"

static enum sx_status open_cuda(size_t limit_bytes, struct sx_device *device, struct sx_error *error) {
    char problem[512];
    void *library = sx_library_load("libstachio_cuda.so", "STACHIO_CUDA_LIBRARY", RTLD_NOW | RTLD_LOCAL,
                                    problem, sizeof problem);
    if (!library)
        return sx_error_set(error, SX_UNSUPPORTED, "no CUDA backend: %s", problem);
    sx_cuda_open_function open = (sx_cuda_open_function)(uintptr_t)dlsym(library, "sx_cuda_open");
    enum sx_status status =
        open ? open(limit_bytes, &device->backend, &device->name, error)
             : sx_error_set(error, SX_UNSUPPORTED, "no CUDA backend: the library lacks sx_cuda_open");
    if (status == SX_OK)
        status = sx_backend_check(device->backend, error);
    if (status != SX_OK) {
        dlclose(library);
        *device = (struct sx_device){0};
        return status;
    }
    device->library = library;
    return SX_OK;
}

/* Costs microseconds; loading the library and the driver costs far more. */
static bool may_have_gpu(void) {
    return sx_environment("STACHIO_CUDA_LIBRARY") || access("/dev/nvidiactl", F_OK) == 0 ||
           access("/dev/dxg", F_OK) == 0; /* Windows' subsystem for Linux */
}

/* What AUTO stands for where STACHIO_DEVICE says so. */
static enum sx_status choose(enum stachio_device *wanted, struct sx_error *error) {
    static const char *const names[] = {
        [STACHIO_DEVICE_AUTO] = "auto", [STACHIO_DEVICE_CPU] = "cpu", [STACHIO_DEVICE_CUDA] = "cuda"};
    const char *named = *wanted == STACHIO_DEVICE_AUTO ? sx_environment("STACHIO_DEVICE") : NULL;
    if (!named)
        return SX_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(named, names[i])) {
            *wanted = (enum stachio_device)i;
            return SX_OK;
        }
    return sx_error_set(error, SX_USAGE, "STACHIO_DEVICE: '%s' is none of auto, cpu, cuda", named);
}

enum sx_status sx_device_open(enum stachio_device wanted, size_t limit_bytes, struct sx_device *out_device,
                              const struct sx_backend **out_backend, struct sx_error *error) {
    struct sx_error problem = {0};
    *out_device = (struct sx_device){0};
    *out_backend = &sx_cpu_backend;
    SX_TRY(choose(&wanted, error));
    if (wanted == STACHIO_DEVICE_CPU)
        return SX_OK;
    enum sx_status status = wanted == STACHIO_DEVICE_CUDA || may_have_gpu()
                                ? open_cuda(limit_bytes, out_device, &problem)
                                : sx_error_set(&problem, SX_UNSUPPORTED, "no NVIDIA driver");
    if (status == SX_OK)
        *out_backend = out_device->backend;
    else if (wanted == STACHIO_DEVICE_CUDA)
        return sx_error_set(error, status == SX_UNSUPPORTED ? SX_USAGE : status, "device cuda: %s",
                            problem.text);
    else
        snprintf(out_device->reason, sizeof out_device->reason, "%.255s", problem.text);
    return SX_OK;
}

void sx_device_close(struct sx_device *device) {
    if (!device->library)
        return;
    sx_cuda_close_function close = (sx_cuda_close_function)(uintptr_t)dlsym(device->library, "sx_cuda_close");
    if (close)
        close(device->backend);
    dlclose(device->library);
    *device = (struct sx_device){0};
}
