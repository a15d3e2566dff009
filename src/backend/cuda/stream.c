/* Streams: issuing, the one synchronisation, and copies between pageable host memory and the device. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch.h"
#include "base/clock.h"
#include "observe/trace.h"

enum {
    STAGING_BYTES = 4 << 20,
    READ_BYTES = 4096,  /* behind these */
    OWN_TILES = 1 << 17 /* whose scratch memory a stream always has */
};

enum sx_status cuda_check(struct cuda_stream *stream, cudaError_t result, const char *what) {
    atomic_store(&stream->clock->busy, true);
    if (result == cudaSuccess)
        return SX_OK;
    if (result == cudaErrorMemoryAllocation)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "out of device memory: %s", what);
    return sx_error_set(&stream->base.error, SX_INTERNAL, "CUDA: %s: %s", what, cudaGetErrorString(result));
}

enum sx_status cuda_launched(struct cuda_stream *stream, const char *what) {
    return cuda_check(stream, cudaGetLastError(), what);
}

/* Copies of aligned memory are by kernels. */
static bool is_by_words(const void *to, const void *from) {
    enum { WORD = 8 };
    return ((uintptr_t)to | (uintptr_t)from) % WORD == 0;
}

/* To or from pinned memory. */
static enum sx_status copy(struct cuda_stream *stream, void *to, const void *from, size_t bytes,
                           enum cudaMemcpyKind kind, const char *what) {
    if (!is_by_words(to, from)) {
        stream->engine_lands |= kind == cudaMemcpyDeviceToHost;
        return cuda_check(stream, cudaMemcpyAsync(to, from, bytes, kind, stream->handle), what);
    }
    stream->kernels_land |= kind == cudaMemcpyDeviceToHost;
    cuda_copy_bytes(stream->handle, to, from, bytes);
    return cuda_launched(stream, what);
}

/* ---- the calling thread's device ---- */

cudaError_t cuda_choose_device(int ordinal) {
    static _Thread_local int chosen = -1;
    if (chosen == ordinal)
        return cudaSuccess;
    const cudaError_t result = cudaSetDevice(ordinal);
    chosen = result == cudaSuccess ? ordinal : -1;
    return result;
}

void cuda_wait(const struct cuda_device *device) {
    if (cuda_choose_device(device->ordinal) == cudaSuccess)
        (void)cudaDeviceSynchronize();
}

/* ---- life ---- */

static enum sx_status enlist(struct cuda_device *device, struct cuda_stream *stream, struct sx_error *error) {
    pthread_mutex_lock(&device->lock);
    int at = 0;
    while (at < CUDA_MAX_STREAMS && device->streams[at])
        at++;
    if (at < CUDA_MAX_STREAMS) {
        device->streams[at] = stream;
        stream->clock = &device->clocks[at];
        if (at >= atomic_load(&device->n_clocks))
            atomic_store(&device->n_clocks, at + 1);
    }
    pthread_mutex_unlock(&device->lock);
    return at < CUDA_MAX_STREAMS
               ? SX_OK
               : sx_error_set(error, SX_USAGE, "more than %d workers on one device", CUDA_MAX_STREAMS);
}

static void delist(struct cuda_device *device, const struct cuda_stream *stream) {
    pthread_mutex_lock(&device->lock);
    for (int i = 0; i < CUDA_MAX_STREAMS; i++)
        if (device->streams[i] == stream)
            device->streams[i] = NULL;
    if (stream->clock)
        atomic_store(&stream->clock->busy, false);
    pthread_mutex_unlock(&device->lock);
}

/* Whose kernels get room of the device before those of the streams in front of it here. */
enum room { ROOM_LEFT, ROOM_USUAL, ROOM_FIRST };

