/* DuckDB's logical operators as JSON -> the logical plan. */
#include "plan/duckdb_convert.h"

#include <string.h>

struct sx_plan *sx_convert_child(struct sx_convert *c, struct json_object *json, int32_t index) {
    struct json_object *child = sx_json_item(sx_json_member(json, "children"), index);
    if (!child)
        return sx_build_malformed(&c->b, "%s without child %d", sx_json_text(json, "type"), index);
    return sx_convert_operator(c, child);
}

/* Reads an array of column numbers below `limit`; an empty one stands for all columns. */
static int32_t *convert_map(struct sx_convert *c, struct json_object *map, int32_t limit, int32_t *out_n) {
    const int32_t n = sx_json_length(map);
    *out_n = n ? n : limit;
    int32_t *columns = sx_build_identity(&c->b, *out_n);
    for (int32_t i = 0; columns && i < n; i++) {
        int64_t column = json_object_get_int64(sx_json_item(map, i));
        if (column < 0 || column >= limit)
            return sx_build_malformed(&c->b, "a projection map with column %lld of %d", (long long)column,
                                      limit);
        columns[i] = (int32_t)column;
    }
    return columns;
}

static bool copy_columns(struct sx_convert *c, struct sx_plan *plan, const struct sx_plan *child,
                         const int32_t *projection, int32_t n) {
    struct sx_column_info *columns = SX_ARENA_ARRAY(c->b.arena, n, struct sx_column_info);
    if (!columns)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < n; i++)
        columns[i] = child->columns[projection[i]];
    plan->columns = columns;
    plan->n_columns = n;
    return true;
}

static struct sx_plan *convert_projection(struct sx_convert *c, struct json_object *json) {
    struct json_object *items = sx_json_member(json, "expressions");
    const int32_t n = sx_json_length(items);
    struct sx_plan *child = sx_convert_child(c, json, 0);
    struct sx_expression **expressions = SX_ARENA_ARRAY(c->b.arena, n, struct sx_expression *);
    const char **names = SX_ARENA_ARRAY(c->b.arena, n, const char *);
    if (!child)
        return NULL;
    if (!expressions || !names)
        return sx_build_no_memory(&c->b);
    const struct sx_scope scope = sx_scope_of(child);
    for (int32_t i = 0; i < n; i++) {
        struct json_object *item = sx_json_item(items, i);
        const char *alias = sx_json_text(item, "alias");
        expressions[i] = sx_convert_expression(c, item, &scope);
        if (!expressions[i])
            return NULL;
        if (*alias && expressions[i]->kind != SX_EXPR_COLUMN)
            names[i] = sx_arena_copy_text(c->b.arena, alias, strlen(alias));
    }
    for (int32_t i = 0; i < n; i++)
        sx_convert_note_text(c, expressions[i]);
    return sx_build_project(&c->b, child, expressions, n, names);
}

static struct sx_plan *convert_filter(struct sx_convert *c, struct json_object *json) {
    struct json_object *items = sx_json_member(json, "expressions");
    struct sx_plan *child = sx_convert_child(c, json, 0);
    struct sx_conjuncts conjuncts = {0};
    if (!child)
        return NULL;
    const struct sx_scope scope = sx_scope_of(child);
    for (int32_t i = 0; i < sx_json_length(items); i++) {
        struct sx_expression *expression = sx_convert_expression(c, sx_json_item(items, i), &scope);
        if (expression && expression->type.id == SX_TYPE_NULLTYPE)
            expression = sx_build_null(&c->b, sx_type_of(SX_TYPE_BOOL));
        if (expression && expression->type.id != SX_TYPE_BOOL)
            return sx_build_malformed(&c->b, "a filter that is not BOOLEAN");
        if (!sx_conjuncts_add(&c->b, &conjuncts, expression))
            return NULL;
    }
    struct sx_plan *plan = sx_build_filter(&c->b, child, &conjuncts);
    struct json_object *map = sx_json_member(json, "projection_map");
    int32_t n;
    if (!plan || sx_json_length(map) == 0)
        return plan;
    int32_t *columns = convert_map(c, map, child->n_columns, &n);
    return columns ? sx_build_pick(&c->b, plan, columns, n) : NULL;
}

/* ---- order and limit ---- */

static bool convert_orders(struct sx_convert *c, struct json_object *json, struct sx_plan *plan,
                           struct json_object *projections) {
    struct json_object *items = sx_json_member(json, "orders");
    const struct sx_plan *child = plan->children[0];
    const struct sx_scope scope = sx_scope_of(child);
    struct sx_sort_plan *sort = &plan->u.sort;
    struct sx_order *orders = SX_ARENA_ARRAY(c->b.arena, sx_json_length(items), struct sx_order);
    if (!orders)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < sx_json_length(items); i++)
        if (!sx_convert_order(c, sx_json_item(items, i), &scope, &orders[i]))
            return false;
    sort->orders = orders;
    sort->n_orders = sx_json_length(items);
    sort->projection = convert_map(c, projections, child->n_columns, &sort->n_projection);
    return sort->projection && copy_columns(c, plan, child, sort->projection, sort->n_projection);
}

