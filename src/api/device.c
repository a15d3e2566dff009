#include "api/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/library.h"
#include "backend/cpu/cpu.h"

static enum sx_status choose_cuda(int number, struct sx_device *device, struct sx_error *error) {
    char problem[512];
    device->library = sx_library_load("libstachio_cuda.so", "STACHIO_CUDA_LIBRARY", RTLD_NOW | RTLD_LOCAL,
                                      problem, sizeof problem);
    if (!device->library)
        return sx_error_set(error, SX_UNSUPPORTED, "no CUDA backend: %s", problem);
    sx_cuda_choose_function choose =
        (sx_cuda_choose_function)(uintptr_t)dlsym(device->library, "sx_cuda_choose");
    if (!choose)
        return sx_error_set(error, SX_UNSUPPORTED, "no CUDA backend: the library lacks sx_cuda_choose");
    const enum sx_status status = choose(number, &device->choice, error);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (status == SX_OK || !visible)
        return status;
    snprintf(problem, sizeof problem, "%.300s", error->text);
    return sx_error_set(error, status, "%s (tried: CUDA_VISIBLE_DEVICES, %.100s)", problem, visible);
}

static enum sx_status open_cuda(size_t limit_bytes, int n_sharing, struct sx_device *device,
                                struct sx_error *error) {
    sx_cuda_open_function open = (sx_cuda_open_function)(uintptr_t)dlsym(device->library, "sx_cuda_open");
    if (!open)
        return sx_error_set(error, SX_UNSUPPORTED, "no CUDA backend: the library lacks sx_cuda_open");
    SX_TRY(open(&device->choice, limit_bytes, n_sharing, &device->backend, &device->name, error));
    return sx_backend_check(device->backend, error);
}

/* Costs microseconds; loading the library and the driver costs far more. */
static bool may_have_gpu(void) {
    return sx_environment("STACHIO_CUDA_LIBRARY") || access("/dev/nvidiactl", F_OK) == 0 ||
           access("/dev/dxg", F_OK) == 0; /* Windows' subsystem for Linux */
}

/* What AUTO stands for where STACHIO_DEVICE says so. */
static enum sx_status read_environment(enum stachio_device *wanted, struct sx_error *error) {
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

/* Not this device: the CPU, unless it was asked for. */
static enum sx_status do_without(struct sx_device *device, const struct sx_error *problem,
                                 struct sx_error *error) {
    const bool is_wanted = device->is_wanted;
    sx_device_close(device);
    if (is_wanted)
        return sx_error_set(error, problem->status == SX_UNSUPPORTED ? SX_USAGE : problem->status,
                            "device cuda: %s", problem->text);
    snprintf(device->reason, sizeof device->reason, "%.255s", problem->text);
    return SX_OK;
}

/* With CUDA's 8 queues to the device several of a query's streams (8 workers', and the one that brings bytes)
 * are in one, and a worker's kernels wait there for all that is brought for others. Each queue more makes a
 * process's start and end 30 ms longer, and those of several processes come after each other. */
void sx_device_prepare(enum stachio_device wanted, bool is_alone) {
    struct sx_error ignored;
    if (read_environment(&wanted, &ignored) != SX_OK || wanted == STACHIO_DEVICE_CPU ||
        (wanted == STACHIO_DEVICE_AUTO && !may_have_gpu()))
        return;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "12", 0);
    setenv("CUFILE_LOGFILE_PATH", "/dev/null", 0); /* else cuFile writes to the working directory */
    if (is_alone)
        sx_device_hide_others();
}

enum sx_status sx_device_choose(enum stachio_device wanted, int number, struct sx_device *out_device,
                                struct sx_error *error) {
    struct sx_error problem = {0};
    *out_device = (struct sx_device){0};
    SX_TRY(read_environment(&wanted, error));
    if (wanted == STACHIO_DEVICE_CPU)
        return SX_OK;
    out_device->is_wanted = wanted == STACHIO_DEVICE_CUDA;
    const enum sx_status status = out_device->is_wanted || may_have_gpu()
                                      ? choose_cuda(number, out_device, &problem)
                                      : sx_error_set(&problem, SX_UNSUPPORTED, "no NVIDIA driver");
    return status == SX_OK ? SX_OK : do_without(out_device, &problem, error);
}

enum sx_status sx_device_open(struct sx_device *device, size_t limit_bytes, int n_sharing,
                              const struct sx_backend **out_backend, struct sx_error *error) {
    struct sx_error problem = {0};
    if (device->library && open_cuda(limit_bytes, n_sharing, device, &problem) != SX_OK)
        SX_TRY(do_without(device, &problem, error));
    *out_backend = device->library ? device->backend : &sx_cpu_backend;
    return SX_OK;
}

void sx_device_close(struct sx_device *device) {
    if (!device->library)
        return;
    sx_cuda_close_function close = (sx_cuda_close_function)(uintptr_t)dlsym(device->library, "sx_cuda_close");
    if (close && device->backend)
        close(device->backend);
    dlclose(device->library);
    *device = (struct sx_device){0};
}
