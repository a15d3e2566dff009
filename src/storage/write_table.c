/* A table's files: one, or a folder with part-00000.parquet, …, in folders COLUMN=VALUE where it is
 * partitioned. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "storage/write.h"

/* Something that was made, to be removed if the table does not get finished. */
struct made {
    struct made *before;
    bool is_folder;
    char path[];
};

struct sx_write_table {
    struct sx_pool *pool;
    struct sx_arena arena;
    const char *path;
    struct sx_write_options options;
    struct sx_write_column *columns;
    int n_columns;
    bool is_folder;
    struct sx_write_file *file; /* open; NULL: the next row group begins one */
    const char *folder;         /* of the files of the partition in work */
    char **partition;           /* its values; NULL array: none yet */
    int n_files;                /* of that folder */
    bool any;                   /* a file has been made */
    bool finished;
    struct made *made;
};

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for the names of files");
}

static enum sx_status remember(struct sx_write_table *table, const char *path, bool is_folder,
                               struct sx_error *error) {
    struct made *made = malloc(sizeof *made + strlen(path) + 1);
    if (!made)
        return no_memory(error);
    made->before = table->made;
    made->is_folder = is_folder;
    memcpy(made->path, path, strlen(path) + 1);
    table->made = made;
    return SX_OK;
}

static enum sx_status make_folder(struct sx_write_table *table, const char *path, struct sx_error *error) {
    if (mkdir(path, 0777) == 0)
        return remember(table, path, true, error);
    if (errno == EEXIST)
        return SX_OK;
    return sx_error_set(error, SX_OUTPUT, "%s: %s", path, strerror(errno));
}

/* ---- creation ---- */

static enum sx_status check_partition(const struct sx_write_table *table, struct sx_error *error) {
    if (table->options.n_partition >= table->n_columns)
        return sx_error_set(error, SX_USAGE, "partitions by all columns leave none to write");
    for (int i = 0; i < table->options.n_partition; i++)
        if (table->columns[i].type.id != SX_TYPE_VARCHAR)
            return sx_error_set(error, SX_USAGE, "column %s: its values are no names",
                                table->columns[i].name);
    return SX_OK;
}

/* A file names its columns by their places in it. */
static enum sx_status check_orders(const struct sx_write_table *table, struct sx_error *error) {
    const int first = table->options.n_partition;
    for (int i = 0; i < table->options.n_orders; i++) {
        const int column = table->options.orders[i].column;
        if (column < first || column >= table->n_columns)
            return sx_error_set(error, SX_USAGE, "orders: column %d is not within %d and %d", column, first,
                                table->n_columns - 1);
    }
    return SX_OK;
}

static enum sx_status copy(struct sx_write_table *table, const char *path,
                           const struct sx_write_column *columns, struct sx_error *error) {
    table->path = sx_arena_copy_text(&table->arena, path, strlen(path));
    table->columns = SX_ARENA_ARRAY(&table->arena, table->n_columns, struct sx_write_column);
    if (!table->path || !table->columns)
        return no_memory(error);
    for (int c = 0; c < table->n_columns; c++) {
        table->columns[c] = columns[c];
        SX_TRY(sx_write_column_store(&table->columns[c], error));
    }
    SX_TRY(check_partition(table, error));
    SX_TRY(check_orders(table, error));
    table->folder = table->path;
    return table->is_folder ? make_folder(table, table->path, error) : SX_OK;
}

enum sx_status sx_write_table_create(struct sx_pool *pool, const char *path,
                                     const struct sx_write_options *options,
                                     const struct sx_write_column *columns, int n_columns,
                                     struct sx_write_table **out_table, struct sx_error *error) {
    struct sx_write_table *table = calloc(1, sizeof *table);
    if (!table)
        return no_memory(error);
    table->pool = pool;
    table->options = *options;
    table->n_columns = n_columns;
    table->is_folder = options->file_rows || options->file_bytes || options->n_partition;
    enum sx_status status = copy(table, path, columns, error);
    if (status == SX_OK)
        *out_table = table;
    else
        sx_write_table_destroy(table);
    return status;
}

/* ---- folders of a partition ---- */

/* As DuckDB and Spark name null. */
static const char *const null_name = "__HIVE_DEFAULT_PARTITION__";

static bool is_plain(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr("_-.~ ", c);
}

