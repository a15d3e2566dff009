#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/export.h"

enum { FORMAT_BYTES = 32 };

struct schema_private {
    char format[FORMAT_BYTES];
    char metadata[64];
    char name[]; /* to its end */
};

static const char *const formats[SX_TYPE_COUNT] = {
    [SX_TYPE_NULLTYPE] = "n",  [SX_TYPE_BOOL] = "b",         [SX_TYPE_I8] = "c",
    [SX_TYPE_I16] = "s",       [SX_TYPE_I32] = "i",          [SX_TYPE_I64] = "l",
    [SX_TYPE_I128] = "d:38,0", [SX_TYPE_U8] = "C",           [SX_TYPE_U16] = "S",
    [SX_TYPE_U32] = "I",       [SX_TYPE_U64] = "L",          [SX_TYPE_U128] = "d:38,0",
    [SX_TYPE_F32] = "f",       [SX_TYPE_F64] = "g",          [SX_TYPE_DECIMAL] = "d:",
    [SX_TYPE_DATE] = "tdD",    [SX_TYPE_TIMESTAMP] = "tsu:", [SX_TYPE_INTERVAL] = "tin",
    [SX_TYPE_VARCHAR] = "u",
};

static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    free(schema->private_data);
    schema->release = NULL;
}

/* Arrow's encoding of one pair: int32 count, then length and text of key and value. */
static void write_metadata(char *out, const char *key, const char *value) {
    int32_t count = 1, key_bytes = (int32_t)strlen(key), value_bytes = (int32_t)strlen(value);
    memcpy(out, &count, 4);
    memcpy(out + 4, &key_bytes, 4);
    memcpy(out + 8, key, (size_t)key_bytes);
    memcpy(out + 8 + key_bytes, &value_bytes, 4);
    memcpy(out + 12 + key_bytes, value, (size_t)value_bytes);
}

/* A schema without children. */
static enum sx_status make_schema(const char *name, const char *format, struct ArrowSchema *out_schema,
                                  struct sx_error *error) {
    struct schema_private *own = calloc(1, sizeof *own + strlen(name) + 1);
    if (!own)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the answer's schema");
    snprintf(own->format, sizeof own->format, "%s", format);
    memcpy(own->name, name, strlen(name) + 1);
    *out_schema = (struct ArrowSchema){
        .format = own->format,
        .name = own->name,
        .flags = ARROW_FLAG_NULLABLE,
        .release = release_schema,
        .private_data = own,
    };
    return SX_OK;
}

static enum sx_status make_column(const struct sx_column_info *column, struct ArrowSchema *out_schema,
                                  struct sx_error *error) {
    char format[FORMAT_BYTES];
    snprintf(format, sizeof format, "%s", formats[column->type.id]);
    if (column->type.id == SX_TYPE_DECIMAL)
        snprintf(format, sizeof format, "d:%d,%d", column->type.precision, column->type.scale);
    SX_TRY(make_schema(column->name ? column->name : "", format, out_schema, error));
    if (column->type.id == SX_TYPE_U128) {
        struct schema_private *own = out_schema->private_data;
        write_metadata(own->metadata, "stachio:type", "UHUGEINT");
        out_schema->metadata = own->metadata;
    }
    return SX_OK;
}

enum sx_status sx_export_schema(const struct sx_column_info *columns, int n_columns,
                                struct ArrowSchema *out_schema, struct sx_error *error) {
    struct ArrowSchema schema;
    SX_TRY(make_schema("", "+s", &schema, error));
    schema.flags = 0;
    enum sx_status status = SX_OK;
    schema.children = calloc((size_t)n_columns + 1, sizeof *schema.children);
    if (!schema.children)
        status = sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the answer's schema");
    for (int i = 0; status == SX_OK && i < n_columns; i++) {
        struct ArrowSchema *child = calloc(1, sizeof *child);
        if (!child) {
            status = sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the answer's schema");
            break;
        }
        schema.children[schema.n_children++] = child;
        status = make_column(&columns[i], child, error);
    }
    if (status == SX_OK)
        *out_schema = schema;
    else
        release_schema(&schema);
    return status;
}
