#include "api/control_group.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

static FILE *open_below(const char *root, const char *path) {
    char whole[PATH_BYTES];
    return snprintf(whole, sizeof whole, "%s%s", root, path) < (int)sizeof whole ? fopen(whole, "re") : NULL;
}

/* The `n`-th number, from 0, in a file of one line; UINT64_MAX when there is none ("max", -1, no such file).
 */
static uint64_t read_number(const char *directory, const char *name, int n) {
    char path[PATH_BYTES], words[2][32] = {"", ""};
    FILE *file =
        snprintf(path, sizeof path, "/%s", name) < (int)sizeof path ? open_below(directory, path) : NULL;
    if (!file)
        return UINT64_MAX;
    if (fscanf(file, "%31s %31s", words[0], words[1]) <= n)
        words[n][0] = 0;
    fclose(file);
    char *end;
    const unsigned long long value = strtoull(words[n], &end, 10);
    return *words[n] >= '0' && *words[n] <= '9' && !*end ? value : UINT64_MAX;
}

/* ---- what groups limit ---- */

struct controller {
    const char *name;
    /* Of the group in a directory; UINT64_MAX: none. */
    uint64_t (*limit)(const char *directory, bool is_v1);
};

static uint64_t memory_limit(const char *directory, bool is_v1) {
    return read_number(directory, is_v1 ? "memory.limit_in_bytes" : "memory.max", 0);
}

/* A part of one counts as a whole one. */
static uint64_t processor_limit(const char *directory, bool is_v1) {
    const uint64_t quota_us = read_number(directory, is_v1 ? "cpu.cfs_quota_us" : "cpu.max", 0);
    const uint64_t period_us =
        is_v1 ? read_number(directory, "cpu.cfs_period_us", 0) : read_number(directory, "cpu.max", 1);
    if (quota_us == UINT64_MAX || period_us == UINT64_MAX || period_us == 0)
        return UINT64_MAX;
    const uint64_t whole = quota_us / period_us + (quota_us % period_us != 0);
    return whole > 0 ? whole : 1;
}

static const struct controller memory = {"memory", memory_limit}, processors = {"cpu", processor_limit};

/* ---- where they are ---- */

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
static bool read_mount(const char *line, const char *controller, bool is_v1, struct mount *out_mount) {
    char type[32], options[256];
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(rest, " - %31s %*s %255s", type, options) != 2 ||
        sscanf(line, "%*s %*s %*s %4095s %4095s", out_mount->top, out_mount->point) != 2)
        return false;
    return is_v1 ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
                 : strcmp(type, "cgroup2") == 0;
}

/* The usual place where it is not told. */
static void find_mount(const char *root, const char *controller, bool is_v1, struct mount *out_mount) {
    FILE *file = open_below(root, "/proc/self/mountinfo");
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    while (file && !found && getline(&line, &capacity, file) > 0)
        found = read_mount(line, controller, is_v1, out_mount);
    if (!found)
        *out_mount = (struct mount){"/", "/sys/fs/cgroup"};
    if (!found && is_v1)
        snprintf(out_mount->point, sizeof out_mount->point, "/sys/fs/cgroup/%s", controller);
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
static uint64_t least_limit(const char *root, const struct mount *mount, char *group,
                            const struct controller *controller, bool is_v1) {
    uint64_t limit = UINT64_MAX;
    for (;;) {
        char directory[PATH_BYTES];
        if (snprintf(directory, sizeof directory, "%s%s%s", root, mount->point, group) <
            (int)sizeof directory) {
            const uint64_t value = controller->limit(directory, is_v1);
            limit = value < limit ? value : limit;
        }
        char *slash = strrchr(group, '/');
        if (!slash)
            return limit;
        *slash = 0;
    }
}

/* A line of /proc/self/cgroup: N:CONTROLLERS:GROUP, in version 2 without controllers. */
static uint64_t line_limit(const char *root, const struct controller *controller, char *line) {
    struct mount mount;
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = 0;
    const bool is_v1 = *++controllers;
    if (is_v1 && !has_word(controllers, controller->name))
        return UINT64_MAX;
    find_mount(root, controller->name, is_v1, &mount);
    return least_limit(root, &mount, below_mount(&mount, group), controller, is_v1);
}

static uint64_t group_limit(const char *root, const struct controller *controller) {
    uint64_t limit = UINT64_MAX;
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = open_below(root, "/proc/self/cgroup");
    while (file && getline(&line, &capacity, file) > 0) {
        const uint64_t value = line_limit(root, controller, line);
        limit = value < limit ? value : limit;
    }
    free(line);
    if (file)
        fclose(file);
    return limit;
}

uint64_t sx_group_memory(const char *root) {
    return group_limit(root, &memory);
}

uint64_t sx_group_processors(const char *root) {
    return group_limit(root, &processors);
}
