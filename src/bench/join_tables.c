#include "bench/join_tables.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_BATCH_ROWS = 65536, ORDERS_A_GROUP = 8, KEYS_A_GROUP = 32, PRIORITIES = 5 };

/* ---- values ---- */

/* A permutation of the numbers below 2^62. */
static uint64_t scramble(uint64_t x) {
    const uint64_t mask = (UINT64_C(1) << 62) - 1;
    x = (x * UINT64_C(0x9e3779b97f4a7c15)) & mask;
    x ^= x >> 31;
    x = (x * UINT64_C(0xbf58476d1ce4e5b9)) & mask;
    return x ^ x >> 29;
}

/* The key of build row `row`. Numbers from build_rows on are of keys that no build row has. */
static int64_t key_of(const struct sx_bench_tables_spec *spec, int64_t row) {
    if (spec->is_tpch)
        return row / ORDERS_A_GROUP * KEYS_A_GROUP + row % ORDERS_A_GROUP + 1;
    return (int64_t)scramble((uint64_t)row);
}

static int64_t build_value(const struct sx_bench_tables_spec *spec, int64_t row, int column) {
    if (column == 0)
        return key_of(spec, row);
    const uint64_t value = scramble((uint64_t)row * SX_BENCH_MOST_COLUMNS + (uint64_t)column) >> 30;
    return (int64_t)(spec->is_tpch ? value % PRIORITIES : value);
}

/* In [0, 1). */
static double chance(uint64_t row, uint64_t attempt) {
    return (double)(scramble(row + (attempt + 1) * (UINT64_C(1) << 45)) >> 9) * 0x1p-53;
}

/* Numbers below n with probabilities that fall as 1 / (number + 1)^exponent: rejection-inversion (Hörmann and
 * Derflinger 1996). */
struct zipf {
    double exponent, n, first, last, s;
};

static double zipf_integral(const struct zipf *zipf, double x) {
    const double e = 1 - zipf->exponent;
    return fabs(e) < 1e-9 ? log(x) : (pow(x, e) - 1) / e;
}

static double zipf_inverse(const struct zipf *zipf, double y) {
    const double e = 1 - zipf->exponent;
    return fabs(e) < 1e-9 ? exp(y) : pow(fmax(1 + y * e, 0), 1 / e);
}

static struct zipf zipf_create(double exponent, int64_t n) {
    struct zipf zipf = {.exponent = exponent, .n = (double)n};
    zipf.first = zipf_integral(&zipf, 1.5) - 1;
    zipf.last = zipf_integral(&zipf, zipf.n + 0.5);
    zipf.s = 2 - zipf_inverse(&zipf, zipf_integral(&zipf, 2.5) - pow(2, -exponent));
    return zipf;
}

static int64_t zipf_pick(const struct zipf *zipf, int64_t row) {
    for (uint64_t attempt = 0;; attempt++) {
        const double y = zipf->last + chance((uint64_t)row, attempt) * (zipf->first - zipf->last);
        const double x = zipf_inverse(zipf, y), k = fmin(fmax(floor(x + 0.5), 1), zipf->n);
        if (k - x <= zipf->s || y >= zipf_integral(zipf, k + 0.5) - pow(k, -zipf->exponent))
            return (int64_t)k - 1;
    }
}

/* ---- one rank's rows ---- */

struct filling {
    const struct sx_bench_tables_spec *spec;
    struct zipf zipf;
    bool is_probe;
    int64_t first; /* row of all ranks' that the batch begins with */
    int64_t rows;
    int n_columns;
    int n_members;
    const struct sx_batch *batch;
    struct sx_bench_sums *sums; /* one a member */
};

static int64_t share_begin(int64_t rows, int rank, int n_ranks) {
    return (int64_t)((sx_i128)rows * rank / n_ranks);
}

/* The build row that probe row `row` matches; from build_rows on: none. */
static int64_t match_of(const struct filling *filling, int64_t row) {
    const struct sx_bench_tables_spec *spec = filling->spec;
    const double before = floor((double)row * spec->hit_ratio);
    if (spec->build_rows == 0 || floor((double)(row + 1) * spec->hit_ratio) <= before)
        return spec->build_rows + row;
    if (spec->is_tpch)
        return (int64_t)((sx_i128)row * spec->build_rows / spec->probe_rows);
    if (spec->skew > 0)
        return zipf_pick(&filling->zipf, row);
    return (int64_t)(scramble((uint64_t)row + (UINT64_C(1) << 44)) % (uint64_t)spec->build_rows);
}

static void add_match(struct sx_bench_sums *sums, const struct sx_bench_tables_spec *spec, int64_t match) {
    sums->rows++;
    for (int c = 0; c < spec->build_columns; c++)
        sums->sums[spec->probe_columns + c] += build_value(spec, match, c);
}