/* Priorities are numbers that get less from the least one on. */
static cudaError_t create_handle(enum room room, cudaStream_t *out_handle) {
    int least = 0, greatest = 0;
    const cudaError_t result = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    const int usual = least > greatest + 1 ? least - 1 : least;
    return result == cudaSuccess ? cudaStreamCreateWithPriority(out_handle, cudaStreamNonBlocking,
                                                                room == ROOM_FIRST   ? greatest
                                                                : room == ROOM_USUAL ? usual
                                                                                     : least)
                                 : result;
}

enum sx_status cuda_behind(struct cuda_stream *stream, cudaStream_t *out_handle) {
    struct cuda_device *device = stream->device;
    cudaError_t result = cudaSuccess;
    pthread_mutex_lock(&device->making);
    if (!device->behind)
        result = create_handle(ROOM_LEFT, &device->behind);
    *out_handle = device->behind;
    pthread_mutex_unlock(&device->making);
    return cuda_check(stream, result, "a stream");
}

static enum sx_status create_parts(struct cuda_stream *stream, bool is_first, struct sx_error *error) {
    void *control = NULL, *reply = NULL, *staging = NULL;
    cudaError_t result = cuda_choose_device(stream->device->ordinal);
    if (result == cudaSuccess)
        result = create_handle(is_first ? ROOM_FIRST : ROOM_USUAL, &stream->usual);
    stream->handle = stream->usual;
    if (result == cudaSuccess)
        result = cudaMalloc(&control, sizeof *stream->control);
    stream->control = control;
    if (result == cudaSuccess)
        result = cudaHostAlloc(&reply, sizeof *stream->reply, cudaHostAllocDefault);
    stream->reply = reply;
    if (reply)
        memset(reply, 0, sizeof *stream->reply);
    if (result == cudaSuccess)
        result = cudaHostAlloc(&staging, STAGING_BYTES + READ_BYTES, cudaHostAllocDefault);
    stream->staging = staging;
    if (result == cudaSuccess)
        result = cudaMemsetAsync(control, 0, sizeof *stream->control, stream->handle);
    if (result == cudaSuccess)
        result = cudaMalloc(&stream->tile_scratch, cuda_tile_bytes(OWN_TILES));
    if (result == cudaSuccess)
        result = cudaMemsetAsync(stream->tile_scratch, 0, cuda_tile_bytes(OWN_TILES), stream->handle);
    if (result != cudaSuccess)
        return sx_error_set(error, result == cudaErrorMemoryAllocation ? SX_OUT_OF_MEMORY : SX_INTERNAL,
                            "CUDA: a stream: %s", cudaGetErrorString(result));
    SX_TRY(enlist(stream->device, stream, error));
    return cuda_allocator_create(stream, error);
}

void cuda_stream_free(struct cuda_stream *stream) {
    if (stream->handle)
        (void)cudaStreamSynchronize(stream->handle);
    delist(stream->device, stream);
    cuda_allocator_close(stream->allocator);
    (void)cudaFree(stream->control);
    (void)cudaFree(stream->tile_scratch);
    (void)cudaFreeHost(stream->reply);
    (void)cudaFreeHost(stream->staging);
    if (stream->brought)
        (void)cudaEventDestroy(stream->brought);
    for (int i = 0; i < CUDA_AHEAD_EVENTS; i++)
        if (stream->ahead[i])
            (void)cudaEventDestroy(stream->ahead[i]);
    if (stream->aside)
        (void)cudaStreamDestroy(stream->aside);
    if (stream->switched)
        (void)cudaEventDestroy(stream->switched);
    if (stream->first)
        (void)cudaStreamDestroy(stream->first);
    if (stream->usual)
        (void)cudaStreamDestroy(stream->usual);
    free(stream);
}

/* ---- streams that wait for the next query: with what they hold, they take milliseconds to make ---- */

static struct cuda_stream *take_idle(struct cuda_device *device) {
    pthread_mutex_lock(&device->lock);
    struct cuda_stream *stream = device->idle;
    if (stream)
        device->idle = stream->next_idle;
    pthread_mutex_unlock(&device->lock);
    return stream;
}

