#include <stdlib.h>
#include <string.h>

#include "eval_expect.h"

enum { MAX_COLUMNS = 4, MAX_OUTPUTS = 4 };

#define TYPE(name) ((struct sx_type){SX_TYPE_##name, 0, 0})

static const struct sx_type integer_types[] = {
    {SX_TYPE_I8, 0, 0}, {SX_TYPE_I16, 0, 0}, {SX_TYPE_I32, 0, 0}, {SX_TYPE_I64, 0, 0}, {SX_TYPE_I128, 0, 0},
    {SX_TYPE_U8, 0, 0}, {SX_TYPE_U16, 0, 0}, {SX_TYPE_U32, 0, 0}, {SX_TYPE_U64, 0, 0},
};
enum { N_INTEGER_TYPES = sizeof integer_types / sizeof integer_types[0] };

static const struct sx_type all_types[] = {
    {SX_TYPE_BOOL, 0, 0},      {SX_TYPE_I8, 0, 0},       {SX_TYPE_I16, 0, 0},      {SX_TYPE_I32, 0, 0},
    {SX_TYPE_I64, 0, 0},       {SX_TYPE_I128, 0, 0},     {SX_TYPE_U8, 0, 0},       {SX_TYPE_U16, 0, 0},
    {SX_TYPE_U32, 0, 0},       {SX_TYPE_U64, 0, 0},      {SX_TYPE_U128, 0, 0},     {SX_TYPE_F32, 0, 0},
    {SX_TYPE_F64, 0, 0},       {SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_DECIMAL, 30, 4}, {SX_TYPE_DATE, 0, 0},
    {SX_TYPE_TIMESTAMP, 0, 0}, {SX_TYPE_VARCHAR, 0, 0},
};
enum { N_ALL_TYPES = sizeof all_types / sizeof all_types[0] };

/* ---- running programs ---- */

enum layout { LAYOUT_FLAT, LAYOUT_DICT, LAYOUT_CONSTANT, N_LAYOUTS };

/* Columns in host memory and the same on the backend. */
struct columns {
    int n;
    int64_t rows;
    struct sx_tensor host[MAX_COLUMNS];
    struct sx_tensor sent[MAX_COLUMNS];
};

static void columns_release(struct columns *columns) {
    for (int i = 0; i < columns->n; i++) {
        sx_tensor_release(&columns->host[i]);
        sx_tensor_release(&columns->sent[i]);
    }
}

/* Takes `column` over. LAYOUT_DICT is for VARCHAR; elsewhere it means FLAT. */
static enum sx_status add_column(struct conformance *c, struct columns *columns, struct sx_tensor *column,
                                 enum layout layout) {
    struct sx_tensor *host = &columns->host[columns->n], *sent = &columns->sent[columns->n];
    enum sx_status status = SX_OK;
    *host = *column;
    *column = (struct sx_tensor){0};
    columns->n++;
    if (layout == LAYOUT_CONSTANT && host->length > 0) {
        struct sx_scalar scalar;
        struct sx_tensor constant;
        sx_tensor_scalar(host, 0, &scalar);
        SX_TRY(sx_tensor_create_constant(c->pool, &scalar, host->length, &constant, &c->error));
        sx_tensor_release(host);
        *host = constant;
    } else if (layout == LAYOUT_DICT && host->type.id == SX_TYPE_VARCHAR) {
        struct sx_tensor coded;
        SX_TRY(conformance_dictionary(c, host, &coded));
        status = conformance_send(c, &coded, sent);
        sx_tensor_release(&coded);
        return status;
    }
    return conformance_send(c, host, sent);
}

static enum sx_status add_random(struct conformance *c, struct columns *columns, struct sx_type type,
                                 enum conformance_fill fill, double null_share, enum layout layout) {
    struct sx_tensor column;
    SX_TRY(conformance_column(c, type, columns->rows, fill, null_share, &column));
    return add_column(c, columns, &column, layout);
}

