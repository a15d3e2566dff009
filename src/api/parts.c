#include "api/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "api/files.h"
#include "api/parts_file.h"
#include "base/array.h"

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
    int64_t capacity;     /* of them */
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

/* A place behind the others, zeroed. NULL: no memory. */
static struct part_file *new_file(struct adding *a) {
    struct part_file *files = sx_array_grow(a->files, sizeof *files, a->n_files, &a->capacity);
    if (!files)
        return NULL;
    a->files = files;
    files[a->n_files] = (struct part_file){0};
    return &files[a->n_files++];
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
    struct part_file *file = bytes ? new_file(a) : NULL;
    if (file) {
        memcpy(bytes, footer->bytes, footer->length_bytes);
        *file = (struct part_file){.table = table,
                                   .path = path,
                                   .rank = a->own->rank,
                                   .size_bytes = stamp.size_bytes,
                                   .footer = bytes,
                                   .footer_bytes = footer->length_bytes};
    }
    sx_footer_release(footer);
    return file ? SX_OK : no_memory(error);
}

static enum sx_status read_files(struct adding *a, const char *table, const struct sx_file_list *files,
                                 struct sx_error *error) {
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
        struct part_file *file = new_file(a);
        if (!file)
            return false;
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

static enum sx_status take_path(struct adding *a, struct part_table *table, const struct part_file *file,
                                const char **out_path, struct sx_error *error) {
    struct sx_file_stamp stamp;
    int fd;
    if (!is_local(a, file))
        return parts_stand_in(table, &a->arena, file, out_path, error);
    *out_path = file->path;
    SX_TRY(sx_file_open(file->path, &fd, &stamp, error));
    sx_file_close(fd);
    return parts_keep(table, file->path, &stamp, error);
}

/* Fills `table`, paths and is_local (of all files) with what there is of it. */
static enum sx_status take_paths(struct adding *a, struct part_table *table, const char **paths,
                                 bool *is_local_path, int *out_n, struct sx_error *error) {
    for (int i = 0; i < a->n_files; i++) {
        const struct part_file *file = &a->files[i];
        if (strcasecmp(file->table, table->name) != 0)
            continue;
        if (strcmp(file->table, table->name) != 0)
            return sx_error_set(error, SX_FILE, "tables whose names differ in case alone: %s of %s, and %s",
                                file->path, sx_net_rank_name(a->net, file->rank), table->name);
        is_local_path[*out_n] = is_local(a, file);
        SX_TRY(take_path(a, table, file, &paths[(*out_n)++], error));
    }
    return SX_OK;
}

static struct part_table *find_table(struct sx_parts *parts, const char *name) {
    for (int64_t i = 0; i < parts->n_tables; i++)
        if (strcasecmp(parts->tables[i].name, name) == 0)
            return &parts->tables[i];
    return NULL;
}

/* With room for one more. */
static bool make_room(struct sx_parts *parts) {
    struct part_table *tables =
        sx_array_grow(parts->tables, sizeof *tables, parts->n_tables, &parts->capacity);
    if (tables)
        parts->tables = tables;
    return tables;
}

/* In place of the one that had its name. */
static void put_table(struct sx_parts *parts, const struct part_table *table) {
    sx_parts_drop(parts, table->name);
    parts->tables[parts->n_tables++] = *table;
}

static enum sx_status add_table(struct adding *a, const char *name, struct sx_error *error) {
    const char **paths = SX_ARENA_ARRAY(&a->arena, a->n_files, const char *);
    bool *local = SX_ARENA_ARRAY(&a->arena, a->n_files, bool);
    struct part_table table = {.name = strdup(name)};
    enum sx_status status = SX_OK;
    int n = 0;
    if (!paths || !local || !table.name || !make_room(a->parts))
        SX_GO(no_memory(error));
    SX_GO(take_paths(a, &table, paths, local, &n, error));
    const struct sx_table_parts parts = {local, a->is_of_node ? a->own->gpu : 0,
                                         a->is_of_node ? a->own->node_ranks : 1};
    SX_GO(sx_frontend_add_table(a->db->frontend, name, paths, n, &parts, error));
    put_table(a->parts, &table);
    return SX_OK;
out:
    parts_name_ranks(&table, error);
    parts_table_release(&table);
    return status;
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
    SX_TRY(sx_net_gather(a->net, NULL, 0, NULL, NULL, error)); /* else no rank replaces a table */
    return add_tables(a, error);
}

enum sx_status sx_parts_add(struct stachio_db *db, const char *name, const char *const *patterns,
                            int n_patterns, struct sx_error *error) {
    struct adding a = {.db = db, .net = db->net};
    enum sx_status status = add(&a, name, patterns, n_patterns, error);
    free(a.files);
    sx_arena_release(&a.arena);
    return status;
}

/* ---- afterwards ---- */

static enum sx_status check_own(const struct part_own *own, struct sx_error *error) {
    struct stat found;
    struct sx_file_stamp now;
    if (stat(own->path, &found) != 0)
        return sx_error_set(error, SX_FILE, "%s: %s", own->path, strerror(errno));
    sx_file_stamp_set(&found, &now);
    return sx_file_stamp_equal(&now, &own->stamp)
               ? SX_OK
               : sx_error_set(error, SX_FILE,
                              "%s: the file has changed since its table was added, and the other ranks have "
                              "planned with what it was",
                              own->path);
}

enum sx_status sx_parts_check(const struct sx_parts *parts, const char *sql, struct sx_error *error) {
    for (int64_t t = 0; parts && t < parts->n_tables; t++) {
        const struct part_table *table = &parts->tables[t];
        const int64_t n = sx_frontend_mentions(sql, table->name) ? table->n_own : 0;
        for (int64_t i = 0; i < n; i++)
            SX_TRY(check_own(&table->own[i], error));
    }
    return SX_OK;
}

void sx_parts_drop(struct sx_parts *parts, const char *name) {
    struct part_table *table = parts ? find_table(parts, name) : NULL;
    if (!table)
        return;
    parts_table_release(table);
    *table = parts->tables[--parts->n_tables];
}

enum sx_status sx_parts_explain(const struct sx_parts *parts, enum sx_status status, struct sx_error *error) {
    for (int64_t t = 0; status != SX_OK && parts && t < parts->n_tables; t++)
        parts_name_ranks(&parts->tables[t], error);
    return status;
}

void sx_parts_destroy(struct sx_parts *parts) {
    if (!parts)
        return;
    for (int64_t t = 0; t < parts->n_tables; t++)
        parts_table_release(&parts->tables[t]);
    free(parts->tables);
    free(parts);
}
