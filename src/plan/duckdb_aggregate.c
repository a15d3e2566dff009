/* LOGICAL_AGGREGATE_AND_GROUP_BY. */
#include <string.h>

#include "plan/duckdb_convert.h"

struct aggregate {
    struct sx_expression **keys;
    int32_t n_keys;
    struct sx_aggregate_call *calls; /* without duplicates */
    int32_t n_calls;
    int32_t *call_of; /* for each of DuckDB's aggregates: which call */
    int32_t n_aggregates;
};

static const struct {
    const char *name;
    enum sx_aggregate_function function;
} calls[] = {
    {"count_star", SX_CALL_COUNT_STAR},
    {"count", SX_CALL_COUNT},
    {"sum", SX_CALL_SUM},
    {"sum_no_overflow", SX_CALL_SUM},
    {"avg", SX_CALL_AVG},
    {"mean", SX_CALL_AVG},
    {"min", SX_CALL_MIN},
    {"max", SX_CALL_MAX},
    {"bool_and", SX_CALL_MIN},
    {"bool_or", SX_CALL_MAX},
    {"first", SX_CALL_FIRST},
    {"arbitrary", SX_CALL_FIRST},
    {"any_value", SX_CALL_ANY_VALUE},
};

static bool is_signed_integer(struct sx_type type) {
    return type.id >= SX_TYPE_I8 && type.id <= SX_TYPE_I128;
}

/* Does the engine compute this call with these types? */
static bool call_fits(const struct sx_aggregate_call *call) {
    if (call->function == SX_CALL_COUNT_STAR)
        return call->type.id == SX_TYPE_I64 && !call->distinct;
    const struct sx_type argument = call->argument->type, type = call->type;
    if (argument.id == SX_TYPE_INTERVAL)
        return call->function == SX_CALL_COUNT && !call->distinct;
    switch (call->function) {
    case SX_CALL_COUNT: return type.id == SX_TYPE_I64;
    case SX_CALL_SUM:
        if (argument.id == SX_TYPE_DECIMAL)
            return type.id == SX_TYPE_DECIMAL && type.scale == argument.scale &&
                   type.precision == SX_DECIMAL_MAX_DIGITS;
        return (is_signed_integer(argument) && type.id == SX_TYPE_I128) ||
               (argument.id == SX_TYPE_F64 && type.id == SX_TYPE_F64);
    case SX_CALL_AVG:
        return type.id == SX_TYPE_F64 &&
               (is_signed_integer(argument) || argument.id == SX_TYPE_DECIMAL || argument.id == SX_TYPE_F64);
    default: return sx_type_equal(argument, type);
    }
}

static bool find_function(const char *name, enum sx_aggregate_function *out_function) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(name, calls[i].name) == 0) {
            *out_function = calls[i].function;
            return true;
        }
    return false;
}

static bool convert_argument(struct sx_convert *c, struct json_object *json, const struct sx_scope *scope,
                             struct sx_aggregate_call *call) {
    struct json_object *children = sx_json_member(json, "children");
    const char *name = sx_json_text(json, "name");
    const int32_t wanted = call->function == SX_CALL_COUNT_STAR ? 0 : 1;
    if (sx_json_length(children) == 0 && call->function == SX_CALL_COUNT) {
        call->function = SX_CALL_COUNT_STAR;
        return true;
    }
    if (sx_json_length(children) != wanted)
        return sx_build_unsupported(&c->b, "aggregate %s with %d arguments", name, sx_json_length(children));
    if (wanted == 0)
        return true;
    call->argument = sx_convert_expression(c, sx_json_item(children, 0), scope);
    if (call->argument && call->function == SX_CALL_SUM && call->argument->type.id == SX_TYPE_BOOL)
        call->argument = sx_build_cast(&c->b, call->argument, sx_type_of(SX_TYPE_I32));
    return call->argument != NULL;
}

