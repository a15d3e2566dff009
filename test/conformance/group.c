/* Group by, against the plain one of group_reference.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "group_case.h"

/* ---- running a group by ---- */

struct chunk {
    int64_t rows;
    struct sx_tensor keys[MAX_KEYS];
    struct sx_tensor inputs[MAX_AGGREGATES];
    struct sx_tensor filters[MAX_AGGREGATES];
};

struct worker {
    const struct sx_backend *backend;
    struct sx_stream *stream;
    struct sx_group *group;
    int index;
    int n_workers;
    const struct chunk *chunks;
    int64_t n_chunks;
    bool has_filters;
    enum sx_status status;
};

struct run {
    const struct group_input *input;
    const char *title;
    int64_t chunk_rows;
    int64_t max_rows;  /* of a result batch */
    bool dictionaries; /* string keys come as a dictionary for each chunk */
    bool selects;
    struct chunk *chunks;
    int64_t n_chunks;
};

static enum sx_status send_slice(struct conformance *c, const struct sx_tensor *host, int64_t first,
                                 int64_t rows, bool as_dictionary, struct sx_tensor *out) {
    if (host->length < 0) {
        *out = (struct sx_tensor){.length = -1};
        return SX_OK;
    }
    struct sx_tensor slice = {0}, coded = {0};
    enum sx_status status = SX_OK;
    sx_tensor_slice(host, first, rows, &slice);
    if (as_dictionary && host->type.id == SX_TYPE_VARCHAR && host->layout == SX_FLAT) {
        SX_GO(conformance_dictionary(c, &slice, &coded));
        SX_GO(conformance_send(c, &coded, out));
    } else {
        SX_GO(conformance_send(c, &slice, out));
    }
out:
    sx_tensor_release(&slice);
    sx_tensor_release(&coded);
    return status;
}

/* Columns of the host that are one are one on the device. */
static enum sx_status send_input(struct conformance *c, const struct run *run, int64_t first, int a,
                                 struct chunk *chunk) {
    const struct sx_tensor *inputs = run->input->inputs;
    for (int b = 0; b < a; b++)
        if (inputs[b].length > 0 && inputs[b].values == inputs[a].values) {
            sx_tensor_share(&chunk->inputs[b], &chunk->inputs[a]);
            return SX_OK;
        }
    SX_TRY(send_slice(c, &inputs[a], first, chunk->rows, a % 2 && run->dictionaries, &chunk->inputs[a]));
    if (run->selects)
        conformance_select(c, &chunk->inputs[a]);
    return SX_OK;
}

static enum sx_status make_chunk(struct conformance *c, const struct run *run, int64_t first,
                                 struct chunk *chunk) {
    const struct group_input *input = run->input;
    const int64_t left = input->rows - first;
    chunk->rows = left < run->chunk_rows ? left : run->chunk_rows;
    for (int k = 0; k < input->spec->n_keys; k++)
        SX_TRY(send_slice(c, &input->keys[k], first, chunk->rows, run->dictionaries, &chunk->keys[k]));
    for (int a = 0; a < input->spec->n_aggregates; a++) {
        SX_TRY(send_input(c, run, first, a, chunk));
        if (input->filters)
            SX_TRY(send_slice(c, &input->filters[a], first, chunk->rows, false, &chunk->filters[a]));
    }
    return SX_OK;
}

static enum sx_status make_chunks(struct conformance *c, struct run *run) {
    run->n_chunks = (run->input->rows + run->chunk_rows - 1) / run->chunk_rows;
    run->chunks = calloc((size_t)run->n_chunks + 1, sizeof *run->chunks);
    for (int64_t i = 0; i < run->n_chunks; i++)
        SX_TRY(make_chunk(c, run, i * run->chunk_rows, &run->chunks[i]));
    return c->backend->ops.synchronise(c->stream, "workers' streams read the chunks");
}

