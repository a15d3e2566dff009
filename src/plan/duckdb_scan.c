/* LOGICAL_GET over read_parquet -> SCAN. */
#include <string.h>

#include "plan/duckdb_convert.h"

#define COLUMN_EMPTY  (UINT64_MAX - 1) /* a scan that reads no column has this one */
#define FIRST_VIRTUAL (UINT64_C(1) << 63)

struct scan {
    struct sx_convert *c;
    struct json_object *json;
    struct sx_scan_plan *plan;
    struct sx_scan_column *columns;
    uint64_t *ids; /* of columns: place in the table */
    int32_t n_columns;
};

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_path(struct json_object *path, const char *wanted) {
    return strcmp(json_object_get_string(path), wanted) == 0;
}

static bool is_stand_in(struct json_object *files, const struct sx_table_files *table) {
    return table->stand_in && sx_json_length(files) == 1 && is_path(sx_json_item(files, 0), table->stand_in);
}

static bool is_over(struct json_object *files, const struct sx_table_files *table) {
    const int32_t n = sx_json_length(files);
    if (is_stand_in(files, table))
        return true;
    if (n != table->n_files)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!is_path(sx_json_item(files, i), table->files[i]))
            return false;
    return true;
}

/* NULL: of none, the files are named in the query. */
static const struct sx_table_files *find_table(struct sx_convert *c, struct json_object *files) {
    for (int32_t i = 0; i < c->n_tables; i++)
        if (is_over(files, &c->tables[i]))
            return &c->tables[i];
    return NULL;
}

static bool copy_parts(struct scan *s, const struct sx_table_files *table) {
    struct sx_arena *arena = s->c->b.arena;
    if (!table || !table->parts)
        return true;
    bool *is_local = SX_ARENA_ARRAY(arena, table->n_files, bool);
    struct sx_table_parts *parts = SX_ARENA_NEW(arena, struct sx_table_parts);
    if (!is_local || !parts)
        return sx_build_no_memory(&s->c->b);
    memcpy(is_local, table->parts->is_local, (size_t)table->n_files * sizeof *is_local);
    *parts = (struct sx_table_parts){is_local, table->parts->share, table->parts->n_shares};
    s->plan->parts = parts;
    return true;
}

static bool convert_files(struct scan *s) {
    struct sx_convert *c = s->c;
    struct json_object *files = sx_json_member(sx_json_member(s->json, "function_data"), "files");
    for (int32_t i = 0; i < sx_json_length(files); i++)
        if (!json_object_is_type(sx_json_item(files, i), json_type_string))
            return sx_build_malformed(&c->b, "a file without a name");
    const struct sx_table_files *table = find_table(c, files);
    c->names_files |= !table || !is_stand_in(files, table);
    const int32_t n = table ? table->n_files : sx_json_length(files);
    const char **paths = SX_ARENA_ARRAY(c->b.arena, n, const char *);
    if (n == 0)
        return sx_build_unsupported(&c->b, "a table without files");
    if (!paths)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < n; i++) {
        const char *path = table ? table->files[i] : json_object_get_string(sx_json_item(files, i));
        paths[i] = sx_arena_copy_text(c->b.arena, path, strlen(path));
        if (!paths[i])
            return sx_build_no_memory(&c->b);
    }
    const char *name = table ? table->name : file_name(paths[0]);
    s->plan->files = paths;
    s->plan->n_files = n;
    s->plan->table = sx_arena_copy_text(c->b.arena, name, strlen(name));
    if (!s->plan->table)
        return sx_build_no_memory(&c->b);
    return copy_parts(s, table);
}

/* Options of read_parquet with which columns are not just the files' columns. */
static bool check_options(struct scan *s) {
    static const char *const of_parquet[] = {"binary_as_string", "file_row_number"};
    static const char *const of_files[] = {"filename", "hive_partitioning", "union_by_name"};
    struct sx_builder *b = &s->c->b;
    struct json_object *options = sx_json_member(sx_json_member(s->json, "function_data"), "parquet_options");
    struct json_object *file_options = sx_json_member(options, "file_options");
    for (size_t i = 0; i < sizeof of_parquet / sizeof *of_parquet; i++)
        if (sx_json_bool(options, of_parquet[i]))
            return sx_build_unsupported(b, "read_parquet's option %s", of_parquet[i]);
    for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
        if (sx_json_bool(file_options, of_files[i]))
            return sx_build_unsupported(b, "read_parquet's option %s", of_files[i]);
    if (sx_json_length(sx_json_member(options, "schema")) > 0)
        return sx_build_unsupported(b, "read_parquet's option schema");
    if (sx_json_member(options, "encryption_config"))
        return sx_build_unsupported(b, "read_parquet's option encryption_config");
    return true;
}

