/* Programs of the kinds that a backend may run in a shorter way where nothing can be NULL, as large as that
 * may be and larger: against the CPU's. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "eval_expect.h"

enum { MOST_COLUMNS = 12, MOST_CONSTANTS = 12, MOST_STEPS = MOST_COLUMNS + MOST_CONSTANTS, MOST_OUTPUTS = 8 };

#define TYPE(name) ((struct sx_type){SX_TYPE_##name, 0, 0})

enum layout { FLAT, CODED, CONSTANT, N_LAYOUTS };

/* A program that is being written, and the same columns for both backends. */
struct direct {
    struct sx_stream *cpu;
    struct sx_type types[MOST_COLUMNS];
    struct sx_scalar constants[MOST_CONSTANTS];
    struct sx_instruction instructions[MOST_STEPS];
    int32_t outputs[MOST_OUTPUTS];
    struct sx_program program;
    int64_t rows;
    struct sx_tensor host[MOST_COLUMNS], sent[MOST_COLUMNS];
};

static void release(struct direct *d) {
    for (int i = 0; i < MOST_COLUMNS; i++) {
        sx_tensor_release(&d->host[i]);
        sx_tensor_release(&d->sent[i]);
    }
}

/* Small values, such that sums and products of a few fit all types but BOOL. */
static enum sx_status fill(struct conformance *c, struct sx_type type, int64_t rows, struct sx_tensor *out) {
    const int64_t below = type.id == SX_TYPE_BOOL ? 2 : 200;
    SX_TRY(sx_tensor_create(c->pool, type, rows, false, out, &c->error));
    for (int64_t i = 0; i < rows; i++) {
        const int64_t value = (int64_t)(conformance_random(c) % (uint64_t)below) - (below > 2 ? 100 : 0);
        switch (type.id) {
        case SX_TYPE_BOOL: ((uint8_t *)out->values)[i] = (uint8_t)value; break;
        case SX_TYPE_I32: ((int32_t *)out->values)[i] = (int32_t)value; break;
        case SX_TYPE_F64: ((double *)out->values)[i] = (double)value / 8; break;
        case SX_TYPE_I128: ((sx_i128 *)out->values)[i] = value; break;
        default: ((int64_t *)out->values)[i] = value;
        }
    }
    return SX_OK;
}

/* Its register. */
static enum sx_status add_column(struct conformance *c, struct direct *d, struct sx_type type,
                                 enum layout layout) {
    const int32_t at = d->program.n_inputs++;
    d->types[at] = type;
    SX_TRY(fill(c, type, d->rows, &d->host[at]));
    if (layout == CODED)
        SX_TRY(conformance_code_values(c, &d->host[at]));
    if (layout == CONSTANT && d->rows > 0) {
        struct sx_scalar scalar;
        struct sx_tensor constant;
        sx_tensor_scalar(&d->host[at], 0, &scalar);
        SX_TRY(sx_tensor_create_constant(c->pool, &scalar, d->rows, &constant, &c->error));
        sx_tensor_release(&d->host[at]);
        d->host[at] = constant;
    }
    return conformance_send(c, &d->host[at], &d->sent[at]);
}

static void add_constant(struct direct *d, struct sx_type type, int64_t value) {
    struct sx_scalar *constant = &d->constants[d->program.n_constants++];
    *constant = (struct sx_scalar){.type = type};
    if (type.id == SX_TYPE_F64)
        constant->v.f64 = (double)value;
    else if (type.id == SX_TYPE_I128)
        constant->v.i128 = value;
    else
        constant->v.i64 = value;
}

/* Behind all columns and constants; its register. */
static int32_t add_step(struct direct *d, enum sx_function function, struct sx_type type, int32_t a,
                        int32_t b, int32_t e) {
    const int32_t at = d->program.n_instructions++;
    d->instructions[at] = (struct sx_instruction){
        .function = function, .type = type, .arguments = {a, b, e}, .mask = SX_NO_REGISTER};
    return d->program.n_inputs + d->program.n_constants + at;
}

static void add_output(struct direct *d, int32_t reg) {
    d->outputs[d->program.n_outputs++] = reg;
}

