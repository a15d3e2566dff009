/* Inside of src/api: which device answers. The GPU's backend is a library of its own, loaded when it is asked
 * for or may be there, so that the same installation runs without one. */
#ifndef SX_API_DEVICE_H
#define SX_API_DEVICE_H

#include <stachio.h>

#include "tensor/backend.h"

struct sx_device {
    void *library; /* NULL: the CPU */
    const struct sx_backend *backend;
    const char *name; /* the device's own */
    char reason[256]; /* why AUTO is the CPU; empty: it was not asked for, or there is a GPU */
};

/* AUTO: what the environment's STACHIO_DEVICE says, else a GPU if one works, else the CPU. CUDA: SX_USAGE
 * with the reason if there is none. The library is libstachio_cuda.so beside libstachio, or what
 * STACHIO_CUDA_LIBRARY names. */
SX_MUST_CHECK enum sx_status sx_device_open(enum stachio_device wanted, size_t limit_bytes,
                                            struct sx_device *out_device,
                                            const struct sx_backend **out_backend, struct sx_error *error);
/* No stream of the backend is left. */
void sx_device_close(struct sx_device *device);

#endif
