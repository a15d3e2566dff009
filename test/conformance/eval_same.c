/* Functions without a plain reference in eval.c: any backend against the CPU's, with the texts of errors. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "eval_expect.h"

enum { MAX_ARGUMENTS = SX_PROGRAM_MAX_ARGUMENTS, SINGLE_ROWS = 40 };

#define TYPE(name) \
    { SX_TYPE_##name, 0, 0 }
#define DECIMAL(digits, points) \
    { SX_TYPE_DECIMAL, digits, points }
#define NONE \
    { SX_TYPE_NULLTYPE, 0, 0 }

static const struct call {
    enum sx_function function;
    struct sx_type type, arguments[MAX_ARGUMENTS];
} calls[] = {
    {SX_FN_ADD, DECIMAL(18, 2), {DECIMAL(18, 2), DECIMAL(18, 2), NONE}},
    {SX_FN_SUB, DECIMAL(16, 2), {DECIMAL(15, 2), DECIMAL(15, 2), NONE}},
    {SX_FN_MUL, DECIMAL(38, 4), {DECIMAL(30, 2), DECIMAL(18, 2), NONE}},
    {SX_FN_MUL, DECIMAL(18, 6), {DECIMAL(9, 2), DECIMAL(9, 4), NONE}},
    {SX_FN_MOD, DECIMAL(30, 4), {DECIMAL(30, 4), DECIMAL(30, 4), NONE}},
    {SX_FN_NEG, TYPE(I8), {TYPE(I8), NONE, NONE}},
    {SX_FN_NEG, TYPE(U16), {TYPE(U16), NONE, NONE}},
    {SX_FN_NEG, TYPE(I128), {TYPE(I128), NONE, NONE}},
    {SX_FN_ABS, TYPE(I64), {TYPE(I64), NONE, NONE}},
    {SX_FN_ABS, TYPE(F32), {TYPE(F32), NONE, NONE}},
    {SX_FN_ABS, DECIMAL(30, 4), {DECIMAL(30, 4), NONE, NONE}},
    {SX_FN_ADD, TYPE(U128), {TYPE(U128), TYPE(U128), NONE}},
    {SX_FN_MUL, TYPE(U128), {TYPE(U128), TYPE(U128), NONE}},
    {SX_FN_DIV, TYPE(F32), {TYPE(F32), TYPE(F32), NONE}},
    {SX_FN_INT_DIV, TYPE(F64), {TYPE(F64), TYPE(F64), NONE}},
    {SX_FN_AVERAGE, TYPE(F64), {TYPE(I128), TYPE(I64), NONE}},
    {SX_FN_AVERAGE, TYPE(F64), {TYPE(I64), TYPE(I64), NONE}},
    {SX_FN_AVERAGE, TYPE(F64), {DECIMAL(38, 4), TYPE(I64), NONE}},
    {SX_FN_AVERAGE, TYPE(F64), {DECIMAL(18, 2), TYPE(I64), NONE}},
    {SX_FN_MOD, TYPE(F64), {TYPE(F64), TYPE(F64), NONE}},
    {SX_FN_FLOOR, TYPE(F32), {TYPE(F32), NONE, NONE}},
    {SX_FN_CEIL, TYPE(F64), {TYPE(F64), NONE, NONE}},
    {SX_FN_ROUND, TYPE(F64), {TYPE(F64), TYPE(I32), NONE}},
    {SX_FN_ROUND, TYPE(I16), {TYPE(I16), TYPE(I32), NONE}},
    {SX_FN_ROUND, TYPE(I128), {TYPE(I128), TYPE(I32), NONE}},
    {SX_FN_FLOOR, DECIMAL(15, 0), {DECIMAL(15, 2), NONE, NONE}},
    {SX_FN_CEIL, DECIMAL(30, 0), {DECIMAL(30, 4), NONE, NONE}},
    {SX_FN_ADD, TYPE(DATE), {TYPE(DATE), TYPE(I32), NONE}},
    {SX_FN_ADD, TYPE(DATE), {TYPE(I32), TYPE(DATE), NONE}},
    {SX_FN_SUB, TYPE(DATE), {TYPE(DATE), TYPE(I32), NONE}},
    {SX_FN_SUB, TYPE(I64), {TYPE(DATE), TYPE(DATE), NONE}},
    {SX_FN_ADD, TYPE(TIMESTAMP), {TYPE(DATE), TYPE(INTERVAL), NONE}},
    {SX_FN_SUB, TYPE(TIMESTAMP), {TYPE(TIMESTAMP), TYPE(INTERVAL), NONE}},
    {SX_FN_SUB, TYPE(INTERVAL), {TYPE(TIMESTAMP), TYPE(TIMESTAMP), NONE}},
    {SX_FN_ADD, TYPE(INTERVAL), {TYPE(INTERVAL), TYPE(INTERVAL), NONE}},
    {SX_FN_NEG, TYPE(INTERVAL), {TYPE(INTERVAL), NONE, NONE}},
    {SX_FN_LT, TYPE(BOOL), {TYPE(INTERVAL), TYPE(INTERVAL), NONE}},
    {SX_FN_UPPER, TYPE(VARCHAR), {TYPE(VARCHAR), NONE, NONE}},
    {SX_FN_LOWER, TYPE(VARCHAR), {TYPE(VARCHAR), NONE, NONE}},
    {SX_FN_CONCAT, TYPE(VARCHAR), {TYPE(VARCHAR), TYPE(VARCHAR), NONE}},
    {SX_FN_CONCAT_SKIP_NULL, TYPE(VARCHAR), {TYPE(VARCHAR), TYPE(VARCHAR), NONE}},
    {SX_FN_SUBSTRING, TYPE(VARCHAR), {TYPE(VARCHAR), TYPE(I64), TYPE(I64)}},
    {SX_FN_LIKE_ESCAPE, TYPE(BOOL), {TYPE(VARCHAR), TYPE(VARCHAR), TYPE(VARCHAR)}},
    {SX_FN_ERROR, TYPE(I32), {TYPE(VARCHAR), NONE, NONE}},
};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

static const struct sx_type cast_types[] = {
    TYPE(BOOL),     TYPE(I8),   TYPE(I16),  TYPE(I32),       TYPE(I64),      TYPE(I128),     TYPE(U8),
    TYPE(U16),      TYPE(U32),  TYPE(U64),  TYPE(F32),       TYPE(F64),      DECIMAL(15, 2), DECIMAL(30, 4),
    DECIMAL(18, 0), TYPE(DATE), TYPE(U128), TYPE(TIMESTAMP), TYPE(INTERVAL), TYPE(VARCHAR),
};
enum { N_CAST_TYPES = sizeof cast_types / sizeof cast_types[0] };

/* A program with its columns, on a backend and on the CPU. */
struct both {
    const struct sx_program *program;
    int n_columns;
    int64_t rows;
    struct sx_tensor host[MAX_ARGUMENTS], sent[MAX_ARGUMENTS];
};

