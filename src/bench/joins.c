/* Hash join: the build, the probe with its payload, and the runtime filter. Half of the probe rows match; all
 * where the build side is one key's. */
#include <math.h>

#include "bench/case.h"

enum { MOST_PAYLOAD = 4, FIRST_BUILD_COLUMN = 1, SLOT_BYTES = 8 /* two of four */, FILTER_BYTES = 2 };
/* Keys are multiples of it, so that they are no range. */
static const int64_t spread = 2654435761;

/* Numbers times `spread`: keys of which there are so many (0: as many as numbers, and none may be NULL). */
static enum sx_status spread_keys(struct bench_worker *worker, const struct sx_tensor *numbers,
                                  int64_t values, struct sx_tensor *out_keys) {
    struct bench_program p = {0};
    const struct sx_type type = sx_type_of(SX_TYPE_I64);
    const int32_t in = bench_input(&p, type), most = bench_number(&p, type, values),
                  factor = bench_number(&p, type, spread);
    const int32_t number = values > 0 ? bench_call(&p, SX_FN_MOD, type, in, most, 0) : in;
    bench_output(&p, bench_call(&p, SX_FN_MUL, type, number, factor, 0));
    return bench_apply(worker, &p, numbers, out_keys);
}

static int64_t n_keys(const struct bench_case *c) {
    return c->count / c->copies;
}

static int64_t n_probe_keys(const struct bench_case *c) {
    return c->copies == c->count ? 1 : 2 * n_keys(c);
}

/* The worker's share of the build side: keys, then payload. */
static enum sx_status make_build_side(struct bench_worker *worker, const struct bench_case *c,
                                      struct sx_tensor *out_columns) {
    const int64_t n = worker->bench->n_workers, first = c->count * worker->index / n;
    const int64_t rows = c->count * (worker->index + 1) / n - first;
    struct sx_tensor numbers = {0};
    enum sx_status status;
    SX_GO(worker->bench->ops->iota(worker->stream, SX_TYPE_I64, first, rows, &numbers));
    SX_GO(spread_keys(worker, &numbers, c->copies > 1 ? n_keys(c) : 0, &out_columns[0]));
    for (int k = 0; k < c->n_payload; k++)
        SX_GO(bench_values(worker, sx_type_of(SX_TYPE_I64), 1000000, ((int64_t)k << 50) + first, rows,
                           &out_columns[1 + k]));
out:
    sx_tensor_release(&numbers);
    return status;
}

static enum sx_status prepare(struct bench_worker *worker, struct bench_case *c) {
    struct sx_tensor numbers = {0};
    SX_TRY(make_build_side(worker, c, &worker->columns[FIRST_BUILD_COLUMN]));
    SX_TRY(bench_values(worker, sx_type_of(SX_TYPE_I64), n_probe_keys(c), worker->first, worker->rows,
                        &numbers));
    enum sx_status status = spread_keys(worker, &numbers, n_probe_keys(c), &worker->columns[0]);
    sx_tensor_release(&numbers);
    return status;
}

/* ---- build ---- */

static enum sx_status append(struct bench_worker *worker, struct bench_case *c) {
    const struct sx_tensor *build = &worker->columns[FIRST_BUILD_COLUMN];
    const int64_t most = worker->bench->chunk_rows;
    for (int64_t first = 0; first < build[0].length; first += most) {
        const int64_t left = build[0].length - first, rows = left < most ? left : most;
        struct sx_tensor slices[1 + MOST_PAYLOAD] = {0};
        for (int i = 0; i <= c->n_payload; i++)
            sx_tensor_slice(&build[i], first, rows, &slices[i]);
        enum sx_status status = worker->bench->ops->join_append(worker->stream, c->join, worker->index,
                                                                &slices[0], &slices[1], rows);
        for (int i = 0; i <= c->n_payload; i++)
            sx_tensor_release(&slices[i]);
        SX_TRY(status);
    }
    return SX_OK;
}

static enum sx_status build_parts(struct bench_worker *worker, struct bench_case *c) {
    struct bench *bench = worker->bench;
    for (int part; (part = atomic_fetch_add(&bench->next_part, 1)) < bench->n_parts;)
        SX_TRY(bench->ops->join_build(worker->stream, c->join, part));
    return SX_OK;
}

static enum sx_status create(struct bench *bench, struct bench_case *c) {
    const struct sx_type number = sx_type_of(SX_TYPE_I64);
    const struct sx_type payload[MOST_PAYLOAD] = {number, number, number, number};
    const bool null_equal = false;
    const struct sx_join_spec spec = {1,       &number, &null_equal,     c->n_payload,
                                      payload, false,   bench->n_workers};
    return bench->ops->join_create(bench->workers[0].stream, &spec, &c->join);
}

static enum sx_status create_expecting(struct bench *bench, struct bench_case *c) {
    SX_TRY(create(bench, c));
    bench->ops->join_expect(c->join, c->count);
    return SX_OK;
}

static enum sx_status build(struct bench *bench, struct bench_case *c) {
    SX_TRY(bench_parallel(bench, c, append));
    SX_TRY(bench->ops->join_finish(bench->workers[0].stream, c->join, &bench->n_parts));
    SX_TRY(bench->ops->synchronise(bench->workers[0].stream, "a build side is whole"));
    atomic_store(&bench->next_part, 0);
    return bench_parallel(bench, c, build_parts);
}

