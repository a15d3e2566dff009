#include "api/system.h"

#include <time.h>
#include <unistd.h>

#include "api/control_group.h"

uint64_t sx_system_memory(void) {
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = sx_group_memory("");
    return group < machine ? group : machine;
}

double sx_system_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
