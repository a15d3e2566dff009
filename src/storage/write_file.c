/* One Parquet file: magic, row groups, page indexes, footer. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/write.h"

/* What the footer will tell of a row group; the chunks' bytes are gone. */
struct written_group {
    struct sx_write_chunk *chunks;
    int64_t *offsets;      /* of the chunks */
    int64_t *stored_bytes; /* of the chunks */
    int64_t rows;
};

/* Where a chunk's index is. */
struct place {
    int64_t offset;
    int32_t length_bytes;
};

struct sx_write_file {
    struct sx_pool *pool;
    char *path;
    const struct sx_write_options *options;
    const struct sx_write_column *columns;
    int n_columns;
    int fd;
    int64_t at; /* bytes written */
    int64_t rows;
    struct written_group *groups;
    int n_groups;
};

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a file's footer");
}

static enum sx_status write_failed(const struct sx_write_file *file, struct sx_error *error) {
    return sx_error_set(error, SX_OUTPUT, "%s: %s", file->path, strerror(errno));
}

static enum sx_status append(struct sx_write_file *file, const void *bytes, size_t length_bytes,
                             struct sx_error *error) {
    for (size_t done = 0; done < length_bytes;) {
        ssize_t n = write(file->fd, (const char *)bytes + done, length_bytes - done);
        if (n < 0 && errno != EINTR)
            return write_failed(file, error);
        done += n > 0 ? (size_t)n : 0;
    }
    file->at += (int64_t)length_bytes;
    return SX_OK;
}

enum sx_status sx_write_file_create(struct sx_pool *pool, const char *path,
                                    const struct sx_write_options *options,
                                    const struct sx_write_column *columns, int n_columns,
                                    struct sx_write_file **out_file, struct sx_error *error) {
    struct sx_write_file *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path))) {
        free(file);
        return no_memory(error);
    }
    file->pool = pool;
    file->options = options;
    file->columns = columns;
    file->n_columns = n_columns;
    file->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    enum sx_status status = file->fd < 0 ? write_failed(file, error) : append(file, "PAR1", 4, error);
    if (status == SX_OK)
        *out_file = file;
    else
        sx_write_file_destroy(file);
    return status;
}

static void release_group(struct sx_write_file *file, struct written_group *group) {
    for (int c = 0; group->chunks && c < file->n_columns; c++)
        sx_write_chunk_release(file->pool, &group->chunks[c]);
    free(group->chunks);
    free(group->offsets);
    free(group->stored_bytes);
}

void sx_write_file_destroy(struct sx_write_file *file) {
    if (!file)
        return;
    for (int g = 0; g < file->n_groups; g++)
        release_group(file, &file->groups[g]);
    free(file->groups);
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file);
}

int64_t sx_write_file_bytes(const struct sx_write_file *file) {
    return file->at;
}

int sx_write_file_groups(const struct sx_write_file *file) {
    return file->n_groups;
}

/* ---- row groups ---- */

static struct written_group *add_group(struct sx_write_file *file) {
    const size_t n = (size_t)file->n_columns;
    struct written_group *groups = realloc(file->groups, ((size_t)file->n_groups + 1) * sizeof *groups);
    if (!groups)
        return NULL;
    file->groups = groups;
    struct written_group *group = &groups[file->n_groups++];
    *group = (struct written_group){
        .chunks = calloc(n, sizeof *group->chunks),
        .offsets = calloc(n, sizeof *group->offsets),
        .stored_bytes = calloc(n, sizeof *group->stored_bytes),
    };
    return group->chunks && group->offsets && group->stored_bytes ? group : NULL;
}

enum sx_status sx_write_file_group(struct sx_write_file *file, struct sx_write_chunk *chunks, int64_t rows,
                                   struct sx_error *error) {
    struct written_group *group = add_group(file);
    if (!group)
        return no_memory(error);
    group->rows = rows;
    file->rows += rows;
    for (int c = 0; c < file->n_columns; c++) {
        struct sx_write_chunk *chunk = &group->chunks[c];
        *chunk = chunks[c];
        chunks[c] = (struct sx_write_chunk){0};
        group->offsets[c] = file->at;
        group->stored_bytes[c] = (int64_t)chunk->bytes.size;
        SX_TRY(append(file, chunk->bytes.data, chunk->bytes.size, error));
        sx_bytes_release(&chunk->bytes);
    }
    return SX_OK;
}

/* ---- page indexes ---- */

