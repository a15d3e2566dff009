/* Stored bytes over the link, one call's after another's, on a stream of the device's own. On their workers'
 * streams copies of several calls share the link, so that all of them have their bytes late and at about the
 * same time. One after another, the first one computes while the next one's bytes come. What is asked for
 * ahead waits in a queue, of which a thread issues so little at a time that the link is busy, and that what
 * is needed meanwhile comes soon. Small copies go together, by a kernel; the stream is in front of others
 * where kernels wait for room. */
#include "backend/cuda/bring.h"

#include <stdlib.h>

#include "backend/cuda/cuda.h"

/* From here on a copy engine takes little longer than the bytes. */
static const size_t engine_bytes = (size_t)1 << 20;
/* That the thread issues at a time, but for the end of a copy, and at most of one; there are two on their
 * way. */
static const size_t piece_bytes = (size_t)4 << 20, part_bytes = (size_t)16 << 20;

enum { EVENTS = 64 };

/* ---- life ---- */

void cuda_bringer_init(struct cuda_bringer *bringer) {
    pthread_mutex_init(&bringer->lock, NULL);
    pthread_cond_init(&bringer->asked, NULL);
}

void cuda_bringer_destroy(struct cuda_bringer *bringer) {
    pthread_mutex_lock(&bringer->lock);
    bringer->stops = true;
    pthread_cond_signal(&bringer->asked);
    pthread_mutex_unlock(&bringer->lock);
    if (bringer->has_thread)
        pthread_join(bringer->thread, NULL);
    for (int i = 0; bringer->events && i < EVENTS; i++)
        if (bringer->events[i])
            (void)cudaEventDestroy(bringer->events[i]);
    free(bringer->events);
    pthread_cond_destroy(&bringer->asked);
    pthread_mutex_destroy(&bringer->lock);
}

static enum sx_status make_events(struct cuda_stream *stream, struct cuda_bringer *bringer) {
    enum sx_status status = SX_OK;
    if (bringer->events)
        return SX_OK;
    cudaEvent_t *events = calloc(EVENTS, sizeof *events);
    if (!events)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for events");
    bringer->events = events;
    for (int i = 0; i < EVENTS && status == SX_OK; i++)
        status = cuda_check(
            stream, cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming | cudaEventBlockingSync),
            "an event");
    return status;
}

enum sx_status cuda_bring_begin(struct cuda_stream *stream) {
    struct cuda_bringer *bringer = &stream->device->bringing;
    struct cuda_stream *own;
    SX_TRY(cuda_own_stream(stream, &stream->device->bringer, &own));
    pthread_mutex_lock(&bringer->lock);
    const enum sx_status status = make_events(stream, bringer);
    pthread_mutex_unlock(&bringer->lock);
    return status;
}

enum sx_status cuda_bring_memory(struct cuda_stream *stream, size_t bytes, struct sx_buffer **out_buffer) {
    struct cuda_stream *bringer = atomic_load(&stream->device->bringer);
    SX_TRY(sx_buffer_create(bringer->base.pool, bytes, out_buffer, &stream->base.error));
    cuda_share(bringer, (*out_buffer)->data);
    return SX_OK;
}

/* ---- issuing, under the lock ---- */

/* Copies of one ticket. */
struct issue {
    struct cuda_device *device;
    cudaStream_t stream;
    struct cuda_bring_copies small;
    cudaError_t result;
    int64_t ticket;
};

static struct issue begin_issue(struct cuda_device *device) {
    return (struct issue){.device = device,
                          .stream = atomic_load(&device->bringer)->handle,
                          .result = cudaSuccess,
                          .ticket = device->bringing.n_tickets + 1};
}

static void issue_small(struct issue *issue) {
    if (issue->small.n > 0) {
        cuda_bring_by_kernel(issue->stream, &issue->small);
        issue->result = cudaGetLastError();
    }
    issue->small.n = 0;
}

static void issue_copy(struct issue *issue, struct cuda_bring_copy copy) {
    if (issue->result != cudaSuccess)
        return;
    if (!issue->device->reads_host || copy.bytes >= engine_bytes) {
        issue->result =
            cudaMemcpyAsync(copy.device, copy.from, copy.bytes, cudaMemcpyHostToDevice, issue->stream);
        return;
    }
    issue->small.copies[issue->small.n++] = copy;
    if (issue->small.n == CUDA_BRING_COPIES)
        issue_small(issue);
}

/* Not by cuda_check on the bringer: it works on nothing but its own blocks, so that no stream has to wait for
 * it to be quiet. */
static void end_issue(struct issue *issue) {
    struct cuda_bringer *bringer = &issue->device->bringing;
    if (issue->result == cudaSuccess)
        issue_small(issue);
    const cudaError_t recorded = cudaEventRecord(bringer->events[issue->ticket % EVENTS], issue->stream);
    const cudaError_t result = issue->result == cudaSuccess ? recorded : issue->result;
    bringer->failure = bringer->failure == cudaSuccess ? result : bringer->failure;
    bringer->n_tickets = issue->ticket;
}

static cudaEvent_t event_of(const struct cuda_device *device, int64_t ticket) {
    return device->bringing.events[ticket % EVENTS];
}

/* ---- the queue, under the lock ---- */

static void enqueue(struct cuda_bringer *bringer, struct cuda_bring_request *request) {
    request->is_queued = true;
    request->previous = bringer->last;
    request->next = NULL;
    if (bringer->last)
        bringer->last->next = request;
    else
        bringer->first = request;
    bringer->last = request;
}

