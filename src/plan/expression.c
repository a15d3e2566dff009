#include "plan/expression.h"

void sx_expression_columns(const struct sx_expression *expression,
                           void (*visit)(int32_t column, void *context), void *context) {
    if (expression->kind == SX_EXPR_COLUMN)
        visit(expression->column, context);
    for (int32_t i = 0; i < expression->n_arguments; i++)
        sx_expression_columns(expression->arguments[i], visit, context);
}
