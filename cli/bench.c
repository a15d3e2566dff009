#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

enum { MOST_SIZES = 16, CASE_WIDTH = 44 };

struct bench {
    struct output table;
    struct output json;
    bool has_json;
    int n_results;
    int n_failed;
    struct stachio_error error; /* of writing */
    enum stachio_status status;
};

/* ---- results ---- */

void bench_add_quoted(struct text *out, const char *text) {
    text_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            text_add_char(out, '\\');
        text_add_char(out, (unsigned char)*text < 0x20 ? ' ' : *text);
    }
    text_add_char(out, '"');
}

static void add_json(struct bench *bench, const struct stachio_bench_result *result) {
    struct text *out = &bench->json.text;
    text_format(out, "%s\n{\"primitive\":\"%s\",\"case\":", bench->n_results ? "," : "", result->primitive);
    bench_add_quoted(out, result->name);
    text_format(out, ",\"rows\":%lld,\"threads\":%d,\"runs\":%d", (long long)result->rows, result->threads,
                result->runs);
    if (result->failure) {
        text_add(out, ",\"failure\":");
        bench_add_quoted(out, result->failure);
    } else {
        text_format(out, ",\"seconds\":%.9g,\"floor_bytes\":%.0f,\"copy_bytes_per_second\":%.6g",
                    result->seconds, result->floor_bytes, result->copy_bytes_per_second);
    }
    text_add_char(out, '}');
}

static void add_row(struct bench *bench, const struct stachio_bench_result *result) {
    struct text *out = &bench->table.text;
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
    text_format(&bench->table.text, "On %s, threads: %d\n%-14s %-*s %11s %11s %10s %9s %7s\n", result->device,
                result->threads, "primitive", CASE_WIDTH, "case", "rows", "ms", "Mrows/s", "GB/s", "of copy");
    text_add(&bench->json.text, "{\"device\":");
    bench_add_quoted(&bench->json.text, result->device);
    text_add(&bench->json.text, ",\"results\":[");
}

static void take_result(void *context, const struct stachio_bench_result *result) {
    struct bench *bench = context;
    if (bench->n_results == 0)
        add_heads(bench, result);
    add_row(bench, result);
    add_json(bench, result);
    bench->n_results++;
    bench->n_failed += result->failure != NULL;
    if (!bench->status)
        bench->status = output_flush(&bench->table, &bench->error);
}

/* ---- the command ---- */

/* "1048576,16777216" */
static int read_sizes(const char *text, int64_t *out_rows, int *out_n) {
    for (*out_n = 0; *out_n < MOST_SIZES; text++) {
        char *end;
        errno = 0;
        const long long rows = strtoll(text, &end, 10);
        if (errno || end == text || (*end && *end != ',') || rows < 1024)
            break;
        out_rows[(*out_n)++] = rows;
        text = end;
        if (!*end)
            return 0;
    }
    return report_usage("--rows: '%s' is not a list of numbers from 1024 such as 1048576,16777216", text);
}

static enum stachio_status measure(struct bench *bench, struct stachio_db *db, const struct options *options,
                                   const int64_t *rows, int n_rows, struct stachio_error *error) {
    const struct stachio_bench_options given = {.size_bytes = sizeof given,
                                                .rows = rows,
                                                .n_rows = n_rows,
                                                .filter = options->filter,
                                                .threads = options->db.threads};
    enum stachio_status status = stachio_bench_primitives(db, &given, take_result, bench, error);
    text_add(&bench->json.text, "\n]}\n");
    return status;
}

static enum stachio_status finish(struct bench *bench, enum stachio_status status,
                                  struct stachio_error *error) {
    if (!status && bench->status) {
        *error = bench->error;
        status = bench->status;
    }
    if (!status)
        status = output_commit(&bench->table, error);
    if (!status && bench->has_json)
        status = output_commit(&bench->json, error);
    if (!status && bench->n_failed > 0)
        status = set_error(error, STACHIO_OUT_OF_MEMORY, "cases that failed: %d", bench->n_failed);
    return status;
}

static int run(const struct options *options, const int64_t *rows, int n_rows) {
    struct bench bench = {.has_json = options->json != NULL};
    struct stachio_error error = {0};
    struct stachio_db *db = NULL;
    enum stachio_status status = stachio_open(&options->db, &db, &error);
    if (!status)
        status = output_open(&bench.table, NULL, &error);
    if (!status && bench.has_json)
        status = output_open(&bench.json, options->json, &error);
    if (!status)
        status = finish(&bench, measure(&bench, db, options, rows, n_rows, &error), &error);
    output_close(&bench.table);
    output_close(&bench.json);
    stachio_close(db);
    return status ? report_error(&error) : 0;
}

int bench_main(int argc, char **argv, const char *help) {
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "scan") == 0)
        return bench_scan_main(argc - 1, argv + 1, help);
    if (strcmp(name, "primitives") != 0)
        return report_usage("bench: '%s' is none of primitives, scan", name);
    struct options options;
    int64_t rows[MOST_SIZES] = {1 << 20, 16 << 20};
    int n_rows = 2;
    int exit_status = options_read(&options, COMMAND_BENCH, argc - 1, argv + 1);
    if (exit_status == 0 && options.sizes)
        exit_status = read_sizes(options.sizes, rows, &n_rows);
    if (exit_status == 0)
        exit_status = options.help ? fputs(help, stdout) < 0 : run(&options, rows, n_rows);
    options_release(&options);
    return exit_status;
}
