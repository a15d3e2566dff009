/* DuckDB's joins. */
#include <string.h>

#include "plan/duckdb_convert.h"
#include "plan/undelim.h"

struct join {
    struct sx_convert *c;
    enum sx_join_kind kind;
    struct sx_plan *probe;
    struct sx_plan *build;
    struct sx_join_key *keys; /* with room for all conditions */
    int32_t n_keys;
    struct sx_conjuncts residual; /* over probe's, then build's columns */
    int32_t n_mark_types;
};

static bool convert_kind(struct sx_convert *c, struct json_object *json, enum sx_join_kind *out_kind) {
    static const char *const names[] = {
#define SX_JOIN_NAME(name, text) text,
        SX_JOIN_LIST(SX_JOIN_NAME)
#undef SX_JOIN_NAME
    };
    const char *name = sx_json_text(json, "join_type");
    if (strcmp(name, "OUTER") == 0)
        name = "FULL";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *out_kind = (enum sx_join_kind)i;
            return true;
        }
    return sx_build_unsupported(&c->b, "join %s", name);
}

/* ---- keys and residual conditions ---- */

static struct sx_expression *of_build(struct join *join, const struct sx_expression *expression) {
    int32_t *map = SX_ARENA_ARRAY(join->c->b.arena, join->build->n_columns, int32_t);
    if (!map)
        return sx_build_no_memory(&join->c->b);
    for (int32_t i = 0; i < join->build->n_columns; i++)
        map[i] = join->probe->n_columns + i;
    return sx_build_remap(&join->c->b, expression, map);
}

static bool add_key(struct join *join, struct sx_expression *probe, struct sx_expression *build,
                    bool null_equal) {
    struct sx_expression *equal =
        sx_build_compare(&join->c->b, null_equal ? SX_FN_NOT_DISTINCT_FROM : SX_FN_EQ, probe, build);
    if (!equal)
        return false;
    join->keys[join->n_keys++] = (struct sx_join_key){equal->arguments[0], equal->arguments[1], null_equal};
    return true;
}

static bool convert_condition(struct join *join, struct json_object *json) {
    struct sx_builder *b = &join->c->b;
    const struct sx_scope probe_scope = sx_scope_of(join->probe), build_scope = sx_scope_of(join->build);
    const char *name = sx_json_text(json, "comparison");
    const enum sx_function function = sx_convert_comparison(name);
    if (function == SX_FN_COUNT)
        return sx_build_unsupported(b, "join condition %s", name);
    struct sx_expression *probe = sx_convert_expression(join->c, sx_json_member(json, "left"), &probe_scope);
    struct sx_expression *build =
        probe ? sx_convert_expression(join->c, sx_json_member(json, "right"), &build_scope) : NULL;
    if (!build)
        return false;
    if (function == SX_FN_EQ || function == SX_FN_NOT_DISTINCT_FROM)
        return add_key(join, probe, build, function == SX_FN_NOT_DISTINCT_FROM);
    build = of_build(join, build);
    return build && sx_conjuncts_add(b, &join->residual, sx_build_compare(b, function, probe, build));
}

static bool convert_conditions(struct join *join, struct json_object *json) {
    struct json_object *conditions = sx_json_member(json, "conditions");
    const int32_t n = sx_json_length(conditions);
    join->keys = SX_ARENA_ARRAY(join->c->b.arena, n, struct sx_join_key);
    if (!join->keys)
        return sx_build_no_memory(&join->c->b);
    if (sx_json_member(json, "predicate"))
        return sx_build_unsupported(&join->c->b, "a join with a predicate");
    for (int32_t i = 0; i < n; i++)
        if (!convert_condition(join, sx_json_item(conditions, i)))
            return false;
    join->n_mark_types = sx_json_length(sx_json_member(json, "mark_types"));
    return true;
}

/* ---- MARK ---- */

/* Null-equal keys in front, in place; gives their number. */
static int32_t null_equal_first(struct join *join) {
    int32_t n = 0;
    for (int32_t i = 0; i < join->n_keys; i++) {
        if (!join->keys[i].null_equal)
            continue;
        struct sx_join_key key = join->keys[i];
        memmove(&join->keys[n + 1], &join->keys[n], (size_t)(i - n) * sizeof key);
        join->keys[n++] = key;
    }
    return n;
}

static struct sx_plan *plain_join(struct join *join) {
    return sx_build_join(&join->c->b, join->kind, join->probe, join->build, join->keys, join->n_keys,
                         &join->residual);
}

