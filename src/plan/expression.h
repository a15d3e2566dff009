/* Expressions of the logical plan. Data only, in the plan's arena, immutable once built. */
#ifndef SX_PLAN_EXPRESSION_H
#define SX_PLAN_EXPRESSION_H

#include "base/arena.h"
#include "base/status.h"
#include "tensor/program.h"

enum sx_expression_kind {
    SX_EXPR_COLUMN, /* column `column` of the operator's input */
    SX_EXPR_CONSTANT,
    SX_EXPR_CALL, /* function over arguments; AND, OR, COALESCE, CONCAT_SKIP_NULL may have more than two */
    SX_EXPR_CASE, /* arguments: condition, value, condition, value, …, else; a branch that is not taken raises
                     no error */
    SX_EXPR_IN_LIST /* arguments[0] IN arguments[1..], all constants, none NULL */
};

struct sx_expression {
    enum sx_expression_kind kind;
    struct sx_type type;
    int32_t column;
    struct sx_scalar constant;
    enum sx_function function;
    int32_t n_arguments;
    struct sx_expression **arguments;
};

/* Compiles expressions over a batch with these column types into one program, in `arena`. Equal
 * subexpressions are computed once. */
SX_MUST_CHECK enum sx_status sx_program_compile(struct sx_arena *arena,
                                                struct sx_expression *const *expressions,
                                                int32_t n_expressions, const struct sx_type *input_types,
                                                int32_t n_inputs, struct sx_program *out_program,
                                                struct sx_error *error);

/* Appends readable SQL-like text in `arena`; `names` (may be NULL) are the input columns' names. */
const char *sx_expression_text(struct sx_arena *arena, const struct sx_expression *expression,
                               const char *const *names);

/* May evaluating it fail? */
bool sx_expression_fallible(const struct sx_expression *expression);

/* Calls visit(column, context) for every column reference. */
void sx_expression_columns(const struct sx_expression *expression,
                           void (*visit)(int32_t column, void *context), void *context);

#endif
