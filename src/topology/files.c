/* What Linux tells of devices in files, and hwloc does not. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/state.h"

/* NULL: it is not there. */
__attribute__((format(printf, 2, 3))) static FILE *open_file(const struct sx_machine *machine,
                                                             const char *format, ...) {
    char path[PATH_MAX];
    va_list arguments;
    if (!machine->root)
        return NULL;
    const int used = snprintf(path, sizeof path, "%s", machine->root);
    if (used < 0 || used >= (int)sizeof path)
        return NULL;
    va_start(arguments, format);
    const int more = vsnprintf(path + used, sizeof path - (size_t)used, format, arguments);
    va_end(arguments);
    return more > 0 && more < (int)sizeof path - used ? fopen(path, "re") : NULL;
}

/* The first line; false: there is none. An interface that is down fails when it is asked for its speed. */
static bool read_line(FILE *file, char *line, int line_bytes) {
    const bool is_read = file && fgets(line, line_bytes, file);
    if (file)
        fclose(file);
    return is_read;
}

const char *sx_machine_gpu_name(const struct sx_machine *machine, const char *bus) {
    FILE *file = open_file(machine, "/proc/driver/nvidia/gpus/%s/information", bus);
    const char *name = NULL;
    char line[256];
    while (file && !name && fgets(line, sizeof line, file)) {
        if (strncmp(line, "Model:", 6) != 0)
            continue;
        const char *start = line + 6 + strspn(line + 6, " \t");
        name = sx_arena_copy_text(machine->arena, start, strcspn(start, "\n"));
    }
    if (file)
        fclose(file);
    return name;
}

int64_t sx_machine_link_rate(const struct sx_machine *machine, const char *interface, const char *rdma) {
    char line[64];
    long long megabits = 0;
    double gigabits = 0;
    if (read_line(open_file(machine, "/sys/class/net/%s/speed", interface), line, sizeof line))
        megabits = strtoll(line, NULL, 10); /* -1: unknown */
    if (megabits > 0 && megabits < 1000000000)
        return megabits * 1000000;
    if (rdma &&
        read_line(open_file(machine, "/sys/class/infiniband/%s/ports/1/rate", rdma), line, sizeof line))
        gigabits = strtod(line, NULL); /* "400 Gb/sec (4X NDR)" */
    return gigabits > 0 && gigabits < 1e6 ? (int64_t)(gigabits * 1e9) : 0;
}

/* InfiniBand serves RDMA whether or not its interface for IP is set up. */
bool sx_machine_link_is_down(const struct sx_machine *machine, const char *interface, const char *rdma) {
    char line[64];
    if (rdma &&
        read_line(open_file(machine, "/sys/class/infiniband/%s/ports/1/state", rdma), line, sizeof line))
        return strcmp(line, "4: ACTIVE\n") != 0;
    return read_line(open_file(machine, "/sys/class/net/%s/operstate", interface), line, sizeof line) &&
           strcmp(line, "down\n") == 0;
}
