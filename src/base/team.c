#include "base/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/look.h"
#include "base/signals.h"

/* Each has a lock of its own: those that are woken do not wait for each other. */
struct member {
    struct sx_team *team;
    int index;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t begin;
    atomic_int has_work; /* set under the lock; whoever clears it does the work */
    bool stopping;       /* under the lock */
    int64_t woken_ns;    /* under the lock */
};

struct sx_team {
    int members;
    int started; /* threads that exist */
    struct member *threads;
    pthread_mutex_t lock;
    pthread_cond_t end;
    atomic_int running;
    atomic_int_fast64_t spin_ns;
    void (*work)(int member, void *context);
    void *context;
};

static bool has_work(const void *what) {
    const struct member *member = what;
    return atomic_load(&member->has_work);
}

static bool has_ended(const void *what) {
    const struct sx_team *team = what;
    return atomic_load(&team->running) == 0;
}

/* False: it is to stop. */
static bool wait_for_work(struct member *member) {
    (void)sx_look(atomic_load(&member->team->spin_ns), has_work, member);
    pthread_mutex_lock(&member->lock);
    while (!atomic_load(&member->has_work) && !member->stopping) {
        pthread_cond_wait(&member->begin, &member->lock);
        sx_look_woken(member->woken_ns);
    }
    const bool stopping = member->stopping;
    pthread_mutex_unlock(&member->lock);
    return !stopping;
}

/* False: somebody else has. */
static bool takes_work(struct member *member) {
    return atomic_exchange(&member->has_work, false);
}

static void *member_main(void *argument) {
    struct member *member = argument;
    struct sx_team *team = member->team;
    while (wait_for_work(member)) {
        if (!takes_work(member))
            continue;
        team->work(member->index, team->context);
        if (atomic_fetch_sub(&team->running, 1) != 1)
            continue;
        pthread_mutex_lock(&team->lock);
        pthread_cond_signal(&team->end);
        pthread_mutex_unlock(&team->lock);
    }
    return NULL;
}

static void wake(struct member *member, bool stopping) {
    pthread_mutex_lock(&member->lock);
    atomic_store(&member->has_work, true);
    member->stopping = stopping;
    member->woken_ns = sx_clock_ns();
    pthread_mutex_unlock(&member->lock);
    pthread_cond_signal(&member->begin);
}

static void member_release(struct member *member) {
    pthread_cond_destroy(&member->begin);
    pthread_mutex_destroy(&member->lock);
}

static bool start_members(struct sx_team *team) {
    sigset_t before;
    sx_signals_block(&before);
    bool started = true;
    for (int i = 1; i < team->members && started; i++) {
        struct member *member = &team->threads[i];
        *member = (struct member){.team = team, .index = i};
        pthread_mutex_init(&member->lock, NULL);
        pthread_cond_init(&member->begin, NULL);
        started = pthread_create(&member->thread, NULL, member_main, member) == 0;
        if (started)
            team->started++;
        else
            member_release(member);
    }
    sx_signals_restore(&before);
    return started;
}

enum sx_status sx_team_create(int members, struct sx_team **out_team, struct sx_error *error) {
    struct sx_team *team = calloc(1, sizeof *team);
    struct member *threads = calloc((size_t)members, sizeof *threads);
    if (!team || !threads) {
        free(team);
        free(threads);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d threads", members);
    }
    team->members = members;
    team->threads = threads;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->end, NULL);
    if (!start_members(team)) {
        sx_team_destroy(team);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "the system refused to start %d threads", members);
    }
    *out_team = team;
    return SX_OK;
}

void sx_team_destroy(struct sx_team *team) {
    if (!team)
        return;
    for (int i = 1; i <= team->started; i++)
        wake(&team->threads[i], true);
    for (int i = 1; i <= team->started; i++) {
        pthread_join(team->threads[i].thread, NULL);
        member_release(&team->threads[i]);
    }
    pthread_cond_destroy(&team->end);
    pthread_mutex_destroy(&team->lock);
    free(team->threads);
    free(team);
}

int sx_team_members(const struct sx_team *team) {
    return team->members;
}

void sx_team_set_spin(struct sx_team *team, int64_t spin_ns) {
    atomic_store(&team->spin_ns, spin_ns);
}

/* Of a member that has not woken yet. */
static void do_for(struct sx_team *team, int i) {
    if (!takes_work(&team->threads[i]))
        return;
    team->work(i, team->context);
    atomic_fetch_sub(&team->running, 1);
}

void sx_team_run_some(struct sx_team *team, int n, void (*work)(int member, void *context), void *context) {
    const int others = n - 1 < team->started ? n - 1 : team->started;
    team->work = work;
    team->context = context;
    atomic_store(&team->running, others);
    for (int i = 1; i <= others; i++)
        wake(&team->threads[i], false);
    work(0, context);
    for (int i = 1; i <= others; i++)
        do_for(team, i);
    (void)sx_look(atomic_load(&team->spin_ns), has_ended, team);
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->running) > 0)
        pthread_cond_wait(&team->end, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

void sx_team_run(struct sx_team *team, void (*work)(int member, void *context), void *context) {
    sx_team_run_some(team, team->members, work, context);
}
