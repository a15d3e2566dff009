#include "exec/prune.h"

struct prune_list {
    struct sx_arena *arena;
    struct sx_prune *prunes;
    int count;
    bool no_memory;
};

static void add(struct prune_list *list, int column, enum sx_prune_op op, const struct sx_scalar *values,
                int n_values) {
    list->prunes[list->count++] =
        (struct sx_prune){.column = column, .op = op, .values = values, .n_values = n_values};
}

static bool prune_op_of(enum sx_function function, enum sx_prune_op *out_op) {
    switch (function) {
    case SX_FN_EQ: *out_op = SX_PRUNE_EQ; return true;
    case SX_FN_LT: *out_op = SX_PRUNE_LT; return true;
    case SX_FN_LE: *out_op = SX_PRUNE_LE; return true;
    case SX_FN_GT: *out_op = SX_PRUNE_GT; return true;
    case SX_FN_GE: *out_op = SX_PRUNE_GE; return true;
    default: return false;
    }
}

static enum sx_prune_op mirrored(enum sx_prune_op op) {
    switch (op) {
    case SX_PRUNE_LT: return SX_PRUNE_GT;
    case SX_PRUNE_LE: return SX_PRUNE_GE;
    case SX_PRUNE_GT: return SX_PRUNE_LT;
    case SX_PRUNE_GE: return SX_PRUNE_LE;
    default: return op;
    }
}

static void add_comparison(struct prune_list *list, const struct sx_expression *call) {
    const struct sx_expression *left = call->arguments[0], *right = call->arguments[1];
    enum sx_prune_op op;
    if (!prune_op_of(call->function, &op))
        return;
    if (left->kind == SX_EXPR_CONSTANT) {
        const struct sx_expression *swapped = left;
        left = right;
        right = swapped;
        op = mirrored(op);
    }
    if (left->kind == SX_EXPR_COLUMN && right->kind == SX_EXPR_CONSTANT && !right->constant.is_null)
        add(list, left->column, op, &right->constant, 1);
}

static void add_in_list(struct prune_list *list, const struct sx_expression *in) {
    if (in->arguments[0]->kind != SX_EXPR_COLUMN)
        return;
    int n = in->n_arguments - 1;
    struct sx_scalar *values = SX_ARENA_ARRAY(list->arena, n, struct sx_scalar);
    list->no_memory |= !values;
    if (!values)
        return;
    for (int i = 0; i < n; i++)
        values[i] = in->arguments[i + 1]->constant;
    add(list, in->arguments[0]->column, SX_PRUNE_IN, values, n);
}

/* AND inside of one conjunct is left alone: the front end splits conjunctions. */
static void add_conjunct(struct prune_list *list, const struct sx_expression *conjunct) {
    if (conjunct->kind == SX_EXPR_IN_LIST) {
        add_in_list(list, conjunct);
        return;
    }
    if (conjunct->kind != SX_EXPR_CALL)
        return;
    const struct sx_expression *first = conjunct->arguments[0];
    if (conjunct->function == SX_FN_IS_NULL && first->kind == SX_EXPR_COLUMN)
        add(list, first->column, SX_PRUNE_NULL, NULL, 0);
    else if (conjunct->function == SX_FN_IS_NOT_NULL && first->kind == SX_EXPR_COLUMN)
        add(list, first->column, SX_PRUNE_NOT_NULL, NULL, 0);
    else if (conjunct->n_arguments == 2)
        add_comparison(list, conjunct);
}

enum sx_status sx_prune_find(struct sx_arena *arena, const struct sx_scan_plan *scan,
                             const struct sx_prune **out_prunes, int *out_n_prunes, struct sx_error *error) {
    struct prune_list list = {.arena = arena};
    list.prunes = SX_ARENA_ARRAY(arena, scan->n_filters, struct sx_prune);
    if (!list.prunes)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan's filters");
    for (int32_t i = 0; i < scan->n_filters; i++)
        add_conjunct(&list, scan->filters[i]);
    if (list.no_memory)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan's filters");
    *out_prunes = list.prunes;
    *out_n_prunes = list.count;
    return SX_OK;
}
