#include "api/files.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".parquet"

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the names of files");
}

static int is_directory(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int has_suffix(const char *name) {
    size_t length = strlen(name);
    return length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

/* Visible entries of a directory, sorted; NULL with errno set. */
static const char **list_directory(struct sx_arena *arena, const char *path, int *out_n) {
    DIR *directory = opendir(path);
    if (!directory)
        return NULL;
    int n = 0, capacity = 16;
    const char **names = SX_ARENA_ARRAY(arena, capacity, const char *);
    struct dirent *entry;
    while (names && (entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        if (n == capacity) {
            const char **larger = SX_ARENA_ARRAY(arena, 2 * (size_t)capacity, const char *);
            if (larger)
                memcpy(larger, names, (size_t)n * sizeof *names);
            names = larger;
            capacity *= 2;
        }
        if (names)
            names[n++] = sx_arena_copy_text(arena, entry->d_name, strlen(entry->d_name));
        if (names && !names[n - 1])
            names = NULL;
    }
    closedir(directory);
    if (!names) {
        errno = ENOMEM;
        return NULL;
    }
    qsort(names, (size_t)n, sizeof *names, compare_texts);
    *out_n = n;
    return names;
}

static enum sx_status unreadable(const char *path, struct sx_error *error) {
    if (errno == ENOMEM)
        return no_memory(error);
    return sx_error_set(error, SX_FILE, "%s: %s", path, strerror(errno));
}

/* All *.parquet of a directory; possibly none. */
static enum sx_status list_parquet(struct sx_arena *arena, const char *directory,
                                   struct sx_file_list *out_files, struct sx_error *error) {
    int n;
    const char **names = list_directory(arena, directory, &n);
    if (!names)
        return unreadable(directory, error);
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (!has_suffix(names[i]))
            continue;
        const char *path = sx_arena_format(arena, "%s/%s", directory, names[i]);
        if (!path)
            return no_memory(error);
        if (!is_directory(path))
            names[kept++] = path;
    }
    *out_files = (struct sx_file_list){names, kept};
    return SX_OK;
}

static enum sx_status copy_glob(struct sx_arena *arena, const glob_t *found, struct sx_file_list *out_files,
                                struct sx_error *error) {
    const char **paths = SX_ARENA_ARRAY(arena, found->gl_pathc, const char *);
    if (!paths)
        return no_memory(error);
    int n = 0;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (is_directory(found->gl_pathv[i]))
            continue;
        paths[n] = sx_arena_copy_text(arena, found->gl_pathv[i], strlen(found->gl_pathv[i]));
        if (!paths[n++])
            return no_memory(error);
    }
    qsort(paths, (size_t)n, sizeof *paths, compare_texts);
    *out_files = (struct sx_file_list){paths, n};
    return SX_OK;
}

static enum sx_status expand_glob(struct sx_arena *arena, const char *pattern, struct sx_file_list *out_files,
                                  struct sx_error *error) {
    glob_t found = {0};
    int failure = glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &found);
    enum sx_status status;
    if (failure == GLOB_NOSPACE)
        status = no_memory(error);
    else
        status = copy_glob(arena, &found, out_files, error);
    globfree(&found);
    return status;
}

#define GLOB_CHARACTERS "*?[{"

/* Possibly none. */
static enum sx_status find(struct sx_arena *arena, const char *pattern, struct sx_file_list *out_files,
                           struct sx_error *error) {
    struct stat info;
    if (stat(pattern, &info) != 0) {
        if (!strpbrk(pattern, GLOB_CHARACTERS))
            return unreadable(pattern, error);
        return expand_glob(arena, pattern, out_files, error);
    }
    if (S_ISDIR(info.st_mode))
        return list_parquet(arena, pattern, out_files, error);
    const char **paths = SX_ARENA_NEW(arena, const char *);
    if (!paths || !(paths[0] = sx_arena_copy_text(arena, pattern, strlen(pattern))))
        return no_memory(error);
    *out_files = (struct sx_file_list){paths, 1};
    return SX_OK;
}

enum sx_status sx_files_match(struct sx_arena *arena, const char *pattern, struct sx_file_list *out_files,
                              struct sx_error *error) {
    struct sx_file_list files = {NULL, 0};
    SX_TRY(find(arena, pattern, &files, error));
    if (!files.n_paths && is_directory(pattern))
        return sx_error_set(error, SX_FILE, "%s: no file of this directory ends in %s", pattern, SUFFIX);
    if (!files.n_paths)
        return sx_error_set(error, SX_FILE, "%s: no such file", pattern);
    *out_files = files;
    return SX_OK;
}