static void begin(struct direct *d, struct sx_stream *cpu, int64_t rows) {
    memset(d, 0, sizeof *d);
    d->cpu = cpu;
    d->rows = rows;
    d->program = (struct sx_program){
        0, d->types, 0, d->constants, 0, d->instructions, 0, d->outputs,
    };
}

/* ---- running ---- */

/* As outputs, or where `select` as one selection; errors stay in the stream. */
static enum sx_status run(struct direct *d, struct sx_stream *stream, struct sx_tensor *columns, bool select,
                          struct sx_tensor *out) {
    const struct sx_backend_ops *ops = &stream->backend->ops;
    const struct sx_batch batch = {
        .rows = d->rows, .rows_bound = d->rows, .n_columns = d->program.n_inputs, .columns = columns};
    struct sx_eval *eval;
    SX_TRY(ops->eval_create(stream, &d->program, &eval));
    enum sx_status status =
        select ? ops->eval_select(stream, eval, &batch, NULL, out) : ops->eval_run(stream, eval, &batch, out);
    if (status == SX_OK)
        status = ops->synchronise(stream, "faults");
    ops->eval_destroy(stream, eval);
    return status;
}

static bool are_equal(struct conformance *c, const struct sx_tensor *wanted, const struct sx_tensor *got) {
    struct sx_tensor host = {0};
    bool equal = conformance_receive(c, got, &host) == SX_OK && host.length == wanted->length;
    for (int64_t row = 0; equal && row < wanted->length; row++) {
        struct sx_scalar a, b;
        sx_tensor_scalar(wanted, row, &a);
        sx_tensor_scalar(&host, row, &b);
        equal = conformance_scalar_equal(&a, &b);
    }
    sx_tensor_release(&host);
    return equal;
}

/* `fails`: on one row, whose values both tell. */
static void compare(struct conformance *c, struct direct *d, bool select, bool fails, const char *name) {
    struct sx_tensor wanted[MOST_OUTPUTS] = {0}, got[MOST_OUTPUTS] = {0};
    const enum sx_status expected = run(d, d->cpu, d->host, select, wanted),
                         status = run(d, c->stream, d->sent, select, got);
    CONFORM(c, expected == (fails ? SX_QUERY : SX_OK) && status == expected,
            "%s, %lld rows: status %d, on the CPU %d: %s; %s", name, (long long)d->rows, status, expected,
            c->stream->error.text, d->cpu->error.text);
    if (fails)
        CONFORM(c, strcmp(c->stream->error.text, d->cpu->error.text) == 0, "%s: '%s', on the CPU '%s'", name,
                c->stream->error.text, d->cpu->error.text);
    for (int o = 0; o < (select ? 1 : d->program.n_outputs); o++) {
        if (status == SX_OK && expected == SX_OK)
            CONFORM(c, are_equal(c, &wanted[o], &got[o]), "%s, %lld rows: output %d differs", name,
                    (long long)d->rows, o);
        sx_tensor_release(&wanted[o]);
        sx_tensor_release(&got[o]);
    }
    c->stream->error = d->cpu->error = (struct sx_error){0};
}

/* ---- programs ---- */

