#include "api/parts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/files.h"
#include "api/parts_file.h"

/* While tables are added. */
struct adding {
    struct stachio_db *db;
    struct sx_net *net;
    struct sx_arena arena;
    struct sx_parts *parts;
    struct part_place *places; /* by rank */
    const struct part_place *own;
    bool is_of_node;         /* the ranks of a host have the same files */
    struct part_file *files; /* of all ranks, in their order */
    int n_files;
    int first_own, n_own; /* of `files`, that this rank has told of */
};

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the files of several ranks");
}

/* ---- this rank's files ---- */

enum whose { OF_ALL, OF_NODE, OF_RANK };

static enum whose whose(const char *pattern) {
    if (strstr(pattern, "{rank}") || strstr(pattern, "{gpu}"))
        return OF_RANK;
    return strstr(pattern, "{node}") ? OF_NODE : OF_ALL;
}

static enum sx_status check_patterns(struct adding *a, const char *const *patterns, int n,
                                     struct sx_error *error) {
    a->is_of_node = whose(patterns[0]) == OF_NODE;
    for (int i = 1; i < n; i++)
        if (whose(patterns[i]) != whose(patterns[0]))
            return sx_error_set(error, SX_USAGE,
                                "%s and %s can't make one table: its files are those of all ranks, of each "
                                "host ({node}), or of each rank ({rank}, {gpu})",
                                patterns[0], patterns[i]);
    return SX_OK;
}

/* With places for `more` further files. */
static bool reserve_files(struct adding *a, int more) {
    struct part_file *files = SX_ARENA_ARRAY(&a->arena, a->n_files + more, struct part_file);
    if (files && a->n_files)
        memcpy(files, a->files, (size_t)a->n_files * sizeof *files);
    a->files = files;
    return files;
}

static enum sx_status read_file(struct adding *a, const char *table, const char *path,
                                struct sx_error *error) {
    struct sx_file_stamp stamp;
    struct sx_footer *footer = NULL;
    int fd = -1;
    SX_TRY(sx_file_open(path, &fd, &stamp, error));
    enum sx_status status = sx_footer_read(path, fd, stamp.size_bytes, &footer, error);
    sx_file_close(fd);
    SX_TRY(status);
    uint8_t *bytes = SX_ARENA_ARRAY(&a->arena, footer->length_bytes, uint8_t);
    if (bytes)
        memcpy(bytes, footer->bytes, footer->length_bytes);
    a->files[a->n_files++] = (struct part_file){.table = table,
                                                .path = path,
                                                .rank = a->own->rank,
                                                .size_bytes = stamp.size_bytes,
                                                .footer = bytes,
                                                .footer_bytes = footer->length_bytes};
    sx_footer_release(footer);
    return bytes ? SX_OK : no_memory(error);
}

static enum sx_status read_files(struct adding *a, const char *table, const struct sx_file_list *files,
                                 struct sx_error *error) {
    if (!reserve_files(a, files->n_paths))
        return no_memory(error);
    for (int i = 0; i < files->n_paths; i++)
        SX_TRY(read_file(a, table, files->paths[i], error));
    return SX_OK;
}

static enum sx_status find_files(struct adding *a, const char *name, const char *pattern,
                                 struct sx_error *error) {
    struct sx_file_list files = {NULL, 0};
    struct sx_table_files *tables;
    int n_tables;
    const char *path = parts_substitute(&a->arena, pattern, a->own);
    if (!path)
        return no_memory(error);
    if (name) {
        SX_TRY(sx_files_find(&a->arena, path, &files, error));
        return read_files(a, name, &files, error);
    }
    SX_TRY(sx_files_find_tables(&a->arena, path, &tables, &n_tables, error));
    for (int i = 0; i < n_tables; i++)
        SX_TRY(read_files(a, tables[i].name, &tables[i].files, error));
    return SX_OK;
}

/* Of a host's ranks the first one tells. */
static enum sx_status find_own(struct adding *a, const char *name, const char *const *patterns, int n,
                               struct sx_error *error) {
    for (int i = 0; i < n && !(a->is_of_node && a->own->gpu > 0); i++)
        SX_TRY(find_files(a, name, patterns[i], error));
    return SX_OK;
}

/* ---- telling each other ---- */

