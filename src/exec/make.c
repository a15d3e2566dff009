#include "exec/make.h"

#include <string.h>

struct sx_expression *sx_make_column(struct sx_arena *arena, int32_t column, struct sx_type type) {
    struct sx_expression *made = SX_ARENA_NEW(arena, struct sx_expression);
    if (made)
        *made = (struct sx_expression){.kind = SX_EXPR_COLUMN, .type = type, .column = column};
    return made;
}

struct sx_expression *sx_make_constant(struct sx_arena *arena, const struct sx_scalar *scalar) {
    struct sx_expression *made = SX_ARENA_NEW(arena, struct sx_expression);
    if (made)
        *made = (struct sx_expression){.kind = SX_EXPR_CONSTANT, .type = scalar->type, .constant = *scalar};
    return made;
}

struct sx_expression *sx_make_bool(struct sx_arena *arena, bool is_null, bool value) {
    return sx_make_constant(
        arena,
        &(struct sx_scalar){.type = sx_type_of(SX_TYPE_BOOL), .is_null = is_null, .v.i64 = value ? 1 : 0});
}

struct sx_expression *sx_make_bigint(struct sx_arena *arena, int64_t value) {
    return sx_make_constant(arena, &(struct sx_scalar){.type = sx_type_of(SX_TYPE_I64), .v.i64 = value});
}

static struct sx_expression *make_node(struct sx_arena *arena, struct sx_expression node,
                                       struct sx_expression *const *arguments, int32_t n_arguments) {
    struct sx_expression *made = SX_ARENA_NEW(arena, struct sx_expression);
    struct sx_expression **copy = SX_ARENA_ARRAY(arena, n_arguments, struct sx_expression *);
    if (!made || !copy)
        return NULL;
    for (int32_t i = 0; i < n_arguments; i++) {
        if (!arguments[i])
            return NULL;
        copy[i] = arguments[i];
    }
    *made = node;
    made->arguments = copy;
    made->n_arguments = n_arguments;
    return made;
}

struct sx_expression *sx_make_call(struct sx_arena *arena, enum sx_function function, struct sx_type type,
                                   struct sx_expression *const *arguments, int32_t n_arguments) {
    struct sx_expression node = {.kind = SX_EXPR_CALL, .type = type, .function = function};
    return make_node(arena, node, arguments, n_arguments);
}

struct sx_expression *sx_make_case(struct sx_arena *arena, struct sx_expression *condition,
                                   struct sx_expression *yes, struct sx_expression *no) {
    if (!yes)
        return NULL;
    struct sx_expression *arguments[] = {condition, yes, no};
    struct sx_expression node = {.kind = SX_EXPR_CASE, .type = yes->type};
    return make_node(arena, node, arguments, 3);
}
