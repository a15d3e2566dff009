/* What the machine has, and what is meant for which rank. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/library.h"
#include "api/ranks.h"
#include "api/seat.h"
#include "topology/load.h"

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "topology: no memory");
}

enum sx_status sx_discover(struct sx_arena *arena, struct stachio_topology *out_topology,
                           struct sx_error *error) {
    char problem[512];
    void *library = sx_library_load("libstachio_topology.so", "STACHIO_TOPOLOGY_LIBRARY",
                                    RTLD_NOW | RTLD_LOCAL, problem, sizeof problem);
    if (!library)
        return sx_error_set(error, SX_USAGE, "topology: there is no hwloc, or no library of ours for it: %s",
                            problem);
    sx_topology_discover_function discover =
        (sx_topology_discover_function)(uintptr_t)dlsym(library, "sx_topology_discover");
    enum sx_status status =
        discover ? discover(arena, out_topology, error)
                 : sx_error_set(error, SX_USAGE, "topology: the library lacks sx_topology_discover");
    dlclose(library);
    return status;
}

/* ---- the choice ---- */

/* With processors: others are memory of devices. */
static int count_nodes(const struct stachio_topology *topology) {
    int n = 0;
    for (int i = 0; i < topology->n_nodes; i++)
        n += topology->nodes[i].processors > 0;
    return n;
}

/* The position of the node that is meant for it: those with processors, in turn. -1: there is none. */
static int choose_node(const struct stachio_topology *topology, int local_rank) {
    const int n = count_nodes(topology);
    int left = n > 0 ? local_rank % n : 0;
    for (int i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].processors > 0 && left-- == 0)
            return i;
    return -1;
}

static void choose(const struct stachio_topology *topology, int local_rank, struct sx_placement *placement) {
    int interface = -1;
    placement->local_rank = local_rank;
    placement->gpu = placement->node = -1;
    if (topology->n_gpus > 0) {
        placement->gpu = local_rank % topology->n_gpus;
        const struct stachio_topology_device *gpu = &topology->gpus[placement->gpu];
        snprintf(placement->gpu_name, sizeof placement->gpu_name, "%s", gpu->name);
        snprintf(placement->gpu_bus, sizeof placement->gpu_bus, "%s", gpu->bus);
        placement->node = gpu->node;
        interface = gpu->interface;
    } else {
        const int node = choose_node(topology, local_rank);
        placement->node = node < 0 ? -1 : topology->nodes[node].number;
        interface = node < 0 ? -1 : topology->nodes[node].interface;
    }
    if (interface >= 0)
        snprintf(placement->interface, sizeof placement->interface, "%s",
                 topology->interfaces[interface].name);
}

enum sx_status sx_place(struct sx_net *net, const struct stachio_topology *topology,
                        struct sx_placement *out_placements, struct sx_error *error) {
    struct sx_seat *seats = calloc((size_t)sx_net_size(net), sizeof *seats);
    struct sx_placement own = {0};
    int local_rank = 0;
    enum sx_status status = seats ? sx_seats_meet(net, seats, &local_rank, error) : no_memory(error);
    if (status == SX_OK) {
        const struct sx_seat *seat = &seats[sx_net_rank(net)];
        own.pid = seat->pid;
        memcpy(own.host, seat->host, sizeof own.host);
        choose(topology, local_rank, &own);
        status = sx_net_gather(net, &own, sizeof own, out_placements, NULL, error);
    }
    free(seats);
    return status;
}

/* ---- what is told ---- */

/* Of one rank alone: those that could be. */
static void suppose(const struct stachio_topology *topology, struct sx_placement *placements, int n) {
    for (int r = 0; r < n; r++) {
        snprintf(placements[r].host, sizeof placements[r].host, "%s", topology->host);
        choose(topology, r, &placements[r]);
    }
}

static enum sx_status tell_ranks(struct sx_arena *arena, const struct sx_placement *placements, int n,
                                 struct stachio_topology *topology, struct sx_error *error) {
    struct stachio_topology_rank *ranks = SX_ARENA_ARRAY(arena, n, struct stachio_topology_rank);
    for (int r = 0; ranks && r < n; r++) {
        const struct sx_placement *placement = &placements[r];
        ranks[r] = (struct stachio_topology_rank){.rank = r,
                                                  .local_rank = placement->local_rank,
                                                  .host = placement->host,
                                                  .pid = placement->pid,
                                                  .node = placement->node,
                                                  .gpu = placement->gpu,
                                                  .gpu_bus = placement->gpu_bus,
                                                  .gpu_name = placement->gpu_name,
                                                  .interface = placement->interface};
    }
    topology->ranks = ranks;
    topology->n_ranks = n;
    return ranks ? SX_OK : no_memory(error);
}

static enum sx_status tell_all(struct stachio_db *db, struct stachio_topology *topology,
                               struct sx_error *error) {
    struct sx_arena *arena = &db->topology_arena;
    SX_TRY(sx_discover(arena, topology, error));
    const int n = db->net                ? sx_net_size(db->net)
                  : topology->n_gpus > 0 ? topology->n_gpus
                                         : count_nodes(topology);
    struct sx_placement *placements = SX_ARENA_ARRAY(arena, n, struct sx_placement);
    if (!placements)
        return no_memory(error);
    if (db->net)
        SX_TRY(sx_ranks_place(db, topology, placements, error));
    else
        suppose(topology, placements, n);
    return tell_ranks(arena, placements, n, topology, error);
}

enum stachio_status stachio_topology(struct stachio_db *db, const struct stachio_topology **out_topology,
                                     struct stachio_error *error) {
    struct sx_error inner = {0};
    pthread_mutex_lock(&db->lock);
    sx_arena_release(&db->topology_arena);
    struct stachio_topology *topology = SX_ARENA_NEW(&db->topology_arena, struct stachio_topology);
    enum sx_status status = topology ? tell_all(db, topology, &inner) : no_memory(&inner);
    pthread_mutex_unlock(&db->lock);
    if (status != SX_OK)
        return sx_api_fail(&inner, error);
    *out_topology = topology;
    return STACHIO_OK;
}
