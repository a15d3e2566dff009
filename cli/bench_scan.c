/* stachio bench scan. */
#include <stdio.h>

#include "bench.h"
#include "bench_report.h"
#include "message.h"

struct bench_scan {
    struct bench_report report;
    const struct options *options;
};

static void add_heads(struct bench_scan *bench, const struct stachio_bench_scan_result *result) {
    text_format(&bench->report.table.text,
                "On %s, files: %d, runs: %d\n%-5s %7s  %-16s %10s %10s %8s %10s %8s %12s\n", result->device,
                result->files, result->runs, "state", "threads", "way", "MB", "ms", "GB/s", "raw GB/s",
                "of raw", "values GB/s");
    text_add(&bench->report.json.text, "{\"device\":");
    bench_report_quote(&bench->report.json.text, result->device);
    text_format(&bench->report.json.text, ",\"files\":%d,\"runs\":%d,\"results\":[", result->files,
                result->runs);
}

static void take_result(void *context, const struct stachio_bench_scan_result *result) {
    struct bench_scan *bench = context;
    const char *state = result->is_warm ? "warm" : "cold";
    const double rate = (double)result->bytes / result->seconds;
    if (bench->report.n_results == 0)
        add_heads(bench, result);
    text_format(&bench->report.table.text, "%-5s %7d  %-16s %10.1f %10.2f %8.2f %10.2f %6.0f %%", state,
                result->threads, result->name, (double)result->bytes * 1e-6, result->seconds * 1e3,
                rate * 1e-9, result->bound_bytes_per_second * 1e-9,
                100 * rate / result->bound_bytes_per_second);
    if (result->value_bytes > 0)
        text_format(&bench->report.table.text, " %12.2f",
                    (double)result->value_bytes / result->seconds * 1e-9);
    text_format(&bench->report.table.text, "\n");
    text_format(&bench->report.json.text,
                "%s\n{\"state\":\"%s\",\"threads\":%d,\"way\":", bench->report.n_results ? "," : "", state,
                result->threads);
    bench_report_quote(&bench->report.json.text, result->name);
    text_format(&bench->report.json.text,
                ",\"bytes\":%lld,\"seconds\":%.9g,\"raw_bytes_per_second\":%.6g,\"t_min_seconds\":%.6g,"
                "\"value_bytes\":%lld}",
                (long long)result->bytes, result->seconds, result->bound_bytes_per_second,
                (double)result->bytes / result->bound_bytes_per_second, (long long)result->value_bytes);
    bench_report_added(&bench->report);
}

static enum stachio_status measure(void *context, struct stachio_db *db, struct stachio_error *error) {
    struct bench_scan *bench = context;
    const struct stachio_bench_scan_options given = {.size_bytes = sizeof given,
                                                     .pattern = bench->options->filter,
                                                     .threads = bench->options->db.threads,
                                                     .runs = bench->options->repeat};
    return stachio_bench_scan(db, &given, take_result, bench, error);
}

int bench_scan_main(int argc, char **argv, const char *help) {
    struct options options;
    struct bench_scan bench = {.options = &options};
    int exit_status = options_read(&options, COMMAND_BENCH_SCAN, argc, argv);
    if (exit_status == 0 && options.help)
        exit_status = fputs(help, stdout) < 0;
    else if (exit_status == 0 && !options.filter)
        exit_status = report_usage("bench scan: name a file, a directory or a glob");
    else if (exit_status == 0)
        exit_status = bench_report_run(&bench.report, &options, measure, &bench);
    options_release(&options);
    return exit_status;
}
