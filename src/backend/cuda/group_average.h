/* Division as x87's long double does it, for devices that have none: the CPU's averages of integers, to the
 * bit. Values are positive and far from the ends of the range. */
#ifndef SX_BACKEND_CUDA_GROUP_AVERAGE_H
#define SX_BACKEND_CUDA_GROUP_AVERAGE_H

#include "tensor/semantics.h"

/* mantissa * 2^exponent, the mantissa's highest bit set. */
struct cuda_wide {
    uint64_t mantissa;
    int32_t exponent;
};

/* One more in the last place, if `up`. */
SX_BOTH struct cuda_wide cuda_wide_round(uint64_t mantissa, int32_t exponent, bool up) {
    struct cuda_wide wide = {mantissa + up, exponent};
    if (wide.mantissa == 0) {
        wide.mantissa = UINT64_C(1) << 63;
        wide.exponent++;
    }
    return wide;
}

/* Rounded to 64 bits, half to even. value > 0. */
SX_BOTH struct cuda_wide cuda_wide_of(sx_u128 value, int32_t exponent) {
    int shift = 0; /* bits to lose */
    while (value >> shift >> 63 > 1)
        shift++;
    if (shift == 0) {
        uint64_t mantissa = (uint64_t)value;
        for (; !(mantissa >> 63); exponent--)
            mantissa <<= 1;
        return (struct cuda_wide){mantissa, exponent};
    }
    const uint64_t mantissa = (uint64_t)(value >> shift);
    const sx_u128 rest = value & (((sx_u128)1 << shift) - 1), half = (sx_u128)1 << (shift - 1);
    return cuda_wide_round(mantissa, exponent + shift, rest > half || (rest == half && (mantissa & 1)));
}

SX_BOTH struct cuda_wide cuda_wide_multiply(struct cuda_wide a, struct cuda_wide b) {
    return cuda_wide_of((sx_u128)a.mantissa * b.mantissa, a.exponent + b.exponent);
}

SX_BOTH struct cuda_wide cuda_wide_divide(struct cuda_wide a, struct cuda_wide b) {
    const int shift = a.mantissa < b.mantissa ? 64 : 63; /* the quotient has 64 bits */
    const sx_u128 numerator = (sx_u128)a.mantissa << shift;
    const uint64_t quotient = (uint64_t)(numerator / b.mantissa), rest = (uint64_t)(numerator % b.mantissa);
    const uint64_t other_half = b.mantissa - rest;
    const bool up = rest > other_half || (rest == other_half && (quotient & 1));
    return cuda_wide_round(quotient, a.exponent - b.exponent - shift, up);
}

SX_BOTH double cuda_wide_to_f64(struct cuda_wide wide) {
    const uint64_t rest = wide.mantissa & 0x7ff, mantissa = wide.mantissa >> 11;
    const bool up = rest > 0x400 || (rest == 0x400 && (mantissa & 1));
    /* the mantissa's highest bit adds 1 to the exponent */
    const uint64_t bits = ((uint64_t)(wide.exponent + 11 + 52 + 1022) << 52) + mantissa + up;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* (double)((long double)sum / ((long double)count * (long double)scale)); count > 0, scale a power of ten. */
SX_BOTH double cuda_average(sx_i128 sum, int64_t count, double scale) {
    uint64_t bits;
    memcpy(&bits, &scale, sizeof bits);
    if (sum == 0)
        return 0;
    const uint64_t scale_mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    const struct cuda_wide divisor = cuda_wide_multiply(
        cuda_wide_of((sx_u128)count, 0), cuda_wide_of(scale_mantissa, (int32_t)(bits >> 52) - 1023 - 52));
    const sx_u128 magnitude = sum < 0 ? -(sx_u128)sum : (sx_u128)sum;
    const double average = cuda_wide_to_f64(cuda_wide_divide(cuda_wide_of(magnitude, 0), divisor));
    return sum < 0 ? -average : average;
}

#endif
