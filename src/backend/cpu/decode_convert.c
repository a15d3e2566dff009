#include "backend/cpu/decode.h"
#include "tensor/semantics_stored.h"

/* ---- many ---- */

#define SX_NAME(stem) stem##_1_to_1
#define SX_VALUE      uint8_t
#define SX_LOAD       sx_stored_1_to_1
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_4_to_1
#define SX_VALUE      uint8_t
#define SX_LOAD       sx_stored_4_to_1
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_4_to_2
#define SX_VALUE      uint16_t
#define SX_LOAD       sx_stored_4_to_2
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_4_to_4
#define SX_VALUE      uint32_t
#define SX_LOAD       sx_stored_4_to_4
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_4_to_8
#define SX_VALUE      int64_t
#define SX_LOAD       sx_stored_4_to_8
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_4_to_16
#define SX_VALUE      sx_i128
#define SX_LOAD       sx_stored_4_to_16
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_8_to_8
#define SX_VALUE      uint64_t
#define SX_LOAD       sx_stored_8_to_8
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_8_to_16
#define SX_VALUE      sx_i128
#define SX_LOAD       sx_stored_8_to_16
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_be_to_8
#define SX_VALUE      int64_t
#define SX_LOAD       sx_stored_be_to_8
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_be_to_16
#define SX_VALUE      sx_i128
#define SX_LOAD       sx_stored_be_to_16
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_int96
#define SX_VALUE      int64_t
#define SX_LOAD       sx_stored_int96
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_millis
#define SX_VALUE      int64_t
#define SX_LOAD       sx_stored_millis
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_nanos
#define SX_VALUE      int64_t
#define SX_LOAD       sx_stored_nanos
#include "backend/cpu/decode_convert.tmpl.h"
#define SX_NAME(stem) stem##_f16
#define SX_VALUE      float
#define SX_LOAD       sx_stored_f16
#include "backend/cpu/decode_convert.tmpl.h"

/* ---- which one ---- */

static bool is_integer(enum sx_phys phys) {
    return phys <= SX_PHYS_U128;
}

static decode_convert *from_int32(size_t value_bytes) {
    switch (value_bytes) {
    case 1: return convert_4_to_1;
    case 2: return convert_4_to_2;
    case 4: return convert_4_to_4;
    case 8: return convert_4_to_8;
    default: return convert_4_to_16;
    }
}

static decode_convert *from_int64(size_t value_bytes) {
    return value_bytes == 8 ? convert_8_to_8 : value_bytes == 16 ? convert_8_to_16 : NULL;
}

/* The same representation, or another width of integer. */
static decode_convert *find_plain(enum sx_parquet_physical physical, enum sx_phys phys) {
    size_t value_bytes = sx_phys_bytes(phys);
    switch (physical) {
    case SX_PARQUET_BOOLEAN: return phys == SX_PHYS_U8 ? convert_1_to_1 : NULL;
    case SX_PARQUET_INT32: return is_integer(phys) ? from_int32(value_bytes) : NULL;
    case SX_PARQUET_INT64: return is_integer(phys) ? from_int64(value_bytes) : NULL;
    case SX_PARQUET_FLOAT: return phys == SX_PHYS_F32 ? convert_4_to_4 : NULL;
    case SX_PARQUET_DOUBLE: return phys == SX_PHYS_F64 ? convert_8_to_8 : NULL;
    default: return NULL;
    }
}

static decode_convert *find_decimal(enum sx_parquet_physical physical, enum sx_phys phys) {
    if (phys != SX_PHYS_I64 && phys != SX_PHYS_I128)
        return NULL;
    if (physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY)
        return phys == SX_PHYS_I64 ? convert_be_to_8 : convert_be_to_16;
    return find_plain(physical, phys);
}