static void release_chunks(struct run *run) {
    for (int64_t i = 0; i < run->n_chunks; i++) {
        for (int k = 0; k < MAX_KEYS; k++)
            sx_tensor_release(&run->chunks[i].keys[k]);
        for (int a = 0; a < MAX_AGGREGATES; a++) {
            sx_tensor_release(&run->chunks[i].inputs[a]);
            sx_tensor_release(&run->chunks[i].filters[a]);
        }
    }
    free(run->chunks);
}

static void *feed_chunks(void *argument) {
    struct worker *worker = argument;
    worker->status = SX_OK;
    for (int64_t i = worker->index; i < worker->n_chunks && worker->status == SX_OK; i += worker->n_workers) {
        const struct chunk *chunk = &worker->chunks[i];
        worker->status = worker->backend->ops.group_update(
            worker->stream, worker->group, worker->index, chunk->keys, chunk->inputs,
            worker->has_filters ? chunk->filters : NULL, chunk->rows);
    }
    return NULL;
}

/* All workers at the same time. */
static enum sx_status feed(struct conformance *c, const struct run *run, struct sx_pool *pool,
                           struct sx_group *group) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    const int n = run->input->spec->n_workers;
    struct worker workers[MAX_WORKERS] = {0};
    pthread_t threads[MAX_WORKERS];
    enum sx_status status = SX_OK;
    for (int w = 0; w < n; w++) {
        workers[w] = (struct worker){.backend = c->backend,
                                     .group = group,
                                     .index = w,
                                     .n_workers = n,
                                     .chunks = run->chunks,
                                     .n_chunks = run->n_chunks,
                                     .has_filters = run->input->filters != NULL};
        SX_GO(ops->stream_create(c->backend, pool, NULL, &workers[w].stream, &c->error));
    }
    for (int w = 0; w < n; w++)
        pthread_create(&threads[w], NULL, feed_chunks, &workers[w]);
    for (int w = 0; w < n; w++)
        pthread_join(threads[w], NULL);
    for (int w = 0; w < n; w++)
        if (workers[w].status != SX_OK) {
            status = workers[w].status;
            c->error = workers[w].stream->error;
        }
out:
    for (int w = 0; w < n; w++)
        if (workers[w].stream)
            ops->stream_destroy(workers[w].stream);
    return status;
}

typedef void take_batch(struct conformance *c, void *context, const struct sx_batch *batch);

static enum sx_status emit_part(struct conformance *c, const struct run *run, struct sx_stream *stream,
                                struct sx_group *group, int part, take_batch *take, void *context,
                                int64_t *left) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    int64_t cursor = 0, rows = 0;
    do {
        struct sx_batch batch = {0}, host = {0};
        enum sx_status status = ops->group_emit(stream, group, part, &cursor, run->max_rows, &batch);
        if (status == SX_OK)
            status = ops->batch_rows(stream, &batch);
        if (status == SX_OK)
            status = ops->batch_to_host(stream, &batch, &host);
        rows = batch.rows;
        *left -= rows;
        sx_batch_release(&batch);
        if (status != SX_OK) {
            c->error = stream->error;
            return status;
        }
        CONFORM(c, rows <= run->max_rows, "%s: a batch of %lld rows", run->title, (long long)rows);
        take(c, context, &host);
        sx_batch_release(&host);
    } while (rows > 0);
    return SX_OK;
}

/* On failure c->error tells. */
static enum sx_status execute(struct conformance *c, const struct run *run, struct sx_pool *pool,
                              take_batch *take, void *context) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    struct sx_stream *stream = NULL;
    struct sx_group *group = NULL;
    int parts = 0;
    int64_t left = 0;
    SX_TRY(ops->stream_create(c->backend, pool, NULL, &stream, &c->error));
    enum sx_status status = ops->group_create(stream, run->input->spec, &group);
    if (status == SX_OK)
        status = feed(c, run, pool, group);
    if (status == SX_OK)
        status = ops->group_finish(stream, group, &parts, &left);
    for (int p = 0; p < parts && status == SX_OK; p++)
        status = emit_part(c, run, stream, group, p, take, context, &left);
    CONFORM(c, left >= 0, "%s: %lld rows more than there are at the most", run->title, (long long)-left);
    if (stream->error.status != SX_OK)
        c->error = stream->error;
    if (group)
        ops->group_destroy(stream, group);
    ops->stream_destroy(stream);
    return status;
}

