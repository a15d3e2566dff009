#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "tpch.h"

/* Positions of the ORDER BY's columns; -1 ends. */
static const signed char orders[22][5] = {
    {0, 1, -1}, {0, 2, 1, 3, -1}, {1, 2, -1}, {0, -1}, {1, -1},    {-1},    {0, 1, 2, -1}, {0, -1},
    {0, 1, -1}, {2, -1},          {1, -1},    {0, -1}, {1, 0, -1}, {-1},    {0, -1},       {3, 0, 1, 2, -1},
    {-1},       {4, 3, -1},       {-1},       {0, -1}, {1, 0, -1}, {0, -1},
};

static bool read_cells(struct tpch_answer *out, int64_t *at, const struct answer *answer,
                       const struct ArrowArray *array) {
    for (int64_t row = 0; row < array->length; row++) {
        for (int c = 0; c < out->n_columns; c++, ++*at) {
            int64_t child_row = array->offset + row;
            if (value_is_null(&answer->columns[c], array->children[c], child_row))
                continue;
            struct text value = {0};
            value_text(&value, &answer->columns[c], array->children[c], child_row);
            out->cells[*at] = strdup(text_string(&value));
            bool failed = value.failed || !out->cells[*at];
            text_release(&value);
            if (failed)
                return false;
        }
    }
    return true;
}

enum stachio_status tpch_answer_read(struct tpch_answer *out_answer, struct answer *answer,
                                     const struct ArrowArray *arrays, int64_t n_arrays,
                                     struct stachio_error *error) {
    struct tpch_answer read = {.n_columns = answer->n_columns};
    for (int64_t i = 0; i < n_arrays; i++)
        read.rows += arrays[i].length;
    read.cells = calloc((size_t)read.rows * (size_t)read.n_columns + 1, sizeof *read.cells);
    read.is_float = calloc((size_t)read.n_columns + 1, sizeof *read.is_float);
    bool good = read.cells && read.is_float;
    for (int c = 0; good && c < read.n_columns; c++)
        read.is_float[c] = answer->columns[c].kind == COLUMN_FLOAT;
    int64_t at = 0;
    for (int64_t i = 0; good && i < n_arrays; i++)
        good = read_cells(&read, &at, answer, &arrays[i]);
    *out_answer = read;
    return good ? STACHIO_OK : set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the answer to compare");
}

void tpch_answer_release(struct tpch_answer *answer) {
    for (int64_t i = 0; answer->cells && i < answer->rows * answer->n_columns; i++)
        free(answer->cells[i]);
    free(answer->cells);
    free(answer->is_float);
    *answer = (struct tpch_answer){0};
}

static bool equal_cells(const char *a, const char *b, bool is_float) {
    if (!a || !b)
        return a == b;
    if (!strcmp(a, b))
        return true;
    if (!is_float)
        return false;
    double left = strtod(a, NULL), right = strtod(b, NULL);
    return fabs(left - right) <= 1e-9 * fmax(fabs(left), fabs(right));
}

/* Rows in the order they have, in the columns of the ORDER BY. */
static bool equal_orders(const signed char *order, const struct tpch_answer *a, const struct tpch_answer *b) {
    for (int64_t row = 0; row < a->rows; row++) {
        for (int k = 0; order[k] >= 0; k++) {
            int c = order[k];
            if (!equal_cells(a->cells[row * a->n_columns + c], b->cells[row * b->n_columns + c],
                             a->is_float[c]))
                return false;
        }
    }
    return true;
}

static int compare_cells(const char *a, const char *b, bool is_float) {
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    if (!is_float)
        return strcmp(a, b);
    double left = strtod(a, NULL), right = strtod(b, NULL);
    return (left > right) - (left < right);
}

/* Exact columns first: rows that agree in them meet the partner with the nearest floats. */
static int compare_rows(const void *a, const void *b, void *context) {
    const struct tpch_answer *answer = context;
    char *const *left = a, *const *right = b;
    for (int floats = 0; floats < 2; floats++) {
        for (int c = 0; c < answer->n_columns; c++) {
            if (answer->is_float[c] != (floats == 1))
                continue;
            int order = compare_cells(left[c], right[c], floats == 1);
            if (order)
                return order;
        }
    }
    return 0;
}

static void sort_rows(struct tpch_answer *answer) {
    size_t row_bytes = (size_t)answer->n_columns * sizeof *answer->cells;
    qsort_r(answer->cells, (size_t)answer->rows, row_bytes, compare_rows, answer);
}

bool tpch_answers_equal(int number, struct tpch_answer *a, struct tpch_answer *b) {
    if (a->n_columns != b->n_columns || a->rows != b->rows)
        return false;
    for (int c = 0; c < a->n_columns; c++)
        if (a->is_float[c] != b->is_float[c])
            return false;
    if (!equal_orders(orders[number - 1], a, b))
        return false;
    sort_rows(a);
    sort_rows(b);
    for (int64_t i = 0; i < a->rows * a->n_columns; i++)
        if (!equal_cells(a->cells[i], b->cells[i], a->is_float[i % a->n_columns]))
            return false;
    return true;
}
