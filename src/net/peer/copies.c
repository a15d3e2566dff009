#include "net/peer/copies.h"

#include <stdlib.h>

#ifdef SX_CUDA_EMULATED
enum { SLICE_BYTES = 1 << 10 };
#else
enum { SLICE_BYTES = 16 << 20 /* some 45 us */ };
#endif

struct peer_copy {
    struct peer_copy *next;
    char *to;
    const char *from;
    size_t left_bytes; /* that are not under way yet */
    int n_slices;      /* that are */
    cudaError_t result;
    uint64_t before_epoch; /* the device's, when it was added */
};

enum sx_status peer_fail(struct sx_error *error, cudaError_t result, const char *what) {
    (void)cudaGetLastError();
    return sx_error_set(error, result == cudaErrorMemoryAllocation ? SX_OUT_OF_MEMORY : SX_INTERNAL,
                        "CUDA: %s: %s", what, cudaGetErrorString(result));
}

enum sx_status peer_copies_init(struct peer_copies *copies, int rank, int size, struct sx_error *error) {
    *copies = (struct peer_copies){
        .of = calloc((size_t)size, sizeof *copies->of), .rank = rank, .size = size, .turn = rank};
    if (!copies->of)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", size);
    for (int i = 0; i < PEER_SLICES; i++) {
        const cudaError_t result = cudaEventCreateWithFlags(&copies->slices[i].event, cudaEventDisableTiming);
        if (result != cudaSuccess)
            return peer_fail(error, result, "an event");
    }
    return SX_OK;
}

static void free_list(struct peer_copy *copy) {
    while (copy) {
        struct peer_copy *next = copy->next;
        free(copy);
        copy = next;
    }
}

void peer_copies_drop(struct peer_copies *copies) {
    if (copies->stream)
        sx_cuda_stream_destroy(copies->stream);
    copies->stream = NULL;
    copies->n_slices = 0;
    for (int r = 0; copies->of && r < copies->size; r++) {
        free_list(copies->of[r].first);
        copies->of[r] = (struct peer_copies_of){0};
    }
}

void peer_copies_release(struct peer_copies *copies) {
    peer_copies_drop(copies);
    for (int i = 0; i < PEER_SLICES; i++)
        if (copies->slices[i].event)
            (void)cudaEventDestroy(copies->slices[i].event);
    free_list(copies->spare);
    free(copies->of);
    *copies = (struct peer_copies){0};
}

enum sx_status peer_copies_enter(struct peer_copies *copies, struct cuda_device *device,
                                 struct sx_pool *host_pool, struct cuda_stream **out_stream,
                                 struct sx_error *error) {
    if (!copies->stream)
        SX_TRY(sx_cuda_stream_create(&device->backend, host_pool, NULL, &copies->stream, error));
    if (cuda_enter(copies->stream, out_stream) == SX_OK)
        return SX_OK;
    *error = copies->stream->error;
    return error->status;
}

/* ---- slices ---- */

/* The next rank's whose turn it is; NULL: all is under way. */
static struct peer_copy *next_copy(struct peer_copies *copies, struct peer_copies_of **out_of) {
    for (int i = 1; i <= copies->size; i++) {
        const int r = (copies->turn + i) % copies->size;
        if (!copies->of[r].issuing)
            continue;
        copies->turn = r;
        *out_of = &copies->of[r];
        return copies->of[r].issuing;
    }
    return NULL;
}

static cudaError_t issue(struct peer_copies *copies, struct peer_copy *copy, size_t bytes) {
    struct peer_slice *slice = &copies->slices[(copies->first_slice + copies->n_slices) % PEER_SLICES];
    cudaStream_t handle = cuda_stream_of(copies->stream)->handle;
    cudaError_t result = cudaMemcpyAsync(copy->to, copy->from, bytes, cudaMemcpyDefault, handle);
    if (result != cudaSuccess)
        return result;
    result = cudaEventRecord(slice->event, handle);
    if (result != cudaSuccess) { /* its end would not be seen */
        (void)cudaStreamSynchronize(handle);
        return result;
    }
    slice->copy = copy;
    copies->n_slices++;
    copy->n_slices++;
    return cudaSuccess;
}

