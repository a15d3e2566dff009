#include "plan/plan.h"

#include <stdatomic.h>
#include <stdlib.h>

struct sx_shared_plan {
    atomic_int users;
    struct sx_query_plan plan;
};

void sx_query_plan_release(struct sx_query_plan *query) {
    sx_shared_plan_release(query->shared);
    sx_arena_release(&query->arena);
    *query = (struct sx_query_plan){0};
}

struct sx_shared_plan *sx_shared_plan_create(struct sx_query_plan *query) {
    struct sx_shared_plan *shared = malloc(sizeof *shared);
    if (!shared)
        return NULL;
    atomic_init(&shared->users, 1);
    shared->plan = *query;
    *query = (struct sx_query_plan){0};
    return shared;
}

void sx_shared_plan_use(struct sx_shared_plan *shared, struct sx_query_plan *out_query) {
    atomic_fetch_add(&shared->users, 1);
    *out_query = shared->plan;
    out_query->arena = (struct sx_arena){0};
    out_query->shared = shared;
}

void sx_shared_plan_release(struct sx_shared_plan *shared) {
    if (!shared || atomic_fetch_sub(&shared->users, 1) > 1)
        return;
    sx_arena_release(&shared->plan.arena);
    free(shared);
}
