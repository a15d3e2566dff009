/* Stored bytes over the link: what is needed now, and what will be. */
#ifndef SX_BACKEND_CUDA_BRING_H
#define SX_BACKEND_CUDA_BRING_H

#include <pthread.h>

#include "backend/cuda/launch.h"
#include "base/status.h"
#include "tensor/backend.h"

struct cuda_device;
struct cuda_stream;
struct sx_buffer;

/* Copies of pinned memory, to memory of cuda_bring_memory, that will be needed together. Zeroed: none. Both
 * kinds of memory stay until the request has been awaited, and its stream has been synchronised, or it has
 * been given up. */
struct cuda_bring_request {
    struct cuda_bring_copy *copies; /* the request's own */
    int64_t n;
    bool is_awaited; /* by the stream that needs it */
    /* Under the bringer's lock: */
    bool is_queued;   /* some are not issued; what is, is taken off the copies */
    int64_t n_issued; /* whole ones */
    int64_t ticket;   /* of the last that was issued; 0: none was */
    struct cuda_bring_request *previous, *next;
};

/* Of a device. All under `lock`. */
struct cuda_bringer {
    pthread_mutex_t lock;
    pthread_cond_t asked;
    struct cuda_bring_request *first, *last; /* queued */
    cudaEvent_t *events;                     /* by tickets in turn: never earlier than asked for */
    int64_t n_tickets;
    cudaError_t failure; /* the first: whoever waits from then on fails with it */
    pthread_t thread;
    bool has_thread, stops;
};

void cuda_bringer_init(struct cuda_bringer *bringer);
/* Nothing is queued any more. */
void cuda_bringer_destroy(struct cuda_bringer *bringer);

/* In front of all others; makes what they need. */
SX_MUST_CHECK enum sx_status cuda_bring_begin(struct cuda_stream *stream);
/* Memory for what is brought; other streams may see it. */
SX_MUST_CHECK enum sx_status cuda_bring_memory(struct cuda_stream *stream, size_t bytes,
                                               struct sx_buffer **out_buffer);
/* Issues `n` copies of pinned memory, which must stay as it is until the stream's next synchronisation. What
 * is issued to the stream from then on finds the bytes there. */
SX_MUST_CHECK enum sx_status cuda_bring(struct cuda_stream *stream, const struct cuda_bring_copy *copies,
                                        int64_t n);
/* When the link has nothing to do that is needed now; in the order of these calls. */
void cuda_bring_later(struct cuda_device *device, struct cuda_bring_request **requests, int64_t n);
/* Issues what is not issued yet. */
void cuda_bring_now(struct cuda_device *device, struct cuda_bring_request **requests, int64_t n);
/* The same, and the stream waits for it. */
SX_MUST_CHECK enum sx_status cuda_bring_wait(struct cuda_stream *stream, struct cuda_bring_request **requests,
                                             int64_t n);
/* None of the copies reads or writes from here on: what was issued is waited for. Frees what the request has.
 */
void cuda_bring_give_up(struct cuda_device *device, struct cuda_bring_request *request);

#endif
