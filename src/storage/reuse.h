/* Column chunks that several scans of one query read: the first of them brings a chunk to the device and
 * decodes it; it stays there, in the backend's cache, until the last has read it or the query ends. */
#ifndef SX_STORAGE_REUSE_H
#define SX_STORAGE_REUSE_H

#include "storage/scan.h"

/* Takes at most `limit_bytes` of the memory of the storage's backend, whose cache is off otherwise; chunks'
 * values, decoded, at most `values_bytes` besides. */
SX_MUST_CHECK enum sx_status sx_reuse_create(struct sx_storage *storage, size_t limit_bytes,
                                             size_t values_bytes, struct sx_reuse **out_reuse,
                                             struct sx_error *error);
/* After its scans' row groups. NULL allowed, as below. */
void sx_reuse_destroy(struct sx_reuse *reuse);

/* From here on chunks are kept; only one at a time of those of a storage. */
void sx_reuse_begin(struct sx_reuse *reuse);
/* All are given up; scans may still be open. */
void sx_reuse_end(struct sx_reuse *reuse);

#endif