static struct sx_plan *unary_plan(struct sx_convert *c, struct json_object *json, enum sx_plan_kind kind) {
    struct sx_plan *child = sx_convert_child(c, json, 0);
    struct sx_plan *plan = child ? sx_build_plan(&c->b, kind, 1, 0) : NULL;
    if (!plan)
        return NULL;
    plan->children[0] = child;
    plan->columns = child->columns;
    plan->n_columns = child->n_columns;
    return plan;
}

static struct sx_plan *convert_sort(struct sx_convert *c, struct json_object *json) {
    struct sx_plan *plan = unary_plan(c, json, SX_PLAN_SORT);
    return plan && convert_orders(c, json, plan, sx_json_member(json, "projections")) ? plan : NULL;
}

static struct sx_plan *convert_top_n(struct sx_convert *c, struct json_object *json) {
    struct sx_plan *plan = unary_plan(c, json, SX_PLAN_TOP_N);
    if (!plan || !convert_orders(c, json, plan, NULL))
        return NULL;
    plan->u.top_n.limit.limit = sx_json_integer(json, "limit", -1);
    plan->u.top_n.limit.offset = sx_json_integer(json, "offset", 0);
    if (plan->u.top_n.limit.limit < 0 || plan->u.top_n.limit.offset < 0)
        return sx_build_malformed(&c->b, "TOP_N without its limit");
    return plan;
}

static bool convert_limit_value(struct sx_convert *c, struct json_object *value, int64_t unset,
                                int64_t *out_value) {
    const char *type = sx_json_text(value, "type");
    *out_value = unset;
    if (strcmp(type, "UNSET") == 0)
        return true;
    if (strcmp(type, "CONSTANT_VALUE") != 0)
        return sx_build_unsupported(&c->b, "LIMIT by %s", type);
    *out_value = sx_json_integer(value, "constant_integer", -1);
    return *out_value >= 0 || sx_build_malformed(&c->b, "a negative LIMIT");
}

static struct sx_plan *convert_limit(struct sx_convert *c, struct json_object *json) {
    struct sx_plan *plan = unary_plan(c, json, SX_PLAN_LIMIT);
    if (!plan || !convert_limit_value(c, sx_json_member(json, "limit_val"), -1, &plan->u.limit.limit) ||
        !convert_limit_value(c, sx_json_member(json, "offset_val"), 0, &plan->u.limit.offset))
        return NULL;
    return plan;
}

/* ---- sets ---- */

static struct sx_plan *convert_distinct(struct sx_convert *c, struct json_object *json) {
    if (strcmp(sx_json_text(json, "distinct_type"), "DISTINCT") != 0)
        return sx_build_unsupported(&c->b, "DISTINCT ON");
    struct sx_plan *child = sx_convert_child(c, json, 0);
    return sx_build_distinct(&c->b, child);
}

static struct sx_plan **convert_children(struct sx_convert *c, struct json_object *json, int32_t *out_n) {
    const int32_t n = sx_json_length(sx_json_member(json, "children"));
    struct sx_plan **children = SX_ARENA_ARRAY(c->b.arena, n, struct sx_plan *);
    if (!children)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < n; i++) {
        children[i] = sx_convert_child(c, json, i);
        if (!children[i])
            return NULL;
        if (children[i]->n_columns != children[0]->n_columns)
            return sx_build_malformed(&c->b, "a set operation over tables of unequal width");
    }
    *out_n = n;
    return children;
}

static struct sx_plan *convert_union(struct sx_convert *c, struct json_object *json) {
    int32_t n = 0;
    struct sx_plan **children = convert_children(c, json, &n);
    if (!children)
        return NULL;
    if (n == 0)
        return sx_build_malformed(&c->b, "UNION of nothing");
    struct sx_plan *plan = n == 1 ? children[0] : sx_build_union(&c->b, children, n);
    return sx_json_bool(json, "setop_all") ? plan : sx_build_distinct(&c->b, plan);
}

