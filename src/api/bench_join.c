/* A join of generated tables by the operators and exchanges that queries use (PystachIO, section 3). */
#include "api/bench_join.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/query.h"
#include "api/ranks.h"
#include "api/system.h"
#include "base/median.h"
#include "bench/exchange.h"
#include "bench/join_tables.h"
#include "plan/bench_join.h"

enum { MOST_RUNS = 101 };
static const int64_t MOST_ROWS = (int64_t)1 << 40, EXCHANGE_MESSAGE_BYTES = (int64_t)1 << 20,
                     LINK_BYTES = (int64_t)1 << 30; /* to all other ranks at a time */

struct join_bench {
    struct stachio_db *db;
    const struct stachio_bench_join_options *options;
    int rank, n_ranks;
    struct sx_stream *stream; /* keeps the tables' memory */
    struct sx_bench_rows rows[SX_BENCH_TABLES];
    struct sx_query_plan plan;
    struct sx_filter_memory filters; /* of these tables */
    struct sx_bench_sums expected;   /* of all ranks */
    struct sx_sampler *sampler;
};

/* ---- options ---- */

void sx_bench_join_text(const struct stachio_bench_join_options *options, char text[SX_BENCH_JOIN_TEXT]) {
    snprintf(text, SX_BENCH_JOIN_TEXT, "%" PRId64 " %" PRId64 " %d %d %a %a %d %d %d %" PRId64 " %d",
             options->build_rows, options->probe_rows, options->build_columns, options->probe_columns,
             options->hit_ratio, options->skew, options->is_tpch, options->is_shuffle, (int)options->variant,
             options->message_bytes, options->runs);
}

void sx_bench_join_parse(const char *text, struct stachio_bench_join_options *out_options) {
    char *at;
    *out_options = (struct stachio_bench_join_options){.size_bytes = sizeof *out_options};
    out_options->build_rows = strtoll(text, &at, 10);
    out_options->probe_rows = strtoll(at, &at, 10);
    out_options->build_columns = (int)strtol(at, &at, 10);
    out_options->probe_columns = (int)strtol(at, &at, 10);
    out_options->hit_ratio = strtod(at, &at);
    out_options->skew = strtod(at, &at);
    out_options->is_tpch = (int)strtol(at, &at, 10);
    out_options->is_shuffle = (int)strtol(at, &at, 10);
    out_options->variant = (enum stachio_join_variant)strtol(at, &at, 10);
    out_options->message_bytes = strtoll(at, &at, 10);
    out_options->runs = (int)strtol(at, &at, 10);
}

/* ---- tables ---- */

static enum sx_status fill_tables(struct join_bench *bench, struct sx_error *error) {
    const struct stachio_bench_join_options *options = bench->options;
    const struct sx_bench_tables_spec spec = {
        .pool = bench->db->pool,
        .build_rows = options->build_rows,
        .probe_rows = options->probe_rows,
        .build_columns = options->build_columns,
        .probe_columns = options->probe_columns,
        .hit_ratio = options->hit_ratio,
        .skew = options->skew,
        .is_tpch = options->is_tpch,
        .rank = bench->rank,
        .n_ranks = bench->n_ranks,
    };
    SX_TRY(sx_db_start(bench->db, error));
    SX_TRY(bench->db->backend->ops.stream_create(bench->db->backend, bench->db->pool, NULL, &bench->stream,
                                                 error));
    enum sx_status status = sx_bench_make_probe(&spec, bench->stream, bench->db->team,
                                                &bench->rows[SX_BENCH_PROBE], &bench->expected);
    if (status == SX_OK && !options->is_shuffle)
        status = sx_bench_make_build(&spec, bench->stream, bench->db->team, &bench->rows[SX_BENCH_BUILD]);
    if (status != SX_OK) {
        *error = bench->stream->error;
        return sx_error_prefix(error, "the tables");
    }
    return SX_OK;
}

/* Of what each rank expects, all. */
static enum sx_status add_expected(struct join_bench *bench, struct sx_error *error) {
    struct sx_bench_sums *all = calloc((size_t)bench->n_ranks, sizeof *all);
    enum sx_status status =
        all ? sx_net_gather(bench->db->net, &bench->expected, sizeof bench->expected, all, NULL, error)
            : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", bench->n_ranks);
    bench->expected = (struct sx_bench_sums){0};
    for (int r = 0; status == SX_OK && r < bench->n_ranks; r++) {
        bench->expected.rows += all[r].rows;
        for (int c = 0; c < 2 * SX_BENCH_MOST_COLUMNS; c++)
            bench->expected.sums[c] += all[r].sums[c];
    }
    free(all);
    return status;
}

