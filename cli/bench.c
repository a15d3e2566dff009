#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report.h"
#include "message.h"

enum { CASE_WIDTH = 44 };

struct bench {
    struct bench_report report;
    const struct options *options;
    const int64_t *rows;
    int n_rows;
    int n_failed;
};

/* ---- results ---- */

static void add_json(struct bench *bench, const struct stachio_bench_result *result) {
    struct text *out = &bench->report.json.text;
    text_format(out, "%s\n{\"primitive\":\"%s\",\"case\":", bench->report.n_results ? "," : "",
                result->primitive);
    bench_report_quote(out, result->name);
    text_format(out, ",\"rows\":%lld,\"threads\":%d,\"runs\":%d", (long long)result->rows, result->threads,
                result->runs);
    if (result->failure) {
        text_add(out, ",\"failure\":");
        bench_report_quote(out, result->failure);
    } else {
        text_format(out, ",\"seconds\":%.9g,\"floor_bytes\":%.0f,\"copy_bytes_per_second\":%.6g",
                    result->seconds, result->floor_bytes, result->copy_bytes_per_second);
    }
    text_add_char(out, '}');
}

static void add_row(struct bench *bench, const struct stachio_bench_result *result) {
    struct text *out = &bench->report.table.text;
    text_format(out, "%-14s %-*s %11lld", result->primitive, CASE_WIDTH, result->name,
                (long long)result->rows);
    if (result->failure) {
        text_format(out, "  %s\n", result->failure);
        return;
    }
    const double rate = result->floor_bytes / result->seconds;
    text_format(out, " %11.3f %10.1f %9.2f %5.0f %%\n", result->seconds * 1e3,
                (double)result->rows / result->seconds * 1e-6, rate * 1e-9,
                result->copy_bytes_per_second > 0 ? 100 * rate / result->copy_bytes_per_second : 0.0);
}

static void add_heads(struct bench *bench, const struct stachio_bench_result *result) {
    text_format(&bench->report.table.text, "On %s, threads: %d\n%-14s %-*s %11s %11s %10s %9s %7s\n",
                result->device, result->threads, "primitive", CASE_WIDTH, "case", "rows", "ms", "Mrows/s",
                "GB/s", "of copy");
    text_add(&bench->report.json.text, "{\"device\":");
    bench_report_quote(&bench->report.json.text, result->device);
    text_add(&bench->report.json.text, ",\"results\":[");
}

static void take_result(void *context, const struct stachio_bench_result *result) {
    struct bench *bench = context;
    if (bench->report.n_results == 0)
        add_heads(bench, result);
    add_row(bench, result);
    add_json(bench, result);
    bench->n_failed += result->failure != NULL;
    bench_report_added(&bench->report);
}

/* ---- the command ---- */

int bench_read_sizes(const char *text, int64_t *out_sizes, int *out_n) {
    for (*out_n = 0; *out_n < BENCH_MOST_SIZES; text++) {
        char *end;
        errno = 0;
        const long long rows = strtoll(text, &end, 10);
        if (errno || end == text || (*end && *end != ',') || rows < 1024)
            break;
        out_sizes[(*out_n)++] = rows;
        text = end;
        if (!*end)
            return 0;
    }
    return report_usage("--rows, --sizes: '%s' is not a list of numbers from 1024 such as 1048576,16777216",
                        text);
}

static enum stachio_status measure(void *context, struct stachio_db *db, struct stachio_error *error) {
    struct bench *bench = context;
    const struct stachio_bench_options given = {.size_bytes = sizeof given,
                                                .rows = bench->rows,
                                                .n_rows = bench->n_rows,
                                                .filter = bench->options->filter,
                                                .threads = bench->options->db.threads};
    return stachio_bench_primitives(db, &given, take_result, bench, error);
}

static int run(const struct options *options, const int64_t *rows, int n_rows) {
    struct bench bench = {.options = options, .rows = rows, .n_rows = n_rows};
    struct stachio_error error = {0};
    const int exit_status = bench_report_run(&bench.report, options, measure, &bench);
    if (exit_status != 0 || bench.n_failed == 0)
        return exit_status;
    (void)set_error(&error, STACHIO_OUT_OF_MEMORY, "cases that failed: %d", bench.n_failed);
    return report_error(&error);
}

int bench_main(int argc, char **argv, const char *help) {
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "scan") == 0)
        return bench_scan_main(argc - 1, argv + 1, help);
    if (strcmp(name, "exchange") == 0)
        return bench_exchange_main(argc - 1, argv + 1, help);
    if (strcmp(name, "join") == 0)
        return bench_join_main(argc - 1, argv + 1, help);
    if (strcmp(name, "primitives") != 0)
        return report_usage("bench: '%s' is none of primitives, scan, exchange, join", name);
    struct options options;
    int64_t rows[BENCH_MOST_SIZES] = {1 << 20, 16 << 20};
    int n_rows = 2;
    int exit_status = options_read(&options, COMMAND_BENCH_PRIMITIVES, argc - 1, argv + 1);
    if (exit_status == 0 && options.sizes)
        exit_status = bench_read_sizes(options.sizes, rows, &n_rows);
    if (exit_status == 0)
        exit_status = options.help ? fputs(help, stdout) < 0 : run(&options, rows, n_rows);
    options_release(&options);
    return exit_status;
}