static void keep_idle(struct cuda_stream *stream) {
    struct cuda_device *device = stream->device;
    pthread_mutex_lock(&device->lock);
    stream->next_idle = device->idle;
    device->idle = stream;
    pthread_mutex_unlock(&device->lock);
}

/* False: it is not fit for another query. */
static bool reset(struct cuda_stream *stream) {
    static const char why[] = "the end of a worker";
    enum sx_status status = cuda_sync(stream, why);
    if (status != SX_OK) /* a fault is told once */
        status = cuda_sync(stream, why);
    if (status != SX_OK)
        return false;
    cuda_hand_over(stream);
    stream->handle = stream->usual;
    stream->describe_fault = NULL;
    stream->fault_context = NULL;
    return true;
}

void sx_cuda_stream_destroy(struct sx_stream *base) {
    struct cuda_stream *stream = cuda_stream_of(base);
    if (!stream)
        return;
    stream->base.lane = NULL;
    if (cuda_choose_device(stream->device->ordinal) == cudaSuccess && reset(stream))
        keep_idle(stream);
    else
        cuda_stream_free(stream);
}

/* is_first: its kernels get room before others'. */
static enum sx_status create(struct cuda_device *device, bool is_first, struct cuda_stream **out_stream,
                             struct sx_error *error) {
    struct cuda_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a stream");
    stream->device = device;
    enum sx_status status = create_parts(stream, is_first, error);
    if (status != SX_OK) {
        cuda_stream_free(stream);
        return status;
    }
    *out_stream = stream;
    return SX_OK;
}

enum sx_status sx_cuda_stream_create(const struct sx_backend *backend, struct sx_pool *pool,
                                     const atomic_bool *cancel, struct sx_stream **out_stream,
                                     struct sx_error *error) {
    struct cuda_device *device = (struct cuda_device *)(uintptr_t)backend;
    struct cuda_stream *stream = take_idle(device);
    if (!stream)
        SX_TRY(create(device, false, &stream, error));
    stream->base.backend = backend;
    stream->base.cancel = cancel;
    stream->base.error = (struct sx_error){0};
    stream->host_pool = pool;
    *out_stream = &stream->base;
    return SX_OK;
}

enum sx_status cuda_own_stream(struct cuda_stream *stream, _Atomic(struct cuda_stream *) *own,
                               struct cuda_stream **out_own) {
    struct cuda_device *device = stream->device;
    enum sx_status status = SX_OK;
    struct cuda_stream *made;
    *out_own = atomic_load(own);
    if (*out_own)
        return SX_OK;
    pthread_mutex_lock(&device->making);
    *out_own = atomic_load(own);
    if (!*out_own)
        status = create(device, true, &made, &stream->base.error);
    if (!*out_own && status == SX_OK) {
        made->base.backend = &device->backend;
        made->host_pool = stream->host_pool;
        *out_own = made;
        atomic_store(own, *out_own);
    }
    pthread_mutex_unlock(&device->making);
    return status;
}

/* ---- issuing and waiting ---- */

enum sx_status cuda_enter(struct sx_stream *base, struct cuda_stream **out_stream) {
    struct cuda_stream *stream = *out_stream = cuda_stream_of(base);
    if (base->cancel && atomic_load_explicit(base->cancel, memory_order_relaxed))
        return sx_error_set(&base->error, SX_CANCELLED, "cancelled");
    const cudaError_t result = cuda_choose_device(stream->device->ordinal);
    return result == cudaSuccess ? SX_OK : cuda_check(stream, result, "choosing the device");
}

/* It is gone from the device then. */
static enum sx_status fetch_fault(struct cuda_stream *stream, struct cuda_fault *out_fault) {
    struct cuda_fault *found = &stream->reply->fault;
    cudaError_t result = cudaMemcpyAsync(found, &stream->control->fault, sizeof *found,
                                         cudaMemcpyDeviceToHost, stream->handle);
    if (result == cudaSuccess)
        result = cudaMemsetAsync(&stream->control->fault, 0, sizeof *found, stream->handle);
    if (result == cudaSuccess)
        result = cudaStreamSynchronize(stream->handle);
    *out_fault = *found;
    return result == cudaSuccess ? SX_OK : cuda_check(stream, result, "a fault");
}

