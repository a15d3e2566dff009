/* Whether rows go from GPU to GPU, or by way of the host's memory: decided once, for all ranks. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/library.h"
#include "api/ranks.h"
#include "base/look.h"
#include "net/nccl/load.h"

enum { REASON_BYTES = 128 };

struct functions {
    sx_nccl_create_function create;
    sx_nccl_make_id_function make_id;
    sx_nccl_set_id_function set_id;
};

static struct functions find_functions(const struct stachio_db *db) {
    void *library = db->device.library;
    return (struct functions){
        (sx_nccl_create_function)(uintptr_t)dlsym(library, "sx_nccl_create"),
        (sx_nccl_make_id_function)(uintptr_t)dlsym(library, "sx_nccl_make_id"),
        (sx_nccl_set_id_function)(uintptr_t)dlsym(library, "sx_nccl_set_id"),
    };
}

static bool is_shared(const struct stachio_db *db, int n_ranks, int rank) {
    for (int r = 0; r < n_ranks; r++)
        if (r != rank && !strcmp(db->seats[r].host, db->seats[rank].host) &&
            !strcmp(db->seats[r].bus, db->seats[rank].bus))
            return true;
    return false;
}

static bool is_wanted(const char *transport) {
    const char *wanted = sx_environment("STACHIO_TRANSPORT");
    return wanted && !strcmp(wanted, transport);
}

/* This rank's link, which has no id yet, or why there is none. */
static void create_link(const struct stachio_db *db, const struct functions *functions, struct sx_net *net,
                        struct sx_link **out_link, char reason[REASON_BYTES]) {
    struct sx_error error = {0};
    if (is_wanted("host"))
        snprintf(reason, REASON_BYTES, "STACHIO_TRANSPORT=host");
    else if (is_shared(db, sx_net_size(net), sx_net_rank(net)))
        snprintf(reason, REASON_BYTES, "ranks share a GPU");
    else if (!functions->create || !functions->make_id || !functions->set_id)
        snprintf(reason, REASON_BYTES, "the CUDA library has no NCCL");
    else if (functions->create(db->backend, db->pool, out_link, &error) != SX_OK)
        snprintf(reason, REASON_BYTES, "%.100s", error.text);
}

/* The first rank's that has one comes to all. */
static enum sx_status share_reason(struct sx_net *net, char reason[REASON_BYTES], struct sx_error *error) {
    const int size = sx_net_size(net);
    char *all = calloc((size_t)size, REASON_BYTES);
    enum sx_status status = all ? sx_net_gather(net, reason, REASON_BYTES, all, NULL, error)
                                : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", size);
    for (int r = size - 1; status == SX_OK && r >= 0; r--)
        if (all[(size_t)r * REASON_BYTES])
            memcpy(reason, all + (size_t)r * REASON_BYTES, REASON_BYTES);
    free(all);
    return status;
}

/* What goes wrong here is a reason, too. */
static enum sx_status share_id(const struct functions *functions, struct sx_net *net, struct sx_link *link,
                               char reason[REASON_BYTES], struct sx_error *error) {
    struct sx_arena arena = {0};
    struct sx_error problem = {0};
    char id[SX_NCCL_ID_BYTES] = {0};
    const void *data = id;
    size_t bytes = sizeof id;
    if (sx_net_rank(net) == 0 && functions->make_id(id, &problem) != SX_OK)
        bytes = 0;
    enum sx_status status = sx_net_broadcast(net, 0, &arena, &data, &bytes, NULL, error);
    if (status == SX_OK && bytes == sizeof id)
        functions->set_id(link, sx_net_rank(net), sx_net_size(net), data);
    snprintf(reason, REASON_BYTES, "%.100s", problem.text);
    sx_arena_release(&arena);
    return status == SX_OK ? share_reason(net, reason, error) : status;
}

/* A link, or the reason why there is none. */
static enum sx_status find_link(struct stachio_db *db, struct sx_net *net, struct sx_link **out_link,
                                char reason[REASON_BYTES], struct sx_error *error) {
    struct sx_link *link = NULL;
    const struct functions functions = find_functions(db);
    create_link(db, &functions, net, &link, reason);
    enum sx_status status = share_reason(net, reason, error);
    if (status == SX_OK && !*reason)
        status = share_id(&functions, net, link, reason, error);
    if (link && (*reason || status != SX_OK)) {
        link->ops->destroy(link, false);
        link = NULL;
    }
    *out_link = link;
    return status;
}

