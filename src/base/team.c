#include "base/team.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/signals.h"

struct member {
    struct sx_team *team;
    int index;
    pthread_t thread;
};

struct sx_team {
    int members;
    int started; /* threads that exist */
    struct member *threads;
    pthread_mutex_t lock;
    pthread_cond_t begin;
    pthread_cond_t end;
    unsigned long round; /* changes when work begins */
    int running;
    bool stopping;
    void (*work)(int member, void *context);
    void *context;
};

static void *member_main(void *argument) {
    struct member *member = argument;
    struct sx_team *team = member->team;
    unsigned long seen = 0;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (team->round == seen && !team->stopping)
            pthread_cond_wait(&team->begin, &team->lock);
        if (team->stopping)
            break;
        seen = team->round;
        pthread_mutex_unlock(&team->lock);
        team->work(member->index, team->context);
        pthread_mutex_lock(&team->lock);
        if (--team->running == 0)
            pthread_cond_signal(&team->end);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

static bool start_members(struct sx_team *team) {
    sigset_t before;
    sx_signals_block(&before);
    bool started = true;
    for (int i = 1; i < team->members && started; i++) {
        struct member *member = &team->threads[i];
        *member = (struct member){.team = team, .index = i};
        started = pthread_create(&member->thread, NULL, member_main, member) == 0;
        if (started)
            team->started++;
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
    pthread_cond_init(&team->begin, NULL);
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
    pthread_mutex_lock(&team->lock);
    team->stopping = true;
    pthread_cond_broadcast(&team->begin);
    pthread_mutex_unlock(&team->lock);
    for (int i = 1; i <= team->started; i++)
        pthread_join(team->threads[i].thread, NULL);
    pthread_cond_destroy(&team->begin);
    pthread_cond_destroy(&team->end);
    pthread_mutex_destroy(&team->lock);
    free(team->threads);
    free(team);
}

int sx_team_members(const struct sx_team *team) {
    return team->members;
}

void sx_team_run(struct sx_team *team, void (*work)(int member, void *context), void *context) {
    pthread_mutex_lock(&team->lock);
    team->work = work;
    team->context = context;
    team->running = team->started;
    team->round++;
    pthread_cond_broadcast(&team->begin);
    pthread_mutex_unlock(&team->lock);
    work(0, context);
    pthread_mutex_lock(&team->lock);
    while (team->running)
        pthread_cond_wait(&team->end, &team->lock);
    pthread_mutex_unlock(&team->lock);
}
