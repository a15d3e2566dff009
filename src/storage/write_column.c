/* How the engine's types are stored, and the schema that tells of it. */
#include "storage/footer.h"
#include "storage/write.h"

enum { REQUIRED = 0, OPTIONAL = 1 };

enum converted {
    CONVERTED_NONE = -1,
    CONVERTED_UTF8 = 0,
    CONVERTED_DECIMAL = 5,
    CONVERTED_DATE = 6,
    CONVERTED_UINT_8 = 11,
    CONVERTED_INT_8 = 15
};

/* Of a two's complement number with that many decimal digits. */
static int32_t decimal_bytes(int precision) {
    sx_u128 limit = 1;
    for (int i = 0; i < precision; i++)
        limit *= 10;
    int32_t bytes = 1;
    while (bytes < 16 && (sx_u128)1 << (8 * bytes - 1) < limit)
        bytes++;
    return bytes;
}

static void store_decimal(struct sx_write_column *column, int precision) {
    if (precision <= 9) {
        column->physical = SX_PARQUET_INT32;
    } else if (precision <= SX_DECIMAL_MAX_I64_DIGITS) {
        column->physical = SX_PARQUET_INT64;
    } else {
        column->physical = SX_PARQUET_FIXED_LEN_BYTE_ARRAY;
        column->type_length = decimal_bytes(precision);
    }
}

static enum sx_status refuse(const struct sx_write_column *column, const char *why, struct sx_error *error) {
    char name[SX_TYPE_NAME_BYTES];
    return sx_error_set(error, SX_QUERY, "column %s: %s can't be written as Parquet: %s", column->name,
                        sx_type_name(column->type, name), why);
}

enum sx_status sx_write_column_store(struct sx_write_column *column, struct sx_error *error) {
    column->type_length = 0;
    switch (column->type.id) {
    case SX_TYPE_BOOL: column->physical = SX_PARQUET_BOOLEAN; break;
    case SX_TYPE_NULLTYPE:
    case SX_TYPE_I8:
    case SX_TYPE_I16:
    case SX_TYPE_I32:
    case SX_TYPE_U8:
    case SX_TYPE_U16:
    case SX_TYPE_U32:
    case SX_TYPE_DATE: column->physical = SX_PARQUET_INT32; break;
    case SX_TYPE_I64:
    case SX_TYPE_U64:
    case SX_TYPE_TIMESTAMP: column->physical = SX_PARQUET_INT64; break;
    case SX_TYPE_F32: column->physical = SX_PARQUET_FLOAT; break;
    case SX_TYPE_F64: column->physical = SX_PARQUET_DOUBLE; break;
    case SX_TYPE_VARCHAR: column->physical = SX_PARQUET_BYTE_ARRAY; break;
    case SX_TYPE_DECIMAL: store_decimal(column, column->type.precision); break;
    case SX_TYPE_I128: store_decimal(column, SX_DECIMAL_MAX_DIGITS); break;
    case SX_TYPE_U128: return refuse(column, "cast it to HUGEINT, DECIMAL(38,0) or VARCHAR", error);
    case SX_TYPE_INTERVAL: return refuse(column, "its INTERVAL has milliseconds; cast it to VARCHAR", error);
    default: return refuse(column, "there is no type for it", error);
    }
    return SX_OK;
}

size_t sx_write_column_width(const struct sx_write_column *column) {
    switch (column->physical) {
    case SX_PARQUET_BOOLEAN: return 1;
    case SX_PARQUET_INT32:
    case SX_PARQUET_FLOAT: return 4;
    case SX_PARQUET_BYTE_ARRAY: return sizeof(struct sx_string);
    case SX_PARQUET_FIXED_LEN_BYTE_ARRAY: return (size_t)column->type_length;
    default: return 8;
    }
}

/* ---- the schema ---- */

/* Bits of an integer type that is not the physical one's own; 0: it is none. */
static int integer_bits(enum sx_type_id id, bool *out_signed) {
    *out_signed = id == SX_TYPE_I8 || id == SX_TYPE_I16;
    switch (id) {
    case SX_TYPE_I8:
    case SX_TYPE_U8: return 8;
    case SX_TYPE_I16:
    case SX_TYPE_U16: return 16;
    case SX_TYPE_U32: return 32;
    case SX_TYPE_U64: return 64;
    default: return 0;
    }
}

