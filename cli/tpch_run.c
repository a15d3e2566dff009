#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "message.h"
#include "tpch.h"

enum engine { OURS, DUCKDB, N_ENGINES };

/* What is known of one query. */
struct measured {
    int number;
    int64_t rows;
    double *seconds[N_ENGINES]; /* one a repeat */
    double median[N_ENGINES];
    double *floors; /* T_min of each repeat; 0: not known */
    double floor;   /* their median */
    struct tpch_answer answers[N_ENGINES];
    bool equal;
};

struct bench {
    const struct options *options;
    struct stachio_db *db;
    struct output output;
    double sum_of_logs; /* of the ratios to DuckDB's times */
    int n_ratios;
    double sum_of_floor_logs; /* of the ratios to T_min */
    int n_floors;
    bool all_equal;
};

/* Fetches everything, so that the time is that of the whole answer. */
static enum stachio_status fetch(struct answer *answer, struct ArrowArray **arrays, int64_t *n,
                                 struct stachio_error *error) {
    for (int64_t capacity = 0;; ++*n) {
        if (*n == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct ArrowArray *larger = realloc(*arrays, (size_t)capacity * sizeof *larger);
            if (!larger)
                return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the answer");
            *arrays = larger;
        }
        enum stachio_status status = answer_next(answer, &(*arrays)[*n], error);
        if (status || !(*arrays)[*n].release)
            return status;
    }
}

/* Runs and fetches; the seconds of both, and the answer when it is the first. */
static enum stachio_status run_query(struct measured *measured, enum engine engine, int repeat,
                                     struct stachio_query *query, struct stachio_error *error) {
    struct answer answer = {0};
    struct ArrowArray *arrays = NULL;
    int64_t n = 0;
    double started = seconds_now();
    enum stachio_status status = stachio_query_execute(query, error);
    if (!status)
        status = answer_open(&answer, query, error);
    if (!status)
        status = fetch(&answer, &arrays, &n, error);
    measured->seconds[engine][repeat] = seconds_now() - started;
    if (!status && repeat == 0)
        status = tpch_answer_read(&measured->answers[engine], &answer, arrays, n, error);
    for (int64_t i = 0; i < n; i++)
        arrays[i].release(&arrays[i]);
    free(arrays);
    answer_close(&answer);
    return status;
}

static enum stachio_status run_once(struct bench *bench, struct measured *measured, enum engine engine,
                                    int repeat, struct stachio_error *error) {
    stachio_set_engine(bench->db, engine == DUCKDB ? STACHIO_ENGINE_DUCKDB : bench->options->db.engine);
    struct stachio_query *query;
    const char *sql = stachio_tpch_query[measured->number - 1];
    enum stachio_status status = stachio_query_create(bench->db, sql, &query, error);
    if (status)
        return status;
    interrupt_set_query(query);
    status = run_query(measured, engine, repeat, query, error);
    interrupt_set_query(NULL);
    struct stachio_report report;
    stachio_query_report(query, &report);
    if (!status && repeat == 0 && report.fallback_reason)
        report_note("query %d: DuckDB answers: %s", measured->number, report.fallback_reason);
    struct stachio_floor floor = {0};
    if (!status && engine == OURS)
        status = stachio_query_floor(query, &floor, error);
    if (!status && engine == OURS)
        measured->floors[repeat] = floor.seconds;
    stachio_query_destroy(query);
    return status;
}

static int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Engines take turns, so that both meet the same state of the machine. */
static enum stachio_status measure(struct bench *bench, struct measured *measured,
                                   struct stachio_error *error) {
    int repeats = bench->options->repeat, engines = bench->options->compare ? N_ENGINES : 1;
    measured->floors = calloc((size_t)repeats, sizeof *measured->floors);
    if (!measured->floors)
        return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the times");
    for (int e = 0; e < engines; e++) {
        measured->seconds[e] = calloc((size_t)repeats, sizeof *measured->seconds[e]);
        if (!measured->seconds[e])
            return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the times");
    }
    for (int i = 0; i < repeats * engines; i++) {
        enum stachio_status status =
            run_once(bench, measured, (enum engine)(i % engines), i / engines, error);
        if (status)
            return status;
    }
    for (int e = 0; e < engines; e++)
        measured->median[e] = median(measured->seconds[e], repeats);
    measured->floor = median(measured->floors, repeats);
    measured->rows = measured->answers[OURS].rows;
    measured->equal = engines == 1 || tpch_answers_equal(measured->number, &measured->answers[OURS],
                                                         &measured->answers[DUCKDB]);
    return STACHIO_OK;
}

static void measured_release(struct measured *measured) {
    free(measured->floors);
    for (int e = 0; e < N_ENGINES; e++) {
        free(measured->seconds[e]);
        tpch_answer_release(&measured->answers[e]);
    }
}

static bool is_csv(const struct bench *bench) {
    return bench->options->format == FORMAT_CSV;
}

static void add_header(struct bench *bench) {
    if (is_csv(bench))
        text_add(&bench->output.text, "query,rows,stachio_s,duckdb_s,ratio,equal,t_min_s,of_t_min\n");
    else
        text_add(&bench->output.text,
                 "query      rows  stachio_s  duckdb_s  ratio  equal    t_min_s  of_t_min\n");
}