static void both_release(struct both *both) {
    for (int i = 0; i < both->n_columns; i++) {
        sx_tensor_release(&both->host[i]);
        sx_tensor_release(&both->sent[i]);
    }
}

static enum sx_status run(struct sx_stream *stream, const struct sx_program *program,
                          struct sx_tensor *columns, int n_columns, int64_t first, int64_t rows,
                          struct sx_tensor *out) {
    const struct sx_backend_ops *ops = &stream->backend->ops;
    struct sx_tensor slices[MAX_ARGUMENTS] = {0};
    struct sx_eval *eval;
    SX_TRY(ops->eval_create(stream, program, &eval));
    for (int i = 0; i < n_columns; i++)
        sx_tensor_slice(&columns[i], first, rows, &slices[i]);
    const struct sx_batch batch = {
        .rows = rows, .rows_bound = rows, .n_columns = n_columns, .columns = slices};
    enum sx_status status = ops->eval_run(stream, eval, &batch, out);
    if (status == SX_OK)
        status = ops->synchronise(stream, "faults");
    for (int i = 0; i < n_columns; i++)
        sx_tensor_release(&slices[i]);
    ops->eval_destroy(stream, eval);
    return status;
}

static void compare(struct conformance *c, struct sx_stream *cpu, struct both *both, int64_t first,
                    int64_t rows, const char *name) {
    struct sx_tensor wanted = {0}, got = {0}, host = {0};
    const enum sx_status expected =
        run(cpu, both->program, both->host, both->n_columns, first, rows, &wanted);
    const enum sx_status status =
        run(c->stream, both->program, both->sent, both->n_columns, first, rows, &got);
    if (CONFORM(c, status == expected, "%s: status %d, on the CPU %d; %s; %s", name, status, expected,
                c->stream->error.text, cpu->error.text) &&
        status != SX_OK && rows == 1)
        CONFORM(c, strcmp(c->stream->error.text, cpu->error.text) == 0, "%s: '%s', on the CPU '%s'", name,
                c->stream->error.text, cpu->error.text);
    if (status == SX_OK && expected == SX_OK) {
        int64_t wrong = -1;
        if (conformance_receive(c, &got, &host) != SX_OK || host.length != rows)
            wrong = 0;
        for (int64_t row = 0; wrong < 0 && row < rows; row++) {
            struct sx_scalar a, b;
            sx_tensor_scalar(&wanted, row, &a);
            sx_tensor_scalar(&host, row, &b);
            if (!conformance_scalar_equal(&a, &b))
                wrong = row;
        }
        CONFORM(c, wrong < 0, "%s of %lld rows: row %lld", name, (long long)rows, (long long)wrong);
    }
    sx_tensor_release(&wanted);
    sx_tensor_release(&got);
    sx_tensor_release(&host);
}

