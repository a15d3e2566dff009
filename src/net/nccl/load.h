/* What libstachio_cuda.so exports beside its backend: links between GPUs by NCCL, which is loaded at run
 * time. */
#ifndef SX_NET_NCCL_LOAD_H
#define SX_NET_NCCL_LOAD_H

#include "net/link.h"
#include "tensor/backend.h"

#define SX_NCCL_EXPORT __attribute__((visibility("default")))

enum { SX_NCCL_ID_BYTES = 128 };

/* A link without an id yet, by libnccl.so.2 or what STACHIO_NCCL_LIBRARY names. `pool`: of
 * host memory, which like the backend outlives the link. SX_UNSUPPORTED: the library is not there, and why.
 */
SX_NCCL_EXPORT enum sx_status sx_nccl_create(const struct sx_backend *backend, struct sx_pool *pool,
                                             struct sx_link **out_link, struct sx_error *error);
/* On one rank; the others need the same bytes. */
SX_NCCL_EXPORT enum sx_status sx_nccl_make_id(char out_id[SX_NCCL_ID_BYTES], struct sx_error *error);
/* On all ranks, each with a device of its own, before the link is used: the communicator that it is to have
 * (which takes about 0.4 s to make, and begins when the link connects). */
SX_NCCL_EXPORT void sx_nccl_set_id(struct sx_link *link, int rank, int size, const char id[SX_NCCL_ID_BYTES]);

typedef enum sx_status (*sx_nccl_create_function)(const struct sx_backend *, struct sx_pool *,
                                                  struct sx_link **, struct sx_error *);
typedef enum sx_status (*sx_nccl_make_id_function)(char *, struct sx_error *);
typedef void (*sx_nccl_set_id_function)(struct sx_link *, int, int, const char *);

#endif
