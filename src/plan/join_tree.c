#include "plan/join_tree.h"

#include <string.h>

/* ---- flattening ---- */

struct maker {
    struct sx_builder *b;
    struct sx_join_tree *tree;
};

static bool is_inner(const struct sx_plan *plan) {
    return plan->kind == SX_PLAN_JOIN && plan->u.join.kind == SX_JOIN_INNER && plan->u.join.n_residual == 0;
}

static void count_leaves(const struct sx_plan *plan, struct sx_join_tree *tree) {
    if (is_inner(plan) || plan->kind == SX_PLAN_PROJECT) {
        for (int32_t i = 0; i < plan->n_children; i++)
            count_leaves(plan->children[i], tree);
        return;
    }
    tree->n_leaves++;
    tree->n_columns += plan->n_columns;
}

static void make_equal(struct sx_join_tree *tree, int32_t a, int32_t z) {
    const int32_t kept = tree->equal[a], dropped = tree->equal[z];
    for (int32_t i = 0; i < tree->n_columns; i++)
        if (tree->equal[i] == dropped)
            tree->equal[i] = kept;
}

static int32_t *flatten(struct maker *m, struct sx_plan *plan);

static bool take_keys(struct sx_join_tree *tree, const struct sx_join_plan *join, const int32_t *probe,
                      const int32_t *build) {
    for (int32_t i = 0; i < join->n_keys; i++) {
        const struct sx_join_key *key = &join->keys[i];
        if (key->null_equal || key->probe->kind != SX_EXPR_COLUMN || key->build->kind != SX_EXPR_COLUMN ||
            probe[key->probe->column] < 0 || build[key->build->column] < 0)
            return false;
        make_equal(tree, probe[key->probe->column], build[key->build->column]);
    }
    return true;
}

static bool flatten_join(struct maker *m, const struct sx_plan *plan, int32_t *outputs) {
    const struct sx_join_plan *join = &plan->u.join;
    const int32_t *probe = flatten(m, plan->children[0]);
    const int32_t *build = probe ? flatten(m, plan->children[1]) : NULL;
    if (!build || !take_keys(m->tree, join, probe, build))
        return false;
    for (int32_t i = 0; i < join->n_probe_output; i++)
        outputs[i] = probe[join->probe_output[i]];
    for (int32_t i = 0; i < join->n_build_output; i++)
        outputs[join->n_probe_output + i] = build[join->build_output[i]];
    return true;
}

static bool flatten_project(struct maker *m, const struct sx_plan *plan, int32_t *outputs) {
    const int32_t *inputs = flatten(m, plan->children[0]);
    for (int32_t i = 0; inputs && i < plan->n_columns; i++) {
        const struct sx_expression *expression = plan->u.project.expressions[i];
        outputs[i] = expression->kind == SX_EXPR_COLUMN ? inputs[expression->column] : -1;
    }
    return inputs;
}

static bool add_leaf(struct sx_join_tree *tree, struct sx_plan *plan, int32_t *outputs) {
    const int32_t last = tree->n_leaves - 1;
    const int32_t first = tree->n_leaves ? tree->firsts[last] + tree->leaves[last]->n_columns : 0;
    tree->leaves[tree->n_leaves] = plan;
    tree->firsts[tree->n_leaves++] = first;
    for (int32_t i = 0; i < plan->n_columns; i++)
        outputs[i] = first + i;
    return true;
}

/* By output column. NULL: not of the kind, or an error. */
static int32_t *flatten(struct maker *m, struct sx_plan *plan) {
    int32_t *outputs = SX_ARENA_ARRAY(m->b->arena, plan->n_columns, int32_t);
    if (!outputs)
        return sx_build_no_memory(m->b);
    const bool is_done = is_inner(plan)                  ? flatten_join(m, plan, outputs)
                         : plan->kind == SX_PLAN_PROJECT ? flatten_project(m, plan, outputs)
                                                         : add_leaf(m->tree, plan, outputs);
    return is_done ? outputs : NULL;
}