/* Every kind of step, of numbers of `type`; but DOUBLEs are not compared. */
static enum sx_status check_steps(struct conformance *c, struct sx_stream *cpu, struct sx_type type,
                                  int64_t rows, enum layout layout) {
    enum { A, B, P, N, TIMES, LEAST };
    struct direct d;
    enum sx_status status;
    begin(&d, cpu, rows);
    SX_GO(add_column(c, &d, type, layout));
    SX_GO(add_column(c, &d, type, FLAT));
    SX_GO(add_column(c, &d, TYPE(BOOL), layout));
    SX_GO(add_column(c, &d, TYPE(I32), FLAT));
    add_constant(&d, type, 3);
    add_constant(&d, TYPE(I64), -20);
    const int32_t sum = add_step(&d, SX_FN_ADD, type, A, B, 0);
    const int32_t product = add_step(&d, SX_FN_MUL, type, A, TIMES, 0);
    const int32_t difference = add_step(&d, SX_FN_SUB, type, sum, product, 0);
    const int32_t wide = add_step(&d, SX_FN_CAST, TYPE(I64), N, 0, 0);
    const int32_t less = type.id == SX_TYPE_F64 ? add_step(&d, SX_FN_LT, TYPE(BOOL), wide, LEAST, 0)
                                                : add_step(&d, SX_FN_LT, TYPE(BOOL), sum, product, 0);
    const int32_t both = add_step(&d, SX_FN_AND, TYPE(BOOL), P, less, 0);
    const int32_t not_both = add_step(&d, SX_FN_NOT, TYPE(BOOL), both, 0, 0);
    const int32_t enough = add_step(&d, SX_FN_GE, TYPE(BOOL), wide, LEAST, 0);
    const int32_t either = add_step(&d, SX_FN_OR, TYPE(BOOL), not_both, enough, 0);
    const int32_t chosen = add_step(&d, SX_FN_CHOOSE, type, enough, difference, B);
    const int32_t truth = add_step(&d, SX_FN_IS_TRUE, TYPE(BOOL), either, 0, 0);
    add_output(&d, difference);
    add_output(&d, chosen);
    add_output(&d, wide);
    add_output(&d, truth);
    compare(c, &d, false, false, "steps");
    d.program.n_outputs = 0;
    add_output(&d, either);
    add_output(&d, less);
    compare(c, &d, true, false, "tests");
out:
    release(&d);
    return status;
}

/* The sum of so many columns and constants. */
static enum sx_status check_size(struct conformance *c, struct sx_stream *cpu, int n_columns,
                                 int n_constants) {
    enum { ROWS = 70 };
    struct direct d;
    enum sx_status status;
    begin(&d, cpu, ROWS);
    for (int i = 0; i < n_columns; i++)
        SX_GO(add_column(c, &d, TYPE(I64), FLAT));
    for (int i = 0; i < n_constants; i++)
        add_constant(&d, TYPE(I64), 1000 + i);
    int32_t sum = 0;
    for (int32_t i = 1; i < n_columns + n_constants; i++) {
        sum = add_step(&d, SX_FN_ADD, TYPE(I64), sum, i, 0);
        if (d.program.n_outputs < MOST_OUTPUTS)
            add_output(&d, sum);
    }
    if (sum > 0)
        compare(c, &d, false, false, "a sum of many");
out:
    release(&d);
    return status;
}

/* Sent again, after the host's have been changed. */
static enum sx_status send_again(struct conformance *c, struct direct *d, int column) {
    sx_tensor_release(&d->sent[column]);
    return conformance_send(c, &d->host[column], &d->sent[column]);
}

/* A sum that overflows on every third row, which a test has dropped before, or which a mask leaves out. */
static enum sx_status check_dropped(struct conformance *c, struct sx_stream *cpu, int64_t rows, bool drops,
                                    bool masks) {
    enum { A, B, LEAST, ZERO, MOST };
    struct direct d;
    enum sx_status status;
    begin(&d, cpu, rows);
    SX_GO(add_column(c, &d, TYPE(I64), FLAT));
    SX_GO(add_column(c, &d, TYPE(I64), FLAT));
    int64_t *a = d.host[A].values, *b = d.host[B].values;
    for (int64_t i = rows % 3; i < rows; i += 3) {
        a[i] = INT64_MIN + 7;
        b[i] = -100 - i % 5;
    }
    SX_GO(send_again(c, &d, A));
    SX_GO(send_again(c, &d, B));
    add_constant(&d, TYPE(I64), -100);
    add_constant(&d, TYPE(I64), 0);
    add_constant(&d, TYPE(I64), 1000);
    const int32_t not_less = add_step(&d, SX_FN_GE, TYPE(BOOL), A, LEAST, 0);
    const int32_t not_more = add_step(&d, SX_FN_LT, TYPE(BOOL), B, MOST, 0);
    const int32_t enough = add_step(&d, SX_FN_AND, TYPE(BOOL), not_less, not_more, 0); /* both are loaded */
    const int32_t sum = add_step(&d, SX_FN_ADD, TYPE(I64), A, B, 0);
    if (masks)
        d.instructions[d.program.n_instructions - 1].mask = enough;
    const int32_t positive = add_step(&d, SX_FN_GE, TYPE(BOOL), sum, ZERO, 0);
    const int32_t both = add_step(&d, SX_FN_AND, TYPE(BOOL), enough, positive, 0);
    if (drops)
        add_output(&d, enough);
    add_output(&d, both);
    compare(c, &d, true, false, masks ? "a masked error" : "an error of a row left out");
out:
    release(&d);
    return status;
}