/* The conditions that may be NULL, as one expression over probe's, then build's columns. */
static struct sx_expression *unsure_condition(struct join *join, int32_t first_key) {
    struct sx_builder *b = &join->c->b;
    struct sx_conjuncts all = {0};
    for (int32_t i = first_key; i < join->n_keys; i++) {
        struct sx_expression *build = of_build(join, join->keys[i].build);
        if (!build || !sx_conjuncts_add(b, &all, sx_build_compare(b, SX_FN_EQ, join->keys[i].probe, build)))
            return NULL;
    }
    for (int32_t i = 0; i < join->residual.count; i++)
        if (!sx_conjuncts_add(b, &all, join->residual.items[i]))
            return NULL;
    if (all.count == 1)
        return all.items[0];
    return sx_build_call(b, SX_FN_AND, sx_type_of(SX_TYPE_BOOL), all.items, all.count);
}

/* x > ANY (…) and the like: one MARK join finds where the condition is true for a row, a second one where it
 * is NULL. Probe columns, then CASE WHEN first THEN true WHEN second THEN NULL ELSE false END. */
static struct sx_plan *two_mark_joins(struct join *join, int32_t n_sure) {
    struct sx_builder *b = &join->c->b;
    const struct sx_type bool_type = sx_type_of(SX_TYPE_BOOL);
    const int32_t n = join->probe->n_columns, id = b->n_materialized++;
    struct sx_expression *condition = unsure_condition(join, n_sure);
    struct sx_conjuncts is_true = {0}, is_null = {0};
    if (!condition || !sx_conjuncts_add(b, &is_true, condition))
        return NULL;
    struct sx_plan *first = sx_build_join(
        b, SX_JOIN_MARK, join->probe, sx_build_reference(b, id, join->build), join->keys, n_sure, &is_true);
    int32_t *map = sx_build_identity(b, n + join->build->n_columns);
    if (!first || !map)
        return NULL;
    for (int32_t i = 0; i < join->build->n_columns; i++)
        map[n + i] = n + 1 + i; /* the first mark stands between */
    struct sx_expression *moved = sx_build_remap(b, condition, map);
    if (!sx_conjuncts_add(b, &is_null, sx_build_unary(b, SX_FN_IS_NULL, bool_type, moved)))
        return NULL;
    struct sx_plan *second = sx_build_join(b, SX_JOIN_MARK, first, sx_build_reference(b, id, join->build),
                                           join->keys, n_sure, &is_null);
    struct sx_expression **outputs = SX_ARENA_ARRAY(b->arena, n + 1, struct sx_expression *);
    if (!second || !outputs)
        return NULL;
    for (int32_t i = 0; i < n; i++)
        outputs[i] = sx_build_input(b, second, i);
    struct sx_expression *branches[] = {
        sx_build_column(b, n, bool_type),     sx_build_integer(b, SX_TYPE_BOOL, 1),
        sx_build_column(b, n + 1, bool_type), sx_build_null(b, bool_type),
        sx_build_integer(b, SX_TYPE_BOOL, 0),
    };
    outputs[n] = sx_build_node(b, SX_EXPR_CASE, bool_type, branches, 5);
    return sx_build_materialize(b, id, join->build, sx_build_project(b, second, outputs, n + 1, NULL));
}

/* Like DuckDB, and unlike the standard, several keys that may be NULL make the mark NULL wherever no row
 * matches and some key of the probe's row, or of any build row, is NULL. */
static struct sx_plan *mark_join(struct join *join) {
    const int32_t n_sure = null_equal_first(join);
    const bool grouped = n_sure == join->n_mark_types && join->n_keys == n_sure + 1;
    if (join->residual.count > 0)
        return two_mark_joins(join, n_sure);
    struct sx_plan *plan = plain_join(join);
    if (plan && grouped)
        plan->u.join.n_mark_group = n_sure;
    return plan;
}

/* ---- the operators ---- */