static bool convert_call(struct sx_convert *c, struct json_object *json, const struct sx_scope *scope,
                         struct sx_aggregate_call *out_call) {
    const char *name = sx_json_text(json, "name");
    struct json_object *filter = sx_json_member(json, "filter");
    struct json_object *order = sx_json_member(json, "order_bys");
    char type_name[SX_TYPE_NAME_BYTES];
    *out_call = (struct sx_aggregate_call){0};
    if (strcmp(sx_json_text(json, "expression_class"), "BOUND_AGGREGATE") != 0)
        return sx_build_malformed(&c->b, "an aggregation without an aggregate");
    if (!find_function(name, &out_call->function))
        return sx_build_unsupported(&c->b, "aggregate %s", name);
    if (sx_json_length(sx_json_member(order, "orders")) > 0)
        return sx_build_unsupported(&c->b, "aggregate %s with ORDER BY", name);
    if (!convert_argument(c, json, scope, out_call) ||
        !sx_convert_type(c, sx_json_member(json, "return_type"), name, &out_call->type))
        return false;
    if (filter) {
        out_call->filter = sx_convert_expression(c, filter, scope);
        if (!out_call->filter)
            return false;
        if (out_call->filter->type.id != SX_TYPE_BOOL)
            return sx_build_malformed(&c->b, "an aggregate's filter that is not BOOLEAN");
    }
    const bool matters = out_call->function == SX_CALL_COUNT || out_call->function == SX_CALL_SUM ||
                         out_call->function == SX_CALL_AVG;
    out_call->distinct = matters && strcmp(sx_json_text(json, "aggregate_type"), "DISTINCT") == 0;
    if (call_fits(out_call))
        return true;
    return sx_build_unsupported(&c->b, "aggregate %s(%s)", name,
                                out_call->argument ? sx_type_name(out_call->argument->type, type_name) : "*");
}

static bool same_optional(const struct sx_expression *a, const struct sx_expression *b) {
    return a == b || (a && b && sx_expression_equal(a, b));
}

static int32_t find_call(const struct aggregate *aggregate, const struct sx_aggregate_call *call) {
    for (int32_t i = 0; i < aggregate->n_calls; i++) {
        const struct sx_aggregate_call *other = &aggregate->calls[i];
        if (other->function == call->function && other->distinct == call->distinct &&
            sx_type_equal(other->type, call->type) && same_optional(other->argument, call->argument) &&
            same_optional(other->filter, call->filter))
            return i;
    }
    return aggregate->n_calls;
}

static bool convert_calls(struct sx_convert *c, struct json_object *json, const struct sx_scope *scope,
                          struct aggregate *aggregate) {
    struct json_object *groups = sx_json_member(json, "groups");
    struct json_object *expressions = sx_json_member(json, "expressions");
    aggregate->n_keys = sx_json_length(groups);
    aggregate->n_aggregates = sx_json_length(expressions);
    aggregate->keys = SX_ARENA_ARRAY(c->b.arena, aggregate->n_keys, struct sx_expression *);
    aggregate->calls = SX_ARENA_ARRAY(c->b.arena, aggregate->n_aggregates, struct sx_aggregate_call);
    aggregate->call_of = SX_ARENA_ARRAY(c->b.arena, aggregate->n_aggregates, int32_t);
    if (!aggregate->keys || !aggregate->calls || !aggregate->call_of)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < aggregate->n_keys; i++) {
        aggregate->keys[i] = sx_convert_expression(c, sx_json_item(groups, i), scope);
        if (!aggregate->keys[i])
            return false;
    }
    for (int32_t i = 0; i < aggregate->n_aggregates; i++) {
        struct sx_aggregate_call call;
        if (!convert_call(c, sx_json_item(expressions, i), scope, &call))
            return false;
        int32_t place = find_call(aggregate, &call);
        if (place == aggregate->n_calls)
            aggregate->calls[aggregate->n_calls++] = call;
        aggregate->call_of[i] = place;
    }
    for (int32_t i = 0; i < aggregate->n_keys; i++)
        sx_convert_note_text(c, aggregate->keys[i]);
    return true;
}

/* ---- grouping sets ---- */

static bool read_set(struct sx_convert *c, struct json_object *set, int32_t n_keys, bool *out_members) {
    memset(out_members, 0, (size_t)n_keys);
    for (int32_t i = 0; i < sx_json_length(set); i++) {
        int64_t key = json_object_get_int64(sx_json_item(set, i));
        if (key < 0 || key >= n_keys)
            return sx_build_malformed(&c->b, "a grouping set with key %lld of %d", (long long)key, n_keys);
        out_members[key] = true;
    }
    return true;
}

static bool is_whole_set(struct json_object *sets, int32_t n_keys) {
    return sx_json_length(sets) == 0 ||
           (sx_json_length(sets) == 1 && sx_json_length(sx_json_item(sets, 0)) == n_keys);
}

