/* Ranks that are threads of one process: for tests. */
#ifndef SX_NET_LOCAL_H
#define SX_NET_LOCAL_H

#include "net/net.h"

/* out_nets[r]: the net of rank r. They are closed at the same time, by a thread each. `n_hosts`: so many
 * hosts they say they are on, neighbours together. */
SX_MUST_CHECK enum sx_status sx_net_local_create(int size, int n_hosts, struct sx_net **out_nets,
                                                 struct sx_error *error);

/* As if the rank's process had died: what it sends goes nowhere, and the others hear that it is lost. */
void sx_net_local_kill(struct sx_net *net);

#endif
