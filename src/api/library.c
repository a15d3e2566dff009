#include "api/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The folder of the library, or of the program, that holds this code. */
static bool own_folder(char folder[PATH_MAX]) {
    Dl_info info;
    if (!dladdr((const void *)(size_t)&sx_library_load, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, folder))
        return false;
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    return slash != NULL;
}

const char *sx_environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

int64_t sx_environment_integer(const char *name, int64_t usual) {
    const char *value = sx_environment(name);
    return value ? strtoll(value, NULL, 10) : usual;
}

void *sx_library_load(const char *name, const char *variable, int flags, char *problem,
                      size_t problem_bytes) {
    const char *named = sx_environment(variable);
    char folder[PATH_MAX], path[PATH_MAX + 64];
    if (named)
        snprintf(path, sizeof path, "%s", named);
    else if (own_folder(folder))
        snprintf(path, sizeof path, "%s/%s", folder, name);
    else
        snprintf(path, sizeof path, "%s", name);
    void *library = dlopen(path, flags);
    if (!library)
        snprintf(problem, problem_bytes, "%s", dlerror());
    return library;
}
