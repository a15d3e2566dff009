/* What libstachio_cuda.so exports; whoever loads it includes this and nothing else of the backend. */
#ifndef SX_BACKEND_CUDA_LOAD_H
#define SX_BACKEND_CUDA_LOAD_H

#include "tensor/backend.h"

#define SX_CUDA_EXPORT __attribute__((visibility("default")))

enum { SX_CUDA_LEAST_MAJOR = 8 }; /* of compute capability */

/* A device that works. */
struct sx_cuda_choice {
    char name[256];
    char bus[32]; /* PCI address, as "0000:1b:00.0" */
    int ordinal;  /* CUDA's number */
};

/* Of the devices that CUDA shows, by PCI address, the one with this number, counted in turn where there are
 * fewer; the next one if it does not work. SX_UNSUPPORTED: none does, and why. */
SX_CUDA_EXPORT enum sx_status sx_cuda_choose(int number, struct sx_cuda_choice *out_choice,
                                             struct sx_error *error);
/* `choice` NULL: the first. `limit_bytes` of its memory at most; 0: nine tenths of what is free, of which
 * `n_sharing` get the same. *out_name (the device's) stays valid until sx_cuda_close. A device may be opened
 * several times. */
SX_CUDA_EXPORT enum sx_status sx_cuda_open(const struct sx_cuda_choice *choice, size_t limit_bytes,
                                           int n_sharing, const struct sx_backend **out_backend,
                                           const char **out_name, struct sx_error *error);
/* All streams of the backend have been destroyed. */
SX_CUDA_EXPORT void sx_cuda_close(const struct sx_backend *backend);

typedef enum sx_status (*sx_cuda_choose_function)(int, struct sx_cuda_choice *, struct sx_error *);
typedef enum sx_status (*sx_cuda_open_function)(const struct sx_cuda_choice *, size_t, int,
                                                const struct sx_backend **, const char **, struct sx_error *);
typedef void (*sx_cuda_close_function)(const struct sx_backend *);

#endif
