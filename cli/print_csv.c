#include <string.h>

#include "answer.h"

/* RFC 4180: quotes where a bare field would be misread; an empty text is quoted, since nothing at all is
 * NULL. */
static void add_field(struct text *out, const char *bytes, size_t n) {
    bool is_bare = n > 0;
    for (size_t i = 0; is_bare && i < n; i++)
        is_bare = bytes[i] != ',' && bytes[i] != '"' && bytes[i] != '\n' && bytes[i] != '\r';
    if (is_bare) {
        text_append(out, bytes, n);
        return;
    }
    text_add_char(out, '"');
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '"')
            text_add_char(out, '"');
        text_add_char(out, bytes[i]);
    }
    text_add_char(out, '"');
}

static void add_value(struct text *out, struct text *scratch, const struct column *column,
                      const struct ArrowArray *array, int64_t row) {
    if (value_is_null(column, array, row))
        return;
    if (column_is_number(column)) {
        value_text(out, column, array, row);
        return;
    }
    text_clear(scratch);
    value_text(scratch, column, array, row);
    out->failed |= scratch->failed;
    add_field(out, scratch->bytes, scratch->used_bytes);
}

static enum stachio_status print_rows(const struct answer *answer, const struct ArrowArray *array,
                                      struct text *scratch, struct output *output,
                                      struct stachio_error *error) {
    for (int64_t i = 0; i < array->length; i++) {
        for (int c = 0; c < answer->n_columns; c++) {
            if (c)
                text_add_char(&output->text, ',');
            add_value(&output->text, scratch, &answer->columns[c], array->children[c], array->offset + i);
        }
        text_add_char(&output->text, '\n');
        enum stachio_status status = output_write(output, error);
        if (status)
            return status;
    }
    return STACHIO_OK;
}

enum stachio_status print_csv(struct answer *answer, struct output *output, struct stachio_error *error) {
    for (int c = 0; c < answer->n_columns; c++) {
        if (c)
            text_add_char(&output->text, ',');
        add_field(&output->text, answer->columns[c].name, strlen(answer->columns[c].name));
    }
    text_add_char(&output->text, '\n');
    struct text scratch = {0};
    struct ArrowArray array = {0};
    enum stachio_status status;
    while (!(status = answer_next(answer, &array, error)) && array.release) {
        status = print_rows(answer, &array, &scratch, output, error);
        array.release(&array);
        if (status)
            break;
    }
    text_release(&scratch);
    return status;
}
