/* What libstachio_cuda.so exports; whoever loads it includes this and nothing else of the backend. */
#ifndef SX_BACKEND_CUDA_LOAD_H
#define SX_BACKEND_CUDA_LOAD_H

#include "tensor/backend.h"

#define SX_CUDA_EXPORT __attribute__((visibility("default")))

/* Opens the first device that works. `limit_bytes` of its memory at most; 0: nine tenths of what is free.
 * SX_UNSUPPORTED: there is none, and why. *out_name (the device's) stays valid until sx_cuda_close. */
SX_CUDA_EXPORT enum sx_status sx_cuda_open(size_t limit_bytes, const struct sx_backend **out_backend,
                                           const char **out_name, struct sx_error *error);
/* All streams of the backend have been destroyed. */
SX_CUDA_EXPORT void sx_cuda_close(const struct sx_backend *backend);

typedef enum sx_status (*sx_cuda_open_function)(size_t, const struct sx_backend **, const char **,
                                                struct sx_error *);
typedef void (*sx_cuda_close_function)(const struct sx_backend *);

#endif
