/* conformance [--load LIBRARY] [FAMILY]...: runs the families (all by default) on the CPU backend, or on the
 * one that LIBRARY holds. Exit status 1 when a check failed, 77 when LIBRARY finds no device. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cuda/load.h"
#include "conformance.h"

#define FAMILY_LIST(X) \
    X(eval) X(hash) X(bloom) X(group) X(join) X(move) X(rows) X(sort) X(decode) X(io) X(inflate)

static const struct {
    const char *name;
    void (*run)(struct conformance *c);
} families[] = {
#define FAMILY_ROW(name) {#name, conform_##name},
    FAMILY_LIST(FAMILY_ROW)
#undef FAMILY_ROW
};
enum { N_FAMILIES = sizeof families / sizeof families[0] };

static bool is_wanted(const char *name, int n_wanted, char **wanted) {
    for (int i = 0; i < n_wanted; i++)
        if (strcmp(name, wanted[i]) == 0)
            return true;
    return n_wanted == 0;
}

/* Number of failures. */
static int run_family(const struct sx_backend *backend, void *library, int family) {
    struct conformance c = {.backend = backend, .library = library, .random_state = 42};
    enum sx_status status = sx_pool_create(0, &c.pool, &c.error);
    if (status == SX_OK && backend->io_pool_create)
        status = backend->io_pool_create(backend, c.pool, &c.io_pool, &c.error);
    if (status != SX_OK) {
        printf("%s\n", c.error.text);
        sx_pool_destroy(c.pool);
        return 1;
    }
    if (backend->ops.stream_create(backend, c.pool, NULL, &c.stream, &c.error) == SX_OK) {
        families[family].run(&c);
        backend->ops.stream_destroy(c.stream);
        sx_pool_destroy(c.io_pool);
        size_t left = sx_pool_usage(c.pool).used_bytes;
        CONFORM(&c, left == 0, "%zu bytes were not given back", left);
    } else {
        CONFORM(&c, false, "no stream: %s", c.error.text);
    }
    sx_pool_destroy(c.pool);
    printf("%s %s: %d checks, %d failed\n", backend->name, families[family].name, c.checks, c.failures);
    fflush(stdout);
    return c.failures;
}

/* Skipped where there is no device. */
enum { EXIT_SKIPPED = 77 };

static int run_backend(const struct sx_backend *backend, void *library, int n_wanted, char **wanted) {
    struct sx_error error = {0};
    int failures = 0;
    if (sx_backend_check(backend, &error) != SX_OK) {
        printf("%s: %s\n", backend->name, error.text);
        return 1;
    }
    for (int f = 0; f < N_FAMILIES; f++)
        if (is_wanted(families[f].name, n_wanted, wanted))
            failures += run_family(backend, library, f);
    return failures;
}

/* A backend in a library of its own; its exit status. */
static int run_loaded(const char *path, int n_wanted, char **wanted) {
    struct sx_error error = {0};
    const struct sx_backend *backend;
    const char *name;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    sx_cuda_open_function open_device = (sx_cuda_open_function)(uintptr_t)dlsym(library, "sx_cuda_open");
    sx_cuda_close_function close_device = (sx_cuda_close_function)(uintptr_t)dlsym(library, "sx_cuda_close");
    if (!open_device || !close_device) {
        printf("%s: not a backend\n", path);
        return 1;
    }
    if (open_device(NULL, 0, 1, &backend, &name, &error) != SX_OK) {
        printf("skipped: %s\n", error.text);
        return EXIT_SKIPPED;
    }
    printf("device: %s\n", name);
    int failures = run_backend(backend, library, n_wanted, wanted);
    close_device(backend);
    return failures > 0;
}

int main(int argc, char **argv) {
    const char *most = getenv("CONFORMANCE_MAX_ROWS");
    const char *part = getenv("CONFORMANCE_PART");
    if (most)
        conformance_limit_rows(atoll(most));
    if (part && !conformance_choose_part(part)) {
        printf("CONFORMANCE_PART: '%s' is not like 0/8\n", part);
        return 1;
    }
    if (argc > 2 && strcmp(argv[1], "--load") == 0)
        return run_loaded(argv[2], argc - 3, argv + 3);
    return run_backend(&sx_cpu_backend, NULL, argc - 1, argv + 1) > 0;
}
