#include "bench_report.h"

#include <stdio.h>

#include "message.h"

void bench_report_quote(struct text *out, const char *text) {
    text_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            text_add_char(out, '\\');
        text_add_char(out, (unsigned char)*text < 0x20 ? ' ' : *text);
    }
    text_add_char(out, '"');
}

void bench_report_added(struct bench_report *report) {
    report->n_results++;
    if (!report->status)
        report->status = output_flush(&report->table, &report->error);
}

static enum stachio_status commit(struct bench_report *report, struct stachio_error *error) {
    if (report->status) {
        *error = report->error;
        return report->status;
    }
    text_add(&report->json.text, "\n]}\n");
    enum stachio_status status = output_commit(&report->table, error);
    return !status && report->has_json ? output_commit(&report->json, error) : status;
}

int bench_report_run(struct bench_report *report, const struct options *options,
                     enum stachio_status (*measure)(void *context, struct stachio_db *db,
                                                    struct stachio_error *error),
                     void *context) {
    struct stachio_error error = {0};
    struct stachio_db *db = NULL;
    *report = (struct bench_report){.has_json = options->json != NULL};
    enum stachio_status status = options_open_rank(options, &db, &error);
    if (!status)
        status = output_open(&report->table, NULL, &error);
    if (!status && report->has_json)
        status = output_open(&report->json, options->json, &error);
    if (!status)
        status = measure(context, db, &error);
    if (!status)
        status = commit(report, &error);
    output_close(&report->table);
    output_close(&report->json);
    stachio_close(db);
    return status ? report_error(&error) : 0;
}

int bench_messages_main(struct bench_messages *bench, enum command command, int argc, char **argv,
                        const char *help, int (*check)(const struct options *options),
                        enum stachio_status (*measure)(void *context, struct stachio_db *db,
                                                       struct stachio_error *error)) {
    struct options *options = &bench->options;
    int exit_status = options_read(options, command, argc, argv);
    if (exit_status == 0 && options->sizes)
        exit_status = bench_read_sizes(options->sizes, bench->sizes, &bench->n_sizes);
    if (exit_status == 0 && options->help)
        exit_status = fputs(help, stdout) < 0;
    else if (exit_status == 0 && (exit_status = check(options)) == 0)
        exit_status = bench_report_run(&bench->report, options, measure, bench);
    options_release(options);
    return exit_status;
}
