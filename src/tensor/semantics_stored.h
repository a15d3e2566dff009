/* How stored values of Parquet pages become a column's values: of C and CUDA. Each function reads one value,
 * which has any alignment, and tells whether it can be converted. */
#ifndef SX_TENSOR_SEMANTICS_STORED_H
#define SX_TENSOR_SEMANTICS_STORED_H

#include "tensor/semantics.h"

#define SX_STORED_INTEGER(name, stored_type, value_type)                             \
    SX_BOTH bool name(const uint8_t *stored, size_t stored_bytes, value_type *out) { \
        stored_type value;                                                           \
        (void)stored_bytes;                                                          \
        memcpy(&value, stored, sizeof value);                                        \
        *out = (value_type)value;                                                    \
        return true;                                                                 \
    }
SX_STORED_INTEGER(sx_stored_1_to_1, uint8_t, uint8_t)
SX_STORED_INTEGER(sx_stored_4_to_1, uint32_t, uint8_t)
SX_STORED_INTEGER(sx_stored_4_to_2, uint32_t, uint16_t)
SX_STORED_INTEGER(sx_stored_4_to_4, uint32_t, uint32_t)
SX_STORED_INTEGER(sx_stored_4_to_8, int32_t, int64_t)
SX_STORED_INTEGER(sx_stored_4_to_16, int32_t, sx_i128)
SX_STORED_INTEGER(sx_stored_8_to_8, uint64_t, uint64_t)
SX_STORED_INTEGER(sx_stored_8_to_16, int64_t, sx_i128)
#undef SX_STORED_INTEGER

/* Sign-extends the low bytes; in a longer value the bytes in front have to be the sign's. */
SX_BOTH bool sx_big_endian(const uint8_t *bytes, size_t length, size_t value_bytes, void *out_value) {
    uint8_t sign = length && bytes[0] & 0x80 ? 0xff : 0;
    sx_u128 value = sign ? SX_U128_MAX : 0;
    size_t front = length > value_bytes ? length - value_bytes : 0;
    bool fits = true;
    for (size_t i = 0; i < front; i++)
        fits &= bytes[i] == sign;
    if (front)
        fits &= (bytes[front] & 0x80) == (sign & 0x80);
    for (size_t i = front; i < length; i++)
        value = value << 8 | bytes[i];
    memcpy(out_value, &value, value_bytes); /* little-endian */
    return fits;
}

SX_BOTH bool sx_stored_be_to_8(const uint8_t *stored, size_t stored_bytes, int64_t *out) {
    if (stored_bytes > sizeof *out)
        return sx_big_endian(stored, stored_bytes, sizeof *out, out);
    uint64_t value = stored[0] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < stored_bytes; i++)
        value = value << 8 | stored[i];
    *out = (int64_t)value;
    return true;
}

SX_BOTH bool sx_stored_be_to_16(const uint8_t *stored, size_t stored_bytes, sx_i128 *out) {
    return sx_big_endian(stored, stored_bytes, sizeof *out, out);
}

SX_BOTH uint32_t sx_stored_u32(const uint8_t *stored) {
    uint32_t value;
    memcpy(&value, stored, sizeof value);
    return value;
}

/* ULEB128 at *at, which moves behind it. False when the bytes end or the value passes 64 bits. */
SX_BOTH bool sx_stored_varint(const uint8_t *bytes, uint64_t size, uint64_t *at, uint64_t *out) {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64 && *at < size; shift += 7) {
        const uint8_t byte = bytes[(*at)++];
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

SX_BOTH uint64_t sx_stored_zigzag(uint64_t value) {
    return value >> 1 ^ (0 - (value & 1));
}

/* Wraps where the day is out of range, as DuckDB does. */
SX_BOTH bool sx_stored_int96(const uint8_t *stored, size_t stored_bytes, int64_t *out) {
    enum { JULIAN_DAY_OF_1970 = 2440588, NANOS_PER_MICRO = 1000 };
    const uint64_t micros_per_day = UINT64_C(86400000000);
    (void)stored_bytes;
    int64_t nanos = (int64_t)sx_load_u64((const char *)stored);
    uint64_t days = (uint64_t)sx_stored_u32(stored + 8) - JULIAN_DAY_OF_1970;
    *out = (int64_t)(days * micros_per_day + (uint64_t)(nanos / NANOS_PER_MICRO));
    return true;
}

SX_BOTH bool sx_stored_millis(const uint8_t *stored, size_t stored_bytes, int64_t *out) {
    int64_t millis = (int64_t)sx_load_u64((const char *)stored);
    (void)stored_bytes;
    if (millis == INT64_MAX || millis == -INT64_MAX) { /* the infinities */
        *out = millis;
        return true;
    }
    *out = (int64_t)((uint64_t)millis * 1000);
    return millis <= INT64_MAX / 1000 && millis >= INT64_MIN / 1000;
}

SX_BOTH bool sx_stored_nanos(const uint8_t *stored, size_t stored_bytes, int64_t *out) {
    int64_t nanos = (int64_t)sx_load_u64((const char *)stored);
    (void)stored_bytes;
    bool infinite = nanos == INT64_MAX || nanos == -INT64_MAX;
    *out = infinite ? nanos : nanos / 1000;
    return true;
}

SX_BOTH bool sx_stored_f16(const uint8_t *stored, size_t stored_bytes, float *out) {
    (void)stored_bytes;
    uint32_t half = stored[0] | (uint32_t)stored[1] << 8;
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    uint32_t bits = sign | (exponent + 112) << 23 | mantissa << 13;
    if (exponent == 0x1f)
        bits = sign | 0x7f800000 | mantissa << 13;
    memcpy(out, &bits, sizeof bits);
    if (exponent == 0) {
        float tiny = (float)mantissa * 0x1p-24f;
        *out = sign ? -tiny : tiny;
    }
    return true;
}

#endif
