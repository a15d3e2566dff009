#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "message.h"

enum { MAX_CELL_WIDTH = 200 };

/* All arrays of an answer, since columns are as wide as their widest value. */
struct table {
    const struct answer *answer;
    struct ArrowArray *arrays;
    int64_t n_arrays;
    int64_t rows;
    int64_t *widths;
    struct text cell;
    int64_t head, tail; /* rows shown from the top and from the bottom */
    struct output *output;
    enum stachio_status status; /* of writing */
    struct stachio_error *error;
};

static enum stachio_status no_memory(struct stachio_error *error) {
    return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the answer's text");
}

static enum stachio_status collect(struct table *table, struct answer *answer, struct stachio_error *error) {
    for (int64_t capacity = 0;;) {
        struct ArrowArray array;
        enum stachio_status status = answer_next(answer, &array, error);
        if (status || !array.release)
            return status;
        if (table->n_arrays == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct ArrowArray *arrays = realloc(table->arrays, (size_t)capacity * sizeof *arrays);
            if (!arrays) {
                array.release(&array);
                return no_memory(error);
            }
            table->arrays = arrays;
        }
        table->arrays[table->n_arrays++] = array;
        table->rows += array.length;
    }
}

/* A text for one line of a terminal: control characters escaped, cut when it is long. */
static void add_line(struct text *out, const char *bytes, size_t n) {
    int64_t width = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        width += (c & 0xC0) != 0x80;
        if (width > MAX_CELL_WIDTH) {
            text_add(out, "…");
            return;
        }
        if (c == '\n')
            text_add(out, "\\n");
        else if (c == '\t')
            text_add(out, "\\t");
        else if (c < 0x20 || c == 0x7F)
            text_format(out, "\\x%02X", c);
        else
            text_add_char(out, (char)c);
    }
}

/* The cell's text in table->cell. */
static void read_cell(struct table *table, const struct ArrowArray *array, int64_t row, int c) {
    struct text value = {0};
    value_text(&value, &table->answer->columns[c], array->children[c], array->offset + row);
    text_clear(&table->cell);
    add_line(&table->cell, value.bytes, value.used_bytes);
    table->cell.failed |= value.failed;
    text_release(&value);
}

static void read_name(struct table *table, int c) {
    text_clear(&table->cell);
    add_line(&table->cell, table->answer->columns[c].name, strlen(table->answer->columns[c].name));
}

static void widen(struct table *table, int c) {
    int64_t width = text_width(table->cell.bytes, table->cell.used_bytes);
    if (width > table->widths[c])
        table->widths[c] = width;
}

typedef void visit_row(struct table *table, const struct ArrowArray *array, int64_t row, struct text *out);

/* Calls `visit` for the rows that are shown, and `gap` (if not NULL) where rows are left out. */
static void visit_rows(struct table *table, visit_row *visit, visit_row *gap, struct text *out) {
    int64_t at = 0, hidden_end = table->rows - table->tail;
    for (int64_t a = 0; a < table->n_arrays; a++) {
        for (int64_t i = 0; i < table->arrays[a].length; i++, at++) {
            if (at < table->head || at >= hidden_end)
                visit(table, &table->arrays[a], i, out);
            else if (at == table->head && gap)
                gap(table, NULL, 0, out);
            if (table->status)
                return;
        }
    }
}

static void measure_row(struct table *table, const struct ArrowArray *array, int64_t row, struct text *out) {
    (void)out;
    for (int c = 0; c < table->answer->n_columns; c++) {
        read_cell(table, array, row, c);
        widen(table, c);
    }
}

static void add_rule(struct table *table, struct text *out, const char *left, const char *middle,
                     const char *right) {
    for (int c = 0; c < table->answer->n_columns; c++) {
        text_add(out, c ? middle : left);
        text_repeat(out, "─", table->widths[c] + 2);
    }
    text_add(out, right);
    text_add_char(out, '\n');
}

/* table->cell within the borders of its column. */
static void add_cell(struct table *table, struct text *out, int c, bool to_the_right) {
    int64_t room = table->widths[c] - text_width(table->cell.bytes, table->cell.used_bytes);
    text_add(out, "│ ");
    if (to_the_right)
        text_repeat(out, " ", room);
    text_append(out, table->cell.bytes, table->cell.used_bytes);
    if (!to_the_right)
        text_repeat(out, " ", room);
    text_add_char(out, ' ');
}

static void add_row(struct table *table, const struct ArrowArray *array, int64_t row, struct text *out) {
    for (int c = 0; c < table->answer->n_columns; c++) {
        read_cell(table, array, row, c);
        add_cell(table, out, c, column_is_number(&table->answer->columns[c]));
    }
    text_add(out, "│\n");
    table->status = output_write(table->output, table->error);
}

static void add_gap(struct table *table, const struct ArrowArray *array, int64_t row, struct text *out) {
    (void)array, (void)row;
    for (int c = 0; c < table->answer->n_columns; c++) {
        text_clear(&table->cell);
        text_add(&table->cell, "·");
        add_cell(table, out, c, column_is_number(&table->answer->columns[c]));
    }
    text_add(out, "│\n");
}

static void add_header(struct table *table, struct text *out) {
    add_rule(table, out, "┌", "┬", "┐");
    for (int c = 0; c < table->answer->n_columns; c++) {
        read_name(table, c);
        add_cell(table, out, c, column_is_number(&table->answer->columns[c]));
    }
    text_add(out, "│\n");
    add_rule(table, out, "├", "┼", "┤");
}

static void add_count(struct table *table, struct text *out) {
    char rows[SIZE_TEXT_BYTES], shown[SIZE_TEXT_BYTES];
    text_format(out, "(%s row%s", count_text(table->rows, rows), table->rows == 1 ? "" : "s");
    if (table->head + table->tail < table->rows)
        text_format(out, ", %s shown", count_text(table->head + table->tail, shown));
    text_add(out, ")\n");
}

static enum stachio_status print(struct table *table, int64_t max_rows) {
    const struct answer *answer = table->answer;
    struct text *out = &table->output->text;
    table->widths = calloc((size_t)answer->n_columns + 1, sizeof *table->widths);
    if (!table->widths)
        return no_memory(table->error);
    table->head = max_rows && table->rows > max_rows ? (max_rows + 1) / 2 : table->rows;
    table->tail = max_rows && table->rows > max_rows ? max_rows / 2 : 0;
    for (int c = 0; c < answer->n_columns; c++) {
        read_name(table, c);
        widen(table, c);
    }
    visit_rows(table, measure_row, NULL, NULL);
    add_header(table, out);
    visit_rows(table, add_row, add_gap, out);
    if (table->status)
        return table->status;
    add_rule(table, out, "└", "┴", "┘");
    add_count(table, out);
    out->failed |= table->cell.failed;
    return output_write(table->output, table->error);
}

enum stachio_status print_table(struct answer *answer, struct output *output, int64_t max_rows,
                                struct stachio_error *error) {
    struct table table = {.answer = answer, .output = output, .error = error};
    enum stachio_status status = collect(&table, answer, error);
    if (!status)
        status = print(&table, max_rows);
    for (int64_t a = 0; a < table.n_arrays; a++)
        table.arrays[a].release(&table.arrays[a]);
    free(table.arrays);
    free(table.widths);
    text_release(&table.cell);
    return status;
}