struct checked {
    struct group_reference *reference;
    const char *title;
};

static void check_batch(struct conformance *c, void *context, const struct sx_batch *batch) {
    const struct checked *checked = context;
    for (int64_t i = 0; i < batch->rows; i++)
        group_reference_check(c, checked->reference, batch, i, checked->title);
}

static void check_run(struct conformance *c, struct run *run) {
    struct checked checked = {group_reference_create(run->input), run->title};
    enum sx_status status = make_chunks(c, run);
    if (status == SX_OK)
        status = execute(c, run, c->pool, check_batch, &checked);
    if (CONFORM(c, status == SX_OK, "%s: %s", run->title, c->error.text))
        group_reference_check_all(c, checked.reference, run->title);
    release_chunks(run);
    group_reference_destroy(checked.reference);
}

/* ---- making inputs ---- */

static void release_columns(struct group_columns *columns) {
    for (int k = 0; k < MAX_KEYS; k++)
        sx_tensor_release(&columns->keys[k]);
    for (int a = 0; a < MAX_AGGREGATES; a++) {
        sx_tensor_release(&columns->inputs[a]);
        sx_tensor_release(&columns->filters[a]);
    }
}

struct sx_aggregate_spec group_aggregate_of(enum sx_aggregate function, struct sx_type input) {
    struct sx_aggregate_spec spec = {function, input, input};
    const bool is_float = input.id == SX_TYPE_F32 || input.id == SX_TYPE_F64;
    if (function == SX_AGG_COUNT || function == SX_AGG_COUNT_STAR)
        spec.output = TYPE(I64);
    else if (function == SX_AGG_AVG || (function == SX_AGG_SUM && is_float))
        spec.output = TYPE(F64);
    else if (function == SX_AGG_SUM)
        spec.output = input.id == SX_TYPE_DECIMAL ? DECIMAL(38, input.scale) : TYPE(I128);
    return spec;
}

static bool is_wide(struct sx_type type) {
    return sx_type_phys(type) == SX_PHYS_I128;
}

/* Sums of some thousands must fit. */
static void shrink(struct sx_tensor *column) {
    sx_i128 *values = column->values;
    for (int64_t i = 0; is_wide(column->type) && i < column->length; i++)
        values[i] /= 1 << 30;
}

static enum sx_status make_input(struct conformance *c, const struct sx_aggregate_spec *spec, int64_t rows,
                                 enum conformance_fill fill, double null_share, struct sx_tensor *out) {
    const bool adds = spec->function == SX_AGG_SUM || spec->function == SX_AGG_AVG;
    const bool is_float = spec->input.id == SX_TYPE_F32 || spec->input.id == SX_TYPE_F64;
    if (spec->function == SX_AGG_COUNT_STAR) {
        *out = (struct sx_tensor){.type = spec->input, .length = rows};
        return sx_tensor_create(c->pool, TYPE(I8), rows, false, out, &c->error);
    }
    if (adds && is_float && fill == FILL_EXTREMES)
        fill = FILL_RANDOM;
    SX_TRY(conformance_column(c, spec->input, rows, fill, null_share, out));
    if (adds)
        shrink(out);
    return SX_OK;
}

static enum sx_status constant_of(struct conformance *c, struct sx_tensor *column) {
    struct sx_scalar value = {.type = column->type, .is_null = true};
    struct sx_tensor constant;
    if (column->length > 0)
        sx_tensor_scalar(column, column->length / 2, &value);
    SX_TRY(sx_tensor_create_constant(c->pool, &value, column->length, &constant, &c->error));
    sx_tensor_release(column);
    *column = constant;
    return SX_OK;
}

/* ---- the matrix ---- */

static bool adds(enum sx_aggregate function) {
    return function == SX_AGG_SUM || function == SX_AGG_AVG;
}

