#include "api/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The number in a file of one line; UINT64_MAX when there is none ("max", no such file). */
static uint64_t read_number(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    unsigned long long value;
    int found = fscanf(file, "%llu", &value);
    fclose(file);
    return found == 1 ? value : UINT64_MAX;
}

/* The tightest memory.max from the process's control group (version 2) up to the root. */
static uint64_t group_limit(void) {
    uint64_t limit = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    char line[1024];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return limit;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        line[strcspn(line, "\n")] = 0;
        for (char *group = line + 3;;) {
            char path[sizeof line + 64];
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
            uint64_t value = read_number(path);
            limit = value < limit ? value : limit;
            char *slash = strrchr(group, '/');
            if (!slash)
                break;
            *slash = 0;
        }
    }
    fclose(file);
    return limit;
}

uint64_t sx_system_memory(void) {
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = group_limit();
    return group < machine ? group : machine;
}

double sx_system_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
