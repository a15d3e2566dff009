#include <string.h>

#include "plan/share.h"

enum { MOST_AGGREGATES = 32 }; /* each is compared with each */

/* An aggregate, and where it is: the pointer to the root, to its child, …, to the aggregate. */
struct place {
    struct sx_plan ***path;
    int32_t n_path;
    struct sx_join_tree tree; /* of what it aggregates */
};

struct search {
    struct sx_builder *b;
    struct sx_plan **path[SX_PLAN_MAX_DEPTH];
    int32_t n_path;
    struct place places[MOST_AGGREGATES];
    int32_t n_places;
};

static struct sx_plan *plan_at(const struct place *place) {
    return *place->path[place->n_path - 1];
}

static bool note(struct search *s, struct sx_plan *aggregate) {
    struct place *place = &s->places[s->n_places];
    if (s->n_places == MOST_AGGREGATES || aggregate->u.aggregate.n_calls == 0)
        return true;
    *place = (struct place){.path = SX_ARENA_ARRAY(s->b->arena, s->n_path, struct sx_plan **),
                            .n_path = s->n_path};
    if (!place->path)
        return sx_build_no_memory(s->b);
    memcpy(place->path, s->path, (size_t)s->n_path * sizeof *place->path);
    s->n_places += sx_join_tree_make(s->b, aggregate->children[0], &place->tree);
    return s->b->error->status == SX_OK;
}

static bool find_aggregates(struct search *s, struct sx_plan **at) {
    if (s->n_path == SX_PLAN_MAX_DEPTH)
        return true;
    s->path[s->n_path++] = at;
    for (int32_t i = 0; i < (*at)->n_children; i++)
        if (!find_aggregates(s, &(*at)->children[i]))
            return false;
    const bool is_done = (*at)->kind != SX_PLAN_AGGREGATE || note(s, *at);
    s->n_path--;
    return is_done;
}

/* ---- groups of groups ---- */

static int32_t find_key(const struct sx_aggregate_plan *fine, const struct sx_expression *key) {
    for (int32_t i = 0; i < fine->n_keys; i++)
        if (sx_expression_equal(fine->keys[i], key))
            return i;
    return -1;
}

static bool same_or_none(const struct sx_expression *a, const struct sx_expression *z) {
    return a && z ? sx_expression_equal(a, z) : a == z;
}

/* A sum of such sums has their type. */
static bool sums_to_itself(struct sx_type type) {
    enum { MOST_DIGITS = 38 };
    return type.id == SX_TYPE_I128 || type.id == SX_TYPE_F64 ||
           (type.id == SX_TYPE_DECIMAL && type.precision == MOST_DIGITS);
}

static int32_t find_call(const struct sx_aggregate_plan *fine, const struct sx_aggregate_call *call) {
    const bool is_kind = call->function == SX_CALL_MIN || call->function == SX_CALL_MAX ||
                         (call->function == SX_CALL_SUM && sums_to_itself(call->type));
    for (int32_t i = 0; is_kind && !call->distinct && i < fine->n_calls; i++) {
        const struct sx_aggregate_call *other = &fine->calls[i];
        if (other->function == call->function && !other->distinct && sx_type_equal(other->type, call->type) &&
            same_or_none(other->argument, call->argument) && same_or_none(other->filter, call->filter))
            return fine->n_keys + i;
    }
    return -1;
}

/* `coarse`, over the rows of `fine`, made into one over its groups. */
static bool over_groups(struct sx_builder *b, const struct sx_plan *fine, struct sx_aggregate_plan *coarse) {
    struct sx_aggregate_call *calls = SX_ARENA_ARRAY(b->arena, coarse->n_calls, struct sx_aggregate_call);
    if (!calls)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < coarse->n_keys; i++) {
        const int32_t key = find_key(&fine->u.aggregate, coarse->keys[i]);
        if (key < 0 || !(coarse->keys[i] = sx_build_input(b, fine, key)))
            return false;
    }
    for (int32_t i = 0; i < coarse->n_calls; i++) {
        const int32_t call = find_call(&fine->u.aggregate, &coarse->calls[i]);
        calls[i] = coarse->calls[i];
        calls[i].filter = NULL;
        if (call < 0 || !(calls[i].argument = sx_build_input(b, fine, call)))
            return false;
    }
    coarse->calls = calls;
    return true;
}

