#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/state.h"

enum { VENDOR_NVIDIA = 0x10de, CLASS_DISPLAY = 0x03 };

/* The number of the NUMA node that the object belongs to; -1 where that is the whole of a machine of several.
 */
static int node_number(const struct sx_machine *machine, hwloc_obj_t object) {
    hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(machine->hwloc, object);
    hwloc_obj_t root = hwloc_get_root_obj(machine->hwloc);
    if (hwloc_bitmap_isequal(place->nodeset, root->nodeset) && hwloc_bitmap_weight(root->nodeset) > 1)
        return -1;
    return hwloc_bitmap_first(place->nodeset);
}

/* The next one of the kind; NULL: no memory. */
static struct stachio_topology_device *add(struct sx_machine *machine, struct sx_devices *devices,
                                           hwloc_obj_t pci, const char *name) {
    const struct hwloc_pcidev_attr_s *at = &pci->attr->pcidev;
    struct stachio_topology_device *device = &devices->told[devices->n];
    *device = (struct stachio_topology_device){
        .name = sx_arena_format(machine->arena, "%s", name),
        .bus = sx_arena_format(machine->arena, "%04x:%02x:%02x.%x", (unsigned)at->domain, (unsigned)at->bus,
                               (unsigned)at->dev, (unsigned)at->func),
        .node = node_number(machine, pci),
    };
    if (!device->name || !device->bus)
        return NULL;
    devices->objects[devices->n++] = pci;
    return device;
}

static bool add_gpu(struct sx_machine *machine, hwloc_obj_t pci) {
    const char *known = hwloc_obj_get_info_by_name(pci, "PCIDevice");
    char number[16];
    snprintf(number, sizeof number, "%04x:%04x", (unsigned)pci->attr->pcidev.vendor_id,
             (unsigned)pci->attr->pcidev.device_id);
    struct stachio_topology_device *gpu = add(machine, &machine->gpus, pci, known ? known : number);
    const char *name = gpu ? sx_machine_gpu_name(machine, gpu->bus) : NULL;
    if (name)
        gpu->name = name;
    return gpu != NULL;
}

static bool add_interface(struct sx_machine *machine, hwloc_obj_t pci, const char *name, const char *rdma) {
    struct stachio_topology_device *device = add(machine, &machine->interfaces, pci, name);
    if (!device)
        return false;
    device->rdma = rdma ? sx_arena_format(machine->arena, "%s", rdma) : NULL;
    device->bits_per_second = sx_machine_link_rate(machine, name, rdma);
    device->is_down = sx_machine_link_is_down(machine, name, rdma);
    return !rdma || device->rdma;
}

static bool add_disk(struct sx_machine *machine, hwloc_obj_t pci, hwloc_obj_t block) {
    struct stachio_topology_device *disk = add(machine, &machine->disks, pci, block->name);
    const char *kibibytes = hwloc_obj_get_info_by_name(block, "Size");
    const char *model = hwloc_obj_get_info_by_name(block, "Model");
    if (!disk)
        return false;
    disk->bytes = kibibytes ? strtoll(kibibytes, NULL, 10) * 1024 : 0;
    disk->model = model ? sx_arena_format(machine->arena, "%s", model) : NULL;
    return !model || disk->model;
}

/* What the system made of a PCI device: interfaces, of which all are by the one RDMA device, and disks. */
static bool add_parts(struct sx_machine *machine, hwloc_obj_t pci) {
    const char *rdma = NULL;
    bool has_interface = false, fits = true;
    for (hwloc_obj_t part = pci->io_first_child; part; part = part->next_sibling)
        if (part->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && !rdma)
            rdma = part->name;
    for (hwloc_obj_t part = pci->io_first_child; fits && part; part = part->next_sibling) {
        if (part->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) {
            fits = add_interface(machine, pci, part->name, rdma);
            has_interface = true;
        } else if (part->attr->osdev.type == HWLOC_OBJ_OSDEV_BLOCK && !strncmp(part->name, "nvme", 4)) {
            fits = add_disk(machine, pci, part);
        }
    }
    return fits && rdma && !has_interface ? add_interface(machine, pci, rdma, rdma) : fits;
}

static bool make_room(struct sx_machine *machine, struct sx_devices *devices, int most) {
    devices->told = SX_ARENA_ARRAY(machine->arena, most, struct stachio_topology_device);
    devices->objects = SX_ARENA_ARRAY(machine->arena, most, hwloc_obj_t);
    return devices->told && devices->objects;
}

static uint64_t address_of(hwloc_obj_t pci) {
    const struct hwloc_pcidev_attr_s *at = &pci->attr->pcidev;
    return (uint64_t)at->domain << 32 | (uint64_t)at->bus << 16 | (uint64_t)at->dev << 8 | at->func;
}

static int compare_addresses(const void *a, const void *b) {
    const uint64_t address_a = address_of(*(const hwloc_obj_t *)a);
    const uint64_t address_b = address_of(*(const hwloc_obj_t *)b);
    return (address_a > address_b) - (address_a < address_b);
}

/* In the order of addresses; hwloc has them package by package. */
static hwloc_obj_t *sorted_pci_devices(const struct sx_machine *machine, int n) {
    hwloc_obj_t *devices = SX_ARENA_ARRAY(machine->arena, n, hwloc_obj_t);
    for (int i = 0; devices && i < n; i++)
        devices[i] = hwloc_get_obj_by_type(machine->hwloc, HWLOC_OBJ_PCI_DEVICE, (unsigned)i);
    if (devices)
        qsort(devices, (size_t)n, sizeof *devices, compare_addresses);
    return devices;
}

enum sx_status sx_machine_find_devices(struct sx_machine *machine, struct sx_error *error) {
    const int n_pci = hwloc_get_nbobjs_by_type(machine->hwloc, HWLOC_OBJ_PCI_DEVICE);
    const int n_os = hwloc_get_nbobjs_by_type(machine->hwloc, HWLOC_OBJ_OS_DEVICE);
    hwloc_obj_t *devices = sorted_pci_devices(machine, n_pci);
    bool fits = devices && make_room(machine, &machine->gpus, n_pci) &&
                make_room(machine, &machine->interfaces, n_os) && make_room(machine, &machine->disks, n_os);
    for (int i = 0; fits && i < n_pci; i++) {
        const struct hwloc_pcidev_attr_s *about = &devices[i]->attr->pcidev;
        if (about->vendor_id == VENDOR_NVIDIA && about->class_id >> 8 == CLASS_DISPLAY)
            fits = add_gpu(machine, devices[i]);
        else
            fits = add_parts(machine, devices[i]);
    }
    return fits ? SX_OK : sx_error_set(error, SX_OUT_OF_MEMORY, "topology: no memory for devices");
}