/* How columns come. */
enum given {
    GIVEN_FLAT,
    GIVEN_DICT,    /* strings */
    GIVEN_SELECTED /* all but strings, which are FLAT; no NULLs */
};

static enum sx_status give_column(struct conformance *c, struct sx_type type, int64_t rows,
                                  enum conformance_fill fill, enum given given, double null_share,
                                  struct sx_tensor *out_host) {
    const bool is_text = type.id == SX_TYPE_VARCHAR;
    struct sx_tensor coded;
    SX_TRY(conformance_column(c, type, rows, fill, given == GIVEN_SELECTED ? 0 : null_share, out_host));
    if (given == GIVEN_SELECTED && !is_text)
        return conformance_code_values(c, out_host);
    if (given != GIVEN_DICT || !is_text)
        return SX_OK;
    SX_TRY(conformance_dictionary(c, out_host, &coded));
    sx_tensor_release(out_host);
    *out_host = coded;
    return SX_OK;
}

/* All rows at once, and some one by one, for the errors. */
static enum sx_status check(struct conformance *c, struct sx_stream *cpu, const struct sx_program *program,
                            int64_t rows, enum conformance_fill fill, enum given given, const char *name) {
    struct both both = {.program = program, .rows = rows};
    enum sx_status status = SX_OK;
    if (!conformance_takes(c))
        return SX_OK;
    for (int32_t i = 0; i < program->n_inputs; i++) {
        both.n_columns = i + 1;
        SX_GO(give_column(c, program->input_types[i], rows, fill, given, i ? 0.1 : 0.2, &both.host[i]));
        SX_GO(conformance_send(c, &both.host[i], &both.sent[i]));
        if (given == GIVEN_SELECTED)
            conformance_select(c, &both.sent[i]);
    }
    compare(c, cpu, &both, 0, rows, name);
    for (int64_t row = 0; row < rows && row < SINGLE_ROWS; row++)
        compare(c, cpu, &both, row, 1, name);
out:
    both_release(&both);
    return status;
}

static struct sx_instruction instruct(enum sx_function function, struct sx_type type, int32_t a, int32_t b,
                                      int32_t d) {
    return (struct sx_instruction){
        .function = function, .type = type, .arguments = {a, b, d}, .mask = SX_NO_REGISTER};
}

static enum sx_status check_calls(struct conformance *c, struct sx_stream *cpu, int64_t rows,
                                  enum conformance_fill fill, enum given given) {
    for (int i = 0; i < N_CALLS; i++) {
        const struct sx_instruction instruction = instruct(calls[i].function, calls[i].type, 0, 1, 2);
        const int32_t n = sx_function_arguments(calls[i].function);
        const struct sx_program program = {n, calls[i].arguments, 0, NULL, 1, &instruction, 1, &n};
        SX_TRY(check(c, cpu, &program, rows, fill, given, sx_function_name(calls[i].function)));
    }
    return SX_OK;
}

static enum sx_status check_casts(struct conformance *c, struct sx_stream *cpu, int64_t rows,
                                  enum conformance_fill fill) {
    for (int from = 0; from < N_CAST_TYPES; from++)
        for (int to = 0; to < N_CAST_TYPES; to++)
            for (int through_text = 0; through_text < 2; through_text++) {
                const enum sx_function function = (from + to) % 2 ? SX_FN_CAST : SX_FN_TRY_CAST;
                const struct sx_instruction instructions[] = {
                    instruct(SX_FN_CAST, (struct sx_type)TYPE(VARCHAR), 0, 0, 0),
                    instruct(function, cast_types[to], through_text, 0, 0)};
                const int32_t output = 1 + through_text;
                const struct sx_program program = {
                    1, &cast_types[from], 0, NULL, output, instructions + !through_text, 1, &output};
                char name[2 * SX_TYPE_NAME_BYTES + 8], type[SX_TYPE_NAME_BYTES];
                char type_to[SX_TYPE_NAME_BYTES];
                snprintf(name, sizeof name, "%s%s%s", sx_type_name(cast_types[from], type),
                         through_text ? " as text to " : " to ", sx_type_name(cast_types[to], type_to));
                SX_TRY(check(c, cpu, &program, rows, fill, GIVEN_FLAT, name));
            }
    return SX_OK;
}