static struct sx_plan *convert_set(struct sx_convert *c, struct json_object *json, bool except) {
    struct sx_builder *b = &c->b;
    int32_t n = 0;
    struct sx_plan **children = convert_children(c, json, &n);
    if (!children)
        return NULL;
    if (n != 2)
        return sx_build_malformed(b, "a set operation over %d tables", n);
    const int32_t n_columns = children[0]->n_columns;
    if (sx_json_bool(json, "setop_all")) {
        struct sx_plan *plan = sx_build_plan(b, SX_PLAN_SET_ALL, 2, n_columns);
        if (!plan)
            return NULL;
        memcpy(plan->children, children, 2 * sizeof *children);
        plan->columns = children[0]->columns;
        plan->u.set_all.except = except;
        return plan;
    }
    struct sx_join_key *keys = SX_ARENA_ARRAY(b->arena, n_columns, struct sx_join_key);
    if (!keys)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n_columns; i++) {
        keys[i] =
            (struct sx_join_key){sx_build_input(b, children[0], i), sx_build_input(b, children[1], i), true};
        if (!keys[i].probe || !keys[i].build)
            return NULL;
    }
    struct sx_plan *join = sx_build_join(b, except ? SX_JOIN_ANTI : SX_JOIN_SEMI, children[0], children[1],
                                         keys, n_columns, &(struct sx_conjuncts){0});
    return sx_build_distinct(b, join);
}

/* ---- materialised results ---- */

/* Puts `plan`, which may itself be what a definition is read by, in the place where one is read. */
static void put_in_place(struct sx_convert *c, struct sx_plan *place, const struct sx_plan *plan) {
    struct sx_definition *const scopes[] = {c->ctes, c->delim};
    *place = *plan;
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        for (struct sx_definition *definition = scopes[i]; definition; definition = definition->outer)
            if (definition->last_use == plan)
                definition->last_use = place;
}

static struct sx_plan *convert_materialized_cte(struct sx_convert *c, struct json_object *json) {
    struct sx_plan *plan = sx_convert_child(c, json, 0);
    if (!plan)
        return NULL;
    struct sx_definition definition = {.outer = c->ctes,
                                       .duckdb_index = sx_json_integer(json, "table_index", -1),
                                       .id = c->b.n_materialized++,
                                       .plan = plan};
    struct sx_definition *outer = c->ctes;
    c->ctes = &definition;
    struct sx_plan *body = sx_convert_child(c, json, 1);
    c->ctes = outer;
    if (!body || definition.uses == 0)
        return body;
    if (definition.uses == 1) {
        put_in_place(c, definition.last_use, plan); /* computed where it is read */
        return body;
    }
    return sx_build_materialize(&c->b, definition.id, plan, body);
}

static struct sx_plan *use_definition(struct sx_convert *c, struct sx_definition *definition,
                                      struct json_object *types) {
    if (sx_json_length(types) != definition->plan->n_columns)
        return sx_build_malformed(&c->b, "a reference to a materialised table of another width");
    definition->uses++;
    definition->last_use = sx_build_reference(&c->b, definition->id, definition->plan);
    return definition->last_use;
}

static struct sx_plan *convert_cte_ref(struct sx_convert *c, struct json_object *json) {
    const int64_t index = sx_json_integer(json, "cte_index", -1);
    for (struct sx_definition *d = c->ctes; d; d = (struct sx_definition *)(uintptr_t)d->outer)
        if (d->duckdb_index == index && index >= 0)
            return use_definition(c, d, sx_json_member(json, "chunk_types"));
    return sx_build_unsupported(&c->b, "operator CTE_REF to a recursive table");
}

static struct sx_plan *convert_delim_get(struct sx_convert *c, struct json_object *json) {
    if (!c->delim)
        return sx_build_malformed(&c->b, "DELIM_GET outside of a DELIM_JOIN");
    return use_definition(c, c->delim, sx_json_member(json, "chunk_types"));
}

static struct sx_plan *convert_dummy_scan(struct sx_convert *c, struct json_object *json) {
    (void)json;
    return sx_convert_one_row(c);
}

static struct sx_plan *convert_except(struct sx_convert *c, struct json_object *json) {
    return convert_set(c, json, true);
}

static struct sx_plan *convert_intersect(struct sx_convert *c, struct json_object *json) {
    return convert_set(c, json, false);
}

static const struct {
    const char *name;
    struct sx_plan *(*convert)(struct sx_convert *c, struct json_object *json);
} operators[] = {
    {"PROJECTION", convert_projection},
    {"GET", sx_convert_get},
    {"COMPARISON_JOIN", sx_convert_comparison_join},
    {"AGGREGATE_AND_GROUP_BY", sx_convert_aggregate},
    {"FILTER", convert_filter},
    {"ORDER_BY", convert_sort},
    {"DELIM_JOIN", sx_convert_delim_join},
    {"DELIM_GET", convert_delim_get},
    {"TOP_N", convert_top_n},
    {"CTE_REF", convert_cte_ref},
    {"MATERIALIZED_CTE", convert_materialized_cte},
    {"CHUNK_GET", sx_convert_chunk_get},
    {"EMPTY_RESULT", sx_convert_empty_result},
    {"DUMMY_SCAN", convert_dummy_scan},
    {"EXPRESSION_GET", sx_convert_expression_get},
    {"ANY_JOIN", sx_convert_any_join},
    {"CROSS_PRODUCT", sx_convert_cross_product},
    {"UNION", convert_union},
    {"EXCEPT", convert_except},
    {"INTERSECT", convert_intersect},
    {"DISTINCT", convert_distinct},
    {"LIMIT", convert_limit},
};

