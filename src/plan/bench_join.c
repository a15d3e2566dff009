#include "plan/bench_join.h"

#include "plan/distribute.h"
#include "plan/distribute_state.h"

static struct sx_plan *memory_table(struct sx_builder *b, enum sx_bench_table table, int32_t n_columns) {
    static const char *const names[] = {[SX_BENCH_PROBE] = "probe", [SX_BENCH_BUILD] = "build"};
    struct sx_plan *plan = sx_build_plan(b, SX_PLAN_MEMORY, 0, n_columns);
    for (int32_t c = 0; plan && c < n_columns; c++)
        sx_build_columns(plan)[c] = (struct sx_column_info){names[table], sx_type_of(SX_TYPE_I64)};
    if (plan)
        plan->u.memory.id = (int32_t)table;
    return plan;
}

static struct sx_plan *join_by_key(struct sx_builder *b, struct sx_plan *probe, struct sx_plan *build) {
    const struct sx_conjuncts none = {0};
    struct sx_join_key *key = SX_ARENA_NEW(b->arena, struct sx_join_key);
    if (!key || !probe || !build)
        return sx_build_no_memory(b);
    *key = (struct sx_join_key){.probe = sx_build_input(b, probe, 0), .build = sx_build_input(b, build, 0)};
    return key->probe && key->build ? sx_build_join(b, SX_JOIN_INNER, probe, build, key, 1, &none) : NULL;
}

static struct sx_plan *sums(struct sx_builder *b, struct sx_plan *child) {
    if (!child)
        return NULL;
    struct sx_aggregate_call *calls =
        SX_ARENA_ARRAY(b->arena, child->n_columns + 1, struct sx_aggregate_call);
    if (!calls)
        return sx_build_no_memory(b);
    calls[0] = (struct sx_aggregate_call){.function = SX_CALL_COUNT_STAR, .type = sx_type_of(SX_TYPE_I64)};
    for (int32_t c = 0; c < child->n_columns; c++) {
        calls[c + 1] = (struct sx_aggregate_call){.function = SX_CALL_SUM,
                                                  .argument = sx_build_input(b, child, c),
                                                  .type = sx_type_of(SX_TYPE_I128)};
        if (!calls[c + 1].argument)
            return NULL;
    }
    return sx_build_aggregate(b, child, NULL, 0, calls, child->n_columns + 1);
}

/* Puts an exchange by the key above the table that a plan without a join begins with. */
static bool exchange_table(struct distribution *d, struct sx_plan *plan) {
    while (plan->n_children > 0 && plan->children[0]->kind != SX_PLAN_MEMORY)
        plan = plan->children[0];
    struct sx_expression **keys = SX_ARENA_ARRAY(d->b.arena, 1, struct sx_expression *);
    if (!keys || plan->n_children == 0)
        return sx_build_no_memory(&d->b);
    keys[0] = sx_build_input(&d->b, plan->children[0], 0);
    plan->children[0] = keys[0] ? distribute_exchange(d, plan->children[0], SX_EXCHANGE_HASH, keys, 1) : NULL;
    return plan->children[0] != NULL;
}

static enum sx_status no_plan(const struct sx_error *local, struct sx_error *error) {
    return sx_error_set(error, local->status == SX_OK ? SX_OUT_OF_MEMORY : local->status, "%s",
                        local->text[0] ? local->text : "no memory for the plan");
}

enum sx_status sx_bench_join_plan(const struct sx_bench_join_spec *spec, struct sx_query_plan *query,
                                  struct sx_error *error) {
    struct sx_error local = {0};
    struct distribution d = {.b = {.arena = &query->arena, .error = &local}};
    struct sx_plan *read = memory_table(&d.b, SX_BENCH_PROBE, spec->n_columns[SX_BENCH_PROBE]);
    if (!spec->is_shuffle)
        read = join_by_key(&d.b, read, memory_table(&d.b, SX_BENCH_BUILD, spec->n_columns[SX_BENCH_BUILD]));
    query->root = sums(&d.b, read);
    if (!query->root)
        return no_plan(&local, error);
    if (!spec->has_ranks)
        return sx_plan_check(query, error);
    SX_TRY(sx_plan_distribute(query, NULL, error));
    if (spec->is_shuffle && !exchange_table(&d, query->root))
        return no_plan(&local, error);
    return sx_plan_check(query, error);
}
