/* How a case is run and timed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/median.h"
#include "bench/case.h"

enum { MOST_RUNS = 7, LEAST_RUNS = 3 };
static const double enough_seconds = 0.5, slow_seconds = 0.5; /* of all runs of a case; of one */

void bench_name(struct bench_case *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->name, sizeof c->name, format, arguments);
    va_end(arguments);
}

static void work_member(int member, void *context) {
    struct bench *bench = context;
    struct bench_worker *worker = &bench->workers[member];
    worker->status = bench->work(worker, bench->current);
    if (worker->status == SX_OK)
        worker->status = bench->ops->synchronise(worker->stream, "a run is over");
}

enum sx_status bench_parallel(struct bench *bench, struct bench_case *c,
                              enum sx_status (*work)(struct bench_worker *worker, struct bench_case *c)) {
    bench->work = work;
    bench->current = c;
    sx_team_run(bench->team, work_member, bench);
    for (int w = 0; w < bench->n_workers; w++) {
        struct bench_worker *worker = &bench->workers[w];
        if (worker->status == SX_OK)
            continue;
        if (w > 0)
            *bench_error(bench) = worker->stream->error;
        return worker->status;
    }
    return SX_OK;
}

enum sx_status bench_chunks(struct bench_worker *worker, struct bench_case *c) {
    const int64_t most = worker->bench->chunk_rows;
    struct sx_tensor slices[BENCH_COLUMNS] = {0};
    enum sx_status status = SX_OK;
    for (int64_t first = 0; first < worker->rows && status == SX_OK; first += most) {
        const int64_t left = worker->rows - first, rows = left < most ? left : most;
        const struct sx_batch batch = {
            .rows = rows, .rows_bound = rows, .n_columns = c->n_columns, .columns = slices};
        for (int i = 0; i < c->n_columns; i++)
            sx_tensor_slice(&worker->columns[i], first, rows, &slices[i]);
        status = c->use(worker, c, &batch);
        for (int i = 0; i < c->n_columns; i++)
            sx_tensor_release(&slices[i]);
    }
    return status;
}

enum sx_status bench_run_chunks(struct bench *bench, struct bench_case *c) {
    return bench_parallel(bench, c, bench_chunks);
}

/* ---- a case ---- */

int bench_add_column(struct bench_case *c, struct sx_type type, int64_t values, bool is_dictionary) {
    c->columns[c->n_columns] = (struct bench_column){type, values, is_dictionary};
    bench_input(&c->program, type);
    return c->n_columns++;
}

static enum sx_status prepare_worker(struct bench_worker *worker, struct bench_case *c) {
    for (int i = 0; i < c->n_columns; i++) {
        const struct bench_column *column = &c->columns[i];
        const int64_t first = worker->first + ((int64_t)(i + 1) << 40); /* no two columns are alike */
        struct sx_tensor *out = &worker->columns[i];
        if (column->values == 0)
            continue; /* c->prepare makes it */
        SX_TRY(column->is_dictionary
                   ? bench_dictionary(worker, column->values, first, worker->rows, out)
                   : bench_values(worker, column->type, column->values, first, worker->rows, out));
    }
    if (c->program.n_outputs > 0)
        SX_TRY(worker->bench->ops->eval_create(worker->stream, &c->program.program, &worker->eval));
    return c->prepare ? c->prepare(worker, c) : SX_OK;
}

static enum sx_status clear_worker(struct bench_worker *worker, struct bench_case *c) {
    (void)c;
    for (int i = 0; i < BENCH_COLUMNS; i++)
        sx_tensor_release(&worker->columns[i]);
    if (worker->eval)
        worker->bench->ops->eval_destroy(worker->stream, worker->eval);
    worker->eval = NULL;
    return SX_OK;
}

static enum sx_status run_once(struct bench *bench, struct bench_case *c, double *out_seconds) {
    enum sx_status status = c->begin ? c->begin(bench, c) : SX_OK;
    const int64_t began_ns = sx_clock_ns();
    if (status == SX_OK)
        status = c->run(bench, c);
    *out_seconds = (double)(sx_clock_ns() - began_ns) * 1e-9;
    if (c->end)
        c->end(bench, c);
    return status;
}

static enum sx_status time_runs(struct bench *bench, struct bench_case *c, struct sx_bench_result *result) {
    double seconds[MOST_RUNS], all = 0, warm_up;
    int n = 0;
    SX_TRY(run_once(bench, c, &warm_up));
    const int least = warm_up > slow_seconds ? 1 : LEAST_RUNS;
    while (n < least || (n < MOST_RUNS && all < enough_seconds)) {
        SX_TRY(run_once(bench, c, &seconds[n]));
        all += seconds[n++];
    }
    result->runs = n;
    result->seconds = sx_median(seconds, n);
    return SX_OK;
}

static bool is_wanted(const struct bench *bench, const struct bench_case *c) {
    char whole[160];
    snprintf(whole, sizeof whole, "%s %s", c->primitive, c->name);
    return !bench->options->filter || strstr(whole, bench->options->filter);
}

static void share_rows(struct bench *bench, int64_t rows) {
    for (int w = 0; w < bench->n_workers; w++) {
        bench->workers[w].first = rows * w / bench->n_workers;
        bench->workers[w].rows = rows * (w + 1) / bench->n_workers - bench->workers[w].first;
    }
}

void bench_measure(struct bench *bench, struct bench_case *c) {
    if (!is_wanted(bench, c))
        return;
    struct sx_bench_result result = {
        .primitive = c->primitive, .name = c->name, .rows = c->rows, .floor_bytes = c->bytes};
    bench_program_end(&c->program);
    share_rows(bench, c->rows);
    enum sx_status status = bench_parallel(bench, c, prepare_worker);
    if (status == SX_OK)
        status = time_runs(bench, c, &result);
    struct sx_error failed = *bench_error(bench);
    failed.status = status;
    (void)!bench_parallel(bench, c, clear_worker);
    if (status == SX_OK && !strcmp(c->primitive, "copy"))
        bench->copy_bytes_per_second = c->bytes / result.seconds;
    result.copy_bytes_per_second = bench->copy_bytes_per_second;
    result.failed = status == SX_OK ? NULL : &failed;
    bench->options->result(bench->options->context, &result);
}
