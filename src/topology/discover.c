#include <stdlib.h>
#include <string.h>

#include "topology/state.h"

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "topology: no memory");
}

/* They start what they look for (CUDA, OpenCL, a display), to tell what the PCI buses tell as well. */
static void leave_out_slow_parts(hwloc_topology_t hwloc) {
    static const char *const parts[] = {"cuda", "nvml", "opencl", "gl", "rsmi", "levelzero"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        (void)hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, parts[i]);
}

static enum sx_status load(hwloc_topology_t hwloc, struct sx_error *error) {
    const char *xml = getenv("HWLOC_XMLFILE");
    leave_out_slow_parts(hwloc);
    if (xml && *xml && hwloc_topology_set_xml(hwloc, xml) != 0)
        return sx_error_set(error, SX_FILE, "HWLOC_XMLFILE: %s is not there, or no topology of hwloc", xml);
    if (hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 ||
        hwloc_topology_load(hwloc) != 0)
        return xml && *xml ? sx_error_set(error, SX_FILE, "HWLOC_XMLFILE: hwloc can't load %s", xml)
                           : sx_error_set(error, SX_INTERNAL, "topology: hwloc can't tell of this machine");
    return SX_OK;
}

/* hwloc reads the files of another machine below HWLOC_FSROOT. */
static const char *root_of_files(hwloc_topology_t hwloc) {
    const char *root = getenv("HWLOC_FSROOT");
    if (root && *root)
        return root;
    return hwloc_topology_is_thissystem(hwloc) ? "" : NULL;
}

static bool describe_node(struct sx_machine *machine, hwloc_obj_t object,
                          struct stachio_topology_node *node) {
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(machine->hwloc, HWLOC_OBJ_PACKAGE, object);
    char *list = NULL;
    if (hwloc_bitmap_list_asprintf(&list, object->cpuset) < 0)
        return false;
    node->number = (int)object->os_index;
    node->package = package ? (int)package->logical_index : -1;
    node->processors = hwloc_bitmap_weight(object->cpuset);
    node->processor_list = sx_arena_format(machine->arena, "%s", list);
    node->memory_bytes = (int64_t)object->attr->numanode.local_memory;
    free(list);
    return node->processor_list != NULL;
}

static enum sx_status find_nodes(struct sx_machine *machine, struct sx_error *error) {
    const int n = hwloc_get_nbobjs_by_type(machine->hwloc, HWLOC_OBJ_NUMANODE);
    machine->nodes = SX_ARENA_ARRAY(machine->arena, n, struct stachio_topology_node);
    machine->node_objects = SX_ARENA_ARRAY(machine->arena, n, hwloc_obj_t);
    if (!machine->nodes || !machine->node_objects)
        return no_memory(error);
    for (int i = 0; i < n; i++) {
        machine->node_objects[i] = hwloc_get_obj_by_type(machine->hwloc, HWLOC_OBJ_NUMANODE, (unsigned)i);
        if (!describe_node(machine, machine->node_objects[i], &machine->nodes[i]))
            return no_memory(error);
    }
    machine->n_nodes = n;
    machine->n_packages = hwloc_get_nbobjs_by_type(machine->hwloc, HWLOC_OBJ_PACKAGE);
    return SX_OK;
}

static enum sx_status look(struct sx_machine *machine, struct stachio_topology *out, struct sx_error *error) {
    SX_TRY(load(machine->hwloc, error));
    machine->root = root_of_files(machine->hwloc);
    SX_TRY(find_nodes(machine, error));
    SX_TRY(sx_machine_find_devices(machine, error));
    SX_TRY(sx_machine_pair(machine, error));
    const char *host = hwloc_obj_get_info_by_name(hwloc_get_root_obj(machine->hwloc), "HostName");
    *out = (struct stachio_topology){
        .host = sx_arena_format(machine->arena, "%s", host ? host : "unknown"),
        .packages = machine->n_packages,
        .nodes = machine->nodes,
        .n_nodes = machine->n_nodes,
        .gpus = machine->gpus.told,
        .n_gpus = machine->gpus.n,
        .interfaces = machine->interfaces.told,
        .n_interfaces = machine->interfaces.n,
        .disks = machine->disks.told,
        .n_disks = machine->disks.n,
    };
    return out->host ? SX_OK : no_memory(error);
}

__attribute__((visibility("default"))) enum sx_status sx_topology_discover(
    struct sx_arena *arena, struct stachio_topology *out_topology, struct sx_error *error);

enum sx_status sx_topology_discover(struct sx_arena *arena, struct stachio_topology *out_topology,
                                    struct sx_error *error) {
    struct sx_machine machine = {.arena = arena};
    if (hwloc_topology_init(&machine.hwloc) != 0)
        return no_memory(error);
    enum sx_status status = look(&machine, out_topology, error);
    hwloc_topology_destroy(machine.hwloc);
    return status;
}
