#include "storage/scan_state.h"

/* ---- types ---- */

static bool is_number(enum sx_type_id id) {
    return (id >= SX_TYPE_BOOL && id <= SX_TYPE_F64) || id == SX_TYPE_DECIMAL;
}

/* DuckDB casts each file's values to the first file's types; some casts may well be meant. */
static bool may_be_cast(struct sx_type from, struct sx_type to) {
    bool is_time = (from.id == SX_TYPE_DATE && to.id == SX_TYPE_TIMESTAMP) ||
                   (from.id == SX_TYPE_TIMESTAMP && to.id == SX_TYPE_DATE);
    return (is_number(from.id) && is_number(to.id)) || is_time;
}

static enum sx_status refuse_type(const struct sx_scan *scan, int file, int column,
                                  const struct sx_file_column *found, struct sx_error *error) {
    char expected[SX_TYPE_NAME_BYTES], is[SX_TYPE_NAME_BYTES];
    sx_type_name(scan->column_types[column], expected);
    sx_type_name(found->type, is);
    const char *path = scan->files[file].path;
    if (file == 0)
        return sx_error_set(error, SX_UNSUPPORTED, "%s, column %s: reading %s as %s", path,
                            scan->column_names[column], is, expected);
    if (may_be_cast(found->type, scan->column_types[column]))
        return sx_error_set(error, SX_UNSUPPORTED,
                            "files of one table with different types: column %s is %s in %s and %s in %s",
                            scan->column_names[column], expected, scan->files[0].path, is, path);
    return sx_error_set(error, SX_FILE,
                        "%s: files of one table with different types: column %s is %s here and %s in %s",
                        path, scan->column_names[column], is, expected, scan->files[0].path);
}

static enum sx_status match_column(struct sx_scan *scan, int file, int column, struct sx_error *error) {
    struct scan_file *of = &scan->files[file];
    const char *name = scan->column_names[column];
    int index = sx_footer_find(of->footer, name);
    if (index < 0) /* in the first file: DuckDB makes it from something else */
        return sx_error_set(error, file == 0 ? SX_UNSUPPORTED : SX_FILE, "%s: the file has no column %s",
                            of->path, name);
    const struct sx_file_column *found = &of->footer->columns[index];
    if (found->unreadable)
        return sx_error_set(error, SX_UNSUPPORTED, "%s, column %s: %s", of->path, name, found->unreadable);
    if (!sx_type_equal(found->type, scan->column_types[column]))
        return refuse_type(scan, file, column, found, error);
    of->columns[column] = index;
    return SX_OK;
}

/* ---- column chunks ---- */

static enum sx_status check_place(const struct sx_chunk_meta *chunk, int64_t file_bytes,
                                  struct sx_error *error) {
    int64_t begin = sx_chunk_begin(chunk);
    if (begin < 4 || chunk->stored_bytes < 0 || chunk->plain_bytes < 0)
        return sx_error_set(error, SX_FILE,
                            "the column chunk is said to be at %lld, with %lld bytes (%lld plain)",
                            (long long)begin, (long long)chunk->stored_bytes, (long long)chunk->plain_bytes);
    if (begin > file_bytes || chunk->stored_bytes > file_bytes - begin)
        return sx_error_set(
            error, SX_FILE,
            "the column chunk is said to be at %lld, with %lld bytes; the file has %lld bytes",
            (long long)begin, (long long)chunk->stored_bytes, (long long)file_bytes);
    return SX_OK;
}

static enum sx_status check_chunk(const struct sx_chunk_meta *chunk, const struct sx_file_column *column,
                                  int64_t n_rows, int64_t file_bytes, struct sx_error *error) {
    char name[SX_FORMAT_NAME_BYTES];
    if (chunk->is_encrypted)
        return sx_error_set(error, SX_FILE, "the column is encrypted, which is not supported");
    if (chunk->is_elsewhere)
        return sx_error_set(error, SX_UNSUPPORTED, "a column chunk in another file");
    if (!chunk->is_present)
        return sx_error_set(error, SX_FILE, "the column chunk has no metadata");
    if (chunk->physical != (int32_t)column->physical)
        return sx_error_set(error, SX_FILE, "the column chunk has physical type %d, the schema %d",
                            chunk->physical, (int)column->physical);
    if (!sx_codec_is_known(chunk->codec))
        return sx_error_set(error, SX_FILE, "the codec %s is not supported",
                            sx_codec_name(chunk->codec, name));
    if (chunk->n_values != n_rows)
        return sx_error_set(error, SX_FILE, "the column chunk has %lld values, the row group %lld rows",
                            (long long)chunk->n_values, (long long)n_rows);
    return check_place(chunk, file_bytes, error);
}

/* Once for each version of a file. */
static enum sx_status check_chunks(const char *path, const struct sx_footer *footer,
                                   struct sx_file_column *found, struct sx_error *error) {
    if (atomic_load_explicit(&found->is_checked, memory_order_relaxed))
        return SX_OK;
    for (int g = 0; g < footer->n_groups; g++) {
        const struct sx_group_meta *group = &footer->groups[g];
        if (group->n_rows == 0)
            continue;
        if (check_chunk(&group->chunks[found->leaf], found, group->n_rows, footer->file_bytes, error) !=
            SX_OK)
            return sx_error_prefix(error, "%s, row group %d, column %s", path, g, found->name);
    }
    atomic_store_explicit(&found->is_checked, true, memory_order_relaxed);
    return SX_OK;
}

enum sx_status sx_file_check(const char *path, struct sx_error *error) {
    int fd = -1;
    struct sx_file_stamp stamp;
    struct sx_footer *footer = NULL;
    enum sx_status status = SX_OK;
    SX_GO(sx_file_open(path, &fd, &stamp, error));
    SX_GO(sx_footer_read(path, fd, stamp.size_bytes, &footer, error));
    for (int c = 0; c < footer->n_columns; c++)
        if (!footer->columns[c].unreadable)
            SX_GO(check_chunks(path, footer, &footer->columns[c], error));
out:
    sx_footer_release(footer);
    sx_file_close(fd);
    return status;
}

enum sx_status scan_match_columns(struct sx_scan *scan, int file, struct sx_error *error) {
    struct scan_file *of = &scan->files[file];
    of->columns = SX_ARENA_ARRAY(&scan->arena, scan->n_columns, int);
    if (!of->columns)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan");
    if (of->footer->has_twins && scan->n_columns > 0)
        return sx_error_set(error, SX_UNSUPPORTED, "%s: columns whose names differ in case at most",
                            of->path);
    for (int c = 0; c < scan->n_columns; c++)
        SX_TRY(match_column(scan, file, c, error));
    for (int c = 0; c < scan->n_columns; c++)
        SX_TRY(check_chunks(of->path, of->footer, &of->footer->columns[of->columns[c]], error));
    return SX_OK;
}
