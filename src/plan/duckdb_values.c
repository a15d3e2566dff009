/* Operators that give constant rows. */
#include <string.h>

#include "plan/duckdb_convert.h"

static struct sx_plan *new_values(struct sx_convert *c, int32_t n_columns, int64_t n_rows,
                                  struct sx_scalar **out_cells) {
    struct sx_plan *plan = sx_build_plan(&c->b, SX_PLAN_VALUES, 0, n_columns);
    struct sx_scalar *cells =
        sx_arena_array(c->b.arena, (size_t)n_rows * (size_t)n_columns, sizeof(struct sx_scalar));
    if (!plan)
        return NULL;
    if (!cells)
        return sx_build_no_memory(&c->b);
    plan->u.values.cells = cells;
    plan->u.values.n_rows = n_rows;
    plan->estimated_rows = (double)n_rows;
    *out_cells = cells;
    return plan;
}

struct sx_plan *sx_convert_one_row(struct sx_convert *c) {
    struct sx_scalar *cells = NULL;
    return new_values(c, 0, 1, &cells);
}

static bool convert_columns(struct sx_convert *c, struct json_object *types, struct sx_plan *plan) {
    for (int32_t i = 0; i < plan->n_columns; i++) {
        struct sx_column_info *column = &sx_build_columns(plan)[i];
        column->name = "";
        if (!sx_convert_type(c, sx_json_item(types, i), "a constant column", &column->type))
            return false;
    }
    return true;
}

struct sx_plan *sx_convert_empty_result(struct sx_convert *c, struct json_object *json) {
    struct json_object *types = sx_json_member(json, "return_types");
    struct sx_scalar *cells = NULL;
    struct sx_plan *plan = new_values(c, sx_json_length(types), 0, &cells);
    return plan && convert_columns(c, types, plan) ? plan : NULL;
}

struct sx_plan *sx_convert_chunk_get(struct sx_convert *c, struct json_object *json) {
    struct json_object *types = sx_json_member(json, "chunk_types");
    struct json_object *columns = sx_json_member(sx_json_member(json, "collection"), "values");
    const int32_t n_columns = sx_json_length(types);
    const int32_t n_rows = sx_json_length(sx_json_item(columns, 0));
    struct sx_scalar *cells = NULL;
    struct sx_plan *plan = new_values(c, n_columns, n_rows, &cells);
    if (!plan || !cells || !convert_columns(c, types, plan))
        return NULL;
    for (int32_t i = 0; i < n_columns; i++) {
        struct json_object *column = sx_json_item(columns, i);
        if (sx_json_length(column) != n_rows)
            return sx_build_malformed(&c->b, "constant columns of unequal length");
        for (int32_t row = 0; row < n_rows; row++) {
            struct sx_scalar *cell = &cells[(int64_t)row * n_columns + i];
            if (!sx_convert_value(c, sx_json_item(column, row), cell))
                return NULL;
            if (cell->is_null)
                cell->type = plan->columns[i].type;
            if (!sx_type_equal(cell->type, plan->columns[i].type))
                return sx_build_malformed(&c->b, "a constant whose type is not its column's");
        }
    }
    return plan;
}

/* A row's expressions, cast to the columns' types. */
static struct sx_expression **convert_row(struct sx_convert *c, struct json_object *row,
                                          const struct sx_scope *scope, const struct sx_plan *values) {
    struct sx_expression **expressions =
        SX_ARENA_ARRAY(c->b.arena, values->n_columns, struct sx_expression *);
    if (!expressions)
        return sx_build_no_memory(&c->b);
    if (sx_json_length(row) != values->n_columns)
        return sx_build_malformed(&c->b, "constant rows of unequal length");
    for (int32_t i = 0; i < values->n_columns; i++) {
        struct sx_expression *expression = sx_convert_expression(c, sx_json_item(row, i), scope);
        expressions[i] = sx_build_cast(&c->b, expression, values->columns[i].type);
        if (!expressions[i])
            return NULL;
    }
    return expressions;
}

static bool all_constant(struct sx_expression *const *expressions, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (expressions[i]->kind != SX_EXPR_CONSTANT)
            return false;
    return true;
}

/* One row each, computed from the child's columns. */
static struct sx_plan *computed_rows(struct sx_convert *c, struct sx_plan *child,
                                     struct sx_expression ***rows, int32_t n_rows, int32_t n_columns) {
    struct sx_plan **parts = SX_ARENA_ARRAY(c->b.arena, n_rows, struct sx_plan *);
    if (!parts)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < n_rows; i++) {
        struct sx_plan *input = i == 0 ? child : sx_convert_one_row(c);
        parts[i] = sx_build_project(&c->b, input, rows[i], n_columns, NULL);
    }
    return n_rows == 1 ? parts[0] : sx_build_union(&c->b, parts, n_rows);
}

struct sx_plan *sx_convert_expression_get(struct sx_convert *c, struct json_object *json) {
    struct json_object *types = sx_json_member(json, "expr_types");
    struct json_object *lists = sx_json_member(json, "expressions");
    const int32_t n_columns = sx_json_length(types), n_rows = sx_json_length(lists);
    struct sx_plan *child = sx_convert_child(c, json, 0);
    struct sx_scalar *cells = NULL;
    struct sx_plan *plan = child ? new_values(c, n_columns, n_rows, &cells) : NULL;
    struct sx_expression ***rows = SX_ARENA_ARRAY(c->b.arena, n_rows, struct sx_expression **);
    if (!plan || !cells || !convert_columns(c, types, plan))
        return NULL;
    if (!rows)
        return sx_build_no_memory(&c->b);
    const struct sx_scope scope = sx_scope_of(child);
    const bool one_row = child->kind == SX_PLAN_VALUES && child->n_columns == 0;
    bool constant = one_row;
    for (int32_t row = 0; row < n_rows; row++) {
        rows[row] = convert_row(c, sx_json_item(lists, row), &scope, plan);
        if (!rows[row])
            return NULL;
        constant = constant && all_constant(rows[row], n_columns);
        for (int32_t i = 0; constant && i < n_columns; i++)
            cells[(int64_t)row * n_columns + i] = rows[row][i]->constant;
    }
    if (constant)
        return plan;
    if (!one_row && n_rows != 1)
        return sx_build_unsupported(&c->b, "operator EXPRESSION_GET over a table");
    return computed_rows(c, child, rows, n_rows, n_columns);
}
