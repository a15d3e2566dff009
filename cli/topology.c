#include "topology.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench_report.h"
#include "message.h"

/* ---- as tables ---- */

static const char *path_name(enum stachio_path path) {
    static const char *const names[] = {"-", "machine", "package", "root", "switch"};
    return names[path];
}

enum { NUMBER_BYTES = 16 };

/* "-": none. */
static const char *number_text(int number, char buffer[NUMBER_BYTES]) {
    snprintf(buffer, NUMBER_BYTES, number < 0 ? "-" : "%d", number);
    return buffer;
}

static const char *interface_name(const struct stachio_topology *topology, int interface) {
    return interface < 0 ? "-" : topology->interfaces[interface].name;
}

static void show_nodes(const struct stachio_topology *topology, struct text *out) {
    char size[SIZE_TEXT_BYTES], number[NUMBER_BYTES];
    long long processors = 0;
    double bytes = 0;
    for (int i = 0; i < topology->n_nodes; i++) {
        processors += topology->nodes[i].processors;
        bytes += (double)topology->nodes[i].memory_bytes;
    }
    text_format(out, "Host %s, packages: %d, NUMA nodes: %d, processors: %lld, memory: %s\n\n",
                topology->host, topology->packages, topology->n_nodes, processors, size_text(bytes, size));
    text_format(out, "%9s  %7s  %9s  %-12s  processors\n", "NUMA node", "package", "memory", "network");
    for (int i = 0; i < topology->n_nodes; i++) {
        const struct stachio_topology_node *node = &topology->nodes[i];
        text_format(out, "%9d  %7s  %9s  %-12s  %s\n", node->number, number_text(node->package, number),
                    size_text((double)node->memory_bytes, size), interface_name(topology, node->interface),
                    node->processors ? node->processor_list : "-");
    }
}

static void show_gpus(const struct stachio_topology *topology, struct text *out) {
    char node[NUMBER_BYTES];
    if (topology->n_gpus == 0) {
        text_add(out, "\nNo GPU\n");
        return;
    }
    text_format(out, "\n%9s  %-12s  %4s  %-12s  %-7s  name\n", "GPU", "PCI address", "node", "network", "by");
    for (int i = 0; i < topology->n_gpus; i++) {
        const struct stachio_topology_device *gpu = &topology->gpus[i];
        text_format(out, "%9d  %-12s  %4s  %-12s  %-7s  %s\n", i, gpu->bus, number_text(gpu->node, node),
                    interface_name(topology, gpu->interface), path_name(gpu->interface_path), gpu->name);
    }
}

static void show_interfaces(const struct stachio_topology *topology, struct text *out) {
    char node[NUMBER_BYTES], gpu[NUMBER_BYTES], rate[32];
    if (topology->n_interfaces == 0) {
        text_add(out, "\nNo network interface on a PCI bus\n");
        return;
    }
    text_format(out, "\n%-12s  %-12s  %4s  %-9s  %-10s  %4s  %s\n", "network", "PCI address", "node", "link",
                "RDMA", "GPU", "by");
    for (int i = 0; i < topology->n_interfaces; i++) {
        const struct stachio_topology_device *interface = &topology->interfaces[i];
        if (interface->is_down)
            snprintf(rate, sizeof rate, "down");
        else if (interface->bits_per_second > 0)
            snprintf(rate, sizeof rate, "%.3g Gb/s", (double)interface->bits_per_second * 1e-9);
        else
            snprintf(rate, sizeof rate, "?");
        text_format(out, "%-12s  %-12s  %4s  %-9s  %-10s  %4s  %s\n", interface->name, interface->bus,
                    number_text(interface->node, node), rate, interface->rdma ? interface->rdma : "-",
                    number_text(interface->gpu, gpu), path_name(interface->gpu_path));
    }
}

static void show_disks(const struct stachio_topology *topology, struct text *out) {
    char node[NUMBER_BYTES], gpu[NUMBER_BYTES], size[SIZE_TEXT_BYTES];
    if (topology->n_disks == 0) {
        text_add(out, "\nNo NVMe device\n");
        return;
    }
    text_format(out, "\n%-12s  %-12s  %4s  %9s  %4s  %-7s  %-12s  %-7s  model\n", "NVMe", "PCI address",
                "node", "size", "GPU", "by", "network", "by");
    for (int i = 0; i < topology->n_disks; i++) {
        const struct stachio_topology_device *disk = &topology->disks[i];
        text_format(out, "%-12s  %-12s  %4s  %9s  %4s  %-7s  %-12s  %-7s  %s\n", disk->name, disk->bus,
                    number_text(disk->node, node), size_text((double)disk->bytes, size),
                    number_text(disk->gpu, gpu), path_name(disk->gpu_path),
                    interface_name(topology, disk->interface), path_name(disk->interface_path),
                    disk->model ? disk->model : "-");
    }
}

static void show_ranks(const struct stachio_topology *topology, struct text *out) {
    char node[NUMBER_BYTES], gpu[NUMBER_BYTES];
    const bool is_running = topology->n_ranks > 0 && topology->ranks[0].pid > 0;
    text_format(out, "\n%s\n%9s  %5s  %4s  %-12s  %4s  ",
                is_running ? "Ranks, and what is meant for each" : "What is meant for each rank of this host",
                "rank", "local", "GPU", "PCI address", "node");
    text_add(out, is_running ? "network       process\n" : "network\n");
    for (int i = 0; i < topology->n_ranks; i++) {
        const struct stachio_topology_rank *rank = &topology->ranks[i];
        const char *interface = *rank->interface ? rank->interface : "-";
        text_format(out, "%9d  %5d  %4s  %-12s  %4s  ", rank->rank, rank->local_rank,
                    number_text(rank->gpu, gpu), *rank->gpu_bus ? rank->gpu_bus : "-",
                    number_text(rank->node, node));
        if (is_running)
            text_format(out, "%-12s  host %s, pid %lld\n", interface, rank->host, (long long)rank->pid);
        else
            text_format(out, "%s\n", interface);
    }
}

