/* DuckDB's logical plan as JSON -> struct sx_plan. Private to src/plan; the format is that of the version
 * that the library is checked against. */
#ifndef SX_PLAN_DUCKDB_CONVERT_H
#define SX_PLAN_DUCKDB_CONVERT_H

#include <json-c/json.h>

#include "plan/build.h"

/* A view: where its files are. */
struct sx_table_files {
    const char *name;
    const char *const *files;
    int32_t n_files;
    const struct sx_table_parts *parts; /* NULL: none */
    const char *stand_in;               /* the file that the plan has in their place; NULL: none */
};

/* A duplicate-eliminated side in scope, or a materialised CTE. */
struct sx_definition {
    struct sx_definition *outer;
    int64_t duckdb_index; /* CTE: its table index; -1: the innermost is a DELIM_GET's */
    int32_t id;           /* of the materialisation */
    struct sx_plan *plan;
    int32_t uses;
    struct sx_plan *last_use;
};

struct sx_convert {
    struct sx_builder b;
    const struct sx_table_files *tables;
    int32_t n_tables;
    struct sx_definition *ctes;
    struct sx_definition *delim;
    bool names_files;     /* see sx_query_plan */
    bool has_known_texts; /* of an operator that is converted already, chosen among constants */
};

/* JSON text of json_serialize_plan -> plan; names of the answer's columns are copied to the arena. `n_names`
 * must be the number of columns; without `names` the columns keep what names the plan has. */
SX_MUST_CHECK enum sx_status sx_duckdb_convert(const char *json, size_t length_bytes,
                                               const struct sx_table_files *tables, int32_t n_tables,
                                               const char *const *names, int32_t n_names,
                                               struct sx_query_plan *out_plan, struct sx_error *error);

/* ---- JSON; all take NULL and give NULL, "" or the default for what is not there ---- */
struct json_object *sx_json_member(struct json_object *object, const char *name);
const char *sx_json_text(struct json_object *object, const char *name);
int64_t sx_json_integer(struct json_object *object, const char *name, int64_t otherwise);
bool sx_json_bool(struct json_object *object, const char *name);
/* 0 for what is not an array. */
int32_t sx_json_length(struct json_object *array);
struct json_object *sx_json_item(struct json_object *array, int32_t index);

/* ---- types and values ---- */
/* `what` says for a message where the type stands, may be NULL. */
bool sx_convert_type(struct sx_convert *c, struct json_object *type, const char *what,
                     struct sx_type *out_type);
bool sx_convert_value(struct sx_convert *c, struct json_object *value, struct sx_scalar *out_scalar);

/* ---- expressions ---- */
/* Columns that BOUND_REF may name. */
struct sx_scope {
    const struct sx_column_info *columns;
    int32_t n_columns;
};
struct sx_expression *sx_convert_expression(struct sx_convert *c, struct json_object *json,
                                            const struct sx_scope *scope);
struct sx_expression *sx_convert_function(struct sx_convert *c, const char *name, struct sx_type type,
                                          struct sx_expression **arguments, int32_t n_arguments);
/* Notes whether an operator hands on a text of which DuckDB may know more than a column tells. */
void sx_convert_note_text(struct sx_convert *c, const struct sx_expression *expression);
/* arguments[0] IN (arguments[1..]), n arguments in all. */
struct sx_expression *sx_convert_in(struct sx_convert *c, struct sx_expression **arguments, int32_t n);
/* COMPARE_EQUAL, … -> SX_FN_EQ, …; SX_FN_COUNT for another. */
enum sx_function sx_convert_comparison(const char *name);
bool sx_convert_order(struct sx_convert *c, struct json_object *json, const struct sx_scope *scope,
                      struct sx_order *out_order);
static inline struct sx_scope sx_scope_of(const struct sx_plan *plan) {
    return (struct sx_scope){plan->columns, plan->n_columns};
}

/* ---- operators; NULL after an error ---- */
struct sx_plan *sx_convert_operator(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_child(struct sx_convert *c, struct json_object *json, int32_t index);
struct sx_plan *sx_convert_get(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_expression_get(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_chunk_get(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_empty_result(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_aggregate(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_comparison_join(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_any_join(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_delim_join(struct sx_convert *c, struct json_object *json);
struct sx_plan *sx_convert_cross_product(struct sx_convert *c, struct json_object *json);
/* VALUES with one row and no columns. */
struct sx_plan *sx_convert_one_row(struct sx_convert *c);

#endif
