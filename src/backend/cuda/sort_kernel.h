/* For kernels: what sort keys are compared by. */
#ifndef SX_BACKEND_CUDA_SORT_KERNEL_H
#define SX_BACKEND_CUDA_SORT_KERNEL_H

#include "backend/cuda/kernel.h"
#include "tensor/semantics_date.h"

/* ---- codes: unsigned numbers in ascending order of the values ---- */

template <typename T>
__device__ __forceinline__ sx_u128 code_of_signed(const struct cuda_column &column, int64_t row) {
    return (uint64_t)(int64_t)cuda_load<T>(column, row) ^ (UINT64_C(1) << 63);
}

__device__ static inline sx_u128 code_of(const struct cuda_column &column, int64_t row) {
    switch (column.phys) {
    case SX_PHYS_I8: return code_of_signed<int8_t>(column, row);
    case SX_PHYS_I16: return code_of_signed<int16_t>(column, row);
    case SX_PHYS_I32: return code_of_signed<int32_t>(column, row);
    case SX_PHYS_I64: return code_of_signed<int64_t>(column, row);
    case SX_PHYS_I128: return cuda_load<sx_u128>(column, row) ^ (sx_u128)1 << 127;
    case SX_PHYS_U8: return cuda_load<uint8_t>(column, row);
    case SX_PHYS_U16: return cuda_load<uint16_t>(column, row);
    case SX_PHYS_U32: return cuda_load<uint32_t>(column, row);
    case SX_PHYS_U64: return cuda_load<uint64_t>(column, row);
    case SX_PHYS_U128: return cuda_load<sx_u128>(column, row);
    case SX_PHYS_F32: return sx_f64_code((double)cuda_load<float>(column, row));
    case SX_PHYS_F64: return sx_f64_code(cuda_load<double>(column, row));
    case SX_PHYS_INTERVAL: return sx_interval_code(cuda_load<struct sx_interval>(column, row));
    default: return 0;
    }
}

/* In its place: a copy's bytes could not be addressed without a detour over memory. */
__device__ static inline const struct sx_string *string_at(const struct cuda_column &column, int64_t row) {
    if (column.layout == CUDA_DICT)
        return (const struct sx_string *)column.dict + ((const int32_t *)column.values)[row];
    return (const struct sx_string *)column.values + (column.layout == CUDA_CONSTANT ? 0 : row);
}

/* `count` bits of the string's bytes behind `skipped` ones. */
__device__ static inline uint64_t string_bits(const struct sx_string *string, int64_t skipped,
                                              int64_t count) {
    const int64_t length = string->length_bytes, first = skipped / 8;
    const char *bytes = length <= SX_STRING_INLINE_BYTES ? string->u.inlined : string->u.ref.pointer;
    const int off = (int)(skipped % 8);
    uint64_t word = 0;
    for (int64_t at = first; at < first + 8; at++)
        word = word << 8 | (at < length ? (uint8_t)bytes[at] : 0);
    if (off > 0) {
        const uint64_t next = first + 8 < length ? (uint8_t)bytes[first + 8] : 0;
        word = word << off | next >> (8 - off);
    }
    return word >> (64 - count);
}

#endif