static void dequeue(struct cuda_bringer *bringer, struct cuda_bring_request *request) {
    if (request->previous)
        request->previous->next = request->next;
    else
        bringer->first = request->next;
    if (request->next)
        request->next->previous = request->previous;
    else
        bringer->last = request->previous;
    request->previous = request->next = NULL;
    request->is_queued = false;
}

/* Of the request's next copy, `most` bytes. The last copy takes it out of the queue. */
static size_t issue_part(struct issue *issue, struct cuda_bring_request *request, size_t most) {
    struct cuda_bring_copy *copy = &request->copies[request->n_issued];
    const size_t bytes = copy->bytes < most ? copy->bytes : most;
    issue_copy(issue, (struct cuda_bring_copy){copy->device, copy->from, bytes});
    request->ticket = issue->ticket;
    copy->device = (char *)copy->device + bytes;
    copy->from = (const char *)copy->from + bytes;
    copy->bytes -= bytes;
    request->n_issued += copy->bytes == 0;
    if (request->is_queued && request->n_issued == request->n)
        dequeue(&issue->device->bringing, request);
    return bytes;
}

/* ---- what is needed now ---- */

static enum sx_status await(struct cuda_stream *stream, int64_t ticket) {
    struct cuda_bringer *bringer = &stream->device->bringing;
    pthread_mutex_lock(&bringer->lock);
    cudaError_t result = bringer->failure;
    pthread_mutex_unlock(&bringer->lock);
    if (result == cudaSuccess)
        result = cudaStreamWaitEvent(stream->handle, event_of(stream->device, ticket), 0);
    return cuda_check(stream, result, "a copy to the device");
}

enum sx_status cuda_bring(struct cuda_stream *stream, const struct cuda_bring_copy *copies, int64_t n) {
    struct cuda_device *device = stream->device;
    pthread_mutex_lock(&device->bringing.lock);
    struct issue issue = begin_issue(device);
    for (int64_t i = 0; i < n; i++)
        issue_copy(&issue, copies[i]);
    end_issue(&issue);
    pthread_mutex_unlock(&device->bringing.lock);
    return await(stream, issue.ticket);
}

void cuda_bring_now(struct cuda_device *device, struct cuda_bring_request **requests, int64_t n) {
    bool any = false;
    pthread_mutex_lock(&device->bringing.lock);
    for (int64_t i = 0; i < n && !any; i++)
        any = requests[i]->n_issued < requests[i]->n;
    if (any) {
        struct issue issue = begin_issue(device);
        for (int64_t i = 0; i < n; i++)
            while (requests[i]->n_issued < requests[i]->n)
                issue_part(&issue, requests[i], SIZE_MAX);
        end_issue(&issue);
    }
    pthread_mutex_unlock(&device->bringing.lock);
}

enum sx_status cuda_bring_wait(struct cuda_stream *stream, struct cuda_bring_request **requests, int64_t n) {
    int64_t last = 0;
    cuda_bring_now(stream->device, requests, n);
    for (int64_t i = 0; i < n; i++) {
        last = requests[i]->ticket > last ? requests[i]->ticket : last;
        requests[i]->is_awaited = true;
    }
    return last > 0 ? await(stream, last) : SX_OK;
}

void cuda_bring_give_up(struct cuda_device *device, struct cuda_bring_request *request) {
    pthread_mutex_lock(&device->bringing.lock);
    if (request->is_queued)
        dequeue(&device->bringing, request);
    pthread_mutex_unlock(&device->bringing.lock);
    if (!request->is_awaited && request->ticket > 0)
        (void)cudaEventSynchronize(event_of(device, request->ticket));
    free(request->copies);
    *request = (struct cuda_bring_request){0};
}

/* ---- what will be ---- */

static void issue_piece(struct cuda_device *device) {
    const struct cuda_bringer *bringer = &device->bringing;
    struct issue issue = begin_issue(device);
    for (size_t bytes = 0; bytes < piece_bytes && bringer->first;)
        bytes += issue_part(&issue, bringer->first, part_bytes);
    end_issue(&issue);
}

/* Two pieces are on their way at most. */
static void *bring_main(void *context) {
    struct cuda_device *device = context;
    struct cuda_bringer *bringer = &device->bringing;
    int64_t before = 0;
    (void)cuda_choose_device(device->ordinal);
    pthread_mutex_lock(&bringer->lock);
    for (;;) {
        while (!bringer->first && !bringer->stops)
            pthread_cond_wait(&bringer->asked, &bringer->lock);
        if (bringer->stops)
            break;
        issue_piece(device);
        const int64_t ticket = bringer->n_tickets;
        pthread_mutex_unlock(&bringer->lock);
        if (before > 0)
            (void)cudaEventSynchronize(event_of(device, before));
        before = ticket;
        pthread_mutex_lock(&bringer->lock);
    }
    pthread_mutex_unlock(&bringer->lock);
    return NULL;
}

void cuda_bring_later(struct cuda_device *device, struct cuda_bring_request **requests, int64_t n) {
    struct cuda_bringer *bringer = &device->bringing;
    pthread_mutex_lock(&bringer->lock);
    for (int64_t i = 0; i < n; i++)
        enqueue(bringer, requests[i]);
    if (!bringer->has_thread)
        bringer->has_thread = pthread_create(&bringer->thread, NULL, bring_main, device) == 0;
    const bool has_thread = bringer->has_thread;
    pthread_cond_signal(&bringer->asked);
    pthread_mutex_unlock(&bringer->lock);
    if (!has_thread)
        cuda_bring_now(device, requests, n);
}