static enum sx_status fault(struct cuda_stream *stream) {
    struct cuda_fault found;
    if ((uint32_t)stream->reply->fault_kind == CUDA_FAULT_NONE)
        return SX_OK;
    enum sx_status status = fetch_fault(stream, &found);
    if (status != SX_OK || cuda_eval_describe(stream, &found, &status))
        return status;
    if (found.kind == CUDA_FAULT_SUM)
        return cuda_group_describe(stream, &found);
    if (found.kind == CUDA_FAULT_ROWS) /* whoever is at work now */
        return sx_error_set(&stream->base.error, SX_INTERNAL,
                            "rows of another rank: column %u is damaged at row %lld", found.what,
                            (long long)found.row);
    if (stream->describe_fault)
        return stream->describe_fault(stream, &found, stream->fault_context);
    if (found.kind == CUDA_FAULT_PAGE)
        return sx_error_set(&stream->base.error, SX_FILE, "page %u is damaged", found.what);
    return sx_error_set(&stream->base.error, SX_QUERY,
                        "Out of Range Error: a value is out of range (row %lld of a batch)",
                        (long long)found.row);
}

/* Whether it has come, whose low half goes to *out. */
static bool take_word(const uint64_t *word, uint32_t number, uint64_t *out) {
    const uint64_t found = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    *out = (uint32_t)found;
    return found >> 32 == number;
}

/* Whether all of the reply has come that anybody asks for. */
static bool take_reply(struct cuda_stream *stream, uint32_t number) {
    const struct cuda_reply *reply = stream->reply;
    uint64_t low, high;
    if (!take_word(&reply->fault_kind, number, &low))
        return false;
    for (int i = 0; i < CUDA_COUNTERS; i++) {
        if (stream->is_zero[i])
            continue;
        if (!take_word(&reply->counters[i][0], number, &low) ||
            !take_word(&reply->counters[i][1], number, &high))
            return false;
        stream->counters[i] = (int64_t)(high << 32 | low);
    }
    return true;
}

/* To the other thread of this processor's core. */
static inline void leave_to_others(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* The reply is seen some microseconds before the driver tells that the stream is done, which is what a short
 * wait consists of. A long one, and a kernel that has failed, are the driver's. */
static enum sx_status wait_for_reply(struct cuda_stream *stream, uint32_t number, const char *why) {
    enum { PATIENCE_NS = 200000, LOOKS = 16 };
    const int64_t until_ns = stream->engine_lands ? 0 : sx_clock_ns() + PATIENCE_NS;
    while (sx_clock_ns() < until_ns)
        for (int i = 0; i < LOOKS; i++) {
            if (take_reply(stream, number))
                return SX_OK;
            leave_to_others();
        }
    SX_TRY(cuda_check(stream, cudaStreamSynchronize(stream->handle), why));
    return take_reply(stream, number)
               ? SX_OK
               : sx_error_set(&stream->base.error, SX_INTERNAL, "CUDA: %s: no reply", why);
}

static enum sx_status sync_all(struct cuda_stream *stream, bool takes_counters, const char *why) {
    const uint64_t epoch = atomic_load(&stream->device->epoch);
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    const uint32_t number = ++stream->n_syncs;
    atomic_store(&stream->has_taken, false);
    cuda_read_control(stream->handle, stream->control, takes_counters, stream->kernels_land, number,
                      stream->reply);
    SX_TRY(cuda_launched(stream, "reading counters"));
    SX_TRY(wait_for_reply(stream, number, why));
    stream->kernels_land = stream->engine_lands = false;
    for (int i = 0; i < CUDA_COUNTERS; i++)
        stream->is_zero[i] |= takes_counters;
    sx_span_end(stream->base.lane, SX_SPAN_SYNC, why, began_ns, 0, 0);
    stream->staging_used = 0;
    atomic_store(&stream->clock->quiet_epoch, epoch);
    atomic_store(&stream->clock->busy, false);
    const enum sx_status status = fault(stream);
    cuda_eval_all_checked(stream);
    return status;
}

enum sx_status cuda_sync(struct cuda_stream *stream, const char *why) {
    return sync_all(stream, false, why);
}

enum sx_status cuda_sync_counters(struct cuda_stream *stream, const char *why) {
    return sync_all(stream, true, why);
}

enum sx_status sx_cuda_synchronise(struct sx_stream *base, const char *why) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    cuda_hand_over(stream);
    const bool is_idle = !atomic_load(&stream->clock->busy) && !atomic_load(&stream->has_taken);
    return is_idle ? SX_OK : cuda_sync(stream, why);
}