/* Now, while there is another way if that fails. */
static enum sx_status connect_now(struct sx_net *net, struct sx_link *link, char reason[REASON_BYTES],
                                  struct sx_error *error) {
    struct sx_error problem = {0};
    if (link->ops->connect(link, sx_link_gives_up, net, &problem) != SX_OK)
        snprintf(reason, REASON_BYTES, "%.100s", problem.text);
    return share_reason(net, reason, error);
}

/* How rows go from GPU to GPU. */
struct ways {
    struct sx_link *link;     /* NULL: by way of the host */
    struct sx_puller *puller; /* NULL: by the link alone */
    int n_pulls;              /* ranks */
};

static void drop(struct ways *ways) {
    if (ways->link)
        ways->link->ops->destroy(ways->link, false);
    if (ways->puller)
        ways->puller->ops->destroy(ways->puller);
    *ways = (struct ways){0};
}

/* On all ranks: memory that others have open is not freed. */
static enum sx_status drop_together(struct sx_net *net, struct ways *ways, struct sx_error *error) {
    if (ways->puller)
        ways->puller->ops->let_go(ways->puller);
    const enum sx_status status = sx_net_barrier(net, NULL, error);
    drop(ways);
    return status;
}

/* Pulls, where ranks reach each other's memory. A link that will hardly be needed connects when it is: it
 * takes some 0.4 s. */
static enum sx_status find_ways(struct stachio_db *db, struct sx_net *net, struct ways *out,
                                char reason[REASON_BYTES], struct sx_error *error) {
    bool all_pull = false;
    SX_TRY(find_link(db, net, &out->link, reason, error));
    if (!out->link)
        return SX_OK;
    enum sx_status status = sx_ranks_find_puller(db, net, &out->puller, &out->n_pulls, &all_pull, error);
    if (status == SX_OK && !all_pull)
        status = connect_now(net, out->link, reason, error);
    if (status == SX_OK && *reason)
        return drop_together(net, out, error);
    if (status != SX_OK)
        drop(out);
    return status;
}

/* Waiting threads may look before they sleep where each has a processor (ranks are processes here). */
static int64_t choose_spin(const struct stachio_db *db) {
    enum { NET_THREADS = 5, SPIN_NS = 2000000, LOOKING_SHARE = 2 /* of the processors */ };
    sx_look_set_most(db->processors / LOOKING_SHARE);
    return db->processors >= db->threads + NET_THREADS ? SPIN_NS : 0;
}

/* Takes the ways over. */
static enum sx_status set_ways(struct stachio_db *db, struct sx_net *net, const struct ways *ways,
                               struct sx_error *error) {
    const size_t length = strlen(db->network);
    sx_net_set_spin(net, choose_spin(db));
    const enum sx_status status = sx_net_set_link(net, ways->link, error);
    if (!ways->puller)
        return status;
    if (status != SX_OK) {
        ways->puller->ops->destroy(ways->puller);
        return status;
    }
    snprintf(db->network + length, sizeof db->network - length, "; %d ranks pull from each other's memory",
             ways->n_pulls + 1);
    return sx_net_set_puller(net, ways->puller, error);
}

enum sx_status sx_ranks_link(struct stachio_db *db, struct sx_net *net, struct sx_error *error) {
    char reason[REASON_BYTES] = "", demand[REASON_BYTES] = ""; /* one rank's is all ranks' */
    struct ways ways = {0};
    snprintf(db->network, sizeof db->network, "%s", sx_net_transport(net));
    if (sx_net_size(net) == 1)
        return SX_OK;
    if (is_wanted("nccl"))
        snprintf(demand, sizeof demand, "STACHIO_TRANSPORT=nccl");
    SX_TRY(share_reason(net, demand, error));
    if (db->device.library)
        SX_TRY(find_ways(db, net, &ways, reason, error));
    if (*demand && !ways.link)
        return sx_error_set(error, SX_USAGE, "%s: %s", demand, *reason ? reason : "ranks run on processors");
    if (!db->device.library)
        return SX_OK;
    snprintf(db->network, sizeof db->network, "%.100s; GPU to GPU by %s%s", sx_net_transport(net),
             ways.link ? ways.link->name : "the host's memory: ", ways.link ? "" : reason);
    return ways.link ? set_ways(db, net, &ways, error) : SX_OK;
}
