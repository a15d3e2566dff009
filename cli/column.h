/* Columns of an Arrow array: their types, and their values as text. */
#ifndef CLI_COLUMN_H
#define CLI_COLUMN_H

#include <stachio.h>

#include "text.h"

enum column_kind {
    COLUMN_NULL,
    COLUMN_BOOL,
    COLUMN_INT,     /* width_bytes, is_unsigned */
    COLUMN_FLOAT,   /* width_bytes 4 or 8 */
    COLUMN_DECIMAL, /* width_bytes 4, 8 or 16, scale; is_unsigned: UHUGEINT */
    COLUMN_DATE,
    COLUMN_TIME,      /* unit */
    COLUMN_TIMESTAMP, /* unit, has_zone */
    COLUMN_INTERVAL,
    COLUMN_TEXT, /* width_bytes of the offsets, 0: views */
    COLUMN_BLOB,
    COLUMN_LIST,       /* width_bytes of the offsets */
    COLUMN_FIXED_LIST, /* width_bytes: values a list */
    COLUMN_STRUCT,
    COLUMN_MAP,
    COLUMN_SPARSE_UNION,
    COLUMN_DICTIONARY /* indices as COLUMN_INT has them */
};

struct column {
    enum column_kind kind;
    const char *name; /* the schema's */
    int width_bytes;
    bool is_unsigned;
    int scale;
    bool is_fraction;        /* a decimal without digits in front of the point */
    int64_t unit_per_second; /* 1, 1000, … */
    bool has_zone;
    const char *type_ids; /* of a union: "0,1" */
    struct column *children;
    int n_children;
    struct column *dictionary;
};

/* Reads a schema, which must outlive the column; false: a type that is not known, or no memory. */
bool column_read(const struct ArrowSchema *schema, struct column *out_column);
void column_release(struct column *column);
bool column_is_number(const struct column *column);

bool value_is_null(const struct column *column, const struct ArrowArray *array, int64_t row);
/* As SQL's cast to VARCHAR gives it; "NULL" for a null. */
void value_text(struct text *out, const struct column *column, const struct ArrowArray *array, int64_t row);
/* As JSON. */
void value_json(struct text *out, const struct column *column, const struct ArrowArray *array, int64_t row);
void json_string(struct text *out, const char *bytes, size_t n);

#endif
