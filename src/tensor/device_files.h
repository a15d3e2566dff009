/* Reading files straight into a device's memory, past the host's (GPUDirect Storage): a part of a backend
 * (backend.h) that not every one has. Any thread may call. */
#ifndef SX_TENSOR_DEVICE_FILES_H
#define SX_TENSOR_DEVICE_FILES_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/status.h"
#include "tensor/page.h"

struct sx_backend;

/* Bytes [offset, offset + length_bytes) of a file to memory. Offset, length and memory are aligned as the
 * file wants it; the file may end behind `needed_bytes`. */
struct sx_transfer {
    int64_t offset;
    size_t length_bytes;
    size_t needed_bytes;
    uint8_t *to;
};

enum { SX_DEVICE_PEEK_BYTES = 1024 };

struct sx_device_files; /* the driver, opened */
struct sx_device_file;  /* a file that is known to it */

struct sx_device_files_ops {
    /* `may_bounce`: also where bytes go by way of the host's memory after all. SX_UNSUPPORTED: it can't be
     * done, and why. */
    SX_MUST_CHECK enum sx_status (*open)(const struct sx_backend *backend, bool may_bounce,
                                         struct sx_device_files **out_files, struct sx_error *error);
    /* Before the backend; all files are closed, and all memory of the pool is given back. */
    void (*close)(struct sx_device_files *files);
    /* What files are read into: the device's memory, in whole pages of 4 KiB. It counts in the backend's. */
    struct sx_pool *(*pool)(const struct sx_device_files *files);
    /* Whether pages of that codec are decoded without a look at their bytes by the host. */
    bool (*takes)(const struct sx_device_files *files, enum sx_parquet_codec codec);
    /* `fd`: open with O_DIRECT, and until the file is closed. SX_UNSUPPORTED: the file system has no way. */
    SX_MUST_CHECK enum sx_status (*file_open)(struct sx_device_files *files, int fd,
                                              struct sx_device_file **out_file, struct sx_error *error);
    void (*file_close)(struct sx_device_files *files, struct sx_device_file *file);
    /* Done when it returns. SX_FILE: some could not be read, or the file ends before. */
    SX_MUST_CHECK enum sx_status (*read)(struct sx_device_files *files, const struct sx_device_file *file,
                                         const struct sx_transfer *transfer, const atomic_bool *cancel,
                                         struct sx_error *error);
    /* Up to SX_DEVICE_PEEK_BYTES of what has been read, to the host. */
    SX_MUST_CHECK enum sx_status (*peek)(struct sx_device_files *files, const uint8_t *device, size_t bytes,
                                         void *out_bytes, struct sx_error *error);
};

#endif