/* A column that was made for a sum before, which aggregate a may have, too; -1: there is none. */
static int column_to_share(const struct sx_group_spec *spec, const struct group_columns *columns, int a) {
    const struct sx_type type = spec->aggregates[a].input;
    if (!adds(spec->aggregates[a].function) && spec->aggregates[a].function != SX_AGG_COUNT)
        return -1;
    for (int b = 0; b < a; b++) {
        const struct sx_type other = spec->aggregates[b].input;
        if (adds(spec->aggregates[b].function) && columns->inputs[b].length > 0 && type.id == other.id &&
            type.precision == other.precision && type.scale == other.scale)
            return b;
    }
    return -1;
}

static enum sx_status make_column(struct conformance *c, const struct sx_group_spec *spec,
                                  const struct group_shape *shape, int a, struct group_columns *columns) {
    const int shared = shape->shared ? column_to_share(spec, columns, a) : -1;
    if (shared < 0)
        return make_input(c, &spec->aggregates[a], shape->rows, shape->fill, shape->null_share,
                          &columns->inputs[a]);
    sx_tensor_share(&columns->inputs[shared], &columns->inputs[a]);
    return SX_OK;
}

static enum sx_status make_columns(struct conformance *c, const struct sx_group_spec *spec,
                                   const struct group_shape *shape, struct group_columns *columns) {
    for (int k = 0; k < spec->n_keys; k++) {
        SX_TRY(conformance_column(c, spec->key_types[k], shape->rows, shape->fill, shape->null_share,
                                  &columns->keys[k]));
        if (shape->constant_keys >> k & 1)
            SX_TRY(constant_of(c, &columns->keys[k]));
    }
    for (int a = 0; a < spec->n_aggregates; a++) {
        columns->inputs[a].length = columns->filters[a].length = -1;
        if (!(shape->left_alone >> a & 1))
            SX_TRY(make_column(c, spec, shape, a, columns));
        if (shape->constant_inputs >> a & 1 && columns->inputs[a].length > 0)
            SX_TRY(constant_of(c, &columns->inputs[a]));
        else if (shape->coded_inputs >> a & 1 && columns->inputs[a].length > 0)
            SX_TRY(conformance_code_values(c, &columns->inputs[a]));
        if (shape->filtered && a % 3 != 2)
            SX_TRY(conformance_column(c, TYPE(BOOL), shape->rows, FILL_RANDOM, shape->null_share,
                                      &columns->filters[a]));
    }
    return SX_OK;
}

void group_check_shape(struct conformance *c, const struct sx_group_spec *base,
                       const struct group_shape *shape, const char *what) {
    struct sx_group_spec spec = *base;
    if (!conformance_takes(c))
        return;
    spec.n_workers = shape->n_workers;
    spec.expected_rows = (double)shape->rows * 0.5 * (int)shape->fill; /* right, far too many, or too few */
    struct group_columns columns = {0};
    char title[160];
    snprintf(title, sizeof title, "%s, %lld rows, fill %d, nulls %g, %d workers%s%s", what,
             (long long)shape->rows, (int)shape->fill, shape->null_share, shape->n_workers,
             shape->filtered ? ", filters" : "", shape->dictionaries ? ", dictionaries" : "");
    struct group_input input = {.spec = &spec,
                                .keys = columns.keys,
                                .inputs = columns.inputs,
                                .filters = shape->filtered ? columns.filters : NULL,
                                .rows = shape->rows};
    struct run run = {.input = &input,
                      .title = title,
                      .chunk_rows = shape->chunk_rows ? shape->chunk_rows : 3000,
                      .max_rows = shape->max_rows ? shape->max_rows : 777,
                      .dictionaries = shape->dictionaries,
                      .selects = shape->selects};
    const enum sx_status status = make_columns(c, &spec, shape, &columns);
    if (shape->order && status == SX_OK)
        group_put_in_order(c, shape, run.chunk_rows, &columns.keys[0]);
    if (CONFORM(c, status == SX_OK, "%s: %s", title, c->error.text))
        check_run(c, &run);
    release_columns(&columns);
}

