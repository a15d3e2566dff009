/* stachio bench join. */
#include <stdio.h>
#include <stdlib.h>

#include "bench_report.h"
#include "message.h"
#include "trace.h"

enum { ORDERS_COLUMNS = 2, LINEITEM_COLUMNS = 1 };
static const double orders_rows = 1.5e6, lineitem_rows = 6e6; /* at scale factor 1 */

struct bench_join {
    struct bench_messages base;
    struct stachio_bench_join_options given;
};

static const char *const variant_names[] = {[STACHIO_JOIN_AUTO] = "auto",
                                            [STACHIO_JOIN_BLOCKING] = "blocking",
                                            [STACHIO_JOIN_TUNED] = "tuned",
                                            [STACHIO_JOIN_CHUNKED] = "chunked",
                                            [STACHIO_JOIN_DEFERRED] = "deferred"};

static void add_heads(struct bench_join *bench, const struct stachio_bench_join_result *result) {
    struct text *table = &bench->base.report.table.text, *json = &bench->base.report.json.text;
    const struct stachio_bench_join_options *given = &bench->given;
    const char *transport = result->transport ? result->transport : "nothing";
    text_format(
        table,
        "On %s over %s, ranks: %d, threads: %d, runs: %d, %s\n%lld rows of %d columns join %lld of %d, hit "
        "ratio %g, skew %g\n",
        result->device, transport, result->ranks, result->threads, result->runs,
        variant_names[given->variant], (long long)given->build_rows, given->build_columns,
        (long long)given->probe_rows, given->probe_columns, given->hit_ratio, given->skew);
    text_format(table, "%13s %12s %10s %10s %11s %11s %10s %8s %10s\n", "message bytes", "rows", "ms",
                "least ms", "MB received", "GB/s a rank", "all-to-all", "of it", "peak MB");
    text_add(json, "{\"device\":");
    bench_report_quote(json, result->device);
    text_add(json, ",\"transport\":");
    bench_report_quote(json, transport);
    text_format(json, ",\"ranks\":%d,\"threads\":%d,\"runs\":%d,\"variant\":\"%s\"", result->ranks,
                result->threads, result->runs, variant_names[given->variant]);
    text_format(json,
                ",\"build_rows\":%lld,\"build_columns\":%d,\"probe_rows\":%lld,\"probe_columns\":%d,"
                "\"hit_ratio\":%g,\"skew\":%g,\"results\":[",
                (long long)given->build_rows, given->build_columns, (long long)given->probe_rows,
                given->probe_columns, given->hit_ratio, given->skew);
}

static double rate(int64_t bytes, double seconds) {
    return seconds > 0 ? (double)bytes / seconds : 0;
}

/* One line a sample. */
static enum stachio_status write_timeline(const char *path, const struct stachio_bench_join_result *result,
                                          struct stachio_error *error) {
    struct output out;
    enum stachio_status status = output_open(&out, path, error);
    if (status)
        return status;
    text_add(&out.text, "seconds,bytes\n");
    for (int i = 0; i < result->n_samples; i++)
        text_format(&out.text, "%.6f,%lld\n", result->samples[i].seconds,
                    (long long)result->samples[i].bytes);
    status = output_commit(&out, error);
    output_close(&out);
    return status;
}

