/* Drops columns that nothing above reads. */
#include <string.h>

#include "plan/build.h"

/* A REFERENCE under the projection that takes its columns; both are finished when the definition is pruned.
 */
struct use {
    struct use *next;
    struct sx_plan *project;
    struct sx_plan *reference;
};

struct pruning {
    struct sx_builder *b;
    bool **needed;     /* by materialisation: columns that its references read */
    struct use **uses; /* by materialisation */
};

static struct sx_plan *prune(struct pruning *p, struct sx_plan *plan, const bool *needed, int32_t *map);

static bool *new_marks(struct pruning *p, int32_t n) {
    bool *marks = SX_ARENA_ARRAY(p->b->arena, n, bool);
    return marks ? marks : sx_build_no_memory(p->b);
}

/* Prunes child `index`; gives the way from its old columns to its new ones. */
static int32_t *prune_child(struct pruning *p, struct sx_plan *plan, int32_t index, const bool *needed) {
    struct sx_plan *child = plan->children[index];
    int32_t *map = SX_ARENA_ARRAY(p->b->arena, child->n_columns, int32_t);
    if (!map)
        return sx_build_no_memory(p->b);
    plan->children[index] = prune(p, child, needed, map);
    return plan->children[index] ? map : NULL;
}

static bool remap_all(struct pruning *p, struct sx_expression **expressions, int32_t n, const int32_t *map) {
    for (int32_t i = 0; i < n; i++) {
        expressions[i] = sx_build_remap(p->b, expressions[i], map);
        if (!expressions[i])
            return false;
    }
    return true;
}

/* Keeps the needed ones of `n` outputs: `columns`, and `projection` if not NULL; fills `map`; gives their
 * number, or -1. */
static int32_t keep_outputs(struct pruning *p, struct sx_plan *plan, const bool *needed, int32_t *map,
                            const int32_t **projection) {
    struct sx_column_info *columns = SX_ARENA_ARRAY(p->b->arena, plan->n_columns, struct sx_column_info);
    int32_t *kept = SX_ARENA_ARRAY(p->b->arena, plan->n_columns, int32_t);
    if (!columns || !kept) {
        (void)sx_build_no_memory(p->b);
        return -1;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n_columns; i++) {
        map[i] = -1;
        if (!needed[i])
            continue;
        columns[n] = plan->columns[i];
        kept[n] = projection ? (*projection)[i] : i;
        map[i] = n++;
    }
    plan->columns = columns;
    plan->n_columns = n;
    if (projection)
        *projection = kept;
    return n;
}

static void remap_columns(const int32_t *projection, int32_t n, const int32_t *map) {
    int32_t *columns = (int32_t *)(uintptr_t)projection;
    for (int32_t i = 0; i < n; i++)
        columns[i] = map[columns[i]];
}

static struct sx_plan *prune_scan(struct pruning *p, struct sx_plan *plan, const bool *needed, int32_t *map) {
    struct sx_scan_plan *scan = &plan->u.scan;
    scan->n_projection = keep_outputs(p, plan, needed, map, &scan->projection);
    bool *read = new_marks(p, scan->n_columns);
    int32_t *moved = SX_ARENA_ARRAY(p->b->arena, scan->n_columns, int32_t);
    struct sx_scan_column *columns = SX_ARENA_ARRAY(p->b->arena, scan->n_columns, struct sx_scan_column);
    if (scan->n_projection < 0 || !read || !moved || !columns)
        return sx_build_no_memory(p->b);
    for (int32_t i = 0; i < scan->n_projection; i++)
        read[scan->projection[i]] = true;
    for (int32_t i = 0; i < scan->n_filters; i++)
        sx_expression_mark(scan->filters[i], read);
    int32_t n = 0;
    for (int32_t i = 0; i < scan->n_columns; i++) {
        moved[i] = n;
        if (read[i])
            columns[n++] = scan->columns[i];
    }
    scan->columns = columns;
    scan->n_columns = n;
    remap_columns(scan->projection, scan->n_projection, moved);
    return remap_all(p, scan->filters, scan->n_filters, moved) ? plan : NULL;
}

static struct sx_plan *prune_filter(struct pruning *p, struct sx_plan *plan, const bool *needed,
                                    int32_t *map) {
    const int32_t n = keep_outputs(p, plan, needed, map, &plan->u.filter.projection);
    bool *read = new_marks(p, plan->children[0]->n_columns);
    if (n < 0 || !read)
        return NULL;
    plan->u.filter.n_projection = n;
    for (int32_t i = 0; i < n; i++)
        read[plan->u.filter.projection[i]] = true;
    for (int32_t i = 0; i < plan->u.filter.n_conjuncts; i++)
        sx_expression_mark(plan->u.filter.conjuncts[i], read);
    const int32_t *moved = prune_child(p, plan, 0, read);
    if (!moved)
        return NULL;
    remap_columns(plan->u.filter.projection, n, moved);
    return remap_all(p, plan->u.filter.conjuncts, plan->u.filter.n_conjuncts, moved) ? plan : NULL;
}