static bool column_id(struct scan *s, int32_t position, uint64_t *out_id) {
    struct json_object *entry = sx_json_item(sx_json_member(s->json, "column_indexes"), position);
    struct json_object *index = sx_json_member(entry, "index");
    if (!json_object_is_type(index, json_type_int))
        return sx_build_malformed(&s->c->b, "a scan's column without a number");
    *out_id = json_object_get_uint64(index);
    return true;
}

/* The type is what DuckDB takes from the first file. */
static bool convert_column_type(struct scan *s, struct json_object *type, const char *name,
                                struct sx_type *out_type) {
    if (sx_convert_type(s->c, type, name, out_type))
        return true;
    if (s->c->b.error->status == SX_UNSUPPORTED)
        (void)sx_error_prefix(s->c->b.error, "%.900s", s->plan->files[0]);
    return false;
}

/* Place among the scan's columns, which the table's column `id` gets if it has none; -1 after an error. */
static int32_t scan_column(struct scan *s, uint64_t id) {
    struct sx_builder *b = &s->c->b;
    struct json_object *names = sx_json_member(s->json, "names");
    for (int32_t i = 0; i < s->n_columns; i++)
        if (s->ids[i] == id)
            return i;
    if (id >= FIRST_VIRTUAL) {
        (void)sx_build_unsupported(b, "virtual columns of a file (such as file_row_number)");
        return -1;
    }
    struct json_object *name = id < INT32_MAX ? sx_json_item(names, (int32_t)id) : NULL;
    if (!json_object_is_type(name, json_type_string)) {
        (void)sx_build_malformed(b, "a scan's column that the table has not");
        return -1;
    }
    struct sx_scan_column *column = &s->columns[s->n_columns];
    struct json_object *type = sx_json_item(sx_json_member(s->json, "returned_types"), (int32_t)id);
    if (!convert_column_type(s, type, json_object_get_string(name), &column->type))
        return -1;
    column->source =
        sx_arena_copy_text(b->arena, json_object_get_string(name), (size_t)json_object_get_string_len(name));
    if (!column->source) {
        (void)sx_build_no_memory(b);
        return -1;
    }
    s->ids[s->n_columns] = id;
    return s->n_columns++;
}

/* ---- filters ---- */

static struct sx_expression *convert_filter(struct scan *s, struct json_object *filter, int32_t column,
                                            bool *out_always);

static struct sx_expression *filter_input(struct scan *s, int32_t column) {
    return sx_build_column(&s->c->b, column, s->columns[column].type);
}

static struct sx_expression *convert_conjunction(struct scan *s, struct json_object *filter, int32_t column,
                                                 enum sx_function function, bool *out_always) {
    struct sx_builder *b = &s->c->b;
    struct json_object *children = sx_json_member(filter, "child_filters");
    const int32_t n = sx_json_length(children);
    struct sx_expression **parts = SX_ARENA_ARRAY(b->arena, n, struct sx_expression *);
    int32_t n_parts = 0;
    if (!parts)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n; i++) {
        bool always = false;
        parts[n_parts] = convert_filter(s, sx_json_item(children, i), column, &always);
        if (!always && !parts[n_parts])
            return NULL;
        if (always && function == SX_FN_OR)
            *out_always = true;
        n_parts += always ? 0 : 1;
    }
    if (n_parts == 0)
        *out_always = true;
    if (*out_always)
        return NULL;
    if (n_parts == 1)
        return parts[0];
    return sx_build_call(b, function, sx_type_of(SX_TYPE_BOOL), parts, n_parts);
}

static struct sx_expression *convert_constant_filter(struct scan *s, struct json_object *filter,
                                                     int32_t column) {
    struct sx_scalar value;
    const char *name = sx_json_text(filter, "comparison_type");
    const enum sx_function function = sx_convert_comparison(name);
    if (function == SX_FN_COUNT)
        return sx_build_unsupported(&s->c->b, "filter %s", name);
    if (!sx_convert_value(s->c, sx_json_member(filter, "constant"), &value))
        return NULL;
    return sx_build_compare(&s->c->b, function, filter_input(s, column), sx_build_constant(&s->c->b, &value));
}