/* Of each file: the table and the path, zero-terminated, then its size, its footer's size, and the footer. */
static const void *pack(struct adding *a, size_t *out_bytes) {
    size_t bytes = 0;
    for (int i = 0; i < a->n_files; i++)
        bytes += strlen(a->files[i].table) + strlen(a->files[i].path) + 2 + sizeof(int64_t) +
                 sizeof(uint32_t) + a->files[i].footer_bytes;
    char *packed = SX_ARENA_ARRAY(&a->arena, bytes, char), *at = packed;
    for (int i = 0; at && i < a->n_files; i++) {
        const struct part_file *file = &a->files[i];
        at = stpcpy(at, file->table) + 1;
        at = stpcpy(at, file->path) + 1;
        at = mempcpy(at, &file->size_bytes, sizeof file->size_bytes);
        at = mempcpy(at, &file->footer_bytes, sizeof file->footer_bytes);
        at = mempcpy(at, file->footer, file->footer_bytes);
    }
    *out_bytes = bytes;
    return packed;
}

static bool unpack(struct adding *a, int rank, const char *at, size_t bytes) {
    for (const char *end = at + bytes; at < end;) {
        if (!reserve_files(a, 1))
            return false;
        struct part_file *file = &a->files[a->n_files++];
        *file = (struct part_file){.table = at, .rank = rank};
        file->path = file->table + strlen(file->table) + 1;
        at = file->path + strlen(file->path) + 1;
        memcpy(&file->size_bytes, at, sizeof file->size_bytes);
        at += sizeof file->size_bytes;
        memcpy(&file->footer_bytes, at, sizeof file->footer_bytes);
        at += sizeof file->footer_bytes;
        file->footer = (const uint8_t *)at;
        at += file->footer_bytes;
    }
    return true;
}

static enum sx_status exchange(struct adding *a, struct sx_error *error) {
    size_t own_bytes;
    const void *own = pack(a, &own_bytes);
    if (!own)
        return no_memory(error);
    a->n_own = a->n_files;
    a->n_files = 0;
    for (int r = 0; r < sx_net_size(a->net); r++) {
        const void *data = own;
        size_t bytes = own_bytes;
        SX_TRY(sx_net_broadcast(a->net, r, &a->arena, &data, &bytes, NULL, error));
        if (r == a->own->rank)
            a->first_own = a->n_files;
        if (!unpack(a, r, data, bytes))
            return no_memory(error);
    }
    return SX_OK;
}

/* ---- columns ---- */

static enum sx_status parse(const struct part_file *file, struct sx_footer **out_footer,
                            struct sx_error *error) {
    uint8_t *copy = malloc(file->footer_bytes);
    if (!copy)
        return no_memory(error);
    memcpy(copy, file->footer, file->footer_bytes);
    if (sx_footer_parse(copy, file->footer_bytes, file->size_bytes, out_footer, error) != SX_OK)
        return sx_error_prefix(error, "%s", file->path);
    return SX_OK;
}

static const char *type_of(const struct sx_file_column *column, char buffer[SX_TYPE_NAME_BYTES]) {
    return column->unreadable ? column->unreadable : sx_type_name(column->type, buffer);
}

static enum sx_status compare_columns(const struct adding *a, const struct part_file *file,
                                      const struct sx_footer *footer, const struct part_file *first,
                                      const struct sx_footer *wanted, struct sx_error *error) {
    const char *other = sx_net_rank_name(a->net, first->rank);
    char is[SX_TYPE_NAME_BYTES], expected[SX_TYPE_NAME_BYTES];
    for (int c = 0; c < wanted->n_columns; c++) {
        const struct sx_file_column *column = &wanted->columns[c];
        const int at = sx_footer_find(footer, column->name);
        if (at < 0)
            return sx_error_set(error, SX_FILE, "%s: the file has no column %s, which %s of %s has",
                                file->path, column->name, first->path, other);
        if (strcmp(type_of(&footer->columns[at], is), type_of(column, expected)) != 0)
            return sx_error_set(error, SX_FILE, "%s: column %s is %s here and %s in %s of %s", file->path,
                                column->name, type_of(&footer->columns[at], is), type_of(column, expected),
                                first->path, other);
    }
    for (int c = 0; c < footer->n_columns; c++)
        if (sx_footer_find(wanted, footer->columns[c].name) < 0)
            return sx_error_set(error, SX_FILE, "%s: the file has a column %s, which %s of %s has not",
                                file->path, footer->columns[c].name, first->path, other);
    return SX_OK;
}

static const struct part_file *first_of_table(const struct adding *a, const char *table) {
    const struct part_file *file = a->files;
    while (strcmp(file->table, table) != 0)
        file++;
    return file;
}

