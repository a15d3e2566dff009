#include "api/system.h"

#include <stdbool.h>
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

enum { PATH_BYTES = 4096 };

static FILE *open_below(const char *root, const char *path) {
    char whole[PATH_BYTES];
    return snprintf(whole, sizeof whole, "%s%s", root, path) < (int)sizeof whole ? fopen(whole, "re") : NULL;
}

static bool has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

/* A hierarchy of groups: what is at `point` is the group `top` of it. */
struct mount {
    char top[PATH_BYTES], point[PATH_BYTES];
};

/* A line of mountinfo. */
static bool read_mount(const char *line, bool is_v1, struct mount *out_mount) {
    char type[32], options[256];
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(rest, " - %31s %*s %255s", type, options) != 2 ||
        sscanf(line, "%*s %*s %*s %4095s %4095s", out_mount->top, out_mount->point) != 2)
        return false;
    return is_v1 ? strcmp(type, "cgroup") == 0 && has_word(options, "memory") : strcmp(type, "cgroup2") == 0;
}

/* The usual place where it is not told. */
static void find_mount(const char *root, bool is_v1, struct mount *out_mount) {
    FILE *file = open_below(root, "/proc/self/mountinfo");
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    while (file && !found && getline(&line, &capacity, file) > 0)
        found = read_mount(line, is_v1, out_mount);
    if (!found)
        *out_mount = (struct mount){"/", "/sys/fs/cgroup"};
    if (!found && is_v1)
        strcpy(out_mount->point, "/sys/fs/cgroup/memory");
    free(line);
    if (file)
        fclose(file);
}

/* From below the mount point; "" where the group is not there, as may be seen from a container. */
static char *below_mount(const struct mount *mount, char *group) {
    const size_t length = strcmp(mount->top, "/") == 0 ? 0 : strlen(mount->top);
    const bool is_below = strncmp(group, mount->top, length) == 0 && (group[length] == '/' || !group[length]);
    return is_below && strncmp(group, "/..", 3) != 0 ? group + length : group + strlen(group);
}

/* From the group up to the mount point; writes into `group`. */
static uint64_t least_limit(const char *root, const struct mount *mount, char *group, const char *name) {
    uint64_t limit = UINT64_MAX;
    for (;;) {
        char path[PATH_BYTES];
        if (snprintf(path, sizeof path, "%s%s%s/%s", root, mount->point, group, name) < (int)sizeof path) {
            const uint64_t value = read_number(path);
            limit = value < limit ? value : limit;
        }
        char *slash = strrchr(group, '/');
        if (!slash)
            return limit;
        *slash = 0;
    }
}

/* A line of /proc/self/cgroup: N:CONTROLLERS:GROUP, in version 2 without controllers. */
static uint64_t line_limit(const char *root, char *line) {
    struct mount mount;
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = 0;
    const bool is_v1 = *++controllers;
    if (is_v1 && !has_word(controllers, "memory"))
        return UINT64_MAX;
    find_mount(root, is_v1, &mount);
    return least_limit(root, &mount, below_mount(&mount, group),
                       is_v1 ? "memory.limit_in_bytes" : "memory.max");
}

uint64_t sx_system_group_limit(const char *root) {
    uint64_t limit = UINT64_MAX;
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = open_below(root, "/proc/self/cgroup");
    while (file && getline(&line, &capacity, file) > 0) {
        const uint64_t value = line_limit(root, line);
        limit = value < limit ? value : limit;
    }
    free(line);
    if (file)
        fclose(file);
    return limit;
}

uint64_t sx_system_memory(void) {
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = sx_system_group_limit("");
    return group < machine ? group : machine;
}

double sx_system_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