static void issue_some(struct peer_copies *copies) {
    struct peer_copies_of *of;
    struct peer_copy *copy;
    while (copies->n_slices < PEER_SLICES && (copy = next_copy(copies, &of)) != NULL) {
        const size_t bytes = copy->left_bytes < SLICE_BYTES ? copy->left_bytes : SLICE_BYTES;
        const cudaError_t result = issue(copies, copy, bytes);
        copy->to += bytes;
        copy->from += bytes;
        copy->left_bytes -= bytes;
        if (result != cudaSuccess) {
            copy->result = result;
            copy->left_bytes = 0;
        }
        if (copy->left_bytes == 0)
            of->issuing = copy->next;
    }
}

static void end_some(struct peer_copies *copies) {
    while (copies->n_slices > 0) {
        const struct peer_slice *slice = &copies->slices[copies->first_slice];
        const cudaError_t result = cudaEventQuery(slice->event);
        if (result != cudaSuccess)
            (void)cudaGetLastError();
        if (result == cudaErrorNotReady)
            break;
        if (result != cudaSuccess)
            slice->copy->result = result;
        slice->copy->n_slices--;
        copies->first_slice = (copies->first_slice + 1) % PEER_SLICES;
        copies->n_slices--;
    }
}

/* ---- copies ---- */

static struct peer_copy *take_spare(struct peer_copies *copies) {
    struct peer_copy *copy = copies->spare;
    if (!copy)
        return malloc(sizeof *copy);
    copies->spare = copy->next;
    return copy;
}

enum sx_status peer_copies_add(struct peer_copies *copies, int rank, void *to, const void *from, size_t bytes,
                               struct sx_error *error) {
    struct peer_copies_of *of = &copies->of[rank];
    struct cuda_stream *stream = cuda_stream_of(copies->stream);
    struct peer_copy *copy = take_spare(copies);
    if (!copy)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a pull");
    *copy = (struct peer_copy){
        .to = to, .from = from, .left_bytes = bytes, .before_epoch = atomic_load(&stream->device->epoch)};
    atomic_store(&stream->clock->busy, true);
    if (of->first)
        of->last->next = copy;
    else
        of->first = copy;
    of->last = copy;
    if (!of->issuing)
        of->issuing = copy;
    issue_some(copies);
    return SX_OK;
}

/* Blocks that were released before the oldest copy was added are not used by this stream any more. */
static void tell_clock(struct peer_copies *copies) {
    struct cuda_stream *stream = cuda_stream_of(copies->stream);
    uint64_t epoch = atomic_load(&stream->device->epoch);
    bool is_busy = false;
    for (int r = 0; r < copies->size; r++) {
        const struct peer_copy *oldest = copies->of[r].first;
        is_busy = is_busy || oldest;
        if (oldest && oldest->before_epoch < epoch)
            epoch = oldest->before_epoch;
    }
    atomic_store(&stream->clock->quiet_epoch, epoch);
    if (is_busy)
        return;
    atomic_store(&stream->clock->busy, false);
    copies->turn = copies->rank; /* then each begins with another one */
}

enum sx_status peer_copies_test(struct peer_copies *copies, int rank, bool *out_ended,
                                struct sx_error *error) {
    struct peer_copies_of *of = &copies->of[rank];
    struct peer_copy *copy = of->first;
    (void)cuda_choose_device(cuda_stream_of(copies->stream)->device->ordinal);
    end_some(copies);
    issue_some(copies);
    *out_ended = copy->left_bytes == 0 && copy->n_slices == 0;
    if (!*out_ended)
        return SX_OK;
    const cudaError_t result = copy->result;
    of->first = copy->next;
    copy->next = copies->spare;
    copies->spare = copy;
    tell_clock(copies);
    if (copies->is_abandoned)
        return sx_error_set(error, SX_RANK_LOST, "a copy of another GPU's memory has been given up");
    return result == cudaSuccess ? SX_OK : peer_fail(error, result, "a copy of another GPU's memory");
}

void peer_copies_abandon(struct peer_copies *copies) {
    copies->is_abandoned = true;
    for (int r = 0; r < copies->size; r++) {
        for (struct peer_copy *copy = copies->of[r].issuing; copy; copy = copy->next)
            copy->left_bytes = 0;
        copies->of[r].issuing = NULL;
    }
}
