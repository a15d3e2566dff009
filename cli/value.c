#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "column.h"
#include "number.h"

bool value_is_null(const struct column *column, const struct ArrowArray *array, int64_t row) {
    if (column->kind == COLUMN_NULL)
        return true;
    const uint8_t *bits = array->n_buffers && column->kind != COLUMN_SPARSE_UNION ? array->buffers[0] : NULL;
    int64_t at = array->offset + row;
    return bits && array->null_count != 0 && !(bits[at / 8] >> (at % 8) & 1);
}

struct bytes {
    const char *start;
    size_t n;
};

/* Arrow's string view. */
struct view {
    int32_t length;
    char prefix[4];
    int32_t buffer;
    int32_t offset;
};

static struct bytes read_bytes(const struct column *column, const struct ArrowArray *array, int64_t row) {
    int64_t at = array->offset + row;
    if (column->width_bytes == 4) {
        const int32_t *offsets = (const int32_t *)array->buffers[1] + at;
        return (struct bytes){(const char *)array->buffers[2] + offsets[0],
                              (size_t)(offsets[1] - offsets[0])};
    }
    if (column->width_bytes == 8) {
        const int64_t *offsets = (const int64_t *)array->buffers[1] + at;
        return (struct bytes){(const char *)array->buffers[2] + offsets[0],
                              (size_t)(offsets[1] - offsets[0])};
    }
    const struct view *view = (const struct view *)array->buffers[1] + at;
    if (view->length <= 12)
        return (struct bytes){view->prefix, (size_t)view->length};
    return (struct bytes){(const char *)array->buffers[2 + view->buffer] + view->offset,
                          (size_t)view->length};
}

/* Element of a list-like value: [first, end) of the only child. */
struct range {
    int64_t first, end;
};

static struct range read_range(const struct column *column, const struct ArrowArray *array, int64_t row) {
    int64_t at = array->offset + row;
    if (column->kind == COLUMN_FIXED_LIST)
        return (struct range){at * column->width_bytes, (at + 1) * column->width_bytes};
    if (column->width_bytes == 4) {
        const int32_t *offsets = (const int32_t *)array->buffers[1] + at;
        return (struct range){offsets[0], offsets[1]};
    }
    const int64_t *offsets = (const int64_t *)array->buffers[1] + at;
    return (struct range){offsets[0], offsets[1]};
}

static int64_t read_integer(const struct column *column, const struct ArrowArray *array, int64_t row) {
    int64_t at = array->offset + row;
    const void *values = array->buffers[1];
    switch (column->width_bytes) {
    case 1: return column->is_unsigned ? ((const uint8_t *)values)[at] : ((const int8_t *)values)[at];
    case 2: return column->is_unsigned ? ((const uint16_t *)values)[at] : ((const int16_t *)values)[at];
    case 4:
        return column->is_unsigned ? (int64_t)((const uint32_t *)values)[at] : ((const int32_t *)values)[at];
    default: return ((const int64_t *)values)[at];
    }
}

static void add_integer(struct text *out, const struct column *column, const struct ArrowArray *array,
                        int64_t row) {
    int64_t value = read_integer(column, array, row);
    if (column->is_unsigned)
        text_add_unsigned(out, (uint64_t)value);
    else
        text_add_integer(out, value);
}

static double read_float(const struct column *column, const struct ArrowArray *array, int64_t row) {
    int64_t at = array->offset + row;
    return column->width_bytes == 4 ? (double)((const float *)array->buffers[1])[at]
                                    : ((const double *)array->buffers[1])[at];
}

static void add_float(struct text *out, const struct column *column, double value) {
    if (column->width_bytes == 4)
        text_add_float(out, (float)value);
    else
        text_add_double(out, value);
}

static void add_decimal(struct text *out, const struct column *column, const struct ArrowArray *array,
                        int64_t row, int least_whole) {
    if (column->width_bytes < 16) {
        text_add_decimal(out, read_integer(column, array, row), column->scale, least_whole);
        return;
    }
    cli_i128 value;
    memcpy(&value, (const char *)array->buffers[1] + (array->offset + row) * 16, sizeof value);
    if (column->is_unsigned)
        text_add_unsigned_wide(out, (cli_u128)value);
    else
        text_add_decimal(out, value, column->scale, least_whole);
}

static void add_interval(struct text *out, const struct ArrowArray *array, int64_t row) {
    struct {
        int32_t months, days;
        int64_t nanos;
    } value;
    memcpy(&value, (const char *)array->buffers[1] + (array->offset + row) * 16, sizeof value);
    text_add_interval(out, value.months, value.days, value.nanos);
}

static void add_blob(struct text *out, struct bytes bytes) {
    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char c = (unsigned char)bytes.start[i];
        if (c < 0x20 || c > 0x7E || c == '\\' || c == '\'' || c == '"')
            text_format(out, "\\x%02X", c);
        else
            text_add_char(out, (char)c);
    }
}

