#include "plan/plan.h"

void sx_query_plan_release(struct sx_query_plan *query) {
    sx_arena_release(&query->arena);
    *query = (struct sx_query_plan){0};
}
