#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/huge_pages.h"
#include "bench/bench.h"

enum { STEP_BYTES = 4 << 20, N_PASSES = 2 };
static const int64_t most_fill_ns = 100000000;

struct member {
    char *bytes;
    size_t share_bytes;
    size_t filled_bytes;
};

struct pass {
    struct member *members;
    int64_t fill_until_ns;
    atomic_uint_fast64_t sum; /* so that reading has a purpose */
};

/* A page that was never written takes no memory. Fresh ones may take long, so it ends in time. */
static void fill(int index, void *context) {
    const struct pass *pass = context;
    struct member *member = &pass->members[index];
    while (member->filled_bytes < member->share_bytes &&
           (member->filled_bytes == 0 || sx_clock_ns() < pass->fill_until_ns)) {
        const size_t left = member->share_bytes - member->filled_bytes;
        const size_t bytes = left < STEP_BYTES ? left : STEP_BYTES;
        memset(member->bytes + member->filled_bytes, 1, bytes);
        member->filled_bytes += bytes;
    }
}

static void read_words(int index, void *context) {
    struct pass *pass = context;
    const struct member *member = &pass->members[index];
    const uint64_t *words = (const uint64_t *)(const void *)member->bytes;
    const size_t n_words = member->filled_bytes / sizeof *words;
    uint64_t sum = 0;
    for (size_t i = 0; i < n_words; i++)
        sum += words[i];
    atomic_fetch_add(&pass->sum, sum);
}

static double measure(struct sx_team *team, struct pass *pass) {
    size_t bytes = 0;
    int64_t best_ns = INT64_MAX;
    pass->fill_until_ns = sx_clock_ns() + most_fill_ns;
    sx_team_run(team, fill, pass);
    for (int m = 0; m < sx_team_members(team); m++)
        bytes += pass->members[m].filled_bytes;
    for (int i = 0; i < N_PASSES; i++) {
        const int64_t began_ns = sx_clock_ns();
        sx_team_run(team, read_words, pass);
        const int64_t took_ns = sx_clock_ns() - began_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    return (double)bytes / ((double)(best_ns > 0 ? best_ns : 1) * 1e-9);
}

enum sx_status sx_bench_memory_rate(struct sx_team *team, size_t size_bytes, double *out_bytes_per_second,
                                    struct sx_error *error) {
    const size_t n_members = (size_t)sx_team_members(team);
    const size_t share_bytes = (size_bytes / n_members + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    struct pass pass = {.members = calloc(n_members, sizeof *pass.members)};
    char *memory = sx_huge_pages_map(n_members * share_bytes);
    enum sx_status status = SX_OK;
    if (!pass.members || !memory) {
        status = sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: %zu bytes to measure memory with",
                              size_bytes);
    } else {
        for (size_t m = 0; m < n_members; m++)
            pass.members[m] = (struct member){memory + m * share_bytes, share_bytes, 0};
        *out_bytes_per_second = measure(team, &pass);
    }
    if (memory)
        sx_huge_pages_unmap(memory, n_members * share_bytes);
    free(pass.members);
    return status;
}
