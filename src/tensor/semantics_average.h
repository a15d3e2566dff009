/* Averages of integers and decimals, to the bit as DuckDB divides: in x87's long double, and how devices,
 * which have none, do that. Values are positive and far from the ends of the range. */
#ifndef SX_TENSOR_SEMANTICS_AVERAGE_H
#define SX_TENSOR_SEMANTICS_AVERAGE_H

#include "tensor/semantics.h"

/* mantissa * 2^exponent, the mantissa's highest bit set. */
struct sx_wide {
    uint64_t mantissa;
    int32_t exponent;
};

/* One more in the last place, if `up`. */
SX_BOTH struct sx_wide sx_wide_round(uint64_t mantissa, int32_t exponent, bool up) {
    struct sx_wide wide = {mantissa + up, exponent};
    if (wide.mantissa == 0) {
        wide.mantissa = UINT64_C(1) << 63;
        wide.exponent++;
    }
    return wide;
}

/* Rounded to 64 bits, half to even. value > 0. */
SX_BOTH struct sx_wide sx_wide_of(sx_u128 value, int32_t exponent) {
    int shift = 0; /* bits to lose */
    while (value >> shift >> 63 > 1)
        shift++;
    if (shift == 0) {
        uint64_t mantissa = (uint64_t)value;
        for (; !(mantissa >> 63); exponent--)
            mantissa <<= 1;
        return (struct sx_wide){mantissa, exponent};
    }
    const uint64_t mantissa = (uint64_t)(value >> shift);
    const sx_u128 rest = value & (((sx_u128)1 << shift) - 1), half = (sx_u128)1 << (shift - 1);
    return sx_wide_round(mantissa, exponent + shift, rest > half || (rest == half && (mantissa & 1)));
}

SX_BOTH struct sx_wide sx_wide_multiply(struct sx_wide a, struct sx_wide b) {
    return sx_wide_of((sx_u128)a.mantissa * b.mantissa, a.exponent + b.exponent);
}

SX_BOTH struct sx_wide sx_wide_divide(struct sx_wide a, struct sx_wide b) {
    const int shift = a.mantissa < b.mantissa ? 64 : 63; /* the quotient has 64 bits */
    const sx_u128 numerator = (sx_u128)a.mantissa << shift;
    const uint64_t quotient = (uint64_t)(numerator / b.mantissa), rest = (uint64_t)(numerator % b.mantissa);
    const uint64_t other_half = b.mantissa - rest;
    const bool up = rest > other_half || (rest == other_half && (quotient & 1));
    return sx_wide_round(quotient, a.exponent - b.exponent - shift, up);
}

SX_BOTH double sx_wide_to_f64(struct sx_wide wide) {
    const uint64_t rest = wide.mantissa & 0x7ff, mantissa = wide.mantissa >> 11;
    const bool up = rest > 0x400 || (rest == 0x400 && (mantissa & 1));
    /* the mantissa's highest bit adds 1 to the exponent */
    const uint64_t bits = ((uint64_t)(wide.exponent + 11 + 52 + 1022) << 52) + mantissa + up;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* (double)((long double)sum / ((long double)count * (long double)scale)); count > 0, scale a power of ten. */
SX_BOTH double sx_wide_average(sx_i128 sum, int64_t count, double scale) {
    uint64_t bits;
    memcpy(&bits, &scale, sizeof bits);
    if (sum == 0)
        return 0;
    const uint64_t scale_mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    const struct sx_wide divisor = sx_wide_multiply(
        sx_wide_of((sx_u128)count, 0), sx_wide_of(scale_mantissa, (int32_t)(bits >> 52) - 1023 - 52));
    const sx_u128 magnitude = sum < 0 ? -(sx_u128)sum : (sx_u128)sum;
    const double average = sx_wide_to_f64(sx_wide_divide(sx_wide_of(magnitude, 0), divisor));
    return sum < 0 ? -average : average;
}

/* Of values whose sum in units of 1 / scale is `sum`; 0 of none. is_small: see sx_average_is_small. */
SX_BOTH double sx_average(sx_i128 sum, int64_t count, double scale, bool is_small) {
    if (count <= 0)
        return 0;
    if (is_small)
        return (double)(int64_t)sum / ((double)count * scale);
#if defined(__CUDACC__) || defined(SX_CUDA_EMULATED)
    return sx_wide_average(sum, count, scale);
#else
    return (double)((long double)sum / ((long double)count * (long double)scale));
#endif
}

SX_BOTH double sx_average_scale(struct sx_type type) {
    double scale = 1;
    for (int i = 0; type.id == SX_TYPE_DECIMAL && i < type.scale; i++)
        scale *= 10;
    return scale;
}

/* Whether AVERAGE takes a sum and a count of these types. */
SX_BOTH bool sx_average_takes(struct sx_type sum, struct sx_type count) {
    return count.id == SX_TYPE_I64 &&
           (sum.id == SX_TYPE_DECIMAL || sum.id == SX_TYPE_I128 || sum.id == SX_TYPE_I64);
}

/* DuckDB divides these in double. */
SX_BOTH bool sx_average_is_small(struct sx_type input) {
    return input.id == SX_TYPE_DECIMAL ? input.precision <= 4 : input.id == SX_TYPE_I16;
}

#endif
