/* From a file's schema to the table's columns, typed as DuckDB types them. */
#include <stdlib.h>
#include <string.h>

#include "storage/footer.h"

enum { MAX_SCHEMA_DEPTH = 100 };

enum converted {
    CONVERTED_UTF8 = 0,
    CONVERTED_ENUM = 4,
    CONVERTED_DECIMAL = 5,
    CONVERTED_DATE = 6,
    CONVERTED_TIMESTAMP_MILLIS = 9,
    CONVERTED_TIMESTAMP_MICROS = 10,
    CONVERTED_UINT_8 = 11,
    CONVERTED_UINT_16 = 12,
    CONVERTED_UINT_32 = 13,
    CONVERTED_UINT_64 = 14,
    CONVERTED_INT_8 = 15,
    CONVERTED_INT_16 = 16,
    CONVERTED_INT_32 = 17,
    CONVERTED_INT_64 = 18,
    CONVERTED_JSON = 19
};

static void set_unreadable(struct sx_file_column *column, const char *why) {
    column->unreadable = why;
}

static void set_type(struct sx_file_column *column, enum sx_type_id id, enum sx_conversion conversion) {
    column->type = sx_type_of(id);
    column->conversion = conversion;
}

/* `physical`: what that logical type has to be stored as. */
static void set_type_on(struct sx_file_column *column, enum sx_parquet_physical physical,
                        enum sx_type_id id) {
    if (column->physical == physical)
        set_type(column, id, SX_CONVERT_NONE);
    else
        set_unreadable(column, "its logical type does not go with its physical type");
}

static void derive_timestamp(struct sx_file_column *column, enum sx_time_unit unit, bool is_utc) {
    column->unit = unit;
    if (column->physical != SX_PARQUET_INT64)
        set_unreadable(column, "a TIMESTAMP that is not stored as INT64");
    else if (is_utc)
        set_unreadable(column, "TIMESTAMP WITH TIME ZONE");
    else if (unit == SX_UNIT_NANOS)
        set_unreadable(column, "TIMESTAMP_NS");
    else if (unit == SX_UNIT_NONE)
        set_unreadable(column, "a TIMESTAMP of an unknown unit");
    else
        set_type(column, SX_TYPE_TIMESTAMP, unit == SX_UNIT_MILLIS ? SX_CONVERT_MILLIS : SX_CONVERT_NONE);
}

static void derive_decimal(struct sx_file_column *column, const struct sx_schema_element *element) {
    if (element->precision < 1 || element->precision > SX_DECIMAL_MAX_DIGITS || element->scale < 0 ||
        element->scale > element->precision) {
        set_unreadable(column, "a DECIMAL of more than 38 digits, or of an impossible scale");
        return;
    }
    switch (column->physical) {
    case SX_PARQUET_INT32:
    case SX_PARQUET_INT64:
    case SX_PARQUET_BYTE_ARRAY:
    case SX_PARQUET_FIXED_LEN_BYTE_ARRAY:
        column->type = sx_type_decimal(element->precision, element->scale);
        column->conversion = SX_CONVERT_DECIMAL;
        break;
    default: set_unreadable(column, "a DECIMAL on a physical type that can't hold it");
    }
}

static void derive_converted(struct sx_file_column *column, const struct sx_schema_element *element) {
    switch (element->converted) {
    case CONVERTED_INT_8: set_type_on(column, SX_PARQUET_INT32, SX_TYPE_I8); break;
    case CONVERTED_INT_16: set_type_on(column, SX_PARQUET_INT32, SX_TYPE_I16); break;
    case CONVERTED_INT_32: set_type_on(column, SX_PARQUET_INT32, SX_TYPE_I32); break;
    case CONVERTED_INT_64: set_type_on(column, SX_PARQUET_INT64, SX_TYPE_I64); break;
    case CONVERTED_UINT_8: set_type_on(column, SX_PARQUET_INT32, SX_TYPE_U8); break;
    case CONVERTED_UINT_16: set_type_on(column, SX_PARQUET_INT32, SX_TYPE_U16); break;
    case CONVERTED_UINT_32: set_type_on(column, SX_PARQUET_INT32, SX_TYPE_U32); break;
    case CONVERTED_UINT_64: set_type_on(column, SX_PARQUET_INT64, SX_TYPE_U64); break;
    case CONVERTED_DATE: set_type_on(column, SX_PARQUET_INT32, SX_TYPE_DATE); break;
    case CONVERTED_TIMESTAMP_MILLIS: derive_timestamp(column, SX_UNIT_MILLIS, false); break;
    case CONVERTED_TIMESTAMP_MICROS: derive_timestamp(column, SX_UNIT_MICROS, false); break;
    case CONVERTED_DECIMAL: derive_decimal(column, element); break;
    case CONVERTED_UTF8:
    case CONVERTED_ENUM:
    case CONVERTED_JSON: set_type_on(column, SX_PARQUET_BYTE_ARRAY, SX_TYPE_VARCHAR); break;
    default: set_unreadable(column, "a logical type that is none of the engine's");
    }
}

