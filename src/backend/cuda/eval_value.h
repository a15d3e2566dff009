/* The interpreter's values: what a slot's words mean. For eval.cu only. */
#ifndef SX_BACKEND_CUDA_EVAL_VALUE_H
#define SX_BACKEND_CUDA_EVAL_VALUE_H

#include "backend/cuda/kernel.h"
#include "backend/cuda/launch_eval.h"

struct eval_result {
    struct cuda_eval_value value;
    bool valid;
    bool failed;
};

template <typename T> __device__ __forceinline__ T eval_as(struct cuda_eval_value value) {
    T as;
    memcpy(&as, &value, sizeof as);
    return as;
}
template <typename T> __device__ __forceinline__ struct cuda_eval_value eval_of(T value) {
    struct cuda_eval_value of = {0, 0};
    memcpy(&of, &value, sizeof value);
    return of;
}

/* F32 or F64, as a DOUBLE. */
__device__ __forceinline__ double eval_as_double(int kind, struct cuda_eval_value value) {
    return kind == CUDA_EVAL_F32 ? (double)eval_as<float>(value) : eval_as<double>(value);
}

/* The value that a narrower type holds after its bits were cut off. */
__device__ static inline int64_t eval_cut(int phys, int64_t value) {
    switch (phys) {
    case SX_PHYS_I8: return (int8_t)value;
    case SX_PHYS_I16: return (int16_t)value;
    case SX_PHYS_I32: return (int32_t)value;
    case SX_PHYS_U8: return (uint8_t)value;
    case SX_PHYS_U16: return (uint16_t)value;
    case SX_PHYS_U32: return (uint32_t)value;
    default: return value;
    }
}

template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_load(const struct cuda_column &column, int phys,
                                                          int64_t row) {
    switch (phys) {
    case SX_PHYS_I8: return eval_of((int64_t)cuda_load<int8_t>(column, row));
    case SX_PHYS_I16: return eval_of((int64_t)cuda_load<int16_t>(column, row));
    case SX_PHYS_I32: return eval_of((int64_t)cuda_load<int32_t>(column, row));
    case SX_PHYS_U8: return eval_of((uint64_t)cuda_load<uint8_t>(column, row));
    case SX_PHYS_U16: return eval_of((uint64_t)cuda_load<uint16_t>(column, row));
    case SX_PHYS_F32:
    case SX_PHYS_U32: return eval_of((uint64_t)cuda_load<uint32_t>(column, row));
    case SX_PHYS_F64:
    case SX_PHYS_I64:
    case SX_PHYS_U64: return eval_of(cuda_load<uint64_t>(column, row));
    default:
        if constexpr (LEVEL >= CUDA_EVAL_WIDE)
            return cuda_load<struct cuda_eval_value>(column, row);
        return cuda_eval_value{0, 0};
    }
}

template <int LEVEL>
__device__ static inline void eval_store(void *values, int phys, int64_t row, struct cuda_eval_value value) {
    switch (phys) {
    case SX_PHYS_I8:
    case SX_PHYS_U8: ((uint8_t *)values)[row] = (uint8_t)value.low; break;
    case SX_PHYS_I16:
    case SX_PHYS_U16: ((uint16_t *)values)[row] = (uint16_t)value.low; break;
    case SX_PHYS_I32:
    case SX_PHYS_U32:
    case SX_PHYS_F32: ((uint32_t *)values)[row] = (uint32_t)value.low; break;
    case SX_PHYS_I64:
    case SX_PHYS_U64:
    case SX_PHYS_F64: ((uint64_t *)values)[row] = value.low; break;
    default:
        if constexpr (LEVEL >= CUDA_EVAL_WIDE)
            ((struct cuda_eval_value *)values)[row] = value;
    }
}

#endif
