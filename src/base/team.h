/* A team of threads that run one function together and wait for each other. The caller is member 0. */
#ifndef SX_BASE_TEAM_H
#define SX_BASE_TEAM_H

#include <stdint.h>

#include "base/status.h"

struct sx_team;

/* Starts members - 1 threads. They get no signals. */
SX_MUST_CHECK enum sx_status sx_team_create(int members, struct sx_team **out_team, struct sx_error *error);
void sx_team_destroy(struct sx_team *team); /* NULL allowed */
int sx_team_members(const struct sx_team *team);
/* For how long who has nothing to do, or waits for the others, looks before it sleeps (0, as at first: not at
 * all). A thread that sleeps takes tens of microseconds to wake, and more in a virtual machine. */
void sx_team_set_spin(struct sx_team *team, int64_t spin_ns);

/* Runs work(member, context) on every member and returns when all have returned. One caller at a time. It
 * does the work of members that have not woken when it is through with its own. */
void sx_team_run(struct sx_team *team, void (*work)(int member, void *context), void *context);
/* On members 0 to n - 1 alone (1 <= n; more than there are: all): the others sleep on, and are not waited
 * for. */
void sx_team_run_some(struct sx_team *team, int n, void (*work)(int member, void *context), void *context);

#endif
