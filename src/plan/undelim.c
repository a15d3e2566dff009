/* A duplicate-eliminated SEMI or ANTI join whose other side only joins a table with the distinct values needs
 * no distinct values: L semi-joins (X join distinct(L.k) on C(X, k)) on k is L semi-join X on C(X, L.k). */
#include "plan/undelim.h"

struct undelim {
    struct sx_builder *b;
    const struct sx_undelim *in;
    struct sx_plan *join;                /* the INNER join of X with the distinct values */
    int delim_child;                     /* its child with the distinct values */
    struct sx_expression **outputs;      /* of the other side, over the INNER join's columns */
    struct sx_conjuncts filters;         /* met on the way, likewise */
    struct sx_expression **replacements; /* INNER join's columns -> over (probe, build) of the new join */
};

/* Goes down through projections and filters to the INNER join; false: not of that shape, or an error. */
static bool descend(struct undelim *u) {
    struct sx_builder *b = u->b;
    struct sx_plan *plan = u->in->other;
    u->outputs = SX_ARENA_ARRAY(b->arena, plan->n_columns, struct sx_expression *);
    if (!u->outputs)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < plan->n_columns; i++)
        u->outputs[i] = sx_build_input(b, plan, i);
    for (; plan->kind == SX_PLAN_PROJECT || plan->kind == SX_PLAN_FILTER; plan = plan->children[0]) {
        if (plan->kind == SX_PLAN_FILTER) {
            for (int32_t i = 0; i < plan->u.filter.n_conjuncts; i++)
                if (!sx_conjuncts_add(b, &u->filters, plan->u.filter.conjuncts[i]))
                    return false;
            continue; /* a filter just made outputs all columns */
        }
        for (int32_t i = 0; i < u->in->other->n_columns; i++)
            if (!(u->outputs[i] = sx_build_substitute(b, u->outputs[i], plan->u.project.expressions)))
                return false;
        for (int32_t i = 0; i < u->filters.count; i++)
            if (!(u->filters.items[i] =
                      sx_build_substitute(b, u->filters.items[i], plan->u.project.expressions)))
                return false;
    }
    u->join = plan;
    if (plan->kind != SX_PLAN_JOIN || plan->u.join.kind != SX_JOIN_INNER)
        return false;
    u->delim_child = plan->children[1] == u->in->reference ? 1 : 0;
    return plan->children[u->delim_child] == u->in->reference;
}

/* First column of the distinct values among the INNER join's, and of L among the new join's. */
static int32_t delim_first(const struct undelim *u) {
    return u->delim_child == 1 ? u->join->children[0]->n_columns : 0;
}

/* Does `output` (over the INNER join's columns) always equal distinct column `d`: the column itself, or what
 * a key of the INNER join compares it with? */
static bool equals_delim(const struct undelim *u, const struct sx_expression *output, int32_t d) {
    const struct sx_join_plan *join = &u->join->u.join;
    if (output->kind != SX_EXPR_COLUMN)
        return false;
    if (output->column == delim_first(u) + d)
        return true;
    const int32_t table_column = output->column - (u->delim_child == 1 ? 0 : u->join->children[0]->n_columns);
    for (int32_t i = 0; i < join->n_keys; i++) {
        const struct sx_expression *delim = u->delim_child == 1 ? join->keys[i].build : join->keys[i].probe;
        const struct sx_expression *table = u->delim_child == 1 ? join->keys[i].probe : join->keys[i].build;
        if (delim->kind == SX_EXPR_COLUMN && delim->column == d && table->kind == SX_EXPR_COLUMN &&
            table->column == table_column)
            return true;
    }
    return false;
}

/* Every distinct column must be tied to the expression of L that it came from; out_ties[key] marks such keys.
 */
static bool find_ties(const struct undelim *u, bool *out_ties) {
    const struct sx_aggregate_plan *distinct = &u->in->distinct->u.aggregate;
    for (int32_t d = 0; d < distinct->n_keys; d++) {
        bool tied = false;
        for (int32_t k = 0; k < u->in->n_keys; k++) {
            const struct sx_undelim_key *key = &u->in->keys[k];
            if (!key->null_equal || key->other->kind != SX_EXPR_COLUMN ||
                !sx_expression_equal(key->side, distinct->keys[d]) ||
                !equals_delim(u, u->outputs[key->other->column], d))
                continue;
            tied = out_ties[k] = true;
        }
        if (!tied)
            return false;
    }
    return true;
}

/* ---- the new join: L is on the side where the distinct values were ---- */

static struct sx_expression *shifted(struct undelim *u, const struct sx_expression *expression,
                                     int32_t n_columns, int32_t by) {
    int32_t *map = SX_ARENA_ARRAY(u->b->arena, n_columns, int32_t);
    if (!map)
        return sx_build_no_memory(u->b);
    for (int32_t i = 0; i < n_columns; i++)
        map[i] = i + by;
    return sx_build_remap(u->b, expression, map);
}

