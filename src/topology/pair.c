/* What is near to what: the deeper the object in hwloc's tree that has both below it, the nearer. */
#include "topology/state.h"

static int depth_of(hwloc_obj_t object) {
    int depth = 0;
    for (; object->parent; object = object->parent)
        depth++;
    return depth;
}

static hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b) {
    int depth_a = depth_of(a), depth_b = depth_of(b);
    for (; depth_a > depth_b; depth_a--)
        a = a->parent;
    for (; depth_b > depth_a; depth_b--)
        b = b->parent;
    for (; a != b; b = b->parent)
        a = a->parent;
    return a;
}

/* Where there is one package hwloc may put the buses below the machine. */
static enum stachio_path path_through(const struct sx_machine *machine, hwloc_obj_t ancestor) {
    if (ancestor->type == HWLOC_OBJ_PCI_DEVICE)
        return STACHIO_PATH_SWITCH;
    if (ancestor->type == HWLOC_OBJ_BRIDGE)
        return ancestor->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? STACHIO_PATH_SWITCH
                                                                            : STACHIO_PATH_ROOT;
    return ancestor->type == HWLOC_OBJ_MACHINE && machine->n_packages > 1 ? STACHIO_PATH_MACHINE
                                                                          : STACHIO_PATH_PACKAGE;
}

/* One that may serve; the first fields count most. */
struct candidate {
    int is_up, depth, has_rdma;
    int64_t bits_per_second;
    int users;
};

static bool is_better(const struct candidate *a, const struct candidate *b) {
    if (a->is_up != b->is_up)
        return a->is_up > b->is_up;
    if (a->depth != b->depth)
        return a->depth > b->depth;
    if (a->has_rdma != b->has_rdma)
        return a->has_rdma > b->has_rdma;
    if (a->bits_per_second != b->bits_per_second)
        return a->bits_per_second > b->bits_per_second;
    return a->users < b->users;
}

/* The best of `devices` for `object`, or -1. `users`: of each device so far; NULL: they don't count. */
static int find_nearest(const struct sx_machine *machine, hwloc_obj_t object,
                        const struct sx_devices *devices, const int *users, enum stachio_path *out_path) {
    struct candidate best = {0};
    int found = -1;
    *out_path = STACHIO_PATH_NONE;
    for (int i = 0; i < devices->n; i++) {
        hwloc_obj_t ancestor = common_ancestor(object, devices->objects[i]);
        const struct stachio_topology_device *device = &devices->told[i];
        const struct candidate candidate = {.is_up = !device->is_down,
                                            .depth = depth_of(ancestor),
                                            .has_rdma = device->rdma != NULL,
                                            .bits_per_second = device->bits_per_second,
                                            .users = users ? users[i] : 0};
        if (found >= 0 && !is_better(&candidate, &best))
            continue;
        best = candidate;
        found = i;
        *out_path = path_through(machine, ancestor);
    }
    return found;
}

static void pair_all(const struct sx_machine *machine, struct sx_devices *devices) {
    for (int i = 0; i < devices->n; i++) {
        struct stachio_topology_device *device = &devices->told[i];
        hwloc_obj_t object = devices->objects[i];
        device->gpu = find_nearest(machine, object, &machine->gpus, NULL, &device->gpu_path);
        device->interface =
            find_nearest(machine, object, &machine->interfaces, NULL, &device->interface_path);
    }
}

enum sx_status sx_machine_pair(struct sx_machine *machine, struct sx_error *error) {
    enum stachio_path ignored;
    int *users = SX_ARENA_ARRAY(machine->arena, machine->interfaces.n, int);
    if (!users)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "topology: no memory for pairs");
    for (int i = 0; i < machine->n_nodes; i++)
        machine->nodes[i].interface =
            find_nearest(machine, machine->node_objects[i], &machine->interfaces, NULL, &ignored);
    pair_all(machine, &machine->gpus);
    pair_all(machine, &machine->interfaces);
    pair_all(machine, &machine->disks);
    /* Interfaces that are as near and as fast are shared out among the GPUs. */
    for (int i = 0; i < machine->gpus.n; i++) {
        struct stachio_topology_device *gpu = &machine->gpus.told[i];
        gpu->interface = find_nearest(machine, machine->gpus.objects[i], &machine->interfaces, users,
                                      &gpu->interface_path);
        if (gpu->interface >= 0)
            users[gpu->interface]++;
    }
    return SX_OK;
}