static struct sx_plan *prune_project(struct pruning *p, struct sx_plan *plan, const bool *needed,
                                     int32_t *map) {
    struct sx_expression **expressions = plan->u.project.expressions;
    const int32_t n_old = plan->n_columns;
    bool *read = new_marks(p, plan->children[0]->n_columns);
    if (!read || keep_outputs(p, plan, needed, map, NULL) < 0)
        return NULL;
    for (int32_t i = 0, n = 0; i < n_old; i++)
        if (needed[i]) {
            sx_expression_mark(expressions[i], read);
            expressions[n++] = expressions[i];
        }
    const int32_t *moved = prune_child(p, plan, 0, read);
    if (!moved)
        return NULL;
    return remap_all(p, expressions, plan->n_columns, moved) ? plan : NULL;
}

static struct sx_plan *prune_sort(struct pruning *p, struct sx_plan *plan, const bool *needed, int32_t *map) {
    struct sx_sort_plan *sort = &plan->u.sort;
    const int32_t n = keep_outputs(p, plan, needed, map, &sort->projection);
    bool *read = new_marks(p, plan->children[0]->n_columns);
    struct sx_order *orders = SX_ARENA_ARRAY(p->b->arena, sort->n_orders, struct sx_order);
    if (n < 0 || !read || !orders)
        return sx_build_no_memory(p->b);
    sort->n_projection = n;
    for (int32_t i = 0; i < n; i++)
        read[sort->projection[i]] = true;
    for (int32_t i = 0; i < sort->n_orders; i++)
        sx_expression_mark(sort->orders[i].expression, read);
    const int32_t *moved = prune_child(p, plan, 0, read);
    if (!moved)
        return NULL;
    remap_columns(sort->projection, n, moved);
    for (int32_t i = 0; i < sort->n_orders; i++) {
        orders[i] = sort->orders[i];
        orders[i].expression = sx_build_remap(p->b, orders[i].expression, moved);
        if (!orders[i].expression)
            return NULL;
    }
    sort->orders = orders;
    return plan;
}

/* One row whatever there is below: what is left of an aggregate over all rows whose values nobody reads. */
static struct sx_plan *one_row(struct pruning *p, int32_t n_columns, int32_t *map) {
    struct sx_plan *plan = sx_build_plan(p->b, SX_PLAN_VALUES, 0, 0);
    if (!plan)
        return NULL;
    plan->u.values.n_rows = 1;
    for (int32_t i = 0; i < n_columns; i++)
        map[i] = -1;
    return plan;
}

static bool any_marked(const bool *marks, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (marks[i])
            return true;
    return false;
}

static struct sx_plan *prune_aggregate(struct pruning *p, struct sx_plan *plan, const bool *needed,
                                       int32_t *map) {
    struct sx_aggregate_plan *aggregate = &plan->u.aggregate;
    bool *read = new_marks(p, plan->children[0]->n_columns);
    bool *kept = new_marks(p, plan->n_columns);
    struct sx_aggregate_call *calls =
        SX_ARENA_ARRAY(p->b->arena, aggregate->n_calls, struct sx_aggregate_call);
    int32_t n = 0;
    if (!read || !kept || !calls)
        return sx_build_no_memory(p->b);
    if (aggregate->n_keys == 0 && !any_marked(needed, plan->n_columns))
        return one_row(p, plan->n_columns, map);
    for (int32_t i = 0; i < plan->n_columns; i++)
        kept[i] = i < aggregate->n_keys || needed[i];
    for (int32_t i = 0; i < aggregate->n_keys; i++)
        sx_expression_mark(aggregate->keys[i], read);
    for (int32_t i = 0; i < aggregate->n_calls; i++) {
        if (!kept[aggregate->n_keys + i])
            continue;
        calls[n] = aggregate->calls[i];
        if (calls[n].argument)
            sx_expression_mark(calls[n].argument, read);
        if (calls[n].filter)
            sx_expression_mark(calls[n].filter, read);
        n++;
    }
    const int32_t *moved = keep_outputs(p, plan, kept, map, NULL) < 0 ? NULL : prune_child(p, plan, 0, read);
    if (!moved || !remap_all(p, aggregate->keys, aggregate->n_keys, moved))
        return NULL;
    for (int32_t i = 0; i < n; i++) {
        if (calls[i].argument && !(calls[i].argument = sx_build_remap(p->b, calls[i].argument, moved)))
            return NULL;
        if (calls[i].filter && !(calls[i].filter = sx_build_remap(p->b, calls[i].filter, moved)))
            return NULL;
    }
    aggregate->calls = calls;
    aggregate->n_calls = n;
    return plan;
}