static void fill_probe_row(const struct filling *filling, int64_t at, struct sx_bench_sums *sums) {
    const struct sx_bench_tables_spec *spec = filling->spec;
    const int64_t row = filling->first + at, match = match_of(filling, row);
    const bool is_hit = match < spec->build_rows;
    for (int c = 0; c < filling->n_columns; c++) {
        const int64_t value =
            c == 0 ? key_of(spec, match)
                   : (int64_t)(scramble((uint64_t)row * SX_BENCH_MOST_COLUMNS + (uint64_t)c) >> 31);
        ((int64_t *)filling->batch->columns[c].values)[at] = value;
        if (is_hit)
            sums->sums[c] += value;
    }
    if (is_hit)
        add_match(sums, spec, match);
}

static void fill_rows(int member, void *context) {
    const struct filling *filling = context;
    const int64_t begin = share_begin(filling->rows, member, filling->n_members),
                  end = share_begin(filling->rows, member + 1, filling->n_members);
    for (int64_t at = begin; at < end; at++) {
        if (filling->is_probe) {
            fill_probe_row(filling, at, &filling->sums[member]);
            continue;
        }
        for (int c = 0; c < filling->n_columns; c++)
            ((int64_t *)filling->batch->columns[c].values)[at] =
                build_value(filling->spec, filling->first + at, c);
    }
}

static enum sx_status make_batch(struct filling *filling, struct sx_stream *stream, struct sx_team *team,
                                 struct sx_batch *out_batch) {
    struct sx_batch host = {0};
    enum sx_status status = SX_OK;
    SX_GO(sx_batch_create(filling->n_columns, filling->rows, &host, &stream->error));
    for (int c = 0; c < filling->n_columns; c++)
        SX_GO(sx_tensor_create(filling->spec->pool, sx_type_of(SX_TYPE_I64), filling->rows, false,
                               &host.columns[c], &stream->error));
    filling->batch = &host;
    sx_team_run(team, fill_rows, filling);
    status = stream->backend->ops.batch_from_host(stream, &host, out_batch);
out:
    sx_batch_release(&host);
    return status;
}

static enum sx_status make_rows(struct filling *filling, int64_t all_rows, struct sx_stream *stream,
                                struct sx_team *team, struct sx_bench_rows *out_rows) {
    const struct sx_bench_tables_spec *spec = filling->spec;
    const int64_t chunk_rows = stream->backend->traits.chunk_rows,
                  batch_rows = chunk_rows > LEAST_BATCH_ROWS ? chunk_rows : LEAST_BATCH_ROWS,
                  end = share_begin(all_rows, spec->rank + 1, spec->n_ranks);
    int64_t first = share_begin(all_rows, spec->rank, spec->n_ranks);
    *out_rows =
        (struct sx_bench_rows){.bytes = (end - first) * filling->n_columns * (int64_t)sizeof(int64_t)};
    out_rows->batches = calloc((size_t)((end - first) / batch_rows + 1), sizeof *out_rows->batches);
    filling->n_members = sx_team_members(team);
    filling->sums = calloc((size_t)filling->n_members, sizeof *filling->sums);
    enum sx_status status = out_rows->batches && filling->sums
                                ? SX_OK
                                : sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a table");
    for (; status == SX_OK && first < end; first += filling->rows) {
        filling->first = first;
        filling->rows = end - first < batch_rows ? end - first : batch_rows;
        status = make_batch(filling, stream, team, &out_rows->batches[out_rows->n_batches]);
        out_rows->n_batches += status == SX_OK;
    }
    return status == SX_OK ? stream->backend->ops.synchronise(stream, "a table is in memory") : status;
}

enum sx_status sx_bench_make_build(const struct sx_bench_tables_spec *spec, struct sx_stream *stream,
                                   struct sx_team *team, struct sx_bench_rows *out_rows) {
    struct filling filling = {.spec = spec, .n_columns = spec->build_columns};
    enum sx_status status = make_rows(&filling, spec->build_rows, stream, team, out_rows);
    free(filling.sums);
    return status;
}

enum sx_status sx_bench_make_probe(const struct sx_bench_tables_spec *spec, struct sx_stream *stream,
                                   struct sx_team *team, struct sx_bench_rows *out_rows,
                                   struct sx_bench_sums *out_sums) {
    struct filling filling = {.spec = spec, .n_columns = spec->probe_columns, .is_probe = true};
    if (spec->skew > 0 && spec->build_rows > 0)
        filling.zipf = zipf_create(spec->skew, spec->build_rows);
    enum sx_status status = make_rows(&filling, spec->probe_rows, stream, team, out_rows);
    *out_sums = (struct sx_bench_sums){0};
    for (int m = 0; filling.sums && m < filling.n_members; m++) {
        out_sums->rows += filling.sums[m].rows;
        for (int c = 0; c < spec->probe_columns + spec->build_columns; c++)
            out_sums->sums[c] += filling.sums[m].sums[c];
    }
    free(filling.sums);
    return status;
}

void sx_bench_rows_release(struct sx_bench_rows *rows) {
    for (int64_t i = 0; i < rows->n_batches; i++)
        sx_batch_release(&rows->batches[i]);
    free(rows->batches);
    *rows = (struct sx_bench_rows){0};
}