/* Results in host memory. */
static enum sx_status run(struct conformance *c, const struct sx_program *program, struct columns *columns,
                          struct sx_tensor *out_host) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    const struct sx_batch batch = {.rows = columns->rows,
                                   .rows_bound = columns->rows,
                                   .n_columns = columns->n,
                                   .columns = columns->sent};
    struct sx_tensor outputs[MAX_OUTPUTS] = {0};
    struct sx_eval *eval;
    SX_TRY(ops->eval_create(c->stream, program, &eval));
    enum sx_status status = ops->eval_run(c->stream, eval, &batch, outputs);
    for (int32_t o = 0; status == SX_OK && o < program->n_outputs; o++)
        status = conformance_receive(c, &outputs[o], &out_host[o]);
    for (int32_t o = 0; o < program->n_outputs; o++)
        sx_tensor_release(&outputs[o]);
    ops->eval_destroy(c->stream, eval);
    return status;
}

static struct sx_instruction call(enum sx_function function, struct sx_type type, int32_t a, int32_t b,
                                  int32_t d) {
    return (struct sx_instruction){
        .function = function, .type = type, .arguments = {a, b, d}, .mask = SX_NO_REGISTER};
}

/* One instruction over the columns, then the constants. */
struct single {
    struct sx_type types[MAX_COLUMNS];
    int32_t output;
    struct sx_program program;
};

static void make_single(struct single *single, const struct columns *columns,
                        const struct sx_scalar *constants, int32_t n_constants,
                        const struct sx_instruction *instruction) {
    for (int i = 0; i < columns->n; i++)
        single->types[i] = columns->host[i].type;
    single->output = columns->n + n_constants;
    single->program = (struct sx_program){columns->n, single->types, n_constants, constants,
                                          1,          instruction,   1,           &single->output};
}

static void arguments_of(const struct columns *columns, const struct sx_scalar *constants,
                         const struct sx_instruction *instruction, int64_t row, struct sx_scalar *out) {
    for (int k = 0; k < sx_function_arguments(instruction->function); k++) {
        const int32_t reg = instruction->arguments[k];
        if (reg < columns->n)
            sx_tensor_scalar(&columns->host[reg], row, &out[k]);
        else if (constants)
            out[k] = constants[reg - columns->n];
    }
}

/* Runs it and compares row by row. Rows that fail have to be masked out by the caller. */
static void check_single(struct conformance *c, struct columns *columns, const struct sx_scalar *constants,
                         int32_t n_constants, const struct sx_instruction *instruction, expect reference) {
    struct single single;
    struct sx_tensor got = {0};
    char name[SX_TYPE_NAME_BYTES];
    make_single(&single, columns, constants, n_constants, instruction);
    const enum sx_status status = run(c, &single.program, columns, &got);
    sx_type_name(columns->n ? columns->host[0].type : instruction->type, name);
    if (!CONFORM(c, status == SX_OK, "%s(%s): %s", sx_function_name(instruction->function), name,
                 c->stream->error.text))
        return;
    int64_t wrong = got.length == columns->rows ? -1 : 0;
    for (int64_t row = 0; wrong < 0 && row < columns->rows; row++) {
        struct sx_scalar arguments[SX_PROGRAM_MAX_ARGUMENTS], wanted = {.type = instruction->type}, found;
        arguments_of(columns, constants, instruction, row, arguments);
        if (!reference(instruction, arguments, &wanted))
            continue;
        sx_tensor_scalar(&got, row, &found);
        if (!conformance_scalar_equal(&wanted, &found))
            wrong = row;
    }
    CONFORM(c, wrong < 0, "%s(%s) of %lld rows: row %lld", sx_function_name(instruction->function), name,
            (long long)columns->rows, (long long)wrong);
    sx_tensor_release(&got);
}

/* ---- checks ---- */

/* A column of booleans that are true where the instruction can be computed. */
static enum sx_status add_mask(struct conformance *c, struct columns *columns,
                               const struct sx_instruction *instruction, expect reference,
                               bool *out_some_fail) {
    struct sx_tensor mask;
    SX_TRY(sx_tensor_create(c->pool, TYPE(BOOL), columns->rows, false, &mask, &c->error));
    *out_some_fail = false;
    for (int64_t row = 0; row < columns->rows; row++) {
        struct sx_scalar arguments[SX_PROGRAM_MAX_ARGUMENTS], result = {.type = instruction->type};
        arguments_of(columns, NULL, instruction, row, arguments);
        const bool good = reference(instruction, arguments, &result);
        ((uint8_t *)mask.values)[row] = good;
        *out_some_fail |= !good;
    }
    return add_column(c, columns, &mask, LAYOUT_FLAT);
}

