/* The part of cuFile that cufile.c calls. The library is NVIDIA's and loaded at run time, so its header may
 * be absent when this is compiled; where it is there, test/cufile_header.c holds these against it. */
#ifndef SX_BACKEND_CUDA_CUFILE_API_H
#define SX_BACKEND_CUDA_CUFILE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The version is that of the interface. */
#ifndef CUFILE_LIBRARY
#define CUFILE_LIBRARY "libcufile.so.0"
#endif

enum { CUFILE_SUCCESS = 0, CUFILE_FIRST_ERROR = 5000, CUFILE_ALREADY_OPEN = 5026, CUFILE_FD = 1 };
enum { CUFILE_ALLOW_COMPAT_MODE = 1 }; /* a parameter that is yes or no */

struct cufile_error {
    int status;
    int cuda;
};

struct cufile_descriptor {
    int type;
    union {
        int fd;
        void *handle;
    } handle;
    const void *operations;
};

struct cufile_properties {
    struct {
        unsigned major_version, minor_version;
        size_t poll_threshold_bytes, max_direct_bytes;
        unsigned status_flags; /* a bit for each kind of file system or drive that bytes come from directly */
        unsigned control_flags;
    } driver;
    unsigned feature_flags;
    unsigned max_cache_size, cache_size, max_pinned_size;
    unsigned max_batch_size, max_batch_timeout_ms;
};

/* X(name, type): a read gives bytes, -1 with errno, or an error below -CUFILE_FIRST_ERROR. */
#define CUFILE_FUNCTION_LIST(X)                                                                     \
    X(cuFileSetParameterBool, struct cufile_error (*)(int parameter, bool value))                   \
    X(cuFileDriverOpen, struct cufile_error (*)(void))                                              \
    X(cuFileDriverGetProperties, struct cufile_error (*)(struct cufile_properties * properties))    \
    X(cuFileHandleRegister, struct cufile_error (*)(void **handle, struct cufile_descriptor *file)) \
    X(cuFileHandleDeregister, void (*)(void *handle))                                               \
    X(cuFileBufRegister, struct cufile_error (*)(const void *memory, size_t bytes, int flags))      \
    X(cuFileBufDeregister, struct cufile_error (*)(const void *memory))                             \
    X(cuFileRead,                                                                                   \
      ssize_t (*)(void *handle, void *memory, size_t bytes, off_t file_offset, off_t memory_offset))

#endif
