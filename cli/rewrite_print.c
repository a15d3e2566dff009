#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "rewrite.h"

/* ---- what was told ---- */

static char *copy_encodings(const struct stachio_parquet_column *column) {
    struct text text = {0};
    text_add(&text, column->encodings);
    if (*column->codecs)
        text_format(&text, " (%s)", column->codecs);
    char *copy = strdup(text_string(&text));
    text_release(&text);
    return copy;
}

static bool copy_columns(struct rewrite_layout *layout, const struct stachio_parquet *parquet) {
    const size_t n = (size_t)parquet->n_columns + 1;
    layout->names = calloc(n, sizeof(*layout->names));
    layout->types = calloc(n, sizeof(*layout->types));
    layout->encodings = calloc(n, sizeof(*layout->encodings));
    layout->column_bytes = calloc(n, sizeof *layout->column_bytes);
    if (!layout->names || !layout->types || !layout->encodings || !layout->column_bytes)
        return false;
    layout->n_columns = parquet->n_columns;
    for (int c = 0; c < parquet->n_columns; c++) {
        layout->names[c] = strdup(parquet->columns[c].name);
        layout->types[c] = strdup(parquet->columns[c].type);
        layout->encodings[c] = copy_encodings(&parquet->columns[c]);
        layout->column_bytes[c] = parquet->columns[c].stored_bytes;
        if (!layout->names[c] || !layout->types[c] || !layout->encodings[c])
            return false;
    }
    return true;
}

enum stachio_status rewrite_layout_read(struct rewrite_layout *layout, struct stachio_db *db,
                                        const char *const *patterns, int n_patterns,
                                        struct stachio_error *error) {
    const struct stachio_parquet *parquet;
    *layout = (struct rewrite_layout){0};
    enum stachio_status status = stachio_inspect(db, patterns, n_patterns, &parquet, error);
    if (status)
        return status;
    layout->files = parquet->n_files;
    layout->row_groups = parquet->row_groups;
    layout->pages = parquet->pages;
    layout->rows = parquet->rows;
    layout->bytes = parquet->bytes;
    if (!copy_columns(layout, parquet))
        return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a file's description");
    return STACHIO_OK;
}

void rewrite_layout_release(struct rewrite_layout *layout) {
    for (int c = 0; c < layout->n_columns; c++) {
        free(layout->names[c]);
        free(layout->types[c]);
        free(layout->encodings[c]);
    }
    free(layout->names);
    free(layout->types);
    free(layout->encodings);
    free(layout->column_bytes);
    *layout = (struct rewrite_layout){0};
}

/* ---- printing ---- */

static void add_left(struct text *out, const char *text, int64_t width) {
    text_add(out, text);
    text_repeat(out, " ", width - text_width(text, strlen(text)));
}

static void add_right(struct text *out, const char *text, int64_t width) {
    text_repeat(out, " ", width - text_width(text, strlen(text)));
    text_add(out, text);
}

static void add_counts(struct text *out, const char *what, int64_t before, int64_t after) {
    char text[SIZE_TEXT_BYTES];
    add_left(out, what, 13);
    add_right(out, count_text(before, text), 16);
    add_right(out, count_text(after, text), 16);
    text_add_char(out, '\n');
}

static double per_row(const struct rewrite_layout *layout) {
    return layout->rows ? (double)layout->bytes / (double)layout->rows : 0;
}

static int column_named(const struct rewrite_layout *layout, const char *name) {
    int c = layout->n_columns - 1;
    while (c >= 0 && strcmp(layout->names[c], name) != 0)
        c--;
    return c;
}

static int64_t widest(char *const *texts, int n, int64_t least) {
    for (int i = 0; i < n; i++) {
        int64_t width = text_width(texts[i], strlen(texts[i]));
        least = width > least ? width : least;
    }
    return least;
}

static void add_columns(struct text *out, const struct rewrite_layout *before,
                        const struct rewrite_layout *after) {
    const int64_t name_width = widest(before->names, before->n_columns, 6) + 2;
    const int64_t type_width = widest(before->types, before->n_columns, 4) + 2;
    const int64_t before_width = widest(before->encodings, before->n_columns, 6) + 2;
    const int64_t after_width = widest(after->encodings, after->n_columns, 5) + 2;
    char bytes[SIZE_TEXT_BYTES];
    text_add_char(out, '\n');
    add_left(out, "column", name_width);
    add_left(out, "type", type_width);
    add_left(out, "before", before_width);
    add_right(out, "bytes", 10);
    text_add(out, "  ");
    add_left(out, "after", after_width);
    add_right(out, "bytes", 10);
    text_add_char(out, '\n');
    for (int c = 0; c < before->n_columns; c++) {
        int now = column_named(after, before->names[c]);
        add_left(out, before->names[c], name_width);
        add_left(out, before->types[c], type_width);
        add_left(out, before->encodings[c], before_width);
        add_right(out, size_text((double)before->column_bytes[c], bytes), 10);
        text_add(out, "  ");
        add_left(out, now < 0 ? "(folders)" : after->encodings[now], after_width);
        add_right(out, now < 0 ? "" : size_text((double)after->column_bytes[now], bytes), 10);
        text_add_char(out, '\n');
    }
}

void rewrite_print(struct text *out, const struct rewrite_layout *before,
                   const struct rewrite_layout *after) {
    add_left(out, "", 13);
    add_right(out, "before", 16);
    add_right(out, "after", 16);
    text_add_char(out, '\n');
    add_counts(out, "files", before->files, after->files);
    add_counts(out, "row groups", before->row_groups, after->row_groups);
    add_counts(out, "pages", before->pages, after->pages);
    add_counts(out, "rows", before->rows, after->rows);
    add_counts(out, "bytes", before->bytes, after->bytes);
    text_format(out, "bytes per row%16.2f%16.2f\n", per_row(before), per_row(after));
    add_columns(out, before, after);
}

void rewrite_print_line(struct text *out, const char *name, const struct rewrite_layout *before,
                        const struct rewrite_layout *after) {
    char texts[5][SIZE_TEXT_BYTES];
    text_format(out, "%s: %s rows; %s row groups, %lld pages, %s", name, count_text(before->rows, texts[0]),
                count_text(before->row_groups, texts[1]), (long long)before->pages,
                size_text((double)before->bytes, texts[2]));
    text_format(out, " -> %s row groups, %lld pages, %s\n", count_text(after->row_groups, texts[3]),
                (long long)after->pages, size_text((double)after->bytes, texts[4]));
}
