/* Reading ranges of a file straight into the device's memory, where that can be done and pays. */
#ifndef SX_STORAGE_DEVICE_READER_H
#define SX_STORAGE_DEVICE_READER_H

#include "storage/file.h"
#include "storage/reader.h"
#include "tensor/backend.h"

struct sx_device_reader;
struct sx_device_source; /* a file, open for it */

struct sx_device_reader_options {
    const struct sx_backend *backend; /* outlives the reader */
    struct sx_pool *host_pool;        /* what reads to the host go to, when both are timed; outlives it too */
    bool is_forced; /* any file, also by way of the host's memory; else only where it is no slower */
};

/* Thread-safe. SX_USAGE, where it is forced: it can't be done, and why. Otherwise that is found when the
 * first file is opened. */
SX_MUST_CHECK enum sx_status sx_device_reader_create(const struct sx_device_reader_options *options,
                                                     struct sx_device_reader **out_reader,
                                                     struct sx_error *error);
/* All sources are closed, and all buffers released. NULL allowed. */
void sx_device_reader_destroy(struct sx_device_reader *reader);
bool sx_device_reader_is_forced(const struct sx_device_reader *reader);

/* Why files that were opened are read to the host: the last reason; "": none. */
void sx_device_reader_reason(struct sx_device_reader *reader, char *out_text, size_t bytes);

/* `fd` stays the caller's. *out_source NULL: the file is to be read to the host. Where it is not forced, the
 * first file of each file system is read from for a moment, in both ways. SX_FILE (the text does not name the
 * file): it is forced, and the file system has no way. */
SX_MUST_CHECK enum sx_status sx_device_reader_open(struct sx_device_reader *reader, int fd,
                                                   const struct sx_file_stamp *stamp,
                                                   struct sx_device_source **out_source,
                                                   struct sx_error *error);
void sx_device_reader_close(struct sx_device_reader *reader, struct sx_device_source *source);

/* Whether pages of that codec are decoded without a look at them by the host. */
bool sx_device_reader_takes(const struct sx_device_reader *reader, int32_t codec);

/* All reads of the request, whose `fd` is not looked at; `bytes` are in the device's memory then. Fails as
 * sx_reader_read does. */
SX_MUST_CHECK enum sx_status sx_device_reader_read(struct sx_device_reader *reader,
                                                   const struct sx_device_source *source,
                                                   struct sx_read_request *request, struct sx_error *error);
/* See struct sx_device_files_ops. */
SX_MUST_CHECK enum sx_status sx_device_reader_peek(struct sx_device_reader *reader, const uint8_t *device,
                                                   size_t bytes, void *out_bytes, struct sx_error *error);

#endif