static const struct sx_type key_types[] = {
    {SX_TYPE_BOOL, 0, 0},      {SX_TYPE_I8, 0, 0},       {SX_TYPE_I16, 0, 0},      {SX_TYPE_I32, 0, 0},
    {SX_TYPE_I64, 0, 0},       {SX_TYPE_I128, 0, 0},     {SX_TYPE_U8, 0, 0},       {SX_TYPE_U16, 0, 0},
    {SX_TYPE_U32, 0, 0},       {SX_TYPE_U64, 0, 0},      {SX_TYPE_U128, 0, 0},     {SX_TYPE_F32, 0, 0},
    {SX_TYPE_F64, 0, 0},       {SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_DECIMAL, 30, 4}, {SX_TYPE_DATE, 0, 0},
    {SX_TYPE_TIMESTAMP, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},  {SX_TYPE_NULLTYPE, 0, 0},
};
enum { N_KEY_TYPES = sizeof key_types / sizeof key_types[0] };

static void conform_key_types(struct conformance *c) {
    const struct sx_aggregate_spec aggregates[] = {
        group_aggregate_of(SX_AGG_COUNT_STAR, TYPE(NULLTYPE)), group_aggregate_of(SX_AGG_SUM, DECIMAL(15, 2)),
        group_aggregate_of(SX_AGG_MIN, TYPE(VARCHAR)), group_aggregate_of(SX_AGG_AVG, TYPE(I32))};
    for (int t = 0; t < N_KEY_TYPES; t++)
        for (int r = 0; r < conformance_n_rows; r++)
            for (int f = FILL_RANDOM; f <= FILL_SORTED; f++) {
                const struct sx_group_spec spec = {1, &key_types[t], 4, aggregates, 1, 0};
                const struct group_shape shape = {.rows = conformance_rows[r],
                                                  .fill = (enum conformance_fill)f,
                                                  .null_share = (r + f) % 2 ? 0.2 : 0,
                                                  .n_workers = 1 + (t + r + f) % MAX_WORKERS,
                                                  .dictionaries = f == FILL_FEW_VALUES || f == FILL_EXTREMES,
                                                  .constant_keys = r % 4 == 3 && f == FILL_SORTED};
                char name[SX_TYPE_NAME_BYTES];
                group_check_shape(c, &spec, &shape, sx_type_name(key_types[t], name));
            }
}

static const struct sx_type key_lists[][MAX_KEYS] = {
    {{0}},
    {{SX_TYPE_BOOL, 0, 0}},
    {{SX_TYPE_I64, 0, 0}},
    {{SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}},
    {{SX_TYPE_I32, 0, 0}, {SX_TYPE_DATE, 0, 0}, {SX_TYPE_BOOL, 0, 0}},
    {{SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_I64, 0, 0}, {SX_TYPE_F64, 0, 0}, {SX_TYPE_DECIMAL, 30, 4}},
    {{SX_TYPE_BOOL, 0, 0},
     {SX_TYPE_I8, 0, 0},
     {SX_TYPE_BOOL, 0, 0},
     {SX_TYPE_U16, 0, 0},
     {SX_TYPE_F32, 0, 0},
     {SX_TYPE_BOOL, 0, 0},
     {SX_TYPE_VARCHAR, 0, 0},
     {SX_TYPE_NULLTYPE, 0, 0},
     {SX_TYPE_BOOL, 0, 0},
     {SX_TYPE_I128, 0, 0}},
};
static const int key_counts[] = {0, 1, 1, 2, 3, 4, 10};
enum { N_KEY_LISTS = sizeof key_counts / sizeof key_counts[0] };

