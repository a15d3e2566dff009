/* Inside of src/api: where ranks are, and which of a machine's devices is meant for which. */
#ifndef SX_API_PLACEMENT_H
#define SX_API_PLACEMENT_H

#include <stachio.h>

#include "base/arena.h"
#include "net/net.h"

/* As ranks tell it each other: a stachio_topology_rank without its number. */
struct sx_placement {
    char host[256], gpu_name[128], gpu_bus[32], interface[64];
    int64_t pid;
    int local_rank, node, gpu;
};

/* This machine, by libstachio_topology.so (beside libstachio, or what STACHIO_TOPOLOGY_LIBRARY names), but
 * for the ranks. */
SX_MUST_CHECK enum sx_status sx_discover(struct sx_arena *arena, struct stachio_topology *out_topology,
                                         struct sx_error *error);

/* Collective, with each rank's own machine; out: one per rank. */
SX_MUST_CHECK enum sx_status sx_place(struct sx_net *net, const struct stachio_topology *topology,
                                      struct sx_placement *out_placements, struct sx_error *error);

#endif