/* Applies left_projection_map and right_projection_map (empty: all columns). */
static struct sx_plan *apply_maps(struct join *join, struct json_object *json, struct sx_plan *plan) {
    struct json_object *left = sx_json_member(json, "left_projection_map");
    struct json_object *right = sx_json_member(json, "right_projection_map");
    const int32_t n_left = sx_json_length(left), n_right = sx_json_length(right);
    if (!plan || (n_left == 0 && n_right == 0))
        return plan;
    const bool has_probe = join->kind != SX_JOIN_RIGHT_SEMI && join->kind != SX_JOIN_RIGHT_ANTI;
    const int32_t n_probe = has_probe ? join->probe->n_columns : 0, n_rest = plan->n_columns - n_probe;
    int32_t *columns = SX_ARENA_ARRAY(join->c->b.arena, n_left + n_right + plan->n_columns, int32_t);
    if (!columns)
        return sx_build_no_memory(&join->c->b);
    int32_t n = 0;
    for (int32_t i = 0; has_probe && i < (n_left ? n_left : n_probe); i++)
        columns[n++] = n_left ? json_object_get_int(sx_json_item(left, i)) : i;
    for (int32_t i = 0; i < (n_right ? n_right : n_rest); i++)
        columns[n++] = n_probe + (n_right ? json_object_get_int(sx_json_item(right, i)) : i);
    for (int32_t i = 0; i < n; i++)
        if (columns[i] < 0 || columns[i] >= plan->n_columns)
            return sx_build_malformed(&join->c->b, "a join's projection map");
    return sx_build_pick(&join->c->b, plan, columns, n);
}

static struct sx_plan *finish_join(struct join *join, struct json_object *json) {
    return apply_maps(join, json, join->kind == SX_JOIN_MARK ? mark_join(join) : plain_join(join));
}

struct sx_plan *sx_convert_comparison_join(struct sx_convert *c, struct json_object *json) {
    struct join join = {.c = c};
    if (!convert_kind(c, json, &join.kind))
        return NULL;
    join.probe = sx_convert_child(c, json, 0);
    join.build = join.probe ? sx_convert_child(c, json, 1) : NULL;
    if (!join.build || !convert_conditions(&join, json))
        return NULL;
    return finish_join(&join, json);
}

struct sx_plan *sx_convert_cross_product(struct sx_convert *c, struct json_object *json) {
    struct sx_plan *probe = sx_convert_child(c, json, 0);
    struct sx_plan *build = probe ? sx_convert_child(c, json, 1) : NULL;
    return sx_build_join(&c->b, SX_JOIN_INNER, probe, build, NULL, 0, &(struct sx_conjuncts){0});
}

/* An equality of one expression over each side becomes a key. */
static bool split_conjunct(struct join *join, struct sx_expression *conjunct) {
    struct sx_builder *b = &join->c->b;
    const int32_t n_probe = join->probe->n_columns, n_build = join->build->n_columns;
    const bool equal = conjunct->kind == SX_EXPR_CALL && conjunct->function == SX_FN_EQ;
    const bool same = conjunct->kind == SX_EXPR_CALL && conjunct->function == SX_FN_NOT_DISTINCT_FROM;
    if (join->kind == SX_JOIN_MARK || (!equal && !same))
        return sx_conjuncts_add(b, &join->residual, conjunct);
    struct sx_expression *left = conjunct->arguments[0], *right = conjunct->arguments[1];
    if (!sx_expression_within(left, 0, n_probe)) {
        left = conjunct->arguments[1];
        right = conjunct->arguments[0];
    }
    if (!sx_expression_within(left, 0, n_probe) || !sx_expression_within(right, n_probe, n_build))
        return sx_conjuncts_add(b, &join->residual, conjunct);
    int32_t *map = SX_ARENA_ARRAY(b->arena, n_probe + n_build, int32_t);
    if (!map)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n_build; i++)
        map[n_probe + i] = i;
    right = sx_build_remap(b, right, map);
    return right && add_key(join, left, right, same);
}

struct sx_plan *sx_convert_any_join(struct sx_convert *c, struct json_object *json) {
    struct sx_builder *b = &c->b;
    struct join join = {.c = c};
    struct sx_conjuncts conjuncts = {0};
    if (!convert_kind(c, json, &join.kind))
        return NULL;
    join.probe = sx_convert_child(c, json, 0);
    join.build = join.probe ? sx_convert_child(c, json, 1) : NULL;
    if (!join.build)
        return NULL;
    const int32_t n_probe = join.probe->n_columns, n = n_probe + join.build->n_columns;
    struct sx_column_info *columns = SX_ARENA_ARRAY(b->arena, n, struct sx_column_info);
    if (!columns)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n; i++)
        columns[i] = i < n_probe ? join.probe->columns[i] : join.build->columns[i - n_probe];
    const struct sx_scope scope = {columns, n};
    struct sx_expression *condition = sx_convert_expression(c, sx_json_member(json, "condition"), &scope);
    if (!condition)
        return NULL;
    if (condition->type.id != SX_TYPE_BOOL)
        return sx_build_malformed(b, "a join condition that is not BOOLEAN");
    if (!sx_conjuncts_add(b, &conjuncts, condition))
        return NULL;
    join.keys = SX_ARENA_ARRAY(b->arena, conjuncts.count, struct sx_join_key);
    if (!join.keys)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < conjuncts.count; i++)
        if (!split_conjunct(&join, conjuncts.items[i]))
            return NULL;
    return apply_maps(&join, json, plain_join(&join));
}