static enum sx_status make_plan(struct join_bench *bench, struct sx_error *error) {
    const struct sx_bench_join_spec spec = {
        .n_columns = {[SX_BENCH_PROBE] = bench->options->probe_columns,
                      [SX_BENCH_BUILD] = bench->options->build_columns},
        .is_shuffle = bench->options->is_shuffle,
        .has_ranks = bench->db->net != NULL,
    };
    return sx_bench_join_plan(&spec, &bench->plan, error);
}

static enum sx_status meet(const struct join_bench *bench, enum sx_status status, struct sx_error *error) {
    return bench->db->net ? sx_ranks_meet(bench->db, status, error) : status;
}

static enum sx_status prepare(struct join_bench *bench, struct sx_error *error) {
    enum sx_status status = fill_tables(bench, error);
    if (status == SX_OK && bench->db->net)
        status = add_expected(bench, error);
    if (status == SX_OK)
        status = make_plan(bench, error);
    return meet(bench, status, error);
}

/* ---- a run ---- */

static sx_i128 value_of(const struct sx_tensor *column) {
    struct sx_scalar value;
    sx_tensor_scalar(column, 0, &value);
    if (value.is_null) /* the sum of no rows */
        return 0;
    return value.type.id == SX_TYPE_I128 ? value.v.i128 : value.v.i64;
}

/* A shuffle gives all of the probe rows, whose sums the generator does not know. */
static bool is_right(const struct join_bench *bench, const struct sx_batch *answer) {
    const struct stachio_bench_join_options *options = bench->options;
    if (options->is_shuffle)
        return answer->rows == 1 && value_of(&answer->columns[0]) == options->probe_rows;
    bool right = answer->rows == 1 && value_of(&answer->columns[0]) == bench->expected.rows;
    for (int c = 0; right && c < options->probe_columns + options->build_columns; c++)
        right = value_of(&answer->columns[c + 1]) == bench->expected.sums[c];
    return right;
}

static enum sx_status check_answer(const struct join_bench *bench, struct sx_run *run,
                                   struct sx_error *error) {
    struct sx_batch answer = {0};
    SX_TRY(sx_run_next(run, &answer, error));
    const int64_t rows = answer.rows == 1 ? (int64_t)value_of(&answer.columns[0]) : -1;
    const bool right = is_right(bench, &answer);
    sx_batch_release(&answer);
    return right ? SX_OK
                 : sx_error_set(error, SX_INTERNAL,
                                "bench join: the answer is wrong: it has %" PRId64
                                " rows, and should have %" PRId64,
                                rows, bench->expected.rows);
}

static enum sx_status execute(const struct join_bench *bench, struct sx_run *run, double *out_seconds,
                              struct sx_error *error) {
    struct sx_net *net = bench->db->net;
    if (net) /* all begin at the same time */
        SX_TRY(sx_net_gather(net, NULL, 0, NULL, NULL, error));
    const bool is_watched = net && bench->options->has_timeline && bench->rank == 0;
    if (is_watched)
        sx_sampler_start(bench->sampler, net);
    const double began = sx_system_seconds();
    enum sx_status status = sx_run_execute(run, error);
    *out_seconds = sx_system_seconds() - began;
    if (is_watched)
        sx_sampler_stop(bench->sampler);
    return status == SX_OK && bench->rank == 0 ? check_answer(bench, run, error) : status;
}

