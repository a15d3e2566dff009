/* Ranks that are threads of one process. */
#include <stdlib.h>
#include <string.h>

#include "api/ranks.h"
#include "api/system.h"
#include "net/local.h"

struct sx_ranks {
    int n_followers;
    struct stachio_db **followers;
    pthread_t *threads;
};

static void *follow(void *context) {
    struct stachio_db *db = context;
    sx_ranks_follow(db);
    sx_net_close(db->net);
    sx_db_release(db);
    return NULL;
}

static enum sx_status start_follower(struct sx_ranks *ranks, const struct stachio_options *options,
                                     struct sx_net *net, struct sx_error *error) {
    struct stachio_error failure = {0};
    struct stachio_db *db;
    if (sx_db_open(options, &db, &failure) != STACHIO_OK)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "%.2000s", failure.text);
    db->net = net;
    sigset_t previous;
    sx_signals_block(&previous);
    const int failed = pthread_create(&ranks->threads[ranks->n_followers], NULL, follow, db);
    sx_signals_restore(&previous);
    if (failed) {
        sx_db_release(db);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "a rank's thread could not be started: %s",
                            strerror(failed));
    }
    ranks->n_followers++;
    return SX_OK;
}

enum sx_status sx_ranks_start_local(struct stachio_db *db, const struct stachio_options *options, int n,
                                    struct sx_error *error) {
    struct sx_net **nets = calloc((size_t)n, sizeof *nets);
    struct sx_ranks *ranks = calloc(1, sizeof *ranks);
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    enum sx_status status = nets && ranks && threads
                                ? sx_net_local_create(n, nets, error)
                                : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for ranks");
    if (status != SX_OK) {
        free(nets);
        free(ranks);
        free(threads);
        return status;
    }
    ranks->threads = threads;
    db->ranks = ranks;
    db->net = nets[0];
    int started = 1;
    for (; status == SX_OK && started < n; started++)
        status = start_follower(ranks, options, nets[started], error);
    if (status != SX_OK) /* those that did not start are as dead */
        for (int r = started - 1; r < n; r++)
            sx_net_local_kill(nets[r]);
    free(nets);
    return status;
}

void sx_ranks_stop(struct stachio_db *db) {
    if (!db->ranks)
        return;
    sx_ranks_tell_stop(db);
    sx_net_close(db->net);
    db->net = NULL;
    for (int i = 0; i < db->ranks->n_followers; i++)
        pthread_join(db->ranks->threads[i], NULL);
    free(db->ranks->threads);
    free(db->ranks);
    db->ranks = NULL;
}