static int32_t converted_of(enum sx_type_id id) {
    bool is_signed;
    int bits = integer_bits(id, &is_signed);
    if (bits)
        return (is_signed ? CONVERTED_INT_8 : CONVERTED_UINT_8) + __builtin_ctz((unsigned)bits) - 3;
    switch (id) {
    case SX_TYPE_VARCHAR: return CONVERTED_UTF8;
    case SX_TYPE_DATE: return CONVERTED_DATE;
    case SX_TYPE_I128:
    case SX_TYPE_DECIMAL: return CONVERTED_DECIMAL;
    default: return CONVERTED_NONE;
    }
}

static void put_timestamp(struct sx_thrift_out *out) {
    sx_thrift_begin(out, SX_LOGICAL_TIMESTAMP);
    sx_thrift_put_bool(out, 1, false); /* no instant of UTC, but what a clock shows */
    sx_thrift_begin(out, 2);
    sx_thrift_put_empty(out, SX_UNIT_MICROS);
    sx_thrift_end(out);
    sx_thrift_end(out);
}

static void put_integer(struct sx_thrift_out *out, int bits, bool is_signed) {
    sx_thrift_begin(out, SX_LOGICAL_INTEGER);
    sx_thrift_put_i8(out, 1, (int8_t)bits);
    sx_thrift_put_bool(out, 2, is_signed);
    sx_thrift_end(out);
}

static void put_decimal(struct sx_thrift_out *out, int scale, int precision) {
    sx_thrift_begin(out, SX_LOGICAL_DECIMAL);
    sx_thrift_put_i32(out, 1, scale);
    sx_thrift_put_i32(out, 2, precision);
    sx_thrift_end(out);
}

static void put_logical(struct sx_thrift_out *out, int16_t field, const struct sx_write_column *column,
                        int precision) {
    bool is_signed;
    int bits = integer_bits(column->type.id, &is_signed);
    sx_thrift_begin(out, field);
    if (bits)
        put_integer(out, bits, is_signed);
    else if (precision)
        put_decimal(out, column->type.scale, precision);
    else if (column->type.id == SX_TYPE_VARCHAR)
        sx_thrift_put_empty(out, SX_LOGICAL_STRING);
    else if (column->type.id == SX_TYPE_DATE)
        sx_thrift_put_empty(out, SX_LOGICAL_DATE);
    else if (column->type.id == SX_TYPE_TIMESTAMP)
        put_timestamp(out);
    sx_thrift_end(out);
}

static void put_element(struct sx_thrift_out *out, const struct sx_write_column *column) {
    const enum sx_type_id id = column->type.id;
    const int precision = id == SX_TYPE_DECIMAL ? column->type.precision
                          : id == SX_TYPE_I128  ? SX_DECIMAL_MAX_DIGITS
                                                : 0;
    const int32_t converted = converted_of(id);
    sx_thrift_begin(out, 0);
    sx_thrift_put_i32(out, 1, (int32_t)column->physical);
    if (column->type_length)
        sx_thrift_put_i32(out, 2, column->type_length);
    sx_thrift_put_i32(out, 3, column->is_optional ? OPTIONAL : REQUIRED);
    sx_thrift_put_text(out, 4, column->name);
    if (converted != CONVERTED_NONE)
        sx_thrift_put_i32(out, 6, converted);
    if (precision) {
        sx_thrift_put_i32(out, 7, column->type.scale);
        sx_thrift_put_i32(out, 8, precision);
    }
    if (converted != CONVERTED_NONE || id == SX_TYPE_TIMESTAMP)
        put_logical(out, 10, column, precision);
    sx_thrift_end(out);
}

void sx_write_schema(struct sx_thrift_out *out, int16_t field, const struct sx_write_column *columns,
                     int n_columns) {
    sx_thrift_put_list(out, field, SX_THRIFT_STRUCT, (size_t)n_columns + 1);
    sx_thrift_begin(out, 0);
    sx_thrift_put_text(out, 4, "schema");
    sx_thrift_put_i32(out, 5, n_columns);
    sx_thrift_end(out);
    for (int c = 0; c < n_columns; c++)
        put_element(out, &columns[c]);
}
