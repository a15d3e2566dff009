/* conformance [FAMILY]...: runs the families (all by default) on every registered backend. Exit status 1 when
 * a check failed. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "conformance.h"

#define FAMILY_LIST(X) X(eval) X(hash) X(group) X(join) X(move) X(sort) X(decode)

static const struct {
    const char *name;
    void (*run)(struct conformance *c);
} families[] = {
#define FAMILY_ROW(name) {#name, conform_##name},
    FAMILY_LIST(FAMILY_ROW)
#undef FAMILY_ROW
};
enum { N_FAMILIES = sizeof families / sizeof families[0] };

static const struct sx_backend *const backends[] = {&sx_cpu_backend};
enum { N_BACKENDS = sizeof backends / sizeof backends[0] };

static bool is_wanted(const char *name, int n_wanted, char **wanted) {
    for (int i = 0; i < n_wanted; i++)
        if (strcmp(name, wanted[i]) == 0)
            return true;
    return n_wanted == 0;
}

/* Number of failures. */
static int run_family(const struct sx_backend *backend, int family) {
    struct conformance c = {.backend = backend, .random_state = 42};
    if (sx_pool_create(0, &c.pool, &c.error) != SX_OK) {
        printf("%s\n", c.error.text);
        return 1;
    }
    if (backend->ops.stream_create(backend, c.pool, NULL, &c.stream, &c.error) == SX_OK) {
        families[family].run(&c);
        backend->ops.stream_destroy(c.stream);
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

int main(int argc, char **argv) {
    int failures = 0;
    for (int b = 0; b < N_BACKENDS; b++) {
        struct sx_error error = {0};
        if (sx_backend_check(backends[b], &error) != SX_OK) {
            printf("%s: %s\n", backends[b]->name, error.text);
            failures++;
            continue;
        }
        for (int f = 0; f < N_FAMILIES; f++)
            if (is_wanted(families[f].name, argc - 1, argv + 1))
                failures += run_family(backends[b], f);
    }
    return failures > 0;
}
