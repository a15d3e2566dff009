/* Exact decimals and the conversions between 128-bit integers and floating point. */
#ifndef SX_TENSOR_SEMANTICS_DECIMAL_H
#define SX_TENSOR_SEMANTICS_DECIMAL_H

#include "tensor/semantics.h"

/* 10^digits, digits in 0..38. */
SX_BOTH sx_i128 sx_power_of_ten(int digits) {
    sx_i128 power = 1, base = 10;
    for (; digits > 0; digits >>= 1, base *= digits ? base : 1)
        if (digits & 1)
            power *= base;
    return power;
}

/* Division by a positive power of ten, rounded half away from zero. */
SX_BOTH int64_t sx_divide_round_i64(int64_t value, int64_t divisor) {
    int64_t quotient = value / divisor, rest = value % divisor;
    int64_t magnitude = rest < 0 ? -rest : rest;
    if (magnitude >= divisor - magnitude && magnitude)
        quotient += value < 0 ? -1 : 1;
    return quotient;
}
SX_BOTH sx_i128 sx_divide_round_i128(sx_i128 value, sx_i128 divisor) {
    sx_i128 quotient = value / divisor, rest = value % divisor;
    sx_i128 magnitude = rest < 0 ? -rest : rest;
    if (magnitude >= divisor - magnitude && magnitude)
        quotient += value < 0 ? -1 : 1;
    return quotient;
}

/* Rounded twice, half by half, as DuckDB does it. */
SX_BOTH double sx_i128_to_f64(sx_i128 value) {
    uint64_t low = (uint64_t)value;
    int64_t high = (int64_t)(value >> 64);
    if (high == -1)
        return -(double)(UINT64_MAX - low) - 1;
    return (double)low + (double)high * 0x1p64;
}
SX_BOTH float sx_i128_to_f32(sx_i128 value) {
    return (float)sx_i128_to_f64(value);
}
SX_BOTH double sx_u128_to_f64(sx_u128 value) {
    return (double)(uint64_t)value + (double)(uint64_t)(value >> 64) * 0x1p64;
}
SX_BOTH float sx_u128_to_f32(sx_u128 value) {
    return (float)sx_u128_to_f64(value);
}

/* Decimals: `power` is 10^scale, in both types. Whole and fraction are converted apart where the whole number
 * has more digits than the type. */
SX_BOTH double sx_decimal_i64_to_f64(int64_t value, int64_t power, double power_f64) {
    const int64_t exact = (int64_t)1 << 53;
    if (power == 1 || (value >= -exact && value <= exact))
        return (double)value / power_f64;
    const int64_t whole = value / power;
    return (double)whole + (double)(value % power) / power_f64;
}
SX_BOTH double sx_decimal_i128_to_f64(sx_i128 value, sx_i128 power, double power_f64) {
    const sx_i128 exact = (sx_i128)1 << 53;
    if (power == 1 || (value >= -exact && value <= exact))
        return sx_i128_to_f64(value) / power_f64;
    return sx_i128_to_f64(value / power) + sx_i128_to_f64(value % power) / power_f64;
}
SX_BOTH float sx_decimal_i64_to_f32(int64_t value, int64_t power, float power_f32) {
    const int64_t exact = (int64_t)1 << 24;
    if (power == 1 || (value >= -exact && value <= exact))
        return (float)value / power_f32;
    const int64_t whole = value / power;
    return (float)whole + (float)(value % power) / power_f32;
}
SX_BOTH float sx_decimal_i128_to_f32(sx_i128 value, sx_i128 power, float power_f32) {
    const sx_i128 exact = (sx_i128)1 << 24;
    if (power == 1 || (value >= -exact && value <= exact))
        return sx_i128_to_f32(value) / power_f32;
    return sx_i128_to_f32(value / power) + sx_i128_to_f32(value % power) / power_f32;
}

#endif
