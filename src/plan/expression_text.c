#include <stdio.h>
#include <string.h>

#include "plan/text.h"

enum { LONGEST_LIST = 10 };

/* Operators that stand between their arguments, by function. */
static const char *const infix[SX_FN_COUNT] = {
    [SX_FN_ADD] = "+",
    [SX_FN_SUB] = "-",
    [SX_FN_MUL] = "*",
    [SX_FN_DIV] = "/",
    [SX_FN_INT_DIV] = "//",
    [SX_FN_MOD] = "%",
    [SX_FN_EQ] = "=",
    [SX_FN_NE] = "<>",
    [SX_FN_LT] = "<",
    [SX_FN_LE] = "<=",
    [SX_FN_GT] = ">",
    [SX_FN_GE] = ">=",
    [SX_FN_DISTINCT_FROM] = "IS DISTINCT FROM",
    [SX_FN_NOT_DISTINCT_FROM] = "IS NOT DISTINCT FROM",
    [SX_FN_AND] = "AND",
    [SX_FN_OR] = "OR",
    [SX_FN_LIKE] = "LIKE",
    [SX_FN_NOT_LIKE] = "NOT LIKE",
    [SX_FN_CONCAT] = "||",
};

static const char *const postfix[SX_FN_COUNT] = {
    [SX_FN_IS_NULL] = "IS NULL",
    [SX_FN_IS_NOT_NULL] = "IS NOT NULL",
    [SX_FN_IS_TRUE] = "IS TRUE",
};

static void add_list(struct sx_text *text, const struct sx_expression *expression, int32_t first,
                     const char *separator, const char *const *names) {
    for (int32_t i = first; i < expression->n_arguments; i++) {
        if (i > first)
            sx_text_add(text, "%s", separator);
        if (i == first + LONGEST_LIST && expression->n_arguments > i + 2) {
            sx_text_add(text, "… %d more", expression->n_arguments - i);
            return;
        }
        sx_text_add_expression(text, expression->arguments[i], names);
    }
}

static void add_function_name(struct sx_text *text, enum sx_function function) {
    const char *name = sx_function_name(function);
    for (size_t i = 0; i < strlen(name); i++) {
        char lower = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + ('a' - 'A')) : name[i];
        sx_text_add_bytes(text, &lower, 1);
    }
}

static void add_call(struct sx_text *text, const struct sx_expression *call, const char *const *names) {
    char type_name[SX_TYPE_NAME_BYTES];
    if (infix[call->function]) {
        char separator[32];
        snprintf(separator, sizeof separator, " %s ", infix[call->function]);
        sx_text_add(text, "(");
        add_list(text, call, 0, separator, names);
        sx_text_add(text, ")");
    } else if (postfix[call->function]) {
        sx_text_add(text, "(");
        add_list(text, call, 0, " ", names);
        sx_text_add(text, " %s)", postfix[call->function]);
    } else if (call->function == SX_FN_CAST || call->function == SX_FN_TRY_CAST) {
        sx_text_add(text, call->function == SX_FN_CAST ? "CAST(" : "TRY_CAST(");
        add_list(text, call, 0, ", ", names);
        sx_text_add(text, " AS %s)", sx_type_name(call->type, type_name));
    } else {
        add_function_name(text, call->function);
        sx_text_add(text, "(");
        add_list(text, call, 0, ", ", names);
        sx_text_add(text, ")");
    }
}

static void add_case(struct sx_text *text, const struct sx_expression *expression, const char *const *names) {
    sx_text_add(text, "CASE");
    int32_t i = 0;
    for (; i + 2 < expression->n_arguments; i += 2) {
        sx_text_add(text, " WHEN ");
        sx_text_add_expression(text, expression->arguments[i], names);
        sx_text_add(text, " THEN ");
        sx_text_add_expression(text, expression->arguments[i + 1], names);
    }
    sx_text_add(text, " ELSE ");
    sx_text_add_expression(text, expression->arguments[i], names);
    sx_text_add(text, " END");
}

void sx_text_add_expression(struct sx_text *text, const struct sx_expression *expression,
                            const char *const *names) {
    switch (expression->kind) {
    case SX_EXPR_COLUMN:
        if (names && names[expression->column] && *names[expression->column])
            sx_text_add(text, "%s", names[expression->column]);
        else
            sx_text_add(text, "#%d", expression->column);
        break;
    case SX_EXPR_CONSTANT: sx_text_add_scalar(text, &expression->constant); break;
    case SX_EXPR_CALL: add_call(text, expression, names); break;
    case SX_EXPR_CASE: add_case(text, expression, names); break;
    case SX_EXPR_IN_LIST:
        sx_text_add(text, "(");
        sx_text_add_expression(text, expression->arguments[0], names);
        sx_text_add(text, " IN (");
        add_list(text, expression, 1, ", ", names);
        sx_text_add(text, "))");
        break;
    }
}

const char *sx_expression_text(struct sx_arena *arena, const struct sx_expression *expression,
                               const char *const *names) {
    struct sx_text text = {.arena = arena};
    sx_text_add_expression(&text, expression, names);
    return text.failed ? "" : text.bytes;
}