/* Scalars whose text needs no quotes anywhere; false for the other kinds. */
static bool add_plain(struct text *out, const struct column *column, const struct ArrowArray *array,
                      int64_t row) {
    int64_t at = array->offset + row;
    switch (column->kind) {
    case COLUMN_BOOL: {
        bool value = ((const uint8_t *)array->buffers[1])[at / 8] >> (at % 8) & 1;
        text_add(out, value ? "true" : "false");
        return true;
    }
    case COLUMN_INT: add_integer(out, column, array, row); return true;
    case COLUMN_DECIMAL: add_decimal(out, column, array, row, !column->is_fraction); return true;
    case COLUMN_FLOAT: add_float(out, column, read_float(column, array, row)); return true;
    default: return false;
    }
}

/* Scalars that JSON writes as strings; false for the other kinds. */
static bool add_textual(struct text *out, const struct column *column, const struct ArrowArray *array,
                        int64_t row) {
    int64_t at = array->offset + row;
    switch (column->kind) {
    case COLUMN_DATE: text_add_date(out, ((const int32_t *)array->buffers[1])[at]); return true;
    case COLUMN_TIME:
        text_add_time(out, read_integer(column, array, row), column->unit_per_second);
        return true;
    case COLUMN_TIMESTAMP:
        text_add_timestamp(out, ((const int64_t *)array->buffers[1])[at], column->unit_per_second,
                           column->has_zone);
        return true;
    case COLUMN_INTERVAL: add_interval(out, array, row); return true;
    case COLUMN_BLOB: add_blob(out, read_bytes(column, array, row)); return true;
    case COLUMN_TEXT: {
        struct bytes bytes = read_bytes(column, array, row);
        text_append(out, bytes.start, bytes.n);
        return true;
    }
    default: return false;
    }
}

/* DuckDB quotes a text within a list, struct or map when it could be misread. */
static bool needs_quotes(struct bytes bytes) {
    if (!bytes.n || bytes.start[0] == ' ' || bytes.start[bytes.n - 1] == ' ')
        return true;
    if (bytes.n == 4 && !strncasecmp(bytes.start, "NULL", 4))
        return true;
    for (size_t i = 0; i < bytes.n; i++)
        if (strchr("\"'(),:=[]{}", bytes.start[i]) && bytes.start[i])
            return true;
    return false;
}

static void add_quoted(struct text *out, struct bytes bytes) {
    text_add_char(out, '\'');
    for (size_t i = 0; i < bytes.n; i++) {
        if (bytes.start[i] == '\'' || bytes.start[i] == '\\')
            text_add_char(out, '\\');
        text_add_char(out, bytes.start[i]);
    }
    text_add_char(out, '\'');
}

static void add_nested_value(struct text *out, const struct column *column, const struct ArrowArray *array,
                             int64_t row) {
    struct bytes bytes = {NULL, 0};
    if (column->kind == COLUMN_TEXT && !value_is_null(column, array, row))
        bytes = read_bytes(column, array, row);
    if (bytes.start && needs_quotes(bytes))
        add_quoted(out, bytes);
    else
        value_text(out, column, array, row);
}

static void add_list(struct text *out, const struct column *column, const struct ArrowArray *array,
                     int64_t row) {
    struct range range = read_range(column, array, row);
    text_add_char(out, '[');
    for (int64_t i = range.first; i < range.end; i++) {
        if (i > range.first)
            text_add(out, ", ");
        add_nested_value(out, &column->children[0], array->children[0], i);
    }
    text_add_char(out, ']');
}

static void add_struct(struct text *out, const struct column *column, const struct ArrowArray *array,
                       int64_t row) {
    text_add_char(out, '{');
    for (int i = 0; i < column->n_children; i++) {
        const char *name = column->children[i].name;
        if (i)
            text_add(out, ", ");
        add_quoted(out, (struct bytes){name, strlen(name)});
        text_add(out, ": ");
        add_nested_value(out, &column->children[i], array->children[i], array->offset + row);
    }
    text_add_char(out, '}');
}

static void add_map(struct text *out, const struct column *column, const struct ArrowArray *array,
                    int64_t row) {
    struct range range = read_range(column, array, row);
    const struct column *entries = &column->children[0];
    const struct ArrowArray *pairs = array->children[0];
    text_add_char(out, '{');
    for (int64_t i = range.first; i < range.end; i++) {
        if (i > range.first)
            text_add(out, ", ");
        add_nested_value(out, &entries->children[0], pairs->children[0], pairs->offset + i);
        text_add_char(out, '=');
        add_nested_value(out, &entries->children[1], pairs->children[1], pairs->offset + i);
    }
    text_add_char(out, '}');
}

