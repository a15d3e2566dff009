/* What libstachio_cuda.so exports beside its backend: pulls out of the memory of other processes' GPUs, which
 * CUDA opens to each other (CUDA IPC), by the GPU's copy engines. */
#ifndef SX_NET_PEER_LOAD_H
#define SX_NET_PEER_LOAD_H

#include "net/pull.h"
#include "tensor/backend.h"

#define SX_PEER_EXPORT __attribute__((visibility("default")))

/* From here on the device's messages are in memory that others can reach, while there is some of it, and
 * *out_trial says where one is whose bytes each rank may know: sx_peer_try. `pool`: of host memory, which
 * like the backend outlives the puller. SX_UNSUPPORTED: CUDA opens no memory to other processes here. */
SX_PEER_EXPORT enum sx_status sx_peer_create(const struct sx_backend *backend, struct sx_pool *pool, int rank,
                                             int size, struct sx_puller **out_puller,
                                             struct sx_pull_source *out_trial, struct sx_error *error);
/* Whether this rank can pull from another one, by that one's trial. Slow (it opens the memory). */
SX_PEER_EXPORT bool sx_peer_try(struct sx_puller *puller, int rank, const struct sx_pull_source *trial);
/* Rank `rank` can pull from this one. Before the puller is given to a net. */
SX_PEER_EXPORT void sx_peer_allow(struct sx_puller *puller, int rank);

typedef enum sx_status (*sx_peer_create_function)(const struct sx_backend *, struct sx_pool *, int, int,
                                                  struct sx_puller **, struct sx_pull_source *,
                                                  struct sx_error *);
typedef bool (*sx_peer_try_function)(struct sx_puller *, int, const struct sx_pull_source *);
typedef void (*sx_peer_allow_function)(struct sx_puller *, int);

#endif