static decode_convert *find(const struct sx_chunk_spec *spec, enum sx_phys phys) {
    enum sx_parquet_physical physical = spec->physical;
    bool is_half = physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY && spec->type_length == 2;
    switch (spec->conversion) {
    case SX_CONVERT_NONE: return find_plain(physical, phys);
    case SX_CONVERT_DECIMAL: return find_decimal(physical, phys);
    case SX_CONVERT_INT96_TIMESTAMP:
        return physical == SX_PARQUET_INT96 && phys == SX_PHYS_I64 ? convert_int96 : NULL;
    case SX_CONVERT_MILLIS:
        return physical == SX_PARQUET_INT64 && phys == SX_PHYS_I64 ? convert_millis : NULL;
    case SX_CONVERT_NANOS: return physical == SX_PARQUET_INT64 && phys == SX_PHYS_I64 ? convert_nanos : NULL;
    case SX_CONVERT_F16: return is_half && phys == SX_PHYS_F32 ? convert_f16 : NULL;
    default: return NULL;
    }
}

/* BYTE_ARRAY and strings of fixed length are read by code of their own. */
static bool reads_bytes(const struct sx_chunk_spec *spec, enum sx_phys phys) {
    bool is_bytes = spec->physical == SX_PARQUET_BYTE_ARRAY;
    if (spec->type.id == SX_TYPE_VARCHAR)
        return spec->conversion == SX_CONVERT_NONE &&
               (is_bytes || spec->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY);
    return is_bytes && spec->conversion == SX_CONVERT_DECIMAL &&
           (phys == SX_PHYS_I64 || phys == SX_PHYS_I128);
}

enum sx_status decode_conversion_find(struct sx_stream *stream, const struct sx_chunk_spec *spec,
                                      struct decode_conversion *out_conversion) {
    char name[SX_TYPE_NAME_BYTES];
    enum sx_phys phys = sx_type_phys(spec->type);
    struct decode_conversion found = {.problem = "a value does not fit the column's type"};
    if (spec->conversion == SX_CONVERT_MILLIS)
        found.problem = "a timestamp in milliseconds is out of range";
    if (!reads_bytes(spec, phys)) {
        found.convert = find(spec, phys);
        if (!found.convert)
            return sx_error_set(&stream->error, SX_INTERNAL, "no conversion %d from physical type %d to %s",
                                (int)spec->conversion, (int)spec->physical, sx_type_name(spec->type, name));
    }
    found.is_copy =
        found.convert == convert_1_to_1 || found.convert == convert_4_to_4 || found.convert == convert_8_to_8;
    *out_conversion = found;
    return SX_OK;
}

/* ---- nulls ---- */

typedef struct {
    uint64_t low, high;
} __attribute__((may_alias)) word16;

#define SPREAD(width, word)                                                                   \
    static void spread_##width(void *values, const uint8_t *valid, int64_t rows, int64_t n) { \
        word *all = values;                                                                   \
        const word zero = {0};                                                                \
        for (int64_t i = rows - 1; i >= 0; i--) {                                             \
            n -= valid[i];                                                                    \
            word value = all[n];                                                              \
            all[i] = valid[i] ? value : zero;                                                 \
        }                                                                                     \
    }
typedef uint8_t word1 __attribute__((may_alias));
typedef uint16_t word2 __attribute__((may_alias));
typedef uint32_t word4 __attribute__((may_alias));
typedef uint64_t word8 __attribute__((may_alias));
SPREAD(1, word1)
SPREAD(2, word2)
SPREAD(4, word4)
SPREAD(8, word8)
SPREAD(16, word16)

void decode_spread(void *values, size_t value_bytes, const uint8_t *valid, int64_t rows, int64_t n) {
    switch (value_bytes) {
    case 1: spread_1(values, valid, rows, n); break;
    case 2: spread_2(values, valid, rows, n); break;
    case 4: spread_4(values, valid, rows, n); break;
    case 8: spread_8(values, valid, rows, n); break;
    default: spread_16(values, valid, rows, n); break;
    }
}