/* Each rank its own files, with the table's first one. */
static enum sx_status check_columns(const struct adding *a, struct sx_error *error) {
    enum sx_status status = SX_OK;
    for (int i = 0; i < a->n_own && status == SX_OK; i++) {
        const struct part_file *file = &a->files[a->first_own + i];
        const struct part_file *first = first_of_table(a, file->table);
        struct sx_footer *footer = NULL, *wanted = NULL;
        status = parse(file, &footer, error);
        if (status == SX_OK)
            status = parse(first, &wanted, error);
        if (status == SX_OK)
            status = compare_columns(a, file, footer, first, wanted, error);
        sx_footer_release(footer);
        sx_footer_release(wanted);
    }
    return status;
}

/* ---- tables ---- */

static bool is_local(const struct adding *a, const struct part_file *file) {
    return a->is_of_node ? a->places[file->rank].node == a->own->node : file->rank == a->own->rank;
}

static enum sx_status take_path(struct adding *a, const struct part_file *file, const char **out_path,
                                struct sx_error *error) {
    struct sx_file_stamp stamp;
    int fd;
    if (!is_local(a, file))
        return parts_stand_in(a->parts, &a->arena, file, out_path, error);
    *out_path = file->path;
    SX_TRY(sx_file_open(file->path, &fd, &stamp, error));
    sx_file_close(fd);
    return parts_keep(a->parts, file->path, &stamp, error);
}

static enum sx_status add_table(struct adding *a, const char *name, struct sx_error *error) {
    const char **paths = SX_ARENA_ARRAY(&a->arena, a->n_files, const char *);
    bool *local = SX_ARENA_ARRAY(&a->arena, a->n_files, bool);
    int n = 0;
    if (!paths || !local)
        return no_memory(error);
    for (int i = 0; i < a->n_files; i++) {
        const struct part_file *file = &a->files[i];
        if (strcasecmp(file->table, name) != 0)
            continue;
        if (strcmp(file->table, name) != 0)
            return sx_error_set(error, SX_FILE, "tables whose names differ in case alone: %s of %s, and %s",
                                file->path, sx_net_rank_name(a->net, file->rank), name);
        local[n] = is_local(a, file);
        SX_TRY(take_path(a, file, &paths[n++], error));
    }
    const struct sx_table_parts parts = {local, a->is_of_node ? a->own->gpu : 0,
                                         a->is_of_node ? a->own->node_ranks : 1};
    return sx_frontend_add_table(a->db->frontend, name, paths, n, &parts, error);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of their names, as those of one directory. */
static enum sx_status add_tables(struct adding *a, struct sx_error *error) {
    const char **names = SX_ARENA_ARRAY(&a->arena, a->n_files, const char *);
    if (!names)
        return no_memory(error);
    for (int i = 0; i < a->n_files; i++)
        names[i] = a->files[i].table;
    qsort(names, (size_t)a->n_files, sizeof *names, compare_names);
    for (int i = 0; i < a->n_files; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            SX_TRY(add_table(a, names[i], error));
    return SX_OK;
}

static enum sx_status add(struct adding *a, const char *name, const char *const *patterns, int n,
                          struct sx_error *error) {
    struct stachio_db *db = a->db;
    a->places = SX_ARENA_ARRAY(&a->arena, sx_net_size(a->net), struct part_place);
    if (!db->parts)
        db->parts = calloc(1, sizeof *db->parts);
    a->parts = db->parts;
    if (!a->places || !a->parts)
        return no_memory(error);
    a->own = &a->places[sx_net_rank(a->net)];
    parts_place(db->seats, sx_net_size(a->net), a->places);
    SX_TRY(check_patterns(a, patterns, n, error));
    SX_TRY(find_own(a, name, patterns, n, error));
    SX_TRY(exchange(a, error));
    if (a->n_files == 0)
        return sx_error_set(error, SX_FILE, "%s: no rank has a Parquet file there", patterns[0]);
    SX_TRY(check_columns(a, error));
    return add_tables(a, error);
}

enum sx_status sx_parts_add(struct stachio_db *db, const char *name, const char *const *patterns,
                            int n_patterns, struct sx_error *error) {
    struct adding a = {.db = db, .net = db->net};
    enum sx_status status = add(&a, name, patterns, n_patterns, error);
    sx_arena_release(&a.arena);
    return status;
}