static enum sx_status check_arithmetic(struct conformance *c, struct sx_type type, int64_t rows,
                                       enum conformance_fill fill, double null_share, enum layout layout) {
    static const enum sx_function functions[] = {SX_FN_ADD, SX_FN_SUB, SX_FN_MUL, SX_FN_INT_DIV, SX_FN_MOD};
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        struct columns columns = {.rows = rows};
        struct sx_instruction instruction = call(functions[f], type, 0, 1, 0);
        bool some_fail = false;
        enum sx_status status;
        SX_GO(add_random(c, &columns, type, fill, null_share, LAYOUT_FLAT));
        SX_GO(add_random(c, &columns, type, fill, null_share / 2, layout));
        SX_GO(add_mask(c, &columns, &instruction, expect_arithmetic, &some_fail));
        instruction.mask = 2;
        check_single(c, &columns, NULL, 0, &instruction, expect_arithmetic);
        instruction.mask = SX_NO_REGISTER;
        if (some_fail) {
            struct single single;
            struct sx_tensor got = {0};
            make_single(&single, &columns, NULL, 0, &instruction);
            CONFORM(c, run(c, &single.program, &columns, &got) == SX_QUERY, "an overflow went unseen");
            sx_tensor_release(&got);
        }
    out:
        columns_release(&columns);
        SX_TRY(status);
    }
    return SX_OK;
}

static enum sx_status check_comparison(struct conformance *c, struct sx_type type, int64_t rows,
                                       enum conformance_fill fill, double null_share, enum layout layout) {
    struct columns columns = {.rows = rows};
    enum sx_status status;
    SX_GO(add_random(c, &columns, type, fill, null_share, layout == LAYOUT_DICT ? LAYOUT_DICT : LAYOUT_FLAT));
    SX_GO(add_random(c, &columns, type, fill, null_share, layout));
    for (int f = SX_FN_EQ; f <= SX_FN_NOT_DISTINCT_FROM; f++) {
        const struct sx_instruction forth = call((enum sx_function)f, TYPE(BOOL), 0, 1, 0);
        const struct sx_instruction back = call((enum sx_function)f, TYPE(BOOL), 1, 0, 0);
        const struct sx_instruction self = call((enum sx_function)f, TYPE(BOOL), 0, 0, 0);
        check_single(c, &columns, NULL, 0, &forth, expect_comparison);
        check_single(c, &columns, NULL, 0, &back, expect_comparison);
        check_single(c, &columns, NULL, 0, &self, expect_comparison);
    }
out:
    columns_release(&columns);
    return status;
}

static enum sx_status check_choices(struct conformance *c, struct sx_type type, int64_t rows,
                                    double null_share, enum layout layout) {
    struct columns columns = {.rows = rows};
    enum sx_status status;
    SX_GO(add_random(c, &columns, TYPE(BOOL), FILL_RANDOM, null_share, LAYOUT_FLAT));
    SX_GO(add_random(c, &columns, type, FILL_RANDOM, null_share, LAYOUT_FLAT));
    SX_GO(add_random(c, &columns, type, FILL_RANDOM, null_share / 3, layout));
    const struct sx_instruction calls[] = {
        call(SX_FN_CHOOSE, type, 0, 1, 2), call(SX_FN_CHOOSE, type, 0, 2, 1),
        call(SX_FN_COALESCE, type, 1, 2, 0), call(SX_FN_COALESCE, type, 2, 1, 0),
        call(SX_FN_CONSTANT_OR_NULL, type, 2, 1, 0)};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        check_single(c, &columns, NULL, 0, &calls[i], expect_choice);
    for (int f = SX_FN_IS_NULL; f <= SX_FN_IS_NOT_NULL; f++) {
        const struct sx_instruction test = call((enum sx_function)f, TYPE(BOOL), 1, 0, 0);
        check_single(c, &columns, NULL, 0, &test, expect_test);
    }
out:
    columns_release(&columns);
    return status;
}

