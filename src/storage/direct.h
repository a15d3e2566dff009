/* What reads with O_DIRECT have in common, whatever memory they go to. */
#ifndef SX_STORAGE_DIRECT_H
#define SX_STORAGE_DIRECT_H

#include "storage/reader.h"
#include "tensor/device_files.h"

/* The same file again, with O_DIRECT, and the alignment that it wants of offsets, lengths and memory; -1: the
 * file system refuses. */
int sx_direct_open(int fd, size_t *out_alignment);

/* A buffer of the pool for the aligned range around the read, and where in it the read's bytes will be. */
SX_MUST_CHECK enum sx_status sx_direct_prepare(struct sx_pool *pool, struct sx_read *read, size_t alignment,
                                               struct sx_transfer *out_transfer, struct sx_error *error);

#endif
