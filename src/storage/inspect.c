#include "storage/inspect.h"

#include <string.h>

#include "storage/file.h"
#include "storage/page_walk.h"

enum { SHORT_HEADER_BYTES = 256, LONG_HEADER_BYTES = 64 << 10 };

/* The header at `offset`; most are short. */
static enum sx_status peek(int fd, int64_t offset, int64_t left_bytes, struct sx_page_peek *out_peek,
                           struct sx_error *error) {
    static const size_t sizes[] = {SHORT_HEADER_BYTES, LONG_HEADER_BYTES};
    uint8_t bytes[LONG_HEADER_BYTES];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = left_bytes < (int64_t)sizes[i] ? (size_t)left_bytes : sizes[i];
        SX_TRY(sx_file_read(fd, offset, n, bytes, error));
        if (sx_page_peek(bytes, n, out_peek))
            return SX_OK;
    }
    return sx_error_set(error, SX_FILE, "the header of the page at %lld is corrupt", (long long)offset);
}

static enum sx_status inspect_chunk(int fd, const struct sx_chunk_meta *chunk,
                                    struct sx_inspect_column *column, int64_t *pages,
                                    struct sx_error *error) {
    int64_t at = sx_chunk_begin(chunk), end = at + chunk->stored_bytes, values = 0;
    column->stored_bytes += chunk->stored_bytes;
    column->plain_bytes += chunk->plain_bytes;
    if (chunk->codec >= 0 && chunk->codec < 32)
        column->codecs |= 1U << chunk->codec;
    while (values < chunk->n_values && at < end) {
        struct sx_page_peek page;
        SX_TRY(peek(fd, at, end - at, &page, error));
        at += (int64_t)page.header_bytes + page.stored_bytes;
        values += page.n_values;
        *pages += page.is_data;
        if (page.is_data && page.encoding >= 0 && page.encoding < SX_INSPECT_ENCODINGS)
            column->pages[page.encoding]++;
    }
    return SX_OK;
}

/* Leaves below a column of a nested type count as the column's. */
static int column_of_leaf(const struct sx_footer *footer, int leaf) {
    int c = footer->n_columns - 1;
    while (c > 0 && footer->columns[c].leaf > leaf)
        c--;
    return c;
}

static enum sx_status inspect_groups(int fd, const struct sx_footer *footer, struct sx_inspect *out,
                                     struct sx_error *error) {
    for (int g = 0; g < footer->n_groups; g++) {
        for (int leaf = 0; leaf < footer->n_leaves; leaf++) {
            const struct sx_chunk_meta *chunk = &footer->groups[g].chunks[leaf];
            struct sx_inspect_column *column = &out->columns[column_of_leaf(footer, leaf)];
            if (!chunk->is_present || chunk->is_elsewhere || chunk->is_encrypted)
                continue;
            if (inspect_chunk(fd, chunk, column, &out->pages, error) != SX_OK)
                return sx_error_prefix(error, "row group %d, column %s", g, column->name);
        }
    }
    return SX_OK;
}

static enum sx_status set_columns(struct sx_arena *arena, const struct sx_footer *footer,
                                  struct sx_inspect *out, struct sx_error *error) {
    out->n_columns = footer->n_columns;
    out->columns = SX_ARENA_ARRAY(arena, footer->n_columns, struct sx_inspect_column);
    for (int c = 0; out->columns && c < footer->n_columns; c++) {
        const struct sx_file_column *from = &footer->columns[c];
        struct sx_inspect_column *to = &out->columns[c];
        to->name = sx_arena_copy_text(arena, from->name, strlen(from->name));
        to->type = from->type;
        to->unreadable = from->unreadable; /* a literal */
        to->is_optional = from->is_optional;
        if (!to->name)
            out->columns = NULL;
    }
    return out->columns ? SX_OK
                        : sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for columns");
}

static enum sx_status inspect(struct sx_arena *arena, int fd, const struct sx_footer *footer,
                              struct sx_inspect *out, struct sx_error *error) {
    out->rows = footer->n_rows;
    out->row_groups = footer->n_groups;
    out->bytes = footer->file_bytes;
    SX_TRY(set_columns(arena, footer, out, error));
    return inspect_groups(fd, footer, out, error);
}

enum sx_status sx_inspect_file(struct sx_arena *arena, const char *path, struct sx_inspect *out_inspect,
                               struct sx_error *error) {
    struct sx_inspect made = {0};
    struct sx_file_stamp stamp;
    struct sx_footer *footer;
    int fd;
    SX_TRY(sx_file_open(path, &fd, &stamp, error));
    enum sx_status status = sx_footer_read(path, fd, stamp.size_bytes, &footer, error);
    if (status == SX_OK) {
        status = inspect(arena, fd, footer, &made, error);
        if (status != SX_OK)
            (void)sx_error_prefix(error, "%s", path);
        sx_footer_release(footer);
    }
    sx_file_close(fd);
    if (status == SX_OK)
        *out_inspect = made;
    return status;
}
