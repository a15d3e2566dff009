/* Stored bytes over the link, one call's after another's, on streams of the device's own. On their workers'
 * streams copies of several calls share the link, so that all of them have their bytes late and at about the
 * same time. One after another, the first one computes while the next one's bytes come. Small ones go
 * together, by a kernel; the streams are in front of others where kernels wait for room.
 *
 * What is decoded next has a stream, what is ahead another one: behind tens of megabytes that idle workers
 * have asked for ahead a busy one's bytes would take a millisecond. A call that wants few bytes in all has
 * them on its worker's stream: the link hardly notices. */
#include "backend/cuda/cuda.h"

/* From here on copies are an engine's. It takes little longer than the bytes from the first on; what is
 * needed now would wait there for all that is ahead, since an engine does one copy after another, whichever
 * streams they are of, and a kernel's reads have a share of the link. */
static const size_t engine_bytes = (size_t)1 << 20, engine_now_bytes = (size_t)8 << 20;

static enum sx_status find_event(struct cuda_stream *stream, cudaEvent_t *event) {
    if (*event)
        return SX_OK;
    return cuda_check(stream, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event");
}

/* An event that later tickets have taken over comes later than asked for, never too early. */
static cudaEvent_t *event_of(struct cuda_stream *stream, int64_t ticket) {
    return &stream->ahead[ticket % CUDA_AHEAD_EVENTS];
}

enum sx_status cuda_bring_begin(struct cuda_stream *stream, enum cuda_bring_way way) {
    struct cuda_stream *bringer;
    if (way == CUDA_BRING_FEW)
        return SX_OK;
    SX_TRY(find_event(stream, way == CUDA_BRING_NOW ? &stream->brought
                                                    : event_of(stream, cuda_bring_ticket(stream))));
    return cuda_own_stream(stream, &stream->device->bringers[way].stream, &bringer);
}

enum sx_status cuda_bring_memory(struct cuda_stream *stream, enum cuda_bring_way way, size_t bytes,
                                 struct sx_buffer **out_buffer) {
    if (way == CUDA_BRING_FEW)
        return sx_buffer_create(stream->base.pool, bytes, out_buffer, &stream->base.error);
    struct cuda_stream *bringer = atomic_load(&stream->device->bringers[way].stream);
    SX_TRY(sx_buffer_create(bringer->base.pool, bytes, out_buffer, &stream->base.error));
    cuda_share(bringer, (*out_buffer)->data);
    return SX_OK;
}

static cudaError_t issue_small(cudaStream_t stream, struct cuda_bring_copies *small) {
    if (small->n > 0)
        cuda_bring_by_kernel(stream, small);
    small->n = 0;
    return cudaGetLastError();
}

static cudaError_t issue_copies(const struct cuda_device *device, enum cuda_bring_way way,
                                cudaStream_t stream, const struct cuda_bring_copy *copies, int64_t n) {
    const size_t least_bytes = way == CUDA_BRING_NOW ? engine_now_bytes : engine_bytes;
    struct cuda_bring_copies small = {.n = 0};
    cudaError_t result = cudaSuccess;
    for (int64_t i = 0; i < n && result == cudaSuccess; i++) {
        const struct cuda_bring_copy *copy = &copies[i];
        if (!device->reads_host || copy->bytes >= least_bytes) {
            result = cudaMemcpyAsync(copy->device, copy->from, copy->bytes, cudaMemcpyHostToDevice, stream);
            continue;
        }
        small.copies[small.n++] = *copy;
        if (small.n == CUDA_BRING_COPIES)
            result = issue_small(stream, &small);
    }
    return result == cudaSuccess ? issue_small(stream, &small) : result;
}

/* Not by cuda_check on the bringer: it works on nothing but its own blocks, so that no stream has to wait for
 * it to be quiet. */
static cudaError_t issue(struct cuda_device *device, enum cuda_bring_way way,
                         const struct cuda_bring_copy *copies, int64_t n, cudaEvent_t event) {
    struct cuda_bringer *bringer = &device->bringers[way];
    cudaStream_t handle = atomic_load(&bringer->stream)->handle;
    pthread_mutex_lock(&bringer->issuing);
    const cudaError_t result = issue_copies(device, way, handle, copies, n);
    const cudaError_t recorded = cudaEventRecord(event, handle);
    pthread_mutex_unlock(&bringer->issuing);
    return result == cudaSuccess ? recorded : result;
}

/* The worker's stream has no more to do by it. */
static enum sx_status bring_ahead(struct cuda_stream *stream, const struct cuda_bring_copy *copies,
                                  int64_t n) {
    const cudaError_t result =
        issue(stream->device, CUDA_BRING_AHEAD, copies, n, *event_of(stream, ++stream->n_ahead));
    return result == cudaSuccess ? SX_OK : cuda_check(stream, result, "a copy to the device");
}

static cudaError_t bring_now(struct cuda_stream *stream, const struct cuda_bring_copy *copies, int64_t n) {
    const cudaError_t result = issue(stream->device, CUDA_BRING_NOW, copies, n, stream->brought);
    const cudaError_t waits = cudaStreamWaitEvent(stream->handle, stream->brought, 0);
    return result == cudaSuccess ? waits : result;
}

enum sx_status cuda_bring(struct cuda_stream *stream, enum cuda_bring_way way,
                          const struct cuda_bring_copy *copies, int64_t n) {
    if (way == CUDA_BRING_AHEAD)
        return bring_ahead(stream, copies, n);
    return cuda_check(stream,
                      way == CUDA_BRING_NOW ? bring_now(stream, copies, n)
                                            : issue_copies(stream->device, way, stream->handle, copies, n),
                      "a copy to the device");
}

enum sx_status cuda_bring_wait(struct cuda_stream *stream, int64_t ticket) {
    if (ticket <= stream->n_awaited)
        return SX_OK;
    stream->n_awaited = ticket;
    return cuda_check(stream, cudaStreamWaitEvent(stream->handle, *event_of(stream, ticket), 0),
                      "a copy to the device");
}

void cuda_bring_join(const struct cuda_stream *stream, int64_t ticket) {
    (void)cudaEventSynchronize(stream->ahead[ticket % CUDA_AHEAD_EVENTS]);
}