static enum sx_status check_logic(struct conformance *c, int64_t rows, double null_share,
                                  enum layout layout) {
    struct columns columns = {.rows = rows};
    enum sx_status status;
    SX_GO(add_random(c, &columns, TYPE(BOOL), FILL_RANDOM, null_share, LAYOUT_FLAT));
    SX_GO(add_random(c, &columns, TYPE(BOOL), FILL_RANDOM, null_share / 2, layout));
    const struct sx_instruction both[] = {call(SX_FN_AND, TYPE(BOOL), 0, 1, 0),
                                          call(SX_FN_OR, TYPE(BOOL), 1, 0, 0)};
    const struct sx_instruction one[] = {call(SX_FN_NOT, TYPE(BOOL), 0, 0, 0),
                                         call(SX_FN_IS_TRUE, TYPE(BOOL), 0, 0, 0),
                                         call(SX_FN_IS_TRUE, TYPE(BOOL), 1, 0, 0)};
    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++)
        check_single(c, &columns, NULL, 0, &both[i], expect_logic);
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++)
        check_single(c, &columns, NULL, 0, &one[i], expect_test);
out:
    columns_release(&columns);
    return status;
}

static enum sx_status check_casts(struct conformance *c, int64_t rows, double null_share) {
    const struct sx_type pairs[][2] = {
        {TYPE(I8), TYPE(I64)},
        {TYPE(U8), TYPE(I16)},
        {TYPE(I32), TYPE(I128)},
        {TYPE(U64), TYPE(I128)},
        {TYPE(BOOL), TYPE(I32)},
        {TYPE(I32), {SX_TYPE_DECIMAL, 18, 4}},
        {{SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_DECIMAL, 38, 10}},
        {{SX_TYPE_DECIMAL, 15, 2}, {SX_TYPE_DECIMAL, 18, 0}},
        {{SX_TYPE_DECIMAL, 30, 4}, {SX_TYPE_DECIMAL, 38, 1}},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct columns columns = {.rows = rows};
        const struct sx_instruction cast = call(SX_FN_CAST, pairs[i][1], 0, 0, 0);
        enum sx_status status;
        SX_GO(add_random(c, &columns, pairs[i][0], i % 2 ? FILL_EXTREMES : FILL_RANDOM, null_share,
                         LAYOUT_FLAT));
        check_single(c, &columns, NULL, 0, &cast, expect_widening);
    out:
        columns_release(&columns);
        SX_TRY(status);
    }
    return SX_OK;
}

/* Values become text, and the text the same values. */
static enum sx_status check_text(struct conformance *c, struct sx_type type, int64_t rows,
                                 double null_share) {
    struct columns columns = {.rows = rows};
    struct sx_tensor got = {0};
    const struct sx_instruction casts[] = {call(SX_FN_CAST, TYPE(VARCHAR), 0, 0, 0),
                                           call(SX_FN_CAST, type, 1, 0, 0)};
    const int32_t output = 2;
    const struct sx_program program = {1, &type, 0, NULL, 2, casts, 1, &output};
    enum sx_status status;
    SX_GO(add_random(c, &columns, type, FILL_EXTREMES, null_share, LAYOUT_FLAT));
    status = run(c, &program, &columns, &got);
    if (CONFORM(c, status == SX_OK, "text: %s", c->stream->error.text)) {
        bool equal = got.length == rows;
        for (int64_t row = 0; equal && row < rows; row++) {
            struct sx_scalar a, b;
            sx_tensor_scalar(&columns.host[0], row, &a);
            sx_tensor_scalar(&got, row, &b);
            equal = conformance_scalar_equal(&a, &b);
        }
        CONFORM(c, equal, "a value of type %d does not survive as text", type.id);
    }
    status = SX_OK;
out:
    sx_tensor_release(&got);
    columns_release(&columns);
    return status;
}

static struct sx_scalar text_constant(const char *text) {
    return (struct sx_scalar){.type = TYPE(VARCHAR), .v.text = {text, (uint32_t)strlen(text)}};
}

