/* stachio bench scan. */
#include <stdio.h>

#include "bench.h"
#include "message.h"

struct bench_scan {
    struct output table;
    struct output json;
    bool has_json;
    int n_results;
    struct stachio_error error; /* of writing */
    enum stachio_status status;
};

static void add_heads(struct bench_scan *bench, const struct stachio_bench_scan_result *result) {
    text_format(&bench->table.text, "On %s, files: %d, runs: %d\n%-5s %7s  %-16s %10s %10s %8s %10s %8s\n",
                result->device, result->files, result->runs, "state", "threads", "way", "MB", "ms", "GB/s",
                "raw GB/s", "of raw");
    text_add(&bench->json.text, "{\"device\":");
    bench_add_quoted(&bench->json.text, result->device);
    text_format(&bench->json.text, ",\"files\":%d,\"runs\":%d,\"results\":[", result->files, result->runs);
}

static void take_result(void *context, const struct stachio_bench_scan_result *result) {
    struct bench_scan *bench = context;
    const char *state = result->is_warm ? "warm" : "cold";
    const double rate = (double)result->bytes / result->seconds;
    if (bench->n_results == 0)
        add_heads(bench, result);
    text_format(&bench->table.text, "%-5s %7d  %-16s %10.1f %10.2f %8.2f %10.2f %6.0f %%\n", state,
                result->threads, result->name, (double)result->bytes * 1e-6, result->seconds * 1e3,
                rate * 1e-9, result->bound_bytes_per_second * 1e-9,
                100 * rate / result->bound_bytes_per_second);
    text_format(&bench->json.text,
                "%s\n{\"state\":\"%s\",\"threads\":%d,\"way\":", bench->n_results ? "," : "", state,
                result->threads);
    bench_add_quoted(&bench->json.text, result->name);
    text_format(&bench->json.text, ",\"bytes\":%lld,\"seconds\":%.9g,\"raw_bytes_per_second\":%.6g}",
                (long long)result->bytes, result->seconds, result->bound_bytes_per_second);
    bench->n_results++;
    if (!bench->status)
        bench->status = output_flush(&bench->table, &bench->error);
}

static enum stachio_status measure(struct bench_scan *bench, struct stachio_db *db,
                                   const struct options *options, struct stachio_error *error) {
    const struct stachio_bench_scan_options given = {.size_bytes = sizeof given,
                                                     .pattern = options->filter,
                                                     .threads = options->db.threads,
                                                     .runs = options->repeat};
    enum stachio_status status = stachio_bench_scan(db, &given, take_result, bench, error);
    text_add(&bench->json.text, "\n]}\n");
    if (!status && bench->status) {
        *error = bench->error;
        status = bench->status;
    }
    if (!status)
        status = output_commit(&bench->table, error);
    if (!status && bench->has_json)
        status = output_commit(&bench->json, error);
    return status;
}

static int run(const struct options *options) {
    struct bench_scan bench = {.has_json = options->json != NULL};
    struct stachio_error error = {0};
    struct stachio_db *db = NULL;
    enum stachio_status status = stachio_open(&options->db, &db, &error);
    if (!status)
        status = output_open(&bench.table, NULL, &error);
    if (!status && bench.has_json)
        status = output_open(&bench.json, options->json, &error);
    if (!status)
        status = measure(&bench, db, options, &error);
    output_close(&bench.table);
    output_close(&bench.json);
    stachio_close(db);
    return status ? report_error(&error) : 0;
}

int bench_scan_main(int argc, char **argv, const char *help) {
    struct options options;
    int exit_status = options_read(&options, COMMAND_BENCH, argc, argv);
    if (exit_status == 0 && options.help)
        exit_status = fputs(help, stdout) < 0;
    else if (exit_status == 0 && options.sizes)
        exit_status = report_usage("bench scan: there are no --rows to choose");
    else if (exit_status == 0 && !options.filter)
        exit_status = report_usage("bench scan: name a file, a directory or a glob");
    else if (exit_status == 0)
        exit_status = run(&options);
    options_release(&options);
    return exit_status;
}
