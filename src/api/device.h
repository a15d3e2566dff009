/* Inside of src/api: which device answers. The GPU's backend is a library of its own, loaded when it is asked
 * for or may be there, so that the same installation runs without one. */
#ifndef SX_API_DEVICE_H
#define SX_API_DEVICE_H

#include <stachio.h>

#include "backend/cuda/load.h"

struct sx_device {
    void *library; /* NULL: the CPU */
    const struct sx_backend *backend;
    const char *name; /* the device's own */
    struct sx_cuda_choice choice;
    bool is_wanted;   /* a GPU, and nothing else */
    char reason[256]; /* why AUTO is the CPU; empty: it was not asked for, or there is a GPU */
};

/* What libraries of the device are to find in the environment: see sx_launch_prepare_nccl. `is_alone`:
 * nothing else in the process wants a GPU, and this wants one, so that others are hidden (device_visible.c).
 */
void sx_device_prepare(enum stachio_device wanted, bool is_alone);
/* Sets CUDA_VISIBLE_DEVICES, unless it is set, to the GPU that is number 0 of sx_device_choose, where there
 * are several and that one can be expected to work. */
void sx_device_hide_others(void);

/* Which one it is to be. AUTO: what the environment's STACHIO_DEVICE says, else a GPU if one works, else the
 * CPU. CUDA: SX_USAGE with the reason if there is none. The library is libstachio_cuda.so beside libstachio,
 * or what STACHIO_CUDA_LIBRARY names. `number`: of the GPU, by PCI address; in turn where there are fewer. */
SX_MUST_CHECK enum sx_status sx_device_choose(enum stachio_device wanted, int number,
                                              struct sx_device *out_device, struct sx_error *error);
/* The chosen one, which `n_sharing` ranks have, this one included. An AUTO that fails becomes the CPU. */
SX_MUST_CHECK enum sx_status sx_device_open(struct sx_device *device, size_t limit_bytes, int n_sharing,
                                            const struct sx_backend **out_backend, struct sx_error *error);
/* No stream of the backend is left. */
void sx_device_close(struct sx_device *device);

#endif
