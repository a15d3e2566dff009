#include "column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool known_metadata(const char *metadata, const char *value) {
    if (!metadata)
        return false;
    int32_t pairs, key_bytes, value_bytes;
    memcpy(&pairs, metadata, 4);
    const char *at = metadata + 4;
    for (int32_t i = 0; i < pairs; i++) {
        memcpy(&key_bytes, at, 4);
        const char *key = at + 4;
        memcpy(&value_bytes, key + key_bytes, 4);
        const char *text = key + key_bytes + 4;
        if (key_bytes == 12 && !memcmp(key, "stachio:type", 12) && (size_t)value_bytes == strlen(value) &&
            !memcmp(text, value, (size_t)value_bytes))
            return true;
        at = text + value_bytes;
    }
    return false;
}

/* Formats of one letter: "l", "u". */
static bool read_letter(char letter, struct column *out) {
    static const char integers[] = "cCsSiIlL";
    const char *at = strchr(integers, letter);
    if (at) {
        out->kind = COLUMN_INT;
        out->width_bytes = 1 << ((at - integers) / 2);
        out->is_unsigned = (at - integers) % 2;
        return true;
    }
    switch (letter) {
    case 'n': out->kind = COLUMN_NULL; return true;
    case 'b': out->kind = COLUMN_BOOL; return true;
    case 'f': out->kind = COLUMN_FLOAT, out->width_bytes = 4; return true;
    case 'g': out->kind = COLUMN_FLOAT, out->width_bytes = 8; return true;
    case 'u': out->kind = COLUMN_TEXT, out->width_bytes = 4; return true;
    case 'U': out->kind = COLUMN_TEXT, out->width_bytes = 8; return true;
    case 'z': out->kind = COLUMN_BLOB, out->width_bytes = 4; return true;
    case 'Z': out->kind = COLUMN_BLOB, out->width_bytes = 8; return true;
    default: return false;
    }
}

static int64_t unit_per_second(char unit) {
    return unit == 's' ? 1 : unit == 'm' ? 1000 : unit == 'u' ? 1000000 : 1000000000;
}

/* Formats that begin with 't'. */
static bool read_temporal(const char *format, struct column *out) {
    if (!strcmp(format, "tdD"))
        out->kind = COLUMN_DATE;
    else if (!strcmp(format, "tin"))
        out->kind = COLUMN_INTERVAL;
    else if (!strncmp(format, "tt", 2))
        out->kind = COLUMN_TIME;
    else if (!strncmp(format, "ts", 2) && strchr(format, ':'))
        out->kind = COLUMN_TIMESTAMP;
    else
        return false;
    if (out->kind == COLUMN_TIME || out->kind == COLUMN_TIMESTAMP)
        out->unit_per_second = unit_per_second(format[2]);
    if (out->kind == COLUMN_TIME)
        out->width_bytes = format[2] == 's' || format[2] == 'm' ? 4 : 8;
    out->has_zone = out->kind == COLUMN_TIMESTAMP && format[4];
    return true;
}

/* Formats that begin with '+'. */
static bool read_nested(const char *format, struct column *out) {
    switch (format[1]) {
    case 'l': out->kind = COLUMN_LIST, out->width_bytes = 4; return true;
    case 'L': out->kind = COLUMN_LIST, out->width_bytes = 8; return true;
    case 'w': out->kind = COLUMN_FIXED_LIST, out->width_bytes = atoi(format + 3); return true;
    case 's': out->kind = COLUMN_STRUCT; return true;
    case 'm': out->kind = COLUMN_MAP, out->width_bytes = 4; return true;
    case 'u': out->kind = COLUMN_SPARSE_UNION, out->type_ids = format + 4; return format[2] == 's';
    default: return false;
    }
}

/* "d:PRECISION,SCALE" or "d:PRECISION,SCALE,BITS". */
static bool read_decimal(const char *format, struct column *out) {
    int precision, bits = 128;
    out->kind = COLUMN_DECIMAL;
    if (sscanf(format, "d:%d,%d,%d", &precision, &out->scale, &bits) < 2)
        return false;
    out->is_fraction = precision == out->scale;
    out->width_bytes = bits / 8;
    return bits == 128 || bits == 64 || bits == 32;
}

static bool read_format(const char *format, struct column *out) {
    if (format[0] && !format[1])
        return read_letter(format[0], out);
    if (!strcmp(format, "vu") || !strcmp(format, "vz")) {
        out->kind = format[1] == 'u' ? COLUMN_TEXT : COLUMN_BLOB;
        return true;
    }
    switch (format[0]) {
    case 't': return read_temporal(format, out);
    case '+': return read_nested(format, out);
    case 'd': return read_decimal(format, out);
    default: return false;
    }
}

static bool read_children(const struct ArrowSchema *schema, struct column *column) {
    column->children = calloc((size_t)schema->n_children + 1, sizeof *column->children);
    if (!column->children)
        return false;
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (!column_read(schema->children[i], &column->children[i]))
            return false;
        column->n_children++;
    }
    return true;
}

static bool read_column(const struct ArrowSchema *schema, struct column *column) {
    column->name = schema->name ? schema->name : "";
    if (!read_format(schema->format, column) || !read_children(schema, column))
        return false;
    column->is_unsigned |= column->kind == COLUMN_DECIMAL && known_metadata(schema->metadata, "UHUGEINT");
    if (!schema->dictionary)
        return true;
    column->kind = COLUMN_DICTIONARY;
    column->dictionary = calloc(1, sizeof *column->dictionary);
    return column->dictionary && column_read(schema->dictionary, column->dictionary);
}

bool column_read(const struct ArrowSchema *schema, struct column *out_column) {
    struct column column = {0};
    if (!read_column(schema, &column)) {
        column_release(&column);
        return false;
    }
    *out_column = column;
    return true;
}

void column_release(struct column *column) {
    for (int i = 0; i < column->n_children; i++)
        column_release(&column->children[i]);
    free(column->children);
    if (column->dictionary)
        column_release(column->dictionary);
    free(column->dictionary);
    *column = (struct column){0};
}

bool column_is_number(const struct column *column) {
    return column->kind == COLUMN_INT || column->kind == COLUMN_FLOAT || column->kind == COLUMN_DECIMAL;
}