/* ---- joins ---- */

static int32_t *keep_join_side(struct pruning *p, const int32_t *columns, int32_t *n_columns,
                               const bool *needed, bool *read) {
    int32_t *kept = SX_ARENA_ARRAY(p->b->arena, *n_columns, int32_t);
    int32_t n = 0;
    if (!kept)
        return sx_build_no_memory(p->b);
    for (int32_t i = 0; i < *n_columns; i++) {
        if (!needed[i])
            continue;
        kept[n++] = columns[i];
        read[columns[i]] = true;
    }
    *n_columns = n;
    return kept;
}

static bool remap_join(struct pruning *p, struct sx_plan *plan, int32_t n_old_probe, int32_t n_old_build,
                       const int32_t *probe_map, const int32_t *build_map) {
    struct sx_join_plan *join = &plan->u.join;
    struct sx_join_key *keys = SX_ARENA_ARRAY(p->b->arena, join->n_keys, struct sx_join_key);
    int32_t *both = SX_ARENA_ARRAY(p->b->arena, n_old_probe + n_old_build, int32_t);
    if (!keys || !both)
        return sx_build_no_memory(p->b);
    for (int32_t i = 0; i < join->n_keys; i++) {
        keys[i].probe = sx_build_remap(p->b, join->keys[i].probe, probe_map);
        keys[i].build = sx_build_remap(p->b, join->keys[i].build, build_map);
        keys[i].null_equal = join->keys[i].null_equal;
        if (!keys[i].probe || !keys[i].build)
            return false;
    }
    join->keys = keys;
    for (int32_t i = 0; i < n_old_probe; i++)
        both[i] = probe_map[i];
    for (int32_t i = 0; i < n_old_build; i++)
        both[n_old_probe + i] = plan->children[0]->n_columns + build_map[i];
    remap_columns(join->probe_output, join->n_probe_output, probe_map);
    remap_columns(join->build_output, join->n_build_output, build_map);
    return remap_all(p, join->residual, join->n_residual, both);
}

static struct sx_plan *prune_join(struct pruning *p, struct sx_plan *plan, const bool *needed, int32_t *map) {
    struct sx_join_plan *join = &plan->u.join;
    const int32_t n_probe = plan->children[0]->n_columns, n_build = plan->children[1]->n_columns;
    const int32_t n_old_probe_output = join->n_probe_output;
    bool *read = new_marks(p, n_probe + n_build);
    int32_t n = 0;
    if (!read)
        return NULL;
    for (int32_t i = 0; i < plan->n_columns; i++) {
        const bool mark = join->kind == SX_JOIN_MARK && i == plan->n_columns - 1;
        map[i] = needed[i] || mark ? n++ : -1;
    }
    join->probe_output = keep_join_side(p, join->probe_output, &join->n_probe_output, needed, read);
    join->build_output = keep_join_side(p, join->build_output, &join->n_build_output,
                                        needed + n_old_probe_output, read + n_probe);
    if (!join->probe_output || !join->build_output)
        return NULL;
    for (int32_t i = 0; i < join->n_keys; i++) {
        sx_expression_mark(join->keys[i].probe, read);
        sx_expression_mark(join->keys[i].build, read + n_probe);
    }
    for (int32_t i = 0; i < join->n_residual; i++)
        sx_expression_mark(join->residual[i], read);
    const int32_t *probe_map = prune_child(p, plan, 0, read);
    const int32_t *build_map = probe_map ? prune_child(p, plan, 1, read + n_probe) : NULL;
    if (!build_map || !remap_join(p, plan, n_probe, n_build, probe_map, build_map) ||
        !sx_build_join_columns(p->b, plan))
        return NULL;
    return plan;
}

/* ---- operators that want their children's columns just so ---- */

/* Child `index` gives exactly the needed columns, in order. */
static bool prune_child_exactly(struct pruning *p, struct sx_plan *plan, int32_t index, const bool *needed) {
    const int32_t n_old = plan->children[index]->n_columns;
    int32_t *columns = SX_ARENA_ARRAY(p->b->arena, n_old, int32_t);
    int32_t n = 0;
    if (!columns)
        return sx_build_no_memory(p->b);
    const int32_t *moved = prune_child(p, plan, index, needed);
    if (!moved)
        return false;
    for (int32_t i = 0; i < n_old; i++)
        if (needed[i])
            columns[n++] = moved[i];
    struct sx_plan *child = plan->children[index];
    bool exact = child->n_columns == n;
    for (int32_t i = 0; exact && i < n; i++)
        exact = columns[i] == i;
    if (!exact)
        plan->children[index] = sx_build_pick(p->b, child, columns, n);
    return plan->children[index] != NULL;
}

