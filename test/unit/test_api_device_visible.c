/* Which GPU of several CUDA is to see alone, by an emulated NVML. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/device.h"

/* NULL: all. */
static void check_visible(const char *when, const char *expected) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && expected ? !strcmp(expected, visible) : visible == expected)
        return;
    fprintf(stderr, "%s: %s is visible\n", when, visible ? visible : "all that there is");
    abort();
}

static void check(const char *gpus, const char *expected) {
    setenv("NVML_EMULATOR_GPUS", gpus, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    sx_device_hide_others();
    check_visible(gpus, expected);
}

/* A database of a process with two GPUs; where the backend is missing the CPU answers. */
static void check_open(int owns_process, const char *ranks, bool expected) {
    struct stachio_options options;
    struct stachio_error error;
    struct stachio_db *db;
    stachio_options_init(&options);
    options.owns_process = owns_process;
    setenv("STACHIO_LOCAL_RANKS", ranks, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert(stachio_open(&options, &db, &error) == STACHIO_OK);
    stachio_close(db);
    assert(!getenv("CUDA_VISIBLE_DEVICES") == !expected);
}

int main(void) {
    char library[PATH_MAX];
    snprintf(library, sizeof library, "%s/libnvml_emulated.so", getenv("BUILD_DIR"));
    if (access(library, R_OK))
        return 77;
    setenv("STACHIO_NVML_LIBRARY", library, 1);
    check("9:0:0:80000 9:0:0:80000", "GPU-emulated-0");
    check("9:0:2:80000 9:0:0:80000", "GPU-emulated-0");
    check("7:0:2:9000 8:0:2:9000 9:0:0:80000", "GPU-emulated-1");
    check("9:0:0:80000", NULL);             /* there is none to hide */
    check("7:0:2:9000 6:0:2:9000", NULL);   /* none is new enough */
    check("9:0:1:80000 9:0:0:80000", NULL); /* cut into instances */
    check("9:3:0:80000 9:0:0:80000", NULL); /* one process's alone */
    check("9:0:0:100 9:0:0:80000", NULL);   /* others have its memory */
    check("", NULL);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nowhere", 1);
    check("9:0:0:80000 9:0:0:80000", NULL);
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    setenv("NVML_EMULATOR_GPUS", "9:0:0:80000 9:0:0:80000", 1);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    sx_device_hide_others();
    check_visible("chosen by the user", "1");
    unsetenv("CUDA_VISIBLE_DEVICES");
    sx_device_prepare(STACHIO_DEVICE_CPU, true);
    check_visible("no GPU is wanted", NULL);
    sx_device_prepare(STACHIO_DEVICE_CUDA, false);
    check_visible("others want GPUs", NULL);
    sx_device_prepare(STACHIO_DEVICE_CUDA, true);
    check_visible("nobody else does", "GPU-emulated-0");
    setenv("STACHIO_CUDA_LIBRARY", "/nowhere.so", 1);
    unsetenv("STACHIO_DEVICE");
    check_open(0, "1", false);
    check_open(1, "1", true);
    check_open(1, "2", false);
    setenv("STACHIO_NVML_LIBRARY", "/nowhere.so", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    sx_device_hide_others();
    check_visible("without NVML", NULL);
    return 0;
}
