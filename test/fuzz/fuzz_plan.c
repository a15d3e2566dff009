/* Any bytes as DuckDB's plan: converted, or refused with a text. */
#include <stdlib.h>

#include "plan/duckdb_convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compile_projections(struct sx_arena *arena, const struct sx_plan *plan) {
    for (int32_t i = 0; i < plan->n_children; i++)
        compile_projections(arena, plan->children[i]);
    if (plan->kind != SX_PLAN_PROJECT)
        return;
    const struct sx_plan *child = plan->children[0];
    struct sx_type *types = SX_ARENA_ARRAY(arena, child->n_columns, struct sx_type);
    struct sx_program program;
    for (int32_t i = 0; types && i < child->n_columns; i++)
        types[i] = child->columns[i].type;
    if (types && sx_program_compile(arena, plan->u.project.expressions, plan->n_columns, types,
                                    child->n_columns, &program, NULL) != SX_OK)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const files[] = {"t.parquet"};
    const struct sx_table_files table = {.name = "t", .files = files, .n_files = 1};
    struct sx_query_plan query = {0};
    struct sx_error error = {0};
    if (sx_duckdb_convert((const char *)data, size, &table, 1, NULL, 0, &query, &error) == SX_OK) {
        if (!*sx_plan_text(&query.arena, query.root))
            abort();
        compile_projections(&query.arena, query.root);
    } else if (!error.text[0]) {
        abort();
    }
    sx_query_plan_release(&query);
    return 0;
}
