/* Ranks that are threads of one process. */
#include <stdlib.h>

#include "api/launch.h"
#include "api/library.h"
#include "api/ranks.h"
#include "base/signals.h"
#include "net/local.h"

struct follower {
    const struct stachio_options *options; /* until all ranks have opened */
    struct sx_net *net;
    pthread_t thread;
};

struct sx_ranks {
    int n_followers; /* that were started */
    struct follower *followers;
};

static void *follow(void *context) {
    const struct follower *self = context;
    struct stachio_error error = {0};
    struct stachio_db *db;
    if (sx_ranks_open_one(self->options, self->net, &db, &error) != STACHIO_OK)
        return NULL; /* the others have heard of it */
    sx_ranks_follow(db);
    sx_net_close(db->net);
    sx_db_release(db);
    return NULL;
}

static void join(struct sx_ranks *ranks) {
    for (int i = 0; i < ranks->n_followers; i++)
        pthread_join(ranks->followers[i].thread, NULL);
    free(ranks->followers);
    free(ranks);
}

/* Those that do not start are as dead. */
static struct sx_ranks *start_followers(const struct stachio_options *options, struct sx_net *const *nets,
                                        int n) {
    struct sx_ranks *ranks = calloc(1, sizeof *ranks);
    struct follower *followers = calloc((size_t)n, sizeof *followers);
    sigset_t previous;
    int started = 0;
    sx_signals_block(&previous);
    while (ranks && followers && started < n) {
        followers[started] = (struct follower){options, nets[started], 0};
        if (pthread_create(&followers[started].thread, NULL, follow, &followers[started]) != 0)
            break;
        started++;
    }
    sx_signals_restore(&previous);
    for (int i = started; i < n; i++)
        sx_net_local_kill(nets[i]);
    for (int i = started; i < n; i++)
        sx_net_close(nets[i]);
    if (!ranks || !followers) {
        free(ranks);
        free(followers);
        return NULL;
    }
    *ranks = (struct sx_ranks){started, followers};
    return ranks;
}

/* As many hosts as the ranks shall believe to be on. */
static int count_hosts(void) {
    const char *given = sx_environment("STACHIO_LOCAL_NODES");
    return given && atoi(given) > 0 ? atoi(given) : 1;
}

enum stachio_status sx_ranks_open_local(const struct stachio_options *options, int n,
                                        struct stachio_db **out_db, struct stachio_error *error) {
    struct stachio_error unheard;
    struct sx_error inner = {0};
    struct sx_net **nets = calloc((size_t)n, sizeof *nets);
    sx_launch_prepare_nccl(true, NULL);
    enum sx_status made = nets ? sx_net_local_create(n, count_hosts(), nets, &inner)
                               : sx_error_set(&inner, SX_OUT_OF_MEMORY, "no memory for %d ranks", n);
    if (made != SX_OK) {
        free(nets);
        return sx_api_fail(&inner, error);
    }
    struct sx_ranks *ranks = start_followers(options, nets + 1, n - 1);
    enum stachio_status status = sx_ranks_open_one(options, nets[0], out_db, error ? error : &unheard);
    free(nets);
    if (!status)
        (*out_db)->ranks = ranks;
    else if (ranks)
        join(ranks);
    return status;
}

void sx_ranks_stop(struct stachio_db *db) {
    if (!db->ranks)
        return;
    sx_ranks_tell_stop(db);
    sx_net_close(db->net);
    db->net = NULL;
    join(db->ranks);
    db->ranks = NULL;
}