/* The functions that take the type. */
static int functions_of(struct sx_type type, struct sx_aggregate_spec *specs) {
    int n = 0;
    const enum sx_type_id id = type.id;
    const bool adds = id != SX_TYPE_DATE && id != SX_TYPE_TIMESTAMP && id != SX_TYPE_VARCHAR &&
                      id != SX_TYPE_U128 && id != SX_TYPE_NULLTYPE && id != SX_TYPE_INTERVAL;
    for (int f = SX_AGG_COUNT_STAR; f <= SX_AGG_ANY_VALUE; f++) {
        const bool is_sum = f == SX_AGG_SUM || f == SX_AGG_AVG;
        const bool is_best = f == SX_AGG_MIN || f == SX_AGG_MAX;
        if ((is_sum && !adds) || (is_best && id == SX_TYPE_INTERVAL))
            continue;
        specs[n++] = group_aggregate_of((enum sx_aggregate)f, type);
    }
    return n;
}

static void conform_aggregates(struct conformance *c, struct sx_type type, const struct group_shape *shape) {
    struct sx_aggregate_spec specs[MAX_AGGREGATES];
    const int n = functions_of(type, specs);
    char name[SX_TYPE_NAME_BYTES], what[64];
    for (int l = 0; l < N_KEY_LISTS; l++) {
        const struct sx_group_spec spec = {key_counts[l], key_lists[l], n, specs, 1, 0};
        snprintf(what, sizeof what, "%d keys, aggregates of %s", key_counts[l], sx_type_name(type, name));
        group_check_shape(c, &spec, shape, what);
    }
}

static void conform_aggregate_types(struct conformance *c) {
    const int64_t rows[] = {0, 1, 64, conformance_rows[conformance_n_rows - 2]};
    static const struct sx_type interval = {SX_TYPE_INTERVAL, 0, 0};
    for (int t = 0; t <= N_KEY_TYPES; t++)
        for (int r = 0; r < 4; r++)
            for (int v = 0; v < 4; v++) {
                const struct group_shape shape = {.rows = rows[r],
                                                  .fill = (enum conformance_fill)((v + t) % 4),
                                                  .null_share = v == 0   ? 0
                                                                : v == 3 ? 0.95
                                                                         : 0.3,
                                                  .n_workers = 1 + (v + r) % MAX_WORKERS,
                                                  .filtered = v % 2,
                                                  .dictionaries = v == 2 || v == 3,
                                                  .constant_inputs = v == 2 ? 0x5a : 0,
                                                  .left_alone = v == 3 ? 0x21 : 0,
                                                  .shared = v % 2 == 0};
                conform_aggregates(c, t < N_KEY_TYPES ? key_types[t] : interval, &shape);
            }
}

/* Few groups of equal inputs without nulls: sums are shared and taken in blocks. */
static void conform_few_groups(struct conformance *c) {
    const struct sx_aggregate_spec aggregates[] = {
        group_aggregate_of(SX_AGG_SUM, DECIMAL(15, 2)),  group_aggregate_of(SX_AGG_AVG, DECIMAL(15, 2)),
        group_aggregate_of(SX_AGG_SUM, TYPE(I64)),       group_aggregate_of(SX_AGG_COUNT, TYPE(I64)),
        group_aggregate_of(SX_AGG_SUM, TYPE(U64)),       group_aggregate_of(SX_AGG_SUM, TYPE(U8)),
        group_aggregate_of(SX_AGG_COUNT_STAR, TYPE(I8)),
    };
    for (int fill = FILL_RANDOM; fill <= FILL_EXTREMES; fill++)
        for (int workers = 1; workers <= MAX_WORKERS; workers++) {
            const struct sx_type keys[] = {TYPE(VARCHAR), TYPE(BOOL)};
            const struct sx_group_spec spec = {2, keys, 7, aggregates, 1, 0};
            const struct group_shape shape = {.rows = 20011,
                                              .fill = (enum conformance_fill)fill,
                                              .n_workers = workers,
                                              .dictionaries = true,
                                              .shared = workers % 2 == 1};
            group_check_shape(c, &spec, &shape, "few groups");
        }
}