static enum sx_status create_and_build(struct bench *bench, struct bench_case *c) {
    SX_TRY(create(bench, c));
    return build(bench, c);
}

static void destroy(struct bench *bench, struct bench_case *c) {
    if (c->join)
        bench->ops->join_destroy(bench->workers[0].stream, c->join);
    c->join = NULL;
}

/* ---- probe ---- */

static enum sx_status use_take(struct bench_worker *worker, struct bench_case *c,
                               const struct sx_batch *batch) {
    const int64_t most = sx_round_pairs(&worker->stream->backend->traits);
    struct sx_probe_cursor cursor = {0};
    int32_t payload[MOST_PAYLOAD];
    for (int k = 0; k < c->n_payload; k++)
        payload[k] = k;
    while (!cursor.done) {
        struct sx_tensor probe_rows = {0}, out[MOST_PAYLOAD] = {0};
        SX_TRY(worker->bench->ops->join_take(worker->stream, c->join, batch->columns, batch->rows, most,
                                             &cursor, payload, c->n_payload, &probe_rows, NULL, out));
        sx_tensor_release(&probe_rows);
        for (int k = 0; k < c->n_payload; k++)
            sx_tensor_release(&out[k]);
    }
    return SX_OK;
}

static enum sx_status use_filter(struct bench_worker *worker, struct bench_case *c,
                                 const struct sx_batch *batch) {
    struct sx_tensor selection = {0};
    SX_TRY(worker->bench->ops->join_filter(worker->stream, c->join, &batch->columns[0], NULL, &selection));
    sx_tensor_release(&selection);
    return SX_OK;
}

/* ---- cases ---- */

static void name(struct bench_case *c, const char *more) {
    const char *keys = c->copies == c->count ? "one key" : c->copies > 1 ? "10 a key" : "unique";
    bench_name(c, "%lld build rows, %s, payload %d%s", (long long)c->count, keys, c->n_payload, more);
}

static struct bench_case join_case(const char *primitive, int64_t rows, int64_t build_rows, int copies,
                                   int n_payload) {
    return (struct bench_case){.primitive = primitive,
                               .rows = rows,
                               .n_columns = 1,
                               .count = build_rows,
                               .copies = copies,
                               .n_payload = n_payload,
                               .prepare = prepare,
                               .begin = create_and_build,
                               .run = bench_run_chunks,
                               .end = destroy};
}

/* As the rows come, and where their number is known before. */
static void measure_build(struct bench *bench, int64_t build_rows, int copies, int n_payload,
                          bool is_expected) {
    struct bench_case c = join_case("join_build", build_rows, build_rows, copies, n_payload);
    c.n_columns = 0;
    c.begin = is_expected ? create_expecting : create;
    c.run = build;
    c.bytes = (8 + SLOT_BYTES + 8 + n_payload * 16) * (double)build_rows;
    name(&c, is_expected ? ", expected" : "");
    bench_measure(bench, &c);
}

/* A build row is its key and its payload, side by side. */
static void measure_take(struct bench *bench, int64_t rows, int64_t build_rows, int copies, int n_payload) {
    struct bench_case c = join_case("join_take", rows, build_rows, copies, n_payload);
    c.use = use_take;
    const double row = 8 + 8 * n_payload;
    const double sector = bench_sector(bench, (double)build_rows * (SLOT_BYTES + row));
    const double pairs = (double)copies * (double)n_keys(&c) / (double)n_probe_keys(&c);
    const double taken = sector > 0 ? sector * ceil(row / sector) : row;
    c.bytes = (8 + sector + pairs * (taken + 4 + n_payload * 8)) * (double)rows;
    name(&c, "");
    bench_measure(bench, &c);
}

static void measure_filter(struct bench *bench, int64_t rows, int64_t build_rows) {
    struct bench_case c = join_case("join_filter", rows, build_rows, 1, 0);
    c.use = use_filter;
    c.bytes = (8 + bench_sector(bench, (double)build_rows * FILTER_BYTES) + 0.5 * 4) * (double)rows;
    name(&c, "");
    bench_measure(bench, &c);
}

/* About as many pairs as `rows`, all of one key: what a pair costs must not grow with the key's rows. */
static void measure_one_key(struct bench *bench, int64_t rows) {
    enum { MOST_BUILD_ROWS = 1000000 };
    const int build_rows = rows < MOST_BUILD_ROWS ? (int)rows : MOST_BUILD_ROWS;
    measure_build(bench, build_rows, build_rows, 1, false);
    measure_take(bench, rows / build_rows, build_rows, build_rows, 1);
}

void bench_joins(struct bench *bench, int64_t rows) {
    static const int64_t builds[] = {10000, 1000000, 10000000};
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        const int64_t build_rows = i == 0 && rows < builds[i] ? rows : builds[i];
        if (build_rows > rows)
            break;
        for (int copies = 1; copies <= 10; copies += 9)
            for (int n_payload = 1; n_payload <= MOST_PAYLOAD; n_payload += MOST_PAYLOAD - 1) {
                measure_build(bench, build_rows, copies, n_payload, false);
                if (copies == 1)
                    measure_build(bench, build_rows, copies, n_payload, true);
                measure_take(bench, rows, build_rows, copies, n_payload);
            }
        measure_filter(bench, rows, build_rows);
    }
    measure_one_key(bench, rows);
}