static enum sx_status check_strings(struct conformance *c, int64_t rows, enum conformance_fill fill,
                                    double null_share, enum layout layout) {
    static const char *const patterns[] = {"",     "%",  "a%", "%z",  "%B%", "%a%0%",      "_%",
                                           "%_z%", "a",  "%%", "_B%", "%__", "%\xc3\xa4%", "%_\xe2\x82\xac",
                                           "%x%y", "xx%"};
    struct columns columns = {.rows = rows};
    enum sx_status status;
    SX_GO(add_random(c, &columns, TYPE(VARCHAR), fill, null_share, layout));
    SX_GO(add_random(c, &columns, TYPE(VARCHAR), FILL_FEW_VALUES, null_share, LAYOUT_FLAT));
    static const enum sx_function tests[] = {SX_FN_LIKE, SX_FN_NOT_LIKE, SX_FN_PREFIX, SX_FN_SUFFIX,
                                             SX_FN_CONTAINS};
    for (size_t t = 0; t < sizeof tests / sizeof tests[0]; t++) {
        const struct sx_instruction varying = call(tests[t], TYPE(BOOL), 0, 1, 0);
        check_single(c, &columns, NULL, 0, &varying, expect_string_test);
        for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
            const struct sx_scalar pattern = text_constant(patterns[p]);
            const struct sx_instruction constant = call(tests[t], TYPE(BOOL), 0, 2, 0);
            check_single(c, &columns, &pattern, 1, &constant, expect_string_test);
        }
    }
    const struct sx_instruction length = call(SX_FN_LENGTH, TYPE(I64), 0, 0, 0);
    check_single(c, &columns, NULL, 0, &length, expect_length);
    for (int64_t start = -4; start <= 4; start++) {
        const struct sx_scalar bounds[] = {{.type = TYPE(I64), .v.i64 = start},
                                           {.type = TYPE(I64), .v.i64 = 3 - start}};
        const struct sx_instruction substring = call(SX_FN_SUBSTRING, TYPE(VARCHAR), 0, 2, 3);
        check_single(c, &columns, bounds, 2, &substring, expect_substring);
    }
out:
    columns_release(&columns);
    return status;
}

static enum sx_status check_dates(struct conformance *c, struct sx_type type, int64_t rows,
                                  double null_share) {
    struct columns columns = {.rows = rows};
    enum sx_status status;
    SX_GO(add_random(c, &columns, type, rows % 2 ? FILL_EXTREMES : FILL_RANDOM, null_share, LAYOUT_FLAT));
    for (int f = SX_FN_YEAR; f <= SX_FN_DAY; f++) {
        const struct sx_instruction part = call((enum sx_function)f, TYPE(I64), 0, 0, 0);
        check_single(c, &columns, NULL, 0, &part, expect_date_part);
    }
out:
    columns_release(&columns);
    return status;
}

/* ---- lists ---- */

enum { MAX_LIST = 40 };

static enum sx_status check_in_list(struct conformance *c, struct sx_type type, int64_t rows, int32_t count,
                                    double null_share, enum layout layout) {
    struct columns columns = {.rows = rows};
    struct sx_tensor list = {0}, got = {0};
    struct sx_scalar constants[MAX_LIST];
    struct single single;
    struct sx_instruction instruction = call(SX_FN_IN_LIST, TYPE(BOOL), 0, 0, 0);
    enum sx_status status;
    SX_GO(conformance_column(c, type, count, FILL_RANDOM, 0, &list));
    SX_GO(add_random(c, &columns, type, FILL_FEW_VALUES, null_share, layout));
    for (int32_t k = 0; k < count; k++)
        sx_tensor_scalar(k % 3 == 0 && rows > k ? &columns.host[0] : &list, k, &constants[k]);
    for (int32_t k = 0; k < count; k++)
        if (constants[k].is_null)
            sx_tensor_scalar(&list, k, &constants[k]);
    instruction.list_count = count;
    make_single(&single, &columns, constants, count, &instruction);
    SX_GO(run(c, &single.program, &columns, &got));
    bool equal = got.length == rows;
    for (int64_t row = 0; equal && row < rows; row++) {
        struct sx_scalar value, found;
        bool contained = false;
        sx_tensor_scalar(&columns.host[0], row, &value);
        for (int32_t k = 0; k < count && !value.is_null; k++)
            contained |= expect_order(&value, &constants[k]) == 0;
        sx_tensor_scalar(&got, row, &found);
        equal = found.is_null == value.is_null && (value.is_null || found.v.b == contained);
    }
    CONFORM(c, equal, "IN a list of %d", (int)count);
out:
    sx_tensor_release(&list);
    sx_tensor_release(&got);
    columns_release(&columns);
    return status;
}

/* ---- eval_select ---- */