static struct sx_plan *prune_exactly(struct pruning *p, struct sx_plan *plan, const bool *needed,
                                     int32_t *map) {
    for (int32_t i = 0; i < plan->n_children; i++)
        if (!prune_child_exactly(p, plan, i, needed))
            return NULL;
    return keep_outputs(p, plan, needed, map, NULL) < 0 ? NULL : plan;
}

static struct sx_plan *keep_all(struct pruning *p, struct sx_plan *plan, int32_t *map) {
    for (int32_t i = 0; i < plan->n_columns; i++)
        map[i] = i;
    bool *all = new_marks(p, plan->n_columns);
    if (!all)
        return NULL;
    memset(all, true, (size_t)plan->n_columns);
    for (int32_t i = 0; i < plan->n_children; i++)
        if (!prune_child_exactly(p, plan, i, all))
            return NULL;
    return plan;
}

/* ---- materialised results ---- */

static struct sx_plan *prune_reference(struct pruning *p, struct sx_plan *plan, const bool *needed,
                                       int32_t *map) {
    const int32_t id = plan->u.materialize.id;
    int32_t *columns = SX_ARENA_ARRAY(p->b->arena, plan->n_columns, int32_t);
    struct use *use = SX_ARENA_NEW(p->b->arena, struct use);
    if (!p->needed[id])
        p->needed[id] = new_marks(p, plan->n_columns);
    if (!columns || !use || !p->needed[id])
        return sx_build_no_memory(p->b);
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n_columns; i++) {
        map[i] = needed[i] ? n : -1;
        if (!needed[i])
            continue;
        columns[n++] = i;
        p->needed[id][i] = true;
    }
    *use = (struct use){p->uses[id], sx_build_pick(p->b, plan, columns, n), plan};
    p->uses[id] = use;
    return use->project;
}

static bool finish_uses(struct pruning *p, int32_t id, const struct sx_plan *definition,
                        const int32_t *moved) {
    for (struct use *use = p->uses[id]; use; use = use->next) {
        if (!remap_all(p, use->project->u.project.expressions, use->project->n_columns, moved))
            return false;
        use->reference->columns = definition->columns;
        use->reference->n_columns = definition->n_columns;
    }
    return true;
}

static struct sx_plan *prune_materialize(struct pruning *p, struct sx_plan *plan, const bool *needed,
                                         int32_t *map) {
    const int32_t id = plan->u.materialize.id;
    plan->children[1] = prune(p, plan->children[1], needed, map);
    if (!plan->children[1])
        return NULL;
    plan->columns = plan->children[1]->columns;
    plan->n_columns = plan->children[1]->n_columns;
    if (!p->uses[id])
        return plan->children[1];
    const int32_t *moved = prune_child(p, plan, 0, p->needed[id]);
    return moved && finish_uses(p, id, plan->children[0], moved) ? plan : NULL;
}

static struct sx_plan *prune(struct pruning *p, struct sx_plan *plan, const bool *needed, int32_t *map) {
    switch (plan->kind) {
    case SX_PLAN_SCAN: return prune_scan(p, plan, needed, map);
    case SX_PLAN_FILTER: return prune_filter(p, plan, needed, map);
    case SX_PLAN_PROJECT: return prune_project(p, plan, needed, map);
    case SX_PLAN_JOIN: return prune_join(p, plan, needed, map);
    case SX_PLAN_AGGREGATE: return prune_aggregate(p, plan, needed, map);
    case SX_PLAN_SORT:
    case SX_PLAN_TOP_N: return prune_sort(p, plan, needed, map);
    case SX_PLAN_LIMIT:
    case SX_PLAN_UNION_ALL: return prune_exactly(p, plan, needed, map);
    case SX_PLAN_MATERIALIZE: return prune_materialize(p, plan, needed, map);
    case SX_PLAN_REFERENCE: return prune_reference(p, plan, needed, map);
    case SX_PLAN_VALUES:
    case SX_PLAN_MEMORY:
    case SX_PLAN_SET_ALL: return keep_all(p, plan, map);
    case SX_PLAN_EXCHANGE: break; /* is put in later */
    }
    return plan;
}

struct sx_plan *sx_plan_prune(struct sx_builder *b, struct sx_plan *root) {
    struct pruning p = {.b = b,
                        .needed = SX_ARENA_ARRAY(b->arena, b->n_materialized, bool *),
                        .uses = SX_ARENA_ARRAY(b->arena, b->n_materialized, struct use *)};
    struct sx_plan holder = {.n_children = 1, .children = &root};
    bool *all = new_marks(&p, root->n_columns);
    if (!p.needed || !p.uses || !all)
        return sx_build_no_memory(b);
    memset(all, true, (size_t)root->n_columns);
    if (!prune_child_exactly(&p, &holder, 0, all))
        return NULL;
    return sx_plan_simplify(b, root);
}