static struct sx_exec_options run_options(struct join_bench *bench,
                                          const struct sx_exec_table tables[SX_BENCH_TABLES]) {
    static const enum sx_overlap overlaps[] = {[STACHIO_JOIN_AUTO] = SX_OVERLAP_FULL,
                                               [STACHIO_JOIN_BLOCKING] = SX_OVERLAP_BLOCKING,
                                               [STACHIO_JOIN_TUNED] = SX_OVERLAP_COMBINED,
                                               [STACHIO_JOIN_CHUNKED] = SX_OVERLAP_FULL,
                                               [STACHIO_JOIN_DEFERRED] = SX_OVERLAP_FULL};
    struct sx_exec_options options = sx_db_exec_options(bench->db);
    options.tables = tables;
    options.n_tables = SX_BENCH_TABLES;
    options.filter_memory = &bench->filters;
    options.broadcast_bytes = -1; /* both tables are repartitioned, however small */
    /* The others send all rows. */
    if (bench->options->variant != STACHIO_JOIN_AUTO)
        options.filter_rows = -1;
    options.overlap = overlaps[bench->options->variant];
    options.message_bytes = (size_t)bench->options->message_bytes;
    options.trace = bench->rank == 0 ? sx_trace_of(bench->options->trace) : bench->db->follow_trace;
    options.counts_early = bench->options->variant == STACHIO_JOIN_CHUNKED;
    return options;
}

static enum sx_status run_once(struct join_bench *bench, double *out_seconds, struct sx_error *error) {
    struct sx_exec_table tables[SX_BENCH_TABLES];
    struct sx_run *run = NULL;
    for (int t = 0; t < SX_BENCH_TABLES; t++)
        tables[t] = (struct sx_exec_table){bench->rows[t].batches, bench->rows[t].n_batches};
    const struct sx_exec_options options = run_options(bench, tables);
    enum sx_status status = sx_run_create(&options, &bench->plan, &run, error);
    if (status == SX_OK)
        status = execute(bench, run, out_seconds, error);
    if (status == SX_OK && bench->db->net)
        status = sx_bench_slowest(bench->db->net, out_seconds, error);
    status = meet(bench, status, error);
    sx_run_destroy(run);
    return status;
}

/* ---- all runs ---- */

/* What each rank receives of rows that are spread evenly. */
static int64_t received_bytes(const struct join_bench *bench) {
    const struct stachio_bench_join_options *options = bench->options;
    const int64_t n = bench->n_ranks, width = (int64_t)sizeof(int64_t);
    int64_t bytes = options->probe_rows * options->probe_columns * width;
    if (!options->is_shuffle)
        bytes += options->build_rows * options->build_columns * width;
    return (int64_t)((sx_i128)bytes * (n - 1) / (n * n));
}

/* All to all of as many bytes, by what the join's rows go: channels, or the link between devices. */
static enum sx_status exchange_once(const struct join_bench *bench, double *out_seconds,
                                    struct sx_error *error) {
    const bool by_link = sx_net_has_link(bench->db->net);
    const int64_t rank_bytes = received_bytes(bench) / (bench->n_ranks - 1);
    int64_t message_bytes = by_link ? LINK_BYTES / bench->n_ranks : EXCHANGE_MESSAGE_BYTES;
    if (bench->options->message_bytes > 0)
        message_bytes = bench->options->message_bytes;
    const struct sx_bench_exchange_options options = {
        .net = bench->db->net,
        .pool = bench->db->pool,
        .message_bytes = message_bytes < rank_bytes ? message_bytes : rank_bytes + 1,
        .rank_bytes = rank_bytes,
        .shuffle = bench->db->shuffle,
        .stream = by_link ? bench->stream : NULL};
    struct sx_bench_time time = {0};
    enum sx_status status = meet(bench, sx_bench_exchange_once(&options, by_link, &time, error), error);
    *out_seconds = time.seconds;
    return status;
}

/* The rank's that had most. */
static enum sx_status peak_memory(const struct join_bench *bench, int64_t *out_bytes,
                                  struct sx_error *error) {
    double bytes = (double)sx_db_peak_memory(bench->db);
    enum sx_status status = bench->db->net ? sx_bench_slowest(bench->db->net, &bytes, error) : SX_OK;
    *out_bytes = (int64_t)bytes;
    return meet(bench, status, error);
}

static enum sx_status measure(struct join_bench *bench, struct stachio_bench_join_result *out,
                              struct sx_error *error) {
    double seconds[MOST_RUNS], exchanges[MOST_RUNS], ratios[MOST_RUNS];
    const int runs = bench->options->runs;
    SX_TRY(run_once(bench, &seconds[0], error)); /* warms up */
    SX_TRY(peak_memory(bench, &out->peak_memory_bytes, error));
    for (int r = 0; r < runs; r++) {
        seconds[r] = exchanges[r] = 0;
        SX_TRY(run_once(bench, &seconds[r], error));
        if (bench->db->net)
            SX_TRY(exchange_once(bench, &exchanges[r], error));
        ratios[r] = exchanges[r] / seconds[r];
    }
    out->seconds = sx_median(seconds, runs);
    out->least_seconds = seconds[0];
    out->exchange_seconds = sx_median(exchanges, runs);
    out->exchange_ratio = sx_median(ratios, runs);
    return SX_OK;
}