/* ---- as JSON ---- */

static void add_name(struct text *out, const char *key, const char *text) {
    text_format(out, ",\"%s\":", key);
    if (text && *text)
        bench_report_quote(out, text);
    else
        text_add(out, "null");
}

/* null: none. */
static void add_number(struct text *out, const char *key, int number) {
    if (number < 0)
        text_format(out, ",\"%s\":null", key);
    else
        text_format(out, ",\"%s\":%d", key, number);
}

static void add_interface(const struct stachio_topology *topology, struct text *out, int interface) {
    add_name(out, "interface", interface < 0 ? NULL : topology->interfaces[interface].name);
}

static void add_nodes(const struct stachio_topology *topology, struct text *out) {
    text_add(out, ",\n\"nodes\":[");
    for (int i = 0; i < topology->n_nodes; i++) {
        const struct stachio_topology_node *node = &topology->nodes[i];
        text_format(out, "%s\n{\"node\":%d,\"processors\":%d,\"memory_bytes\":%lld", i ? "," : "",
                    node->number, node->processors, (long long)node->memory_bytes);
        add_number(out, "package", node->package);
        add_name(out, "processor_list", node->processor_list);
        add_interface(topology, out, node->interface);
        text_add_char(out, '}');
    }
    text_add(out, "]");
}

enum device_kind { KIND_GPU, KIND_INTERFACE, KIND_DISK };

/* A list of them under `key`. */
static void add_devices(const struct stachio_topology *topology, struct text *out, const char *key,
                        enum device_kind kind, const struct stachio_topology_device *devices, int n) {
    text_format(out, ",\n\"%s\":[", key);
    for (int i = 0; i < n; i++) {
        const struct stachio_topology_device *device = &devices[i];
        text_add(out, i ? ",\n{\"name\":" : "\n{\"name\":");
        bench_report_quote(out, device->name);
        add_name(out, "bus", device->bus);
        add_number(out, "node", device->node);
        add_number(out, "gpu", device->gpu);
        if (kind != KIND_GPU)
            add_name(out, "gpu_path", path_name(device->gpu_path));
        if (kind != KIND_INTERFACE) {
            add_interface(topology, out, device->interface);
            add_name(out, "interface_path", path_name(device->interface_path));
        } else {
            add_name(out, "rdma", device->rdma);
            text_format(out, ",\"bits_per_second\":%lld,\"is_down\":%s", (long long)device->bits_per_second,
                        device->is_down ? "true" : "false");
        }
        if (kind == KIND_DISK) {
            add_name(out, "model", device->model);
            text_format(out, ",\"bytes\":%lld", (long long)device->bytes);
        }
        text_add_char(out, '}');
    }
    text_add(out, "]");
}

static void add_ranks(const struct stachio_topology *topology, struct text *out) {
    text_add(out, ",\n\"ranks\":[");
    for (int i = 0; i < topology->n_ranks; i++) {
        const struct stachio_topology_rank *rank = &topology->ranks[i];
        text_format(out, "%s\n{\"rank\":%d,\"local_rank\":%d,\"pid\":%lld", i ? "," : "", rank->rank,
                    rank->local_rank, (long long)rank->pid);
        add_name(out, "host", rank->host);
        add_number(out, "node", rank->node);
        add_number(out, "gpu", rank->gpu);
        add_name(out, "gpu_bus", rank->gpu_bus);
        add_name(out, "gpu_name", rank->gpu_name);
        add_name(out, "interface", rank->interface);
        text_add_char(out, '}');
    }
}

static void add_json(const struct stachio_topology *topology, struct text *out) {
    text_format(out, "{\"packages\":%d", topology->packages);
    add_name(out, "host", topology->host);
    add_nodes(topology, out);
    add_devices(topology, out, "gpus", KIND_GPU, topology->gpus, topology->n_gpus);
    add_devices(topology, out, "interfaces", KIND_INTERFACE, topology->interfaces, topology->n_interfaces);
    add_devices(topology, out, "nvme", KIND_DISK, topology->disks, topology->n_disks);
    add_ranks(topology, out); /* whose end is the report's */
}

/* ---- the command ---- */

static enum stachio_status tell(void *context, struct stachio_db *db, struct stachio_error *error) {
    struct bench_report *report = context;
    const struct stachio_topology *topology;
    const enum stachio_status status = stachio_topology(db, &topology, error);
    if (status)
        return status;
    struct text *out = &report->table.text;
    show_nodes(topology, out);
    show_gpus(topology, out);
    show_interfaces(topology, out);
    show_disks(topology, out);
    show_ranks(topology, out);
    add_json(topology, &report->json.text);
    return STACHIO_OK;
}

int topology_main(int argc, char **argv, const char *help) {
    struct options options;
    struct bench_report report;
    int exit_status = options_read(&options, COMMAND_TOPOLOGY, argc, argv);
    setenv("HWLOC_HIDE_ERRORS", "2", 0); /* what hwloc says of a machine's wrong tables is not for here */
    options.db.device = STACHIO_DEVICE_CPU;
    if (exit_status == 0 && options.help)
        exit_status = fputs(help, stdout) < 0;
    else if (exit_status == 0)
        exit_status = bench_report_run(&report, &options, tell, &report);
    options_release(&options);
    return exit_status;
}