/* GROUPING(keys): one bit for each key, the first the highest, set where the key is not grouped by. */
static struct sx_expression *grouping_value(struct sx_convert *c, struct json_object *keys, int32_t n_keys,
                                            const bool *members) {
    int64_t bits = 0;
    for (int32_t i = 0; i < sx_json_length(keys); i++) {
        int64_t key = json_object_get_int64(sx_json_item(keys, i));
        if (key < 0 || key >= n_keys)
            return sx_build_malformed(&c->b, "GROUPING of key %lld of %d", (long long)key, n_keys);
        bits = bits << 1 | (members[key] ? 0 : 1);
    }
    return sx_build_integer(&c->b, SX_TYPE_I64, bits);
}

/* One grouping set over `input`, in DuckDB's layout: all keys (NULL where not grouped by), aggregates,
 * GROUPING values. */
static struct sx_plan *convert_set(struct sx_convert *c, struct json_object *json,
                                   const struct aggregate *aggregate, struct sx_plan *input,
                                   const bool *members) {
    struct sx_builder *b = &c->b;
    struct json_object *functions = sx_json_member(json, "grouping_functions");
    const int32_t n_functions = sx_json_length(functions);
    const int32_t n_outputs = aggregate->n_keys + aggregate->n_aggregates + n_functions;
    struct sx_expression **keys = SX_ARENA_ARRAY(b->arena, aggregate->n_keys, struct sx_expression *);
    struct sx_expression **outputs = SX_ARENA_ARRAY(b->arena, n_outputs, struct sx_expression *);
    if (!keys || !outputs)
        return sx_build_no_memory(b);
    int32_t n_keys = 0, n = 0;
    for (int32_t i = 0; i < aggregate->n_keys; i++) {
        const struct sx_type type = aggregate->keys[i]->type;
        outputs[n++] = members[i] ? sx_build_column(b, n_keys, type) : sx_build_null(b, type);
        if (members[i])
            keys[n_keys++] = aggregate->keys[i];
    }
    struct sx_plan *plan = sx_build_aggregate(b, input, keys, n_keys, aggregate->calls, aggregate->n_calls);
    if (!plan)
        return NULL;
    for (int32_t i = 0; i < aggregate->n_aggregates; i++)
        outputs[n++] = sx_build_input(b, plan, n_keys + aggregate->call_of[i]);
    for (int32_t i = 0; i < n_functions; i++)
        outputs[n++] = grouping_value(c, sx_json_item(functions, i), aggregate->n_keys, members);
    return sx_build_project(b, plan, outputs, n_outputs, NULL);
}

static struct sx_plan *convert_sets(struct sx_convert *c, struct json_object *json,
                                    const struct aggregate *aggregate, struct sx_plan *child) {
    struct sx_builder *b = &c->b;
    struct json_object *sets = sx_json_member(json, "grouping_sets");
    const int32_t n_sets = sx_json_length(sets);
    struct sx_plan **parts = SX_ARENA_ARRAY(b->arena, n_sets, struct sx_plan *);
    bool *members = SX_ARENA_ARRAY(b->arena, aggregate->n_keys, bool);
    if (!parts || !members)
        return sx_build_no_memory(b);
    const int32_t id = n_sets > 1 ? b->n_materialized++ : -1;
    for (int32_t i = 0; i < n_sets; i++) {
        if (!read_set(c, sx_json_item(sets, i), aggregate->n_keys, members))
            return NULL;
        struct sx_plan *input = id >= 0 ? sx_build_reference(b, id, child) : child;
        parts[i] = convert_set(c, json, aggregate, input, members);
        if (!parts[i])
            return NULL;
    }
    if (id < 0)
        return parts[0];
    return sx_build_materialize(b, id, child, sx_build_union(b, parts, n_sets));
}

struct sx_plan *sx_convert_aggregate(struct sx_convert *c, struct json_object *json) {
    struct aggregate aggregate = {0};
    struct sx_plan *child = sx_convert_child(c, json, 0);
    if (!child)
        return NULL;
    const struct sx_scope scope = sx_scope_of(child);
    if (!convert_calls(c, json, &scope, &aggregate))
        return NULL;
    if (!is_whole_set(sx_json_member(json, "grouping_sets"), aggregate.n_keys))
        return convert_sets(c, json, &aggregate, child);
    bool *members = SX_ARENA_ARRAY(c->b.arena, aggregate.n_keys, bool);
    if (!members)
        return sx_build_no_memory(&c->b);
    for (int32_t i = 0; i < aggregate.n_keys; i++)
        members[i] = true;
    return convert_set(c, json, &aggregate, child, members);
}
