/* Tells of lost ranks: every rank keeps a connection to rank 0, which carries nothing while all is well. The
 * system closes it when a process dies, however it dies, and rank 0 passes the news on. (UCX tells of lost
 * peers only over transports other than shared memory.) */
#ifndef SX_NET_UCX_LIFELINE_H
#define SX_NET_UCX_LIFELINE_H

#include "net/ucx/bootstrap.h"

struct sx_lifeline;

/* Collective. `interface` NULL: the first that is up and not the loopback. Nothing listens afterwards. */
SX_MUST_CHECK enum sx_status sx_lifeline_open(struct sx_bootstrap *boot, const char *interface,
                                              struct sx_lifeline **out_lifeline, struct sx_error *error);
/* lost(context, rank, why) is called by a thread of the life line from now on; why: see transport.h. */
typedef void (*sx_lifeline_lost)(void *context, int rank, const char *why);
SX_MUST_CHECK enum sx_status sx_lifeline_watch(struct sx_lifeline *lifeline, sx_lifeline_lost lost,
                                               void *context, struct sx_error *error);
/* All ranks hear that one is lost, found by other means. From any thread. */
void sx_lifeline_tell(struct sx_lifeline *lifeline, int lost_rank);
/* `orderly`: says goodbye, so that the others don't take this rank for lost. Else they do, if they have not
 * heard of another lost one before. NULL allowed. */
void sx_lifeline_close(struct sx_lifeline *lifeline, bool orderly);

#endif