/* ---- duplicate-eliminated joins ---- */

/* The distinct values of the delim columns, read from the materialised side. */
static struct sx_plan *distinct_columns(struct sx_convert *c, struct json_object *json,
                                        struct sx_plan *input) {
    struct json_object *columns = sx_json_member(json, "duplicate_eliminated_columns");
    const int32_t n = sx_json_length(columns);
    const struct sx_scope scope = sx_scope_of(input);
    struct sx_expression **keys = SX_ARENA_ARRAY(c->b.arena, n, struct sx_expression *);
    if (!keys)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < n; i++) {
        keys[i] = sx_convert_expression(c, sx_json_item(columns, i), &scope);
        if (!keys[i])
            return NULL;
    }
    return sx_build_aggregate(&c->b, input, keys, n, NULL, 0);
}

/* NULL where distinct values are needed, or after an error. */
static struct sx_plan *without_distinct(struct join *join, struct json_object *json, bool flipped,
                                        struct sx_plan *side, struct sx_plan *distinct,
                                        const struct sx_definition *definition) {
    struct sx_builder *b = &join->c->b;
    const bool maps = sx_json_length(sx_json_member(json, "left_projection_map")) ||
                      sx_json_length(sx_json_member(json, "right_projection_map"));
    struct sx_undelim_key *keys = SX_ARENA_ARRAY(b->arena, join->n_keys, struct sx_undelim_key);
    if (!keys)
        return sx_build_no_memory(b);
    if (definition->uses != 1 || join->residual.count > 0 || maps)
        return NULL;
    for (int32_t i = 0; i < join->n_keys; i++) {
        const struct sx_join_key *key = &join->keys[i];
        keys[i] = (struct sx_undelim_key){flipped ? key->build : key->probe,
                                          flipped ? key->probe : key->build, key->null_equal};
    }
    return sx_plan_undelim(b, &(struct sx_undelim){.kind = join->kind,
                                                   .side = side,
                                                   .distinct = distinct,
                                                   .other = flipped ? join->probe : join->build,
                                                   .reference = definition->last_use,
                                                   .keys = keys,
                                                   .n_keys = join->n_keys});
}

struct sx_plan *sx_convert_delim_join(struct sx_convert *c, struct json_object *json) {
    struct sx_builder *b = &c->b;
    const bool flipped = sx_json_bool(json, "delim_flipped");
    struct join join = {.c = c};
    if (!convert_kind(c, json, &join.kind))
        return NULL;
    struct sx_plan *side = sx_convert_child(c, json, flipped ? 1 : 0);
    const int32_t side_id = b->n_materialized++, delim_id = b->n_materialized++;
    struct sx_plan *reference = sx_build_reference(b, side_id, side);
    struct sx_plan *distinct = reference ? distinct_columns(c, json, reference) : NULL;
    if (!distinct)
        return NULL;
    struct sx_definition definition = {
        .outer = c->delim, .duckdb_index = -1, .id = delim_id, .plan = distinct};
    c->delim = &definition;
    struct sx_plan *other = sx_convert_child(c, json, flipped ? 0 : 1);
    c->delim = definition.outer;
    struct sx_plan *read = definition.uses ? sx_build_reference(b, side_id, side) : side;
    join.probe = flipped ? other : read;
    join.build = flipped ? read : other;
    if (!join.probe || !join.build || !convert_conditions(&join, json))
        return NULL;
    struct sx_plan *plan = without_distinct(&join, json, flipped, side, distinct, &definition);
    if (plan || b->error->status != SX_OK)
        return plan;
    plan = finish_join(&join, json);
    if (!definition.uses)
        return plan;
    if (definition.uses > 1)
        plan = sx_build_materialize(b, delim_id, distinct, plan);
    else /* its one reader has them straight away */
        *definition.last_use = *distinct;
    return sx_build_materialize(b, side_id, side, plan);
}
