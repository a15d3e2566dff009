/* stachio bench exchange. */
#include <stdio.h>

#include "bench.h"
#include "bench_report.h"
#include "message.h"

struct bench_exchange {
    struct bench_report report;
    const struct options *options;
    const int64_t *sizes;
    int n_sizes;
};

static const int64_t rank_bytes = (int64_t)256 << 20;

static void add_heads(struct bench_exchange *bench, const struct stachio_bench_exchange_result *result) {
    text_format(&bench->report.table.text, "Over %s, ranks: %d, runs: %d\n%14s %10s %10s %10s %12s %9s\n",
                result->transport, result->ranks, result->runs, "message bytes", "MB a rank", "ms",
                "GB/s a rank", "messages alone", "of alone");
    text_add(&bench->report.json.text, "{\"transport\":");
    bench_report_quote(&bench->report.json.text, result->transport);
    text_format(&bench->report.json.text, ",\"ranks\":%d,\"runs\":%d,\"results\":[", result->ranks,
                result->runs);
}

static void take_result(void *context, const struct stachio_bench_exchange_result *result) {
    struct bench_exchange *bench = context;
    const double rate = (double)result->bytes / result->seconds;
    const double raw = result->raw_seconds > 0 ? (double)result->bytes / result->raw_seconds : 0;
    if (bench->report.n_results == 0)
        add_heads(bench, result);
    text_format(&bench->report.table.text, "%14lld %10.1f %10.2f %11.2f %14.2f %7.0f %%\n",
                (long long)result->message_bytes, (double)result->bytes * 1e-6, result->seconds * 1e3,
                rate * 1e-9, raw * 1e-9, raw > 0 ? 100 * rate / raw : 0.0);
    text_format(&bench->report.json.text,
                "%s\n{\"message_bytes\":%lld,\"bytes\":%lld,\"seconds\":%.9g,\"raw_seconds\":%.9g}",
                bench->report.n_results ? "," : "", (long long)result->message_bytes,
                (long long)result->bytes, result->seconds, result->raw_seconds);
    bench_report_added(&bench->report);
}

static enum stachio_status measure(void *context, struct stachio_db *db, struct stachio_error *error) {
    struct bench_exchange *bench = context;
    const struct stachio_bench_exchange_options given = {.size_bytes = sizeof given,
                                                         .message_bytes = bench->sizes,
                                                         .n_message_bytes = bench->n_sizes,
                                                         .rank_bytes = rank_bytes,
                                                         .runs = bench->options->repeat};
    return stachio_bench_exchange(db, &given, take_result, bench, error);
}

int bench_exchange_main(int argc, char **argv, const char *help) {
    struct options options;
    int64_t sizes[BENCH_MOST_SIZES] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
    struct bench_exchange bench = {.options = &options, .sizes = sizes, .n_sizes = 4};
    int exit_status = options_read(&options, COMMAND_BENCH, argc, argv);
    if (exit_status == 0 && options.sizes)
        exit_status = bench_read_sizes(options.sizes, sizes, &bench.n_sizes);
    if (exit_status == 0 && options.help)
        exit_status = fputs(help, stdout) < 0;
    else if (exit_status == 0 && options.filter)
        exit_status = report_usage("bench exchange: '%s' is not an option", options.filter);
    else if (exit_status == 0)
        exit_status = bench_report_run(&bench.report, &options, measure, &bench);
    options_release(&options);
    return exit_status;
}