/* The other one of the two goes on when all is done that was issued to this one. */
enum sx_status sx_cuda_prioritise(struct sx_stream *base, bool is_first) {
    struct cuda_stream *stream = cuda_stream_of(base);
    cudaError_t result = cuda_choose_device(stream->device->ordinal);
    if (result == cudaSuccess && is_first && !stream->switched)
        result = cudaEventCreateWithFlags(&stream->switched, cudaEventDisableTiming);
    if (result == cudaSuccess && is_first && !stream->first)
        result = create_handle(ROOM_FIRST, &stream->first);
    cudaStream_t to = is_first ? stream->first : stream->usual;
    if (result == cudaSuccess && to != stream->handle)
        result = cudaEventRecord(stream->switched, stream->handle);
    if (result == cudaSuccess && to != stream->handle)
        result = cudaStreamWaitEvent(to, stream->switched, 0);
    if (result != cudaSuccess)
        return cuda_check(stream, result, "a stream's priority");
    stream->handle = to;
    return SX_OK; /* not busy with that */
}

int64_t *cuda_counter_place(struct cuda_stream *stream, int i) {
    stream->is_zero[i] = false;
    return &stream->control->counters[i];
}

enum sx_status cuda_counters_reset(struct cuda_stream *stream, int first, int n) {
    int64_t *counters = &stream->control->counters[first];
    const bool are_zero = !memchr(stream->is_zero + first, false, (size_t)n);
    memset(stream->is_zero + first, false, (size_t)n);
    if (are_zero)
        return SX_OK;
    return cuda_check(stream, cudaMemsetAsync(counters, 0, (size_t)n * sizeof *counters, stream->handle),
                      "counters");
}

enum sx_status cuda_counter_reset(struct cuda_stream *stream, int i, int64_t **out_device) {
    *out_device = &stream->control->counters[i];
    return cuda_counters_reset(stream, i, 1);
}

int64_t cuda_counter(const struct cuda_stream *stream, int i) {
    return stream->counters[i];
}

/* ---- tiles ---- */

enum sx_status cuda_tile_scratch(struct cuda_stream *stream, int64_t n_tiles, struct sx_buffer **out_made,
                                 void **out_scratch) {
    const size_t bytes = cuda_tile_bytes(n_tiles);
    *out_made = NULL;
    *out_scratch = stream->tile_scratch;
    if (n_tiles <= OWN_TILES)
        return SX_OK;
    struct sx_buffer *made;
    SX_TRY(sx_buffer_create(stream->base.pool, bytes, &made, &stream->base.error));
    const enum sx_status status =
        cuda_check(stream, cudaMemsetAsync(made->data, 0, bytes, stream->handle), "memory for tiles");
    if (status != SX_OK) {
        sx_buffer_release(made);
        return status;
    }
    *out_made = made;
    *out_scratch = made->data;
    return SX_OK;
}