static void take_result(void *context, const struct stachio_bench_join_result *result) {
    struct bench_join *bench = context;
    const double bus = rate(result->bytes, result->seconds),
                 all_to_all = rate(result->bytes, result->exchange_seconds);
    if (bench->base.report.n_results == 0)
        add_heads(bench, result);
    text_format(&bench->base.report.table.text,
                "%13lld %12lld %10.2f %10.2f %11.1f %11.3f %10.3f %6.0f %% %10.1f\n",
                (long long)bench->given.message_bytes, (long long)result->rows, result->seconds * 1e3,
                result->least_seconds * 1e3, (double)result->bytes * 1e-6, bus * 1e-9, all_to_all * 1e-9,
                100 * result->exchange_ratio, (double)result->peak_memory_bytes * 1e-6);
    text_format(
        &bench->base.report.json.text,
        "%s\n{\"message_bytes\":%lld,\"rows\":%lld,\"table_bytes\":%lld,\"bytes\":%lld,\"seconds\":%.9g,"
        "\"least_seconds\":%.9g,\"bus_bytes_per_second\":%.6g,\"exchange_seconds\":%.9g,"
        "\"exchange_bytes_per_second\":%.6g,\"exchange_ratio\":%.4g,\"peak_memory_bytes\":%lld}",
        bench->base.report.n_results ? "," : "", (long long)bench->given.message_bytes,
        (long long)result->rows, (long long)result->table_bytes, (long long)result->bytes, result->seconds,
        result->least_seconds, bus, result->exchange_seconds, all_to_all, result->exchange_ratio,
        (long long)result->peak_memory_bytes);
    bench_report_added(&bench->base.report);
    if (bench->base.options.join.timeline && !bench->base.report.status)
        bench->base.report.status =
            write_timeline(bench->base.options.join.timeline, result, &bench->base.report.error);
}

static struct stachio_bench_join_options join_given(const struct options *options, int ranks) {
    const struct join_options *join = &options->join;
    const int64_t times = join->weak_scaling ? ranks : 1;
    const double scale = options->scale ? atof(options->scale) : 1;
    struct stachio_bench_join_options given = {.size_bytes = sizeof given,
                                               .build_rows = join->build_rows * times,
                                               .probe_rows = join->probe_rows * times,
                                               .build_columns = join->columns,
                                               .probe_columns = join->columns,
                                               .hit_ratio = join->hit_ratio,
                                               .skew = join->skew,
                                               .variant = join->variant,
                                               .has_timeline = join->timeline != NULL,
                                               .runs = options->repeat};
    if (join->tpch) {
        given.is_tpch = 1;
        given.build_rows = (int64_t)(orders_rows * scale) * times;
        given.probe_rows = (int64_t)(lineitem_rows * scale) * times;
        given.build_columns = ORDERS_COLUMNS;
        given.probe_columns = LINEITEM_COLUMNS;
        given.hit_ratio = 1;
        given.skew = 0;
    }
    return given;
}

static enum stachio_status measure_all(struct bench_join *bench, struct stachio_db *db,
                                       struct stachio_error *error) {
    enum stachio_status status = STACHIO_OK;
    for (int i = 0; i < bench->base.n_sizes && !status; i++) {
        bench->given.message_bytes = bench->base.sizes[i];
        status = stachio_bench_join(db, &bench->given, take_result, bench, error);
    }
    return status;
}

static enum stachio_status measure(void *context, struct stachio_db *db, struct stachio_error *error) {
    struct bench_join *bench = context;
    const char *path = bench->base.options.trace;
    enum stachio_status status = STACHIO_OK;
    if (bench->base.options.join.timeline && stachio_ranks(db) == 1)
        return set_error(error, STACHIO_USAGE, "bench join: --timeline is of several ranks, which send");
    bench->given = join_given(&bench->base.options, stachio_ranks(db));
    if (path)
        status = stachio_trace_create(&bench->given.trace, error);
    if (!status)
        status = measure_all(bench, db, error);
    if (bench->given.trace) { /* whatever became of the runs */
        struct stachio_error later;
        const enum stachio_status written = trace_write(bench->given.trace, path, 0, status ? &later : error);
        status = status ? status : written;
    }
    stachio_trace_destroy(bench->given.trace);
    return status;
}

/* Options that would do nothing. */
static int check_given(const struct options *options) {
    if (options->filter)
        return report_usage("bench join: '%s' is not an option", options->filter);
    if (options->join.tpch && options->join.tables)
        return report_usage("bench join: --tpch has tables of its own, without %s", options->join.tables);
    if (options->scale && !options->join.tpch)
        return report_usage("bench join: --sf is for --tpch only");
    return 0;
}

int bench_join_main(int argc, char **argv, const char *help) {
    struct bench_join bench = {.base = {.n_sizes = 1}}; /* 0: what queries use */
    return bench_messages_main(&bench.base, COMMAND_BENCH_JOIN, argc, argv, help, check_given, measure);
}
