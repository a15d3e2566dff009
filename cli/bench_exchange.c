/* stachio bench exchange. */
#include <stdio.h>

#include "bench_report.h"
#include "message.h"

/* Seed 002, figure 7: an exchange alone, then of rows that are partitioned, then of both sides of a join. */
struct steps {
    double partitioned, joined; /* bytes per second that a rank receives */
};

struct bench_exchange {
    struct bench_messages base;
    struct stachio_bench_exchange_result alone; /* of the size in work */
    double bytes_per_second;                    /* of the step in work */
};

enum { STEP_COLUMNS = 4 };
static const int64_t rank_bytes = (int64_t)64 << 20, step_rank_bytes = (int64_t)16 << 20;

static void add_heads(struct bench_exchange *bench) {
    const struct stachio_bench_exchange_result *result = &bench->alone;
    struct text *table = &bench->base.report.table.text, *json = &bench->base.report.json.text;
    text_format(table, "Over %s, ranks: %d, runs: %d\n%14s %10s %10s %10s %11s %14s %9s %9s",
                result->transport, result->ranks, result->runs, "message bytes", "MB a rank", "ms",
                "least ms", "GB/s a rank", "messages alone", "of alone", "processor");
    text_add(table, bench->base.options.steps ? " +partitioning      +join\n" : "\n");
    text_add(json, "{\"transport\":");
    bench_report_quote(json, result->transport);
    text_format(json, ",\"ranks\":%d,\"runs\":%d,\"results\":[", result->ranks, result->runs);
}

/* Rates and the ratio are of the least times: other programs on the processors only ever add to them. */
static void add_row(struct bench_exchange *bench, const struct steps *steps) {
    const struct stachio_bench_exchange_result *result = &bench->alone;
    struct text *table = &bench->base.report.table.text, *json = &bench->base.report.json.text;
    const double bytes = (double)result->bytes, rate = bytes / result->least_seconds,
                 raw = result->raw_least_seconds > 0 ? bytes / result->raw_least_seconds : 0;
    text_format(table, "%14lld %10.1f %10.2f %10.2f %11.2f %14.2f %7.0f %% %7.0f %%",
                (long long)result->message_bytes, bytes * 1e-6, result->seconds * 1e3,
                result->least_seconds * 1e3, rate * 1e-9, raw * 1e-9, raw > 0 ? 100 * rate / raw : 0.0,
                100 * result->raw_processor_seconds / result->processor_seconds);
    text_format(json,
                "%s\n{\"message_bytes\":%lld,\"bytes\":%lld,\"seconds\":%.9g,\"raw_seconds\":%.9g,"
                "\"least_seconds\":%.9g,\"raw_least_seconds\":%.9g,\"processor_seconds\":%.9g,\"raw_"
                "processor_seconds\":%.9g",
                bench->base.report.n_results ? "," : "", (long long)result->message_bytes,
                (long long)result->bytes, result->seconds, result->raw_seconds, result->least_seconds,
                result->raw_least_seconds, result->processor_seconds, result->raw_processor_seconds);
    if (bench->base.options.steps) {
        text_format(table, " %13.2f %10.2f", steps->partitioned * 1e-9, steps->joined * 1e-9);
        text_format(json, ",\"partitioned_bytes_per_second\":%.6g,\"joined_bytes_per_second\":%.6g",
                    steps->partitioned, steps->joined);
    }
    text_add(table, "\n");
    text_add(json, "}");
    bench_report_added(&bench->base.report);
}

static void take_alone(void *context, const struct stachio_bench_exchange_result *result) {
    struct bench_exchange *bench = context;
    bench->alone = *result;
}

static void take_step(void *context, const struct stachio_bench_join_result *result) {
    struct bench_exchange *bench = context;
    bench->bytes_per_second = (double)result->bytes / result->least_seconds;
}

static enum stachio_status measure_step(struct bench_exchange *bench, struct stachio_db *db, bool joins,
                                        double *out_bytes_per_second, struct stachio_error *error) {
    const int64_t ranks = stachio_ranks(db), row_bytes = STEP_COLUMNS * 8,
                  rows = step_rank_bytes * ranks * ranks / row_bytes;
    const struct stachio_bench_join_options given = {.size_bytes = sizeof given,
                                                     .build_rows = joins ? rows / 4 : 0,
                                                     .probe_rows = joins ? rows - rows / 4 : rows,
                                                     .build_columns = STEP_COLUMNS,
                                                     .probe_columns = STEP_COLUMNS,
                                                     .hit_ratio = 0.5,
                                                     .is_shuffle = !joins,
                                                     .message_bytes = bench->alone.message_bytes,
                                                     .runs = bench->base.options.repeat};
    enum stachio_status status = stachio_bench_join(db, &given, take_step, bench, error);
    *out_bytes_per_second = bench->bytes_per_second;
    return status;
}

static enum stachio_status measure_size(struct bench_exchange *bench, struct stachio_db *db,
                                        const int64_t *size, struct stachio_error *error) {
    const struct stachio_bench_exchange_options given = {.size_bytes = sizeof given,
                                                         .message_bytes = size,
                                                         .n_message_bytes = 1,
                                                         .rank_bytes = rank_bytes,
                                                         .runs = bench->base.options.repeat};
    struct steps steps = {0};
    enum stachio_status status = stachio_bench_exchange(db, &given, take_alone, bench, error);
    if (!status && bench->base.options.steps)
        status = measure_step(bench, db, false, &steps.partitioned, error);
    if (!status && bench->base.options.steps)
        status = measure_step(bench, db, true, &steps.joined, error);
    if (status)
        return status;
    if (bench->base.report.n_results == 0)
        add_heads(bench);
    add_row(bench, &steps);
    return STACHIO_OK;
}

static enum stachio_status measure(void *context, struct stachio_db *db, struct stachio_error *error) {
    struct bench_exchange *bench = context;
    enum stachio_status status = STACHIO_OK;
    for (int i = 0; i < bench->base.n_sizes && !status; i++)
        status = measure_size(bench, db, &bench->base.sizes[i], error);
    return status;
}

static int check_given(const struct options *options) {
    return options->filter ? report_usage("bench exchange: '%s' is not an option", options->filter) : 0;
}

int bench_exchange_main(int argc, char **argv, const char *help) {
    struct bench_exchange bench = {.base = {.sizes = {64 << 10, 256 << 10, 1 << 20, 4 << 20}, .n_sizes = 4}};
    return bench_messages_main(&bench.base, COMMAND_BENCH_EXCHANGE, argc, argv, help, check_given, measure);
}