enum sx_status cuda_select_scratch(struct cuda_stream *stream, int64_t n, struct sx_buffer **out_made,
                                   void **out_scratch) {
    return cuda_tile_scratch(stream, cuda_select_tiles(n), out_made, out_scratch);
}

/* ---- copies ---- */

enum sx_status cuda_upload(struct cuda_stream *stream, void *device, const void *from, size_t bytes) {
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    for (size_t done = 0; done < bytes;) {
        if (stream->staging_used == STAGING_BYTES)
            SX_TRY(cuda_sync(stream, "staging memory is full"));
        size_t n = STAGING_BYTES - stream->staging_used;
        n = n < bytes - done ? n : bytes - done;
        char *place = stream->staging + stream->staging_used;
        memcpy(place, (const char *)from + done, n);
        SX_TRY(copy(stream, (char *)device + done, place, n, cudaMemcpyHostToDevice, "a copy to the device"));
        n = (n + 15) / 16 * 16; /* STAGING_BYTES is a multiple */
        stream->staging_used += n;
        done += n;
    }
    sx_span_end(stream->base.lane, SX_SPAN_COPY, "upload", began_ns, (int64_t)bytes, 1);
    return SX_OK;
}

enum sx_status cuda_uploads_issue(struct cuda_stream *stream, struct cuda_copies *uploads) {
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    int64_t bytes = 0;
    if (uploads->n == 0)
        return SX_OK;
    for (int i = 0; i < uploads->n; i++)
        bytes += uploads->of[i].bytes;
    const int n = uploads->n;
    cuda_copy_several(stream->handle, uploads);
    uploads->n = 0;
    SX_TRY(cuda_launched(stream, "copies to the device"));
    sx_span_end(stream->base.lane, SX_SPAN_COPY, "upload", began_ns, bytes, n);
    return SX_OK;
}

enum sx_status cuda_upload_later(struct cuda_stream *stream, struct cuda_copies *uploads, void *device,
                                 const void *from, size_t bytes) {
    const bool has_room = bytes <= STAGING_BYTES - stream->staging_used;
    if (!has_room || uploads->n == CUDA_COPIES)
        SX_TRY(cuda_uploads_issue(stream, uploads));
    if (!has_room)
        return cuda_upload(stream, device, from, bytes);
    char *place = stream->staging + stream->staging_used;
    memcpy(place, from, bytes);
    stream->staging_used += (bytes + 15) / 16 * 16; /* STAGING_BYTES is a multiple */
    uploads->of[uploads->n++] = (struct cuda_copy){device, place, (int64_t)bytes};
    return SX_OK;
}

enum sx_status cuda_upload_pinned(struct cuda_stream *stream, void *device, const void *from, size_t bytes) {
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    SX_TRY(cuda_check(stream, cudaMemcpyAsync(device, from, bytes, cudaMemcpyHostToDevice, stream->handle),
                      "a copy to the device"));
    sx_span_end(stream->base.lane, SX_SPAN_COPY, "upload of pinned memory", began_ns, (int64_t)bytes, 1);
    return SX_OK;
}

enum sx_status cuda_upload_few(struct cuda_stream *stream, void *device, const void *from, size_t bytes) {
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    SX_TRY(copy(stream, device, from, bytes, cudaMemcpyHostToDevice, "a copy to the device"));
    sx_span_end(stream->base.lane, SX_SPAN_COPY, "upload by a kernel", began_ns, (int64_t)bytes, 1);
    return SX_OK;
}

enum sx_status cuda_download_pinned(struct cuda_stream *stream, void *to, const void *device, size_t bytes,
                                    const char *why) {
    if (bytes <= CUDA_FEW_BYTES)
        return copy(stream, to, device, bytes, cudaMemcpyDeviceToHost, why);
    stream->engine_lands = true;
    return cuda_check(stream, cudaMemcpyAsync(to, device, bytes, cudaMemcpyDeviceToHost, stream->handle),
                      why);
}

