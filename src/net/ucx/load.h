/* What libstachio_net.so exports: the ranks of an MPI launch, whose host memory travels by UCX. It is a
 * library of its own, loaded only where there are several ranks, so that the program starts on machines
 * without MPI and UCX. */
#ifndef SX_NET_UCX_LOAD_H
#define SX_NET_UCX_LOAD_H

#include "net/transport.h"

struct sx_ucx_options {
    const char *version;   /* of the program: a rank that has another one is refused */
    const char *interface; /* the network interface that is used, alone; NULL: loopback if all ranks are on
                            * one host, else the first that is up and UCX's own choice */
    int launched_ranks;    /* what the launcher's environment says */
};

/* Collective over all ranks that were launched; once in a process. Where one rank fails all do, with its
 * error. MPI is started and ended in it: it serves to find the others. */
typedef enum sx_status (*sx_ucx_open_function)(const struct sx_ucx_options *options,
                                               struct sx_transport **out_transport, struct sx_error *error);

#endif
