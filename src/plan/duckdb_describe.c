#include <string.h>

#include "plan/duckdb_handle.h"
#include "plan/text.h"

static struct sx_type type_of(duckdb_logical_type logical) {
    static const struct {
        duckdb_type duckdb;
        enum sx_type_id id;
    } types[] = {
        {DUCKDB_TYPE_BOOLEAN, SX_TYPE_BOOL},        {DUCKDB_TYPE_TINYINT, SX_TYPE_I8},
        {DUCKDB_TYPE_SMALLINT, SX_TYPE_I16},        {DUCKDB_TYPE_INTEGER, SX_TYPE_I32},
        {DUCKDB_TYPE_BIGINT, SX_TYPE_I64},          {DUCKDB_TYPE_HUGEINT, SX_TYPE_I128},
        {DUCKDB_TYPE_UTINYINT, SX_TYPE_U8},         {DUCKDB_TYPE_USMALLINT, SX_TYPE_U16},
        {DUCKDB_TYPE_UINTEGER, SX_TYPE_U32},        {DUCKDB_TYPE_UBIGINT, SX_TYPE_U64},
        {DUCKDB_TYPE_UHUGEINT, SX_TYPE_U128},       {DUCKDB_TYPE_FLOAT, SX_TYPE_F32},
        {DUCKDB_TYPE_DOUBLE, SX_TYPE_F64},          {DUCKDB_TYPE_DATE, SX_TYPE_DATE},
        {DUCKDB_TYPE_TIMESTAMP, SX_TYPE_TIMESTAMP}, {DUCKDB_TYPE_INTERVAL, SX_TYPE_INTERVAL},
        {DUCKDB_TYPE_VARCHAR, SX_TYPE_VARCHAR},
    };
    const duckdb_type id = duckdb_get_type_id(logical);
    if (id == DUCKDB_TYPE_DECIMAL)
        return sx_type_decimal(duckdb_decimal_width(logical), duckdb_decimal_scale(logical));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].duckdb == id)
            return sx_type_of(types[i].id);
    return sx_type_of(SX_TYPE_NULLTYPE);
}

static enum sx_status read_columns(duckdb_prepared_statement statement, struct sx_arena *arena,
                                   struct sx_column_info **out_columns, int *out_n_columns,
                                   struct sx_error *error) {
    const idx_t n = duckdb_prepared_statement_column_count(statement);
    struct sx_column_info *columns = SX_ARENA_ARRAY(arena, n, struct sx_column_info);
    bool complete = columns != NULL;
    for (idx_t i = 0; complete && i < n; i++) {
        const char *name = duckdb_prepared_statement_column_name(statement, i);
        duckdb_logical_type logical = duckdb_prepared_statement_column_logical_type(statement, i);
        columns[i].name = name ? sx_arena_copy_text(arena, name, strlen(name)) : NULL;
        columns[i].type = type_of(logical);
        complete = columns[i].name != NULL;
        duckdb_free((void *)(uintptr_t)name);
        duckdb_destroy_logical_type(&logical);
    }
    if (!complete)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a table's columns");
    *out_columns = columns;
    *out_n_columns = (int)n;
    return SX_OK;
}

enum sx_status sx_frontend_describe(struct sx_frontend *frontend, struct sx_arena *arena, const char *table,
                                    struct sx_column_info **out_columns, int *out_n_columns,
                                    struct sx_error *error) {
    struct sx_text sql = {.arena = arena};
    duckdb_prepared_statement statement = NULL;
    enum sx_status status = SX_OK;
    SX_TRY(sx_duckdb_make_views(frontend, table, SX_VIEWS_FOR_PLANNING, error));
    sx_text_add(&sql, "SELECT * FROM ");
    sx_text_add_quoted(&sql, table, '"');
    if (sql.failed)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a table's columns");
    if (duckdb_prepare(frontend->binder, sql.bytes, &statement) != DuckDBSuccess)
        status = sx_duckdb_error(error, duckdb_prepare_error(statement));
    else
        status = read_columns(statement, arena, out_columns, out_n_columns, error);
    duckdb_destroy_prepare(&statement);
    return status;
}
