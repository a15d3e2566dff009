/* Ranges of integers, as casts need them: booleans, integers and decimals are integers times a power of ten.
 */
#ifndef SX_TENSOR_RANGE_H
#define SX_TENSOR_RANGE_H

#include "tensor/semantics_decimal.h"
#include "tensor/type.h"

struct sx_range {
    sx_i128 low;
    sx_u128 high;
};

static inline bool sx_type_is_scaled_integer(struct sx_type type) {
    return sx_type_phys(type) <= SX_PHYS_U128 && type.id != SX_TYPE_DATE && type.id != SX_TYPE_TIMESTAMP &&
           type.id != SX_TYPE_NULLTYPE;
}
static inline bool sx_type_is_float(struct sx_type type) {
    return type.id == SX_TYPE_F32 || type.id == SX_TYPE_F64;
}
static inline int sx_type_scale(struct sx_type type) {
    return type.id == SX_TYPE_DECIMAL ? type.scale : 0;
}

static inline struct sx_range sx_range_of_phys(enum sx_phys phys) {
    const bool is_signed = phys <= SX_PHYS_I128;
    const int bits = (int)sx_phys_bytes(phys) * 8;
    const sx_u128 all = SX_U128_MAX >> (128 - bits);
    return (struct sx_range){is_signed ? -(sx_i128)(all >> 1) - 1 : 0, is_signed ? all >> 1 : all};
}

/* Of the stored integers: of a decimal without its scale. */
static inline struct sx_range sx_range_of_type(struct sx_type type) {
    if (type.id == SX_TYPE_BOOL)
        return (struct sx_range){0, 1};
    if (type.id != SX_TYPE_DECIMAL)
        return sx_range_of_phys(sx_type_phys(type));
    const sx_i128 high = sx_power_of_ten(type.precision) - 1;
    return (struct sx_range){-high, (sx_u128)high};
}

static inline bool sx_range_is_within(struct sx_range inner, struct sx_range outer) {
    return inner.low >= outer.low && inner.high <= outer.high;
}

static inline struct sx_range sx_range_intersect(struct sx_range a, struct sx_range b) {
    return (struct sx_range){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

#endif
