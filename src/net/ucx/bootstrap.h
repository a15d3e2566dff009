/* How the ranks of a launch find each other: MPI's collective calls, from MPI_Init to MPI_Finalize. */
#ifndef SX_NET_UCX_BOOTSTRAP_H
#define SX_NET_UCX_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { SX_HOST_BYTES = 256, SX_VERSION_BYTES = 64 };

struct sx_peer {
    char host[SX_HOST_BYTES];
    char version[SX_VERSION_BYTES];
    long pid;
};

struct sx_bootstrap {
    int rank, size;
    bool is_one_host;
    struct sx_peer *peers; /* `size` */
};

/* Starts MPI and tells who is there. Every rank of `launched_ranks` has to call it. sx_bootstrap_end also
 * after an error. */
SX_MUST_CHECK enum sx_status sx_bootstrap_begin(struct sx_bootstrap *boot, int launched_ranks,
                                                const char *version, struct sx_error *error);
/* All ranks tell how they fare: SX_OK if all do well, else the error of the first that does not. */
SX_MUST_CHECK enum sx_status sx_bootstrap_agree(struct sx_bootstrap *boot, enum sx_status status,
                                                struct sx_error *error);
/* From rank 0 to all. */
void sx_bootstrap_broadcast(struct sx_bootstrap *boot, void *data, size_t bytes);
/* The same number of bytes of each rank; out: `size` times as many. */
void sx_bootstrap_gather(struct sx_bootstrap *boot, const void *data, size_t bytes_each, void *out);
size_t sx_bootstrap_most(struct sx_bootstrap *boot, size_t value);
void sx_bootstrap_end(struct sx_bootstrap *boot);

#endif