static int32_t table_first(const struct undelim *u) {
    return u->delim_child == 1 ? 0 : u->in->side->n_columns;
}

static bool make_replacements(struct undelim *u) {
    struct sx_builder *b = u->b;
    const struct sx_aggregate_plan *distinct = &u->in->distinct->u.aggregate;
    const struct sx_plan *table = u->join->children[1 - u->delim_child];
    const int32_t n_delim = distinct->n_keys, n_table = table->n_columns;
    const int32_t old_table_first = u->delim_child == 1 ? 0 : n_delim;
    u->replacements = SX_ARENA_ARRAY(b->arena, n_delim + n_table, struct sx_expression *);
    if (!u->replacements)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < n_table; i++)
        if (!(u->replacements[old_table_first + i] =
                  sx_build_column(b, table_first(u) + i, table->columns[i].type)))
            return false;
    for (int32_t d = 0; d < n_delim; d++)
        if (!(u->replacements[delim_first(u) + d] =
                  shifted(u, distinct->keys[d], u->in->side->n_columns, delim_first(u))))
            return false;
    return true;
}

/* The INNER join's keys: the side of the distinct values now over L. */
static bool move_keys(struct undelim *u, struct sx_join_key *keys) {
    const struct sx_join_plan *join = &u->join->u.join;
    struct sx_expression *const *of_side = u->in->distinct->u.aggregate.keys;
    for (int32_t i = 0; i < join->n_keys; i++) {
        keys[i] = join->keys[i];
        struct sx_expression **delim = u->delim_child == 1 ? &keys[i].build : &keys[i].probe;
        if (!(*delim = sx_build_substitute(u->b, *delim, of_side)))
            return false;
    }
    return true;
}

/* What the delim join asks beyond the ties, over (probe, build) of the new join. */
static bool move_conditions(struct undelim *u, const bool *ties, struct sx_conjuncts *residual) {
    struct sx_builder *b = u->b;
    const struct sx_join_plan *join = &u->join->u.join;
    for (int32_t i = 0; i < join->n_residual; i++)
        if (!sx_conjuncts_add(b, residual, sx_build_substitute(b, join->residual[i], u->replacements)))
            return false;
    for (int32_t i = 0; i < u->filters.count; i++)
        if (!sx_conjuncts_add(b, residual, sx_build_substitute(b, u->filters.items[i], u->replacements)))
            return false;
    for (int32_t k = 0; k < u->in->n_keys; k++) {
        const struct sx_undelim_key *key = &u->in->keys[k];
        if (ties[k])
            continue;
        struct sx_expression *other = sx_build_substitute(b, key->other, u->outputs);
        other = other ? sx_build_substitute(b, other, u->replacements) : NULL;
        struct sx_expression *side =
            other ? shifted(u, key->side, u->in->side->n_columns, delim_first(u)) : NULL;
        const enum sx_function equal = key->null_equal ? SX_FN_NOT_DISTINCT_FROM : SX_FN_EQ;
        if (!sx_conjuncts_add(b, residual, sx_build_compare(b, equal, side, other)))
            return false;
    }
    return true;
}

struct sx_plan *sx_plan_undelim(struct sx_builder *b, const struct sx_undelim *in) {
    const bool semi = in->kind == SX_JOIN_SEMI || in->kind == SX_JOIN_RIGHT_SEMI;
    const bool anti = in->kind == SX_JOIN_ANTI || in->kind == SX_JOIN_RIGHT_ANTI;
    struct undelim u = {.b = b, .in = in};
    bool *ties = SX_ARENA_ARRAY(b->arena, in->n_keys, bool);
    struct sx_conjuncts residual = {0};
    if (!ties)
        return sx_build_no_memory(b);
    if ((!semi && !anti) || !descend(&u) || !u.join || !find_ties(&u, ties))
        return NULL;
    const int32_t n_keys = u.join->u.join.n_keys;
    struct sx_join_key *keys = SX_ARENA_ARRAY(b->arena, n_keys, struct sx_join_key);
    if (!keys)
        return sx_build_no_memory(b);
    if (n_keys == 0 || !make_replacements(&u) || !move_keys(&u, keys) ||
        !move_conditions(&u, ties, &residual))
        return NULL;
    struct sx_plan *table = u.join->children[1 - u.delim_child];
    if (u.delim_child == 1)
        return sx_build_join(b, semi ? SX_JOIN_RIGHT_SEMI : SX_JOIN_RIGHT_ANTI, table, in->side, keys, n_keys,
                             &residual);
    return sx_build_join(b, semi ? SX_JOIN_SEMI : SX_JOIN_ANTI, in->side, table, keys, n_keys, &residual);
}
