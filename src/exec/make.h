/* Expressions that operators need for themselves. All return NULL when there is no memory, or when an
 * argument is NULL. */
#ifndef SX_EXEC_MAKE_H
#define SX_EXEC_MAKE_H

#include "plan/expression.h"

struct sx_expression *sx_make_column(struct sx_arena *arena, int32_t column, struct sx_type type);
/* A VARCHAR's bytes have to outlive the expression. */
struct sx_expression *sx_make_constant(struct sx_arena *arena, const struct sx_scalar *scalar);
struct sx_expression *sx_make_bool(struct sx_arena *arena, bool is_null, bool value);
struct sx_expression *sx_make_bigint(struct sx_arena *arena, int64_t value);
struct sx_expression *sx_make_call(struct sx_arena *arena, enum sx_function function, struct sx_type type,
                                   struct sx_expression *const *arguments, int32_t n_arguments);
/* CASE WHEN condition THEN yes ELSE no. */
struct sx_expression *sx_make_case(struct sx_arena *arena, struct sx_expression *condition,
                                   struct sx_expression *yes, struct sx_expression *no);

#endif