/* The member that a union's row holds. */
static int union_member(const struct column *column, const struct ArrowArray *array, int64_t row) {
    int wanted = ((const int8_t *)array->buffers[0])[array->offset + row];
    const char *at = column->type_ids;
    for (int i = 0; i < column->n_children; i++) {
        if (atoi(at) == wanted)
            return i;
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return 0;
}

void value_text(struct text *out, const struct column *column, const struct ArrowArray *array, int64_t row) {
    if (value_is_null(column, array, row)) {
        text_add(out, "NULL");
        return;
    }
    if (add_plain(out, column, array, row) || add_textual(out, column, array, row))
        return;
    switch (column->kind) {
    case COLUMN_LIST:
    case COLUMN_FIXED_LIST: add_list(out, column, array, row); return;
    case COLUMN_STRUCT: add_struct(out, column, array, row); return;
    case COLUMN_MAP: add_map(out, column, array, row); return;
    case COLUMN_SPARSE_UNION: {
        int member = union_member(column, array, row);
        value_text(out, &column->children[member], array->children[member], array->offset + row);
        return;
    }
    default: value_text(out, column->dictionary, array->dictionary, read_integer(column, array, row)); return;
    }
}

/* ---- JSON ---- */

void json_string(struct text *out, const char *bytes, size_t n) {
    text_add_char(out, '"');
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        text_append(out, bytes + done, i - done);
        done = i + 1;
        if (c == '"' || c == '\\')
            text_format(out, "\\%c", c);
        else if (c == '\n')
            text_add(out, "\\n");
        else
            text_format(out, "\\u%04x", c);
    }
    text_append(out, bytes + done, n - done);
    text_add_char(out, '"');
}

/* A value's SQL text as a JSON string. */
static void add_json_text(struct text *out, const struct column *column, const struct ArrowArray *array,
                          int64_t row) {
    if (column->kind == COLUMN_TEXT) {
        struct bytes bytes = read_bytes(column, array, row);
        json_string(out, bytes.start, bytes.n);
        return;
    }
    struct text text = {0};
    value_text(&text, column, array, row);
    json_string(out, text.bytes, text.used_bytes);
    out->failed |= text.failed;
    text_release(&text);
}

static void add_json_list(struct text *out, const struct column *column, const struct ArrowArray *array,
                          int64_t row) {
    struct range range = read_range(column, array, row);
    text_add_char(out, '[');
    for (int64_t i = range.first; i < range.end; i++) {
        if (i > range.first)
            text_add_char(out, ',');
        value_json(out, &column->children[0], array->children[0], i);
    }
    text_add_char(out, ']');
}

static void add_json_struct(struct text *out, const struct column *column, const struct ArrowArray *array,
                            int64_t row) {
    text_add_char(out, '{');
    for (int i = 0; i < column->n_children; i++) {
        if (i)
            text_add_char(out, ',');
        json_string(out, column->children[i].name, strlen(column->children[i].name));
        text_add_char(out, ':');
        value_json(out, &column->children[i], array->children[i], array->offset + row);
    }
    text_add_char(out, '}');
}

static void add_json_map(struct text *out, const struct column *column, const struct ArrowArray *array,
                         int64_t row) {
    struct range range = read_range(column, array, row);
    const struct column *entries = &column->children[0];
    const struct ArrowArray *pairs = array->children[0];
    text_add_char(out, '{');
    for (int64_t i = range.first; i < range.end; i++) {
        if (i > range.first)
            text_add_char(out, ',');
        add_json_text(out, &entries->children[0], pairs->children[0], pairs->offset + i);
        text_add_char(out, ':');
        value_json(out, &entries->children[1], pairs->children[1], pairs->offset + i);
    }
    text_add_char(out, '}');
}

/* JSON has no number for these. */
static bool is_special(const struct column *column, const struct ArrowArray *array, int64_t row) {
    return column->kind == COLUMN_FLOAT && !isfinite(read_float(column, array, row));
}

void value_json(struct text *out, const struct column *column, const struct ArrowArray *array, int64_t row) {
    if (value_is_null(column, array, row)) {
        text_add(out, "null");
        return;
    }
    if (is_special(column, array, row)) {
        add_json_text(out, column, array, row);
        return;
    }
    if (column->kind != COLUMN_DECIMAL && add_plain(out, column, array, row))
        return;
    switch (column->kind) {
    case COLUMN_DECIMAL: add_decimal(out, column, array, row, 1); return;
    case COLUMN_LIST:
    case COLUMN_FIXED_LIST: add_json_list(out, column, array, row); return;
    case COLUMN_STRUCT: add_json_struct(out, column, array, row); return;
    case COLUMN_MAP: add_json_map(out, column, array, row); return;
    case COLUMN_SPARSE_UNION: {
        int member = union_member(column, array, row);
        value_json(out, &column->children[member], array->children[member], array->offset + row);
        return;
    }
    case COLUMN_DICTIONARY:
        value_json(out, column->dictionary, array->dictionary, read_integer(column, array, row));
        return;
    default: add_json_text(out, column, array, row); return;
    }
}