/* The last row fails: a product of `type`, or a cast to `to`. */
static enum sx_status check_failing(struct conformance *c, struct sx_stream *cpu, struct sx_type type,
                                    struct sx_type to, int64_t rows) {
    enum { A, B };
    const bool is_cast = to.id != type.id;
    struct direct d;
    enum sx_status status;
    begin(&d, cpu, rows);
    SX_GO(add_column(c, &d, type, FLAT));
    SX_GO(add_column(c, &d, type, FLAT));
    if (type.id == SX_TYPE_I128)
        ((sx_i128 *)d.host[A].values)[rows - 1] = ((sx_i128 *)d.host[B].values)[rows - 1] = (sx_i128)1 << 99;
    else
        ((int64_t *)d.host[A].values)[rows - 1] = ((int64_t *)d.host[B].values)[rows - 1] = (int64_t)1 << 50;
    SX_GO(send_again(c, &d, A));
    SX_GO(send_again(c, &d, B));
    add_output(&d, is_cast ? add_step(&d, SX_FN_CAST, to, A, 0, 0) : add_step(&d, SX_FN_MUL, type, A, B, 0));
    compare(c, &d, false, true, is_cast ? "a cast that fails" : "a product that fails");
out:
    release(&d);
    return status;
}

static enum sx_status check_rows(struct conformance *c, struct sx_stream *cpu, int64_t rows) {
    static const enum sx_type_id ids[] = {SX_TYPE_I64, SX_TYPE_I128, SX_TYPE_F64};
    for (size_t t = 0; t < sizeof ids / sizeof ids[0]; t++)
        for (int layout = 0; layout < N_LAYOUTS; layout++)
            SX_TRY(check_steps(c, cpu, (struct sx_type){.id = ids[t]}, rows, (enum layout)layout));
    SX_TRY(check_dropped(c, cpu, rows, true, false));
    SX_TRY(check_dropped(c, cpu, rows, true, true));
    SX_TRY(check_dropped(c, cpu, rows, false, true));
    if (rows == 0)
        return SX_OK;
    SX_TRY(check_failing(c, cpu, TYPE(I64), TYPE(I64), rows));
    SX_TRY(check_failing(c, cpu, TYPE(I64), TYPE(I32), rows));
    SX_TRY(check_failing(c, cpu, TYPE(I128), TYPE(I128), rows));
    return check_failing(c, cpu, TYPE(I128), TYPE(I64), rows);
}

void conform_eval_direct(struct conformance *c) {
    struct sx_stream *cpu;
    if (sx_cpu_backend.ops.stream_create(&sx_cpu_backend, c->pool, NULL, &cpu, &c->error) != SX_OK) {
        CONFORM(c, false, "no stream: %s", c->error.text);
        return;
    }
    enum sx_status status = SX_OK;
    for (int r = 0; r < conformance_n_rows && status == SX_OK; r++)
        if (conformance_takes(c))
            status = check_rows(c, cpu, conformance_rows[r]);
    for (int columns = 1; columns <= MOST_COLUMNS && status == SX_OK; columns++)
        for (int constants = 0; constants <= MOST_CONSTANTS && status == SX_OK;
             constants += 1 + constants / 3)
            status = check_size(c, cpu, columns, constants);
    CONFORM(c, status == SX_OK, "status %d: %s %s", status, c->error.text, c->stream->error.text);
    sx_cpu_backend.ops.stream_destroy(cpu);
}
