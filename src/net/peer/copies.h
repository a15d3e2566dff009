/* Copies out of other ranks' GPUs, by one copy engine: slices of all ranks' copies in turn, on one stream. A
 * copy engine that has copies of several streams takes one stream's for milliseconds before it looks at the
 * next (2 to 6 ms seen), and all ranks would read whichever has offered first. */
#ifndef SX_NET_PEER_COPIES_H
#define SX_NET_PEER_COPIES_H

#include "backend/cuda/cuda.h"

enum { PEER_SLICES = 4 /* under way: the engine has something to do while the host looks elsewhere */ };

struct peer_copy;

struct peer_copies_of {
    struct peer_copy *first, *last; /* oldest first */
    struct peer_copy *issuing;      /* the first of which not all is under way */
};

struct peer_slice {
    cudaEvent_t event; /* its end */
    struct peer_copy *copy;
};

/* One thread's at a time. */
struct peer_copies {
    struct sx_stream *stream;  /* NULL until it is needed */
    struct peer_copies_of *of; /* by rank */
    int rank, size, turn;
    struct peer_slice slices[PEER_SLICES]; /* a ring */
    int first_slice, n_slices;
    struct peer_copy *spare;
    bool is_abandoned;
};

/* `rank`: this one, of `size`. */
SX_MUST_CHECK enum sx_status peer_copies_init(struct peer_copies *copies, int rank, int size,
                                              struct sx_error *error);
/* Waits for what is under way, and forgets all copies. */
void peer_copies_drop(struct peer_copies *copies);
void peer_copies_release(struct peer_copies *copies);

/* The stream, entered. `host_pool` is for its own needs. */
SX_MUST_CHECK enum sx_status peer_copies_enter(struct peer_copies *copies, struct cuda_device *device,
                                               struct sx_pool *host_pool, struct cuda_stream **out_stream,
                                               struct sx_error *error);
/* Behind the rank's others. The stream has been entered. */
SX_MUST_CHECK enum sx_status peer_copies_add(struct peer_copies *copies, int rank, void *to, const void *from,
                                             size_t bytes, struct sx_error *error);
/* Whether the rank's oldest copy, of which there is one, has ended; it is forgotten then. Goes on with all.
 */
SX_MUST_CHECK enum sx_status peer_copies_test(struct peer_copies *copies, int rank, bool *out_ended,
                                              struct sx_error *error);

/* Nothing more is issued: all copies end with an error, once their slices under way have. None is added any
 * more. */
void peer_copies_abandon(struct peer_copies *copies);

/* What CUDA could not do. */
enum sx_status peer_fail(struct sx_error *error, cudaError_t result, const char *what);

#endif