/* How far the paths to the two are one. */
static int32_t last_above_both(const struct place *fine, const struct place *coarse) {
    int32_t above = 0;
    while (fine->path[above + 1] == coarse->path[above + 1])
        above++;
    return above;
}

/* A join above the aggregate may leave out rows of its input, as they are scanned; of what is kept for others
 * it can't. */
static bool is_filtered(const struct place *fine) {
    for (int32_t i = 0; i < fine->n_path - 1; i++) {
        const struct sx_plan *plan = *fine->path[i];
        if (plan->kind == SX_PLAN_JOIN && plan->u.join.n_keys > 0 && fine->path[i + 1] == &plan->children[0])
            return true;
    }
    return false;
}

/* Both aggregate the same rows, and the one's groups are in the other's. */
static bool is_coarser(struct sx_builder *b, const struct place *fine, const struct place *coarse,
                       struct sx_aggregate_plan *out_made) {
    const struct sx_plan *fine_plan = plan_at(fine), *coarse_plan = plan_at(coarse);
    struct sx_join_match match;
    bool *no_ties = SX_ARENA_ARRAY(b->arena, fine->tree.n_columns, bool);
    if (!no_ties)
        return sx_build_no_memory(b);
    if (is_filtered(fine) || !sx_join_tree_match(b, &fine->tree, &coarse->tree, -1, &match) ||
        match.n_used != fine->tree.n_leaves ||
        !sx_join_tree_same_rows(b, &fine->tree, &coarse->tree, &match, no_ties))
        return false;
    const struct sx_plan *rows = coarse_plan->children[0];
    const int32_t *map =
        sx_share_outputs(b, rows, &coarse->tree, fine_plan->children[0], &fine->tree, match.to);
    return map && sx_share_move(b, &coarse_plan->u.aggregate, map, rows->n_columns, out_made) &&
           over_groups(b, fine_plan, out_made);
}

/* The groups are kept at the lowest place above both. */
static bool keep_groups(struct sx_builder *b, const struct place *fine, const struct place *coarse,
                        const struct sx_aggregate_plan *made) {
    struct sx_plan *groups = plan_at(fine), *coarse_plan = plan_at(coarse);
    const int32_t id = b->n_materialized++;
    const int32_t above = last_above_both(fine, coarse);
    struct sx_plan *for_fine = sx_build_reference(b, id, groups);
    struct sx_plan *for_coarse = sx_build_reference(b, id, groups);
    if (!for_fine || !for_coarse)
        return false;
    coarse_plan->children[0] = for_coarse;
    coarse_plan->u.aggregate = *made;
    *fine->path[fine->n_path - 1] = for_fine;
    struct sx_plan *kept = sx_build_materialize(b, id, groups, *fine->path[above]);
    if (kept)
        *fine->path[above] = kept;
    return kept;
}

static bool share_once(struct sx_builder *b, const struct search *s) {
    struct sx_aggregate_plan made;
    for (int32_t i = 0; i < s->n_places; i++)
        for (int32_t k = 0; k < s->n_places; k++)
            if (i != k && is_coarser(b, &s->places[i], &s->places[k], &made))
                return keep_groups(b, &s->places[i], &s->places[k], &made);
    return false;
}

struct sx_plan *sx_share_groups(struct sx_builder *b, struct sx_plan *root) {
    for (;;) {
        struct search *s = SX_ARENA_NEW(b->arena, struct search);
        if (!s)
            return sx_build_no_memory(b);
        s->b = b;
        if (!find_aggregates(s, &root) || s->n_places < 2 || !share_once(b, s))
            return b->error->status == SX_OK ? root : NULL;
    }
}
