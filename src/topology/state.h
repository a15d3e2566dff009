/* Inside of libstachio_topology.so: a machine while it is being looked at. */
#ifndef SX_TOPOLOGY_STATE_H
#define SX_TOPOLOGY_STATE_H

#include <hwloc.h>
#include <stdbool.h>

#include "topology/load.h"

/* Devices of a kind, with hwloc's objects of them. */
struct sx_devices {
    struct stachio_topology_device *told;
    hwloc_obj_t *objects;
    int n;
};

struct sx_machine {
    hwloc_topology_t hwloc;
    struct sx_arena *arena;
    const char *root; /* of the files that tell of devices; NULL: they are of another machine */
    int n_packages;
    struct stachio_topology_node *nodes;
    hwloc_obj_t *node_objects;
    int n_nodes;
    struct sx_devices gpus, interfaces, disks;
};

/* Finds GPUs, network interfaces and NVMe devices on the PCI buses. */
SX_MUST_CHECK enum sx_status sx_machine_find_devices(struct sx_machine *machine, struct sx_error *error);

/* Tells each node and device which GPU and which interface is nearest to it. */
SX_MUST_CHECK enum sx_status sx_machine_pair(struct sx_machine *machine, struct sx_error *error);

/* What the system's files tell; nothing (NULL, 0, false) where they don't. */
const char *sx_machine_gpu_name(const struct sx_machine *machine, const char *bus);
int64_t sx_machine_link_rate(const struct sx_machine *machine, const char *interface, const char *rdma);
bool sx_machine_link_is_down(const struct sx_machine *machine, const char *interface, const char *rdma);

#endif
