#include "api/parts_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the files of several ranks");
}

/* ---- places ---- */

void parts_place(const struct sx_seat *seats, int n, struct part_place *out_places) {
    int n_nodes = 0;
    for (int r = 0; r < n; r++) {
        struct part_place *place = &out_places[r];
        *place = (struct part_place){.rank = r, .node = -1};
        for (int other = 0; other < n; other++) {
            const bool is_same = strcmp(seats[r].host, seats[other].host) == 0;
            place->node_ranks += is_same;
            place->gpu += is_same && other < r;
            if (is_same && other < r)
                place->node = out_places[other].node;
        }
        if (place->node < 0)
            place->node = n_nodes++;
    }
}

/* ---- patterns ---- */

struct placeholder {
    const char *text;
    int value;
};

static const char *find_placeholder(const char *pattern, const struct placeholder *placeholders,
                                    const struct placeholder **out_found) {
    for (; *pattern; pattern++)
        for (*out_found = placeholders; (*out_found)->text; (*out_found)++)
            if (strncmp(pattern, (*out_found)->text, strlen((*out_found)->text)) == 0)
                return pattern;
    return NULL;
}

const char *parts_substitute(struct sx_arena *arena, const char *pattern, const struct part_place *place) {
    const struct placeholder placeholders[] = {
        {"{rank}", place->rank}, {"{node}", place->node}, {"{gpu}", place->gpu}, {NULL, 0}};
    const struct placeholder *found;
    const char *text = "", *at;
    while (text && (at = find_placeholder(pattern, placeholders, &found))) {
        text = sx_arena_format(arena, "%s%.*s%d", text, (int)(at - pattern), pattern, found->value);
        pattern = at + strlen(found->text);
    }
    return text ? sx_arena_format(arena, "%s%s", text, pattern) : NULL;
}

bool sx_parts_are_in(const char *pattern) {
    return strstr(pattern, "{rank}") || strstr(pattern, "{node}") || strstr(pattern, "{gpu}");
}

enum sx_status sx_parts_pattern(struct sx_arena *arena, const char *pattern, const char **out_pattern,
                                struct sx_error *error) {
    *out_pattern = parts_substitute(arena, pattern, &(struct part_place){0});
    return *out_pattern ? SX_OK : no_memory(error);
}

/* ---- footers of files that are elsewhere ---- */

/* The process may have as many files open as the system allows at all. */
static bool raise_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static bool write_all(int fd, const void *bytes, size_t length, int64_t offset) {
    while (length > 0) {
        const ssize_t n = pwrite(fd, bytes, length, offset);
        if (n <= 0)
            return false;
        bytes = (const char *)bytes + n;
        length -= (size_t)n;
        offset += n;
    }
    return true;
}

static bool fill(int fd, const struct part_file *file) {
    struct {
        uint32_t footer_bytes;
        char magic[4];
    } tail = {file->footer_bytes, {'P', 'A', 'R', '1'}};
    const int64_t tail_at = file->size_bytes - (int64_t)sizeof tail;
    return ftruncate(fd, file->size_bytes) == 0 && write_all(fd, tail.magic, sizeof tail.magic, 0) &&
           write_all(fd, file->footer, file->footer_bytes, tail_at - file->footer_bytes) &&
           write_all(fd, &tail, sizeof tail, tail_at);
}

enum sx_status parts_stand_in(struct sx_parts *parts, struct sx_arena *arena, const struct part_file *file,
                              const char **out_path, struct sx_error *error) {
    int *fds = realloc(parts->fds, ((size_t)parts->n_fds + 1) * sizeof *fds);
    if (!fds)
        return no_memory(error);
    parts->fds = fds;
    int fd = memfd_create("stachio footer", MFD_CLOEXEC);
    if (fd < 0 && errno == EMFILE && raise_limit())
        fd = memfd_create("stachio footer", MFD_CLOEXEC);
    if (fd < 0)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "the footer of rank %d's %s can't be kept: %s",
                            file->rank, file->path, strerror(errno));
    fds[parts->n_fds++] = fd;
    if (!fill(fd, file))
        return sx_error_set(error, SX_OUT_OF_MEMORY, "the footer of rank %d's %s can't be kept: %s",
                            file->rank, file->path, strerror(errno));
    *out_path = sx_arena_format(arena, "/proc/self/fd/%d", fd);
    return *out_path ? SX_OK : no_memory(error);
}

/* ---- this rank's files ---- */

enum sx_status parts_keep(struct sx_parts *parts, const char *path, const struct sx_file_stamp *stamp,
                          struct sx_error *error) {
    struct part_own *own = realloc(parts->own, ((size_t)parts->n_own + 1) * sizeof *own);
    if (!own)
        return no_memory(error);
    parts->own = own;
    own += parts->n_own;
    *own = (struct part_own){strdup(path), *stamp};
    if (!own->path)
        return no_memory(error);
    parts->n_own++;
    return SX_OK;
}

enum sx_status sx_parts_check(const struct sx_parts *parts, struct sx_error *error) {
    for (int i = 0; parts && i < parts->n_own; i++) {
        struct stat found;
        struct sx_file_stamp now;
        if (stat(parts->own[i].path, &found) != 0)
            return sx_error_set(error, SX_FILE, "%s: %s", parts->own[i].path, strerror(errno));
        sx_file_stamp_set(&found, &now);
        if (!sx_file_stamp_equal(&now, &parts->own[i].stamp))
            return sx_error_set(
                error, SX_FILE,
                "%s: the file has changed since its table was added, and the other ranks have "
                "planned with what it was",
                parts->own[i].path);
    }
    return SX_OK;
}

void sx_parts_destroy(struct sx_parts *parts) {
    if (!parts)
        return;
    for (int i = 0; i < parts->n_fds; i++)
        close(parts->fds[i]);
    for (int i = 0; i < parts->n_own; i++)
        free(parts->own[i].path);
    free(parts->fds);
    free(parts->own);
    free(parts);
}
