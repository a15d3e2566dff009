/* Hash and equality of column values in kernels, by physical type. Included by .cu files only. */
#ifndef SX_BACKEND_CUDA_VALUE_H
#define SX_BACKEND_CUDA_VALUE_H

#include "backend/cuda/kernel.h"

/* Where the row's value is; the row is valid. */
template <typename T>
__device__ __forceinline__ const T *cuda_value_at(const struct cuda_column &column, int64_t row) {
    const T *values = (const T *)column.values;
    if (column.layout == CUDA_DICT)
        return (const T *)column.dict + ((const int32_t *)column.values)[row];
    return values + (column.layout == CUDA_CONSTANT ? 0 : row);
}

/* Of a valid row; signed integers hash as 64 bits with their sign, FLOAT as DOUBLE. */
__device__ static inline uint64_t cuda_value_hash(const struct cuda_column &column, int64_t row) {
    switch (column.phys) {
    case SX_PHYS_I8: return sx_hash_u64((uint64_t)(int64_t)*cuda_value_at<int8_t>(column, row));
    case SX_PHYS_I16: return sx_hash_u64((uint64_t)(int64_t)*cuda_value_at<int16_t>(column, row));
    case SX_PHYS_I32: return sx_hash_u64((uint64_t)(int64_t)*cuda_value_at<int32_t>(column, row));
    case SX_PHYS_U8: return sx_hash_u64(*cuda_value_at<uint8_t>(column, row));
    case SX_PHYS_U16: return sx_hash_u64(*cuda_value_at<uint16_t>(column, row));
    case SX_PHYS_U32: return sx_hash_u64(*cuda_value_at<uint32_t>(column, row));
    case SX_PHYS_I64:
    case SX_PHYS_U64: return sx_hash_u64(*cuda_value_at<uint64_t>(column, row));
    case SX_PHYS_F32: return sx_hash_f64((double)*cuda_value_at<float>(column, row));
    case SX_PHYS_F64: return sx_hash_f64(*cuda_value_at<double>(column, row));
    case SX_PHYS_STRING: return sx_hash_string(cuda_value_at<struct sx_string>(column, row));
    default: return sx_hash_u128(*cuda_value_at<sx_u128>(column, row));
    }
}

/* Hash of an integer for its place in a table: those of four integers that follow each other differ in the
 * lowest two bits, so that the four can share a sector. Such keys come together more often than not. */
__device__ static inline uint64_t cuda_near_hash(uint64_t value) {
    return sx_hash_u64(value >> 2) ^ (value & 3);
}

/* Of two valid rows of columns of one physical type. */
__device__ static inline bool cuda_value_equal(const struct cuda_column &a, int64_t row_a,
                                               const struct cuda_column &b, int64_t row_b) {
    switch (a.phys) {
    case SX_PHYS_I8:
    case SX_PHYS_U8: return *cuda_value_at<uint8_t>(a, row_a) == *cuda_value_at<uint8_t>(b, row_b);
    case SX_PHYS_I16:
    case SX_PHYS_U16: return *cuda_value_at<uint16_t>(a, row_a) == *cuda_value_at<uint16_t>(b, row_b);
    case SX_PHYS_I32:
    case SX_PHYS_U32: return *cuda_value_at<uint32_t>(a, row_a) == *cuda_value_at<uint32_t>(b, row_b);
    case SX_PHYS_I64:
    case SX_PHYS_U64: return *cuda_value_at<uint64_t>(a, row_a) == *cuda_value_at<uint64_t>(b, row_b);
    case SX_PHYS_F32:
        return sx_f64_equal((double)*cuda_value_at<float>(a, row_a), (double)*cuda_value_at<float>(b, row_b));
    case SX_PHYS_F64: return sx_f64_equal(*cuda_value_at<double>(a, row_a), *cuda_value_at<double>(b, row_b));
    case SX_PHYS_STRING:
        return sx_string_equal(cuda_value_at<struct sx_string>(a, row_a),
                               cuda_value_at<struct sx_string>(b, row_b));
    default: return *cuda_value_at<sx_u128>(a, row_a) == *cuda_value_at<sx_u128>(b, row_b);
    }
}

#endif
