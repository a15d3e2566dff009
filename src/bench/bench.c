#include "bench/bench.h"

#include <stdlib.h>

#include "bench/case.h"

/* The copy's size does not follow the others': it is what the memory can do, without caches. */
static const int64_t host_copy_rows = 16 << 20, device_copy_rows = 64 << 20;

static void destroy(struct bench *bench) {
    for (int w = 0; bench->workers && w < bench->n_workers; w++)
        if (bench->workers[w].stream)
            bench->ops->stream_destroy(bench->workers[w].stream);
    sx_team_destroy(bench->team);
    free(bench->workers);
}

static enum sx_status create(struct bench *bench, int n_workers, struct sx_error *error) {
    const struct sx_bench_options *options = bench->options;
    bench->ops = &options->backend->ops;
    bench->chunk_rows = options->backend->traits.chunk_rows;
    bench->is_host = options->backend->traits.is_host;
    bench->n_workers = n_workers;
    bench->workers = calloc((size_t)n_workers, sizeof *bench->workers);
    if (!bench->workers)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for workers");
    SX_TRY(sx_team_create(n_workers, &bench->team, error));
    for (int w = 0; w < bench->n_workers; w++) {
        bench->workers[w].bench = bench;
        bench->workers[w].index = w;
        SX_TRY(bench->ops->stream_create(options->backend, options->pool, NULL, &bench->workers[w].stream,
                                         error));
    }
    return SX_OK;
}

/* The filter is for the others: their shares need this one. */
static void measure_copy(struct bench *bench) {
    const struct sx_bench_options *options = bench->options;
    struct sx_bench_options all = *options;
    all.filter = NULL;
    bench->options = &all;
    const int64_t copy_rows = bench->is_host ? host_copy_rows : device_copy_rows;
    int64_t largest = 0;
    for (int i = 0; i < options->n_rows; i++)
        largest = options->rows[i] > largest ? options->rows[i] : largest;
    bench_copies(bench, largest < copy_rows / 16 ? largest : copy_rows);
    bench->options = options;
}

enum sx_status sx_bench_primitives(const struct sx_bench_options *options, int n_workers,
                                   struct sx_error *error) {
    static void (*const families[])(struct bench *, int64_t) = {
        bench_expressions, bench_moves, bench_hashes, bench_rows, bench_groups, bench_joins, bench_sorts,
    };
    struct bench bench = {.options = options};
    enum sx_status status = create(&bench, n_workers, error);
    if (status == SX_OK)
        measure_copy(&bench);
    for (int i = 0; status == SX_OK && i < options->n_rows; i++)
        for (size_t f = 0; f < sizeof families / sizeof *families; f++)
            families[f](&bench, options->rows[i]);
    destroy(&bench);
    return status;
}
