/* Makes nodes and expressions of the logical plan. Private to src/plan. */
#ifndef SX_PLAN_BUILD_H
#define SX_PLAN_BUILD_H

#include "plan/plan.h"

/* Functions that make something return NULL after a failure, whose text is in `error`; NULL children are
 * passed on, so that callers may nest calls and check once. */
struct sx_builder {
    struct sx_arena *arena;
    struct sx_error *error;
    int32_t n_materialized;
    int depth; /* of recursion, bounded by SX_PLAN_MAX_DEPTH */
};

enum { SX_PLAN_MAX_DEPTH = 1200, SX_PLAN_MAX_COLUMNS = 1 << 20 };

/* Both return NULL. */
void *sx_build_no_memory(struct sx_builder *b);
void *sx_build_unsupported(struct sx_builder *b, const char *format, ...) SX_PRINTF(2, 3);
void *sx_build_malformed(struct sx_builder *b, const char *format, ...) SX_PRINTF(2, 3);

/* Count one level of recursion. */
bool sx_build_enter(struct sx_builder *b);
void sx_build_leave(struct sx_builder *b);

struct sx_expression *sx_build_column(struct sx_builder *b, int32_t column, struct sx_type type);
struct sx_expression *sx_build_constant(struct sx_builder *b, const struct sx_scalar *value);
struct sx_expression *sx_build_integer(struct sx_builder *b, enum sx_type_id type, int64_t value);
struct sx_expression *sx_build_null(struct sx_builder *b, struct sx_type type);
/* Copies the array of arguments. */
struct sx_expression *sx_build_node(struct sx_builder *b, enum sx_expression_kind kind, struct sx_type type,
                                    struct sx_expression *const *arguments, int32_t n_arguments);
struct sx_expression *sx_build_call(struct sx_builder *b, enum sx_function function, struct sx_type type,
                                    struct sx_expression *const *arguments, int32_t n_arguments);
struct sx_expression *sx_build_unary(struct sx_builder *b, enum sx_function function, struct sx_type type,
                                     struct sx_expression *argument);
/* BOOL result; casts decimals of one scale to one width where they differ. */
struct sx_expression *sx_build_compare(struct sx_builder *b, enum sx_function function,
                                       struct sx_expression *left, struct sx_expression *right);
/* The expression itself where the type is that already. */
struct sx_expression *sx_build_cast(struct sx_builder *b, struct sx_expression *expression,
                                    struct sx_type type);
/* Wants arguments in the same order and of the same kind. */
bool sx_expression_equal(const struct sx_expression *a, const struct sx_expression *b);
bool sx_scalar_same(const struct sx_scalar *a, const struct sx_scalar *b);
/* Copy in which column c is column map[c] (map[c] >= 0). */
struct sx_expression *sx_build_remap(struct sx_builder *b, const struct sx_expression *expression,
                                     const int32_t *map);
/* Copy in which column c is replaced with expressions[c]. */
struct sx_expression *sx_build_substitute(struct sx_builder *b, const struct sx_expression *expression,
                                          struct sx_expression *const *expressions);
/* All columns it reads are within [first, first + count). */
bool sx_expression_within(const struct sx_expression *expression, int32_t first, int32_t count);
/* Marks columns in `marks`. */
void sx_expression_mark(const struct sx_expression *expression, bool *marks);

/* Appends the AND's arguments, flattened. The array is in the arena and grows by copying. */
struct sx_conjuncts {
    struct sx_expression **items;
    int32_t count;
    int32_t capacity;
};
bool sx_conjuncts_add(struct sx_builder *b, struct sx_conjuncts *conjuncts, struct sx_expression *expression);

/* A node with room for `n_children` children and `n_columns` columns; estimated rows unknown. */
struct sx_plan *sx_build_plan(struct sx_builder *b, enum sx_plan_kind kind, int32_t n_children,
                              int32_t n_columns);
/* Writable view of plan->columns, for whoever builds the node. */
struct sx_column_info *sx_build_columns(struct sx_plan *plan);
/* 0, 1, …, n - 1. */
int32_t *sx_build_identity(struct sx_builder *b, int32_t n);
struct sx_expression *sx_build_input(struct sx_builder *b, const struct sx_plan *child, int32_t column);

/* Columns that are plain references keep the child's name; `names` may be NULL or hold NULLs. */
struct sx_plan *sx_build_project(struct sx_builder *b, struct sx_plan *child,
                                 struct sx_expression *const *expressions, int32_t n_expressions,
                                 const char *const *names);
struct sx_plan *sx_build_pick(struct sx_builder *b, struct sx_plan *child, const int32_t *columns,
                              int32_t n_columns);
/* No conjuncts: the child itself. */
struct sx_plan *sx_build_filter(struct sx_builder *b, struct sx_plan *child,
                                const struct sx_conjuncts *conjuncts);
struct sx_plan *sx_build_distinct(struct sx_builder *b, struct sx_plan *child);
struct sx_plan *sx_build_aggregate(struct sx_builder *b, struct sx_plan *child,
                                   struct sx_expression *const *keys, int32_t n_keys,
                                   const struct sx_aggregate_call *calls, int32_t n_calls);
/* Every column of both children is output, as the kind allows. */
struct sx_plan *sx_build_join(struct sx_builder *b, enum sx_join_kind kind, struct sx_plan *probe,
                              struct sx_plan *build, const struct sx_join_key *keys, int32_t n_keys,
                              const struct sx_conjuncts *residual);
/* Sets the output columns from probe_output and build_output. */
bool sx_build_join_columns(struct sx_builder *b, struct sx_plan *join);
struct sx_plan *sx_build_materialize(struct sx_builder *b, int32_t id, struct sx_plan *definition,
                                     struct sx_plan *body);
struct sx_plan *sx_build_reference(struct sx_builder *b, int32_t id, const struct sx_plan *definition);
struct sx_plan *sx_build_union(struct sx_builder *b, struct sx_plan *const *children, int32_t n_children);

/* Rewrites that make the plan smaller: projections merged, filters merged into scans, columns pruned. */
struct sx_plan *sx_plan_simplify(struct sx_builder *b, struct sx_plan *root);
/* What is read and joined twice is so once, where the one place's rows are known to be the other's: share.c.
 * For plans whose columns have not been pruned. */
struct sx_plan *sx_plan_share(struct sx_builder *b, struct sx_plan *root);
/* Outputs and join outputs that nothing above reads are dropped. */
struct sx_plan *sx_plan_prune(struct sx_builder *b, struct sx_plan *root);
/* Checks that columns are in range and types agree; SX_INTERNAL. */
SX_MUST_CHECK enum sx_status sx_plan_check(const struct sx_query_plan *query, struct sx_error *error);

#endif
