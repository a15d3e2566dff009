/* eval_run and eval_select over programs as queries have them. */
#include "bench/case.h"

static enum sx_status use_run(struct bench_worker *worker, struct bench_case *c,
                              const struct sx_batch *batch) {
    struct sx_tensor outputs[4] = {0};
    SX_TRY(worker->bench->ops->eval_run(worker->stream, worker->eval, batch, outputs));
    for (int o = 0; o < c->program.n_outputs; o++)
        sx_tensor_release(&outputs[o]);
    return SX_OK;
}

static enum sx_status use_select(struct bench_worker *worker, struct bench_case *c,
                                 const struct sx_batch *batch) {
    struct sx_tensor selection = {0};
    (void)c;
    SX_TRY(worker->bench->ops->eval_select(worker->stream, worker->eval, batch, NULL, &selection));
    sx_tensor_release(&selection);
    return SX_OK;
}

enum { TEXT_BYTES = 24 }; /* of the strings of bench_values, about */

static double input_bytes(const struct bench_case *c) {
    double bytes = 0;
    for (int i = 0; i < c->n_columns; i++) {
        const struct bench_column *column = &c->columns[i];
        const bool is_text = column->type.id == SX_TYPE_VARCHAR;
        bytes += column->is_dictionary ? 4 : (double)sx_type_bytes(column->type) + (is_text ? TEXT_BYTES : 0);
    }
    return bytes;
}

/* `out` bytes a row come out. */
static void measure_run(struct bench *bench, struct bench_case *c, int64_t rows, int32_t output, double out) {
    bench_output(&c->program, output);
    c->primitive = "eval_run";
    c->rows = rows;
    c->bytes = (input_bytes(c) + out) * (double)rows;
    c->use = use_run;
    c->run = bench_run_chunks;
    bench_measure(bench, c);
}

/* That share of the rows passes. */
static void measure_select(struct bench *bench, struct bench_case *c, int64_t rows, double share) {
    c->primitive = "eval_select";
    c->rows = rows;
    c->bytes = (input_bytes(c) + 4 * share) * (double)rows;
    c->use = use_select;
    c->run = bench_run_chunks;
    bench_measure(bench, c);
}

/* price * (1 - discount), computed as `type`. */
static void multiply(struct bench *bench, int64_t rows, struct sx_type stored, int width, const char *name) {
    struct bench_case c = {0};
    struct bench_program *p = &c.program;
    const struct sx_type type = sx_type_decimal(width, 2), product = sx_type_decimal(width, 4);
    int32_t price = bench_add_column(&c, stored, 100000, false);
    int32_t discount = bench_add_column(&c, stored, 11, false);
    const int32_t one = bench_number(p, type, 100);
    if (!sx_type_equal(stored, type)) {
        price = bench_call(p, SX_FN_CAST, type, price, 0, 0);
        discount = bench_call(p, SX_FN_CAST, type, discount, 0, 0);
    }
    const int32_t rest = bench_call(p, SX_FN_SUB, type, one, discount, 0);
    bench_name(&c, "%s a * (1 - b)", name);
    measure_run(bench, &c, rows, bench_call(p, SX_FN_MUL, product, price, rest, 0),
                (double)sx_type_bytes(product));
}

static void compare(struct bench *bench, int64_t rows, struct sx_type type, const char *name) {
    struct bench_case c = {0};
    const int32_t a = bench_add_column(&c, type, 100000, false),
                  b = bench_add_column(&c, type, 100000, false);
    bench_name(&c, "%s a < b", name);
    measure_run(bench, &c, rows, bench_call(&c.program, SX_FN_LT, sx_type_of(SX_TYPE_BOOL), a, b, 0), 1);
}

static void match_text(struct bench *bench, int64_t rows, enum sx_function function, const char *pattern,
                       bool is_dictionary, const char *name) {
    struct bench_case c = {0};
    const int32_t text = bench_add_column(&c, sx_type_of(SX_TYPE_VARCHAR), 1000, is_dictionary);
    const int32_t constant = bench_text(&c.program, pattern);
    bench_name(&c, "%s, %s", name, is_dictionary ? "dictionary" : "strings");
    measure_run(bench, &c, rows,
                bench_call(&c.program, function, sx_type_of(SX_TYPE_BOOL), text, constant, 0), 1);
}

