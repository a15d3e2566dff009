#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "message.h"

/* One object a line. Names are quoted once, ahead. */
static void add_row(struct text *out, const struct answer *answer, const struct text *names,
                    const struct ArrowArray *array, int64_t row) {
    text_add_char(out, '{');
    for (int c = 0; c < answer->n_columns; c++) {
        if (c)
            text_add_char(out, ',');
        text_append(out, names[c].bytes, names[c].used_bytes);
        text_add_char(out, ':');
        value_json(out, &answer->columns[c], array->children[c], array->offset + row);
    }
    text_add_char(out, '}');
}

static enum stachio_status print_rows(const struct answer *answer, const struct text *names,
                                      const struct ArrowArray *array, bool is_first, struct output *output,
                                      struct stachio_error *error) {
    for (int64_t i = 0; i < array->length; i++) {
        if (i || !is_first)
            text_add(&output->text, ",\n");
        add_row(&output->text, answer, names, array, i);
        enum stachio_status status = output_write(output, error);
        if (status)
            return status;
    }
    return STACHIO_OK;
}

static enum stachio_status print_arrays(struct answer *answer, const struct text *names,
                                        struct output *output, struct stachio_error *error) {
    struct ArrowArray array = {0};
    bool is_first = true;
    enum stachio_status status;
    text_add_char(&output->text, '[');
    while (!(status = answer_next(answer, &array, error)) && array.release) {
        status = print_rows(answer, names, &array, is_first, output, error);
        is_first &= !array.length;
        array.release(&array);
        if (status)
            return status;
    }
    text_add(&output->text, "]\n");
    return status;
}

enum stachio_status print_json(struct answer *answer, struct output *output, struct stachio_error *error) {
    struct text *names = calloc((size_t)answer->n_columns + 1, sizeof *names);
    if (!names)
        return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the answer's text");
    for (int c = 0; c < answer->n_columns; c++)
        json_string(&names[c], answer->columns[c].name, strlen(answer->columns[c].name));
    enum stachio_status status = print_arrays(answer, names, output, error);
    for (int c = 0; c < answer->n_columns; c++)
        text_release(&names[c]);
    free(names);
    return status;
}