/* "NAME=VALUE" with percent signs where a path would be misread. */
static char *folder_name(struct sx_arena *arena, const char *name, const char *value) {
    const char *const parts[] = {name, value};
    char *out = sx_arena_alloc(arena, 3 * (strlen(name) + strlen(value)) + 2);
    char *at = out;
    for (int p = 0; at && p < 2; p++) {
        for (const char *c = parts[p]; *c; c++)
            at += is_plain(*c) ? (*at = *c, 1) : sprintf(at, "%%%02X", (unsigned)(uint8_t)*c);
        *at++ = p == 0 ? '=' : 0;
    }
    return out;
}

static bool is_same_partition(const struct sx_write_table *table, const char *const *partition) {
    if (!table->partition)
        return table->options.n_partition == 0;
    for (int i = 0; i < table->options.n_partition; i++) {
        const char *before = table->partition[i], *now = partition[i];
        if (!before != !now || (now && strcmp(before, now) != 0))
            return false;
    }
    return true;
}

static enum sx_status begin_partition(struct sx_write_table *table, const char *const *partition,
                                      struct sx_error *error) {
    const int n = table->options.n_partition;
    char **kept = SX_ARENA_ARRAY(&table->arena, n, char *);
    const char *folder = table->path;
    for (int i = 0; kept && folder && i < n; i++) {
        const char *value = partition[i] ? partition[i] : null_name;
        const char *name = folder_name(&table->arena, table->columns[i].name, value);
        if (partition[i] &&
            !(kept[i] = sx_arena_copy_text(&table->arena, partition[i], strlen(partition[i]))))
            name = NULL;
        folder = name ? sx_arena_format(&table->arena, "%s/%s", folder, name) : NULL;
        if (folder)
            SX_TRY(make_folder(table, folder, error));
    }
    if (!kept || !folder)
        return no_memory(error);
    table->partition = kept;
    table->folder = folder;
    table->n_files = 0;
    return SX_OK;
}

/* ---- files ---- */

static enum sx_status end_file(struct sx_write_table *table, struct sx_error *error) {
    if (!table->file)
        return SX_OK;
    enum sx_status status = sx_write_file_finish(table->file, error);
    sx_write_file_destroy(table->file);
    table->file = NULL;
    return status;
}

static enum sx_status begin_file(struct sx_write_table *table, struct sx_error *error) {
    const int hidden = table->options.n_partition;
    const char *path = table->path;
    if (table->is_folder)
        path = sx_arena_format(&table->arena, "%s/part-%05d.parquet", table->folder, table->n_files++);
    if (!path)
        return no_memory(error);
    if (table->is_folder && access(path, F_OK) == 0)
        return sx_error_set(error, SX_OUTPUT, "%s: is there already", path);
    SX_TRY(remember(table, path, false, error));
    table->any = true;
    return sx_write_file_create(table->pool, path, &table->options, table->columns + hidden,
                                table->n_columns - hidden, &table->file, error);
}

/* Whether the row group would make the open file too large. */
static bool is_full(const struct sx_write_table *table, const struct sx_write_chunk *chunks) {
    if (!table->options.file_bytes || !table->file || sx_write_file_groups(table->file) == 0)
        return false;
    int64_t bytes = sx_write_file_bytes(table->file);
    for (int c = 0; c < table->n_columns - table->options.n_partition; c++)
        bytes += (int64_t)(chunks[c].bytes.size + chunks[c].column_index.size);
    return bytes > table->options.file_bytes;
}

enum sx_status sx_write_table_group(struct sx_write_table *table, struct sx_write_chunk *chunks, int64_t rows,
                                    const char *const *partition, bool is_last, struct sx_error *error) {
    const bool is_same = is_same_partition(table, partition);
    if (!is_same || is_full(table, chunks))
        SX_TRY(end_file(table, error));
    if (!is_same)
        SX_TRY(begin_partition(table, partition, error));
    if (!table->file)
        SX_TRY(begin_file(table, error));
    SX_TRY(sx_write_file_group(table->file, chunks, rows, error));
    return is_last ? end_file(table, error) : SX_OK;
}

enum sx_status sx_write_table_finish(struct sx_write_table *table, struct sx_error *error) {
    if (!table->any)
        SX_TRY(begin_file(table, error));
    SX_TRY(end_file(table, error));
    table->finished = true;
    return SX_OK;
}

void sx_write_table_destroy(struct sx_write_table *table) {
    if (!table)
        return;
    sx_write_file_destroy(table->file);
    while (table->made) {
        struct made *made = table->made;
        table->made = made->before;
        if (!table->finished && (made->is_folder ? rmdir(made->path) : unlink(made->path)) != 0)
            errno = 0; /* nothing more can be done */
        free(made);
    }
    sx_arena_release(&table->arena);
    free(table);
}
