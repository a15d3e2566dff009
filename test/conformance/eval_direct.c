/* Programs of the kinds that a backend may run in a shorter way where nothing can be NULL, as large as that
 * may be and larger: against the CPU's. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "eval_expect.h"

enum { MOST_COLUMNS = 12, MOST_CONSTANTS = 40, MOST_STEPS = MOST_COLUMNS + MOST_CONSTANTS, MOST_OUTPUTS = 8 };

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

/* Strings about as long as a view has bytes; of few letters, so that many are equal or begin alike. */
static uint32_t make_text(struct conformance *c, char *text) {
    static const uint32_t lengths[] = {0, 1, 3, 4, 5, 8, 12, 13, 17};
    const uint64_t random = conformance_random(c);
    const uint32_t length = lengths[random % (sizeof lengths / sizeof lengths[0])];
    for (uint32_t i = 0; i < length; i++)
        text[i] = (char)('a' + (random >> 8 & 1) * i % 2);
    if (random >> 16 & 3 || length == 0)
        return length;
    const uint32_t at = length > 1 ? (uint32_t)(random >> 32) % (length - 1) : 0;
    text[at] = random >> 25 & 1 ? 'z' : 0;
    if (length > 1 && random >> 24 & 1) {
        text[at] = '\xc3';
        text[at + 1] = '\xa4';
    }
    return length;
}

static enum sx_status fill_strings(struct conformance *c, int64_t rows, struct sx_tensor *out) {
    enum { MOST_BYTES = 20 };
    SX_TRY(sx_buffer_create(c->pool, (size_t)rows * MOST_BYTES + 1, &out->heap, &c->error));
    for (int64_t i = 0; i < rows; i++) {
        char *text = (char *)out->heap->data + i * MOST_BYTES;
        ((struct sx_string *)out->values)[i] = sx_string_make(text, make_text(c, text));
    }
    return SX_OK;
}

/* Small values, such that sums and products of a few fit all types but BOOL. */
static enum sx_status fill(struct conformance *c, struct sx_type type, int64_t rows, struct sx_tensor *out) {
    const int64_t below = type.id == SX_TYPE_BOOL ? 2 : 200;
    SX_TRY(sx_tensor_create(c->pool, type, rows, false, out, &c->error));
    if (type.id == SX_TYPE_VARCHAR)
        return fill_strings(c, rows, out);
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

static void add_text(struct direct *d, const char *text, uint32_t length) {
    d->constants[d->program.n_constants++] =
        (struct sx_scalar){.type = TYPE(VARCHAR), .v.text = {text, length}};
}

/* Behind all columns and constants; its register. */
static int32_t add_step(struct direct *d, enum sx_function function, struct sx_type type, int32_t a,
                        int32_t b, int32_t e) {
    const int32_t at = d->program.n_instructions++;
    d->instructions[at] = (struct sx_instruction){
        .function = function, .type = type, .arguments = {a, b, e}, .mask = SX_NO_REGISTER};
    return d->program.n_inputs + d->program.n_constants + at;
}

/* Whether a value is one of the last `n` constants. */
static int32_t add_list(struct direct *d, int32_t value, int32_t n) {
    const int32_t reg = add_step(d, SX_FN_IN_LIST, TYPE(BOOL), value, 0, 0);
    struct sx_instruction *step = &d->instructions[d->program.n_instructions - 1];
    step->list_first = d->program.n_constants - n;
    step->list_count = n;
    return reg;
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
                                  int64_t rows, enum layout layout, int n_listed) {
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
    for (int k = 0; k < n_listed; k++)
        add_constant(&d, type, k % 2 ? 7 * k : -k);
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
    const int32_t is_listed = add_list(&d, A, n_listed);
    const int32_t truth = add_step(&d, SX_FN_IS_TRUE, TYPE(BOOL), either, 0, 0);
    add_output(&d, difference);
    add_output(&d, chosen);
    add_output(&d, wide);
    add_output(&d, truth);
    add_output(&d, is_listed);
    compare(c, &d, false, false, "steps");
    d.program.n_outputs = 0;
    add_output(&d, either);
    add_output(&d, less);
    compare(c, &d, true, false, "tests");
out:
    release(&d);
    return status;
}

/* Strings and parts of them compared, with a pattern and places that k chooses, some at random. */
static enum sx_status check_strings(struct conformance *c, struct sx_stream *cpu, int64_t rows,
                                    enum layout layout, int k) {
    static const char *const patterns[] = {
        "a", "ab", "abab", "ababababab", "abababababab", "ababababababa", "", "aa", "\xc3\xa4", "a\xc3\xa4"};
    static const int64_t starts[] = {1, 1, 2, 4, 5, 12, 13, -2, 0, INT64_C(1) << 40},
                         wanted[] = {2, 4, 5, 1, 0, 12, 13, -3, 8, INT64_C(1) << 31};
    enum { A, B, PATTERN, START, WANTED, MOST_LISTED = 20, ROOM = 20, FAILING = 9 };
    const char *const pattern = patterns[k];
    const bool is_random = k % 2 && k < 7;
    const int n_listed = k % 3 == 2 ? MOST_LISTED : 4;
    char texts[MOST_LISTED][ROOM];
    struct direct d;
    enum sx_status status;
    if (k == FAILING && rows != 1)
        return SX_OK;
    begin(&d, cpu, rows);
    SX_GO(add_column(c, &d, TYPE(VARCHAR), layout));
    SX_GO(add_column(c, &d, TYPE(VARCHAR), FLAT));
    add_text(&d, pattern, (uint32_t)strlen(pattern));
    add_constant(&d, TYPE(I64), starts[is_random ? conformance_random(c) % 9 : (uint64_t)k]);
    add_constant(&d, TYPE(I64), wanted[is_random ? conformance_random(c) % 9 : (uint64_t)k]);
    for (int i = 0; i < n_listed; i++)
        add_text(&d, texts[i], make_text(c, texts[i]));
    const int32_t part = add_step(&d, SX_FN_SUBSTRING, TYPE(VARCHAR), A, START, WANTED);
    add_output(&d, add_step(&d, SX_FN_EQ, TYPE(BOOL), part, PATTERN, 0));
    add_output(&d, add_list(&d, part, n_listed));
    add_output(&d, add_list(&d, B, n_listed));
    add_output(&d, add_step(&d, SX_FN_EQ, TYPE(BOOL), A, B, 0));
    add_output(&d, add_step(&d, SX_FN_NE, TYPE(BOOL), B, PATTERN, 0));
    add_output(&d, add_step(&d, SX_FN_PREFIX, TYPE(BOOL), B, PATTERN, 0));
    add_output(&d, add_step(&d, SX_FN_PREFIX, TYPE(BOOL), B, A, 0));
    compare(c, &d, false, k == FAILING, "strings");
    d.program.n_outputs = 1;
    compare(c, &d, true, k == FAILING, "a test of a part");
    d.outputs[0] = part;
    compare(c, &d, false, k == FAILING, "parts");
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
            SX_TRY(check_steps(c, cpu, (struct sx_type){.id = ids[t]}, rows, (enum layout)layout,
                               layout == CODED ? 20 : 5));
    for (int k = 0; k < 10; k++)
        for (int layout = 0; layout < N_LAYOUTS; layout++)
            SX_TRY(check_strings(c, cpu, rows, (enum layout)layout, k));
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