static bool is_selected(const struct sx_scalar *a, const struct sx_scalar *b, const struct sx_scalar *s,
                        int64_t low_a, int64_t high_b) {
    if (a->is_null || b->is_null || s->is_null || a->v.i64 < low_a || b->v.i64 >= high_b || b->v.i64 == 0)
        return false;
    return a->v.i64 / b->v.i64 >= 0 && memmem(s->v.text.bytes, s->v.text.length_bytes, "a", 1) != NULL;
}

/* a >= low AND b < high AND b <> 0 AND a // b >= 0 AND s LIKE '%a%'. The quotient overflows for the lowest
 * value over -1, on rows that the first conjunct drops. */
static enum sx_status check_select(struct conformance *c, int64_t rows, double null_share, int64_t low_a,
                                   int64_t high_b, bool with_selection, enum layout layout) {
    const struct sx_type type = TYPE(I16);
    const struct sx_scalar constants[] = {{.type = type, .v.i64 = low_a},
                                          {.type = type, .v.i64 = high_b},
                                          {.type = type, .v.i64 = 0},
                                          text_constant("%a%")};
    const struct sx_instruction instructions[] = {
        call(SX_FN_GE, TYPE(BOOL), 0, 3, 0),  call(SX_FN_LT, TYPE(BOOL), 1, 4, 0),
        call(SX_FN_NE, TYPE(BOOL), 1, 5, 0),  call(SX_FN_INT_DIV, type, 0, 1, 0),
        call(SX_FN_GE, TYPE(BOOL), 10, 5, 0), call(SX_FN_LIKE, TYPE(BOOL), 2, 6, 0)};
    const int32_t outputs[] = {7, 8, 9, 11, 12};
    const struct sx_type types[] = {type, type, TYPE(VARCHAR)};
    const struct sx_program program = {3, types, 4, constants, 6, instructions, 5, outputs};
    const struct sx_backend_ops *ops = &c->backend->ops;
    struct columns columns = {.rows = rows};
    struct sx_tensor every_third = {0}, sent = {0}, selection = {0}, got = {0};
    struct sx_eval *eval = NULL;
    enum sx_status status;
    SX_GO(add_random(c, &columns, type, FILL_EXTREMES, null_share, LAYOUT_FLAT));
    SX_GO(add_random(c, &columns, type, FILL_EXTREMES, null_share, LAYOUT_FLAT));
    SX_GO(add_random(c, &columns, TYPE(VARCHAR), FILL_RANDOM, null_share, layout));
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I32, (rows + 2) / 3, &every_third, &c->error));
    for (int64_t i = 0; i < every_third.length; i++)
        ((int32_t *)every_third.values)[i] = (int32_t)(3 * i);
    SX_GO(conformance_send(c, &every_third, &sent));
    SX_GO(ops->eval_create(c->stream, &program, &eval));
    const struct sx_batch batch = {.rows = rows, .rows_bound = rows, .n_columns = 3, .columns = columns.sent};
    for (int repeat = 0; repeat < 2; repeat++) {
        sx_tensor_release(&selection);
        sx_tensor_release(&got);
        SX_GO(ops->eval_select(c->stream, eval, &batch, with_selection ? &sent : NULL, &selection));
        SX_GO(conformance_receive(c, &selection, &got));
        int64_t at = 0;
        bool equal = true;
        for (int64_t row = 0; row < rows; row += with_selection ? 3 : 1) {
            struct sx_scalar a, b, s;
            sx_tensor_scalar(&columns.host[0], row, &a);
            sx_tensor_scalar(&columns.host[1], row, &b);
            sx_tensor_scalar(&columns.host[2], row, &s);
            if (is_selected(&a, &b, &s, low_a, high_b))
                equal &= at < got.length && ((const int32_t *)got.values)[at] == row, at++;
        }
        CONFORM(c, equal && at == got.length, "selection of %lld rows", (long long)rows);
    }
out:
    CONFORM(c, status == SX_OK, "selection: %s", c->stream->error.text);
    if (eval)
        ops->eval_destroy(c->stream, eval);
    sx_tensor_release(&every_third);
    sx_tensor_release(&sent);
    sx_tensor_release(&selection);
    sx_tensor_release(&got);
    columns_release(&columns);
    return status;
}

/* ---- outputs that need no work ---- */

