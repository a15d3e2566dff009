#include "api/processors.h"

#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/launch.h"
#include "api/library.h"

enum { WORDS = SX_MOST_PROCESSORS / 64, LINE_BYTES = 4096 };

/* ---- sets ---- */

static bool has(const struct sx_processors *set, int processor) {
    return set->words[processor / 64] >> processor % 64 & 1;
}

static bool of_process(pid_t pid, struct sx_processors *out_set) {
    *out_set = (struct sx_processors){0};
    return sched_getaffinity(pid, sizeof *out_set, (cpu_set_t *)(void *)out_set) == 0;
}

static void bind_thread(const struct sx_processors *set) {
    /* Where it fails all stays as it was. */
    (void)sched_setaffinity(0, sizeof *set, (const cpu_set_t *)(const void *)set);
}

int sx_processors_part(int count, int n_sharing, uint64_t quota, int n_host) {
    const int part = (count + n_sharing - 1) / n_sharing;
    if (quota >= (uint64_t)count * (uint64_t)n_host) /* also where adding to it would overflow */
        return part;
    const int allowed = ((int)quota + n_host - 1) / n_host;
    return allowed < part ? allowed : part;
}

struct sx_processors sx_processors_own(void) {
    struct sx_processors set;
    if (of_process(0, &set) && sx_processors_count(&set) > 0)
        return set;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    set = (struct sx_processors){0};
    for (int i = 0; i < SX_MOST_PROCESSORS && (i == 0 || i < online); i++)
        set.words[i / 64] |= UINT64_C(1) << i % 64;
    return set;
}

int sx_processors_count(const struct sx_processors *set) {
    int n = 0;
    for (int w = 0; w < WORDS; w++)
        n += __builtin_popcountll(set->words[w]);
    return n;
}

void sx_processors_text(const struct sx_processors *set, char *out_text, size_t bytes) {
    size_t used = 0;
    out_text[0] = 0;
    for (int first = 0; first < SX_MOST_PROCESSORS; first++) {
        int last = first;
        if (!has(set, first))
            continue;
        while (last + 1 < SX_MOST_PROCESSORS && has(set, last + 1))
            last++;
        char range[32];
        snprintf(range, sizeof range, last > first ? "%s%d-%d" : "%s%d", used ? "," : "", first, last);
        if (used + strlen(range) >= bytes)
            return;
        memcpy(out_text + used, range, strlen(range) + 1);
        used += strlen(range);
        first = last;
    }
}

struct sx_processors sx_processors_of(const char *list) {
    struct sx_processors set = {0};
    for (;;) {
        char *end;
        const long first = strtol(list, &end, 10);
        long last = first;
        if (end == list)
            return set;
        if (*end == '-') {
            list = end + 1;
            last = strtol(list, &end, 10);
            if (end == list)
                return set;
        }
        if (first < 0 || last >= SX_MOST_PROCESSORS)
            return set;
        for (long i = first; i <= last; i++)
            set.words[i / 64] |= UINT64_C(1) << i % 64;
        if (*end != ',')
            return set;
        list = end + 1;
    }
}

/* ---- what launchers do ---- */

/* Whether somebody has said where ranks are to run. (Open MPI's --map-by does so with a number of processors
 * alone, as in node:PE=4; else it deals ranks out to hosts. Its daemons may be srun's, which tells of those.)
 */
