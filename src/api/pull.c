/* Which ranks pull messages out of each other's GPUs: found by trying, once. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "api/library.h"
#include "api/ranks.h"
#include "net/peer/load.h"

struct functions {
    sx_peer_create_function create;
    sx_peer_try_function try;
    sx_peer_allow_function allow;
};

/* What a rank tells the others. */
struct trial {
    bool is_there;
    struct sx_pull_source source;
};

static struct functions find_functions(const struct stachio_db *db) {
    void *library = db->device.library;
    return (struct functions){
        (sx_peer_create_function)(uintptr_t)dlsym(library, "sx_peer_create"),
        (sx_peer_try_function)(uintptr_t)dlsym(library, "sx_peer_try"),
        (sx_peer_allow_function)(uintptr_t)dlsym(library, "sx_peer_allow"),
    };
}

/* NCCL's variable keeps NCCL from other GPUs' memory, and means pulls as well. */
static bool is_wanted(void) {
    const char *transport = sx_environment("STACHIO_TRANSPORT"),
               *disabled = sx_environment("NCCL_P2P_DISABLE");
    return !(transport && !strcmp(transport, "nccl")) &&
           !(disabled && *disabled && strcmp(disabled, "0") != 0);
}

static bool is_neighbour(const struct stachio_db *db, int me, int rank) {
    return rank != me && !strcmp(db->seats[rank].host, db->seats[me].host);
}

/* Pulls from all that offer something; `reached`: by rank. */
static void try_all(const struct stachio_db *db, int me, int size, const struct functions *functions,
                    struct sx_puller *puller, const struct trial *trials, bool *reached) {
    for (int r = 0; puller && r < size; r++)
        reached[r] =
            is_neighbour(db, me, r) && trials[r].is_there && functions->try(puller, r, &trials[r].source);
}

/* all[r * size + s]: r pulls from s. The number of ranks that pull from this one, or that it pulls from. */
static int allow_all(int me, int size, const struct functions *functions, struct sx_puller *puller,
                     const bool *all) {
    int n = 0;
    for (int r = 0; puller && r < size; r++) {
        const bool is_reached = all[me * size + r], reaches = all[r * size + me];
        if (reaches)
            functions->allow(puller, r);
        n += is_reached || reaches;
    }
    return n;
}

static bool reach_each_other(int size, const bool *all) {
    bool is_so = true;
    for (int i = 0; i < size * size; i++)
        is_so = is_so && (all[i] || i / size == i % size);
    return is_so;
}

static enum sx_status meet(const struct stachio_db *db, struct sx_net *net, const struct functions *functions,
                           struct sx_puller *puller, const struct trial *own, struct trial *trials,
                           bool *reached, bool *all, int *out_n, bool *out_all, struct sx_error *error) {
    const int me = sx_net_rank(net), size = sx_net_size(net);
    SX_TRY(sx_net_gather(net, own, sizeof *own, trials, NULL, error));
    try_all(db, me, size, functions, puller, trials, reached);
    SX_TRY(sx_net_gather(net, reached, (size_t)size * sizeof *reached, all, NULL, error));
    *out_n = allow_all(me, size, functions, puller, all);
    *out_all = reach_each_other(size, all);
    return SX_OK;
}

enum sx_status sx_ranks_find_puller(struct stachio_db *db, struct sx_net *net, struct sx_puller **out_puller,
                                    int *out_n, bool *out_all, struct sx_error *error) {
    const size_t size = (size_t)sx_net_size(net);
    const struct functions functions = find_functions(db);
    struct sx_puller *puller = NULL;
    struct trial own = {0};
    if (is_wanted() && functions.create && functions.try && functions.allow)
        own.is_there = functions.create(db->backend, db->pool, sx_net_rank(net), (int)size, &puller,
                                        &own.source, &(struct sx_error){0}) == SX_OK;
    struct trial *trials = calloc(size, sizeof *trials);
    bool *reached = calloc(size * (size + 1), sizeof *reached);
    enum sx_status status =
        trials && reached
            ? meet(db, net, &functions, puller, &own, trials, reached, reached + size, out_n, out_all, error)
            : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %zu ranks", size);
    free(trials);
    free(reached);
    if (puller && (status != SX_OK || *out_n == 0)) {
        puller->ops->destroy(puller);
        puller = NULL;
    }
    *out_puller = puller;
    return status;
}