static void put_offset_index(struct sx_bytes *out, const struct sx_write_chunk *chunk, int64_t offset) {
    struct sx_thrift_out thrift = sx_thrift_to(out);
    int64_t at = offset + (int64_t)chunk->dictionary_bytes, row = 0;
    sx_thrift_put_list(&thrift, 1, SX_THRIFT_STRUCT, (size_t)chunk->n_pages);
    for (int i = 0; i < chunk->n_pages; i++) {
        sx_thrift_begin(&thrift, 0);
        sx_thrift_put_i64(&thrift, 1, at);
        sx_thrift_put_i32(&thrift, 2, (int32_t)chunk->pages[i].stored_bytes);
        sx_thrift_put_i64(&thrift, 3, row);
        sx_thrift_end(&thrift);
        at += chunk->pages[i].stored_bytes;
        row += chunk->pages[i].rows;
    }
    sx_thrift_end(&thrift);
}

/* Column indexes first, then offset indexes; their places by row group and column. */
static enum sx_status write_indexes(struct sx_write_file *file, struct sx_bytes *scratch,
                                    struct place *column_places, struct place *offset_places,
                                    struct sx_error *error) {
    const int n = file->n_columns;
    for (int i = 0; i < file->n_groups * n; i++) {
        const struct sx_bytes *index = &file->groups[i / n].chunks[i % n].column_index;
        column_places[i] = (struct place){index->size ? file->at : 0, (int32_t)index->size};
        SX_TRY(append(file, index->data, index->size, error));
    }
    for (int i = 0; i < file->n_groups * n; i++) {
        scratch->size = 0;
        put_offset_index(scratch, &file->groups[i / n].chunks[i % n], file->groups[i / n].offsets[i % n]);
        SX_TRY(sx_bytes_status(scratch));
        offset_places[i] = (struct place){file->at, (int32_t)scratch->size};
        SX_TRY(append(file, scratch->data, scratch->size, error));
    }
    return SX_OK;
}

/* ---- footer ---- */

static void put_encodings(struct sx_thrift_out *out, const struct sx_write_column *column,
                          const struct sx_write_chunk *chunk) {
    const bool has_levels = column->is_optional && chunk->encoding != SX_ENCODING_RLE;
    const bool has_dictionary = chunk->dictionary_bytes > 0;
    sx_thrift_put_list(out, 2, SX_THRIFT_I32, (size_t)1 + has_levels + has_dictionary);
    sx_thrift_add_number(out, chunk->encoding);
    if (has_levels)
        sx_thrift_add_number(out, SX_ENCODING_RLE);
    if (has_dictionary)
        sx_thrift_add_number(out, SX_ENCODING_PLAIN);
}

static void put_encoding_count(struct sx_thrift_out *out, int page_type, int encoding, int count) {
    sx_thrift_begin(out, 0);
    sx_thrift_put_i32(out, 1, page_type);
    sx_thrift_put_i32(out, 2, encoding);
    sx_thrift_put_i32(out, 3, count);
    sx_thrift_end(out);
}

static void put_encoding_counts(struct sx_thrift_out *out, const struct sx_write_chunk *chunk, bool is_v1) {
    const bool has_dictionary = chunk->dictionary_bytes > 0;
    sx_thrift_put_list(out, 13, SX_THRIFT_STRUCT, (size_t)1 + has_dictionary);
    if (has_dictionary)
        put_encoding_count(out, 2, SX_ENCODING_PLAIN, 1);
    put_encoding_count(out, is_v1 ? 0 : 3, (int)chunk->encoding, chunk->n_pages);
}

static void put_chunk_meta(struct sx_write_file *file, struct sx_thrift_out *out,
                           const struct written_group *group, int c) {
    const struct sx_write_column *column = &file->columns[c];
    const struct sx_write_chunk *chunk = &group->chunks[c];
    const int64_t offset = group->offsets[c];
    sx_thrift_begin(out, 3);
    sx_thrift_put_i32(out, 1, (int32_t)column->physical);
    put_encodings(out, column, chunk);
    sx_thrift_put_list(out, 3, SX_THRIFT_BINARY, 1);
    sx_thrift_add_binary(out, column->name, strlen(column->name));
    sx_thrift_put_i32(out, 4, (int32_t)chunk->codec);
    sx_thrift_put_i64(out, 5, chunk->n_values);
    sx_thrift_put_i64(out, 6, chunk->plain_bytes);
    sx_thrift_put_i64(out, 7, group->stored_bytes[c]);
    sx_thrift_put_i64(out, 9, offset + (int64_t)chunk->dictionary_bytes);
    if (chunk->dictionary_bytes)
        sx_thrift_put_i64(out, 11, offset);
    sx_thrift_put_struct(out, 12, chunk->statistics.data, chunk->statistics.size);
    put_encoding_counts(out, chunk, file->options->data_page_v1);
    sx_thrift_end(out);
}