static void derive_physical(struct sx_file_column *column) {
    switch (column->physical) {
    case SX_PARQUET_BOOLEAN: set_type(column, SX_TYPE_BOOL, SX_CONVERT_NONE); break;
    case SX_PARQUET_INT32: set_type(column, SX_TYPE_I32, SX_CONVERT_NONE); break;
    case SX_PARQUET_INT64: set_type(column, SX_TYPE_I64, SX_CONVERT_NONE); break;
    case SX_PARQUET_INT96: set_type(column, SX_TYPE_TIMESTAMP, SX_CONVERT_INT96_TIMESTAMP); break;
    case SX_PARQUET_FLOAT: set_type(column, SX_TYPE_F32, SX_CONVERT_NONE); break;
    case SX_PARQUET_DOUBLE: set_type(column, SX_TYPE_F64, SX_CONVERT_NONE); break;
    default: set_unreadable(column, "BLOB");
    }
}

static void derive_integer(struct sx_file_column *column, const struct sx_schema_element *element) {
    static const enum sx_type_id signed_ids[] = {SX_TYPE_I8, SX_TYPE_I16, SX_TYPE_I32, SX_TYPE_I64};
    static const enum sx_type_id unsigned_ids[] = {SX_TYPE_U8, SX_TYPE_U16, SX_TYPE_U32, SX_TYPE_U64};
    int at = element->bit_width == 8    ? 0
             : element->bit_width == 16 ? 1
             : element->bit_width == 32 ? 2
             : element->bit_width == 64 ? 3
                                        : -1;
    if (at < 0)
        set_unreadable(column, "an INTEGER of an unknown width");
    else
        set_type_on(column, at == 3 ? SX_PARQUET_INT64 : SX_PARQUET_INT32,
                    element->is_signed ? signed_ids[at] : unsigned_ids[at]);
}

static void derive_logical(struct sx_file_column *column, const struct sx_schema_element *element) {
    switch (element->logical) {
    case SX_LOGICAL_STRING:
    case SX_LOGICAL_ENUM:
    case SX_LOGICAL_JSON: set_type_on(column, SX_PARQUET_BYTE_ARRAY, SX_TYPE_VARCHAR); break;
    case SX_LOGICAL_DECIMAL: derive_decimal(column, element); break;
    case SX_LOGICAL_DATE: set_type_on(column, SX_PARQUET_INT32, SX_TYPE_DATE); break;
    case SX_LOGICAL_INTEGER: derive_integer(column, element); break;
    case SX_LOGICAL_UNKNOWN: derive_physical(column); break;
    default: set_unreadable(column, "a logical type that is none of the engine's");
    }
}

/* DuckDB looks at the logical type for timestamps, halves and what the engine lacks, and else at the
 * converted type. */
static void derive_type(struct sx_file_column *column, const struct sx_schema_element *element) {
    if (element->logical == SX_LOGICAL_TIMESTAMP)
        derive_timestamp(column, element->unit, element->is_utc);
    else if (element->logical == SX_LOGICAL_FLOAT16 && column->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY &&
             column->type_length == 2)
        set_type(column, SX_TYPE_F32, SX_CONVERT_F16);
    else if (element->converted >= 0)
        derive_converted(column, element);
    else if (element->logical != SX_LOGICAL_NONE)
        derive_logical(column, element);
    else
        derive_physical(column);
}

static enum sx_status derive_leaf(struct sx_file_column *column, const struct sx_schema_element *element,
                                  struct sx_error *error) {
    if (element->physical < 0 || element->physical > SX_PARQUET_FIXED_LEN_BYTE_ARRAY)
        return sx_error_set(error, SX_FILE, "the footer is corrupt: column %s has no known physical type",
                            element->name);
    if (element->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY && element->type_length < 1)
        return sx_error_set(error, SX_FILE,
                            "the footer is corrupt: column %s has fixed-length values of %d bytes",
                            element->name, element->type_length);
    column->physical = (enum sx_parquet_physical)element->physical;
    column->type_length = element->type_length;
    column->is_optional = element->repetition == 1;
    derive_type(column, element);
    return SX_OK;
}