static struct sx_expression *convert_in_filter(struct scan *s, struct json_object *filter, int32_t column) {
    struct sx_builder *b = &s->c->b;
    struct json_object *values = sx_json_member(filter, "values");
    const int32_t n = sx_json_length(values);
    struct sx_expression **arguments = SX_ARENA_ARRAY(b->arena, n + 1, struct sx_expression *);
    if (n == 0)
        return sx_build_malformed(b, "an empty IN filter");
    if (!arguments)
        return sx_build_no_memory(b);
    arguments[0] = filter_input(s, column);
    for (int32_t i = 0; i < n; i++) {
        struct sx_scalar value;
        if (!sx_convert_value(s->c, sx_json_item(values, i), &value))
            return NULL;
        arguments[i + 1] = sx_build_constant(b, &value);
        if (!arguments[i + 1])
            return NULL;
    }
    return arguments[0] ? sx_convert_in(s->c, arguments, n + 1) : NULL;
}

static struct sx_expression *convert_expression_filter(struct scan *s, struct json_object *filter,
                                                       int32_t column) {
    const struct sx_column_info info = {s->columns[column].source, s->columns[column].type};
    const struct sx_scope scope = {&info, 1};
    struct sx_expression *expression = sx_convert_expression(s->c, sx_json_member(filter, "expr"), &scope);
    return expression ? sx_build_remap(&s->c->b, expression, &column) : NULL;
}

/* *out_always: no row is dropped by it (and NULL is returned). */
static struct sx_expression *convert_filter_kind(struct scan *s, struct json_object *filter, int32_t column,
                                                 bool *out_always) {
    struct sx_builder *b = &s->c->b;
    const char *kind = sx_json_text(filter, "filter_type");
    if (strcmp(kind, "CONSTANT_COMPARISON") == 0)
        return convert_constant_filter(s, filter, column);
    if (strcmp(kind, "CONJUNCTION_AND") == 0)
        return convert_conjunction(s, filter, column, SX_FN_AND, out_always);
    if (strcmp(kind, "CONJUNCTION_OR") == 0)
        return convert_conjunction(s, filter, column, SX_FN_OR, out_always);
    if (strcmp(kind, "IS_NULL") == 0 || strcmp(kind, "IS_NOT_NULL") == 0)
        return sx_build_unary(b, strcmp(kind, "IS_NULL") == 0 ? SX_FN_IS_NULL : SX_FN_IS_NOT_NULL,
                              sx_type_of(SX_TYPE_BOOL), filter_input(s, column));
    if (strcmp(kind, "IN_FILTER") == 0)
        return convert_in_filter(s, filter, column);
    if (strcmp(kind, "EXPRESSION_FILTER") == 0)
        return convert_expression_filter(s, filter, column);
    if (strcmp(kind, "OPTIONAL_FILTER") == 0 && sx_json_member(filter, "child_filter"))
        return convert_filter(s, sx_json_member(filter, "child_filter"), column, out_always);
    if (strcmp(kind, "OPTIONAL_FILTER") == 0 || strcmp(kind, "DYNAMIC_FILTER") == 0) {
        *out_always = true; /* filled in while DuckDB runs, to skip rows early */
        return NULL;
    }
    return sx_build_unsupported(b, "filter %s", kind);
}

static struct sx_expression *convert_filter(struct scan *s, struct json_object *filter, int32_t column,
                                            bool *out_always) {
    if (!sx_build_enter(&s->c->b))
        return NULL;
    struct sx_expression *expression = convert_filter_kind(s, filter, column, out_always);
    sx_build_leave(&s->c->b);
    return expression;
}

static bool convert_filters(struct scan *s) {
    struct json_object *filters = sx_json_member(sx_json_member(s->json, "table_filters"), "filters");
    struct sx_conjuncts conjuncts = {0};
    for (int32_t i = 0; i < sx_json_length(filters); i++) {
        struct json_object *entry = sx_json_item(filters, i);
        struct json_object *key = sx_json_member(entry, "key");
        if (!json_object_is_type(key, json_type_int))
            return sx_build_malformed(&s->c->b, "a filter without its column");
        int32_t column = scan_column(s, json_object_get_uint64(key));
        if (column < 0)
            return false;
        bool always = false;
        struct sx_expression *expression = convert_filter(s, sx_json_member(entry, "value"), column, &always);
        if (!always && !sx_conjuncts_add(&s->c->b, &conjuncts, expression))
            return false;
    }
    s->plan->filters = conjuncts.items;
    s->plan->n_filters = conjuncts.count;
    return true;
}

