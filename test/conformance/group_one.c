/* Group by of sums and counts, several of which a device adds in one launch where there are no keys. */
#include <string.h>

#include "group_case.h"

/* ---- more aggregates than one launch takes ---- */

static const struct sx_type summed[] = {
    {SX_TYPE_I8, 0, 0},       {SX_TYPE_I16, 0, 0},      {SX_TYPE_I32, 0, 0},  {SX_TYPE_I64, 0, 0},
    {SX_TYPE_I128, 0, 0},     {SX_TYPE_U8, 0, 0},       {SX_TYPE_U16, 0, 0},  {SX_TYPE_U32, 0, 0},
    {SX_TYPE_U64, 0, 0},      {SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_BOOL, 0, 0}, {SX_TYPE_DECIMAL, 30, 4},
    {SX_TYPE_DECIMAL, 38, 2},
};
enum { N_SUMMED = sizeof summed / sizeof summed[0] };

/* Sums of integers alone, every fourth one an average. */
static void make_sums(struct sx_aggregate_spec specs[MAX_AGGREGATES]) {
    for (int a = 0; a < MAX_AGGREGATES; a++)
        specs[a] =
            group_aggregate_of(a % 4 == 3 && a >= N_SUMMED ? SX_AGG_AVG : SX_AGG_SUM, summed[a % N_SUMMED]);
}

/* With what is added in other ways between them. */
static void make_mixed(struct sx_aggregate_spec specs[MAX_AGGREGATES]) {
    const struct sx_aggregate_spec others[] = {
        group_aggregate_of(SX_AGG_COUNT, TYPE(VARCHAR)),  group_aggregate_of(SX_AGG_SUM, TYPE(F64)),
        group_aggregate_of(SX_AGG_COUNT_STAR, TYPE(I8)),  group_aggregate_of(SX_AGG_MIN, TYPE(I64)),
        group_aggregate_of(SX_AGG_COUNT, TYPE(I64)),      group_aggregate_of(SX_AGG_AVG, TYPE(F32)),
        group_aggregate_of(SX_AGG_COUNT, TYPE(NULLTYPE)), group_aggregate_of(SX_AGG_FIRST, TYPE(VARCHAR)),
        group_aggregate_of(SX_AGG_SUM, TYPE(F32)),        group_aggregate_of(SX_AGG_COUNT, DECIMAL(30, 4)),
    };
    make_sums(specs);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        specs[2 * i] = others[i];
}

static void check_both(struct conformance *c, const struct group_shape *shape, int n_keys) {
    static const struct sx_type key = {SX_TYPE_BOOL, 0, 0};
    struct sx_aggregate_spec specs[MAX_AGGREGATES];
    const struct sx_group_spec spec = {n_keys, &key, MAX_AGGREGATES, specs, 1, 0};
    make_sums(specs);
    group_check_shape(c, &spec, shape, n_keys ? "sums of two groups" : "sums of one group");
    make_mixed(specs);
    group_check_shape(c, &spec, shape, n_keys ? "aggregates of two groups" : "aggregates of one group");
}

static void conform_several_sums(struct conformance *c) {
    static const int64_t rows[] = {0, 1, 257, 9000};
    for (int r = 0; r < 4; r++)
        for (int fill = FILL_RANDOM; fill <= FILL_SORTED; fill++)
            for (int v = 0; v < 7; v++) {
                const struct group_shape shape = {.rows = rows[r],
                                                  .fill = (enum conformance_fill)fill,
                                                  .null_share = v % 2 ? 0.3 : 0,
                                                  .n_workers = 1 + (r + v) % MAX_WORKERS,
                                                  .filtered = v == 2 || v == 5,
                                                  .dictionaries = v == 3,
                                                  .constant_inputs = v == 3 || v == 4 ? 0x52492 : 0,
                                                  .coded_inputs = v == 6   ? ~0u
                                                                  : v >= 3 ? 0x8d365
                                                                           : 0,
                                                  .selects = v == 6,
                                                  .left_alone = v == 4 ? 0x10421 : 0,
                                                  .shared = v < 2,
                                                  .chunk_rows = 4500};
                check_both(c, &shape, 0);
                if (v >= 4)
                    check_both(c, &shape, 1);
            }
}

/* So many that threads go round: as they are, with NULLs, with filters, and selected. */
static void conform_many_rows(struct conformance *c) {
    for (int v = 0; v < 4; v++) {
        const struct group_shape shape = {.rows = 270011,
                                          .fill = FILL_EXTREMES,
                                          .null_share = v == 1 ? 0.1 : 0,
                                          .n_workers = 1,
                                          .filtered = v == 2,
                                          .coded_inputs = v == 3 ? ~0u : 0,
                                          .selects = v == 3,
                                          .chunk_rows = 270000};
        check_both(c, &shape, 0);
    }
}

