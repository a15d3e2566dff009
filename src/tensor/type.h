/* Column types. Included by both compilers (C and CUDA). */
#ifndef SX_TENSOR_TYPE_H
#define SX_TENSOR_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/int128.h"

/* 16 bytes. Strings of up to 12 bytes are inline; of longer ones the first 4 bytes are repeated in front of
 * the pointer, so that most comparisons end without following it. Unused inline bytes are zero. The pointer
 * is valid on the device that holds the tensor. (Layout after Umbra's and Arrow's string views.) */
struct sx_string {
    uint32_t length_bytes;
    union {
        char inlined[12];
        struct __attribute__((packed)) { /* else the pointer would stand at 16 */
            char prefix[4];
            const char *pointer;
        } ref;
    } u;
} __attribute__((aligned(8)));
enum { SX_STRING_INLINE_BYTES = 12 };

/* As DuckDB: the three parts are kept apart. */
struct sx_interval {
    int32_t months;
    int32_t days;
    int64_t micros;
};

/* Physical representations: X(name, C type, width in bytes). */
#define SX_PHYS_LIST(X)         \
    X(I8, int8_t)               \
    X(I16, int16_t)             \
    X(I32, int32_t)             \
    X(I64, int64_t)             \
    X(I128, sx_i128)            \
    X(U8, uint8_t)              \
    X(U16, uint16_t)            \
    X(U32, uint32_t)            \
    X(U64, uint64_t)            \
    X(U128, sx_u128)            \
    X(F32, float)               \
    X(F64, double)              \
    X(STRING, struct sx_string) \
    X(INTERVAL, struct sx_interval)

enum sx_phys {
#define SX_PHYS_ENUM(name, ctype) SX_PHYS_##name,
    SX_PHYS_LIST(SX_PHYS_ENUM)
#undef SX_PHYS_ENUM
        SX_PHYS_COUNT
};

/* Logical types: X(name, SQL name, physical). DECIMAL is I64 up to 18 digits and I128 above. BOOLEAN is 0 or
 * 1 in U8. DATE is days and TIMESTAMP microseconds since 1970-01-01. NULLTYPE is the type of a bare NULL (all
 * values null). */
#define SX_TYPE_LIST(X)               \
    X(NULLTYPE, "NULL", U8)           \
    X(BOOL, "BOOLEAN", U8)            \
    X(I8, "TINYINT", I8)              \
    X(I16, "SMALLINT", I16)           \
    X(I32, "INTEGER", I32)            \
    X(I64, "BIGINT", I64)             \
    X(I128, "HUGEINT", I128)          \
    X(U8, "UTINYINT", U8)             \
    X(U16, "USMALLINT", U16)          \
    X(U32, "UINTEGER", U32)           \
    X(U64, "UBIGINT", U64)            \
    X(U128, "UHUGEINT", U128)         \
    X(F32, "FLOAT", F32)              \
    X(F64, "DOUBLE", F64)             \
    X(DECIMAL, "DECIMAL", I64)        \
    X(DATE, "DATE", I32)              \
    X(TIMESTAMP, "TIMESTAMP", I64)    \
    X(INTERVAL, "INTERVAL", INTERVAL) \
    X(VARCHAR, "VARCHAR", STRING)

enum sx_type_id {
#define SX_TYPE_ENUM(name, sql, phys) SX_TYPE_##name,
    SX_TYPE_LIST(SX_TYPE_ENUM)
#undef SX_TYPE_ENUM
        SX_TYPE_COUNT
};

enum { SX_DECIMAL_MAX_I64_DIGITS = 18, SX_DECIMAL_MAX_DIGITS = 38 };

struct sx_type {
    enum sx_type_id id;
    uint8_t precision; /* DECIMAL only, 1..38 */
    uint8_t scale;     /* DECIMAL only, 0..precision */
};

enum sx_phys sx_type_phys(struct sx_type type);
size_t sx_phys_bytes(enum sx_phys phys);
static inline size_t sx_type_bytes(struct sx_type type) {
    return sx_phys_bytes(sx_type_phys(type));
}
bool sx_type_equal(struct sx_type a, struct sx_type b);

/* "DECIMAL(15,2)"; returns `buffer`. */
enum { SX_TYPE_NAME_BYTES = 32 };
const char *sx_type_name(struct sx_type type, char buffer[SX_TYPE_NAME_BYTES]);

static inline struct sx_type sx_type_of(enum sx_type_id id) {
    return (struct sx_type){id, 0, 0};
}
static inline struct sx_type sx_type_decimal(int precision, int scale) {
    return (struct sx_type){SX_TYPE_DECIMAL, (uint8_t)precision, (uint8_t)scale};
}

/* One value, or NULL, outside of a tensor. A VARCHAR's bytes belong to whoever made the scalar (mostly an
 * arena). */
struct sx_scalar {
    struct sx_type type;
    bool is_null;
    union {
        bool b;
        int64_t i64;  /* BOOL..I64, DATE, TIMESTAMP, DECIMAL to 18 digits */
        uint64_t u64; /* U8..U64 */
        sx_i128 i128; /* I128, DECIMAL above 18 digits */
        sx_u128 u128;
        float f32;
        double f64;
        struct sx_interval interval;
        struct {
            const char *bytes;
            uint32_t length_bytes;
        } text;
    } v;
};

#endif
