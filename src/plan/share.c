/* What one part of a plan reads and joins, another need not read and join again:
 *
 * - A correlated subquery that aggregates what the query itself joins takes the query's rows, which are kept
 *   for it anyhow (Zuzarte et al., WinMagic, SIGMOD 2003).
 * - An aggregate of what another one aggregates by more keys is made of that one's groups. */
#include "plan/share.h"

struct definition {
    struct sx_plan *plan;
    bool is_made; /* it has a tree, which may be none */
    bool has_tree;
    struct sx_join_tree tree;
};

struct sharing {
    struct sx_builder *b;
    struct definition *definitions; /* by id, of MATERIALIZE nodes that have been met */
};

static bool is_failed(const struct sx_builder *b) {
    return b->error->status != SX_OK;
}

static const struct sx_join_tree *tree_of(struct sharing *s, int32_t id) {
    struct definition *definition = &s->definitions[id];
    if (!definition->is_made && definition->plan)
        definition->has_tree = sx_join_tree_make(s->b, definition->plan, &definition->tree);
    definition->is_made = true;
    return definition->has_tree ? &definition->tree : NULL;
}

/* ---- expressions over other rows ---- */

static bool move_call(struct sx_builder *b, struct sx_aggregate_call *call, const int32_t *map, int32_t n) {
    return (!call->argument || (call->argument = sx_join_tree_move(b, call->argument, map, n))) &&
           (!call->filter || (call->filter = sx_join_tree_move(b, call->filter, map, n)));
}

bool sx_share_move(struct sx_builder *b, const struct sx_aggregate_plan *from, const int32_t *map, int32_t n,
                   struct sx_aggregate_plan *to) {
    struct sx_aggregate_call *calls = SX_ARENA_ARRAY(b->arena, from->n_calls, struct sx_aggregate_call);
    *to = *from;
    to->keys = SX_ARENA_ARRAY(b->arena, from->n_keys, struct sx_expression *);
    to->calls = calls;
    if (!to->keys || !calls)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < from->n_keys; i++)
        if (!(to->keys[i] = sx_join_tree_move(b, from->keys[i], map, n)))
            return false;
    for (int32_t i = 0; i < from->n_calls; i++) {
        calls[i] = from->calls[i];
        if (!move_call(b, &calls[i], map, n))
            return false;
    }
    return true;
}

int32_t *sx_share_outputs(struct sx_builder *b, const struct sx_plan *part_plan,
                          const struct sx_join_tree *part, const struct sx_plan *whole_plan,
                          const struct sx_join_tree *whole, const int32_t *to) {
    int32_t *map = SX_ARENA_ARRAY(b->arena, part_plan->n_columns, int32_t);
    if (!map)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < part_plan->n_columns; i++) {
        const int32_t column = part->outputs[i] < 0 ? -1 : to[part->outputs[i]];
        map[i] = -1;
        for (int32_t k = 0; column >= 0 && k < whole_plan->n_columns && map[i] < 0; k++)
            if (whole->outputs[k] == column)
                map[i] = k;
    }
    return map;
}

/* ---- correlated aggregates ---- */

/* The distinct values of columns of a materialised plan, which the leaf is or reads; NULL: it is something
 * else. */
static const struct sx_plan *distinct_of(const struct sharing *s, const struct sx_plan *leaf) {
    if (leaf->kind == SX_PLAN_REFERENCE)
        leaf = s->definitions[leaf->u.materialize.id].plan;
    if (!leaf || leaf->kind != SX_PLAN_AGGREGATE || leaf->u.aggregate.n_calls > 0 ||
        leaf->children[0]->kind != SX_PLAN_REFERENCE)
        return NULL;
    for (int32_t i = 0; i < leaf->u.aggregate.n_keys; i++)
        if (leaf->u.aggregate.keys[i]->kind != SX_EXPR_COLUMN)
            return NULL;
    return leaf;
}

struct correlated {
    struct sx_plan *aggregate;
    struct sx_join_tree part;
    int32_t leaf;                     /* of the part: the distinct values, */
    const struct sx_plan *distinct;   /* made by this, */
    int32_t id;                       /* of that definition's rows, */
    const struct sx_join_tree *whole; /* which join this */
    struct sx_join_match match;
    bool *ties; /* by column of the whole: a distinct value */
};

static bool find_distinct(struct sharing *s, struct correlated *c) {
    c->leaf = -1;
    for (int32_t i = 0; i < c->part.n_leaves; i++) {
        const struct sx_plan *distinct = distinct_of(s, c->part.leaves[i]);
        if (distinct && c->leaf >= 0)
            return false;
        if (distinct) {
            c->leaf = i;
            c->distinct = distinct;
        }
    }
    if (c->leaf < 0)
        return false;
    c->id = c->distinct->children[0]->u.materialize.id;
    c->whole = tree_of(s, c->id);
    return c->whole;
}

/* A column of the part's other leaves equals this one. */
static bool joins_something(const struct correlated *c, int32_t column) {
    const int32_t first = c->part.firsts[c->leaf], n = c->part.leaves[c->leaf]->n_columns;
    for (int32_t i = 0; i < c->part.n_columns; i++)
        if ((i < first || i >= first + n) && c->part.equal[i] == c->part.equal[column])
            return true;
    return false;
}