bool sx_join_tree_make(struct sx_builder *b, struct sx_plan *plan, struct sx_join_tree *out_tree) {
    enum { MOST_COLUMNS = 1024 }; /* pairs of them are looked at */
    struct sx_join_tree tree = {0};
    count_leaves(plan, &tree);
    if (tree.n_columns > MOST_COLUMNS)
        return false;
    tree.leaves = SX_ARENA_ARRAY(b->arena, tree.n_leaves, struct sx_plan *);
    tree.firsts = SX_ARENA_ARRAY(b->arena, tree.n_leaves, int32_t);
    tree.equal = sx_build_identity(b, tree.n_columns);
    if (!tree.leaves || !tree.firsts || !tree.equal)
        return sx_build_no_memory(b);
    tree.n_leaves = 0;
    tree.outputs = flatten(&(struct maker){b, &tree}, plan);
    *out_tree = tree;
    return tree.outputs;
}

struct sx_expression *sx_join_tree_move(struct sx_builder *b, const struct sx_expression *expression,
                                        const int32_t *map, int32_t n) {
    bool *read = SX_ARENA_ARRAY(b->arena, n, bool);
    if (!read)
        return sx_build_no_memory(b);
    sx_expression_mark(expression, read);
    for (int32_t i = 0; i < n; i++)
        if (read[i] && map[i] < 0)
            return NULL;
    return sx_build_remap(b, expression, map);
}

/* ---- leaves ---- */

static bool same_files(const struct sx_scan_plan *a, const struct sx_scan_plan *z) {
    if (a->n_files != z->n_files)
        return false;
    for (int32_t i = 0; i < a->n_files; i++)
        if (strcmp(a->files[i], z->files[i]) != 0)
            return false;
    return true;
}

/* By column that z reads: the one of that name that a reads, or -1. */
static int32_t *find_columns(struct sx_builder *b, const struct sx_scan_plan *a,
                             const struct sx_scan_plan *z) {
    int32_t *found = SX_ARENA_ARRAY(b->arena, z->n_columns, int32_t);
    if (!found)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < z->n_columns; i++) {
        found[i] = -1;
        for (int32_t c = 0; c < a->n_columns; c++)
            if (strcmp(a->columns[c].source, z->columns[i].source) == 0 &&
                sx_type_equal(a->columns[c].type, z->columns[i].type))
                found[i] = c;
    }
    return found;
}

static bool has_filter(const struct sx_scan_plan *scan, const struct sx_expression *filter) {
    for (int32_t i = 0; i < scan->n_filters; i++)
        if (sx_expression_equal(scan->filters[i], filter))
            return true;
    return false;
}

/* Neither has one twice (simplify.c). */
static bool same_filters(struct sx_builder *b, const struct sx_scan_plan *a, const struct sx_scan_plan *z,
                         const int32_t *found) {
    if (a->n_filters != z->n_filters)
        return false;
    for (int32_t i = 0; i < z->n_filters; i++) {
        const struct sx_expression *moved = sx_join_tree_move(b, z->filters[i], found, z->n_columns);
        if (!moved || !has_filter(a, moved))
            return false;
    }
    return true;
}

static bool same_scan(struct sx_builder *b, const struct sx_scan_plan *a, int32_t first,
                      const struct sx_scan_plan *z, int32_t *to) {
    const int32_t *found = same_files(a, z) ? find_columns(b, a, z) : NULL;
    if (!found || !same_filters(b, a, z, found))
        return false;
    for (int32_t i = 0; i < z->n_projection; i++) {
        to[i] = -1;
        for (int32_t p = 0; p < a->n_projection && to[i] < 0; p++)
            if (a->projection[p] == found[z->projection[i]])
                to[i] = first + p;
    }
    return true;
}

/* Leaf `of` of the tree reads the same rows as `leaf`, a scan or a reference. `to` gets, by column of `leaf`,
 * the tree's, or -1. False also after an error. */
static bool same_leaf(struct sx_builder *b, const struct sx_join_tree *tree, int32_t of,
                      const struct sx_plan *leaf, int32_t *to) {
    const struct sx_plan *mine = tree->leaves[of];
    if (mine->kind != leaf->kind)
        return false;
    if (leaf->kind == SX_PLAN_SCAN)
        return same_scan(b, &mine->u.scan, tree->firsts[of], &leaf->u.scan, to);
    if (leaf->kind != SX_PLAN_REFERENCE || mine->u.materialize.id != leaf->u.materialize.id)
        return false;
    for (int32_t i = 0; i < leaf->n_columns; i++)
        to[i] = tree->firsts[of] + i;
    return true;
}