static bool is_said(void) {
    static const char *const variables[] = {"OMPI_MCA_hwloc_base_binding_policy",
                                            "OMPI_MCA_hwloc_base_cpu_set",
                                            "OMPI_MCA_hwloc_base_cpu_list",
                                            "OMPI_MCA_hwloc_base_slot_list",
                                            "OMPI_MCA_hwloc_base_bind_to_core",
                                            "OMPI_MCA_hwloc_base_bind_to_socket",
                                            "OMPI_MCA_rmaps_base_cpus_per_rank",
                                            "OMPI_MCA_rmaps_rank_file_path",
                                            "OMPI_MCA_orte_rankfile"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (sx_environment(variables[i]))
            return true;
    const char *mapping = sx_environment("OMPI_MCA_rmaps_base_mapping_policy");
    return (mapping && strcasestr(mapping, "pe=")) ||
           (!sx_environment("OMPI_COMM_WORLD_SIZE") && sx_environment("SLURM_CPU_BIND_TYPE"));
}

/* 0: there is none. */
static pid_t parent_of(pid_t pid) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const bool is_read = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    const char *rest = is_read ? strrchr(line, ')') : NULL; /* names may have any characters */
    int parent;
    return rest && sscanf(rest + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Whether it is a rank of Open MPI's, or runs below one; also where that can't be told. */
static bool is_of_rank(pid_t pid) {
    static const char mark[] = "OMPI_COMM_WORLD_RANK=";
    char path[64], *variable = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    while (!found && getdelim(&variable, &room, 0, file) > 0)
        found = strncmp(variable, mark, sizeof mark - 1) == 0;
    free(variable);
    fclose(file);
    return found;
}

void sx_processors_unbind(void) {
    enum { MOST_ANCESTORS = 16 }; /* shells and wrappers between mpirun and us */
    const char *bound = sx_environment("OMPI_MCA_orte_bound_at_launch");
    struct sx_processors launcher;
    if (!bound || strcmp(bound, "1") != 0 || is_said())
        return;
    pid_t pid = getppid();
    for (int i = 0; i < MOST_ANCESTORS && pid > 0 && is_of_rank(pid); i++)
        pid = parent_of(pid);
    if (pid > 0 && !is_of_rank(pid) && of_process(pid, &launcher))
        bind_thread(&launcher);
}

/* ---- NUMA nodes ---- */

/* The first line of a file of the system; false: there is none. */
__attribute__((format(printf, 2, 3))) static bool read_file(char line[LINE_BYTES], const char *format, ...) {
    const char *root = sx_environment("HWLOC_FSROOT");
    char path[PATH_MAX];
    const int used = snprintf(path, sizeof path, "%s", root ? root : "");
    va_list arguments;
    if (used < 0 || used >= (int)sizeof path)
        return false;
    va_start(arguments, format);
    vsnprintf(path + used, sizeof path - (size_t)used, format, arguments);
    va_end(arguments);
    FILE *file = fopen(path, "re");
    const bool is_read = file && fgets(line, LINE_BYTES, file);
    if (file)
        fclose(file);
    return is_read;
}

/* Those of `own` that node number `node` has. */
static struct sx_processors of_node(const struct sx_processors *own, int node) {
    char line[LINE_BYTES];
    struct sx_processors set = {0};
    if (read_file(line, "/sys/devices/system/node/node%d/cpulist", node))
        set = sx_processors_of(line);
    for (int w = 0; w < WORDS; w++)
        set.words[w] &= own->words[w];
    return set;
}

/* The number of the `turn`-th node of which `own` has processors, counted round; -1: it has those of one
 * alone, or of none. */
static int node_in_turn(const struct sx_processors *own, int turn) {
    char line[LINE_BYTES];
    int numbers[SX_MOST_PROCESSORS / 64], n = 0;
    if (!read_file(line, "/sys/devices/system/node/online"))
        return -1;
    const struct sx_processors online = sx_processors_of(line);
    for (int node = 0; node < SX_MOST_PROCESSORS && n < WORDS; node++) {
        const struct sx_processors set = has(&online, node) ? of_node(own, node) : (struct sx_processors){0};
        if (sx_processors_count(&set) > 0)
            numbers[n++] = node;
    }
    return n > 1 ? numbers[turn % n] : -1;
}

static int node_of_device(const char *bus) {
    char line[LINE_BYTES];
    return read_file(line, "/sys/bus/pci/devices/%s/numa_node", bus) ? atoi(line) : -1;
}

void sx_processors_settle(const char *bus, int turn) {
    if (sx_launch_ranks() == 1 || is_said())
        return;
    const struct sx_processors own = sx_processors_own();
    int node = node_in_turn(&own, turn);
    if (node >= 0 && *bus)
        node = node_of_device(bus);
    if (node < 0)
        return;
    const struct sx_processors set = of_node(&own, node);
    if (sx_processors_count(&set) > 0)
        bind_thread(&set);
}
