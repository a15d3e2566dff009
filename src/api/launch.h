/* Inside of src/api: whether this process is one of several that mpirun or srun has started. */
#ifndef SX_API_LAUNCH_H
#define SX_API_LAUNCH_H

#include "net/net.h"

/* What NCCL is to find in the environment if it is loaded. Before there are threads of ours: changing the
 * environment frees what another thread may be reading. */
void sx_launch_prepare_nccl(bool is_one_host, const char *interface);

/* How many ranks the environment tells of; 1 where the process was started alone. A shell of salloc's, or a
 * batch script, is no launch, and neither is srun without an MPI interface. */
int sx_launch_ranks(void);

/* The net of the launch: collective over its ranks, once in a process. With one rank it is the "self" net.
 * Else libstachio_net.so is loaded (beside libstachio, or what STACHIO_NET_LIBRARY names); SX_USAGE where
 * that fails. `interface`: the network interface to use alone, or NULL. */
SX_MUST_CHECK enum sx_status sx_launch_open(const char *interface, struct sx_net **out_net,
                                            struct sx_error *error);

#endif
