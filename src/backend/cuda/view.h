/* For kernels: views of strings. */
#ifndef SX_BACKEND_CUDA_VIEW_H
#define SX_BACKEND_CUDA_VIEW_H

#include "backend/cuda/kernel.h"

__device__ __forceinline__ const char *view_bytes(const struct sx_string &view) {
    return view.length_bytes <= SX_STRING_INLINE_BYTES ? view.u.inlined : view.u.ref.pointer;
}

/* A view of bytes that stay. */
__device__ static inline struct sx_string view_of(const char *bytes, uint32_t length) {
    struct sx_string view = {};
    const uint32_t head = length <= SX_STRING_INLINE_BYTES ? length : (uint32_t)sizeof view.u.ref.prefix;
    view.length_bytes = length;
    for (uint32_t i = 0; i < head; i++)
        view.u.inlined[i] = bytes[i];
    if (length > SX_STRING_INLINE_BYTES)
        view.u.ref.pointer = bytes;
    return view;
}

#endif
