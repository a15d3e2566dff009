#include "api/parts_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#define STAND_IN_PREFIX "/proc/self/fd/"

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

static enum sx_status stand_in_failed(const struct part_file *file, struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "the footer of rank %d's %s can't be kept: %s", file->rank,
                        file->path, strerror(errno));
}

enum sx_status parts_stand_in(struct part_table *table, struct sx_arena *arena, const struct part_file *file,
                              const char **out_path, struct sx_error *error) {
    struct part_stand_in *stand_ins =
        sx_array_grow(table->stand_ins, sizeof *stand_ins, table->n_stand_ins, &table->stand_in_capacity);
    if (!stand_ins)
        return no_memory(error);
    table->stand_ins = stand_ins;
    char *name;
    if (asprintf(&name, "rank %d's %s", file->rank, file->path) < 0)
        return no_memory(error);
    int fd = memfd_create("stachio footer", MFD_CLOEXEC);
    if (fd < 0 && errno == EMFILE && raise_limit())
        fd = memfd_create("stachio footer", MFD_CLOEXEC);
    if (fd < 0) {
        free(name);
        return stand_in_failed(file, error);
    }
    stand_ins[table->n_stand_ins++] = (struct part_stand_in){fd, name};
    if (!fill(fd, file))
        return stand_in_failed(file, error);
    *out_path = sx_arena_format(arena, STAND_IN_PREFIX "%d", fd);
    return *out_path ? SX_OK : no_memory(error);
}

static const char *name_of(const struct part_table *table, int fd) {
    for (int64_t i = 0; i < table->n_stand_ins; i++)
        if (table->stand_ins[i].fd == fd)
            return table->stand_ins[i].name;
    return NULL;
}

void parts_name_ranks(const struct part_table *table, struct sx_error *error) {
    const size_t prefix = sizeof STAND_IN_PREFIX - 1;
    struct sx_arena arena = {0};
    const char *text = "", *rest = error->text;
    for (const char *at; text && (at = strstr(rest, STAND_IN_PREFIX)) != NULL;) {
        char *end;
        const char *name = name_of(table, (int)strtol(at + prefix, &end, 10));
        if (!name) /* another table's, or the user's */
            text = sx_arena_format(&arena, "%s%.*s", text, (int)(end - rest), rest);
        else
            text = sx_arena_format(&arena, "%s%.*s%s", text, (int)(at - rest), rest, name);
        rest = end;
    }
    text = text ? sx_arena_format(&arena, "%s%s", text, rest) : NULL;
    if (text)
        (void)sx_error_set(error, error->status, "%s", text);
    sx_arena_release(&arena);
}

/* ---- this rank's files ---- */

enum sx_status parts_keep(struct part_table *table, const char *path, const struct sx_file_stamp *stamp,
                          struct sx_error *error) {
    struct part_own *own = sx_array_grow(table->own, sizeof *own, table->n_own, &table->own_capacity);
    if (!own)
        return no_memory(error);
    table->own = own;
    own[table->n_own] = (struct part_own){strdup(path), *stamp};
    if (!own[table->n_own].path)
        return no_memory(error);
    table->n_own++;
    return SX_OK;
}

void parts_table_release(struct part_table *table) {
    for (int64_t i = 0; i < table->n_stand_ins; i++) {
        close(table->stand_ins[i].fd);
        free(table->stand_ins[i].name);
    }
    for (int64_t i = 0; i < table->n_own; i++)
        free(table->own[i].path);
    free(table->stand_ins);
    free(table->own);
    free(table->name);
    *table = (struct part_table){0};
}