static enum sx_status check_plain_outputs(struct conformance *c, int64_t rows) {
    const struct sx_scalar constants[] = {text_constant("a constant of more than twelve bytes"),
                                          {.type = TYPE(I32), .is_null = true}};
    const struct sx_type types[] = {TYPE(VARCHAR), TYPE(I64)};
    const int32_t outputs[] = {1, 2, 3, 0};
    const struct sx_program program = {2, types, 2, constants, 0, NULL, 4, outputs};
    struct columns columns = {.rows = rows};
    struct sx_tensor got[MAX_OUTPUTS] = {0};
    enum sx_status status;
    SX_GO(add_random(c, &columns, types[0], FILL_RANDOM, 0.2, LAYOUT_DICT));
    SX_GO(add_random(c, &columns, types[1], FILL_RANDOM, 0.2, LAYOUT_FLAT));
    SX_GO(run(c, &program, &columns, got));
    for (int32_t o = 0; o < 4; o++) {
        bool equal = got[o].length == rows;
        for (int64_t row = 0; equal && row < rows; row++) {
            struct sx_scalar wanted, found;
            sx_tensor_scalar(&got[o], row, &found);
            if (outputs[o] < 2)
                sx_tensor_scalar(&columns.host[outputs[o]], row, &wanted);
            else
                wanted = constants[outputs[o] - 2];
            equal = conformance_scalar_equal(&wanted, &found);
        }
        CONFORM(c, equal, "output %d of %lld rows", (int)o, (long long)rows);
    }
out:
    for (int32_t o = 0; o < 4; o++)
        sx_tensor_release(&got[o]);
    columns_release(&columns);
    return status;
}

static enum sx_status check_shape(struct conformance *c, int64_t rows, double null_share,
                                  enum layout layout) {
    const enum conformance_fill fill = rows % 2 ? FILL_EXTREMES : FILL_RANDOM;
    for (int t = 0; t < N_INTEGER_TYPES; t++)
        SX_TRY(check_arithmetic(c, integer_types[t], rows, fill, null_share, layout));
    for (int t = 0; t < N_ALL_TYPES; t++) {
        SX_TRY(check_comparison(c, all_types[t], rows, FILL_FEW_VALUES, null_share, layout));
        SX_TRY(check_comparison(c, all_types[t], rows, FILL_EXTREMES, null_share, layout));
        SX_TRY(check_choices(c, all_types[t], rows, null_share, layout));
        SX_TRY(check_in_list(c, all_types[t], rows, 3, null_share, layout));
        SX_TRY(check_in_list(c, all_types[t], rows, MAX_LIST, null_share, layout));
        SX_TRY(check_text(c, all_types[t], rows, null_share));
    }
    SX_TRY(check_logic(c, rows, null_share, layout));
    SX_TRY(check_casts(c, rows, null_share));
    SX_TRY(check_strings(c, rows, fill, null_share, layout));
    SX_TRY(check_dates(c, TYPE(DATE), rows, null_share));
    SX_TRY(check_dates(c, TYPE(TIMESTAMP), rows, null_share));
    static const int64_t bounds[][2] = {
        {-32767, 32767}, {0, 32767}, {30000, -30000}, {0, 0}, {32767, -32767}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        SX_TRY(check_select(c, rows, null_share, bounds[i][0], bounds[i][1], false, layout));
        SX_TRY(check_select(c, rows, null_share, bounds[i][0], bounds[i][1], true, layout));
    }
    return check_plain_outputs(c, rows);
}

void conform_eval(struct conformance *c) {
    for (int r = 0; r < conformance_n_rows; r++)
        for (int layout = 0; layout < N_LAYOUTS; layout++) {
            const bool small = conformance_rows[r] <= 1000;
            for (int nulls = 0; nulls < (small ? 3 : 1); nulls++) {
                const double null_share = small ? nulls * 0.45 : 0.1;
                if (!conformance_takes(c))
                    continue;
                const enum sx_status status =
                    check_shape(c, conformance_rows[r], null_share, (enum layout)layout);
                CONFORM(c, status == SX_OK, "status %d: %s %s", status, c->error.text, c->stream->error.text);
            }
        }
    conform_eval_same(c);
    conform_eval_direct(c);
    conform_eval_late(c);
}