static struct sx_plan *convert_named(struct sx_convert *c, struct json_object *json) {
    static const char prefix[] = "LOGICAL_";
    const char *name = sx_json_text(json, "type");
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(name, operators[i].name) == 0)
            return operators[i].convert(c, json);
    if (!*name)
        return sx_build_malformed(&c->b, "an operator without its type");
    return sx_build_unsupported(&c->b, "operator %s", name);
}

struct sx_plan *sx_convert_operator(struct sx_convert *c, struct json_object *json) {
    if (!sx_build_enter(&c->b))
        return NULL;
    struct sx_plan *plan = convert_named(c, json);
    sx_build_leave(&c->b);
    return plan;
}

/* ---- the whole plan ---- */

enum { JSON_DEPTH = 4 * SX_PLAN_MAX_DEPTH };

static struct json_object *parse(const char *json, size_t length_bytes, struct sx_error *error) {
    struct json_tokener *tokener = length_bytes <= INT32_MAX ? json_tokener_new_ex(JSON_DEPTH) : NULL;
    if (!tokener) {
        (void)sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the plan");
        return NULL;
    }
    struct json_object *root = json_tokener_parse_ex(tokener, json, (int)length_bytes);
    if (!root)
        (void)sx_error_set(error, SX_UNSUPPORTED, "DuckDB's plan can't be read: %s",
                           json_tokener_error_desc(json_tokener_get_error(tokener)));
    json_tokener_free(tokener);
    return root;
}

static struct sx_plan *set_names(struct sx_convert *c, struct sx_plan *root, const char *const *names,
                                 int32_t n_names) {
    if (!names)
        return root;
    if (root->n_columns != n_names)
        return sx_build_malformed(&c->b, "%d columns where the answer has %d", root->n_columns, n_names);
    struct sx_column_info *columns = SX_ARENA_ARRAY(c->b.arena, n_names, struct sx_column_info);
    if (!columns)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < n_names; i++) {
        columns[i].type = root->columns[i].type;
        columns[i].name = sx_arena_copy_text(c->b.arena, names[i], strlen(names[i]));
        if (!columns[i].name)
            return sx_build_no_memory(&c->b);
    }
    root->columns = columns;
    return root;
}

static struct sx_plan *convert_root(struct sx_convert *c, struct json_object *json, const char *const *names,
                                    int32_t n_names) {
    struct json_object *plans = sx_json_member(json, "plans");
    if (sx_json_length(plans) != 1)
        return sx_build_malformed(&c->b, "%d plans for one statement", sx_json_length(plans));
    struct sx_plan *root = sx_convert_operator(c, sx_json_item(plans, 0));
    root = root ? sx_plan_simplify(&c->b, root) : NULL;
    root = root ? sx_plan_share(&c->b, root) : NULL;
    root = root ? sx_plan_prune(&c->b, root) : NULL;
    return root ? set_names(c, root, names, n_names) : NULL;
}

enum sx_status sx_duckdb_convert(const char *json, size_t length_bytes, const struct sx_table_files *tables,
                                 int32_t n_tables, const char *const *names, int32_t n_names,
                                 struct sx_query_plan *out_plan, struct sx_error *error) {
    struct sx_query_plan query = {0};
    struct sx_error local = {0};
    struct json_object *root = parse(json, length_bytes, &local);
    if (!root)
        return sx_error_set(error, local.status, "%s", local.text);
    struct sx_convert convert = {
        .b = {.arena = &query.arena, .error = &local}, .tables = tables, .n_tables = n_tables};
    query.root = convert_root(&convert, root, names, n_names);
    query.n_materialized = convert.b.n_materialized;
    query.names_files = convert.names_files;
    json_object_put(root);
    enum sx_status status = query.root ? SX_OK : local.status;
    if (!query.root && status == SX_OK)
        status = sx_error_set(&local, SX_INTERNAL, "the plan was not converted");
    if (status == SX_OK)
        status = sx_plan_check(&query, &local);
    if (status != SX_OK) {
        sx_query_plan_release(&query);
        return sx_error_set(error, status, "%s", local.text);
    }
    *out_plan = query;
    return SX_OK;
}