/* More groups than an index in the cache holds. */
static void conform_many_groups(struct conformance *c) {
    const struct sx_aggregate_spec aggregates[] = {group_aggregate_of(SX_AGG_SUM, TYPE(I32)),
                                                   group_aggregate_of(SX_AGG_MAX, TYPE(VARCHAR))};
    const struct sx_aggregate_spec of_one[] = {group_aggregate_of(SX_AGG_SUM, TYPE(I32)),
                                               group_aggregate_of(SX_AGG_AVG, TYPE(I32)),
                                               group_aggregate_of(SX_AGG_COUNT, TYPE(I32))};
    static const struct sx_type integer[] = {{SX_TYPE_I64, 0, 0}};
    static const struct sx_type strings[] = {{SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_I32, 0, 0}};
    for (int workers = 1; workers <= 2; workers++) {
        struct group_shape shape = {
            .rows = 400000, .n_workers = workers, .chunk_rows = 50000, .max_rows = 10000, .null_share = 0.01};
        const struct sx_group_spec narrow = {1, integer, 1, aggregates, 1, 0};
        group_check_shape(c, &narrow, &shape, "many integers");
        shape.fill = FILL_SORTED;
        group_check_shape(c, &narrow, &shape, "many sorted integers");
        const struct sx_group_spec shared = {1, integer, 3, of_one, 1, 0};
        shape.shared = true;
        shape.null_share = workers == 1 ? 0 : 0.01;
        group_check_shape(c, &shared, &shape, "many sorted integers with sums of one column");
        shape.shared = false;
        shape.null_share = 0.01;
        shape.rows = 200000;
        shape.fill = FILL_RANDOM;
        const struct sx_group_spec wide = {2, strings, 2, aggregates, 1, 0};
        group_check_shape(c, &wide, &shape, "many strings");
    }
}

/* Wide rows, each group often, and more groups than stay in the cache: rows pile up and are merged early. */
static void conform_crowded(struct conformance *c) {
    enum { ROWS = 250000, GROUPS = 21000 };
    struct sx_aggregate_spec aggregates[MAX_AGGREGATES];
    struct group_columns columns = {0};
    const struct sx_type key = TYPE(I64);
    const struct sx_group_spec spec = {1, &key, MAX_AGGREGATES, aggregates, 1, 0};
    const struct group_shape shape = {.rows = ROWS, .constant_inputs = ~1U};
    const struct group_input input = {
        .spec = &spec, .keys = columns.keys, .inputs = columns.inputs, .rows = ROWS};
    struct run run = {.input = &input, .title = "crowded", .chunk_rows = 50000, .max_rows = 10000};
    for (int a = 0; a < MAX_AGGREGATES; a++)
        aggregates[a] = group_aggregate_of(a % 2 ? SX_AGG_MIN : SX_AGG_MAX, TYPE(VARCHAR));
    const enum sx_status status = make_columns(c, &spec, &shape, &columns);
    if (CONFORM(c, status == SX_OK, "crowded: %s", c->error.text)) {
        int64_t *values = columns.keys[0].values;
        for (int64_t i = 0; i < ROWS; i++)
            values[i] = (int64_t)(conformance_random(c) % GROUPS);
        check_run(c, &run);
    }
    release_columns(&columns);
}

/* ---- failures ---- */

static void ignore_batch(struct conformance *c, void *context, const struct sx_batch *batch) {
    (void)c;
    (void)context;
    (void)batch;
}