/* Behind the staging memory, which copies of the stream may be at. */
enum sx_status cuda_read(struct cuda_stream *stream, void *to, const void *device, size_t bytes,
                         const char *why) {
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    char *place = stream->staging + STAGING_BYTES;
    if (!stream->aside)
        SX_TRY(cuda_check(stream, cudaStreamCreateWithFlags(&stream->aside, cudaStreamNonBlocking), why));
    for (size_t done = 0; done < bytes;) {
        const size_t n = bytes - done < READ_BYTES ? bytes - done : READ_BYTES;
        SX_TRY(cuda_check(
            stream,
            cudaMemcpyAsync(place, (const char *)device + done, n, cudaMemcpyDeviceToHost, stream->aside),
            why));
        SX_TRY(cuda_check(stream, cudaStreamSynchronize(stream->aside), why));
        memcpy((char *)to + done, place, n);
        done += n;
    }
    sx_span_end(stream->base.lane, SX_SPAN_SYNC, why, began_ns, (int64_t)bytes, 0);
    return SX_OK;
}

enum sx_status cuda_download(struct cuda_stream *stream, void *to, const void *device, size_t bytes,
                             const char *why) {
    const int64_t began_ns = sx_span_begin(stream->base.lane);
    /* uploads that still read the staging memory come first in the stream's order */
    for (size_t done = 0; done < bytes;) {
        const size_t n = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;
        SX_TRY(copy(stream, stream->staging, (const char *)device + done, n, cudaMemcpyDeviceToHost,
                    "a copy from the device"));
        SX_TRY(cuda_sync(stream, why));
        memcpy((char *)to + done, stream->staging, n);
        done += n;
    }
    sx_span_end(stream->base.lane, SX_SPAN_COPY, "download", began_ns, (int64_t)bytes, 1);
    return SX_OK;
}

enum sx_status cuda_downloads_land(struct cuda_stream *stream, struct cuda_downloads *downloads,
                                   const char *why) {
    const int n = downloads->n;
    downloads->n = 0;
    if (downloads->copies.n > 0)
        cuda_copy_several(stream->handle, &downloads->copies);
    downloads->copies.n = 0;
    SX_TRY(cuda_launched(stream, why));
    SX_TRY(cuda_sync(stream, why));
    for (int i = 0; i < n; i++)
        memcpy(downloads->landings[i].to, downloads->landings[i].from, downloads->landings[i].bytes);
    return SX_OK;
}

enum sx_status cuda_download_later(struct cuda_stream *stream, struct cuda_downloads *downloads, void *to,
                                   const void *device, size_t bytes, const char *why) {
    if (bytes == 0)
        return SX_OK;
    if (downloads->n == CUDA_DOWNLOADS || bytes > STAGING_BYTES - stream->staging_used)
        SX_TRY(cuda_downloads_land(stream, downloads, why));
    if (bytes > STAGING_BYTES)
        return cuda_download(stream, to, device, bytes, why);
    char *place = stream->staging + stream->staging_used;
    if (is_by_words(place, device)) {
        stream->kernels_land = true;
        downloads->copies.of[downloads->copies.n++] = (struct cuda_copy){place, device, (int64_t)bytes};
    } else {
        SX_TRY(copy(stream, place, device, bytes, cudaMemcpyDeviceToHost, "a copy from the device"));
    }
    stream->staging_used += (bytes + 15) / 16 * 16;
    downloads->landings[downloads->n++] = (struct cuda_landing){to, place, bytes};
    return SX_OK;
}

enum sx_status cuda_upload_buffer(struct cuda_stream *stream, const void *from, size_t bytes,
                                  struct sx_buffer **out_buffer) {
    struct sx_buffer *buffer;
    SX_TRY(sx_buffer_create(stream->base.pool, bytes, &buffer, &stream->base.error));
    enum sx_status status = cuda_upload(stream, buffer->data, from, bytes);
    if (status != SX_OK) {
        sx_buffer_release(buffer);
        return status;
    }
    *out_buffer = buffer;
    return SX_OK;
}