enum sx_status sx_bench_join_run(struct stachio_db *db, const struct stachio_bench_join_options *options,
                                 struct sx_bench_join_result *out_result, struct sx_error *error) {
    struct join_bench bench = {.db = db,
                               .options = options,
                               .rank = db->net ? sx_net_rank(db->net) : 0,
                               .n_ranks = db->net ? sx_net_size(db->net) : 1,
                               .sampler = &out_result->sampler};
    struct stachio_bench_join_result *told = &out_result->told;
    enum sx_status status = prepare(&bench, error);
    if (status == SX_OK)
        status = measure(&bench, told, error);
    told->device = sx_db_device(db);
    told->transport = db->net ? db->network : NULL;
    told->ranks = bench.n_ranks;
    told->threads = db->threads;
    told->runs = options->runs;
    told->rows = options->is_shuffle ? options->probe_rows : bench.expected.rows;
    told->bytes = received_bytes(&bench);
    told->samples = out_result->sampler.samples;
    told->n_samples = out_result->sampler.n_samples;
    for (int t = 0; t < SX_BENCH_TABLES; t++) {
        told->table_bytes += bench.rows[t].bytes;
        sx_bench_rows_release(&bench.rows[t]);
    }
    if (bench.stream)
        db->backend->ops.stream_destroy(bench.stream);
    sx_query_plan_release(&bench.plan);
    return status;
}

void sx_bench_join_release(struct sx_bench_join_result *result) {
    sx_sampler_release(&result->sampler);
}

/* ---- the call ---- */

static enum stachio_status check_options(const struct stachio_bench_join_options *options,
                                         struct stachio_error *error) {
    if (options->size_bytes < sizeof *options)
        return sx_api_error(error, STACHIO_USAGE, "bench options: size_bytes is %zu", options->size_bytes);
    if (options->build_rows < 0 || options->build_rows > MOST_ROWS || options->probe_rows < 0 ||
        options->probe_rows > MOST_ROWS)
        return sx_api_error(error, STACHIO_USAGE, "bench join: rows are not within 0 and 2^40");
    if (options->build_columns < 1 || options->build_columns > SX_BENCH_MOST_COLUMNS ||
        options->probe_columns < 1 || options->probe_columns > SX_BENCH_MOST_COLUMNS)
        return sx_api_error(error, STACHIO_USAGE, "bench join: columns are not within 1 and %d",
                            (int)SX_BENCH_MOST_COLUMNS);
    if (!(options->hit_ratio >= 0 && options->hit_ratio <= 1) || !(options->skew >= 0 && options->skew <= 10))
        return sx_api_error(
            error, STACHIO_USAGE,
            "bench join: the hit ratio is not within 0 and 1, or the skew not within 0 and 10");
    if (options->message_bytes < 0 || options->message_bytes > (int64_t)1 << 30)
        return sx_api_error(error, STACHIO_USAGE, "message bytes: %lld is not within 0 and 2^30",
                            (long long)options->message_bytes);
    if (options->runs < 1 || options->runs > MOST_RUNS)
        return sx_api_error(error, STACHIO_USAGE, "runs: %d is not within 1 and %d", options->runs,
                            (int)MOST_RUNS);
    return STACHIO_OK;
}

enum stachio_status stachio_bench_join(struct stachio_db *db,
                                       const struct stachio_bench_join_options *options,
                                       void (*result)(void *context,
                                                      const struct stachio_bench_join_result *result),
                                       void *context, struct stachio_error *error) {
    struct sx_error inner = {0};
    struct sx_bench_join_result got = {0};
    const enum stachio_status wrong = check_options(options, error);
    if (wrong)
        return wrong;
    pthread_mutex_lock(&db->lock);
    enum sx_status status =
        db->net ? sx_ranks_join(db, options, &got, &inner) : sx_bench_join_run(db, options, &got, &inner);
    pthread_mutex_unlock(&db->lock);
    if (status == SX_OK)
        result(context, &got.told);
    sx_bench_join_release(&got);
    return status == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}