/* ---- the same joins ---- */

static bool find_leaf(struct sx_builder *b, const struct sx_join_tree *whole, const struct sx_plan *leaf,
                      struct sx_join_match *match, int32_t *to) {
    for (int32_t i = 0; i < whole->n_leaves; i++)
        if (!match->is_used[i] && same_leaf(b, whole, i, leaf, to)) {
            match->is_used[i] = true;
            match->n_used++;
            return true;
        }
    return false;
}

bool sx_join_tree_match(struct sx_builder *b, const struct sx_join_tree *whole,
                        const struct sx_join_tree *part, int32_t but, struct sx_join_match *out_match) {
    struct sx_join_match match = {.to = SX_ARENA_ARRAY(b->arena, part->n_columns, int32_t),
                                  .is_used = SX_ARENA_ARRAY(b->arena, whole->n_leaves, bool)};
    if (!match.to || !match.is_used)
        return sx_build_no_memory(b);
    for (int32_t i = 0; i < part->n_leaves; i++)
        if (i != but && !find_leaf(b, whole, part->leaves[i], &match, &match.to[part->firsts[i]]))
            return false;
    *out_match = match;
    return true;
}

/* The part's columns are equal where the whole's are. */
static bool same_equalities(const struct sx_join_tree *whole, const struct sx_join_tree *part,
                            const int32_t *to) {
    for (int32_t i = 0; i < part->n_columns; i++)
        for (int32_t k = i + 1; k < part->n_columns; k++) {
            const bool are_equal = part->equal[i] == part->equal[k];
            const bool are_known = to[i] >= 0 && to[k] >= 0;
            if (are_known ? are_equal != (whole->equal[to[i]] == whole->equal[to[k]]) : are_equal)
                return false;
        }
    return true;
}

/* By column of the whole: whose leaf it is of. */
enum owner { OTHERS, UNKNOWN, KNOWN };

static void find_owners(const struct sx_join_tree *whole, const struct sx_join_tree *part,
                        const struct sx_join_match *match, enum owner *owners) {
    for (int32_t i = 0; i < whole->n_leaves; i++)
        for (int32_t c = 0; c < whole->leaves[i]->n_columns; c++)
            owners[whole->firsts[i] + c] = match->is_used[i] ? UNKNOWN : OTHERS;
    for (int32_t i = 0; i < part->n_columns; i++)
        if (match->to[i] >= 0 && owners[match->to[i]] == UNKNOWN)
            owners[match->to[i]] = KNOWN;
}

/* Some column equal to this one is tied. */
static bool is_tied(const struct sx_join_tree *whole, int32_t column, const bool *ties) {
    for (int32_t i = 0; i < whole->n_columns; i++)
        if (ties[i] && whole->equal[i] == whole->equal[column])
            return true;
    return false;
}

bool sx_join_tree_same_rows(struct sx_builder *b, const struct sx_join_tree *whole,
                            const struct sx_join_tree *part, const struct sx_join_match *match,
                            const bool *ties) {
    enum owner *owners = SX_ARENA_ARRAY(b->arena, whole->n_columns, enum owner);
    if (!owners)
        return sx_build_no_memory(b);
    if (!same_equalities(whole, part, match->to))
        return false;
    find_owners(whole, part, match, owners);
    for (int32_t i = 0; i < whole->n_columns; i++)
        for (int32_t k = i + 1; k < whole->n_columns; k++) {
            if (whole->equal[i] != whole->equal[k] || (owners[i] == OTHERS && owners[k] == OTHERS))
                continue;
            if (owners[i] == UNKNOWN || owners[k] == UNKNOWN)
                return false; /* the part does not ask for that */
            if ((owners[i] == OTHERS || owners[k] == OTHERS) && !is_tied(whole, i, ties))
                return false;
        }
    return true;
}