/* Texts that types read by rules of their own. */
/* clang-format off */
static const char *const texts[] = {
    "- ", "+ ", "-", "-0", "-00", "-0 ", "-0e2", "+-7", "-+7", "1e ", "1e", "1e5.", "1e-.", "1. ", ".e1",
    "1_0.0_1e0_1", "0x1_f", "0x1_", "0b1_01 ", "0XfF", "5e-9", "9e-2", "95e-2", "95e-3", "0.9e-1", "300e-1",
    "255.5", "127.49e0", "9801888801470056742e-8", "0.00012e18", "1.2345678901e7",
    "12.345678901e-1", "0.009e-1", "1e32768", "1e-32768", "1e-99999999999",
    "0.1234567890123456789012345678901234567890", "12.34567890123456789012345678901234567890e-3", "1.25e30",
    "-170141183460469231731687303715884105728", "340282366920938463463374607431768211455.5", "nan(1)",
    "-NaN()", "nan(-)", "inf", "inf ", "1.12345678_9", "1.1234567_8", "1e400", "4.9e-324",
    "2020-01-01 10:00:00+0200", "2020-01-01 10:00:00+02:30: ", "-epoch",
};
/* clang-format on */
enum { N_TEXTS = sizeof texts / sizeof texts[0] };

static enum sx_status check_texts(struct conformance *c, struct sx_stream *cpu) {
    static const struct sx_type input = TYPE(I32), text = TYPE(VARCHAR);
    for (int i = 0; i < N_TEXTS; i++)
        for (int to = 0; to < N_CAST_TYPES; to++) {
            const struct sx_scalar constant = {.type = text,
                                               .v.text = {texts[i], (uint32_t)strlen(texts[i])}};
            const struct sx_instruction cast = instruct(SX_FN_TRY_CAST, cast_types[to], 1, 0, 0);
            const int32_t output = 2;
            const struct sx_program program = {1, &input, 1, &constant, 1, &cast, 1, &output};
            SX_TRY(check(c, cpu, &program, 1, FILL_RANDOM, GIVEN_FLAT, texts[i]));
        }
    return SX_OK;
}

/* Strings made of strings outgrow what was guessed for them. */
static enum sx_status check_growth(struct conformance *c, struct sx_stream *cpu, int64_t rows) {
    enum { DOUBLINGS = 7 };
    const struct sx_type type = TYPE(VARCHAR);
    struct sx_instruction instructions[DOUBLINGS];
    const int32_t output = DOUBLINGS;
    for (int32_t i = 0; i < DOUBLINGS; i++)
        instructions[i] = instruct(SX_FN_CONCAT, type, i, i, 0);
    const struct sx_program program = {1, &type, 0, NULL, DOUBLINGS, instructions, 1, &output};
    return check(c, cpu, &program, rows, FILL_RANDOM, GIVEN_FLAT, "doubling");
}

void conform_eval_same(struct conformance *c) {
    struct sx_stream *cpu;
    enum sx_status status;
    if (sx_cpu_backend.ops.stream_create(&sx_cpu_backend, c->pool, NULL, &cpu, &c->error) != SX_OK) {
        CONFORM(c, false, "no stream: %s", c->error.text);
        return;
    }
    SX_GO(check_calls(c, cpu, 300, FILL_RANDOM, GIVEN_FLAT));
    SX_GO(check_calls(c, cpu, 300, FILL_EXTREMES, GIVEN_DICT));
    SX_GO(check_calls(c, cpu, 300, FILL_FEW_VALUES, GIVEN_FLAT));
    SX_GO(check_calls(c, cpu, 300, FILL_RANDOM, GIVEN_SELECTED));
    SX_GO(check_calls(c, cpu, 300, FILL_EXTREMES, GIVEN_SELECTED));
    SX_GO(check_casts(c, cpu, 100, FILL_RANDOM));
    SX_GO(check_casts(c, cpu, 100, FILL_FEW_VALUES));
    SX_GO(check_casts(c, cpu, 100, FILL_EXTREMES));
    SX_GO(check_texts(c, cpu));
    SX_GO(check_growth(c, cpu, 1000));
out:
    CONFORM(c, status == SX_OK, "status %d: %s", status, c->error.text);
    sx_cpu_backend.ops.stream_destroy(cpu);
}