static void put_chunk(struct sx_write_file *file, struct sx_thrift_out *out,
                      const struct written_group *group, int c, const struct place *column_place,
                      const struct place *offset_place) {
    sx_thrift_begin(out, 0);
    sx_thrift_put_i64(out, 2, 0);
    put_chunk_meta(file, out, group, c);
    sx_thrift_put_i64(out, 4, offset_place->offset);
    sx_thrift_put_i32(out, 5, offset_place->length_bytes);
    if (column_place->length_bytes) {
        sx_thrift_put_i64(out, 6, column_place->offset);
        sx_thrift_put_i32(out, 7, column_place->length_bytes);
    }
    sx_thrift_end(out);
}

static void put_orders(struct sx_thrift_out *out, const struct sx_write_options *options) {
    if (!options->n_orders)
        return;
    sx_thrift_put_list(out, 4, SX_THRIFT_STRUCT, (size_t)options->n_orders);
    for (int i = 0; i < options->n_orders; i++) {
        sx_thrift_begin(out, 0);
        sx_thrift_put_i32(out, 1, options->orders[i].column - options->n_partition);
        sx_thrift_put_bool(out, 2, options->orders[i].descending);
        sx_thrift_put_bool(out, 3, options->orders[i].nulls_first);
        sx_thrift_end(out);
    }
}

static void put_group(struct sx_write_file *file, struct sx_thrift_out *out, int g,
                      const struct place *column_places, const struct place *offset_places) {
    const struct written_group *group = &file->groups[g];
    const int n = file->n_columns;
    int64_t plain_bytes = 0, stored_bytes = 0;
    sx_thrift_begin(out, 0);
    sx_thrift_put_list(out, 1, SX_THRIFT_STRUCT, (size_t)n);
    for (int c = 0; c < n; c++) {
        put_chunk(file, out, group, c, &column_places[g * n + c], &offset_places[g * n + c]);
        plain_bytes += group->chunks[c].plain_bytes;
        stored_bytes += group->stored_bytes[c];
    }
    sx_thrift_put_i64(out, 2, plain_bytes);
    sx_thrift_put_i64(out, 3, group->rows);
    put_orders(out, file->options);
    sx_thrift_put_i64(out, 5, group->offsets[0]);
    sx_thrift_put_i64(out, 6, stored_bytes);
    if (g <= INT16_MAX)
        sx_thrift_put_i16(out, 7, (int16_t)g);
    sx_thrift_end(out);
}

static void put_footer(struct sx_write_file *file, struct sx_bytes *bytes, const struct place *column_places,
                       const struct place *offset_places) {
    struct sx_thrift_out out = sx_thrift_to(bytes);
    sx_thrift_put_i32(&out, 1, 2);
    sx_write_schema(&out, 2, file->columns, file->n_columns);
    sx_thrift_put_i64(&out, 3, file->rows);
    sx_thrift_put_list(&out, 4, SX_THRIFT_STRUCT, (size_t)file->n_groups);
    for (int g = 0; g < file->n_groups; g++)
        put_group(file, &out, g, column_places, offset_places);
    sx_thrift_put_text(&out, 6, "stachio version " STACHIO_VERSION);
    sx_thrift_put_list(&out, 7, SX_THRIFT_STRUCT, (size_t)file->n_columns);
    for (int c = 0; c < file->n_columns; c++) {
        sx_thrift_begin(&out, 0);
        sx_thrift_put_empty(&out, 1); /* the type's own order */
        sx_thrift_end(&out);
    }
    sx_thrift_end(&out);
}

static enum sx_status finish(struct sx_write_file *file, struct place *places, struct sx_bytes *scratch,
                             struct sx_error *error) {
    struct place *offset_places = places + (size_t)file->n_groups * (size_t)file->n_columns;
    SX_TRY(write_indexes(file, scratch, places, offset_places, error));
    scratch->size = 0;
    put_footer(file, scratch, places, offset_places);
    SX_TRY(sx_bytes_status(scratch));
    if (scratch->size > UINT32_MAX)
        return sx_error_set(error, SX_UNSUPPORTED, "%s: a footer of %zu bytes is too long; use more files",
                            file->path, scratch->size);
    sx_bytes_append_u32(scratch, (uint32_t)scratch->size);
    sx_bytes_append(scratch, "PAR1", 4);
    SX_TRY(sx_bytes_status(scratch));
    SX_TRY(append(file, scratch->data, scratch->size, error));
    int fd = file->fd;
    file->fd = -1;
    return close(fd) == 0 ? SX_OK : write_failed(file, error);
}

enum sx_status sx_write_file_finish(struct sx_write_file *file, struct sx_error *error) {
    struct sx_bytes scratch = sx_bytes_in(file->pool, error);
    struct place *places = calloc(2 * (size_t)file->n_groups * (size_t)file->n_columns + 1, sizeof *places);
    enum sx_status status = places ? finish(file, places, &scratch, error) : no_memory(error);
    sx_bytes_release(&scratch);
    free(places);
    return status;
}