static bool tie_values(struct sharing *s, struct correlated *c) {
    const struct sx_aggregate_plan *distinct = &c->distinct->u.aggregate;
    const int32_t first = c->part.firsts[c->leaf];
    c->ties = SX_ARENA_ARRAY(s->b->arena, c->whole->n_columns, bool);
    if (!c->ties)
        return sx_build_no_memory(s->b);
    for (int32_t i = 0; i < distinct->n_keys; i++) {
        const int32_t column = c->whole->outputs[distinct->keys[i]->column];
        if (column < 0 || !joins_something(c, first + i))
            return false;
        c->match.to[first + i] = column;
        c->ties[column] = true;
    }
    return true;
}

/* Whether the same rows so many times over make no difference, if those of a group are so as often (to
 * averages in the last place at most, and only where sums pass 2^64 units). */
static bool ignores_copies(const struct sx_aggregate_call *call) {
    return call->function == SX_CALL_MIN || call->function == SX_CALL_MAX || call->function == SX_CALL_AVG ||
           (call->distinct && call->function == SX_CALL_COUNT) ||
           (call->distinct && call->function == SX_CALL_SUM);
}

/* Every distinct value is the same for all rows of a group. */
static bool groups_by_all(const struct correlated *c) {
    const struct sx_aggregate_plan *aggregate = &c->aggregate->u.aggregate;
    const int32_t first = c->part.firsts[c->leaf], n = c->part.leaves[c->leaf]->n_columns;
    for (int32_t i = first; i < first + n; i++) {
        bool any = false;
        for (int32_t k = 0; k < aggregate->n_keys && !any; k++) {
            const struct sx_expression *key = aggregate->keys[k];
            const int32_t column = key->kind == SX_EXPR_COLUMN ? c->part.outputs[key->column] : -1;
            any = column >= 0 && c->part.equal[column] == c->part.equal[i];
        }
        if (!any)
            return false;
    }
    return true;
}

/* Rows of the query may be there several times, once for each row of what only the query joins. */
static bool may_have_copies(const struct correlated *c) {
    const struct sx_aggregate_plan *aggregate = &c->aggregate->u.aggregate;
    if (c->match.n_used == c->whole->n_leaves)
        return true;
    for (int32_t i = 0; i < aggregate->n_calls; i++)
        if (!ignores_copies(&aggregate->calls[i]))
            return false;
    return groups_by_all(c);
}

/* Those without NULL in any distinct value: NULL would join nothing. */
static struct sx_plan *rows_of_query(struct sharing *s, const struct correlated *c) {
    struct sx_builder *b = s->b;
    const struct sx_aggregate_plan *distinct = &c->distinct->u.aggregate;
    struct sx_plan *rows = sx_build_reference(b, c->id, s->definitions[c->id].plan);
    struct sx_conjuncts conjuncts = {0};
    for (int32_t i = 0; rows && i < distinct->n_keys; i++) {
        const int32_t output = distinct->keys[i]->column;
        struct sx_expression *is_some =
            sx_build_unary(b, SX_FN_IS_NOT_NULL, sx_type_of(SX_TYPE_BOOL), sx_build_input(b, rows, output));
        bool is_joined = false;
        for (int32_t k = 0; k < c->whole->n_columns; k++)
            is_joined |= k != c->whole->outputs[output] &&
                         c->whole->equal[k] == c->whole->equal[c->whole->outputs[output]];
        if (!is_joined && !sx_conjuncts_add(b, &conjuncts, is_some))
            return NULL;
    }
    return rows ? sx_build_filter(b, rows, &conjuncts) : NULL;
}

/* False: nothing changed, or an error. */
static bool use_rows_of_query(struct sharing *s, struct sx_plan *aggregate) {
    struct sx_builder *b = s->b;
    struct sx_plan *child = aggregate->children[0];
    struct correlated c = {.aggregate = aggregate};
    if (!sx_join_tree_make(b, child, &c.part) || !find_distinct(s, &c) ||
        !sx_join_tree_match(b, c.whole, &c.part, c.leaf, &c.match) || !tie_values(s, &c) ||
        !sx_join_tree_same_rows(b, c.whole, &c.part, &c.match, c.ties) || !may_have_copies(&c))
        return false;
    const struct sx_plan *query = s->definitions[c.id].plan;
    const int32_t *map = sx_share_outputs(b, child, &c.part, query, c.whole, c.match.to);
    struct sx_aggregate_plan moved;
    if (!map || !sx_share_move(b, &aggregate->u.aggregate, map, child->n_columns, &moved))
        return false;
    struct sx_plan *rows = rows_of_query(s, &c);
    if (!rows)
        return false;
    aggregate->u.aggregate = moved;
    aggregate->children[0] = rows;
    return true;
}

static void share_rows(struct sharing *s, struct sx_plan *plan) {
    if (!sx_build_enter(s->b))
        return;
    for (int32_t i = 0; i < plan->n_children && !is_failed(s->b); i++) {
        share_rows(s, plan->children[i]);
        if (plan->kind == SX_PLAN_MATERIALIZE && i == 0)
            s->definitions[plan->u.materialize.id].plan = plan->children[0];
    }
    if (plan->kind == SX_PLAN_AGGREGATE && plan->u.aggregate.n_calls > 0 && !is_failed(s->b))
        use_rows_of_query(s, plan);
    sx_build_leave(s->b);
}

struct sx_plan *sx_plan_share(struct sx_builder *b, struct sx_plan *root) {
    struct sharing s = {.b = b,
                        .definitions = SX_ARENA_ARRAY(b->arena, b->n_materialized, struct definition)};
    if (!s.definitions)
        return sx_build_no_memory(b);
    share_rows(&s, root);
    return is_failed(b) ? NULL : sx_share_groups(b, root);
}