enum sx_status sx_files_find(struct sx_arena *arena, const char *pattern, struct sx_file_list *out_files,
                             struct sx_error *error) {
    SX_TRY(find(arena, pattern, out_files, error));
    size_t length = out_files->n_paths ? 0 : strcspn(pattern, GLOB_CHARACTERS);
    while (length > 0 && pattern[length - 1] != '/')
        length--;
    const char *directory = sx_arena_copy_text(arena, pattern, length);
    if (!directory)
        return no_memory(error);
    return length == 0 || is_directory(directory) ? SX_OK : unreadable(directory, error);
}

static enum sx_status append_files(struct sx_arena *arena, struct sx_file_list *files,
                                   const struct sx_file_list *more, struct sx_error *error) {
    const char **paths = SX_ARENA_ARRAY(arena, files->n_paths + more->n_paths, const char *);
    if (!paths)
        return no_memory(error);
    if (files->n_paths)
        memcpy(paths, files->paths, (size_t)files->n_paths * sizeof *paths);
    memcpy(paths + files->n_paths, more->paths, (size_t)more->n_paths * sizeof *paths);
    *files = (struct sx_file_list){paths, files->n_paths + more->n_paths};
    return SX_OK;
}

enum sx_status sx_files_match_all(struct sx_arena *arena, const char *const *patterns, int n_patterns,
                                  struct sx_file_list *out_files, struct sx_error *error) {
    struct sx_file_list files = {NULL, 0};
    for (int i = 0; i < n_patterns; i++) {
        struct sx_file_list more;
        SX_TRY(sx_files_match(arena, patterns[i], &more, error));
        SX_TRY(append_files(arena, &files, &more, error));
    }
    *out_files = files;
    return SX_OK;
}

static enum sx_status entry_table(struct sx_arena *arena, const char *directory, const char *entry,
                                  struct sx_table_files *out_table, struct sx_error *error) {
    const char *path = sx_arena_format(arena, "%s/%s", directory, entry);
    if (!path)
        return no_memory(error);
    if (is_directory(path)) {
        out_table->name = entry;
        return list_parquet(arena, path, &out_table->files, error);
    }
    if (!has_suffix(entry)) {
        out_table->files.n_paths = 0;
        return SX_OK;
    }
    out_table->name = sx_arena_copy_text(arena, entry, strlen(entry) - strlen(SUFFIX));
    if (!out_table->name)
        return no_memory(error);
    return sx_files_match(arena, path, &out_table->files, error);
}

/* Index of the table of that name, or `n`. */
static int find_table(const struct sx_table_files *tables, int n, const char *name) {
    int i = 0;
    while (i < n && strcmp(tables[i].name, name) != 0)
        i++;
    return i;
}

enum sx_status sx_files_find_tables(struct sx_arena *arena, const char *directory,
                                    struct sx_table_files **out_tables, int *out_n_tables,
                                    struct sx_error *error) {
    int n_entries, n = 0;
    const char **entries = list_directory(arena, directory, &n_entries);
    if (!entries)
        return unreadable(directory, error);
    struct sx_table_files *tables = SX_ARENA_ARRAY(arena, n_entries + 1, struct sx_table_files);
    if (!tables)
        return no_memory(error);
    for (int i = 0; i < n_entries; i++) {
        struct sx_table_files table = {0};
        SX_TRY(entry_table(arena, directory, entries[i], &table, error));
        if (!table.files.n_paths)
            continue;
        int at = find_table(tables, n, table.name);
        /* "x" sorts in front of "x.parquet": the directory's files stay. */
        if (at == n)
            tables[n++] = table;
    }
    *out_tables = tables;
    *out_n_tables = n;
    return SX_OK;
}

enum sx_status sx_files_tables(struct sx_arena *arena, const char *directory,
                               struct sx_table_files **out_tables, int *out_n_tables,
                               struct sx_error *error) {
    SX_TRY(sx_files_find_tables(arena, directory, out_tables, out_n_tables, error));
    if (*out_n_tables > 0)
        return SX_OK;
    return sx_error_set(error, SX_FILE, "%s: no Parquet files (NAME.parquet or NAME/*.parquet)", directory);
}
