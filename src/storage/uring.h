/* Many large reads at a time by io_uring. */
#ifndef SX_STORAGE_URING_H
#define SX_STORAGE_URING_H

#include "tensor/device_files.h"

/* Rings, one for each thread that is reading. */
struct sx_rings;
SX_MUST_CHECK enum sx_status sx_rings_create(struct sx_rings **out_rings, struct sx_error *error);
void sx_rings_destroy(struct sx_rings *rings); /* NULL allowed */

struct sx_transfers {
    int fd;          /* with O_DIRECT */
    int buffered_fd; /* of the same file without, for what the other can't read */
    size_t alignment;
    const atomic_bool *cancel;                     /* may be NULL */
    void (*arrived)(void *context, int64_t bytes); /* may be NULL */
    void *context;
    const struct sx_transfer *list;
    int count;
    int failed; /* out: the transfer that an error is about */
};

/* Reads all, also where the system has no io_uring. When it returns, nothing is in flight. */
SX_MUST_CHECK enum sx_status sx_rings_read(struct sx_rings *rings, struct sx_transfers *transfers,
                                           struct sx_error *error);

#endif
