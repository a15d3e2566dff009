/* Other libraries, which are there or not. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"

static void *open_in(const char *folder, int folder_length, const char *inside, const char *name) {
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%.*s%s%s", folder_length, folder, inside, name);
    return length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

void *cuda_library_open(const char *name, const char *variable) {
    const char *wanted = getenv(variable);
    Dl_info own;
    void *handle = NULL;
    if (wanted && *wanted)
        return dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
    if (dladdr((const void *)(size_t)&cuda_library_open, &own) && own.dli_fname &&
        strrchr(own.dli_fname, '/')) {
        const int folder_length = (int)(strrchr(own.dli_fname, '/') - own.dli_fname) + 1;
        handle = open_in(own.dli_fname, folder_length, "", name);
        if (!handle)
            handle = open_in(own.dli_fname, folder_length, "stachio/", name);
    }
    return handle ? handle : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
