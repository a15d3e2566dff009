/* What libstachio_cuda.so exports beside its backend: links between GPUs by NCCL, which is loaded at run
 * time. */
#ifndef SX_NET_NCCL_LOAD_H
#define SX_NET_NCCL_LOAD_H

#include "net/link.h"
#include "tensor/backend.h"

#define SX_NCCL_EXPORT __attribute__((visibility("default")))

enum { SX_NCCL_ID_BYTES = 128 };

/* libnccl.so.2, or what STACHIO_NCCL_LIBRARY names. SX_UNSUPPORTED: it is not there, and why. */
SX_NCCL_EXPORT enum sx_status sx_nccl_check(struct sx_error *error);
/* On one rank; the others need the same bytes. */
SX_NCCL_EXPORT enum sx_status sx_nccl_make_id(char out_id[SX_NCCL_ID_BYTES], struct sx_error *error);
/* Collective over all ranks, each with a device of its own. `pool`: of host memory, which like the
 * backend outlives the link. */
SX_NCCL_EXPORT enum sx_status sx_nccl_open(const struct sx_backend *backend, struct sx_pool *pool, int rank,
                                           int size, const char id[SX_NCCL_ID_BYTES],
                                           struct sx_link **out_link, struct sx_error *error);

typedef enum sx_status (*sx_nccl_check_function)(struct sx_error *);
typedef enum sx_status (*sx_nccl_make_id_function)(char *, struct sx_error *);
typedef enum sx_status (*sx_nccl_open_function)(const struct sx_backend *, struct sx_pool *, int, int,
                                                const char *, struct sx_link **, struct sx_error *);

#endif
