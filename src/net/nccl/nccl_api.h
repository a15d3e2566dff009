/* The part of NCCL 2 that nccl.c calls. The library is NVIDIA's and loaded at run time, so its header may be
 * absent when this is compiled. Names are NCCL's. */
#ifndef SX_NET_NCCL_API_H
#define SX_NET_NCCL_API_H

#include <stddef.h>

#include <cuda_runtime_api.h>

enum { ncclSuccess = 0, ncclInProgress = 7, ncclChar = 0 };

typedef struct {
    char internal[128];
} ncclUniqueId;

/* As of 2.17.1; later versions take it, and what they have more is as they choose. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
};
enum { NCCL_CONFIG_VERSION = 21701, NCCL_UNDEFINED = -0x7fffffff - 1 };
static const unsigned nccl_config_magic = 0xcafebeef;

struct ncclComm;

/* X(name, type of the function) */
#define NCCL_FUNCTION_LIST(X)                                                                               \
    X(ncclGetVersion, int (*)(int *version))                                                                \
    X(ncclGetUniqueId, int (*)(ncclUniqueId * id))                                                          \
    X(ncclCommInitRankConfig,                                                                               \
      int (*)(struct ncclComm * *comm, int n_ranks, ncclUniqueId id, int rank, struct nccl_config *config)) \
    X(ncclCommGetAsyncError, int (*)(struct ncclComm * comm, int *error))                                   \
    X(ncclCommFinalize, int (*)(struct ncclComm * comm))                                                    \
    X(ncclCommDestroy, int (*)(struct ncclComm * comm))                                                     \
    X(ncclCommAbort, int (*)(struct ncclComm * comm))                                                       \
    X(ncclGroupStart, int (*)(void))                                                                        \
    X(ncclGroupEnd, int (*)(void))                                                                          \
    X(ncclSend, int (*)(const void *from, size_t count, int type, int peer, struct ncclComm *comm,          \
                        cudaStream_t stream))                                                               \
    X(ncclRecv,                                                                                             \
      int (*)(void *to, size_t count, int type, int peer, struct ncclComm *comm, cudaStream_t stream))      \
    X(ncclGetErrorString, const char *(*)(int error))

#endif
