/* Which conversion a column's stored values need. */
#include "backend/cuda/decode.h"

static bool is_integer(enum sx_phys phys) {
    return phys <= SX_PHYS_U128;
}

static enum decode_conversion from_int32(size_t value_bytes) {
    switch (value_bytes) {
    case 1: return DECODE_4_to_1;
    case 2: return DECODE_4_to_2;
    case 4: return DECODE_4_to_4;
    case 8: return DECODE_4_to_8;
    default: return DECODE_4_to_16;
    }
}

static enum decode_conversion from_int64(size_t value_bytes) {
    return value_bytes == 8 ? DECODE_8_to_8 : value_bytes == 16 ? DECODE_8_to_16 : DECODE_NO_CONVERSION;
}

static enum decode_conversion when(bool condition, enum decode_conversion conversion) {
    return condition ? conversion : DECODE_NO_CONVERSION;
}

/* The same representation, or another width of integer. */
static enum decode_conversion find_plain(enum sx_parquet_physical physical, enum sx_phys phys) {
    const size_t value_bytes = sx_phys_bytes(phys);
    switch (physical) {
    case SX_PARQUET_BOOLEAN: return when(phys == SX_PHYS_U8, DECODE_1_to_1);
    case SX_PARQUET_INT32: return when(is_integer(phys), from_int32(value_bytes));
    case SX_PARQUET_INT64: return when(is_integer(phys), from_int64(value_bytes));
    case SX_PARQUET_FLOAT: return when(phys == SX_PHYS_F32, DECODE_4_to_4);
    case SX_PARQUET_DOUBLE: return when(phys == SX_PHYS_F64, DECODE_8_to_8);
    default: return DECODE_NO_CONVERSION;
    }
}

static enum decode_conversion find_decimal(enum sx_parquet_physical physical, enum sx_phys phys) {
    if (phys != SX_PHYS_I64 && phys != SX_PHYS_I128)
        return DECODE_NO_CONVERSION;
    if (physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY)
        return phys == SX_PHYS_I64 ? DECODE_be_to_8 : DECODE_be_to_16;
    return find_plain(physical, phys);
}

static enum decode_conversion find(const struct sx_chunk_spec *spec, enum sx_phys phys) {
    const enum sx_parquet_physical physical = spec->physical;
    const bool is_long = physical == SX_PARQUET_INT64 && phys == SX_PHYS_I64;
    const bool is_half = physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY && spec->type_length == 2;
    switch (spec->conversion) {
    case SX_CONVERT_NONE: return find_plain(physical, phys);
    case SX_CONVERT_DECIMAL: return find_decimal(physical, phys);
    case SX_CONVERT_INT96_TIMESTAMP:
        return when(physical == SX_PARQUET_INT96 && phys == SX_PHYS_I64, DECODE_int96);
    case SX_CONVERT_MILLIS: return when(is_long, DECODE_millis);
    case SX_CONVERT_NANOS: return when(is_long, DECODE_nanos);
    case SX_CONVERT_F16: return when(is_half && phys == SX_PHYS_F32, DECODE_f16);
    default: return DECODE_NO_CONVERSION;
    }
}

/* BYTE_ARRAY and strings of fixed length are read by kernels of their own. */
static bool reads_bytes(const struct sx_chunk_spec *spec, enum sx_phys phys) {
    const bool is_bytes = spec->physical == SX_PARQUET_BYTE_ARRAY;
    if (spec->type.id == SX_TYPE_VARCHAR)
        return spec->conversion == SX_CONVERT_NONE &&
               (is_bytes || spec->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY);
    return is_bytes && spec->conversion == SX_CONVERT_DECIMAL &&
           (phys == SX_PHYS_I64 || phys == SX_PHYS_I128);
}

enum sx_status decode_conversion_find(struct cuda_stream *stream, struct sx_decoder *decoder) {
    const struct sx_chunk_spec *spec = &decoder->chunk.spec;
    const enum sx_phys phys = sx_type_phys(spec->type);
    char name[SX_TYPE_NAME_BYTES];
    decoder->conversion = DECODE_NO_CONVERSION;
    if (reads_bytes(spec, phys))
        return SX_OK;
    decoder->conversion = find(spec, phys);
    if (decoder->conversion == DECODE_NO_CONVERSION)
        return sx_error_set(&stream->base.error, SX_INTERNAL, "no conversion %d from physical type %d to %s",
                            (int)spec->conversion, (int)spec->physical, sx_type_name(spec->type, name));
    return SX_OK;
}