/* ---- one sum ---- */

enum sx_status group_sum_and_count(struct conformance *c, const struct sx_tensor *column,
                                   struct sx_batch *out_host) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    const struct sx_aggregate_spec specs[] = {group_aggregate_of(SX_AGG_SUM, column->type),
                                              group_aggregate_of(SX_AGG_COUNT, column->type)};
    const struct sx_group_spec spec = {0, NULL, 2, specs, 1, 0};
    const struct sx_tensor inputs[] = {*column, *column}; /* borrowed */
    struct sx_group *group = NULL;
    struct sx_batch batch = {0};
    int parts;
    int64_t cursor = 0, most_rows;
    enum sx_status status;
    SX_GO(ops->group_create(c->stream, &spec, &group));
    SX_GO(ops->group_update(c->stream, group, 0, NULL, inputs, NULL, 0));
    SX_GO(ops->group_update(c->stream, group, 0, NULL, inputs, NULL, column->length));
    SX_GO(ops->group_finish(c->stream, group, &parts, &most_rows));
    SX_GO(ops->group_emit(c->stream, group, 0, &cursor, 1, &batch));
    SX_GO(ops->batch_to_host(c->stream, &batch, out_host));
out:
    sx_batch_release(&batch);
    if (group)
        ops->group_destroy(c->stream, group);
    return status;
}

static enum sx_status sum_of(struct conformance *c, const struct sx_tensor *values,
                             struct sx_batch *out_host) {
    struct sx_tensor sent;
    SX_TRY(conformance_send(c, values, &sent));
    const enum sx_status status = group_sum_and_count(c, &sent, out_host);
    sx_tensor_release(&sent);
    return status;
}

/* Rows that are all NULL, as a dictionary without entries. */
static void conform_no_entries(struct conformance *c) {
    enum { ROWS = 5000 };
    struct sx_tensor entries = {0}, values = {0};
    struct sx_dict *dict = NULL;
    struct sx_batch host = {0};
    struct sx_scalar sum;
    enum sx_status status;
    SX_GO(sx_tensor_create(c->pool, TYPE(I64), 0, false, &entries, &c->error));
    SX_GO(sx_dict_create(&entries, &dict, &c->error));
    SX_GO(sx_tensor_create_codes(c->pool, dict, ROWS, true, &values, &c->error));
    memset(values.values, 0, ROWS * sizeof(int32_t));
    memset(values.valid, 0, ROWS);
    SX_GO(sum_of(c, &values, &host));
    sx_tensor_scalar(&host.columns[0], 0, &sum);
    CONFORM(c, sum.is_null, "a sum of nothing");
out:
    CONFORM(c, status == SX_OK, "no entries: %s", c->stream->error.text);
    sx_batch_release(&host);
    sx_tensor_release(&values);
    sx_dict_release(dict);
    sx_tensor_release(&entries);
}

/* Totals of the first rows are far beyond 128 bits, those of the last ones far below, or the other way; all
 * together is a small number. */
static void conform_wide_totals(struct conformance *c, bool negative_first) {
    enum { ROWS = 5000, REST = 7 };
    const sx_i128 great = negative_first ? SX_I128_MIN / 2 : SX_I128_MAX / 2;
    struct sx_tensor values = {0};
    struct sx_batch host = {0};
    enum sx_status status = sx_tensor_create(c->pool, TYPE(I128), ROWS, false, &values, &c->error);
    if (status == SX_OK) {
        for (int64_t i = 0; i < ROWS; i++)
            ((sx_i128 *)values.values)[i] = i < ROWS / 2 ? great : -great;
        ((sx_i128 *)values.values)[0] += REST;
        status = sum_of(c, &values, &host);
    }
    if (CONFORM(c, status == SX_OK, "wide totals: %s", c->stream->error.text)) {
        struct sx_scalar sum;
        sx_tensor_scalar(&host.columns[0], 0, &sum);
        CONFORM(c, !sum.is_null && sum.v.i128 == REST, "wide totals: %lld", (long long)sum.v.i128);
    }
    sx_batch_release(&host);
    sx_tensor_release(&values);
}

void conform_group_one(struct conformance *c) {
    conform_several_sums(c);
    conform_many_rows(c);
    conform_no_entries(c);
    if (c->library) { /* the CPU adds one value after another */
        conform_wide_totals(c, false);
        conform_wide_totals(c, true);
    }
}