static void add_floor(struct bench *bench, const struct measured *measured) {
    struct text *out = &bench->output.text;
    if (measured->floor <= 0) {
        text_add(out, is_csv(bench) ? ",,\n" : "          -         -\n");
        return;
    }
    const double ratio = measured->median[OURS] / measured->floor;
    bench->sum_of_floor_logs += log(ratio);
    bench->n_floors++;
    text_format(out, is_csv(bench) ? ",%.6f,%.2f\n" : "  %9.6f  %8.1f\n", measured->floor, ratio);
}

static void add_row(struct bench *bench, const struct measured *measured) {
    struct text *out = &bench->output.text;
    double ratio = measured->median[OURS] / measured->median[DUCKDB];
    if (bench->options->compare) {
        bench->sum_of_logs += log(ratio);
        bench->n_ratios++;
        bench->all_equal &= measured->equal;
    }
    text_format(out, is_csv(bench) ? "%d,%lld,%.4f," : "%5d  %8lld  %9.4f  ", measured->number,
                (long long)measured->rows, measured->median[OURS]);
    if (bench->options->compare)
        text_format(out, is_csv(bench) ? "%.4f,%.3f,%s" : "%8.4f  %5.2f  %5s", measured->median[DUCKDB],
                    ratio, measured->equal ? "yes" : "no");
    else
        text_add(out, is_csv(bench) ? ",," : "       -      -      -");
    add_floor(bench, measured);
}

static void add_failed(struct bench *bench, const struct measured *measured) {
    if (is_csv(bench))
        text_format(&bench->output.text, "%d,,,,,failed,,\n", measured->number);
    else
        text_format(&bench->output.text,
                    "%5d         -          -         -      -  failed          -         -\n",
                    measured->number);
}

static void add_mean(struct bench *bench) {
    struct text *out = &bench->output.text;
    const double of_duckdb = bench->n_ratios ? exp(bench->sum_of_logs / bench->n_ratios) : 0;
    const double of_floor = bench->n_floors ? exp(bench->sum_of_floor_logs / bench->n_floors) : 0;
    if (is_csv(bench)) {
        text_add(out, "geometric mean,,,,");
        if (bench->n_ratios)
            text_format(out, "%.3f,%s,", of_duckdb, bench->all_equal ? "yes" : "no");
        else
            text_add(out, ",,");
        text_format(out, bench->n_floors ? ",%.2f\n" : ",\n", of_floor);
        return;
    }
    if (bench->n_floors)
        text_format(out, "geometric mean of the times in T_min: %.1f\n", of_floor);
    if (bench->n_ratios)
        text_format(out, "geometric mean of the ratios: %.3f\n", of_duckdb);
}

/* One query with its row; the first failure's exit status is kept. */
static enum stachio_status run_number(struct bench *bench, int number, int *exit_status,
                                      struct stachio_error *error) {
    struct measured measured = {.number = number};
    struct stachio_error failure = {0};
    if (measure(bench, &measured, &failure) == STACHIO_OK) {
        add_row(bench, &measured);
    } else {
        add_failed(bench, &measured);
        struct stachio_error named;
        set_error(&named, failure.status, "query %d: %.2000s", number, failure.text);
        int failed = report_error(&named);
        *exit_status = *exit_status ? *exit_status : failed;
    }
    measured_release(&measured);
    return output_flush(&bench->output, error);
}

static int run_queries(struct bench *bench, const bool *chosen) {
    struct stachio_error error;
    int exit_status = 0;
    add_header(bench);
    enum stachio_status status = output_flush(&bench->output, &error);
    const int lost = stachio_status_exit(STACHIO_RANK_LOST); /* no query can run any more */
    for (int number = 1; !status && number <= 22 && exit_status != lost && !interrupt_seen(); number++)
        if (chosen[number])
            status = run_number(bench, number, &exit_status, &error);
    if (!exit_status)
        add_mean(bench);
    if (!status)
        status = output_commit(&bench->output, &error);
    if (status)
        return report_error(&error);
    return exit_status ? exit_status : bench->all_equal ? 0 : 1;
}

/* "1,3-5" */
static bool read_queries(const char *text, bool *chosen) {
    for (const char *at = text; at; at = *at == ',' ? at + 1 : NULL) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            return false;
        if (*end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
            if (end == at)
                return false;
        }
        if (first < 1 || last > 22 || first > last || (*end && *end != ','))
            return false;
        for (long i = first; i <= last; i++)
            chosen[i] = true;
        at = end;
    }
    return true;
}

int tpch_run(const struct options *options) {
    bool chosen[23] = {0};
    if (!options->n_tables)
        return report_usage("tpch run needs -d DIR");
    if (!read_queries(options->queries ? options->queries : "1-22", chosen))
        return report_usage("--queries: '%s' is not a list such as 1,3-5 of numbers from 1 to 22",
                            options->queries);
    if (options->format == FORMAT_JSON)
        return report_usage("--format: tpch run writes table or csv");
    struct bench bench = {.options = options, .all_equal = true};
    struct stachio_error error;
    enum stachio_status status = options_open(options, &bench.db, &error);
    interrupt_install();
    if (!status)
        status = output_open(&bench.output, options->output, &error);
    int exit_status = status ? report_error(&error) : run_queries(&bench, chosen);
    output_close(&bench.output);
    stachio_close(bench.db);
    return exit_status;
}
