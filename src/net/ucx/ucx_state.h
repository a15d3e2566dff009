/* Inside of libstachio_net.so: the transport's state. */
#ifndef SX_NET_UCX_STATE_H
#define SX_NET_UCX_STATE_H

#include <pthread.h>
#include <ucp/api/ucp.h>

#include "net/transport.h"
#include "net/ucx/lifeline.h"

enum {
    SX_UCX_MESSAGE_ID = 1,
    SX_UCX_SPIN_NS = 20000 /* before it waits: a message that is answered at once finds the thread awake */
};

/* The header of an active message. */
struct sx_ucx_header {
    struct sx_frame frame;
    uint32_t rank, unused;
};

/* A frame on its way out or in. */
struct sx_ucx_transfer {
    struct sx_ucx_transfer *next;
    struct sx_ucx *ucx;
    struct sx_ucx_header header;
    int rank;
    struct sx_buffer *buffer;
    size_t bytes;
};

struct sx_ucx {
    struct sx_transport base;
    const struct sx_transport_events *events;
    void *context;
    struct sx_lifeline *lifeline;
    ucp_context_h ucp;
    ucp_worker_h worker; /* of the network thread, once that runs */
    ucp_ep_h *endpoints; /* per rank; the own one is NULL */
    int worker_fd, wake_fd;
    pthread_t thread;
    bool has_thread;
    pthread_t runner; /* the thread as it calls itself, from `runs` on */
    atomic_bool runs;
    atomic_bool is_lost; /* some rank: nobody is waited for */
    pthread_mutex_t lock;
    struct sx_ucx_transfer *first, *last; /* to be sent */
    bool stopping, sleeping;
    void (*task)(void *context); /* for the network thread; NULL: none */
    void *task_context;
    pthread_cond_t task_done;
    char name[64];
    int *hosts; /* of base */
};

/* The network thread: sends what is given, and takes what comes. */
void *sx_ucx_thread(void *argument); /* a struct sx_ucx */
SX_MUST_CHECK enum sx_status sx_ucx_set_handler(struct sx_ucx *ucx, struct sx_error *error);
void sx_ucx_send(struct sx_transport *transport, int rank, const struct sx_frame *frame,
                 struct sx_buffer *buffer, size_t bytes);
/* What is sent to the rank, or comes from it, does not arrive. */
void sx_ucx_lost(struct sx_ucx *ucx, int rank, ucs_status_t status);
/* The network thread waits until something comes, or the wake descriptor is written to. */
void sx_ucx_wait(struct sx_ucx *ucx);
/* Lets the network thread run something, and waits until it has. */
void sx_ucx_run(struct sx_ucx *ucx, void (*task)(void *context), void *context);
SX_MUST_CHECK enum sx_status sx_ucx_raw_begin(struct sx_transport *transport, size_t bytes, int64_t count,
                                              struct sx_transport_raw **out_raw, struct sx_error *error);
void sx_ucx_raw_exchange(struct sx_transport_raw *raw);
void sx_ucx_raw_end(struct sx_transport_raw *raw);
/* abort.c: from here on abort() on the network thread, when a rank is lost, does not end the process. */
void sx_ucx_guard(struct sx_ucx *ucx);
void sx_ucx_unguard(struct sx_ucx *ucx);
/* The thread ends soon. */
void sx_ucx_stop(struct sx_ucx *ucx);

#endif