/* CASE WHEN a = 'x' THEN b ELSE 0 END */
static void choose(struct bench *bench, int64_t rows, bool is_dictionary) {
    struct bench_case c = {0};
    struct bench_program *p = &c.program;
    const struct sx_type type = sx_type_decimal(15, 2);
    const int32_t text = bench_add_column(&c, sx_type_of(SX_TYPE_VARCHAR), 25, is_dictionary);
    const int32_t value = bench_add_column(&c, type, 100000, false);
    const int32_t wanted = bench_text(p, "a text of the rows 7"), zero = bench_number(p, type, 0);
    const int32_t is_wanted = bench_call(p, SX_FN_EQ, sx_type_of(SX_TYPE_BOOL), text, wanted, 0);
    bench_name(&c, "case when a = 'x' then b else 0, %s", is_dictionary ? "dictionary" : "strings");
    measure_run(bench, &c, rows, bench_call(p, SX_FN_CHOOSE, type, is_wanted, value, zero), 8);
}

static void year(struct bench *bench, int64_t rows) {
    struct bench_case c = {0};
    const int32_t date = bench_add_column(&c, sx_type_of(SX_TYPE_DATE), 2400, false);
    bench_name(&c, "year(date)");
    measure_run(bench, &c, rows, bench_call(&c.program, SX_FN_YEAR, sx_type_of(SX_TYPE_I64), date, 0, 0), 8);
}

static void substring(struct bench *bench, int64_t rows) {
    struct bench_case c = {0};
    struct bench_program *p = &c.program;
    const struct sx_type text = sx_type_of(SX_TYPE_VARCHAR), number = sx_type_of(SX_TYPE_I64);
    const int32_t a = bench_add_column(&c, text, 1000, false);
    const int32_t first = bench_number(p, number, 3), n = bench_number(p, number, 8);
    bench_name(&c, "substring(a, 3, 8)");
    measure_run(bench, &c, rows, bench_call(p, SX_FN_SUBSTRING, text, a, first, n), 16);
}

/* a < c, of which `percent` of the rows pass. */
static void select_less(struct bench *bench, int64_t rows, int percent) {
    struct bench_case c = {0};
    const struct sx_type type = sx_type_of(SX_TYPE_I64);
    const int32_t a = bench_add_column(&c, type, 100, false), most = bench_number(&c.program, type, percent);
    bench_output(&c.program, bench_call(&c.program, SX_FN_LT, sx_type_of(SX_TYPE_BOOL), a, most, 0));
    bench_name(&c, "int64 a < c, %d %% pass", percent);
    measure_select(bench, &c, rows, percent / 100.0);
}

/* The filter of TPC-H query 6: a year, three of eleven discounts, half of the quantities. */
static void select_q6(struct bench *bench, int64_t rows) {
    struct bench_case c = {0};
    struct bench_program *p = &c.program;
    const struct sx_type date = sx_type_of(SX_TYPE_DATE), decimal = sx_type_decimal(15, 2),
                         boolean = sx_type_of(SX_TYPE_BOOL);
    const int32_t shipped = bench_add_column(&c, date, 2400, false),
                  discount = bench_add_column(&c, decimal, 11, false),
                  quantity = bench_add_column(&c, decimal, 50, false);
    const int32_t from = bench_number(p, date, 8766), to = bench_number(p, date, 9131),
                  least = bench_number(p, decimal, 500), most = bench_number(p, decimal, 700),
                  few = bench_number(p, decimal, 2400);
    bench_output(p, bench_call(p, SX_FN_GE, boolean, shipped, from, 0));
    bench_output(p, bench_call(p, SX_FN_LT, boolean, shipped, to, 0));
    const int32_t enough = bench_call(p, SX_FN_GE, boolean, discount, least, 0);
    bench_output(
        p, bench_call(p, SX_FN_AND, boolean, enough, bench_call(p, SX_FN_LE, boolean, discount, most, 0), 0));
    bench_output(p, bench_call(p, SX_FN_LT, boolean, quantity, few, 0));
    bench_name(&c, "query 6, 2 %% pass");
    measure_select(bench, &c, rows, 0.02);
}

void bench_expressions(struct bench *bench, int64_t rows) {
    multiply(bench, rows, sx_type_decimal(18, 2), 18, "decimal64");
    multiply(bench, rows, sx_type_decimal(15, 2), 30, "decimal128");
    compare(bench, rows, sx_type_of(SX_TYPE_I64), "int64");
    compare(bench, rows, sx_type_decimal(15, 2), "decimal64");
    compare(bench, rows, sx_type_decimal(30, 2), "decimal128");
    for (int is_dictionary = 0; is_dictionary < 2; is_dictionary++) {
        match_text(bench, rows, SX_FN_EQ, "a text of the rows 77", is_dictionary, "a = 'x'");
        match_text(bench, rows, SX_FN_LIKE, "%the%77%", is_dictionary, "a like '%x%y%'");
        choose(bench, rows, is_dictionary);
    }
    year(bench, rows);
    substring(bench, rows);
    select_less(bench, rows, 1);
    select_less(bench, rows, 50);
    select_q6(bench, rows);
}