/* With any limit the group by ends well or says that memory is short, and gives everything back. */
static void conform_memory_limit(struct conformance *c) {
    const struct sx_type keys[] = {TYPE(I64), TYPE(VARCHAR)};
    const struct sx_aggregate_spec aggregates[] = {group_aggregate_of(SX_AGG_SUM, TYPE(I32)),
                                                   group_aggregate_of(SX_AGG_MIN, TYPE(VARCHAR))};
    const struct sx_group_spec spec = {2, keys, 2, aggregates, 2, 0};
    const struct group_shape shape = {.rows = 30000, .n_workers = 2};
    struct group_columns columns = {0};
    const struct group_input input = {
        .spec = &spec, .keys = columns.keys, .inputs = columns.inputs, .rows = shape.rows};
    struct run run = {.input = &input, .title = "memory limit", .chunk_rows = 3000, .max_rows = 5000};
    enum sx_status status = make_columns(c, &spec, &shape, &columns);
    if (status == SX_OK)
        status = make_chunks(c, &run);
    CONFORM(c, status == SX_OK, "memory limit: %s", c->error.text);
    bool failed = false, passed = false;
    for (size_t limit = 1 << 12; limit <= (size_t)1 << 27 && status == SX_OK; limit += limit / 4) {
        struct sx_pool *pool;
        if (sx_pool_create(limit, &pool, &c->error) != SX_OK)
            break;
        const enum sx_status got = execute(c, &run, pool, ignore_batch, NULL);
        CONFORM(c, got == SX_OK || got == SX_OUT_OF_MEMORY, "limit %zu: %s", limit, c->error.text);
        CONFORM(c, sx_pool_usage(pool).used_bytes == 0, "limit %zu: not all memory was given back", limit);
        failed |= got == SX_OUT_OF_MEMORY;
        passed |= got == SX_OK;
        sx_pool_destroy(pool);
    }
    CONFORM(c, failed && passed, "the limits tried fail and pass");
    release_chunks(&run);
    release_columns(&columns);
}

static void conform_overflow(struct conformance *c, int n_workers) {
    const struct sx_aggregate_spec sum = group_aggregate_of(SX_AGG_SUM, TYPE(I128));
    const struct sx_group_spec spec = {0, NULL, 1, &sum, n_workers, 0};
    const struct sx_scalar highest = {.type = TYPE(I128), .v.i128 = SX_I128_MAX / 2 + 1};
    struct sx_tensor column = {0};
    const struct group_input input = {.spec = &spec, .inputs = &column, .rows = 2};
    struct run run = {.input = &input, .title = "overflow", .chunk_rows = 1, .max_rows = 10};
    enum sx_status status = sx_tensor_create_constant(c->pool, &highest, 2, &column, &c->error);
    if (status == SX_OK)
        status = make_chunks(c, &run);
    CONFORM(c, status == SX_OK, "overflow: %s", c->error.text);
    status = execute(c, &run, c->pool, ignore_batch, NULL);
    CONFORM(c, status == SX_QUERY && strstr(c->error.text, "Overflow in HUGEINT addition"), "overflow: %d %s",
            (int)status, c->error.text);
    release_chunks(&run);
    sx_tensor_release(&column);
}

static void conform_cancel(struct conformance *c) {
    const struct sx_type keys[] = {TYPE(I64)};
    const struct sx_group_spec spec = {1, keys, 0, NULL, 1, 0};
    const struct sx_backend_ops *ops = &c->backend->ops;
    const atomic_bool cancel = true;
    struct sx_stream *stream;
    struct sx_group *group = NULL;
    struct sx_tensor host = {0}, key = {0};
    enum sx_status status = ops->stream_create(c->backend, c->pool, &cancel, &stream, &c->error);
    if (!CONFORM(c, status == SX_OK, "cancel: %s", c->error.text))
        return;
    SX_GO(conformance_column(c, keys[0], 1 << 21, FILL_RANDOM, 0, &host));
    SX_GO(conformance_send(c, &host, &key));
    SX_GO(ops->group_create(stream, &spec, &group));
    status = ops->group_update(stream, group, 0, &key, NULL, NULL, key.length);
    CONFORM(c, status == SX_CANCELLED, "a cancelled update gave %d", (int)status);
    status = SX_OK;
out:
    CONFORM(c, status == SX_OK, "cancel: %d", (int)status);
    if (group)
        ops->group_destroy(stream, group);
    ops->stream_destroy(stream);
    sx_tensor_release(&host);
    sx_tensor_release(&key);
}

void conform_group(struct conformance *c) {
    conform_key_types(c);
    conform_aggregate_types(c);
    conform_few_groups(c);
    conform_many_groups(c);
    if (conformance_takes(c))
        conform_crowded(c);
    if (conformance_takes(c))
        conform_memory_limit(c);
    conform_group_order(c);
    conform_group_coded(c);
    conform_group_one(c);
    conform_overflow(c, 1);
    conform_overflow(c, 2);
    conform_cancel(c);
    conform_group_failed(c);
}