/* ---- output ---- */

/* Position in column_indexes of output `i`. */
static int32_t output_position(struct scan *s, int32_t i) {
    struct json_object *ids = sx_json_member(s->json, "projection_ids");
    if (sx_json_length(ids) == 0)
        return i;
    int64_t position = json_object_get_int64(sx_json_item(ids, i));
    return position >= 0 && position < SX_PLAN_MAX_COLUMNS ? (int32_t)position : -1;
}

/* outputs[i]: place among the scan's columns, -1 for the column that has no contents. */
static bool convert_outputs(struct scan *s, int32_t *outputs, int32_t n_outputs, int32_t *out_empty) {
    for (int32_t i = 0; i < n_outputs; i++) {
        uint64_t id = 0;
        if (!column_id(s, output_position(s, i), &id))
            return false;
        if (id == COLUMN_EMPTY) {
            outputs[i] = -1;
            (*out_empty)++;
        } else {
            outputs[i] = scan_column(s, id);
            if (outputs[i] < 0)
                return false;
        }
    }
    return true;
}

static struct sx_plan *finish_scan(struct scan *s, struct sx_plan *plan, const int32_t *outputs,
                                   int32_t n_outputs, int32_t n_empty) {
    struct sx_builder *b = &s->c->b;
    int32_t *projection = SX_ARENA_ARRAY(b->arena, n_outputs, int32_t);
    struct sx_expression **expressions = SX_ARENA_ARRAY(b->arena, n_outputs, struct sx_expression *);
    struct sx_column_info *columns = SX_ARENA_ARRAY(b->arena, n_outputs, struct sx_column_info);
    if (!projection || !expressions || !columns)
        return sx_build_no_memory(b);
    int32_t n = 0;
    for (int32_t i = 0; i < n_outputs; i++) {
        if (outputs[i] < 0) {
            expressions[i] = sx_build_null(b, sx_type_of(SX_TYPE_BOOL));
            continue;
        }
        columns[n] = (struct sx_column_info){s->columns[outputs[i]].source, s->columns[outputs[i]].type};
        expressions[i] = sx_build_column(b, n, columns[n].type);
        projection[n++] = outputs[i];
    }
    s->plan->columns = s->columns;
    s->plan->n_columns = s->n_columns;
    s->plan->projection = projection;
    s->plan->n_projection = n;
    plan->columns = columns;
    plan->n_columns = n;
    return n_empty ? sx_build_project(b, plan, expressions, n_outputs, NULL) : plan;
}

static bool is_read_parquet(const char *name) {
    return strcmp(name, "read_parquet") == 0 || strcmp(name, "parquet_scan") == 0;
}

struct sx_plan *sx_convert_get(struct sx_convert *c, struct json_object *json) {
    struct sx_builder *b = &c->b;
    const char *function = sx_json_text(json, "name");
    if (!is_read_parquet(function))
        return sx_build_unsupported(b, "table function %s", function);
    if (sx_json_length(sx_json_member(json, "children")) > 0)
        return sx_build_unsupported(b, "table function %s over a table", function);
    if (sx_json_member(sx_json_member(json, "extra_info"), "sample_options"))
        return sx_build_unsupported(b, "operator SAMPLE");
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_SCAN, 0, 0);
    const int32_t n_indexes = sx_json_length(sx_json_member(json, "column_indexes"));
    const int32_t n_ids = sx_json_length(sx_json_member(json, "projection_ids"));
    const int32_t n_filters =
        sx_json_length(sx_json_member(sx_json_member(json, "table_filters"), "filters"));
    const int32_t n_outputs = n_ids ? n_ids : n_indexes;
    if (!plan)
        return NULL;
    struct scan s = {.c = c, .json = json, .plan = &plan->u.scan};
    s.columns = SX_ARENA_ARRAY(b->arena, n_outputs + n_filters, struct sx_scan_column);
    s.ids = SX_ARENA_ARRAY(b->arena, n_outputs + n_filters, uint64_t);
    int32_t *outputs = SX_ARENA_ARRAY(b->arena, n_outputs, int32_t);
    int32_t n_empty = 0;
    if (!s.columns || !s.ids || !outputs)
        return sx_build_no_memory(b);
    if (!convert_files(&s) || !check_options(&s) || !convert_outputs(&s, outputs, n_outputs, &n_empty) ||
        !convert_filters(&s))
        return NULL;
    return finish_scan(&s, plan, outputs, n_outputs, n_empty);
}