/* ---- the tree ---- */

/* Elements of the subtree at `first`, and its leaves. */
static enum sx_status measure(const struct sx_footer *footer, int first, int *out_elements, int *out_leaves,
                              struct sx_error *error) {
    int left[MAX_SCHEMA_DEPTH], depth = 0, at = first;
    left[0] = 1;
    *out_leaves = 0;
    while (depth >= 0) {
        if (left[depth] == 0) {
            depth--;
            continue;
        }
        left[depth]--;
        if (at >= footer->n_elements)
            return sx_error_set(error, SX_FILE, "the footer is corrupt: the schema lacks elements");
        int n_children = footer->elements[at++].n_children;
        *out_leaves += n_children == 0;
        if (n_children < 0 || n_children > footer->n_elements || depth + 1 >= MAX_SCHEMA_DEPTH)
            return sx_error_set(error, SX_FILE, "the footer is corrupt: the schema is nested too deep");
        left[++depth] = n_children;
    }
    *out_elements = at - first;
    return SX_OK;
}

static enum sx_status derive_column(struct sx_footer *footer, int *element_at, int *leaf_at,
                                    struct sx_file_column *column, struct sx_error *error) {
    int n_elements = 0, n_leaves = 0;
    SX_TRY(measure(footer, *element_at, &n_elements, &n_leaves, error));
    const struct sx_schema_element *element = &footer->elements[*element_at];
    column->name = element->name;
    column->leaf = *leaf_at;
    if (element->n_children > 0)
        set_unreadable(column, "a nested type");
    else
        SX_TRY(derive_leaf(column, element, error));
    if (element->repetition == 2)
        set_unreadable(column, "a LIST (repeated values)");
    *element_at += n_elements;
    *leaf_at += n_leaves;
    return SX_OK;
}

/* ---- names ---- */

static int lower(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static int compare_names(const char *a, const char *b) {
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return lower(*a) - lower(*b);
}

static int compare_columns(const void *a, const void *b, void *context) {
    const struct sx_file_column *columns = context;
    int first = *(const int *)a, second = *(const int *)b;
    int order = compare_names(columns[first].name, columns[second].name);
    return order ? order : first - second;
}

static void sort_names(struct sx_footer *footer) {
    for (int c = 0; c < footer->n_columns; c++)
        footer->by_name[c] = c;
    qsort_r(footer->by_name, (size_t)footer->n_columns, sizeof *footer->by_name, compare_columns,
            footer->columns);
    for (int i = 1; i < footer->n_columns; i++)
        footer->has_twins |= compare_names(footer->columns[footer->by_name[i - 1]].name,
                                           footer->columns[footer->by_name[i]].name) == 0;
}

bool sx_column_stored_alike(const struct sx_file_column *a, const struct sx_file_column *b) {
    return a->physical == b->physical && a->type_length == b->type_length &&
           sx_type_equal(a->type, b->type) && a->conversion == b->conversion && a->unit == b->unit;
}

int sx_footer_find(const struct sx_footer *footer, const char *name) {
    int low = 0, high = footer->n_columns;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare_names(footer->columns[footer->by_name[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    int found = -1;
    for (int i = low; i < footer->n_columns; i++) {
        int column = footer->by_name[i];
        if (compare_names(footer->columns[column].name, name) != 0)
            break;
        if (found < 0 || strcmp(footer->columns[column].name, name) == 0)
            found = column;
    }
    return found;
}

enum sx_status sx_schema_derive(struct sx_footer *footer, struct sx_error *error) {
    int n_elements = 0, n_leaves = 0, element_at = 1, leaf_at = 0;
    SX_TRY(measure(footer, 0, &n_elements, &n_leaves, error));
    int n_columns = footer->elements[0].n_children;
    if (n_elements != footer->n_elements || n_columns == 0)
        return sx_error_set(error, SX_FILE,
                            "the footer is corrupt: the schema has %d elements and describes %d",
                            footer->n_elements, n_elements);
    footer->columns = SX_ARENA_ARRAY(&footer->arena, n_columns, struct sx_file_column);
    footer->by_name = SX_ARENA_ARRAY(&footer->arena, n_columns, int);
    if (!footer->columns || !footer->by_name)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for the footer");
    footer->n_columns = n_columns;
    for (int c = 0; c < n_columns; c++)
        SX_TRY(derive_column(footer, &element_at, &leaf_at, &footer->columns[c], error));
    sort_names(footer);
    return SX_OK;
}
